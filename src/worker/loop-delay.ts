/**
 * How late the event loop is: the sign by which a worker knows that it has taken on too much.
 *
 * Invariant: a look is about the last quarter of a second or so, never about the whole past, so that an overload
 * that is over is seen to be over.
 * Not here: what is done about it (worker/claimer.ts).
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Clock } from "../clock.ts";

/** Says how late the event loop is now, in milliseconds. */
export interface LoopDelay {
  readonly read: () => number;
  readonly stop: () => void;
}

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
  if (given.loopDelay !== undefined) return { read: given.loopDelay, stop };
  // A fake clock stands still while the machine's runs: their delays mean nothing to each other.
  return given.clock.system ? measured(given.clock) : { read: () => 0, stop };
}

// The mean and not the longest delay: one block of 300 ms that is over says nothing about the next quarter of a
// second, a loop that is always late does.
function measured(clock: Clock): LoopDelay {
  const histogram = monitorEventLoopDelay({ resolution: resolutionMs });
  histogram.enable();
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
  return { read, stop: () => void histogram.disable() };
}
