/**
 * `hf.breakers`: which sources of failures are stopped now, over all processes, and how to let them go on by hand.
 *
 * Not here: when a breaker opens and closes (limits/rules/breaker-rule.ts), what a worker does meanwhile (worker/guards/breaker-guard.ts).
 */
import { checkText } from "../values/name.ts";
import type { Retry } from "../storage/retry-calls.ts";
import type { Store } from "../storage/store.ts";
import type { BreakerState } from "./store.ts";

/** What `hf.breakers` needs of the client. */
export interface BreakersDeps {
  readonly store: Store;
  readonly retry: Retry;
  readonly checkOpen: () => void;
}

/** `hf.breakers`. */
export class Breakers {
  readonly #deps: BreakersDeps;

  constructor(deps: BreakersDeps) {
    this.#deps = deps;
  }

  /**
   * Every breaker that has counted a failure since its latest success.
   *
   * @example
   * for (const { key, state, failures, openUntil } of await hf.breakers.list()) console.log(key, state, failures, openUntil);
   */
  async list(): Promise<BreakerState[]> {
    this.#deps.checkOpen();
    const all = await this.#deps.retry.repeatable(() => this.#deps.store.breakers.list(null));
    return all.filter(({ state, failures }) => state !== "closed" || failures > 0);
  }

  /**
   * Closes a breaker and forgets its failures; its jobs go on at once. False: nothing was known of it.
   *
   * @example
   * await hf.breakers.reset("queue:mail");
   */
  async reset(key: string): Promise<boolean> {
    this.#deps.checkOpen();
    const name = checkText(key, "The key of a breaker", 1_024);
    return this.#deps.retry.once(() => this.#deps.store.breakers.reset(name));
  }
}
