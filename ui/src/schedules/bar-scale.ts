// How tall a bar is among others, of which one may be far above the rest.

/** What this share of them is below. */
export function share(sorted: readonly number[], of: number): number {
  return sorted[Math.floor(sorted.length * of)] ?? 0;
}

/**
 * What the whole height stands for: the largest, or `least` where all are smaller. One that is far above nearly all others
 * is cut, or the others could not be seen.
 */
export function topOf(sorted: readonly number[], least: number): number {
  const largest = sorted.at(-1) ?? 0;
  const usual = Math.max(least, share(sorted, 0.9));
  return largest > 5 * usual ? 2 * usual : Math.max(least, largest);
}
