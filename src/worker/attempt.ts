/**
 * Runs one attempt of one job and says what came of it.
 *
 *   start ─▶ decode ─▶ check against the schema ─▶ middleware ─▶ handler ─▶ encode the output ─▶ outcome
 *                     tellStopping(reason) ─▶ `stopping` aborts; the handler goes on
 *                             stop(cause) ─▶ `stopping`, then the signal aborts; the handler may still finish
 *                             abandon()   ─▶ the outcome is told now; a handler that still runs is a runaway
 *
 * Invariants: the outcome is told exactly once, whatever the handler does (throw, reject, never settle, settle
 * after it was abandoned); nothing here throws. A stored input that cannot be read or does not fit its schema, and
 * an output that cannot be stored, will be the same next time: the job is dead at once.
 *
 * Callbacks instead of a promise for each attempt, and no timer for each: the worker keeps one timer for all
 * timeouts (ends/deadlines.ts), because a timer and a race of promises cost more than a no-op job.
 *
 * Not here: when an attempt times out or is cancelled (runaways.ts, stops.ts), the ends of handlers that did not simply return
 * (attempt-outcomes.ts, workflow-ends.ts), what its outcome makes of the job (jobs/transition.ts).
 */
import type { Clock } from "../clock.ts";
import { JobError } from "../errors.ts";
import { isDecision, orThrow } from "../jobs/decision.ts";
import type { AnyJob } from "../jobs/define-job.ts";
import type { ClaimedJob } from "../jobs/job.ts";
import type { Outcome } from "../jobs/outcome.ts";
import { DEFAULT_ATTEMPTS } from "../jobs/transition.ts";
import { validate } from "../values/input-schema.ts";
import { decodeJson, encodeJson } from "../values/json.ts";
import type { MachinePosition } from "../workflows/machine-move.ts";
import type { WorkflowRun } from "../workflows/run.ts";
import type { SignalDefinition } from "../workflows/signal.ts";
import { deadOf, outdated, stoppedBy, threw, unfit } from "./ends/attempt-outcomes.ts";
import { AttemptContext, type ContextDeps } from "./context.ts";
import { type Ending, endsByCommit, endsOtherwise } from "./ends/workflow-ends.ts";
import { type MiddlewareChain, runRequest } from "./middleware.ts";
import { type StopCause, type StoppingReason, StopSignals } from "./ends/stop-causes.ts";

/** What an attempt needs of the worker that runs it. */
export interface AttemptDeps {
  readonly context: ContextDeps;
  readonly middleware: Pick<MiddlewareChain, "runs" | "run">;
  readonly maxOutputBytes: number;
  /** The wall clock is for a `RetryAfter` that names an instant, the monotonic one for the timeout. */
  readonly clock: Pick<Clock, "now" | "monotonic">;
  /** Called exactly once. */
  readonly onEnd: (attempt: Attempt, outcome: Outcome) => void;
  /** The handler returned while these steps were still running. */
  readonly onUnawaited?: (attempt: Attempt, steps: readonly string[]) => void;
  /** A handler that had been abandoned has come to its end. */
  readonly onRunawayEnd: (attempt: Attempt) => void;
}

/** The part of a definition that runs. */
export type Runnable = Pick<AnyJob, "input" | "run" | "attempts" | "timeoutMs"> &
  Partial<Pick<AnyJob, "machine" | "version" | "upcast" | "signals">>;

const outputCodes = { notJson: "OUTPUT_NOT_JSON", tooLarge: "OUTPUT_TOO_LARGE" } as const;

/**
 * One run of one job.
 *
 * @example
 * const attempt = new Attempt(job, definition, { …deps, onEnd: (attempt, outcome) => settle(outcome) });
 * attempt.start();
 * attempt.stop({ kind: "cancelled", reason: "cancelled by user" });
 */
export class Attempt {
  readonly job: ClaimedJob;
  readonly maxAttempts: number;
  /** A machine has steps of its own, and no run. */
  readonly machine: boolean;
  readonly #definition: Runnable;
  readonly #deps: AttemptDeps;
  #signals: StopSignals | undefined;
  #stoppingReason: StoppingReason | undefined;
  #cause: StopCause | undefined;
  #ended = false;
  /** Its run sleeps or is lost: what the handler still comes to has no meaning. */
  #left = false;
  #paused = false;
  /** Null until the handler is called. */
  #ctx: AttemptContext | null = null;
  /** The run of a workflow, once the handler has asked for a step. */
  workflow: WorkflowRun | null = null;
  /** `ctx.commit` was called: the handler's own transaction says whether the job has ended. */
  committed = false;
  /** The error with which `ctx.commit` refused: handlers wrap errors, and a divergence must not become a plain failure. */
  diverged: JobError | null = null;
  /** The step of a machine that it is at, whose retries and time count. */
  at: MachinePosition | null = null;

  /** The runner's own notes, kept here to spare a map lookup for each job. By the monotonic clock. */
  startedAt = 0;
  /** When the attempt times out; once it was told to stop for that, when it is abandoned. */
  deadlineAt: number = Infinity;
  /** Where it stands among those that run. */
  slot = -1;

  constructor(job: ClaimedJob, definition: Runnable, deps: AttemptDeps) {
    this.job = job;
    this.maxAttempts = job.maxAttempts ?? definition.attempts ?? DEFAULT_ATTEMPTS;
    this.machine = definition.machine !== undefined && definition.machine !== null;
    this.#definition = definition;
    this.#deps = deps;
  }

  // --- the straight path --------------------------------------------------------------------------------

  /** Begins. Call it once. The outcome comes to `deps.onEnd`, which may happen before this returns. */
  start(): void {
    const newer = this.job.extras === null ? null : outdated(this.job, this.version);
    if (newer !== null) return this.#end(newer);
    let input: unknown;
    try {
      const raw = this.#upcast(decodeJson(this.job.input, "input"));
      const schema = this.#definition.input;
      input = schema === null ? raw : validate(schema, raw, "input", "INPUT_INVALID");
    } catch (error) {
      this.#end(unfit(error));
      return;
    }
    if (isThenable(input)) {
      Promise.resolve(input).then(
        (value) => this.#call(value),
        (error: unknown) => this.#end(unfit(error)),
      );
    } else {
      this.#call(input);
    }
  }

  /** An input that was written by an older version of the definition is brought up to this one. */
  #upcast(raw: unknown): unknown {
    const { version = 1, upcast } = this.#definition;
    let value = raw;
    for (let at = this.job.extras?.version ?? 1; at < version; at += 1) {
      const step = upcast?.[at] as ((input: unknown) => unknown) | undefined;
      if (step !== undefined) value = step(value);
    }
    return value;
  }

  #call(input: unknown): void {
    // It may have been told to stop while an asynchronous schema was at work.
    if (this.#cause !== undefined) return this.#end(stoppedBy(this.#cause));
    let result: unknown;
    try {
      result = this.#handle(input);
    } catch (error) {
      this.#threw(error);
      return;
    }
    if (!isThenable(result)) {
      this.#returned(result);
      return;
    }
    // Thenables of other libraries may throw from `then` or call back twice: a promise of our own takes care of it.
    const promise = result instanceof Promise ? result : Promise.resolve(result);
    promise.then(
      (value: unknown) => this.#returned(value),
      (error: unknown) => this.#threw(error),
    );
  }

  #handle(input: unknown): unknown {
    const run = this.#definition.run as ((input: unknown, ctx: AttemptContext) => unknown) | null;
    if (run === null)
      throw new JobError(
        "INTERNAL",
        `Job ${this.job.name} was claimed by a worker that has no handler for it.`,
      );
    const ctx = (this.#ctx = new AttemptContext(this, this.#deps.context));
    if (this.#deps.middleware.runs.length === 0) return run(input, ctx);
    return this.#deps.middleware.run(runRequest(this.job, input, ctx), async () =>
      orThrow(await run(input, ctx)),
    );
  }

  #returned(value: unknown): void {
    if (typeof value === "object" && isDecision(value)) return this.#threw(value);
    if (this.#ended) return this.#endedLate();
    this.#stopIfLate();
    const otherwise = this.job.begun || this.committed || this.machine || this.workflow !== null;
    if (otherwise && endsOtherwise(this.#ending(), value)) return;
    // A handler that finished in spite of a cancel or a shutdown has done the work: its result stands.
    // One that finished after its timeout has failed: the promise "fails after its timeout" must not depend on luck.
    const cause = this.#cause;
    if (cause !== undefined && (cause.kind === "timeout" || cause.kind === "lost"))
      this.#end(stoppedBy(cause));
    else this.#end(this.#succeeded(value));
  }

  /** While a handler keeps the event loop to itself no timer can tell of its timeout: its end does. */
  #stopIfLate(): void {
    if (this.#cause !== undefined || this.deadlineAt === Infinity) return;
    if (this.#deps.clock.monotonic() < this.deadlineAt) return;
    this.stop({ kind: "timeout", timeoutMs: this.job.timeoutMs ?? this.#definition.timeoutMs });
  }

  #succeeded(value: unknown): Outcome {
    if (value === undefined) return { kind: "succeeded", output: null };
    try {
      const output = encodeJson(value, "output", this.#deps.maxOutputBytes, outputCodes);
      return { kind: "succeeded", output };
    } catch (error) {
      return deadOf(error);
    }
  }

  #end(outcome: Outcome): void {
    if (this.#ended) return;
    this.#ended = true;
    this.workflow?.stop();
    this.#deps.onEnd(this, outcome);
  }

  // --- other ends ---------------------------------------------------------------------------------------

  #threw(error: unknown): void {
    if (this.#ended) return this.#endedLate();
    this.#stopIfLate();
    if (this.committed && endsByCommit(this.#ending(), { error })) return;
    if (this.workflow?.undoing === true) {
      this.workflow.finished();
      return;
    }
    // Still: one that went on and asked for the rest has not diverged.
    const diverged = (this.workflow?.unasked ?? null) === null ? null : this.diverged;
    const cause = this.#cause;
    const asked = this.#stoppingReason !== undefined || cause !== undefined;
    this.#end(threw(error, { cause, asked, diverged, clock: this.#deps.clock }));
  }

  #endedLate(): void {
    if (!this.#left) this.#deps.onRunawayEnd(this);
  }

  #ending(): Ending {
    return {
      job: this.job,
      machine: this.machine,
      workflow: this.workflow,
      committed: this.committed,
      stopCause: this.#cause,
      ctx: this.#ctx,
      deps: this.#deps.context.workflow,
      end: (outcome) => this.#end(outcome),
      returned: (value) => this.#returned(value),
      threw: (error) => this.#threw(error),
      onUnawaited: (steps) => this.#deps.onUnawaited?.(this, steps),
    };
  }

  /** A workflow's run has come to something: it sleeps, was undone, or cannot go on. */
  endWorkflow(outcome: Outcome): void {
    if (this.#ended) return;
    this.#left = true;
    const cause = this.#cause;
    // A run that was told to stop does not go to sleep instead, or nobody would tell it again.
    // One that is being undone does, between two tries: it is ending already.
    const stopped =
      cause !== undefined &&
      cause.kind !== "shutdown" &&
      outcome.kind === "suspended" &&
      this.workflow?.undoing !== true;
    this.#end(stopped || cause?.kind === "lost" ? stoppedBy(cause) : outcome);
  }

  /** A write of the workflow was refused. */
  loseWorkflow(): void {
    this.stop({ kind: "lost" });
    this.#left = true;
    this.#end({ kind: "lost" });
    this.workflow?.leave();
  }

  /** Ends the attempt without waiting for its handler any longer. True if the handler still ran. */
  abandon(): boolean {
    if (this.#ended) return false;
    const cause = this.#cause;
    const undoing = this.workflow?.undoing === true && cause?.kind !== "lost";
    // A compensation must not be forgotten because it took too long.
    if (undoing || cause === undefined)
      this.#end({ kind: "released", delayMs: undoing ? 1_000 : 0, reason: "abandoned" });
    else this.#end(stoppedBy(cause));
    this.workflow?.leave();
    return true;
  }

  // --- stopping -----------------------------------------------------------------------------------------

  /**
   * Tells the handler to stop. The first cause stands, except that a lost lease outweighs every other: then
   * nothing that the handler still does may be written.
   */
  stop(cause: StopCause): void {
    if (this.#ended || (this.#cause !== undefined && cause.kind !== "lost")) return;
    this.#cause = cause;
    this.#signals?.stop(cause);
    this.workflow?.pause();
  }

  /** Aborts `stopping` alone: the handler may finish, or come to an early end. The first reason stands. */
  tellStopping(reason: StoppingReason): void {
    if (this.#ended || this.#cause !== undefined || this.#stoppingReason !== undefined) return;
    this.#stoppingReason = reason;
    this.#signals?.tellStopping(reason);
  }

  /** A run stops before its next step, and goes on from there when it is resumed. A job without steps comes to its end. */
  pause(): void {
    this.#paused = true;
    this.workflow?.pause();
  }

  /** Nothing new is to be begun: it was asked to pause, or told to stop. */
  get pausing(): boolean {
    return this.#paused || this.#cause !== undefined;
  }

  /** Why the attempt was told to stop, if it was. */
  get stopCause(): StopCause | undefined {
    return this.#cause;
  }

  get signal(): AbortSignal {
    return this.#stopSignals().signal;
  }

  get stopping(): AbortSignal {
    return this.#stopSignals().stopping;
  }

  #stopSignals(): StopSignals {
    return (this.#signals ??= new StopSignals(this.job, this.#cause, this.#stoppingReason));
  }

  // --- what its context and its run ask -----------------------------------------------------------------

  /** Its outcome has been told. */
  get over(): boolean {
    return this.#ended;
  }

  get signals(): readonly SignalDefinition[] {
    return this.#definition.signals ?? [];
  }

  /** The version of the code that this attempt runs. */
  get version(): number {
    return this.#definition.version ?? 1;
  }

  /** A machine begins a step: its time and its attempts count from here. */
  stand(place: MachinePosition): void {
    this.at = place;
    const timeoutMs = this.job.timeoutMs ?? this.#definition.timeoutMs;
    if (this.#cause === undefined && this.deadlineAt !== Infinity) {
      this.startedAt = this.#deps.clock.monotonic();
      this.deadlineAt = this.startedAt + timeoutMs;
    }
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  try {
    return typeof (value as { then?: unknown }).then === "function";
  } catch {
    return false; // a getter or Proxy that throws: no promise, and the output check will refuse it
  }
}
