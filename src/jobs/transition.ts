/**
 * Every rule of a job's life, in one pure function: what an attempt's outcome makes of the job.
 *
 *   succeeded ─▶ done                         cancelled ─▶ cancelled
 *   failed    ─▶ again after the backoff, or dead when the attempts are used up
 *   dead      ─▶ dead; diverged: no undo      throttled ─▶ again, attempt given back, own counter
 *   released  ─▶ again in its old position, attempt given back; a handler's second `Release` in a row waits 1 s
 *   suspended ─▶ waits, attempt given back     moved  ─▶ again at the next step, counters anew
 *   undone    ─▶ dead or cancelled, as it would have been before its steps were undone
 *   lost      ─▶ again in its old position, attempt given back, one crash more; dead after too many; cancelled if that was asked
 *
 * Invariants: nothing here reads a clock, a database or a random source of its own; delays are relative, because
 * the statement that applies them adds the database's now; `attempt` never goes below 0; a limit in the row wins
 * over the definition's, that over the queue's, that over the worker's, and that over the default.
 * Not here: how an attempt comes to its outcome (worker/attempt.ts), how a transition is written (lease/settle.ts).
 */
import type { ClaimedJob, Counted } from "./job.ts";
import type { DecideEnv, Note, Outcome, Policy, PolicySource, Transition } from "./outcome.ts";
import { asBackoff, type Backoff, backoffMs, DEFAULT_BACKOFF } from "./backoff.ts";
import { MAX_DELAY_MS } from "../values/duration.ts";
import { appendFailure, type Failure } from "./failure.ts";
import { fingerprint } from "./fingerprint.ts";
import { MOST_COUNTED } from "./job-bounds.ts";

/** A claim that no process has heard of: its answer was lost, so nothing of it has started. */
export const UNHEARD: Outcome = {
  kind: "released",
  delayMs: 0,
  reason: "the answer to its claim was lost",
  unstarted: true,
};

/** Attempts of a job where neither its row nor its definition says. */
export const DEFAULT_ATTEMPTS = 5;

/** Crashes that a job may cause where neither its row nor its definition says. */
export const DEFAULT_CRASHES = 5;

/**
 * The limits of a job: the row's, else the definition's, else the queue's, else the worker's, else the defaults.
 *
 * @example
 * const policy = policyFor(job, definitions.get(job.name) ?? null, queue.backoff);
 */
export function policyFor(
  job: ClaimedJob,
  definition: PolicySource | null,
  queueBackoff: Backoff | null,
): Policy {
  const { extras } = job;
  // Few jobs have a backoff in their row or their queue: the others are spared its checks.
  const ofJob = extras?.backoff === undefined ? undefined : asBackoff(extras.backoff);
  const ofQueue = queueBackoff === null ? undefined : asBackoff(queueBackoff);
  return {
    maxAttempts: job.maxAttempts ?? definition?.attempts ?? extras?.stepAttempts ?? DEFAULT_ATTEMPTS,
    backoff: ofJob ?? definition?.backoff ?? ofQueue ?? definition?.workerBackoff ?? DEFAULT_BACKOFF,
    maxCrashes: extras?.maxCrashes ?? definition?.maxCrashes ?? DEFAULT_CRASHES,
    countCrashes: extras?.countCrashes ?? definition?.countCrashes ?? "crash",
    keep: extras?.keep ?? definition?.keep ?? true,
  };
}

/**
 * What the job becomes.
 *
 * @example
 * const transition = decide(job, { kind: "failed", failure }, policy, { now: () => clock.now(), random: Math.random });
 */
export function decide(job: ClaimedJob, outcome: Outcome, policy: Policy, env: DecideEnv): Transition {
  const transition = decided(job, outcome, policy, env);
  const unstarted =
    (outcome.kind === "released" || outcome.kind === "cancelled") && outcome.unstarted === true;
  if (!unstarted || (job.counted ?? job.budget) === undefined) return transition;
  if (job.budget === undefined) return { ...transition, unstarted: true };
  return { ...transition, unstarted: true, counted: { ...(job.counted ?? uncounted), budget: job.budget } };
}

const uncounted: Counted = { lane: null, jobType: 0, queue: null };

function decided(job: ClaimedJob, outcome: Outcome, policy: Policy, env: DecideEnv): Transition {
  switch (outcome.kind) {
    case "succeeded":
      return end(job, "done", { output: outcome.output, keep: policy.keep });
    case "failed":
      return failed(job, outcome.failure, outcome.retryInMs, policy, env);
    case "dead":
      return end(job, "dead", {
        errors: withFailure(job, outcome.failure, env),
        failureGroup: fingerprint(job.name, outcome.failure),
        ...(outcome.diverged === true ? { undo: false } : null),
      });
    case "throttled":
      return again(job, outcome.delayMs ?? backoffMs(policy.backoff, job.attempt, env.random), {
        attempt: givenBack(job),
        throttled: true,
        note: noteOf("throttled", outcome.reason),
      });
    case "released":
      return again(job, outcome.delayMs > 0 ? outcome.delayMs : releasedAgainMs(outcome), {
        keeps: true,
        attempt: givenBack(job),
        begun: outcome.unstarted === true ? job.begun : true,
        ...(outcome.unstarted === true || outcome.forced === true ? { cancellable: true } : null),
        ...releaseNote(outcome),
      });
    case "cancelled":
      return end(job, "cancelled", {
        errors: withFailure(job, { message: outcome.reason, stack: null }, env),
        attempt: outcome.unstarted === true ? givenBack(job) : job.attempt,
      });
    case "lost":
      return lost(job, policy, env);
    case "suspended": {
      const { kind: _kind, ...wait } = outcome;
      // It has come further: what took its workers down before was not this.
      return { move: "wait", ...standing(job), attempt: givenBack(job), crashes: 0, ...wait };
    }
    case "committed":
      return { move: "none", ...standing(job) };
    case "moved":
      return again(job, outcome.delayMs, { attempt: 0, crashes: 0 });
    case "undone":
      return end(job, outcome.state, { errors: outcome.errors ?? job.errors ?? undefined });
  }
}

const releaseAgainMs = 1_000;

/**
 * A `Release` without a delay keeps the job's position. A second one in a row puts the job back: a handler that releases
 * its job in every run would otherwise get it again at once, for ever, before all others.
 */
function releasedAgainMs(outcome: Outcome & { kind: "released" }): number {
  return outcome.repeated === true ? releaseAgainMs : 0;
}

/** A `Release` without a delay; whether it is the second in a row depends on the note of the run before. */
export function mayRepeat(job: ClaimedJob, outcome: Outcome): outcome is Outcome & { kind: "released" } {
  return outcome.kind === "released" && outcome.thrown === true && outcome.delayMs === 0 && job.begun;
}

/** How often more than its attempts a run is begun whose steps are to be undone, and that ends before it comes to them. */
const undoRuns = 5;

/**
 * An attempt that was to undo steps has ended before it came to them (its handler threw, or returned, before its first step):
 * another one tries, and in the end the job is dead and says so.
 */
export function triedToUndo(
  job: ClaimedJob,
  ended: Transition & { readonly move: "end" },
  policy: Policy,
  env: DecideEnv,
): Transition {
  const errors = ended.state === "done" ? job.errors : ended.errors;
  if (job.attempt < policy.maxAttempts + undoRuns)
    return again(job, backoffMs(policy.backoff, job.attempt, env.random), errors === null ? {} : { errors });
  const message =
    "UNDO_FAILED: its steps were not compensated, because its handler ended before it reached them";
  return end(job, "dead", { errors: withFailure({ ...job, errors }, { message, stack: null }, env) });
}

function standing({ id, token, errors, attempt, crashes, counted }: ClaimedJob) {
  return { id, token, errors, attempt, crashes, ...(counted === undefined ? null : { counted }) };
}

function failed(
  job: ClaimedJob,
  failure: Failure,
  retryInMs: number | undefined,
  policy: Policy,
  env: DecideEnv,
): Transition {
  const errors = withFailure(job, failure, env);
  const failureGroup = fingerprint(job.name, failure);
  if (job.attempt >= policy.maxAttempts) return end(job, "dead", { errors, failureGroup });
  return again(job, retryInMs ?? backoffMs(policy.backoff, job.attempt, env.random), {
    errors,
    failureGroup,
  });
}

/**
 * The worker died, or let the lease pass. The job may be innocent (a deploy, a crash of its neighbour), so it goes
 * back to the line at once and keeps its attempt; but each time is counted, because the one that did it would
 * otherwise take down one worker after the other (Sidekiq's "poison pill"; promises C8, N15).
 */
function lost(job: ClaimedJob, policy: Policy, env: DecideEnv): Transition {
  const crashes = Math.min(job.crashes + 1, MOST_COUNTED);
  if (job.cancelReason !== null) {
    return end(job, "cancelled", {
      errors: withFailure(job, { message: job.cancelReason, stack: null }, heldUntil(job, env)),
      crashes,
    });
  }
  const perAttempt = policy.countCrashes === "attempt";
  const over = perAttempt ? job.attempt >= policy.maxAttempts : crashes >= policy.maxCrashes;
  const message = over
    ? `killed its worker ${crashes} ${crashes === 1 ? "time" : "times"}`
    : `its worker died (crash ${crashes})`;
  const failure = { message, stack: null, code: "KILLED_WORKER" };
  const errors = withFailure(job, failure, heldUntil(job, env), true);
  const failureGroup = fingerprint(job.name, failure);
  if (over) return end(job, "dead", { errors, failureGroup, crashes });
  const attempt = perAttempt ? job.attempt : givenBack(job);
  return again(job, 0, { keeps: true, errors, failureGroup, crashes, attempt });
}

/** What is lost is lost when its lease passes, whenever somebody finds it: both instants are of the database's clock. */
function heldUntil({ leaseUntil, startedAt }: ClaimedJob, env: DecideEnv): DecideEnv {
  if (leaseUntil === undefined || leaseUntil === null) return env;
  return { ...env, now: () => leaseUntil, ranMs: leaseUntil - startedAt };
}

function givenBack(job: ClaimedJob): number {
  return Math.max(0, job.attempt - 1);
}

function withFailure(job: ClaimedJob, failure: Failure, env: DecideEnv, lost = false): string {
  return appendFailure(job.errors, {
    at: env.now(),
    attempt: job.attempt,
    message: failure.message,
    stack: failure.stack,
    ...(env.ranMs === undefined ? {} : { ranMs: env.ranMs }),
    ...(lost ? { lost } : {}),
  });
}

function end(
  job: ClaimedJob,
  state: "done" | "dead" | "cancelled",
  change: {
    output?: string | null;
    errors?: string | undefined;
    failureGroup?: string;
    attempt?: number;
    crashes?: number;
    keep?: boolean;
    undo?: false;
  },
): Transition {
  const transition: Transition = {
    move: "end",
    id: job.id,
    rowKey: job.rowKey,
    token: job.token,
    state,
    output: change.output ?? null,
    errors: change.errors ?? job.errors,
    attempt: change.attempt ?? job.attempt,
    crashes: change.crashes ?? job.crashes,
    keyed: job.keyed,
    keep: change.keep ?? true,
  };
  if (change.failureGroup === undefined && job.counted === undefined) return transition;
  return {
    ...transition,
    ...(change.failureGroup === undefined ? null : { failureGroup: change.failureGroup }),
    ...(change.undo === undefined ? null : { undo: change.undo }),
    ...(job.counted === undefined ? null : { counted: job.counted }),
  };
}

const noteChars = 1_024;

/** What a worker gives back before it has started it, because it holds too much or stops, is nobody's business. */
function releaseNote(outcome: Outcome & { kind: "released" }): { note: string } | null {
  const { reason } = outcome;
  if (reason === null) return null;
  if (outcome.breaker === true) return { note: noteOf("breaker", reason) };
  if (outcome.outdated === true) return { note: noteOf("version", reason) };
  if (outcome.unstarted === true) return null;
  return { note: noteOf("released", reason, outcome.thrown === true && outcome.delayMs === 0) };
}

function noteOf(kind: Note["kind"], reason: string, thrown = false): string {
  const note: Note = { kind, reason: reason.slice(0, noteChars), ...(thrown ? { thrown } : null) };
  return JSON.stringify(note);
}

function again(
  job: ClaimedJob,
  delayMs: number,
  change: {
    /** Without a delay it keeps its due time. */ keeps?: true;
    errors?: string;
    failureGroup?: string;
    attempt?: number;
    crashes?: number;
    throttled?: boolean;
    begun?: boolean;
    note?: string;
    cancellable?: true;
  },
): Transition {
  return {
    move: "again",
    id: job.id,
    token: job.token,
    delayMs: delayMs > 0 ? Math.min(Math.round(delayMs), MAX_DELAY_MS) : 0,
    ...(change.keeps === true && !(delayMs > 0) ? { keeps: { queue: job.queue, runAt: job.runAt } } : null),
    errors: change.errors ?? job.errors,
    ...(change.failureGroup === undefined ? {} : { failureGroup: change.failureGroup }),
    attempt: change.attempt ?? job.attempt,
    crashes: change.crashes ?? job.crashes,
    throttled: change.throttled ?? false,
    begun: change.begun ?? true,
    ...(change.note === undefined ? null : { note: change.note }),
    ...(change.cancellable === undefined ? null : { cancellable: change.cancellable }),
    ...(job.counted === undefined ? null : { counted: job.counted }),
  };
}
