/**
 * `hf.state`: durable values of the user's own, by key, as JSON.
 *
 * Invariant: what `get` gives is what `set` was given, or an error said that JSON cannot hold it.
 * Not here: passes with their clean-exit flag (a later issue).
 */
import { encodeJson, decodeJson } from "./policy/json.ts";
import { checkText } from "./policy/name.ts";
import type { Retry } from "./retry.ts";
import type { Store } from "./store.ts";

/** What `hf.state` needs of the client. */
export interface StateDeps {
  readonly store: Store;
  readonly retry: Retry;
  readonly maxPayloadBytes: number;
  readonly checkOpen: () => void;
}

const valueCodes = { notJson: "INPUT_NOT_JSON", tooLarge: "INPUT_TOO_LARGE" } as const;

/** `hf.state`. */
export class State {
  readonly #deps: StateDeps;

  constructor(deps: StateDeps) {
    this.#deps = deps;
  }

  /**
   * The value, or null when there is none.
   *
   * @example
   * const last = await hf.state.get<{ page: number }>("crawl:last");
   */
  async get<Value = unknown>(key: string): Promise<Value | null> {
    this.#deps.checkOpen();
    const known = checkText(key, "The key of state.get");
    const text = await this.#deps.retry.repeatable(() => this.#deps.store.getState(known));
    return text === null ? null : (decodeJson(text, `state "${known}"`) as Value);
  }

  /**
   * Sets the value.
   *
   * @throws UsageError INPUT_NOT_JSON, INPUT_TOO_LARGE, BAD_KEY
   * @example
   * await hf.state.set("crawl:last", { page: 7 });
   */
  async set(key: string, value: unknown): Promise<void> {
    this.#deps.checkOpen();
    const known = checkText(key, "The key of state.set");
    const text = encodeJson(value, "value", this.#deps.maxPayloadBytes, valueCodes);
    await this.#deps.retry.repeatable(() => this.#deps.store.setState(known, text));
  }

  /**
   * Removes the value. False: there was none.
   *
   * @example
   * await hf.state.delete("crawl:last");
   */
  async delete(key: string): Promise<boolean> {
    this.#deps.checkOpen();
    const known = checkText(key, "The key of state.delete");
    return this.#deps.retry.once(() => this.#deps.store.deleteState(known));
  }
}
