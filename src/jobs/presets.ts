/**
 * The numbers of the four systems that Holdfast grew out of, so that each can be reproduced by name.
 *
 * Each preset has options for `defineJob` (`job`), for `defineMachine` (`machine`), for `hf.work` (`worker`) and for
 * `hf.queues.set` (`queue`), and a `breaker` for any of the three that take one.
 * Invariants: every number that our documents state is here as they state it; where they state none, the field
 * has our own default and the preset's comment says so. Data only, frozen: spread it and override.
 * Not here: what the options do.
 */
import { type Backoff, DEFAULT_BACKOFF, exponential, fixed, power, queueBackoff } from "./backoff.ts";
import type { Duration } from "../values/duration.ts";

/**
 * What a preset holds.
 *
 * @example
 * const { job, machine, worker, queue, breaker }: Preset = presets.forge;
 */
export type Preset = {
  /** For `defineJob`. */
  readonly job: PresetJob;
  /** For `defineMachine`: `retry` and `timeout` are those of each step. */
  readonly machine: PresetJob;
  /** For `hf.work`. */
  readonly worker: {
    readonly lease: Duration;
    readonly heartbeat: Duration;
    readonly poll: Duration;
    readonly shutdown: Duration;
  };
  /** For `hf.queues.set`. */
  readonly queue: {
    readonly backoff: { readonly base: Duration; readonly max: Duration };
    readonly retention: { readonly done: Duration; readonly dead: Duration };
  };
  /** For the `breaker` of `defineJob`, `defineMachine` and `hf.queues.set`: it opens after so many failures in a row. */
  readonly breaker: { readonly after: number };
};

/** How a preset's jobs, or the steps of its machines, are tried. */
export type PresetJob = {
  readonly retry: { readonly attempts: number; readonly backoff: Backoff };
  readonly timeout: Duration;
  /** Whether a lost lease uses up an attempt, or is counted apart up to `maxCrashes`. */
  readonly countCrashes: "attempt" | "crash";
};

// Ours, for every field that a system's documents leave open.
const job = {
  retry: { attempts: 5, backoff: DEFAULT_BACKOFF },
  timeout: "10m",
  countCrashes: "crash",
} as const;
const worker = { lease: "30s", heartbeat: "10s", poll: "500ms", shutdown: "30s" } as const;
const queue = { backoff: { base: "60s", max: "1800s" }, retention: { done: "7d", dead: "30d" } } as const;
const breaker = { after: 10 } as const;

/**
 * The four systems' numbers.
 *
 * @example
 * const fetchChapter = defineJob({ name: "fetch-chapter", ...presets.crawler.job, run });
 * hf.work([fetchChapter], { queues: ["crawl"], ...presets.crawler.worker });
 */
export const presets: {
  readonly crawler: Preset;
  readonly cja: Preset;
  readonly pgTask: Preset;
  readonly forge: Preset;
} = deepFreeze({
  /**
   * The crawler's leased queue. Its own: backoff 60 s · 2^(n−1) up to 3,600 s ± 20 %, timeout 600 s, breaker after
   * 10 failures, done kept 7 days and dead 30, a crash counts as an attempt. Our defaults: attempts, lease,
   * heartbeat, poll, shutdown.
   */
  crawler: {
    ...tried({
      retry: {
        attempts: job.retry.attempts,
        backoff: exponential("60s", { max: "3600s", factor: 2, jitter: 0.2 }),
      },
      timeout: "600s",
      countCrashes: "attempt",
    }),
    worker,
    queue: { ...queue, backoff: { base: "60s", max: "3600s" } },
    breaker,
  },
  /**
   * cja's job worker. Its own: backoff 2^(n+1) seconds for the n errors before this one (2, 4, 8 …), 20 retries
   * after the first run (its DEFAULT_MAX_RETRIES), higher priorities first (ours too), lease 2 h (its lock timeout).
   * Our defaults: everything else. cja has no heartbeat: ours stays at 10 s, because cancel requests and lost answers
   * are found with it. A job of a worker that dies waits for the lease: give `lease: "30s"` to have it back sooner.
   */
  cja: {
    ...tried({ ...job, retry: { attempts: 21, backoff: power() } }),
    worker: { ...worker, lease: "2h" },
    queue,
    breaker,
  },
  /**
   * pg_task. Its own: lease 60 s, heartbeat 20 s, a step is not retried unless it says so (limit 0) and then after
   * 1 s. Our defaults: everything else.
   */
  pgTask: {
    ...tried({ ...job, retry: { attempts: 1, backoff: fixed("1s") } }),
    worker: { ...worker, lease: "60s", heartbeat: "20s" },
    queue,
    breaker,
  },
  /**
   * forge-jobs. Its own: 5 attempts, queue backoff from 60 s up to 1,800 s, fallback poll 500 ms, done kept 7 days
   * and dead 30, a crash counts as an attempt (its 0 … 64 workers per queue are a range, not a number to set). Our
   * defaults: timeout, lease, heartbeat, shutdown, jitter, breaker.
   */
  forge: {
    ...tried({
      ...job,
      retry: { attempts: 5, backoff: queueBackoff({ base: "60s", max: "1800s" }) },
      countCrashes: "attempt",
    }),
    worker: { ...worker, poll: "500ms" },
    queue,
    breaker,
  },
});

/** Jobs and the steps of machines are tried alike. */
function tried(how: PresetJob): Pick<Preset, "job" | "machine"> {
  return { job: how, machine: how };
}

function deepFreeze<T extends object>(value: T): T {
  for (const child of Object.values(value) as unknown[]) {
    if (typeof child === "object" && child !== null && !Object.isFrozen(child)) deepFreeze(child);
  }
  return Object.freeze(value);
}
