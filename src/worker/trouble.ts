/**
 * What an error of the store means to a loop that must go on: wait, give up, or look closer.
 *
 * Invariant: an error that we do not know is never taken for a passing one, or a bug would be retried in silence
 * for ever (checklist F12, F14).
 * Not here: turning a driver's error into a code (each dialect).
 */
import { type ErrorCode, isHoldfastError } from "../errors.ts";

/**
 * `passing`: the database is away, busy, full or failing over; it comes back.
 * `permanent`: trying again cannot help; the operator must act, or it is our own fault.
 * `unclear`: the database refused this statement for a reason of its own; another may go through.
 */
export type Trouble = "passing" | "permanent" | "unclear";

const passing: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "CONNECTION_LOST",
  "DATABASE_UNREACHABLE",
  "STATEMENT_TIMEOUT",
  "DATABASE_BUSY",
  "LOCK_TIMEOUT",
  // A failover makes the old primary read-only for a while, and a full disk is emptied by its operator: a worker
  // that waits is there when that is over (RELIABILITY.md P3, P9, S4).
  "READ_ONLY",
  "DISK_FULL",
]);

/**
 * Classes a caught error.
 *
 * @example
 * if (troubleOf(error) === "passing") await sleep(clock, 1_000);
 */
export function troubleOf(error: unknown): Trouble {
  if (!isHoldfastError(error)) return "permanent";
  if (passing.has(error.code)) return "passing";
  // Let in before and refused now: a password on its way from old to new, or whoever checks it is down.
  if (error.code === "PERMISSION_DENIED" && String(error.details["sqlState"]).startsWith("28"))
    return "passing";
  return error.code === "STORE_FAILED" ? "unclear" : "permanent";
}
