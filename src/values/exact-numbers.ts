/**
 * JSON numbers that a double cannot hold: `12345678901234567890` would come back as …8000. Whoever only passes JSON on
 * (the dashboard, the command line) keeps such a number as its text.
 *
 * Invariant: everything else is what JSON.parse gives; what is too large for a number at all stays Infinity, which an
 * enqueue refuses. No Node module is imported: the dashboard's page uses this too.
 */

/**
 * Whether a number's text says more than the number that JavaScript makes of it. `1.0` and `1e3` do not.
 *
 * @example
 * losesDigits("12345678901234567890"); // true
 */
export function losesDigits(source: string): boolean {
  const value = Number(source);
  return Number.isFinite(value) && decimal(source) !== decimal(String(value));
}

/** Sign, digits without zeros around them, and their exponent: one text for each value. */
function decimal(text: string): string {
  const [, sign = "", whole = "", fraction = "", exponent = "0"] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  const digits = (whole + fraction).replace(/^0+/, "");
  const kept = digits.replace(/(?<!0)0+$/, "");
  if (kept === "") return "0";
  return `${sign}${kept}e${Number(exponent) - fraction.length + digits.length - kept.length}`;
}

interface RawJson {
  rawJSON(text: string): unknown;
}
type Reviver = (this: unknown, key: string, value: unknown, context?: { source?: string }) => unknown;

/**
 * Like JSON.parse; a number that would lose digits is what JSON.rawJSON makes of its text, which JSON.stringify writes as it was.
 *
 * @throws SyntaxError
 * @example
 * JSON.stringify(parseExact('{"n":12345678901234567890}')); // '{"n":12345678901234567890}'
 */
export function parseExact(text: string): unknown {
  const exact: Reviver = (_key, value, context) =>
    typeof value === "number" && context?.source !== undefined && losesDigits(context.source)
      ? (JSON as unknown as RawJson).rawJSON(context.source)
      : value;
  return JSON.parse(text, exact as never) as unknown;
}
