/**
 * Keeps a worker's pools in step with the queues' settings in the database: pause, slots, backoff.
 *
 * Invariants: a change is seen within 2 s (a wake-up says so, or the next look reads them), and never costs an idle
 * worker more than one read in 30 s while wake-ups arrive; a read that fails changes nothing.
 * Not here: enforcing a pause (the store's claim does), what a pool does with it (worker/pool.ts).
 */
import type { Clock, Timer } from "../clock.ts";
import type { Store } from "../store.ts";
import type { Pool } from "./pool.ts";
import { troubleOf } from "./trouble.ts";

export interface LiveSettingsDeps {
  readonly store: Pick<Store, "queueSettings" | "listening">;
  readonly clock: Clock;
  readonly pools: ReadonlyMap<string, Pool>;
  /** The queue was paused or its slots were cut. */
  readonly onFewer: (pool: Pool) => void;
  /** It was resumed or has more slots. */
  readonly onMore: (pool: Pool) => void;
  readonly onFatal: (error: unknown) => void;
}

const apartMs = 1_000;
const listeningApartMs = 30_000;

/** Reads the settings now and then. */
export class LiveSettings {
  readonly #deps: LiveSettingsDeps;
  #readAt = -Infinity;
  #reading = false;
  #again = false;
  #timer: Timer | undefined;
  #stopped = false;

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
    if (clock.monotonic() - this.#readAt >= ms) void this.#read();
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  #soon(ms: number): void {
    if (this.#timer !== undefined || this.#stopped) return;
    const waitMs = this.#readAt + ms - this.#deps.clock.monotonic();
    if (waitMs <= 0) void this.#read();
    else this.#timer = this.#deps.clock.after(waitMs, () => void this.#read());
  }

  async #read(): Promise<void> {
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
      const settings = await store.queueSettings([...pools.keys()]);
      for (const pool of pools.values()) {
        const change = settings.get(pool.queue) ?? { paused: false, slots: null, backoff: null };
        const slots = pool.apply(change);
        if (slots === "fewer") this.#deps.onFewer(pool);
        else if (slots === "more") this.#deps.onMore(pool);
      }
    } catch (error) {
      // Read again with the next look; an outage is the claimer's to report.
      if (troubleOf(error) === "permanent" && !this.#stopped) this.#deps.onFatal(error);
    }
    this.#reading = false;
    if (!this.#again) return;
    this.#again = false;
    await this.#read();
  }
}
