/**
 * `hf.workers`: the workers of all processes, as the database knows them, and steering them from afar: quiet, resume, stop.
 *
 * Invariant: a stop is a request in the database: the worker reads it with its next renewal (or is woken), finishes
 * what it runs as at any shutdown, and leaves the list. Being quiet is heard of in the same way.
 * Not here: a worker of this process (worker.stop, worker.quiet), noticing dead ones (lease/reaper.ts).
 */
import { shown, UsageError } from "../errors.ts";
import type { Retry } from "../storage/retry-calls.ts";
import type { Store } from "../storage/store.ts";
import type { UpkeepTaskState } from "../upkeep/store.ts";
import type { WorkerState } from "../lease/store.ts";

/** What `hf.workers` needs of the client. */
export interface WorkersDeps {
  readonly store: Store;
  readonly retry: Retry;
  readonly checkOpen: () => void;
}

/** `hf.workers`. */
export class Workers {
  readonly #deps: WorkersDeps;

  constructor(deps: WorkersDeps) {
    this.#deps = deps;
  }

  /**
   * Every live worker, with what it serves and runs. Holders of `hf.lease` are listed too, as `kind: "lease"`.
   *
   * @example
   * for (const worker of await hf.workers.list()) console.log(worker.name, worker.host, worker.jobs.length);
   */
  async list(): Promise<WorkerState[]> {
    this.#deps.checkOpen();
    return this.#deps.retry.repeatable(() => this.#deps.store.workers.list());
  }

  /**
   * Asks workers to stop: the one of this id, those of this name, or all. Resolves with how many were asked.
   *
   * @example
   * await hf.workers.stop("all");
   * while (!(await hf.workers.drained())) await sleep(500);
   */
  async stop(which: string): Promise<number> {
    const { store, retry } = this.#deps;
    const asked = (await this.#matching(which, "workers.stop")).map(({ session }) => session);
    if (asked.length === 0) return 0;
    const stopped = await retry.repeatable(() => store.workers.stop(asked));
    for (const session of asked) store.wake({ kind: "stop", session });
    return stopped;
  }

  /**
   * Makes workers quiet: the one of this id, those of this name, or all. They claim nothing more, give back what they have
   * not started, finish what runs, and stay alive until they are resumed or stopped. Resolves with how many were asked.
   *
   * @example
   * await hf.workers.quiet("crawler-1");
   */
  async quiet(which: string): Promise<number> {
    const asked = (await this.#matching(which, "workers.quiet")).map(({ session }) => session);
    if (asked.length === 0) return 0;
    return this.#deps.retry.repeatable(() => this.#deps.store.workers.quiet(asked));
  }

  /**
   * Lets quiet workers claim again: the one of this id, those of this name, or all. Resolves with how many were asked.
   *
   * @example
   * await hf.workers.resume("all");
   */
  async resume(which: string): Promise<number> {
    const asked = (await this.#matching(which, "workers.resume")).map(({ session }) => session);
    if (asked.length === 0) return 0;
    return this.#deps.retry.repeatable(() => this.#deps.store.workers.resume(asked));
  }

  /**
   * Whether no such worker is left: the one of this id, those of this name, or (by default) any.
   *
   * @example
   * if (await hf.workers.drained()) console.log("safe to migrate");
   */
  async drained(which: string = "all"): Promise<boolean> {
    return (await this.#matching(which, "workers.drained")).length === 0;
  }

  /**
   * What one worker does for all from time to time (pruning, looking after dead workers, …), who did it last, and from when on
   * it is done next. There is no leader: whoever asks first does it.
   *
   * @example
   * for (const { name, by, doneAt } of await hf.workers.upkeep()) console.log(name, by, doneAt);
   */
  async upkeep(): Promise<UpkeepTaskState[]> {
    this.#deps.checkOpen();
    return this.#deps.retry.repeatable(() => this.#deps.store.upkeep.tasks());
  }

  async #matching(which: unknown, what: string): Promise<WorkerState[]> {
    if (typeof which !== "string" || which === "") {
      throw new UsageError(
        "BAD_OPTION",
        `${what} takes a worker's id or name, or "all"; got ${shown(which)}.`,
      );
    }
    const workers = (await this.list()).filter(({ kind }) => kind === "worker");
    return which === "all" ? workers : workers.filter(({ id, name }) => id === which || name === which);
  }
}
