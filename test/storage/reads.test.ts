// What pages and samplers read, beside a backlog in which there is something of everything (backlog.ts): each look takes a
// bounded piece of an index. Beside plans.test.ts, which has the statements of the hot path.
import { beforeAll, describe, expect, test } from "vitest";
import type { Params, StatementName } from "../../src/storage/catalogue.ts";
import { openStore } from "../../src/storage/open.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { type FreshStore, onEveryStore } from "../support/stores.ts";
import { backlog, fillBacklog, fillBeside, fillTrouble, trouble } from "./backlog.ts";
import { explainOnPostgres, nothingAsked, planOnSqlite, rowsRead, wholeTables } from "./explain.ts";

const jobTables = /^(ready|job(?!_type)|history)/;
const idsOf = (kind: number, count: number): string[] =>
  Array.from(
    { length: count },
    (_, n) => `019b76da-${kind}000-7000-8000-${n.toString(16).padStart(12, "0")}`,
  );

/** A statement, what it is asked, and how many rows of jobs it may read. */
type Look = readonly [name: StatementName, params: Params, most: number];

function looks(now: number): readonly Look[] {
  const { scan } = nothingAsked;
  const plain = { ...nothingAsked, now, states: null };
  const deep = { ...plain, deep: true, key: "nobody" };
  const searched = { ...plain, error: "refused" };
  const sources = ["Live", "Failed", "Ended", "NotDone"] as const;
  return [
    ...sources.flatMap((source): Look[] => [
      [`browse${source}`, plain, scan],
      [`tally${source}`, plain, scan],
      // The job's own row besides.
      [`browse${source}`, deep, 2 * scan],
      // The row that has the errors, once more.
      [`tally${source}`, searched, 2 * scan],
    ]),
    ["browseHeld", plain, trouble.running],
    ["tallyHeld", plain, trouble.running],
    ["tallyRunning", { now }, trouble.running],
    ["groupDead", plain, scan],
    ["groupFailed", plain, scan],
    // A few probes for each of a thousand levels, and a budget that the full ones share.
    [
      "tallyJobTypes",
      { now, cap: 10_001, budget: 10_000, queues: null, names: null, begins: [] },
      7 * 1_003 + 10_000,
    ],
    // Of one queue: its three levels alone, the full ones to the end of their share.
    [
      "tallyJobTypes",
      { now, cap: 10_001, budget: 2_000, queues: ["default"], names: null, begins: [] },
      2_000 + 700,
    ],
    [
      "jobsInOrder",
      { now, queues: ["default"], names: null, fromAt: -1, fromRowKey: nothingAsked.from, limit: 50 },
      200,
    ],
    ["summaries", { now, ids: [...idsOf(6, 25), ...idsOf(7, 25)] }, 100],
    // Each in both tables and its own row, twice where what it was given is looked at.
    ["browseNamed", { ...deep, ids: [...idsOf(6, 25), ...idsOf(7, 25)] }, 4 * 50],
    ["inspect", { now, id: idsOf(6, 1)[0]! }, 2],
    ["inspect", { now, id: idsOf(7, 1)[0]! }, 2],
    // The largest lane to the cap of 10,000, and the others, which have twenty each.
    ["laneRows", { now, queue: "tenants", key: null, after: 0, limit: 50 }, 10_000 + 50 * 20],
    ["throttledLanes", { now, limit: 20 }, 10_100 + 500 * 20],
    ["topLanes", { now, queue: "tenants", scan: 1_000, limit: 10 }, 1_100 + 10_000 + 10 * 20],
  ];
}

function series(now: number): readonly (readonly [StatementName, Params, RegExp, number])[] {
  const range = { since: now - 3_600_000, until: now };
  const hour = 61 * trouble.kinds;
  return [
    ["metrics", { ...range, queues: null, names: null }, /^metric$/, hour],
    ["metrics", { ...range, queues: ["queue-1"], names: null }, /^metric$/, hour],
    ["metricsTogether", range, /^metric$/, hour],
    ["queueMinutes", range, /^metric$/, hour],
    ["metricSums", { ...range, names: ["kind-1"] }, /^metric_sum/, 61],
    ["summedHours", range, /^metric_sum/, 61],
    ["gauges", { ...range, sources: null }, /^gauge/, 61 * 20],
    ["namedGauges", { ...range, names: ["ready"], sources: null }, /^gauge/, 61 * 20],
    ["waitersFor", { topic: "nobody", limit: 101 }, /^step/, 101],
  ];
}

onEveryStore((target) => {
  const clock = new FakeClock();
  let fresh: FreshStore;

  beforeAll(async () => {
    fresh = await target.fresh();
    const store = await openStore(fresh.url, { ...fresh.options, clock });
    const session = await store.sessions.open({
      kind: "worker",
      workerId: "w",
      name: "w",
      host: "h",
      pid: 1,
      queues: {},
      names: [],
      leaseMs: 60_000,
      version: "0",
    });
    await store.close();
    // "Never analyzed" must not depend on whether autovacuum comes by.
    if (target.dialect === "postgres")
      for (const table of ["ready", "history_rest", "job_rest"])
        await fresh.query(`alter table ${fresh.table(table)} set (autovacuum_enabled = off)`);
    await fillBacklog(fresh, clock.now());
    await fillBeside(fresh, clock.now());
    await fillTrouble(fresh, clock.now(), session);
  });

  if (target.dialect === "sqlite") {
    const ofJobs = /^(SCAN|SEARCH) (r|h|j|c|e|p|k|g|holdfast_(ready|job|history))\b(?! VIRTUAL)/;

    test("[K2] each look at jobs goes by an index or a key, none from end to end", () => {
      for (const [name] of looks(0)) {
        const steps = planOnSqlite(fresh, name).filter((step) => ofJobs.test(step));
        expect([name, steps.length > 0]).toEqual([name, true]);
        // Claims are few, and read whole: what runs is found by them. `c` is also what a tally has counted. Whether anything waits
        // until a time is asked of the index that has nothing else, which is left at its first entry.
        const bounded =
          /^SCAN (c( USING INDEX holdfast_claim_session)?|r USING COVERING INDEX holdfast_ready_until)$/;
        const whole = steps.filter((step) => step.startsWith("SCAN") && !bounded.test(step));
        expect([name, whole]).toEqual([name, []]);
      }
    });

    test("[K2] walks go from their cursor in the order of the numbers: what the bound leaves out is not read", () => {
      const walks = ["Live", "Failed", "Ended", "NotDone"].flatMap((source) => [
        `browse${source}` as StatementName,
        `tally${source}` as StatementName,
      ]);
      for (const name of walks) {
        const steps = planOnSqlite(fresh, name);
        const at = steps.findIndex((step) => /^SEARCH [rh] USING .*(rowid|seq)[<>]/.test(step));
        expect([name, at]).toEqual([name, expect.any(Number)]);
        expect(at, name).toBeGreaterThanOrEqual(0);
        // A sort beside the walk would have to take everything first.
        expect([name, steps.slice(0, at + 2).filter((step) => step.includes("TEMP B-TREE"))]).toEqual([
          name,
          [],
        ]);
      }
    });

    test("[K2] series are read by their minutes", () => {
      for (const [name] of series(0)) {
        const steps = planOnSqlite(fresh, name).filter((step) => /^(SCAN|SEARCH)/.test(step));
        const whole = steps.filter((step) => step.startsWith("SCAN") && !step.includes("VIRTUAL TABLE"));
        expect([name, whole]).toEqual([name, []]);
        expect([name, steps.some((step) => /\((minute|name|job|topic)[=>]/.test(step))]).toEqual([
          name,
          true,
        ]);
      }
    });
  } else {
    describe.each(["never analyzed", "analyzed"])("tables %s", (statistics) => {
      beforeAll(async () => {
        if (statistics === "never analyzed") return;
        const tables = [
          "job_type",
          "job",
          "ready",
          "history",
          "session",
          "claim",
          "lane",
          "step",
          "gauge",
          "metric",
        ];
        for (const table of tables) await fresh.query(`analyze ${fresh.table(table)}`);
      });

      test("[K2] each look at jobs reads a bounded piece of an index, never a whole table", async () => {
        for (const [name, params, most] of looks(clock.now())) {
          const nodes = await explainOnPostgres(fresh, name, params);
          expect([name, wholeTables(nodes, jobTables)]).toEqual([name, []]);
          const read = rowsRead(nodes, jobTables);
          expect(read, name).toBeLessThanOrEqual(most + 20);
          // There is something to be read: a look that finds nothing proves nothing.
          expect(read, name).toBeGreaterThan(0);
        }
      });

      test("[K2] no count of a thousand queues is expected to cost so much that the server would compile its plan", async () => {
        // Of claims that were never analyzed it expects more than there are, whatever is asked.
        if (statistics === "never analyzed") await fresh.query(`analyze ${fresh.table("claim")}`);
        const [, params] = looks(clock.now()).find(([name]) => name === "tallyJobTypes")!;
        const [plan] = await explainOnPostgres(fresh, "tallyJobTypes", params);
        expect(plan!["Total Cost"]).toBeLessThan(100_000); // jit_above_cost, as servers come
      });

      test("[K2] series are read by their minutes", async () => {
        for (const [name, params, table, most] of series(clock.now())) {
          const nodes = await explainOnPostgres(fresh, name, params);
          expect(rowsRead(nodes, table), name).toBeLessThanOrEqual(most);
        }
      });
    });
  }

  test("[K2] the fullest lane of two thousand is found, and counted to the cap", async () => {
    const store = await openStore(fresh.url, { ...fresh.options, clock });
    const lanes = await store.lanes.top("tenants", 3);
    expect(lanes.map(({ key, waiting }) => [key, waiting])).toEqual([
      ["tenant-0", 10_000],
      [expect.stringMatching(/^tenant-/), trouble.laned / trouble.lanes],
      [expect.stringMatching(/^tenant-/), trouble.laned / trouble.lanes],
    ]);
    expect(await store.lanes.top("default", 3)).toEqual([]);
    await store.close();
  });

  test("[K2] of a thousand queues the full ones are counted on, to the cap", async () => {
    const store = await openStore(fresh.url, { ...fresh.options, clock });
    const { jobTypes } = await store.insight.jobTypes();
    const of = (queue: string, name: string) =>
      jobTypes.find((jobType) => jobType.queue === queue && jobType.name === name);
    // Five levels are full, and share 40,000.
    expect(of("default", "unserved")?.ready).toEqual({ count: 8_000, more: true });
    expect(of("default", "served")).toMatchObject({
      ready: { count: backlog.claimable, more: false },
      scheduled: { count: 8_000, more: true },
    });
    expect(of("broken", "failing")?.running).toBe(trouble.running);
    await store.close();
  });

  test("[K2] one queue of a thousand has the bounds to itself, and what runs is found without counting the rest", async () => {
    const store = await openStore(fresh.url, { ...fresh.options, clock });
    const { insight } = store;
    const { now, jobTypes } = await insight.jobTypes({ queues: ["default"] });
    expect(now).toBe(clock.now());
    expect(new Set(jobTypes.map(({ queue }) => queue))).toEqual(new Set(["default"]));
    expect(jobTypes.find(({ name }) => name === "unserved")?.ready).toEqual({ count: 10_000, more: true });
    const served = await insight.jobTypes({ queues: ["default"], names: ["served"] });
    expect(served.jobTypes).toMatchObject([
      { queue: "default", name: "served", ready: { count: backlog.claimable, more: false } },
    ]);
    const all = (await insight.jobTypes()).jobTypes;
    const busy = await insight.running();
    expect(busy.now).toBe(clock.now());
    expect(busy.jobTypes).toEqual(
      all
        .filter(({ running }) => running > 0)
        .map(({ queue, name, running, heldBy, longestSince }) => ({
          queue,
          name,
          running,
          heldBy,
          longestSince,
        })),
    );
    expect(busy.jobTypes.length).toBeGreaterThan(0);
    expect(await insight.jobTypeNames()).toEqual(all.map(({ queue, name }) => ({ queue, name })));
    await store.close();
  });
});
