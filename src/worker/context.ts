/**
 * What a handler gets beside its input: who it is, when to stop, and how to reach the queue from inside.
 *
 * Invariants: nothing here costs anything until it is used (the signal and the log are made at their first
 * access, because a no-op job takes about 10 µs in all and an AbortController alone takes one of them); what
 * writes (`progress`) names the fence, so that a stale holder changes nothing and is told.
 * Not here: when the signal aborts (attempt.ts), what steps and sleeps do (workflows/run.ts).
 */
import { type Clock, sleep } from "../clock.ts";
import {
  ATTEMPT_BOUNDS,
  type AnyContract,
  type Enqueue,
  type EnqueueMany,
  type EnqueueOptions,
  type JobContract,
} from "../jobs/requests.ts";
import { Release, Throttled } from "../jobs/decision.ts";
import { type JobError, shown, StateError, UsageError } from "../errors.ts";
import { ProgressWriter } from "./progress.ts";
import { Advance } from "../workflows/advance.ts";
import { machinePort, type MachinePosition, type MachinePort } from "../workflows/machine-move.ts";
import type { StepInfo, StepSettings } from "../workflows/request.ts";
import { refusalInside } from "../workflows/inside-step.ts";
import { WorkflowRun } from "../workflows/run.ts";
import { dataOf, schemasOf, type SignalDefinition, signalOf, topicOf } from "../workflows/signal.ts";
import type { StepWriter } from "../workflows/step-writer.ts";
import type { ClaimedJob, NewJob } from "../jobs/job.ts";
import type { Logger } from "../logger.ts";
import { type Backoff, type BackoffFunction, checkBackoff } from "../jobs/backoff.ts";
import { shortOf } from "../limits/rules/token-bucket.ts";
import { type Duration, durationMs, instantMs } from "../values/duration.ts";
import { encodeJson } from "../values/json.ts";
import { checkName, checkText } from "../values/name.ts";
import { checkInteger, checkOptions } from "../values/options.ts";
import type { Store } from "../storage/store.ts";
import type { SettleStore } from "../lease/store.ts";
import type { Outcome } from "../jobs/outcome.ts";

/**
 * The second argument of every handler.
 *
 * @example
 * run: async (input, ctx) => {
 *   const page = await fetch(input.url, { signal: ctx.signal });
 *   await ctx.progress({ fetched: true });
 *   await ctx.enqueue(parsePage, { html: await page.text() });
 * }
 */
export interface JobContext {
  readonly id: string;
  readonly name: string;
  readonly queue: string;
  /** 1 in the first run. */
  readonly attempt: number;
  readonly maxAttempts: number;
  /** The free text given at enqueue. */
  readonly context: string | null;
  /** Unique for each start of a worker. */
  readonly workerId: string;
  /** Unique for each start of the process, `host-pid-random`: the workers of one process share it. */
  readonly hostId: string;
  /** The fencing token of this attempt: it strictly increases from holder to holder. Hand it to systems that can refuse a stale writer. */
  readonly token: number;
  /** Aborts on timeout, cancellation, a lost lease and shutdown; `signal.reason` says which. */
  readonly signal: AbortSignal;
  /**
   * Aborts at once when the worker begins to shut down, is made quiet, or the job's queue is paused or held, and at the latest
   * with `signal`. The attempt goes on: a long handler may save what it has and end early. Once aborted it stays so, even if
   * the queue is resumed. `stopping.reason.code` is `SHUTDOWN`, `PAUSED`, or that of `signal`.
   */
  readonly stopping: AbortSignal;
  /** The client's logger; every line carries the job. With the option `jobLog` of `open`, lines are kept beside the job too. */
  readonly log: Logger;
  /** As `hf.enqueue`; the new job's `parentId` is this one. */
  readonly enqueue: Enqueue;
  /** As `hf.enqueueMany`; the new jobs' `parentId` is this one. */
  readonly enqueueMany: EnqueueMany;
  /**
   * Shows how far the attempt is, in `job.progress`. While one write is under way only the newest value waits.
   *
   * @throws StateError LEASE_LOST when the attempt is no longer this handler's
   */
  progress(value: unknown): Promise<void>;
  /** The schedule that made this job, and the slot for which it did; null for every other job. */
  readonly schedule: { readonly name: string; readonly at: Date } | null;
  /**
   * Takes `n` tokens (default 1) of a budget. When there are not enough, it throws `Throttled`: let it pass, and the
   * attempt is given back and runs again when there may be some. With `wait`, the handler keeps its slot and waits for them:
   * as long as it takes, or for that long. While it waits, a shutdown or a pause (`ctx.stopping`) makes it throw `Release`.
   *
   * @throws Throttled the budget is empty (with `wait`: still, when that time is over), or unknown
   * @throws Release `ctx.stopping` aborts while it waits: the job keeps its position
   * @throws UsageError BAD_OPTION `n` is not positive, or more than the budget can ever have; BAD_DURATION
   * @example
   * await ctx.budget("slack", 1, { wait: "10s" });
   */
  budget(name: string, n?: number, options?: BudgetWaitOptions): Promise<void>;

  /**
   * Does something once: its result is remembered, and after a crash, a sleep or a retry of the job it is given from
   * there. What comes back is what JSON kept of it, also the first time. A name that is used again gets a number.
   * Inside the function, `ctx.step`, `ctx.sleep`, `ctx.waitFor`, `ctx.call`, `ctx.version` and `ctx.commit` are refused.
   *
   * @throws JobError STEP_FAILED after its last try; OUTPUT_NOT_JSON, OUTPUT_TOO_LARGE, INSIDE_STEP
   * @example
   * const charge = await ctx.step("charge", () => stripe.charge(input), { retry: { attempts: 3 }, timeout: "30s" });
   */
  step<Output>(
    name: string,
    fn: (info: StepInfo) => Output | Promise<Output>,
    options?: StepOptions<Output>,
  ): Promise<Output>;
  /**
   * Sleeps without holding a slot, memory or a lease: a year is as good as a second.
   *
   * @example
   * await ctx.sleep("trial", "14d");
   */
  sleep(name: string, until: Duration | Date): Promise<void>;
  /**
   * Waits for a signal without holding anything. Gives its data, or null after the timeout. A signal that was sent
   * before is not lost, and each is taken by one run.
   *
   * @example
   * const answer = await ctx.waitFor("approved", { key: input.order, timeout: "3d" });
   */
  waitFor<Taken = unknown>(
    signal: string | SignalDefinition<unknown, Taken>,
    options?: WaitForOptions,
  ): Promise<Taken | null>;
  /**
   * Runs another job and gives its output, without holding a slot meanwhile.
   *
   * @throws JobError CALL_FAILED when it ends dead or cancelled
   * @example
   * const page = await ctx.call(fetchPage, { url });
   */
  call<Input, Output>(
    job: JobContract<string, Input, Output>,
    input: NoInfer<Input>,
    options?: CallOptions,
  ): Promise<Output>;
  call(job: string, input: unknown, options?: CallOptions): Promise<unknown>;
  /**
   * As `Promise.all`, which works too; a run that waits here for many called jobs is woken once, when all have ended (or
   * one has failed).
   *
   * @example
   * const pages = await ctx.all(urls.map((url) => ctx.call(fetchPage, { url })));
   */
  all<const Values extends readonly unknown[]>(
    values: Values,
  ): Promise<{ -readonly [I in keyof Values]: Awaited<Values[I]> }>;
  /**
   * Which way this run goes where the code has changed: `current` for runs that come here for the first time, 0 for those
   * that were past this point before the marker was there.
   *
   * @example
   * if ((await ctx.version("fraud-check", 1)) >= 1) await ctx.step("fraud-check", () => check(input));
   */
  version(name: string, current: number): Promise<number>;
  /** The version of the definition that enqueued this job; 1 if it had none. */
  readonly jobVersion: number;
  /**
   * Ends the job inside your own transaction: its effect and its end are both there or both absent. Commit afterwards.
   *
   * @throws StateError LEASE_LOST when the job is no longer this attempt's: roll back
   * @throws JobError DIVERGED when the run's history has steps that the code has not asked for: roll back
   * @throws UsageError INSIDE_STEP when it is called inside a step
   * @example
   * await client.query("begin");
   * await client.query("update account set …");
   * await ctx.commit(client, { ok: true });
   * await client.query("commit");
   */
  commit(tx: object, output?: unknown): Promise<void>;
}

/** Options of `ctx.budget`. */
export interface BudgetWaitOptions {
  /** True: waits in the handler until there are tokens. A duration: no longer than that. Default: does not wait. */
  readonly wait?: true | Duration | undefined;
}

/** Options of `ctx.step`. */
export interface StepOptions<Output = unknown> {
  /** Tries of this step by itself; between them the run sleeps. Default: one, and a failure is the job's. */
  readonly retry?:
    | { readonly attempts?: number | undefined; readonly backoff?: Backoff | BackoffFunction | undefined }
    | undefined;
  /** Of each try. Default: none but the job's. */
  readonly timeout?: Duration | undefined;
  /** Runs, in reverse order, when the job ends dead or cancelled. */
  readonly undo?: ((output: Output, info: StepInfo) => unknown) | undefined;
  /** Your own transaction: the step is remembered if and only if you commit. */
  readonly tx?: object | undefined;
}

/** Options of `ctx.waitFor`. */
export interface WaitForOptions {
  /** Only signals with this key. */
  readonly key?: string | undefined;
  /** Then the answer is null. Default: none. */
  readonly timeout?: Duration | undefined;
  /** The step's name. Default: `signal:` and the signal's name. */
  readonly name?: string | undefined;
}

/** Options of `ctx.call`: those of an enqueue, and the step's name. */
export type CallOptions = Omit<EnqueueOptions, "tx" | "after" | "onDead"> & {
  readonly name?: string | undefined;
};

/** What workflows need of a worker. */
export interface WorkflowDeps {
  readonly store: Store;
  readonly writer: StepWriter;
  readonly clock: Clock;
  readonly random: () => number;
  /** Only replays histories; see operate/check.ts. */
  readonly dry?: (name: string) => void;
}

/** What every context of a worker shares. */
export interface ContextDeps {
  readonly store: { readonly settles: Pick<SettleStore, "progress"> };
  readonly log: Logger;
  /** A job's logger that keeps what it is told. Null or left out: nothing is kept. */
  readonly keepLog?: ((log: Logger, job: ClaimedJob) => Logger) | null;
  readonly workerId: string;
  readonly hostId: string;
  readonly maxPayloadBytes: number;
  /** The client's functions, bound to the job that calls them. */
  readonly enqueueFor: (parent: { readonly id: string }) => {
    readonly enqueue: Enqueue;
    readonly enqueueMany: EnqueueMany;
    /** A checked job that is not written yet. */
    readonly prepare?: (
      job: AnyContract | string,
      input: unknown,
      options: EnqueueOptions,
    ) => NewJob | Promise<NewJob>;
  };
  /** As `hf.budgets.take`. */
  readonly budget: (
    name: string,
    n: number,
  ) => Promise<{ readonly granted: boolean; readonly retryAfter: number; readonly unknown?: true }>;
  /** Left out where nothing but plain jobs run. */
  readonly workflow?: WorkflowDeps | undefined;
}

/** The part of an attempt that its context shows. */
export interface ContextAttempt {
  readonly job: ClaimedJob;
  readonly maxAttempts: number;
  readonly signal: AbortSignal;
  readonly stopping: AbortSignal;
  /** Machines have steps of their own, and nothing else of a workflow. */
  readonly machine?: boolean;
  /** Where a machine stands. */
  readonly at?: MachinePosition | null;
  /** Of the definition that runs. */
  readonly version?: number;
  readonly signals?: readonly SignalDefinition[];
  workflow?: WorkflowRun | null;
  /** `ctx.commit` was called. */
  committed?: boolean;
  /** Its outcome has been told: its handler is not waited for any longer. */
  readonly over?: boolean;
  /** The error with which `ctx.commit` refused, because the history has more than the handler asked for. */
  diverged?: JobError | null;
  endWorkflow?(outcome: Outcome): void;
  loseWorkflow?(): void;
  readonly pausing?: boolean;
  /** A machine begins a step. */
  stand?(rowKey: MachinePosition): void;
}

/** How an attempt reaches the run of a handler that has asked for nothing. */
export const workflowRun = Symbol("workflowRun");

const stepOptions = ["retry", "timeout", "undo", "tx"];
const maxStepName = 256;

const progressCodes = { notJson: "INPUT_NOT_JSON", tooLarge: "INPUT_TOO_LARGE" } as const;

/** A context over one attempt. */
export class AttemptContext implements JobContext {
  readonly #attempt: ContextAttempt;
  readonly #deps: ContextDeps;
  #log: Logger | undefined;
  #client: ReturnType<ContextDeps["enqueueFor"]> | undefined;
  #progress: ProgressWriter | undefined;

  constructor(attempt: ContextAttempt, deps: ContextDeps) {
    this.#attempt = attempt;
    this.#deps = deps;
  }

  get id(): string {
    return this.#attempt.job.id;
  }
  get name(): string {
    return this.#attempt.job.name;
  }
  get queue(): string {
    return this.#attempt.job.queue;
  }
  // Of a machine: those of the step that it is at.
  get attempt(): number {
    return this.#attempt.at?.attempt ?? this.#attempt.job.attempt;
  }
  get maxAttempts(): number {
    return this.#attempt.at?.policy.attempts ?? this.#attempt.maxAttempts;
  }
  get context(): string | null {
    return this.#attempt.job.context;
  }
  get workerId(): string {
    return this.#deps.workerId;
  }
  get hostId(): string {
    return this.#deps.hostId;
  }
  get token(): number {
    return this.#attempt.job.token;
  }
  get signal(): AbortSignal {
    return this.#attempt.signal;
  }
  get stopping(): AbortSignal {
    return this.#attempt.stopping;
  }
  get log(): Logger {
    if (this.#log !== undefined) return this.#log;
    const { job } = this.#attempt;
    const log = withJob(this.#deps.log, job, this.#deps.workerId);
    return (this.#log = this.#deps.keepLog?.(log, job) ?? log);
  }

  // Fields of a function type rather than methods, so that `const { enqueue } = ctx` works.
  get enqueue(): Enqueue {
    return this.#bound.enqueue;
  }
  get enqueueMany(): EnqueueMany {
    return this.#bound.enqueueMany;
  }

  get schedule(): { readonly name: string; readonly at: Date } | null {
    const made = this.#attempt.job.extras?.schedule;
    return made === undefined ? null : { name: made.name, at: new Date(made.at) };
  }

  async budget(name: string, n = 1, options?: BudgetWaitOptions): Promise<void> {
    const { wait } = checkOptions(options, ["wait"], "ctx.budget") as BudgetWaitOptions;
    const waitMs = wait === undefined ? 0 : wait === true ? Infinity : durationMs(wait, "wait");
    const endsAt = waitMs === 0 ? 0 : this.#workflowDeps.clock.monotonic() + waitMs;
    for (;;) {
      const { granted, retryAfter, unknown } = await this.#deps.budget(name, n);
      if (granted) return;
      const short = new Throttled(retryAfter, shortOf(name, n));
      const leftMs = waitMs === 0 ? 0 : endsAt - this.#workflowDeps.clock.monotonic();
      if (unknown === true || leftMs <= 0) throw short;
      await this.#pause(Math.min(retryAfter, leftMs), `it waited for the budget "${name}"`);
    }
  }

  /** Sleeps inside the handler; a shutdown or a pause gives the job back, and every other stop ends it. */
  async #pause(ms: number, what: string): Promise<void> {
    const { signal, stopping } = this.#attempt;
    try {
      // `stopping` aborts with `signal`, and before it: one of the two is enough to wake.
      await sleep(this.#workflowDeps.clock, ms, stopping);
    } catch {
      signal.throwIfAborted();
      throw new Release(`${what} when its worker stopped or its queue was paused`);
    }
  }

  get #bound(): ReturnType<ContextDeps["enqueueFor"]> {
    return (this.#client ??= this.#deps.enqueueFor({ id: this.#attempt.job.id }));
  }

  get jobVersion(): number {
    return this.#attempt.job.extras?.version ?? 1;
  }

  // Whatever is wrong with a call is a rejection and never a throw.
  step<Output>(
    name: string,
    fn: (info: StepInfo) => Output | Promise<Output>,
    options?: StepOptions<Output>,
  ): Promise<Output> {
    return harmless(this.#step(name, fn, options));
  }

  async #step<Output>(
    name: string,
    fn: (info: StepInfo) => Output | Promise<Output>,
    options?: StepOptions<Output>,
  ): Promise<Output> {
    const own = checkStepName(name);
    if (typeof fn !== "function")
      throw new UsageError("BAD_OPTION", `Step "${own}" needs a function; got ${shown(fn)}.`);
    return (await this.#workflow.step(own, fn, stepSettings(own, options))) as Output;
  }

  sleep(name: string, until: Duration | Date): Promise<void> {
    return harmless(this.#sleep(name, until));
  }

  async #sleep(name: string, until: Duration | Date): Promise<void> {
    const own = checkStepName(name);
    const what = `The sleep "${own}"`;
    const ms =
      until instanceof Date
        ? Math.max(0, instantMs(until, what) - this.#workflowDeps.clock.now())
        : durationMs(until, what);
    await this.#workflow.sleep(own, ms);
  }

  waitFor<Taken>(
    signal: string | SignalDefinition<unknown, Taken>,
    options?: WaitForOptions,
  ): Promise<Taken | null> {
    return harmless(this.#waitFor(signal, options));
  }

  async #waitFor<Taken>(
    signal: string | SignalDefinition<unknown, Taken>,
    options?: WaitForOptions,
  ): Promise<Taken | null> {
    const { name, data: its } = signalOf(signal);
    const given = checkOptions(options, ["key", "timeout", "name"], "waitFor") as WaitForOptions;
    const timeoutMs = given.timeout === undefined ? null : durationMs(given.timeout, "timeout");
    const own = given.name === undefined ? `signal:${name}` : checkStepName(given.name);
    const data = await this.#workflow.waitFor(own, topicOf(name, given.key), timeoutMs);
    const schema = its ?? schemasOf(name, [this.#attempt])[0];
    if (schema === undefined || data === null) return data as Taken | null;
    return (await dataOf(schema, name, data)) as Taken;
  }

  // Not asynchronous: `all` knows the promises that the run gave.
  call(job: AnyContract | string, input: unknown, options: CallOptions = {}): Promise<never> {
    try {
      const { name, ...given } = options;
      const kind = typeof job === "string" ? checkName(job, "The name of a job") : job.name;
      const own = name === undefined ? `call:${kind}` : checkStepName(name);
      if (given.id !== undefined && given.id.toLowerCase() === this.id)
        throw new UsageError(
          "WAITS_FOR_ITSELF",
          `Step "${own}": job ${this.id} cannot call itself by its own id.`,
        );
      return this.#workflow.call(own, () => this.#child(job, input, given)) as Promise<never>;
    } catch (error) {
      return harmless(Promise.reject(error));
    }
  }

  all<const Values extends readonly unknown[]>(
    values: Values,
  ): Promise<{ -readonly [I in keyof Values]: Awaited<Values[I]> }> {
    return harmless(this.#all(values));
  }

  async #all<const Values extends readonly unknown[]>(
    values: Values,
  ): Promise<{ -readonly [I in keyof Values]: Awaited<Values[I]> }> {
    if (!Array.isArray(values))
      throw new UsageError("BAD_OPTION", `all takes an array of promises; got ${shown(values)}.`);
    return (await this.#workflow.all(values)) as { -readonly [I in keyof Values]: Awaited<Values[I]> };
  }

  version(name: string, current: number): Promise<number> {
    return harmless(this.#version(name, current));
  }

  async #version(name: string, current: number): Promise<number> {
    const own = checkStepName(name);
    checkInteger(current, `The version "${own}"`, { min: 1, max: 1_000_000 });
    return (await this.#workflow.version(`version:${own}`, current)) as number;
  }

  async commit(tx: object, output?: unknown): Promise<void> {
    const { store } = this.#workflowDeps;
    const { job } = this.#attempt;
    // The step could not be recorded once its job has ended.
    const misuse = refusalInside(job, "ctx.commit");
    if (misuse !== null) throw misuse;
    const text =
      output === undefined ? null : encodeJson(output, "output", this.#deps.maxPayloadBytes, outputCodes);
    const unasked = this.#attempt.workflow?.unasked ?? null;
    if (unasked !== null) {
      this.#attempt.diverged = unasked;
      throw unasked;
    }
    const known = await store.userTx(tx);
    const { id, rowKey, token, attempt, crashes, errors, keyed, session, counted } = job;
    const keep = job.extras?.keep ?? true;
    this.#attempt.committed = true;
    const ended = await store.settles.commit(known, session, {
      move: "end",
      id,
      rowKey,
      token,
      state: "done",
      output: text,
      errors,
      attempt,
      crashes,
      keyed,
      keep,
      // Its place in its lane and queue is given back by the same transaction.
      ...(counted === undefined ? null : { counted }),
    });
    if (ended) return;
    this.#attempt.committed = false;
    throw new StateError(
      "LEASE_LOST",
      `Job ${id} is no longer leased to this attempt (${attempt}): another worker may run the job. Roll your transaction back.`,
      { details: { job: id, attempt, token } },
    );
  }

  get #workflowDeps(): WorkflowDeps {
    const { workflow } = this.#deps;
    if (workflow !== undefined && this.#attempt.endWorkflow !== undefined) return workflow;
    throw new StateError("NOT_IN_A_RUN", "Steps, sleeps and waits need a worker that runs the job.");
  }

  /** What a machine's run needs of its attempt. */
  get [machinePort](): MachinePort {
    const { store, writer, clock } = this.#workflowDeps;
    const attempt = this.#attempt;
    const patiently = <T>(call: () => Promise<T>): Promise<T> =>
      writer.patiently(call, () => attempt.signal.aborted);
    const advance = new Advance(attempt.job, attempt.version ?? 1, store, patiently);
    return {
      job: attempt.job,
      store,
      advance: () => advance.keep(),
      maxBytes: this.#deps.maxPayloadBytes,
      log: withJob(this.#deps.log, attempt.job, this.#deps.workerId),
      monotonic: () => clock.monotonic(),
      patiently,
      stand: (rowKey) => attempt.stand?.(rowKey),
      lost: () => attempt.loseWorkflow?.(),
      pausing: () => attempt.pausing === true,
    };
  }

  /** The run of this attempt. A machine has none. */
  get [workflowRun](): WorkflowRun {
    return this.#workflow;
  }

  get #workflow(): WorkflowRun {
    const known = this.#attempt.workflow;
    if (known !== null && known !== undefined) return known;
    const { store, writer, clock, random, dry } = this.#workflowDeps;
    const attempt = this.#attempt;
    if (attempt.machine === true)
      throw new UsageError(
        "NOT_IN_A_RUN",
        `Job "${this.name}" is a machine: its definition has its steps. Use a job for ctx.step, ctx.sleep, ctx.waitFor and ctx.call.`,
      );
    attempt.workflow = new WorkflowRun(attempt.job, {
      store,
      writer,
      clock,
      random,
      maxBytes: this.#deps.maxPayloadBytes,
      log: () => withJob(this.#deps.log, attempt.job, this.#deps.workerId),
      signal: () => attempt.signal,
      onEnd: (outcome) => attempt.endWorkflow?.(outcome),
      onLost: () => attempt.loseWorkflow?.(),
      pausing: () => attempt.pausing === true,
      dry: dry ?? null,
      version: attempt.version ?? 1,
    });
    if (attempt.over === true) attempt.workflow.leave();
    return attempt.workflow;
  }

  /** A called job is kept until its caller has its output, whatever its kind says. */
  async #child(job: AnyContract | string, input: unknown, options: EnqueueOptions): Promise<NewJob> {
    const { prepare } = this.#bound;
    if (prepare === undefined) throw new StateError("NOT_IN_A_RUN", "Jobs cannot be called here.");
    const made = await prepare(job, input, options);
    return { ...made, extras: { ...made.extras, keep: true } };
  }

  async progress(value: unknown): Promise<void> {
    const text = encodeJson(value, "progress", this.#deps.maxPayloadBytes, progressCodes);
    this.#progress ??= this.#newProgress();
    await this.#progress.write(text);
  }

  #newProgress(): ProgressWriter {
    const attempt = this.#attempt;
    const { store, workflow } = this.#deps;
    // A handler that was told to stop waits for nothing.
    return new ProgressWriter(attempt.job, store.settles, (call) =>
      workflow === undefined ? call() : workflow.writer.patiently(call, () => attempt.signal.aborted),
    );
  }
}

const outputCodes = { notJson: "OUTPUT_NOT_JSON", tooLarge: "OUTPUT_TOO_LARGE" } as const;

/** A rejection that nobody waits for must not end the process: the run knows of it. */
function harmless<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

function checkStepName(name: unknown): string {
  const text = checkText(name, "The name of a step", maxStepName);
  if (!/^(?:\$|undo:)/.test(text)) return text;
  throw new UsageError(
    "BAD_NAME",
    `The name of a step must not begin with "$" or "undo:", which Holdfast's own steps use; got ${shown(name)}.`,
  );
}

function stepSettings(name: string, options: StepOptions<never> | undefined): StepSettings {
  if (options === undefined) return plainStep;
  const what = (option: string): string => `${option} of step "${name}"`;
  const given = checkOptions(options, stepOptions, `step "${name}"`) as StepOptions<never>;
  const retry = checkOptions(given.retry, ["attempts", "backoff"], what("retry")) as NonNullable<
    typeof given.retry
  >;
  const timeoutMs = given.timeout === undefined ? null : durationMs(given.timeout, what("timeout"));
  if (timeoutMs === 0) throw new UsageError("BAD_DURATION", `${what("timeout")} must be longer than 0.`);
  if (given.undo !== undefined && typeof given.undo !== "function")
    throw new UsageError("BAD_OPTION", `${what("undo")} must be a function; got ${shown(given.undo)}.`);
  return {
    attempts:
      retry.attempts === undefined ? 1 : checkInteger(retry.attempts, what("retry.attempts"), ATTEMPT_BOUNDS),
    backoff: retry.backoff === undefined ? null : checkBackoff(retry.backoff, what("retry.backoff")),
    timeoutMs,
    undo: given.undo ?? null,
    tx: given.tx ?? null,
  };
}

const plainStep: StepSettings = { attempts: 1, backoff: null, timeoutMs: null, undo: null, tx: null };

function withJob(log: Logger, job: ClaimedJob, workerId: string): Logger {
  const fields = { job: job.id, name: job.name, queue: job.queue, attempt: job.attempt, worker: workerId };
  const line = (level: keyof Logger): Logger["info"] => {
    return (details, message) => log[level]?.({ ...fields, ...details }, message);
  };
  const lines = { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") };
  return log.trace === undefined ? lines : { ...lines, trace: line("trace") };
}
