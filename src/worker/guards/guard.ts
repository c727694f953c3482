/**
 * Guards: what a worker itself keeps from being claimed or started (breakers, budgets). The straight path asks each of them in
 * one line; a worker none of whose job types and queues has any has no guards, and a plain job enters none of their files.
 *
 * Not here: limits that the claim's statement keeps (limits/limited-claim.ts), middleware (middleware.ts).
 */
import type { ClaimedJob } from "../../jobs/job.ts";
import type { Outcome } from "../../jobs/outcome.ts";
import type { ClaimCursor, ClaimScope } from "../../jobs/claim-scope.ts";

/** A claim's scope, as a worker asks. */
export interface WorkerScope extends ClaimScope {
  readonly queues: ReadonlyMap<string, number>;
  readonly names: readonly string[];
  /** The slots of each queue that could start a job at once. */
  readonly free: ReadonlyMap<string, number>;
}

/** Narrows claims and looks. A failure of one part of a claim, whose other part brought jobs, is left in `cursor.failed`. */
export interface ClaimGuard {
  /** Before a claim: learns what others know, and tries a breaker that may be tried with one job, which it gives. */
  beforeClaim(session: number, cursor: ClaimCursor): Promise<ClaimedJob | undefined>;
  /** Before a look: learns what others know. */
  beforeLook(): Promise<void>;
  /** The job types that may be claimed now. Removes from `queues` those that may not. */
  narrow(queues: Map<string, number>): readonly string[];
  /** Of these, the job types that are worth a look. */
  worthLook(names: readonly string[]): readonly string[];
  claim(session: number, scope: WorkerScope, cursor: ClaimCursor): Promise<ClaimedJob[]>;
  /** In how many milliseconds a breaker may be tried; null: none is open. */
  readonly probeInMs: number | null;
  /** After a claim or a look: in how many milliseconds something may be claimed that may not be now; null: nothing is kept out. */
  readonly claimInMs: number | null;
}

/** Whether one job may start. */
export type Passage =
  | { readonly go: true }
  | { readonly go: false; readonly waitMs: number; readonly reason: string };

/** Asked before each start, and told of each end. */
export interface StartGuard {
  /** At once, or after a question to the database. */
  passage(job: ClaimedJob): Passage | Promise<Passage>;
  ended(job: ClaimedJob, outcome: Outcome): void;
}

/** The guards of one worker. They come and go with the live settings of its queues. */
export interface Guards {
  claims: ClaimGuard | null;
  starts: StartGuard | null;
}
