/**
 * Runs duties on their periods, in every worker: the database picks one process for each period.
 *
 * Invariants: a duty that fails is named, and runs again at its next period; one that can never work (the tables
 * are gone, a fault of our own) ends the loop and is named too; no duty overlaps itself; nothing here rejects.
 * Not here: what a duty does (one file each, with a one-shot form).
 */
import type { Clock, Timer } from "../clock.ts";
import type { Logger } from "../logger.ts";
import { describeFailure } from "../jobs/failure.ts";
import type { Store } from "../storage/store.ts";
import { troubleOf } from "../storage/trouble.ts";

/** Something to be done again and again by one of all processes. */
export interface Duty {
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
  /** A duty failed; it will run again. */
  readonly onError: (error: unknown, duty: string) => void;
  /** A duty can never work. */
  readonly onFatal: (error: unknown, duty: string) => void;
}

/** Runs duties until it is stopped. */
export class Maintenance {
  readonly #deps: MaintenanceDeps;
  readonly #timers = new Map<string, Timer>();
  readonly #busy = new Set<Promise<void>>();
  #stopped = false;

  constructor(deps: MaintenanceDeps) {
    this.#deps = deps;
  }

  start(duties: readonly Duty[]): void {
    for (const duty of duties) this.#arm(duty);
  }

  /** Sets no more timers, and waits for the duty that is under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
    await Promise.all(this.#busy);
  }

  #arm(duty: Duty): void {
    if (this.#stopped) return;
    // Spread by a tenth, so that a hundred workers that started together do not ask together for ever.
    const ms = duty.everyMs * (0.95 + this.#deps.random() / 10);
    const start = (): void => {
      const turn: Promise<void> = this.#turn(duty).finally(() => this.#busy.delete(turn));
      this.#busy.add(turn);
    };
    this.#timers.set(duty.name, this.#deps.clock.after(ms, start, { latestMs: Infinity }));
  }

  async #turn(duty: Duty): Promise<void> {
    try {
      // Asked a little short of the period: this process's own timer must not miss the period by a hair every time.
      const { store, workerId = null } = this.#deps;
      if (await store.upkeep.duty(duty.name, Math.floor(duty.everyMs * 0.9), workerId)) await duty.run();
    } catch (error) {
      if (this.#failed(error, duty)) return;
    }
    this.#arm(duty);
  }

  /** True when it is the end. */
  #failed(error: unknown, duty: Duty): boolean {
    const trouble = troubleOf(error);
    const details = { duty: duty.name, error: describeFailure(error).message };
    if (trouble === "passing") {
      this.#deps.log.debug(details, "an upkeep task was delayed: the database is away");
      return false;
    }
    this.#deps.log.error(details, `the upkeep task ${duty.name} failed`);
    if (trouble === "unclear") {
      this.#deps.onError(error, duty.name);
      return false;
    }
    this.#deps.onFatal(error, duty.name);
    return true;
  }
}
