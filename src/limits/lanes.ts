/**
 * `hf.lanes`: limits, weight and pause of single lanes (the jobs of a queue that share a key), in every process, live.
 *
 * Invariants: what is set by hand stays, whatever the definition says later; a lane needs no creation. Settings are
 * checked before anything is written.
 * Not here: how lanes are claimed from (limited-claim.ts), the limits that a definition gives (jobs/define-job.ts).
 */
import { shown, UsageError } from "../errors.ts";
import { checkLaneLimits, type LaneOptions } from "./rules/limit-options.ts";
import { checkName, checkText } from "../values/name.ts";
import { checkInteger, checkOptions } from "../values/options.ts";
import { laneName, laneStands, changeLimits, type TemporaryLimitOptions } from "./temporary-limits.ts";
import type { Retry } from "../storage/retry-calls.ts";
import type { Store } from "../storage/store.ts";
import type { LanePage } from "./store.ts";
import type { LaneLimits } from "../jobs/job.ts";

/** What `hf.lanes.list` takes. */
export interface LaneQuery {
  /** Default: all queues. */
  readonly queue?: string | undefined;
  /** One lane alone. */
  readonly key?: string | undefined;
  /** 1 to 1,000; default 100. */
  readonly limit?: number | undefined;
  /** What the page before gave. */
  readonly cursor?: string | null | undefined;
}

/** What `hf.lanes` needs of the client. */
export interface LanesDeps {
  readonly store: Store;
  readonly retry: Retry;
  readonly checkOpen: () => void;
}

/** `hf.lanes`. */
export class Lanes {
  readonly #deps: LanesDeps;

  constructor(deps: LanesDeps) {
    this.#deps = deps;
  }

  /**
   * Sets a lane's limits; what is not given stays, null takes a limit away. With `for` or `until` what was there before
   * is back after that time, within 45 s.
   *
   * @throws UsageError BAD_NAME, BAD_KEY, BAD_OPTION, BAD_DURATION, UNKNOWN_OPTION
   * @example
   * await hf.lanes.set("mail", "tenant-7", { concurrency: 5, rate: { limit: 100, per: "1m" }, weight: 3 });
   * await hf.lanes.set("mail", "tenant-7", { concurrency: 1 }, { for: "30m" });
   */
  async set(queue: string, key: string, options: LaneOptions, when?: TemporaryLimitOptions): Promise<void> {
    const { store, retry, checkOpen } = this.#deps;
    checkOpen();
    const change = checkLaneLimits(options, "lanes.set");
    const keys = Object.keys(change) as (keyof LaneLimits)[];
    const name = checkName(queue, "The queue of lanes.set");
    const lane = checkText(key, "The lane of lanes.set");
    const back = (): Promise<Record<string, unknown>> => laneStands(store, name, lane, keys);
    if (keys.length === 0) return;
    const target = { kind: "lane", name: laneName(name, lane) } as const;
    await retry.repeatable(() =>
      changeLimits(store, target, when, keys, back, () => store.lanes.set(name, lane, change)),
    );
  }

  /**
   * Nothing more of this lane is claimed; what runs finishes, and other lanes go on.
   *
   * @example
   * await hf.lanes.pause("mail", "tenant-7");
   */
  async pause(queue: string, key: string): Promise<void> {
    await this.#change(queue, key, "lanes.pause", { paused: true });
  }

  /**
   * The lane may be claimed from again.
   *
   * @example
   * await hf.lanes.resume("mail", "tenant-7");
   */
  async resume(queue: string, key: string): Promise<void> {
    await this.#change(queue, key, "lanes.resume", { paused: false });
  }

  /**
   * Gives up what was set by hand: the lane has the limits and the weight of its definition, and its rate begins anew, as if
   * nothing had started lately. What runs stays counted; a pause stays. False: there is no such lane.
   *
   * @example
   * await hf.lanes.reset("mail", "tenant-7");
   */
  reset(queue: string, key: string): Promise<boolean> {
    return this.#reset(queue, key, "lanes.reset", false);
  }

  /**
   * The same for a key that is not wanted any more: it is not paused either, and is forgotten after a day in which no job
   * comes (otherwise, as every lane, a week after its last one). A job that comes has the limits of its definition. False:
   * there is no such lane.
   *
   * @example
   * await hf.lanes.drop("mail", "tenant-that-left");
   */
  drop(queue: string, key: string): Promise<boolean> {
    return this.#reset(queue, key, "lanes.drop", true);
  }

  /**
   * Lanes with their limits and counts, a page at a time.
   *
   * @throws UsageError BAD_CURSOR
   * @example
   * const { lanes, cursor } = await hf.lanes.list({ queue: "mail" });
   */
  async list(query?: LaneQuery): Promise<LanePage> {
    this.#deps.checkOpen();
    const given = checkOptions(query, ["queue", "key", "limit", "cursor"], "lanes.list") as LaneQuery;
    const page = {
      queue: given.queue === undefined ? null : checkName(given.queue, "The queue of lanes.list"),
      key: given.key === undefined ? null : checkText(given.key, "key"),
      limit: given.limit === undefined ? 100 : checkInteger(given.limit, "limit", { min: 1, max: 1_000 }),
      cursor: cursorOf(given.cursor ?? null),
    };
    return this.#deps.retry.repeatable(() => this.#deps.store.lanes.list(page));
  }

  async #reset(queue: string, key: string, what: string, drop: boolean): Promise<boolean> {
    const { store, retry, checkOpen } = this.#deps;
    checkOpen();
    const name = checkName(queue, `The queue of ${what}`);
    const lane = checkText(key, `The lane of ${what}`);
    return retry.repeatable(async () => {
      const there = await store.lanes.reset(name, lane, drop);
      // What would have come back after a while does not.
      if (there) await store.temporaryLimits.forget({ kind: "lane", name: laneName(name, lane) }, null);
      return there;
    });
  }

  async #change(
    queue: string,
    key: string,
    what: string,
    change: Partial<LaneLimits> & { paused?: boolean },
  ): Promise<void> {
    this.#deps.checkOpen();
    const name = checkName(queue, `The queue of ${what}`);
    const lane = checkText(key, `The lane of ${what}`);
    if (Object.keys(change).length === 0) return;
    await this.#deps.retry.repeatable(() => this.#deps.store.lanes.set(name, lane, change));
  }
}

function cursorOf(cursor: unknown): number {
  if (cursor === null) return 0;
  if (typeof cursor === "string" && /^\d{1,10}$/.test(cursor)) return Number(cursor);
  throw new UsageError(
    "BAD_CURSOR",
    `cursor must be the value returned by lanes.list; got ${shown(cursor)}.`,
    {
      details: { option: "cursor" },
    },
  );
}
