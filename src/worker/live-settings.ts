/**
 * Keeps a worker's pools in step with the queues' settings in the database: pause, holds, slots, totals, backoff, breaker.
 *
 * Invariants: a change is seen within 2 s (a wake-up says so, or the next look reads them), and never costs an idle
 * worker more than one read in 30 s while wake-ups arrive; a read that fails changes nothing.
 * Not here: enforcing a pause (the store's claim does), what a pool does with it (slots.ts).
 */
import type { Clock, Timer } from "../clock.ts";
import type { Logger } from "../logger.ts";
import { describeFailure } from "../jobs/failure.ts";
import type { Store } from "../storage/store.ts";
import type { Pool } from "./slots.ts";
import { rebalanceOnce } from "./totals.ts";
import { troubleOf } from "../storage/trouble.ts";

export interface LiveSettingsDeps {
  readonly store: Pick<Store, "queues" | "listening" | "holds" | "workers" | "wake">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly pools: ReadonlyMap<string, Pool>;
  /** Queues that were given no number of slots. */
  readonly even: ReadonlySet<string>;
  /** The worker's session; null between two. */
  readonly session: () => number | null;
  /** They were read. */
  readonly onRead: () => void;
  /** The settings were read for the first time, or could not be. */
  readonly onFirst: () => void;
  /** The queue was paused or its slots were cut. */
  readonly onFewer: (pool: Pool) => void;
  /** The queue was paused, or a hold now stops it. */
  readonly onPaused: (pool: Pool) => void;
  /** It was resumed or has more slots. */
  readonly onMore: (pool: Pool) => void;
  readonly onFatal: (error: unknown) => void;
}

const apartMs = 1_000;
const listeningApartMs = 60_000;
// A worker that died gives its part of a total to the others within its lease and this.
const totalsApartMs = 5_000;

const nothingSet = { paused: false, backoff: null, breaker: null };

/** Reads the settings now and then. */
export class LiveSettings {
  readonly #deps: LiveSettingsDeps;
  #readAt = -Infinity;
  #reading = false;
  #again = false;
  #timer: Timer | undefined;
  #stopped = false;
  /** False until the settings have been read once, or could not be: slots are not known before. */
  known = false;
  #held = new Set<string>();
  /** The session that the others have been told of, because they share a total with it. */
  #announced: number | null = null;

  constructor(deps: LiveSettingsDeps) {
    this.#deps = deps;
  }

  /** They have changed: reads them now. */
  changed(): void {
    void this.#read();
  }

  /** Something has changed, perhaps these: reads them within a second. */
  mayHaveChanged(): void {
    this.#soon(apartMs);
  }

  /** The floor under the wake-ups: reads them if that was long ago. */
  looked(): void {
    const { store, clock } = this.#deps;
    const ms = store.listening ? listeningApartMs : apartMs;
    if (clock.monotonic() - this.#readAt >= ms) void this.#read(false);
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    if (this.#announced !== null) this.#deps.store.wake({ kind: "settings" });
  }

  #soon(ms: number, latestMs?: number): void {
    if (this.#timer !== undefined || this.#stopped) return;
    const waitMs = this.#readAt + ms - this.#deps.clock.monotonic();
    if (waitMs <= 0) void this.#read();
    else
      this.#timer = this.#deps.clock.after(waitMs, () => void this.#read(), { latestMs: latestMs ?? waitMs });
  }

  /** Holds keep claims away by themselves; they are read when something has changed, for what was claimed ahead. */
  async #read(withHolds = true): Promise<void> {
    const { store, clock, pools } = this.#deps;
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#stopped) return;
    if (this.#reading) {
      this.#again = true; // the one under way may have begun before the change
      return;
    }
    this.#reading = true;
    this.#readAt = clock.monotonic();
    try {
      const [settings, holds] = await Promise.all([
        store.queues.settings([...pools.keys()]),
        withHolds ? store.holds.list() : null,
      ]);
      const session = this.#deps.session();
      const served = [...pools.values()].map(({ queue, configured }) => ({
        queue,
        configured,
        even: this.#deps.even.has(queue),
      }));
      const split = await rebalanceOnce({ store, served, session }, settings);
      for (const pool of pools.values()) {
        const { paused, backoff, breaker } = settings.get(pool.queue) ?? nothingSet;
        const stood = pool.paused;
        const slots = pool.apply({ paused, backoff, breaker, slots: split.get(pool.queue) ?? null });
        const held =
          holds === null
            ? this.#held.has(pool.queue)
            : holds.some(({ queues }) => queues === null || queues.includes(pool.queue));
        if (slots === "fewer" || (held && !this.#held.has(pool.queue))) this.#deps.onFewer(pool);
        else if (slots === "more") this.#deps.onMore(pool);
        if ((paused && !stood) || (held && !this.#held.has(pool.queue))) this.#deps.onPaused(pool);
        if (held) this.#held.add(pool.queue);
        else this.#held.delete(pool.queue);
      }
      this.#deps.onRead();
      this.#shareTotals(
        [...settings.values()].some(({ total }) => total !== null),
        session,
      );
    } catch (error) {
      // Read again with the next look; an outage is the claimer's to report.
      const trouble = troubleOf(error);
      if (trouble === "permanent" && !this.#stopped) this.#deps.onFatal(error);
      if (trouble === "unclear")
        this.#deps.log.error(
          { error: describeFailure(error).message },
          "reading the queues' settings failed; retrying",
        );
    }
    this.#reading = false;
    if (!this.known) {
      this.known = true;
      if (!this.#stopped) this.#deps.onFirst();
    }
    if (!this.#again) return;
    this.#again = false;
    await this.#read();
  }

  /** Others must split anew when this worker comes; and this one must notice when another is gone. */
  #shareTotals(any: boolean, session: number | null): void {
    if (!any || this.#stopped) return;
    if (session !== null && this.#announced !== session) {
      this.#announced = session;
      this.#deps.store.wake({ kind: "settings" });
    }
    this.#soon(totalsApartMs, Infinity);
  }
}
