/**
 * Forks: a new job with the first steps of one that has ended, in one transaction. fork.ts says which steps, and why not.
 *
 * Invariants: the first run and its rows are only read; steps are copied before anybody can claim the new job, and are not undone
 * by it (what they did belongs to the first run).
 */
import { planFork } from "./fork.ts";
import type { Enqueued, JobExtras, NewJob } from "../jobs/job.ts";
import type { ForkOutcome } from "../storage/store.ts";
import type { Script } from "../storage/catalogue.ts";
import type { Driver } from "../storage/driver.ts";
import { enqueueScript } from "../enqueue/insert.ts";
import { stepRecord } from "./step-rows.ts";
import { maybeNumber, maybeText, number, text, unquoted } from "../jobs/rows.ts";
import type { Placing } from "../schedules/schedule-rows.ts";

export class Forks {
  readonly #driver: Driver;
  readonly #placing: Placing;

  constructor(driver: Driver, placing: Placing) {
    this.#driver = driver;
    this.#placing = placing;
  }

  /** Null: no job that has ended has this id. */
  async fork(id: string, from: string, newId: string): Promise<ForkOutcome | null> {
    const [found] = await this.#driver.read({ name: "forkable", params: { id } });
    if (found === undefined) return null;
    const place = { queue: text(found, "queue"), name: text(found, "name"), lane: maybeText(found, "lane") };
    await this.#placing.learn(place);
    const placing = this.#placing;
    const now = this.#driver.now();
    return this.#driver.transaction("fork", function* (): Script<ForkOutcome | null> {
      const [row] = yield { name: "forkable", params: { id } };
      if (row === undefined) return null;
      const steps = (yield { name: "findSteps", params: { id } }).map(stepRecord);
      const end = { state: text(row, "state"), endedAt: number(row, "ended_at") };
      const plan = planFork(end, steps, from);
      if (plan.refused !== null) return { refused: plan.refused, job: null, enqueued: null };
      const extras = maybeText(row, "extras");
      const context = maybeText(row, "context");
      const job: NewJob = {
        ...place,
        id: newId,
        priority: -number(row, "rank") || 0,
        input: text(row, "input"),
        delayMs: null,
        runAt: null,
        maxAttempts: maybeNumber(row, "max_attempts"),
        timeoutMs: maybeNumber(row, "timeout_ms"),
        // The key is the first run's: a fork is asked for on purpose, and stands beside whoever has it.
        unique: null,
        context: context === null ? `fork of ${id}, from ${from}` : unquoted(context),
        parentId: null,
        deadlineAt: null,
        extras: extras === null ? null : (JSON.parse(extras) as JobExtras),
      };
      const [enqueued] = yield* enqueueScript([placing.place(job)], now);
      yield { name: "copySteps", params: { id, to: newId, before: plan.before } };
      yield { name: "markBegun", params: { id: newId } };
      return { refused: null, job, enqueued: enqueued as Enqueued };
    });
  }
}
