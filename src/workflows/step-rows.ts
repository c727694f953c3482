/**
 * What workflows write and read: steps, signals, calls; and runs that go to sleep.
 *
 * Every write of a run names its fence. Two that could miss each other (a signal and the run that goes to sleep over it,
 * the end of a child and the parent that goes to sleep over it) meet on a lock: the topic's, or the parent's row, which
 * each takes before it looks for the other. What a process that died had yet to tell is found by `sweep`.
 * Not here: who waits for which job (enqueue/dependency-rows.ts).
 */
import type { Clock } from "../clock.ts";
import { isHoldfastError } from "../errors.ts";
import type { EndState, Enqueued, JobExtras, NewJob, StepKind } from "../jobs/job.ts";
import type {
  AdvancedRun,
  CallStart,
  Dependency,
  DependencyPolicy,
  ForkOutcome,
  LiveWorkflow,
  MachineMove,
  SignalTaken,
  SignalWait,
  StepRecord,
  StepState,
  StepWrite,
  WorkflowStore,
} from "./store.ts";
import type { UserTx } from "../storage/user-tx.ts";
import type { Transition } from "../jobs/outcome.ts";
import type { Call, Row, RowList, Script } from "../storage/catalogue.ts";
import { type Ended, resolveScript, wakeLanes } from "../enqueue/dependency-rows.ts";
import { cursorFor, rowKeyIn } from "../jobs/page-cursor.ts";
import type { Driver } from "../storage/driver.ts";
import type { JobPlaces, PlacedJob } from "../enqueue/placed-jobs.ts";
import { enqueueScript } from "../enqueue/unique-keys.ts";
import { flag, maybeNumber, maybeText, number, text, unquoted } from "../jobs/rows.ts";
import { planFork } from "./fork.ts";

/** The mark of an undo is no step: it stands behind all of them. */
const UNDO_SEQ = 2_147_483_647;
const mostOpen = 1_000;
/** Counts stop here: the dashboard asks every two seconds. */
const mostCounted = 10_000;
const sweepPage = 500;
const mostSweeps = 20;

/** The services of the store that workflows need besides their rows. */
export interface WorkflowDeps {
  readonly driver: Driver;
  readonly clock: Clock;
  readonly places: JobPlaces;
  /** Somebody can go on. */
  readonly woke: () => void;
}

export class Workflows implements WorkflowStore {
  readonly #driver: Driver;
  readonly #clock: Clock;
  readonly #places: JobPlaces;
  readonly #woke: WorkflowDeps["woke"];

  constructor({ driver, clock, places, woke }: WorkflowDeps) {
    this.#driver = driver;
    this.#clock = clock;
    this.#places = places;
    this.#woke = woke;
  }

  async recordSteps(
    session: number,
    steps: readonly StepWrite[],
    tx?: UserTx,
  ): Promise<Map<string, { readonly wakeAt: number | null }>> {
    const call: Call<"recordSteps"> = {
      name: "recordSteps",
      params: { now: this.#driver.now(), session, rows: steps.map(stepRow) },
    };
    const rows =
      tx === undefined
        ? await this.#driver.write(call, "settle")
        : await this.#driver.inUserTx(tx, function* (): Script<Row[]> {
            return yield call;
          });
    return new Map(
      rows.map((row) => [
        `${text(row, "job")} ${text(row, "name")}`,
        { wakeAt: maybeNumber(row, "wake_at") },
      ]),
    );
  }

  async fork(id: string, from: string, newId: string): Promise<ForkOutcome | null> {
    const [found] = await this.#driver.read({ name: "forkable", params: { id } });
    if (found === undefined) return null;
    const type = { queue: text(found, "queue"), name: text(found, "name"), lane: maybeText(found, "lane") };
    await this.#places.learn(type);
    const now = this.#driver.now();
    const placed = (job: NewJob) => this.#places.place(job);
    return this.#driver.transaction("fork", () => forkScript({ id, from, newId }, type, placed, now));
  }

  async steps(job: string): Promise<StepRecord[]> {
    return (await this.#driver.read({ name: "findSteps", params: { id: job } })).map(stepRecord);
  }

  async stepsBefore(job: string, page: { before: number; limit: number }): Promise<StepRecord[]> {
    const before = Math.min(page.before, UNDO_SEQ);
    const params = { id: job, before, limit: page.limit };
    return (await this.#driver.read({ name: "stepsBefore", params })).map(stepRecord).reverse();
  }

  async openSteps(job: string): Promise<StepRecord[]> {
    const rows = await this.#driver.read({ name: "openSteps", params: { id: job, limit: mostOpen } });
    return rows.map(stepRecord).sort((a, b) => a.seq - b.seq);
  }

  async countSteps(job: string): Promise<{ count: number; more: boolean }> {
    const params = { id: job, before: UNDO_SEQ, limit: mostCounted + 1 };
    const [row] = await this.#driver.read({ name: "countSteps", params });
    const found = row === undefined ? 0 : number(row, "n");
    return { count: Math.min(found, mostCounted), more: found > mostCounted };
  }

  async step(job: string, name: string): Promise<StepRecord | null> {
    const [row] = await this.#driver.read({ name: "findStep", params: { id: job, name } });
    return row === undefined ? null : stepRecord(row);
  }

  async machineSteps(ids: readonly string[]): Promise<Map<string, string>> {
    const rows = await this.#driver.read({ name: "machineSteps", params: { ids } });
    return new Map(rows.map((row) => [text(row, "id"), text(row, "label")]));
  }

  async takeSignal(session: number, wait: SignalWait): Promise<SignalTaken | null> {
    const { timeoutMs: wakeIn, after = null, ...rest } = wait;
    const params = { now: this.#driver.now(), session, ...rest, wakeIn, after };
    const take = (): Promise<Row[]> => this.#driver.write({ name: "takeSignal", params }, "settle");
    const [first] = await take();
    // Nothing: the lease is lost, or this is a repeat and the step of the first was not to be seen yet. Now it is.
    const [row] = first === undefined ? await take() : [first];
    if (row === undefined) return null;
    return {
      over: text(row, "state") === "done",
      data: maybeText(row, "output"),
      wakeAt: maybeNumber(row, "wake_at"),
    };
  }

  async startCall(
    session: number,
    call: CallStart,
  ): Promise<{ readonly child: string; readonly ended: boolean } | null> {
    const placed = await this.#places.learnAndPlace(call.child);
    const now = this.#driver.now();
    const { id, token, name, seq, attempt, fails, given, after = null } = call;
    const script = function* (): Script<{ child: string; ended: boolean } | null> {
      const held = yield { name: "holdRow", params: { now, session, id, token, after } };
      if (held.length === 0) return null;
      // A repeat after a lost answer: its unique key may be free again, and must not start another job.
      const [before] = yield { name: "findStep", params: { id, name } };
      if (before !== undefined && number(before, "attempt") === attempt && before["child"] !== null)
        return { child: text(before, "child"), ended: text(before, "state") !== "open" };
      const [outcome] = yield* enqueueScript([placed], now);
      const child = outcome?.id ?? call.child.id;
      if (child === id) return { child, ended: false };
      const watched = yield { name: "watch", params: { ids: [child] } };
      const [over] = watched.length > 0 ? [] : yield { name: "endsOf", params: { ids: [child] } };
      const state = watched.length > 0 ? null : over === undefined ? "cancelled" : text(over, "state");
      const row = { job: id, on: child, policy: "continue", step: name, state };
      yield { name: "addDependencies", params: { now, rows: [row] } };
      const done = state === "done";
      const step: StepWrite = {
        job: id,
        token,
        name,
        seq,
        givenOrder: null,
        kind: "call",
        state: state === null ? "open" : done ? "done" : "failed",
        attempt,
        tries: 1,
        tookMs: 0,
        wakeInMs: null,
        undo: false,
        fails,
        given,
        output: over === undefined || !done ? null : maybeText(over, "output"),
        error: over === undefined || done ? null : maybeText(over, "errors"),
        label: state,
      };
      yield { name: "recordSteps", params: { now, session, rows: [stepRow(step)] } };
      yield { name: "nameChild", params: { id, name, child } };
      return { child, ended: state !== null };
    };
    return this.#driver.transaction("startCall", script, "settle");
  }

  async signal(signal: {
    readonly id: string;
    readonly topic: string;
    readonly data: string;
    readonly expiresMs: number;
  }): Promise<number> {
    const { id, topic, data, expiresMs: expires } = signal;
    const now = this.#driver.now();
    const woken = await this.#driver.transaction("signal", function* (): Script<Row[]> {
      yield { name: "lockTopics", params: { topics: [topic] } };
      yield { name: "sendSignal", params: { now, id, topic, data, expires } };
      return yield* wakeScript(topic, now);
    });
    if (woken.length > 0) this.#woke();
    return woken.length;
  }

  async waitersFor(topic: string, limit: number): Promise<string[]> {
    const rows = await this.#driver.read({ name: "waitersFor", params: { topic, limit } });
    return rows.map((row) => text(row, "job"));
  }

  async stillHeld(session: number, id: string, token: number): Promise<boolean> {
    return (await this.#driver.read({ name: "stillHeld", params: { session, id, token } })).length > 0;
  }

  async saveMachine(session: number, move: MachineMove): Promise<boolean> {
    const { id, token, attempt } = move;
    const rows = move.steps.map(({ tookMs, ...step }) => ({
      ...step,
      kind: "machine",
      took: wholeMs(tookMs),
    }));
    const params = { now: this.#driver.now(), session, id, token, attempt, rows };
    return (await this.#driver.write({ name: "saveMachine", params }, "settle")).length > 0;
  }

  async advance(session: number, run: AdvancedRun, tx?: UserTx): Promise<boolean> {
    const { id, token } = run;
    const extras = JSON.stringify(run.extras);
    const call: Call<"advance"> = {
      name: "advance",
      params: { now: this.#driver.now(), session, id, token, extras },
    };
    const rows =
      tx === undefined
        ? await this.#driver.write(call, "settle")
        : await this.#driver.inUserTx(tx, function* (): Script<Row[]> {
            return yield call;
          });
    return rows.length > 0;
  }

  /** In a transaction, which waits for a lock for a second only. */
  watch(ids: readonly string[]): Promise<void> {
    const script = function* (): Script<void> {
      yield { name: "watch", params: { ids: [...ids].sort() } };
    };
    return this.#driver.transaction("watch", script);
  }

  /** The same for a transaction of a user's. It may itself have locked one of them (it has replaced the job): that one is passed over. */
  async watchBeside(ids: readonly string[]): Promise<void> {
    await this.watch(ids).catch((error: unknown) => {
      if (!isHoldfastError(error) || error.code !== "LOCK_TIMEOUT") throw error;
    });
  }

  async dependencies(job: string): Promise<Dependency[]> {
    const rows = await this.#driver.read({ name: "dependenciesOf", params: { id: job, limit: 10_000 } });
    return rows.map((row) => ({
      job: text(row, "job"),
      on: text(row, "on_job"),
      policy: text(row, "policy") as DependencyPolicy,
      step: maybeText(row, "step"),
      state: maybeText(row, "state") as EndState | null,
      metAt: maybeNumber(row, "met_at"),
    }));
  }

  async children(parents: readonly string[], limit: number): Promise<string[]> {
    const rows = await this.#driver.read({ name: "childrenOf", params: { ids: parents, limit } });
    return rows.map((row) => text(row, "id"));
  }

  async liveRuns(
    names: readonly string[],
    page: { limit: number; after: string | null },
  ): Promise<LiveWorkflow[]> {
    const after = cursorFor(this.#driver, page.after);
    const rows = await this.#driver.read({
      name: "liveWorkflows",
      params: { names, after, limit: page.limit },
    });
    return rows.map(liveWorkflow);
  }

  async run(id: string): Promise<LiveWorkflow | null> {
    const [row] = await this.#driver.read({ name: "workflowRow", params: { id } });
    return row === undefined ? null : liveWorkflow(row);
  }

  /** Of these runs: those with steps to undo, and those whose steps are being undone. */
  async undoable(ids: readonly string[]): Promise<Map<string, "undo" | "undoing">> {
    if (ids.length === 0) return new Map();
    const rows = await this.#driver.read({ name: "undoable", params: { ids } });
    return new Map(rows.map((row) => [text(row, "id"), flag(row, "undoing") ? "undoing" : "undo"]));
  }

  async resolve(all: readonly Ended[]): Promise<void> {
    if (all.length === 0) return;
    // Most that are watched are so for their result: whoever makes a job wait for one has its row locked until that
    // is written, so it is seen here.
    const rows = await this.#driver.read(
      { name: "awaited", params: { ids: all.map(({ id }) => id) } },
      "settle",
    );
    const awaited = new Set(rows.map((row) => text(row, "id")));
    const ended = all.filter(({ id }) => awaited.has(id));
    if (ended.length === 0) return;
    const now = this.#driver.now();
    const at = this.#clock.now();
    const freed = await this.#driver.transaction("resolve", () => resolveScript(ended, now, at));
    if (freed > 0) this.#woke();
  }

  async sweep(): Promise<number> {
    const now = this.#driver.now();
    let found = 0;
    for (let page = 0; page < mostSweeps; page += 1) {
      const rows = await this.#driver.read({ name: "strays", params: { now, limit: sweepPage } });
      if (rows.length === 0) break;
      found += rows.length;
      if (rows.some((row) => row["kind"] === "expired"))
        await this.#driver.write({ name: "expireSignals", params: { now } });
      for (const row of rows) if (row["kind"] === "topic") await this.#wakeTopic(text(row, "id"));
      const ends = rows.filter((row) => row["kind"] === "end");
      await this.resolve(ends.map((row) => ({ id: text(row, "id"), state: text(row, "state") as EndState })));
      if (rows.length < sweepPage) break;
    }
    return found;
  }

  async #wakeTopic(topic: string): Promise<void> {
    const now = this.#driver.now();
    const woken = await this.#driver.transaction("wakeTopic", function* (): Script<Row[]> {
      yield { name: "lockTopics", params: { topics: [topic] } };
      return yield* wakeScript(topic, now);
    });
    if (woken.length > 0) this.#woke();
  }
}

/** Wakes as many of those who wait for a topic as it has signals. */
function* wakeScript(topic: string, now: number | null): Script<Row[]> {
  const woken = yield { name: "wakeWaiters", params: { now, topic } };
  yield* wakeLanes(woken);
  return woken;
}

/** Transitions of runs that go to sleep, in the transaction of their settle. */
export function* suspendScript(
  session: number,
  waits: readonly (Transition & { move: "wait" })[],
  now: number | null,
  spent: readonly number[],
): Script<Row[]> {
  const topics = [...new Set(waits.flatMap((wait) => wait.topics))].sort();
  if (topics.length > 0) yield { name: "lockTopics", params: { topics } };
  const parents = waits.filter((wait) => wait.open > 0).map((wait) => wait.id);
  if (parents.length > 0) yield { name: "lockQueued", params: { ids: parents.sort() } };
  const rows = waits.map(({ id, token, at, waits: kind, attempt, open, every, topics: { length } }) => {
    return { id, token, at, waits: kind, attempt, open, every, signals: length };
  });
  const moved = yield { name: "suspend", params: { now, session, rows, spent } };
  return moved;
}

function liveWorkflow(row: Row): LiveWorkflow {
  return {
    id: text(row, "id"),
    cursor: String(rowKeyIn(row)),
    name: text(row, "name"),
    input: text(row, "input"),
    attempt: number(row, "attempt"),
    crashes: number(row, "crashes"),
    running: flag(row, "running"),
    extras: JSON.parse(maybeText(row, "extras") ?? "null") as JobExtras | null,
  };
}

function stepRow(step: StepWrite): RowList[number] {
  const {
    job,
    token,
    name,
    seq,
    givenOrder,
    kind,
    state,
    attempt,
    tries,
    undo,
    fails,
    given,
    output,
    error,
    label,
    after = null,
  } = step;
  return {
    job,
    token,
    name,
    seq,
    givenOrder,
    kind,
    state,
    attempt,
    tries,
    took: wholeMs(step.tookMs),
    wakeIn: step.wakeInMs,
    undo,
    fails,
    given,
    output,
    error,
    label,
    after,
  };
}

/** Times are kept in whole milliseconds. SQLite would keep a fraction in a column of integers. */
function wholeMs(ms: number): number {
  return Math.max(0, Math.round(ms));
}

function stepRecord(row: Row): StepRecord {
  return {
    name: text(row, "name"),
    seq: number(row, "seq"),
    givenOrder: maybeNumber(row, "given_order"),
    kind: text(row, "kind") as StepKind,
    state: text(row, "state") as StepState,
    attempt: number(row, "attempt"),
    tries: number(row, "tries"),
    startedAt: number(row, "started_at"),
    endedAt: maybeNumber(row, "ended_at"),
    wakeAt: maybeNumber(row, "wake_at"),
    topic: maybeText(row, "topic"),
    child: maybeText(row, "child"),
    undo: flag(row, "undo"),
    fails: number(row, "fails"),
    given: number(row, "given"),
    output: maybeText(row, "output"),
    error: maybeText(row, "error"),
    label: maybeText(row, "label"),
  };
}

/**
 * A fork: a new job with the first steps of an ended one, in one transaction. fork.ts says which steps, and when not. The first run
 * and its rows are only read; its steps are copied before anybody can claim the new job.
 */
function* forkScript(
  { id, from, newId }: { readonly id: string; readonly from: string; readonly newId: string },
  givenOrder: Pick<NewJob, "queue" | "name" | "lane">,
  placed: (job: NewJob) => PlacedJob,
  now: number | null,
): Script<ForkOutcome | null> {
  const [row] = yield { name: "forkable", params: { id } };
  if (row === undefined) return null;
  const steps = (yield { name: "findSteps", params: { id } }).map(stepRecord);
  const end = { state: text(row, "state"), endedAt: number(row, "ended_at") };
  const plan = planFork(end, steps, from);
  if (plan.refused !== null) return { refused: plan.refused, job: null, enqueued: null };
  const extras = maybeText(row, "extras");
  const context = maybeText(row, "context");
  const job: NewJob = {
    ...givenOrder,
    id: newId,
    priority: -number(row, "rank") || 0,
    input: text(row, "input"),
    delayMs: null,
    runAt: null,
    maxAttempts: maybeNumber(row, "max_attempts"),
    timeoutMs: maybeNumber(row, "timeout_ms"),
    // The key is the first run's: a fork is asked for on purpose, and stands beside whoever has it.
    unique: null,
    context: context === null ? `fork of ${id}, from ${from}` : unquoted(context),
    parentId: null,
    deadlineAt: null,
    extras: extras === null ? null : (JSON.parse(extras) as JobExtras),
  };
  const [enqueued] = yield* enqueueScript([placed(job)], now);
  yield { name: "copySteps", params: { id, to: newId, before: plan.before } };
  yield { name: "markBegun", params: { id: newId } };
  return { refused: null, job, enqueued: enqueued as Enqueued };
}
