/**
 * The upkeep tasks that every worker takes turns at, with their periods.
 *
 * Not here: taking turns (loop.ts), what each does (a file each). The reaper follows the sessions' ends and not a period
 * (worker/claimer.ts); here it finds what no end of a session tells of: claims that committed after their session was closed.
 */
import type { Emitter } from "../events.ts";
import type { Logger } from "../logger.ts";
import type { Clock } from "../clock.ts";
import type { EventLogSettings } from "../observe/event-log.ts";
import { revertExpiredLimitsOnce } from "../limits/temporary-limits.ts";
import type { Store } from "../storage/store.ts";
import { endDrainsOnce } from "../limits/queue-drainer.ts";
import { pruneSeriesOnce } from "./series-pruner.ts";
import type { UpkeepTask } from "./loop.ts";
import { pruneOnce } from "./job-pruner.ts";
import { tidyOnce } from "./storage-care.ts";
import { sampleDatabaseOnce } from "./gauges.ts";
import { reportUnservedOnce } from "./unserved.ts";

export interface UpkeepTasksDeps {
  readonly store: Store;
  readonly log: Logger;
  readonly events: Pick<Emitter, "emit">;
  readonly clock: Clock;
  readonly retention: { readonly doneMs: number; readonly deadMs: number };
  readonly eventLog?: EventLogSettings | null;
  /** Null: no series are kept. */
  readonly totals?: object | null;
  /** Takes over the jobs of dead sessions, and deletes the sessions (lease/reaper.ts). */
  readonly reap: () => Promise<unknown>;
}

/**
 * What a worker sees to beside its jobs.
 *
 * @example
 * maintenance.start(workerUpkeepTasks({ store, log, events, clock, retention, reap }));
 */
export function workerUpkeepTasks(deps: UpkeepTasksDeps): UpkeepTask[] {
  const { store, log, events, retention, clock, reap, eventLog = null, totals = null } = deps;
  // One upkeep task: an idle worker asks once a minute whose turn it is, not twice.
  const everyMinute = async (): Promise<void> => {
    const { ready } = await reportUnservedOnce({ store, log, events });
    const limits = clock.monotonic() >= unlimitedUntil;
    if (totals !== null) await sampleDatabaseOnce({ store, clock, limits, ready });
  };
  // Another process may have the next turns: what this one saw counts for a minute.
  let unlimitedUntil = -Infinity;
  const recover = async (): Promise<void> => {
    const limits = await revertExpired({ store, events, reap });
    unlimitedUntil = limits ? -Infinity : clock.monotonic() + 60_000;
  };
  return [
    { name: "prune", everyMs: 300_000, run: () => pruneOnce({ store, log, retention }) },
    { name: "forget", everyMs: 3_600_000, run: () => pruneSeriesOnce({ store, eventLog }) },
    { name: "tidy", everyMs: 300_000, run: () => tidyOnce({ store, retention }) },
    // A worker whose role may not make tables also takes turns at the two above. Where one may, partitions do not wait for its turn.
    ...(store.upkeep.ownsPartitions
      ? [
          {
            name: "partitions",
            everyMs: 300_000,
            run: async () => {
              await tidyOnce({ store, retention });
              await pruneOnce({ store, log, retention });
            },
          },
        ]
      : []),
    { name: "minute", everyMs: 60_000, run: () => everyMinute() },
    // A dead worker leaves the list within its lease and this, 75 s at the most (F7).
    { name: "recovery", everyMs: 40_000, run: () => recover() },
  ];
}

/**
 * What is over: sessions, the news that died with them (ends that somebody waits for, signals), limits for a while, drains.
 * Gives whether there are limits whose use is to be followed.
 */
async function revertExpired({
  store,
  events,
  reap,
}: Pick<UpkeepTasksDeps, "store" | "events" | "reap">): Promise<boolean> {
  const { sessions, workflows, temporaryLimits, limits, drains } = await store.upkeep.over();
  if (sessions) await reap();
  if (workflows) await store.workflows.sweep();
  if (temporaryLimits) await revertExpiredLimitsOnce({ store });
  if (drains) await endDrainsOnce({ store, events });
  return limits;
}
