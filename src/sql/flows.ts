/**
 * What flows write and read: steps, signals, calls, dependencies.
 *
 *   a job ends ─▶ meet (its dependents' rows) ─▶ lock the dependents ─▶ release | cancel ─▶ their dependents …
 *
 * Every write of a run names its fence. Two that could miss each other (a signal and the run that goes to sleep over it,
 * the end of a child and the parent that goes to sleep over it) meet on a lock: the topic's, or the parent's row, which
 * each takes before it looks for the other. What a process that died had yet to tell is found by `sweep`.
 */
import type { Clock } from "../clock.ts";
import { UsageError } from "../errors.ts";
import type { EndState, Enqueued, JobExtras } from "../job.ts";
import { appendFailure } from "../policy/failure.ts";
import type {
  AdvancedRun,
  CallStart,
  Dependency,
  DependencyPolicy,
  LiveFlow,
  MachineMove,
  SignalTaken,
  SignalWait,
  StepKind,
  StepRecord,
  StepState,
  StepWrite,
  UserTx,
} from "../store.ts";
import type { Transition } from "../transition.ts";
import type { Call, Row, RowList, Script } from "./catalogue.ts";
import type { Driver } from "./driver.ts";
import { enqueueScript, type PlacedJob } from "./enqueue.ts";
import { cancelScript } from "./jobs.ts";
import { flag, maybeNumber, maybeText, number, text } from "./rows.ts";

const sweepPage = 500;
const mostSweeps = 20;

/** An end that others may wait for. */
export interface Ended {
  readonly id: string;
  readonly state: EndState;
}

export class Flows {
  readonly #driver: Driver;
  readonly #clock: Clock;
  /** Somebody can go on. */
  readonly #woke: () => void;

  constructor(driver: Driver, clock: Clock, woke: () => void) {
    this.#driver = driver;
    this.#clock = clock;
    this.#woke = woke;
  }

  async recordSteps(
    session: number,
    steps: readonly StepWrite[],
    tx?: UserTx,
  ): Promise<Map<string, { readonly wakeAt: number | null }>> {
    const call: Call = {
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

  async steps(job: string): Promise<StepRecord[]> {
    return (await this.#driver.read({ name: "findSteps", params: { id: job } })).map(stepRecord);
  }

  async step(job: string, name: string): Promise<StepRecord | null> {
    const [row] = await this.#driver.read({ name: "findStep", params: { id: job, name } });
    return row === undefined ? null : stepRecord(row);
  }

  async takeSignal(session: number, wait: SignalWait): Promise<SignalTaken | null> {
    const { timeoutMs: wakeIn, ...rest } = wait;
    const params = { now: this.#driver.now(), session, ...rest, wakeIn };
    const [row] = await this.#driver.write({ name: "takeSignal", params }, "settle");
    if (row === undefined) return null;
    return {
      over: text(row, "state") === "done",
      data: maybeText(row, "output"),
      wakeAt: maybeNumber(row, "wake_at"),
    };
  }

  startCall(
    session: number,
    call: CallStart,
    placed: PlacedJob,
  ): Promise<{ readonly child: string; readonly ended: boolean } | null> {
    const now = this.#driver.now();
    const { id, token, name, seq, attempt, fails } = call;
    const script = function* (): Script<{ child: string; ended: boolean } | null> {
      const held = yield { name: "holdRow", params: { now, session, id, token } };
      if (held.length === 0) return null;
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
        place: null,
        kind: "call",
        state: state === null ? "open" : done ? "done" : "failed",
        attempt,
        tries: 1,
        tookMs: 0,
        wakeInMs: null,
        undo: false,
        fails,
        output: over === undefined || !done ? null : maybeText(over, "output"),
        error: over === undefined || done ? null : maybeText(over, "errors"),
        label: state,
      };
      yield { name: "recordSteps", params: { now, session, rows: [stepRow(step)] } };
      yield { name: "nameChild", params: { id, name, child } };
      return { child, ended: state !== null };
    };
    return this.#driver.transaction(script, "settle");
  }

  async signal(signal: {
    readonly topic: string;
    readonly data: string;
    readonly expiresMs: number;
  }): Promise<number> {
    const { topic, data, expiresMs: expires } = signal;
    const now = this.#driver.now();
    const woken = await this.#driver.transaction(function* (): Script<Row[]> {
      yield { name: "lockTopics", params: { topics: [topic] } };
      yield { name: "sendSignal", params: { now, topic, data, expires } };
      return yield* wakeScript(topic, now);
    });
    if (woken.length > 0) this.#woke();
    return woken.length;
  }

  async stillHeld(id: string, token: number): Promise<boolean> {
    return (await this.#driver.read({ name: "stillHeld", params: { id, token } })).length > 0;
  }

  async saveMachine(session: number, move: MachineMove): Promise<boolean> {
    const { id, token, attempt } = move;
    const rows = move.steps.map(({ tookMs: took, ...step }) => ({ ...step, kind: "machine", took }));
    const params = { now: this.#driver.now(), session, id, token, attempt, rows };
    return (await this.#driver.write({ name: "saveMachine", params }, "settle")).length > 0;
  }

  async advance(session: number, run: AdvancedRun, tx?: UserTx): Promise<boolean> {
    const { id, token } = run;
    const extras = JSON.stringify(run.extras);
    const call: Call = { name: "advance", params: { now: this.#driver.now(), session, id, token, extras } };
    const rows =
      tx === undefined
        ? await this.#driver.write(call, "settle")
        : await this.#driver.inUserTx(tx, function* (): Script<Row[]> {
            return yield call;
          });
    return rows.length > 0;
  }

  async watch(ids: readonly string[]): Promise<void> {
    await this.#driver.write({ name: "watch", params: { ids: [...ids].sort() } });
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

  async liveFlows(
    names: readonly string[],
    page: { limit: number; after: string | null },
  ): Promise<LiveFlow[]> {
    const after = page.after ?? "00000000-0000-0000-0000-000000000000";
    const rows = await this.#driver.read({
      name: "liveFlows",
      params: { names, after, limit: page.limit },
    });
    return rows.map((row) => ({
      id: text(row, "id"),
      name: text(row, "name"),
      input: text(row, "input"),
      attempt: number(row, "attempt"),
      crashes: number(row, "crashes"),
      running: flag(row, "running"),
      extras: JSON.parse(maybeText(row, "extras") ?? "null") as JobExtras | null,
    }));
  }

  /** Of these ends, in place of dead or cancelled: the runs whose steps must be undone first. */
  async undoable(ids: readonly string[]): Promise<Set<string>> {
    if (ids.length === 0) return new Set();
    const rows = await this.#driver.read({ name: "undoable", params: { ids } });
    return new Set(rows.filter((row) => !flag(row, "undoing")).map((row) => text(row, "id")));
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
    const freed = await this.#driver.transaction(() => resolveScript(ended, now, at));
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
    const woken = await this.#driver.transaction(function* (): Script<Row[]> {
      yield { name: "lockTopics", params: { topics: [topic] } };
      return yield* wakeScript(topic, now);
    });
    if (woken.length > 0) this.#woke();
  }
}

/** Wakes as many of those who wait for a topic as it has signals. */
function* wakeScript(topic: string, now: number | null): Script<Row[]> {
  const woken = yield { name: "wakeWaiters", params: { now, topic } };
  yield* ringLanes(woken);
  return woken;
}

/** A lane looks only where a bell has rung. */
function* ringLanes(rows: readonly Row[]): Script<void> {
  const laned = rows.filter((row) => flag(row, "laned")).map((row) => text(row, "id"));
  if (laned.length > 0) yield { name: "ringJobs", params: { ids: laned } };
}

/**
 * Lets go what waits for these ends, level by level: a dependent that is cancelled is an end that others wait for.
 * Answers how many can go on.
 */
export function* resolveScript(ended: readonly Ended[], now: number | null, at: number): Script<number> {
  let level = [...ended];
  let freed = 0;
  while (level.length > 0) {
    const rows = level.map(({ id, state }) => ({ id, state })).sort((a, b) => (a.id < b.id ? -1 : 1));
    const met = yield { name: "meet", params: { now, rows } };
    const byJob = new Map<string, { met: number; wake: boolean; cancelledBy: string | null }>();
    for (const row of met) {
      const job = text(row, "job");
      const entry = byJob.get(job) ?? { met: 0, wake: false, cancelledBy: null };
      entry.met += 1;
      const bad = text(row, "state") !== "done";
      if (bad && row["step"] !== null) entry.wake = true;
      if (bad && text(row, "policy") === "cancel")
        entry.cancelledBy = `job ${text(row, "on_job")}, which it waits for, is ${text(row, "state")}`;
      byJob.set(job, entry);
    }
    if (byJob.size === 0) return freed;
    const locked = yield { name: "lockQueued", params: { ids: [...byJob.keys()].sort() } };
    const waiting = locked.filter((row) => row["token"] === null);
    const cancelled = waiting.filter((row) => byJob.get(text(row, "id"))?.cancelledBy !== null);
    const released = waiting
      .map((row) => text(row, "id"))
      .filter((id) => byJob.get(id)?.cancelledBy === null)
      .map((id) => ({ id, met: byJob.get(id)?.met ?? 0, wake: byJob.get(id)?.wake ?? false }));
    if (released.length > 0) {
      const due = yield { name: "release", params: { now, rows: released } };
      yield* ringLanes(due);
      freed += due.filter((row) => flag(row, "due")).length;
    }
    level = [];
    if (cancelled.length > 0) {
      yield endCancelled(cancelled, (id) => byJob.get(id)?.cancelledBy ?? "", now, at);
      level = cancelled.map((row) => ({ id: text(row, "id"), state: "cancelled" as const }));
    }
  }
  return freed;
}

function endCancelled(
  rows: readonly Row[],
  reason: (id: string) => string,
  now: number | null,
  at: number,
): Call {
  const ended = rows.map((row) => ({
    id: text(row, "id"),
    state: "cancelled",
    errors: appendFailure(maybeText(row, "errors"), {
      at,
      attempt: number(row, "attempt"),
      message: reason(text(row, "id")),
      stack: null,
    }),
  }));
  const keyed = rows.filter((row) => row["key"] !== null).map((row) => text(row, "id"));
  return { name: "endQueued", params: { now, rows: ended, keyed } };
}

/** Transitions of runs that go to sleep, in the transaction of their settle. */
export function* suspendScript(
  session: number,
  waits: readonly (Transition & { move: "wait" })[],
  now: number | null,
  spent: readonly number[],
  at: number,
): Script<Row[]> {
  const topics = [...new Set(waits.flatMap((wait) => wait.topics))].sort();
  if (topics.length > 0) yield { name: "lockTopics", params: { topics } };
  const parents = waits.filter((wait) => wait.open > 0).map((wait) => wait.id);
  if (parents.length > 0) yield { name: "lockQueued", params: { ids: parents.sort() } };
  const rows = waits.map(({ id, token, at, waits: kind, attempt, open, every }) => {
    return { id, token, at, waits: kind, attempt, open, every };
  });
  const moved = yield { name: "suspend", params: { now, session, rows, spent } };
  // A cancel that its holder had not heard of would be asleep with the run.
  const asked = yield {
    name: "askedCancels",
    params: { rows: rows.map(({ id, token }) => ({ id, token })) },
  };
  for (const row of asked) yield* cancelScript([text(row, "id")], text(row, "reason"), now, at);
  return moved;
}

/**
 * Writes jobs of which some wait for others: in this batch, or anywhere. `lock` marks those others under a row lock; in
 * a user's own transaction they are only looked at, because it may stay open, and whoever settles them would wait for it.
 */
export function* enqueueWithAfter(
  placed: readonly PlacedJob[],
  now: number | null,
  at: number,
  lock: boolean,
): Script<Enqueued[]> {
  const own = new Set(placed.map(({ job }) => job.id));
  const wanted = placed.flatMap(({ job }) => job.after?.ids ?? []);
  if (wanted.length === 0) return yield* enqueueScript(placed, now);
  const outside = wanted.filter((id) => !own.has(id));
  const before = yield* findUpstream(outside, lock);
  const unknown = outside.find((id) => !before.live.has(id) && !before.ended.has(id));
  if (unknown !== undefined)
    throw new UsageError(
      "AFTER_UNKNOWN",
      `No job has the id ${unknown}, so none can wait for it: it never existed, was deleted, or its kind keeps nothing once done. Nothing was enqueued.`,
      { details: { job: unknown } },
    );
  const outcomes = yield* enqueueScript(placed, now);
  // A job whose key was taken stands for another one: whoever waits for it waits for that one.
  const became = new Map(placed.map(({ job }, place) => [job.id, outcomes[place]?.id ?? job.id]));
  const inside = wanted.filter((id) => own.has(id)).map((id) => became.get(id) ?? id);
  const after = yield* findUpstream(inside, true);
  const ended = new Map([...before.ended, ...after.ended]);
  const added = placed.flatMap(({ job, line }, place) => {
    if (job.after === undefined || outcomes[place]?.status !== "enqueued") return [];
    const ids = job.after.ids.map((id) => became.get(id) ?? id);
    return [{ line, job: { ...job, after: { ...job.after, ids } } }];
  });
  yield* placeDependents(added, ended, now, at);
  return outcomes;
}

/** Which of the jobs that others are to wait for exist, and how those that have ended ended. */
export function* findUpstream(
  ids: readonly string[],
  lock: boolean,
): Script<{ live: Set<string>; ended: Map<string, EndState> }> {
  const wanted = [...new Set(ids)].sort();
  const live = new Set<string>();
  if (wanted.length === 0) return { live, ended: new Map() };
  const there: Call = lock
    ? { name: "watch", params: { ids: wanted } }
    : { name: "findJobs", params: { ids: wanted } };
  for (const row of yield there) live.add(text(row, "id"));
  const rest = lock ? wanted.filter((id) => !live.has(id)) : wanted;
  const ended = new Map<string, EndState>();
  if (rest.length > 0)
    for (const row of yield { name: "endsOf", params: { ids: rest } })
      ended.set(text(row, "id"), text(row, "state") as EndState);
  for (const id of ended.keys()) live.delete(id);
  return { live, ended };
}

/** Writes who waits for whom, after the jobs themselves; ends those at once that can never start. */
export function* placeDependents(
  placed: readonly PlacedJob[],
  ended: ReadonlyMap<string, EndState>,
  now: number | null,
  at: number,
): Script<void> {
  const rows: RowList[number][] = [];
  const pending: { id: string; pending: number }[] = [];
  const doomed = new Map<string, string>();
  for (const { job } of placed) {
    if (job.after === undefined) continue;
    const { policy } = job.after;
    let unmet = 0;
    for (const on of new Set(job.after.ids)) {
      const state = ended.get(on) ?? null;
      const met = state !== null && (state === "done" || policy !== "wait");
      if (!met) unmet += 1;
      if (state !== null && state !== "done" && policy === "cancel")
        doomed.set(job.id, `job ${on}, which it waits for, is ${state}`);
      rows.push({ job: job.id, on, policy, step: null, state: met ? state : null });
    }
    if (unmet > 0) pending.push({ id: job.id, pending: unmet });
  }
  if (rows.length > 0) yield { name: "addDependencies", params: { now, rows } };
  if (pending.length > 0) yield { name: "placeDependents", params: { rows: pending } };
  if (doomed.size === 0) return;
  const locked = yield { name: "lockQueued", params: { ids: [...doomed.keys()].sort() } };
  yield endCancelled(locked, (id) => doomed.get(id) ?? "", now, at);
  yield* resolveScript(
    [...doomed.keys()].map((id) => ({ id, state: "cancelled" as const })),
    now,
    at,
  );
}

function stepRow(step: StepWrite): RowList[number] {
  const { job, token, name, seq, place, kind, state, attempt, tries, undo, fails, output, error, label } =
    step;
  return {
    job,
    token,
    name,
    seq,
    place,
    kind,
    state,
    attempt,
    tries,
    took: Math.max(0, Math.round(step.tookMs)),
    wakeIn: step.wakeInMs,
    undo,
    fails,
    output,
    error,
    label,
  };
}

function stepRecord(row: Row): StepRecord {
  return {
    name: text(row, "name"),
    seq: number(row, "seq"),
    place: maybeNumber(row, "place"),
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
    output: maybeText(row, "output"),
    error: maybeText(row, "error"),
    label: maybeText(row, "label"),
  };
}
