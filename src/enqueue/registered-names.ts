/**
 * The kinds that workers have registered, remembered for a few seconds: what an enqueue by name must know.
 *
 * Invariant: a look that is older than `freshMs` is renewed before an answer, except for `known`, which must answer
 * at once (a synchronous transaction cannot wait) and renews behind the caller's back.
 * Not here: registering (a worker does, when it starts).
 */
import type { Clock } from "../clock.ts";
import type { KindInfo } from "./store.ts";

const freshMs = 3_000;

/** Registered kinds, cached. */
export class KindCache {
  readonly #load: () => Promise<ReadonlyMap<string, KindInfo>>;
  readonly #clock: Clock;
  #kinds: ReadonlyMap<string, KindInfo> = new Map();
  #loadedAt = -Infinity;
  #loading: Promise<ReadonlyMap<string, KindInfo>> | null = null;

  constructor(load: () => Promise<ReadonlyMap<string, KindInfo>>, clock: Clock) {
    this.#load = load;
    this.#clock = clock;
  }

  /** Undefined: nobody has registered this kind yet. */
  find(name: string): KindInfo | undefined | Promise<KindInfo | undefined> {
    if (this.#clock.monotonic() - this.#loadedAt < freshMs) return this.#kinds.get(name);
    return this.refresh().then((kinds) => kinds.get(name));
  }

  /** As far as is known now. */
  known(name: string): KindInfo | undefined {
    if (this.#clock.monotonic() - this.#loadedAt >= freshMs) this.refresh().catch(() => {}); // the next look tries again
    return this.#kinds.get(name);
  }

  /** The next look asks the database. */
  forget(): void {
    this.#loadedAt = -Infinity;
  }

  refresh(): Promise<ReadonlyMap<string, KindInfo>> {
    this.#loading ??= this.#load()
      .then((kinds) => {
        this.#kinds = kinds;
        this.#loadedAt = this.#clock.monotonic();
        return kinds;
      })
      .finally(() => {
        this.#loading = null;
      });
    return this.#loading;
  }
}
