/**
 * The worker: claim → run → settle, in many slots, for as long as the process lives.
 *
 *   starting ──first session and claim──▶ working ──stop · a signal · a remote stop · a fatal fault──▶ draining ──▶ stopped
 *
 * This file is its public face and its life. Each part owns one thing, and wiring.ts says who tells whom:
 *   claimer.ts   when to claim            slots.ts           slots and claiming ahead
 *   runner.ts    starting and ending      lease/settler.ts   writing outcomes
 *   attempt.ts   one attempt              ends/, guards/     what few jobs meet: stops, runs, timeouts · breakers, budgets
 *   lease/worker-session.ts   the session and lease          upkeep/   periodic tasks
 *
 * Invariants: nothing of a worker throws or rejects where no caller waits for it; an outage makes it wait, a permanent
 * fault ends it with a named cause (`error` event, `stopped` rejects) after what runs has come to its end; when
 * `stopped` settles no timer, thread, listener or claim of it is left.
 * Not here: rules of a job's life (jobs/transition.ts).
 */
import { StateError } from "../errors.ts";
import { describeFailure } from "../jobs/failure.ts";
import type { AnyJob } from "../jobs/define-job.ts";
import type { Cell } from "../observe/cells.ts";
import { workerUpkeepTasks } from "../upkeep/tasks.ts";
import { type Duration, durationMs } from "../values/duration.ts";
import { checkOptions } from "../values/options.ts";
import { announceAgain, type AnnounceDeps, markRelease, putSchedules, registerNames } from "./announce.ts";
import { onSignals } from "./process-signals.ts";
import {
  handlersOf,
  withDefaults,
  type WorkerSettings,
  workerSettings,
  type WorkOptions,
} from "./settings.ts";
import { Parts, type WorkerDeps } from "./wiring.ts";

export type { WorkerDeps, WorkOptions };

const graceMs = 500;

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
  readonly #parts: Parts;

  readonly #readiness = Promise.withResolvers<void>();
  readonly #end = Promise.withResolvers<void>();
  #stopping: Promise<void> | undefined;
  /** A second signal: running jobs are not waited for. */
  readonly #hurry = new AbortController();
  /** Called at the next change that may have brought calm; each caller looks again. */
  readonly #calmWaiters: (() => void)[] = [];
  readonly #tellCalm = (): void => {
    for (const wake of this.#calmWaiters.splice(0)) wake();
  };
  /** Undone when it has stopped: its listeners. */
  readonly #listening: (() => void)[] = [];
  #retired = false;
  /** The fault that ends the worker, if one does. */
  #cause: { readonly error: unknown } | undefined;

  constructor(deps: WorkerDeps, definitions: readonly AnyJob[], options?: WorkOptions) {
    this.#deps = deps;
    this.#settings = workerSettings(options, deps);
    this.#definitions = withDefaults(handlersOf(definitions), this.#settings);
    this.id = deps.workerId;
    this.name = this.#settings.name;
    this.ready = this.#readiness.promise;
    this.stopped = this.#end.promise;
    // A caller that waits for them gets the rejection; where none waits, the `error` event has told it.
    this.ready.catch(() => undefined);
    this.stopped.catch(() => undefined);
    this.#parts = new Parts(deps, this.#settings, this.#definitions, {
      fail: (error, during) => this.#fail(error, during),
      retire: (reason) => this.#retire(reason),
      tellCalm: this.#tellCalm,
      sessionLost: (session) => void this.#announceAgain(session),
    });
    void this.#start();
  }

  /** How many attempts are running. */
  get running(): number {
    return this.#parts.runner.running.size;
  }

  /** Whether it was told to stop, and claims nothing more. */
  get stopping(): boolean {
    return this.#stopping !== undefined;
  }

  /** Since when it is quiet and claims nothing, by the database's clock; null: it is not. */
  get quietAt(): Date | null {
    const { quietAt } = this.#parts.session;
    return quietAt === null ? null : new Date(quietAt);
  }

  /** Handlers that ignored their signal, were settled without it, and still run. */
  get runaways(): number {
    return this.#parts.runner.runaways.count;
  }

  /** How many attempts this worker has lost to others because their lease had passed. */
  get leasesLost(): number {
    return this.#parts.report.leasesLost;
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
      if (!this.#isCalm()) await new Promise<void>((resolve) => this.#calmWaiters.push(resolve));
      else if ((await this.#parts.claimer.exhausted()) === 0 && this.#isCalm()) return;
    }
    await this.#stopping;
  }

  /**
   * Stops: claims nothing more, lets running jobs finish until the timeout, then aborts their signals, and releases
   * those that still run without using an attempt. Leases are renewed until the end. Calling it again gives the same promise.
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
   * Claims nothing more and releases the jobs that have not started; running ones go on. The worker stays alive, keeps its
   * upkeep and its schedules, and continues with `resume`, from here or remotely (`hf.workers`). Resolves when that is so,
   * and rejects when the database could not be told: then nothing has changed.
   *
   * @example
   * await worker.quiet();
   * await worker.idle(); // running jobs have ended
   * await worker.resume();
   */
  async quiet(): Promise<void> {
    await this.#parts.session.setQuiet(true);
  }

  /**
   * Ends being quiet: claims again.
   *
   * @example
   * if (worker.quietAt !== null) await worker.resume();
   */
  async resume(): Promise<void> {
    await this.#parts.session.setQuiet(false);
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
    return this.#parts.stops.cancel(id, reason);
  }

  /**
   * Stops the job before its next step, if it runs here.
   *
   * @internal
   */
  pauseLocal(id: string): void {
    this.#parts.stops.pause(id);
  }

  /**
   * What it has counted in minutes that are not over.
   *
   * @internal
   */
  counted(): Iterable<Cell> {
    return this.#parts.recorder?.unmerged() ?? [];
  }

  // --- start --------------------------------------------------------------------------------------------

  async #start(): Promise<void> {
    const { log, events } = this.#deps;
    const { session, scheduler, maintenance, recorder, claimer } = this.#parts;
    if (!this.#listen()) return;
    const names = [...this.#definitions.keys()];
    log.info(
      { worker: this.id, name: this.name, queues: Object.fromEntries(this.#settings.queues), names },
      `worker ${this.name} starts`,
    );
    await session.open();
    if (this.#stopping !== undefined) return;
    const announcing = this.#announcing();
    await registerNames(announcing, this.#definitions);
    if (!(await putSchedules(announcing, this.#settings.schedules ?? []))) return;
    // Before the first claim: it is put off for as long as the process is overloaded or claims fail, and schedules and upkeep need neither.
    scheduler?.look();
    maintenance.start(workerUpkeepTasks({ ...this.#deps, reap: () => this.#parts.reap() }));
    recorder?.start();
    // Not until nothing is left to claim: beside a backlog that may take hours.
    await claimer.once();
    if (this.stopping) return;
    if (this.#settings.release !== null) markRelease(this.#deps, this.#settings.release);
    events.emit("worker.started", { workerId: this.id, name: this.name });
    this.#readiness.resolve();
  }

  #announcing(): AnnounceDeps {
    return {
      ...this.#deps,
      stopping: () => this.stopping,
      fail: (error, during) => this.#fail(error, during),
    };
  }

  async #announceAgain(lostSession: number): Promise<void> {
    const { schedules } = this.#settings;
    if (await announceAgain(this.#announcing(), this.#definitions, schedules ?? [], lostSession))
      this.#parts.scheduler?.look();
  }

  /** To wake-ups, to signals of the process, and to the caller's abort signal. False: that has aborted already. */
  #listen(): boolean {
    const { signal, signals } = this.#settings;
    this.#listening.push(this.#deps.store.listen((wake) => this.#parts.woken(wake)));
    if (signals)
      this.#listening.push(
        onSignals({ first: (name) => this.#retire(name), second: (name) => this.#leaveNow(name) }),
      );
    if (signal === null) return true;
    const abort = (): void => this.#retire("abort signal");
    if (signal.aborted) {
      abort();
      return false;
    }
    signal.addEventListener("abort", abort, { once: true });
    this.#listening.push(() => signal.removeEventListener("abort", abort));
    return true;
  }

  // --- stop ---------------------------------------------------------------------------------------------

  #shutDown(reason: string, timeoutMs: number): Promise<void> {
    this.#stopping ??= this.#leave(reason, timeoutMs);
    return this.#stopping;
  }

  /** Never rejects: `stopped` does. */
  async #leave(reason: string, timeoutMs: number): Promise<void> {
    const { log, events } = this.#deps;
    const { runner, stops, report } = this.#parts;
    const about = { workerId: this.id, name: this.name, reason };
    await Promise.resolve(); // so that a listener that calls `stop` meets the promise of this very call
    const releasedBefore = report.released;
    log.info(
      { worker: this.id, name: this.name, reason, running: runner.running.size, graceMs: timeoutMs },
      `worker ${this.name} stops (${reason}): running jobs have ${timeoutMs / 1_000} s to finish`,
    );
    events.emit("worker.stopping", about);
    stops.tellStopping("shutdown");
    try {
      await this.#drain(timeoutMs);
    } catch (error) {
      this.#fail(error, "stopping");
    }
    events.emit("worker.stopped", about);
    const released = report.released - releasedBefore;
    log.info(
      { worker: this.id, name: this.name, reason, released },
      `worker ${this.name} has stopped; jobs released: ${released}`,
    );
    const closed = new StateError("CLOSED", "The worker was stopped before it was ready.");
    this.#readiness.reject(this.#cause === undefined ? closed : this.#cause.error);
    if (this.#cause === undefined) this.#end.resolve();
    else this.#end.reject(this.#cause.error);
  }

  async #drain(timeoutMs: number): Promise<void> {
    const { stops, runner, claimer, scheduler, maintenance, recorder, live, session, loopDelay } =
      this.#parts;
    stops.drain();
    await scheduler?.stop();
    await claimer.stop();
    if (this.running > 0) await this.#finish(timeoutMs);
    if (this.running > 0) {
      stops.stopAll({ kind: "shutdown" });
      await this.#finish(graceMs);
      stops.abandonAll();
    }
    // Before outcomes are given up: a job whose outcome nobody knows any more would count as never started.
    await claimer.compare();
    await this.#settleRest();
    await maintenance.stop();
    await recorder?.stop();
    live.stop();
    runner.stop();
    const [unlistenStore, ...others] = this.#listening;
    unlistenStore?.();
    await session.close();
    loopDelay.stop();
    for (const unlisten of others) unlisten();
  }

  /**
   * Waits until everything is settled, for one lease at most. When the database stays away, the lease passes before
   * that and everything gathered is given up as lost; when only the settles stall, nothing else would end this.
   */
  async #settleRest(): Promise<void> {
    const { clock, log } = this.#deps;
    const { settler, session } = this.#parts;
    if (this.#isCalm()) return;
    let late = false;
    const timer = clock.after(this.#settings.leaseMs, () => {
      late = true;
      this.#tellCalm();
    });
    while (!this.#isCalm() && !late) await new Promise<void>((resolve) => this.#calmWaiters.push(resolve));
    timer.cancel();
    if (this.#isCalm()) return;
    log.error(
      { worker: this.id, jobs: settler.pending },
      "outcomes could not be written for a whole lease and are dropped; their jobs run again",
    );
    // The session is closed next, which orphans what it holds: another worker takes it over at once.
    if (session.session !== null) settler.dropSession(session.session);
  }

  /** A fault that no waiting can mend: names it, and ends the worker as gracefully as it can be. */
  #fail(error: unknown, during: string): void {
    if (this.#cause !== undefined) return;
    this.#cause = { error };
    this.#deps.log.error(
      { worker: this.id, during, error: describeFailure(error).message },
      `worker ${this.name} stops: ${during} failed permanently`,
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

  /** Nothing of the worker keeps the process alive now. A handler that ignores its signal would, for as long as it runs. */
  async #letGo(): Promise<void> {
    await this.#deps.onSignalled?.();
    if (this.runaways === 0) return;
    this.#deps.log.warn(
      { worker: this.id, runaways: this.runaways },
      `the process ends although ${this.runaways} handler(s) that ignored their signal still run`,
    );
    this.#deps.exit?.();
  }

  /** The second signal. */
  #leaveNow(signal: string): Promise<void> {
    this.#hurry.abort();
    return this.#shutDown(signal, 0);
  }

  // --- calm ---------------------------------------------------------------------------------------------

  #isCalm(): boolean {
    return this.#parts.runner.calm && this.#parts.settler.pending === 0;
  }

  /** Resolves when nothing runs any more, at the second signal, or after `timeoutMs`. */
  async #finish(timeoutMs: number): Promise<void> {
    const until = this.#deps.clock.monotonic() + timeoutMs;
    while (this.running > 0 && !this.#hurry.signal.aborted) {
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
}
