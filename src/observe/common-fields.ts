/**
 * What inputs of one cause have in common: which fields have one value in nearly all of them, and which fields all have.
 *
 * Invariants: pure; bounded by what it is given and by `mostFields`; values are compared as JSON, so 1 and "1" differ.
 * Not here: which jobs are looked at, and what of them may be shown (dashboard/routes/errors.ts redacts first).
 */

/** A field, and the value that most have in it. */
export interface CommonField {
  /** "user.plan". */
  readonly path: string;
  /** JSON text. */
  readonly value: string;
  /** How many have exactly this. */
  readonly n: number;
}

/** Of fewer, everything would be in common by chance. */
const fewest = 3;
/** As many must agree. */
const share = 0.8;
const deepest = 3;
const mostFields = 200;
const longestValue = 120;

/**
 * Fields with one value in at least four of five inputs, the most agreed first; nothing where there are fewer than three.
 *
 * @example
 * commonFields([{ plan: "free", n: 1 }, { plan: "free", n: 2 }, { plan: "free", n: 3 }]); // [{ path: "plan", value: '"free"', n: 3 }]
 */
export function commonFields(inputs: readonly unknown[]): CommonField[] {
  if (inputs.length < fewest) return [];
  const counts = new Map<string, Map<string, number>>();
  for (const input of inputs)
    for (const [path, value] of leaves(input, "", 0)) {
      let values = counts.get(path);
      if (values === undefined) {
        if (counts.size >= mostFields) continue;
        counts.set(path, (values = new Map<string, number>()));
      }
      values.set(value, (values.get(value) ?? 0) + 1);
    }
  return [...counts]
    .flatMap(([path, values]) => {
      const [value, n] = [...values].reduce((most, one) => (one[1] > most[1] ? one : most));
      return n >= Math.max(fewest, inputs.length * share) ? [{ path, value, n }] : [];
    })
    .sort((a, b) => b.n - a.n || (a.path < b.path ? -1 : 1));
}

/** Every value that is neither an object nor long, by its path. A list is not walked through: its places mean nothing. */
function* leaves(value: unknown, path: string, depth: number): Generator<readonly [string, string]> {
  if (typeof value === "object" && value !== null) {
    if (depth >= deepest || Array.isArray(value)) return;
    for (const [key, inner] of Object.entries(value))
      yield* leaves(inner, path === "" ? key : `${path}.${key}`, depth + 1);
    return;
  }
  const text = JSON.stringify(value);
  if (text !== undefined && text.length <= longestValue) yield [path === "" ? "(the input)" : path, text];
}
