// How a budget fills up between two looks at it. Pure: the moment is passed in.
import type { BudgetLine } from "../../../src/dashboard/api/contract.ts";

type Bucket = Pick<BudgetLine, "tokens" | "limit" | "perMs" | "burst" | "at">;

/** What is left at `now`, if nobody has taken anything since it was looked at. */
export function tokensAt({ tokens, limit, perMs, burst, at }: Bucket, now: number): number {
  return Math.min(burst, tokens + (Math.max(0, now - at) * limit) / perMs);
}

/** In how long it gives a whole one again (null: it does now, or holds none), and in how long it is full (0: it is). */
export function refillOf(bucket: Bucket, now: number): { nextMs: number | null; fullMs: number } {
  const { limit, perMs, burst } = bucket;
  const left = tokensAt(bucket, now);
  const waitMs = (missing: number): number => Math.ceil((missing * perMs) / limit);
  return {
    nextMs: left < 1 && burst >= 1 ? waitMs(1 - left) : null,
    fullMs: left >= burst ? 0 : waitMs(burst - left),
  };
}
