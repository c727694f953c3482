/**
 * Ends the draining of queues in which nothing is left to do: they are paused from then on.
 *
 * Invariant: the store decides in one statement, so that a queue with a job that is due or runs is never met. A job that
 * arrives at the same moment may be the first that waits.
 * Not here: who looks (worker/claimer.ts when its look meets such a queue, upkeep/tasks.ts every 40 s, `hf.queues.drain` itself).
 */
import type { Emitter } from "../events.ts";
import type { QueueStore } from "./store.ts";

export interface DrainerDeps {
  readonly store: { readonly queues: Pick<QueueStore, "endDrains"> };
  readonly events: Pick<Emitter, "emit">;
}

/**
 * Looks once; gives the queues that are paused now.
 *
 * @example
 * const drained = await endDrainsOnce({ store, events });
 */
export async function endDrainsOnce({ store, events }: DrainerDeps): Promise<readonly string[]> {
  const drained = await store.queues.endDrains();
  for (const queue of drained) events.emit("queue.drained", { queue });
  return drained;
}
