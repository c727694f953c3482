/**
 * Checks of options objects: nothing that a user writes is silently ignored.
 *
 * Invariants: an unknown key is an error that names the key and the nearest real one; a `__proto__` key (from
 * parsed JSON) is just one more unknown key, so no option can reach a prototype.
 * Not here: what each option means; every function checks its own values.
 */
import { type ErrorCode, shown, UsageError } from "../errors.ts";

/**
 * The options as a record, or an error for anything but a plain object with known keys. `undefined` gives an
 * empty record. Keys whose value is `undefined` count as not given, but their names are checked all the same.
 *
 * @throws UsageError BAD_OPTION, UNKNOWN_OPTION
 * @example
 * const options = checkOptions({ dealy: "5m" }, ["delay", "at"], "enqueue"); // throws: did you mean "delay"?
 */
export function checkOptions(
  value: unknown,
  allowed: readonly string[],
  what: string,
): Record<string, unknown> {
  if (value === undefined) return {};
  if (!isPlainObject(value)) {
    throw new UsageError(
      "BAD_OPTION",
      `The options of ${what} must be a plain object; got ${shown(value)}.`,
      { details: { what } },
    );
  }
  for (const key of Object.keys(value)) {
    if (allowed.includes(key)) continue;
    const near = nearest(key, allowed);
    throw new UsageError(
      "UNKNOWN_OPTION",
      `${what} has no option ${shown(key)}. ` +
        (near === undefined ? `Its options are: ${allowed.join(", ")}.` : `Did you mean ${shown(near)}?`),
      { details: near === undefined ? { what, option: key } : { what, option: key, suggestion: near } },
    );
  }
  return value;
}

/**
 * Whether a value is an object literal (of any realm) or one without a prototype; not an array or a class's instance.
 *
 * @example
 * isPlainObject({}); // true
 * isPlainObject(new Map()); // false
 */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return (
    prototype === null ||
    prototype === Object.prototype ||
    (Object.getPrototypeOf(prototype) === null && !Array.isArray(value))
  );
}

/**
 * An integer within its bounds.
 *
 * @throws UsageError BAD_OPTION, or the code that is given.
 * @example
 * checkInteger(5, "retry.attempts", { min: 1, max: 32_767 }); // 5
 */
export function checkInteger(
  value: unknown,
  what: string,
  bounds: { min: number; max: number; code?: ErrorCode },
): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= bounds.min && value <= bounds.max) {
    return value + 0; // −0 becomes 0
  }
  throw new UsageError(
    bounds.code ?? "BAD_OPTION",
    `${what} must be an integer from ${bounds.min} to ${bounds.max}; got ${shown(value)}.`,
    {
      details: { what, min: bounds.min, max: bounds.max },
    },
  );
}

/**
 * What the writer of `key` probably meant; undefined where nothing is near.
 *
 * @example
 * nearest("dealy", ["delay", "at"]); // "delay"
 * nearest("retries", ["retry", "run"]); // "retry"
 */
export function nearest(key: string, allowed: readonly string[]): string | undefined {
  if (key.length > 40) return undefined;
  const written = key.toLowerCase();
  const singular = written.replace(/ies$/, "y");
  let best: string | undefined;
  // One slip in a short word, two in one of six letters or more: further away, a guess only confuses.
  let least = key.length < 6 ? 2 : 3;
  for (const candidate of allowed) {
    const real = candidate.toLowerCase();
    const distance = Math.min(editDistance(written, real), editDistance(singular, real));
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  // Other libraries' names for the same: maxAttempts, run_at.
  const lastWord = key
    .split(/[_-]|(?=[A-Z])/)
    .at(-1)
    ?.toLowerCase();
  return best ?? allowed.find((candidate) => candidate.toLowerCase() === lastWord);
}

// Insertions, deletions, substitutions, and swaps of neighbours ("dealy"), one each.
function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let cost = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        cost = Math.min(cost, (before[j - 2] ?? 0) + 1);
      row.push(cost);
    }
    before = last;
    last = row;
  }
  return last[b.length] ?? 0;
}
