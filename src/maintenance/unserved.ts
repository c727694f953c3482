/**
 * Warns of ready jobs that nobody will ever run: a misspelt queue, a kind whose worker was not deployed.
 *
 * Invariant: it warns at every tick for as long as it is so; a warning that comes once is a warning that is missed.
 * Not here: who serves what (the store knows from the sessions of living workers).
 */
import type { Emitter } from "../events.ts";
import type { Logger } from "../logger.ts";
import type { Store, UnservedQueue } from "../store.ts";

export interface UnservedDeps {
  readonly store: Pick<Store, "unserved">;
  readonly log: Logger;
  readonly events: Pick<Emitter, "emit">;
}

/**
 * Reports once; gives the queues that it warned of.
 *
 * @example
 * const unserved = await reportUnservedOnce({ store, log, events });
 */
export async function reportUnservedOnce(deps: UnservedDeps): Promise<UnservedQueue[]> {
  const unserved = await deps.store.unserved();
  for (const { name, unserved: names } of unserved) {
    deps.events.emit("queue.unserved", { queue: name, names });
    deps.log.warn(
      { queue: name, names },
      `queue ${name} has ready jobs that no running worker serves: ${names.join(", ")}`,
    );
  }
  return unserved;
}
