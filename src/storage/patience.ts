/**
 * How a call of a running attempt to the store is repeated: the one rule for whatever an attempt reads or writes.
 *
 *   its answer, or ─┬─ nobody wants it any more (`given`), or no repeat can help ─▶ the error, to whoever asked
 *                   └─ else ─▶ a pause, and again: 50 ms doubling to 1 s, until it answers
 *
 * Invariant: an error that nobody knows never ends an attempt. It is logged, waited for and tried again: the work is done, and
 * failing it for a refusal that passes would do it twice, or leave it half done.
 * Not here: outcomes (lease/settle-faults.ts, which has more to lose), calls of a client (retry-calls.ts), a user's own transaction (never
 * repeated: it is theirs).
 */
import { type Clock, sleep } from "../clock.ts";
import { JobError } from "../errors.ts";
import type { Logger } from "../logger.ts";
import { describeFailure } from "../jobs/failure.ts";
import { isRowsFault, troubleOf } from "./trouble.ts";

const firstPauseMs = 50;
const longestPauseMs = 1_000;

/** How long to wait after so many tries before. */
export function pauseMs(tries: number): number {
  return Math.min(longestPauseMs, firstPauseMs * 2 ** tries);
}

/** Whether the same call would come to the same: a named cause, what was to be written, or what the job itself did wrong. */
export function isHopeless(error: unknown): boolean {
  return troubleOf(error) === "permanent" || isRowsFault(error) || error instanceof JobError;
}

/** Tries again, and says so. */
export class Patience {
  readonly #clock: Clock;
  readonly #log: Pick<Logger, "warn"> | null;

  /** `log`: null where nothing is said. */
  constructor(clock: Clock, log: Pick<Logger, "warn"> | null = null) {
    this.#clock = clock;
    this.#log = log;
  }

  /** `given`: whether nobody wants the answer any more. */
  async repeat<T>(call: () => Promise<T>, given: () => boolean): Promise<T> {
    for (let tries = 0; ; tries += 1) {
      try {
        return await call();
      } catch (error) {
        if (given() || isHopeless(error)) throw error;
        this.tell(error, tries);
        await sleep(this.#clock, pauseMs(tries));
      }
    }
  }

  /** Says that a call is tried again: not each time, or an hour of refusals would fill the log. The store itself tells of a database that is away. */
  tell(error: unknown, tries: number, details: Readonly<Record<string, unknown>> = {}): void {
    const isPowerOfTwo = (tries & (tries + 1)) === 0;
    if (this.#log === null || !isPowerOfTwo || troubleOf(error) === "passing") return;
    this.#log.warn(
      { ...details, tries: tries + 1, error: describeFailure(error).message },
      "the database refused a call of a running job; retrying",
    );
  }
}
