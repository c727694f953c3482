/**
 * `hf.stats()`: how many jobs are in which state and queue, and what this client has counted since it was opened.
 *
 * Invariant: ready and scheduled are never mixed; `lagMs` is the age of the oldest ready job, so a job that is due
 * tomorrow is no lag (promise J5).
 * Not here: series over time (metrics.ts).
 */
import type { Enqueued } from "../jobs/job.ts";
import type { Retry } from "../storage/retry-calls.ts";
import type { Store } from "../storage/store.ts";
import type { QueueState } from "../limits/store.ts";

/** What this client has counted. */
export interface ClientCounters {
  /** Jobs that came to be, by enqueues of this client. */
  readonly enqueued: number;
  readonly duplicate: number;
  readonly replaced: number;
  readonly debounced: number;
  /** Enqueues that made no new job: duplicates and debounced ones. */
  readonly suppressed: number;
  /** Holders that were too late. */
  readonly leasesLost: number;
  /** Calls repeated because the database was busy or away. */
  readonly retries: number;
  /** Statements sent by this client and its workers. */
  readonly statements: number;
  /** Commits of this client and its workers. */
  readonly commits: number;
}

/**
 * What `hf.stats()` gives.
 *
 * @example
 * const { totals, lagMs, counters } = await hf.stats();
 */
export interface Stats {
  readonly totals: {
    readonly scheduled: number;
    readonly ready: number;
    readonly running: number;
    readonly waiting: number;
    readonly done: number;
    readonly dead: number;
    readonly cancelled: number;
  };
  /** Age of the oldest ready job of any queue. */
  readonly lagMs: number;
  readonly queues: readonly QueueState[];
  /** Live workers. */
  readonly workers: number;
  readonly counters: ClientCounters;
}

/** Counts for one client. */
export class Counters {
  readonly #byStatus: Record<Enqueued["status"], number> = {
    enqueued: 0,
    duplicate: 0,
    replaced: 0,
    debounced: 0,
  };
  leasesLost = 0;

  readonly counted = (outcomes: readonly Enqueued[]): void => {
    for (const { status } of outcomes) this.#byStatus[status] += 1;
  };

  read(store: Store, retry: Retry, lostByRunning: number): ClientCounters {
    const { duplicate, debounced } = this.#byStatus;
    const { statements, commits, retries } = store.counters;
    return {
      ...this.#byStatus,
      suppressed: duplicate + debounced,
      leasesLost: this.leasesLost + lostByRunning,
      retries: retries + retry.retries,
      statements,
      commits,
    };
  }
}

/** Reads everything at once. `lostByRunning`: leases lost by workers that still run, which count for themselves. */
export async function stats(
  store: Store,
  retry: Retry,
  counters: Counters,
  lostByRunning: number,
): Promise<Stats> {
  const [queues, workers, done, dead, cancelled] = await retry.repeatable(() =>
    Promise.all([
      store.queues.list(),
      store.workers.list(),
      store.jobs.count({ state: "done" }),
      store.jobs.count({ state: "dead" }),
      store.jobs.count({ state: "cancelled" }),
    ]),
  );
  const live = { scheduled: 0, ready: 0, running: 0, waiting: 0 };
  let lagMs = 0;
  for (const { counts, lagMs: lag } of queues) {
    live.scheduled += counts.scheduled;
    live.ready += counts.ready;
    live.running += counts.running;
    live.waiting += counts.waiting;
    lagMs = Math.max(lagMs, lag);
  }
  return {
    totals: { ...live, done, dead, cancelled },
    lagMs,
    queues,
    workers: workers.filter(({ kind }) => kind === "worker").length,
    counters: counters.read(store, retry, lostByRunning),
  };
}
