/**
 * `hf.state`: durable values of the user's own, by key, as JSON.
 *
 * Invariant: what `get` gives is what `set` was given, or an error said that JSON cannot hold it.
 * Not here: how a pass runs (pass.ts).
 */
import { encodeJson, decodeJson } from "../values/json.ts";
import { type Pass, type PassDeps, type PassOptions, type PassState, runPass } from "./pass.ts";
import { checkText } from "../values/name.ts";
import type { Retry } from "../storage/retry-calls.ts";
import type { Store } from "../storage/store.ts";

/** What `hf.state` needs of the client. */
export interface StateDeps extends PassDeps {
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
    const text = await this.#deps.retry.repeatable(() => this.#deps.store.state.get(known));
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
    await this.#deps.retry.repeatable(() => this.#deps.store.state.set(known, text));
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
    return this.#deps.retry.once(() => this.#deps.store.state.delete(known));
  }

  /**
   * Runs a recurring pass and remembers whether it ended clean; gives what the function returns. The next pass is told
   * `recovery: true` after one that crashed, threw, was stopped, reached a limit or was given up, and for the first of a name.
   *
   * @throws StateError PASS_RUNNING, PASS_ABORTED, PASS_LOST, and whatever the function throws
   * @example
   * await hf.state.pass("sync", async (pass) => {
   *   for (const id of pass.recovery ? await allIds() : await changedIds()) await pass.try(() => sync(id));
   * });
   */
  async pass<T>(name: string, work: (pass: Pass) => T | Promise<T>, options?: PassOptions): Promise<T> {
    this.#deps.checkOpen();
    return runPass(name, work, options, this.#deps);
  }

  /**
   * Every pass that ever ran, with its flag.
   *
   * @example
   * const unclean = (await hf.state.passes()).filter((pass) => !pass.clean && !pass.running);
   */
  async passes(): Promise<PassState[]> {
    this.#deps.checkOpen();
    const rows = await this.#deps.retry.repeatable(() => this.#deps.store.passes.list());
    return rows.map(({ name, clean, runs, heldUntil, startedAt, endedAt, reason, now }) => ({
      name,
      clean,
      running: heldUntil !== null && heldUntil > now,
      runs,
      startedAt: startedAt === null ? null : new Date(startedAt),
      endedAt: endedAt === null ? null : new Date(endedAt),
      reason,
    }));
  }
}
