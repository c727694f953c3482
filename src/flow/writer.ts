/**
 * Writes steps: those of all runs of a worker that end while a write is on its way go together in the next.
 *
 *   record ─▶ gathering ─▶ in flight ──answered──▶ written, or the lease is lost
 *                             └─ the database is away ─▶ again, until it answers or the run has lost its lease
 *
 * Invariants: one write in flight for each worker; a run's steps are written in the order in which they came; a step
 * counts only once its write is known. Sending a write again is harmless: it is the same row under the same fence.
 * Not here: what a step is (run.ts), the statement (sql/flows.ts).
 */
import { type Clock, sleep } from "../clock.ts";
import type { Store, StepWrite } from "../store.ts";
import { troubleOf } from "../worker/trouble.ts";

/** What came of a write. */
export type Written = { readonly lost: false; readonly wakeAt: number | null } | { readonly lost: true };

interface Waiting {
  readonly session: number;
  readonly step: StepWrite;
  /** The run knows by itself that its lease is gone. */
  readonly given: () => boolean;
  readonly resolve: (written: Written) => void;
  readonly reject: (error: unknown) => void;
}

const largestBatch = 500;

/** The steps of one worker on their way. */
export class StepWriter {
  readonly #store: Pick<Store, "recordSteps">;
  readonly #clock: Clock;
  #waiting: Waiting[] = [];
  #busy = false;

  constructor(store: Pick<Store, "recordSteps">, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Resolves when the step is on disk, or known to be refused. */
  record(session: number, step: StepWrite, given: () => boolean): Promise<Written> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ session, step, given, resolve, reject });
      if (this.#busy) return;
      this.#busy = true;
      // A microtask: what is asked for side by side goes together.
      queueMicrotask(() => void this.#drain());
    });
  }

  /** Another write of a run, tried again while the database is away and the run has not given up. */
  async patiently<T>(call: () => Promise<T>, given: () => boolean): Promise<T> {
    for (let tries = 0; ; tries += 1) {
      try {
        return await call();
      } catch (error) {
        if (troubleOf(error) !== "passing" || given()) throw error;
        await sleep(this.#clock, Math.min(1_000, 50 * 2 ** tries));
      }
    }
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
        const trouble = troubleOf(error);
        if (trouble !== "passing") {
          // One row may be at fault: alone, each of the others goes through.
          if (open.length === 1 || trouble === "permanent") {
            for (const { reject } of open) reject(error);
            return;
          }
          for (const one of open) await this.#write([one]);
          return;
        }
        for (const one of open) if (one.given()) one.resolve({ lost: true });
        open = open.filter((one) => !one.given());
        await sleep(this.#clock, Math.min(1_000, 50 * 2 ** tries)).catch(() => undefined);
      }
    }
  }
}
