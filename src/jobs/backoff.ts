/**
 * How long to wait before the next attempt.
 *
 *   exponential  base · factor^(n−1), at most max      n = 1, 2, 3 … the attempt that has just failed
 *   power        2^n seconds: 2, 4, 8 …                cja's 2^(errors + 1), which counts the errors before this one
 *   fixed        always the same
 *   off          at once
 *
 * Invariants: a delay is a whole number of milliseconds from 0 to 100 years for every attempt, also 0, −5, 1e6
 * and NaN (peers overflowed at attempt 31 and 310: pgflow#271, river#698); jitter spreads around the capped
 * delay, so that jobs at the cap do not come back all at once; randomness is passed in.
 * Not here: whether there is a next attempt (transition.ts), whose backoff applies (job, kind or queue: the caller).
 */
import { shown, UsageError } from "../errors.ts";
import { type Duration, durationMs, MAX_DELAY_MS } from "../values/duration.ts";
import { checkOptions, isPlainObject } from "../values/options.ts";

/**
 * A backoff as it is stored. Make one with `exponential`, `fixed`, `power` or `immediately`.
 *
 * @example
 * const backoff: Backoff = exponential("1m", { max: "1h" });
 */
export type Backoff =
  | { kind: "exponential"; baseMs: number; maxMs: number; factor: number; jitter: number }
  | { kind: "power"; maxMs: number; jitter: number }
  | { kind: "fixed"; ms: number; jitter: number }
  | { kind: "off" };

/**
 * A backoff of one's own, allowed in a definition but not stored: the worker that runs the job must have it.
 *
 * @example
 * const linear: BackoffFunction = (attempt) => attempt * 1_000;
 */
export type BackoffFunction = (attempt: number) => Duration;

/**
 * Grows by `factor` from `base` up to `max`, spread by ± `jitter` (0.2 is 20 %).
 *
 * @example
 * exponential("1m", { max: "1h", jitter: 0.2 }); // about 1, 2, 4, 8, 16, 32, 60, 60 … minutes
 */
export function exponential(
  base: Duration,
  options?: { max?: Duration; factor?: number; jitter?: number },
): Backoff {
  const given = checkOptions(options, ["max", "factor", "jitter"], "exponential") as {
    max?: Duration;
    factor?: number;
    jitter?: number;
  };
  return {
    kind: "exponential",
    baseMs: durationMs(base, "exponential's base"),
    maxMs: durationMs(given.max ?? "1h", "exponential's max"),
    factor: checkNumber(given.factor ?? 2, "exponential's factor", 1, 1_000),
    jitter: checkJitter(given.jitter ?? 0.2, "exponential's jitter"),
  };
}

/**
 * Always the same delay.
 *
 * @example
 * fixed("1s");
 */
export function fixed(delay: Duration, options?: { jitter?: number }): Backoff {
  const given = checkOptions(options, ["jitter"], "fixed") as { jitter?: number };
  return {
    kind: "fixed",
    ms: durationMs(delay, "fixed's delay"),
    jitter: checkJitter(given.jitter ?? 0, "fixed's jitter"),
  };
}

/**
 * 2, 4, 8, 16 … seconds, as cja waits: 2^(n+1) for the n errors before this one. Without a cap of its own,
 * twenty retries stretch over 24 days.
 *
 * @example
 * power({ max: "1d" });
 */
export function power(options?: { max?: Duration; jitter?: number }): Backoff {
  const given = checkOptions(options, ["max", "jitter"], "power") as { max?: Duration; jitter?: number };
  return {
    kind: "power",
    maxMs: given.max === undefined ? MAX_DELAY_MS : durationMs(given.max, "power's max"),
    jitter: checkJitter(given.jitter ?? 0, "power's jitter"),
  };
}

/**
 * No backoff: the next attempt may start at once.
 *
 * @example
 * defineJob({ name: "probe", retry: { attempts: 3, backoff: immediately() } });
 */
export function immediately(): Backoff {
  return { kind: "off" };
}

/**
 * What applies where nobody says otherwise.
 *
 * @example
 * backoffMs(DEFAULT_BACKOFF, 1, Math.random); // 48_000 … 72_000
 */
export const DEFAULT_BACKOFF: Backoff = Object.freeze(exponential("1m", { max: "1h", jitter: 0.2 }));

/**
 * The delay after attempt `attempt` (1 is the first). `random` gives 0 … 1. A function that throws or gives no
 * duration is replaced by the default: a faulty backoff must not keep a failed job from being settled.
 *
 * @example
 * backoffMs(exponential("1m", { jitter: 0 }), 3, Math.random); // 240_000
 */
export function backoffMs(backoff: Backoff | BackoffFunction, attempt: number, random: () => number): number {
  const n = attempt >= 1 ? attempt : 1;
  if (typeof backoff === "function") return customMs(backoff, n) ?? backoffMs(DEFAULT_BACKOFF, n, random);
  switch (backoff.kind) {
    case "exponential":
      // A base of 0 by an infinite power would be NaN.
      return spread(
        backoff.baseMs === 0 ? 0 : Math.min(backoff.baseMs * backoff.factor ** (n - 1), backoff.maxMs),
        backoff.jitter,
        random,
      );
    case "power":
      return spread(Math.min(1_000 * 2 ** n, backoff.maxMs), backoff.jitter, random);
    case "fixed":
      return spread(backoff.ms, backoff.jitter, random);
    case "off":
      return 0;
  }
}

function customMs(backoff: BackoffFunction, attempt: number): number | undefined {
  try {
    return durationMs(backoff(attempt), "backoff");
  } catch {
    return undefined;
  }
}

function spread(ms: number, jitter: number, random: () => number): number {
  if (jitter === 0) return Math.round(Math.min(ms, MAX_DELAY_MS));
  const around = Math.min(1, Math.max(0, random())) * 2 - 1; // −1 … 1
  const spreadMs = ms * (1 + jitter * (Number.isNaN(around) ? 0 : around));
  return Math.round(Math.min(Math.max(0, spreadMs), MAX_DELAY_MS));
}

/**
 * A backoff that a user wrote: one of ours, or a function.
 *
 * @throws UsageError BAD_OPTION
 * @example
 * checkBackoff(fixed("1s"), "retry.backoff");
 */
export function checkBackoff(value: unknown, what: string): Backoff | BackoffFunction {
  if (typeof value === "function") return value as BackoffFunction;
  const backoff = asBackoff(value);
  if (backoff !== undefined) return backoff;
  throw new UsageError(
    "BAD_OPTION",
    `${what} must be exponential(…), fixed(…), power(), immediately() or a function of the attempt; got ${shown(value)}.`,
    { details: { what } },
  );
}

/**
 * A queue's backoff from its two knobs: `base` (60 s) and `max` (1,800 s), each clamped to 1 s … 1 day, doubling,
 * ± 20 %.
 *
 * @example
 * queueBackoff({ base: "30s" });
 */
export function queueBackoff(options?: { base?: Duration; max?: Duration }): Backoff {
  const { base, max } = checkOptions(options, ["base", "max"], "backoff") as {
    base?: Duration;
    max?: Duration;
  };
  return {
    kind: "exponential",
    baseMs: clampKnob(durationMs(base ?? "60s", "backoff.base")),
    maxMs: clampKnob(durationMs(max ?? "1800s", "backoff.max")),
    factor: 2,
    jitter: 0.2,
  };
}

function clampKnob(ms: number): number {
  return Math.min(Math.max(ms, 1_000), 86_400_000);
}

/**
 * A backoff as it comes out of a row: a fresh object with the known fields only, each in range; undefined for anything
 * else, so that a row that somebody spoilt falls back to the next rule instead of a delay of NaN.
 */
export function asBackoff(value: unknown): Backoff | undefined {
  if (!isPlainObject(value)) return undefined;
  const { kind, baseMs, maxMs, ms, factor, jitter } = value;
  switch (kind) {
    case "exponential":
      if (!isDelay(baseMs) || !isDelay(maxMs) || !isWithin(factor, 1, 1_000) || !isWithin(jitter, 0, 1))
        return undefined;
      return { kind, baseMs, maxMs, factor, jitter };
    case "power":
      return isDelay(maxMs) && isWithin(jitter, 0, 1) ? { kind, maxMs, jitter } : undefined;
    case "fixed":
      return isDelay(ms) && isWithin(jitter, 0, 1) ? { kind, ms, jitter } : undefined;
    case "off":
      return { kind };
    default:
      return undefined;
  }
}

function isDelay(value: unknown): value is number {
  return isWithin(value, 0, MAX_DELAY_MS);
}

function isWithin(value: unknown, min: number, max: number): value is number {
  return typeof value === "number" && value >= min && value <= max;
}

function checkJitter(value: unknown, what: string): number {
  return checkNumber(value, what, 0, 1);
}

function checkNumber(value: unknown, what: string, min: number, max: number): number {
  if (isWithin(value, min, max)) return value;
  throw new UsageError("BAD_OPTION", `${what} must be a number from ${min} to ${max}; got ${shown(value)}.`, {
    details: { what, min, max },
  });
}
