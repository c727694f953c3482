/**
 * Limits as users write them, checked: of a lane, of a queue, of a breaker.
 *
 * Invariant: a limit that is wrong (0, negative, a fraction, beyond what can be counted) is refused with its name before
 * anything is written.
 */
import { shown, UsageError } from "../../errors.ts";
import { DEFAULT_AFTER, DEFAULT_COOLDOWN_MS, type Rule } from "./breaker-rule.ts";
import { type Duration, durationMs } from "../../values/duration.ts";
import { checkInteger, checkOptions } from "../../values/options.ts";
import type { Rate } from "./rate-window.ts";

/** Limits of a lane. Null: none. */
export interface LaneLimits {
  /** How many of the lane may run at once, over the whole cluster. */
  readonly concurrency: number | null;
  /** At most `limit` starts in every window of `perMs`. */
  readonly rate: { readonly limit: number; readonly perMs: number } | null;
  /** Its share beside other lanes; 1 by default. */
  readonly weight: number | null;
}

/** A rate: at most `limit` starts in every window of `per`. */
export interface RateOption {
  readonly limit: number;
  readonly per: Duration;
}

/**
 * The limits of a lane, as `defineJob({ lanes })` and `hf.lanes.set` take them. Null: none.
 *
 * @example
 * defineJob({ name: "send-mail", lane: (input) => input.tenant, lanes: { concurrency: 5, rate: { limit: 100, per: "1m" } } });
 */
export interface LaneOptions {
  /** How many of the lane may run at once, over the whole cluster. */
  readonly concurrency?: number | null | undefined;
  /** At most `limit` starts in every window of `per`. */
  readonly rate?: RateOption | null | undefined;
  /** Its share beside other lanes, 1 to 1,000; default 1. */
  readonly weight?: number | null | undefined;
}

/** A breaker, as `hf.queues.set(…, { breaker })` takes it. */
export interface BreakerOptions {
  /** Consecutive failures that open it; default 10. */
  readonly after?: number | undefined;
  /** How long it stays open before one job may try; default "30s". */
  readonly cooldown?: Duration | undefined;
}

const countable = { min: 1, max: 1_000_000 };
const longestWindowMs = 31 * 86_400_000;

/** How many at once. */
export function checkConcurrency(value: unknown, what: string): number {
  return checkInteger(value, what, countable);
}

/** A share. */
export function checkWeight(value: unknown, what: string): number {
  return checkInteger(value, what, { min: 1, max: 1_000 });
}

/** A rate in milliseconds. */
export function checkRate(rate: unknown, what: string): Rate {
  const { limit, per } = checkOptions(rate, ["limit", "per"], what) as { limit?: number; per?: Duration };
  const perMs = Math.round(durationMs(per ?? Number.NaN, `${what}.per`));
  if (perMs < 1 || perMs > longestWindowMs) {
    throw new UsageError(
      "BAD_DURATION",
      `${what}.per must be longer than 0 and at most 31 days; got ${shown(per)}.`,
      { details: { what: `${what}.per` } },
    );
  }
  return { limit: checkInteger(limit, `${what}.limit`, countable), perMs };
}

/** What was given of a lane's limits. */
export function checkLaneLimits(options: unknown, what: string): Partial<LaneLimits> {
  const given = checkOptions(options, ["concurrency", "rate", "weight"], what) as LaneOptions;
  const limits: { -readonly [K in keyof LaneLimits]?: LaneLimits[K] } = {};
  if (given.concurrency !== undefined)
    limits.concurrency =
      given.concurrency === null ? null : checkConcurrency(given.concurrency, `${what}.concurrency`);
  if (given.rate !== undefined)
    limits.rate = given.rate === null ? null : checkRate(given.rate, `${what}.rate`);
  if (given.weight !== undefined)
    limits.weight = given.weight === null ? null : checkWeight(given.weight, `${what}.weight`);
  return limits;
}

/** A breaker's rule. */
export function checkBreaker(options: unknown, what: string, more: readonly string[] = []): Rule {
  const { after, cooldown } = checkOptions(options, ["after", "cooldown", ...more], what) as BreakerOptions;
  const cooldownMs = cooldown === undefined ? DEFAULT_COOLDOWN_MS : durationMs(cooldown, `${what}.cooldown`);
  if (cooldownMs < 1_000)
    throw new UsageError("BAD_DURATION", `${what}.cooldown must be at least 1 s; got ${shown(cooldown)}.`, {
      details: { what: `${what}.cooldown` },
    });
  return {
    after: after === undefined ? DEFAULT_AFTER : checkInteger(after, `${what}.after`, countable),
    cooldownMs,
  };
}
