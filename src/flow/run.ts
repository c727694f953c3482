/**
 * One run of a flow: what it has done is remembered, so that after a crash, a sleep or a deploy it goes on where it was.
 *
 *   the handler asks ─▶ is it in the history? ─ yes ─▶ given from there, in the order in which it was given before
 *                                             └ no ──▶ held until the history has been given, then done and written
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
 * Not here: who may run (attempt.ts), the statements (sql/flows.ts), signals' names (signal.ts).
 */
import type { Clock, Timer } from "../clock.ts";
import { isDead, isRelease, isRetryAfter, isThrottled } from "../decision.ts";
import { type HoldfastError, isHoldfastError, JobError, StateError, UsageError } from "../errors.ts";
import type { ClaimedJob, NewJob } from "../job.ts";
import { type Backoff, type BackoffFunction, backoffMs, DEFAULT_BACKOFF } from "../policy/backoff.ts";
import { appendFailure, decodeFailures, describeFailure, type Failure } from "../policy/failure.ts";
import { decodeJson, encodeJson } from "../policy/json.ts";
import type { StepKind, StepRecord, Store } from "../store.ts";
import type { Outcome, Wait } from "../transition.ts";
import { Advance } from "./advance.ts";
import type { StepWriter } from "./writer.ts";

/** What a step may be given. */
export interface StepSettings {
  readonly attempts: number;
  readonly backoff: Backoff | BackoffFunction | null;
  readonly timeoutMs: number | null;
  readonly undo: ((output: never) => unknown) | null;
  readonly tx: object | null;
}

/** What a step's function is told. */
export interface StepInfo {
  /** 1 in the first try of this step. */
  readonly attempt: number;
  /** Aborts with the attempt of the job, and when the step's own timeout passes. */
  readonly signal: AbortSignal;
}

/** What a run needs of its attempt and its worker. */
export interface RunDeps {
  readonly store: Pick<Store, "steps" | "takeSignal" | "startCall" | "userTx" | "recordSteps" | "advance">;
  readonly writer: Pick<StepWriter, "record" | "patiently">;
  readonly clock: Clock;
  readonly random: () => number;
  readonly maxBytes: number;
  readonly signal: () => AbortSignal;
  /** The run is over for now: it sleeps, or it cannot go on. */
  readonly onEnd: (outcome: Outcome) => void;
  /** A write was refused: the attempt is not ours any more. */
  readonly onLost: () => void;
  /** Only replays: nothing is done or written; told at the first thing that the history does not have. */
  readonly dry: ((name: string) => void) | null;
  /** Of the code that runs. */
  readonly version: number;
}

type Doing =
  | { readonly kind: "step"; readonly fn: (info: StepInfo) => unknown; readonly settings: StepSettings }
  | { readonly kind: "sleep"; readonly ms: number }
  | { readonly kind: "signal"; readonly topic: string; readonly timeoutMs: number | null }
  | { readonly kind: "call"; readonly child: () => NewJob | Promise<NewJob> }
  | { readonly kind: "version"; readonly current: number };

/** One thing that the handler asked for. */
interface Ask {
  readonly doing: Doing;
  name: string;
  seq: number;
  record: StepRecord | null;
  /** Failures that had been given when it was asked for. */
  fails: number;
  /** `held`: waits for the history to be given; `busy`: being done or written; `waits`: for time, a signal or a job. */
  state: "asked" | "held" | "busy" | "waits" | "met" | "given";
  wakeAt: number | null;
  /** One of `ctx.all`: there is no use in waking for each. */
  every: boolean;
  settle: (() => void) | null;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

const outputCodes = { notJson: "OUTPUT_NOT_JSON", tooLarge: "OUTPUT_TOO_LARGE" } as const;
// Turns of the event loop in which nothing new is asked for, before a run that only waits is put to sleep.
const quietTurns = 3;
// How long a handler may take to ask for what its history has next, while what it did ask for is not in it.
const stallMs = 10_000;
const undoAttempts = 5;
const undoGraceMs = 200;

/** A run. Made at the first flow call of an attempt. */
export class FlowRun {
  readonly #job: ClaimedJob;
  readonly #deps: RunDeps;
  readonly #advance: Advance;
  readonly #names = new Set<string>();
  readonly #asks = new Map<string, Ask>();
  readonly #byPromise = new WeakMap<object, Ask>();
  #incoming: Ask[] = [];
  #loading = false;
  #loaded = false;
  /** Everything remembered, by name and by number. */
  readonly #byName = new Map<string, StepRecord>();
  readonly #bySeq = new Map<number, StepRecord>();
  /** What was given before, in order. */
  #given: StepRecord[] = [];
  #next = 0;
  #seq = 0;
  #place = 0;
  /** Failures given so far. */
  #fails = 0;
  /** Failed steps of earlier attempts to which the handler had an answer: they stay failed. */
  readonly #answered = new Set<string>();
  /** Asks that are not given yet. */
  readonly #open = new Set<Ask>();
  /** Written and to be given. */
  readonly #ready: Ask[] = [];
  #settling = false;
  #over = false;
  #activity = 0;
  #watching = false;
  #stall: Timer | null = null;
  /** What was given without being remembered: a decision, a stop, a database that said no. */
  #broken: { readonly error: unknown } | null = null;
  #undo: Undo | null = null;
  #undoable = false;

  constructor(job: ClaimedJob, deps: RunDeps) {
    this.#job = job;
    this.#deps = deps;
    this.#advance = new Advance(job, deps.version, deps.store, (call) => this.#persist(call));
  }

  /** Whether a step that can be undone has been done. */
  get undoable(): boolean {
    return this.#undoable;
  }

  /** Whether this run only undoes what earlier ones did: what its handler comes to does not matter. */
  get undoing(): boolean {
    return this.#undo !== null;
  }

  /** Everything that was given from the history has been asked for. */
  get replayed(): boolean {
    return this.#loaded && this.#next >= this.#given.length;
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
   * The handler has come to its end by itself. Gives the error if it left out what its history has, or null. While
   * steps are being undone, the end of the handler is no end of the run.
   */
  finished(): JobError | null {
    if (this.#undo !== null) {
      this.#undo.handlerEnded = true;
      this.#pump();
      return null;
    }
    const left = this.#given[this.#next];
    this.stop();
    if (left === undefined) return null;
    return this.#divergence(
      left.name,
      `the history has ${shownKind(left.kind)} "${left.name}", and the code came to its end without asking for it`,
    );
  }

  /** The attempt is over: nothing more is given. */
  stop(): void {
    this.#over = true;
    this.#stall?.cancel();
  }

  // --- asking -------------------------------------------------------------------------------------------

  #ask(name: string, doing: Doing): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    promise.catch(() => {}); // a branch that nobody waits for any more must not end the process
    const ask: Ask = {
      doing,
      name,
      seq: -1,
      record: null,
      fails: 0,
      state: "asked",
      wakeAt: null,
      every: false,
      settle: null,
      resolve,
      reject,
    };
    if (this.#broken !== null) {
      reject(this.#broken.error);
      return promise;
    }
    this.#byPromise.set(promise, ask);
    this.#activity += 1;
    this.#incoming.push(ask);
    if (this.#loaded) this.#takeIn();
    else if (!this.#loading) {
      this.#loading = true;
      this.#load().then(
        () => this.#takeIn(),
        (error: unknown) => {
          this.#loading = false;
          for (const one of this.#incoming.splice(0)) one.reject(error);
        },
      );
    }
    return promise;
  }

  async #load(): Promise<void> {
    const { id, begun, attempt } = this.#job;
    const records = begun ? await this.#deps.store.steps(id) : [];
    const marker = records.find((record) => record.name === "$undo");
    let failures = 0;
    for (const record of records) {
      if (record.state !== "failed" || record.kind === "undo") continue;
      failures += 1; // in the order in which they were asked for
      const nth = failures;
      if (records.some((later) => later.seq > record.seq && later.fails >= nth && later.kind !== "undo"))
        this.#answered.add(record.name);
    }
    for (const record of records) {
      if (record.kind === "undo" || record.kind === "machine") continue;
      this.#byName.set(record.name, record);
      this.#bySeq.set(record.seq, record);
      if (record.undo && record.state === "done") this.#undoable = true;
      // A step that failed for good in an earlier attempt of the job, and failed it, is tried again in this one.
      if (record.state === "failed" && record.attempt !== attempt && marker === undefined)
        if (!this.#answered.has(record.name)) continue;
      if (record.place !== null) this.#given.push(record);
    }
    this.#given.sort((a, b) => (a.place ?? 0) - (b.place ?? 0));
    this.#place = (this.#given.at(-1)?.place ?? -1) + 1;
    if (marker !== undefined) this.#undo = new Undo(marker, records);
    this.#loaded = true;
  }

  #takeIn(): void {
    for (const ask of this.#incoming.splice(0)) {
      if (this.#over) return;
      this.#place1(ask);
    }
    this.#pump();
  }

  #place1(ask: Ask): void {
    const { doing } = ask;
    ask.name = this.#ownName(ask.name);
    const record = this.#byName.get(ask.name) ?? null;
    // A run that was past this point before the marker was there.
    if (doing.kind === "version" && record === null && this.#next < this.#given.length) {
      ask.state = "given";
      ask.resolve(0);
      return;
    }
    ask.seq = this.#seq++;
    ask.fails = this.#fails;
    const there = this.#bySeq.get(ask.seq);
    if (record === null ? there !== undefined : record.seq !== ask.seq || record.kind !== doing.kind) {
      this.#diverge(ask, there ?? record);
      return;
    }
    ask.record = record;
    this.#asks.set(ask.name, ask);
    this.#open.add(ask);
    ask.state = this.#standing(ask);
  }

  /** Where something stands that was just asked for. */
  #standing({ doing, record }: Ask): Ask["state"] {
    if (record === null) return "held";
    const past = record.wakeAt !== null && record.wakeAt <= this.#job.startedAt;
    switch (record.state) {
      case "done":
        return record.place === null ? "met" : "held";
      case "failed":
        if (record.attempt !== this.#job.attempt && this.#undo === null && !this.#answered.has(record.name))
          return "held";
        return record.place === null ? "met" : "held";
      case "open":
        if (doing.kind === "sleep") return past ? "met" : "waits";
        if (doing.kind === "step") return past ? "held" : "waits";
        return doing.kind === "call" ? "waits" : "held";
    }
  }

  /** A name that is used again gets a number. */
  #ownName(name: string): string {
    let own = name;
    for (let n = 2; this.#names.has(own); n += 1) own = `${name}#${n}`;
    this.#names.add(own);
    return own;
  }

  #diverge(ask: Ask, record: StepRecord | null): void {
    const asked = `${shownKind(ask.doing.kind)} "${ask.name}"`;
    const has =
      record === null ? "nothing" : `${shownKind(record.kind)} "${record.name}" (number ${record.seq + 1})`;
    this.#stopWith(
      this.#divergence(
        ask.name,
        `as number ${ask.seq + 1} the code asks for ${asked}, and the history has ${has} there`,
      ),
    );
  }

  #divergence(step: string, what: string): JobError {
    return new JobError(
      "DIVERGED",
      `Step "${step}": the code no longer matches the run's history: ${what}. ` +
        `Nothing was done. Deploy code that matches (ctx.version keeps both ways), then retry the job.`,
      { details: { job: this.#job.id, step } },
    );
  }

  #stopWith(error: JobError): void {
    if (this.#over) return;
    this.stop();
    const failure = describeFailure(error);
    this.#deps.onEnd({ kind: "dead", failure: { ...failure, message: `DIVERGED: ${failure.message}` } });
  }

  // --- giving -------------------------------------------------------------------------------------------

  /** Gives what is next, starts what may start, and puts the run to sleep when there is nothing else. */
  #pump(): void {
    if (this.#over || this.#settling || !this.#loaded) return;
    this.#stall?.cancel();
    this.#stall = null;
    const next = this.#given[this.#next];
    if (next !== undefined) {
      const ask = this.#asks.get(next.name);
      if (ask !== undefined) {
        this.#next += 1;
        this.#giveRecord(ask, next);
        return;
      }
      const met = this.#met();
      if (met !== undefined) this.#giveRecord(met, met.record as StepRecord);
      else if (this.#undo?.handlerEnded === true) this.#undoSoon();
      else this.#watchStall(next);
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
    if (this.#undo !== null) this.#undoSoon();
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
      if (record.state === "failed") this.#fail(ask, this.#recordedError(record));
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
    void this.#write(ask, {
      state,
      output: record.output,
      error: record.error,
      label: record.label,
      tries: record.tries,
      undo: false,
      tookMs: 0,
      wakeInMs: null,
      place: this.#place++,
    }).then((written) => {
      if (written !== null) this.#hand(ask, () => this.#settleFrom(ask, record));
    });
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

  #recordedError(record: StepRecord): HoldfastError {
    if (record.kind !== "call") return stepError(record.name, decodeFailure(record.error), undefined);
    if (record.child === null) return callError(record.name, decodeFailure(record.error));
    const message = decodeFailures(record.error).at(-1)?.message ?? "no error was kept";
    return new JobError(
      "CALL_FAILED",
      `The job ${record.child ?? ""} that step "${record.name}" called is ${record.label ?? "dead"}: ${message}`,
      { details: { step: record.name, job: record.child, state: record.label } },
    );
  }

  // --- doing --------------------------------------------------------------------------------------------

  #start(): void {
    let busy = false;
    for (const ask of this.#open) {
      if (ask.state === "busy") busy = true;
      if (ask.state !== "held") continue;
      if (this.#deps.dry !== null) {
        this.#deps.dry(ask.name);
        return;
      }
      busy = true;
      ask.state = "busy";
      void this.#do(ask);
    }
    if (busy || this.#ready.length > 0) return;
    if (this.#open.size > 0) {
      if (this.#deps.dry === null) this.#sleepSoon();
      else this.#deps.dry([...this.#open][0]?.name ?? "");
    }
  }

  async #do(ask: Ask): Promise<void> {
    try {
      if (!this.#advance.known) {
        const tx = ask.doing.kind === "step" ? ask.doing.settings.tx : null;
        if (!(await (tx === null ? this.#advance.keep() : this.#advance.keepIn(tx)))) return this.#lost(ask);
        if (this.#over) return;
      }
      switch (ask.doing.kind) {
        case "step":
          await this.#doStep(ask, ask.doing.fn, ask.doing.settings);
          return;
        case "sleep":
          await this.#doSleep(ask, ask.doing.ms);
          return;
        case "signal":
          await this.#doWait(ask, ask.doing.topic, ask.doing.timeoutMs);
          return;
        case "call":
          await this.#doCall(ask, ask.doing.child);
          return;
        case "version": {
          const { current } = ask.doing;
          const output = String(current);
          const done = { state: "done", output, tries: 1, place: this.#place++ } as const;
          if ((await this.#write(ask, done)) !== null) this.#hand(ask, () => ask.resolve(current));
          return;
        }
      }
    } catch (error) {
      if (ask.doing.kind === "call" && isUsage(error)) await this.#refuseCall(ask, error);
      else this.#break(ask, error);
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

  /** What cannot be called will not be called the next time either: a failure like that of a step. */
  async #refuseCall(ask: Ask, error: UsageError): Promise<void> {
    const failed = {
      state: "failed",
      tries: 1,
      error: JSON.stringify(describeFailure(error)),
      place: this.#place++,
    } as const;
    try {
      if ((await this.#write(ask, failed)) !== null) this.#hand(ask, () => this.#fail(ask, error));
    } catch (trouble) {
      this.#break(ask, trouble);
    }
  }

  async #doStep(ask: Ask, fn: (info: StepInfo) => unknown, settings: StepSettings): Promise<void> {
    const { clock } = this.#deps;
    // A step that failed in an earlier attempt of the job starts counting anew; one that waited for its retry does not.
    const tries = (ask.record?.state === "open" ? ask.record.tries : 0) + 1;
    const startedAt = clock.monotonic();
    const ran = await this.#try(ask.name, fn, settings, tries);
    if (this.#over) return;
    const tookMs = clock.monotonic() - startedAt;
    const undo = settings.undo !== null;
    if (ran.ok) {
      const { text } = ran;
      const value = text === null ? undefined : decodeJson(text, `output of step "${ask.name}"`);
      const done = { state: "done", output: text, tries, tookMs, undo, place: this.#place++ } as const;
      if (undo) this.#undoable = true;
      if ((await this.#write(ask, done, settings.tx)) !== null) this.#hand(ask, () => ask.resolve(value));
      return;
    }
    const { error } = ran;
    // A decision is about the job, and an attempt that was told to stop says nothing about the step.
    if (isDecision(error) || this.#deps.signal().aborted || isOurs(error)) {
      this.#break(ask, error);
      return;
    }
    const failure = describeFailure(error);
    const kept = JSON.stringify(failure);
    if (tries < settings.attempts && !isFinal(error)) {
      const delayMs = isRetryAfter(error)
        ? error.delayFrom(clock.now())
        : backoffMs(settings.backoff ?? DEFAULT_BACKOFF, tries, this.#deps.random);
      const retry = {
        state: "open",
        tries,
        tookMs,
        error: kept,
        place: null,
        wakeInMs: Math.round(delayMs),
      } as const;
      const written = await this.#write(ask, retry);
      if (written !== null) this.#waits(ask, written.wakeAt, { tries });
      return;
    }
    const failed = { state: "failed", tries, tookMs, error: kept, place: this.#place++ } as const;
    if ((await this.#write(ask, failed)) === null) return;
    this.#hand(ask, () => this.#fail(ask, stepError(ask.name, failure, error)));
  }

  async #try(
    name: string,
    fn: (info: StepInfo) => unknown,
    settings: StepSettings,
    attempt: number,
  ): Promise<{ ok: true; text: string | null } | { ok: false; error: unknown }> {
    const { clock, maxBytes } = this.#deps;
    const { timeoutMs } = settings;
    let timer: Timer | undefined;
    try {
      const signal = this.#deps.signal();
      let value: unknown;
      if (timeoutMs === null) value = await fn({ attempt, signal });
      else {
        const own = new AbortController();
        const late = Promise.withResolvers<never>();
        late.promise.catch(() => {});
        timer = clock.after(timeoutMs, () => {
          const error = new JobError("TIMEOUT", `step "${name}": timeout after ${timeoutMs / 1_000}s`);
          late.reject(error);
          own.abort(error);
        });
        value = await Promise.race([
          fn({ attempt, signal: AbortSignal.any([signal, own.signal]) }),
          late.promise,
        ]);
      }
      const text =
        value === undefined ? null : encodeJson(value, `output of step "${name}"`, maxBytes, outputCodes);
      return { ok: true, text };
    } catch (error) {
      return { ok: false, error };
    } finally {
      timer?.cancel();
    }
  }

  async #doSleep(ask: Ask, ms: number): Promise<void> {
    if (ms === 0) {
      // Written like a step: what is given and not remembered would have no place when the run is led through its history.
      const done = { state: "done", output: null, tries: 1, place: this.#place++ } as const;
      if ((await this.#write(ask, done)) !== null) this.#hand(ask, () => ask.resolve(undefined));
      return;
    }
    const written = await this.#write(ask, { state: "open", tries: 0, place: null, wakeInMs: ms });
    if (written !== null) this.#waits(ask, written.wakeAt);
  }

  async #doWait(ask: Ask, topic: string, timeoutMs: number | null): Promise<void> {
    const { id, token, session, attempt } = this.#job;
    const place = this.#place++;
    const taken = await this.#persist(() =>
      this.#deps.store.takeSignal(session, {
        id,
        token,
        name: ask.name,
        seq: ask.seq,
        place,
        attempt,
        fails: ask.fails,
        topic,
        timeoutMs,
      }),
    );
    if (taken === null) return this.#lost(ask);
    if (!taken.over) return this.#waits(ask, taken.wakeAt);
    const value = decodeJson(taken.data ?? "null", `signal of step "${ask.name}"`);
    this.#hand(ask, () => ask.resolve(value));
  }

  async #doCall(ask: Ask, make: () => NewJob | Promise<NewJob>): Promise<void> {
    const { id, token, session, attempt } = this.#job;
    const child = await make();
    const { name, seq, fails } = ask;
    const started = await this.#persist(() =>
      this.#deps.store.startCall(session, { id, token, name, seq, attempt, fails, child }),
    );
    if (started === null) return this.#lost(ask);
    if (started.child === id)
      throw new UsageError(
        "WAITS_FOR_ITSELF",
        `Step "${name}": the job to call has the unique key of this very job, which would wait for itself for ever.`,
        { details: { job: id, step: name } },
      );
    // One that has already ended is read back with the history: at once.
    this.#waits(ask, started.ended ? 0 : null);
  }

  #waits(ask: Ask, wakeAt: number | null, change: Partial<StepRecord> = {}): void {
    ask.state = "waits";
    ask.wakeAt = wakeAt;
    if (ask.record !== null) ask.record = { ...ask.record, ...change };
    this.#pump();
  }

  /** A store call that is tried again while the database is away, as long as the attempt is ours. */
  async #persist<T>(call: () => Promise<T>): Promise<T> {
    return this.#deps.writer.patiently(call, () => this.#over);
  }

  async #write(
    ask: Ask,
    change: {
      readonly state: "open" | "done" | "failed";
      readonly tries: number;
      readonly place: number | null;
      readonly output?: string | null;
      readonly error?: string | null;
      readonly label?: string | null;
      readonly tookMs?: number;
      readonly wakeInMs?: number | null;
      readonly undo?: boolean;
    },
    tx: object | null = null,
  ): Promise<{ readonly wakeAt: number | null } | null> {
    const { id, token, session, attempt } = this.#job;
    const kind: StepKind = ask.doing.kind;
    const step = {
      job: id,
      token,
      name: ask.name,
      seq: ask.seq,
      kind,
      attempt,
      output: null,
      error: null,
      label: null,
      tookMs: 0,
      wakeInMs: null,
      undo: false,
      fails: ask.fails,
      ...change,
    };
    if (tx !== null) {
      const known = await this.#deps.store.userTx(tx);
      const rows = await this.#deps.store.recordSteps(session, [step], known);
      const row = rows.get(`${id} ${ask.name}`);
      if (row !== undefined) return row;
      // Thrown into the step's caller, whose transaction must not be committed.
      throw this.#lostError();
    }
    const written = await this.#deps.writer.record(session, step, () => this.#over);
    if (!written.lost) return written;
    this.#lost(ask);
    return null;
  }

  #lostError(): StateError {
    const { id, attempt, token } = this.#job;
    return new StateError(
      "LEASE_LOST",
      `Job ${id} is no longer leased to this attempt (${attempt}): its step was not recorded. Stop working on it.`,
      { details: { job: id, attempt, token } },
    );
  }

  #lost(ask: Ask): void {
    ask.reject(this.#lostError());
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
    if (open.length === 0 || open.some((ask) => ask.state !== "waits")) return;
    this.stop();
    this.#deps.onEnd({ kind: "suspended", ...waitOf(open) });
  }

  /** The handler asked for something else and does not ask for what comes next: in the end that is a divergence. */
  #watchStall(next: StepRecord): void {
    if ([...this.#open].every((ask) => ask.state !== "held" && ask.state !== "waits")) return;
    const seen = this.#activity;
    this.#stall = this.#deps.clock.after(
      stallMs,
      () => {
        if (this.#over || this.#activity !== seen) return;
        const asked = [...this.#open].map((ask) => `"${ask.name}"`).join(", ");
        this.#stopWith(
          this.#divergence(
            next.name,
            `the history has ${shownKind(next.kind)} "${next.name}" next, and the code waits for ${asked} instead`,
          ),
        );
      },
      { unref: true },
    );
  }

  // --- undoing ------------------------------------------------------------------------------------------

  /** The handler has been led as far as its history goes; now its undo functions are known. */
  #undoSoon(): void {
    const undo = this.#undo as Undo;
    if (undo.started) return;
    if (undo.handlerEnded || this.#open.size > 0) {
      undo.started = true;
      setImmediate(() => void this.#undoAll(undo));
    } else {
      // The handler is busy with something outside of steps; all its steps are known, so there is nothing to wait for.
      this.#stall = this.#deps.clock.after(undoGraceMs, () => {
        undo.handlerEnded = true;
        this.#pump();
      });
    }
  }

  async #undoAll(undo: Undo): Promise<void> {
    const { id, token, session, attempt } = this.#job;
    const done = this.#given.filter((record) => record.undo && record.state === "done").reverse();
    for (const record of done) {
      const doing = this.#asks.get(record.name)?.doing;
      const fn =
        doing?.kind === "step" ? (doing.settings.undo as ((output: unknown) => unknown) | null) : null;
      const name = `undo:${record.name}`;
      const before = undo.records.get(name);
      if (before?.state === "done") continue;
      if ((before?.wakeAt ?? 0) > this.#job.startedAt) return this.#undoLater(before?.wakeAt ?? null);
      const tries = (before?.tries ?? 0) + 1;
      const startedAt = this.#deps.clock.monotonic();
      const write = async (change: {
        state: "open" | "done" | "failed";
        error: string | null;
        wakeInMs: number | null;
      }) =>
        this.#deps.writer.record(
          session,
          {
            job: id,
            token,
            name,
            seq: 1_000_000_000 + record.seq,
            place: null,
            kind: "undo",
            attempt,
            tries,
            tookMs: this.#deps.clock.monotonic() - startedAt,
            undo: false,
            fails: 0,
            output: null,
            label: null,
            ...change,
          },
          () => this.#over,
        );
      try {
        if (fn === null || fn === undefined)
          throw new JobError("DIVERGED", `the code has no undo for step "${record.name}" any more`);
        await fn(record.output === null ? undefined : decodeJson(record.output, `step "${record.name}"`));
      } catch (error) {
        if (this.#over || this.#deps.signal().aborted) return;
        const failure = describeFailure(error);
        if (tries < undoAttempts && fn !== null && fn !== undefined) {
          const wakeInMs = Math.round(backoffMs(DEFAULT_BACKOFF, tries, this.#deps.random));
          const written = await write({ state: "open", error: JSON.stringify(failure), wakeInMs });
          if (written.lost) return this.#deps.onLost();
          return this.#undoLater(written.wakeAt);
        }
        await write({ state: "failed", error: JSON.stringify(failure), wakeInMs: null });
        const message = `UNDO_FAILED: step "${record.name}" could not be undone: ${failure.message}`;
        const entry = { at: this.#deps.clock.now(), attempt, message, stack: failure.stack };
        this.stop();
        this.#deps.onEnd({ kind: "undone", state: "dead", errors: appendFailure(undo.errors, entry) });
        return;
      }
      if ((await write({ state: "done", error: null, wakeInMs: null })).lost) return this.#deps.onLost();
    }
    if (this.#over) return;
    this.stop();
    this.#deps.onEnd({ kind: "undone", state: undo.state, errors: undo.errors });
  }

  #undoLater(wakeAt: number | null): void {
    this.stop();
    this.#deps.onEnd({ kind: "suspended", waits: "sleep", at: wakeAt, topics: [], open: 0, every: false });
  }
}

/** What is to be undone, and how the job ends then. */
class Undo {
  readonly state: "dead" | "cancelled";
  readonly errors: string | null;
  readonly records: ReadonlyMap<string, StepRecord>;
  handlerEnded = false;
  started = false;

  constructor(marker: StepRecord, records: readonly StepRecord[]) {
    this.state = marker.label === "cancelled" ? "cancelled" : "dead";
    this.errors = marker.output === null ? null : (decodeJson(marker.output, "undo") as string | null);
    this.records = new Map(records.map((record) => [record.name, record]));
  }
}

/** What a run whose asks all wait is waiting for. */
function waitOf(open: readonly Ask[]): Wait {
  const instants = open.flatMap((ask) => {
    const at = ask.wakeAt ?? ask.record?.wakeAt ?? null;
    return at === null ? [] : [at];
  });
  const topics = open.flatMap((ask) => (ask.doing.kind === "signal" ? [ask.doing.topic] : []));
  const calls = open.filter((ask) => ask.doing.kind === "call");
  return {
    waits: topics.length > 0 ? "signal" : calls.length > 0 ? "jobs" : "sleep",
    at: instants.length === 0 ? null : Math.min(...instants),
    topics,
    open: calls.length,
    every: calls.length > 0 && calls.every((ask) => ask.every),
  };
}

function stepError(name: string, failure: Failure, cause: unknown): JobError {
  if (failure.code === "OUTPUT_NOT_JSON" || failure.code === "OUTPUT_TOO_LARGE")
    return new JobError(failure.code, failure.message, { details: { step: name } });
  const details = { step: name, code: failure.code ?? null };
  return new JobError(
    "STEP_FAILED",
    `Step "${name}" failed: ${failure.message}`,
    cause === undefined ? { details } : { details, cause },
  );
}

/** A call that never was: as it was thrown then. */
function callError(name: string, failure: Failure): UsageError {
  const { code, message } = failure;
  return new UsageError((code ?? "BAD_OPTION") as UsageError["code"], message, { details: { step: name } });
}

function decodeFailure(text: string | null): Failure {
  try {
    return JSON.parse(text ?? "") as Failure;
  } catch {
    return { message: "no error was kept", stack: null };
  }
}

function isDecision(error: unknown): boolean {
  return isDead(error) || isThrottled(error) || isRelease(error);
}

function isUsage(error: unknown): error is UsageError {
  return isHoldfastError(error) && error instanceof UsageError;
}

/** Errors of ours that say nothing about the step's own work. */
function isOurs(error: unknown): boolean {
  return isHoldfastError(error) && error.code === "LEASE_LOST";
}

/** Trying again would come to the same. */
function isFinal(error: unknown): boolean {
  return isHoldfastError(error) && (error.code === "OUTPUT_NOT_JSON" || error.code === "OUTPUT_TOO_LARGE");
}

function shownKind(kind: StepKind): string {
  return kind === "signal" ? "the wait" : `the ${kind}`;
}
