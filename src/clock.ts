/**
 * Time as an argument: the one place that reads the machine's clocks and sets its timers.
 *
 * Invariants: `monotonic` never goes back; a timer never fires early because its delay did not fit into 32 bits
 * (setTimeout beyond 2^31−1 ms fires after 1 ms: nodejs/node#4541); a cancelled timer never fires.
 * Not here: the fake clock (testing/fake-clock.ts), the database's clock (storage/sqlite/file-clock.ts, storage/postgres/server-clock.ts).
 */
import { readFileSync } from "node:fs";
import { uptime } from "node:os";

/**
 * A timer that has been set.
 *
 * @example
 * const timer = clock.after(1_000, tick);
 * timer.cancel();
 */
export interface Timer {
  /** The function will not be called any more. Harmless when it already was. */
  cancel(): void;
}

/**
 * What a clock that jumps needs to know of a timer. Any other clock calls the function after `ms` and may ignore the rest.
 *
 * @example
 * clock.after(5_000, poll, { latestMs: Infinity });
 */
export interface TimerOptions {
  /** The timer does not keep the process alive. */
  readonly unref?: boolean;
  /** A clock that jumps may be late with this timer, until so many milliseconds from now: a poll finds the same later. Default: `ms`. */
  readonly latestMs?: number;
  /** A clock that jumps calls this instead, before it passes `ms`, with how far it is about to jump: a lease is renewed ahead. */
  readonly ahead?: (byMs: number) => void;
}

/**
 * Where the time comes from.
 *
 * @example
 * const hf = await open("sqlite::memory:", { clock: new FakeClock() });
 */
export interface Clock {
  /** Wall clock, epoch milliseconds. */
  now(): number;
  /** Never goes back and is never set; origin unspecified, but the same in all processes of a machine where `system`; milliseconds. */
  monotonic(): number;
  /** Calls `fn` once, `ms` from now; safe beyond 2^31 ms. */
  after(ms: number, fn: () => void, options?: TimerOptions): Timer;
  /** Told of each call to the database while it is under way: a clock that jumps waits for the answer first. */
  during?(call: Promise<unknown>): void;
  /** True for the machine's clock: the stores may then use the database's own clock for instants. */
  readonly system: boolean;
}

const longestTimeoutMs = 2 ** 31 - 1;
// All threads and processes of a machine agree on this instant; `performance.now` alone counts from the start of each.
const machineOrigin = Number(process.hrtime.bigint()) / 1e6 - performance.now();

/**
 * The machine's clock.
 *
 * @example
 * const startedAt = systemClock.now();
 */
export const systemClock: Clock = {
  system: true,
  now: () => Date.now(),
  monotonic: () => machineOrigin + performance.now(),
  after(ms, fn, options) {
    if (ms > longestTimeoutMs) return afterLong(ms, fn, options);
    // Not a number counts as 0, like a delay that has passed.
    const handle = setTimeout(fn, ms > 0 ? ms : 0);
    if (options?.unref === true) handle.unref();
    return { cancel: () => clearTimeout(handle) };
  },
};

/** In stretches that a timer can wait. Infinity waits until it is cancelled. */
function afterLong(ms: number, fn: () => void, options: TimerOptions | undefined): Timer {
  let leftMs = ms;
  let timer: Timer;
  const arm = (): void => {
    const stretchMs = Math.min(leftMs, longestTimeoutMs);
    leftMs -= stretchMs;
    timer = systemClock.after(stretchMs, leftMs > 0 ? arm : fn, options);
  };
  arm();
  return { cancel: () => timer.cancel() };
}

/**
 * Resolves after `ms`; rejects with the signal's reason as soon as it aborts, and leaves no timer or listener.
 *
 * @example
 * await sleep(clock, 1_000, ctx.signal);
 */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason);
      return;
    }
    const timer = clock.after(ms, () => {
      signal?.removeEventListener("abort", stop);
      resolve();
    });
    function stop(): void {
      timer.cancel();
      reject(signal?.reason);
    }
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/**
 * Tells the clock of a call to the database, and gives it back.
 *
 * @example
 * return during(clock, pool.query(text));
 */
export function during<T>(clock: Clock, call: Promise<T>): Promise<T> {
  clock.during?.(call);
  return call;
}

let boot: string | null | undefined;

/**
 * Names this start of the machine: the monotonic clocks of two starts, or of two machines, cannot be compared. Null where the system does
 * not say (it does on Linux, also in containers).
 *
 * @example
 * if (bootId() !== noted) restarted();
 */
export function bootId(): string | null {
  if (boot !== undefined) return boot;
  try {
    boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim() || null;
  } catch {
    boot = null;
  }
  return boot;
}

/**
 * How long the machine has slept, counted from an instant of its own: of two readings, what lies between. The monotonic clock stands still
 * meanwhile on Linux, and the uptime goes on.
 *
 * @example
 * const slept = sleptMs() - before;
 */
export function sleptMs(): number {
  return uptime() * 1_000 - systemClock.monotonic();
}
