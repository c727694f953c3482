// Which steps of a series are worth drawing. Pure.

/** A minute that is over is measured up to two later: until then the one before is the newest, and not a gap. */
export function measuredOver(lists: readonly (readonly (number | null)[])[], over: number): number {
  const isGap = (step: number): boolean => lists.every((values) => (values[step] ?? null) === null);
  let end = over;
  while (end > Math.max(1, over - 2) && isGap(end - 1)) end -= 1;
  return end > 0 && isGap(end - 1) ? over : end;
}
