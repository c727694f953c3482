/**
 * `hf.holds`: named stops. While a hold is set, nothing is claimed from its queues, whoever set it and for whatever
 * reason ("session expired"); jobs keep their attempts, and go on when it is cleared.
 *
 * Invariant: holds are independent: a queue is claimed from again when its last hold is cleared.
 * Not here: pausing one queue (queues.ts), how a claim leaves held queues out (statements of each dialect).
 */
import { UsageError } from "../errors.ts";
import { checkName, checkText } from "../values/name.ts";
import { checkOptions } from "../values/options.ts";
import type { Retry } from "../storage/retry-calls.ts";
import type { Store } from "../storage/store.ts";
import type { Hold } from "./store.ts";

/** What `hf.holds.set` takes besides the name. */
export interface HoldOptions {
  /** Default: every queue. */
  readonly queues?: readonly string[] | undefined;
  /** Shown to whoever asks why. */
  readonly reason?: string | undefined;
}

/** What `hf.holds` needs of the client. */
export interface HoldsDeps {
  readonly store: Store;
  readonly retry: Retry;
  readonly checkOpen: () => void;
}

/** `hf.holds`. */
export class Holds {
  readonly #deps: HoldsDeps;

  constructor(deps: HoldsDeps) {
    this.#deps = deps;
  }

  /**
   * Sets a hold, or changes the one of this name.
   *
   * @example
   * await hf.holds.set("session-expired", { queues: ["crawl"], reason: "log in again" });
   */
  async set(name: string, options?: HoldOptions): Promise<void> {
    this.#deps.checkOpen();
    const hold = checkName(name, "The name of a hold");
    const { queues, reason } = checkOptions(options, ["queues", "reason"], "holds.set") as HoldOptions;
    if (queues !== undefined && (!Array.isArray(queues) || queues.length === 0)) {
      throw new UsageError(
        "BAD_OPTION",
        "queues must be an array of at least one queue; omit it to hold every queue.",
        { details: { option: "queues" } },
      );
    }
    const change = {
      name: hold,
      queues: queues === undefined ? null : queues.map((queue) => checkName(queue, "queues")),
      reason: reason === undefined || reason === "" ? null : checkText(reason, "reason", 4_096),
    };
    await this.#deps.retry.repeatable(() => this.#deps.store.holds.set(change));
    this.#deps.store.wake({ kind: "settings" });
  }

  /**
   * Clears a hold. False: there was none of this name.
   *
   * @example
   * await hf.holds.clear("session-expired");
   */
  async clear(name: string): Promise<boolean> {
    this.#deps.checkOpen();
    const hold = checkName(name, "The name of a hold");
    const cleared = await this.#deps.retry.once(() => this.#deps.store.holds.clear(hold));
    this.#deps.store.wake({ kind: "settings" });
    return cleared;
  }

  /**
   * Every hold that is set.
   *
   * @example
   * for (const { name, reason } of await hf.holds.list()) console.log(name, reason);
   */
  async list(): Promise<Hold[]> {
    this.#deps.checkOpen();
    return this.#deps.retry.repeatable(() => this.#deps.store.holds.list());
  }
}
