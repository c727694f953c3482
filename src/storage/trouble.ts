/**
 * What an error of the store means to a loop that must go on: wait, give up, or look closer.
 *
 * Invariant: only a cause that is named here ends a worker. An error that nobody knows is logged, waited for and tried
 * again: a driver, a socket and a server have more of them than any list (promises F12, O9).
 * Not here: turning a driver's error into a code (each dialect).
 */
import { type ErrorCode, isHoldfastError, StateError, UsageError } from "../errors.ts";

/**
 * `passing`: the database is away, busy, full or failing over; it comes back.
 * `permanent`: trying again cannot help; the operator must act, or the call itself is wrong.
 * `unclear`: nobody knows. A loop logs it and tries again; what was to be written may be at fault, and another may go through.
 */
export type Trouble = "passing" | "permanent" | "unclear";

const passing: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "CONNECTION_LOST",
  "DATABASE_UNREACHABLE",
  // A restore drops the database and makes it again. `open` gives up at once: there it is a wrong name.
  "DATABASE_MISSING",
  "STATEMENT_TIMEOUT",
  "DATABASE_BUSY",
  "DATABASE_FAILING",
  "LOCK_TIMEOUT",
  // A failover makes the old primary read-only for a while, and an operator frees a full disk: a worker that waits
  // continues then.
  "READ_ONLY",
  "DISK_FULL",
]);

/** The causes that end a worker, besides a call that is wrong or comes too late (UsageError, StateError). */
const permanent: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "SCHEMA_MISSING",
  "SCHEMA_TOO_NEW",
  "SCHEMA_TOO_OLD",
  "MOVED",
  "PERMISSION_DENIED",
  "CORRUPT",
  "FILE_REPLACED",
  "DRIVER_MISSING",
  "POSTGRES_TOO_OLD",
  "SQLITE_TOO_OLD",
  "NETWORK_FILE_SYSTEM",
  "CLOSED",
]);

/**
 * Classes a caught error.
 *
 * @example
 * if (troubleOf(error) === "passing") await sleep(clock, 1_000);
 */
export function troubleOf(error: unknown): Trouble {
  if (!isHoldfastError(error)) return "unclear";
  if (passing.has(error.code)) return "passing";
  // Let in before and refused now: a password on its way from old to new, or whoever checks it is down.
  if (error.code === "PERMISSION_DENIED" && String(error.details["sqlState"]).startsWith("28"))
    return "passing";
  const ours = error instanceof UsageError || error instanceof StateError;
  return ours || permanent.has(error.code) ? "permanent" : "unclear";
}

/** The database could not be asked, or not now. One that is failing may fail over one row. */
export function isAway(error: unknown): boolean {
  return troubleOf(error) === "passing" && !(isHoldfastError(error) && error.code === "DATABASE_FAILING");
}

/**
 * The database named a cause that lies in the row. Postgres: data that a column cannot hold (class 22), a constraint (23).
 * SQLite: too big (18), a constraint (19), another type (20). Every other cause passes, or is true for every row alike.
 */
export function isRowsFault(error: unknown): boolean {
  if (!isHoldfastError(error)) return false;
  const { errcode, code } = (error.cause ?? {}) as { errcode?: unknown; code?: unknown };
  if (typeof errcode === "number") return [18, 19, 20].includes(errcode & 0xff);
  return /^(2[23]\w{3}|SQLITE_(TOOBIG|CONSTRAINT|MISMATCH).*)$/.test(
    String(error.details["sqlState"] ?? code),
  );
}

/** Whether the store itself tells when this begins and ends, so that nobody else need to. Not so where only a new connection has no room. */
export function isTold(error: unknown, dialect: "sqlite" | "postgres"): boolean {
  if (dialect !== "postgres" || !isHoldfastError(error) || error.details["sqlState"] === "53300")
    return false;
  return ["CONNECTION_LOST", "DATABASE_UNREACHABLE", "DATABASE_MISSING"].includes(error.code);
}
