/**
 * The names that workers have registered, remembered for a few seconds: what an enqueue by name must know.
 *
 * Invariant: a look that is older than `freshMs` is renewed before an answer, except for `known`, which must answer
 * at once (a synchronous transaction cannot wait) and renews behind the caller's back.
 * Not here: registering (a worker does, when it starts).
 */
import type { Clock } from "../clock.ts";
import type { DefinitionInfo } from "./store.ts";

const freshMs = 3_000;

/** Registered names, cached. */
export class DefinitionCache {
  readonly #load: () => Promise<ReadonlyMap<string, DefinitionInfo>>;
  readonly #clock: Clock;
  #definitions: ReadonlyMap<string, DefinitionInfo> = new Map();
  #loadedAt = -Infinity;
  #loading: Promise<ReadonlyMap<string, DefinitionInfo>> | null = null;

  constructor(load: () => Promise<ReadonlyMap<string, DefinitionInfo>>, clock: Clock) {
    this.#load = load;
    this.#clock = clock;
  }

  /** Undefined: nobody has registered this kind yet. */
  find(name: string): DefinitionInfo | undefined | Promise<DefinitionInfo | undefined> {
    if (this.#clock.monotonic() - this.#loadedAt < freshMs) return this.#definitions.get(name);
    return this.refresh().then((definitions) => definitions.get(name));
  }

  /** As far as is known now. */
  known(name: string): DefinitionInfo | undefined {
    if (this.#clock.monotonic() - this.#loadedAt >= freshMs) this.refresh().catch(() => {}); // the next look tries again
    return this.#definitions.get(name);
  }

  /** The next look asks the database. */
  forget(): void {
    this.#loadedAt = -Infinity;
  }

  refresh(): Promise<ReadonlyMap<string, DefinitionInfo>> {
    this.#loading ??= this.#load()
      .then((definitions) => {
        this.#definitions = definitions;
        this.#loadedAt = this.#clock.monotonic();
        return definitions;
      })
      .finally(() => {
        this.#loading = null;
      });
    return this.#loading;
  }
}
