/**
 * Enqueue: from what a caller asks for to the row that the store writes.
 *
 *   (job | name, input, options) ─▶ middleware ─▶ checks, schema, key, lane, route ─▶ NewJob ─▶ gathered ─▶ committed
 *                                                                                       └─▶ or the caller's tx
 *
 * Invariants: whatever is wrong is refused before anything is written; a promise is always given back, never an
 * exception thrown. Nothing on the plain path awaits: with a synchronous schema and no middleware, a job for a
 * SQLite transaction is written before the call returns, so that it also works inside better-sqlite3's
 * synchronous `transaction()`. What by-name enqueues leave open stays null, for the runner's definition to fill.
 * Not here: batches (enqueue-batcher.ts), the definition's own checks (jobs/define-job.ts), conflicts of keys (the store).
 */
import type {
  AnyContract,
  Enqueue,
  EnqueueItem,
  EnqueueMany,
  EnqueueOptions,
  EnqueueResult,
} from "../jobs/requests.ts";
import { HoldfastError, isHoldfastError, shown, StateError, UsageError } from "../errors.ts";
import type { Gather } from "./enqueue-batcher.ts";
import type { Enqueued, NewJob } from "../jobs/job.ts";
import type { KindCache } from "./registered-names.ts";
import { checkCycles, checkJob, checkKind, newJob, type NewJobDeps, NO_OPTIONS } from "./new-job.ts";
import { checkName } from "../values/name.ts";
import { checkOptions } from "../values/options.ts";
import { validate } from "../values/input-schema.ts";
import type { Store } from "../storage/store.ts";
import type { UserTx } from "../storage/user-tx.ts";

export type { Enqueue, EnqueueMany };

/** An enqueue on its way in. `input` and `context` may be replaced, `carrier` filled; they are checked afterwards. */
export interface EnqueueRequest {
  readonly name: string;
  /** Null: the router says, else "default". */
  readonly queue: string | null;
  input: unknown;
  context: string | null;
  /** Short texts for the `run` middleware of whichever process runs the job: a trace's context, a request's id. 8 KiB in all. */
  readonly carrier: Record<string, string>;
}

/** Code of the user around an enqueue. */
export type EnqueueStep = (request: EnqueueRequest, next: () => Promise<Enqueued>) => Promise<Enqueued>;

/** What enqueuing needs of the client. */
export interface EnqueueDeps extends NewJobDeps {
  readonly store: Pick<Store, "newJobs" | "userTx">;
  /** Jobs without a unique key, and those with one. */
  readonly gather: { readonly plain: Gather; readonly keyed: Gather };
  readonly kinds: KindCache;
  readonly around: {
    readonly enqueues: readonly EnqueueStep[];
    enqueue(request: EnqueueRequest, innermost: () => Promise<Enqueued>): Promise<Enqueued>;
  };
  /** Throws once the client is closed; what runs may still enqueue while its worker stops. */
  readonly checkOpen: (parentId: string | null) => void;
  /** Counts what a write into a user's transaction came to; its commit is the user's. */
  readonly counted: (outcomes: readonly Enqueued[]) => void;
}

const optionNames = [
  "delay",
  "at",
  "priority",
  "queue",
  "key",
  "lane",
  "attempts",
  "timeout",
  "backoff",
  "context",
  "deadline",
  "id",
  "after",
  "onDead",
  "tx",
];
const itemNames = ["job", "input", ...optionNames.filter((name) => name !== "tx")];

const maxCarrierChars = 8_192;

/** What a job that comes with others is written down as. */
type Marked = (job: NewJob, place: number) => NewJob;
const asItIs: Marked = (job) => job;

/** Enqueues for one client. */
export class Enqueuer {
  readonly #deps: EnqueueDeps;

  constructor(deps: EnqueueDeps) {
    this.#deps = deps;
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
        const given = checkOptions(options, optionNames, "call") as EnqueueOptions;
        return this.#prepare(job, input, given, parentId);
      },
      enqueue: (job: AnyContract | string, input: unknown, options?: EnqueueOptions) =>
        this.enqueue(job, input, options, parentId),
      enqueueMany: (items, options) => this.enqueueMany(items, options, parentId) as Promise<never>,
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
          : (checkOptions(options, optionNames, "enqueue") as EnqueueOptions);
      if (this.#deps.around.enqueues.length === 0)
        return this.#write(this.#prepare(job, input, given, parentId), given.tx);
      const request = requestOf(job, input, given);
      return this.#deps.around.enqueue(request, () => this.#afterMiddleware(job, request, given, parentId));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Many jobs in one transaction: all or none. */
  enqueueMany(
    items: readonly EnqueueItem[],
    options: { readonly tx?: object | undefined } | undefined,
    parentId: string | null,
  ): Promise<EnqueueResult[]> {
    return this.#many(items, options, parentId, asItIs);
  }

  /** The same, as a batch with this id; `then`: the last of them comes after the others. */
  enqueueBatch(
    items: readonly EnqueueItem[],
    options: { readonly tx?: object | undefined },
    { id, then }: { readonly id: string; readonly then: boolean },
  ): Promise<EnqueueResult[]> {
    const last = then ? items.length - 1 : items.length;
    return this.#many(items, options, null, (job, place) => ({
      ...job,
      batch: { id, role: place === last ? "then" : "job" },
    }));
  }

  #many(
    items: readonly EnqueueItem[],
    options: { readonly tx?: object | undefined } | undefined,
    parentId: string | null,
    marked: Marked,
  ): Promise<EnqueueResult[]> {
    try {
      this.#deps.checkOpen(parentId);
      const { tx } = checkOptions(options, ["tx"], "enqueueMany") as { tx?: object };
      checkItems(items);
      if (items.length === 0) return Promise.resolve([]);
      if (this.#deps.around.enqueues.length > 0)
        return this.#manyThroughMiddleware(items, tx, parentId, marked);
      const prepared = items.map((item, i) => {
        const given = isBare(item) ? NO_OPTIONS : item;
        const made = at(i, () => this.#prepare(item.job, item.input, given, parentId, tx !== undefined));
        return made instanceof Promise ? made.then((job) => marked(job, i)) : marked(made, i);
      });
      return this.#writeAll(prepared, tx);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Checks a job as `enqueue` does, and gives its row without writing it: what a schedule keeps. */
  prepare(job: AnyContract | string, input: unknown, options: EnqueueOptions): NewJob | Promise<NewJob> {
    return this.#prepare(job, input, options, null);
  }

  async #afterMiddleware(
    job: AnyContract | string,
    request: EnqueueRequest,
    given: EnqueueOptions,
    parentId: string | null,
  ): Promise<Enqueued> {
    const prepared = this.#prepare(job, request.input, withContext(given, request), parentId);
    return this.#write(withCarrier(prepared, request.carrier), given.tx);
  }

  #write(prepared: NewJob | Promise<NewJob>, tx: object | undefined): Promise<EnqueueResult> {
    if (tx !== undefined) return this.#writeTo(tx, [prepared]).then((outcomes) => outcomes[0] as Enqueued);
    return prepared instanceof Promise ? prepared.then(this.#add) : this.#add(prepared);
  }

  readonly #add = (job: NewJob): Promise<Enqueued> => {
    const gather = job.unique === null ? this.#deps.gather.plain : this.#deps.gather.keyed;
    if (job.after === undefined) return gather.add(job);
    // By itself: a job that it waits for and that does not exist is its own fault alone.
    checkCycles([job]);
    return gather.addAll([job]).then(([outcome]) => outcome as Enqueued);
  };

  async #writeAll(
    prepared: readonly (NewJob | Promise<NewJob>)[],
    tx: object | undefined,
  ): Promise<EnqueueResult[]> {
    // Not behind an await: a SQLite transaction must be written to before the call returns.
    const written =
      tx === undefined
        ? this.#allReady(prepared, (jobs) => {
            checkCycles(jobs);
            const plain = jobs.every((job) => job.unique === null);
            return (plain ? this.#deps.gather.plain : this.#deps.gather.keyed).addAll(jobs);
          })
        : this.#writeTo(tx, prepared);
    return [...(await written)];
  }

  /** Into the user's transaction: at once when everything is ready and the handle is synchronous. */
  #writeTo(handle: object, prepared: readonly (NewJob | Promise<NewJob>)[]): Promise<readonly Enqueued[]> {
    const tx = this.#deps.store.userTx(handle);
    const write = (jobs: readonly NewJob[]): Promise<readonly Enqueued[]> => {
      checkCycles(jobs);
      const outcomes =
        tx instanceof Promise ? tx.then((known) => this.#intoTx(jobs, known)) : this.#intoTx(jobs, tx);
      return outcomes;
    };
    if (tx instanceof Promise) tx.catch(() => {}); // reported by `write`; it may come to that too late for Node
    return this.#allReady(prepared, write);
  }

  #intoTx(jobs: readonly NewJob[], tx: UserTx): Promise<readonly Enqueued[]> {
    return this.#deps.store.newJobs.enqueue(jobs, tx).then((outcomes) => {
      this.#deps.counted(outcomes);
      return outcomes;
    });
  }

  #allReady(
    prepared: readonly (NewJob | Promise<NewJob>)[],
    write: (jobs: readonly NewJob[]) => Promise<readonly Enqueued[]>,
  ): Promise<readonly Enqueued[]> {
    if (!prepared.some((job) => job instanceof Promise)) return write(prepared as readonly NewJob[]);
    const alone = prepared.length === 1;
    const named = prepared.map(async (job, i) => {
      try {
        return await job;
      } catch (error) {
        return alone ? Promise.reject(error) : rethrowAt(i, error);
      }
    });
    return Promise.all(named).then(write);
  }

  // Each item's middleware runs around the same one write: it starts when every item has come through.
  async #manyThroughMiddleware(
    items: readonly EnqueueItem[],
    tx: object | undefined,
    parentId: string | null,
    marked: Marked,
  ): Promise<EnqueueResult[]> {
    const arrived = new Map<number, NewJob>();
    const { promise: written, resolve, reject } = Promise.withResolvers<ReadonlyMap<number, Enqueued>>();
    written.catch(() => {}); // each item reports it
    let missing = items.length;
    let refused = false;
    const arrive = (): void => {
      missing -= 1;
      if (missing > 0 || refused) return;
      const indexes = [...arrived.keys()].sort((a, b) => a - b);
      const jobs = indexes.map((i) => arrived.get(i) as NewJob);
      if (jobs.length === 0) resolve(new Map());
      else
        this.#writeAll(jobs, tx).then(
          (outcomes) => resolve(new Map(indexes.map((index, n) => [index, outcomes[n] as Enqueued]))),
          reject,
        );
    };
    const results = items.map(async (item, i) => {
      let counted = false;
      try {
        const request = requestOf(item.job, item.input, item);
        return await this.#deps.around.enqueue(request, async () => {
          const prepared = this.#prepare(item.job, request.input, withContext(item, request), parentId);
          arrived.set(i, marked(await withCarrier(prepared, request.carrier), i));
          counted = true;
          arrive();
          return (await written).get(i) as Enqueued;
        });
      } catch (error) {
        refused = true; // all or none
        reject(error);
        return rethrowAt(i, error);
      } finally {
        if (!counted) arrive(); // a middleware that answers by itself: nothing to write for this one
      }
    });
    return Promise.all(results);
  }

  /** Checks everything; a promise only for a schema or a look at the kinds that needs one. */
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
      const kind = inTx ? this.#deps.kinds.known(name) : this.#deps.kinds.find(name);
      if (kind instanceof Promise) return kind.then((found) => checkKind(made, found));
      return checkKind(made, kind);
    }
    checkJob(job);
    if (job.input === null) return newJob(job.name, job, input, given, parentId, this.#deps);
    const checked = validate(job.input, input, `input of job "${job.name}"`, "INPUT_INVALID");
    if (!isThenable(checked)) return newJob(job.name, job, input, given, parentId, this.#deps);
    const valid = Promise.resolve(checked);
    valid.catch(() => {}); // reported below, unless the job itself is refused first
    const made = newJob(job.name, job, input, given, parentId, this.#deps);
    return valid.then(() => made);
  }
}

/** The client is closed. */
export function closedError(): StateError {
  return new StateError(
    "CLOSED",
    "This client has been closed: nothing more can be done with it. Open another one.",
  );
}

// A schema may answer with a promise of another library.
function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function"
  );
}

function requestOf(job: AnyContract | string, input: unknown, given: EnqueueOptions): EnqueueRequest {
  if (typeof job !== "string") checkJob(job);
  const name = typeof job === "string" ? checkName(job, "The name of a job") : job.name;
  return {
    name,
    queue: given.queue ?? (typeof job === "string" ? null : job.queue),
    input,
    context: given.context ?? null,
    carrier: {},
  };
}

/** What the middleware sends along travels in the extras, so that a job without any costs nothing. */
function withCarrier(
  prepared: NewJob | Promise<NewJob>,
  carrier: Readonly<Record<string, unknown>>,
): NewJob | Promise<NewJob> {
  const entries = Object.entries(carrier);
  if (entries.length === 0) return prepared;
  const chars = entries.reduce(
    (sum, [key, value]) =>
      sum + key.length + (typeof value === "string" ? value.length : maxCarrierChars + 1),
    0,
  );
  if (chars > maxCarrierChars)
    throw new UsageError(
      "BAD_OPTION",
      `A middleware's carrier takes texts, ${maxCarrierChars} characters in all.`,
      { details: { option: "carrier" } },
    );
  const add = (job: NewJob): NewJob => ({
    ...job,
    extras: { ...job.extras, carrier: Object.fromEntries(entries) as Record<string, string> },
  });
  return prepared instanceof Promise ? prepared.then(add) : add(prepared);
}

function withContext(given: EnqueueOptions, request: EnqueueRequest): EnqueueOptions {
  return request.context === (given.context ?? null)
    ? given
    : { ...given, context: request.context ?? undefined };
}

function checkItems(items: unknown): void {
  if (!Array.isArray(items)) {
    throw new UsageError(
      "BAD_OPTION",
      `enqueueMany takes an array of { job, input, … }; got ${shown(items)}.`,
    );
  }
  items.forEach((item, i) => {
    at(i, () => checkOptions(item ?? null, itemNames, "an item of enqueueMany"));
  });
}

/** Most items have no options of their own, and the row of such a job is its definition's. */
function isBare(item: EnqueueItem): boolean {
  for (const key in item) if (key !== "job" && key !== "input") return false;
  return true;
}

/** Runs a check of one item; its error names the item. */
function at<T>(index: number, check: () => T): T {
  try {
    return check();
  } catch (error) {
    return rethrowAt(index, error);
  }
}

function rethrowAt(index: number, error: unknown): never {
  if (!isHoldfastError(error)) throw error;
  if (error instanceof HoldfastError && !("index" in error.details)) {
    const Same = error.constructor as typeof HoldfastError;
    throw new Same(error.code, `Item ${index} of enqueueMany: ${error.message} Nothing was enqueued.`, {
      details: { ...error.details, index },
      cause: error,
    });
  }
  throw error;
}
