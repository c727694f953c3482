// The refill of a budget between two answers. Pure: the time is passed in.
import type { BudgetLine } from "../../../src/dashboard/api/contract.ts";

type Bucket = Pick<BudgetLine, "tokens" | "limit" | "perMs" | "burst" | "at">;

/** Tokens at `now`, if none were taken since the answer. */
export function tokensAt({ tokens, limit, perMs, burst, at }: Bucket, now: number): number {
  return Math.min(burst, tokens + (Math.max(0, now - at) * limit) / perMs);
}

/**
 * Time until the next whole token (null: there is one, or the burst is below one), and until the budget is full (0:
 * it is).
 */
export function refillOf(bucket: Bucket, now: number): { nextMs: number | null; fullMs: number } {
  const { limit, perMs, burst } = bucket;
  const left = tokensAt(bucket, now);
  const waitMs = (missing: number): number => Math.ceil((missing * perMs) / limit);
  return {
    nextMs: left < 1 && burst >= 1 ? waitMs(1 - left) : null,
    fullMs: left >= burst ? 0 : waitMs(burst - left),
  };
}
