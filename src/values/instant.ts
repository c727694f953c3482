/**
 * Instants and windows of time as people type them into a search or a command line: how long ago, or a date.
 *
 * Invariants: pure; what cannot be read is null, never now; the page in ui/ reads them as well.
 */
import { spanMs } from "./duration.ts";

/** What `since` and `until` take, for who wrote something else. */
export const INSTANT_HELP = "how long ago (30s, 2h, 7d, 1w) or a date (2026-01-31, 2026-01-31T12:00Z)";
export const WINDOW_HELP =
  "a duration (1h), a window (2h..1h, 2026-01-31T12:00Z..2026-01-31T12:05Z), or >=, <= with a date";

/**
 * The instant in epoch milliseconds; null: that is none. Dates only as ISO 8601 has them: JavaScript takes "1" and "mail 5"
 * for dates, too.
 *
 * @example
 * instantOf("2h", now); // now - 7_200_000
 */
export function instantOf(text: string, now: number): number | null {
  const agoMs = spanMs(text);
  if (agoMs >= 0) return Math.max(0, Math.round(now - agoMs));
  const at = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? null : Math.max(0, at);
}

/**
 * A window of instants as the filter `ended` takes it, in epoch milliseconds and both ends counted; null: that is none.
 *
 * @example
 * windowOf("2h..1h", now); // "1767225600000..1767229200000"
 */
export function windowOf(text: string, now: number): string | null {
  const read = (one: string): number | null => (/^\d{1,16}$/.test(one) ? Number(one) : instantOf(one, now));
  const [, from, to] = /^(.+?)\.\.(.+)$/.exec(text) ?? [];
  if (from !== undefined && to !== undefined) {
    const [one, other] = [read(from), read(to)];
    return one === null || other === null ? null : `${Math.min(one, other)}..${Math.max(one, other)}`;
  }
  const [, sign = "", value = ""] = /^(>=|<=|>|<|=)?(.+)$/s.exec(text) ?? [];
  // "More than 2h" could be before or after that instant.
  if (sign !== "" && spanMs(value) >= 0) return null;
  const at = read(value);
  if (at === null) return null;
  return sign === "" ? (/^\d+$/.test(value) ? String(at) : `>=${at}`) : `${sign}${at}`;
}

/**
 * The same with dates for its numbers, as somebody would type it.
 *
 * @example
 * windowDates(">=0"); // ">=1970-01-01T00:00:00.000Z"
 */
export function windowDates(ended: string): string {
  // A number alone is just that instant; a date alone would be from then on.
  return ended
    .replace(/^(?=\d+$)/, "=")
    .replaceAll(/\d+/g, (ms) => (Number(ms) <= 8.64e15 ? new Date(Number(ms)).toISOString() : ms));
}
