/**
 * What a handler gets beside its input: who it is, when to stop, and how to reach the queue from inside.
 *
 * Invariants: nothing here costs anything until it is used (the signal and the log are made at their first
 * access, because a no-op job takes about 10 µs in all and an AbortController alone takes one of them); what
 * writes (`progress`) names the fence, so that a stale holder changes nothing and is told.
 * Not here: when the signal aborts (attempt.ts), steps and sleeps (flow/, a later issue).
 */
import type { Enqueue, EnqueueMany } from "./contract.ts";
import { Throttled } from "./decision.ts";
import { StateError } from "./errors.ts";
import type { ClaimedJob } from "./job.ts";
import type { Logger } from "./logger.ts";
import { encodeJson } from "./policy/json.ts";
import type { Store } from "./store.ts";

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
  readonly hostId: string;
  /** The fencing token of this attempt: it strictly increases from holder to holder. Hand it to systems that can refuse a stale writer. */
  readonly token: number;
  /** Aborts on timeout, cancellation, a lost lease and shutdown; `signal.reason` says which. */
  readonly signal: AbortSignal;
  /** The client's logger; every line carries the job. */
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
   * attempt is given back and runs again when there may be some.
   *
   * @throws Throttled the budget is empty, or unknown
   * @throws UsageError BAD_OPTION `n` is not positive, or more than the budget can ever have
   */
  budget(name: string, n?: number): Promise<void>;
}

/** What every context of a worker shares. */
export interface ContextDeps {
  readonly store: Pick<Store, "progress">;
  readonly log: Logger;
  readonly workerId: string;
  readonly hostId: string;
  readonly maxPayloadBytes: number;
  /** The client's functions, bound to the job that calls them. */
  readonly enqueueFor: (parent: { readonly id: string }) => {
    readonly enqueue: Enqueue;
    readonly enqueueMany: EnqueueMany;
  };
  /** As `hf.budgets.take`. */
  readonly budget: (
    name: string,
    n: number,
  ) => Promise<{ readonly granted: boolean; readonly retryAfter: number }>;
}

/** The part of an attempt that its context shows. */
export interface ContextAttempt {
  readonly job: ClaimedJob;
  readonly maxAttempts: number;
  readonly signal: AbortSignal;
}

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
  get attempt(): number {
    return this.#attempt.job.attempt;
  }
  get maxAttempts(): number {
    return this.#attempt.maxAttempts;
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
  get log(): Logger {
    return (this.#log ??= withJob(this.#deps.log, this.#attempt.job, this.#deps.workerId));
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

  async budget(name: string, n = 1): Promise<void> {
    const { granted, retryAfter } = await this.#deps.budget(name, n);
    if (!granted) throw new Throttled(retryAfter, `the budget "${name}" is empty`);
  }

  get #bound(): ReturnType<ContextDeps["enqueueFor"]> {
    return (this.#client ??= this.#deps.enqueueFor({ id: this.#attempt.job.id }));
  }

  async progress(value: unknown): Promise<void> {
    const text = encodeJson(value, "progress", this.#deps.maxPayloadBytes, progressCodes);
    this.#progress ??= new ProgressWriter(this.#attempt.job, this.#deps.store);
    await this.#progress.write(text);
  }
}

/**
 * Writes the newest value; values that are overtaken while a write is under way are never written, so a handler
 * that reports ten thousand times a second costs one write at a time.
 */
class ProgressWriter {
  readonly #job: ClaimedJob;
  readonly #store: Pick<Store, "progress">;
  #next: string | undefined;
  #writing: Promise<void> | undefined;

  constructor(job: ClaimedJob, store: Pick<Store, "progress">) {
    this.#job = job;
    this.#store = store;
  }

  write(text: string): Promise<void> {
    this.#next = text;
    return (this.#writing ??= this.#drain().finally(() => {
      this.#writing = undefined;
    }));
  }

  async #drain(): Promise<void> {
    while (this.#next !== undefined) {
      const text = this.#next;
      this.#next = undefined;
      const { id, token, session, attempt } = this.#job;
      if (await this.#store.progress(session, id, token, text)) continue;
      throw new StateError(
        "LEASE_LOST",
        `Job ${id} is no longer leased to this attempt (${attempt}): its progress was not written. Stop working on it.`,
        {
          details: { job: id, attempt, token },
        },
      );
    }
  }
}

function withJob(log: Logger, job: ClaimedJob, workerId: string): Logger {
  const fields = { job: job.id, name: job.name, queue: job.queue, attempt: job.attempt, worker: workerId };
  const line = (level: keyof Logger): Logger["info"] => {
    return (details, message) => log[level]?.({ ...fields, ...details }, message);
  };
  const lines = { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") };
  return log.trace === undefined ? lines : { ...lines, trace: line("trace") };
}
