// Scales of charts: steps between marks, the height of bars, the end of the data. Pure.

const leastSeconds = 60;

/**
 * The range of a time axis in seconds. For a single instant uPlot would show a whole day, whose marks are all
 * midnight.
 */
export function timeRange(at: ArrayLike<number>, now: number): [from: number, to: number] {
  const to = at[at.length - 1] ?? now;
  return [Math.min(at[0] ?? to, to - leastSeconds), to];
}

/** Steps of sizes in bytes. */
export const BINARY: readonly number[] = Array.from({ length: 50 }, (_, n) => 2 ** n);

/** Steps of counts: there is no half job. */
export const WHOLE: readonly number[] = Array.from({ length: 16 }, (_, n) =>
  [1, 2, 5].map((step) => step * 10 ** n),
).flat();

const [second, minute, hour, day] = [1_000, 60_000, 3_600_000, 86_400_000];
/** Steps of durations in milliseconds. Each is a whole number of one unit, so that its marks are "5 min", not "3 min 20 s". */
export const DURATIONS: readonly number[] = [
  ...WHOLE.filter((step) => step < second),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * second),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * minute),
  ...[1, 2, 3, 6, 12].map((n) => n * hour),
  ...WHOLE.slice(0, 6).map((n) => n * day),
];

/** Pixels beside the plot for its longest mark at 11 px. */
export function axisSize(labels: readonly string[] | null): number {
  const longest = Math.max(0, ...(labels ?? []).map((label) => label.length));
  return Math.max(62, Math.ceil(longest * 6.5) + 14);
}

export function measuredOver(lists: readonly (readonly (number | null)[])[], over: number): number {
  const isGap = (step: number): boolean => lists.every((values) => (values[step] ?? null) === null);
  let end = over;
  while (end > Math.max(1, over - 2) && isGap(end - 1)) end -= 1;
  return end > 0 && isGap(end - 1) ? over : end;
}

export function share(sorted: readonly number[], of: number): number {
  return sorted[Math.floor(sorted.length * of)] ?? 0;
}

/**
 * The value of the full height: the largest, or `least` if all are smaller. A value far above the others is cut,
 * because it would hide them.
 */
export function topOf(sorted: readonly number[], least: number): number {
  const largest = sorted.at(-1) ?? 0;
  const usual = Math.max(least, share(sorted, 0.9));
  return largest > 5 * usual ? 2 * usual : Math.max(least, largest);
}
