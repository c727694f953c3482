/**
 * Every error that Holdfast throws or records, classed by who must act, each with a stable code.
 *
 *   UsageError  the caller: the call itself is wrong; nothing was written
 *   StateError  the caller: the call is right, but the job (lease, client …) is not in a state that allows it
 *   StoreError  the operator: the database, its file or its driver; act, or wait
 *   JobError    the reader of a failed job: what ended this attempt
 *   HoldfastError with INTERNAL: us
 *
 * Invariants: a code never changes its meaning; a message says what happened and what to do; `details` holds
 * plain values only, never an input or a connection string. Expected outcomes are values, not errors.
 * Not here: what handlers throw on purpose (jobs/decision.ts), how a thrown value is recorded (jobs/failure.ts).
 */

/**
 * The codes. They are part of the public API: programs branch on them, so they are added to and never renamed.
 *
 * @example
 * const code: ErrorCode = "LEASE_LOST";
 */
export type ErrorCode =
  // --- the caller gave something wrong -------------------------------------------------------------------
  /** An options object has a key that is not an option. */
  | "UNKNOWN_OPTION"
  /** An option has a value of the wrong type or out of range. */
  | "BAD_OPTION"
  /** A duration is negative, not finite, empty, or has an unknown unit. */
  | "BAD_DURATION"
  /** An instant is not a valid Date. */
  | "BAD_INSTANT"
  /** The name of a job, queue, step or other thing has characters that names may not have, or is too long. */
  | "BAD_NAME"
  /** A unique key or lane is empty, too long, or not storable text. */
  | "BAD_KEY"
  /** A priority is not an integer in range. */
  | "BAD_PRIORITY"
  /** There is no such command of `holdfast`. */
  | "UNKNOWN_COMMAND"
  /** A command destroys something: it needs `--force`, or a yes on a terminal. */
  | "FORCE_REQUIRED"
  /** holdfast.config.ts cannot be loaded, or says something that is no setting. */
  | "BAD_CONFIG"
  /** The address of the database is not one that we understand. */
  | "BAD_URL"
  /** A cursor did not come from `list`, or came from another filter. */
  | "BAD_CURSOR"
  | "BAD_RUN_FILE"
  /** The input does not fit the job's schema. */
  | "INPUT_INVALID"
  /** A value to be stored holds something that JSON cannot hold without loss. */
  | "INPUT_NOT_JSON"
  /** A value to be stored is over the size limit. */
  | "INPUT_TOO_LARGE"
  /** No job of this name is defined or registered here. */
  | "UNKNOWN_JOB"
  /** The job's kind has a unique function: enqueue by name must give `key`. */
  | "KEY_REQUIRED"
  /** The job's kind has a lane function: enqueue by name must give `lane`. */
  | "LANE_REQUIRED"
  /** The transaction handle is of a kind that we cannot write through. */
  | "TX_UNSUPPORTED"
  /** The transaction handle belongs to another database or file than this client. */
  | "TX_WRONG_DATABASE"
  /** An `after` names a job that does not exist (any more). */
  | "AFTER_UNKNOWN"
  /** Jobs of one batch wait for each other in a circle, or one for itself. */
  | "AFTER_CYCLE"
  /** A run would wait for its own job. */
  | "WAITS_FOR_ITSELF"
  /** A step's function, or its undo, called `ctx.step`, `ctx.sleep`, `ctx.waitFor`, `ctx.call`, `ctx.version` or `ctx.commit`. */
  | "INSIDE_STEP"
  /** Something that only the handler of a running job can do was asked for elsewhere, or too late. */
  | "NOT_IN_A_RUN"
  /** A signal's data does not fit the signal's schema. */
  | "SIGNAL_INVALID"
  /** A worker was started without a queue or without a handler. */
  | "NO_QUEUES"
  /** A worker was given two definitions with one name. */
  | "DUPLICATE_NAME"
  /** Lease and heartbeat do not fit together (0 < heartbeat < lease). */
  | "BAD_LEASE"
  /** A cron pattern cannot be read, or no date matches it. */
  | "BAD_CRON"
  /** A time zone is not one that this runtime knows. */
  | "BAD_TIMEZONE"
  // --- the thing is not in a state that allows it ----------------------------------------------------------
  /** The attempt is no longer leased to this holder; it may write nothing more. */
  | "LEASE_LOST"
  | "FORK_REFUSED"
  /** No job has this id. */
  | "JOB_NOT_FOUND"
  /** This Node is too old: it can neither run TypeScript nor open SQLite. Thrown when the package is imported. */
  | "NODE_TOO_OLD"
  /** The command line: no operation, or no cause of failures, has this id. */
  | "NOT_FOUND"
  /** The job ended dead, so it has no result. */
  | "JOB_DEAD"
  /** The job ended cancelled, so it has no result. */
  | "JOB_CANCELLED"
  /** The job did not end within the time that the caller would wait. */
  | "RESULT_TIMEOUT"
  /** The job's state does not allow this move. */
  | "ILLEGAL_MOVE"
  /** No schedule has this name. */
  | "SCHEDULE_NOT_FOUND"
  /** A pass of this name is running, here or in another process. */
  | "PASS_RUNNING"
  /** A pass lost its right to run: its process did not renew it in time, and another may have taken over. */
  | "PASS_LOST"
  /** Too much failed in a row, so the pass was given up. */
  | "PASS_ABORTED"
  /** The client or the worker has been closed. */
  | "CLOSED"
  // --- the operator must act, or wait --------------------------------------------------------------------
  /** The connection broke and the deadline for trying again has passed. */
  | "CONNECTION_LOST"
  /** No connection could be made. */
  | "DATABASE_UNREACHABLE"
  /** Postgres: the server has no database of this name. `holdfast create` makes it. */
  | "DATABASE_MISSING"
  /** The database did not answer within the deadline of the statement. */
  | "STATEMENT_TIMEOUT"
  /** The database stayed locked by others for longer than we try. */
  | "DATABASE_BUSY"
  /** The database had an error of its own (out of memory, its disk, a failed process); nothing was written. */
  | "DATABASE_FAILING"
  /** Postgres: somebody's open transaction holds what this needs (a unique key, mostly). */
  | "LOCK_TIMEOUT"
  /** The user or password was refused, or a right is missing. */
  | "PERMISSION_DENIED"
  /** The schema was made by a newer version of Holdfast. */
  | "SCHEMA_TOO_NEW"
  /** The schema is older than this version needs, and migrating is turned off. */
  | "SCHEMA_TOO_OLD"
  /** The schema does not exist, and migrating is turned off. */
  | "SCHEMA_MISSING"
  /** There is no space left for the database. */
  | "DISK_FULL"
  /** The database takes no writes (a replica, a read-only file). */
  | "READ_ONLY"
  /** The database file is damaged. */
  | "CORRUPT"
  /** The SQLite library has a fault that can corrupt the file. */
  | "SQLITE_TOO_OLD"
  /** The Postgres server is older than 14. */
  | "POSTGRES_TOO_OLD"
  /** The driver package is not installed. */
  | "DRIVER_MISSING"
  /** The SQLite file lies on a network file system, where its locks do not work. */
  | "NETWORK_FILE_SYSTEM"
  /** The SQLite file was removed or replaced while it was open. */
  | "FILE_REPLACED"
  /** The jobs were moved to another database (`holdfast move`), and this one takes no writes. */
  | "MOVED"
  /** A move cannot begin or go on: the target is not empty, or the two databases do not fit together. */
  | "MOVE_REFUSED"
  /** What was copied is not what is there. */
  | "MOVE_INCOMPLETE"
  /** The database refused a statement for a reason that we do not know; see the cause. */
  | "STORE_FAILED"
  // --- the reader of a failed job ------------------------------------------------------------------------
  /** The attempt ran for longer than its timeout. */
  | "TIMEOUT"
  /** The stored input (or step, or state) is not what this version can read. */
  | "DECODE_FAILED"
  /** The output holds something that JSON cannot hold. */
  | "OUTPUT_NOT_JSON"
  /** The output is over the size limit. */
  | "OUTPUT_TOO_LARGE"
  /** A step failed, after all its tries. */
  | "STEP_FAILED"
  /** A job that this one called ended dead or cancelled. */
  | "CALL_FAILED"
  /** The code asks for other steps than the run's history has. */
  | "DIVERGED"
  /** A machine stands at, or was sent to, a step that it does not have; or a step returned neither next nor finish. */
  | "BAD_MOVE"
  /** The transaction given to `ctx.commit` was not committed. */
  | "NOT_COMMITTED"
  /** What undoes a step failed, after all its tries. */
  | "UNDO_FAILED"
  /** The job ended its worker's process too often. */
  | "KILLED_WORKER"
  /** The attempt was told to stop because the job was cancelled. */
  | "CANCELLED"
  /** The worker is shutting down and takes the attempt back. */
  | "SHUTDOWN"
  /** The job's queue was paused or held, or its worker made quiet, while the job runs. */
  | "PAUSED"
  // --- us ------------------------------------------------------------------------------------------------
  /** A fault in Holdfast itself: please report it. */
  | "INTERNAL";

/**
 * What may come with an error besides its message.
 *
 * @example
 * const extra: ErrorExtra = { details: { job: id }, cause };
 */
export type ErrorExtra = {
  /** Plain values for programs; never an input or a secret. */
  details?: Readonly<Record<string, unknown>>;
  /** What led to this error. */
  cause?: unknown;
};

// Symbol.for is shared by all copies of the package in a process (two versions in node_modules, ESM beside a
// bundle), where `instanceof` is not.
const brand = Symbol.for("holdfast.error");
const noDetails: Readonly<Record<string, unknown>> = Object.freeze({});

/**
 * The base of all our errors.
 *
 * @example
 * try { await hf.enqueue(job, input); }
 * catch (error) { if (isHoldfastError(error)) console.log(error.code, error.details); }
 */
export class HoldfastError extends Error {
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, extra: ErrorExtra = {}) {
    super(message, "cause" in extra ? { cause: extra.cause } : undefined);
    this.code = code;
    this.details = extra.details ?? noDetails;
  }

  // On the prototype, so that neither shows as a field of each error when it is printed.
  static {
    Object.defineProperty(this.prototype, brand, { value: true });
    nameOf(this.prototype, "HoldfastError");
  }
}

/**
 * The caller gave something wrong. Fix the call; nothing was written.
 *
 * @example
 * throw new UsageError("BAD_PRIORITY", "priority must be an integer; got 1.5", { details: { priority: 1.5 } });
 */
export class UsageError extends HoldfastError {
  static {
    nameOf(this.prototype, "UsageError");
  }
}

/**
 * The call is right, but the job, lease or client is not in a state that allows it.
 *
 * @example
 * throw new StateError("LEASE_LOST", `Job ${id} is no longer leased to worker ${worker}.`, { details: { job: id } });
 */
export class StateError extends HoldfastError {
  static {
    nameOf(this.prototype, "StateError");
  }
}

/**
 * The database, its file or its driver. The operator must act, or wait.
 *
 * @example
 * throw new StoreError("DRIVER_MISSING", "Postgres needs the package `pg`: npm install pg", { cause });
 */
export class StoreError extends HoldfastError {
  static {
    nameOf(this.prototype, "StoreError");
  }
}

/**
 * What the reader of a failed job sees.
 *
 * @example
 * throw new JobError("TIMEOUT", "timeout after 600s", { details: { timeoutMs: 600_000 } });
 */
export class JobError extends HoldfastError {
  static {
    nameOf(this.prototype, "JobError");
  }
}

/**
 * Whether a caught value is one of our errors, also when it comes from another copy of the package.
 *
 * @example
 * if (isHoldfastError(error) && error.code === "LEASE_LOST") return;
 */
export function isHoldfastError(error: unknown): error is HoldfastError {
  try {
    return typeof error === "object" && error !== null && brand in error;
  } catch {
    return false; // a Proxy whose traps throw is not ours
  }
}

/**
 * A value as it may appear in a message: short, on one line, and never the content of an object.
 *
 * @example
 * shown("a\nb");   // "a\nb", in quotes and escaped
 * shown({ a: 1 }); // "an object"
 */
export function shown(value: unknown): string {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value.length > 60 ? `${value.slice(0, 59)}…` : value);
    case "bigint":
      return `the BigInt ${String(value).slice(0, 40)}n`;
    case "object":
      if (value === null) return "null";
      return Array.isArray(value) ? "an array" : "an object";
    case "function":
      return "a function";
    case "symbol":
      return "a symbol";
    default:
      return Object.is(value, -0) ? "-0" : String(value);
  }
}

// Names are set by hand because bundlers rename classes, and on the prototype because V8 reads them there when
// it writes the first line of the stack.
function nameOf(prototype: HoldfastError, name: string): void {
  Object.defineProperty(prototype, "name", { value: name, configurable: true, writable: true });
}
