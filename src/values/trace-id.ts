/**
 * The id of a trace, as people have it at hand: 32 hexadecimal digits, or the traceparent (W3C Trace Context) that has them in it.
 *
 * Invariant: pure; what leaves here is 32 lower-case digits, and means nothing in a pattern or in JSON.
 */
import { shown, UsageError } from "../errors.ts";

const id = /^(?:[0-9a-f]{2}-)?([0-9a-f]{32})(?:-[0-9a-f]{16}-[0-9a-f]{2})?$/;
/** `traceparent` is version-trace-span-flags. */
const kept = /"traceparent":"[0-9a-f]{2}-([0-9a-f]{32})-/;

/**
 * The id in what somebody gave.
 *
 * @throws UsageError BAD_OPTION
 * @example
 * checkTrace("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"); // "4bf92f3577b34da6a3ce929d0e0e4736"
 */
export function checkTrace(given: unknown): string {
  const found = typeof given === "string" ? id.exec(given.trim().toLowerCase())?.[1] : undefined;
  if (found !== undefined) return found;
  throw new UsageError(
    "BAD_OPTION",
    `trace must be the id of a trace (32 hexadecimal digits) or a traceparent; got ${shown(given)}.`,
    { details: { option: "trace" } },
  );
}

/** The id of the trace that a job was enqueued in, out of its extras (JSON text). */
export function traceIdIn(extras: string | null): string | null {
  return extras === null ? null : (kept.exec(extras)?.[1] ?? null);
}

/** What LIKE finds in the extras of a job of this trace. In a text in JSON the quotes would have backslashes. */
export function tracePattern(trace: string): string {
  return `%"traceparent":"__-${trace}-%`;
}
