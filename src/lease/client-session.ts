/**
 * The session behind one call of `hf.lease`: what its leases share, and how they are settled.
 *
 *   open ──claim──▶ holds n jobs ──each settled or lost──▶ holds none ──▶ closed
 *                        └── a fault that no waiting mends ──▶ broken: every settle is refused with it
 *
 * Invariants: an id leaves `held` exactly once, with its settle or its loss, so the token is given back when the last
 * one has; a promise of `settle` resolves after the commit, and the session is closed by then if it was the last.
 * Not here: what callers see (lease-client.ts), gathering and trying again through an outage (settler.ts).
 */
import type { Clock, Timer } from "../clock.ts";
import type { AnyJob } from "../jobs/define-job.ts";
import { type JobError, StateError } from "../errors.ts";
import type { Emitter } from "../events.ts";
import type { ClaimedJob } from "../jobs/job.ts";
import type { Logger } from "../logger.ts";
import type { Backoff } from "../jobs/backoff.ts";
import { describeFailure } from "../jobs/failure.ts";
import { decodeJson } from "../values/json.ts";
import type { Retry } from "../storage/retry-calls.ts";
import type { Store } from "../storage/store.ts";
import type { ClaimCursor, ClaimScope } from "../jobs/claim-scope.ts";
import type { Outcome, Settlement } from "../jobs/outcome.ts";
import { decide, policyFor } from "../jobs/transition.ts";
import { HeldJobs, reconcile, unknownTokens } from "./reconciler.ts";
import { Settler } from "./settler.ts";

/** What renewing says. */
export interface LeaseRenewal {
  readonly expiresAt: Date;
  /** Why the job should stop: its cancellation was asked for. Null: carry on. */
  readonly cancel: string | null;
}

/** What leasing needs of the client. */
export interface LeaseDeps {
  readonly store: Store;
  readonly retry: Retry;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly events: Emitter;
  readonly order: ClaimScope["order"];
  readonly maxPayloadBytes: number;
  readonly newId: () => string;
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  /** A definition that this process knows, for limits that the row leaves open. */
  readonly definition: (name: string) => AnyJob | undefined;
  /** When this process looks next for claims of sessions that have ended, by the monotonic clock. One for all its calls. */
  readonly strays: { nextAt: number };
  /** Counts leases that were lost. */
  readonly onLost: () => void;
  /** `close` waits for what is being settled. */
  readonly track: (settling: Promise<unknown>) => void;
}

// A settle that is tried again is given up this long after the lease has passed here: clocks and answers may lag.
const graceMs = 1_000;

const deadlinePassed: Outcome = {
  kind: "cancelled",
  reason: "its deadline passed before it started",
  unstarted: true,
};

const lateForRate: Outcome = {
  kind: "released",
  delayMs: 0,
  reason: "its claim arrived too late for its rate",
  unstarted: true,
};

/** A job that the claim brought, ready to be handed over. */
export interface Taken {
  readonly job: ClaimedJob;
  readonly input: unknown;
  /** Where a machine stands; null for every other job. */
  readonly step: string | null;
}

interface Pending {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** What the leases of one call share. */
export class LeaseSession {
  readonly #session: number;
  readonly #workerId: string;
  readonly #forMs: number;
  readonly #deps: LeaseDeps;
  readonly #settler: Settler;
  readonly #pending = new Map<string, Pending>();
  readonly #warned = new Set<string>();
  readonly #backoffs = new Map<string, Promise<Backoff | null>>();
  /** Ids that this session may still settle. */
  #held: Map<string, ClaimedJob> = new Map();
  #broken: { readonly error: unknown } | null = null;
  #renewedAt: number;
  #expiresAt: number;
  #giveUp: Timer | null = null;
  /** It may hold jobs of a claim that was not answered to the end. Nothing more is claimed, and it is not closed, before that is known. */
  #unsure = false;

  constructor(session: number, workerId: string, forMs: number, takenAt: number, deps: LeaseDeps) {
    this.#session = session;
    this.#workerId = workerId;
    this.#forMs = forMs;
    this.#deps = deps;
    this.#renewedAt = takenAt;
    this.#expiresAt = deps.clock.now() + forMs;
    this.#settler = new Settler({
      store: deps.store,
      clock: deps.clock,
      random: deps.random,
      log: deps.log,
      workerId,
      onSettled: (settlements) => this.#settled(settlements),
      onLost: (jobs) => this.#lostAll(jobs),
      onFatal: (error) => this.#failAll(error),
      onFewer: () => undefined,
      onEmpty: () => this.#empty(),
    });
  }

  get expiresAt(): Date {
    return new Date(this.#expiresAt);
  }

  get maxPayloadBytes(): number {
    return this.#deps.maxPayloadBytes;
  }

  now(): number {
    return this.#deps.clock.now();
  }

  /** What the claim brought and could be decoded; the rest is settled. */
  async claim(scope: ClaimScope): Promise<Taken[]> {
    let claimed: ClaimedJob[];
    let steps: ReadonlyMap<string, string>;
    try {
      claimed = await this.#deps.retry.once(() => this.#claimAfresh(scope));
      steps = await this.#machineSteps(scope, claimed);
    } catch (error) {
      // Nothing of what it took is handed over: it is given back, as never started.
      this.#unsure = true;
      await this.#close();
      throw error;
    }
    this.#held = new Map(claimed.map((job) => [job.id, job]));
    if (this.#unsure) this.#compareSoon();
    this.#settler.hold(claimed);
    if (claimed.length === 0) await this.#close();
    const taken: Taken[] = [];
    const settled: Promise<void>[] = [];
    for (const job of claimed) {
      const decoded = decodedInput(job);
      if (tooLate(job)) settled.push(this.settle(job, deadlinePassed));
      else if (job.startBy !== undefined && this.#deps.clock.monotonic() > job.startBy)
        settled.push(this.settle(job, lateForRate));
      else if ("error" in decoded)
        settled.push(this.settle(job, { kind: "dead", failure: describeFailure(decoded.error) }));
      else taken.push({ job, input: decoded.input, step: steps.get(job.id) ?? job.extras?.step ?? null });
    }
    await Promise.all(settled);
    return taken;
  }

  /** A claim that is tried again begins with what the one before has taken: else both would count. */
  async #claimAfresh(scope: ClaimScope): Promise<ClaimedJob[]> {
    if (this.#unsure) await this.#compare();
    const cursor: ClaimCursor = { levels: new Map(), rescannedAt: -Infinity };
    this.#unsure = true;
    const claimed = await this.#deps.store.claims.claim(this.#session, scope, cursor);
    this.#unsure = cursor.failed !== undefined;
    return claimed;
  }

  /** A claim without names brings no machine. */
  async #machineSteps(
    scope: ClaimScope,
    claimed: readonly ClaimedJob[],
  ): Promise<ReadonlyMap<string, string>> {
    const begun = scope.names === "all" ? [] : claimed.filter((job) => job.begun).map(({ id }) => id);
    if (begun.length === 0) return new Map();
    return this.#deps.retry.repeatable(() => this.#deps.store.workflows.machineSteps(begun));
  }

  async renew(job: ClaimedJob): Promise<LeaseRenewal> {
    const sentAt = this.#deps.clock.monotonic();
    const wallAt = this.#deps.clock.now();
    const renewal = await this.#deps.retry.repeatable(() => this.#deps.store.sessions.renew(this.#session));
    if (!renewal.alive) throw this.#lost(job);
    if (unknownTokens(renewal.claims, this.#known()).length > 0) this.#compareSoon();
    this.#renewedAt = sentAt;
    this.#expiresAt = wallAt + this.#forMs;
    return {
      expiresAt: this.expiresAt,
      cancel:
        renewal.requests.find(({ id, token, pause }) => id === job.id && token === job.token && !pause)
          ?.reason ?? null,
    };
  }

  /** Resolves when the outcome is committed. */
  async settle(job: ClaimedJob, outcome: Outcome): Promise<void> {
    if (this.#pending.has(job.id)) {
      throw new StateError("ILLEGAL_MOVE", `Job ${job.id} is already being settled by this lease.`, {
        details: { job: job.id },
      });
    }
    if (this.#broken !== null) throw this.#broken.error;
    if (!this.#held.has(job.id)) throw this.#lost(job);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#pending.set(job.id, { resolve, reject });
    this.#deps.track(promise.catch(() => {}));
    const queueBackoff = needsBackoff(outcome) ? await this.#queueBackoff(job.queue) : null;
    const policy = policyFor(job, this.#deps.definition(job.name) ?? null, queueBackoff);
    const transition = decide(job, outcome, policy, {
      now: () => this.#deps.clock.now(),
      random: this.#deps.random,
    });
    this.#armGiveUp();
    const heldMs = this.#deps.clock.monotonic() - this.#renewedAt;
    this.#settler.push({ job, outcome, transition, heldMs, step: null });
    await promise;
  }

  #known(): HeldJobs {
    return new HeldJobs(this.#held.values());
  }

  /** Releases what the session holds in the database and is not known here. */
  async #compare(): Promise<void> {
    const { store, clock, random, log } = this.#deps;
    const definitions = { get: (name: string) => this.#deps.definition(name) };
    const deps = { store, clock, random, log, workerId: this.#workerId, definitions };
    await reconcile({ ...deps, known: () => this.#known() }, this.#session);
    this.#unsure = false;
  }

  /** Nobody waits for it. A comparison that fails is tried again at the next renewal, and before the session is closed. */
  #compareSoon(): void {
    this.#unsure = true;
    void this.#compare().catch(() => undefined);
  }

  #settled(settlements: readonly Settlement[]): void {
    for (const { job, transition } of settlements) {
      this.#held.delete(job.id);
      if (transition.move === "again" && transition.delayMs === 0 && transition.keeps === undefined)
        this.#deps.store.wake({ kind: "work", queue: job.queue, priority: job.priority });
    }
    const resolve = (): void => {
      for (const { job, outcome, transition, heldMs } of settlements) {
        this.#tell(job, outcome, transition, heldMs);
        this.#take(job.id)?.resolve();
      }
    };
    if (this.#held.size > 0) resolve();
    else void this.#close().then(resolve);
  }

  #tell(job: ClaimedJob, outcome: Outcome, transition: Settlement["transition"], durationMs: number): void {
    const { events } = this.#deps;
    const event = {
      id: job.id,
      name: job.name,
      queue: job.queue,
      attempt: job.attempt,
      workerId: this.#workerId,
    };
    const delayMs = transition.move === "again" ? transition.delayMs : 0;
    switch (outcome.kind) {
      case "succeeded":
        return events.emit("job.done", { ...event, durationMs });
      case "failed":
      case "dead":
        if (transition.move === "end")
          return events.emit("job.dead", { ...event, error: outcome.failure.message, durationMs });
        return events.emit("job.failed", {
          ...event,
          error: outcome.kind === "failed" ? outcome.failure.message : "",
          delayMs,
          durationMs,
        });
      case "throttled":
        return events.emit("job.throttled", { ...event, reason: outcome.reason, delayMs });
      case "released":
        return events.emit("job.released", { ...event, reason: outcome.reason, delayMs });
      case "cancelled":
        return events.emit("job.cancelled", {
          id: job.id,
          name: job.name,
          queue: job.queue,
          reason: outcome.reason,
        });
      case "lost":
      case "suspended":
      case "committed":
      case "moved":
      case "undone":
        return undefined; // never by a holder's own hand
    }
  }

  #lostAll(jobs: readonly ClaimedJob[]): void {
    for (const job of jobs) {
      this.#held.delete(job.id);
      this.#take(job.id)?.reject(this.#lost(job));
    }
    if (this.#held.size === 0) void this.#close();
  }

  #failAll(error: unknown): void {
    this.#broken = { error };
    for (const [id, { reject }] of this.#pending) {
      this.#pending.delete(id);
      reject(error);
    }
  }

  /** The error for a lease that is lost; warned about and counted the first time. */
  #lost(job: ClaimedJob): StateError {
    const { log, events, onLost } = this.#deps;
    if (!this.#warned.has(job.id)) {
      this.#warned.add(job.id);
      onLost();
      log.warn(
        { job: job.id, name: job.name, attempt: job.attempt, token: job.token },
        "a lease was lost: its holder settled too late",
      );
      events.emit("lease.lost", {
        id: job.id,
        name: job.name,
        queue: job.queue,
        attempt: job.attempt,
        workerId: this.#workerId,
        token: job.token,
      });
    }
    return new StateError(
      "LEASE_LOST",
      `Job ${job.id} (${job.name}) is no longer leased to this holder: attempt ${job.attempt} was already settled, or its lease of ${this.#forMs} ms has expired. ` +
        "Nothing was written. Take a longer lease, or renew in time.",
      { details: { job: job.id, attempt: job.attempt, token: job.token, leaseMs: this.#forMs } },
    );
  }

  #queueBackoff(queue: string): Promise<Backoff | null> {
    let backoff = this.#backoffs.get(queue);
    if (backoff === undefined) {
      backoff = this.#deps.store.queues.settings([queue]).then(
        (settings) => settings.get(queue)?.backoff ?? null,
        () => null, // the default will do: settling must not wait for a setting
      );
      this.#backoffs.set(queue, backoff);
    }
    return backoff;
  }

  // In an outage the settler tries again until somebody tells it that the session is lost.
  #armGiveUp(): void {
    this.#giveUp?.cancel();
    const leftMs = Math.max(0, this.#renewedAt + this.#forMs - this.#deps.clock.monotonic()) + graceMs;
    this.#giveUp = this.#deps.clock.after(leftMs, () => this.#settler.dropSession(this.#session), {
      unref: true,
    });
  }

  #empty(): void {
    this.#giveUp?.cancel();
    this.#giveUp = null;
  }

  #take(id: string): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    return pending;
  }

  async #close(): Promise<void> {
    try {
      // Jobs of a closed session are taken over like those of a dead holder, but a lost answer is no crash.
      if (this.#unsure) await this.#deps.retry.repeatable(() => this.#compare());
      await this.#deps.store.sessions.close(this.#session);
    } catch {
      // It ends by itself when its time has passed.
    }
  }
}

// "Start by then" is about the first start: a retry or a job whose worker died has started.
function tooLate(job: ClaimedJob): boolean {
  return job.deadlineAt !== null && job.startedAt > job.deadlineAt && !job.begun;
}

function needsBackoff(outcome: Outcome): boolean {
  return (
    (outcome.kind === "failed" && outcome.retryInMs === undefined) ||
    (outcome.kind === "throttled" && outcome.delayMs === null)
  );
}

function decodedInput(job: ClaimedJob): { input: unknown } | { error: JobError } {
  try {
    return { input: decodeJson(job.input, "input") };
  } catch (error) {
    return { error: error as JobError };
  }
}
