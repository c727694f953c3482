/**
 * The parts of one worker, and who tells whom.
 *
 *   a wake-up ─▶ claimer ─jobs─▶ runner ─outcomes─▶ settler ─written─▶ report, recorder, claimer
 *                   ▲  
 *                   └── a free slot┘
 *
 * Limits that a worker keeps by itself are guards (guards/guard.ts): one line in the claimer and one in the runner, and nothing
 * for a worker without any.
 *
 * Invariant: no part knows another; each is given the calls that it makes.
 * Not here: the life of the worker (worker.ts), what a part does.
 */
import type { Clock } from "../clock.ts";
import type { Emitter } from "../events.ts";
import type { AnyJob } from "../jobs/define-job.ts";
import type { ClaimedJob } from "../jobs/job.ts";
import type { Settlement } from "../jobs/outcome.ts";
import { HeldJobs, reconcile, unknownTokens } from "../lease/reconciler.ts";
import { reapOnce } from "../lease/reaper.ts";
import { Settler } from "../lease/settler.ts";
import { WorkerSession } from "../lease/worker-session.ts";
import { endDrainsOnce } from "../limits/queue-drainer.ts";
import type { Logger } from "../logger.ts";
import type { EventLogSettings } from "../observe/event-log.ts";
import type { Cells } from "../observe/cells.ts";
import { Recorder } from "../observe/recorder.ts";
import type { Schedule } from "../schedules/define-schedule.ts";
import { Scheduler, type TickDeps } from "../schedules/scheduler.ts";
import type { Store } from "../storage/store.ts";
import type { ClaimScope } from "../jobs/claim-scope.ts";
import type { Renewal } from "../lease/store.ts";
import type { Wake } from "../storage/wake.ts";
import { Maintenance } from "../upkeep/loop.ts";
import { StepWriter } from "../workflows/step-writer.ts";
import { Claimer } from "./claimer.ts";
import type { ContextDeps } from "./context.ts";
import { Stops } from "./ends/stops.ts";
import { WorkerBreakers } from "./guards/breaker-guard.ts";
import { WorkerBudgets } from "./guards/budget-waits.ts";
import type { Guards } from "./guards/guard.ts";
import { GuardedClaims } from "./guards/guarded-claims.ts";
import { LiveSettings } from "./live-settings.ts";
import { type LoopDelay, loopDelayOf, Overload } from "./loop-delay.ts";
import type { MiddlewareChain } from "./middleware.ts";
import { Report } from "./report.ts";
import { Runner } from "./runner.ts";
import type { SettingsEnv, WorkerSettings } from "./settings.ts";
import { Pool } from "./slots.ts";

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
  /** The program's runtime, for those who look. */
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

/** The life of the worker, as its parts see it. */
export interface Life {
  /** A fault that no waiting can mend. */
  readonly fail: (error: unknown, during: string) => void;
  /** The worker is to end by itself. */
  readonly retire: (reason: string) => void;
  /** Nothing runs, or nothing waits to be written, any more. */
  readonly tellCalm: () => void;
  /** The worker's session is gone; another one is opened. */
  readonly sessionLost: (session: number) => void;
}

/** The parts of one worker. */
export class Parts {
  readonly #deps: WorkerDeps;
  readonly #settings: WorkerSettings;
  readonly #definitions: ReadonlyMap<string, AnyJob>;
  readonly #life: Life;
  readonly pools: ReadonlyMap<string, Pool>;
  readonly claimer: Claimer;
  readonly runner: Runner;
  readonly stops: Stops;
  readonly settler: Settler;
  readonly session: WorkerSession;
  readonly maintenance: Maintenance;
  readonly scheduler: Scheduler | null;
  readonly live: LiveSettings;
  readonly report: Report;
  readonly recorder: Recorder | null;
  readonly loopDelay: LoopDelay;
  readonly #overload: Overload;
  readonly #breakers: WorkerBreakers;
  readonly #budgets: WorkerBudgets;
  readonly #guards: Guards = { claims: null, starts: null };

  constructor(
    deps: WorkerDeps,
    settings: WorkerSettings,
    definitions: ReadonlyMap<string, AnyJob>,
    life: Life,
  ) {
    this.#deps = deps;
    this.#settings = settings;
    this.#definitions = definitions;
    this.#life = life;
    this.pools = new Map([...settings.queues].map(([queue, slots]) => [queue, new Pool(queue, slots)]));
    this.loopDelay = loopDelayOf(deps);
    this.#overload = new Overload(this.loopDelay, settings.maxLoopDelayMs, {
      changed: (overloaded, delayMs) => this.#overloadChanged(overloaded, delayMs),
      overloaded: () => this.stops.releaseBuffered("overloaded"),
    });
    this.report = new Report({ log: deps.log, events: deps.events, workerId: deps.workerId });
    this.recorder = this.#makeRecorder();
    this.#breakers = this.#makeBreakers();
    this.#budgets = this.#makeBudgets();
    this.#setGuards();
    this.settler = this.#makeSettler();
    this.session = this.#makeSession();
    this.live = this.#makeLiveSettings();
    this.claimer = this.#makeClaimer();
    this.runner = this.#makeRunner();
    this.stops = new Stops({
      pools: this.pools,
      runner: this.runner,
      settler: this.settler,
      onLost: (jobs) => this.#lost(jobs),
    });
    this.maintenance = this.#makeMaintenance();
    this.scheduler = this.#makeScheduler();
  }

  woken(wake: Wake): void {
    if (wake.kind === "work") this.claimer.woken(wake);
    else this.#wokenOtherwise(wake);
  }

  // --- rare ---------------------------------------------------------------------------------------------

  #wokenOtherwise(wake: Exclude<Wake, { readonly kind: "work" }>): void {
    const { claimer, session, live, scheduler } = this;
    switch (wake.kind) {
      case "cancel":
      case "stop":
      case "quiet":
        if (wake.session === session.session) session.poke();
        return;
      case "ended":
        return; // for those who wait for results
      case "settings":
        this.#breakers.forget();
        this.#budgets.forget();
        live.changed();
        claimer.look(); // a hold or a limit may have gone
        scheduler?.look();
        return;
      case "any":
        // Reads only. A renewal here would be a write that wakes the other processes, whose renewals would wake
        // this one: two idle workers on one file would never come to rest.
        this.#budgets.mayHaveChanged();
        claimer.look();
        live.mayHaveChanged();
        scheduler?.mayHaveChanged();
        return;
    }
  }

  #slotsEnded(settlements: readonly Settlement[]): void {
    for (const { job, transition } of settlements)
      if (transition.move === "end") this.scheduler?.ended(job.id);
  }

  #overloadChanged(overloaded: boolean, delayMs: number): void {
    this.#tellPaused(overloaded, "event-loop delay");
    this.#deps.log.warn(
      { worker: this.#deps.workerId, delayMs: Math.round(delayMs) },
      overloaded ? "overloaded: no job is claimed until the event-loop delay falls" : "no longer overloaded",
    );
  }

  /** As a pause of all its queues: no slots, so nothing is claimed or started, and it goes on looking for dead sessions. */
  #hush(quiet: boolean): void {
    const { log, workerId } = this.#deps;
    const { name } = this.#settings;
    for (const pool of this.pools.values()) pool.quiet = quiet;
    log.info(
      { worker: workerId, name },
      quiet ? `worker ${name} is quiet: it claims no job until it is resumed` : `worker ${name} was resumed`,
    );
    this.#tellPaused(quiet, "quiet");
    if (quiet) {
      this.stops.releaseBuffered("quiet");
      this.stops.tellStopping("quiet");
    }
    // Its part of a total may be another now.
    else this.live.changed();
    this.claimer.claim();
  }

  #tellPaused(paused: boolean, reason: string): void {
    this.#deps.events.emit(paused ? "worker.paused" : "worker.resumed", {
      workerId: this.#deps.workerId,
      name: this.#settings.name,
      reason,
    });
  }

  #sessionLost(session: number, why: string): void {
    this.#deps.log.error(
      { worker: this.#deps.workerId, session, running: this.runner.running.size },
      `the session was lost: ${why}; its jobs are aborted, and a new session is opened`,
    );
    this.#breakers.sessionLost();
    this.stops.lose(session);
    this.settler.dropSession(session);
    this.#life.sessionLost(session);
  }

  #lost(jobs: readonly ClaimedJob[]): void {
    this.#breakers.lost(jobs);
    this.report.lost(jobs);
    this.recorder?.lost(jobs);
  }

  /** Everything that was claimed and is not known to be settled or lost. */
  #known(): HeldJobs {
    const known = new HeldJobs(this.stops.holding());
    for (const { token, rowKey } of this.settler.holding()) known.add(token, rowKey);
    return known;
  }

  /** The claims of the session in the database, against what this worker knows. */
  #compare(session: number, claims: Renewal["claims"], sentAt: number): void {
    const held = new HeldJobs();
    const gone = new HeldJobs();
    for (const claim of claims) {
      for (const place of claim.held) held.add(claim.token, place);
      for (const place of claim.gone) gone.add(claim.token, place);
    }
    // A job of which the database knows nothing was lost in a failover, unless it came after the renewal was sent.
    this.stops.loseSome(
      (job, hereSince) => job.session === session && !held.has(job) && (gone.has(job) || hereSince < sentAt),
    );
    if (claims.length > 0 && unknownTokens(claims, this.#known()).length > 0) this.claimer.reconcile();
  }

  /** Takes over what dead sessions held; resolves to how many jobs. */
  async reap(): Promise<number> {
    const { store, clock, random, log, events } = this.#deps;
    const definition = (name: string): AnyJob | undefined => this.#definitions.get(name);
    const taken = await reapOnce({ store, clock, random, log, events, definition });
    if (taken > 0) store.wake({ kind: "any" });
    return taken;
  }

  /** Guards come and go with the settings of the queues. */
  #setGuards(): void {
    const breakers = this.#breakers;
    const budgets = this.#budgets;
    this.#guards.starts = breakers.any ? breakers : null;
    if (!breakers.any && !budgets.any) this.#guards.claims = null;
    else this.#guards.claims ??= this.#makeGuardedClaims();
  }

  // --- the parts ----------------------------------------------------------------------------------------

  #makeClaimer(): Claimer {
    const { store, clock, random, log, events, workerId, order } = this.#deps;
    const definitions = this.#definitions;
    return new Claimer({
      store,
      clock,
      random,
      log,
      workerId,
      order,
      pools: this.pools,
      names: [...definitions.keys()],
      pollMs: this.#settings.pollMs,
      guards: this.#guards,
      report: this.report,
      session: this.session,
      live: this.live,
      overload: this.#overload,
      settler: this.settler,
      // A session that was lost while the claim was on its way took its jobs with it.
      onClaimed: (jobs, session) =>
        this.session.holds(jobs, session) ? this.runner.accept(jobs) : this.#lost(jobs),
      reap: () => this.reap(),
      endDrains: () => endDrainsOnce({ store, events }),
      reconcile: (session) =>
        reconcile({ store, clock, random, log, workerId, definitions, known: () => this.#known() }, session),
      onFatal: (error) => this.#life.fail(error, "claiming"),
    });
  }

  #makeRunner(): Runner {
    const { store, clock, random, log, events, workerId } = this.#deps;
    const { middleware, enqueueFor, budget, maxPayloadBytes, hostId, keepLog = null } = this.#deps;
    const writer = new StepWriter(store.workflows, clock, log);
    const workflow = { store, clock, random, writer };
    return new Runner({
      clock,
      random,
      log,
      events,
      workerId,
      pools: this.pools,
      definitions: this.#definitions,
      settler: this.settler,
      guards: this.#guards,
      attempt: {
        middleware,
        maxOutputBytes: maxPayloadBytes,
        clock,
        context: { store, log, keepLog, workerId, hostId, maxPayloadBytes, enqueueFor, budget, workflow },
      },
      asks: {
        store,
        patiently: (call, over) => writer.patiently(call, over),
        onFatal: (error) => this.#life.fail(error, "reading pending compensations"),
      },
      claimer: this.claimer,
      onCalm: this.#life.tellCalm,
    });
  }

  #makeSettler(): Settler {
    const { store, clock, random, log, workerId } = this.#deps;
    return new Settler({
      store,
      clock,
      random,
      log,
      workerId,
      onSending: (settlements) => this.claimer.expect(settlements),
      onSettled: (settlements) => {
        this.report.settled(settlements);
        this.recorder?.settled(settlements);
        this.claimer.written(settlements);
        if (this.scheduler !== null && this.scheduler.awaited.size > 0) this.#slotsEnded(settlements);
        if (this.#guards.starts !== null) void this.#breakers.settled(settlements);
      },
      onLost: (jobs) => this.#lost(jobs),
      onFatal: (error) => this.#life.fail(error, "settling"),
      onFewer: () => this.claimer.settled(),
      onEmpty: this.#life.tellCalm,
    });
  }

  #makeSession(): WorkerSession {
    const { store, clock, random, log, host, pid, version, events, workerId, runtime = null } = this.#deps;
    const { name, queues, leaseMs, beatMs, maxBlockMs, release } = this.#settings;
    const { fail, retire } = this.#life;
    return new WorkerSession({
      store,
      clock,
      random,
      log,
      leaseMs,
      beatMs,
      maxBlockMs,
      info: {
        kind: "worker",
        workerId,
        name,
        host,
        pid,
        queues: Object.fromEntries(queues),
        names: [...this.#definitions.keys()],
        leaseMs,
        version,
        runtime,
        release,
        versions: versionsOf(this.#definitions),
      },
      onOpen: () => {
        this.claimer.forgetCursor();
        this.live.changed();
        this.claimer.claim();
      },
      onSecured: () => this.claimer.claim(),
      onLost: (session, why) => this.#sessionLost(session, why),
      onRequests: (requests) => {
        for (const { id, token, pause, reason } of requests) {
          if (pause) this.stops.pause(id, token);
          else this.stops.cancel(id, reason, token);
        }
      },
      onClaims: (session, claims, sentAt) => this.#compare(session, claims, sentAt),
      onStopAsked: () => retire("remote stop"),
      onQuiet: (quiet) => this.#hush(quiet),
      onDoubt: (doubtful) => {
        this.#tellPaused(doubtful, "the lease could not be renewed");
        if (!doubtful) this.claimer.claim();
      },
      onFatal: fail,
      onThreadError: (error) => events.emit("error", { error, during: "the renewal thread" }),
    });
  }

  #makeLiveSettings(): LiveSettings {
    const { store, clock, log } = this.#deps;
    return new LiveSettings({
      store,
      clock,
      log,
      pools: this.pools,
      even: this.#settings.even,
      session: () => this.session.session,
      onRead: () => this.#setGuards(),
      onFirst: () => this.claimer.claim(),
      // A job that waits for a slot is released, one that runs finishes (F3).
      onFewer: (pool) => this.stops.releaseBuffered("queue paused or scaled down", pool),
      onPaused: (pool) => this.stops.tellStopping("paused", pool),
      onMore: () => this.claimer.claim(),
      onFatal: (error) => this.#life.fail(error, "reading the queues' settings"),
    });
  }

  #makeRecorder(): Recorder | null {
    const { store, clock, log, workerId, totals } = this.#deps;
    if (totals === undefined || totals === null) return null;
    return new Recorder({
      store,
      clock,
      log,
      totals,
      workerId,
      versionOf: (name) => this.#definitions.get(name)?.version ?? 1,
      loopDelay: () => this.loopDelay.p99(),
      checkMs: () => this.claimer.checkMs,
      running: () => this.runner.running.size,
      slots: () => [...this.pools.values()].reduce((sum, pool) => sum + pool.slots, 0),
    });
  }

  #makeMaintenance(): Maintenance {
    const { store, clock, random, log, events, workerId } = this.#deps;
    return new Maintenance({
      store,
      clock,
      random,
      log,
      workerId,
      onError: (error, upkeepTask) =>
        events.emit("error", { error, during: `the upkeep task ${upkeepTask}` }),
      onFatal: (error, upkeepTask) => this.#life.fail(error, `the upkeep task ${upkeepTask}`),
    });
  }

  #makeScheduler(): Scheduler | null {
    const { store, clock, random, log, events, scheduling } = this.#deps;
    if (scheduling === undefined || this.#settings.schedules === null) return null;
    const { newId, committed } = scheduling;
    const onFatal = (error: unknown): void => this.#life.fail(error, "firing schedules");
    return new Scheduler({ store, clock, random, log, events, newId, committed, onFatal });
  }

  #makeBreakers(): WorkerBreakers {
    const { store, clock, log, workerId } = this.#deps;
    return new WorkerBreakers({
      store,
      clock,
      log,
      workerId,
      definitions: this.#definitions,
      queues: [...this.pools.keys()],
      queueRule: (queue) => this.pools.get(queue)?.breaker ?? null,
      onOpened: ({ key, failures, openUntil, error }) =>
        this.#warn(
          `the breaker ${key} is open after ${failures} failures in a row: ${error ?? "no error was recorded"}`,
          { key, failures, openUntil },
        ),
      onClosed: ({ key }) => log.info({ worker: workerId, key }, `the breaker ${key} is closed again`),
      idle: () => this.settler.pending === 0,
      onChange: () => this.claimer.claim(),
    });
  }

  #makeBudgets(): WorkerBudgets {
    const { clock, random } = this.#deps;
    const warn = (message: string, details: Record<string, unknown>): void => this.#warn(message, details);
    return new WorkerBudgets({ clock, random, definitions: this.#definitions, warn });
  }

  #makeGuardedClaims(): GuardedClaims {
    const { store, order } = this.#deps;
    const names = [...this.#definitions.keys()];
    const [breakers, budgets] = [this.#breakers, this.#budgets];
    return new GuardedClaims({ store, pools: this.pools, names, order, breakers, budgets });
  }

  #warn(message: string, details: Record<string, unknown>): void {
    this.#deps.log.warn({ worker: this.#deps.workerId, ...details }, message);
    this.#deps.events.emit("warning", { message, details });
  }
}

/** Of the definitions that have one other than 1. */
function versionsOf(definitions: ReadonlyMap<string, AnyJob>): Record<string, number> {
  const all = [...definitions].map(([name, { version }]) => [name, version ?? 1] as const);
  return Object.fromEntries(all.filter(([, version]) => version !== 1));
}
