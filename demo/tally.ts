/**
 * The demo's summary, counted from three independent records: what `enqueue` answered, what the store holds at
 * the end, and what the workers wrote into their own logs. Pure: nothing is asserted here, only counted.
 */
import type { Job } from "holdfast";
import type { LogEntry } from "./jobs.ts";

/** One enqueue, as the main process saw it. */
export interface Accepted {
  readonly id: string;
  readonly label: string;
  readonly priority: number;
  /** When the enqueue resolved. */
  readonly at: number;
  /** Not to be started before. */
  readonly dueAt: number;
}

export interface Tally {
  readonly accepted: number;
  readonly done: number;
  readonly dead: number;
  readonly cancelled: number;
  /** Accepted, and not ended in the store; or done there, and no worker did it. */
  readonly lost: readonly Accepted[];
  /** Jobs whose handler completed more than once, on whichever worker. */
  readonly doneTwice: readonly Accepted[];
  /** Jobs that the killed worker had started and not completed, and that another one completed. */
  readonly takenOver: readonly Accepted[];
  /** How many jobs each worker completed. */
  readonly byWorker: ReadonlyMap<string, number>;
  /** Jobs that are done after more than one attempt. */
  readonly retried: number;
  /** Jobs that were to start later than at once, and that are done. */
  readonly delayed: number;
  /** Jobs that were started before they were due. */
  readonly early: readonly Accepted[];
  /** Urgent jobs that started before a job of lower priority that was accepted earlier. */
  readonly overtook: number;
}

export function tally(
  accepted: readonly Accepted[],
  stored: readonly Job[],
  log: readonly LogEntry[],
  killed: string,
): Tally {
  const jobs = new Map(stored.map((job) => [job.id, job]));
  const effects = groupById(log.filter(({ event }) => event === "effect"));
  const starts = groupById(log.filter(({ event }) => event === "started"));
  const inState = (state: Job["state"]): Accepted[] =>
    accepted.filter(({ id }) => jobs.get(id)?.state === state);
  const firstStart = (id: string): number => Math.min(...(starts.get(id) ?? []).map(({ at }) => at));
  const ended = new Set(["done", "dead", "cancelled"]);
  const done = inState("done");

  return {
    accepted: accepted.length,
    done: done.length,
    dead: inState("dead").length,
    cancelled: inState("cancelled").length,
    lost: accepted.filter(({ id }) => {
      const state = jobs.get(id)?.state;
      return state === undefined || !ended.has(state) || (state === "done" && !effects.has(id));
    }),
    doneTwice: accepted.filter(({ id }) => (effects.get(id)?.length ?? 0) > 1),
    takenOver: accepted.filter(({ id }) => {
      const startedThere = starts.get(id)?.some(({ worker }) => worker === killed) ?? false;
      const completedBy = effects.get(id)?.map(({ worker }) => worker) ?? [];
      return (
        startedThere &&
        completedBy.length > 0 &&
        !completedBy.includes(killed) &&
        (jobs.get(id)?.crashes ?? 0) > 0
      );
    }),
    byWorker: countBy(log.filter(({ event }) => event === "effect").map(({ worker }) => worker)),
    retried: done.filter(({ id }) => (jobs.get(id)?.attempt ?? 0) > 1).length,
    delayed: done.filter(({ at, dueAt }) => dueAt > at).length,
    early: accepted.filter(({ id, dueAt }) => firstStart(id) < dueAt),
    overtook: accepted.filter((urgent) => accepted.some((other) => wasOvertaken(other, urgent, firstStart)))
      .length,
  };
}

function wasOvertaken(other: Accepted, urgent: Accepted, firstStart: (id: string) => number): boolean {
  const stoodBefore = other.priority < urgent.priority && other.at < urgent.at && other.dueAt <= urgent.at;
  const startedAt = firstStart(other.id);
  return stoodBefore && Number.isFinite(startedAt) && startedAt > firstStart(urgent.id);
}

function countBy(words: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const word of words.toSorted()) counts.set(word, (counts.get(word) ?? 0) + 1);
  return counts;
}

function groupById(entries: readonly LogEntry[]): Map<string, LogEntry[]> {
  const groups = new Map<string, LogEntry[]>();
  for (const entry of entries) groups.set(entry.id, [...(groups.get(entry.id) ?? []), entry]);
  return groups;
}
