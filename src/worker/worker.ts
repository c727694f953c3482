/**
 * The worker: claim → run → settle, in many slots, for as long as the process lives.
 *
 *   starting ──first session and claim──▶ working ──stop · a signal · a remote stop · a fatal fault──▶ draining ──▶ stopped
 *
 * This file wires the parts and owns the worker's life; each part owns one thing:
 *   claimer.ts   when to claim            slots.ts      slots and claiming ahead
 *   runner.ts    running and timeouts     lease/settler.ts   writing outcomes
 *   lease/worker-session.ts   the session and lease    upkeep/        periodic tasks
 *
 * Invariants: nothing of a worker throws or rejects where nobody waits for it; an outage makes it wait, a permanent
 * fault ends it with a named cause (`error` event, `stopped` rejects) after what runs has come to its end; when
 * `stopped` settles no timer, thread, listener or claim of it is left.
 * Not here: rules of a job's life (jobs/transition.ts), one attempt (attempt.ts).
 */
import { type Clock, sleep } from "../clock.ts";
import type { ContextDeps } from "./context.ts";
import type { AnyJob } from "../jobs/define-job.ts";
import { StateError } from "../errors.ts";
import type { EventLogSettings } from "../observe/event-log.ts";
import type { Emitter } from "../events.ts";
import type { ClaimedJob } from "../jobs/job.ts";
import { StepWriter } from "../workflows/step-writer.ts";
import type { Logger } from "../logger.ts";
import { endDrainsOnce } from "../limits/queue-drainer.ts";
import { workerDuties } from "../upkeep/tasks.ts";
import { Maintenance } from "../upkeep/loop.ts";
import { reapOnce } from "../lease/reaper.ts";
import { Scheduler, type TickDeps } from "../schedules/scheduler.ts";
import type { MiddlewareChain } from "./middleware.ts";
import { type Duration, durationMs } from "../values/duration.ts";
import { describeFailure } from "../jobs/failure.ts";
import { decodeJson } from "../values/json.ts";
import { checkOptions } from "../values/options.ts";
import type { Schedule } from "../schedules/define-schedule.ts";
import type { ClaimScope } from "../jobs/claim-scope.ts";
import type { Renewal } from "../lease/store.ts";
import type { Store } from "../storage/store.ts";
import type { Wake } from "../storage/wake.ts";
import { WorkerBreakers } from "./breaker-guard.ts";
import { WorkerBudgets } from "./budget-waits.ts";
import { Claimer } from "./claimer.ts";
import { LiveSettings } from "./live-settings.ts";
import { type LoopDelay, loopDelayOf } from "./loop-delay.ts";
import { Pool } from "./slots.ts";
import { HeldJobs, reconcile, unknownTokens } from "../lease/reconciler.ts";
import { type Cell, type Cells, Recorder } from "../observe/recorder.ts";
import { Report } from "./report.ts";
import { Runner } from "./runner.ts";
import { UndoAsks } from "./undo-reads.ts";
import { type Settlement, Settler } from "../lease/settler.ts";
import {
  handlersOf,
  type SettingsEnv,
  withDefaults,
  type WorkerSettings,
  workerSettings,
  type WorkOptions,
} from "./settings.ts";
import { onSignals } from "./process-signals.ts";
import { Tenancy } from "../lease/worker-session.ts";
import { pauseMs } from "../storage/patience.ts";
import { troubleOf } from "../storage/trouble.ts";

export type { WorkOptions };

/** What a worker needs of its client and of the machine. */
export interface WorkerDeps extends SettingsEnv {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly events: Emitter;
  readonly middleware: MiddlewareChain;
  readonly enqueueFor: ContextDeps["enqueueFor"];
  readonly budget: ContextDeps["budget"];
  /** What firing schedules needs; without it, this worker fires none. */
  readonly scheduling?: Pick<TickDeps, "newId" | "committed"> & {
    readonly put: (schedule: Schedule) => Promise<unknown>;
  };
  /** Limit of an output and of a progress value, in bytes of JSON. */
  readonly maxPayloadBytes: number;
  /** Where a queue does not say otherwise. */
  readonly retention: { readonly doneMs: number; readonly deadMs: number };
  /** Where its lines are kept, how long. Null: there are none. */
  readonly eventLog?: EventLogSettings | null;
  /** A job's logger that keeps what it is told. Null: nothing is kept. */
  readonly keepLog?: ContextDeps["keepLog"];
  /** What the process's workers have counted in minutes that are over. Null: nothing is counted. */
  readonly totals?: Cells | null;
  /** Unique for each start of a worker. */
  readonly workerId: string;
  /** Unique for each start of the process. */
  readonly hostId: string;
  readonly pid: number;
  readonly version: string;
  /** What runs the program, for those who look. */
  readonly runtime?: string;
  /** Which priority goes first. */
  readonly order: ClaimScope["order"];
  /** How late the event loop is, in milliseconds. Left out: measured, where the clock is the machine's. */
  readonly loopDelay?: () => number;
  /** After a worker with `signals` has stopped, by a signal or otherwise: closes the client, so that the process can end. */
  readonly onSignalled?: () => Promise<void>;
  /** Ends the process, where a handler that ignores its signal would keep it alive after that. */
  readonly exit?: () => void;
}

const graceMs = 500;
const putAgainMs = 1_000;

/**
 * Runs jobs. Made by `hf.work`.
 *
 * @example
 * const worker = hf.work([sendMail], { queues: ["mail"] });
 * await worker.ready;
 * await worker.stop();
 */
export class Worker {
  /** Unique for each start of a worker. */
  readonly id: string;
  readonly name: string;
  /** Resolves when the first session is open and the first claim has been made. Rejects if that can never be. */
  readonly ready: Promise<void>;
  /** Resolves when the worker has stopped; rejects with the cause if a fault ended it. */
  readonly stopped: Promise<void>;

  readonly #deps: WorkerDeps;
  readonly #settings: WorkerSettings;
  readonly #definitions: ReadonlyMap<string, AnyJob>;
  readonly #pools: ReadonlyMap<string, Pool>;
  readonly #claimer: Claimer;
  readonly #runner: Runner;
  readonly #settler: Settler;
  readonly #tenancy: Tenancy;
  readonly #maintenance: Maintenance;
  readonly #scheduler: Scheduler | null;
  readonly #live: LiveSettings;
  readonly #report: Report;
  readonly #recorder: Recorder | null;
  readonly #breakers: WorkerBreakers;
  readonly #budgets: WorkerBudgets;

  readonly #readiness = Promise.withResolvers<void>();
  readonly #end = Promise.withResolvers<void>();
  #stopping: Promise<void> | undefined;
  readonly #hurry = new AbortController();
  /** How many jobs it has released since it was told to stop. */
  #released = 0;
  #calmWaiters: (() => void)[] = [];
  #unlisten: (() => void) | undefined;
  #offSignals: (() => void) | undefined;
  #offAbort: (() => void) | undefined;
  #retired = false;
  readonly #loopDelay: LoopDelay;
  #overloaded = false;
  /** The highest token that a session of this worker has seen. */
  #latest = { session: -1, token: -Infinity };
  /** What ends the worker, if it is a fault. */
  #cause: { readonly error: unknown } | undefined;

  constructor(deps: WorkerDeps, definitions: readonly AnyJob[], options?: WorkOptions) {
    this.#deps = deps;
    this.#settings = workerSettings(options, deps);
    this.#definitions = withDefaults(handlersOf(definitions), this.#settings);
    this.id = deps.workerId;
    this.name = this.#settings.name;
    this.ready = this.#readiness.promise;
    this.stopped = this.#end.promise;
    // Whoever waits for them gets the rejection; where nobody waits, the `error` event has told it.
    this.ready.catch(() => undefined);
    this.stopped.catch(() => undefined);

    this.#loopDelay = loopDelayOf(deps);
    this.#pools = new Map(
      [...this.#settings.queues].map(([queue, slots]) => [queue, new Pool(queue, slots)]),
    );
    this.#report = new Report({ log: deps.log, events: deps.events, workerId: this.id });
    this.#recorder = this.#makeRecorder();
    this.#breakers = this.#makeBreakers();
    this.#budgets = this.#makeBudgets();
    this.#settler = this.#makeSettler();
    this.#runner = this.#makeRunner();
    this.#tenancy = this.#makeTenancy();
    this.#claimer = this.#makeClaimer();
    this.#live = this.#makeLiveSettings();
    this.#maintenance = this.#makeMaintenance();
    this.#scheduler = this.#makeScheduler();
    void this.#start();
  }

  /** How many attempts are running. */
  get running(): number {
    return this.#runner.running;
  }

  /** Whether it was told to stop, and takes nothing more. */
  get stopping(): boolean {
    return this.#stopping !== undefined;
  }

  /** Since when it is quiet and claims nothing, by the database's clock; null: it is not. */
  get quietAt(): Date | null {
    const { quietAt } = this.#tenancy;
    return quietAt === null ? null : new Date(quietAt);
  }

  /** Handlers that ignored their signal, were settled without it, and still run. */
  get runaways(): number {
    return this.#runner.runaways;
  }

  /** How many attempts this worker has lost to others because their lease had passed. */
  get leasesLost(): number {
    return this.#report.leasesLost;
  }

  /**
   * Resolves when nothing can be claimed, nothing runs and everything is settled (or the worker has stopped).
   * A job that is due later does not count.
   *
   * @example
   * await hf.enqueue(sendMail, { to });
   * await worker.idle();
   */
  async idle(): Promise<void> {
    while (this.#stopping === undefined) {
      if (!this.#isCalm()) await this.#calm();
      else if ((await this.#claimer.exhausted()) === 0 && this.#isCalm()) return;
    }
    await this.#stopping;
  }

  /**
   * Stops: claims nothing more, lets running jobs finish until the timeout, then aborts their signals, and gives
   * back unburnt what still runs. Leases are renewed until the end. Calling it again gives the same promise.
   *
   * @example
   * await worker.stop({ timeout: "30s" });
   */
  stop(options?: { timeout?: Duration }): Promise<void> {
    const { timeout } = checkOptions(options, ["timeout"], "worker.stop") as { timeout?: Duration };
    const timeoutMs = timeout === undefined ? this.#settings.shutdownMs : durationMs(timeout, "timeout");
    return this.#shutDown("worker.stop()", timeoutMs);
  }

  /**
   * Claims nothing more and gives back what has not started; what runs goes on. The worker stays alive, keeps its duties
   * and its schedules, and goes on with `resume`, from here or from afar (`hf.workers`). Resolves when that is so, and
   * rejects when the database could not be told: then nothing has changed.
   *
   * @example
   * await worker.quiet();
   * await worker.idle(); // what ran has ended
   * await worker.resume();
   */
  async quiet(): Promise<void> {
    await this.#tenancy.setQuiet(true);
  }

  /**
   * Ends being quiet: claims again.
   *
   * @example
   * if (worker.quietAt !== null) await worker.resume();
   */
  async resume(): Promise<void> {
    await this.#tenancy.setQuiet(false);
  }

  /** As `stop`, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /**
   * Tells a job that runs here to stop, without waiting for the database. False when it is not here.
   *
   * @internal
   */
  cancelLocal(id: string, reason: string): boolean {
    return this.#runner.cancel(id, reason);
  }

  /**
   * Stops the job before its next step, if it runs here.
   *
   * @internal
   */
  pauseLocal(id: string): void {
    this.#runner.pause(id);
  }

  /**
   * What it has counted in minutes that are not over.
   *
   * @internal
   */
  counted(): Iterable<Cell> {
    return this.#recorder?.unmerged() ?? [];
  }

  // --- life ---------------------------------------------------------------------------------------------

  async #start(): Promise<void> {
    const { store, log, events } = this.#deps;
    this.#unlisten = store.listen((wake) => this.#woken(wake));
    if (this.#settings.signals) {
      this.#offSignals = onSignals({
        first: (signal) => this.#retire(signal),
        second: (signal) => this.#leaveNow(signal),
      });
    }
    const { signal } = this.#settings;
    if (signal !== null) {
      const abort = (): void => this.#retire("abort signal");
      if (signal.aborted) return abort();
      signal.addEventListener("abort", abort, { once: true });
      this.#offAbort = () => signal.removeEventListener("abort", abort);
    }
    const kinds = [...this.#definitions.keys()];
    log.info(
      { worker: this.id, name: this.name, queues: Object.fromEntries(this.#settings.queues), kinds },
      `worker ${this.name} starts`,
    );
    await this.#tenancy.open();
    if (this.#stopping !== undefined) return;
    await this.#register();
    if (!(await this.#putSchedules())) return;
    // Before the first claim: it is put off for as long as the process is overloaded or claims fail, and schedules and upkeep need neither.
    this.#scheduler?.look();
    this.#maintenance.start(workerDuties({ ...this.#deps, reap: () => this.#reap() }));
    this.#recorder?.start();
    // Not until nothing is left to claim: beside a backlog that may take hours.
    await this.#claimer.once();
    if (this.#stopping !== undefined) return;
    this.#markRelease();
    events.emit("worker.started", { workerId: this.id, name: this.name });
    this.#readiness.resolve();
  }

  /** One value for the minute in which a worker of this build starts: charts find the first. Nothing waits for it. */
  #markRelease(): void {
    const { release } = this.#settings;
    if (release === null) return;
    const { store, clock, log } = this.#deps;
    const minute = Math.floor(clock.now() / 60_000) * 60_000;
    store.series
      .putGauges([{ minute, source: release, name: "release", value: 1 }])
      .catch((error: unknown) => {
        log.debug({ error: describeFailure(error).message }, "the release could not be marked");
      });
  }

  #shutDown(reason: string, timeoutMs: number): Promise<void> {
    this.#stopping ??= this.#leave(reason, timeoutMs);
    return this.#stopping;
  }

  /** Never rejects: `stopped` does. */
  async #leave(reason: string, timeoutMs: number): Promise<void> {
    const about = { workerId: this.id, name: this.name, reason };
    await Promise.resolve(); // so that a listener that calls `stop` meets the promise of this very call
    this.#deps.log.info(
      { worker: this.id, name: this.name, reason, running: this.#runner.running, graceMs: timeoutMs },
      `worker ${this.name} stops (${reason}): running jobs have ${timeoutMs / 1_000} s to finish`,
    );
    this.#deps.events.emit("worker.stopping", about);
    this.#runner.tellStopping("shutdown");
    try {
      await this.#drain(timeoutMs);
    } catch (error) {
      this.#fail(error, "stopping");
    }
    this.#deps.events.emit("worker.stopped", about);
    this.#deps.log.info(
      { worker: this.id, name: this.name, reason, released: this.#released },
      `worker ${this.name} has stopped; jobs released: ${this.#released}`,
    );
    const closed = new StateError("CLOSED", "The worker was stopped before it was ready.");
    this.#readiness.reject(this.#cause === undefined ? closed : this.#cause.error);
    if (this.#cause === undefined) this.#end.resolve();
    else this.#end.reject(this.#cause.error);
  }

  async #drain(timeoutMs: number): Promise<void> {
    this.#runner.drain();
    await this.#scheduler?.stop();
    await this.#claimer.stop();
    if (this.#runner.running > 0) await this.#calm(timeoutMs);
    if (this.#runner.running > 0) {
      this.#runner.stopAll({ kind: "shutdown" });
      await this.#calm(graceMs);
      this.#runner.abandonAll();
    }
    // Before outcomes are given up: a job whose outcome nobody knows any more would count as never started.
    await this.#claimer.compare();
    await this.#settleRest();
    await this.#maintenance.stop();
    await this.#recorder?.stop();
    this.#live.stop();
    this.#runner.stop();
    this.#unlisten?.();
    await this.#tenancy.close();
    this.#loopDelay.stop();
    this.#offSignals?.();
    this.#offAbort?.();
  }

  /**
   * Waits until everything is settled, for one lease at most. When the database stays away, the lease passes before
   * that and everything gathered is given up as lost; when only the settles stall, nothing else would end this.
   */
  async #settleRest(): Promise<void> {
    const { clock, log } = this.#deps;
    if (this.#isCalm()) return;
    let late = false;
    const timer = clock.after(this.#settings.leaseMs, () => {
      late = true;
      this.#tellCalm();
    });
    while (!this.#isCalm() && !late) await this.#calm();
    timer.cancel();
    if (this.#isCalm()) return;
    log.error(
      { worker: this.id, jobs: this.#settler.pending },
      "outcomes could not be written for a whole lease and are given up: their jobs run again",
    );
    // The session is closed next, which orphans what it holds: somebody else takes it over at once.
    if (this.#tenancy.session !== null) this.#settler.dropSession(this.#tenancy.session);
  }

  /** A fault that no waiting can mend: names it, and ends the worker as gracefully as it can be. */
  #fail(error: unknown, during: string): void {
    if (this.#cause !== undefined) return;
    this.#cause = { error };
    this.#deps.log.error(
      { worker: this.id, during, error: describeFailure(error).message },
      `worker ${this.name} stops: ${during} failed for good`,
    );
    this.#deps.events.emit("error", { error, during });
    // A worker that owns its process (`signals`) must not let it end as if all were well.
    if (this.#settings.signals) process.exitCode = 1;
    this.#retire(during);
  }

  /** Ends by itself. A worker that owns its process (`signals`) also lets the client go, so that the process can end. */
  #retire(reason: string): void {
    const stopped = this.#shutDown(reason, this.#settings.shutdownMs);
    if (!this.#settings.signals || this.#retired) return;
    this.#retired = true;
    void stopped.then(() => this.#letGo());
  }

  /** Nothing of ours keeps the process alive now. A handler that ignores its signal would, for as long as it likes. */
  async #letGo(): Promise<void> {
    await this.#deps.onSignalled?.();
    if (this.runaways === 0) return;
    this.#deps.log.warn(
      { worker: this.id, runaways: this.runaways },
      `the process ends although ${this.runaways} handler(s) that ignored their signal still run`,
    );
    this.#deps.exit?.();
  }

  #leaveNow(signal: string): Promise<void> {
    this.#hurry.abort();
    return this.#shutDown(signal, 0);
  }

  // --- calm ---------------------------------------------------------------------------------------------

  #isCalm(): boolean {
    return this.#runner.calm && this.#settler.pending === 0;
  }

  /** Resolves at the next change that may have brought calm, or after `timeoutMs`. The caller looks. */
  async #calm(timeoutMs?: number): Promise<void> {
    if (timeoutMs === undefined) return new Promise((resolve) => this.#calmWaiters.push(resolve));
    const until = this.#deps.clock.monotonic() + timeoutMs;
    while (this.#runner.running > 0 && !this.#hurry.signal.aborted) {
      const leftMs = until - this.#deps.clock.monotonic();
      if (leftMs <= 0) return;
      await new Promise<void>((resolve) => {
        const timer = this.#deps.clock.after(leftMs, resolve);
        this.#hurry.signal.addEventListener("abort", () => resolve(), { once: true });
        this.#calmWaiters.push(() => {
          timer.cancel();
          resolve();
        });
      });
    }
  }

  #tellCalm(): void {
    if (this.#calmWaiters.length === 0) return;
    const waiters = this.#calmWaiters;
    this.#calmWaiters = [];
    for (const wake of waiters) wake();
  }

  // --- wake-ups and live settings -----------------------------------------------------------------------

  #woken(wake: Wake): void {
    switch (wake.kind) {
      case "work":
        if (this.#pools.has(wake.queue)) {
          if (wake.from === undefined) this.#claimer.claimFor(wake.queue, wake.priority);
          else this.#claimer.claimFrom(wake.queue, wake.from);
        }
        return;
      case "cancel":
      case "stop":
      case "quiet":
        if (wake.session === this.#tenancy.session) this.#tenancy.poke();
        return;
      case "ended":
        return; // of those who wait for results
      case "settings":
        this.#breakers.forget();
        this.#budgets.forget();
        this.#live.changed();
        this.#claimer.look(); // a hold or a limit may have gone
        this.#scheduler?.look();
        return;
      case "any":
        // Reads only. A renewal here would be a write that wakes the other processes, whose renewals would wake
        // this one: two idle workers on one file would never come to rest.
        this.#budgets.mayHaveChanged();
        this.#claimer.look();
        this.#live.mayHaveChanged();
        this.#scheduler?.mayHaveChanged();
        return;
    }
  }

  #isOverloaded(): boolean {
    const delayMs = this.#loopDelay.read();
    const overloaded = delayMs > this.#settings.maxLoopDelayMs;
    if (overloaded !== this.#overloaded) {
      this.#overloaded = overloaded;
      this.#tellPaused(overloaded, "event-loop delay");
      this.#deps.log.warn(
        { worker: this.id, delayMs: Math.round(delayMs) },
        overloaded ? "overloaded: nothing is claimed until the event loop keeps up" : "no longer overloaded",
      );
    }
    if (overloaded) this.#runner.releaseBuffered("overloaded");
    return overloaded;
  }

  /** As a pause of all its queues: no slots, so nothing is claimed or started, and it goes on looking for dead sessions. */
  #hush(quiet: boolean): void {
    for (const pool of this.#pools.values()) pool.quiet = quiet;
    this.#deps.log.info(
      { worker: this.id, name: this.name },
      quiet
        ? `worker ${this.name} is quiet: nothing is claimed until it is resumed`
        : `worker ${this.name} goes on`,
    );
    this.#tellPaused(quiet, "quiet");
    if (quiet) {
      this.#runner.releaseBuffered("quiet");
      this.#runner.tellStopping("quiet");
    }
    // Its part of a total may be another now.
    else this.#live.changed();
    this.#claimer.claim();
  }

  #tellPaused(paused: boolean, reason: string): void {
    this.#deps.events.emit(paused ? "worker.paused" : "worker.resumed", {
      workerId: this.id,
      name: this.name,
      reason,
    });
  }

  /** A claim may see what is given back before we hear that it is written. */
  #sending(settlements: readonly Settlement[]): void {
    for (const { transition } of settlements) {
      const keeps = transition.move === "again" ? transition.keeps : undefined;
      if (keeps !== undefined) this.#claimer.expectFrom(keeps.queue, keeps.runAt);
    }
  }

  #settled(settlements: readonly Settlement[]): void {
    this.#report.settled(settlements);
    if (this.#stopping !== undefined)
      for (const { outcome } of settlements) if (outcome.kind === "released") this.#released += 1;
    if (this.#scheduler?.waits === true)
      for (const { job, transition } of settlements)
        if (transition.move === "end") this.#scheduler.ended(job.id);
    this.#recorder?.settled(settlements);
    const again = new Set<string>();
    let later = false;
    for (const { job, transition } of settlements) {
      // A run that stopped between two steps is due at once.
      if (transition.move === "wait" && transition.at === 0) again.add(job.queue);
      if (transition.move === "wait" || this.#claimer.emptied(job.queue)) later = true;
      if (transition.move === "end" && transition.undo === true) again.add(job.queue);
      if (transition.move !== "again") continue;
      // What keeps its due time has been told by whoever wrote it (lease/settle.ts).
      if (transition.keeps !== undefined) continue;
      if (transition.delayMs === 0) again.add(job.queue);
      else later = true;
    }
    // Somebody else may have a free slot for what this worker gave back.
    for (const queue of again) this.#deps.store.wake({ kind: "work", queue, priority: 0 });
    if (later) this.#claimer.lookSoon();
    if (this.#breakers.any) void this.#breakers.settled(settlements, (job) => decodeJson(job.input, "input"));
  }

  /**
   * Tokens of one session increase. If they do not, the database has gone back: a replica that lagged was promoted, and a job
   * that runs here may be claimed once more under the very same token. A new session tells the two apart.
   */
  #checkTokens(jobs: readonly ClaimedJob[], session: number): void {
    const before = this.#latest.session === session ? this.#latest.token : -Infinity;
    let latest = before;
    for (const { token } of jobs) {
      if (token <= before) {
        this.#tenancy.abandon(session, "the database gave a fencing token twice (a failover?)");
        return;
      }
      latest = Math.max(latest, token);
    }
    this.#latest = { session, token: latest };
  }

  /** Everything that was claimed and is not known to be settled or lost. */
  #known(): HeldJobs {
    const known = new HeldJobs(this.#runner.holding());
    for (const { token, place } of this.#settler.holding()) known.add(token, place);
    return known;
  }

  /** What a renewal says that the session holds, against what this worker knows. */
  #compare(session: number, claims: Renewal["claims"], sentAt: number): void {
    const held = new HeldJobs();
    const gone = new HeldJobs();
    for (const claim of claims) {
      for (const place of claim.held) held.add(claim.token, place);
      for (const place of claim.gone) gone.add(claim.token, place);
    }
    // A job of which the database knows nothing was lost in a failover, unless it came after the renewal was sent.
    this.#runner.loseSome(
      (job, hereSince) => job.session === session && !held.has(job) && (gone.has(job) || hereSince < sentAt),
    );
    if (claims.length > 0 && unknownTokens(claims, this.#known()).length > 0) this.#claimer.reconcile();
  }

  /** Takes over what dead sessions held; gives how many jobs. */
  async #reap(): Promise<number> {
    const { store, clock, random, log, events } = this.#deps;
    const definition = (name: string): AnyJob | undefined => this.#definitions.get(name);
    const taken = await reapOnce({ store, clock, random, log, events, definition });
    if (taken > 0) store.wake({ kind: "any" });
    return taken;
  }

  #lost(jobs: readonly ClaimedJob[]): void {
    this.#breakers.lost(jobs);
    this.#report.lost(jobs);
    this.#recorder?.lost(jobs);
  }

  // --- the parts ----------------------------------------------------------------------------------------

  #makeRecorder(): Recorder | null {
    const { store, clock, log, totals } = this.#deps;
    if (totals === undefined || totals === null) return null;
    return new Recorder({
      store,
      clock,
      log,
      totals,
      workerId: this.id,
      versionOf: (name) => this.#definitions.get(name)?.version ?? 1,
      loopDelay: () => this.#loopDelay.p99(),
      lookMs: () => this.#claimer.lookMs,
      running: () => this.#runner.running,
      slots: () => [...this.#pools.values()].reduce((sum, pool) => sum + pool.slots, 0),
    });
  }

  #makeSettler(): Settler {
    const { store, clock, random, log } = this.#deps;
    return new Settler({
      store,
      clock,
      random,
      log,
      workerId: this.id,
      onSending: (settlements) => this.#sending(settlements),
      onSettled: (settlements) => this.#settled(settlements),
      onLost: (jobs) => this.#lost(jobs),
      onFatal: (error) => this.#fail(error, "settling"),
      onFewer: () => this.#claimer.settled(),
      onEmpty: () => this.#tellCalm(),
    });
  }

  #makeRunner(): Runner {
    const { store, clock, random, log, events, middleware, enqueueFor, budget, maxPayloadBytes, hostId } =
      this.#deps;
    const { keepLog = null } = this.#deps;
    const writer = new StepWriter(store.workflows, clock, log);
    const undoAsks = new UndoAsks(store.workflows, (call, over) => writer.patiently(call, over));
    return new Runner({
      clock,
      random,
      log,
      events,
      workerId: this.id,
      pools: this.#pools,
      definitions: this.#definitions,
      settler: this.#settler,
      attempt: {
        middleware,
        maxOutputBytes: maxPayloadBytes,
        now: () => clock.now(),
        monotonic: () => clock.monotonic(),
        context: {
          store,
          log,
          keepLog,
          workerId: this.id,
          hostId,
          maxPayloadBytes,
          enqueueFor,
          budget,
          flow: { store, clock, random, writer },
        },
      },
      undoable: (id, given) => undoAsks.ask(id, given),
      releasedBefore: async (id, given) =>
        (await writer.patiently(() => store.jobs.place(id), given))?.note?.thrown === true,
      breakers: this.#breakers,
      onFatal: (error) => this.#fail(error, "asking what is to be undone"),
      onHungry: () => this.#claimer.claim(),
      onCalm: () => this.#tellCalm(),
      onLost: (jobs) => this.#lost(jobs),
    });
  }

  #makeTenancy(): Tenancy {
    const { store, clock, random, log, host, pid, version, events } = this.#deps;
    const { queues, leaseMs, beatMs, maxBlockMs } = this.#settings;
    const names = [...this.#definitions.keys()];
    return new Tenancy({
      store,
      clock,
      random,
      log,
      leaseMs,
      beatMs,
      maxBlockMs,
      info: {
        kind: "worker",
        workerId: this.id,
        name: this.name,
        host,
        pid,
        queues: Object.fromEntries(queues),
        names,
        leaseMs,
        version,
        runtime: this.#deps.runtime ?? null,
        release: this.#settings.release,
        versions: versionsOf(this.#definitions),
      },
      onOpen: () => {
        this.#claimer.forgetCursor();
        this.#live.changed();
        this.#claimer.claim();
      },
      onSecured: () => this.#claimer.claim(),
      onLost: (session, why) => {
        log.error(
          { worker: this.id, session, running: this.#runner.running },
          `the session was lost: ${why}; what it held is aborted, and a new one is opened`,
        );
        this.#breakers.sessionLost();
        this.#runner.lose(session);
        this.#settler.dropSession(session);
      },
      onWishes: (wishes) => {
        for (const { id, token, pause, reason } of wishes) {
          if (pause) this.#runner.pause(id, token);
          else this.#runner.cancel(id, reason, token);
        }
      },
      onClaims: (session, claims, sentAt) => this.#compare(session, claims, sentAt),
      onStopAsked: () => this.#retire("remote stop"),
      onQuiet: (quiet) => this.#hush(quiet),
      onDoubt: (doubtful) => {
        this.#tellPaused(doubtful, "the lease could not be renewed");
        if (!doubtful) this.#claimer.claim();
      },
      onFatal: (error, during) => this.#fail(error, during),
      onThreadError: (error) => events.emit("error", { error, during: "the renewal thread" }),
    });
  }

  #makeClaimer(): Claimer {
    const { store, clock, random, log, events } = this.#deps;
    return new Claimer({
      store,
      clock,
      random,
      log,
      workerId: this.id,
      pools: this.#pools,
      names: [...this.#definitions.keys()],
      order: this.#deps.order,
      pollMs: this.#settings.pollMs,
      breakers: this.#breakers,
      budgets: this.#budgets,
      claimable: () => (this.#live.known ? this.#tenancy.claimable : null),
      outdated: () => this.#report.outdated,
      overloaded: () => this.#isOverloaded(),
      unsettled: () => this.#settler.pending,
      onClaimed: (jobs, session) => {
        if (log.trace !== undefined) this.#report.claimed(jobs);
        this.#checkTokens(jobs, session);
        // A session that was lost while the claim was on its way took these with it.
        if (session === this.#tenancy.session) this.#runner.accept(jobs);
        else this.#lost(jobs);
        // One that was on its way when the worker became quiet: without slots nothing of it has started.
        if (this.#tenancy.quietAt !== null) this.#runner.releaseBuffered("quiet");
      },
      onLook: () => {
        log.trace?.({ worker: this.id }, "tick: looking for work");
        this.#live.looked();
      },
      reap: () => this.#reap(),
      endDrains: () => endDrainsOnce({ store, events }),
      reconcile: (session) =>
        reconcile(
          {
            store,
            clock,
            random,
            log,
            workerId: this.id,
            definitions: this.#definitions,
            known: () => this.#known(),
          },
          session,
        ),
      onFatal: (error) => this.#fail(error, "claiming"),
    });
  }

  #makeBreakers(): WorkerBreakers {
    const { store, clock, log, events } = this.#deps;
    const tell = (message: string, details: Record<string, unknown>): void => {
      log.warn({ worker: this.id, ...details }, message);
      events.emit("warning", { message, details });
    };
    return new WorkerBreakers({
      store,
      clock,
      log,
      workerId: this.id,
      definitions: this.#definitions,
      queues: [...this.#pools.keys()],
      queueRule: (queue) => this.#pools.get(queue)?.breaker ?? null,
      onOpened: ({ key, failures, openUntil, error }) =>
        tell(
          `the breaker ${key} is open after ${failures} failures in a row: ${error ?? "no error was kept"}`,
          {
            key,
            failures,
            openUntil,
          },
        ),
      onClosed: ({ key }) => log.info({ worker: this.id, key }, `the breaker ${key} is closed again`),
      idle: () => this.#settler.pending === 0,
      onChange: () => this.#claimer.claim(),
    });
  }

  #makeBudgets(): WorkerBudgets {
    const { clock, random, log, events } = this.#deps;
    const warn = (message: string, details: Record<string, unknown>): void => {
      log.warn({ worker: this.id, ...details }, message);
      events.emit("warning", { message, details });
    };
    return new WorkerBudgets({ clock, random, definitions: this.#definitions, warn });
  }

  #makeLiveSettings(): LiveSettings {
    const { store, clock, log } = this.#deps;
    return new LiveSettings({
      store,
      clock,
      log,
      pools: this.#pools,
      even: this.#settings.even,
      session: () => this.#tenancy.session,
      onFirst: () => this.#claimer.claim(),
      // What waits for a slot goes back, what runs finishes (F3).
      onFewer: (pool) => this.#runner.releaseBuffered("queue paused or scaled down", pool),
      onPaused: (pool) => this.#runner.tellStopping("paused", pool),
      onMore: () => this.#claimer.claim(),
      onFatal: (error) => this.#fail(error, "reading the queues' settings"),
    });
  }

  #makeMaintenance(): Maintenance {
    const { store, clock, random, log, events } = this.#deps;
    return new Maintenance({
      store,
      clock,
      random,
      log,
      workerId: this.id,
      onError: (error, duty) => events.emit("error", { error, during: `the duty ${duty}` }),
      onFatal: (error, duty) => this.#fail(error, `the duty ${duty}`),
    });
  }

  #makeScheduler(): Scheduler | null {
    const { store, clock, random, log, events, scheduling } = this.#deps;
    if (scheduling === undefined || this.#settings.schedules === null) return null;
    const { newId, committed } = scheduling;
    return new Scheduler({
      store,
      clock,
      random,
      log,
      events,
      newId,
      committed,
      onFatal: (error) => this.#fail(error, "firing schedules"),
    });
  }

  /** False: one of them can never be put, and the worker ends for it. */
  async #putSchedules(): Promise<boolean> {
    for (const schedule of this.#settings.schedules ?? []) {
      while (this.#stopping === undefined) {
        try {
          await this.#deps.scheduling?.put(schedule);
          break;
        } catch (error) {
          const during = `putting the schedule ${schedule.name}`;
          if (this.#stopping !== undefined) break;
          if (troubleOf(error) === "permanent") this.#fail(error, during);
          else {
            const { clock, log } = this.#deps;
            log.warn(
              { worker: this.id, error: describeFailure(error).message },
              `${during} failed; it is tried again`,
            );
            await sleep(clock, putAgainMs);
          }
        }
      }
    }
    return this.#stopping === undefined;
  }

  /**
   * Tells the database what these kinds need of an enqueue by name, again and again until it knows. Only the first try is waited
   * for: jobs need not wait for those who enqueue by name.
   */
  async #register(tries = 0): Promise<void> {
    const { store, clock, log } = this.#deps;
    const kinds = new Map(
      [...this.#definitions.values()].map(({ name, unique, lane, machine, lanes, budget }) => [
        name,
        { unique: unique !== null, lane: lane !== null, machine: (machine ?? null) !== null, lanes, budget },
      ]),
    );
    try {
      await store.kinds.register(kinds);
    } catch (error) {
      const again = troubleOf(error) !== "permanent" && this.#stopping === undefined;
      const details = { worker: this.id, tries: tries + 1, error: describeFailure(error).message };
      const message = `the kinds of jobs could not be registered${again ? "; it is tried again" : ""}: an enqueue by name is not checked for them`;
      // Not each time, or an hour without the database would fill the log.
      if (!again || (tries & (tries + 1)) === 0) log.warn(details, message);
      const next = (): void => {
        if (this.#stopping === undefined) void this.#register(tries + 1);
      };
      if (again) clock.after(pauseMs(tries), next, { unref: true });
    }
  }
}

/** Of the definitions that have one other than 1. */
function versionsOf(definitions: ReadonlyMap<string, AnyJob>): Record<string, number> {
  const all = [...definitions].map(([name, { version }]) => [name, version ?? 1] as const);
  return Object.fromEntries(all.filter(([, version]) => version !== 1));
}
