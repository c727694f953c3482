// What the axes of a chart are marked by. Pure.

/** A shorter time has no room for marks of its own. */
const leastSeconds = 60;

/** From the first instant to the last, in seconds. uPlot makes a whole day of a single one, whose marks are all midnights. */
export function timeRange(at: ArrayLike<number>, now: number): [from: number, to: number] {
  const to = at[at.length - 1] ?? now;
  return [Math.min(at[0] ?? to, to - leastSeconds), to];
}

/** Sizes are told by powers of two, and so are the lines across. */
export const BINARY: readonly number[] = Array.from({ length: 50 }, (_, n) => 2 ** n);

/** Of jobs there is no half, and of milliseconds none that is told apart. */
export const WHOLE: readonly number[] = Array.from({ length: 16 }, (_, n) =>
  [1, 2, 5].map((step) => step * 10 ** n),
).flat();

/** Pixels beside the plot for its longest mark, such as "16 min 40 s" at 11 px. */
export function axisSize(labels: readonly string[] | null): number {
  const longest = Math.max(0, ...(labels ?? []).map((label) => label.length));
  return Math.max(62, Math.ceil(longest * 6.5) + 14);
}
