/**
 * The state of everything in a few hundred bytes: read by one sampler for all viewers, however many there are.
 *
 * Pure except for `readOverview`, which makes seven bounded reads. The verdict is one sentence that an operator can act on;
 * what is not known is null, never 0.
 */
import type { CappedCount, LineTally } from "../insight.ts";
import type { Hold, Store, WorkerState } from "../store.ts";
import type { Overview, QueueDetail, QueueLine } from "./contract.ts";

const zero: CappedCount = { count: 0, more: false };
const cap = 10_000;
const mostQueues = 200;
/** A ready job that waits longer than this is worth a warning. */
const lateMs = 60_000;

export interface Cluster {
  readonly now: number;
  readonly lines: readonly LineTally[];
  readonly rows: Awaited<ReturnType<Store["insight"]["queueRows"]>>;
  readonly workers: readonly WorkerState[];
  readonly holds: readonly Hold[];
  /** Breakers of queues and kinds that are not closed. */
  readonly breakers: readonly string[];
}

export async function readCluster(store: Store): Promise<Cluster> {
  const [{ now, lines }, rows, workers, holds] = await Promise.all([
    store.insight.lines(),
    store.insight.queueRows(),
    store.workers(),
    store.holds(),
  ]);
  // Those of keys are not asked for: there may be any number.
  const keys = [
    ...rows.map(({ name }) => `queue:${name}`),
    ...new Set(lines.filter(({ ready }) => ready.count > 0).map(({ name }) => `kind:${name}`)),
  ];
  const known = keys.length === 0 ? [] : await store.breakers(keys);
  const breakers = known.filter(({ state }) => state !== "closed").map(({ key }) => key);
  return { now, lines, rows, workers, holds, breakers };
}

export async function readOverview(store: Store): Promise<Overview> {
  const [cluster, dead, retrying] = await Promise.all([
    readCluster(store),
    store.insight.tally({ states: ["dead"] }),
    store.insight.tally({ retrying: true, states: ["scheduled", "ready"] }),
  ]);
  return overview(cluster, dead.total, retrying.total);
}

export function overview(cluster: Cluster, dead: CappedCount, retrying: CappedCount): Overview {
  const queues = queueLines(cluster);
  const live = cluster.workers.filter(({ kind }) => kind === "worker");
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
    verdict: verdict(queues, live.length, cluster.holds, totals, oldestMs),
    totals,
    oldestMs,
    slots: live.reduce((n, worker) => n + slotsOf(worker), 0),
    workers: live.length,
    holds: cluster.holds.length,
    queues: busiest.slice(0, mostQueues),
    queueCount: queues.length,
  };
}

export function queueLines(cluster: Cluster): QueueLine[] {
  const { lines, rows, workers, holds, breakers, now } = cluster;
  const byName = new Map<string, LineTally[]>();
  for (const line of lines) {
    const known = byName.get(line.queue);
    if (known === undefined) byName.set(line.queue, [line]);
    else known.push(line);
  }
  const settings = new Map(rows.map((row) => [row.name, row]));
  const names = new Set([...byName.keys(), ...settings.keys()]);
  const live = workers.filter(({ kind }) => kind === "worker");
  return [...names].sort().map((name) => {
    const own = byName.get(name) ?? [];
    const row = settings.get(name);
    const here = live.filter((worker) => Object.hasOwn(worker.queues, name));
    const oldest = own.flatMap(({ oldestAt }) => oldestAt ?? []);
    return {
      name,
      pausedAt: row?.pausedAt ?? null,
      drainingAt: row?.drainingAt ?? null,
      coolUntil: (row?.coolUntil ?? 0) > now ? (row?.coolUntil ?? null) : null,
      holds: holds.filter((hold) => covers(hold, name)).map((hold) => hold.name),
      breakers: breakers.filter(
        (key) =>
          key === `queue:${name}` || own.some((line) => line.ready.count > 0 && key === `kind:${line.name}`),
      ),
      ready: own.map(({ ready }) => ready).reduce(plus, zero),
      scheduled: own.map(({ scheduled }) => scheduled).reduce(plus, zero),
      waiting: own.map(({ waiting }) => waiting).reduce(plus, zero),
      running: own.reduce((n, { running }) => n + running, 0),
      slots: here.reduce((n, worker) => n + (worker.queues[name] ?? 0), 0),
      workers: here.length,
      oldestMs: oldest.length === 0 ? null : Math.max(0, now - Math.min(...oldest)),
      unserved: own
        .filter(({ ready, name: kind }) => ready.count > 0 && !served(here, kind))
        .map((line) => line.name),
    };
  });
}

export function queueDetail(cluster: Cluster, name: string): Omit<QueueDetail, "settings"> | null {
  const line = queueLines(cluster).find((queue) => queue.name === name);
  if (line === undefined) return null;
  const here = cluster.workers.filter(
    (worker) => worker.kind === "worker" && Object.hasOwn(worker.queues, name),
  );
  return {
    ...line,
    kinds: cluster.lines
      .filter(({ queue }) => queue === name)
      .map((kind) => ({
        name: kind.name,
        ready: kind.ready,
        scheduled: kind.scheduled,
        waiting: kind.waiting,
        running: kind.running,
        oldestMs: kind.oldestAt === null ? null : Math.max(0, cluster.now - kind.oldestAt),
        served: served(here, kind.name),
      })),
    workersHere: here.map((worker) => ({
      id: worker.id,
      name: worker.name,
      slots: worker.queues[name] ?? 0,
      running: worker.jobs.length,
    })),
    obstacles: obstacles(line),
  };
}

function obstacles(queue: QueueLine): string[] {
  const found: string[] = [];
  if (queue.pausedAt !== null) found.push("It is paused.");
  for (const hold of queue.holds) found.push(`The hold "${hold}" is set.`);
  for (const key of queue.breakers) found.push(`The breaker ${key} is open after failures in a row.`);
  if (queue.coolUntil !== null) found.push("It cools down after it was throttled.");
  if (queue.workers === 0) found.push("No live worker serves it.");
  else if (queue.unserved.length > 0)
    found.push(`No live worker has a handler for ${queue.unserved.join(", ")}.`);
  if (queue.slots > 0 && queue.running >= queue.slots && queue.ready.count > 0)
    found.push("All slots are taken.");
  return found;
}

export function verdict(
  queues: readonly QueueLine[],
  workers: number,
  holds: readonly Hold[],
  totals: Overview["totals"],
  oldestMs: number | null,
): Overview["verdict"] {
  const backlog = totals.ready.count > 0;
  if (workers === 0 && backlog)
    return {
      level: "bad",
      text: `No worker is running, and ${shown(totals.ready)} ready ${jobs(totals.ready)} wait.`,
    };
  const stuck = queues.filter(({ unserved }) => unserved.length > 0);
  if (stuck.length > 0) {
    const [first] = stuck;
    return {
      level: "bad",
      text: `No worker serves ${first?.unserved.join(", ")} in queue ${first?.name}${stuck.length > 1 ? ` (and ${stuck.length - 1} more)` : ""}.`,
    };
  }
  const stopped = queues.filter(
    (queue) => queue.ready.count > 0 && (queue.pausedAt !== null || queue.holds.length > 0),
  );
  if (stopped.length > 0)
    return {
      level: "warn",
      text: `${stopped
        .map(({ name }) => name)
        .slice(0, 3)
        .join(
          ", ",
        )} ${stopped.length === 1 ? "is" : "are"} ${holds.length > 0 ? "held" : "paused"} with jobs waiting.`,
    };
  const broken = queues.filter((queue) => queue.ready.count > 0 && queue.breakers.length > 0);
  if (broken.length > 0)
    return {
      level: "warn",
      text: `The breaker ${broken[0]?.breakers[0]} is open, and jobs of ${broken[0]?.name} wait${broken.length > 1 ? ` (and ${broken.length - 1} more)` : ""}.`,
    };
  if (oldestMs !== null && oldestMs > lateMs)
    return { level: "warn", text: `Jobs wait: the oldest ready one for ${duration(oldestMs)}.` };
  if (!backlog && totals.running === 0)
    return workers === 0
      ? { level: "idle", text: "Nothing to do, and no worker is running." }
      : { level: "good", text: `Healthy: nothing waits, ${count(workers, "worker")} ready.` };
  return {
    level: "good",
    text: `Healthy: ${shown(totals.ready)} ready, ${totals.running} running on ${count(workers, "worker")}.`,
  };
}

function served(workers: readonly WorkerState[], kind: string): boolean {
  return workers.some((worker) => !worker.stopping && worker.names.includes(kind));
}

function covers(hold: Hold, queue: string): boolean {
  return hold.queues === null || hold.queues.includes(queue);
}

export function slotsOf(worker: WorkerState): number {
  return Object.values(worker.queues).reduce((sum, n) => sum + n, 0);
}

function plus(a: CappedCount, b: CappedCount): CappedCount {
  const count = a.count + b.count;
  return count > cap ? { count: cap, more: true } : { count, more: a.more || b.more };
}

function shown({ count, more }: CappedCount): string {
  return `${count.toLocaleString("en")}${more ? "+" : ""}`;
}

function jobs({ count }: CappedCount): string {
  return count === 1 ? "job" : "jobs";
}

function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? "" : "s"}`;
}

function duration(ms: number): string {
  if (ms < 120_000) return `${Math.round(ms / 1_000)} s`;
  if (ms < 7_200_000) return `${Math.round(ms / 60_000)} min`;
  return ms < 172_800_000 ? `${Math.round(ms / 3_600_000)} h` : `${Math.round(ms / 86_400_000)} days`;
}
