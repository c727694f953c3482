/**
 * Trying again: what the client does when the database was busy or went away.
 *
 *   conflict  (busy, deadlock, serialisation)  100 ms, 300 ms, 1 s, then it surfaces       any call: nothing happened
 *   lost      (connection gone or not made)    100 ms doubling to 1 s, until `retryFor`    reads, and writes that may be repeated
 *   failing   (the server's memory or disk)    as a conflict, then as lost
 *   else      surfaces at once
 *
 * Invariants: each repetition after a conflict is logged; classified by code, never by the words of a message; waits by the clock that is passed in. An
 * enqueue may be repeated because its ids are made here: a commit whose answer was lost changes nothing twice.
 * Not here: a worker's patience with the database (worker/claim-faults.ts, lease/settle-faults.ts), a user's transaction (never tried again: it is theirs).
 */
import { type Clock, sleep } from "../clock.ts";
import { type HoldfastError, isHoldfastError } from "../errors.ts";
import type { Logger } from "../logger.ts";

const conflictDelaysMs = [100, 300, 1_000] as const;
const firstLostDelayMs = 100;
const longestLostDelayMs = 1_000;

const lostCodes: ReadonlySet<string> = new Set([
  "CONNECTION_LOST",
  "DATABASE_UNREACHABLE",
  "STATEMENT_TIMEOUT",
  "DATABASE_FAILING",
]);
// Nothing happened, because somebody else was in the way. Postgres: serialization_failure, deadlock_detected, lock_not_available. Ours: SQLite's BUSY and LOCKED.
const conflictCodes: ReadonlySet<string> = new Set([
  "DATABASE_BUSY",
  "DATABASE_FAILING",
  "LOCK_TIMEOUT",
  "40001",
  "40P01",
  "55P03",
  "SQLITE_BUSY",
  "SQLITE_LOCKED",
]);

/** Whether the database could not be reached, or stopped answering; what was sent may have happened. One that does not exist stays so. */
export function isLost(error: unknown): error is HoldfastError {
  return isHoldfastError(error) && lostCodes.has(error.code);
}

function codeAmong(error: unknown, codes: ReadonlySet<string>): string | null {
  let link: unknown = error;
  // A driver's own code may sit below ours; a circle of causes must not hold us.
  for (let depth = 0; depth < 5 && typeof link === "object" && link !== null; depth++) {
    const { code, cause } = link as { code?: unknown; cause?: unknown };
    if (typeof code === "string" && codes.has(code)) return code;
    link = cause;
  }
  return null;
}

/** Tries a call again as the table above says. */
export class Retry {
  readonly #clock: Clock;
  readonly #retryForMs: number;
  readonly #log: Pick<Logger, "warn">;
  /** How often anything was tried again. */
  retries = 0;

  constructor(clock: Clock, retryForMs: number, log: Pick<Logger, "warn">) {
    this.#clock = clock;
    this.#retryForMs = retryForMs;
    this.#log = log;
  }

  /** For reads, and for writes that are the same when they happen twice. */
  repeatable<T>(call: () => Promise<T>): Promise<T> {
    return this.#run(call, this.#retryForMs);
  }

  /** For writes whose answer matters: only what surely did not happen is tried again. */
  once<T>(call: () => Promise<T>): Promise<T> {
    return this.#run(call, 0);
  }

  async #run<T>(call: () => Promise<T>, lostForMs: number): Promise<T> {
    const patience = { startedAt: this.#clock.monotonic(), lostForMs, conflicts: 0, losses: 0 };
    for (;;) {
      try {
        return await call();
      } catch (error) {
        await this.#wait(error, patience);
      }
    }
  }

  /** Waits until the call may be tried again; throws its error where it may not. */
  async #wait(error: unknown, patience: Patience): Promise<void> {
    const { startedAt, lostForMs } = patience;
    const leftMs = lostForMs - (this.#clock.monotonic() - startedAt);
    let delayMs: number | undefined;
    const conflict = codeAmong(error, conflictCodes);
    if (conflict !== null) delayMs = conflictDelaysMs[patience.conflicts++];
    if (conflict !== null && delayMs !== undefined)
      this.#log.warn(
        { delayMs, tries: patience.conflicts, code: conflict },
        `the database was busy (${conflict}): the call is repeated in ${delayMs} ms`,
      );
    // Once in any case: the deadline of a single statement may be as long as all the time that there is.
    const mayRepeat = leftMs > 0 || (patience.losses === 0 && lostForMs > 0);
    if (delayMs === undefined && isLost(error) && mayRepeat)
      delayMs = Math.min(firstLostDelayMs * 2 ** patience.losses++, longestLostDelayMs, Math.max(leftMs, 1));
    if (delayMs === undefined) throw error;
    this.retries += 1;
    await sleep(this.#clock, delayMs);
  }
}

/** How long a call has been tried, and what it has met. */
interface Patience {
  readonly startedAt: number;
  readonly lostForMs: number;
  conflicts: number;
  losses: number;
}
