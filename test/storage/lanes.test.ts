// 100,000 lanes in one queue: a claim under limits reads what it takes, and a handful of rows besides. By plan and count.
import { DatabaseSync } from "node:sqlite";
import { beforeAll, expect, test } from "vitest";
import { Compiler } from "../../src/storage/postgres/driver.ts";
import type { Params, StatementName } from "../../src/storage/catalogue.ts";
import { parse } from "../../src/storage/catalogue.ts";
import { openStore } from "../../src/storage/open.ts";
import { sqliteTables } from "../../src/storage/sqlite/driver.ts";
import { statements } from "../../src/storage/sqlite/statements/jobs.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { type FreshStore, onEveryStore } from "../support/stores.ts";
import { sessionInfo } from "../support/world.ts";
import { textsOf } from "./explain.ts";

const lanes = 100_000;
const active = 500;
const batch = 50;

/** Lane n: most are full or asleep; the last ones are active. Each has one job; a name that nobody serves has as many. */
async function fill(fresh: FreshStore, now: number): Promise<void> {
  const table = (name: string) => fresh.table(name);
  const series =
    fresh.dialect === "postgres"
      ? `generate_series(1, ${lanes}) as s (n)`
      : `(with recursive s (n) as (select 1 union all select n + 1 from s where n < ${lanes}) select n from s)`;
  const id = (kind: number) =>
    fresh.dialect === "postgres"
      ? `('019b76da-3${kind}00-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid`
      : `'019b76da-3${kind}00-7000-8000-' || printf('%012x', n)`;
  const yes = fresh.dialect === "postgres" ? "true" : "1";
  await fresh.query(
    `insert into ${table("job_type")} (id, queue, name, laned) values (1, 'default', 'served', ${yes}), (2, 'default', 'unserved', ${yes})`,
  );
  await fresh.query(
    `insert into ${table("lane")} (queue, key, concurrency, running, used_at) select 'default', 'lane-' || n, 1, case when n <= 50000 then 1 else 0 end, ${now} from ${series}`,
  );
  for (const jobType of [1, 2]) {
    const awake = jobType === 1 ? lanes - active : 0;
    await fresh.query(
      `insert into ${table("lane_rotation")} (lane, job_type, vtime, active, wake_at)
        select n, ${jobType}, n, n > ${awake}, case when ${jobType} = 1 and n > 50000 and n <= ${awake} then ${now + 60_000} end from ${series}`,
    );
    await fresh.query(
      `insert into ${table("job")} (id, job_type, created_at, input, lane) select ${id(jobType)}, ${jobType}, ${now}, '1', 'lane-' || n from ${series}`,
    );
    await fresh.query(
      `insert into ${table("ready")} (${fresh.jobKey}, job_type, rank, run_at, lane)
        select ${fresh.jobKeyOf(id(jobType))}, ${jobType}, 0, case when ${jobType} = 1 and n > 50000 and n <= ${awake} then ${now + 60_000} else ${now - 1_000} end, n from ${series}`,
    );
  }
}

interface Node {
  readonly "Relation Name"?: string;
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly Plans?: readonly Node[];
}

function rowsRead(node: Node): number {
  const own =
    node["Relation Name"] === undefined ||
    !/^(lane|lane_rotation|ready|lane_wakeup|job(?!_type))/.test(node["Relation Name"])
      ? 0
      : (node["Actual Rows"] + (node["Rows Removed by Filter"] ?? 0)) * node["Actual Loops"];
  return own + (node.Plans ?? []).reduce((sum, each) => sum + rowsRead(each), 0);
}

onEveryStore((target) => {
  let fresh: FreshStore;
  let session = 0;
  const clock = new FakeClock();
  const now = clock.now();
  const scope = { queues: [{ queue: "default", group: "default", limit: batch }], names: ["served"] };
  const rotations = Array.from({ length: batch }, (_, n) => ({
    lane: lanes - n,
    jobType: 1,
    limit: 1,
    by: 1,
  }));

  beforeAll(async () => {
    fresh = await target.fresh();
    const store = await openStore(fresh.url, { ...fresh.options, clock });
    session = await store.sessions.open(sessionInfo());
    await store.close();
    await fill(fresh, now);
    if (target.dialect === "postgres")
      for (const table of ["lane", "lane_rotation", "ready", "job", "job_type"])
        await fresh.query(`analyze ${fresh.table(table)}`);
  });

  const calls: [StatementName, Params][] = [
    ["takeWakeups", { now, ...scope }],
    [
      "scheduleRotations",
      {
        now,
        rows: rotations.map(({ lane, jobType }) => ({ lane, jobType, at: 0 })),
        full: [lanes],
        floors: [],
      },
    ],
    ["pickRotations", { now, ...scope, limitedQueues: [], most: batch, floors: [] }],
    ["takeLaned", { now, rotations, names: ["served"], direction: 1, counted: [], most: 1, rates: null }],
    ["laneHeads", { now, rotations }],
    ["checkLimitedDue", { now, ...scope, direction: 1, levels: [] }],
  ];

  if (target.dialect === "postgres") {
    test.each(calls)(
      "[N6] %s reads what it takes, beside 100,000 lanes and as many of a name that nobody serves",
      async (name, params) => {
        const { text, values } = new Compiler(fresh.options.schema!).prepare({
          name,
          params: { ...params, session },
        });
        await fresh.query("begin");
        try {
          const [row] = await fresh.query(`explain (analyze, format json) ${text}`, [...values]);
          const [{ Plan }] = row!["QUERY PLAN"] as [{ Plan: Node }];
          expect(rowsRead(Plan), JSON.stringify(Plan)).toBeLessThanOrEqual(10 * batch);
        } finally {
          await fresh.query("rollback");
        }
      },
    );
  } else {
    test.each(calls)(
      "[N6] %s goes by indexes, beside 100,000 lanes and as many of a name that nobody serves",
      (name) => {
        const handle = new DatabaseSync(fresh.url.replace("sqlite:", ""));
        const entry = statements(sqliteTables("holdfast"))[name];
        for (const text of textsOf(entry)) {
          const plan = handle.prepare(`explain query plan ${parse(text).pieces.join("?")}`).all() as {
            detail: string;
          }[];
          const scans = plan.filter(({ detail }) =>
            /^SCAN (r|w|f|a|b|holdfast_(lane|lane_rotation|ready|lane_wakeup|job))\b/.test(detail),
          );
          // A claim's own ids, and the lanes that were asked for, are lists and not tables.
          expect(scans.filter(({ detail }) => !/^SCAN w\b/.test(detail)).map(({ detail }) => detail)).toEqual(
            [],
          );
        }
        handle.close();
      },
    );
  }

  test("[N6] a claim takes its batch from 100,000 lanes, in the order of fairness, and only from those that may give", async () => {
    const store = await openStore(fresh.url, { ...fresh.options, clock });
    try {
      const ask = {
        queues: new Map([["default", batch]]),
        names: ["served"],
        limit: batch,
        order: "highest-first",
      } as const;
      const jobs = await store.claims.claim(session, ask, { levels: new Map(), rescannedAt: -Infinity });
      const first = lanes - active + 1;
      expect(jobs.map(({ lane }) => lane)).toEqual(
        Array.from({ length: batch }, (_, n) => `lane-${first + n}`),
      );
    } finally {
      await store.close();
    }
  });
});
