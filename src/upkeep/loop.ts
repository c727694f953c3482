/**
 * Runs upkeep tasks on their periods, in every worker: the database picks one process for each period.
 *
 * Invariants: an upkeep task that fails is named, and runs again at its next period; one that can never work (the tables
 * are gone, a fault of our own) ends the loop and is named too; no upkeep task overlaps itself; nothing here rejects.
 * Not here: what an upkeep task does (one file each, with a one-shot form).
 */
import type { Clock, Timer } from "../clock.ts";
import type { Logger } from "../logger.ts";
import { describeFailure } from "../jobs/failure.ts";
import type { Store } from "../storage/store.ts";
import { troubleOf } from "../storage/trouble.ts";

/** Something to be done again and again by one of all processes. */
export interface UpkeepTask {
  readonly name: string;
  readonly everyMs: number;
  readonly run: () => Promise<unknown>;
}

export interface MaintenanceDeps {
  readonly store: Pick<Store, "upkeep">;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly workerId?: string;
  /** An upkeep task failed; it will run again. */
  readonly onError: (error: unknown, upkeepTask: string) => void;
  /** An upkeep task can never work. */
  readonly onFatal: (error: unknown, upkeepTask: string) => void;
}

/** Runs upkeep tasks until it is stopped. */
export class Maintenance {
  readonly #deps: MaintenanceDeps;
  readonly #timers = new Map<string, Timer>();
  readonly #busy = new Set<Promise<void>>();
  #stopped = false;

  constructor(deps: MaintenanceDeps) {
    this.#deps = deps;
  }

  start(upkeepTasks: readonly UpkeepTask[]): void {
    for (const upkeepTask of upkeepTasks) this.#arm(upkeepTask);
  }

  /** Sets no more timers, and waits for the upkeep task that is under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
    await Promise.all(this.#busy);
  }

  #arm(upkeepTask: UpkeepTask): void {
    if (this.#stopped) return;
    // Spread by a tenth, so that a hundred workers that started together do not ask together for ever.
    const ms = upkeepTask.everyMs * (0.95 + this.#deps.random() / 10);
    const start = (): void => {
      const turn: Promise<void> = this.#turn(upkeepTask).finally(() => this.#busy.delete(turn));
      this.#busy.add(turn);
    };
    this.#timers.set(upkeepTask.name, this.#deps.clock.after(ms, start, { latestMs: Infinity }));
  }

  async #turn(upkeepTask: UpkeepTask): Promise<void> {
    try {
      // Asked a little short of the period: this process's own timer must not miss the period by a hair every time.
      const { store, workerId = null } = this.#deps;
      if (await store.upkeep.takeTask(upkeepTask.name, Math.floor(upkeepTask.everyMs * 0.9), workerId))
        await upkeepTask.run();
    } catch (error) {
      if (this.#failed(error, upkeepTask)) return;
    }
    this.#arm(upkeepTask);
  }

  /** True when it is the end. */
  #failed(error: unknown, upkeepTask: UpkeepTask): boolean {
    const trouble = troubleOf(error);
    const details = { upkeepTask: upkeepTask.name, error: describeFailure(error).message };
    if (trouble === "passing") {
      this.#deps.log.debug(details, "an upkeep task was delayed: the database is away");
      return false;
    }
    this.#deps.log.error(details, `the upkeep task ${upkeepTask.name} failed`);
    if (trouble === "unclear") {
      this.#deps.onError(error, upkeepTask.name);
      return false;
    }
    this.#deps.onFatal(error, upkeepTask.name);
    return true;
  }
}
