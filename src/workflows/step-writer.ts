/**
 * Writes steps: those of all runs of a worker that end while a write is on its way go together in the next.
 *
 *   record ─▶ gathering ─▶ in flight ──answered──▶ written, or the lease is lost
 *                ▲            ├─ the database is away ─▶ again, until it answers or the run has lost its lease
 *                └─ a pause ──┴─ it refuses ─▶ each alone; what it refuses even so waits aside, with what its run wrote after it
 *
 * Invariants: one write in flight for each worker; a run's steps are written in the order in which they came; a step
 * counts only once its write is known; a refused one keeps no other run waiting. Sending a write again is harmless: it is the
 * same row under the same fence.
 * Not here: what a step is (run.ts), the statement (step-rows.ts), which errors end a write (storage/patience.ts).
 */
import { type Clock, sleep } from "../clock.ts";
import type { Logger } from "../logger.ts";
import type { WorkflowStore, StepWrite } from "./store.ts";
import { isHopeless, Patience, pauseMs } from "../storage/patience.ts";
import { isAway, troubleOf } from "../storage/trouble.ts";

/** What came of a write. */
export type Written = { readonly lost: false; readonly wakeAt: number | null } | { readonly lost: true };

interface Waiting {
  readonly session: number;
  readonly step: StepWrite;
  /** The run knows by itself that its lease is gone. */
  readonly given: () => boolean;
  readonly resolve: (written: Written) => void;
  readonly reject: (error: unknown) => void;
  /** How often it was refused alone. */
  refusals: number;
}

const largestBatch = 500;

/** The steps of one worker on their way. */
export class StepWriter {
  readonly #store: Pick<WorkflowStore, "recordSteps">;
  readonly #clock: Clock;
  readonly #patience: Patience;
  #waiting: Waiting[] = [];
  /** By job: what was refused, and what came behind it. */
  readonly #aside = new Map<string, Waiting[]>();
  #busy = false;

  constructor(
    store: Pick<WorkflowStore, "recordSteps">,
    clock: Clock,
    log: Pick<Logger, "warn"> | null = null,
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#patience = new Patience(clock, log);
  }

  /** Resolves when the step is on disk, or known to be refused. */
  record(session: number, step: StepWrite, given: () => boolean): Promise<Written> {
    return new Promise((resolve, reject) => {
      this.#push([{ session, step, given, resolve, reject, refusals: 0 }]);
    });
  }

  /** Another call of a run, tried again as its steps are. */
  patiently<T>(call: () => Promise<T>, given: () => boolean): Promise<T> {
    return this.#patience.repeat(call, given);
  }

  #push(steps: readonly Waiting[]): void {
    for (const one of steps) (this.#aside.get(one.step.job) ?? this.#waiting).push(one);
    if (this.#busy || this.#waiting.length === 0) return;
    this.#busy = true;
    // A microtask: what is asked for side by side goes together.
    queueMicrotask(() => void this.#drain());
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      const session = this.#waiting[0]?.session;
      const batch: Waiting[] = [];
      const rest: Waiting[] = [];
      for (const one of this.#waiting)
        (one.session === session && batch.length < largestBatch ? batch : rest).push(one);
      this.#waiting = rest;
      await this.#write(batch);
    }
    this.#busy = false;
  }

  async #write(batch: readonly Waiting[]): Promise<void> {
    let open = batch;
    for (let tries = 0; open.length > 0; tries += 1) {
      try {
        const first = open[0] as Waiting;
        const written = await this.#store.recordSteps(
          first.session,
          open.map(({ step }) => step),
        );
        for (const { step, resolve } of open) {
          const row = written.get(`${step.job} ${step.name}`);
          resolve(row === undefined ? { lost: true } : { lost: false, wakeAt: row.wakeAt });
        }
        return;
      } catch (error) {
        if (troubleOf(error) === "permanent") {
          for (const { reject } of open) reject(error);
          return;
        }
        if (!isAway(error)) return this.#refused(open, error);
        for (const one of open) if (one.given()) one.resolve({ lost: true });
        open = open.filter((one) => !one.given());
        await sleep(this.#clock, pauseMs(tries)).catch(() => undefined);
      }
    }
  }

  /** One row may be at fault: alone, each of the others goes through. */
  async #refused(open: readonly Waiting[], error: unknown): Promise<void> {
    const [only] = open;
    if (open.length > 1) {
      for (const one of open) {
        const behind = this.#aside.get(one.step.job);
        if (behind === undefined) await this.#write([one]);
        else behind.push(one);
      }
      return;
    }
    if (only === undefined) return;
    if (isHopeless(error)) only.reject(error);
    else if (only.given()) only.resolve({ lost: true });
    else this.#putAside(only, error);
  }

  #putAside(one: Waiting, error: unknown): void {
    const { job, name } = one.step;
    this.#patience.tell(error, one.refusals, { job, step: name });
    const pause = pauseMs(one.refusals);
    one.refusals += 1;
    // Later steps of the same run come after it.
    this.#aside.set(job, [one, ...this.#waiting.filter(({ step }) => step.job === job)]);
    this.#waiting = this.#waiting.filter(({ step }) => step.job !== job);
    this.#clock.after(pause, () => {
      const behind = this.#aside.get(job) ?? [];
      this.#aside.delete(job);
      this.#push(behind);
    });
  }
}
