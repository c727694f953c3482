// How the hot statements are executed beside a large backlog (backlog.ts): which index they use, and how many rows
// they read. On Postgres the rows are counted by EXPLAIN ANALYZE; SQLite tells its plan, which has no such choice
// between plans that a count would be needed.
import pg from "pg";
import { idAt } from "../../src/values/id.ts";
import { DatabaseSync } from "node:sqlite";
import { beforeAll, describe, expect, test } from "vitest";
import { openStore } from "../../src/storage/open.ts";
import { parse, type Params, type StatementName } from "../../src/storage/catalogue.ts";
import { Compiler } from "../../src/storage/postgres/driver.ts";
import { unbound } from "../../src/storage/postgres/claim-answer.ts";
import { sqliteTables } from "../../src/storage/sqlite/driver.ts";
import { statements as sqliteStatements } from "../../src/storage/sqlite/statements/jobs.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { type FreshStore, onEveryStore } from "../support/stores.ts";
import { backlog, beside, fillBacklog, fillBeside } from "./backlog.ts";
import { type Node, nothingAsked, planOnSqlite, rowsRead, walk, wholeTables, textsOf } from "./explain.ts";

const hot = [
  "insertAlike",
  "insertNew",
  "insertJobs",
  "claimLevel",
  "claim",
  "checkDue",
  "doneAlike",
  "done",
  "end",
  "again",
  "renew",
  "endDrains",
  "strays",
] as const;
const batch = 50;

const scopeParams = (queues: readonly string[]): Params => ({
  queues: queues.map((queue) => ({ queue, group: queue, limit: batch, edge: -2_147_483_649 })),
  names: ["served"],
  levels: [],
  direction: 1,
  most: batch,
});

/** A job type of EXPLAIN QUERY PLAN. Ids are made unique over the texts of an entry. */
interface Step {
  id: number;
  parent: number;
  detail: string;
}

const newRow = {
  rank: 0,
  delay: null,
  runAt: null,
  input: "1",
  maxAttempts: null,
  timeout: null,
  deadline: null,
  parent: null,
  key: null,
  lane: null,
  laneId: null,
  slotted: false,
  context: null,
  extras: null,
};

function onPostgresPlans(filled: Filled): void {
  describe.each(["never analyzed", "analyzed"])("tables %s", (statistics) => {
    let fresh: FreshStore;
    let now = 0;
    let session = 0;
    let compiler: Compiler;
    let jobType = 0;

    beforeAll(async () => {
      ({ fresh, now, session } = filled);
      jobType = Number((await fresh.query(`select min(id) as id from ${fresh.table("job_type")}`))[0]!["id"]);
      if (statistics === "analyzed") {
        for (const table of [
          "job_type",
          "job",
          "ready",
          "history",
          "session",
          "claim",
          "step",
          "dependency",
          "gauge",
          "queue",
          "occurrence",
        ])
          await fresh.query(`analyze ${fresh.table(table)}`);
      }
      compiler = new Compiler(fresh.options.schema!);
    });

    const run = (name: StatementName, params: Params): Promise<Record<string, unknown>[]> => {
      const { text, values } = compiler.prepare({ name, params });
      return fresh.query(text, [...values]);
    };
    const explain = async (name: StatementName, params: Params): Promise<Node[]> => {
      const { text, values } = compiler.prepare({ name, params });
      const [row] = await fresh.query(`explain (analyze, buffers, format json) ${text}`, [...values]);
      const [{ Plan }] = row!["QUERY PLAN"] as [{ Plan: Node }];
      return walk(Plan);
    };
    /** In a transaction that leaves no trace, so that every test sees the same backlog. */
    const rolledBack = async <T>(body: () => Promise<T>): Promise<T> => {
      await fresh.query("begin");
      try {
        return await body();
      } finally {
        await fresh.query("rollback");
      }
    };
    const claimed = (): Promise<Record<string, unknown>[]> =>
      run("claim", { now, session, ...scopeParams(["default"]) }).then((answer) => unbound(answer).rows);
    const moves = (rows: readonly Record<string, unknown>[]) =>
      rows.map((row) => ({
        id: String(row["id"]),
        rowKey: String(row["id"]),
        token: Number(row["token"]),
        attempt: 1,
        crashes: 0,
        errors: null,
        failureGroup: null,
      }));

    test("the claim, the settle and the insert are planned once, not anew for each batch", async () => {
      const client = new pg.Client(fresh.url);
      await client.connect();
      const levels = [
        { jobType, rank: 0, queue: "default", group: "", limit: 10, runAt: 0, rowKey: idAt(0) },
      ];
      const calls: [StatementName, Params][] = [
        ["claimLevel", { now, session, ...levels[0] }],
        [
          "claim",
          { now, session, ...scopeParams(["default"]), levels: [...levels, { ...levels[0], rank: 1 }] },
        ],
        [
          "doneAlike",
          { now, session, token: 1, rowKeys: Array.from({ length: 100 }, (_, n) => idAt(n)), spent: [] },
        ],
        [
          "insertAlike",
          {
            now,
            channel: null,
            message: null,
            jobType,
            rank: 0,
            maxAttempts: null,
            timeout: null,
            rows: [{ id: idAt(now), input: "1" }],
          },
        ],
      ];
      for (const [name, params] of calls) {
        for (let times = 0; times < 8; times += 1) {
          const { text, values } = compiler.prepare({ name, params });
          await client.query("begin");
          await client.query({ name, text, values: [...values] });
          await client.query("rollback");
        }
      }
      const { rows } = await client.query(
        "select name from pg_prepared_statements where generic_plans < 3 order by name",
      );
      await client.end();
      expect(rows, "statements that are planned for each set of values").toEqual([]);
    });

    /** No statement may read a hot table from end to end; an empty partition costs nothing. */
    const noWholeTable = (nodes: readonly Node[]): void => {
      const whole = nodes.filter(
        (node) => node["Node Type"] === "Seq Scan" && rowsRead([node], /^(ready|job(?!_type)|history)/) > 0,
      );
      expect(whole.map((node) => node["Relation Name"])).toEqual([]);
      const sorts = nodes.filter((node) => node["Node Type"].endsWith("Sort"));
      const sorted = (sort: Node): number =>
        (sort.Plans ?? []).reduce((sum, input) => sum + input["Actual Rows"] * input["Actual Loops"], 0);
      for (const sort of sorts) expect(sorted(sort), "rows sorted").toBeLessThanOrEqual(4 * batch);
    };

    test("[B8] a look back finds its batch by the index, beside 100,000 unserved, 20,000 scheduled jobs and 1,000 queues", () =>
      rolledBack(async () => {
        const nodes = await explain("claim", { now, session, ...scopeParams(["default"]) });
        noWholeTable(nodes);
        // Twice the batch (shares are counted, then taken), and a probe or two for each level.
        expect(rowsRead(nodes, /^ready/)).toBeLessThanOrEqual(3 * batch + 20);
        expect(rowsRead(nodes, /^job(?!_type)/)).toBeLessThanOrEqual(batch);
        const ordered = nodes.filter((node) => node["Index Name"] === "ready_order");
        expect(ordered.length).toBeGreaterThanOrEqual(3);
      }));

    test("[B8] a claim by cursor reads its batch and nothing else", () =>
      rolledBack(async () => {
        const [first] = await claimed();
        const level = {
          jobType: Number(first!["job_type"]),
          rank: 0,
          queue: "default",
          group: "default",
          limit: batch,
          runAt: now - 1_000,
          rowKey: `019b76da-3000-7000-8000-${(batch - 1).toString(16).padStart(12, "0")}`,
        };
        const asked: [StatementName, Params][] = [
          ["claimLevel", { now, session, ...level }],
          ["claim", { now, session, ...scopeParams(["default"]), levels: [level] }],
        ];
        for (const [name, params] of asked) {
          const nodes = await explain(name, params);
          noWholeTable(nodes);
          expect(rowsRead(nodes, /^ready/)).toBeLessThanOrEqual(3 * batch);
          expect(rowsRead(nodes, /^job(?!_type)/)).toBeLessThanOrEqual(batch);
          await fresh.query("rollback");
          await fresh.query("begin");
        }
      }));

    test("[B8] a look back over 100 of 1,000 queues probes those queues alone", () =>
      rolledBack(async () => {
        const queues = Array.from({ length: 100 }, (_, n) => `queue-${n}`);
        const nodes = await explain("claim", { now, session, ...scopeParams(queues) });
        noWholeTable(nodes.filter((node) => !node["Node Type"].endsWith("Sort")));
        expect(rowsRead(nodes, /^ready/)).toBeLessThanOrEqual(5 * 100);
      }));

    test("[B8] a look back that finds nothing reads next to nothing", () =>
      rolledBack(async () => {
        const nodes = await explain("claim", { now: now - 3_000_000, session, ...scopeParams(["default"]) });
        noWholeTable(nodes);
        expect(rowsRead(nodes, /^ready/)).toBeLessThanOrEqual(10);
      }));

    test("[B8] a look at what is due reads one row for each level", () =>
      rolledBack(async () => {
        const nodes = await explain("checkDue", {
          now,
          ...scopeParams(["default"]),
          channel: null,
          message: null,
        });
        noWholeTable(nodes);
        expect(rowsRead(nodes, /^ready/)).toBeLessThanOrEqual(10);
      }));

    test("[B8] a settle finds its jobs by their ids", () =>
      rolledBack(async () => {
        const rows = await claimed();
        expect(rows).toHaveLength(batch);
        const spent = [Number(rows[0]!["token"])];
        const end = moves(rows.slice(0, 25)).map((row) => ({
          ...row,
          state: "done",
          output: "1",
          keep: true,
        }));
        const ended = await explain("end", { now, session, rows: end, keyed: [], dropped: [], spent: [] });
        noWholeTable(ended);
        expect(rowsRead(ended, /^ready/)).toBeLessThanOrEqual(25);
        expect(rowsRead(ended, /^(job(?!_type)|history)/)).toBe(0);
        const done = await explain("done", { now, session, rows: end, spent: [] });
        noWholeTable(done);
        expect(rowsRead(done, /^ready/)).toBeLessThanOrEqual(25);
        const back = moves(rows.slice(25)).map((row) => ({
          ...row,
          delay: 0,
          throttled: 0,
          begun: true,
          note: null,
          cancellable: false,
          keeps: false,
        }));
        const again = await explain("again", { now, session, rows: back, spent });
        noWholeTable(again);
        expect(rowsRead(again, /^ready/)).toBeLessThanOrEqual(25);
      }));

    test("[K2] the dashboard's looks read a bounded piece of an index, never a whole table", () =>
      rolledBack(async () => {
        const look = {
          now,
          states: ["ready", "done"],
          queues: ["default"],
          names: null,
          group: null,
          retrying: false,
          workflow: null,
          trace: null,
          deep: false,
          lane: null,
          key: null,
          since: null,
          until: null,
          search: null,
          attemptMin: 2,
          attemptMax: null,
          endedMin: null,
          endedMax: null,
          ranMin: 1,
          ranMax: null,
          worker: "web-1",
          error: "refused",
          paths: ['["user","id"]'],
          wants: ["42"],
          cursor: null,
          before: "ffffffff-ffff-ffff-ffff-ffffffffffff",
          from: "00000000-0000-0000-0000-000000000000",
          scan: 1_000,
          limit: 50,
        };
        const whole = (nodes: readonly Node[]): unknown[] =>
          nodes
            .filter(
              (node) =>
                node["Node Type"] === "Seq Scan" && rowsRead([node], /^(ready|job(?!_type)|history)/) > 0,
            )
            .map((node) => node["Relation Name"]);
        for (const name of ["browseLive", "tallyLive", "browseEnded", "tallyEnded"] as const) {
          const nodes = await explain(name, look);
          expect(whole(nodes), name).toEqual([]);
          expect(rowsRead(nodes, /^(ready|history)/), name).toBeLessThanOrEqual(1_001);
          expect(rowsRead(nodes, /^job(?!_type)/), name).toBe(0);
        }
        for (const name of [
          "browseNotDone",
          "tallyNotDone",
          "browseFailed",
          "browseHeld",
          "groupDead",
          "groupFailed",
        ] as const) {
          const nodes = await explain(name, look);
          expect(whole(nodes), name).toEqual([]);
          expect(rowsRead(nodes, /^(ready|history|job(?!_type))/), name).toBe(0);
        }
        const dead = await explain("lostWorkers", { now });
        expect(whole(dead)).toEqual([]);
        expect(rowsRead(dead, /^(ready|history|job(?!_type))/)).toBe(0);
        // By the claims of those who are gone: none here.
        const overdue = await explain("overdueClaims", { now, grace: 35_000, most: 10_000 });
        expect(whole(overdue)).toEqual([]);
        expect(rowsRead(overdue, /^(ready|history|job(?!_type))/)).toBe(0);
        const orphans = await explain("orphans", { now, limit: 100 });
        expect(whole(orphans)).toEqual([]);
        expect(rowsRead(orphans, /^(ready|history|job(?!_type))/)).toBe(0);
        // A few probes for each of the 1,003 levels; the large ones are counted to the cap and no further.
        const jobTypes = await explain("tallyJobTypes", {
          now,
          cap: 200,
          budget: 1_000_000,
          queues: null,
          names: null,
          begins: [],
        });
        expect(whole(jobTypes)).toEqual([]);
        expect(rowsRead(jobTypes, /^ready/)).toBeLessThanOrEqual(10_000);
        // When the next scheduled job is due: one entry for each level, also where 20,000 are.
        const [next] = (
          await run("tallyJobTypes", {
            now,
            cap: 200,
            budget: 1_000_000,
            queues: null,
            names: null,
            begins: [],
          })
        )
          .map((row) => row["next"])
          .filter((at) => at !== null);
        expect(Number(next)).toBeGreaterThan(now);
        // What waits until a time is not looked for among the 20,000 that are due later.
        expect(jobTypes.map((node) => node["Index Name"])).toContain("ready_until");
        const due = await explain("jobsInOrder", {
          now,
          queues: ["default"],
          names: null,
          fromAt: -1,
          fromRowKey: look.from,
          limit: 50,
        });
        expect(whole(due)).toEqual([]);
        // Three levels, fifty rows of each at most, and the probes that found them.
        expect(rowsRead(due, /^ready/)).toBeLessThanOrEqual(200);
        // Ids by their ends: so many entries of the index of ids, and no row's own page.
        const ending = await explain("walkIds", {
          end: "0123456789ab",
          before: look.before,
          scan: 1_000,
        });
        expect(whole(ending)).toEqual([]);
        expect(rowsRead(ending, /^job(?!_type)/)).toBeLessThanOrEqual(1_000);
        expect(
          ending
            .filter((node) => node["Relation Name"]?.startsWith("job") === true)
            .map((node) => node["Node Type"]),
        ).toEqual(expect.arrayContaining(["Index Only Scan"]));
        // By their beginnings: as many entries as are asked for, also where every job begins so.
        const begun = await explain("idsFrom", { first: look.from, last: look.before, limit: 21 });
        expect(whole(begun)).toEqual([]);
        expect(rowsRead(begun, /^job(?!_type)/)).toBeLessThanOrEqual(21 * 3);
      }));

    test("[G1] the newest runs of a schedule are read from the end of its slots, and their jobs by their keys", () =>
      rolledBack(async () => {
        const limit = 500;
        const slots = await explain("newestOccurrences", { name: "often", limit });
        expect(rowsRead(slots, /^occurrence/)).toBe(limit);
        expect(slots.filter((node) => node["Node Type"].endsWith("Sort"))).toEqual([]);
        const rows = await run("newestOccurrences", { name: "often", limit });
        const jobs = await explain("occurrenceJobs", { now, ids: rows.map((row) => String(row["job"])) });
        const whole = jobs.filter(
          (node) =>
            node["Node Type"] === "Seq Scan" && rowsRead([node], /^(ready|job(?!_type)|history|step)/) > 0,
        );
        expect(whole.map((node) => node["Relation Name"])).toEqual([]);
        for (const table of [/^history/, /^job(?!_type)/]) expect(rowsRead(jobs, table)).toBe(limit);
        expect(rowsRead(jobs, /^ready/)).toBe(0);
        expect(rowsRead(jobs, /^step/)).toBeLessThanOrEqual(limit); // one probe each
      }));

    test("[K2] the jobs of one run are found by the index of parents, and each by its id", () =>
      rolledBack(async () => {
        const run = "019b76da-0000-7000-8000-000000000000";
        // 100 that wait and 20 that have ended.
        await fresh.query(
          `update ${fresh.table("job")} set parent_id = '${run}' where id in (select id from ${fresh.table("ready")} order by id limit 100)
             or id in (select id from ${fresh.table("history")} order by id limit 20)`,
        );
        const asked = { ...nothingAsked, now, workflow: run, deep: true, error: "refused", trace: "%x%" };
        for (const name of childLooks) {
          const nodes = await explain(name, asked);
          const parents = nodes.filter((node) => /parent_id/.test(node["Index Name"] ?? ""));
          expect([name, parents.length > 0]).toEqual([name, true]);
          const whole = nodes.filter(
            (node) =>
              node["Node Type"] === "Seq Scan" && rowsRead([node], /^(ready|job(?!_type)|history)/) > 0,
          );
          expect([name, whole.map((node) => node["Relation Name"])]).toEqual([name, []]);
          // Each child once by the index, and a few looks at where it is: its own row, ready, history.
          expect(rowsRead(nodes, /^(ready|job(?!_type)|history)/), name).toBeLessThanOrEqual(120 * 6);
        }
      }));

    test("[K2] the jobs of one batch are found by its members, and each by its id", () =>
      rolledBack(async () => {
        const batch = "019b76da-9000-7000-8000-000000000000";
        await fresh.query(
          `insert into ${fresh.table("member")} (batch, id)
           (select '${batch}'::uuid, id from ${fresh.table("ready")} order by id limit 100) union all
           (select '${batch}'::uuid, id from ${fresh.table("history")} order by id limit 20)`,
        );
        const asked = { ...nothingAsked, now, batch, deep: true, ids: null, most: 1_000 };
        for (const name of memberLooks) {
          const nodes = await explain(name, name === "tallyBatches" ? { ids: [batch], most: 1_000 } : asked);
          expect([name, wholeTables(nodes, /^(ready|job(?!_type)|history)/)]).toEqual([name, []]);
          expect(rowsRead(nodes, /^(ready|job(?!_type)|history)/), name).toBeLessThanOrEqual(120 * 6);
        }
      }));

    test("[K2] a page of runs and of load reads what it shows, by keys", () =>
      rolledBack(async () => {
        const noScan = (nodes: readonly Node[], table: RegExp): void =>
          expect(
            nodes
              .filter((node) => node["Node Type"] === "Seq Scan" && rowsRead([node], table) > 0)
              .map((node) => node["Relation Name"]),
          ).toEqual([]);
        const walked = await explain("walkRuns", {
          before: "ffffffff-ffff-ffff-ffff-ffffffffffff",
          scan: 100,
        });
        noScan(walked, /^(step|ready|job(?!_type)|history)/);
        expect(rowsRead(walked, /^step/)).toBeLessThanOrEqual(100 * beside.steps);
        const ids = Array.from(
          { length: 100 },
          (_, n) => `019b76da-5000-7000-8000-${n.toString(16).padStart(12, "0")}`,
        );
        const steps = await explain("runSteps", {
          jobs: ids.map((id) => ({ id, begun: now, ended: true })),
        });
        noScan(steps, /^(step|ready|job(?!_type)|history)/);
        expect(rowsRead(steps, /^step/)).toBeLessThanOrEqual(2 * 100 * beside.steps);
        const minutes = Array.from({ length: 60 }, (_, n) => now - (now % 60_000) - n * 60_000);
        const load = await explain("load", { minutes, step: 60_000 });
        noScan(load, /^gauge/);
        expect(rowsRead(load, /^gauge/)).toBe(60 * beside.sources);
        // By the name first: what else is measured in a minute is not read.
        for (const minute of minutes)
          await fresh.query(
            `insert into ${fresh.table("gauge")} (minute, source, name, value) values (${minute}, 'database', 'sizeBytes', 1)`,
          );
        const gauges = await explain("gaugeSteps", { names: ["sizeBytes"], minutes, step: 60_000 });
        noScan(gauges, /^gauge/);
        expect(rowsRead(gauges, /^gauge/)).toBe(60);
      }));

    test("[K2] a page of a long run, what it is at, what was done to one thing, and the slots around one are read from their indexes", () =>
      rolledBack(async () => {
        await fillLong(fresh, now);
        const page = await explain("stepsBefore", { id: longRun, before: 15_000, limit: 500 });
        expect(rowsRead(page, /^step/)).toBe(500);
        expect(page.filter((node) => node["Node Type"].endsWith("Sort"))).toEqual([]);
        const first = await explain("stepsBefore", { id: longRun, before: 10, limit: 500 });
        expect(rowsRead(first, /^step/)).toBeLessThanOrEqual(500);
        expect(await run("stepsBefore", { id: longRun, before: 10, limit: 500 })).toHaveLength(10);
        const open = await explain("openSteps", { id: longRun, limit: 1_000 });
        expect(rowsRead(open, /^step/)).toBe(2);
        const done = await explain("auditOf", { target: longRun, before: 2 ** 40, limit: 50 });
        expect(rowsRead(done, /^audit/)).toBeLessThanOrEqual(50);
        expect(done.filter((node) => node["Node Type"].endsWith("Sort"))).toEqual([]);
        const slots = await explain("occurrencesAround", { name: "often", at: now - 90 * 60_000 });
        expect(rowsRead(slots, /^occurrence/)).toBe(2);
      }));

    test("[B8] the end of a drain, and ends that nobody was told, are found by probes, beside a backlog and jobs that wait", () =>
      rolledBack(async () => {
        const nodes = await explain("endDrains", { now });
        noWholeTable(nodes);
        // Three levels and one; what waits is looked up by its ids, once for each queue that could be paused.
        expect(rowsRead(nodes, /^(job(?!_type)|history)/)).toBe(0);
        expect(rowsRead(nodes, /^ready/)).toBeLessThanOrEqual(20);
        await fresh.query(
          `update ${fresh.table("ready")} set run_at = ${now} + 3600000 where job_type = (select id from ${fresh.table("job_type")} where queue = 'queue-7')`,
        );
        const ended = await explain("endDrains", { now });
        noWholeTable(ended);
        expect(rowsRead(ended, /^ready/)).toBeLessThanOrEqual(2 * beside.waiting + 20);
        expect(await run("endDrains", { now })).toEqual([]);
        expect(
          await fresh.query(`select name from ${fresh.table("queue")} where paused_at is not null`),
        ).toEqual([{ name: "queue-7" }]);
        const strays = await explain("strays", { now, limit: 100 });
        noWholeTable(strays);
        expect(rowsRead(strays, /^(job(?!_type)|history)/)).toBe(0);
        expect(rowsRead(strays, /^ready/)).toBeLessThanOrEqual(beside.waiting);
      }));

    test("[B8] an insert and a renewal read nothing of the backlog", () =>
      rolledBack(async () => {
        const rows = Array.from({ length: batch }, (_, n) => ({
          ...newRow,
          jobType,
          id: `019b76da-9000-7000-8000-${n.toString(16).padStart(12, "0")}`,
        }));
        noWholeTable(
          await explain("insertNew", {
            now,
            channel: null,
            message: null,
            rows: rows.map((row) => ({ ...row, id: row.id.replace(/^0/, "1") })),
          }),
        );
        const inserted = await explain("insertJobs", { now, rows });
        noWholeTable(inserted);
        expect(rowsRead(inserted, /^(ready|job(?!_type)|history)/)).toBe(0);
        const renewed = await explain("renew", { now, session, ahead: 0 });
        noWholeTable(renewed);
        expect(rowsRead(renewed, /^(ready|job(?!_type)|history)/)).toBe(0);
        expect(rowsRead(renewed, /^session/)).toBe(1);
      }));
  });
}

const childLooks = [
  "browseChildren",
  "tallyChildren",
  "listChildren",
  "idsOfChildren",
  "countChildren",
] as const;

const memberLooks = [
  "browseMembers",
  "tallyMembers",
  "listMembers",
  "idsOfMembers",
  "countMembers",
  "tallyBatches",
] as const;

const longRun = "019b76da-7000-7000-8000-000000000001";

/** A run of 20,000 steps, two of them not over, and a trail of which a twentieth is about it. */
async function fillLong(fresh: FreshStore, now: number): Promise<void> {
  await fresh.query(
    `insert into ${fresh.table("step")} (job, name, seq, given_order, kind, state, attempt, tries, fails, given, undo, started_at)
     select '${longRun}', 's' || n, n, n, 'step', case when n < 2 then 'open' else 'done' end, 1, 1, 0, n, false, ${now} from generate_series(0, 19999) as g (n)`,
  );
  await fresh.query(
    `insert into ${fresh.table("audit")} (at, actor, action, target, outcome)
     select ${now}, 'ann', 'jobs.retry', case when n % 20 = 0 then '${longRun}' else 'other-' || n end, 'retried' from generate_series(0, 9999) as g (n)`,
  );
}

function onSqlitePlans(filled: Filled): void {
  let plans: Map<StatementName, Step[]>;

  beforeAll(() => {
    const handle = new DatabaseSync(filled.fresh.url.slice("sqlite:".length));
    const catalogue = sqliteStatements(sqliteTables("holdfast"));
    plans = new Map(
      hot.map((name) => {
        const entry = catalogue[name];
        const texts = textsOf(entry);
        const steps = texts.flatMap((text, rowKey) => {
          const plan = handle
            .prepare(`explain query plan ${parse(text).pieces.join("?")}`)
            .all() as unknown as Step[];
          return plan.map(({ id, parent, detail }) => ({
            id: id + rowKey * 1e6,
            parent: parent + rowKey * 1e6,
            detail,
          }));
        });
        return [name, steps];
      }),
    );
    handle.close();
  });

  test.each(hot)("[B8] %s never reads a hot table from end to end", (name) => {
    const plan = plans.get(name)!;
    expect(plan.filter(({ detail }) => /^SCAN (r|j|holdfast_(ready|job|history))\b/.test(detail))).toEqual(
      [],
    );
  });

  test("[K2] failures and live jobs are counted on indexes alone, without a look at a row", () => {
    const handle = new DatabaseSync(filled.fresh.url.slice("sqlite:".length));
    const catalogue = sqliteStatements(sqliteTables("holdfast"));
    for (const name of ["tallyJobTypes", "tallyNotDone", "groupDead", "groupFailed"] as const) {
      const plan = handle
        .prepare(`explain query plan ${parse(textsOf(catalogue[name])[0] as string).pieces.join("?")}`)
        .all() as unknown as Step[];
      const looks = plan.map(({ detail }) => detail).filter((detail) => /^S\w+ [rh] USING/.test(detail));
      expect([name, looks.length > 0]).toEqual([name, true]);
      // Errors are looked at for a search alone, row by row.
      expect([name, looks.filter((detail) => !detail.includes("USING COVERING INDEX"))]).toEqual([name, []]);
    }
    handle.close();
  });

  test("[G1] the newest runs of a schedule are read from the end of its slots, and their jobs by their keys", () => {
    const handle = new DatabaseSync(filled.fresh.url.slice("sqlite:".length));
    const catalogue = sqliteStatements(sqliteTables("holdfast"));
    const planOf = (name: StatementName): string[] =>
      handle
        .prepare(`explain query plan ${parse(textsOf(catalogue[name])[0] as string).pieces.join("?")}`)
        .all()
        .map((step) => (step as unknown as Step).detail);
    // Without a sort: what the limit leaves out is not read.
    expect(planOf("newestOccurrences")).toEqual([
      "SEARCH holdfast_occurrence USING PRIMARY KEY (schedule=?)",
    ]);
    const looks = planOf("occurrenceJobs").filter((detail) => /^(SCAN|SEARCH)/.test(detail));
    expect(looks.filter((detail) => /^SCAN (?!o VIRTUAL TABLE)/.test(detail))).toEqual([]);
    expect(looks.filter((detail) => /^SEARCH [rh] /.test(detail))).toEqual([
      "SEARCH r USING INTEGER PRIMARY KEY (rowid=?)",
      "SEARCH h USING INTEGER PRIMARY KEY (rowid=?)",
    ]);
    expect(looks.filter((detail) => /^SEARCH j .*\(id=\?\)/.test(detail))).toHaveLength(2);
    expect(looks.filter((detail) => /^SEARCH p .*\(job=\?\)/.test(detail))).toHaveLength(2);
    handle.close();
  });

  test("[K2] the jobs of one run are found by the index of parents, and each by its number", () => {
    const handle = new DatabaseSync(filled.fresh.url.slice("sqlite:".length));
    const catalogue = sqliteStatements(sqliteTables("holdfast"));
    for (const name of childLooks) {
      const plan = handle
        .prepare(`explain query plan ${parse(textsOf(catalogue[name])[0] as string).pieces.join("?")}`)
        .all() as unknown as Step[];
      const steps = plan.map(({ detail }) => detail);
      expect([name, steps.some((step) => /USING (COVERING )?INDEX holdfast_job_parent/.test(step))]).toEqual([
        name,
        true,
      ]);
      const scans = steps.filter((step) =>
        /^SCAN (r|h|j|c|p|e|holdfast_(ready|job|history))\b(?! VIRTUAL)/.test(step),
      );
      // `c` is what the index gave.
      expect([name, scans.filter((step) => step !== "SCAN c")]).toEqual([name, []]);
    }
    handle.close();
  });

  test("[K2] the jobs of one batch are found by its members, and each by its number", () => {
    for (const name of memberLooks) {
      const steps = planOnSqlite(filled.fresh, name);
      expect([
        name,
        steps.some((step) => /^SEARCH [cpm] USING (PRIMARY KEY|COVERING INDEX|INDEX)/.test(step)),
      ]).toEqual([name, true]);
      const scans = steps.filter((step) =>
        /^SCAN (r|h|j|p|e|m|holdfast_(ready|job|history|member))\b(?! VIRTUAL)/.test(step),
      );
      expect([name, scans]).toEqual([name, []]);
    }
  });

  test("[K2] a page of runs and of load reads what it shows, by keys", () => {
    const handle = new DatabaseSync(filled.fresh.url.slice("sqlite:".length));
    const catalogue = sqliteStatements(sqliteTables("holdfast"));
    for (const [name, looks] of [
      ["walkRuns", 2],
      ["runSteps", 2],
      ["load", 1],
    ] as const) {
      const plan = handle
        .prepare(`explain query plan ${parse(textsOf(catalogue[name])[0] as string).pieces.join("?")}`)
        .all() as unknown as Step[];
      const details = plan.map(({ detail }) => detail);
      const keyed =
        /^SEARCH (s|g|holdfast_step|holdfast_gauge) USING (PRIMARY KEY|COVERING INDEX \w+|INDEX holdfast_step_(seq|open)) \((job|minute)[=<]/;
      expect([name, details.filter((detail) => keyed.test(detail)).length]).toEqual([name, looks]);
      const whole = details.filter(
        (detail) => /^SCAN (\w+)/.test(detail) && !/^SCAN (\w+ VIRTUAL|r$|run$|\(subquery)/.test(detail),
      );
      expect([name, whole]).toEqual([name, []]);
    }
    const steps = handle
      .prepare(`explain query plan ${parse(catalogue.gaugeSteps as string).pieces.join("?")}`)
      .all() as unknown as Step[];
    expect(steps.map(({ detail }) => detail).filter((detail) => /gauge|\bg\b/.test(detail))).toEqual([
      "SEARCH g USING INDEX holdfast_gauge_name (name=? AND minute>? AND minute<?)",
    ]);
    handle.close();
  });

  test("[K2] ids by their ends and beginnings are looked for in the index of ids alone, in its order", () => {
    const handle = new DatabaseSync(filled.fresh.url.slice("sqlite:".length));
    const { walkIds, idsFrom } = sqliteStatements(sqliteTables("holdfast"));
    for (const statement of [walkIds, idsFrom]) {
      const plan = handle
        .prepare(`explain query plan ${parse(statement as string).pieces.join("?")}`)
        .all() as unknown as Step[];
      const details = plan.map(({ detail }) => detail);
      const onJobs = details.filter((detail) => detail.includes("holdfast_job"));
      expect(onJobs).toEqual([
        expect.stringMatching(/^SEARCH holdfast_job USING COVERING INDEX .*\(id<\?\)$/),
      ]);
      expect(details.filter((detail) => detail.includes("TEMP B-TREE FOR ORDER"))).toEqual([]);
    }
    handle.close();
  });

  test("[K2] a page of a long run, what it is at, what was done to one thing, and the slots around one are read from their indexes", () => {
    const handle = new DatabaseSync(filled.fresh.url.slice("sqlite:".length));
    const catalogue = sqliteStatements(sqliteTables("holdfast"));
    const planOf = (name: StatementName): string[] =>
      handle
        .prepare(`explain query plan ${parse(textsOf(catalogue[name])[0] as string).pieces.join("?")}`)
        .all()
        .map((step) => (step as unknown as Step).detail)
        .filter((detail) => /^(SCAN|SEARCH|USE)/.test(detail));
    expect(planOf("stepsBefore")).toEqual([
      "SEARCH holdfast_step USING INDEX holdfast_step_seq (job=? AND seq<?)",
    ]);
    expect(planOf("openSteps").filter((detail) => detail.startsWith("SEARCH"))).toEqual([
      "SEARCH holdfast_step USING COVERING INDEX holdfast_step_open (job=? AND state=?)",
      "SEARCH s USING PRIMARY KEY (job=? AND name=?)",
    ]);
    expect(planOf("countSteps")).toEqual([
      "SEARCH holdfast_step USING COVERING INDEX holdfast_step_seq (job=? AND seq<?)",
      "SCAN one",
    ]);
    expect(planOf("auditOf")).toEqual(["SEARCH a USING INDEX holdfast_audit_target (target=? AND id<?)"]);
    expect(planOf("occurrencesAround").filter((detail) => detail.startsWith("SEARCH"))).toEqual([
      "SEARCH holdfast_occurrence USING PRIMARY KEY (schedule=? AND at<?)",
      "SEARCH holdfast_occurrence USING PRIMARY KEY (schedule=? AND at>?)",
    ]);
    handle.close();
  });

  test("[B8] claim and checkDue go by the index of the claim's order, without a sort of their own", () => {
    const order = /USING (COVERING )?INDEX holdfast_ready_order/;
    for (const name of ["claimLevel", "claim", "checkDue"] as const) {
      expect([name, plans.get(name)!.some(({ detail }) => order.test(detail))]).toEqual([name, true]);
    }
    for (const name of ["claimLevel", "claim"] as const) {
      const plan = plans.get(name)!;
      const next = plan.filter(
        ({ detail }) =>
          order.test(detail) &&
          /\(job_type=\? AND rank=\? AND token=\? (AND run_at>\? )?AND run_at<\?\)/.test(detail),
      );
      expect(next.length, `${name} ends at what is due`).toBeGreaterThanOrEqual(1);
      // The jobs of several levels are merged by one sort of the batch; those of each level come without any.
      for (const { parent } of next) {
        const beside = plan.filter((step) => step.parent === parent).map(({ detail }) => detail);
        expect(beside.filter((detail) => detail.includes("TEMP B-TREE"))).toEqual([]);
      }
    }
  });

  test("[B8] a settle finds its jobs by their numbers, and looks no id up where the claim has told them", () => {
    for (const name of ["doneAlike", "done"] as const) {
      const ids = plans
        .get(name)!
        .filter(({ detail }) => /sqlite_autoindex_holdfast_job|holdfast_job/.test(detail));
      expect([name, ids]).toEqual([name, []]);
    }
    for (const name of ["doneAlike", "done", "end", "again"] as const) {
      const onReady = plans
        .get(name)!
        .map(({ detail }) => detail)
        .filter((detail) => /^SEARCH (holdfast_ready|r)\b/.test(detail));
      expect(onReady.length).toBeGreaterThan(0);
      expect(
        onReady.filter(
          (detail) => !/USING (INTEGER PRIMARY KEY \(rowid=\?\)|INDEX holdfast_ready_watched)/.test(detail),
        ),
      ).toEqual([]);
    }
  });
}

/** A store with the backlog in it, and a living session. Filled once for each store: it takes seconds. */
interface Filled {
  fresh: FreshStore;
  now: number;
  session: number;
}

onEveryStore((target) => {
  const filled = {} as Filled;
  const clock = new FakeClock();

  beforeAll(async () => {
    const fresh = await target.fresh();
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
      await fresh.query(`alter table ${fresh.table("ready")} set (autovacuum_enabled = off)`);
    await fillBacklog(fresh, clock.now());
    await fillBeside(fresh, clock.now());
    Object.assign(filled, { fresh, now: clock.now(), session });
  });

  if (target.dialect === "postgres") onPostgresPlans(filled);
  else onSqlitePlans(filled);

  // Last: it changes the backlog.
  test("[B8] a claim beside the backlog gives the served jobs and leaves the rest alone", async () => {
    const { fresh, session } = filled;
    const store = await openStore(fresh.url, { ...fresh.options, clock });
    const cursor = { levels: new Map(), rescannedAt: -Infinity };
    const scope = {
      queues: new Map([["default", 200]]),
      names: ["served"],
      limit: 200,
      order: "highest-first",
    } as const;
    const sizes: number[] = [];
    for (let n = 0; n < 3; n++) sizes.push((await store.claims.claim(session, scope, cursor)).length);
    expect(sizes).toEqual([200, 100, 0]);
    const [untouched] = await fresh.query(
      `select count(*) as n from ${fresh.table("ready")} where token is null and attempt = 0`,
    );
    expect(untouched).toEqual({ n: backlog.unserved + backlog.scheduled + backlog.queues });
    await store.close();
  });
});
