/**
 * The store: keeps the contract of src/store.ts over a driver and its catalogue, the same way for both databases.
 *
 * What is here is the path of a job: enqueue, claim, settle, take over, renew. Looking at jobs and acting on them is in
 * jobs.ts beside it, queues, holds and workers in cluster.ts, retention in retention.ts.
 * No rule of a job's life is here or in SQL: `transition.ts` decides, these statements apply.
 */
import { systemClock, type Clock } from "../clock.ts";
import type { ClaimedJob, Enqueued, NewJob } from "../job.ts";
import type {
  ClaimCursor,
  ClaimScope,
  Peek,
  Renewal,
  RenewalTarget,
  SessionInfo,
  Store,
  StoreCounters,
  Transition,
  UserTx,
  Wake,
} from "../store.ts";
import type { Call, Params, Row, RowList, Script } from "./catalogue.ts";
import { claimedJobs, cursorLevels, lookedBack, scopeParams, unknownLines } from "./claim.ts";
import { Cluster } from "./cluster.ts";
import type { Driver } from "./driver.ts";
import { enqueueScript, insertNew, isPlain, type PlacedJob } from "./enqueue.ts";
import { SqlInsight } from "./insight.ts";
import { Jobs } from "./jobs.ts";
import { Lines, resolveLines } from "./lines.ts";
import { readRenewal, renewCall } from "./renewal.ts";
import { Retention } from "./retention.ts";
import { claimedJob, maybeNumber, number, text } from "./rows.ts";
import { WAITING_AT } from "../job.ts";

export class SqlStore implements Store {
  readonly dialect: Driver["dialect"];
  readonly #driver: Driver;
  readonly #clock: Clock;
  readonly #lines = new Lines();
  readonly #listeners = new Set<(wake: Wake) => void>();
  readonly #jobs: Jobs;
  readonly #cluster: Cluster;
  readonly #retention: Retention;
  readonly insight: SqlInsight;

  constructor(driver: Driver, clock: Clock = systemClock) {
    this.dialect = driver.dialect;
    this.#driver = driver;
    this.#clock = clock;
    this.#jobs = new Jobs(driver, clock);
    this.#cluster = new Cluster(driver);
    this.#retention = new Retention(driver, clock);
    this.insight = new SqlInsight(driver);
  }

  get counters(): StoreCounters {
    return this.#driver.counters;
  }

  get renewalTarget(): RenewalTarget | null {
    return this.#clock.system ? this.#driver.renewalTarget : null;
  }

  // Enqueue

  enqueue(jobs: readonly NewJob[], tx?: UserTx): Promise<Enqueued[]> {
    if (tx !== undefined) return this.#enqueueInTx(jobs, tx);
    const unknown = this.#lines.unknown(jobs);
    if (unknown.length > 0) return this.#learnLines(unknown).then(() => this.enqueue(jobs));
    const placed = jobs.map((job) => ({ job, line: this.#lines.id(job) as number }));
    const now = this.#driver.now();
    if (jobs.every(isPlain)) return this.#enqueueNew(placed, now);
    return this.#driver.transaction(() => enqueueScript(placed, now));
  }

  /**
   * Ids are new unless a batch is sent again because its answer was lost. Then the database says that they are there,
   * and the statement that passes over those that are writes the rest.
   */
  async #enqueueNew(placed: readonly PlacedJob[], now: number | null): Promise<Enqueued[]> {
    try {
      await this.#driver.write(insertNew(placed, now));
    } catch (error) {
      if (!this.#driver.isDuplicate(error)) throw error;
      return this.#driver.transaction(() => enqueueScript(placed, now));
    }
    return placed.map(({ job }) => ({ status: "enqueued", id: job.id }));
  }

  userTx(handle: unknown): Promise<UserTx> | UserTx {
    return this.#driver.userTx(handle);
  }

  /**
   * Lines are made on a connection of our own: one made in the user's transaction would keep everybody else from that
   * kind until it ends. On SQLite they are made in it, because no other connection can write while it is open.
   */
  #enqueueInTx(jobs: readonly NewJob[], tx: UserTx): Promise<Enqueued[]> {
    const lines = this.#lines;
    const missing = tx.sync ? [] : lines.unknown(jobs);
    if (missing.length > 0) return this.#learnLines(missing).then(() => this.#enqueueInTx(jobs, tx));
    const now = this.#driver.now();
    const script = function* (): Script<Enqueued[]> {
      const unknown = lines.unknown(jobs);
      const own = new Lines();
      if (unknown.length > 0) own.learn(yield* resolveLines(unknown));
      const placed = jobs.map((job) => ({ job, line: (lines.id(job) ?? own.id(job)) as number }));
      return yield* enqueueScript(placed, now);
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

  async #learnLines(unknown: readonly { queue: string; name: string }[]): Promise<void> {
    // One by one, each its own small transaction: a lock on a line's row must not be held while a batch is written.
    const rows = unknown.map(({ queue, name }) => ({ queue, name }));
    await this.#driver.write({ name: "addLines", params: { rows } });
    this.#lines.learn(await this.#driver.read({ name: "findLines", params: { rows } }));
  }

  // Claim

  async claim(session: number, scope: ClaimScope, cursor: ClaimCursor): Promise<ClaimedJob[]> {
    const { queues, names, direction, most } = scopeParams(scope);
    if (queues.length === 0) return [];
    const levels = cursorLevels(scope, cursor, this.#clock.monotonic());
    const now = this.#driver.now();
    if (levels !== null) {
      const rows = await this.#driver.write(
        { name: "claim", params: { now, session, levels, direction, most } },
        "claim",
      );
      if (rows.length > 0) return this.#handOver(rows, session, scope, cursor);
    }
    const started = this.#clock.monotonic();
    const rows = await this.#driver.write(
      { name: "sweep", params: { now, session, queues, names, direction, most } },
      "claim",
    );
    lookedBack(cursor, started, this.#clock.monotonic());
    return this.#handOver(rows, session, scope, cursor);
  }

  async #handOver(
    rows: Row[],
    session: number,
    scope: ClaimScope,
    cursor: ClaimCursor,
  ): Promise<ClaimedJob[]> {
    const unknown = unknownLines(rows, this.#lines);
    if (unknown.length > 0)
      this.#lines.learn(await this.#driver.read({ name: "namesOfLines", params: { ids: unknown } }, "claim"));
    return claimedJobs(rows, session, scope, cursor, this.#lines);
  }

  async peek(scope: ClaimScope): Promise<Peek> {
    const { queues, names } = scopeParams(scope);
    // With the claims: a look that hangs for longer than a claim may would keep the worker from claiming.
    const call: Call = { name: "peek", params: { now: this.#driver.now(), queues, names } };
    const [row] = await this.#driver.read(call, "claim");
    const dueAt = maybeNumber(row as Row, "due_at");
    return {
      now: number(row as Row, "now"),
      dueAt: dueAt === null || dueAt >= WAITING_AT ? null : dueAt,
      expiresAt: maybeNumber(row as Row, "expires_at"),
    };
  }

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
    };
    const [row] = await this.#driver.write({ name: "openSession", params }, "settle");
    return number(row as Row, "id");
  }

  async renew(session: number): Promise<Renewal> {
    return readRenewal(await this.#driver.write(renewCall(session, this.#driver.now()), "settle"));
  }

  async closeSession(session: number): Promise<void> {
    await this.#driver.write(
      { name: "closeSession", params: { now: this.#driver.now(), session } },
      "settle",
    );
  }

  async orphans(limit: number): Promise<ClaimedJob[]> {
    const rows = await this.#driver.read({ name: "orphans", params: { now: this.#driver.now(), limit } });
    return rows.map((row) =>
      claimedJob(row, number(row, "session"), { queue: text(row, "queue"), name: text(row, "name") }),
    );
  }

  async burySessions(): Promise<number> {
    return (await this.#driver.write({ name: "bury", params: { now: this.#driver.now() } })).length;
  }

  // Settle

  settle(
    session: number,
    transitions: readonly Transition[],
    spent: readonly number[],
  ): Promise<Set<string>> {
    return this.#apply({ end: "end", again: "again" }, { session }, transitions, spent);
  }

  takeOver(transitions: readonly Transition[]): Promise<Set<string>> {
    return this.#apply({ end: "endOrphans", again: "againOrphans" }, {}, transitions, []);
  }

  async #apply(
    names: { end: "end" | "endOrphans"; again: "again" | "againOrphans" },
    fence: Params,
    transitions: readonly Transition[],
    spent: readonly number[],
  ): Promise<Set<string>> {
    // In id order, so that two batches with the same jobs cannot deadlock.
    const sorted = [...transitions].sort((a, b) => (a.id < b.id ? -1 : 1));
    const ended = sorted.filter((transition) => transition.move === "end");
    if (names.end === "end" && ended.length === transitions.length && ended.every(isDone)) {
      const rows = ended.map(({ id, token, output }) => ({ id, token, output }));
      return ids(
        await this.#driver.write(
          { name: "done", params: { ...fence, now: this.#driver.now(), rows, spent } },
          "settle",
        ),
      );
    }
    const again = sorted.filter((transition) => transition.move === "again");
    const now = this.#driver.now();
    const calls: Call[] = [];
    if (ended.length > 0 || again.length === 0) {
      const keyed = ended.filter(({ keyed }) => keyed).map(({ id }) => id);
      const dropped = ended.filter(({ keep }) => !keep).map(({ id }) => id);
      calls.push({
        name: names.end,
        params: { ...fence, now, rows: ended.map(endRow), keyed, dropped, spent },
      });
    }
    // Spent claims go with the last statement: a claim must not be forgotten while a job of it is still held.
    if (again.length > 0)
      calls.push({ name: names.again, params: { ...fence, now, rows: again.map(againRow), spent } });
    const [only] = calls;
    if (calls.length === 1 && only !== undefined)
      return this.#coolDown(again, ids(await this.#driver.write(only, "settle")));
    const both = function* (): Script<Row[]> {
      const rows: Row[] = [];
      for (const call of calls) rows.push(...(yield call));
      return rows;
    };
    const moved = await this.#driver.transaction(both, "settle");
    return this.#coolDown(again, ids(moved));
  }

  /** `Throttled` cools the whole queue down where the queue is set to: one step for each window, whoever comes first. */
  async #coolDown(again: readonly Transition[], moved: Set<string>): Promise<Set<string>> {
    const throttled = again
      .filter((transition) => transition.move === "again" && transition.throttled && moved.has(transition.id))
      .map(({ id }) => id);
    if (throttled.length > 0)
      await this.#driver.write(
        { name: "coolDown", params: { now: this.#driver.now(), ids: throttled } },
        "settle",
      );
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

  // Jobs: looking and acting (jobs.ts)

  get: Store["get"] = (id) => this.#jobs.get(id);
  list: Store["list"] = (filter, page) => this.#jobs.list(filter, page);
  ids: Store["ids"] = (filter, page) => this.#jobs.ids(filter, page);
  count: Store["count"] = (filter) => this.#jobs.count(filter);
  cancel: Store["cancel"] = (wanted, reason) =>
    this.#jobs.cancel(wanted, reason, (session) => this.wake({ kind: "cancel", session }));
  delete: Store["delete"] = (wanted) =>
    this.#jobs.delete(wanted, (session) => this.wake({ kind: "cancel", session }));
  retry: Store["retry"] = (wanted) => this.#jobs.retry(wanted);
  runNow: Store["runNow"] = (wanted) => this.#jobs.runNow(wanted);

  // Queues, holds, workers, kinds, state (cluster.ts)

  queues: Store["queues"] = () => this.#cluster.queues();
  setQueue: Store["setQueue"] = (name, change) =>
    this.#cluster.setQueue(name, change).then(() => this.wake({ kind: "settings" }));
  queueSettings: Store["queueSettings"] = (names) => this.#cluster.queueSettings(names);
  holds: Store["holds"] = () => this.#cluster.holds();
  setHold: Store["setHold"] = (hold) =>
    this.#cluster.setHold(hold).then(() => this.wake({ kind: "settings" }));
  clearHold: Store["clearHold"] = (name) =>
    this.#cluster.clearHold(name).then((cleared) => {
      this.wake({ kind: "any" });
      return cleared;
    });
  workers: Store["workers"] = () => this.#cluster.workers();
  stopWorkers: Store["stopWorkers"] = async (sessions) => {
    const stopped = await this.#cluster.stopWorkers(sessions);
    for (const session of stopped) this.wake({ kind: "stop", session });
    return stopped.length;
  };
  kinds: Store["kinds"] = () => this.#cluster.kinds();
  registerKinds: Store["registerKinds"] = (kinds) => this.#cluster.registerKinds(kinds);
  getState: Store["getState"] = (key) => this.#cluster.getState(key);
  setState: Store["setState"] = (key, value) => this.#cluster.setState(key, value);
  deleteState: Store["deleteState"] = (key) => this.#cluster.deleteState(key);

  // Upkeep (retention.ts)

  duty: Store["duty"] = (name, everyMs) => this.#retention.duty(name, everyMs);
  prune: Store["prune"] = (defaults, batch) => this.#retention.prune(defaults, batch);

  async tidy(): Promise<void> {
    await this.#driver.tidy();
    // Nothing of ours leaves a held job without its claim; if anything ever does (a hand in the tables, a restored
    // backup), this files it again, and the job is found like any other orphan.
    await this.#driver.write({ name: "refile", params: {} });
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

  get listening(): boolean {
    return this.#driver.listening;
  }

  wake(wake: Wake): void {
    for (const listener of this.#listeners) listener(wake);
    this.#driver.notify(wake);
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

/** Nothing to free and nothing to drop: what becomes of most jobs. */
function isDone(transition: Transition & { move: "end" }): boolean {
  return transition.state === "done" && transition.keep && !transition.keyed;
}

function ids(rows: readonly Row[]): Set<string> {
  return new Set(rows.map((row) => text(row, "id")));
}

function endRow(transition: Transition & { move: "end" }): RowList[number] {
  const { id, token, state, output, errors, attempt, crashes, keep } = transition;
  return {
    id,
    token,
    state,
    output,
    errors,
    errorGroup: transition.errorGroup ?? null,
    attempt,
    crashes,
    keep,
  };
}

function againRow(transition: Transition & { move: "again" }): RowList[number] {
  const { id, token, delayMs, errors, attempt, crashes, throttled, begun } = transition;
  return {
    id,
    token,
    delay: Math.round(delayMs),
    errors,
    errorGroup: transition.errorGroup ?? null,
    attempt,
    crashes,
    throttled: throttled ? 1 : 0,
    begun,
  };
}
