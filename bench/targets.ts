/** The figures that a release must reach: each a ratio within a round, and the least median. */
import { median } from "./measure.ts";
import { ratios, type Results, values } from "./results.ts";

export interface Verdict {
  readonly work: string;
  readonly against: string;
  readonly reach: string;
  readonly ratio: number;
  readonly spread: readonly number[];
  readonly reached: boolean;
}

interface Target {
  readonly work: string;
  readonly against: string;
  readonly atLeast?: number;
  readonly atMost?: number;
  readonly of: (results: Results) => number[];
}

const ours = "holdfast-postgres";
const sqlite = "holdfast-sqlite-full";
const three = ["pg-boss", "graphile-worker", "bullmq-postgres"];
const redis = ["bullmq-redis-everysec"];
const onPostgres = [...three, "absurd", "dbos", "openworkflow"];
const everyBullmq = [...three, "bullmq-redis-everysec", "bullmq-redis-always"];

// These may be missing on a machine; a ratio to "the fastest of" without one of the others would be a lie.
const optional = new Set(["bullmq-redis-everysec", "bullmq-redis-always", "absurd", "dbos", "openworkflow"]);
const complete = (results: Results, theirs: readonly string[], figure: string): boolean =>
  theirs.every((system) => optional.has(system) || values(results, system, figure).length > 0);

const most =
  (system: string, theirs: readonly string[], figure: string) =>
  (results: Results): number[] =>
    complete(results, theirs, figure) ? ratios(results, system, theirs, figure, "most") : [];
const least =
  (system: string, theirs: readonly string[], figure: string) =>
  (results: Results): number[] =>
    complete(results, theirs, figure) ? ratios(results, system, theirs, figure, "least") : [];
const own =
  (system: string, figure: string) =>
  (results: Results): number[] =>
    values(results, system, figure).map(({ value }) => value);

const targets: readonly Target[] = [
  {
    work: "drain, Postgres",
    against: "fastest of pg-boss, graphile-worker, BullMQ",
    atLeast: 2.5,
    of: most(ours, everyBullmq, "drain"),
  },
  {
    work: "drain, Postgres",
    against: "raw SQL loop",
    atLeast: 0.6,
    of: most(ours, ["raw-postgres"], "drain"),
  },
  {
    work: "enqueue, 1 in flight",
    against: "fastest of the three on Postgres",
    atLeast: 1.3,
    of: most(ours, three, "one1"),
  },
  {
    work: "enqueue, 10 in flight",
    against: "fastest of the three on Postgres",
    atLeast: 8,
    of: most(ours, three, "one10"),
  },
  {
    work: "enqueue, 10 in flight",
    against: "BullMQ on Redis everysec",
    atLeast: 1.2,
    of: most(ours, redis, "one10"),
  },
  {
    work: "enqueue, 100 in flight",
    against: "fastest of the three on Postgres",
    atLeast: 20,
    of: most(ours, three, "one100"),
  },
  {
    work: "enqueue, 100 in flight",
    against: "BullMQ on Redis everysec",
    atLeast: 2.5,
    of: most(ours, redis, "one100"),
  },
  {
    work: "bulk enqueue",
    against: "fastest peer (Postgres, Redis)",
    atLeast: 2.5,
    of: most(ours, [...onPostgres, ...everyBullmq], "bulk"),
  },
  {
    work: "pick-up latency p50",
    against: "best peer on Postgres",
    atMost: 0.8,
    of: least(ours, onPostgres, "p50"),
  },
  {
    work: "pick-up latency p99",
    against: "best peer on Postgres",
    atMost: 0.8,
    of: least(ours, onPostgres, "p99"),
  },
  {
    work: "WAL per job, enqueue to end",
    against: "pg-boss",
    atMost: 0.5,
    of: least(ours, ["pg-boss"], "wal"),
  },
  {
    work: "drain, SQLite FULL",
    against: "plainjob at NORMAL",
    atLeast: 5,
    of: most(sqlite, ["plainjob"], "drain"),
  },
  {
    work: "enqueue, SQLite FULL, 100 in flight",
    against: "plainjob at NORMAL",
    atLeast: 4,
    of: most(sqlite, ["plainjob"], "one100"),
  },
  {
    work: "drain, SQLite FULL",
    against: "raw SQL loop",
    atLeast: 0.5,
    of: most(sqlite, ["raw-sqlite-full"], "drain"),
  },
  {
    work: "drain beside 1 M ready, Postgres",
    against: "beside none",
    atLeast: 0.8,
    of: own(ours, "readyKept"),
  },
  {
    work: "drain beside 1 M scheduled, Postgres",
    against: "beside none",
    atLeast: 0.8,
    of: own(ours, "scheduledKept"),
  },
  {
    work: "drain beside 1 M ended, Postgres",
    against: "beside none",
    atLeast: 0.8,
    of: own(ours, "endedKept"),
  },
  {
    work: "drain beside 1 M ready, SQLite",
    against: "beside none",
    atLeast: 0.8,
    of: own(sqlite, "readyKept"),
  },
  {
    work: "drain beside 1 M scheduled, SQLite",
    against: "beside none",
    atLeast: 0.8,
    of: own(sqlite, "scheduledKept"),
  },
  {
    work: "drain beside 1 M ended, SQLite",
    against: "beside none",
    atLeast: 0.8,
    of: own(sqlite, "endedKept"),
  },
  {
    work: "drain under a held snapshot, last tenth",
    against: "first tenth",
    atLeast: 0.8,
    of: own(ours, "heldKept"),
  },
  { work: "idle worker, queries/s", against: "–", atMost: 0.5, of: own(ours, "idleQueries") },
  { work: "pick-up latency p50, ms", against: "–", atMost: 10, of: own(ours, "p50") },
  {
    work: "RSS while draining 1 M",
    against: "graphile-worker",
    atMost: 0.6,
    of: least(ours, ["graphile-worker"], "memoryMb"),
  },
  {
    work: "drain, four processes",
    against: "one process",
    atLeast: 0.9,
    of: (results) => ratios(results, ours, [ours], "drain4", "most", "drain1"),
  },
];

/** The targets that the run has figures for. */
export function verdicts(results: Results): Verdict[] {
  return targets.flatMap(({ work, against, atLeast, atMost, of }) => {
    const spread = of(results);
    if (spread.length === 0) return [];
    const ratio = median(spread);
    const reached = ratio >= (atLeast ?? -Infinity) && ratio <= (atMost ?? Infinity);
    return [
      {
        work,
        against,
        reach: atLeast === undefined ? `≤ ${atMost}` : `≥ ${atLeast}`,
        ratio,
        spread,
        reached,
      },
    ];
  });
}
