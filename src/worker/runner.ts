/**
 * Runs what was claimed: hands jobs to slots, starts attempts, and turns their outcomes into settlements.
 *
 *   claimed ─▶ buffered ─▶ running ─▶ settling          (each job is in exactly one of these)
 *                 │           ├─ cancel, timeout, shutdown, lost lease: its signal aborts (stops.ts)
 *                 └─ released └─ still running a moment after its timeout: settled all the same, a runaway (runaways.ts)
 *
 * Invariants: a queue's running attempts never exceed its slots; an attempt is settled at most once; a job whose
 * lease was lost is not settled at all; a claimed job that is not started is released without using an attempt.
 * Not here: when to claim (claimer.ts), one attempt (attempt.ts), what its outcome means (jobs/transition.ts), writing it
 * (lease/settler.ts), what the database is asked before (end-asks.ts).
 */
import type { Clock } from "../clock.ts";
import type { Emitter } from "../events.ts";
import type { AnyJob } from "../jobs/define-job.ts";
import type { ClaimedJob } from "../jobs/job.ts";
import type { Outcome, Settlement } from "../jobs/outcome.ts";
import { decide, mayRepeat, policyFor } from "../jobs/transition.ts";
import type { Settler } from "../lease/settler.ts";
import type { Logger } from "../logger.ts";
import { Attempt, type AttemptDeps } from "./attempt.ts";
import type { Claimer } from "./claimer.ts";
import { Deadlines } from "./ends/deadlines.ts";
import { EndAsks, type EndAsksDeps } from "./ends/end-asks.ts";
import type { Guards, Passage } from "./guards/guard.ts";
import { Quarantine } from "./guards/quarantine.ts";
import { Runaways } from "./ends/runaways.ts";
import type { Pool } from "./slots.ts";

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
  readonly asks: Omit<EndAsksDeps, "asking" | "settler" | "onAnswered">;
  readonly guards: Readonly<Guards>;
  readonly claimer: Pick<Claimer, "claim">;
  /** Nothing runs and nothing is buffered any more. */
  readonly onCalm: () => void;
}

/**
 * The attempts that run, in no order. Each knows where it stands, so that one is taken out by moving the last one to its
 * place: a map by id costs a no-op job a twentieth of its time, and only a cancel ever looks for an id.
 */
class Running implements Iterable<Attempt> {
  readonly #all: Attempt[] = [];

  get size(): number {
    return this.#all.length;
  }

  add(attempt: Attempt): void {
    attempt.slot = this.#all.length;
    this.#all.push(attempt);
  }

  remove(attempt: Attempt): void {
    const last = this.#all.pop();
    if (last === undefined || last === attempt) return;
    this.#all[attempt.slot] = last;
    last.slot = attempt.slot;
  }

  /** The attempt of a job; with a token, that very one. */
  find(id: string, token?: number): Attempt | undefined {
    return this.#all.find(({ job }) => job.id === id && (token === undefined || job.token === token));
  }

  /** Over those that are here now: one that is told to stop may end, and leave, meanwhile. */
  [Symbol.iterator](): Iterator<Attempt> {
    return this.#all.slice()[Symbol.iterator]();
  }
}

/** Runs attempts in the slots of its pools. */
export class Runner {
  readonly #deps: RunnerDeps;
  readonly #attemptDeps: AttemptDeps;
  readonly running = new Running();
  readonly #deadlines: Deadlines<Attempt>;
  /** Of jobs that wait for a slot. */
  readonly #stale: Deadlines<Pool>;
  readonly #quarantine: Quarantine;
  readonly #asks: EndAsks;
  /** Jobs of which the database is asked whether they may start, or how they end. */
  readonly asking = new Set<ClaimedJob>();
  readonly runaways: Runaways;
  #dispatching = false;
  #draining = false;

  constructor(deps: RunnerDeps) {
    this.#deps = deps;
    const { clock, settler } = deps;
    this.runaways = new Runaways(deps);
    this.#quarantine = new Quarantine(deps.random);
    this.#asks = new EndAsks({
      ...deps.asks,
      settler,
      asking: this.asking,
      onAnswered: () => this.tellIfCalm(),
    });
    this.#deadlines = new Deadlines(
      clock,
      () => this.running,
      (attempt) => this.runaways.overdue(attempt),
    );
    this.#stale = new Deadlines(
      clock,
      () => deps.pools.values(),
      (pool) => {
        for (const job of pool.takeStale(clock.monotonic()))
          this.release(job, "no slot was free within a second");
      },
    );
    this.#attemptDeps = {
      ...deps.attempt,
      onEnd: (attempt, outcome) => this.#ended(attempt, outcome),
      onUnawaited: (attempt, steps) => this.runaways.unawaited(attempt, steps),
      onRunawayEnd: (attempt) => this.runaways.ended(attempt),
    };
  }

  /** Nothing runs, waits for a slot, or waits for an answer. */
  get calm(): boolean {
    if (this.running.size > 0 || this.asking.size > 0) return false;
    for (const pool of this.#deps.pools.values()) if (pool.buffered > 0) return false;
    return true;
  }

  /** Takes what a claim brought: into slots, into the buffer, or back. */
  accept(jobs: readonly ClaimedJob[]): void {
    const { pools, settler, clock } = this.#deps;
    settler.hold(jobs);
    const now = clock.monotonic();
    const touched = new Map<Pool, boolean>();
    for (const job of jobs) {
      const pool = pools.get(job.queue);
      if (pool === undefined || pool.quiet || this.#draining) {
        this.#refuse(job, pool);
        continue;
      }
      touched.set(pool, job.crashes > 0 || touched.get(pool) === true);
      if (job.crashes === 0 || this.#admits(job, pool, now)) pool.push(job, now);
    }
    for (const [pool, crashed] of touched) {
      pool.sawSuspects(crashed);
      this.#dispatch(pool);
      if (pool.buffered > 0) this.#stale.arm(pool.deadlineAt);
    }
  }

  /** Starts nothing more: a job that a late claim still brings is released at once. */
  drain(): void {
    this.#draining = true;
  }

  /** Releases a job that has not started. */
  release(job: ClaimedJob, reason: string, delayMs = 0): void {
    this.settle(job, { kind: "released", delayMs, reason, unstarted: true }, 0);
  }

  tellIfCalm(): void {
    if (this.calm) this.#deps.onCalm();
  }

  stop(): void {
    this.#deadlines.stop();
    this.#stale.stop();
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
    if (definition === undefined) return this.release(job, "no handler"); // the store never gives one
    if (this.#isTooLate(job)) return;
    const guard = this.#deps.guards.starts;
    if (guard === null) return this.#begin(job, definition, pool);
    const passage = guard.passage(job);
    if (passage instanceof Promise) void this.#askPassage(job, definition, pool, passage);
    else this.#pass(job, definition, pool, passage);
  }

  #begin(job: ClaimedJob, definition: AnyJob, pool: Pool): void {
    const { clock, events, workerId } = this.#deps;
    const attempt = new Attempt(job, definition, this.#attemptDeps);
    const timeoutMs = job.timeoutMs ?? definition.timeoutMs;
    attempt.startedAt = clock.monotonic();
    attempt.deadlineAt = timeoutMs > 0 ? attempt.startedAt + timeoutMs : Infinity;
    pool.running += 1;
    this.running.add(attempt);
    if (attempt.deadlineAt < this.#deadlines.armedAt) this.#deadlines.arm(attempt.deadlineAt);
    if (events.has("job.started")) {
      const { id, name, queue } = job;
      events.emit("job.started", { id, name, queue, attempt: job.attempt, workerId });
    }
    attempt.start();
  }

  #ended(attempt: Attempt, outcome: Outcome): void {
    const { job } = attempt;
    const heldMs = this.#deps.clock.monotonic() - attempt.startedAt;
    this.running.remove(attempt);
    if (job.crashes > 0) this.#quarantine.ended(job);
    this.#deps.guards.starts?.ended(job, outcome);
    if (mayRepeat(job, outcome)) void this.#askReleased(attempt, outcome, heldMs);
    else this.#over(attempt, outcome, heldMs);
  }

  #over(attempt: Attempt, outcome: Outcome, heldMs: number): void {
    const { job } = attempt;
    // A lost one has been reported when it was lost, and nothing of it may be written.
    if (outcome.kind === "lost") this.#deps.settler.letGo([job]);
    else this.settle(job, outcome, heldMs, attempt);
    const pool = this.#deps.pools.get(job.queue);
    if (pool !== undefined) {
      pool.running -= 1;
      pool.learn(heldMs);
      this.#dispatch(pool);
      if (pool.hungry && !this.#draining) this.#deps.claimer.claim();
    }
    this.tellIfCalm();
  }

  /** Decides what becomes of a job, and hands it to the settler. */
  settle(claimed: ClaimedJob, outcome: Outcome, heldMs: number, attempt?: Attempt): void {
    const { definitions, pools, clock, random, settler } = this.#deps;
    // A machine's step counts its own attempts, by its own rule.
    const at = attempt?.at ?? null;
    const job = at === null ? claimed : { ...claimed, attempt: at.attempt, crashes: at.crashes };
    const definition = definitions.get(job.name) ?? null;
    const source = at === null || definition === null ? definition : { ...definition, ...at.policy };
    const policy = policyFor(job, source, pools.get(job.queue)?.backoff ?? null);
    const env = { now: () => clock.now(), random, ranMs: heldMs };
    const transition = decide(job, outcome, policy, env);
    const { maxAttempts } = policy;
    const settlement: Settlement = {
      job,
      outcome,
      transition,
      heldMs,
      maxAttempts,
      step: at === null ? null : at.step,
    };
    // Only a job that has run before, or whose handler has asked for a step, can have steps to undo.
    const mayUndo = job.begun || job.undoing || (attempt !== undefined && attempt.workflow !== null);
    if (transition.move === "end" && mayUndo) this.#asks.settle(settlement, attempt, policy, env);
    else settler.push(settlement);
  }

  /** A claim that was on its way when the worker stopped, or was made quiet. The store never gives a job of a queue that is not served. */
  #refuse(job: ClaimedJob, pool: Pool | undefined): void {
    this.release(job, this.#draining ? "shutdown" : pool === undefined ? "queue not served" : "quiet");
  }

  // --- rare ---------------------------------------------------------------------------------------------

  /** Whether a job that has crashed before may stay, see quarantine.ts. */
  #admits(job: ClaimedJob, pool: Pool, now: number): boolean {
    const refusal = this.#quarantine.refusal(job, pool.free > pool.buffered, now);
    if (refusal !== null) this.release(job, refusal.reason, refusal.delayMs);
    return refusal === null;
  }

  /** A job that may not start any more is settled without. */
  #isTooLate(job: ClaimedJob): boolean {
    if (job.deadlineAt === null && job.startBy === undefined) return false;
    // By the database's clock: `startedAt` is the claim's instant. A job that has run before did start in time.
    if (job.deadlineAt !== null && job.startedAt > job.deadlineAt && !job.begun) {
      const reason = "its deadline passed before it started";
      this.settle(job, { kind: "cancelled", reason, unstarted: true }, 0);
      return true;
    }
    // Its claim counts as a start until then: one that comes later could be one too many in a window.
    if (job.startBy === undefined || this.#deps.clock.monotonic() <= job.startBy) return false;
    this.release(job, "its claim arrived too late for its rate");
    return true;
  }

  #pass(job: ClaimedJob, definition: AnyJob, pool: Pool, passage: Passage): void {
    if (passage.go) return this.#begin(job, definition, pool);
    const { waitMs, reason } = passage;
    this.settle(job, { kind: "released", delayMs: waitMs, reason, unstarted: true, breaker: true }, 0);
  }

  /** The slot is taken while the database is asked. */
  async #askPassage(
    job: ClaimedJob,
    definition: AnyJob,
    pool: Pool,
    passage: Promise<Passage>,
  ): Promise<void> {
    pool.running += 1;
    this.asking.add(job);
    const answer = await passage;
    pool.running -= 1;
    this.asking.delete(job);
    if (this.#draining) this.release(job, "shutdown");
    else if (!answer.go || !this.#isTooLate(job)) this.#pass(job, definition, pool, answer);
    this.#dispatch(pool);
    this.tellIfCalm();
  }

  /** The slot stays taken meanwhile, or the job behind would be claimed before this one is back in its position. */
  async #askReleased(
    attempt: Attempt,
    outcome: Outcome & { readonly kind: "released" },
    heldMs: number,
  ): Promise<void> {
    this.#over(attempt, await this.#asks.released(attempt, outcome), heldMs);
  }
}
