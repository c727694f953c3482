/**
 * Which steps are alike: those of a fan-out, whose names differ in a number or in what stands behind a colon.
 *
 * Invariants: pure, and without imports, because the dashboard's page reads it as well.
 */

/**
 * A step's name without what tells it from its siblings: `resize-3`, `resize:cat.jpg` and `resize#2` are all `resize`.
 * What a call is named after (`call:mail`) stays.
 */
export function stemOf(name: string, kind: string): string {
  const plain = name.replace(/#\d+$/, "");
  const colon = kind === "call" ? -1 : plain.search(/[:/]/);
  return (colon > 0 ? plain.slice(0, colon) : plain)
    .replace(/[-_. ][^-_. \d]*\d[^-_. ]*$/, "")
    .replace(/\d+/g, "#");
}
