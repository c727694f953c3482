/**
 * Undoing what a run has done, because it ends dead or cancelled (a saga).
 *
 *   the handler is led through its history, so that its undo functions are known
 *   ─▶ newest finished step first: undo it ─ ok ──▶ written ─▶ the next
 *                                          └ threw ─▶ tries left ─▶ written, the run sleeps until its next try
 *                                                   └ else ─▶ the job is dead with UNDO_FAILED
 *   ─▶ all undone: the job ends as it would have
 *
 * Invariants: each undo that has finished is written before the next begins, and is not run again; what ends the attempt
 * (a timeout, a shutdown) ends no undoing: a timeout is a failed try of the undo under way, and after a shutdown
 * another worker goes on.
 * Not here: when a job is to be undone (jobs/transition.ts, worker/ends/end-asks.ts).
 */
import type { Clock } from "../clock.ts";
import { isHoldfastError, JobError } from "../errors.ts";
import type { ClaimedJob } from "../jobs/job.ts";
import { backoffMs, DEFAULT_BACKOFF } from "../jobs/backoff.ts";
import { appendFailure, describeFailure } from "../jobs/failure.ts";
import { decodeJson } from "../values/json.ts";
import type { StepRecord } from "./store.ts";
import type { Outcome } from "../jobs/outcome.ts";
import type { StepInfo } from "./request.ts";
import { runInside } from "./inside-step.ts";
import { isFinal } from "./step-error.ts";
import type { StepWriter } from "./step-writer.ts";

export interface UndoDeps {
  readonly writer: Pick<StepWriter, "record">;
  readonly clock: Clock;
  readonly random: () => number;
  readonly signal: () => AbortSignal;
  readonly over: () => boolean;
  /** The undo function that the code has for a step. */
  readonly undoOf: (step: string) => ((output: unknown, info: StepInfo) => unknown) | null;
  readonly onEnd: (outcome: Outcome) => void;
  readonly onLost: () => void;
}

const undoAttempts = 5;

/** What is to be undone, and how the job ends then. */
export class Undo {
  readonly #job: ClaimedJob;
  readonly #deps: UndoDeps;
  readonly #state: "dead" | "cancelled";
  readonly #errors: string | null;
  /** Finished steps that can be undone, newest first. */
  readonly #steps: readonly StepRecord[];
  readonly #records: ReadonlyMap<string, StepRecord>;
  handlerEnded = false;
  started = false;

  constructor(
    job: ClaimedJob,
    marker: StepRecord,
    past: { readonly given: readonly StepRecord[]; readonly records: readonly StepRecord[] },
    deps: UndoDeps,
  ) {
    this.#job = job;
    this.#deps = deps;
    this.#state = marker.label === "cancelled" ? "cancelled" : "dead";
    this.#errors = marker.output === null ? null : (decodeJson(marker.output, "undo") as string | null);
    this.#steps = past.given.filter((record) => record.undo && record.state === "done").reverse();
    this.#records = new Map(past.records.map((record) => [record.name, record]));
  }

  async all(): Promise<void> {
    for (const step of this.#steps) {
      const before = this.#records.get(`undo:${step.name}`);
      if (before?.state === "done") continue;
      if ((before?.wakeAt ?? 0) > this.#job.startedAt) return this.#later(before?.wakeAt ?? null);
      if (!(await this.#one(step, (before?.tries ?? 0) + 1))) return;
    }
    if (!this.#deps.over()) this.#deps.onEnd({ kind: "undone", state: this.#state, errors: this.#errors });
  }

  /** Whether it is undone, and the next may follow. */
  async #one(step: StepRecord, tries: number): Promise<boolean> {
    const { clock, random, over, onEnd, onLost } = this.#deps;
    const startedAt = clock.monotonic();
    const write = (change: {
      state: "open" | "done" | "failed";
      error: string | null;
      wakeInMs: number | null;
    }) => this.#write(step, { ...change, tries, tookMs: clock.monotonic() - startedAt });
    const undo = this.#deps.undoOf(step.name);
    try {
      if (undo === null)
        throw new JobError("DIVERGED", `the code no longer has an undo function for step "${step.name}"`);
      const output = step.output === null ? undefined : decodeJson(step.output, `step "${step.name}"`);
      await this.#orStopped((signal) =>
        runInside(this.#job, `the compensation of step "${step.name}"`, () =>
          undo(output, { attempt: tries, signal }),
        ),
      );
    } catch (error) {
      if (over()) return false;
      if (isShutdown(error)) {
        onEnd({ kind: "released", delayMs: 0, reason: "shutdown" });
        return false;
      }
      const failure = describeFailure(error);
      const kept = JSON.stringify(failure);
      if (tries < undoAttempts && undo !== null && !isFinal(error)) {
        const wakeInMs = Math.round(backoffMs(DEFAULT_BACKOFF, tries, random));
        const written = await write({ state: "open", error: kept, wakeInMs });
        if (written.lost) onLost();
        else this.#later(written.wakeAt);
        return false;
      }
      if ((await write({ state: "failed", error: kept, wakeInMs: null })).lost) {
        onLost();
        return false;
      }
      const message = `UNDO_FAILED: step "${step.name}" could not be compensated: ${failure.message}`;
      const entry = { at: clock.now(), attempt: this.#job.attempt, message, stack: failure.stack };
      onEnd({ kind: "undone", state: "dead", errors: appendFailure(this.#errors, entry) });
      return false;
    }
    if (!(await write({ state: "done", error: null, wakeInMs: null })).lost) return true;
    onLost();
    return false;
  }

  /** One that never settles must not keep the run: what stops the attempt stops it. A cancel does not: it is being undone. */
  async #orStopped(fn: (signal: AbortSignal) => unknown): Promise<unknown> {
    const signal = this.#deps.signal();
    const stopped = Promise.withResolvers<never>();
    stopped.promise.catch(() => {});
    const stop = (): void => {
      const reason: unknown = signal.reason;
      if (!(isHoldfastError(reason) && reason.code === "CANCELLED")) stopped.reject(reason);
    };
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    try {
      return await Promise.race([fn(signal), stopped.promise]);
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }

  #write(
    step: StepRecord,
    change: {
      readonly state: "open" | "done" | "failed";
      readonly error: string | null;
      readonly wakeInMs: number | null;
      readonly tries: number;
      readonly tookMs: number;
    },
  ) {
    const { id, token, session, attempt } = this.#job;
    // One after the other, behind everything that was done.
    const seq = 1_000_000_000 + this.#steps.indexOf(step);
    return this.#deps.writer.record(
      session,
      {
        job: id,
        token,
        name: `undo:${step.name}`,
        seq,
        givenOrder: null,
        kind: "undo",
        attempt,
        undo: false,
        fails: 0,
        given: seq,
        output: null,
        label: null,
        ...change,
      },
      this.#deps.over,
    );
  }

  #later(wakeAt: number | null): void {
    this.#deps.onEnd({ kind: "suspended", waits: "sleep", at: wakeAt, topics: [], open: 0, every: false });
  }
}

function isShutdown(error: unknown): boolean {
  return isHoldfastError(error) && error.code === "SHUTDOWN";
}
