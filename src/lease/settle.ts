/**
 * Settling: the transitions that jobs/transition.ts has decided become rows, under the claim's token and its session's life.
 *
 *   settle ─┬─ all done, nothing to free ─▶ one statement (plain-settle.ts)
 *           └─ else ─▶ end · again · wait · undo in one transaction
 *   either returns what jobs with limits were counted in (limits/limited-claim.ts), and then releases the jobs that wait for their ends
 *   takeOver: the same for jobs of dead sessions; wrest: for one that is taken out of its holder's hands
 *
 * Invariants: a row moves only for its holder; spent claims go with the last statement; batches go in id order.
 * Not here: what becomes of a job (jobs/transition.ts), when batches are written (settler.ts).
 */
import type { Clock } from "../clock.ts";
import { appendFailure } from "../jobs/failure.ts";
import type { Transition } from "../jobs/outcome.ts";
import type { UserTx } from "../storage/user-tx.ts";
import type { Wake } from "../storage/wake.ts";
import type { Call, Params, Row, RowList, Script } from "../storage/catalogue.ts";
import type { SettleStore } from "./store.ts";
import type { Ended } from "../enqueue/dependency-rows.ts";
import type { Driver } from "../storage/driver.ts";
import { type Workflows, suspendScript } from "../workflows/step-rows.ts";
import { uncount } from "../limits/limited-claim.ts";
import { text } from "../jobs/rows.ts";
import {
  areDone,
  doneCall,
  type End,
  ids,
  inIdOrder,
  isCounted,
  isWatched,
  named,
  PlainSettles,
} from "./plain-settle.ts";
import { type Granted, type GivenBack, grantScript } from "./request-rows.ts";

/** The statements for jobs that are held, and for orphans. */
const HELD = { end: "end", again: "again" } as const;
const ORPHANED = { end: "endOrphans", again: "againOrphans" } as const;
type Names = typeof HELD | typeof ORPHANED;
type SettleName = Names[keyof Names];

const RESOLVE_TRIES = 5;
const RESOLVE_AGAIN_MS = 500;

export interface SettlesDeps {
  readonly driver: Driver;
  readonly clock: Clock;
  readonly workflows: Workflows;
  readonly wake: (wake: Wake) => void;
}

export class Settles extends PlainSettles implements SettleStore {
  readonly #driver: Driver;
  readonly #clock: Clock;
  readonly #workflows: Workflows;
  readonly #wake: (wake: Wake) => void;

  constructor({ driver, clock, workflows, wake }: SettlesDeps) {
    super(driver);
    this.#driver = driver;
    this.#clock = clock;
    this.#workflows = workflows;
    this.#wake = wake;
  }

  settle(
    session: number,
    transitions: readonly Transition[],
    spent: readonly number[],
  ): Promise<Set<string>> {
    const sorted: readonly Transition[] = inIdOrder(transitions);
    if (!areDone(sorted)) return this.#applyMixed(HELD, { session }, sorted, spent);
    if (sorted.some(isCounted)) return this.#settleCounted(session, sorted, spent);
    return this.settleDone(session, sorted, spent);
  }

  /** A job's end in a transaction of its user's. */
  commit(tx: UserTx, session: number, transition: Transition & { move: "end" }): Promise<boolean> {
    const call = this.#endCall("end", { session }, [transition], []);
    const script = function* (): Script<boolean> {
      const moved = ids(yield call);
      if (isCounted(transition)) yield* uncount([transition], moved);
      return moved.size > 0;
    };
    return this.#driver.inUserTx(tx, script);
  }

  async takeOver(transitions: readonly Transition[]): Promise<Set<string>> {
    const dead = transitions.filter(endsBadly).map(({ id }) => id);
    const undoable = await this.#workflows.undoable(dead);
    const at = this.#clock.now();
    const given = transitions.map((one) => {
      const state = undoable.get(one.id);
      if (state === undefined || one.move !== "end" || !endsBadly(one)) return one;
      if (state === "undo") return { ...one, undo: true };
      // What is being undone is not cancelled once more, and who gives it up says so.
      return one.state === "cancelled" ? onceMore(one) : { ...one, errors: notUndone(one, at) };
    });
    return this.#applyMixed(ORPHANED, {}, inIdOrder(given), []);
  }

  /** As whoever holds them would end them; where that one has died, as whoever takes over. Nothing is undone. */
  async wrest(
    given: readonly { readonly session: number; readonly end: Transition }[],
  ): Promise<Set<string>> {
    const moved = new Set<string>();
    for (const [session, held] of Map.groupBy(given, (one) => one.session)) {
      const ends = held.map(({ end }) => end);
      for (const id of await this.settle(session, ends, [])) moved.add(id);
      const rest = ends.filter(({ id }) => !moved.has(id));
      if (rest.length === 0) continue;
      for (const id of await this.#applyMixed(ORPHANED, {}, inIdOrder(rest), [])) moved.add(id);
    }
    const ended = given.filter(({ end }) => moved.has(end.id));
    for (const session of new Set(ended.map((one) => one.session))) this.#wake({ kind: "cancel", session });
    return moved;
  }

  async progress(session: number, id: string, token: number, value: string): Promise<boolean> {
    const params = { now: this.#driver.now(), session, id, token, value };
    return (await this.#driver.write({ name: "progress", params })).length > 0;
  }

  /** Jobs that are done, of which some stand in counts of limits. */
  async #settleCounted(
    session: number,
    ended: readonly End[],
    spent: readonly number[],
  ): Promise<Set<string>> {
    const { call, endedOf } = doneCall(ended, { session, now: this.#driver.now(), spent });
    const counted = ended.filter(isCounted);
    const all = function* (): Script<{ rows: Row[]; freed: string[] }> {
      const rows = yield call;
      return { rows, freed: yield* uncount(counted, endedOf(rows)) };
    };
    const { rows, freed } = await this.#driver.transaction("settle", all, "settle");
    this.#wakeFreed(freed);
    await this.tellWatchers(ended, named(ended, rows.filter(isWatched)));
    return endedOf(rows);
  }

  /** A place is free where there was none, and whoever waits for it may be in another process. */
  #wakeFreed(queues: readonly string[]): void {
    for (const queue of queues) this.#wake({ kind: "work", queue, priority: 0 });
  }

  /** Anything but a batch of plain successes. */
  async #applyMixed(
    names: Names,
    fence: Params,
    sorted: readonly Transition[],
    spent: readonly number[],
  ): Promise<Set<string>> {
    const undone = sorted.filter((transition) => transition.move === "end" && transition.undo === true);
    const ended = sorted.filter(
      (transition) => transition.move === "end" && transition.undo !== true,
    ) as End[];
    const waits = sorted.filter((transition) => transition.move === "wait");
    const theirs = sorted.filter((transition) => transition.move === "none");
    const committed = theirs.map(({ id }) => id);
    // Places that a user's own transaction has freed: whoever waits for one may be in another process.
    if (theirs.some(isCounted)) this.#wake({ kind: "any" });
    const again = inIdOrder([
      ...sorted.filter((transition) => transition.move === "again"),
      ...undone.map(onceMore),
    ]);
    const now = this.#driver.now();
    const calls: Call<SettleName>[] = [];
    if (ended.length > 0 || (again.length === 0 && waits.length === 0)) {
      calls.push(this.#endCall(names.end, fence, ended, spent));
    }
    // Spent claims go with the last statement: a claim must not be forgotten while a job of it is still held.
    if (again.length > 0)
      calls.push({ name: names.again, params: { ...fence, now, rows: again.map(againRow), spent } });
    // Jobs that have limits give back what they were counted in, in the same transaction.
    const counted = [...ended, ...waits, ...again].filter(isCounted);
    // In the same transaction too, for the rows that moved: a repeat after a lost answer moves none, and cools nothing down again.
    const throttled = again.filter((transition) => transition.throttled);
    const more = waits.length + undone.length + counted.length + throttled.length;
    const [only] = calls;
    let rows: Row[];
    if (calls.length === 1 && only !== undefined && more === 0) {
      rows = await this.#driver.write(only, "settle");
      this.#wakeKept(again, ids(rows));
      // Rarely any; should this process die here, the sweep grants them.
      await this.grant(asked(rows));
    } else {
      const session = Number(fence["session"] ?? 0);
      const at = this.#clock.now();
      const all = function* (): Script<{ rows: Row[]; freed: string[]; granted: Granted }> {
        const rows: Row[] = [];
        for (const call of calls) rows.push(...(yield call));
        const slept = waits.length === 0 ? [] : yield* suspendScript(session, waits, now, spent);
        rows.push(...slept);
        const moved = ids(rows);
        const undos = undone.filter(({ id }) => moved.has(id)).map(undoRow);
        if (undos.length > 0) yield { name: "startUndo", params: { now, rows: undos } };
        // Last, because what is requested of a run that is to be undone depends on that.
        const own = new Map(waits.map(({ id, token }) => [id, token]));
        const sleepers = [...ids(slept)].map((id) => ({ id, token: own.get(id) ?? null }));
        const granted = yield* grantScript([...asked(rows), ...sleepers], now, at);
        const cooled = throttled.filter(({ id }) => moved.has(id)).map(({ id }) => id);
        const freed = counted.length === 0 ? [] : yield* uncount(counted, moved, cooled);
        // Last, because whoever else is throttled in this queue waits for its row.
        yield* coolDown(cooled, now);
        return { rows, granted, freed };
      };
      const settled = await this.#driver.transaction("settle", all, "settle");
      rows = settled.rows;
      // First: who is woken for a place that is free must know of the job that is due before the others.
      this.#wakeKept(again, ids(rows));
      this.#wakeFreed(settled.freed);
      await this.#tellGranted(settled.granted);
    }
    await this.tellWatchers(ended, rows.filter(isWatched));
    const moved = ids(rows);
    for (const id of committed) moved.add(id);
    return moved;
  }

  /** They stand before where claims have got to, here and in other processes. */
  #wakeKept(again: readonly (Transition & { move: "again" })[], moved: ReadonlySet<string>): void {
    const first = new Map<string, number>();
    for (const { id, keeps } of again) {
      if (keeps === undefined || !moved.has(id)) continue;
      first.set(keeps.queue, Math.min(keeps.runAt, first.get(keeps.queue) ?? Infinity));
    }
    for (const [queue, from] of first) this.#wake({ kind: "work", queue, priority: 0, from });
  }

  /** Lets go what waits for jobs that have just ended. A process that dies before this leaves it to the sweep. */
  protected async tellWatchers(ended: readonly End[], watched: readonly Row[]): Promise<void> {
    const states = new Map(ended.map(({ id, state }) => [id, state]));
    await this.resolve(
      watched.flatMap((row): Ended[] => {
        const id = text(row, "id");
        const state = states.get(id);
        return state === undefined ? [] : [{ id, state }];
      }),
    );
  }

  /** Grants what is requested of jobs that are given back. */
  async grant(given: readonly GivenBack[]): Promise<void> {
    if (given.length === 0) return;
    const now = this.#driver.now();
    const at = this.#clock.now();
    await this.#tellGranted(
      await this.#driver.transaction("grantRequests", () => grantScript(given, now, at), "settle"),
    );
  }

  async #tellGranted({ watched, woken, asked }: Granted): Promise<void> {
    for (const session of asked) this.#wake({ kind: "cancel", session });
    await this.resolve(watched.map((id) => ({ id, state: "cancelled" })));
    if (woken) this.#wake({ kind: "any" });
  }

  /** Lets go what waits for these, wherever they ended. */
  async resolve(ended: readonly Ended[]): Promise<void> {
    if (ended.length === 0) return;
    await this.#resolveEnds(ended, 1);
    this.#wake({ kind: "ended" });
  }

  /** Never rejects: the ends are written, and that is what the caller asked for. After the last try the sweep finds who waits. */
  async #resolveEnds(ended: readonly Ended[], tries: number): Promise<void> {
    try {
      await this.#workflows.resolve(ended);
    } catch {
      if (tries < RESOLVE_TRIES)
        this.#clock.after(RESOLVE_AGAIN_MS * tries, () => void this.#resolveEnds(ended, tries + 1), {
          unref: true,
        });
    }
  }

  #endCall(
    name: "end" | "endOrphans",
    fence: Params,
    ended: readonly End[],
    spent: readonly number[],
  ): Call<"end" | "endOrphans"> {
    const keyed = ended.filter(({ keyed }) => keyed).map(({ id }) => id);
    const dropped = ended.filter(({ keep }) => !keep).map(({ id }) => id);
    const now = this.#driver.now();
    return { name, params: { ...fence, now, rows: ended.map(endRow), keyed, dropped, spent } };
  }
}

/** `Throttled` cools the whole queue down where the queue is set to: one step for each window, whoever comes first. */
function* coolDown(ids: readonly string[], now: number | null): Script<void> {
  if (ids.length > 0) yield { name: "coolDown", params: { now, ids } };
}

/** Of what was given back: what somebody has a request for. */
function asked(rows: readonly Row[]): GivenBack[] {
  return rows
    .filter((row) => row["asked"] === true || row["asked"] === 1)
    .map((row) => ({ id: text(row, "id"), token: null }));
}

function notUndone({ errors, attempt }: Transition, at: number): string {
  const message = "UNDO_FAILED: its workers died before its steps were compensated";
  return appendFailure(errors, { at, attempt, message, stack: null });
}

function endsBadly(transition: Transition): boolean {
  return transition.move === "end" && transition.state !== "done";
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

function endRow(transition: Transition & { move: "end" }): RowList[number] {
  const { id, token, state, output, errors, attempt, crashes, keep } = transition;
  return {
    id,
    token,
    state,
    output,
    errors,
    failureGroup: transition.failureGroup ?? null,
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
    keeps: transition.keeps !== undefined,
    errors,
    failureGroup: transition.failureGroup ?? null,
    attempt,
    crashes,
    throttled: throttled ? 1 : 0,
    begun,
    note: transition.note ?? null,
    cancellable: transition.cancellable === true || transition.failureGroup !== undefined,
  };
}
