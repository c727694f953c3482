/**
 * The header Retry-After of HTTP, as a delay: seconds, or a date. Never throws: it is what another server sent.
 */
import { type Duration, durationMs } from "./duration.ts";

// A server that asks for more is asked again after a day: a mistake of its clock should not park a job for a year.
const longestMs = 86_400_000;
// RFC 9110 has three forms of a date; all begin with the day's name. Date.parse alone would take "12" for a month.
const looksLikeDate = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)/i;

/**
 * How many milliseconds the header Retry-After asks to wait: given as seconds or as a date, a day at the most. Without one,
 * or with one that cannot be read, `otherwise`.
 *
 * @throws UsageError BAD_DURATION `otherwise` is no duration
 * @example
 * if (response.status === 429) throw new Throttled(retryAfterMs(response.headers.get("retry-after"), "30s"));
 */
export function retryAfterMs(
  header: string | null | undefined,
  otherwise: Duration = "30s",
  now: number = Date.now(),
): number {
  const fallbackMs = durationMs(otherwise, "otherwise");
  const text = typeof header === "string" ? header.trim() : "";
  const asked = /^\d+(?:\.\d+)?$/.test(text)
    ? Number(text) * 1_000
    : looksLikeDate.test(text)
      ? Date.parse(text) - now
      : Number.NaN;
  return Number.isNaN(asked) ? fallbackMs : Math.ceil(Math.min(longestMs, Math.max(0, asked)));
}
