/**
 * How many slots a worker has for each of its queues, by the queues' live settings: a total that all workers of the
 * cluster share, a number for each process, or a share by weight.
 *
 * Invariants: a total is split by the same rule in every process from the same list of living workers, so the parts sum
 * up to it once all have read it; a worker that is not listed yet takes its part of one more. A split is a matter of slots,
 * not a guarantee: while workers come and go the sum may be off for a few seconds. The hard limit is `concurrency`.
 * Not here: when to read (live-settings.ts), the arithmetic (limits/rules/fairness.ts).
 */
import { shareOfTotal, splitByWeight } from "../limits/rules/fairness.ts";
import { takesJobs } from "../limits/serving.ts";
import type { Store } from "../storage/store.ts";
import type { WorkerState } from "../lease/store.ts";
import type { QueueSettings } from "../limits/queue-settings.ts";

/** A queue of this worker. */
export interface Served {
  readonly queue: string;
  /** Slots that `hf.work` was given, or one for each CPU. */
  readonly configured: number;
  /** It was given no number of its own. */
  readonly even: boolean;
}

export interface RebalanceDeps {
  readonly store: Pick<Store, "workers">;
  readonly served: readonly Served[];
  /** This worker's session; null before it has one. */
  readonly session: number | null;
}

const mostSlots = 1_024;

/**
 * Splits once: the slots of each queue that a setting says something about.
 *
 * @example
 * const slots = await rebalanceOnce({ store, served, session }, await store.queues.settings(["mail"]));
 */
export async function rebalanceOnce(
  deps: RebalanceDeps,
  settings: ReadonlyMap<string, Pick<QueueSettings, "total" | "slots" | "weight">>,
): Promise<ReadonlyMap<string, number>> {
  const totals = deps.served.filter(({ queue }) => (settings.get(queue)?.total ?? null) !== null);
  const workers = totals.length === 0 ? [] : await deps.store.workers.list();
  const slots = byWeight(deps.served, settings);
  for (const { queue } of deps.served) {
    const own = settings.get(queue)?.slots ?? null;
    if (own !== null) slots.set(queue, own);
  }
  for (const { queue } of totals) {
    const { total, slots: most } = settings.get(queue) as { total: number; slots: number | null };
    const share = shareOfTotal(total, sessionsOf(queue, workers), deps.session);
    slots.set(queue, Math.min(share, most ?? mostSlots, mostSlots));
  }
  return slots;
}

function sessionsOf(queue: string, workers: readonly WorkerState[]): number[] {
  return workers
    .filter((worker) => takesJobs(worker) && Object.hasOwn(worker.queues, queue))
    .map(({ session }) => session);
}

function byWeight(
  served: readonly Served[],
  settings: ReadonlyMap<string, Pick<QueueSettings, "weight">>,
): Map<string, number> {
  const even = served.filter((queue) => queue.even);
  const weights = even.map(({ queue }) => settings.get(queue)?.weight ?? 1);
  if (even.length < 2 || weights.every((weight) => weight === weights[0])) return new Map();
  const sum = even.reduce((total, { configured }) => total + configured, 0);
  return new Map(splitByWeight(sum, weights).map((slots, i) => [(even[i] as Served).queue, slots]));
}
