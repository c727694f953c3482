/**
 * The client: `open`, and what it gives.
 *
 * This is the composition root: the only place that reads the process's environment, clock and randomness, and
 * where the parts meet. Each namespace (`hf.jobs`, `hf.queues` …) is a file of its own.
 *
 *   open ─▶ in use ──close──▶ closing (workers finish, gathered enqueues are written) ─▶ closed
 *
 * Invariants: after `close` every call is refused with CLOSED; closing twice is closing once. A handler that is still
 * running while its worker stops may enqueue until it has ended.
 * Not here: what an enqueue is (enqueue.ts), the worker's loop (worker.ts), the database (sql/open.ts).
 */
import { systemClock } from "./clock.ts";
import type { Enqueue, EnqueueMany, EnqueueResult } from "./contract.ts";
import { type AnyJob, isJob } from "./definition.ts";
import { closedError, Enqueuer } from "./enqueue.ts";
import { type ClientEnv, processEnv, storeEvents } from "./environment.ts";
import { shown, UsageError } from "./errors.ts";
import { Emitter, type EventName, type Listener } from "./events.ts";
import { Gather } from "./gather.ts";
import { Holds } from "./holds.ts";
import type { Enqueued, NewJob } from "./job.ts";
import { Jobs } from "./jobs.ts";
import { KindCache } from "./kinds.ts";
import { type Lease, lease, type LeaseOptions } from "./lease.ts";
import { pruneOnce } from "./maintenance/pruner.ts";
import { type Middleware, MiddlewareChain } from "./middleware.ts";
import { checkOpenOptions, checkTarget, type ClientSettings, type OpenOptions } from "./open-options.ts";
import { type Duration, durationMs } from "./policy/duration.ts";
import { idFactory } from "./policy/id.ts";
import { checkOptions } from "./policy/options.ts";
import { Queues } from "./queues.ts";
import { Results } from "./result.ts";
import { Retry } from "./retry.ts";
import { openStore } from "./sql/open.ts";
import { State } from "./state.ts";
import { Counters, type Stats, stats } from "./stats.ts";
import type { PruneReport, Store } from "./store.ts";
import { VERSION } from "./version.ts";
import { Worker, type WorkerDeps, type WorkOptions } from "./worker.ts";
import { Workers } from "./workers.ts";

// A job that is due later than this is found by every worker's own look (at most 5 s apart) in good time.
const wakeAheadMs = 60_000;

/**
 * Opens a database and makes it ready for jobs. The address is HOLDFAST_URL, else DATABASE_URL, else the file
 * ./holdfast.db, unless one is given; a handle of your own (node:sqlite, better-sqlite3, a pg Pool) works too.
 *
 * @throws UsageError UNKNOWN_OPTION, BAD_OPTION, BAD_URL
 * @throws StoreError DATABASE_UNREACHABLE, DRIVER_MISSING, SCHEMA_TOO_NEW, READ_ONLY, DISK_FULL …
 * @example
 * const hf = await open("sqlite:jobs.db");
 * const hf = await open("postgres://localhost/app", { schema: "jobs" });
 */
export async function open(target?: string | object, options?: OpenOptions): Promise<Holdfast> {
  const { given, client, store: storeSettings } = checkOpenOptions(options);
  const address = checkTarget(target, process.env);
  const clock = given.clock ?? systemClock;
  const env: ClientEnv = { ...processEnv(), clock, random: given.random ?? Math.random };
  const events = new Emitter((error, event) => client.logger.error({ error, event }, "a listener failed"));
  const store = await openStore(address, {
    ...storeSettings,
    clock,
    random: env.random,
    ...storeEvents(events, client.logger),
  });
  const hf = new Holdfast(store, client, env, events);
  try {
    await hf.prepare();
  } catch (error) {
    await store.close();
    throw error;
  }
  return hf;
}

/**
 * A client: enqueues, works, and looks after jobs. Made by `open`.
 *
 * @example
 * await using hf = await open();
 * await hf.enqueue(sendMail, { to: "a@example.org" });
 */
export class Holdfast implements AsyncDisposable {
  /**
   * Enqueues a job, by its definition or by name. When it resolves, the job is on disk (or, with `tx`, part of your
   * transaction). Concurrent calls share one commit.
   *
   * @throws UsageError INPUT_INVALID, INPUT_NOT_JSON, INPUT_TOO_LARGE, UNKNOWN_OPTION, BAD_…, KEY_REQUIRED, LANE_REQUIRED, TX_…
   * @throws StoreError when the database stays away for longer than `retryFor`
   * @example
   * const { status, id } = await hf.enqueue(sendMail, { to }, { delay: "5m" });
   */
  readonly enqueue: Enqueue;

  /**
   * Enqueues many jobs in one transaction: all or none, outcomes in order.
   *
   * @throws UsageError as `enqueue`; `details.index` says which item
   * @example
   * await hf.enqueueMany([{ job: sendMail, input: { to: "a" } }, { job: sendMail, input: { to: "b" }, delay: "5m" }]);
   */
  readonly enqueueMany: EnqueueMany;

  /** Reading jobs, and acting on them. */
  readonly jobs: Jobs;
  /** Queues: counts, pause, settings. */
  readonly queues: Queues;
  /** Named stops. */
  readonly holds: Holds;
  /** Durable values of your own. */
  readonly state: State;
  /** Workers of all processes. */
  readonly workers: Workers;

  readonly #store: Store;
  readonly #settings: ClientSettings;
  readonly #env: ClientEnv;
  readonly #events: Emitter;
  readonly #retry: Retry;
  readonly #gather: { readonly plain: Gather; readonly keyed: Gather };
  readonly #enqueuer: Enqueuer;
  readonly #kinds: KindCache;
  readonly #results: Results;
  readonly #middleware = new MiddlewareChain();
  readonly #counters = new Counters();
  readonly #newId: () => string;
  readonly #definitions = new Map<string, AnyJob>();
  readonly #workersHere = new Set<Worker>();
  readonly #settling = new Set<Promise<unknown>>();
  #closing: Promise<void> | null = null;
  #closed = false;

  /** @internal Use `open`. */
  constructor(store: Store, settings: ClientSettings, env: ClientEnv, events: Emitter) {
    this.#store = store;
    this.#settings = settings;
    this.#env = env;
    this.#events = events;
    this.#newId = idFactory(() => env.clock.now());
    this.#retry = new Retry(env.clock, settings.retryForMs);
    const retry = this.#retry;
    const checkOpen = (): void => this.#checkOpen();
    const shared = { store, retry, checkOpen };
    const gather = () =>
      new Gather({
        write: (jobs) => retry.repeatable(() => store.enqueue(jobs)),
        committed: (jobs, outcomes) => this.#committed(jobs, outcomes),
        nextTurn: (fn) => void setImmediate(fn),
      });
    this.#gather = { plain: gather(), keyed: gather() };
    this.#kinds = new KindCache(() => retry.repeatable(() => store.kinds()), env.clock);
    this.#enqueuer = new Enqueuer({
      store,
      gather: this.#gather,
      clock: env.clock,
      newId: this.#newId,
      kinds: this.#kinds,
      route: settings.route,
      maxPayloadBytes: settings.maxPayloadBytes,
      around: this.#middleware,
      checkOpen: (parentId) => (parentId === null ? this.#checkOpen() : this.#checkNotClosed()),
      counted: this.#counters.counted,
    });
    ({ enqueue: this.enqueue, enqueueMany: this.enqueueMany } = this.#enqueuer.boundTo(null));
    const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
    this.jobs = new Jobs({
      ...shared,
      events,
      cancelHere: (id, reason) => this.#cancelHere(id, reason),
      nextTurn,
    });
    const { onWarning: warn } = storeEvents(events, settings.logger);
    this.queues = new Queues({ ...shared, warn });
    this.holds = new Holds(shared);
    this.state = new State({ ...shared, maxPayloadBytes: settings.maxPayloadBytes });
    this.workers = new Workers(shared);
    this.#results = new Results({
      clock: env.clock,
      events,
      get: (id) => retry.repeatable(() => store.get(id)),
    });
  }

  /** @internal For what is built on a client and ships with it: the dashboard. */
  get internals(): { readonly store: Store; readonly settings: ClientSettings; readonly env: ClientEnv } {
    return { store: this.#store, settings: this.#settings, env: this.#env };
  }

  /** @internal What must be known before the first call. */
  async prepare(): Promise<void> {
    await this.#kinds.refresh();
  }

  /**
   * Starts a worker for these definitions (each with its handler) in this process.
   *
   * @throws UsageError NO_QUEUES, BAD_LEASE, UNKNOWN_OPTION, …
   * @example
   * const worker = hf.work([sendMail], { queues: { mail: 20 } });
   * await worker.ready;
   */
  work(definitions: readonly AnyJob[], options?: WorkOptions): Worker {
    this.#checkOpen();
    checkDefinitions(definitions);
    const worker = new Worker(this.#workerDeps(), definitions, options);
    for (const definition of definitions) this.#definitions.set(definition.name, definition);
    this.#workersHere.add(worker);
    // Its kinds are registered by then: an enqueue by name must know of them at once in this process.
    worker.ready.then(
      () => this.#kinds.forget(),
      () => {},
    );
    const gone = (): void => {
      this.#workersHere.delete(worker);
      this.#counters.leasesLost += worker.leasesLost;
    };
    worker.stopped.then(gone, gone);
    return worker;
  }

  /**
   * Takes leases, for programs that run their own loop: see `Lease`. Expired leases are taken over first.
   *
   * @example
   * const [lease] = await hf.lease({ queues: ["mail"], limit: 1, for: "60s" });
   * await lease?.done();
   */
  async lease(options?: LeaseOptions): Promise<Lease[]> {
    this.#checkOpen();
    return lease(options, {
      ...this.#env,
      store: this.#store,
      retry: this.#retry,
      log: this.#settings.logger,
      events: this.#events,
      order: this.#settings.order,
      maxPayloadBytes: this.#settings.maxPayloadBytes,
      newId: this.#newId,
      version: VERSION,
      definition: (name) => this.#definitions.get(name),
      onLost: () => void (this.#counters.leasesLost += 1),
      track: (settling) => this.#track(settling),
    });
  }

  /**
   * Waits for a job and gives its output, whichever process runs it.
   *
   * @throws StateError JOB_DEAD, JOB_CANCELLED, RESULT_TIMEOUT, JOB_NOT_FOUND
   * @example
   * const output = await hf.result(await hf.enqueue(resize, { url }), { timeout: "1m" });
   */
  async result<Output = unknown>(
    job: string | EnqueueResult<Output>,
    options?: { readonly timeout?: Duration | undefined },
  ): Promise<Output> {
    this.#checkOpen();
    const { timeout } = checkOptions(options, ["timeout"], "result") as { timeout?: Duration };
    const id: unknown = typeof job === "object" && job !== null ? job.id : job;
    if (typeof id !== "string")
      throw new UsageError("BAD_OPTION", `result takes a job's id, or what enqueue gave; got ${shown(job)}.`);
    return (await this.#results.of(
      id.toLowerCase(),
      timeout === undefined ? null : durationMs(timeout, "timeout"),
    )) as Output;
  }

  /**
   * Puts code around every enqueue, every run, or both.
   *
   * @example
   * hf.use({ enqueue: (request, next) => { request.context ??= currentRequestId(); return next(); } });
   */
  use(middleware: Middleware): this {
    this.#checkOpen();
    this.#middleware.use(middleware);
    return this;
  }

  /**
   * Listens for what happens in this process. The returned function ends it.
   *
   * @example
   * const off = hf.on("job.dead", ({ name, id, error }) => alert(`${name} ${id}: ${error}`));
   */
  on<Name extends EventName>(event: Name, listener: Listener<Name>): () => void {
    return this.#events.on(event, listener);
  }

  /**
   * How many jobs are where, and what this client has counted.
   *
   * @example
   * const { totals, lagMs } = await hf.stats();
   */
  async stats(): Promise<Stats> {
    this.#checkOpen();
    let running = 0;
    for (const worker of this.#workersHere) running += worker.leasesLost;
    return stats(this.#store, this.#retry, this.#counters, running);
  }

  /**
   * Deletes ended jobs that have outlived their retention; workers do it every 5 minutes by themselves.
   *
   * @example
   * const { done, dead } = await hf.prune();
   */
  async prune(): Promise<PruneReport> {
    this.#checkOpen();
    return this.#retry.once(() =>
      pruneOnce({ store: this.#store, log: this.#settings.logger, retention: this.#settings.retention }),
    );
  }

  /**
   * Stops this client's workers, writes what is gathered, and lets the database go. A handle that you passed to
   * `open` stays open.
   *
   * @example
   * await hf.close();
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    this.#results.close(closedError());
    await Promise.allSettled([...this.#workersHere].map((worker) => worker.stop()));
    this.#closed = true;
    await Promise.all([this.#gather.plain.idle(), this.#gather.keyed.idle()]);
    await Promise.allSettled(this.#settling);
    await this.#store.close();
  }

  #workerDeps(): WorkerDeps {
    const { maxPayloadBytes, retention, order, logger } = this.#settings;
    return {
      ...this.#env,
      store: this.#store,
      log: logger,
      events: this.#events,
      middleware: this.#middleware,
      enqueueFor: ({ id }) => this.#enqueuer.boundTo(id),
      maxPayloadBytes,
      retention,
      order,
      workerId: `${this.#env.host}-${this.#env.pid}-${this.#newId().slice(-12)}`,
      version: VERSION,
      onSignalled: () => this.close(),
    };
  }

  #checkOpen(): void {
    if (this.#closing !== null) throw closedError();
  }

  #checkNotClosed(): void {
    if (this.#closed) throw closedError();
  }

  #track(settling: Promise<unknown>): void {
    this.#settling.add(settling);
    void settling.finally(() => this.#settling.delete(settling));
  }

  #cancelHere(id: string, reason: string): void {
    for (const worker of this.#workersHere) worker.cancelLocal(id, reason);
  }

  /** After each commit of gathered enqueues: count, wake, tell. */
  #committed(jobs: readonly NewJob[], outcomes: readonly Enqueued[]): void {
    this.#counters.counted(outcomes);
    this.#wake(jobs, outcomes);
    if (!this.#events.has("job.enqueued")) return;
    for (const [i, { status, id }] of outcomes.entries()) {
      const job = jobs[i];
      if (job !== undefined)
        this.#events.emit("job.enqueued", {
          id,
          status,
          name: job.name,
          queue: job.queue,
          priority: job.priority,
        });
    }
  }

  // Once for each queue and priority of the batch, which mostly is one.
  #wake(jobs: readonly NewJob[], outcomes: readonly Enqueued[]): void {
    const soonest = this.#env.clock.now() + wakeAheadMs;
    let last: NewJob | null = null;
    let seen: Set<string> | null = null;
    for (let i = 0; i < jobs.length; i++) {
      const job = jobs[i] as NewJob;
      if (last !== null && job.queue === last.queue && job.priority === last.priority) continue;
      const status = outcomes[i]?.status;
      if (status === "duplicate") continue;
      if ((job.delayMs ?? 0) > wakeAheadMs || (job.runAt ?? 0) > soonest) continue;
      last = job;
      seen ??= new Set();
      const level = `${job.priority} ${job.queue}`;
      if (seen.has(level)) continue;
      seen.add(level);
      this.#store.wake({ kind: "work", queue: job.queue, priority: job.priority });
    }
  }
}

function checkDefinitions(definitions: unknown): void {
  if (!Array.isArray(definitions)) {
    throw new UsageError("BAD_OPTION", `work takes an array of definitions; got ${shown(definitions)}.`);
  }
  for (const definition of definitions as unknown[]) {
    if (isJob(definition)) continue;
    throw new UsageError(
      "UNKNOWN_JOB",
      `work takes definitions made by defineJob; got ${shown(definition)}.`,
    );
  }
}
