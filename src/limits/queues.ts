/**
 * `hf.queues`: what there is in each queue, and the settings that apply to it in every process, live.
 *
 * Invariants: settings are checked here and stored whole; a worker sees a change within its refresh (2 s), or at
 * once through the wake-up. A queue needs no creation: it exists as soon as a job or a setting names it.
 * Not here: what a worker does with a setting (worker/live-settings.ts), how limits are kept (limited-claim.ts).
 */
import { shown, UsageError } from "../errors.ts";
import type { Jobs } from "../operate/jobs-client.ts";
import { type Backoff, checkBackoff, queueBackoff } from "../jobs/backoff.ts";
import { type Duration, durationMs } from "../values/duration.ts";
import {
  type BreakerOptions,
  checkBreaker,
  checkConcurrency,
  checkRate,
  checkWeight,
} from "./rules/limit-options.ts";
import { checkName } from "../values/name.ts";
import { checkInteger, checkOptions, isPlainObject } from "../values/options.ts";
import type { Emitter } from "../events.ts";
import { endDrainsOnce } from "./queue-drainer.ts";
import { changeLimits, type TemporaryLimitOptions, queueStands } from "./temporary-limits.ts";
import type { Retry } from "../storage/retry-calls.ts";
import type { Store } from "../storage/store.ts";
import type { QueueChange, QueueState } from "./store.ts";
import type { QueueSettings } from "./queue-settings.ts";

/**
 * What `hf.queues.set` takes. What is not given stays; null is back to the default.
 *
 * @example
 * await hf.queues.set("mail", { concurrency: 10, retention: { done: "1d" } });
 */
export interface QueueOptions {
  /** How many may run at once over the whole cluster: exact, whatever dies. */
  readonly concurrency?: number | null | undefined;
  /** At most `limit` starts in every window of `per`. */
  readonly rate?: { readonly limit: number; readonly per: Duration } | null | undefined;
  /** How long ended jobs are kept: done 7 days, dead (and cancelled) 30 by default; 0 keeps them for ever. */
  readonly retention?:
    | { readonly done?: Duration | undefined; readonly dead?: Duration | undefined }
    | null
    | undefined;
  /** Where neither job nor definition has one. `{ base, max }` are clamped to 1 s … 1 day. */
  readonly backoff?:
    | Backoff
    | { readonly base?: Duration | undefined; readonly max?: Duration | undefined }
    | null
    | undefined;
  /** A worker's slots are shared by weight between those of its queues that it was given no number for; default 1. */
  readonly weight?: number | null | undefined;
  /** Slots of each worker process for this queue: 0 (none) to 1,024. */
  readonly slots?: number | null | undefined;
  /** Slots of all worker processes together: split over those that serve the queue, 10 over 3 as 4, 3, 3. */
  readonly total?: number | null | undefined;
  /** Stops the queue after so many failures in a row, until a probe succeeds. */
  readonly breaker?: BreakerOptions | null | undefined;
  /** `Throttled` cools the whole queue down; both are clamped to 1 s … 1 day. Default: it does not. */
  readonly cooldown?:
    | { readonly base?: Duration | undefined; readonly max?: Duration | undefined }
    | null
    | undefined;
}

/** What `hf.queues` needs of the client. */
export interface QueuesDeps {
  readonly store: Store;
  readonly retry: Retry;
  readonly checkOpen: () => void;
  readonly jobs: Pick<Jobs, "count" | "delete">;
  readonly events: Pick<Emitter, "emit">;
}

/** What `hf.queues.purge` came to. */
export interface PurgeResult {
  /** Jobs that had not started when it began. */
  readonly matched: number;
  readonly deleted: number;
  /** Those that a worker took before it came to them; they run on. */
  readonly running: number;
}

const waiting = ["scheduled", "ready", "waiting"] as const;

const settingNames = [
  "concurrency",
  "rate",
  "retention",
  "backoff",
  "weight",
  "slots",
  "total",
  "cooldown",
  "breaker",
];
const defaultRetention = { done: "7d", dead: "30d" } as const;

/** `hf.queues`. */
export class Queues {
  readonly #deps: QueuesDeps;

  constructor(deps: QueuesDeps) {
    this.#deps = deps;
  }

  /**
   * Every queue that has jobs or settings. Counts are exact, and that costs a look at every job that has not ended: a million of
   * them take seconds. Whoever asks again and again gives a bound: with `upTo` a name's jobs are counted so far and no further
   * (`atLeast` says of which states there may be more), which takes milliseconds; `lagMs`, `nextDueAt`, `unserved` and what runs are exact all
   * the same. With more than a few full queues counts stop earlier: they share 100,000 over all states.
   *
   * On Postgres, a transaction that stays open makes counts slower. Once a complete count with `upTo` takes more than 100 ms, most
   * counts skip the entries of ended jobs. They may miss a job whose due time is more than 10 s in the past when it is enqueued,
   * edited or committed. A complete count, which finds it, follows after 20 times the duration of the last one.
   *
   * @throws UsageError UNKNOWN_OPTION, BAD_OPTION
   * @example
   * for (const { name, paused, counts, lagMs } of await hf.queues.list()) console.log(name, counts.ready, lagMs);
   * const [slow] = (await hf.queues.list()).filter(({ counts }) => counts.ready === 0);
   * console.log("the next job is due at", slow?.nextDueAt);
   * const [mail] = await hf.queues.list({ upTo: 10_000 });   // mail.atLeast: ["ready"] where there are more
   */
  async list(options: { readonly upTo?: number | undefined } = {}): Promise<QueueState[]> {
    const { store, retry, checkOpen } = this.#deps;
    checkOpen();
    const { upTo } = checkOptions(options, ["upTo"], "queues.list") as { upTo?: number };
    const most = upTo === undefined ? undefined : checkInteger(upTo, "upTo", { min: 1, max: 100_000 });
    return retry.repeatable(() => store.queues.list(most));
  }

  /**
   * Nothing more is claimed from the queue; what runs finishes.
   *
   * @example
   * await hf.queues.pause("mail");
   */
  async pause(name: string): Promise<void> {
    await this.#change(name, "queues.pause", { paused: true });
  }

  /**
   * Lets the queue finish what is there, and then stand still: it goes on until nothing in it is due and nothing of it runs;
   * then it is paused by itself. What is due later (scheduled jobs, retries in their wait, runs that sleep or wait) does not
   * hinder it, and what comes in meanwhile still runs. `resume` ends it, `pause` makes it a pause at once. A queue that is paused stays so; one that is empty is paused at once. Gives what
   * it is now.
   *
   * @example
   * hf.on("queue.drained", ({ queue }) => console.log(queue, "stands still"));
   * await hf.queues.drain("mail");   // before a migration or a deploy
   */
  async drain(name: string): Promise<"draining" | "paused"> {
    await this.#change(name, "queues.drain", { draining: true });
    return (await this.drained(name)) ? "paused" : "draining";
  }

  /**
   * Whether the queue is paused: `drain` has come to its end, or somebody has paused it. It looks whether there is anything
   * left to finish, so it needs no worker to notice.
   *
   * @example
   * await hf.queues.drain("mail");
   * while (!(await hf.queues.drained("mail"))) await sleep(500);
   */
  async drained(name: string): Promise<boolean> {
    const { store, retry, events, checkOpen } = this.#deps;
    checkOpen();
    const queue = checkName(name, "The queue of queues.drained");
    await retry.repeatable(() => endDrainsOnce({ store, events }));
    const settings = await retry.repeatable(() => store.queues.settings([queue]));
    return settings.get(queue)?.paused === true;
  }

  /**
   * The queue may be claimed from again.
   *
   * @example
   * await hf.queues.resume("mail");
   */
  async resume(name: string): Promise<void> {
    await this.#change(name, "queues.resume", { paused: false });
  }

  /**
   * Changes settings, in every process, without a restart: for good, or for a while, after which what was there before
   * is back by itself, within 45 s.
   *
   * @throws UsageError BAD_NAME, UNKNOWN_OPTION, BAD_OPTION, BAD_DURATION
   * @example
   * await hf.queues.set("mail", { backoff: { base: "30s", max: "10m" }, slots: 5 });
   * await hf.queues.set("mail", { concurrency: 2 }, { for: "1h" });
   */
  async set(name: string, options: QueueOptions, when?: TemporaryLimitOptions): Promise<void> {
    const { store, checkOpen } = this.#deps;
    checkOpen();
    const change = settingsOf(options);
    const keys = Object.keys(change) as (keyof QueueSettings)[];
    const queue = checkName(name, "The queue of queues.set");
    const back = (): Promise<Record<string, unknown>> => queueStands(store, queue, keys);
    if (keys.length === 0) return;
    await this.#deps.retry.repeatable(() =>
      changeLimits(store, { kind: "queue", name: queue }, when, keys, back, () =>
        store.queues.set(queue, change),
      ),
    );
  }

  /**
   * Deletes every job of the queue that has not started: ready, scheduled and waiting ones. What runs goes on, what has
   * ended stays, and what comes in meanwhile is left alone. Pause the queue first if nothing more of it is to start.
   *
   * @example
   * const { matched } = await hf.queues.purge("mail", { dryRun: true });
   * await hf.queues.purge("mail");   // { matched, deleted, running }
   */
  async purge(name: string, options: { readonly dryRun?: boolean | undefined } = {}): Promise<PurgeResult> {
    this.#deps.checkOpen();
    const queue = checkName(name, "The queue of queues.purge");
    const { dryRun = false } = checkOptions(options, ["dryRun"], "queues.purge") as { dryRun?: boolean };
    const filter = { queue, state: waiting };
    if (dryRun) return { matched: await this.#deps.jobs.count(filter), deleted: 0, running: 0 };
    const { matched, deleted, running } = await this.#deps.jobs.delete(filter, { running: "leave" });
    return { matched, deleted, running };
  }

  async #change(name: string, what: string, change: QueueChange): Promise<void> {
    this.#deps.checkOpen();
    const queue = checkName(name, `The queue of ${what}`);
    if (Object.keys(change).length === 0) return;
    await this.#deps.retry.repeatable(() => this.#deps.store.queues.set(queue, change));
  }
}

function settingsOf(options: QueueOptions): Partial<QueueSettings> {
  const given = checkOptions(options, settingNames, "queues.set") as QueueOptions;
  const change: { -readonly [K in keyof QueueSettings]?: QueueSettings[K] } = {};
  if (given.concurrency !== undefined)
    change.concurrency = orNull(given.concurrency, (n) => checkConcurrency(n, "concurrency"));
  if (given.rate !== undefined) change.rate = orNull(given.rate, (rate) => checkRate(rate, "rate"));
  if (given.weight !== undefined) change.weight = orNull(given.weight, (n) => checkWeight(n, "weight"));
  if (given.total !== undefined)
    change.total = orNull(given.total, (n) => checkInteger(n, "total", { min: 0, max: 100_000 }));
  if (given.breaker !== undefined)
    change.breaker = orNull(given.breaker, (breaker) => checkBreaker(breaker, "breaker"));
  if (given.slots !== undefined)
    change.slots = orNull(given.slots, (n) => checkInteger(n, "slots", { min: 0, max: 1_024 }));
  if (given.retention !== undefined) change.retention = orNull(given.retention, checkRetention);
  if (given.backoff !== undefined) change.backoff = orNull(given.backoff, checkQueueBackoff);
  if (given.cooldown !== undefined) change.cooldown = orNull(given.cooldown, checkCooldown);
  return change;
}

function checkRetention(retention: unknown): NonNullable<QueueSettings["retention"]> {
  const { done, dead } = checkOptions(retention, ["done", "dead"], "retention") as {
    done?: Duration;
    dead?: Duration;
  };
  return {
    doneMs: durationMs(done ?? defaultRetention.done, "retention.done"),
    deadMs: durationMs(dead ?? defaultRetention.dead, "retention.dead"),
  };
}

// A backoff made by exponential(…) and its like is taken as it is; the two knobs are clamped (promise D11).
function checkQueueBackoff(backoff: unknown): Backoff {
  if (isPlainObject(backoff) && !("kind" in backoff)) return queueBackoff(backoff);
  const checked = checkBackoff(backoff, "backoff");
  if (typeof checked !== "function") return checked;
  throw new UsageError(
    "BAD_OPTION",
    `A queue's backoff cannot be a function, because it is stored; got ${shown(backoff)}.`,
    { details: { option: "backoff" } },
  );
}

function checkCooldown(cooldown: unknown): NonNullable<QueueSettings["cooldown"]> {
  const knobs = queueBackoff(checkOptions(cooldown, ["base", "max"], "cooldown"));
  if (knobs.kind !== "exponential") throw new UsageError("BAD_OPTION", "cooldown must be { base, max }.");
  return { baseMs: knobs.baseMs, maxMs: knobs.maxMs };
}

function orNull<Given, Taken>(value: Given | null, check: (value: Given) => Taken): Taken | null {
  return value === null ? null : check(value);
}
