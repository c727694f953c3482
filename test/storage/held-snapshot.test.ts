// While anybody holds an old snapshot, Postgres removes no row and no index entry of a job that is gone. Peers then walk
// over ever more of them with every claim. How much a claim reads does not depend on the machine, so that is what is
// compared here; the rate itself is measured in bench/ (scenario `snapshot`).
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { expect, test } from "vitest";
import type { Clock } from "../../src/clock.ts";
import type { Duration } from "../../src/values/duration.ts";
import type { ClaimedJob } from "../../src/jobs/job.ts";
import { Compiler } from "../../src/storage/postgres/driver.ts";
import type { Call, Params, Row, StatementName } from "../../src/storage/catalogue.ts";
import { aMomentBefore, edgeRows, knownLevels, partOf, scopeParams } from "../../src/jobs/plain-claim.ts";
import type { Driver, Lane } from "../../src/storage/driver.ts";
import { LIMITED } from "../../src/limits/limited-claim.ts";
import { openDriver, openStore } from "../../src/storage/open.ts";
import { SqlStore } from "../../src/storage/sql-store.ts";
import type { Store } from "../../src/storage/store.ts";
import type { ClaimCursor, ClaimScope } from "../../src/jobs/claim-scope.ts";
import type { Transition } from "../../src/jobs/outcome.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { idFactory } from "../../src/values/id.ts";
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

/** Only a schedule's job may be due before now. */
const slotAt = (runAt: number) => ({
  runAt,
  context: "schedule s",
  extras: { schedule: { name: "s", at: runAt } },
});

onEveryStore((target) => {
  const onPostgres = test.runIf(target.dialect === "postgres");
  onPostgres.each([
    { of: "without limits", claim: "claim", checkDue: "checkDue" },
    { of: "of a queue with a limit", claim: "takeLimited", checkDue: "checkLimitedDue" },
  ] as const)(
    "[N18][O16] under a held snapshot, the last claims and looks for work $of read no more than those before",
    async ({ claim, checkDue }) => {
      const clock = new FakeClock();
      const fresh = await target.fresh();
      const store = await openStore(fresh.url, { ...fresh.options, clock });
      // An analysis in the middle would change the plans.
      await fresh.query(`alter table ${fresh.table("ready")} set (autovacuum_enabled = off)`);
      const newId = idFactory(() => clock.now());
      const session = await openSession(store);
      if (claim === "takeLimited") await store.queues.set("q", { concurrency: 2 * batch });
      const release = await holdSnapshot(fresh);
      const cursor: ClaimCursor = { levels: new Map(), rescannedAt: -Infinity };
      const read: Record<string, number[]> = { checkDue: [], back: [], claim: [] };
      for (let n = 0; n < 20; n += 1) {
        // Two priorities, so that a claim has several levels, and several claims, which leave dead rows too.
        await store.newJobs.enqueue(
          Array.from({ length: batch }, (_, i) => newJob(newId(), { priority: i % 2 })),
        );
        for (let left = batch; left > 0;) {
          const some = { ...scope, queues: new Map([["q", 20]]), limit: 20 };
          const jobs = await store.claims.claim(session, some, cursor);
          left -= jobs.length;
          await store.settles.settle(session, jobs.map(done), [jobs[0]?.token ?? 0]);
        }
        const rowKeys = claim === "claim" ? cursor : partOf(cursor, LIMITED);
        const levels = knownLevels(scope, rowKeys);
        const extra = { channel: null, message: null, most: batch, rates: null };
        const asked = { now: clock.now(), session, ...scopeParams(scope), ...extra };
        const back = { ...asked, levels: aMomentBefore(levels) };
        read["back"]!.push(await blocksOf(fresh, claim, back));
        read["checkDue"]!.push(await blocksOf(fresh, checkDue, back));
        const queues = edgeRows(scope, rowKeys, levels);
        read["claim"]!.push(await blocksOf(fresh, claim, { ...asked, queues, levels }));
        // So that what is a moment old is one batch.
        await clock.advance("1s");
        await clock.advance(1);
        await store.sessions.renew(session);
      }
      const mean = (some: readonly number[]): number => some.reduce((sum, n) => sum + n, 0) / some.length;
      // From the eighth on, when the tables are large enough for their indexes to be used.
      const grown = Object.entries(read).filter(
        ([, blocks]) => mean(blocks.slice(-4)) > mean(blocks.slice(7, 11)) * 1.25,
      );
      expect(grown).toEqual([]);
      await release();
      await store.close();
    },
  );

  onPostgres.each([1, 3])(
    "[N18][O16] under a held snapshot, claims of lanes with %i priorities read no more of the ended jobs",
    async (priorities) => {
      const clock = new FakeClock();
      const fresh = await target.fresh();
      const store = await openStore(fresh.url, { ...fresh.options, clock });
      for (const table of ["ready", "lane", "lane_rotation"])
        await fresh.query(`alter table ${fresh.table(table)} set (autovacuum_enabled = off)`);
      const newId = idFactory(() => clock.now());
      const session = await openSession(store);
      const release = await holdSnapshot(fresh);
      const cursor: ClaimCursor = { levels: new Map(), rescannedAt: -Infinity };
      const read: Record<string, number[]> = { take: [], heads: [] };
      const [{ id: jobType } = {}, ...lanes] = await laned();
      async function laned(): Promise<{ id?: number }[]> {
        await fill();
        const rows = await fresh.query(`select id from ${fresh.table("lane")} order by id`);
        return [...(await fresh.query(`select id from ${fresh.table("job_type")}`)), ...rows] as {
          id: number;
        }[];
      }
      async function fill(): Promise<void> {
        await store.newJobs.enqueue(
          Array.from({ length: batch }, (_, i) =>
            newJob(newId(), { lane: `l${i % 4}`, priority: Math.floor(i / 4) % priorities }),
          ),
        );
        for (let left = batch; left > 0;) {
          const jobs = await store.claims.claim(session, scope, cursor);
          left -= jobs.length;
          await store.settles.settle(session, jobs.map(done), [...new Set(jobs.map(({ token }) => token))]);
        }
      }
      for (let n = 0; n < 20; n += 1) {
        await fill();
        const rotations = lanes.map(({ id }) => ({ lane: id!, jobType: jobType!, limit: 5, by: 0 }));
        const params = { now: clock.now(), session, rotations, names: ["n"], direction: 1 };
        const more = { counted: [], most: 5, rates: null };
        read["take"]!.push(await blocksOf(fresh, "takeLaned", { ...params, ...more }));
        read["heads"]!.push(await blocksOf(fresh, "laneHeads", params));
        await clock.advance("1s");
        await store.sessions.renew(session);
      }
      const mean = (some: readonly number[]): number => some.reduce((sum, n) => sum + n, 0) / some.length;
      // 50 jobs of each lane leave 50 entries and rows with each fill; the versions of the rows of lanes and rotations are few.
      const grown = Object.entries(read).map(
        ([, blocks]) => (mean(blocks.slice(-4)) - mean(blocks.slice(2, 6))) / 14,
      );
      for (const blocks of grown) expect(blocks).toBeLessThan(8);
      await release();
      await store.close();
    },
  );

  test("[N6] a lane gives the jobs that its claims have passed over: due before, given back, of other priorities, locked by somebody", async () => {
    const clock = new FakeClock();
    const fresh = await target.fresh();
    const store = await openStore(fresh.url, { ...fresh.options, clock });
    const newId = idFactory(() => clock.now());
    const session = await openSession(store);
    const cursor: ClaimCursor = { levels: new Map(), rescannedAt: -Infinity };
    const jobOf = (options: Parameters<typeof newJob>[1] = {}) => newJob(newId(), { lane: "a", ...options });
    const claim = (limit: number) =>
      store.claims.claim(session, { ...scope, queues: new Map([["q", limit]]), limit }, cursor);
    const ids = (jobs: readonly { id: string }[]) => jobs.map(({ id }) => id);
    const many = Array.from({ length: 6 }, () => jobOf());
    for (const one of many) {
      await store.newJobs.enqueue([one]);
      await clock.advance(1);
    }
    // The first of them is locked while the next are claimed.
    let unlock = async (): Promise<void> => {};
    if (target.dialect === "postgres") {
      const other = new pg.Client(fresh.url);
      await other.connect();
      await other.query("begin");
      await other.query(`select 1 from ${fresh.table("ready")} where id = $1 for update`, [many[0]!.id]);
      unlock = () => other.end();
    }
    const taken = await claim(2);
    await unlock();
    const [passed] = await claim(1);
    expect(passed?.id).toBe(many.find(({ id }) => !ids(taken).includes(id))!.id);
    await clock.advance("1s");
    const late = jobOf(slotAt(clock.now() - 60_000));
    await store.newJobs.enqueue([late]);
    const [given] = taken;
    await store.settles.settle(session, [released(given!)], []);
    expect(ids(await claim(1))).toEqual([late.id]);
    const rest = [...(await claim(2)), ...(await claim(3))];
    expect(ids(rest).toSorted()).toEqual(
      ids(many)
        .filter((id) => id !== taken[1]!.id && id !== passed!.id)
        .toSorted(),
    );
    expect(await claim(5)).toEqual([]);
    const [low, high] = [jobOf({ priority: -1 }), jobOf({ priority: 1 })];
    await store.newJobs.enqueue([low]);
    await clock.advance("1s");
    await store.newJobs.enqueue([high]);
    expect(ids(await claim(1))).toEqual([high.id]);
    await store.newJobs.enqueue([jobOf({ priority: 1 })]);
    await claim(1);
    expect(ids(await claim(5))).toEqual([low.id]);
    await store.close();
  });

  test("[N6] a lane gives the jobs that wait since before it was full and more came", async () => {
    const clock = new FakeClock();
    const fresh = await target.fresh();
    const store = await openStore(fresh.url, { ...fresh.options, clock });
    const newId = idFactory(() => clock.now());
    const session = await openSession(store);
    const cursor: ClaimCursor = { levels: new Map(), rescannedAt: -Infinity };
    const jobOf = (priority = 0) => newJob(newId(), { lane: "a", priority });
    const claim = () => store.claims.claim(session, scope, cursor);
    await store.lanes.set("q", "a", { concurrency: 1 });
    // Of two priorities, so that this claim does not learn where the lane's jobs begin.
    const [first, waiting, late] = [jobOf(1), jobOf(), jobOf()];
    await store.newJobs.enqueue([first, waiting]);
    let [held] = await claim();
    expect(held?.id).toBe(first.id);
    await clock.advance("1s");
    await store.newJobs.enqueue([late]);
    expect(await claim()).toEqual([]);
    for (const { id } of [waiting, late]) {
      await store.settles.settle(session, [done(held!)], [held!.token]);
      [held] = await claim();
      expect(held?.id).toBe(id);
    }
    await store.close();
  });

  onPostgres(
    "[N18][O16] under a held snapshot, a count of queues after a slow one reads few entries of ended jobs",
    async () => {
      const { clock, slowly } = slowClock();
      const fresh = await target.fresh();
      const store = await openStore(fresh.url, { ...fresh.options, clock });
      const newId = idFactory(() => clock.now());
      const session = await openSession(store);
      const release = await holdSnapshot(fresh);
      const { driver, calls } = recorded(fresh, clock);
      const { queues } = new SqlStore(driver);
      await store.newJobs.enqueue(Array.from({ length: 10 }, () => newJob(newId())));
      await slowly(() => queues.list(10_000));
      const cursor: ClaimCursor = { levels: new Map(), rescannedAt: -Infinity };
      for (let n = 0; n < batches; n += 1) {
        // One priority has no jobs then, the other has ten behind the ended ones.
        await store.newJobs.enqueue(
          Array.from({ length: batch }, (_, i) => newJob(newId(), { priority: i % 2 })),
        );
        const jobs = await store.claims.claim(session, scope, cursor);
        await store.settles.settle(session, jobs.map(done), [jobs[0]?.token ?? 0]);
        await clock.advance("4s");
        await store.sessions.renew(session);
      }
      // The first of them learns how far the ended jobs go.
      await queues.list(10_000);
      await clock.advance("11s");
      expect((await queues.list(10_000)).map(({ counts }) => counts.ready)).toEqual([10]);
      const { name, params } = calls.filter((call) => call.name === "tallyJobTypes").at(-1)!;
      const complete = await blocksOf(fresh, name, { ...params, begins: [] });
      expect(await blocksOf(fresh, name, params)).toBeLessThan(complete / 5);
      await release();
      await store.close();
    },
  );

  onPostgres(
    "[N18][O16] under a held snapshot, a worker's looks after slow ones read few entries of ended jobs",
    async () => {
      const { clock, slowly } = slowClock();
      const fresh = await target.fresh();
      const real = await openDriver(fresh.url, { ...fresh.options, clock });
      const calls: Call[] = [];
      const noted =
        (send: (call: never, lane?: Lane) => Promise<Row[]>) =>
        (call: Call, lane?: Lane): Promise<Row[]> => {
          calls.push(call);
          return send(call as never, lane);
        };
      const own: Partial<Driver> = {
        read: noted((call, lane) => real.read(call, lane)),
        write: noted((call, lane) => real.write(call, lane)),
      };
      const driver = new Proxy(real, {
        get: (of, key) => {
          const value: unknown = Reflect.get(own, key) ?? Reflect.get(of, key, of);
          return typeof value === "function" ? (value.bind(of) as unknown) : value;
        },
      });
      const store = new SqlStore(driver);
      const newId = idFactory(() => clock.now());
      const session = await openSession(store);
      const release = await holdSnapshot(fresh);
      const cursor: ClaimCursor = { levels: new Map(), rescannedAt: -Infinity };
      const looks = async (): Promise<void> => {
        expect(await store.claims.claim(session, scope, cursor)).toEqual([]);
        expect((await store.claims.checkDue(scope, cursor)).dueAt).toBeNull();
      };
      await slowly(looks);
      for (let n = 0; n < batches; n += 1) {
        await store.newJobs.enqueue(Array.from({ length: batch }, () => newJob(newId())));
        const jobs = await store.claims.claim(session, scope, cursor);
        expect(jobs).toHaveLength(batch);
        await store.settles.settle(session, jobs.map(done), [jobs[0]?.token ?? 0]);
        await clock.advance("4s");
        await store.sessions.renew(session);
      }
      calls.length = 0;
      await looks();
      for (const name of ["claim", "checkDue"] as const) {
        const { params } = calls.findLast((call) => call.name === name)!;
        const complete = await blocksOf(fresh, name, { ...params, levels: [] });
        expect(await blocksOf(fresh, name, params), name).toBeLessThan(complete / 5);
      }
      await release();
      await store.close();
    },
  );

  test("[N18] counts of queues after a slow one see jobs that return, commit late or are of a new priority or type; older ones within twenty times as long", async () => {
    const { clock, slowly } = slowClock();
    const fresh = await target.fresh();
    const store = await openStore(fresh.url, { ...fresh.options, clock });
    const newId = idFactory(() => clock.now());
    const session = await openSession(store);
    const counted = async () =>
      (await store.queues.list(10_000)).map(({ name, counts, lagMs }) => [
        name,
        counts.ready,
        counts.running,
        lagMs,
      ]);
    const cursor: ClaimCursor = { levels: new Map(), rescannedAt: -Infinity };
    await store.newJobs.enqueue([newJob(newId()), newJob(newId())]);
    const [first, second] = await store.claims.claim(session, scope, cursor);
    await clock.advance("20s");
    await store.sessions.renew(session);
    expect(await slowly(counted)).toEqual([["q", 0, 2, 0]]);
    await store.newJobs.enqueue([newJob(newId(), { priority: 7 })]);
    await store.newJobs.enqueue([newJob(newId(), slotAt(clock.now() - 9_000))]);
    await store.newJobs.enqueue([newJob(newId(), { queue: "r", ...slotAt(clock.now() - 3_600_000) })]);
    await store.settles.settle(session, [released(first!)], []);
    const seen = [
      ["q", 3, 1, 9_000],
      ["r", 1, 0, 3_600_000],
    ];
    expect(await counted()).toEqual(seen);
    await store.settles.settle(session, [done(second!)], []);
    // Due an hour before all others of its type.
    await store.newJobs.enqueue([newJob(newId(), slotAt(clock.now() - 3_600_000))]);
    if (target.dialect === "postgres") expect((await counted())[0]).toEqual(["q", 3, 0, 9_000]);
    await clock.advance("400s");
    expect(await counted()).toEqual([
      ["q", 4, 0, 4_000_000],
      ["r", 1, 0, 4_000_000],
    ]);
    await store.close();
  });

  test("[N18] under a held snapshot, the last claims of a drain read no more than the first", async () => {
    const clock = new FakeClock();
    const fresh = await target.fresh();
    const store = await openStore(fresh.url, { ...fresh.options, clock });
    const newId = idFactory(() => clock.now());
    const session = await openSession(store);
    for (let n = 0; n < batches; n += 1)
      await store.newJobs.enqueue(Array.from({ length: batch }, () => newJob(newId())));
    const release = await holdSnapshot(fresh);
    const cursor: ClaimCursor = { levels: new Map(), rescannedAt: -Infinity };
    const read: number[] = [];
    let ended = 0;
    for (let n = 0; n < batches; n += 1) {
      if (n > 0 && target.dialect === "postgres")
        read.push(await blocksOfClaim(fresh, { clock, session, cursor }));
      const jobs = await store.claims.claim(session, scope, cursor);
      ended += (await store.settles.settle(session, jobs.map(done), [jobs[0]?.token ?? 0])).size;
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

/** A clock on which everything that is done `slowly` takes twenty seconds. */
function slowClock(): {
  clock: Clock & Pick<FakeClock, "advance">;
  slowly: <T>(work: () => Promise<T>) => Promise<T>;
} {
  const fake = new FakeClock();
  let later = 0;
  let step = 0;
  const clock = {
    system: false,
    now: fake.now,
    after: fake.after,
    monotonic: () => fake.monotonic() + (later += step),
    advance: (by: Duration) => fake.advance(by),
  };
  const slowly = async <T>(work: () => Promise<T>): Promise<T> => {
    step = 20_000;
    const result = await work();
    step = 0;
    return result;
  };
  return { clock, slowly };
}

/** A driver that reads on one connection, and what it was asked. */
function recorded(fresh: FreshStore, clock: Clock): { driver: Driver; calls: Call[] } {
  const calls: Call[] = [];
  const compiler = new Compiler(fresh.options.schema!);
  let last: Promise<unknown> = Promise.resolve();
  const read = (call: Call): Promise<Row[]> => {
    calls.push(call);
    const { text, values } = compiler.prepare(call);
    const rows = last.then(() => fresh.query(text, [...values]));
    last = rows;
    return rows;
  };
  return { driver: { dialect: "postgres", clock, now: () => clock.now(), read } as unknown as Driver, calls };
}

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
  const levels = knownLevels(scope, cursor);
  const params = { now: clock.now(), session, ...levels[0] };
  return blocksOf(fresh, "claimLevel", params);
}

async function blocksOf(fresh: FreshStore, name: StatementName, params: Params): Promise<number> {
  const { text, values } = new Compiler(fresh.options.schema!).prepare({ name, params });
  await fresh.query("begin");
  const [row] = await fresh.query(`explain (analyze, buffers, format json) ${text}`, [...values]);
  await fresh.query("rollback");
  const [{ Plan }] = row!["QUERY PLAN"] as [{ Plan: Record<string, number> }];
  return (Plan["Shared Hit Blocks"] ?? 0) + (Plan["Shared Read Blocks"] ?? 0);
}

function openSession(store: Store): Promise<number> {
  return store.sessions.open({
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

function done({ id, rowKey, token, counted }: ClaimedJob): Transition {
  return {
    move: "end",
    id,
    rowKey,
    token,
    state: "done",
    output: null,
    errors: null,
    attempt: 1,
    crashes: 0,
    keyed: false,
    keep: true,
    ...(counted === undefined ? null : { counted }),
  };
}

function released({ id, token, counted }: ClaimedJob): Transition {
  return {
    move: "again",
    id,
    token,
    delayMs: 0,
    errors: null,
    attempt: 0,
    crashes: 0,
    throttled: false,
    begun: true,
    ...(counted === undefined ? null : { counted }),
  };
}
