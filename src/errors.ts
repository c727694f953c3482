/**
 * The errors that Holdfast throws or records. The class says who must act; the code is stable.
 *
 *   UsageError  the caller: the call is wrong; nothing was written
 *   StateError  the caller: the call is right, but the state of the job (lease, client …) does not allow it
 *   StoreError  the operator: the database, its file or its driver; act, or wait
 *   JobError    the reader of a failed job: the cause that ended the attempt
 *   HoldfastError with INTERNAL: a fault in Holdfast
 *
 * Invariants: a code never changes its meaning; a message gives the problem and the remedy; `details` holds
 * plain values only, never an input or a connection string. Expected outcomes are values, not errors.
 * Not here: decisions that handlers throw (jobs/decision.ts), the record of a thrown value (jobs/failure.ts).
 */

/**
 * The codes. Programs branch on them, so a code is never renamed or removed.
 *
 * @example
 * const code: ErrorCode = "LEASE_LOST";
 */
export type ErrorCode =
  // --- UsageError: the call is wrong -------------------------------------------------------------------
  /** An options object has an unknown key. */
  | "UNKNOWN_OPTION"
  /** An option has a value of the wrong type or out of range. */
  | "BAD_OPTION"
  /** A duration is negative, not finite, empty, or has an unknown unit. */
  | "BAD_DURATION"
  /** An instant is not a valid Date. */
  | "BAD_INSTANT"
  /** A name has characters that are not allowed, or is too long. */
  | "BAD_NAME"
  /** A unique key or lane is empty, too long, or not text that can be stored. */
  | "BAD_KEY"
  /** A priority is not an integer in range. */
  | "BAD_PRIORITY"
  /** `holdfast` has no such command. */
  | "UNKNOWN_COMMAND"
  /** A destructive command needs `--force`, or a confirmation on a terminal. */
  | "FORCE_REQUIRED"
  /** holdfast.config.ts cannot be loaded, or has an unknown setting. */
  | "BAD_CONFIG"
  /** The address of the database is not valid. */
  | "BAD_URL"
  /** A cursor did not come from `list`, or came from another filter. */
  | "BAD_CURSOR"
  /** A file given to `holdfast check` is not the history of a run. */
  | "BAD_RUN_FILE"
  /** The input does not fit the job's schema. */
  | "INPUT_INVALID"
  /** JSON cannot hold a value without loss. */
  | "INPUT_NOT_JSON"
  /** A value exceeds the size limit. */
  | "INPUT_TOO_LARGE"
  /** The argument is not a definition made by `defineJob`. */
  | "UNKNOWN_JOB"
  /** The definition has a `unique` function, and the enqueue by name has no `key`. */
  | "KEY_REQUIRED"
  /** The definition has a `lane` function, and the enqueue by name has no `lane`. */
  | "LANE_REQUIRED"
  /** The transaction handle is of an unknown kind, or has no open transaction. */
  | "TX_UNSUPPORTED"
  /** The transaction handle belongs to another database or file than this client. */
  | "TX_WRONG_DATABASE"
  /** An `after` names a job that does not exist, or no longer exists. */
  | "AFTER_UNKNOWN"
  /** Jobs of one batch depend on each other in a cycle, or one on itself. */
  | "AFTER_CYCLE"
  /** A run would wait for its own job. */
  | "WAITS_FOR_ITSELF"
  /** The function of a step or of its compensation called `ctx.step`, `ctx.sleep`, `ctx.waitFor`, `ctx.call`, `ctx.version` or `ctx.commit`. */
  | "INSIDE_STEP"
  /** A call that needs a job's handler was made elsewhere, or too late. */
  | "NOT_IN_A_RUN"
  /** A signal's data does not fit the signal's schema. */
  | "SIGNAL_INVALID"
  /** A worker was started without a queue or without a handler. */
  | "NO_QUEUES"
  /** A worker has two definitions with one name. */
  | "DUPLICATE_NAME"
  /** Lease and heartbeat do not fit together (0 < heartbeat < lease). */
  | "BAD_LEASE"
  /** A cron pattern is not valid, or no date matches it. */
  | "BAD_CRON"
  /** The runtime does not know this time zone. */
  | "BAD_TIMEZONE"
  // --- StateError: the state does not allow the call ----------------------------------------------------------
  /** This holder no longer holds the attempt; its writes are refused. */
  | "LEASE_LOST"
  /** The run has not ended, or its history before the step cannot be reused. */
  | "FORK_REFUSED"
  /** No job has this id. */
  | "JOB_NOT_FOUND"
  /** This Node can neither run TypeScript nor open SQLite. Thrown when the package is imported. */
  | "NODE_TOO_OLD"
  /** The command line: no operation or failure group has this id. */
  | "NOT_FOUND"
  /** The job ended dead, so it has no result. */
  | "JOB_DEAD"
  /** The job ended cancelled, so it has no result. */
  | "JOB_CANCELLED"
  /** The job did not end within the timeout. */
  | "RESULT_TIMEOUT"
  /** The current state does not allow this call. */
  | "ILLEGAL_MOVE"
  /** No schedule has this name. */
  | "SCHEDULE_NOT_FOUND"
  /** A pass of this name is running, here or in another process. */
  | "PASS_RUNNING"
  /** The pass was not renewed in time, and another process may have taken it over. */
  | "PASS_LOST"
  /** Too many failures in a row ended the pass. */
  | "PASS_ABORTED"
  /** The client or the worker has been closed. */
  | "CLOSED"
  // --- StoreError: the operator must act, or wait --------------------------------------------------------------------
  /** The connection broke, and the time for retries has passed. */
  | "CONNECTION_LOST"
  /** No connection could be made. */
  | "DATABASE_UNREACHABLE"
  /** Postgres: the server has no database of this name. `holdfast create` creates it. */
  | "DATABASE_MISSING"
  /** The database did not answer within the deadline of the statement. */
  | "STATEMENT_TIMEOUT"
  /** The database stayed locked by another program. */
  | "DATABASE_BUSY"
  /** The server had an internal error (memory, disk, a failed process); nothing was written. */
  | "DATABASE_FAILING"
  /** Postgres: another open transaction holds a lock that this call needs, mostly on a unique key. */
  | "LOCK_TIMEOUT"
  /** The user or password was refused, or a right is missing. */
  | "PERMISSION_DENIED"
  /** A newer version of Holdfast made the schema. */
  | "SCHEMA_TOO_NEW"
  /** The schema is older than this version needs, and migrating is off. */
  | "SCHEMA_TOO_OLD"
  /** The schema does not exist, and migrating is off. */
  | "SCHEMA_MISSING"
  /** The disk is full. */
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
  /** The SQLite file is on a network file system, where SQLite's locks do not work. */
  | "NETWORK_FILE_SYSTEM"
  /** The SQLite file was removed or replaced while it was open. */
  | "FILE_REPLACED"
  /** The jobs were moved to another database (`holdfast move`), and this one takes no writes. */
  | "MOVED"
  /** A move cannot start or continue: the target is not empty, or the databases do not fit together. */
  | "MOVE_REFUSED"
  /** The target differs from the copy. */
  | "MOVE_INCOMPLETE"
  /** The database refused a statement for another reason; see the cause. */
  | "STORE_FAILED"
  // --- JobError: the reader of a failed job ------------------------------------------------------------------------
  /** The attempt ran for longer than its timeout. */
  | "TIMEOUT"
  /** The stored input (or step, or state) cannot be read. */
  | "DECODE_FAILED"
  /** JSON cannot hold the output. */
  | "OUTPUT_NOT_JSON"
  /** The output exceeds the size limit. */
  | "OUTPUT_TOO_LARGE"
  /** A step failed, after all its tries. */
  | "STEP_FAILED"
  /** A called job ended dead or cancelled. */
  | "CALL_FAILED"
  /** The code no longer matches the run's history. */
  | "DIVERGED"
  /** A machine is at, or was sent to, an unknown step; or a step returned neither next nor finish. */
  | "BAD_MOVE"
  /** The transaction given to `ctx.commit` was not committed. */
  | "NOT_COMMITTED"
  /** A compensation failed, after all its tries. */
  | "UNDO_FAILED"
  /** The job killed its worker too often. */
  | "KILLED_WORKER"
  /** The attempt was stopped because the job was cancelled. */
  | "CANCELLED"
  /** The worker is shutting down and releases the attempt. */
  | "SHUTDOWN"
  /** The job's queue was paused or held, or its worker made quiet. */
  | "PAUSED"
  // --- HoldfastError ------------------------------------------------------------------------------------------------
  /** A fault in Holdfast. Please report it. */
  | "INTERNAL";

/**
 * The optional details and cause of an error.
 *
 * @example
 * const extra: ErrorExtra = { details: { job: id }, cause };
 */
export type ErrorExtra = {
  /** Plain values for programs; never an input or a secret. */
  details?: Readonly<Record<string, unknown>>;
  /** The original error. */
  cause?: unknown;
};

// Symbol.for is shared by all copies of the package in a process (two versions in node_modules, ESM beside a
// bundle), where `instanceof` is not.
const brand = Symbol.for("holdfast.error");
const noDetails: Readonly<Record<string, unknown>> = Object.freeze({});

/**
 * The base class of all errors of Holdfast.
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
 * The call is wrong, and nothing was written. Fix the call.
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
 * The call is right, but the state of the job, lease or client does not allow it.
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
 * A problem of the database, its file or its driver. The operator must act, or wait.
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
 * The cause that ended an attempt, for the reader of a failed job.
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
 * Whether a caught value is an error of Holdfast, also of another copy of the package.
 *
 * @example
 * if (isHoldfastError(error) && error.code === "LEASE_LOST") return;
 */
export function isHoldfastError(error: unknown): error is HoldfastError {
  try {
    return typeof error === "object" && error !== null && brand in error;
  } catch {
    return false; // a Proxy whose traps throw
  }
}

/**
 * A value for a message: short, on one line, without the content of objects.
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
