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
 * Not here: what an enqueue is (enqueue/enqueue.ts), the worker's loop (worker/worker.ts), the database (storage/open.ts).
 */
import { Budgets } from "./limits/budgets.ts";
import { Breakers } from "./limits/breakers.ts";
import { systemClock } from "./clock.ts";
import type {
  CheckedItems,
  Enqueue,
  EnqueueItem,
  EnqueueMany,
  EnqueueResult,
  EnqueueResults,
} from "./jobs/requests.ts";
import { type AnyJob, isJob } from "./jobs/define-job.ts";
import { closedError, Enqueuer } from "./enqueue/enqueue.ts";
import { type ClientEnv, processEnv, storeEvents } from "./observe/environment.ts";
import { shown, UsageError } from "./errors.ts";
import { EventLog } from "./observe/event-log.ts";
import { JobLog } from "./observe/job-log.ts";
import { Emitter, type EventName, type Listener } from "./events.ts";
import { checkWorkflows, type WorkflowReport } from "./operate/check.ts";
import { checkDeclared, dataOf, type SignalDefinition, signalOf, topicOf } from "./workflows/signal.ts";
import { Errors } from "./observe/failure-groups.ts";
import { Holds } from "./limits/holds.ts";
import { Jobs } from "./operate/jobs-client.ts";
import { OPERATOR, type Operator } from "./operate/operator.ts";
import { DefinitionCache } from "./enqueue/registered-names.ts";
import { Lanes } from "./limits/lanes.ts";
import { type Lease, lease, type LeaseOptions } from "./lease/lease-client.ts";
import { pruneSeriesOnce } from "./upkeep/series-pruner.ts";
import { pruneOnce } from "./upkeep/job-pruner.ts";
import { tidyOnce } from "./upkeep/storage-care.ts";
import { Metrics } from "./observe/metrics.ts";
import { type Middleware, MiddlewareChain } from "./worker/middleware.ts";
import { checkOpenOptions, checkTarget, type ClientSettings, type OpenOptions } from "./open-options.ts";
import { type Duration, durationMs } from "./values/duration.ts";
import { idFactory } from "./values/id.ts";
import { encodeJson } from "./values/json.ts";
import { checkInteger, checkOptions } from "./values/options.ts";
import { TemporaryLimits } from "./limits/temporary-limits.ts";
import { Queues } from "./limits/queues.ts";
import { Results } from "./jobs/result.ts";
import { isLost, Retry } from "./storage/retry-calls.ts";
import { Schedules } from "./schedules/schedules-client.ts";
import { openStore } from "./storage/open.ts";
import { State } from "./state/state-client.ts";
import { type ClientCounters, Counters, type Stats, stats } from "./observe/stats.ts";
import type { Store } from "./storage/store.ts";
import type { PruneReport } from "./upkeep/store.ts";
import { VERSION } from "./version.ts";
import { Worker, type WorkerDeps, type WorkOptions } from "./worker/worker.ts";
import { Cells } from "./observe/cells.ts";
import { Workers } from "./worker/workers-client.ts";

const signalKeptMs = 7 * 86_400_000;

/** Options of `hf.signal`. */
export interface SignalOptions<Sent = unknown> {
  /** Only for those who wait with this key. */
  readonly key?: string | undefined;
  readonly data?: Sent | undefined;
  /** How long it is kept for somebody to wait for it; default 7 days. */
  readonly expires?: Duration | undefined;
}

/** Options of `hf.batch`. */
export interface BatchOptions {
  /** Runs when all have ended. */
  readonly then?: Omit<EnqueueItem, "after" | "onDead"> | undefined;
  /** What becomes of `then` when one of them ends dead or cancelled: default "cancel". */
  readonly onDead?: "cancel" | "continue" | "wait" | undefined;
  /** Your own transaction. */
  readonly tx?: object | undefined;
}

/**
 * Opens a database and makes it ready for jobs; a Postgres that is away is waited for, up to `retryFor`. The address is HOLDFAST_URL, else DATABASE_URL, else the file
 * ./holdfast.db, unless one is given; a handle of your own (node:sqlite, better-sqlite3, a pg Pool) works too.
 *
 * @throws UsageError UNKNOWN_OPTION, BAD_OPTION, BAD_URL
 * @throws StoreError DATABASE_UNREACHABLE, DATABASE_MISSING, DRIVER_MISSING, SCHEMA_TOO_NEW, READ_ONLY, DISK_FULL …
 * @example
 * const hf = await open("sqlite:jobs.db");
 * const hf = await open("postgres://localhost/app", { schema: "jobs" });
 */
export async function open(target?: string | object, options?: OpenOptions): Promise<Holdfast> {
  const { given, client, store: storeSettings } = checkOpenOptions(options);
  const address = checkTarget(target, process.env);
  const clock = given.clock ?? systemClock;
  const random = given.random ?? Math.random;
  const events = new Emitter((error, event) => client.logger.error({ error, event }, "a listener failed"));
  const told = storeEvents(events, client.logger);
  const openOnce = (): Promise<Store> => openStore(address, { ...storeSettings, clock, random, ...told });
  // A file that cannot be opened stays so; a server may only be on its way.
  const waitMs = typeof address === "string" && !address.startsWith("postgres") ? 0 : client.retryForMs;
  let first = waitMs > 0;
  const store = await new Retry(clock, waitMs, client.logger).repeatable(() =>
    openOnce().catch((error: unknown) => {
      if (first && isLost(error))
        told.onWarning(`The database does not answer yet; retrying for ${waitMs} ms: ${error.message}`, {
          code: error.code,
        });
      first = false;
      throw error;
    }),
  );
  const env: ClientEnv = { ...processEnv(), clock: store.clock, machineClock: clock, random };
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
  /** Limits, weight and pause of single lanes. */
  readonly lanes: Lanes;
  /** What is stopped because it failed again and again. */
  readonly breakers: Breakers;
  /** Failures by cause, and what is decided about them. */
  readonly errors: Errors;
  /** Limits that hold for a while. */
  readonly temporaryLimits: TemporaryLimits;
  /** Named stops. */
  readonly holds: Holds;
  /** Jobs by the clock. */
  readonly schedules: Schedules;
  /** Rates over the whole cluster. */
  readonly budgets: Budgets;
  /** Durable values of your own. */
  readonly state: State;
  /** Workers of all processes. */
  readonly workers: Workers;
  /** Series over time: counts and percentiles by the minute, health of processes and database. */
  readonly metrics: Metrics;
  /** What happened to which job, where `open` was told to keep it. */
  readonly eventLog: EventLog;
  /** What handlers said with `ctx.log`, where `open` was told to keep it. */
  readonly jobLog: JobLog;

  readonly #store: Store;
  readonly #settings: ClientSettings;
  readonly #env: ClientEnv;
  readonly #events: Emitter;
  readonly #retry: Retry;
  readonly #enqueuer: Enqueuer;
  readonly #registered: DefinitionCache;
  readonly #results: Results;
  readonly #middleware = new MiddlewareChain();
  readonly #counters = new Counters();
  readonly #totals = new Cells();
  readonly #newId: () => string;
  readonly #definitions = new Map<string, AnyJob>();
  readonly #workersHere = new Set<Worker>();
  readonly #settling = new Set<Promise<unknown>>();
  readonly #strays = { nextAt: -Infinity };
  #closing: Promise<void> | null = null;
  #closed = false;

  /** @internal Use `open`. */
  constructor(store: Store, settings: ClientSettings, env: ClientEnv, events: Emitter) {
    this.#store = store;
    this.#settings = settings;
    this.#env = env;
    this.#events = events;
    this.#newId = idFactory(() => env.clock.now());
    this.#retry = new Retry(env.clock, settings.retryForMs, settings.logger);
    const retry = this.#retry;
    const checkOpen = (): void => this.#checkOpen();
    const shared = { store, retry, checkOpen };
    this.#registered = new DefinitionCache(() => retry.repeatable(() => store.definitions.list()), env.clock);
    this.#enqueuer = new Enqueuer({
      store,
      retry,
      events,
      clock: env.clock,
      newId: this.#newId,
      definitions: this.#registered,
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
      pauseHere: (id) => {
        for (const worker of this.#workersHere) worker.pauseLocal(id);
      },
      env: { now: () => env.clock.now(), random: env.random },
      nextTurn,
      newId: this.#newId,
      committed: (jobs, outcomes) => this.#enqueuer.committed(jobs, outcomes),
    });
    const { onWarning: warn } = storeEvents(events, settings.logger);
    this.queues = new Queues({ ...shared, jobs: this.jobs, events });
    this.lanes = new Lanes(shared);
    this.temporaryLimits = new TemporaryLimits(shared);
    this.breakers = new Breakers(shared);
    this.errors = new Errors(shared);
    this.holds = new Holds(shared);
    const { clock } = env;
    const newId = this.#newId;
    const { maxPayloadBytes } = settings;
    this.schedules = new Schedules({
      ...shared,
      maxPayloadBytes,
      newId,
      prepare: ({ job, input, options }) => this.#enqueuer.prepare(job, input, options),
      committed: (jobs, outcomes) => this.#enqueuer.committed(jobs, outcomes),
    });
    this.budgets = new Budgets({ ...shared, clock, newId, warn });
    this.state = new State({ ...shared, clock, newId, maxPayloadBytes });
    this.workers = new Workers(shared);
    this.metrics = new Metrics({ ...shared, clock: env.clock, totals: () => this.#counted() });
    this.eventLog = new EventLog({
      ...shared,
      clock: env.clock,
      events,
      log: settings.logger,
      newId: this.#newId,
      settings: settings.eventLog,
    });
    this.jobLog = new JobLog({ ...shared, clock, log: settings.logger, newId, settings: settings.jobLog });
    this.#results = new Results({
      clock: env.clock,
      events,
      get: (id) => retry.repeatable(() => store.jobs.get(id)),
      watch: (id) => store.workflows.watch([id]),
      listen: (onEnded) => store.listen((wake) => void (wake.kind !== "work" && onEnded())),
    });
  }

  /** @internal The operators' interface, for the dashboard and the command line. */
  get [OPERATOR](): Operator {
    return {
      jobs: this.jobs,
      queues: this.queues,
      workers: this.workers,
      holds: this.holds,
      schedules: this.schedules,
      errors: this.errors,
      store: this.#store,
      retry: this.#retry,
      env: this.#env,
      settings: this.#settings,
      definitions: this.#definitions,
    };
  }

  /** @internal What must be known before the first call. */
  async prepare(): Promise<void> {
    await this.#registered.refresh();
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
    // Its names are registered by then: an enqueue by name must know of them at once in this process.
    worker.ready.then(
      () => this.#registered.forget(),
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
      strays: this.#strays,
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
      throw new UsageError(
        "BAD_OPTION",
        `result takes a job id, or the result of enqueue; got ${shown(job)}.`,
      );
    return (await this.#results.of(
      id.toLowerCase(),
      timeout === undefined ? null : durationMs(timeout, "timeout"),
    )) as Output;
  }

  /**
   * Sends a signal: the run that waits for it goes on; if none does yet, it is kept until one does or it expires. Each is
   * taken by one run. Data is checked against the definition that is given; by name, against what the jobs that this process
   * works on declare (`signals`).
   *
   * @throws UsageError SIGNAL_INVALID, INPUT_NOT_JSON, BAD_NAME, BAD_KEY
   * @example
   * await hf.signal("approved", { key: orderId, data: { by: "Ada" } });
   */
  async signal<Sent = unknown>(
    signal: string | SignalDefinition<Sent, unknown>,
    options?: SignalOptions<Sent>,
  ): Promise<void> {
    this.#checkOpen();
    const { name, data: schema } = signalOf(signal);
    const given = checkOptions(options, ["key", "data", "expires"], "signal") as SignalOptions<Sent>;
    const data: unknown = given.data ?? null;
    if (schema === null) await checkDeclared(name, data, this.#definitions.values());
    else await dataOf(schema, name, data);
    const text = encodeJson(data, "data", this.#settings.maxPayloadBytes, {
      notJson: "INPUT_NOT_JSON",
      tooLarge: "INPUT_TOO_LARGE",
    });
    const expiresMs = given.expires === undefined ? signalKeptMs : durationMs(given.expires, "expires");
    const topic = topicOf(name, given.key);
    const id = this.#newId();
    await this.#retry.repeatable(() => this.#store.workflows.signal({ id, topic, data: text, expiresMs }));
  }

  /**
   * Enqueues jobs together and, if asked, one that runs when all of them have ended. `id` is what the batch is found by:
   * `hf.jobs.list({ batch: id })` gives its jobs, `holdfast batches list` and the dashboard how far it is.
   *
   * @throws UsageError as `enqueueMany`
   * @example
   * const { id, jobs, then } = await hf.batch(pages.map((url) => ({ job: fetchPage, input: { url } })), {
   *   then: { job: report, input: {} },
   *   onDead: "continue",
   * });
   */
  async batch<const Items extends readonly EnqueueItem[]>(
    items: Items & CheckedItems<Items>,
    options: BatchOptions = {},
  ): Promise<{
    readonly id: string;
    readonly jobs: EnqueueResults<Items>;
    readonly then: EnqueueResult | null;
  }> {
    const { then, onDead } = checkOptions(options, ["then", "onDead", "tx"], "batch") as BatchOptions;
    const list = (items as readonly EnqueueItem[]).map((item) => ({ ...item, id: item.id ?? this.#newId() }));
    const tx = options.tx === undefined ? {} : { tx: options.tx };
    const after = list.map(({ id }) => id);
    const all = then === undefined ? list : [...list, { ...then, after, onDead: onDead ?? "cancel" }];
    const id = this.#newId();
    const results = await this.#enqueuer.enqueueBatch(all, tx, { id, then: then !== undefined });
    const last = then === undefined ? null : (results.at(-1) ?? null);
    return { id, jobs: results.slice(0, list.length) as EnqueueResults<Items>, then: last };
  }

  /**
   * Replays the histories of live runs against these definitions, without doing anything, and says which would break.
   *
   * @example
   * const { broken } = await hf.check([onboard, checkout]);
   * for (const { id, step, message } of broken) console.log(id, step, message);
   */
  async check(
    definitions: readonly AnyJob[],
    options?: { readonly limit?: number | undefined },
  ): Promise<WorkflowReport> {
    this.#checkOpen();
    checkDefinitions(definitions);
    const { limit } = checkOptions(options, ["limit"], "check") as { limit?: number };
    const most = limit === undefined ? 10_000 : checkInteger(limit, "limit", { min: 1, max: 1_000_000 });
    const { clock, random } = this.#env;
    const { maxPayloadBytes } = this.#settings;
    return checkWorkflows({ store: this.#store, clock, random, maxPayloadBytes }, definitions, most);
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
   * How many jobs are where, and what this client has counted. Exact, which costs a look at every job: at a million it takes
   * seconds. What asks again and again takes `hf.queues.list({ upTo })`.
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
   * Deletes ended jobs that have outlived their retention, and makes the partitions of the next days (Postgres). Workers do it every
   * 5 minutes by themselves.
   *
   * @example
   * const { done, dead } = await hf.prune();
   */
  async prune(): Promise<PruneReport> {
    this.#checkOpen();
    const { logger: log, retention, eventLog } = this.#settings;
    const store = this.#store;
    return this.#retry.once(async () => {
      await tidyOnce({ store, retention });
      await pruneSeriesOnce({ store, eventLog });
      return pruneOnce({ store, log, retention });
    });
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
    await this.#enqueuer.idle();
    await Promise.allSettled(this.#settling);
    await this.budgets.close();
    await this.eventLog.close();
    await this.jobLog.close();
    await this.#store.close();
  }

  #workerDeps(): WorkerDeps {
    const { maxPayloadBytes, retention, order, logger, metrics, eventLog } = this.#settings;
    return {
      ...this.#env,
      store: this.#store,
      log: logger,
      events: this.#events,
      middleware: this.#middleware,
      enqueueFor: ({ id }) => this.#enqueuer.boundTo(id),
      budget: (name, n) => this.budgets.takeFor(name, n),
      scheduling: {
        put: (schedule) => this.schedules.put(schedule),
        newId: this.#newId,
        committed: (jobs, outcomes) => this.#enqueuer.committed(jobs, outcomes),
      },
      maxPayloadBytes,
      retention,
      eventLog,
      keepLog: this.#settings.jobLog === null ? null : (log, job) => this.jobLog.keeping(log, job),
      totals: metrics ? this.#totals : null,
      order,
      workerId: `${this.#env.host}-${this.#env.pid}-${this.#newId().slice(-12)}`,
      version: VERSION,
      onSignalled: () => this.close(),
    };
  }

  /** @internal What this client has counted; no statement is sent. */
  counters(): ClientCounters {
    let running = 0;
    for (const worker of this.#workersHere) running += worker.leasesLost;
    return this.#counters.read(this.#store, this.#retry, running);
  }

  /** @internal Workers of this process, for health checks. */
  workersHere(): { readonly running: number; readonly stopping: number } {
    const stopping = [...this.#workersHere].filter((worker) => worker.stopping).length;
    return { running: this.#workersHere.size - stopping, stopping };
  }

  /** @internal The database's clock, in epoch milliseconds. */
  databaseNow(): Promise<number> {
    this.#checkOpen();
    return this.#store.now();
  }

  /** What this process's workers have counted: minutes that are over, and those under way. */
  #counted(): Cells {
    const sum = new Cells();
    sum.merge(this.#totals);
    for (const worker of this.#workersHere)
      for (const cell of worker.counted()) sum.at(cell.queue, cell.name).merge(cell);
    return sum;
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
