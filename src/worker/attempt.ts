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
 * timeouts (deadlines.ts), because a timer and a race of promises cost more than a no-op job.
 *
 * Not here: when an attempt times out or is cancelled (worker.ts), what its outcome makes of the job (jobs/transition.ts).
 */
import { AttemptContext, type ContextDeps, flowRun } from "./context.ts";
import { isDead, isDecision, isRelease, isRetryAfter, isThrottled, orThrow } from "../jobs/decision.ts";
import type { AnyJob } from "../jobs/define-job.ts";
import { type HoldfastError, isHoldfastError, JobError, StateError } from "../errors.ts";
import { outdatedBy } from "../workflows/advance.ts";
import { isMoved, type MachinePlace } from "../workflows/machine-move.ts";
import type { FlowRun } from "../workflows/run.ts";
import type { SignalDefinition } from "../workflows/signal.ts";
import type { ClaimedJob } from "../jobs/job.ts";
import { type MiddlewareChain, runRequest } from "./middleware.ts";
import { describeFailure, type Failure } from "../jobs/failure.ts";
import { decodeJson, encodeJson } from "../values/json.ts";
import { validate } from "../values/input-schema.ts";
import { DEFAULT_ATTEMPTS, type Outcome } from "../jobs/transition.ts";

/** Why an attempt is told to stop. */
export type StopCause =
  | { readonly kind: "timeout"; readonly timeoutMs: number }
  | { readonly kind: "cancelled"; readonly reason: string }
  | { readonly kind: "shutdown" }
  | { readonly kind: "lost" };

/** Why a handler is asked to come to an early end, while its attempt goes on. */
export type StoppingReason = "shutdown" | "paused" | "quiet";

/** What an attempt needs of the worker that runs it. */
export interface AttemptDeps {
  readonly context: ContextDeps;
  readonly middleware: Pick<MiddlewareChain, "runs" | "run">;
  readonly maxOutputBytes: number;
  /** Wall clock, for a `RetryAfter` that names an instant. */
  readonly now: () => number;
  /** For the timeout, see `deadlineAt`. */
  readonly monotonic: () => number;
  /** Called exactly once. */
  readonly onEnd: (attempt: Attempt, outcome: Outcome) => void;
  /** The handler returned while these steps were not given yet. */
  readonly onUnawaited?: (attempt: Attempt, steps: readonly string[]) => void;
  /** A handler that had been abandoned has come to its end after all. */
  readonly onRunawayEnd: (attempt: Attempt) => void;
}

/** The part of a definition that runs. */
export type Runnable = Pick<AnyJob, "input" | "run" | "attempts" | "timeoutMs"> &
  Partial<Pick<AnyJob, "machine" | "version" | "upcast" | "signals">>;

const outputCodes = { notJson: "OUTPUT_NOT_JSON", tooLarge: "OUTPUT_TOO_LARGE" } as const;
// How long a job that needs newer code stays away from a worker that has older. Long enough that a deploy of minutes costs
// little, short enough that nobody misses the time once the new workers are there.
const outdatedMs = 5_000;

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
  readonly #definition: Runnable;
  readonly #deps: AttemptDeps;
  #controller: AbortController | undefined;
  #stoppingController: AbortController | undefined;
  #stoppingReason: StoppingReason | undefined;
  #cause: StopCause | undefined;
  #ended = false;
  /** Its run sleeps: the handler is left behind, and what it still comes to is nobody's business. */
  #left = false;
  /** The run of a flow, once the handler has asked for a step. */
  flow: FlowRun | null = null;
  /** `ctx.commit` was called: the handler's own transaction says whether the job has ended. */
  committed = false;
  /** The error with which `ctx.commit` refused: handlers wrap errors, and a divergence must not become a plain failure. */
  diverged: JobError | null = null;
  #paused = false;
  /** Null until the handler is called. */
  #ctx: AttemptContext | null = null;
  /** Where a machine stands: whose retries count, and from when. */
  at: MachinePlace | null = null;

  /** The worker's own notes, kept here to spare a map lookup for each job. By the monotonic clock. */
  startedAt = 0;
  /** When the attempt times out; once it was told to stop for that, when it is abandoned. */
  deadlineAt: number = Infinity;
  /** Where it stands among those that run (running.ts). */
  slot = -1;

  constructor(job: ClaimedJob, definition: Runnable, deps: AttemptDeps) {
    this.job = job;
    this.maxAttempts = job.maxAttempts ?? definition.attempts ?? DEFAULT_ATTEMPTS;
    this.#definition = definition;
    this.#deps = deps;
  }

  /** Why the attempt was told to stop, if it was. */
  get stopCause(): StopCause | undefined {
    return this.#cause;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Made at the first access; one that is made late is born aborted. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#cause !== undefined) this.#controller.abort(reasonOf(this.#cause, this.job));
    }
    return this.#controller.signal;
  }

  /** Likewise. Aborts before `signal`, or with it. */
  get stopping(): AbortSignal {
    if (this.#stoppingController === undefined) {
      this.#stoppingController = new AbortController();
      if (this.#stoppingReason !== undefined)
        this.#stoppingController.abort(stoppingError(this.#stoppingReason, this.job));
      else if (this.#cause !== undefined) this.#stoppingController.abort(reasonOf(this.#cause, this.job));
    }
    return this.#stoppingController.signal;
  }

  /** Its outcome has been told. */
  get over(): boolean {
    return this.#ended;
  }

  get machine(): boolean {
    return this.#definition.machine !== undefined && this.#definition.machine !== null;
  }

  /** A flow's run has come to something: it sleeps, was undone, or cannot go on. */
  endFlow(outcome: Outcome): void {
    if (this.#ended) return;
    this.#left = true;
    const cause = this.#cause;
    // A run that was told to stop does not go to sleep instead, or nobody would tell it again.
    // One that is being undone does, between two tries: it is ending already.
    const stopped =
      cause !== undefined &&
      cause.kind !== "shutdown" &&
      outcome.kind === "suspended" &&
      this.flow?.undoing !== true;
    this.#end(stopped || cause?.kind === "lost" ? stoppedBy(cause) : outcome);
  }

  /** A machine begins a step: its time and its attempts count from here. */
  stand(place: MachinePlace): void {
    this.at = place;
    const timeoutMs = this.job.timeoutMs ?? this.#definition.timeoutMs;
    if (this.#cause === undefined && this.deadlineAt !== Infinity) {
      this.startedAt = this.#deps.monotonic();
      this.deadlineAt = this.startedAt + timeoutMs;
    }
  }

  /** A write of the flow was refused. */
  loseFlow(): void {
    this.stop({ kind: "lost" });
    this.#left = true;
    this.#end({ kind: "lost" });
    this.flow?.leave();
  }

  /** Begins. Call it once. The outcome comes to `deps.onEnd`, which may happen before this returns. */
  start(): void {
    const outdated = this.#outdated();
    if (outdated !== null) {
      this.#end(outdated);
      return;
    }
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

  /**
   * Tells the handler to stop. The first cause stands, except that a lost lease outweighs every other: then
   * nothing that the handler still does may be written.
   */
  stop(cause: StopCause): void {
    if (this.#ended || (this.#cause !== undefined && cause.kind !== "lost")) return;
    this.#cause = cause;
    // `stopping` first: a listener of `signal` must find that it has fired.
    for (const controller of [this.#stoppingController, this.#controller])
      if (controller?.signal.aborted === false) controller.abort(reasonOf(cause, this.job));
    this.flow?.pause();
  }

  /** Aborts `stopping` alone: the handler may finish, or come to an early end. The first reason stands. */
  tellStopping(reason: StoppingReason): void {
    if (this.#ended || this.#cause !== undefined || this.#stoppingReason !== undefined) return;
    this.#stoppingReason = reason;
    this.#stoppingController?.abort(stoppingError(reason, this.job));
  }

  /** A run stops before its next step, and goes on from there when it is resumed. What has no steps comes to its end. */
  pause(): void {
    this.#paused = true;
    this.flow?.pause();
  }

  /** Nothing new is to be begun: it was asked to pause, or told to stop. */
  get pausing(): boolean {
    return this.#paused || this.#cause !== undefined;
  }

  /** Ends the attempt without waiting for its handler any longer. True if the handler still ran. */
  abandon(): boolean {
    if (this.#ended) return false;
    const undoing = this.flow?.undoing === true && this.#cause?.kind !== "lost";
    const abandoned = { kind: "released", delayMs: undoing ? 1_000 : 0, reason: "abandoned" } as const;
    // What has yet to be undone must not be forgotten because an undo took too long.
    this.#end((undoing ? null : this.#stoppedOutcome()) ?? abandoned);
    this.flow?.leave();
    return true;
  }

  /** The version of the code that this attempt runs. */
  get signals(): readonly SignalDefinition[] {
    return this.#definition.signals ?? [];
  }

  get version(): number {
    return this.#definition.version ?? 1;
  }

  /** A job that newer code has made or advanced is left to newer workers: during a deploy, that is. */
  #outdated(): Outcome | null {
    const reason = outdatedBy(this.job.name, this.job.extras, this.version);
    if (reason === null) return null;
    return {
      kind: "released",
      delayMs: outdatedMs,
      reason,
      unstarted: true,
      outdated: true,
    };
  }

  /** An input that was written by an older version of the definition is brought up to this one. */
  #upcast(raw: unknown): unknown {
    const { version = 1, upcast } = this.#definition;
    const from = this.job.extras?.version ?? 1;
    let value = raw;
    for (let at = from; at < version; at += 1) {
      const step = upcast?.[at] as ((input: unknown) => unknown) | undefined;
      if (step !== undefined) value = step(value);
    }
    return value;
  }

  #call(input: unknown): void {
    const stopped = this.#stoppedOutcome();
    if (stopped !== undefined) {
      this.#end(stopped); // while an asynchronous schema was at work
      return;
    }
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
    if (isDecision(value)) {
      this.#threw(value);
      return;
    }
    if (this.#ended) {
      if (!this.#left) this.#deps.onRunawayEnd(this);
      return;
    }
    this.#stopIfLate();
    if (this.committed && this.#cause?.kind !== "lost") {
      this.#afterCommit(null);
      return;
    }
    if (this.#unread()) {
      this.#ctx?.[flowRun].close().then(
        () => this.#returned(value),
        (error: unknown) => this.#threw(error),
      );
      return;
    }
    if (this.flow !== null) {
      const unawaited = this.#cause === undefined ? this.flow.unawaited : [];
      const diverged = this.flow.finished();
      if (this.flow.undoing) return;
      if (unawaited.length > 0) this.#deps.onUnawaited?.(this, unawaited);
      if (diverged !== null) {
        const told = this.#cause;
        const dead = { kind: "dead", failure: coded(diverged), diverged: true } as const;
        this.#end(told === undefined ? dead : stoppedBy(told));
        return;
      }
    }
    if (this.machine && isMoved(value)) {
      // A move is no end: it stands through a shutdown, and a cancel finds the machine between two steps.
      const told = this.#cause;
      const moved = { kind: "moved", delayMs: value.delayMs } as const;
      this.#end(told === undefined || told.kind === "shutdown" ? moved : stoppedBy(told));
      return;
    }
    // A handler that finished in spite of a cancel or a shutdown has done the work: its result stands.
    // One that finished after its timeout has failed: the promise "fails after its timeout" must not depend on luck.
    const cause = this.#cause;
    if (cause !== undefined && (cause.kind === "timeout" || cause.kind === "lost"))
      this.#end(stoppedBy(cause));
    else this.#end(this.#succeeded(value));
  }

  /**
   * It ran before, perhaps in steps, and its handler has returned without waiting for any: its history says. A run that
   * is being undone comes again (jobs/transition.ts).
   */
  #unread(): boolean {
    const { begun, undoing } = this.job;
    return (
      begun &&
      !undoing &&
      !this.machine &&
      this.#deps.context.flow !== undefined &&
      this.flow?.loaded !== true
    );
  }

  /** While a handler keeps the event loop to itself no timer can tell of its timeout: its end does. */
  #stopIfLate(): void {
    if (this.#cause !== undefined || this.deadlineAt === Infinity) return;
    if (this.#deps.monotonic() < this.deadlineAt) return;
    this.stop({ kind: "timeout", timeoutMs: this.job.timeoutMs ?? this.#definition.timeoutMs });
  }

  #succeeded(value: unknown): Outcome {
    if (value === undefined) return { kind: "succeeded", output: null };
    try {
      return {
        kind: "succeeded",
        output: encodeJson(value, "output", this.#deps.maxOutputBytes, outputCodes),
      };
    } catch (error) {
      return { kind: "dead", failure: coded(error) };
    }
  }

  /** Whether the transaction that `ctx.commit` wrote into was committed: the row says. */
  #afterCommit(thrown: { readonly error: unknown } | null): void {
    const { store } = this.#deps.context.flow ?? {};
    const { id, token, session } = this.job;
    const told = (held: boolean): void => {
      if (!held) this.#end({ kind: "committed" });
      else if (thrown !== null) this.#end({ kind: "failed", failure: describeFailure(thrown.error) });
      else this.#end({ kind: "failed", failure: coded(notCommitted(this.job)) });
    };
    if (store === undefined) told(false);
    else
      store.workflows.stillHeld(session, id, token).then(
        (held) => told(held),
        // The database is away: the settle that follows finds out, under the fence.
        () => told(true),
      );
  }

  #threw(error: unknown): void {
    if (this.#ended) {
      if (!this.#left) this.#deps.onRunawayEnd(this);
      return;
    }
    this.#stopIfLate();
    if (this.committed && this.#cause?.kind !== "lost") {
      this.#afterCommit({ error });
      return;
    }
    if (this.flow?.undoing === true) {
      this.flow.finished();
      return;
    }
    const decided = this.#decided(error);
    const cause = this.#cause;
    if (cause === undefined) this.#end(decided ?? { kind: "failed", failure: describeFailure(error) });
    else if (cause.kind === "shutdown") this.#end(decided ?? stoppedBy(cause));
    else this.#end(stoppedBy(cause));
  }

  /** What a thrown decision asks for; undefined for a plain error. */
  #decided(error: unknown): Outcome | undefined {
    // Still: one that went on and asked for the rest has not diverged.
    if (this.diverged !== null && (this.flow?.unasked ?? null) !== null)
      return { kind: "dead", failure: coded(this.diverged), diverged: true };
    // What JSON cannot hold, and a machine that cannot move, will be the same next time.
    if (isHoldfastError(error) && finalCodes.has(error.code)) {
      const dead = { kind: "dead", failure: coded(error) } as const;
      return error.code === "DIVERGED" ? { ...dead, diverged: true } : dead;
    }
    if (isDead(error)) return { kind: "dead", failure: describeFailure(error) };
    if (isRetryAfter(error))
      return {
        kind: "failed",
        failure: describeFailure(error),
        retryInMs: error.delayFrom(this.#deps.now()),
      };
    if (isThrottled(error)) return { kind: "throttled", delayMs: error.retryAfterMs, reason: error.reason };
    if (isRelease(error)) {
      const { delayMs, reason } = error;
      // One that answers `ctx.stopping` cannot spin: nothing claims the job until its queue or a worker is back.
      const asked = this.#stoppingReason !== undefined || this.#cause !== undefined;
      return { kind: "released", delayMs, reason, ...(asked ? null : { thrown: true }) };
    }
    return undefined;
  }

  #stoppedOutcome(): Outcome | undefined {
    return this.#cause === undefined ? undefined : stoppedBy(this.#cause);
  }

  #end(outcome: Outcome): void {
    if (this.#ended) return;
    this.#ended = true;
    this.flow?.stop();
    this.#deps.onEnd(this, outcome);
  }
}

const finalCodes: ReadonlySet<string> = new Set([
  "OUTPUT_NOT_JSON",
  "OUTPUT_TOO_LARGE",
  "INSIDE_STEP",
  "DECODE_FAILED",
  "DIVERGED",
  "BAD_MOVE",
]);

function notCommitted(job: ClaimedJob): JobError {
  return new JobError(
    "NOT_COMMITTED",
    "The handler called ctx.commit and returned, but its transaction was not committed.",
    { details: { job: job.id } },
  );
}

/** What becomes of an attempt that was told to stop and did not finish. */
function stoppedBy(cause: StopCause): Outcome {
  switch (cause.kind) {
    case "timeout":
      return {
        kind: "failed",
        failure: { message: timeoutText(cause.timeoutMs), stack: null, code: "TIMEOUT" },
      };
    case "cancelled":
      return { kind: "cancelled", reason: cause.reason };
    case "shutdown":
      return { kind: "released", delayMs: 0, reason: "shutdown", forced: true };
    case "lost":
      return { kind: "lost" };
  }
}

/** The value of `ctx.stopping.reason` while the attempt goes on. */
function stoppingError(reason: StoppingReason, job: ClaimedJob): JobError {
  const details = { job: job.id, attempt: job.attempt, reason };
  switch (reason) {
    case "shutdown":
      return new JobError("SHUTDOWN", "The worker is shutting down. End early if you can.", { details });
    case "paused":
      return new JobError("PAUSED", `The queue ${job.queue} was paused. End early if you can.`, { details });
    case "quiet":
      return new JobError("PAUSED", "The worker was made quiet. End early if you can.", { details });
  }
}

/** What `ctx.signal.reason` is. */
function reasonOf(cause: StopCause, job: ClaimedJob): HoldfastError {
  const details = { job: job.id, attempt: job.attempt };
  switch (cause.kind) {
    case "timeout":
      return new JobError("TIMEOUT", timeoutText(cause.timeoutMs), {
        details: { ...details, timeoutMs: cause.timeoutMs },
      });
    case "cancelled":
      return new JobError("CANCELLED", cause.reason, { details });
    case "shutdown":
      return new JobError("SHUTDOWN", "The worker is shutting down and releases the attempt. Stop now.", {
        details,
      });
    case "lost":
      return new StateError(
        "LEASE_LOST",
        `Job ${job.id} is no longer leased to this worker: another may run it now. Stop; later writes of this attempt are refused.`,
        {
          details: { ...details, token: job.token },
        },
      );
  }
}

function timeoutText(timeoutMs: number): string {
  return `timeout after ${timeoutMs / 1_000}s`;
}

/** An input that cannot be read or does not fit is dead at once; a schema that itself broke may work next time. */
function unfit(error: unknown): Outcome {
  const broke = isHoldfastError(error) && error.code === "INPUT_INVALID" && !("issues" in error.details);
  return broke ? { kind: "failed", failure: coded(error) } : { kind: "dead", failure: coded(error) };
}

/** The failure with its code in the message: `errors` keeps messages only, and programs look for the code. */
function coded(error: unknown): Failure {
  const failure = describeFailure(error);
  return failure.code === undefined
    ? failure
    : { ...failure, message: `${failure.code}: ${failure.message}` };
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  try {
    return typeof (value as { then?: unknown }).then === "function";
  } catch {
    return false; // a getter or Proxy that throws: no promise, and the output check will refuse it
  }
}
