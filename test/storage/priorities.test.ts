// Many priorities: a claim walks as many levels as it takes jobs, and the levels behind them cost it nothing. Rows and statements
// are counted; how fast a drain is depends on the machine.
import { expect, test } from "vitest";
import { edgeRows, knownLevels, partOf, scopeParams } from "../../src/jobs/plain-claim.ts";
import { LIMITED } from "../../src/limits/limited-claim.ts";
import type { Params, StatementName } from "../../src/storage/catalogue.ts";
import { openStore } from "../../src/storage/open.ts";
import type { ClaimCursor, ClaimScope } from "../../src/jobs/claim-scope.ts";
import type { Store } from "../../src/storage/store.ts";
import { idFactory } from "../../src/values/id.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { newJob } from "../support/new-job.ts";
import { type FreshStore, onEveryStore } from "../support/stores.ts";
import { explainOnPostgres, rowsRead, rowsReadOnSqlite } from "./explain.ts";

const batch = 100;
const scope: ClaimScope = {
  queues: new Map([["q", batch]]),
  names: ["n"],
  limit: batch,
  order: "highest-first",
};

onEveryStore((target) => {
  async function start(priorities: number) {
    const clock = new FakeClock();
    const fresh = await target.fresh();
    const store = await openStore(fresh.url, { ...fresh.options, clock });
    const session = await openSession(store);
    await fill(fresh, priorities, clock.now());
    const cursor: ClaimCursor = { levels: new Map(), rescannedAt: -Infinity };
    return { clock, fresh, store, session, cursor };
  }

  const onPostgres = test.runIf(target.dialect === "postgres");
  onPostgres(
    "[O16] beside 100,000 distinct priorities a claim reads a few rows for each job that it takes",
    async () => {
      const { clock, fresh, store, session, cursor } = await start(100_000);
      const rows = async (name: StatementName, params: Params): Promise<number> => {
        await fresh.query("begin");
        const nodes = await explainOnPostgres(fresh, name, { now: clock.now(), ...params });
        await fresh.query("rollback");
        return rowsRead(nodes, /^ready/);
      };
      const first = { session, ...scopeParams(scope), levels: [] };
      const read = [await rows("claim", first)];
      const priorities: number[] = [];
      for (let n = 0; n < 5; n += 1) {
        priorities.push(
          ...(await store.claims.claim(session, scope, cursor)).map(({ priority }) => priority),
        );
        const levels = knownLevels(scope, cursor);
        read.push(await rows("claim", { ...first, queues: edgeRows(scope, cursor, levels), levels }));
      }
      expect(priorities).toEqual(Array.from({ length: 5 * batch }, (_, n) => 100_000 - n));
      // The level, its job, and the job once more where it is marked.
      for (const each of read) expect(each).toBeLessThanOrEqual(4 * batch);
      const look = { ...scopeParams(scope), levels: [], channel: null, message: null };
      // Two for each level of a job that runs, until one is due.
      expect(await rows("checkDue", look), "a look at what is due").toBeLessThanOrEqual(2 * 5 * batch + 10);
      await store.close();
    },
  );

  onPostgres(
    "[O16] of a queue with a limit, too, a claim beside 20,000 distinct priorities reads a few rows for each job",
    async () => {
      const { clock, fresh, store, session, cursor } = await start(20_000);
      await store.queues.set("q", { concurrency: batch });
      const params = {
        now: clock.now(),
        session,
        ...scopeParams(scope),
        levels: [],
        most: batch,
        rates: null,
      };
      await fresh.query("begin");
      const nodes = await explainOnPostgres(fresh, "takeLimited", params);
      await fresh.query("rollback");
      expect(rowsRead(nodes, /^ready/)).toBeLessThanOrEqual(4 * batch);
      const jobs = await store.claims.claim(session, scope, cursor);
      expect(jobs.map(({ priority }) => priority)).toEqual(
        Array.from({ length: batch }, (_, n) => 20_000 - n),
      );
      await store.close();
    },
  );

  onPostgres.each([
    ["plain", "highest-first"],
    ["plain", "lowest-first"],
    ["limited", "highest-first"],
    ["limited", "lowest-first"],
  ] as const)(
    "[O16] behind 20,000 priorities of %s jobs that are only delayed those that are due are claimed in order, %s",
    async (of, order) => {
      const { clock, fresh, store, session } = await start(20_000);
      await fill(fresh, 20_000, clock.now(), "m");
      const late = `update ${fresh.table("ready")} set run_at = ${clock.now() + 60_000}`;
      const middle = "rank between -10010 and -10001";
      await fresh.query(`${late} where not (${middle})`);
      const statements =
        of === "plain" ? (["claim", "checkDue"] as const) : (["takeLimited", "checkLimitedDue"] as const);
      if (of === "limited") await store.queues.set("q", { concurrency: 10 * batch });
      for (const names of [["n"], ["n", "m"]]) {
        const ask = { ...scope, names, order, limit: 8, queues: new Map([["q", 8]]) };
        const extra = { channel: null, message: null, most: 8, rates: null };
        const params = { ...scopeParams(ask), levels: [], now: clock.now(), session, ...extra };
        await fresh.query("begin");
        const claim = await explainOnPostgres(fresh, statements[0], params);
        const look = await explainOnPostgres(fresh, statements[1], params);
        await fresh.query("rollback");
        // 1,000 levels are found and looked into; behind them a claim reads due jobs only, a look each entry of the index.
        expect(rowsRead(claim, /^ready/)).toBeLessThanOrEqual(1_100);
        expect(rowsRead(look, /^ready/)).toBeLessThanOrEqual(23_000);
        const unused: ClaimCursor = { levels: new Map(), rescannedAt: -Infinity };
        const claimed = await store.claims.claim(session, ask, unused);
        const first = Array.from({ length: 8 }, (_, n) =>
          order === "highest-first" ? 10_010 - n : 10_001 + n,
        );
        expect(
          claimed.map(({ priority }) => priority),
          names.join(),
        ).toEqual(first);
        expect((await store.claims.checkDue(ask)).dueAt).toBe(clock.now());
      }
      await fresh.query(`${late} where token is null`);
      expect((await store.claims.checkDue(scope)).dueAt).toBe(clock.now() + 60_000);
      await store.close();
    },
  );

  const onSqlite = test.runIf(target.dialect === "sqlite");
  onSqlite.each(["claim", "takeLimited"] as const)(
    "[O16] beside 20,000 distinct priorities %s reads a few rows for each job that it takes",
    async (name) => {
      const { clock, fresh, store, session } = await start(20_000);
      const params = { ...scopeParams(scope), now: clock.now(), session, most: batch, rates: null };
      // A level is looked for, counted and taken from.
      expect(rowsReadOnSqlite(fresh, name, params)).toBeLessThanOrEqual(4 * batch + 10);
      await store.close();
    },
  );

  onSqlite.each([
    ["plain", "highest-first"],
    ["plain", "lowest-first"],
    ["limited", "highest-first"],
    ["limited", "lowest-first"],
  ] as const)(
    "[O16] behind 20,000 priorities of %s jobs that are only delayed those that are due are claimed in order, %s, and no more levels are looked for",
    async (of, order) => {
      const { clock, fresh, store, session } = await start(20_000);
      await fill(fresh, 20_000, clock.now(), "m");
      const late = `update ${fresh.table("ready")} set run_at = ${clock.now() + 60_000}`;
      await fresh.query(`${late} where not (rank between -10010 and -10001)`);
      const statements =
        of === "plain" ? (["claim", "checkDue"] as const) : (["takeLimited", "checkLimitedDue"] as const);
      if (of === "limited") await store.queues.set("q", { concurrency: 10 * batch });
      for (const names of [["n"], ["n", "m"]]) {
        const ask = { ...scope, names, order, limit: 8, queues: new Map([["q", 8]]) };
        const params = { ...scopeParams(ask), now: clock.now(), session, most: 8, rates: null };
        // 1,000 levels are found and looked into; behind them each entry of the index is met once.
        const [claim, look] = statements.map((name) => rowsReadOnSqlite(fresh, name, params));
        expect(claim).toBeLessThanOrEqual(2_200 + names.length * 20_000);
        expect(look).toBeLessThanOrEqual(2 * 2_200 + names.length * 20_000);
        const unused: ClaimCursor = { levels: new Map(), rescannedAt: -Infinity };
        const claimed = await store.claims.claim(session, ask, unused);
        const first = Array.from({ length: 8 }, (_, n) =>
          order === "highest-first" ? 10_010 - n : 10_001 + n,
        );
        expect(
          claimed.map(({ priority }) => priority),
          names.join(),
        ).toEqual(first);
        expect((await store.claims.checkDue(ask)).dueAt).toBe(clock.now());
      }
      await fresh.query(`${late} where token is null`);
      expect((await store.claims.checkDue(scope)).dueAt).toBe(clock.now() + 60_000);
      await store.close();
    },
  );

  test.each(["highest-first", "lowest-first"] as const)(
    "[O16] of a queue with a limit, jobs of several names come in order over their priorities, %s",
    async (order) => {
      const { clock, fresh, store, session, cursor } = await start(100);
      await fill(fresh, 200, clock.now(), "m");
      await store.queues.set("q", { concurrency: 1_000 });
      // A level without a job that is due has nothing to give, whether it comes first or last.
      const delayed = [1_000, 100, -1_000].map((priority) => ({ priority, delayMs: 60_000 }));
      const newId = idFactory(() => clock.now());
      await store.newJobs.enqueue(delayed.map((options) => newJob(newId(), options)));
      const ask = { ...scope, queues: new Map([["q", 30]]), limit: 30, names: ["n", "m"], order };
      const priorities: number[] = [];
      for (let n = 0; n < 10; n += 1)
        for (const job of await store.claims.claim(session, ask, cursor)) priorities.push(job.priority);
      const highest = Array.from({ length: 300 }, (_, n) =>
        n < 100 ? 200 - n : 100 - Math.floor((n - 100) / 2),
      );
      expect(priorities).toEqual(order === "highest-first" ? highest : highest.toReversed());
      expect(await store.claims.claim(session, ask, cursor)).toEqual([]);
      await store.close();
    },
  );

  test("[O16] a drain of distinct priorities sends one statement for each claim, whatever their order", async () => {
    for (const order of ["highest-first", "lowest-first"] as const) {
      const { store, session, cursor } = await start(1_000);
      const before = store.counters.statements;
      const priorities: number[] = [];
      for (let n = 0; n < 10; n += 1)
        for (const job of await store.claims.claim(session, { ...scope, order }, cursor))
          priorities.push(job.priority);
      const claims = Object.fromEntries(
        [...store.counters.byName].filter(([name]) => /^(claim|claimLevel|sweep)$/.test(name)),
      );
      expect(claims).toEqual({ claim: 10 });
      expect(store.counters.statements - before).toBeLessThanOrEqual(12);
      const inOrder = Array.from({ length: 1_000 }, (_, n) =>
        order === "highest-first" ? 1_000 - n : n + 1,
      );
      expect(priorities).toEqual(inOrder);
      await store.close();
    }
  });

  test.each(["highest-first", "lowest-first"] as const)(
    "[O16] the highest and the lowest priority that raw SQL can write are claimed, %s",
    async (order) => {
      const { fresh, store, session, cursor } = await start(4);
      await fresh.query(`update ${fresh.table("ready")} set rank = -2147483647 where rank = -4`);
      await fresh.query(`update ${fresh.table("ready")} set rank = 2147483647 where rank = -1`);
      const jobs = await store.claims.claim(session, { ...scope, order }, cursor);
      const priorities = [2_147_483_647, 3, 2, -2_147_483_647];
      expect(jobs.map(({ priority }) => priority)).toEqual(
        order === "highest-first" ? priorities : priorities.reverse(),
      );
      await store.close();
    },
  );

  test.each(["without limits", "of a queue with a limit"])(
    "[O16] a job %s that comes late with a higher priority is claimed next, also where no claim has met its level",
    async (of) => {
      const { clock, store, session, cursor } = await start(1_000);
      if (of !== "without limits") await store.queues.set("q", { concurrency: 10 * batch });
      const newId = idFactory(() => clock.now());
      for (let n = 0; n < 3; n += 1) await store.claims.claim(session, scope, cursor);
      const urgent = newJob(newId(), { priority: 5_000 });
      const known = newJob(newId(), { priority: 701 });
      await store.newJobs.enqueue([urgent, known]);
      // As a wake-up of this priority asks.
      for (const part of [cursor, partOf(cursor, LIMITED)]) part.unseen = true;
      const next = await store.claims.claim(session, scope, cursor);
      expect(next.slice(0, 3).map(({ priority }) => priority)).toEqual([5_000, 701, 700]);
      await store.close();
    },
  );

  test("[O16] of a queue with a limit, a job that is due before those that were claimed is claimed within a second", async () => {
    const { clock, store, session, cursor } = await start(10);
    await store.queues.set("q", { concurrency: 10 * batch });
    const newId = idFactory(() => clock.now());
    const many = () =>
      store.newJobs.enqueue(Array.from({ length: 3 * batch }, () => newJob(newId(), { priority: 10 })));
    await many();
    await clock.advance("5s");
    for (let n = 0; n < 2; n += 1) await store.claims.claim(session, scope, cursor);
    const late = newJob(newId(), {
      priority: 10,
      runAt: clock.now() - 6_000,
      context: "schedule s",
      extras: { schedule: { name: "s", at: 0 } },
    });
    await store.newJobs.enqueue([late]);
    await clock.advance("1s");
    const [first] = await store.claims.claim(session, scope, cursor);
    expect(first?.id).toBe(late.id);
    await store.close();
  });

  test.each([
    ["due", "highest-first"],
    ["due", "lowest-first"],
    ["delayed", "highest-first"],
    ["delayed", "lowest-first"],
  ] as const)(
    "[O16] of a lane, beside 3,000 distinct priorities of jobs that are %s, a claim reads few rows and keeps the order, %s",
    async (others, order) => {
      const { clock, fresh, store, session, cursor } = await start(1);
      const newId = idFactory(() => clock.now());
      const dueAt = clock.now() + 60_000;
      const own = (priority: number) => Math.abs(priority) <= 20;
      const jobs = Array.from({ length: 3_001 }, (_, n) => n - 1_500).map((priority) =>
        newJob(newId(), {
          priority,
          lane: "a",
          ...(others === "delayed" && !own(priority) ? { delayMs: 60_000 } : null),
        }),
      );
      await store.newJobs.enqueue(jobs);
      const ask = { ...scope, queues: new Map([["q", 10]]), limit: 10, order };
      const due = jobs
        .map(({ priority }) => priority)
        .filter((priority) => others === "due" || own(priority))
        .sort((a, b) => (order === "highest-first" ? b - a : a - b));
      const claimed: number[] = [];
      // The first job is of no lane; by turns, it comes with the second claim at the latest.
      for (let n = 0; n < 3; n += 1) {
        const taken = await store.claims.claim(session, ask, cursor);
        claimed.push(...taken.filter(({ lane }) => lane === "a").map(({ priority }) => priority));
      }
      expect(claimed.length).toBeGreaterThanOrEqual(29);
      expect(claimed).toEqual(due.slice(0, claimed.length));
      const [rotation] = await fresh.query(`select lane, job_type from ${fresh.table("lane_rotation")}`);
      const rotations = [
        { lane: rotation!["lane"] as number, jobType: rotation!["job_type"] as number, limit: 10, by: 0 },
      ];
      const direction = order === "highest-first" ? 1 : -1;
      const params = { now: clock.now(), session, rotations, names: ["n"], direction };
      const read = await rowsOf(fresh, "takeLaned", { ...params, counted: [], most: 10, rates: null });
      // SQLite meets each entry of the index that is not due.
      const entries = fresh.dialect === "sqlite" && others === "delayed" ? 3_000 : 0;
      expect(read).toBeLessThanOrEqual(400 + entries);
      while ((await store.claims.claim(session, ask, cursor)).length > 0);
      const heads = await fresh.query(
        `select wake_at from ${fresh.table("lane_rotation")} where wake_at is not null`,
      );
      expect(heads).toEqual(others === "delayed" ? [{ wake_at: dueAt }] : []);
      await clock.advance("61s");
      await store.sessions.renew(session);
      expect(await store.claims.claim(await openSession(store), ask, cursor)).toHaveLength(
        others === "delayed" ? 10 : 0,
      );
      await store.close();
    },
  );

  test("[O16] jobs of several names come in order over 1,000 priorities, those of a later due time behind", async () => {
    const { clock, fresh, store, session, cursor } = await start(500);
    await fill(fresh, 500, clock.now(), "m");
    const both = { ...scope, names: ["n", "m"] };
    const priorities: number[] = [];
    const due = newJob(idFactory(() => clock.now())(), { priority: 400, delayMs: 60_000 });
    await store.newJobs.enqueue([due]);
    for (let n = 0; n < 10; n += 1)
      for (const job of await store.claims.claim(session, both, cursor)) priorities.push(job.priority);
    expect(priorities).toEqual(Array.from({ length: 1_000 }, (_, n) => 500 - Math.floor(n / 2)));
    expect(await store.claims.claim(session, both, cursor)).toEqual([]);
    await store.close();
  });
});

/** How many rows of `ready` it reads; nothing is changed. */
async function rowsOf(fresh: FreshStore, name: StatementName, params: Params): Promise<number> {
  if (fresh.dialect === "sqlite") return rowsReadOnSqlite(fresh, name, params);
  await fresh.query("begin");
  const nodes = await explainOnPostgres(fresh, name, params);
  await fresh.query("rollback");
  return rowsRead(nodes, /^ready/);
}

/** Jobs of the priorities from 1 on. */
async function fill(fresh: FreshStore, count: number, now: number, name = "n"): Promise<void> {
  const [jobType, job, ready] = ["job_type", "job", "ready"].map((table) => fresh.table(table));
  const kind = name === "n" ? 1 : 2;
  const [series, id] =
    fresh.dialect === "postgres"
      ? [
          `generate_series(1, ${count}) as g (n)`,
          `('019b76da-${kind}000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid`,
        ]
      : [
          `(with recursive g (n) as (select 1 union all select n + 1 from g where n < ${count}) select n from g) as g`,
          `'019b76da-${kind}000-7000-8000-' || printf('%012x', n)`,
        ];
  await fresh.query("begin");
  await fresh.query(`insert into ${jobType} (queue, name) values ('q', '${name}')`);
  const own = `(select l.id from ${jobType} l where l.name = '${name}')`;
  await fresh.query(
    `insert into ${job} (id, job_type, created_at, input) select ${id}, ${own}, ${now}, '1' from ${series}`,
  );
  await fresh.query(
    `insert into ${ready} (${fresh.jobKey}, job_type, rank, run_at) select ${fresh.jobKeyOf(id)}, ${own}, -n, ${now} from ${series}`,
  );
  await fresh.query("commit");
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
