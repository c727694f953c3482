/**
 * `hf.lease`: the low-level way to work. The caller takes leases and settles each one by itself.
 *
 *   hf.lease ─▶ held ──renew──▶ held ──done | fail | dead | throttle | release──▶ settled
 *                 └── the time passes ──▶ lost: any later claim or lease may take the job over
 *
 * Each call has a session of its own, which ends with its last lease; renewing one lease renews those of the same
 * call. Nothing is renewed behind the caller's back.
 *
 * Invariants: settling names the fence (id, token, living session), so at most one holder can do it, once; a holder
 * that is too late changes nothing, is told with LEASE_LOST, warned about once, and counted. A settle has
 * committed when its promise resolves: it is tried again through an outage until it is written or lost.
 * Not here: the fence and the settle (client-session.ts), what an outcome makes of a job (jobs/transition.ts).
 */
import { isDead, isRelease, isRetryAfter, isThrottled } from "../jobs/decision.ts";
import { shown, UsageError } from "../errors.ts";
import type { ClaimedJob } from "../jobs/job.ts";
import { type LeaseDeps, type LeaseRenewal, LeaseSession } from "./client-session.ts";
import { reapOnce } from "./reaper.ts";
import { type Duration, durationMs } from "../values/duration.ts";
import { describeFailure } from "../jobs/failure.ts";
import { encodeJson } from "../values/json.ts";
import { checkName } from "../values/name.ts";
import { checkInteger, checkOptions } from "../values/options.ts";
import type { ClaimScope } from "../jobs/claim-scope.ts";
import type { SessionInfo } from "./store.ts";
import type { Outcome } from "../jobs/outcome.ts";
import { DEFAULT_ATTEMPTS } from "../jobs/transition.ts";

export type { LeaseDeps, LeaseRenewal };

/**
 * What `hf.lease` takes.
 *
 * @example
 * const leases = await hf.lease({ queues: ["mail"], limit: 10, for: "60s" });
 */
export interface LeaseOptions {
  /** Default: every queue. */
  readonly queues?: readonly string[] | undefined;
  /**
   * Default: every plain job. Machines, and jobs that have recorded steps, are leased only by name: settling one ends it where
   * it stands. A job whose handler uses steps but that has not begun yet looks like a plain job, as does a machine that was enqueued
   * by name or by raw SQL before any worker had its definition.
   */
  readonly names?: readonly string[] | undefined;
  /** 1 to 1,000; default 1. */
  readonly limit?: number | undefined;
  /** How long the leases last unless they are renewed; default "30s". */
  readonly for?: Duration | undefined;
}

const outputCodes = { notJson: "OUTPUT_NOT_JSON", tooLarge: "OUTPUT_TOO_LARGE" } as const;
// As often as workers' upkeep task for it (upkeep/tasks.ts): where programs only lease, no worker runs.
const straysMs = 40_000;

/** Takes up to `limit` leases in claim order. */
export async function lease(options: LeaseOptions | undefined, deps: LeaseDeps): Promise<Lease[]> {
  const { scope, forMs } = checkLeaseOptions(options, deps.order);
  const { store, retry } = deps;
  const seen = await retry.repeatable(() => store.claims.checkDue(scope));
  const orphaned = seen.expiresAt !== null && seen.expiresAt <= seen.now;
  const taken = orphaned || (await areStrays(deps)) ? await reapOnce(deps) : 0;
  // An empty look opens no session: polling an empty queue writes nothing.
  if (!orphaned && taken === 0 && (seen.dueAt === null || seen.dueAt > seen.now)) return [];
  const takenAt = deps.clock.monotonic();
  const info = sessionInfo(scope, forMs, deps);
  const session = await retry.repeatable(() => store.sessions.open(info));
  const holder = new LeaseSession(session, info.workerId, forMs, takenAt, deps);
  const claimed = await holder.claim(scope);
  return claimed.map(({ job, input, step }) => {
    const maxAttempts = job.maxAttempts ?? deps.definition(job.name)?.attempts ?? DEFAULT_ATTEMPTS;
    return new Lease(job, input, step, maxAttempts, holder);
  });
}

/** Whether there are claims that committed after their session was closed: the look before does not see them. */
async function areStrays({ store, retry, clock, strays }: LeaseDeps): Promise<boolean> {
  if (clock.monotonic() < strays.nextAt) return false;
  strays.nextAt = clock.monotonic() + straysMs;
  return (await retry.repeatable(() => store.upkeep.over())).sessions;
}

/**
 * A caller's right to settle one attempt of one job.
 *
 * @example
 * for (const lease of await hf.lease({ queues: ["mail"], for: "60s" })) {
 *   try { await lease.done(await send(lease.input)); } catch (error) { await lease.fail(error); }
 * }
 */
export class Lease<Input = unknown> {
  readonly id: string;
  readonly name: string;
  readonly queue: string;
  readonly priority: number;
  readonly input: Input;
  /** The step at which a machine stands; null for every other job. */
  readonly step: string | null;
  /** 1 in the first run. */
  readonly attempt: number;
  readonly maxAttempts: number;
  /** The fencing token: it strictly increases from holder to holder. */
  readonly token: number;
  readonly context: string | null;
  readonly lane: string | null;
  readonly #job: ClaimedJob;
  readonly #session: LeaseSession;

  /** @internal */
  constructor(
    job: ClaimedJob,
    input: Input,
    step: string | null,
    maxAttempts: number,
    session: LeaseSession,
  ) {
    this.id = job.id;
    this.name = job.name;
    this.queue = job.queue;
    this.priority = job.priority;
    this.input = input;
    this.step = step;
    this.attempt = job.attempt;
    this.maxAttempts = maxAttempts;
    this.token = job.token;
    this.context = job.context;
    this.lane = job.lane;
    this.#job = job;
    this.#session = session;
  }

  /** Until when the lease lasts unless it is renewed. */
  get expiresAt(): Date {
    return this.#session.expiresAt;
  }

  /**
   * Makes the lease last for its time again, from now; with it all leases of the same call.
   *
   * @throws StateError LEASE_LOST: an expired lease is never revived
   * @example
   * const { cancel } = await lease.renew();
   */
  renew(): Promise<LeaseRenewal> {
    return this.#session.renew(this.#job);
  }

  /**
   * The job is done.
   *
   * @throws StateError LEASE_LOST
   * @throws JobError OUTPUT_NOT_JSON, OUTPUT_TOO_LARGE: nothing was written, the lease is still held
   * @example
   * await lease.done({ sent: true });
   */
  async done(output?: unknown): Promise<void> {
    const text =
      output === undefined ? null : encodeJson(output, "output", this.#session.maxPayloadBytes, outputCodes);
    await this.#session.settle(this.#job, { kind: "succeeded", output: text });
  }

  /**
   * The attempt failed: the job runs again after its backoff, or is dead when its attempts are used up. A decision
   * (`Dead`, `RetryAfter`, `Throttled`, `Release`) does what it does when a handler throws it.
   *
   * @throws StateError LEASE_LOST
   * @example
   * await lease.fail(error);
   */
  async fail(error: unknown): Promise<void> {
    await this.#session.settle(this.#job, outcomeOf(error, this.#session.now()));
  }

  /**
   * The job is dead now, whatever attempts are left.
   *
   * @throws StateError LEASE_LOST
   * @example
   * await lease.dead("the mailbox no longer exists");
   */
  async dead(reason: string): Promise<void> {
    await this.#session.settle(this.#job, {
      kind: "dead",
      failure: { ...describeFailure(checkReason(reason, "dead")), stack: null },
    });
  }

  /**
   * Not now: the attempt is given back; without `after` the backoff says when.
   *
   * @throws StateError LEASE_LOST
   * @example
   * await lease.throttle("30s");
   */
  async throttle(after?: Duration): Promise<void> {
    await this.#session.settle(this.#job, {
      kind: "throttled",
      delayMs: after === undefined ? null : durationMs(after, "throttle's delay"),
      reason: "throttled",
    });
  }

  /**
   * Gives the attempt back because the job was not at fault; ready at once, or after `delay`.
   *
   * @throws StateError LEASE_LOST
   * @example
   * await lease.release({ delay: "1m" });
   */
  async release(options?: { readonly delay?: Duration | undefined }): Promise<void> {
    const { delay } = checkOptions(options, ["delay"], "release") as { delay?: Duration };
    await this.#session.settle(this.#job, {
      kind: "released",
      delayMs: delay === undefined ? 0 : durationMs(delay, "delay"),
      reason: null,
    });
  }
}

function outcomeOf(error: unknown, now: number): Outcome {
  const failure = describeFailure(error);
  if (isDead(error)) return { kind: "dead", failure };
  if (isRetryAfter(error)) return { kind: "failed", failure, retryInMs: error.delayFrom(now) };
  if (isThrottled(error)) return { kind: "throttled", delayMs: error.retryAfterMs, reason: error.reason };
  if (isRelease(error))
    return { kind: "released", delayMs: error.delayMs, reason: error.reason, thrown: true };
  return { kind: "failed", failure };
}

function checkReason(reason: unknown, what: string): string {
  if (typeof reason === "string" && reason !== "") return reason;
  throw new UsageError("BAD_OPTION", `${what} takes a reason (a string); got ${shown(reason)}.`);
}

function checkLeaseOptions(
  options: LeaseOptions | undefined,
  order: ClaimScope["order"],
): { scope: ClaimScope; forMs: number } {
  const given = checkOptions(options, ["queues", "names", "limit", "for"], "lease") as LeaseOptions;
  const forMs = durationMs(given.for ?? "30s", "for");
  if (forMs < 1)
    throw new UsageError("BAD_LEASE", "for must be longer than 0.", { details: { option: "for" } });
  const limit = given.limit === undefined ? 1 : checkInteger(given.limit, "limit", { min: 1, max: 1_000 });
  const queues = given.queues === undefined ? "all" : checkNames(given.queues, "queues");
  const names = given.names === undefined ? "all" : checkNames(given.names, "names");
  return { scope: { queues, names, limit, order }, forMs };
}

function checkNames(names: unknown, what: string): string[] {
  if (!Array.isArray(names) || names.length === 0) {
    throw new UsageError(
      "BAD_OPTION",
      `${what} must be an array of at least one name; omit it for all. Got ${shown(names)}.`,
      { details: { option: what } },
    );
  }
  return [...new Set(names.map((name) => checkName(name, what)))];
}

function sessionInfo(scope: ClaimScope, forMs: number, deps: LeaseDeps): SessionInfo {
  const shared: readonly string[] = Array.isArray(scope.queues) ? scope.queues : [];
  const queues = Object.fromEntries(shared.map((queue) => [queue, scope.limit]));
  const names = scope.names === "all" ? [] : scope.names;
  const { host, pid, version } = deps;
  return {
    kind: "lease",
    workerId: `lease-${deps.newId()}`,
    name: "lease",
    host,
    pid,
    queues,
    names,
    leaseMs: forMs,
    version,
  };
}
