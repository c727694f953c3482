/** The settings of a queue (`hf.queues.set`), for all processes, and their columns. Not here: checking settings (queues.ts). */
import type { Backoff } from "../jobs/backoff.ts";
import { json, maybeNumber, maybeText } from "../jobs/rows.ts";
import type { Row } from "../storage/catalogue.ts";
import { NO_SETTINGS } from "./rules/no-settings.ts";

/** A queue's settings over the whole cluster. Null: the default. */
export interface QueueSettings {
  /** Limit over the cluster. */
  readonly concurrency: number | null;
  readonly rate: { readonly limit: number; readonly perMs: number } | null;
  readonly weight: number | null;
  readonly backoff: Backoff | null;
  /** How long ended jobs are kept; 0 keeps them for ever. */
  readonly retention: { readonly doneMs: number; readonly deadMs: number } | null;
  /** `Throttled` cools the whole queue down: first step and longest. */
  readonly cooldown: { readonly baseMs: number; readonly maxMs: number } | null;
  /** Slots of each worker process for this queue, editable live (0 to 1,024). */
  readonly slots: number | null;
  /** Slots of all worker processes together, split over those that serve the queue. */
  readonly total: number | null;
  /** Stops the queue when its jobs fail one after the other. */
  readonly breaker: BreakerRule | null;
}

/** When a breaker opens, and for how long. */
export interface BreakerRule {
  /** Consecutive failures. */
  readonly after: number;
  readonly cooldownMs: number;
}

/** A queue's settings; `cooldown` has columns of its own, because a statement reads it. */
export function queueSettings(row: Row): QueueSettings {
  const stored = (json(maybeText(row, "settings")) ?? {}) as Partial<QueueSettings>;
  const baseMs = maybeNumber(row, "cool_base_ms");
  const maxMs = maybeNumber(row, "cool_max_ms");
  return {
    ...NO_SETTINGS,
    ...stored,
    cooldown: baseMs === null || maxMs === null ? null : { baseMs, maxMs },
  };
}
