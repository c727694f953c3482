/**
 * Forgets minutes and lines of the event log that are older than they are kept.
 *
 * Not here: ended jobs (pruner.ts).
 */
import type { Clock } from "../clock.ts";
import type { EventLogSettings } from "../event-log.ts";
import type { Store } from "../store.ts";

export interface ForgetterDeps {
  readonly store: Pick<Store, "forgetSeries">;
  readonly clock: Clock;
  /** Null: this client keeps no log, and leaves that of others to them. */
  readonly eventLog: EventLogSettings | null;
}

/** Minutes are kept so long. */
const seriesMs = 30 * 86_400_000;

/**
 * Forgets once.
 *
 * @example
 * await forgetSeriesOnce({ store, clock, eventLog: null });
 */
export async function forgetSeriesOnce({ store, clock, eventLog }: ForgetterDeps): Promise<void> {
  const now = clock.now();
  await store.forgetSeries({
    metrics: now - seriesMs,
    events: eventLog === null || eventLog.keepMs === 0 ? 0 : now - eventLog.keepMs,
  });
}
