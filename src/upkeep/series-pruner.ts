/**
 * Forgets minutes and job types of the event log that are older than they are kept, and adds the workers of minutes that are
 * over up to one row each: twenty processes would otherwise leave twenty rows a minute for each name.
 *
 * Not here: ended jobs (job-pruner.ts).
 */
import type { EventLogSettings } from "../observe/event-log.ts";
import type { Store } from "../storage/store.ts";

export interface SeriesPrunerDeps {
  readonly store: Pick<Store, "now" | "series" | "failures">;
  /** Null: this client keeps no log, and leaves that of others to them. */
  readonly eventLog: EventLogSettings | null;
}

/** Minutes are kept so long. */
const seriesMs = 30 * 86_400_000;
const hourMs = 3_600_000;
/** A worker gives a minute up when it is half as old as this (observe/recorder.ts), so nothing is written to it any more. */
const settledMs = hourMs;
/** How far back one turn looks: as far as a day without workers leaves behind. */
const rescanMs = 26 * hourMs;

/**
 * Forgets once.
 *
 * @example
 * await pruneSeriesOnce({ store, eventLog: null });
 */
export async function pruneSeriesOnce({ store, eventLog }: SeriesPrunerDeps): Promise<void> {
  const now = await store.now();
  const until = Math.floor((now - settledMs) / hourMs) * hourMs;
  // By the hour: short transactions.
  for (let since = until - rescanMs; since < until; since += hourMs) {
    await store.series.compact(since, since + hourMs);
    await store.failures.compact(since, since + hourMs);
  }
  const metrics = now - seriesMs;
  const events = eventLog === null || eventLog.keepMs === 0 ? 0 : now - eventLog.keepMs;
  await store.series.forget({ metrics, events });
  await store.failures.forget(Math.max(0, metrics));
}
