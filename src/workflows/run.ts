/**
 * One run of a workflow: what it has done is remembered, so that after a crash, a sleep or a deploy it goes on where it was.
 *
 *   the handler asks ─▶ is it in the history? ─ yes ─▶ given from there, in the order in which it was given before
 *                                             └ no ──▶ held until the history has been given, then done and written
 *   asked to pause ─▶ nothing new is done: what is under way ends, and the run is suspended before the next
 *   nothing under way but waits ─▶ suspended: the handler's promise is left behind, and the run leaves memory
 *
 * Invariants:
 *  - Results are given one at a time, with a turn of the event loop in between, in both lives of a run: live and again
 *    from the history. So a handler asks for the same things in the same order, also in parallel branches.
 *  - The n-th thing that a run asks for has the same name and kind as the n-th of its history, or the run has diverged.
 *  - A result counts once it is written under the fence; what was not written is done again.
 *  - The history is read once, at the first thing that the handler asks for, and only if the job has run before.
 *
 * What waits (a sleep, a call) and is over gets its place in the order by a write only where something else was under
 * way; otherwise cause and effect give it the same place again.
 * Not here: what can be asked for (request.ts), what is remembered (replay.ts), doing and writing (execute.ts), undoing (compensation.ts),
 * who may run (worker/attempt.ts), the statements (step-rows.ts), signals' names (signal.ts).
 */
import type { Timer } from "../clock.ts";
import type { HoldfastError, JobError, StateError } from "../errors.ts";
import type { ClaimedJob, NewJob } from "../jobs/job.ts";
import { describeFailure } from "../jobs/failure.ts";
import { decodeJson } from "../values/json.ts";
import type { Store } from "../storage/store.ts";
import type { StepRecord } from "./store.ts";
import type { Outcome } from "../jobs/outcome.ts";
import {
  type Ask,
  type Doing,
  newAsk,
  shownName,
  type StepInfo,
  type StepSettings,
  waitOf,
} from "./request.ts";
import { Doer, type DoerDeps } from "./execute.ts";
import { refusalInside } from "./inside-step.ts";
import { Replay } from "./replay.ts";
import { recordedError } from "./step-error.ts";
import { Undo, type UndoDeps } from "./compensation.ts";

/** What a run needs of its attempt and its worker. */
export interface RunDeps extends DoerDeps {
  readonly store: DoerDeps["store"] & Pick<Store, "workflows">;
  /** The run is over for now: it sleeps, or it cannot go on. */
  readonly onEnd: (outcome: Outcome) => void;
  /** A write was refused: the attempt is not ours any more. */
  readonly onLost: () => void;
  /** It was asked to pause, or told to stop: nothing new is begun. */
  readonly pausing: () => boolean;
  /** Only replays: nothing is done or written; told at the first thing that the history does not have. */
  readonly dry: ((name: string) => void) | null;
}

// Turns of the event loop in which nothing new is asked for, before a run that only waits is put to sleep.
const quietTurns = 3;
// How long a handler may take to ask for what its history has next, while what it did ask for is not in it.
const stallMs = 10_000;
// How long a handler that is led through its history to be undone may be busy with something outside of steps.
const undoGraceMs = 200;

/** What a handler calls for each thing that it can ask for. */
const calls: Readonly<Record<Doing["kind"], string>> = {
  step: "ctx.step",
  sleep: "ctx.sleep",
  signal: "ctx.waitFor",
  call: "ctx.call",
  version: "ctx.version",
};

/** A run. Made at the first workflow call of an attempt. */
export class WorkflowRun {
  readonly #job: ClaimedJob;
  readonly #deps: RunDeps;
  readonly #doer: Doer;
  readonly #names = new Set<string>();
  readonly #asks = new Map<string, Ask>();
  readonly #byPromise = new WeakMap<object, Ask>();
  #incoming: Ask[] = [];
  #reading: Promise<Replay> | null = null;
  /** Null until the history has been read. */
  #past: Replay | null = null;
  #seq = 0;
  #givenOrder = 0;
  /** Failures given so far. */
  #fails = 0;
  /** Results given so far, failures among them. */
  #given = 0;
  /** Asks that are not given yet. */
  readonly #open = new Set<Ask>();
  /** Written and to be given. */
  readonly #ready: Ask[] = [];
  #settling = false;
  #over = false;
  /** The handler has come to its end: what it asked for is compared with the history, and nothing is begun. */
  #closed = false;
  #activity = 0;
  #watching = false;
  #stall: Timer | null = null;
  /** What was given without being remembered: a decision, a stop, a database that said no. */
  #broken: { readonly error: unknown } | null = null;
  #undo: Undo | null = null;

  constructor(job: ClaimedJob, deps: RunDeps) {
    this.#job = job;
    this.#deps = deps;
    const isOver = (): boolean => this.#over;
    this.#doer = new Doer(job, deps, {
      get over() {
        return isOver();
      },
      givenOrder: () => this.#givenOrder++,
      hand: (ask, settle) => this.#hand(ask, settle),
      waits: (ask, wakeAt, change) => this.#waits(ask, wakeAt, change),
      fail: (ask, error) => this.#fail(ask, error),
      break: (ask, error) => this.#break(ask, error),
      lost: (ask, error) => this.#lost(ask, error),
    });
  }

  /** Whether the history has been read. */
  get loaded(): boolean {
    return this.#past !== null;
  }

  /** Whether a step that can be undone has been done. */
  get undoable(): boolean {
    return this.#doer.undoable;
  }

  /** Whether this run only undoes what earlier ones did: what its handler comes to does not matter. */
  get undoing(): boolean {
    return this.#undo !== null;
  }

  /** Everything that was given from the history has been asked for. */
  get replayed(): boolean {
    return this.#past !== null && this.#past.next === undefined;
  }

  /** The first thing of the history that the code has not asked for so far, or has no undo for any more. */
  get lacking(): { readonly record: StepRecord; readonly asked: boolean } | null {
    for (const record of this.#past?.required ?? []) {
      const doing = this.#asks.get(record.name)?.doing;
      const asked = doing !== undefined;
      const undone = record.undo && record.state === "done";
      if (!asked || (undone && doing.kind === "step" && doing.settings.undo === null))
        return { record, asked };
    }
    return null;
  }

  step(name: string, fn: (info: StepInfo) => unknown, settings: StepSettings): Promise<unknown> {
    return this.#ask(name, { kind: "step", fn, settings });
  }

  sleep(name: string, ms: number): Promise<unknown> {
    return this.#ask(name, { kind: "sleep", ms });
  }

  waitFor(name: string, topic: string, timeoutMs: number | null): Promise<unknown> {
    return this.#ask(name, { kind: "signal", topic, timeoutMs });
  }

  call(name: string, child: () => NewJob | Promise<NewJob>): Promise<unknown> {
    return this.#ask(name, { kind: "call", child });
  }

  version(name: string, current: number): Promise<unknown> {
    return this.#ask(name, { kind: "version", current });
  }

  /** As Promise.all; a run that waits for all of these is woken when all have ended, or one has failed. */
  all(promises: readonly unknown[]): Promise<unknown[]> {
    for (const promise of promises) {
      const ask = typeof promise === "object" && promise !== null ? this.#byPromise.get(promise) : undefined;
      if (ask !== undefined) ask.every = true;
    }
    return Promise.all(promises);
  }

  /**
   * Reads the history of a run whose handler has come to its end before that was done. Nothing is begun any more.
   *
   * @throws what kept it from being read
   */
  async close(): Promise<void> {
    this.#closed = true;
    this.#takeIn(await this.#read());
  }

  /** The error of a handler that ends now and has not asked for what its history has; null if it has, or none is read. */
  get unasked(): JobError | null {
    const past = this.#past;
    return past?.unasked(past.required.filter(({ name }) => !this.#asks.has(name))) ?? null;
  }

  /**
   * The handler has come to its end by itself. Gives the error if it left out what its history has, or null. While
   * steps are being undone, the end of the handler is no end of the run.
   */
  finished(): JobError | null {
    if (this.#undo !== null) {
      this.#undo.handlerEnded = true;
      this.#pump();
      return null;
    }
    this.stop();
    return this.unasked;
  }

  /** Steps that the handler asked for and that are neither given nor asleep between two tries. */
  get unawaited(): string[] {
    return [...this.#incoming, ...this.#open]
      .filter(({ doing, state }) => doing.kind === "step" && state !== "waits")
      .map(({ name }) => name);
  }

  /** Looks whether there is anything left to wait for before it stops. */
  pause(): void {
    this.#pump();
  }

  /** The attempt is over: nothing more is given. */
  stop(): void {
    this.#over = true;
    this.#stall?.cancel();
  }

  /**
   * The handler was told to stop and is not waited for any longer: what it has asked for, or asks for later, is answered with the
   * reason. Else it would never get to its end, and keep for ever what it holds (a connection of the pool that we write with, say).
   */
  leave(): void {
    const signal = this.#deps.signal();
    if (!signal.aborted) return;
    this.#broken ??= { error: signal.reason as unknown };
    for (const ask of [...this.#incoming.splice(0), ...this.#open]) ask.reject(this.#broken.error);
  }

  // --- asking -------------------------------------------------------------------------------------------

  #ask(name: string, doing: Doing): Promise<unknown> {
    const misuse = refusalInside(this.#job, `${calls[doing.kind]} ("${name}")`);
    const { ask, promise } = newAsk(name, doing);
    if (misuse !== null || this.#broken !== null) {
      ask.reject(misuse ?? this.#broken?.error);
      return promise;
    }
    this.#byPromise.set(promise, ask);
    this.#activity += 1;
    this.#incoming.push(ask);
    if (this.#past !== null) this.#takeIn(this.#past);
    else if (this.#reading === null)
      this.#read().then(
        (past) => this.#takeIn(past),
        () => {},
      );
    return promise;
  }

  #read(): Promise<Replay> {
    return (this.#reading ??= this.#load().catch((error: unknown) => {
      this.#reading = null;
      for (const one of this.#incoming.splice(0)) one.reject(error);
      throw error;
    }));
  }

  async #load(): Promise<Replay> {
    const { id, begun } = this.#job;
    const { store } = this.#deps;
    const past = new Replay(
      this.#job,
      begun ? await this.#doer.persist(() => store.workflows.steps(id)) : [],
    );
    this.#givenOrder = past.nextGivenOrder;
    this.#doer.undoable = past.undoable;
    if (past.undoMarker !== null) this.#undo = this.#undoOf(past, past.undoMarker);
    this.#past = past;
    return past;
  }

  #takeIn(past: Replay): void {
    for (const ask of this.#incoming.splice(0)) {
      if (this.#over) return;
      this.#number(ask, past);
    }
    if (!this.#closed) this.#pump();
  }

  /** Gives an ask its number and name, and holds it against the history. */
  #number(ask: Ask, past: Replay): void {
    ask.name = this.#ownName(ask.name);
    const record = past.byName(ask.name);
    // A run that was past this point before the marker was there.
    if (ask.doing.kind === "version" && record === null && past.isBeyond(this.#seq)) {
      ask.state = "given";
      ask.resolve(0);
      return;
    }
    if (past.ofMachine) {
      this.#stopWith(past.divergence(ask.name, "the history belongs to a machine, but the code is a job"));
      return;
    }
    ask.seq = this.#seq++;
    ask.fails = this.#fails;
    ask.given = this.#given;
    ask.record = record;
    const mismatch = past.mismatch(ask);
    if (mismatch !== undefined) {
      this.#stopWith(past.diverged(ask, mismatch.record));
      return;
    }
    this.#asks.set(ask.name, ask);
    this.#open.add(ask);
    ask.state = past.standing(ask);
  }

  /** A name that is used again gets a number. */
  #ownName(name: string): string {
    let own = name;
    for (let n = 2; this.#names.has(own); n += 1) own = `${name}#${n}`;
    this.#names.add(own);
    return own;
  }

  #stopWith(error: JobError): void {
    if (this.#over) return;
    this.stop();
    const failure = describeFailure(error);
    this.#deps.onEnd({
      kind: "dead",
      failure: { ...failure, message: `DIVERGED: ${failure.message}` },
      diverged: true,
    });
  }

  // --- giving -------------------------------------------------------------------------------------------

  /** Gives what is next, starts what may start, and puts the run to sleep when there is nothing else. */
  #pump(): void {
    const past = this.#past;
    if (this.#over || this.#settling || past === null) return;
    this.#stall?.cancel();
    this.#stall = null;
    const { next } = past;
    if (next !== undefined) {
      const ask = this.#asks.get(next.name);
      if (ask !== undefined) {
        past.advance();
        this.#giveRecord(ask, next);
        return;
      }
      const met = this.#met();
      if (met !== undefined) this.#giveRecord(met, met.record as StepRecord);
      else if (this.#undo?.handlerEnded === true) this.#undoSoon(this.#undo);
      else this.#watchStall(past, next);
      return;
    }
    const ready = this.#ready.shift();
    if (ready !== undefined) {
      this.#give(ready, () => ready.settle?.());
      return;
    }
    const met = this.#met();
    if (met !== undefined) {
      this.#giveMet(met);
      return;
    }
    if (this.#undo !== null) this.#undoSoon(this.#undo);
    else this.#start();
  }

  #met(): Ask | undefined {
    for (const ask of this.#open) if (ask.state === "met") return ask;
    return undefined;
  }

  #give(ask: Ask, settle: () => void): void {
    ask.state = "given";
    this.#open.delete(ask);
    this.#activity += 1;
    this.#given += 1;
    settle();
    this.#settling = true;
    setImmediate(() => {
      this.#settling = false;
      this.#pump();
    });
  }

  #giveRecord(ask: Ask, record: StepRecord): void {
    this.#give(ask, () => this.#settleFrom(ask, record));
  }

  #settleFrom(ask: Ask, record: StepRecord): void {
    try {
      if (record.state === "failed") this.#fail(ask, recordedError(record));
      else
        ask.resolve(record.output === null ? undefined : decodeJson(record.output, `step "${record.name}"`));
    } catch (error) {
      ask.reject(error);
    }
  }

  /** A sleep or a call that is over: its place is written if anything else is under way. */
  #giveMet(ask: Ask): void {
    const record = ask.record as StepRecord;
    if (this.#open.size === 1 || this.#deps.dry !== null || this.#undo !== null) {
      this.#giveRecord(ask, record);
      return;
    }
    ask.state = "busy";
    const state = record.state === "failed" ? "failed" : "done";
    const kept = this.#doer.write(ask, {
      state,
      output: record.output,
      error: record.error,
      label: record.label,
      tries: record.tries,
      undo: false,
      tookMs: 0,
      wakeInMs: null,
      givenOrder: this.#givenOrder++,
    });
    kept.then(
      (written) => {
        if (written !== null) this.#hand(ask, () => this.#settleFrom(ask, record));
      },
      (error: unknown) => this.#break(ask, error),
    );
  }

  /** The result is on disk: to be given in its turn. */
  #hand(ask: Ask, settle: () => void): void {
    ask.settle = settle;
    this.#ready.push(ask);
    this.#pump();
  }

  #fail(ask: Ask, error: HoldfastError): void {
    this.#fails += 1;
    ask.reject(error);
  }

  // --- doing --------------------------------------------------------------------------------------------

  #start(): void {
    let busy = false;
    const pausing = this.#deps.pausing();
    for (const ask of this.#open) {
      if (ask.state === "busy") busy = true;
      if (ask.state !== "held" || pausing) continue;
      if (this.#deps.dry !== null) {
        this.#deps.dry(ask.name);
        return;
      }
      busy = true;
      ask.state = "busy";
      void this.#doer.do(ask);
    }
    if (busy || this.#ready.length > 0) return;
    if (this.#open.size > 0) {
      if (this.#deps.dry === null) this.#sleepSoon();
      else this.#deps.dry([...this.#open][0]?.name ?? "");
    }
  }

  /**
   * Ends what can be remembered of this attempt: whatever the handler asks for from here on is answered with the same error.
   * Something that was asked for after it and written would have no place in the next life of the run, in which
   * this comes out differently.
   */
  #break(ask: Ask, error: unknown): void {
    this.#broken ??= { error };
    this.#hand(ask, () => ask.reject(error));
  }

  #waits(ask: Ask, wakeAt: number | null, change: Partial<StepRecord> = {}): void {
    ask.state = "waits";
    ask.wakeAt = wakeAt;
    if (ask.record !== null) ask.record = { ...ask.record, ...change };
    this.#pump();
  }

  #lost(ask: Ask, error: StateError): void {
    ask.reject(error);
    this.stop();
    this.#deps.onLost();
  }

  // --- sleeping -----------------------------------------------------------------------------------------

  /** Once nothing new has been asked for in a few turns. */
  #sleepSoon(): void {
    if (this.#watching) return;
    this.#watching = true;
    const seen = this.#activity;
    let turns = 0;
    const look = (): void => {
      if (this.#over) return;
      turns += 1;
      if (this.#activity !== seen || this.#settling) {
        this.#watching = false;
        this.#pump();
      } else if (turns < quietTurns) setImmediate(look);
      else {
        this.#watching = false;
        this.#suspend();
      }
    };
    setImmediate(look);
  }

  #suspend(): void {
    const open = [...this.#open];
    const kept = open.filter((ask) => ask.state === "held");
    if (kept.length > 0 && !this.#deps.pausing()) return this.#pump();
    if (open.length === 0 || open.some((ask) => ask.state !== "waits" && ask.state !== "held")) return;
    this.stop();
    // What is paused is due at once by itself: the pause request, which this write grants, keeps it from going on.
    // Zero is now by the database's clock, which is not this process's.
    const soon = { waits: "sleep", at: 0, topics: [], open: 0, every: false } as const;
    this.#deps.onEnd({ kind: "suspended", ...(kept.length > 0 ? soon : waitOf(open)) });
  }

  /** The handler asked for something else and does not ask for what comes next: in the end that is a divergence. */
  #watchStall(past: Replay, next: StepRecord): void {
    if ([...this.#open].every((ask) => ask.state !== "held" && ask.state !== "waits")) return;
    const seen = this.#activity;
    this.#stall = this.#deps.clock.after(
      stallMs,
      () => {
        if (this.#over || this.#activity !== seen) return;
        const asked = [...this.#open].map((ask) => `"${ask.name}"`).join(", ");
        this.#stopWith(
          past.divergence(
            next.name,
            `the history has ${shownName(next.kind)} "${next.name}" next, but the code waits for ${asked}`,
          ),
        );
      },
      { unref: true },
    );
  }

  // --- undoing ------------------------------------------------------------------------------------------

  #undoOf(past: Replay, marker: StepRecord): Undo {
    const { writer, clock, random, signal, onEnd, onLost } = this.#deps;
    const stopAnd =
      <Args extends unknown[]>(tell: (...args: Args) => void) =>
      (...args: Args): void => {
        this.stop();
        tell(...args);
      };
    return new Undo(this.#job, marker, past, {
      writer,
      clock,
      random,
      signal,
      over: () => this.#over,
      undoOf: (step) => {
        const doing = this.#asks.get(step)?.doing;
        return doing?.kind === "step" ? (doing.settings.undo as ReturnType<UndoDeps["undoOf"]>) : null;
      },
      onEnd: stopAnd(onEnd),
      onLost: stopAnd(onLost),
    });
  }

  /** The handler has been led as far as its history goes; now its undo functions are known. */
  #undoSoon(undo: Undo): void {
    if (undo.started) return;
    if (undo.handlerEnded || this.#open.size > 0) {
      undo.started = true;
      setImmediate(() => void undo.all());
      return;
    }
    // The handler is busy with something outside of steps; all its steps are known, so there is nothing to wait for.
    this.#stall = this.#deps.clock.after(undoGraceMs, () => {
      undo.handlerEnded = true;
      this.#pump();
    });
  }
}
