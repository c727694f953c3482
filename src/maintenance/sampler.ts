/**
 * Measures the database once a minute: one process does it for all.
 *
 * Not here: what a worker measures of its own process (worker/recorder.ts), judging the values (cli/doctor).
 */
import type { Clock } from "../clock.ts";
import type { Store } from "../store.ts";

export interface SamplerDeps {
  readonly store: Pick<Store, "inspect" | "putGauges">;
  readonly clock: Clock;
}

const minuteMs = 60_000;
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
 * await sampleDatabaseOnce({ store, clock });
 */
export async function sampleDatabaseOnce({ store, clock }: SamplerDeps): Promise<void> {
  const inspection = await store.inspect();
  const minute = Math.floor(clock.now() / minuteMs) * minuteMs;
  await store.putGauges(
    measured.flatMap((name) => {
      const value = inspection[name];
      return value === null ? [] : [{ minute, source: "database", name, value }];
    }),
  );
}
