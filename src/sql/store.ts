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
  StoreEvents,
  Transition,
  UserTx,
  Wake,
} from "../store.ts";
import type { Call, Params, Row, RowList, Script } from "./catalogue.ts";
import { Budgets } from "./budgets.ts";
import { Breakers } from "./breakers.ts";
import {
  claimedJobs,
  cursorLevels,
  isBarren,
  lookedBack,
  scopeParams,
  unknownLines,
  without,
} from "./claim.ts";
import { Cluster } from "./cluster.ts";
import type { Driver } from "./driver.ts";
import { enqueueScript, insertNew, isPlain, type PlacedJob } from "./enqueue.ts";
import { budgetClaim } from "./budget-claim.ts";
import { gatedClaim, type GatedClaim, Gates, uncount } from "./gates.ts";
import { type Ended, enqueueWithAfter } from "./dependencies.ts";
import { Flows, suspendScript } from "./flows.ts";
import { SqlInsight } from "./insight.ts";
import { Jobs } from "./jobs.ts";
import { Passes } from "./passes.ts";
import { Series } from "./series.ts";
import { Schedules } from "./schedules.ts";
import { LaneNumbers, type LaneOf, LaneSettings, resolveLanes } from "./lanes.ts";
import { type LineName, lineRows, Lines, resolveLines } from "./lines.ts";
import { readRenewal, renewCall } from "./renewal.ts";
import { Retention } from "./retention.ts";
import { placeOf } from "./place.ts";
import { claimedJob, flag, maybeNumber, number, text } from "./rows.ts";
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
  readonly #schedules: Schedules;
  readonly #budgets: Budgets;
  readonly #passes: Passes;
  readonly #series: Series;
  readonly #gates = new Gates();
  #claimsTakeMs = 0;
  #budgetTurn = 0;
  readonly #laneNumbers = new LaneNumbers();
  readonly #lanes: LaneSettings;
  readonly #breakers: Breakers;
  readonly #warn: StoreEvents["onWarning"];
  readonly #flows: Flows;
  readonly insight: SqlInsight;

  constructor(driver: Driver, clock: Clock = systemClock, warn: StoreEvents["onWarning"] = () => {}) {
    this.dialect = driver.dialect;
    this.#driver = driver;
    this.#clock = clock;
    this.#jobs = new Jobs(driver, clock);
    this.#flows = new Flows(driver, clock, () => this.wake({ kind: "any" }));
    this.#cluster = new Cluster(driver);
    this.#retention = new Retention(driver, clock);
    this.#schedules = new Schedules(driver, {
      known: (of) =>
        this.#lines.id(of) !== undefined &&
        (of.lane === null || this.#laneNumbers.id(of.queue, of.lane) !== undefined),
      learn: (of) => this.#learnPlace(of),
      place: (job) => this.#placed(job, this.#lines, this.#laneNumbers),
    });
    this.#budgets = new Budgets(driver);
    this.#passes = new Passes(driver);
    this.#series = new Series(driver);
    this.#lanes = new LaneSettings(driver);
    this.#breakers = new Breakers(driver);
    this.#warn = warn;
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
    const now = this.#driver.now();
    if (jobs.every(isPlain)) {
      const placed = jobs.map((job) => ({ job, line: this.#lines.id(job) as number }));
      return this.#enqueueNew(placed, now);
    }
    return this.#enqueueRest(jobs, now);
  }

  async #enqueueRest(jobs: readonly NewJob[], now: number | null): Promise<Enqueued[]> {
    await this.#learnLanes(jobs);
    const placed = jobs.map((job) => this.#placed(job, this.#lines, this.#laneNumbers));
    const at = this.#clock.now();
    return this.#driver.transaction(() => enqueueWithAfter(placed, now, at, true));
  }

  #placed(job: NewJob, lines: Lines, lanes: LaneNumbers): PlacedJob {
    const line = (this.#lines.id(job) ?? lines.id(job)) as number;
    if (job.lane === null) return { job, line };
    this.#gates.add(job.queue);
    const laneId = this.#laneNumbers.id(job.queue, job.lane) ?? lanes.id(job.queue, job.lane);
    return { job, line, laneId: laneId as number };
  }

  /** Lanes, as lines, are made in a transaction of their own. */
  async #learnLanes(jobs: readonly LaneOf[]): Promise<void> {
    const rows = this.#laneNumbers.unknown(jobs, this.#clock.monotonic());
    if (rows.length === 0) return;
    const now = this.#driver.now();
    this.#laneNumbers.learn(await this.#driver.transaction(() => resolveLanes(rows, now)));
  }

  /** For a job that no definition comes with: its lane begins with the limits of whoever serves the kind. */
  async #learnPlace({ queue, name, lane }: Pick<NewJob, "queue" | "name" | "lane">): Promise<void> {
    if (this.#lines.id({ queue, name, lane }) === undefined) await this.#learnLines([{ queue, name, lane }]);
    if (this.#laneNumbers.unknown([{ queue, lane }], this.#clock.monotonic()).length === 0) return;
    const laneLimits = (await this.#cluster.kinds()).get(name)?.lanes ?? null;
    await this.#learnLanes([{ queue, lane, laneLimits }]);
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
    if (!tx.sync && this.#laneNumbers.unknown(jobs, this.#clock.monotonic()).length > 0)
      return this.#learnLanes(jobs).then(() => this.#enqueueInTx(jobs, tx));
    const upstream = tx.sync ? [] : jobs.flatMap((job) => job.after?.ids ?? []);
    // Marked on a connection of our own, for the same reason; what ends before the commit is found by the sweep.
    if (upstream.length > 0) return this.#flows.watch(upstream).then(() => this.#writeInTx(jobs, tx));
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
      return yield* enqueueWithAfter(placed, now, at, tx.sync);
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

  // Claim

  async claim(session: number, scope: ClaimScope, cursor: ClaimCursor): Promise<ClaimedJob[]> {
    if (this.#gates.stale(this.#clock.monotonic())) await this.#readGates();
    const gates = this.#gates.concern(scope);
    if (gates === null) return this.#claimPlain(session, scope, cursor);
    // Who has the first choice changes with every claim, so that neither lanes nor jobs without one are kept waiting.
    cursor.lanesFirst = cursor.lanesFirst !== true;
    const askedAt = this.#clock.monotonic();
    // No jobs without a lane a moment ago, and no wake-up since: those with one are asked first, and alone if they give.
    const barren = isBarren(cursor, this.#clock.monotonic());
    const plain = (rest: ClaimScope) => this.#claimPlain(session, rest, cursor);
    const gated = (rest: ClaimScope) => this.#claimGated(session, rest, cursor, gates);
    const [first, second] = cursor.lanesFirst || barren ? [gated, plain] : [plain, gated];
    const jobs = await first(scope);
    const rest = without(scope, jobs);
    if (rest.limit === 0 || (barren && jobs.length > 0)) return this.#answered(jobs, askedAt);
    try {
      return this.#answered(byTurns(jobs, await second(rest)), askedAt);
    } catch (error) {
      // What the first part brought is held: it must be handed over. The next claim meets the fault again.
      if (jobs.length === 0) throw error;
      return this.#answered(jobs, askedAt);
    }
  }

  /** Remembers how long a claim took whose jobs have a rate: the slowest one lately, a tenth less with each. */
  #answered(jobs: ClaimedJob[], askedAt: number): ClaimedJob[] {
    if (jobs.some(({ startBy }) => startBy !== undefined))
      this.#claimsTakeMs = Math.max(this.#clock.monotonic() - askedAt, this.#claimsTakeMs * 0.9);
    return jobs;
  }

  async #readGates(): Promise<void> {
    const rows = await this.#driver.read({ name: "gates", params: {} }, "claim");
    const names = (laned: boolean) =>
      rows.filter((row) => flag(row, "laned") === laned).map((row) => text(row, "queue"));
    this.#gates.learn({ laned: names(true), limited: names(false) }, this.#clock.monotonic());
  }

  /** Jobs with a lane, and jobs of queues with limits: one transaction, see gates.ts. */
  async #claimGated(
    session: number,
    scope: ClaimScope,
    cursor: ClaimCursor,
    gates: { readonly laned: boolean; readonly limited: boolean },
  ): Promise<ClaimedJob[]> {
    const sentAt = this.#clock.monotonic();
    const ask = {
      ...gates,
      session,
      scope,
      now: this.#driver.now(),
      claimsTakeMs: this.#clock.system ? this.#claimsTakeMs : null,
      lanesFirst: cursor.lanesFirst !== false,
    };
    return this.#limitedJobs(await this.#driver.transaction(() => gatedClaim(ask), "claim"), session, sentAt);
  }

  claimBudgeted: Store["claimBudgeted"] = async (session, given, budget) => {
    if (this.#gates.stale(this.#clock.monotonic())) await this.#readGates();
    const scope = { ...given, names: budget.names };
    this.#budgetTurn += 1;
    const ask = {
      budget,
      scope,
      concern: (narrowed: ClaimScope) => this.#gates.concern(narrowed),
      session,
      now: () => this.#driver.now(),
      monotonic: () => this.#clock.monotonic(),
      claimsTakeMs: this.#clock.system ? this.#claimsTakeMs : null,
      turn: this.#budgetTurn,
    };
    const claim = await this.#driver.transaction(() => budgetClaim(ask), "claim");
    const { name, tokens } = budget;
    const startBy = claim.takenAt + claim.beginsMs;
    const jobs = (await this.#limitedJobs(claim, session, claim.takenAt)).map((job) => ({
      ...job,
      budget: { name, tokens, at: claim.at },
      ...(this.#clock.system ? { startBy: Math.min(startBy, job.startBy ?? Infinity) } : null),
    }));
    return {
      jobs: this.#answered(jobs, claim.takenAt),
      known: claim.known,
      retryInMs: claim.retryInMs,
    };
  };

  /** What a claim under limits brought, for the worker; what it could not read is told. */
  async #limitedJobs(
    { rows, rated, broken }: GatedClaim,
    session: number,
    sentAt: number,
  ): Promise<ClaimedJob[]> {
    for (const queue of broken) {
      this.#warn(
        `The limits of queue "${queue}" cannot be read: nothing is claimed from it. Set them again with hf.queues.set.`,
        { queue },
      );
    }
    const unknown = unknownLines(rows, this.#lines);
    if (unknown.length > 0)
      this.#lines.learn(await this.#driver.read({ name: "namesOfLines", params: { ids: unknown } }, "claim"));
    return rows.map((row) => {
      const line = this.#lines.name(number(row, "line"));
      if (line === undefined) throw new TypeError(`line ${number(row, "line")} is not known`);
      const job = claimedJob(row, session, line);
      const rate = rated.get(job.id);
      if (rate === undefined || job.counted === undefined) return job;
      const counted = { ...job.counted, at: rate.at };
      return this.#clock.system ? { ...job, counted, startBy: sentAt + rate.beginsMs } : { ...job, counted };
    });
  }

  async #claimPlain(session: number, scope: ClaimScope, cursor: ClaimCursor): Promise<ClaimedJob[]> {
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
    const queuesOf = (column: string) => JSON.parse(text(row as Row, column)) as string[];
    this.#gates.learn({ laned: queuesOf("laned"), limited: queuesOf("limited") }, this.#clock.monotonic());
    const dueAt = earliest(
      maybeNumber(row as Row, "due_at"),
      this.#gates.concern(scope) !== null ? await this.#peekGated(queues, names) : null,
    );
    return {
      now: number(row as Row, "now"),
      dueAt: dueAt === null || dueAt >= WAITING_AT ? null : dueAt,
      expiresAt: maybeNumber(row as Row, "expires_at"),
    };
  }

  async #peekGated(queues: RowList, names: readonly string[] | null): Promise<number | null> {
    const params = { now: this.#driver.now(), queues, names };
    const [row] = await this.#driver.read({ name: "peekGated", params }, "claim");
    return maybeNumber(row as Row, "due_at");
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

  async takeOver(transitions: readonly Transition[]): Promise<Set<string>> {
    const dead = transitions.filter(endsBadly).map(({ id }) => id);
    const undoable = await this.#flows.undoable(dead);
    const given = transitions.map((one) =>
      undoable.has(one.id) && endsBadly(one) ? { ...one, undo: true } : one,
    );
    return this.#apply({ end: "endOrphans", again: "againOrphans" }, {}, given, []);
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
    const plain = ended.length === transitions.length && ended.every(isDone) && !ended.some(isCounted);
    if (names.end === "end" && plain) return this.#done(ended, { ...fence, now: this.#driver.now(), spent });
    return this.#applyMixed(names, fence, sorted, spent);
  }

  /** A batch of plain successes. */
  async #done(ended: readonly (Transition & { move: "end" })[], params: Params): Promise<Set<string>> {
    const token = ended[0]?.token ?? null;
    if (ended.every((transition) => transition.token === token && transition.output === null)) {
      const all = ended.map(({ id }) => id);
      const call: Call = { name: "doneAlike", params: { ...params, token, ids: all } };
      const rows = await this.#driver.write(call, "settle");
      if (rows.length === 0) return new Set(all);
      // What it names was watched, or was not its to end.
      const missed = ids(rows.filter((row) => !flag(row, "watched")));
      await this.#tellWatchers(ended, rows);
      return new Set(all.filter((id) => !missed.has(id)));
    }
    const rows = ended.map(({ id, token, output }) => ({ id, token, output }));
    return this.#tellWatchers(
      ended,
      await this.#driver.write({ name: "done", params: { ...params, rows } }, "settle"),
    );
  }

  /** Anything but a batch of plain successes. */
  async #applyMixed(
    names: { end: "end" | "endOrphans"; again: "again" | "againOrphans" },
    fence: Params,
    sorted: readonly Transition[],
    spent: readonly number[],
  ): Promise<Set<string>> {
    const undone = sorted.filter((transition) => transition.move === "end" && transition.undo === true);
    const ended = sorted.filter(
      (transition) => transition.move === "end" && transition.undo !== true,
    ) as (Transition & {
      move: "end";
    })[];
    const waits = sorted.filter((transition) => transition.move === "wait");
    const theirs = sorted.filter((transition) => transition.move === "none");
    const committed = theirs.map(({ id }) => id);
    // Places that a user's own transaction has freed: whoever waits for one may be in another process.
    if (theirs.some(isCounted)) this.wake({ kind: "any" });
    const again = [
      ...sorted.filter((transition) => transition.move === "again"),
      ...undone.map(onceMore),
    ].sort(byId);
    const now = this.#driver.now();
    const calls: Call[] = [];
    if (ended.length > 0 || (again.length === 0 && waits.length === 0)) {
      calls.push(this.#endCall(names.end, fence, ended, spent));
    }
    // Spent claims go with the last statement: a claim must not be forgotten while a job of it is still held.
    if (again.length > 0)
      calls.push({ name: names.again, params: { ...fence, now, rows: again.map(againRow), spent } });
    // Jobs that have limits give back what they were counted in, in the same transaction.
    const counted = [...ended, ...waits, ...again].filter(isCounted);
    const [only] = calls;
    let rows: Row[];
    if (calls.length === 1 && only !== undefined && waits.length + undone.length + counted.length === 0) {
      rows = await this.#driver.write(only, "settle");
    } else {
      const session = Number(fence["session"] ?? 0);
      const at = this.#clock.now();
      const all = function* (): Script<{ rows: Row[]; freed: string[] }> {
        const rows: Row[] = [];
        for (const call of calls) rows.push(...(yield call));
        if (waits.length > 0) rows.push(...(yield* suspendScript(session, waits, now, spent, at)));
        const moved = ids(rows);
        const undos = undone.filter(({ id }) => moved.has(id)).map(undoRow);
        if (undos.length > 0) yield { name: "startUndo", params: { now, rows: undos } };
        return { rows, freed: counted.length === 0 ? [] : yield* uncount(counted, moved) };
      };
      const settled = await this.#driver.transaction(all, "settle");
      rows = settled.rows;
      // A place is free where there was none, and whoever waits for it may be in another process.
      for (const queue of settled.freed) this.wake({ kind: "work", queue, priority: 0 });
    }
    const moved = await this.#tellWatchers(ended, rows);
    for (const id of committed) moved.add(id);
    return this.#coolDown(again, moved);
  }

  /** Lets go what waits for jobs that have just ended. A process that dies before this leaves it to the sweep. */
  async #tellWatchers(
    ended: readonly (Transition & { move: "end" })[],
    rows: readonly Row[],
  ): Promise<Set<string>> {
    const watched = rows.filter((row) => row["watched"] === true || row["watched"] === 1);
    if (watched.length > 0) {
      const states = new Map(ended.map(({ id, state }) => [id, state]));
      await this.#tellEnds(
        watched.flatMap((row): Ended[] => {
          const id = text(row, "id");
          const state = states.get(id);
          return state === undefined ? [] : [{ id, state }];
        }),
      );
    }
    return ids(rows);
  }

  async #tellEnds(ended: readonly Ended[]): Promise<void> {
    if (ended.length === 0) return;
    try {
      await this.#flows.resolve(ended);
    } catch {
      // The ends are written, and that is what the caller asked for; the sweep finds who waits for them.
    }
    this.wake({ kind: "ended" });
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

  #endCall(
    name: "end" | "endOrphans",
    fence: Params,
    ended: readonly (Transition & { move: "end" })[],
    spent: readonly number[],
  ): Call {
    const keyed = ended.filter(({ keyed }) => keyed).map(({ id }) => id);
    const dropped = ended.filter(({ keep }) => !keep).map(({ id }) => id);
    const now = this.#driver.now();
    return { name, params: { ...fence, now, rows: ended.map(endRow), keyed, dropped, spent } };
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
  cancel: Store["cancel"] = async (wanted, reason) => {
    const ended: Ended[] = [];
    const outcomes = await this.#jobs.cancel(wanted, reason, {
      ask: (session) => this.wake({ kind: "cancel", session }),
      ended: (id) => ended.push({ id, state: "cancelled" }),
      again: () => this.wake({ kind: "any" }),
    });
    await this.#tellEnds(ended);
    return outcomes;
  };
  delete: Store["delete"] = (wanted) =>
    this.#jobs.delete(wanted, (session) => this.wake({ kind: "cancel", session }));
  retry: Store["retry"] = (wanted) => this.#jobs.retry(wanted);
  runNow: Store["runNow"] = (wanted) => this.#jobs.runNow(wanted);

  // Flows (flows.ts)

  recordSteps: Store["recordSteps"] = (session, steps, tx) => this.#flows.recordSteps(session, steps, tx);
  steps: Store["steps"] = (job) => this.#flows.steps(job);
  step: Store["step"] = (job, name) => this.#flows.step(job, name);
  takeSignal: Store["takeSignal"] = (session, wait) => this.#flows.takeSignal(session, wait);
  startCall: Store["startCall"] = async (session, call) => {
    if (this.#lines.id(call.child) === undefined) await this.#learnLines([call.child]);
    await this.#learnLanes([call.child]);
    return this.#flows.startCall(session, call, this.#placed(call.child, this.#lines, this.#laneNumbers));
  };
  signal: Store["signal"] = (signal) => this.#flows.signal(signal);
  commit: Store["commit"] = (tx, session, transition) => {
    const call = this.#endCall("end", { session }, [transition], []);
    const script = function* (): Script<boolean> {
      const moved = ids(yield call);
      if (isCounted(transition)) yield* uncount([transition], moved);
      return moved.size > 0;
    };
    return this.#driver.inUserTx(tx, script);
  };
  stillHeld: Store["stillHeld"] = (id, token) => this.#flows.stillHeld(id, token);
  saveMachine: Store["saveMachine"] = (session, move) => this.#flows.saveMachine(session, move);
  undoable: Store["undoable"] = (wanted) => this.#flows.undoable(wanted);
  advance: Store["advance"] = (session, run, tx) => this.#flows.advance(session, run, tx);
  resolve: Store["resolve"] = (ended) => this.#tellEnds(ended);
  watch: Store["watch"] = (wanted) => this.#flows.watch(wanted);
  sweepFlows: Store["sweepFlows"] = () => this.#flows.sweep();
  dependencies: Store["dependencies"] = (job) => this.#flows.dependencies(job);
  children: Store["children"] = (parents, limit) => this.#flows.children(parents, limit);
  liveFlows: Store["liveFlows"] = (names, page) => this.#flows.liveFlows(names, page);
  flow: Store["flow"] = (id) => this.#flows.flow(id);

  // Queues, holds, workers, kinds, state (cluster.ts)

  queues: Store["queues"] = () => this.#cluster.queues();
  setQueue: Store["setQueue"] = (name, change) =>
    this.#cluster.setQueue(name, change).then(() => {
      this.#gates.forget();
      this.wake({ kind: "settings" });
    });
  setLane: Store["setLane"] = (queue, key, change) =>
    this.#lanes.set(queue, key, change).then(() => this.wake({ kind: "settings" }));
  lanes: Store["lanes"] = (query) => this.#lanes.list(query);
  place: Store["place"] = async (id) => {
    const [row] = await this.#driver.read({ name: "whyJob", params: { now: this.#driver.now(), id } });
    return row === undefined ? null : placeOf(row);
  };
  breakers: Store["breakers"] = (keys) => this.#breakers.list(keys);
  countBreakers: Store["countBreakers"] = (session, counts) => this.#breakers.count(session, counts);
  probeBreaker: Store["probeBreaker"] = (session, key) => this.#breakers.probe(session, key);
  unprobeBreaker: Store["unprobeBreaker"] = (session, key) => this.#breakers.unprobe(session, key);
  resetBreaker: Store["resetBreaker"] = (key) =>
    this.#breakers.reset(key).then((closed) => {
      this.wake({ kind: "settings" });
      return closed;
    });
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

  // Schedules, budgets, passes (a file each)

  schedules: Store["schedules"] = (name) => this.#schedules.list(name);
  putSchedule: Store["putSchedule"] = (name, spec, firstRun) =>
    this.#told(this.#schedules.put(name, spec, firstRun));
  editSchedule: Store["editSchedule"] = (name, edits) => this.#told(this.#schedules.edit(name, edits));
  resetSchedule: Store["resetSchedule"] = (name) => this.#told(this.#schedules.reset(name));
  pauseSchedule: Store["pauseSchedule"] = (name, paused) => this.#told(this.#schedules.pause(name, paused));
  removeSchedule: Store["removeSchedule"] = (name) => this.#schedules.remove(name);
  triggerSchedule: Store["triggerSchedule"] = (name, newId) => this.#schedules.trigger(name, newId);
  dueSchedules: Store["dueSchedules"] = () => this.#schedules.due();
  fireSchedule: Store["fireSchedule"] = (name, newId) => this.#schedules.fire(name, newId);
  budgets: Store["budgets"] = () => this.#budgets.list();
  setBudget: Store["setBudget"] = (name, rate, standard) =>
    this.#told(this.#budgets.set(name, rate, standard));
  resetBudget: Store["resetBudget"] = (name) => this.#told(this.#budgets.reset(name));
  removeBudget: Store["removeBudget"] = (name) => this.#budgets.remove(name);
  drainBudget: Store["drainBudget"] = (name) => this.#budgets.drain(name);
  takeBudget: Store["takeBudget"] = (name, request) => this.#budgets.take(name, request);
  passes: Store["passes"] = () => this.#passes.list();
  beginPass: Store["beginPass"] = (name, holder, leaseMs) => this.#passes.begin(name, holder, leaseMs);
  renewPass: Store["renewPass"] = (name, holder, leaseMs) => this.#passes.renew(name, holder, leaseMs);
  endPass: Store["endPass"] = (name, holder, clean, reason) => this.#passes.end(name, holder, clean, reason);

  /** Workers time the next slot, and a budget's next token: they must know of a change. */
  #told<T>(changed: Promise<T>): Promise<T> {
    return changed.then((result) => {
      this.wake({ kind: "settings" });
      return result;
    });
  }
  // Series and the event log (series.ts)

  putMetrics: Store["putMetrics"] = (rows) => this.#series.putMetrics(rows);
  metrics: Store["metrics"] = (query) => this.#series.metrics(query);
  compactMetrics: Store["compactMetrics"] = (since, until) => this.#series.compact(since, until);
  putGauges: Store["putGauges"] = (rows) => this.#series.putGauges(rows);
  gauges: Store["gauges"] = (query) => this.#series.gauges(query);
  putEvents: Store["putEvents"] = (rows) => this.#series.putEvents(rows);
  events: Store["events"] = (query) => this.#series.events(query);
  putLogLines: Store["putLogLines"] = (rows, most) => this.#series.putLogLines(rows, most);
  logLines: Store["logLines"] = (job, limit) => this.#series.logLines(job, limit);
  forgetSeries: Store["forgetSeries"] = (before) => this.#series.forget(before);
  inspect: Store["inspect"] = () => this.#driver.inspect();

  // Upkeep (retention.ts)

  duty: Store["duty"] = (name, everyMs) => this.#retention.duty(name, everyMs);
  prune: Store["prune"] = (defaults, batch) => this.#retention.prune(defaults, batch);

  async tidy(): Promise<void> {
    await this.#driver.tidy();
    // Nothing of ours leaves a held job without its claim; if anything ever does (a hand in the tables, a restored
    // backup), this files it again, and the job is found like any other orphan.
    await this.#driver.write({ name: "refile", params: {} });
    if (this.#gates.anyLanes)
      await this.#driver.write({ name: "forgetLanes", params: { now: this.#driver.now() } });
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

/** Both lists keep their order; neither waits for the end of the other. */
function byTurns(a: readonly ClaimedJob[], b: readonly ClaimedJob[]): ClaimedJob[] {
  const both: ClaimedJob[] = [];
  for (let i = 0; i < Math.max(a.length, b.length); i += 1) {
    const [x, y] = [a[i], b[i]];
    if (x !== undefined) both.push(x);
    if (y !== undefined) both.push(y);
  }
  return both;
}

function earliest(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Math.min(a, b);
}

/** It stands in counts of limits. */
function isCounted(transition: Transition): boolean {
  return transition.counted !== undefined;
}

/** Nothing to free and nothing to drop: what becomes of most jobs. */
function isDone(transition: Transition & { move: "end" }): boolean {
  return transition.state === "done" && transition.keep && !transition.keyed;
}

function endsBadly(transition: Transition): boolean {
  return transition.move === "end" && transition.state !== "done";
}

function byId(a: { readonly id: string }, b: { readonly id: string }): number {
  return a.id < b.id ? -1 : 1;
}

/** A run whose steps are to be undone goes back to the line, with its attempt, for whoever has its code. */
function onceMore(transition: Transition): Transition & { move: "again" } {
  const { id, token, attempt, crashes, counted } = transition;
  const errors = transition.move === "end" ? transition.errors : null;
  return {
    ...(counted === undefined ? null : { counted }),
    move: "again",
    id,
    token,
    delayMs: 0,
    errors,
    attempt: Math.max(0, attempt - 1),
    crashes,
    throttled: false,
    begun: true,
  };
}

/** How it ends once that is done. */
function undoRow(transition: Transition): RowList[number] {
  const ended = transition.move === "end" ? transition : null;
  return { id: transition.id, state: ended?.state ?? "dead", output: JSON.stringify(ended?.errors ?? null) };
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
    note: transition.note ?? null,
  };
}
