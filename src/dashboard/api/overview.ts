/**
 * The state of everything in a few hundred bytes: read by one sampler for all viewers, however many there are.
 *
 * Pure except for `readOverview`, which makes seven bounded reads, and two more now and then (pace.ts). What is not known is null,
 * never 0. Not here: the sentence about it (verdict.ts).
 */
import type { CappedCount, JobTypeTally } from "../../operate/browse.ts";
import type { Overview, QueueLine } from "./contract.ts";
import { type Pace, type PaceReader, UNKNOWN_PACE } from "./pace.ts";
import { verdict } from "./verdict.ts";
import type { BreakerState, Hold, QueueSettings, WorkerState } from "../../index.ts";
import { isQuiet, type QueueUse, shareOfTotal, type Store, takesJobs } from "../../operate/index.ts";

const zero: CappedCount = { count: 0, more: false };
const cap = 10_000;
const mostQueues = 200;
/** Of one queue in one worker. */
const MOST_SLOTS = 1_024;

export interface Cluster {
  readonly now: number;
  readonly jobTypes: readonly JobTypeTally[];
  readonly rows: Awaited<ReturnType<Store["insight"]["queueRows"]>>;
  readonly workers: readonly WorkerState[];
  readonly holds: readonly Hold[];
  /** Breakers of queues and names that are not closed. */
  readonly broken: readonly BreakerState[];
  /** Of queues with limits over the cluster. */
  readonly use: readonly QueueUse[];
}

/** Of everything, or of one queue alone: what is counted then is that queue's, and of the rest nothing is known. */
export async function readCluster(store: Store, queue?: string): Promise<Cluster> {
  const queues = queue === undefined ? undefined : [queue];
  const [{ now, jobTypes }, rows, workers, holds] = await Promise.all([
    store.insight.jobTypes(queues === undefined ? {} : { queues }),
    store.insight.queueRows(queues),
    store.workers.list(),
    store.holds.list(),
  ]);
  // Those of keys are not asked for: there may be any number.
  const keys = [
    ...rows.map(({ name }) => `queue:${name}`),
    ...new Set(jobTypes.filter(({ ready }) => ready.count > 0).map(({ name }) => `name:${name}`)),
  ];
  const limited = rows.some(({ settings: { concurrency, rate } }) => concurrency !== null || rate !== null);
  const [known, use] = await Promise.all([
    keys.length === 0 ? [] : store.breakers.list(keys),
    limited ? store.queues.use() : [],
  ]);
  return {
    now,
    jobTypes,
    rows,
    workers,
    holds,
    broken: known.filter(({ state }) => state !== "closed"),
    use,
  };
}

export async function readOverview(store: Store, pace: Pick<PaceReader, "read">): Promise<Overview> {
  const [cluster, dead, retrying, going] = await Promise.all([
    readCluster(store),
    store.insight.tally({ states: ["dead"] }),
    store.insight.tally({ retrying: true, states: ["scheduled", "ready"] }),
    pace.read(),
  ]);
  return overview(cluster, dead.total, retrying.total, going);
}

function overview(
  cluster: Cluster,
  dead: CappedCount,
  retrying: CappedCount,
  pace: Pace = UNKNOWN_PACE,
): Overview {
  const queues = queueLines(cluster);
  const live = cluster.workers.filter(({ kind }) => kind === "worker");
  const quiet = live.filter(isQuiet).length;
  const sum = (of: (queue: QueueLine) => CappedCount): CappedCount => queues.map(of).reduce(plus, zero);
  const oldestMs = queues.reduce<number | null>(
    (most, { oldestMs }) => (oldestMs === null ? most : Math.max(most ?? 0, oldestMs)),
    null,
  );
  const totals = {
    ready: sum(({ ready }) => ready),
    scheduled: sum(({ scheduled }) => scheduled),
    waiting: sum(({ waiting }) => waiting),
    running: queues.reduce((n, { running }) => n + running, 0),
    retrying,
    dead,
  };
  const busiest = [...queues].sort(
    (a, b) => b.ready.count + b.running - (a.ready.count + a.running) || (a.name < b.name ? -1 : 1),
  );
  return {
    at: cluster.now,
    verdict: verdict({ queues, workers: { all: live.length, quiet }, totals, oldestMs, pace }),
    totals,
    oldestMs,
    perMinute: pace.perMinute,
    // A paused queue has none, as its workers have it that write their minutes down.
    slots: queues.reduce((n, { slots, pausedAt }) => n + (pausedAt === null ? slots : 0), 0),
    workers: live.length,
    quiet,
    holds: cluster.holds.length,
    queues: busiest.slice(0, mostQueues),
    queueCount: queues.length,
  };
}

export function queueLines(cluster: Cluster): QueueLine[] {
  const { jobTypes, rows, workers, holds, broken, now } = cluster;
  const uses = new Map(cluster.use.map((one) => [one.name, one]));
  const byName = new Map<string, JobTypeTally[]>();
  for (const jobType of jobTypes) {
    const known = byName.get(jobType.queue);
    if (known === undefined) byName.set(jobType.queue, [jobType]);
    else known.push(jobType);
  }
  const settings = new Map(rows.map((row) => [row.name, row]));
  const names = new Set([...byName.keys(), ...settings.keys()]);
  const live = workers.filter(({ kind }) => kind === "worker");
  return [...names].sort().map((name) => {
    const own = byName.get(name) ?? [];
    const row = settings.get(name);
    const ours = live.filter((worker) => Object.hasOwn(worker.queues, name));
    const here = ours.filter((worker) => !isQuiet(worker));
    const oldest = own.flatMap(({ oldestAt }) => oldestAt ?? []);
    return {
      name,
      pausedAt: row?.pausedAt ?? null,
      drainingAt: row?.drainingAt ?? null,
      coolUntil: (row?.coolUntil ?? 0) > now ? (row?.coolUntil ?? null) : null,
      holds: holds.filter((hold) => covers(hold, name)).map((hold) => hold.name),
      breakers: broken
        .map(({ key }) => key)
        .filter(
          (key) =>
            key === `queue:${name}` ||
            own.some((jobType) => jobType.ready.count > 0 && key === `name:${jobType.name}`),
        ),
      ready: own.map(({ ready }) => ready).reduce(plus, zero),
      scheduled: own.map(({ scheduled }) => scheduled).reduce(plus, zero),
      waiting: own.map(({ waiting }) => waiting).reduce(plus, zero),
      running: own.reduce((n, { running }) => n + running, 0),
      concurrency: row?.settings.concurrency ?? null,
      rate: rateUse(uses.get(name)),
      slots: here.reduce((n, worker) => n + slotsIn(name, worker, row?.settings, here), 0),
      workers: here.length,
      quiet: ours.length - here.length,
      oldestMs: oldest.length === 0 ? null : Math.max(0, now - Math.min(...oldest)),
      unserved: own
        .filter(({ ready, name }) => ready.count > 0 && !served(here, name))
        .map((jobType) => jobType.name),
    };
  });
}

function rateUse(use: QueueUse | undefined): QueueLine["rate"] {
  if (use === undefined || use.rate === null) return null;
  return { ...use.rate, used: use.started ?? 0 };
}

export function served(workers: readonly WorkerState[], name: string): boolean {
  return workers.some((worker) => takesJobs(worker) && worker.names.includes(name));
}

function covers(hold: Hold, queue: string): boolean {
  return hold.queues === null || hold.queues.includes(queue);
}

/** The slots of a worker for a queue by its live settings, as worker/totals.ts splits them; else what it was started with. */
export function slotsIn(
  queue: string,
  worker: WorkerState,
  settings: Pick<QueueSettings, "slots" | "total"> | undefined,
  workers: readonly WorkerState[],
): number {
  const own = settings?.slots ?? null;
  const total = settings?.total ?? null;
  if (total === null) return own ?? worker.queues[queue] ?? 0;
  // One that stops has been left out of the split.
  const sessions = workers
    .filter((one) => takesJobs(one) && Object.hasOwn(one.queues, queue))
    .map(({ session }) => session);
  if (!sessions.includes(worker.session)) return 0;
  return Math.min(shareOfTotal(total, sessions, worker.session), own ?? MOST_SLOTS, MOST_SLOTS);
}

export function slotsOf(worker: WorkerState): number {
  return Object.values(worker.queues).reduce((sum, n) => sum + n, 0);
}

function plus(a: CappedCount, b: CappedCount): CappedCount {
  const count = a.count + b.count;
  return count > cap ? { count: cap, more: true } : { count, more: a.more || b.more };
}
