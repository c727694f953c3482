// Counts that go no further than a bound. Pure.
import type { CappedCount } from "../../../src/dashboard/api/contract.ts";

/** A part of a whole that was counted at another moment: it is never told to be more. */
export function within(part: CappedCount, whole: CappedCount): CappedCount {
  if (whole.more) return part;
  const count = Math.min(part.count, whole.count);
  return { count, more: part.more && count < whole.count };
}
