/**
 * Deletes ended jobs that have outlived their retention.
 *
 * Not here: how (the store deletes in batches that yield, and drops whole partitions), per-queue retention (the
 * store reads the queues' settings).
 */
import type { Logger } from "../logger.ts";
import type { Store } from "../storage/store.ts";
import type { PruneReport } from "./store.ts";

export interface PrunerDeps {
  readonly store: Pick<Store, "upkeep">;
  readonly log: Logger;
  /** Where a queue does not say otherwise; 0 keeps for ever. */
  readonly retention: { readonly doneMs: number; readonly deadMs: number };
}

const batch = 500;

/**
 * Prunes once.
 *
 * @example
 * const { done, dead } = await pruneOnce({ store, log, retention: { doneMs: 7 * 86_400_000, deadMs: 30 * 86_400_000 } });
 */
export async function pruneOnce(deps: PrunerDeps): Promise<PruneReport> {
  const report = await deps.store.upkeep.prune(deps.retention, batch);
  if (report.done + report.dead + report.cancelled + report.partitions > 0)
    deps.log.info({ ...report }, "pruned ended jobs");
  return report;
}
