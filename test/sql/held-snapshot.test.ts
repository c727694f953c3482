// While anybody holds an old snapshot, Postgres removes no row and no index entry of a job that is gone. Peers then walk
// over ever more of them with every claim. How much a claim reads does not depend on the machine, so that is what is
// compared here; the rate itself is measured in bench/ (scenario `snapshot`).
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { expect, test } from "vitest";
import type { ClaimedJob } from "../../src/job.ts";
import { Compiler } from "../../src/postgres/driver.ts";
import { cursorLevels } from "../../src/sql/claim.ts";
import { openStore } from "../../src/sql/open.ts";
import type { ClaimCursor, ClaimScope, Store, Transition } from "../../src/store.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { idFactory } from "../../src/policy/id.ts";
import { newJob } from "../support/new-job.ts";
import { type FreshStore, onEveryStore } from "../support/stores.ts";

const batch = 200;
const batches = 40;
const scope: ClaimScope = {
  queues: new Map([["q", batch]]),
  names: ["n"],
  limit: batch,
  order: "highest-first",
};

onEveryStore((target) => {
  test("[N18] under a held snapshot, the last claims of a drain read no more than the first", async () => {
    const clock = new FakeClock();
    const fresh = await target.fresh();
    const store = await openStore(fresh.url, { ...fresh.options, clock });
    const newId = idFactory(() => clock.now());
    const session = await openSession(store);
    for (let n = 0; n < batches; n += 1)
      await store.enqueue(Array.from({ length: batch }, () => newJob(newId())));
    const release = await holdSnapshot(fresh);
    const cursor: ClaimCursor = { levels: new Map(), lookedBackAt: -Infinity };
    const read: number[] = [];
    let ended = 0;
    for (let n = 0; n < batches; n += 1) {
      if (n > 0 && target.dialect === "postgres")
        read.push(await blocksOfClaim(fresh, { clock, session, cursor }));
      const jobs = await store.claim(session, scope, cursor);
      ended += (await store.settle(session, jobs.map(done), [jobs[0]?.token ?? 0])).size;
    }
    expect(ended).toBe(batch * batches);
    const tenth = Math.floor(read.length / 10);
    const mean = (some: readonly number[]): number => some.reduce((sum, n) => sum + n, 0) / some.length;
    if (read.length > 0)
      expect(mean(read.slice(-tenth))).toBeLessThanOrEqual(mean(read.slice(0, tenth)) * 1.25);
    await release();
    await store.close();
  });
});

/** A transaction that sees everything as it is now, and whose end is the answer. */
async function holdSnapshot(fresh: FreshStore): Promise<() => Promise<void>> {
  const look = `select count(*) as n from ${fresh.table("ready")}`;
  if (fresh.dialect === "sqlite") {
    const reader = new DatabaseSync(fresh.url.replace(/^sqlite:/, ""));
    reader.exec("begin");
    reader.prepare(look).get();
    return async () => reader.close();
  }
  const reader = new pg.Client(fresh.url);
  await reader.connect();
  await reader.query("begin isolation level repeatable read");
  await reader.query(look);
  return () => reader.end();
}

/** How many blocks the next claim would read, in a transaction that is rolled back. */
async function blocksOfClaim(
  fresh: FreshStore,
  { clock, session, cursor }: { clock: FakeClock; session: number; cursor: ClaimCursor },
): Promise<number> {
  const levels = cursorLevels(scope, cursor, clock.monotonic());
  const params = { now: clock.now(), session, ...levels?.[0] };
  const { text, values } = new Compiler(fresh.options.schema!).prepare({ name: "claimLevel", params });
  await fresh.query("begin");
  const [row] = await fresh.query(`explain (analyze, buffers, format json) ${text}`, [...values]);
  await fresh.query("rollback");
  const [{ Plan }] = row!["QUERY PLAN"] as [{ Plan: Record<string, number> }];
  return (Plan["Shared Hit Blocks"] ?? 0) + (Plan["Shared Read Blocks"] ?? 0);
}

function openSession(store: Store): Promise<number> {
  return store.openSession({
    kind: "worker",
    workerId: "w",
    name: "w",
    host: "h",
    pid: 1,
    version: "0",
    queues: { q: batch },
    names: ["n"],
    leaseMs: 30_000,
  });
}

function done({ id, place, token }: ClaimedJob): Transition {
  return {
    move: "end",
    id,
    place,
    token,
    state: "done",
    output: null,
    errors: null,
    attempt: 1,
    crashes: 0,
    keyed: false,
    keep: true,
  };
}
