/**
 * Warns of ready jobs that nobody will ever run: a misspelt queue, a name whose worker was not deployed.
 *
 * Invariant: it warns at every tick for as long as it is so; a warning that comes once is a warning that is missed.
 * Not here: who serves what (the store knows from the sessions of living workers).
 */
import type { Emitter } from "../events.ts";
import type { Logger } from "../logger.ts";
import type { Store } from "../storage/store.ts";
import type { Backlog } from "../limits/store.ts";

export interface UnservedDeps {
  readonly store: Pick<Store, "queues">;
  readonly log: Logger;
  readonly events: Pick<Emitter, "emit">;
}

/**
 * Reports once; gives what it saw: the queues that it warned of, and what waits in all of them.
 *
 * @example
 * const { unserved, ready } = await reportUnservedOnce({ store, log, events });
 */
export async function reportUnservedOnce(deps: UnservedDeps): Promise<Backlog> {
  const backlog = await deps.store.queues.backlog();
  for (const { name, unserved: names } of backlog.unserved) {
    deps.events.emit("queue.unserved", { queue: name, names });
    deps.log.warn(
      { queue: name, names },
      `queue ${name} has ready jobs that no running worker serves: ${names.join(", ")}`,
    );
  }
  return backlog;
}
