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
import type { ClaimedJob, Counted, EndState, Place } from "./job.ts";
import { asBackoff, type Backoff, type BackoffFunction, backoffMs, DEFAULT_BACKOFF } from "./backoff.ts";
import { MAX_DELAY_MS } from "../values/duration.ts";
import { appendFailure, type Failure } from "./failure.ts";
import { fingerprint } from "./fingerprint.ts";
import { MOST_COUNTED } from "./job-bounds.ts";

/** What the run of an attempt came to. */
export type Outcome =
  | { readonly kind: "succeeded"; /** JSON text. */ readonly output: string | null }
  | {
      readonly kind: "failed";
      readonly failure: Failure;
      /** In place of the backoff. */ readonly retryInMs?: number;
    }
  | {
      readonly kind: "dead";
      readonly failure: Failure;
      /** The code does not match the run's history: nothing is undone, and a retry with matching code continues the run. */
      readonly diverged?: true;
    }
  | {
      readonly kind: "throttled";
      /** Null: the backoff says. */ readonly delayMs: number | null;
      readonly reason: string;
    }
  | {
      readonly kind: "released";
      readonly delayMs: number;
      readonly reason: string | null;
      /** The handler never ran. */ readonly unstarted?: true;
      /** The handler threw `Release`, and not because it was told to stop. */ readonly thrown?: true;
      /** And so did its run before this one, both without a delay. */ readonly repeated?: true;
      /** Not the handler's own wish: its worker shuts down. */ readonly forced?: true;
      /** A breaker kept it from running. */ readonly breaker?: true;
      /** This worker's code is older than what it needs. */ readonly outdated?: true;
    }
  | {
      readonly kind: "cancelled";
      readonly reason: string;
      /** The handler never ran: no attempt was used. */ readonly unstarted?: true;
    }
  | { readonly kind: "lost" }
  /** The run sleeps or waits: nothing of it stays in memory. */
  | ({ readonly kind: "suspended" } & Wait)
  /** `ctx.commit` ended it in the handler's own transaction. */
  | { readonly kind: "committed" }
  /** A machine goes to its next step after a delay; the step itself is saved. */
  | { readonly kind: "moved"; readonly delayMs: number }
  /** Its steps were undone: it ends as it would have. */
  | { readonly kind: "undone"; readonly state: "dead" | "cancelled"; readonly errors: string | null };

/** A claim that no process has heard of: its answer was lost, so nothing of it has started. */
export const UNHEARD: Outcome = {
  kind: "released",
  delayMs: 0,
  reason: "the answer to its claim was lost",
  unstarted: true,
};

/** What a run waits for. */
export interface Wait {
  readonly waits: "sleep" | "signal" | "jobs";
  /** When it goes on by itself at the latest, by the database's clock; 0: now. */
  readonly at: number | null;
  /** Topics of the signals that it waits for. */
  readonly topics: readonly string[];
  /** How many called jobs it waits for, and whether for all of them. */
  readonly open: number;
  readonly every: boolean;
}

/** What a row becomes. Relative delays: the statement adds the database's now. */
export type Transition =
  | {
      readonly move: "end";
      readonly id: string;
      readonly place: Place;
      readonly token: number;
      readonly state: EndState;
      /** JSON text. */
      readonly output: string | null;
      /** JSON text, see failure.ts. */
      readonly errors: string | null;
      /** What it is dead of, see fingerprint.ts; absent for every other end. */
      readonly errorGroup?: string;
      readonly attempt: number;
      readonly crashes: number;
      readonly keyed: boolean;
      /** False: no history is kept of it. */
      readonly keep: boolean;
      /** Which counts are given back; left out for jobs without limits. */
      readonly counted?: Counted;
      /** No handler of this attempt ran: its start is given back to its rates. */
      readonly unstarted?: true;
      /** True: its steps are undone first; it runs once more for that, and then ends as this says. False: they are never undone by this end. */
      readonly undo?: boolean;
    }
  | {
      readonly move: "again";
      readonly id: string;
      readonly token: number;
      readonly delayMs: number;
      /** It keeps this due time, and with it its position: claims that have got further go back to it. Absent: now and `delayMs`. */
      readonly keeps?: { readonly queue: string; readonly runAt: number };
      readonly errors: string | null;
      /** What this attempt failed of; absent: nothing new, the row keeps its own. */
      readonly errorGroup?: string;
      readonly attempt: number;
      readonly crashes: number;
      /** Goes up by one for `Throttled`; the queue may cool down on it. */
      readonly throttled: boolean;
      /** A handler of it has run: a deadline to start by is met for good. */
      readonly begun: boolean;
      /** Why it waits, where its errors do not say: JSON text of a `Note`. */
      readonly note?: string;
      /** Its holder did not choose to give it back: a cancel that was asked of it stands. */
      readonly cancellable?: true;
      readonly counted?: Counted;
      readonly unstarted?: true;
    }
  /** Asleep, or waiting for a signal or another job. */
  | ({
      readonly move: "wait";
      readonly id: string;
      readonly token: number;
      readonly errors: string | null;
      readonly attempt: number;
      readonly crashes: number;
      readonly counted?: Counted;
      readonly unstarted?: true;
    } & Wait)
  /** Nothing to write: the handler's own transaction has. */
  | {
      readonly move: "none";
      readonly id: string;
      readonly token: number;
      readonly errors: string | null;
      readonly attempt: number;
      readonly crashes: number;
      readonly counted?: Counted;
      readonly unstarted?: true;
    };

/** Why a job went back to the line without having failed. */
export interface Note {
  readonly kind: "throttled" | "released" | "breaker" | "version" | "paused";
  readonly reason: string;
  /** The handler threw `Release` without a delay. */
  readonly thrown?: true;
}

/** The limits that apply to one job. */
export interface Policy {
  readonly maxAttempts: number;
  readonly backoff: Backoff | BackoffFunction;
  readonly maxCrashes: number;
  readonly countCrashes: "attempt" | "crash";
  /** False: a done job leaves nothing behind. Dead and cancelled ones are always kept, or nobody could ask why. */
  readonly keep: boolean;
}

/** Attempts of a job where neither its row nor its definition says. */
export const DEFAULT_ATTEMPTS = 5;

/** Crashes that a job may cause where neither its row nor its definition says. */
export const DEFAULT_CRASHES = 5;

/** What `policyFor` needs of a definition. */
export interface PolicySource {
  readonly attempts: number;
  readonly backoff: Backoff | BackoffFunction | null;
  /** The worker's own default, used after the queue's. */
  readonly workerBackoff?: Backoff | BackoffFunction | null;
  readonly maxCrashes: number;
  readonly countCrashes: "attempt" | "crash";
  readonly keep: boolean;
}

/** What time and chance a decision may use. `now` and `ranMs` only date the entries of `errors`: a job that is done asks for neither. */
export interface DecideEnv {
  readonly now: () => number;
  /** How long the attempt ran. */
  readonly ranMs?: number;
  readonly random: () => number;
}

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
  const extras = job.extras;
  return {
    maxAttempts: job.maxAttempts ?? definition?.attempts ?? extras?.stepAttempts ?? DEFAULT_ATTEMPTS,
    backoff:
      asBackoff(extras?.backoff) ??
      definition?.backoff ??
      asBackoff(queueBackoff) ??
      definition?.workerBackoff ??
      DEFAULT_BACKOFF,
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

const uncounted: Counted = { lane: null, line: 0, queue: null };

function decided(job: ClaimedJob, outcome: Outcome, policy: Policy, env: DecideEnv): Transition {
  switch (outcome.kind) {
    case "succeeded":
      return end(job, "done", { output: outcome.output, keep: policy.keep });
    case "failed":
      return failed(job, outcome.failure, outcome.retryInMs, policy, env);
    case "dead":
      return end(job, "dead", {
        errors: withFailure(job, outcome.failure, env),
        errorGroup: fingerprint(job.name, outcome.failure),
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
  const errorGroup = fingerprint(job.name, failure);
  if (job.attempt >= policy.maxAttempts) return end(job, "dead", { errors, errorGroup });
  return again(job, retryInMs ?? backoffMs(policy.backoff, job.attempt, env.random), { errors, errorGroup });
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
  const errorGroup = fingerprint(job.name, failure);
  if (over) return end(job, "dead", { errors, errorGroup, crashes });
  const attempt = perAttempt ? job.attempt : givenBack(job);
  return again(job, 0, { keeps: true, errors, errorGroup, crashes, attempt });
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
    errorGroup?: string;
    attempt?: number;
    crashes?: number;
    keep?: boolean;
    undo?: false;
  },
): Transition {
  const transition: Transition = {
    move: "end",
    id: job.id,
    place: job.place,
    token: job.token,
    state,
    output: change.output ?? null,
    errors: change.errors ?? job.errors,
    attempt: change.attempt ?? job.attempt,
    crashes: change.crashes ?? job.crashes,
    keyed: job.keyed,
    keep: change.keep ?? true,
  };
  if (change.errorGroup === undefined && job.counted === undefined) return transition;
  return {
    ...transition,
    ...(change.errorGroup === undefined ? null : { errorGroup: change.errorGroup }),
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
    errorGroup?: string;
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
    ...(change.errorGroup === undefined ? {} : { errorGroup: change.errorGroup }),
    attempt: change.attempt ?? job.attempt,
    crashes: change.crashes ?? job.crashes,
    throttled: change.throttled ?? false,
    begun: change.begun ?? true,
    ...(change.note === undefined ? null : { note: change.note }),
    ...(change.cancellable === undefined ? null : { cancellable: change.cancellable }),
    ...(job.counted === undefined ? null : { counted: job.counted }),
  };
}
