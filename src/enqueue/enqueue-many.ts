/**
 * Enqueues that are not one plain job: many in one transaction, through middleware, or into a user's own transaction.
 *
 * Invariant: nothing is awaited on the way into a synchronous transaction (enqueue.ts says why).
 * Not here: checking a job (enqueue.ts, new-job.ts), batches (enqueue-batcher.ts).
 */
import { HoldfastError, isHoldfastError, shown, UsageError } from "../errors.ts";
import type { Enqueued, NewJob } from "../jobs/job.ts";
import type { AnyContract, EnqueueItem, EnqueueOptions, EnqueueResult } from "../jobs/requests.ts";
import type { Store } from "../storage/store.ts";
import type { UserTx } from "../storage/user-tx.ts";
import { checkName } from "../values/name.ts";
import { checkOptions } from "../values/options.ts";
import { checkCycles, checkJob, NO_OPTIONS } from "./new-job.ts";

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

/** The middleware around enqueues. */
export interface EnqueueAround {
  readonly enqueues: readonly EnqueueStep[];
  enqueue(request: EnqueueRequest, innermost: () => Promise<Enqueued>): Promise<Enqueued>;
}

/** What these enqueues need of the one for single jobs. */
export interface ManyDeps {
  readonly store: Pick<Store, "newJobs" | "userTx">;
  readonly around: EnqueueAround;
  readonly checkOpen: (parentId: string | null) => void;
  /** Counts what a write into a user's transaction came to; its commit is the user's. */
  readonly counted: (outcomes: readonly Enqueued[]) => void;
  readonly prepare: (
    job: AnyContract | string,
    input: unknown,
    given: EnqueueOptions,
    parentId: string | null,
    inTx?: boolean,
  ) => NewJob | Promise<NewJob>;
  readonly add: (job: NewJob) => Promise<Enqueued>;
  readonly addAll: (jobs: readonly NewJob[]) => Promise<readonly Enqueued[]>;
}

export const OPTION_NAMES: readonly string[] = [
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
const ITEM_NAMES = ["job", "input", ...OPTION_NAMES.filter((name) => name !== "tx")];

const MAX_CARRIER_CHARS = 8_192;

/** The row of a job that comes with others. */
type Marked = (job: NewJob, position: number) => NewJob;
const asItIs: Marked = (job) => job;

function markedAs({ id, then }: { readonly id: string; readonly then: boolean }, count: number): Marked {
  const last = then ? count - 1 : count;
  return (job, position) => ({ ...job, batch: { id, role: position === last ? "then" : "job" } });
}

/** For one client. */
export class ManyEnqueuer {
  readonly #deps: ManyDeps;

  constructor(deps: ManyDeps) {
    this.#deps = deps;
  }

  /** Many jobs in one transaction: all or none. `batch`: they are one batch, whose `then` is the last of them. */
  enqueue(
    items: readonly EnqueueItem[],
    options: { readonly tx?: object | undefined } | undefined,
    parentId: string | null,
    batch?: { readonly id: string; readonly then: boolean },
  ): Promise<EnqueueResult[]> {
    try {
      const marked = batch === undefined ? asItIs : markedAs(batch, items.length);
      this.#deps.checkOpen(parentId);
      const { tx } = checkOptions(options, ["tx"], "enqueueMany") as { tx?: object };
      checkItems(items);
      if (items.length === 0) return Promise.resolve([]);
      if (this.#deps.around.enqueues.length > 0)
        return this.#manyThroughMiddleware(items, tx, parentId, marked);
      const prepared = items.map((item, i) => {
        const given = isBare(item) ? NO_OPTIONS : item;
        const made = at(i, () => this.#deps.prepare(item.job, item.input, given, parentId, tx !== undefined));
        return made instanceof Promise ? made.then((job) => marked(job, i)) : marked(made, i);
      });
      return this.#writeAll(prepared, tx);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  throughMiddleware(
    job: AnyContract | string,
    input: unknown,
    given: EnqueueOptions,
    parentId: string | null,
  ): Promise<EnqueueResult> {
    const request = requestOf(job, input, given);
    return this.#deps.around.enqueue(request, () => this.#afterMiddleware(job, request, given, parentId));
  }

  async #afterMiddleware(
    job: AnyContract | string,
    request: EnqueueRequest,
    given: EnqueueOptions,
    parentId: string | null,
  ): Promise<Enqueued> {
    const prepared = this.#deps.prepare(job, request.input, withContext(given, request), parentId);
    const whole = withCarrier(prepared, request.carrier);
    if (given.tx !== undefined) return this.writeOne(given.tx, whole);
    return this.#deps.add(await whole);
  }

  /** One job into a user's transaction. */
  async writeOne(tx: object, prepared: NewJob | Promise<NewJob>): Promise<Enqueued> {
    const [outcome] = await this.#writeTo(tx, [prepared]);
    return outcome as Enqueued;
  }

  async #writeAll(
    prepared: readonly (NewJob | Promise<NewJob>)[],
    tx: object | undefined,
  ): Promise<EnqueueResult[]> {
    // Not behind an await: a SQLite transaction must be written to before the call returns.
    const written =
      tx === undefined
        ? this.#allReady(prepared, (jobs) => {
            checkCycles(jobs);
            return this.#deps.addAll(jobs);
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
          const prepared = this.#deps.prepare(item.job, request.input, withContext(item, request), parentId);
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
      sum + key.length + (typeof value === "string" ? value.length : MAX_CARRIER_CHARS + 1),
    0,
  );
  if (chars > MAX_CARRIER_CHARS)
    throw new UsageError(
      "BAD_OPTION",
      `A middleware's carrier takes texts, ${MAX_CARRIER_CHARS} characters in all.`,
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
    at(i, () => checkOptions(item ?? null, ITEM_NAMES, "an item of enqueueMany"));
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
