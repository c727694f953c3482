/**
 * Claims: jobs without limits by one statement (jobs/plain-claim.ts), jobs with a lane, a limited queue or a budget by a script under locks.
 *
 *   claim ─┬─ no limits in scope: the plain claim
 *          └─ else: the plain claim, and one transaction for jobs under limits (limits/limited-claim.ts), by turns
 *   claimBudgeted: one transaction that takes a budget's tokens too (limits/budget-claim.ts)
 *   checkDue: when a claim would find something
 *
 * Invariants: the jobs of the first half of a claim are handed over, whatever becomes of the second; a queue whose limits
 * this process does not know yet is left alone by the statement itself.
 * Not here: when to claim (worker/claimer.ts).
 */
import type { Clock } from "../clock.ts";
import type { ClaimCursor, ClaimScope } from "../jobs/claim-scope.ts";
import type { ClaimedJob } from "../jobs/job.ts";
import type { JobTypes } from "../jobs/job-types.ts";
import {
  aMomentBefore,
  claimedJob,
  dueAtIn,
  isEmpty,
  knownLevels,
  movePast,
  partOf,
  PlainClaims,
  type PlainClaimsDeps,
  type PlainPeek,
  scopeParams,
  without,
} from "../jobs/plain-claim.ts";
import { flag, number, text } from "../jobs/rows.ts";
import { budgetClaim } from "../limits/budget-claim.ts";
import type { LimitedQueues } from "../limits/limited-queues.ts";
import { limitedClaim, type LimitedClaim, LIMITED } from "../limits/limited-claim.ts";
import { slowestLately } from "../limits/rules/rate-window.ts";
import type { Row } from "../storage/catalogue.ts";
import type { Driver } from "../storage/driver.ts";
import type { StoreEvents } from "../storage/store.ts";
import type { ClaimStore, DueCheck } from "./store.ts";

export interface ClaimsDeps extends PlainClaimsDeps {
  readonly limitedQueues: LimitedQueues;
  readonly warn: StoreEvents["onWarning"];
}

export class Claims extends PlainClaims implements ClaimStore {
  readonly #driver: Driver;
  readonly #clock: Clock;
  readonly #jobTypes: JobTypes;
  readonly #limitedQueues: LimitedQueues;
  readonly #warn: StoreEvents["onWarning"];
  #claimsTakeMs = 0;
  #budgetClaims = 0;
  #limitedClaims = 0;

  constructor({ driver, clock, jobTypes, limitedQueues, warn }: ClaimsDeps) {
    super({ driver, clock, jobTypes });
    this.#driver = driver;
    this.#clock = clock;
    this.#jobTypes = jobTypes;
    this.#limitedQueues = limitedQueues;
    this.#warn = warn;
  }

  async claim(session: number, scope: ClaimScope, cursor: ClaimCursor): Promise<ClaimedJob[]> {
    if (this.#limitedQueues.stale(this.#clock.monotonic())) await this.#readLimitedQueues();
    const limitedQueues = this.#limitedQueues.concern(scope);
    if (limitedQueues === null) return this.claimPlain(session, scope, cursor);
    return this.#claimBoth(session, scope, cursor, limitedQueues);
  }

  async checkDue(scope: ClaimScope, cursor?: ClaimCursor): Promise<DueCheck> {
    const now = this.#driver.now();
    const { laned, limited, ...plain } = await this.peekPlain(scope, cursor, now);
    this.#limitedQueues.learn({ laned, limited }, this.#clock.monotonic());
    return this.#limitedQueues.concern(scope) === null ? plain : this.#peekBoth(plain, scope, cursor, now);
  }

  /** Jobs with a lane or of a limited queue, and those without. */
  async #claimBoth(
    session: number,
    scope: ClaimScope,
    cursor: ClaimCursor,
    limitedQueues: { readonly laned: boolean; readonly limited: boolean },
  ): Promise<ClaimedJob[]> {
    // Who has the first choice changes with every claim, so that neither lanes nor jobs without one are kept waiting.
    cursor.lanesFirst = cursor.lanesFirst !== true;
    const askedAt = this.#clock.monotonic();
    // No jobs without a lane a moment ago, and no wake-up since: those with one are asked first, and alone if they give.
    const empty = isEmpty(cursor, this.#clock.monotonic());
    const plain = (rest: ClaimScope) => this.claimPlain(session, rest, cursor);
    const limited = (rest: ClaimScope) => this.#claimLimited(session, rest, cursor, limitedQueues);
    const [first, second] = cursor.lanesFirst || empty ? [limited, plain] : [plain, limited];
    const jobs = await first(scope);
    const rest = without(scope, jobs);
    if (rest.limit === 0 || (empty && jobs.length > 0)) return this.#answered(jobs, askedAt);
    try {
      return this.#answered(byRotations(jobs, await second(rest)), askedAt);
    } catch (error) {
      // What the first part brought is held: it must be handed over. The caller learns that the second may have taken more.
      if (jobs.length === 0) throw error;
      cursor.failed = error;
      return this.#answered(jobs, askedAt);
    }
  }

  /** Remembers how long a claim took whose jobs have a rate. */
  #answered(jobs: ClaimedJob[], askedAt: number): ClaimedJob[] {
    if (jobs.some(({ startBy }) => startBy !== undefined))
      this.#claimsTakeMs = slowestLately(this.#claimsTakeMs, this.#clock.monotonic() - askedAt);
    return jobs;
  }

  async #readLimitedQueues(): Promise<void> {
    const rows = await this.#driver.read({ name: "limitedQueues", params: {} }, "claim");
    const names = (laned: boolean) =>
      rows.filter((row) => flag(row, "laned") === laned).map((row) => text(row, "queue"));
    this.#limitedQueues.learn({ laned: names(true), limited: names(false) }, this.#clock.monotonic());
  }

  /** Jobs with a lane, and jobs of queues with limits: one transaction, see limits/limited-claim.ts. */
  async #claimLimited(
    session: number,
    scope: ClaimScope,
    cursor: ClaimCursor,
    limitedQueues: { readonly laned: boolean; readonly limited: boolean },
  ): Promise<ClaimedJob[]> {
    const sentAt = this.#clock.monotonic();
    this.#limitedClaims += 1;
    const ask = {
      ...limitedQueues,
      session,
      scope,
      now: this.#driver.now(),
      claimsTakeMs: this.#clock.system ? this.#claimsTakeMs : null,
      lanesFirst: cursor.lanesFirst !== false,
      claimNumber: this.#limitedClaims,
      cursor,
      monotonic: () => this.#clock.monotonic(),
    };
    const claim = await this.#driver.transaction("claimLimited", () => limitedClaim(ask), "claim");
    return this.#limitedJobs(claim, { session, sentAt });
  }

  claimBudgeted: ClaimStore["claimBudgeted"] = async (session, given, budget, cursor) => {
    if (this.#limitedQueues.stale(this.#clock.monotonic())) await this.#readLimitedQueues();
    const scope = { ...given, names: budget.names };
    this.#budgetClaims += 1;
    const ask = {
      budget,
      scope,
      concern: (narrowed: ClaimScope) => this.#limitedQueues.concern(narrowed),
      session,
      now: () => this.#driver.now(),
      monotonic: () => this.#clock.monotonic(),
      claimsTakeMs: this.#clock.system ? this.#claimsTakeMs : null,
      claimNumber: this.#budgetClaims,
      cursor,
    };
    const claim = await this.#driver.transaction("claimBudgeted", () => budgetClaim(ask), "claim");
    const { name, tokens } = budget;
    const startBy = claim.takenAt + claim.beginsMs;
    const when = { session, sentAt: claim.takenAt };
    const jobs = (await this.#limitedJobs(claim, when)).map((job) => ({
      ...job,
      budget: { name, tokens, at: claim.at },
      ...(this.#clock.system ? { startBy: Math.min(startBy, job.startBy ?? Infinity) } : null),
    }));
    return {
      jobs: this.#answered(jobs, claim.takenAt),
      known: claim.known,
      retryInMs: claim.retryInMs,
    };
  };

  /** What a claim under limits brought, for the worker; what it could not read is told. */
  async #limitedJobs(
    { rows, rated, broken, strays, parts }: LimitedClaim,
    { session, sentAt }: { session: number; sentAt: number },
  ): Promise<ClaimedJob[]> {
    for (const queue of broken) {
      this.#warn(
        `The limits of queue "${queue}" cannot be read, so no job is claimed from it. Set them again with hf.queues.set.`,
        { queue },
      );
    }
    if (strays > 0)
      this.#warn(`${strays} rows of "ready" had no row in "job" and could not run. They were deleted.`, {
        count: strays,
      });
    await this.learnJobTypes(rows);
    const jobs = new Map<Row, ClaimedJob>();
    for (const row of rows) {
      const jobType = this.#jobTypes.name(number(row, "job_type"));
      if (jobType === undefined) throw new TypeError(`job type ${number(row, "job_type")} is not known`);
      const job = claimedJob(row, session, jobType);
      const rate = rated.get(job.id);
      const counted =
        rate === undefined || job.counted === undefined ? null : { ...job.counted, at: rate.at };
      if (rate === undefined || counted === null) jobs.set(row, job);
      else
        jobs.set(row, {
          ...job,
          counted,
          ...(this.#clock.system ? { startBy: sentAt + rate.beginsMs } : null),
        });
    }
    for (const part of parts) {
      const taken = part.rows.flatMap((row) => jobs.get(row) ?? []);
      movePast(part.cursor, part.scope, part.rows, taken);
    }
    return [...jobs.values()];
  }

  /** At the same instant, or a job that is due by the second look would not be due by the first one's `now`. */
  async #peekBoth(
    plain: Omit<PlainPeek, "laned" | "limited">,
    scope: ClaimScope,
    cursor: ClaimCursor | undefined,
    now: number | null,
  ): Promise<DueCheck> {
    const startedMs = this.#clock.monotonic();
    const complete = plain.completeInMs === null;
    const part = cursor === undefined || complete ? undefined : partOf(cursor, LIMITED);
    const levels = part === undefined ? [] : aMomentBefore(knownLevels(scope, part));
    const params = { now, ...scopeParams(scope), levels };
    const [row] = await this.#driver.read({ name: "checkLimitedDue", params }, "claim");
    const endedMs = this.#clock.monotonic();
    if (cursor !== undefined && complete)
      Object.assign(cursor, {
        dueCheckedAt: endedMs,
        dueCheckMs: (cursor.dueCheckMs ?? 0) + endedMs - startedMs,
      });
    return { ...plain, dueAt: earliest(plain.dueAt, dueAtIn(row as Row)) };
  }
}

/** Both lists keep their order; neither waits for the end of the other. */
function byRotations(a: readonly ClaimedJob[], b: readonly ClaimedJob[]): ClaimedJob[] {
  const both: ClaimedJob[] = [];
  for (let i = 0; i < Math.max(a.length, b.length); i += 1) {
    const [x, y] = [a[i], b[i]];
    if (x !== undefined) both.push(x);
    if (y !== undefined) both.push(y);
  }
  return both;
}

function earliest(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Math.min(a, b);
}
