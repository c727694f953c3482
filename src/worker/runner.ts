/**
 * Runs what was claimed: hands jobs to slots, watches their time, and turns outcomes into settlements.
 *
 *   claimed ─▶ buffered ─▶ running ─▶ settling          (each job is in exactly one of these)
 *                 │           ├─ cancel, timeout, shutdown, lost lease: its signal aborts
 *                 └─ released └─ still running a moment after its timeout: settled all the same, a runaway
 *
 * Invariants: a queue's running attempts never exceed its slots; an attempt is settled at most once; a job whose
 * lease was lost is not settled at all; what was claimed and is not started is given back unburnt.
 * Not here: when to claim (claimer.ts), writing (lease/settler.ts), one attempt (attempt.ts).
 */
import { Attempt, type AttemptDeps, type StopCause, type StoppingReason } from "./attempt.ts";
import type { Clock, Timer } from "../clock.ts";
import type { AnyJob } from "../jobs/define-job.ts";
import type { Emitter } from "../events.ts";
import type { ClaimedJob } from "../jobs/job.ts";
import type { Logger } from "../logger.ts";
import {
  decide,
  mayRepeat,
  type Outcome,
  policyFor,
  type Transition,
  triedToUndo,
} from "../jobs/transition.ts";
import { decodeJson } from "../values/json.ts";
import type { Passage, WorkerBreakers } from "./breaker-guard.ts";
import { Deadlines } from "./deadlines.ts";
import type { Pool } from "./slots.ts";
import { Running } from "./running.ts";
import type { Settler } from "../lease/settler.ts";
import { troubleOf } from "../storage/trouble.ts";

export interface RunnerDeps {
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly events: Pick<Emitter, "emit" | "has">;
  readonly workerId: string;
  readonly pools: ReadonlyMap<string, Pool>;
  readonly definitions: ReadonlyMap<string, AnyJob>;
  readonly settler: Pick<Settler, "push" | "hold" | "letGo">;
  readonly attempt: Omit<AttemptDeps, "onEnd" | "onUnawaited" | "onRunawayEnd">;
  /** Whether the database has steps of a run that are to be undone; asked until it answers, or `given` up. */
  readonly undoable?: (id: string, given: () => boolean) => Promise<"undo" | "undoing" | undefined>;
  /** Whether the run of this job before this one ended with a `Release` without a delay. Left out: taken for true. */
  readonly releasedBefore?: (id: string, given: () => boolean) => Promise<boolean>;
  /** Whether a breaker lets a job run. */
  readonly breakers?: Pick<WorkerBreakers, "any" | "passage" | "ended">;
  /** The database says for good that it cannot be asked what is to be undone. */
  readonly onFatal?: (error: unknown) => void;
  /** A pool could take more than it has. */
  readonly onHungry: () => void;
  /** Nothing runs and nothing is buffered any more. */
  readonly onCalm: () => void;
  /** These are not ours any more. */
  readonly onLost: (jobs: readonly ClaimedJob[]) => void;
}

const staleMs = 1_000;
// "Settled as failed within 1 s after the timeout": half of it for the handler, the rest for the settle.
const abandonMs = 500;
// How long a job that has killed two workers runs before another such job may start beside it, see `#admits`.
const quarantineMs = 5_000;

/** Runs attempts in the slots of its pools. */
export class Runner {
  readonly #deps: RunnerDeps;
  readonly #attemptDeps: AttemptDeps;
  readonly #running = new Running<Attempt>();
  readonly #deadlines: Deadlines<Attempt>;
  #staleTimer: Timer | undefined;
  #dispatching = false;
  #draining = false;
  #runaways = 0;
  /** Jobs of which the database is asked whether their breaker may be tried, or whether there is something to undo. */
  readonly #asking = new Set<ClaimedJob>();
  /** Names of definitions that were warned about for a step that nobody awaited. */
  readonly #forgetful = new Set<string>();
  #suspectAt = -Infinity;
  #suspect: string | undefined;

  constructor(deps: RunnerDeps) {
    this.#deps = deps;
    this.#attemptDeps = {
      ...deps.attempt,
      onEnd: (attempt, outcome) => this.#ended(attempt, outcome),
      onUnawaited: (attempt, steps) => this.#unawaited(attempt, steps),
      onRunawayEnd: (attempt) => this.#runawayEnded(attempt),
    };
    this.#deadlines = new Deadlines(
      deps.clock,
      () => this.#running,
      (attempt) => this.#overdue(attempt),
    );
  }

  /** How many attempts are running. */
  get running(): number {
    return this.#running.size;
  }

  /** Handlers that went on after they had been settled, and still do. */
  get runaways(): number {
    return this.#runaways;
  }

  get calm(): boolean {
    if (this.#running.size > 0 || this.#asking.size > 0) return false;
    for (const pool of this.#deps.pools.values()) if (pool.buffered > 0) return false;
    return true;
  }

  /** Takes what a claim brought: into slots, into the buffer, or back. */
  accept(jobs: readonly ClaimedJob[]): void {
    const { pools, settler, clock } = this.#deps;
    settler.hold(jobs);
    if (this.#draining) {
      for (const job of jobs) this.#release(job, "shutdown");
      return;
    }
    const now = clock.monotonic();
    const suspects = new Set<Pool>();
    const touched = new Set<Pool>();
    for (const job of jobs) {
      const pool = pools.get(job.queue);
      if (pool === undefined) {
        this.#release(job, "queue not served"); // the store never gives one
        continue;
      }
      touched.add(pool);
      if (job.crashes > 0) {
        suspects.add(pool);
        if (!this.#admits(job, pool, now)) continue;
      }
      pool.push(job, now);
    }
    for (const pool of touched) {
      pool.sawSuspects(suspects.has(pool));
      this.#dispatch(pool);
    }
    this.#watchStale();
  }

  /**
   * Whether a job that has crashed before may stay. It is never held ahead of need: if its neighbour takes the
   * process down, that would count as one more crash of its own. And of those that have crashed twice or more, only
   * one at a time is started within a few seconds: the one that did it then goes down without the others, instead
   * of all of them being counted up to dead together (C8). Short, so that long jobs are not kept waiting for
   * each other: a poison job usually kills soon.
   */
  #admits(job: ClaimedJob, pool: Pool, now: number): boolean {
    if (pool.free <= pool.buffered) {
      this.#release(job, "it has crashed before, and no slot is free");
      return false;
    }
    if (job.crashes < 2) return true;
    const other =
      this.#suspect !== undefined && this.#suspect !== job.id && now - this.#suspectAt < quarantineMs;
    if (other) {
      this.#release(
        job,
        "it has crashed before, and so has another that was just started",
        50 + this.#deps.random() * 150,
      );
      return false;
    }
    this.#suspect = job.id;
    this.#suspectAt = now;
    return true;
  }

  /** Starts what can start, everywhere. */
  dispatch(): void {
    for (const pool of this.#deps.pools.values()) this.#dispatch(pool);
  }

  /** Gives back what waits for a slot: of one queue, or of all. */
  releaseBuffered(reason: string, pool?: Pool): void {
    for (const each of pool === undefined ? this.#deps.pools.values() : [pool]) {
      for (const job of each.takeAll()) this.#release(job, reason);
    }
    this.#tellIfCalm();
  }

  /** Starts nothing more; what a late claim still brings goes back at once. */
  drain(): void {
    this.#draining = true;
    this.releaseBuffered("shutdown");
  }

  /** Tells a job to stop, if it is here. With a token, only that very attempt. */
  cancel(id: string, reason: string, token?: number): boolean {
    const attempt = this.#running.find(id, token);
    if (attempt !== undefined) {
      attempt.stop({ kind: "cancelled", reason });
      return true;
    }
    for (const pool of this.#deps.pools.values()) {
      const [job] = pool.takeSome((held) => isHeld(held, id, token));
      if (job === undefined) continue;
      // What is to undo its steps ends by itself once it has.
      if (job.undoing) this.#release(job, "cancelled once more");
      else this.#settle(job, { kind: "cancelled", reason, unstarted: true }, 0);
      this.#tellIfCalm();
      return true;
    }
    return false;
  }

  /** Tells a job to stop where it can go on later, if it is here: a run before its next step. */
  pause(id: string, token?: number): void {
    const attempt = this.#running.find(id, token);
    if (attempt !== undefined) {
      attempt.pause();
      return;
    }
    for (const pool of this.#deps.pools.values()) {
      const [job] = pool.takeSome((held) => isHeld(held, id, token));
      if (job === undefined) continue;
      this.#release(job, "paused");
      this.#tellIfCalm();
      return;
    }
  }

  /** Everything held under this session is lost: handlers are told, nothing of it is written. */
  lose(session: number): void {
    const lost: ClaimedJob[] = [];
    for (const pool of this.#deps.pools.values()) for (const job of pool.takeAll()) lost.push(job);
    for (const attempt of this.#running) {
      if (attempt.job.session !== session || attempt.stopCause?.kind === "lost") continue;
      lost.push(attempt.job);
      attempt.stop({ kind: "lost" });
    }
    if (lost.length > 0) this.#deps.onLost(lost);
    this.#tellIfCalm();
  }

  /** Every job that is here and not yet handed to the settler. */
  *holding(): Iterable<ClaimedJob> {
    for (const pool of this.#deps.pools.values()) yield* pool.waiting();
    for (const { job } of this.#running) yield job;
    yield* this.#asking;
  }

  /**
   * Jobs that were taken away: handlers are told, what waits for a slot never starts, and the others go on. `gone` judges a job
   * by the instant from which it was surely here, by the monotonic clock.
   */
  loseSome(gone: (job: ClaimedJob, hereSince: number) => boolean): void {
    const lost: ClaimedJob[] = [];
    for (const pool of this.#deps.pools.values()) if (pool.buffered > 0) lost.push(...pool.takeSome(gone));
    this.#deps.settler.letGo(lost);
    for (const attempt of this.#running) {
      // The handler's own transaction has ended its job: it is not held any more because it is done (attempt.ts asks the row).
      if (attempt.committed) continue;
      if (attempt.stopCause?.kind === "lost" || !gone(attempt.job, attempt.startedAt)) continue;
      lost.push(attempt.job);
      attempt.stop({ kind: "lost" });
    }
    if (lost.length > 0) this.#deps.onLost(lost);
    this.#tellIfCalm();
  }

  /** Aborts `ctx.stopping` of running attempts, of one queue or of all. They go on. */
  tellStopping(reason: StoppingReason, pool?: Pool): void {
    for (const attempt of this.#running)
      if (pool === undefined || attempt.job.queue === pool.queue) attempt.tellStopping(reason);
  }

  /** Tells every running attempt to stop. */
  stopAll(cause: StopCause): void {
    for (const attempt of this.#running) attempt.stop(cause);
  }

  /** Ends every running attempt now, whatever its handler does. */
  abandonAll(): void {
    for (const attempt of Array.from(this.#running)) this.#abandon(attempt);
  }

  stop(): void {
    this.#deadlines.stop();
    this.#staleTimer?.cancel();
  }

  // --- one job ------------------------------------------------------------------------------------------

  // A loop and a flag instead of recursion: handlers that return at once would otherwise nest a thousand deep.
  #dispatch(pool: Pool): void {
    if (this.#dispatching) return;
    this.#dispatching = true;
    try {
      for (let job = pool.take(); job !== undefined; job = pool.take()) this.#start(job, pool);
    } finally {
      this.#dispatching = false;
    }
  }

  #start(job: ClaimedJob, pool: Pool): void {
    const definition = this.#deps.definitions.get(job.name);
    if (definition === undefined) {
      this.#release(job, "no handler"); // the store never gives one
      return;
    }
    // By the database's clock: `startedAt` is the claim's instant. A job that has run before did start in time.
    if (job.deadlineAt !== null && job.startedAt > job.deadlineAt && !job.begun) {
      this.#settle(
        job,
        { kind: "cancelled", reason: "its deadline passed before it started", unstarted: true },
        0,
      );
      return;
    }
    if (this.#isLate(job)) {
      this.#release(job, "its claim arrived too late for its rate");
      return;
    }
    const { breakers } = this.#deps;
    if (breakers === undefined || !breakers.any) return this.#begin(job, definition, pool);
    const passage = breakers.passage(job, () => decodeJson(job.input, "input"));
    if (!(passage instanceof Promise)) return this.#pass(job, definition, pool, passage);
    // The slot is taken while the database is asked.
    pool.running += 1;
    this.#asking.add(job);
    void passage.then((answer) => {
      pool.running -= 1;
      this.#asking.delete(job);
      if (this.#draining) this.#release(job, "shutdown");
      else if (answer.go && this.#isLate(job)) this.#release(job, "its claim arrived too late for its rate");
      else this.#pass(job, definition, pool, answer);
      this.#dispatch(pool);
      this.#tellIfCalm();
    });
  }

  /** Its claim counts as a start until then: one that comes later could be one too many in a window. */
  #isLate(job: ClaimedJob): boolean {
    return job.startBy !== undefined && this.#deps.clock.monotonic() > job.startBy;
  }

  #pass(job: ClaimedJob, definition: AnyJob, pool: Pool, passage: Passage): void {
    if (passage.go) return this.#begin(job, definition, pool);
    this.#settle(
      job,
      { kind: "released", delayMs: passage.waitMs, reason: passage.reason, unstarted: true, breaker: true },
      0,
    );
  }

  #begin(job: ClaimedJob, definition: AnyJob, pool: Pool): void {
    const attempt = new Attempt(job, definition, this.#attemptDeps);
    const timeoutMs = job.timeoutMs ?? definition.timeoutMs;
    attempt.startedAt = this.#deps.clock.monotonic();
    attempt.deadlineAt = timeoutMs > 0 ? attempt.startedAt + timeoutMs : Infinity;
    pool.running += 1;
    this.#running.add(attempt);
    this.#deadlines.announce(attempt.deadlineAt);
    if (this.#deps.events.has("job.started")) {
      this.#deps.events.emit("job.started", {
        id: job.id,
        name: job.name,
        queue: job.queue,
        attempt: job.attempt,
        workerId: this.#deps.workerId,
      });
    }
    attempt.start();
  }

  #ended(attempt: Attempt, outcome: Outcome): void {
    const { job } = attempt;
    const heldMs = this.#deps.clock.monotonic() - attempt.startedAt;
    this.#running.remove(attempt);
    if (this.#suspect === job.id) this.#suspect = undefined;
    if (this.#deps.breakers?.any === true)
      this.#deps.breakers.ended(job, outcome, () => decodeJson(job.input, "input"));
    if (mayRepeat(job, outcome)) void this.#released(attempt, outcome, heldMs);
    else this.#over(attempt, outcome, heldMs);
  }

  /**
   * The claim does not say how the run before this one ended, because few jobs need it: the database is asked. The slot stays
   * taken meanwhile, or the job behind would be claimed before this one is back in its position.
   */
  async #released(attempt: Attempt, outcome: Outcome & { kind: "released" }, heldMs: number): Promise<void> {
    const { job } = attempt;
    this.#asking.add(job);
    let repeated = true;
    try {
      const lost = (): boolean => attempt.stopCause?.kind === "lost";
      repeated = (await this.#deps.releasedBefore?.(job.id, lost)) ?? true;
    } catch {
      // The database says no for good, and will say so of the settle.
    }
    this.#asking.delete(job);
    this.#over(attempt, repeated ? { ...outcome, repeated } : outcome, heldMs);
  }

  #over(attempt: Attempt, outcome: Outcome, heldMs: number): void {
    const { job } = attempt;
    // A lost one has been reported when it was lost, and nothing of it may be written.
    if (outcome.kind === "lost") this.#deps.settler.letGo([job]);
    else this.#settle(job, outcome, heldMs, attempt);
    const pool = this.#deps.pools.get(job.queue);
    if (pool !== undefined) {
      pool.running -= 1;
      pool.learn(heldMs);
      this.#dispatch(pool);
      if (pool.hungry && !this.#draining) this.#deps.onHungry();
    }
    this.#tellIfCalm();
  }

  #overdue(attempt: Attempt): void {
    const { clock, definitions } = this.#deps;
    const { job } = attempt;
    const timeoutMs = job.timeoutMs ?? definitions.get(job.name)?.timeoutMs ?? 0;
    const timeoutAt = attempt.startedAt + timeoutMs;
    if (attempt.deadlineAt > timeoutAt) {
      this.#abandon(attempt);
      return;
    }
    attempt.deadlineAt = clock.monotonic() + abandonMs;
    attempt.stop({ kind: "timeout", timeoutMs });
  }

  #abandon(attempt: Attempt): void {
    // Counted before its end is told: what listens to that may ask.
    this.#runaways += 1;
    if (!attempt.abandon()) {
      this.#runaways -= 1;
      return;
    }
    const { id, name, queue } = attempt.job;
    const details = {
      job: id,
      name,
      queue,
      attempt: attempt.job.attempt,
      cause: attempt.stopCause?.kind,
      runaways: this.#runaways,
    };
    const message = "a handler ignored its signal and still runs; its job was settled and its slot freed";
    this.#deps.log.warn(details, message);
    this.#deps.events.emit("warning", { message, details });
  }

  #unawaited({ job }: Attempt, steps: readonly string[]): void {
    if (this.#forgetful.has(job.name)) return;
    this.#forgetful.add(job.name);
    const details = { job: job.id, name: job.name, queue: job.queue, steps };
    const message =
      "a handler returned while one of its steps was running, so the step is not recorded; await every ctx.step";
    this.#deps.log.warn(details, message);
    this.#deps.events.emit("warning", { message, details });
  }

  #runawayEnded(attempt: Attempt): void {
    this.#runaways -= 1;
    this.#deps.log.info(
      { job: attempt.job.id, name: attempt.job.name, runaways: this.#runaways },
      "a handler that had ignored its signal has ended",
    );
  }

  #release(job: ClaimedJob, reason: string, delayMs = 0): void {
    this.#settle(job, { kind: "released", delayMs, reason, unstarted: true }, 0);
  }

  #settle(claimed: ClaimedJob, outcome: Outcome, heldMs: number, attempt?: Attempt): void {
    const { definitions, pools, clock, random, settler } = this.#deps;
    // A machine's step counts its own attempts, by its own rule.
    const at = attempt?.at ?? null;
    const job = at === null ? claimed : { ...claimed, attempt: at.attempt, crashes: at.crashes };
    const definition = definitions.get(job.name) ?? null;
    const source = at === null || definition === null ? definition : { ...definition, ...at.policy };
    const policy = policyFor(job, source, pools.get(job.queue)?.backoff ?? null);
    const env = { now: () => clock.now(), random, ranMs: heldMs };
    const decided = decide(job, outcome, policy, env);
    const step = at?.step ?? null;
    const { maxAttempts } = policy;
    const push = (undo: "undo" | "undoing" | undefined): void => {
      let transition = decided;
      let told = outcome;
      if (decided.move === "end" && undo === "undo") transition = { ...decided, undo: true };
      if (decided.move === "end" && undo === "undoing") {
        transition = triedToUndo(job, decided, policy, env);
        // A handler that returned before its first step has not done the job.
        if (outcome.kind === "succeeded") told = notYetUndone;
      }
      settler.push({ job, outcome: told, transition, heldMs, maxAttempts, step });
    };
    const undo = this.#mustUndo(job, decided, attempt);
    if (undo === undefined) settler.push({ job, outcome, transition: decided, heldMs, maxAttempts, step });
    else if (undo === "ask") void this.#askUndo(job, attempt, push);
    else push(undo);
  }

  /** Whether steps of it are to be undone before it ends as decided, or were to be and have not been. */
  #mustUndo(
    job: ClaimedJob,
    transition: Transition,
    attempt: Attempt | undefined,
  ): "undo" | "undoing" | "ask" | undefined {
    const flow = attempt?.flow ?? null;
    if (transition.move !== "end" || transition.undo === false) return undefined;
    if (flow?.loaded === true)
      return transition.state !== "done" && flow.undoable && !flow.undoing ? "undo" : undefined;
    // It ended before it had asked for anything: this run was to undo steps, or an earlier one, in whichever process, may have done some.
    if (job.undoing) return "undoing";
    return transition.state !== "done" && job.begun && this.#deps.undoable !== undefined ? "ask" : undefined;
  }

  async #askUndo(
    job: ClaimedJob,
    attempt: Attempt | undefined,
    push: (undo: "undo" | "undoing" | undefined) => void,
  ): Promise<void> {
    this.#asking.add(job);
    const lost = (): boolean => attempt?.stopCause?.kind === "lost";
    try {
      push(await this.#deps.undoable?.(job.id, lost));
    } catch (error) {
      // Whether something is to be undone is not known, so nothing is settled: whoever takes the job over asks again.
      this.#deps.settler.letGo([job]);
      if (!lost() && troubleOf(error) === "permanent") this.#deps.onFatal?.(error);
    } finally {
      this.#asking.delete(job);
      this.#tellIfCalm();
    }
  }

  /** One timer for everything that is buffered. */
  #watchStale(): void {
    if (this.#staleTimer !== undefined) return;
    const { clock, pools } = this.#deps;
    let oldest: number | undefined;
    for (const { oldestClaimedAt } of pools.values()) {
      if (oldestClaimedAt !== undefined && (oldest === undefined || oldestClaimedAt < oldest))
        oldest = oldestClaimedAt;
    }
    if (oldest === undefined) return;
    this.#staleTimer = clock.after(oldest + staleMs - clock.monotonic(), () => {
      this.#staleTimer = undefined;
      const before = clock.monotonic() - staleMs;
      for (const pool of pools.values())
        for (const job of pool.takeStale(before)) this.#release(job, "no slot was free within a second");
      this.#watchStale();
    });
  }

  #tellIfCalm(): void {
    if (this.calm) this.#deps.onCalm();
  }
}

const notYetUndone: Outcome = { kind: "released", delayMs: 0, reason: "its steps are not compensated yet" };

function isHeld(job: ClaimedJob, id: string, token: number | undefined): boolean {
  return job.id === id && (token === undefined || job.token === token);
}
