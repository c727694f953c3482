/**
 * Doing what a run has not done before: a step, the beginning of a sleep, of a wait or of a call; and writing it down.
 *
 *   step ─▶ fn ─ ok ──▶ written ─▶ handed to the run, which gives it in its turn
 *                └ threw ─▶ tries left ─▶ written as open, with the instant of its next try ─▶ the run waits
 *                         └ else ─▶ written as failed ─▶ handed
 *   sleep, wait, call ─▶ written as open ─▶ the run waits; one that is over at once is handed
 *
 * Invariants: a result counts once it is written under the fence; nothing is handed over that is not on disk, save what ends the
 * attempt (`break`). A write that is refused means that the attempt is not ours any more.
 * Not here: when a thing may be done, and when its result is given (run.ts).
 */
import type { Clock, Timer } from "../clock.ts";
import { isRetryAfter, orThrow } from "../jobs/decision.ts";
import { type HoldfastError, JobError, StateError, UsageError } from "../errors.ts";
import type { ClaimedJob, NewJob, StepKind } from "../jobs/job.ts";
import type { Logger } from "../logger.ts";
import { backoffMs, DEFAULT_BACKOFF } from "../jobs/backoff.ts";
import { describeFailure } from "../jobs/failure.ts";
import { decodeJson, encodeJson } from "../values/json.ts";
import type { Store } from "../storage/store.ts";
import type { After, StepRecord } from "./store.ts";
import { Advance } from "./advance.ts";
import type { Ask, StepInfo, StepSettings } from "./request.ts";
import { runInside } from "./inside-step.ts";
import { isAboutJob, isFinal, isOurs, isUsage, stepError } from "./step-error.ts";
import { withTry } from "./step-tries.ts";
import type { StepWriter } from "./step-writer.ts";

/** What doing needs of the attempt and its worker. */
export interface DoerDeps {
  readonly store: Pick<Store, "workflows" | "userTx">;
  readonly writer: Pick<StepWriter, "record" | "patiently">;
  readonly clock: Clock;
  readonly random: () => number;
  readonly maxBytes: number;
  /** Every line names the job. */
  readonly log: () => Pick<Logger, "warn">;
  readonly signal: () => AbortSignal;
  /** Of the code that runs. */
  readonly version: number;
}

/** The run, as far as doing tells it what came of something. */
export interface DoerRun {
  /** Nothing more is wanted. */
  readonly over: boolean;
  /** The next place in the order in which things are given. */
  givenOrder(): number;
  /** The result is on disk: to be given in its turn. */
  hand(ask: Ask, settle: () => void): void;
  /** It is under way by itself: until an instant, or until somebody answers. */
  waits(ask: Ask, wakeAt: number | null, change?: Partial<StepRecord>): void;
  /** Given as a failure that the history has. */
  fail(ask: Ask, error: HoldfastError): void;
  /** Given without being remembered. */
  break(ask: Ask, error: unknown): void;
  /** The attempt is not ours any more. */
  lost(ask: Ask, error: StateError): void;
}

const outputCodes = { notJson: "OUTPUT_NOT_JSON", tooLarge: "OUTPUT_TOO_LARGE" } as const;

/** Does things for one run. */
export class Doer {
  readonly #job: ClaimedJob;
  readonly #deps: DoerDeps;
  readonly #run: DoerRun;
  readonly #advance: Advance;
  /** Whether a step that can be undone has been done here. */
  undoable = false;
  /** The latest thing whose end is on disk; of those in a user's transaction nobody knows. */
  #after: After = null;

  constructor(job: ClaimedJob, deps: DoerDeps, run: DoerRun) {
    this.#job = job;
    this.#deps = deps;
    this.#run = run;
    this.#advance = new Advance(job, deps.version, deps.store, (call) => this.persist(call));
  }

  async do(ask: Ask): Promise<void> {
    try {
      if (!this.#advance.known) {
        const tx = ask.doing.kind === "step" ? ask.doing.settings.tx : null;
        if (!(await (tx === null ? this.#advance.keep() : this.#advance.keepIn(tx)))) return this.#lost(ask);
        if (this.#run.over) return;
      }
      switch (ask.doing.kind) {
        case "step":
          await this.#doStep(ask, ask.doing.fn, ask.doing.settings);
          return;
        case "sleep":
          await this.#doSleep(ask, ask.doing.ms);
          return;
        case "signal":
          await this.#doWait(ask, ask.doing.topic, ask.doing.timeoutMs);
          return;
        case "call":
          await this.#doCall(ask, ask.doing.child);
          return;
        case "version": {
          const { current } = ask.doing;
          const output = String(current);
          const done = { state: "done", output, tries: 1, givenOrder: this.#run.givenOrder() } as const;
          if ((await this.write(ask, done)) !== null) this.#run.hand(ask, () => ask.resolve(current));
          return;
        }
      }
    } catch (error) {
      if (ask.doing.kind === "call" && isUsage(error)) await this.#refuseCall(ask, error);
      else this.#run.break(ask, error);
    }
  }

  /** What cannot be called will not be called the next time either: a failure like that of a step. */
  async #refuseCall(ask: Ask, error: UsageError): Promise<void> {
    const failed = {
      state: "failed",
      tries: 1,
      error: JSON.stringify(describeFailure(error)),
      givenOrder: this.#run.givenOrder(),
    } as const;
    try {
      if ((await this.write(ask, failed)) !== null) this.#run.hand(ask, () => this.#run.fail(ask, error));
    } catch (trouble) {
      this.#run.break(ask, trouble);
    }
  }

  async #doStep(ask: Ask, fn: (info: StepInfo) => unknown, settings: StepSettings): Promise<void> {
    const { clock } = this.#deps;
    // A step that failed in an earlier attempt of the job starts counting anew; one that waited for its retry does not.
    const tries = (ask.record?.state === "open" ? ask.record.tries : 0) + 1;
    const startedAt = clock.monotonic();
    const began = clock.now();
    const ran = await this.#try(ask.name, fn, settings, tries);
    if (this.#run.over) return;
    const tookMs = clock.monotonic() - startedAt;
    const label = withTry(ask.record, began, tookMs, ran.ok);
    const undo = settings.undo !== null;
    if (ran.ok) {
      const { text } = ran;
      const value = text === null ? undefined : decodeJson(text, `output of step "${ask.name}"`);
      const done = {
        state: "done",
        output: text,
        tries,
        tookMs,
        undo,
        label,
        givenOrder: this.#run.givenOrder(),
      } as const;
      if (undo) this.undoable = true;
      if ((await this.write(ask, done, settings.tx)) !== null) this.#run.hand(ask, () => ask.resolve(value));
      return;
    }
    const { error } = ran;
    // A decision is about the job, and an attempt that was told to stop says nothing about the step.
    if (isAboutJob(error) || this.#deps.signal().aborted || isOurs(error)) {
      this.#run.break(ask, error);
      return;
    }
    const failure = describeFailure(error);
    const kept = JSON.stringify(failure);
    if (tries < settings.attempts && !isFinal(error)) {
      const delayMs = isRetryAfter(error)
        ? error.delayFrom(clock.now())
        : backoffMs(settings.backoff ?? DEFAULT_BACKOFF, tries, this.#deps.random);
      const retry = {
        state: "open",
        tries,
        tookMs,
        error: kept,
        label,
        givenOrder: null,
        wakeInMs: Math.round(delayMs),
      } as const;
      const written = await this.write(ask, retry);
      if (written !== null) {
        const { message, stack } = failure;
        const details = { step: ask.name, error: message, stack, delayMs: retry.wakeInMs };
        this.#deps.log().warn(details, `step ${ask.name} failed; retry ${tries} of ${settings.attempts - 1}`);
        this.#run.waits(ask, written.wakeAt, { tries, label });
      }
      return;
    }
    const failed = {
      state: "failed",
      tries,
      tookMs,
      error: kept,
      label,
      givenOrder: this.#run.givenOrder(),
    } as const;
    if ((await this.write(ask, failed)) === null) return;
    this.#run.hand(ask, () => this.#run.fail(ask, stepError(ask.name, failure, error)));
  }

  async #try(
    name: string,
    fn: (info: StepInfo) => unknown,
    settings: StepSettings,
    attempt: number,
  ): Promise<{ ok: true; text: string | null } | { ok: false; error: unknown }> {
    const { clock, maxBytes } = this.#deps;
    const { timeoutMs } = settings;
    let timer: Timer | undefined;
    try {
      const signal = this.#deps.signal();
      let value: unknown;
      const where = `step "${name}"`;
      if (timeoutMs === null) value = await runInside(this.#job, where, () => fn({ attempt, signal }));
      else {
        const own = new AbortController();
        const late = Promise.withResolvers<never>();
        late.promise.catch(() => {});
        timer = clock.after(timeoutMs, () => {
          const error = new JobError("TIMEOUT", `step "${name}": timeout after ${timeoutMs / 1_000}s`);
          late.reject(error);
          own.abort(error);
        });
        const both = AbortSignal.any([signal, own.signal]);
        value = await Promise.race([
          runInside(this.#job, where, () => fn({ attempt, signal: both })),
          late.promise,
        ]);
      }
      orThrow(value);
      const text =
        value === undefined ? null : encodeJson(value, `output of step "${name}"`, maxBytes, outputCodes);
      return { ok: true, text };
    } catch (error) {
      return { ok: false, error };
    } finally {
      timer?.cancel();
    }
  }

  async #doSleep(ask: Ask, ms: number): Promise<void> {
    if (ms === 0) {
      // Written like a step: what is given and not remembered would have no place when the run is led through its history.
      const done = { state: "done", output: null, tries: 1, givenOrder: this.#run.givenOrder() } as const;
      if ((await this.write(ask, done)) !== null) this.#run.hand(ask, () => ask.resolve(undefined));
      return;
    }
    const written = await this.write(ask, { state: "open", tries: 0, givenOrder: null, wakeInMs: ms });
    if (written !== null) this.#run.waits(ask, written.wakeAt);
  }

  async #doWait(ask: Ask, topic: string, timeoutMs: number | null): Promise<void> {
    const { id, token, session, attempt } = this.#job;
    const givenOrder = this.#run.givenOrder();
    const taken = await this.persist(() =>
      this.#deps.store.workflows.takeSignal(session, {
        id,
        token,
        name: ask.name,
        seq: ask.seq,
        givenOrder,
        attempt,
        fails: ask.fails,
        given: ask.given,
        topic,
        timeoutMs,
        after: this.#after,
      }),
    );
    if (taken === null) return this.#lost(ask);
    if (!taken.over) return this.#run.waits(ask, taken.wakeAt);
    this.#after = ask.name;
    const value = decodeJson(taken.data ?? "null", `signal of step "${ask.name}"`);
    this.#run.hand(ask, () => ask.resolve(value));
  }

  async #doCall(ask: Ask, make: () => NewJob | Promise<NewJob>): Promise<void> {
    const { id, token, session, attempt } = this.#job;
    const child = await make();
    const { name, seq, fails, given } = ask;
    const started = await this.persist(() =>
      this.#deps.store.workflows.startCall(session, {
        id,
        token,
        name,
        seq,
        attempt,
        fails,
        given,
        child,
        after: this.#after,
      }),
    );
    if (started === null) return this.#lost(ask);
    if (started.ended) this.#after = name;
    if (started.child === id)
      throw new UsageError(
        "WAITS_FOR_ITSELF",
        `Step "${name}": the called job has the unique key of this job, which would then wait for itself.`,
        { details: { job: id, step: name } },
      );
    // One that has already ended is read back with the history: at once.
    this.#run.waits(ask, started.ended ? 0 : null);
  }

  /** A store call that is tried again while the database is away, as long as the attempt is ours. */
  async persist<T>(call: () => Promise<T>): Promise<T> {
    return this.#deps.writer.patiently(call, () => this.#run.over);
  }

  async write(
    ask: Ask,
    change: {
      readonly state: "open" | "done" | "failed";
      readonly tries: number;
      readonly givenOrder: number | null;
      readonly output?: string | null;
      readonly error?: string | null;
      readonly label?: string | null;
      readonly tookMs?: number;
      readonly wakeInMs?: number | null;
      readonly undo?: boolean;
    },
    tx: object | null = null,
  ): Promise<{ readonly wakeAt: number | null } | null> {
    const { id, token, session, attempt } = this.#job;
    const kind: StepKind = ask.doing.kind;
    const step = {
      job: id,
      token,
      name: ask.name,
      seq: ask.seq,
      kind,
      attempt,
      output: null,
      error: null,
      label: null,
      tookMs: 0,
      wakeInMs: null,
      undo: false,
      fails: ask.fails,
      given: ask.given,
      ...change,
    };
    if (tx !== null) {
      const known = await this.#deps.store.userTx(tx);
      const rows = await this.#deps.store.workflows.recordSteps(session, [step], known);
      const row = rows.get(`${id} ${ask.name}`);
      if (row !== undefined) return row;
      // Thrown into the step's caller, whose transaction must not be committed.
      throw this.#lostError();
    }
    const behind = { ...step, after: this.#after };
    const written = await this.#deps.writer.record(session, behind, () => this.#run.over);
    if (!written.lost) {
      if (change.state !== "open") this.#after = ask.name;
      return written;
    }
    this.#lost(ask);
    return null;
  }

  #lost(ask: Ask): void {
    this.#run.lost(ask, this.#lostError());
  }

  #lostError(): StateError {
    const { id, attempt, token } = this.#job;
    return new StateError(
      "LEASE_LOST",
      `Job ${id} is no longer leased to this attempt (${attempt}): its step was not recorded. Stop working on it.`,
      { details: { job: id, attempt, token } },
    );
  }
}
