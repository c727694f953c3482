/**
 * A clock that moves only when a test says so.
 *
 * `advance` walks from timer to timer in the order in which they are due, and lets the program run after each
 * one, so that a loop which sets its next timer when the last one fires goes round as often as it would have.
 * Invariants: like Node's, a timer takes at least 1 ms, so that advancing always ends; timers follow the monotonic
 * time, so that setting the wall clock (an operator, NTP) fires none and moves none.
 * Not here: waiting for slow work. A database on a socket may need longer than the turns given here: await the
 * work itself (`worker.idle()`) before asserting.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock, Timer } from "../clock.ts";
import { type Duration, durationMs } from "../policy/duration.ts";

type Due = { at: number; order: number; fn: () => void };

// Each turn runs all promise jobs and the I/O callbacks that have arrived. Several, because one callback may lead to
// the next (claim, handler, settle); few, because every timer that fires pays for them.
const turns = 4;

/**
 * A clock for tests.
 *
 * @example
 * const clock = new FakeClock();
 * const hf = await open("sqlite::memory:", { clock });
 * await hf.enqueue(sendMail, { to }, { delay: "5m" });
 * await clock.advance("5m");
 */
export class FakeClock implements Clock {
  /** The stores must take instants from this clock, not from the database. */
  readonly system = false;
  #elapsed = 0;
  #wallOffset: number;
  #order = 0;
  readonly #timers = new Set<Due>();

  constructor(startMs: number = Date.UTC(2026, 0, 1)) {
    this.#wallOffset = startMs;
  }

  // Arrow functions, so that they can be handed on by themselves: `idFactory(clock.now)`.

  /** Wall clock, epoch milliseconds. */
  readonly now = (): number => this.#wallOffset + this.#elapsed;

  /** How far the clock was advanced, whatever the wall clock was set to. */
  readonly monotonic = (): number => this.#elapsed;

  /** Calls `fn` once, when the clock has been advanced by `ms`. */
  readonly after = (ms: number, fn: () => void): Timer => {
    const due = { at: this.#elapsed + (ms > 1 ? ms : 1), order: this.#order++, fn };
    this.#timers.add(due);
    return { cancel: () => void this.#timers.delete(due) };
  };

  /** How many timers are set. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Moves both clocks forward, fires what comes due on the way, and lets the program run in between. */
  async advance(by: Duration): Promise<void> {
    const target = this.#elapsed + durationMs(by, "advance");
    await settle();
    for (let due = this.#next(target); due !== undefined; due = this.#next(target)) {
      this.#timers.delete(due);
      this.#elapsed = Math.max(this.#elapsed, due.at);
      due.fn();
      await settle();
    }
    this.#elapsed = Math.max(this.#elapsed, target);
    await settle();
  }

  /** Sets the wall clock alone, forward or back, as an operator or NTP does: no timer fires for it. */
  set(ms: number): void {
    this.#wallOffset = ms - this.#elapsed;
  }

  #next(target: number): Due | undefined {
    let first: Due | undefined;
    for (const due of this.#timers) {
      if (due.at > target) continue;
      if (first === undefined || due.at < first.at || (due.at === first.at && due.order < first.order))
        first = due;
    }
    return first;
  }
}

async function settle(): Promise<void> {
  for (let i = 0; i < turns; i++) await nextTurn();
}
