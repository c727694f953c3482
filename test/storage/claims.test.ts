/** The claim's row is what orphans are found by: it must outlive every job that is held under its token. */
import { expect, onTestFinished, test, vi } from "vitest";
import type { ClaimedJob } from "../../src/jobs/job.ts";
import { idFactory } from "../../src/values/id.ts";
import { openStore } from "../../src/storage/open.ts";
import type { Store } from "../../src/storage/store.ts";
import type { ClaimScope } from "../../src/jobs/claim-scope.ts";
import type { Transition } from "../../src/jobs/outcome.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { newJob } from "../support/new-job.ts";
import { onEveryStore } from "../support/stores.ts";

const scope: ClaimScope = { queues: new Map([["q", 10]]), names: ["n"], limit: 10, order: "highest-first" };

onEveryStore((target) => {
  async function start(count = 2) {
    const clock = new FakeClock();
    const fresh = await target.fresh();
    const store = await openStore(fresh.url, { ...fresh.options, clock });
    const newId = idFactory(() => clock.now());
    const session = await open(store);
    await store.newJobs.enqueue(Array.from({ length: count }, () => newJob(newId())));
    const jobs = await store.claims.claim(session, scope, { levels: new Map(), rescannedAt: -Infinity });
    return { clock, fresh, store, session, jobs };
  }

  test("a settle that comes too late leaves its orphans to be found", async () => {
    const { clock, store, session, jobs } = await start();
    await clock.advance("31s");
    expect(await store.settles.settle(session, jobs.map(done), [jobs[0]?.token ?? 0])).toEqual(new Set());
    expect((await store.sessions.orphans(10)).map(({ id }) => id)).toEqual(jobs.map(({ id }) => id));
    await store.close();
  });

  test("[O4] a new session takes no id that another one has", async () => {
    const { store, session } = await start();
    const drawn = [session, session, 7];
    vi.spyOn(crypto, "getRandomValues").mockImplementation((into) => {
      (into as Uint32Array)[0] = (drawn.shift() as number) * 2;
      return into;
    });
    onTestFinished(() => void vi.restoreAllMocks());
    expect(await open(store)).toBe(7);
    await store.close();
  });

  test("a claim that is wholly settled leaves nothing behind", async () => {
    const { fresh, store, session, jobs } = await start();
    expect((await store.settles.settle(session, jobs.map(done), [jobs[0]?.token ?? 0])).size).toBe(2);
    expect(await fresh.query(`select * from ${fresh.table("claim")}`)).toEqual([]);
    await store.close();
  });

  test("[B8] a settle of some jobs of a claim, next to each other or not, leaves the others running", async () => {
    const { store, session, jobs } = await start(6);
    const settled = async (...picked: number[]): Promise<boolean[]> => {
      const moved = await store.settles.settle(
        session,
        picked.map((at) => done(jobs[at] as ClaimedJob)),
        [],
      );
      return jobs.map(({ id }) => moved.has(id));
    };
    const states = async (): Promise<(string | undefined)[]> =>
      Promise.all(jobs.map(async ({ id }) => (await store.jobs.get(id))?.state));
    expect(await settled(0, 2, 5)).toEqual([true, false, true, false, false, true]);
    expect(await states()).toEqual(["done", "running", "done", "running", "running", "done"]);
    expect(await settled(3, 4)).toEqual([false, false, false, true, true, false]);
    expect(await states()).toEqual(["done", "running", "done", "done", "done", "done"]);
    expect(await settled(0, 1, 2), "those that have ended are not its to end").toEqual([
      false,
      true,
      false,
      false,
      false,
      false,
    ]);
    await store.close();
  });

  test("a session that closes while it holds jobs is looked at until they are taken over", async () => {
    const { store, session, jobs } = await start();
    await store.sessions.close(session);
    const { now, expiresAt } = await store.claims.checkDue(scope);
    expect(expiresAt).toBeLessThanOrEqual(now);
    expect((await store.settles.takeOver(jobs.map(done))).size).toBe(2);
    await store.sessions.forgetDead();
    expect((await store.claims.checkDue(scope)).expiresAt).toBe(null);
    await store.close();
  });

  test("a held job whose claim was lost is filed again and taken over", async () => {
    const { clock, fresh, store, jobs } = await start();
    await fresh.query(`delete from ${fresh.table("claim")}`);
    await clock.advance("31s");
    expect(await store.sessions.orphans(10)).toEqual([]);
    await store.sessions.forgetDead();
    expect((await store.claims.checkDue(scope)).expiresAt).toBe(null);
    await store.upkeep.tidy();
    const { now, expiresAt } = await store.claims.checkDue(scope);
    expect(expiresAt).toBeLessThanOrEqual(now);
    expect((await store.sessions.orphans(10)).map(({ id }) => id)).toEqual(jobs.map(({ id }) => id));
    await store.close();
  });
});

function open(store: Store): Promise<number> {
  const info = {
    kind: "worker",
    workerId: "w",
    name: "w",
    host: "h",
    pid: 1,
    queues: { q: 10 },
    names: ["n"],
    leaseMs: 30_000,
    version: "0",
  } as const;
  return store.sessions.open(info);
}

function done(job: ClaimedJob): Transition {
  return {
    move: "end",
    id: job.id,
    rowKey: job.rowKey,
    token: job.token,
    state: "done",
    output: null,
    errors: null,
    attempt: 1,
    crashes: 0,
    keyed: false,
    keep: true,
  };
}
