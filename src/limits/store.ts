/** The contracts of limits as rows: queues, lanes, holds, budgets, breakers, temporary limits. A file for each keeps them. */
import type { ClaimedJob, LaneLimits } from "../jobs/job.ts";
import type { BreakerRule, QueueSettings } from "./queue-settings.ts";
import type { BudgetTake } from "./rules/token-bucket.ts";

/** A budget's numbers. */
export interface BudgetRate {
  readonly limit: number;
  readonly perMs: number;
  readonly burst: number;
}

/** A budget as it is kept. */
export interface BudgetRow extends BudgetRate {
  readonly name: string;
  /** Its numbers are an operator's, not the code's. */
  readonly tuned: boolean;
  /** What could be taken now. */
  readonly tokens: number;
}

/** What a process asks of a budget's row. */
export interface BudgetRequest {
  /** Needed now, by one caller each: all of it, or none. Empty: only gives back. */
  readonly wants: readonly number[];
  /** Wanted beside it, for later; 0: nothing. */
  readonly chunk: number;
  /** Whose chunk: one for each process and budget. */
  readonly holder: string;
  /** How long a chunk is good for. */
  readonly chunkMs: number;
  /** What is left of this holder's last chunk. */
  readonly unused: number;
}

/** A breaker as the store keeps it. */
export interface BreakerState {
  /** `queue:mail`, `name:send-mail`, or `name:send-mail/` and the key. */
  readonly key: string;
  readonly state: "closed" | "open" | "half-open";
  /** Consecutive failures. */
  readonly failures: number;
  readonly openedAt: Date | null;
  /** When the next probe may run. */
  readonly openUntil: Date | null;
  /** A probe is running somewhere. */
  readonly probing: boolean;
  /** The latest failure's message. */
  readonly error: string | null;
}

/** A breaker after a batch was counted. */
export interface CountedBreaker {
  readonly state: BreakerState;
  /** This batch has opened or closed it. */
  readonly changed: boolean;
}

/** What a batch of settled jobs means for one breaker. */
export interface BreakerCount {
  readonly key: string;
  readonly rule: BreakerRule;
  /** Failures after the latest success of the batch. */
  readonly failures: number;
  /** There was a success. */
  readonly succeeded: boolean;
  readonly error: string | null;
}

/** What was changed for a while: a queue's name, a budget's, or the JSON of a lane's queue and key. */
export interface TemporaryLimitTarget {
  readonly kind: "queue" | "lane" | "budget";
  readonly name: string;
}

/** A change for a while. */
export interface TemporaryLimitRow extends TemporaryLimitTarget {
  readonly setAt: number;
  readonly untilAt: number;
  /** The values of before; null: there was no such thing. */
  readonly back: Readonly<Record<string, unknown>> | null;
}

/** Budgets. */
export interface BudgetStore {
  list(): Promise<BudgetRow[]>;
  /** `standard`: the code's own numbers, which do not touch those that an operator has tuned. */
  set(name: string, rate: BudgetRate, standard: boolean): Promise<void>;
  /** Back to the code's numbers. False: there is none, or the code never gave any. */
  reset(name: string): Promise<boolean>;
  remove(name: string): Promise<boolean>;
  drain(name: string): Promise<boolean>;
  /** Takes tokens for those who want some now, in their order, and a chunk for later, in one transaction; null: there is no such budget. */
  take(name: string, request: BudgetRequest): Promise<BudgetTake | null>;
}

/** Breakers. */
export interface BreakerStore {
  /** Every breaker that has counted a failure; with keys, those. */
  list(keys: readonly string[] | null): Promise<BreakerState[]>;
  /**
   * Counts what settled under a session, and answers with the breakers of these that are open or have just closed. `batch` is
   * the session's own number for these counts: sent again, they are not counted again.
   */
  count(session: number, batch: number, counts: readonly BreakerCount[]): Promise<CountedBreaker[]>;
  /** True for one session at a time over all processes: it may run one job through a breaker that is half-open. */
  probe(session: number, key: string): Promise<boolean>;
  /** Gives the probe back without an outcome. */
  unprobe(session: number, key: string): Promise<void>;
  /** Closes a breaker by hand. False: it was closed. */
  reset(key: string): Promise<boolean>;
}

/** Limits that hold for a while. */
export interface TemporaryLimitStore {
  /** All of them, or those that are over. The next end first. */
  list(which: { due: boolean }): Promise<TemporaryLimitRow[]>;
  /** Remembers what to go back to; what is remembered already stays. */
  begin(
    target: TemporaryLimitTarget,
    back: TemporaryLimitRow["back"],
    until: { at: number | null; delayMs: number | null },
  ): Promise<void>;
  /** Takes these keys (null: all) out of what goes back; with `untilAt` only if that is still its end. */
  forget(target: TemporaryLimitTarget, keys: readonly string[] | null, untilAt?: number): Promise<void>;
}

/** A lane as `hf.lanes.list()` gives it. */
export interface LaneState {
  readonly queue: string;
  readonly key: string;
  /** How many may run at once over the cluster. */
  readonly concurrency: number | null;
  readonly rate: { readonly limit: number; readonly perMs: number } | null;
  readonly weight: number;
  readonly paused: boolean;
  readonly pausedAt: Date | null;
  /** How many are held by workers now. */
  readonly running: number;
  /** How many are not; counted up to 10,000. */
  readonly waiting: number;
  /** When the rate allows the next start, if it does not now. */
  readonly rateOpensAt: Date | null;
  /** Its limits were set by `hf.lanes.set`: a definition's do not change them any more. */
  readonly tuned: boolean;
}

/** One page of `hf.lanes.list`. */
export interface LanePage {
  readonly lanes: readonly LaneState[];
  readonly cursor: string | null;
}

/** How far a queue's limits are used. */
export interface QueueUse {
  readonly name: string;
  readonly concurrency: number | null;
  readonly rate: { readonly limit: number; readonly perMs: number } | null;
  readonly running: number;
  /** Starts in the window of the rate that ends now; null: it has none. */
  readonly started: number | null;
  /** When the rate allows the next start, if it does not now. */
  readonly opensAt: number | null;
}

/** A queue as `hf.queues.list()` gives it. */
export interface QueueState {
  readonly name: string;
  readonly paused: boolean;
  readonly pausedAt: Date | null;
  /** It is paused by itself when nothing in it is due and nothing of it runs. */
  readonly draining: boolean;
  readonly drainingAt: Date | null;
  readonly coolUntil: Date | null;
  readonly settings: QueueSettings;
  readonly counts: QueueCounts;
  /** Where the count stopped at the bound that was asked for: there are at least so many. */
  readonly atLeast: readonly (keyof QueueCounts)[];
  /** Age of the oldest ready job. */
  readonly lagMs: number;
  /**
   * When the next scheduled job becomes due: a delay, a retry, a sleep or a delayed move of a machine. Null: no job is scheduled.
   * With `upTo` also where `atLeast` has "waiting" for jobs that wait for a signal or other jobs until a time: scheduled ones
   * among so many are not looked for.
   */
  readonly nextDueAt: Date | null;
  /** Names that have ready jobs here and no live worker that serves them. */
  readonly unserved: readonly string[];
}

/** What `setQueue` changes. Either `paused` ends a draining; a queue that is paused stays so when it is to be drained. */
export type QueueChange = Partial<QueueSettings> & { paused?: boolean; draining?: true };

/** A queue, and the names in it that nobody serves. */
export type UnservedQueue = Pick<QueueState, "name" | "unserved">;

/** What waits in all queues. */
export interface Backlog {
  readonly ready: ReadonlyMap<string, number>;
  readonly unserved: readonly UnservedQueue[];
}

/** How many live jobs. Ended ones are counted by `jobs.count`. */
export interface QueueCounts {
  readonly ready: number;
  readonly scheduled: number;
  readonly running: number;
  readonly waiting: number;
}

/** A named stop, as `hf.holds.list()` gives it. */
export interface Hold {
  readonly name: string;
  /** Null: every queue. */
  readonly queues: readonly string[] | null;
  readonly reason: string | null;
  readonly setAt: Date;
}

/** Queues. */
export interface QueueStore {
  /**
   * Every queue. Without a bound each job that has not ended is counted, which at a million of them takes seconds; with one,
   * counts stop there, and it takes milliseconds.
   */
  list(upTo?: number): Promise<QueueState[]>;
  /** Ready jobs of each queue that has any (counted to 50,000 a name), and those of them that no living worker serves. */
  backlog(): Promise<Backlog>;
  set(name: string, change: QueueChange): Promise<void>;
  /** Pauses those draining queues in which nothing is due and of which nothing runs; answers with their names. */
  endDrains(): Promise<string[]>;
  /** The settings of these queues, for a worker's live refresh. */
  settings(names: readonly string[]): Promise<Map<string, QueueSettings & { paused: boolean }>>;
  /** What queues with limits use of them now. */
  use(): Promise<QueueUse[]>;
}

/** Holds. */
export interface HoldStore {
  list(): Promise<Hold[]>;
  set(hold: { name: string; queues: readonly string[] | null; reason: string | null }): Promise<void>;
  clear(name: string): Promise<boolean>;
}

/** Lanes. */
export interface LaneStore {
  list(query: { queue: string | null; key: string | null; cursor: number; limit: number }): Promise<LanePage>;
  /** Lanes that have jobs and may start none now, those with most jobs first. */
  throttled(limit: number): Promise<readonly LaneState[]>;
  /**
   * The lanes of a queue with most jobs, most first: found among the 4,000 that are due longest and shortest, so that it costs
   * the same beside a million.
   */
  top(queue: string, limit: number): Promise<readonly LaneState[]>;
  /** Changes a lane's limits, or makes the lane; what is not given stays. */
  set(queue: string, key: string, change: Partial<LaneLimits> & { paused?: boolean }): Promise<void>;
  /** The code's limits and an empty window of its rate; `drop`: nor is it paused, and it is forgotten soon. False: there is none. */
  reset(queue: string, key: string, drop: boolean): Promise<boolean>;
  /** The definition's limits count for the lane again. */
  untune(queue: string, key: string): Promise<void>;
}

/** Kinds that share a budget and take as much of it at each start. */
export interface BudgetScope {
  readonly name: string;
  readonly tokens: number;
  readonly names: readonly string[];
}

/** What a claim under a budget brought. */
export interface BudgetedJobs {
  readonly jobs: ClaimedJob[];
  /** False: nobody has set this budget, and nothing is claimed. */
  readonly known: boolean;
  /** When it will have room for one more; null: it may have room now. Infinity: it is too small for one job. */
  readonly retryInMs: number | null;
}
