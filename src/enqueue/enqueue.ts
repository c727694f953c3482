/**
 * Enqueue: from what a caller asks for to the row that the store writes.
 *
 *   (job | name, input, options) ─▶ checks, schema, key, lane, route ─▶ NewJob ─▶ batched ─▶ committed ─▶ workers are woken
 *
 * Invariants: whatever is wrong is refused before anything is written; a promise is always given back, never an
 * exception thrown. Nothing on the plain path awaits: with a synchronous schema and no middleware, a job for a
 * SQLite transaction is written before the call returns, so that it also works inside better-sqlite3's
 * synchronous `transaction()`. An option that an enqueue by name leaves open stays null, for the runner's definition to fill.
 * Not here: options, keys and lanes (new-job.ts); middleware, many jobs at once, transactions (enqueue-many.ts); batches
 * (enqueue-batcher.ts); the statement (insert.ts).
 */
import type { Clock } from "../clock.ts";
import type { Emitter } from "../events.ts";
import type { Enqueued, NewJob } from "../jobs/job.ts";
import type {
  AnyContract,
  Enqueue,
  EnqueueItem,
  EnqueueMany,
  EnqueueOptions,
  EnqueueResult,
} from "../jobs/requests.ts";
import { StateError } from "../errors.ts";
import type { Retry } from "../storage/retry-calls.ts";
import type { Store } from "../storage/store.ts";
import { validate } from "../values/input-schema.ts";
import { encodeJson } from "../values/json.ts";
import { checkName } from "../values/name.ts";
import { checkOptions } from "../values/options.ts";
import { EnqueueBatcher } from "./enqueue-batcher.ts";
import { type EnqueueAround, ManyEnqueuer, OPTION_NAMES } from "./enqueue-many.ts";
import {
  checkCycles,
  checkJob,
  checkDefinition,
  INPUT_CODES,
  newJob,
  type NewJobDeps,
  NO_OPTIONS,
  queueOf,
} from "./new-job.ts";
import type { DefinitionCache } from "./registered-names.ts";

/** A job that is due later than this is found by every worker's own look (at most 5 s apart) in good time. */
const WAKE_AHEAD_MS = 60_000;
/** Transactions of many jobs that may be on their way at once; SQLite has one writer. */
const GROUPS_AT_ONCE = { postgres: 4, sqlite: 1 } as const;

/** What enqueuing needs of the client. */
export interface EnqueueDeps extends NewJobDeps {
  readonly clock: Clock;
  readonly store: Pick<Store, "newJobs" | "userTx" | "wake" | "wakeHere" | "dialect">;
  readonly retry: Retry;
  readonly events: Emitter;
  readonly definitions: DefinitionCache;
  readonly around: EnqueueAround;
  /** Throws once the client is closed; what runs may still enqueue while its worker stops. */
  readonly checkOpen: (parentId: string | null) => void;
  /** Counts what each write came to. */
  readonly counted: (outcomes: readonly Enqueued[]) => void;
}

/** Enqueues for one client. */
export class Enqueuer {
  readonly #deps: EnqueueDeps;
  /** Jobs without a unique key, and those with one: a key that an open transaction holds makes its batch wait. */
  readonly #plain: EnqueueBatcher;
  readonly #keyed: EnqueueBatcher;
  readonly #many: ManyEnqueuer;

  constructor(deps: EnqueueDeps) {
    this.#deps = deps;
    this.#plain = this.#gather();
    this.#keyed = this.#gather();
    this.#many = new ManyEnqueuer({
      ...deps,
      prepare: (...given) => this.#prepare(...given),
      add: this.#add,
      addAll: (jobs) =>
        (jobs.every(({ unique }) => unique === null) ? this.#plain : this.#keyed).addAll(jobs),
    });
  }

  #gather(): EnqueueBatcher {
    const { store, retry } = this.#deps;
    return new EnqueueBatcher({
      write: async (jobs) => {
        let told = false;
        let tries = 0;
        const write = () => store.newJobs.enqueue(jobs, undefined, () => void (told = true), tries++ > 0);
        return { outcomes: await retry.repeatable(write), told };
      },
      committed: (jobs, outcomes, told) => this.committed(jobs, outcomes, told),
      nextTurn: (fn) => void setImmediate(fn),
      groupsAtOnce: GROUPS_AT_ONCE[store.dialect],
    });
  }

  /** The two functions as users call them, for a job that enqueues (its id) or for the client itself (null). */
  boundTo(parentId: string | null): {
    readonly enqueue: Enqueue;
    readonly enqueueMany: EnqueueMany;
    readonly prepare: (
      job: AnyContract | string,
      input: unknown,
      options: EnqueueOptions,
    ) => NewJob | Promise<NewJob>;
  } {
    return {
      prepare: (job, input, options) => {
        this.#deps.checkOpen(parentId);
        const given = checkOptions(options, OPTION_NAMES, "call") as EnqueueOptions;
        return this.#prepare(job, input, given, parentId);
      },
      enqueue: (job: AnyContract | string, input: unknown, options?: EnqueueOptions) =>
        this.enqueue(job, input, options, parentId),
      enqueueMany: (items, options) => this.#many.enqueue(items, options, parentId) as Promise<never>,
    };
  }

  /** One job. `parentId`: the job from whose handler this comes. */
  enqueue(
    job: AnyContract | string,
    input: unknown,
    options: EnqueueOptions | undefined,
    parentId: string | null,
  ): Promise<EnqueueResult> {
    try {
      this.#deps.checkOpen(parentId);
      const given =
        options === undefined
          ? NO_OPTIONS
          : (checkOptions(options, OPTION_NAMES, "enqueue") as EnqueueOptions);
      if (this.#deps.around.enqueues.length > 0)
        return this.#many.throughMiddleware(job, input, given, parentId);
      const prepared = this.#prepare(job, input, given, parentId);
      if (given.tx !== undefined) return this.#many.writeOne(given.tx, prepared);
      return prepared instanceof Promise ? prepared.then(this.#add) : this.#add(prepared);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Jobs of one batch with this id, in one transaction; `then`: the last of them comes after the others. */
  enqueueBatch(
    items: readonly EnqueueItem[],
    options: { readonly tx?: object | undefined },
    batch: { readonly id: string; readonly then: boolean },
  ): Promise<EnqueueResult[]> {
    return this.#many.enqueue(items, options, null, batch);
  }

  /** Checks a job as `enqueue` does, and gives its row without writing it: what a schedule keeps. */
  prepare(job: AnyContract | string, input: unknown, options: EnqueueOptions): NewJob | Promise<NewJob> {
    return this.#prepare(job, input, options, null);
  }

  /** Resolves when no job is on its way to the database. */
  async idle(): Promise<void> {
    await Promise.all([this.#plain.idle(), this.#keyed.idle()]);
  }

  /** Checks everything; a promise only for a schema or a read of the registered names that needs one. */
  #prepare(
    job: AnyContract | string,
    input: unknown,
    given: EnqueueOptions,
    parentId: string | null,
    inTx = given.tx !== undefined,
  ): NewJob | Promise<NewJob> {
    if (typeof job === "string") {
      const name = checkName(job, "The name of a job");
      const made = newJob(name, null, input, given, parentId, this.#deps);
      const definition = inTx ? this.#deps.definitions.known(name) : this.#deps.definitions.find(name);
      if (definition instanceof Promise) return definition.then((found) => checkDefinition(made, found));
      return checkDefinition(made, definition);
    }
    checkJob(job);
    if (job.input === null) return this.#made(job, input, given, parentId);
    const checked = validate(job.input, input, `input of job "${job.name}"`, "INPUT_INVALID");
    if (!isThenable(checked)) return this.#made(job, input, given, parentId);
    const valid = Promise.resolve(checked);
    valid.catch(() => {}); // reported below, unless the job itself is refused first
    const made = this.#made(job, input, given, parentId);
    return valid.then(() => made);
  }

  /** A job of a definition without key or lane, enqueued without options, needs nothing but its text and its id. */
  #made(job: AnyContract, input: unknown, given: EnqueueOptions, parentId: string | null): NewJob {
    if (given !== NO_OPTIONS || job.unique !== null || job.lane !== null)
      return newJob(job.name, job, input, given, parentId, this.#deps);
    const { newId, maxPayloadBytes, route } = this.#deps;
    return {
      id: newId(),
      name: job.name,
      queue: queueOf(job.name, job, given, route),
      priority: job.priority,
      input: encodeJson(input, "input", maxPayloadBytes, INPUT_CODES),
      delayMs: null,
      runAt: null,
      maxAttempts: job.row.maxAttempts,
      timeoutMs: job.row.timeoutMs,
      unique: null,
      lane: null,
      context: null,
      parentId,
      deadlineAt: null,
      extras: job.row.extras,
    };
  }

  readonly #add = (job: NewJob): Promise<Enqueued> => {
    const gather = job.unique === null ? this.#plain : this.#keyed;
    if (job.after === undefined) return gather.add(job);
    // By itself: a job that it waits for and that does not exist is its own fault alone.
    checkCycles([job]);
    return gather.addAll([job]).then(([outcome]) => outcome as Enqueued);
  };

  /** After each commit of new jobs: count them, wake workers, tell listeners. */
  committed(jobs: readonly NewJob[], outcomes: readonly Enqueued[], told = false): void {
    this.#deps.counted(outcomes);
    this.#wake(jobs, outcomes, told);
    if (!this.#deps.events.has("job.enqueued")) return;
    for (const [i, { status, id }] of outcomes.entries()) {
      const job = jobs[i];
      if (job !== undefined)
        this.#deps.events.emit("job.enqueued", {
          id,
          status,
          name: job.name,
          queue: job.queue,
          priority: job.priority,
        });
    }
  }

  // Once for each queue and priority of the batch, which mostly is one.
  #wake(jobs: readonly NewJob[], outcomes: readonly Enqueued[], told: boolean): void {
    const soonest = this.#deps.clock.now() + WAKE_AHEAD_MS;
    let last: NewJob | null = null;
    let seen: Set<string> | null = null;
    for (let i = 0; i < jobs.length; i++) {
      const job = jobs[i] as NewJob;
      if (last !== null && job.queue === last.queue && job.priority === last.priority) continue;
      const status = outcomes[i]?.status;
      if (status === "duplicate") continue;
      if ((job.delayMs ?? 0) > WAKE_AHEAD_MS || (job.runAt ?? 0) > soonest) continue;
      last = job;
      seen ??= new Set();
      const level = `${job.priority} ${job.queue}`;
      if (seen.has(level)) continue;
      seen.add(level);
      const wake = { kind: "work", queue: job.queue, priority: job.priority } as const;
      if (told) this.#deps.store.wakeHere(wake);
      else this.#deps.store.wake(wake);
    }
  }
}

/** The client is closed. */
export function closedError(): StateError {
  return new StateError("CLOSED", "This client is closed. Open another one.");
}

// A schema may answer with a promise of another library.
function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function"
  );
}
