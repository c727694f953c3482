/**
 * One queue: names, workers, lanes, settings with where they come from, and why nothing runs.
 *
 * The reasons are those of `hf.jobs.why` (operate/obstacles.ts), all that hold and not the first alone. Pure except for `readQueue`,
 * whose reads are bounded: it costs the same beside a million jobs.
 */
import type { InsightPage } from "../../operate/browse.ts";
import {
  broke,
  broken,
  cooling,
  count,
  held,
  iso,
  laneShut,
  type Obstacle,
  paused,
  queueShut,
  unserved,
} from "../../operate/obstacles.ts";
import { laneLine } from "./limit-lines.ts";
import type { QueueDetail, QueueLine } from "./contract.ts";
import { type Cluster, queueLines, readCluster, served, slotsIn } from "./overview.ts";
import type { LaneState } from "../../index.ts";
import {
  type BudgetRow,
  isQuiet,
  type DefinitionInfo,
  NO_SETTINGS,
  type TemporaryLimitRow,
  type Store,
} from "../../operate/index.ts";

/** Lanes that are shown of a queue. */
const mostLanes = 10;

/** What is known of the queue beside the cluster. */
export interface QueueFacts {
  readonly definitions: ReadonlyMap<string, DefinitionInfo>;
  readonly budgets: readonly BudgetRow[];
  /** Those with most jobs. */
  readonly lanes: readonly LaneState[];
  readonly temporaryLimits: readonly TemporaryLimitRow[];
  /** When the next job is due that is not; null: none is. */
  readonly nextAt: number | null;
}

export async function readQueue(store: Store, name: string): Promise<QueueDetail | null> {
  const cluster = await readCluster(store, name);
  const line = queueLines(cluster).find((queue) => queue.name === name);
  if (line === undefined) return null;
  const [definitions, budgets, lanes, temporaryLimits, due] = await Promise.all([
    store.definitions.list(),
    store.budgets.list(),
    store.lanes.top(name, mostLanes),
    store.temporaryLimits.list({ due: false }),
    line.scheduled.count === 0
      ? null
      : store.insight.browse({ queues: [name] }, { limit: 1, cursor: null, order: "due" }),
  ]);
  return queueDetail(cluster, line, { definitions, budgets, lanes, temporaryLimits, nextAt: nextIn(due) });
}

function nextIn(page: InsightPage | null): number | null {
  return page?.jobs[0]?.runAt ?? null;
}

function queueDetail(cluster: Cluster, line: QueueLine, facts: QueueFacts): QueueDetail {
  const { name } = line;
  const own = cluster.jobTypes.filter(({ queue }) => queue === name);
  const here = cluster.workers.filter(
    (worker) => worker.kind === "worker" && Object.hasOwn(worker.queues, name),
  );
  const settings = cluster.rows.find((row) => row.name === name)?.settings ?? NO_SETTINGS;
  const standstill = obstacles(cluster, line, facts);
  const temporaryLimit = facts.temporaryLimits.find((one) => one.kind === "queue" && one.name === name);
  return {
    ...line,
    settings,
    temporaryLimit:
      temporaryLimit === undefined ? null : { untilAt: temporaryLimit.untilAt, back: temporaryLimit.back },
    names: own.map((jobType) => ({
      name: jobType.name,
      ready: jobType.ready,
      scheduled: jobType.scheduled,
      waiting: jobType.waiting,
      running: jobType.running,
      oldestMs: jobType.oldestAt === null ? null : Math.max(0, cluster.now - jobType.oldestAt),
      served: served(here, jobType.name),
    })),
    workersHere: here.map((worker) => ({
      id: worker.id,
      name: worker.name,
      slots: slotsIn(name, worker, settings, here),
      running: own.reduce((n, { heldBy }) => n + (heldBy.get(worker.session) ?? 0), 0),
      quiet: isQuiet(worker),
    })),
    lanes: facts.lanes.map(laneLine),
    nextAt: facts.nextAt,
    obstacles: standstill.map(({ text }) => text),
    standstill: standstill.map(({ reason, text, until }) => ({
      reason,
      text,
      until: until?.getTime() ?? null,
    })),
  };
}

type Standstill = Pick<Obstacle, "text" | "until"> & {
  readonly reason: QueueDetail["standstill"][number]["reason"];
};

/** Why nothing is claimed from it: everything that holds. */
function obstacles(cluster: Cluster, line: QueueLine, facts: QueueFacts): Standstill[] {
  const { name } = line;
  const { now } = cluster;
  const row = cluster.rows.find((one) => one.name === name);
  const use = cluster.use.find((one) => one.name === name);
  const ready = cluster.jobTypes.filter((one) => one.queue === name && one.ready.count > 0);
  const names = ready.map((one) => one.name);
  const budgets = new Map(
    names.flatMap((name) => facts.definitions.get(name)?.budget ?? []).map((one) => [one.name, one]),
  );
  const found: (Standstill | null)[] = [
    paused(name, row),
    held(name, cluster.holds),
    cooling(name, row, now),
    ...cluster.broken.filter(({ key }) => line.breakers.includes(key)).map(broken),
    unserved(name, names, cluster.workers),
    ...[...budgets.values()].map((budget) => broke(facts.budgets, budget, now)),
    use === undefined ? null : queueShut(name, { ...use, readable: true }),
    ready.length === 0 ? null : lanesShut(facts.lanes),
    line.slots > 0 && line.running >= line.slots && ready.length > 0
      ? { reason: "slots-taken", text: `All slots are in use: ${line.running} of ${line.slots}.` }
      : null,
    ready.length === 0 && facts.nextAt !== null ? nothingDue(facts.nextAt) : null,
  ];
  return found.filter((one) => one !== null);
}

/** The lanes with most jobs, where none of them may start one. */
function lanesShut(lanes: readonly LaneState[]): Standstill | null {
  const shut = lanes.flatMap((lane) => laneShut(lane) ?? []);
  const [first] = shut;
  if (first === undefined || shut.length < lanes.length) return null;
  if (shut.length === 1) return first;
  const opens = shut.flatMap(({ until }) => until ?? []).sort((a, b) => a.getTime() - b.getTime());
  return {
    reason: first.reason,
    text: `None of the ${count(shut.length, "lane")} with most jobs may start a job: ${first.text.replace(/\.$/, "")}, and so on.`,
    until: opens[0] ?? null,
  };
}

function nothingDue(nextAt: number): Standstill {
  const until = new Date(nextAt);
  return { reason: "nothing-due", text: `No job is due. The next one is at ${iso(until)}.`, until };
}
