/**
 * How late the event loop is: the sign by which a worker knows that it has taken on too much.
 *
 * Invariant: `read` is about the last quarter of a second or so, never about the whole past, so that an overload
 * that is over is seen to be over.
 * Not here: what is done about it (claimer.ts).
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Clock } from "../clock.ts";

/** Says how late the event loop is, in milliseconds. */
export interface LoopDelay {
  /** Now. */
  readonly read: () => number;
  /** The 99th percentile since this was last asked for. */
  readonly p99: () => number;
  readonly stop: () => void;
}

/** What is used of `node:perf_hooks`. Nanoseconds. */
export type DelayHistogram = Pick<
  ReturnType<typeof monitorEventLoopDelay>,
  "count" | "mean" | "percentile" | "reset" | "enable" | "disable"
>;

const windowMs = 250;
const resolutionMs = 20;

/**
 * The probe that is given, or one that measures this process's event loop.
 *
 * @example
 * const delay = loopDelayOf({ clock: systemClock });
 * if (delay.read() > 500) return;
 */
export function loopDelayOf(given: { readonly loopDelay?: () => number; readonly clock: Clock }): LoopDelay {
  const stop = (): void => undefined;
  if (given.loopDelay !== undefined) return { read: given.loopDelay, p99: given.loopDelay, stop };
  // A fake clock stands still while the machine's runs: their delays mean nothing to each other.
  return given.clock.system
    ? measured(given.clock, () => monitorEventLoopDelay({ resolution: resolutionMs }))
    : { read: () => 0, p99: () => 0, stop };
}

export interface OverloadListener {
  /** It is overloaded from now on (true), or no longer. */
  readonly changed: (overloaded: boolean, delayMs: number) => void;
  /** It was found to be overloaded, again or for the first time. */
  readonly overloaded: () => void;
}

/** Whether the event loop is too late for more work. */
export class Overload {
  readonly #delay: LoopDelay;
  readonly #mostMs: number;
  readonly #on: OverloadListener;
  #overloaded = false;

  constructor(delay: LoopDelay, mostMs: number, on: OverloadListener) {
    this.#delay = delay;
    this.#mostMs = mostMs;
    this.#on = on;
  }

  isOver(): boolean {
    const delayMs = this.#delay.read();
    const overloaded = delayMs > this.#mostMs;
    if (overloaded || this.#overloaded) this.#tell(overloaded, delayMs);
    return overloaded;
  }

  #tell(overloaded: boolean, delayMs: number): void {
    const changed = overloaded !== this.#overloaded;
    this.#overloaded = overloaded;
    if (changed) this.#on.changed(overloaded, delayMs);
    if (overloaded) this.#on.overloaded();
  }
}

// The mean and not the longest delay: one block of 300 ms that is over says nothing about the next quarter of a
// second, a loop that is always late does.
/** For `loopDelayOf` and its test. Two histograms: each is emptied by its own reader. */
export function measured(clock: Clock, make: () => DelayHistogram): LoopDelay {
  const histogram = make();
  const long = make();
  histogram.enable();
  long.enable();
  let since = clock.monotonic();
  let last = 0;
  const read = (): number => {
    const now = clock.monotonic();
    if (now - since < windowMs || histogram.count === 0) return last;
    last = Math.max(0, histogram.mean / 1e6 - resolutionMs);
    histogram.reset();
    since = now;
    return last;
  };
  const p99 = (): number => {
    const late = long.count === 0 ? 0 : Math.max(0, long.percentile(99) / 1e6 - resolutionMs);
    long.reset();
    return late;
  };
  const stop = (): void => {
    histogram.disable();
    long.disable();
  };
  return { read, p99, stop };
}
