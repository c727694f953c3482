/**
 * Measures the database once a minute, how far limits over the cluster are used, and keeps what was seen to wait in the
 * queues: one process does it for all.
 *
 * Not here: what a worker measures of its own process (observe/recorder.ts), judging the values (cli/doctor).
 */
import type { Clock } from "../clock.ts";
import type { Store } from "../storage/store.ts";
import type { GaugeRow } from "../observe/store.ts";

export interface SamplerDeps {
  readonly store: Pick<Store, "inspect" | "series" | "queues" | "budgets">;
  readonly clock: Clock;
  /** False: nobody has set a limit or a budget, so that their use need not be asked for. */
  readonly limits: boolean;
  /** Ready jobs of each queue that has any. */
  readonly ready: ReadonlyMap<string, number>;
}

const minuteMs = 60_000;
/** The queues in which most jobs wait are kept by name; the others are in the sum of all. */
const mostQueues = 20;
/** As many limits of each name are followed. */
const mostLimits = 200;
const measured = [
  "sizeBytes",
  "walBytes",
  "deadRows",
  "liveRows",
  "connections",
  "oldestTransactionMs",
  "diskFreeBytes",
] as const;

/**
 * Measures once.
 *
 * @example
 * await sampleDatabaseOnce({ store, clock, limits: true, ready: new Map() });
 */
export async function sampleDatabaseOnce({ store, clock, limits, ready }: SamplerDeps): Promise<void> {
  const inspection = await store.inspect();
  const minute = Math.floor(clock.now() / minuteMs) * minuteMs;
  const rows: GaugeRow[] = measured.flatMap((name) => {
    const value = inspection[name];
    return value === null ? [] : [{ minute, source: "database", name, value }];
  });
  const [queues, budgets] = limits ? [await store.queues.use(), await store.budgets.list()] : [[], []];
  for (const { name, running, started } of queues.slice(0, mostLimits)) {
    rows.push({ minute, source: `queue:${name}`, name: "running", value: running });
    if (started !== null) rows.push({ minute, source: `queue:${name}`, name: "started", value: started });
  }
  for (const { name, tokens } of budgets.slice(0, mostLimits))
    rows.push({ minute, source: `budget:${name}`, name: "tokens", value: tokens });
  // Nought is a measurement too: without it nobody could tell an empty minute from one in which nobody looked.
  const all = [...ready.values()].reduce((sum, count) => sum + count, 0);
  rows.push({ minute, source: "queues", name: "ready", value: all });
  for (const [name, value] of [...ready].sort(([, a], [, b]) => b - a).slice(0, mostQueues))
    rows.push({ minute, source: `queue:${name}`, name: "ready", value });
  await store.series.putGauges(rows);
}
