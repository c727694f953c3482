/**
 * A clock that moves only when a test says so.
 *
 *   advance ──▶ next stop: the first instant that some timer cannot wait beyond ──▶ leases are renewed ahead ──▶ jump
 *                  ▲                                                                                              │
 *                  └────────── each timer that cannot wait, and at the end each that is due, one by one ◀─────────┘
 *
 * Invariants: time never moves while a call to a database is under way; a timer takes at least 1 ms, like Node's, so that
 * advancing always ends; timers follow the monotonic time, so that setting the wall clock (an operator, NTP) fires none
 * and moves none.
 * Not here: which timers can wait (TimerOptions in clock.ts).
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock, Timer, TimerOptions } from "../clock.ts";
import { type Duration, durationMs } from "../values/duration.ts";

interface Due {
  readonly order: number;
  readonly at: number;
  readonly latestAt: number;
  readonly ahead: ((byMs: number) => void) | undefined;
  readonly fn: () => void;
}

// Each turn runs all promise jobs and the I/O callbacks that have arrived. Several in a row in which nothing is left for the next one,
// because an answer may lead to another call only after some (claim, handler, settle).
const calmTurns = 4;
// Something that sets an immediate in each turn, for ever, must not hold up the clock.
const mostTurns = 1_000;

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
  #calls = 0;
  /** Settles when no call is under way any more. */
  #answered = Promise.withResolvers<void>();
  readonly #timers = new Set<Due>();

  constructor(startMs: number = Date.UTC(2026, 0, 1)) {
    this.#wallOffset = startMs;
  }

  // Arrow functions, so that they can be handed on by themselves: `idFactory(clock.now)`.

  /** Wall clock, epoch milliseconds. */
  readonly now = (): number => this.#wallOffset + this.#elapsed;

  /** How far the clock was advanced, whatever the wall clock was set to. */
  readonly monotonic = (): number => this.#elapsed;

  /** Calls `fn` once, when the clock has been advanced by `ms`; later or ahead where the options allow that. */
  readonly after = (ms: number, fn: () => void, { latestMs = ms, ahead }: TimerOptions = {}): Timer => {
    const at = this.#elapsed + (ms > 1 ? ms : 1);
    const latestAt = Math.max(at, this.#elapsed + (latestMs || 0));
    const due = { at, latestAt, ahead, fn, order: this.#order++ };
    this.#timers.add(due);
    return { cancel: () => void this.#timers.delete(due) };
  };

  /** Time stands still until this has settled. */
  readonly during = (call: Promise<unknown>): void => {
    if (this.#calls++ === 0) this.#answered = Promise.withResolvers();
    const answered = (): void => {
      if (--this.#calls === 0) this.#answered.resolve();
    };
    call.then(answered, answered);
  };

  /** How many timers are set. */
  get pending(): number {
    return this.#timers.size;
  }

  /**
   * Moves both clocks forward, from timer to timer. Polls and upkeep run once, at the end. Before each jump, and before it resolves, it
   * waits for the calls to the database that are under way and for the work that follows from their answers, so that a handler which
   * awaits nothing else has ended. `worker.idle()` waits for all others.
   */
  async advance(by: Duration): Promise<void> {
    const target = this.#elapsed + durationMs(by, "advance");
    await this.#settle();
    while (this.#elapsed < target) {
      this.#elapsed = Math.max(this.#elapsed, await this.#nextStop(target));
      const latest = this.#elapsed < target ? "latestAt" : "at";
      for (let due = this.#firstDue(latest); due !== undefined; due = this.#firstDue(latest)) {
        this.#timers.delete(due);
        due.fn();
        await this.#settle();
      }
    }
  }

  /** Sets the wall clock alone, forward or back, as an operator or NTP does: no timer fires for it. */
  set(ms: number): void {
    this.#wallOffset = ms - this.#elapsed;
  }

  /** The first instant that some timer cannot wait beyond; after those have acted that act ahead of it. */
  async #nextStop(target: number): Promise<number> {
    const timers = [...this.#timers];
    const first = (all: Iterable<Due>, stop: number): number => {
      for (const { latestAt } of all) stop = Math.min(stop, latestAt);
      return stop;
    };
    const stop = first(
      timers.filter(({ ahead }) => ahead === undefined),
      target,
    );
    for (const due of timers) {
      if (due.ahead === undefined || due.at >= stop || !this.#timers.delete(due)) continue;
      due.ahead(stop - this.#elapsed);
      await this.#settle();
    }
    // What they have set: the next renewal after one that failed is not told ahead, but fires at its time.
    return first(this.#timers, stop);
  }

  #firstDue(latest: "at" | "latestAt"): Due | undefined {
    let first: Due | undefined;
    for (const due of this.#timers) {
      if (due[latest] > this.#elapsed) continue;
      if (first === undefined || due.at < first.at || (due.at === first.at && due.order < first.order))
        first = due;
    }
    return first;
  }

  async #settle(): Promise<void> {
    for (let calm = 0, turn = 0; calm < calmTurns; turn++) {
      await nextTurn();
      if (this.#calls > 0) {
        await this.#answered.promise;
        calm = 0;
      } else calm = turn < mostTurns && process.getActiveResourcesInfo().includes("Immediate") ? 0 : calm + 1;
    }
  }
}
