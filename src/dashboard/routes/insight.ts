/** How things go: minute roll-ups, jobs that run unusually long, the database. */
import { bad, integer } from "../api/query.ts";
import type { Load, QueueTrends, SlowKinds, StuckList } from "../api/contract.ts";
import { readSlow, readStuck } from "../api/stuck.ts";
import type { Route, RouteContext } from "./route.ts";
import { about } from "./targets.ts";
import { operatorOf, type QueueMinute } from "../../operate/index.ts";

const minuteMs = 60_000;

export const insightRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/series",
    id: "series",
    summary: "Minute roll-ups: throughput, failures, waiting and running times.",
    permission: "view",
    about: about.queuesOfQuery,
    query: ["queue", "name", "from", "to"],
    answer: "Series",
    run: (context) => {
      const { adapters, query } = context;
      return adapters.series({ queue: query.get("queue"), name: query.get("name"), ...rangeOf(context) });
    },
  },
  {
    method: "GET",
    path: "/series/load",
    id: "load",
    summary:
      "Ready jobs of the fullest queues, and slots used and there, once a minute; with queue, the ready jobs of that one.",
    permission: "view",
    about: about.queuesOfQuery,
    query: ["from", "to", "queue"],
    answer: "Load",
    run: async (context): Promise<Load> => {
      const { adapters, query, may } = context;
      const load = await adapters.load({ ...rangeOf(context), queue: query.get("queue") });
      // The ready jobs of all other queues are for those who may see these.
      if (await may("view", about.cluster)) return load;
      return { ...load, other: load.other.map(() => null) };
    },
  },
  {
    method: "GET",
    path: "/series/queues",
    id: "queueTrends",
    summary: "What every queue's workers did in the last 5 to 60 minutes, by the minute.",
    permission: "view",
    about: about.cluster,
    query: ["minutes"],
    answer: "QueueTrends",
    run: async ({ store, hf, query }): Promise<QueueTrends> => {
      const minutes = integer(query, "minutes", { min: 5, max: 60, or: 30 });
      const now = operatorOf(hf).env.clock.now();
      const from = Math.floor(now / minuteMs) * minuteMs - (minutes - 1) * minuteMs;
      return trendsOf(await store.series.queueMinutes(from, from + minutes * minuteMs), from, minutes);
    },
  },
  {
    method: "GET",
    path: "/series/database",
    id: "databaseSeries",
    summary:
      "How the database was, once a minute: size, WAL, free disk, connections, pools, how long reads and writes took.",
    permission: "view",
    about: about.cluster,
    query: ["from", "to"],
    answer: "DatabaseSeries",
    run: (context) => context.adapters.resources.database(rangeOf(context)),
  },
  {
    method: "GET",
    path: "/series/hosts",
    id: "hostSeries",
    summary: "CPU, memory and event-loop delay of the workers' machines, once a minute.",
    permission: "view",
    about: about.cluster,
    query: ["from", "to"],
    answer: "HostSeries",
    run: (context) => context.adapters.resources.hosts(rangeOf(context)),
  },
  {
    method: "GET",
    path: "/stuck",
    id: "stuckJobs",
    summary:
      "Running jobs that take more than three times as long as 95 % of the attempts of their kind did in the last 24 hours.",
    permission: "view",
    about: about.cluster,
    answer: "StuckList",
    run: ({ insight, adapters }): Promise<StuckList> => readStuck({ insight, usual: adapters.usual }),
  },
  {
    method: "GET",
    path: "/slowest",
    id: "slowKinds",
    summary: "The kinds whose attempts took longest in the last 24 hours (95 % were over by then).",
    permission: "view",
    about: about.cluster,
    answer: "SlowKinds",
    run: ({ insight, store, adapters }): Promise<SlowKinds> =>
      readSlow({ insight, kinds: () => store.kinds.list(), usual: adapters.usual }),
  },
  {
    method: "GET",
    path: "/database",
    id: "database",
    summary: "How the database is: size, tables, connections, the oldest transaction.",
    permission: "view",
    about: about.cluster,
    answer: "DatabaseHealth",
    run: ({ insight }) => insight.health(),
  },
  {
    method: "GET",
    path: "/doctor",
    id: "doctor",
    summary:
      "What holdfast doctor says: each check with a verdict and what to do; schema, retention, the oldest transaction. At most 5 seconds old.",
    permission: "view",
    about: about.cluster,
    answer: "DoctorReport",
    run: ({ doctor }) => doctor.report(),
  },
];

/** The last hour, unless something else is asked for. */
function rangeOf({ query, hf }: Pick<RouteContext, "query" | "hf">): { from: number; to: number } {
  const now = operatorOf(hf).env.clock.now();
  const to = integer(query, "to", { min: 0, max: 8.64e15, or: now });
  const from = integer(query, "from", { min: 0, max: 8.64e15, or: to - 3_600_000 });
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
