/**
 * The words of a job's life: what an attempt came to (`Outcome`), what its row becomes (`Transition`), and both together on
 * their way to the database (`Settlement`).
 *
 * Not here: which outcome leads to which transition (transition.ts).
 */
import type { Backoff, BackoffFunction } from "./backoff.ts";
import type { Failure } from "./failure.ts";
import type { ClaimedJob, Counted, EndState, RowKey } from "./job.ts";

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
      readonly rowKey: RowKey;
      readonly token: number;
      readonly state: EndState;
      /** JSON text. */
      readonly output: string | null;
      /** JSON text, see failure.ts. */
      readonly errors: string | null;
      /** What it is dead of, see fingerprint.ts; absent for every other end. */
      readonly failureGroup?: string;
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
      readonly failureGroup?: string;
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

/** An outcome on its way to the database. */
export interface Settlement {
  readonly job: ClaimedJob;
  readonly outcome: Outcome;
  readonly transition: Transition;
  readonly heldMs: number;
  /** The step of a machine in which it ended; null: the job is no machine. */
  readonly step: string | null;
  /** Attempts that the job, or the machine's step, has in all. Left out: unknown. */
  readonly maxAttempts?: number;
}

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

/** The limits that a definition sets. */
export interface PolicySource {
  readonly attempts: number;
  readonly backoff: Backoff | BackoffFunction | null;
  /** The worker's own default, used after the queue's. */
  readonly workerBackoff?: Backoff | BackoffFunction | null;
  readonly maxCrashes: number;
  readonly countCrashes: "attempt" | "crash";
  readonly keep: boolean;
}

/** The time and chance that a decision may use. `now` and `ranMs` only date the entries of `errors`: a job that is done asks for neither. */
export interface DecideEnv {
  readonly now: () => number;
  /** How long the attempt ran. */
  readonly ranMs?: number;
  readonly random: () => number;
}
