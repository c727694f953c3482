/**
 * How long the dashboard's answers take beside a million jobs: every GET route, p50, p95 and the longest, on one store.
 *
 *     node bench/dashboard.ts                                   # SQLite, 1,000,000 jobs
 *     node bench/dashboard.ts --store postgres --jobs 1000000
 *     node bench/dashboard.ts --keep /tmp/big.db                # keeps the SQLite file, and takes it again
 *     node bench/dashboard.ts --only facets,errors --rounds 100
 *
 * The jobs are written by plain SQL: 20 queues with 4 kinds each, spread over the day so far; 60 % done, 5 % dead of 60 causes,
 * 2 % cancelled, 20 % ready, 8 % scheduled, 2 % retrying, 2 % waiting, 1 % in 2,000 lanes; besides a day of minutes, a week
 * of failures, a run of 500 steps, 200 leased jobs, 40 schedules. The handler is called as a server would call it, without a
 * socket. The target is a p95 below 50 ms; the exit code says whether it was met. Not part of CI.
 */
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { parseArgs } from "node:util";
import pg from "pg";
import { dashboard } from "../src/dashboard/index.ts";
import { routes } from "../src/dashboard/routes/table.ts";
import { defineJob, type Holdfast, open, silentLogger } from "../src/index.ts";
import { temporaryDirectory } from "../test/support/guard.ts";
import { startPostgres } from "../test/support/postgres.ts";
import { percentile } from "./measure.ts";
import { operatorOf } from "../src/operate/operator.ts";

const targetMs = 50;
const minuteMs = 60_000;
const hourMs = 3_600_000;
const dayMs = 86_400_000;
const token = "a-token-for-the-benchmark";

const { values } = parseArgs({
  options: {
    store: { type: "string", default: "sqlite" },
    jobs: { type: "string", default: "1000000" },
    rounds: { type: "string", default: "40" },
    only: { type: "string", default: "" },
    keep: { type: "string" },
  },
});
const dialect = values.store === "postgres" ? "postgres" : "sqlite";
const jobs = Number(values.jobs);
const rounds = Number(values.rounds);

const sqlite = dialect === "sqlite";
const server = sqlite
  ? null
  : await startPostgres(18, { fsync: true, settings: { shared_buffers: "512MB", max_wal_size: "4GB" } });
const path = values.keep ?? join(temporaryDirectory("dashboard"), "jobs.db");
const known = sqlite && existsSync(path);
const url = server === null ? `sqlite:${path}` : server.url();
const hf = await open(url, { logger: silentLogger });
if (!known) await fill();
await measure(hf);
await hf.close();
await server?.remove();
if (sqlite && values.keep === undefined) rmSync(path);

// --- Filling ----------------------------------------------------------------------------------------------------

async function fill(): Promise<void> {
  const started = performance.now();
  const t = (name: string): string => (sqlite ? `"holdfast_${name}"` : `"holdfast"."${name}"`);
  const client = sqlite ? null : new pg.Client({ connectionString: url });
  const file = sqlite ? new DatabaseSync(path, { timeout: 60_000 }) : null;
  await client?.connect();
  const run = async (sql: string): Promise<void> => {
    if (file === null) await client?.query(sql);
    else file.exec(sql);
  };
  const now = Date.now();
  const midnight = now - (now % dayMs);
  const from = Math.max(midnight, now - 20 * hourMs);
  const series = (count: number, name = "g"): string =>
    sqlite
      ? `(with recursive g (n) as (select 0 union all select n + 1 from g where n < ${count - 1}) select n from g) as ${name}`
      : `generate_series(0::bigint, ${count - 1}) as ${name} (n)`;
  const at = `(${from} + cast(g.n as bigint) * ${now - 1_000 - from} / ${jobs})`.replaceAll(
    "bigint",
    sqlite ? "integer" : "bigint",
  );
  const hex = (value: string, width: number): string =>
    sqlite ? `printf('%0${width}x', ${value})` : `lpad(to_hex((${value})::bigint), ${width}, '0')`;
  const time = hex(at, 12);
  const id = `(substr(${time}, 1, 8) || '-' || substr(${time}, 9, 4) || '-7000-8000-' || ${hex("g.n", 12)})${sqlite ? "" : "::uuid"}`;
  // On SQLite jobs are numbered, and everything else about them goes by the number.
  const key = sqlite ? "seq" : "id";
  const place = sqlite ? "g.n + 1" : id;
  const kind = "(g.n % 100)";
  const line = `(1 + (g.n * 7919) % 80)`;
  const laned = `(81 + (g.n / 100) % 4)`;
  const cause = hex("(g.n / 100) % 60 + 4096", 16);
  const text = sqlite ? "" : "::text";
  const failed = `'[{"at":${now - hourMs},"attempt":1,"message":"connect ECONNREFUSED 10.0.0.' || ((g.n / 100) % 60)${text} || ':443","stack":"${"Error: connect ECONNREFUSED\\n    at Socket.connect (node:net:1195:16)\\n".repeat(16)}"}]'`;
  const where = (low: number, high: number): string => `${kind} >= ${low} and ${kind} < ${high}`;

  await run("begin");
  await run(
    `insert into ${t("line")} (id, queue, name) ${sqlite ? "" : "overriding system value"} select g.n + 1, 'team-' || (g.n / 20) || '.queue-' || (g.n / 4), 'kind-' || (g.n % 4) from ${series(80)}`,
  );
  await run(
    `insert into ${t("line")} (id, queue, name, laned) ${sqlite ? "" : "overriding system value"} select g.n + 81, 'tenants', 'sync-' || g.n, ${sqlite ? 1 : "true"} from ${series(4)}`,
  );
  await run(
    `insert into ${t("lane")} (id, queue, key, used_at, concurrency) ${sqlite ? "" : "overriding system value"} select g.n + 1, 'tenants', 'tenant-' || g.n, ${now}, 3 from ${series(2_000)}`,
  );
  await run(
    `insert into ${t("job")} (${sqlite ? "seq, " : ""}id, line, created_at, input, lane)
     select ${sqlite ? `${place}, ` : ""}${id}, case when ${kind} = 99 then ${laned} else ${line} end, ${at}, '{"n":' || g.n || ',"customer":"c-' || (g.n % 5000) || '","text":"a line of text that is as long as those of many jobs, with a few words more, and then some"}',
       case when ${kind} = 99 then 'tenant-' || (g.n / 100) % 2000 end from ${series(jobs)}`,
  );
  await run(
    `insert into ${t("history")} (${key}, line, rank, state, attempt, crashes, throttles, run_at, started_at, ended_at, errors, failure_group, output)
     select ${place}, ${line}, 0, case when ${kind} < 60 then 'done' when ${kind} < 65 then 'dead' else 'cancelled' end, 1, 0, 0, ${at}, ${at} + 5, ${at} + 20,
       case when ${where(60, 65)} then ${failed} end, case when ${where(60, 65)} then ${cause} end, case when ${kind} < 60 then '{"ok":true}' end
     from ${series(jobs)} where ${kind} < 67`,
  );
  await run(
    `insert into ${t("ready")} (${key}, line, rank, run_at, attempt, errors, failure_group, lane)
     select ${place}, case when ${kind} = 99 then ${laned} else ${line} end, -(g.n % 3), case when ${where(67, 87)} or ${kind} = 99 then ${at} when ${where(87, 97)} then ${now + 2 * hourMs} + g.n else 9007199254740991 end,
       case when ${where(95, 97)} then 1 else 0 end, case when ${where(95, 97)} then ${failed} end, case when ${where(95, 97)} then ${cause} end,
       case when ${kind} = 99 then 1 + (g.n / 100) % 2000 end from ${series(jobs)} where ${kind} >= 67`,
  );
  const m = now - (now % minuteMs);
  const histogram = `'[1234.5,90,3,100,40,110,12,120,2]'`;
  const metric = (minutes: number, worker: string, back: number): string =>
    `insert into ${t("metric")} (minute, queue, name, worker, done, failed, dead, cancelled, throttled, released, lost, ran, waited)
     select ${m} - (g.n + ${back}) * ${minuteMs}, l.queue, l.name, '${worker}', 40 + (g.n * l.id) % 30, (g.n + l.id) % 3, case when (g.n + l.id) % 11 = 0 then 1 else 0 end, 0, 0, 0, 0, ${histogram}, ${histogram}
     from ${series(minutes)}, ${t("line")} l`;
  for (const worker of ["w-1", "w-2", "w-3"]) await run(metric(30, worker, 0));
  await run(metric(1_500, "w-1", 30));
  await run(
    `insert into ${t("gauge")} (minute, source, name, value) select ${m} - g.n * ${minuteMs}, 'w-' || w.n, x.name, g.n % 9 from ${series(10_080)}, ${series(3, "w")},
     (select 'running' as name union all select 'slots' union all select 'rss' union all select 'loop.delay') x`,
  );
  await run(
    `insert into ${t("gauge")} (minute, source, name, value) select ${m} - g.n * ${minuteMs}, case when q.n = 0 then 'queues' else 'queue:team-0.queue-' || q.n end, 'ready', (g.n * q.n) % 99
     from ${series(10_080)}, ${series(21, "q")}`,
  );
  await run(
    `insert into ${t("failure_group")} (id, name, first_at, last_at, sample, message) select ${hex("g.n + 4096", 16)}, 'kind-' || (g.n % 4), ${now - dayMs}, ${now - minuteMs}, null, '"connect ECONNREFUSED"' from ${series(60)}`,
  );
  const failure = (count: number, worker: string, step: number, until: number): string =>
    `insert into ${t("failure")} (failure_group, at, queue, version, worker, n) select ${hex("c.n + 4096", 16)}, ${until} - (g.n + 1) * ${step}, 'team-0.queue-' || (c.n % 5), 1, '${worker}', 2 from ${series(count)}, ${series(60, "c")}`;
  await run(failure(168, "", hourMs, now - (now % hourMs)));
  for (const worker of ["w-1", "w-2", "w-3"]) await run(failure(45, worker, minuteMs, m));
  await run(
    `insert into ${t("audit")} (at, actor, action, outcome) select ${now} - g.n * 1000, 'ann', 'jobs.retry', 'retried' from ${series(2_000)}`,
  );
  if (!sqlite)
    for (const table of ["line", "lane"])
      await run(`select setval(pg_get_serial_sequence('holdfast.${table}', 'id'), 10000)`);
  await run("commit");
  // As it is found: nobody analyzes a SQLite file, while Postgres does so by itself.
  if (!sqlite) await run("vacuum analyze");
  await client?.end();
  file?.close();
  const { store } = operatorOf(hf);
  for (let hour = now - (now % hourMs) - 26 * hourMs; hour < now - 2 * hourMs; hour += hourMs)
    await store.series.compact(hour, hour + hourMs);
  for (let i = 0; i < 40; i += 1)
    await hf.schedules.put({
      name: `schedule-${i}`,
      cron: `${i} * * * *`,
      job: "kind-1",
      input: null,
      queue: "nightly",
    });
  for (let i = 0; i < 10; i += 1) await hf.budgets.set(`budget-${i}`, { limit: 100, per: "1m" });
  await hf.holds.set("a-hold", { queues: ["team-0.queue-1"], reason: "a test" });
  console.log(`${jobs.toLocaleString("en")} jobs on ${dialect}, filled in ${seconds(started)}`);
}

// --- Measuring --------------------------------------------------------------------------------------------------

async function measure(client: Holdfast): Promise<void> {
  const noop = defineJob({ name: "noop", queue: "idle", run: () => {} });
  const walk = defineJob({
    name: "walk",
    queue: "idle",
    run: async (_: unknown, ctx) => {
      for (let i = 0; i < 500; i += 1) await ctx.step(`step-${i}`, () => ({ i }));
    },
  });
  const { id: workflow } = await client.enqueue(walk, null);
  const worker = client.work([noop, walk], { queues: { idle: 4 } });
  await client.result(workflow, { timeout: "2m" });
  const leases = await client.lease({ queues: ["team-0.queue-2"], limit: 200, for: "1h" });
  const handler = dashboard(client, { auth: { token } });
  const get = async (address: string): Promise<unknown> => {
    const response = await handler(
      new Request(`http://localhost/api/v1${address}`, { headers: { authorization: `Bearer ${token}` } }),
    );
    const text = await response.text();
    if (!response.ok) throw new Error(`${address}: ${response.status} ${text}`);
    return text.startsWith("{") ? JSON.parse(text) : null;
  };
  const dead = (await get("/jobs?state=dead&limit=1")) as { jobs: { id: string }[] };
  const { groups } = (await get("/errors")) as { groups: { group: string }[] };
  const paths: Readonly<Record<string, readonly string[]>> = {
    "/jobs": [
      "/jobs",
      "/jobs?limit=200",
      "/jobs?state=dead",
      "/jobs?state=done&queue=team-3.queue-19",
      "/jobs?state=scheduled&order=due",
      "/jobs?state=running",
      "/jobs?retrying=true",
      "/jobs?name=kind-3",
      "/jobs?lane=tenant-77",
      `/jobs?workflow=${workflow}`,
      `/jobs?trace=${"4b".repeat(16)}`,
      `/jobs?failureGroup=${groups[0]?.group}`,
      `/jobs?since=${Date.now() - hourMs}`,
      "/jobs?search=ECONNREFUSED&state=dead",
      "/jobs?search=nothing-like-it",
    ],
    "/jobs/count": [
      "/jobs/count",
      "/jobs/count?state=dead",
      "/jobs/count?queue=team-0.queue-1",
      "/jobs/count?lane=tenant-77",
      `/jobs/count?workflow=${workflow}`,
      "/jobs/count?search=c-77",
      `/jobs/count?failureGroup=${groups[0]?.group}`,
    ],
    "/jobs/facets": [
      "/jobs/facets",
      "/jobs/facets?state=dead",
      "/jobs/facets?queue=team-0.queue-1&name=kind-1",
      "/jobs/facets?lane=tenant-77",
      "/jobs/facets?search=c-77",
      `/jobs/facets?failureGroup=${groups[0]?.group}`,
      `/jobs/facets?since=${Date.now() - hourMs}`,
    ],
    "/jobs/:id": [`/jobs/${dead.jobs[0]?.id}`, `/jobs/${leases[0]?.id}`],
    "/jobs/:id/history": [`/jobs/${workflow}/history`],
    "/jobs/:id/run.json": [`/jobs/${workflow}/run.json`],
    "/jobs/:id/log": [`/jobs/${workflow}/log`],
    "/jobs/:id/expected": [`/jobs/${leases[0]?.id}/expected`],
    "/jobs/:id/check": [`/jobs/${dead.jobs[0]?.id}/check`],
    "/jobs/matching": [
      `/jobs/matching?id=${dead.jobs[0]?.id.slice(-12)}`,
      `/jobs/matching?id=${dead.jobs[0]?.id.slice(0, 8)}`,
    ],
    "/errors/:group/clues": [`/errors/${groups[0]?.group}/clues`],
    "/schedules/preview": ["/schedules/preview?cron=0%209%20*%20*%201-5"],
    "/definitions/:name": ["/definitions/kind-1"],
    "/errors": ["/errors", "/errors?queue=team-0.queue-1", "/errors?name=kind-1&state=open"],
    "/errors/:group": [`/errors/${groups[0]?.group}`],
    "/failures": ["name", "queue", "worker", "version", "hour"].map((by) => `/failures?by=${by}`),
    "/queues/:name": ["/queues/team-0.queue-1"],
    "/schedules/:name/preview": ["/schedules/schedule-7/preview"],
    "/schedules/:name/runs": ["/schedules/schedule-7/runs?limit=500"],
    "/lanes": ["/lanes", "/lanes?queue=tenants&limit=200"],
    "/series": [
      "/series",
      `/series?from=${Date.now() - dayMs}&to=${Date.now()}`,
      "/series?queue=team-0.queue-1",
    ],
    "/series/load": ["/series/load", `/series/load?from=${Date.now() - 7 * dayMs}&to=${Date.now()}`],
    // A file of any length, and a stream without an end: neither is an answer to wait for.
    "/jobs/export": [],
    "/stream": [],
    "/operations/:id": [],
  };
  const only = (values.only ?? "").split(",").filter((part) => part !== "");
  const addresses = routes
    .filter(({ method }) => method === "GET")
    .flatMap(({ path: route }) => paths[route] ?? (route.includes(":") ? missing(route) : [route]))
    .filter((address) => only.length === 0 || only.some((part) => address.includes(part)));
  const times = new Map(addresses.map((address) => [address, [] as number[]]));
  for (const address of addresses) await get(address);
  for (let round = 0; round < rounds; round += 1)
    for (const [address, taken] of times) {
      const started = performance.now();
      await get(address);
      taken.push(performance.now() - started);
    }
  handler.close();
  await worker.stop();
  for (const lease of leases) await lease.release();
  console.log(`${dialect}, ${rounds} rounds; milliseconds\n`);
  console.log(`${"p50".padStart(8)}${"p95".padStart(8)}${"max".padStart(8)}`);
  let slow = 0;
  for (const [address, taken] of times) {
    const p95 = percentile(taken, 95);
    if (p95 >= targetMs) slow += 1;
    const figures = [percentile(taken, 50), p95, Math.max(...taken)];
    console.log(
      `${figures.map((one) => one.toFixed(1).padStart(8)).join("")}  ${p95 >= targetMs ? "!" : " "} ${address}`,
    );
  }
  console.log(`\n${slow === 0 ? "Every" : `All but ${slow}`} p95 is below ${targetMs} ms.`);
  process.exitCode = slow === 0 ? 0 : 1;
}

function missing(route: string): never {
  throw new Error(`${route} is measured by no address: add one to the list.`);
}

function seconds(since: number): string {
  return `${((performance.now() - since) / 1_000).toFixed(1)} s`;
}
