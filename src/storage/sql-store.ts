/**
 * The store: keeps the contract of src/storage/store.ts over a driver and its catalogue, the same way for both databases.
 *
 * What is here is how a job comes in (its line, its lane, its rows) and the sessions under which jobs are held. Claiming is in
 * lease/claim.ts beside it, settling in lease/settle.ts, looking at jobs and acting on them in operate/job-rows.ts, queues, holds and workers in
 * limits/queue-rows.ts, retention in upkeep/upkeep-rows.ts.
 * No rule of a job's life is here or in SQL: `jobs/transition.ts` decides, these statements apply.
 */
import type { Clock } from "../clock.ts";
import { StoreError } from "../errors.ts";
import { MOVED_AT, MOVED_TO } from "./admin.ts";
import type {
  SchemaState,
  Renewal,
  RenewalTarget,
  SessionInfo,
  Store,
  StoreCounters,
  PauseOutcome,
  StoreEvents,
} from "./store.ts";
import type { ClaimedJob, Enqueued, LaneLimits, NewJob } from "../jobs/job.ts";
import { isId, newSessionId } from "../values/id.ts";
import type { EditOutcome, JobChange } from "../jobs/editable.ts";
import type { UserTx } from "./user-tx.ts";
import type { Wake } from "./wake.ts";
import type { Call, Row, Script } from "./catalogue.ts";
import { Budgets } from "../limits/budget-rows.ts";
import { Breakers } from "../limits/breaker-rows.ts";
import { Claims } from "../lease/claim.ts";
import { Kinds } from "../enqueue/kind-rows.ts";
import { Workers } from "../lease/worker-rows.ts";
import { Holds } from "../limits/hold-rows.ts";
import { Queues } from "../limits/queue-rows.ts";
import type { Driver, Rider } from "./driver.ts";
import { eachIdOnce, enqueueScript, insertNew, isPlain, type PlacedJob } from "../enqueue/insert.ts";
import { Gates } from "../limits/limited-claim.ts";
import { enqueueGroup } from "../enqueue/batch-rows.ts";
import type { Ended } from "../enqueue/dependency-rows.ts";
import { editScript, judgeScript, placesOf } from "../operate/edit-rows.ts";
import { Flows } from "../workflows/step-rows.ts";
import { SqlInsight } from "../operate/browse-rows.ts";
import { Jobs } from "../operate/job-rows.ts";
import { StateRows } from "../state/state-rows.ts";
import { Passes } from "../state/pass-rows.ts";
import { Series } from "../observe/series-rows.ts";
import { Causes } from "../observe/failure-rows.ts";
import { Forks } from "../workflows/fork-rows.ts";
import { type Placing, Schedules } from "../schedules/schedule-rows.ts";
import { LaneNumbers, type LaneOf, LaneRows, resolveLanes } from "../limits/lane-rows.ts";
import { TemporaryLimits } from "../limits/temporary-limit-rows.ts";
import { type LineName, lineRows, Lines, resolveLines } from "../jobs/job-types.ts";
import { readRenewal, renewCall } from "../lease/renew.ts";
import { Upkeep } from "../upkeep/upkeep-rows.ts";
import { Settles } from "../lease/settle.ts";
import { pauseScript, resumeScript } from "../lease/request-rows.ts";
import { placeOf } from "../operate/why-rows.ts";
import { claimedJob, flag, maybeNumber, maybeText, number, text } from "../jobs/rows.ts";

export class SqlStore implements Store {
  readonly kinds: Kinds;
  readonly workers: Workers;
  readonly queues: Queues;
  readonly lanes: LaneRows;
  readonly holds: Holds;
  readonly budgets: Budgets;
  readonly breakers: Breakers;
  readonly temporaryLimits: TemporaryLimits;
  readonly workflows: Flows;
  readonly schedules: Schedules;
  readonly state: StateRows;
  readonly passes: Passes;
  readonly series: Series;
  readonly failures: Causes;
  readonly upkeep: Upkeep;
  readonly dialect: Driver["dialect"];
  readonly #driver: Driver;
  readonly #clock: Clock;
  readonly #lines = new Lines();
  readonly #listeners = new Set<(wake: Wake) => void>();
  readonly #jobs: Jobs;
  readonly #gates = new Gates();
  readonly #laneNumbers = new LaneNumbers();
  readonly #forks: Forks;
  readonly #claims: Claims;
  readonly #settles: Settles;
  readonly insight: SqlInsight;

  constructor(driver: Driver, warn: StoreEvents["onWarning"] = () => {}) {
    const { clock } = driver;
    this.dialect = driver.dialect;
    this.#driver = driver;
    driver.onStaleType = () => {
      this.#lines.forget();
      this.#laneNumbers.forget();
    };
    this.#clock = clock;
    const wake = (told: Wake): void => this.wake(told);
    this.kinds = new Kinds(driver);
    this.workers = new Workers(driver, wake);
    this.queues = new Queues({ driver, workers: this.workers, gates: this.#gates, wake });
    this.lanes = new LaneRows(driver, wake);
    this.holds = new Holds(driver, wake);
    this.#jobs = new Jobs(driver, clock);
    this.workflows = new Flows({
      driver,
      clock,
      place: (job) => this.#learnAndPlace(job),
      woke: () => this.wake({ kind: "any" }),
    });
    this.upkeep = new Upkeep(driver, this.#gates);
    const placing: Placing = {
      known: (of) =>
        this.#lines.id(of) !== undefined &&
        (of.lane === null || this.#laneNumbers.id(of.queue, of.lane) !== undefined),
      learn: (of) => this.#learnPlace(of),
      place: (job) => this.#placed(job, this.#lines, this.#laneNumbers),
    };
    this.schedules = new Schedules(driver, placing, wake);
    this.#forks = new Forks(driver, placing);
    this.budgets = new Budgets(driver, wake);
    this.state = new StateRows(driver);
    this.passes = new Passes(driver);
    this.series = new Series(driver);
    this.temporaryLimits = new TemporaryLimits(driver);
    this.breakers = new Breakers(driver, wake);
    this.#claims = new Claims({ driver, clock, lines: this.#lines, gates: this.#gates, warn });
    this.#settles = new Settles({
      driver,
      clock,
      flows: this.workflows,
      wake: (wake) => this.wake(wake),
    });
    this.failures = new Causes(driver);
    this.insight = new SqlInsight(driver, this.failures);
  }

  get clock(): Clock {
    return this.#clock;
  }

  get counters(): StoreCounters {
    return this.#driver.counters;
  }

  get renewalTarget(): RenewalTarget | null {
    return this.#clock.system ? this.#driver.renewalTarget : null;
  }

  // Enqueue

  enqueue(
    jobs: readonly NewJob[],
    tx?: UserTx,
    onTold?: () => void,
    resent: boolean = false,
  ): Promise<Enqueued[]> {
    if (tx !== undefined) return this.#enqueueInTx(jobs, tx);
    const unknown = this.#lines.unknown(jobs);
    if (unknown.length > 0)
      return this.#learnLines(unknown).then(() => this.enqueue(jobs, undefined, onTold, resent));
    const now = this.#driver.now();
    if (!jobs.every(isPlain)) return this.#enqueueRest(jobs, now);
    const placed = jobs.map((job) => ({ job, line: this.#lines.id(job) as number }));
    return resent ? this.#enqueueAgain(placed, now) : this.#enqueueNew(placed, now, onTold);
  }

  async #enqueueRest(jobs: readonly NewJob[], now: number | null): Promise<Enqueued[]> {
    await this.#learnLanes(jobs);
    const placed = jobs.map((job) => this.#placed(job, this.#lines, this.#laneNumbers));
    const at = this.#clock.now();
    return this.#driver.transaction("enqueue", () => enqueueGroup(placed, now, at, true));
  }

  #placed(job: NewJob, lines: Lines, lanes: LaneNumbers): PlacedJob {
    const line = (this.#lines.id(job) ?? lines.id(job)) as number;
    if (job.lane === null) return { job, line };
    this.#gates.add(job.queue);
    const laneId = this.#laneNumbers.id(job.queue, job.lane) ?? lanes.id(job.queue, job.lane);
    return { job, line, laneId: laneId as number };
  }

  async #learnAndPlace(job: NewJob): Promise<PlacedJob> {
    if (this.#lines.id(job) === undefined) await this.#learnLines([job]);
    await this.#learnLanes([job]);
    return this.#placed(job, this.#lines, this.#laneNumbers);
  }

  /** Lanes, as lines, are made in a transaction of their own. */
  async #learnLanes(jobs: readonly LaneOf[]): Promise<void> {
    const rows = this.#laneNumbers.unknown(jobs, this.#clock.monotonic());
    if (rows.length === 0) return;
    const now = this.#driver.now();
    this.#laneNumbers.learn(await this.#driver.transaction("addLanes", () => resolveLanes(rows, now)));
  }

  /** For a job that no definition comes with: its lane begins with the limits of whoever serves the kind. */
  async #learnPlace({ queue, name, lane }: Pick<NewJob, "queue" | "name" | "lane">): Promise<void> {
    if (this.#lines.id({ queue, name, lane }) === undefined) await this.#learnLines([{ queue, name, lane }]);
    if (this.#laneNumbers.unknown([{ queue, lane }], this.#clock.monotonic()).length === 0) return;
    const laneLimits = (await this.kinds.list()).get(name)?.lanes ?? null;
    await this.#learnLanes([{ queue, lane, laneLimits }]);
  }

  /**
   * Ids are new unless a batch is sent again because its answer was lost. Then the database says that they are there,
   * and the statement that passes over those that are writes the rest.
   */
  async #enqueueNew(
    placed: readonly PlacedJob[],
    now: number | null,
    onTold?: () => void,
  ): Promise<Enqueued[]> {
    const rider = onTold === undefined ? null : this.#riderFor(placed);
    try {
      await this.#driver.write(insertNew(placed, now, rider));
    } catch (error) {
      if (!this.#driver.isDuplicate(error)) throw error;
      return this.#enqueueAgain(placed, now);
    }
    if (rider !== null) onTold?.();
    return placed.map(({ job }) => ({ status: "enqueued", id: job.id }));
  }

  /** Some may be there, and some may have been there, have run and be gone (`keep: false`). */
  #enqueueAgain(placed: readonly PlacedJob[], now: number | null): Promise<Enqueued[]> {
    return this.#driver.transaction("enqueue", () => eachIdOnce(placed, (once) => enqueueScript(once, now)));
  }

  /** The wake-up of a job that comes alone and is due. */
  #riderFor(placed: readonly PlacedJob[]): Rider | null {
    const [first] = placed;
    if (placed.length !== 1 || first === undefined) return null;
    const { delayMs, runAt, queue, priority } = first.job;
    return delayMs === null && runAt === null ? this.#driver.rider({ kind: "work", queue, priority }) : null;
  }

  userTx(handle: unknown): Promise<UserTx> | UserTx {
    return this.#driver.userTx(handle);
  }

  /**
   * Lines are made on a connection of our own: one made in the user's transaction would keep everybody else from that
   * kind until it ends. On SQLite they are made in it, because no other connection can write while it is open.
   */
  #enqueueInTx(jobs: readonly NewJob[], tx: UserTx): Promise<Enqueued[]> {
    if (!tx.sync && this.#isNew(jobs)) return this.#learnBeside(jobs, tx).then(() => this.#follow(jobs, tx));
    return this.#follow(jobs, tx);
  }

  #isNew(jobs: readonly NewJob[]): boolean {
    return (
      this.#lines.unknown(jobs).length > 0 ||
      this.#laneNumbers.unknown(jobs, this.#clock.monotonic()).length > 0
    );
  }

  /**
   * Makes the lines and lanes that nobody has. A raw insert makes its own in the user's transaction: to make those here, too,
   * would be to wait for the end of that transaction.
   */
  async #learnBeside(jobs: readonly NewJob[], tx: UserTx): Promise<void> {
    const lines = this.#lines.unknown(jobs);
    if (lines.length > 0) {
      const held = new Lines();
      held.learn(await this.#onlyIn(tx, { name: "findLines", params: { rows: lineRows(lines) } }));
      const free = held.unknown(lines);
      if (free.length > 0) await this.#learnLines(free);
    }
    const lanes = this.#laneNumbers.unknown(jobs, this.#clock.monotonic());
    if (lanes.length > 0) {
      const held = new LaneNumbers();
      const params = { now: this.#driver.now(), rows: lanes };
      held.learn(await this.#onlyIn(tx, { name: "findLanes", params }));
      const isFree = ({ queue, lane }: NewJob): boolean =>
        lane !== null && held.id(queue, lane) === undefined;
      await this.#learnLanes(jobs.filter(isFree));
    }
  }

  /** What a transaction sees and nobody else does. */
  async #onlyIn(tx: UserTx, call: Call): Promise<Row[]> {
    const ours = new Set((await this.#driver.read(call)).map((row) => number(row, "id")));
    const theirs = await this.#driver.inUserTx(tx, function* (): Script<Row[]> {
      return yield call;
    });
    return theirs.filter((row) => !ours.has(number(row, "id")));
  }

  #follow(jobs: readonly NewJob[], tx: UserTx): Promise<Enqueued[]> {
    const upstream = tx.sync ? [] : jobs.flatMap((job) => job.after?.ids ?? []);
    // Marked on a connection of our own, for the same reason; what ends before the commit, or unmarked, is found by the sweep.
    if (upstream.length > 0)
      return this.workflows.watchBeside(upstream).then(() => this.#writeInTx(jobs, tx));
    return this.#writeInTx(jobs, tx);
  }

  #writeInTx(jobs: readonly NewJob[], tx: UserTx): Promise<Enqueued[]> {
    const lines = this.#lines;
    const at = this.#clock.now();
    const monotonic = this.#clock.monotonic();
    const now = this.#driver.now();
    const numbers = this.#laneNumbers;
    const placedJob = (job: NewJob, own: Lines, lanes: LaneNumbers) => this.#placed(job, own, lanes);
    const script = function* (): Script<Enqueued[]> {
      const unknown = lines.unknown(jobs);
      const own = new Lines();
      if (unknown.length > 0) own.learn(yield* resolveLines(unknown));
      const lanes = new LaneNumbers();
      const unknownLanes = numbers.unknown(jobs, monotonic);
      if (unknownLanes.length > 0) lanes.learn(yield* resolveLanes(unknownLanes, now));
      const placed = jobs.map((job) => placedJob(job, own, lanes));
      return yield* enqueueGroup(placed, now, at, tx.sync);
    };
    const wakes = new Map(
      jobs.map((job) => [
        `${job.queue}\n${job.priority}`,
        { kind: "work", queue: job.queue, priority: job.priority } as const,
      ]),
    );
    return this.#driver.inUserTx(tx, script).then(async (outcomes) => {
      await this.#driver.notifyInTx(tx, [...wakes.values()]);
      return outcomes;
    });
  }

  async #learnLines(unknown: readonly LineName[]): Promise<void> {
    // One by one, each its own small transaction: a lock on a line's row must not be held while a batch is written.
    const rows = lineRows(unknown);
    await this.#driver.write({ name: "addLines", params: { rows } });
    this.#lines.learn(await this.#driver.read({ name: "findLines", params: { rows } }));
  }

  // Claim (lease/claim.ts)

  claim: Store["claim"] = (session, scope, cursor) => this.#claims.claim(session, scope, cursor);
  claimBudgeted: Store["claimBudgeted"] = (session, scope, budget, cursor) =>
    this.#claims.claimBudgeted(session, scope, budget, cursor);
  peek: Store["peek"] = (scope, cursor) => this.#claims.peek(scope, cursor);

  // Sessions

  async openSession(info: SessionInfo): Promise<number> {
    const { kind, workerId, name, host, pid, version, leaseMs } = info;
    const params = {
      now: this.#driver.now(),
      kind,
      workerId,
      name,
      host,
      pid,
      version,
      leaseMs,
      queues: JSON.stringify(info.queues),
      names: JSON.stringify(info.names),
      runtime: info.runtime ?? null,
      release: info.release ?? null,
      versions: info.versions === undefined ? null : JSON.stringify(info.versions),
      quietAt: info.quietAt ?? null,
    };
    // A repeat after a lost answer makes another session. The first one holds nothing and expires.
    for (;;) {
      const id = newSessionId();
      const rows = await this.#driver.write({ name: "openSession", params: { ...params, id } }, "settle");
      if (rows.length > 0) return id;
    }
  }

  async hasSession(session: number): Promise<boolean> {
    return (await this.#driver.read({ name: "findSession", params: { session } }, "settle")).length > 0;
  }

  async renew(session: number, aheadMs = 0): Promise<Renewal> {
    return readRenewal(await this.#driver.write(renewCall(session, this.#driver.now(), aheadMs), "settle"));
  }

  async closeSession(session: number): Promise<void> {
    await this.#driver.write(
      { name: "closeSession", params: { now: this.#driver.now(), session } },
      "settle",
    );
  }

  async orphans(limit: number): Promise<ClaimedJob[]> {
    const rows = await this.#driver.read({ name: "orphans", params: { now: this.#driver.now(), limit } });
    return rows.map((row) => ({
      ...heldJob(row),
      leaseUntil: maybeNumber(row, "lease_until"),
      ...(flag(row, "unheard") ? { unheard: true as const } : null),
    }));
  }

  async held(wanted: readonly string[]): Promise<ClaimedJob[]> {
    const rows = await this.#driver.read({ name: "heldJobs", params: { ids: wanted.filter(isId) } });
    return rows.map(heldJob);
  }

  async heldUnder(session: number, tokens: readonly number[]): Promise<ClaimedJob[]> {
    const rows = await this.#driver.read({ name: "heldUnder", params: { session, tokens } }, "settle");
    return rows.map(heldJob);
  }

  async burySessions(): Promise<number> {
    const strays = await this.#driver.read({ name: "strayWishes", params: { limit: 500 } });
    await this.#settles.grant(strays.map((row) => ({ id: text(row, "id"), token: null })));
    return (await this.#driver.write({ name: "bury", params: { now: this.#driver.now() } })).length;
  }

  // Settle (lease/settle.ts)

  settle: Store["settle"] = (session, transitions, spent) =>
    this.#settles.settle(session, transitions, spent);
  takeOver: Store["takeOver"] = (transitions) => this.#settles.takeOver(transitions);
  async wrest(given: Parameters<Store["wrest"]>[0]): Promise<Set<string>> {
    const moved = await this.#settles.wrest(given);
    const ended = given.filter(({ end }) => moved.has(end.id));
    for (const session of new Set(ended.map((one) => one.session))) this.wake({ kind: "cancel", session });
    return moved;
  }

  async progress(session: number, id: string, token: number, value: string): Promise<boolean> {
    return (
      (
        await this.#driver.write({
          name: "progress",
          params: { now: this.#driver.now(), session, id, token, value },
        })
      ).length > 0
    );
  }

  // Jobs: looking and acting (operate/job-rows.ts)

  get: Store["get"] = (id) => this.#jobs.get(id);
  list: Store["list"] = (filter, page) => this.#jobs.list(filter, page);
  ids: Store["ids"] = (filter, page) => this.#jobs.ids(filter, page);
  count: Store["count"] = (filter) => this.#jobs.count(filter);
  cancel: Store["cancel"] = async (wanted, reason, { undo } = { undo: true }) => {
    const ended: Ended[] = [];
    const outcomes = await this.#jobs.cancel(wanted, reason, undo, {
      ask: (session) => this.wake({ kind: "cancel", session }),
      ended: (id) => ended.push({ id, state: "cancelled" }),
      again: () => this.wake({ kind: "any" }),
    });
    await this.#settles.tellEnds(ended);
    return outcomes;
  };
  async pause(wanted: readonly string[], reason: string): Promise<Map<string, PauseOutcome>> {
    const now = this.#driver.now();
    const { outcomes, asked } = await this.#driver.transaction("pause", () =>
      pauseScript(wanted, reason, now),
    );
    for (const session of asked) this.wake({ kind: "cancel", session });
    return outcomes;
  }
  resume: Store["resume"] = (wanted) => {
    const now = this.#driver.now();
    return this.#driver.transaction("resume", () => resumeScript(wanted, now));
  };
  delete: Store["delete"] = (wanted, running = "stop") =>
    this.#jobs.delete(wanted, running, (session) => this.wake({ kind: "cancel", session }));
  retry: Store["retry"] = (wanted, patch) => this.#jobs.retry(wanted, patch ?? null);
  runNow: Store["runNow"] = (wanted) => this.#jobs.runNow(wanted);
  async edit(wanted: readonly string[], change: JobChange): Promise<Map<string, EditOutcome>> {
    const now = this.#driver.now();
    const limits = new Map<string, LaneLimits | null>();
    if (change.queue !== null) {
      const rows = await this.#driver.read({ name: "editable", params: { now, ids: wanted.filter(isId) } });
      for (const place of placesOf(rows, change.queue)) {
        await this.#learnPlace(place);
        if (place.lane === null) continue;
        this.#gates.add(place.queue);
        limits.set(place.name, (await this.kinds.list()).get(place.name)?.lanes ?? null);
      }
    }
    return this.#driver.transaction("edit", () => editScript(wanted, change, limits, now));
  }
  async judgeEdits(wanted: readonly string[], change: JobChange): Promise<Map<string, EditOutcome>> {
    const script = judgeScript(wanted, change, this.#driver.now());
    // It only reads, so it need not wait for whoever writes.
    let step = script.next();
    while (step.done !== true) step = script.next(await this.#driver.read(step.value));
    return step.value;
  }

  commit: Store["commit"] = (tx, session, transition) => this.#settles.commit(tx, session, transition);
  resolve: Store["resolve"] = (ended) => this.#settles.tellEnds(ended);

  place: Store["place"] = async (id) => {
    const [row] = await this.#driver.read({ name: "whyJob", params: { now: this.#driver.now(), id } });
    return row === undefined ? null : placeOf(row);
  };

  fork: Store["fork"] = (id, from, newId) => this.#forks.fork(id, from, newId);

  inspect: Store["inspect"] = () => this.#driver.inspect();

  async schemaState(): Promise<SchemaState> {
    const params = { moved: MOVED_TO, movedAt: MOVED_AT };
    const [row] = await this.#driver.read({ name: "schemaState", params });
    // The tables were there when this client was opened.
    if (row === undefined) throw new StoreError("SCHEMA_MISSING", "The database has no Holdfast schema.");
    const movedAt = maybeText(row, "moved_at");
    return {
      version: number(row, "version"),
      name: text(row, "name"),
      appliedAt: number(row, "applied_at"),
      movedTo: maybeText(row, "moved_to"),
      movedAt: movedAt === null ? null : Number(movedAt),
    };
  }

  // Wake-ups

  listen(onWake: (wake: Wake) => void): () => void {
    this.#listeners.add(onWake);
    const stop = this.#driver.listen(onWake);
    return () => {
      this.#listeners.delete(onWake);
      stop();
    };
  }

  get poolUse(): Store["poolUse"] {
    return this.#driver.poolUse;
  }

  get listening(): boolean {
    return this.#driver.listening;
  }

  wake(wake: Wake): void {
    this.wakeHere(wake);
    this.#driver.notify(wake);
  }

  wakeHere(wake: Wake): void {
    for (const listener of this.#listeners) listener(wake);
  }

  async writable(): Promise<boolean> {
    const [row] = await this.#driver.read({ name: "writable", params: {} });
    return row === undefined || flag(row, "writable");
  }

  async now(): Promise<number> {
    return number(
      (await this.#driver.read({ name: "now", params: { now: this.#driver.now() } }))[0] as Row,
      "now",
    );
  }

  async close(): Promise<void> {
    this.#listeners.clear();
    await this.#driver.close();
  }
}

/** A job as its holder's claim has it. One that has steps has run, though its holder may not know it any more after a failover. */
function heldJob(row: Row): ClaimedJob {
  const line = { queue: text(row, "queue"), name: text(row, "name") };
  const job = claimedJob(row, number(row, "session"), line);
  return flag(row, "stepped") ? { ...job, begun: true } : job;
}
