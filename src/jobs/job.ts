/**
 * The job: its states, the legal moves between them, and the shapes in which it travels.
 *
 *              ┌──────────── again (retry, throttle, release, crash) ───────────┐
 *              ▼                                                                │
 *   enqueue ─▶ scheduled ──due──▶ ready ──claim──▶ running ──settle──▶ done     │
 *              ▲   │                │                 ├──────────────▶ dead     │
 *              │   └── cancel ──────┴────── cancel ───┼──────────────▶ cancelled│
 *   waiting ───┘                                      └─────────────────────────┘
 *
 * A job that has not ended has a row in `ready`; the statements read its state off that row: a token means running, else
 * the due instant says. A job that has ended has a row in `history` instead. No job has both, because one statement deletes the one and inserts the other.
 *
 * Not here: what an attempt's outcome makes of a job (transition.ts), how rows are written (enqueue/insert.ts, lease/settle.ts).
 */
import type { Backoff } from "./backoff.ts";
import type { LaneLimits } from "../limits/rules/limit-options.ts";
import { LATEST_INSTANT } from "../values/duration.ts";

/** Where a job is in its life. */
export type JobState = "scheduled" | "ready" | "running" | "waiting" | "done" | "dead" | "cancelled";

/** A state from which a job does not move by itself any more. */
export type EndState = "done" | "dead" | "cancelled";

/** Every state, in the order of a job's life. */
export const JOB_STATES: readonly JobState[] = [
  "scheduled",
  "ready",
  "running",
  "waiting",
  "done",
  "dead",
  "cancelled",
];

/** Which state may follow which. An ended job only comes back when somebody asks for it (`jobs.retry`). */
export const LEGAL_MOVES: Readonly<Record<JobState, readonly JobState[]>> = {
  scheduled: ["ready", "cancelled"],
  ready: ["running", "cancelled", "scheduled"],
  running: ["done", "dead", "cancelled", "scheduled", "ready", "waiting"],
  waiting: ["ready", "scheduled", "cancelled", "dead"],
  done: ["ready"],
  dead: ["ready"],
  cancelled: ["ready"],
};

/** `run_at` of a job that waits for something other than time. */
export const WAITING_AT: number = LATEST_INSTANT;

/** A job as `hf.jobs.get(id)` gives it. */
export interface Job<Input = unknown, Output = unknown> {
  readonly id: string;
  /** The kind of job: the name of its definition. */
  readonly name: string;
  readonly queue: string;
  readonly state: JobState;
  readonly priority: number;
  readonly input: Input;
  /** What the handler returned, once done. */
  readonly output: Output | null;
  /** The latest value given to `ctx.progress`. */
  readonly progress: unknown;
  /** Attempts used: 1 during the first run; given back by `Throttled`, `Release` and a crash. */
  readonly attempt: number;
  readonly maxAttempts: number;
  /** How many times a worker died while it held this job. */
  readonly crashes: number;
  /** The latest failure's message. */
  readonly error: string | null;
  readonly errors: readonly JobFailure[];
  /** The unique key. */
  readonly key: string | null;
  readonly lane: string | null;
  /** Free text given at enqueue: why this job exists. */
  readonly context: string | null;
  readonly createdAt: Date;
  /** When it is or was due. Null while it waits for something other than time. */
  readonly runAt: Date | null;
  /** When the latest attempt started. */
  readonly startedAt: Date | null;
  readonly endedAt: Date | null;
  /** Until when the running attempt's lease lasts unless it is renewed. */
  readonly leaseUntil: Date | null;
  readonly workerId: string | null;
  readonly parentId: string | null;
  /** The machine step it is at; null for plain jobs. */
  readonly step: string | null;
  /** What a run that has begun, or a job that has not, waits for; null while it does not. */
  readonly waitsFor: "sleep" | "signal" | "jobs" | "resume" | null;
}

/** One attempt that failed or was lost, as `job.errors` lists it. */
export interface JobFailure {
  readonly at: Date;
  readonly attempt: number;
  readonly message: string;
  readonly stack: string | null;
  /** How long the attempt ran; of a lost one, until its lease passed. Left out where nobody knows (a cancel before the start). */
  readonly ranMs?: number;
  /** It did not fail: it was lost with its worker, which died or let the lease pass. */
  readonly lost?: true;
}

/** Settings of a job that few jobs have: kept as one JSON text, null for plain jobs. */
export interface JobExtras {
  /** Crashes allowed before the job is dead. */
  readonly maxCrashes?: number;
  /** `attempt`: a crash uses up an attempt (the crawler's and forge's rule) instead of being counted apart. */
  readonly countCrashes?: "attempt" | "crash";
  readonly backoff?: Backoff;
  /** False: nothing is kept of this job once it is done. */
  readonly keep?: boolean;
  /** The schedule that made it, and for which slot (epoch milliseconds). */
  readonly schedule?: {
    readonly name: string;
    readonly at: number;
    /** Not by its slot: somebody asked for it. */
    readonly by?: "hand" | "backfill";
  };
  /** What a middleware sends along from the enqueue to the run, in whichever process: a trace's context. */
  readonly carrier?: Readonly<Record<string, string>>;
  /** The version of the definition that enqueued it; left out: 1. */
  readonly version?: number;
  /** The newest version whose code has done a step of it, where that is newer than the one that enqueued it. */
  readonly advanced?: number;
  /** The most attempts that a step of a machine has, where its crashes use up attempts. */
  readonly stepAttempts?: number;
  /** Where a machine starts. The first key of the text: a claim without names knows machines by it (lease/plain-jobs.ts). */
  readonly step?: string;
}

/** A job as the store takes it: checked, encoded, with an id. */
export interface NewJob {
  readonly id: string;
  /** The caller made the id, so a job may have had it before. Left out where the client made it. */
  readonly givenId?: true;
  readonly name: string;
  readonly queue: string;
  readonly priority: number;
  /** JSON text. */
  readonly input: string;
  /** Relative to the database's clock; null when `runAt` is given. Both null: due at once. */
  readonly delayMs: number | null;
  readonly runAt: number | null;
  readonly maxAttempts: number | null;
  readonly timeoutMs: number | null;
  readonly unique: UniqueKey | null;
  readonly lane: string | null;
  readonly context: string | null;
  readonly parentId: string | null;
  /** Start by then, or be cancelled. Epoch milliseconds. */
  readonly deadlineAt: number | null;
  readonly extras: JobExtras | null;
  /** The limits that its lane begins with, if the job is its first. */
  readonly laneLimits?: LaneLimits | null;
  /** Starts when these have ended. Left out by plain jobs. */
  readonly after?: { readonly ids: readonly string[]; readonly policy: "cancel" | "continue" | "wait" };
  /** The batch that it is one job of, or comes after. Left out by plain jobs. */
  readonly batch?: { readonly id: string; readonly role: "job" | "then" };
}

/** Which counts a running job stands in. */
export interface Counted {
  /** The number of its lane. */
  readonly lane: number | null;
  /** The number of its job type. */
  readonly jobType: number;
  /** The name of its queue, when that had limits as it was claimed. */
  readonly queue: string | null;
  /** The instant at which the claim counts as a start, where there is a rate. */
  readonly at?: { readonly lane: number; readonly queue: number };
  /** The tokens that its claim took, where it is given back before it started. */
  readonly budget?: TokensTaken;
}

/** What a claim took of a budget for one job, and when, by the database's clock. */
export interface TokensTaken {
  readonly name: string;
  readonly tokens: number;
  readonly at: number;
}

/** A unique key, as the store enforces it: one holder for each (scope, key). */
export interface UniqueKey {
  readonly scope: string;
  readonly key: string;
  /** The key is also held this long after the enqueue, ended or not. Null: only while the job has not ended. */
  readonly forMs: number | null;
  readonly onConflict: "keep" | "replace" | "debounce";
}

/** What became of one job handed to `enqueue`. `id` is the job that now stands for the request. */
export interface Enqueued {
  readonly status: "enqueued" | "duplicate" | "replaced" | "debounced";
  readonly id: string;
}

/**
 * Where a store keeps a job: on Postgres its id, on SQLite its row's number. Only the statements look into it. A claim
 * hands it over and a settle gives it back, so that no id is looked up in between; jobs that are due at one instant, and
 * lists, are in its order.
 */
export type RowKey = string | number;

/** A job as a claim hands it over: everything an attempt and `decide` need. */
export interface ClaimedJob {
  readonly id: string;
  readonly rowKey: RowKey;
  readonly token: number;
  readonly session: number;
  readonly name: string;
  readonly queue: string;
  readonly priority: number;
  /** JSON text, undecoded: a bad one harms only its own attempt. */
  readonly input: string;
  /** Already counts this attempt. */
  readonly attempt: number;
  readonly crashes: number;
  /** A handler of it has run before, whether or not that attempt was given back. */
  readonly begun: boolean;
  /** It runs only to undo what it has done. */
  readonly undoing: boolean;
  /** Null: the definition's, else the default. */
  readonly maxAttempts: number | null;
  readonly timeoutMs: number | null;
  readonly errors: string | null;
  readonly keyed: boolean;
  readonly lane: string | null;
  readonly context: string | null;
  readonly parentId: string | null;
  readonly runAt: number;
  readonly startedAt: number;
  readonly deadlineAt: number | null;
  readonly extras: JobExtras | null;
  /** A cancel was asked for while an earlier holder had it (only set by `orphans`). */
  readonly cancelReason: string | null;
  /** When the lease passed under which it was held; null: nobody knows any more (only set by `orphans`). */
  readonly leaseUntil?: number | null;
  /** Its claim committed after the holder had closed its session: no process has heard of it (only set by `orphans`). */
  readonly unheard?: true;
  /** Which counts it stands in; left out for jobs without limits. */
  readonly counted?: Counted;
  /** Start by then, by the monotonic clock, or give it back: rates and budgets count starts, and this claim was one. */
  readonly startBy?: number;
  /** The tokens that its claim took. */
  readonly budget?: TokensTaken;
}

/** What a run remembers under one name. */
export type StepKind = "step" | "sleep" | "signal" | "call" | "version" | "undo" | "machine";

export type { LaneLimits };

/** The version of the code that a job needs at least: of that which enqueued it, or has taken it on since. */
export function neededVersion(extras: JobExtras | null): number {
  return Math.max(extras?.version ?? 1, extras?.advanced ?? 1);
}
