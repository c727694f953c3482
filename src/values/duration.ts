/**
 * Durations and instants as users write them, turned into whole milliseconds.
 *
 * Invariants: the result is a finite, non-negative integer, so no arithmetic downstream can meet NaN, Infinity
 * or an overflow (a delay of 1e15 is clamped, promise A4; an invalid Date once crash-looped cedarjs/cedar#2739).
 * Not here: what a duration is for; limits of single options (a lease of 0) are the callers'.
 */
import { shown, UsageError } from "../errors.ts";

/**
 * Milliseconds, or a string of numbers with units, largest first: "250ms", "90s", "5m", "1h30m", "1.5h", "2d", "1w".
 *
 * @example
 * const delay: Duration = "1h30m";
 */
export type Duration = number | string;

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;
const week = 7 * day;

/**
 * 100 years: longer delays are taken as this one.
 *
 * @example
 * durationMs(1e15, "delay") === MAX_DELAY_MS;
 */
export const MAX_DELAY_MS = 36_525 * day;

/**
 * The latest instant that we store: two of the longest delays before the end of JavaScript's Date, so that an
 * instant plus a delay still is a Date (and far below 2^53 and Postgres's last timestamp).
 *
 * @example
 * new Date(LATEST_INSTANT + MAX_DELAY_MS).toISOString(); // still valid
 */
export const LATEST_INSTANT = 8_640_000_000_000_000 - 2 * MAX_DELAY_MS;

const number = String.raw`(\d+(?:\.\d+)?)`;
const pattern = new RegExp(
  `^(?:${number}w)?(?:${number}d)?(?:${number}h)?(?:${number}m)?(?:${number}s)?(?:${number}ms)?$`,
);
const units = [week, day, hour, minute, second, 1];
const longestText = 64;

/**
 * A duration in whole milliseconds, clamped to MAX_DELAY_MS. Fractions are rounded to the nearest millisecond.
 *
 * @throws UsageError BAD_DURATION, which names `what`.
 * @example
 * durationMs("1h30m", "timeout"); // 5_400_000
 */
export function durationMs(value: Duration, what: string): number {
  const ms = typeof value === "number" ? value : typeof value === "string" ? spanMs(value) : Number.NaN;
  // Written so that NaN is refused too. Infinity is refused rather than clamped: it is a mistake far more often
  // than a wish, and who means "never" can leave the option out.
  if (!(ms >= 0) || (typeof value === "number" && ms === Infinity)) {
    throw new UsageError(
      "BAD_DURATION",
      `${what} must be a duration: a non-negative number of milliseconds, or a string such as ` +
        `"250ms", "90s", "5m", "1h30m", "1.5h", "2d", "1w" (units w d h m s ms, largest first); got ${shown(value)}.`,
      { details: { what } },
    );
  }
  return Math.round(Math.min(ms, MAX_DELAY_MS)) + 0; // −0 becomes 0
}

/**
 * The milliseconds of a duration that is written as text; not a number where it is none.
 *
 * @example
 * spanMs("1h30m"); // 5_400_000
 */
export function spanMs(text: string): number {
  if (text === "" || text.length > longestText) return Number.NaN;
  const parts = pattern.exec(text);
  if (parts === null) return Number.NaN;
  let ms = 0;
  for (const [i, unit] of units.entries()) ms += Number(parts[i + 1] ?? 0) * unit;
  return ms;
}

/**
 * An instant in epoch milliseconds, clamped to what we store.
 *
 * @throws UsageError BAD_INSTANT, which names `what`.
 * @example
 * instantMs(new Date("2026-01-01T00:00:00Z"), "at"); // 1_767_225_600_000
 */
export function instantMs(value: Date | number, what: string): number {
  const ms = typeof value === "number" ? value : isDate(value) ? value.getTime() : Number.NaN;
  if (!Number.isFinite(ms)) {
    const got = isDate(value) ? "an invalid Date" : shown(value);
    throw new UsageError("BAD_INSTANT", `${what} must be a valid Date (or epoch milliseconds); got ${got}.`, {
      details: { what },
    });
  }
  return clampInstant(ms);
}

// Dates of another realm (vm, jest) are Dates too, which `instanceof` denies.
function isDate(value: unknown): value is Date {
  return Object.prototype.toString.call(value) === "[object Date]";
}

/**
 * The nearest instant that we store, a whole millisecond from 1970 to LATEST_INSTANT. Not a number becomes the
 * latest: what nobody can compute must not start at once.
 *
 * @example
 * clampInstant(Number.MAX_VALUE); // LATEST_INSTANT
 */
export function clampInstant(ms: number): number {
  if (!(ms < LATEST_INSTANT)) return LATEST_INSTANT;
  return ms > 0 ? Math.round(ms) : 0;
}
