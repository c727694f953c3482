/** How things go: minute roll-ups, jobs that run unusually long, the database. */
import { instant, object, text, within } from "../api/schema.ts";
import { deploysIn, readLoad, readSeries, usualOf } from "../api/charts.ts";
import { readDatabaseSeries, readHostSeries } from "../api/machine-charts.ts";
import { bad } from "../api/query.ts";
import {
  DatabaseHealth,
  DatabaseSeries,
  DoctorReport,
  HostSeries,
  Load,
  QueueTrends,
  Series,
  SlowNames,
  StuckList,
} from "../api/contract.ts";
import { readSlow, readStuck } from "../api/stuck.ts";
import { type Route, type RouteContext, route } from "./route.ts";
import { about } from "./targets.ts";
import type { QueueMinute } from "../../operate/index.ts";

const minuteMs = 60_000;
const range = { from: instant, to: instant };

export const insightRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: "/series",
    id: "series",
    summary: "Minute roll-ups: throughput, failures, waiting and running times.",
    permission: "view",
    about: about.queuesOfQuery,
    query: object({}, { queue: text, name: text, ...range }),
    answer: Series,
    run: (context) => readSeries(context.hf, { ...context.query, ...rangeOf(context) }),
  }),
  route({
    method: "GET",
    path: "/series/load",
    id: "load",
    summary:
      "Ready jobs of the fullest queues, and used and available slots, once a minute; with `queue`, the ready jobs of that queue.",
    permission: "view",
    about: about.queuesOfQuery,
    query: object({}, { ...range, queue: text }),
    answer: Load,
    run: async (context) => {
      const { hf, query, may } = context;
      const load = await readLoad(hf, { ...rangeOf(context), queue: query.queue });
      // The ready jobs of all other queues are for those who may see these.
      if (await may("view", about.cluster)) return load;
      return { ...load, other: load.other.map(() => null) };
    },
  }),
  route({
    method: "GET",
    path: "/series/queues",
    id: "queueTrends",
    summary: "Activity of each queue in the last 5 to 60 minutes, by the minute.",
    permission: "view",
    about: about.cluster,
    query: object({ minutes: within(5, 60, 30) }),
    answer: QueueTrends,
    run: async ({ store, operator, query: { minutes } }) => {
      const now = operator.env.clock.now();
      const from = Math.floor(now / minuteMs) * minuteMs - (minutes - 1) * minuteMs;
      return trendsOf(await store.series.queueMinutes(from, from + minutes * minuteMs), from, minutes);
    },
  }),
  route({
    method: "GET",
    path: "/series/database",
    id: "databaseSeries",
    summary:
      "Series of the database, once a minute: size, WAL, free disk, connections, pools, duration of reads and writes.",
    permission: "view",
    about: about.cluster,
    query: object({}, range),
    answer: DatabaseSeries,
    run: (context) => readDatabaseSeries(context.store, rangeOf(context)),
  }),
  route({
    method: "GET",
    path: "/series/hosts",
    id: "hostSeries",
    summary: "CPU, memory and event-loop delay of the workers' machines, once a minute.",
    permission: "view",
    about: about.cluster,
    query: object({}, range),
    answer: HostSeries,
    run: async (context) => {
      const { from, to } = rangeOf(context);
      return readHostSeries(context.store, { from, to }, await deploysIn(context.hf, from, to));
    },
  }),
  route({
    method: "GET",
    path: "/stuck",
    id: "stuckJobs",
    summary:
      "Running jobs that have taken more than three times the 95th percentile of their name in the last 24 hours.",
    permission: "view",
    about: about.cluster,
    answer: StuckList,
    run: ({ insight, hf }) => readStuck({ insight, usual: (names) => usualOf(hf, names) }),
  }),
  route({
    method: "GET",
    path: "/slowest",
    id: "slowNames",
    summary: "The job names with the longest attempts of the last 24 hours (95th percentile).",
    permission: "view",
    about: about.cluster,
    answer: SlowNames,
    run: ({ insight, store, hf }) =>
      readSlow({
        insight,
        definitions: () => store.definitions.list(),
        usual: (names) => usualOf(hf, names),
      }),
  }),
  route({
    method: "GET",
    path: "/database",
    id: "database",
    summary: "The database: size, tables, connections, the oldest transaction.",
    permission: "view",
    about: about.cluster,
    answer: DatabaseHealth,
    run: ({ insight }) => insight.health(),
  }),
  route({
    method: "GET",
    path: "/doctor",
    id: "doctor",
    summary:
      "The report of holdfast doctor: each check with its verdict and remedy; schema, retention, the oldest transaction. At most 5 seconds old.",
    permission: "view",
    about: about.cluster,
    answer: DoctorReport,
    run: ({ doctor }) => doctor.report(),
  }),
];

/** The last hour, unless the request names another range. */
function rangeOf({ query, operator }: RouteContext<{ readonly from?: number; readonly to?: number }>): {
  from: number;
  to: number;
} {
  const { to = operator.env.clock.now() } = query;
  const { from = to - 3_600_000 } = query;
  if (from >= to || to - from > 31 * 86_400_000) throw bad("from", "must lie at most 31 days before to.");
  return { from, to };
}

/** Pure. */
function trendsOf(rows: readonly QueueMinute[], from: number, minutes: number): QueueTrends {
  const queues = Object.create(null) as Record<string, { done: number[]; failed: number[] }>;
  const none = (): number[] => Array.from({ length: minutes }, () => 0);
  for (const { minute, queue, done, failed, dead } of rows) {
    const one = (queues[queue] ??= { done: none(), failed: none() });
    const at = (minute - from) / minuteMs;
    one.done[at] = done;
    one.failed[at] = failed + dead;
  }
  return { from, stepMs: minuteMs, queues };
}
