/**
 * What stands between a ready job and a worker: one place for `hf.jobs.why` (why.ts), which asks about a job, and for the
 * dashboard's page of a queue, which asks why nothing runs.
 *
 * Pure: facts in, an obstacle or null out. Each is one sentence, and data. Not here: reading the facts, and which comes first.
 */
import { isQuiet, takesJobs } from "../limits/serving.ts";
import type { JobPlace } from "./store.ts";
import type { WorkerState } from "../lease/store.ts";
import type { Hold, LaneState, BreakerState, BudgetRow } from "../limits/store.ts";

/** Why a job is where it is. */
export type WhyReason =
  | "not-found"
  | "done"
  | "dead"
  | "cancelled"
  | "running"
  | "waiting"
  | "asleep"
  | "waiting-for-signal"
  | "waiting-for-jobs"
  | "job-paused"
  | "future"
  | "retry-wait"
  | "paused"
  | "hold"
  | "cool-down"
  | "throttled"
  | "released"
  | "needs-newer-version"
  | "breaker-open"
  | "breaker-half-open"
  | "budget-empty"
  | "budget-unknown"
  | "lane-paused"
  | "lane-full"
  | "lane-rate"
  | "queue-full"
  | "queue-rate"
  | "unserved"
  | "workers-quiet"
  | "ready";

/** A reason, its sentence, and what of a `Why` it has to tell. */
export interface Obstacle {
  readonly reason: WhyReason;
  readonly text: string;
  readonly until?: Date | null;
  readonly holds?: readonly string[];
  readonly breaker?: string;
  readonly budget?: string;
  readonly limit?: { readonly limit: number; readonly used: number };
}

/** A queue's own row, as far as it can stop it. */
export interface Stops {
  readonly pausedAt: number | null;
  readonly coolUntil: number | null;
}

export function paused(queue: string, stops: Stops | undefined): Obstacle | null {
  const at = stops?.pausedAt ?? null;
  if (at === null) return null;
  return { reason: "paused", text: `Queue "${queue}" has been paused since ${iso(new Date(at))}.` };
}

export function held(queue: string, holds: readonly Hold[]): Obstacle | null {
  const over = holds.filter(({ queues }) => queues === null || queues.includes(queue));
  if (over.length === 0) return null;
  const names = over.map(({ name, reason }) => (reason === null ? `"${name}"` : `"${name}" (${reason})`));
  return { reason: "hold", text: `Held by ${names.join(", ")}.`, holds: over.map(({ name }) => name) };
}

export function cooling(queue: string, stops: Stops | undefined, now: number): Obstacle | null {
  const until = new Date(stops?.coolUntil ?? 0);
  if (until.getTime() <= now) return null;
  const text = `Queue "${queue}" is cooling down until ${iso(until)}, because a job was throttled.`;
  return { reason: "cool-down", text, until };
}

export function broken({ key, state, failures, openUntil, probing }: BreakerState): Obstacle | null {
  if (state === "closed") return null;
  if (state === "open")
    return {
      reason: "breaker-open",
      text: `The breaker ${key} is open after ${count(failures, "failure")} in a row; a probe starts at ${iso(openUntil)}.`,
      until: openUntil,
      breaker: key,
    };
  const tried = probing ? "a probe is running" : "the next job is the probe";
  return { reason: "breaker-half-open", text: `The breaker ${key} is half-open: ${tried}.`, breaker: key };
}

/** That nobody takes jobs of these names from the queue. */
export function unserved(
  queue: string,
  names: readonly string[],
  workers: readonly WorkerState[],
): Obstacle | null {
  const serves = (worker: WorkerState, name: string): boolean =>
    Object.hasOwn(worker.queues, queue) && worker.names.includes(name);
  const live = workers.filter(takesJobs);
  const without = names.filter((name) => !live.some((worker) => serves(worker, name)));
  const here = live.some((worker) => Object.hasOwn(worker.queues, queue));
  if (without.length === 0 && (names.length > 0 || here)) return null;
  const quiet = workers.filter(
    (worker) =>
      isQuiet(worker) &&
      (names.length === 0
        ? Object.hasOwn(worker.queues, queue)
        : without.some((name) => serves(worker, name))),
  );
  if (quiet.length > 0) return { reason: "workers-quiet", text: quietText(quiet) };
  const named = without.map((name) => `"${name}"`).join(", ");
  const text =
    live.length === 0
      ? "No worker is running."
      : here
        ? `No live worker of queue "${queue}" has a handler for ${named}.`
        : `No live worker serves queue "${queue}".`;
  return { reason: "unserved", text };
}

function quietText(quiet: readonly WorkerState[]): string {
  const [first] = quiet;
  return quiet.length === 1
    ? `The only worker, ${first?.name}, has been quiet since ${iso(first?.quietAt ?? null)}. Jobs start when it is resumed.`
    : `The ${quiet.length} workers are quiet. Jobs start when one of them is resumed.`;
}

export function broke(
  budgets: readonly BudgetRow[],
  { name, tokens }: { readonly name: string; readonly tokens: number },
  now: number,
): Obstacle | null {
  const row = budgets.find((each) => each.name === name);
  if (row === undefined)
    return {
      reason: "budget-unknown",
      text: `There is no budget "${name}". Set it with hf.budgets.set.`,
      budget: name,
    };
  const wanted = count(tokens, "token");
  if (tokens > row.burst)
    return {
      reason: "budget-empty",
      text: `The budget "${name}" never has the ${wanted} that a job takes, because its burst is ${row.burst}. Raise the burst.`,
      budget: name,
    };
  // Sums of fractions, as the budget itself compares them.
  if (tokens <= row.tokens + 1e-9) return null;
  const until = new Date(now + Math.ceil(((tokens - row.tokens) * row.perMs) / row.limit));
  const left = Math.floor(row.tokens * 100) / 100;
  return {
    reason: "budget-empty",
    text: `The budget "${name}" has ${left} of the ${wanted} that a job takes. The rest arrives by ${iso(until)}, unless another job takes it.`,
    budget: name,
    until,
  };
}

/** A lane's limits, and how much of them is used. */
export function laneShut(
  lane: Pick<LaneState, "queue" | "key" | "paused" | "running" | "concurrency" | "rate" | "rateOpensAt">,
): Obstacle | null {
  const { concurrency, rate, running, rateOpensAt: until } = lane;
  const named = `Lane "${lane.key}" of queue "${lane.queue}"`;
  if (lane.paused) return { reason: "lane-paused", text: `${named} is paused.` };
  if (concurrency !== null && running >= concurrency)
    return {
      reason: "lane-full",
      text: `${named} is full: ${running} of ${concurrency} jobs are running.`,
      limit: { limit: concurrency, used: running },
    };
  if (rate === null || until === null) return null;
  return {
    reason: "lane-rate",
    text: `${named} has used up its rate of ${rateText(rate)} until ${iso(until)}.`,
    until,
    limit: { limit: rate.limit, used: rate.limit },
  };
}

/** A queue's limits over the cluster, and how much of them is used. */
export function queueShut(queue: string, use: NonNullable<JobPlace["queue"]>): Obstacle | null {
  const { concurrency, rate, running } = use;
  if (!use.readable)
    return {
      reason: "queue-full",
      text: `The limits of queue "${queue}" cannot be read. Set them again with hf.queues.set.`,
    };
  if (concurrency !== null && running >= concurrency)
    return {
      reason: "queue-full",
      text: `Queue "${queue}" is full: ${running} of ${concurrency} jobs are running.`,
      limit: { limit: concurrency, used: running },
    };
  if (rate === null || use.opensAt === null) return null;
  const until = new Date(use.opensAt);
  return {
    reason: "queue-rate",
    text: `Queue "${queue}" has used up its rate of ${rateText(rate)} until ${iso(until)}.`,
    until,
    limit: { limit: rate.limit, used: rate.limit },
  };
}

function rateText({ limit, perMs }: { readonly limit: number; readonly perMs: number }): string {
  return `${count(limit, "start")} in ${perMs} ms`;
}

export function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? "" : "s"}`;
}

export function iso(at: Date | null): string {
  return at === null ? "an unknown time" : at.toISOString();
}
