/**
 * Claiming: jobs without limits by one statement, jobs with a lane, a limited queue or a budget by a script under locks.
 *
 *   claim ─┬─ plain: where the last claim got to (cursor) ─ nothing there ─▶ look back: every level in scope
 *          └─ gated: one transaction (limits/limited-claim.ts)            by turns, so that neither keeps the other waiting
 *   claimBudgeted: one transaction that takes a budget's tokens too (limits/budget-claim.ts)
 *   peek: when a claim would find something
 *
 * Invariants: what the first half of a claim brought is handed over, whatever becomes of the second; a queue whose limits
 * this process does not know yet is left alone by the statement itself.
 * Not here: what to claim and when (worker/claimer.ts), which levels a claim looks at (jobs/claim-cursor.ts).
 */
import type { Clock } from "../clock.ts";
import { type ClaimedJob, WAITING_AT } from "../jobs/job.ts";
import { slowestLately } from "../limits/rules/rate-window.ts";
import type { ClaimCursor, ClaimScope } from "../jobs/claim-cursor.ts";
import type { ClaimStore, Peek } from "./store.ts";
import type { StoreEvents } from "../storage/store.ts";
import { budgetClaim } from "../limits/budget-claim.ts";
import type { Call, Row } from "../storage/catalogue.ts";
import {
  claimedJobs,
  aMomentBefore,
  asksOf,
  completeInMs,
  isBarren,
  knownLevels,
  movePast,
  partOf,
  scopeParams,
  unknownLines,
  without,
} from "../jobs/claim-cursor.ts";
import type { Driver } from "../storage/driver.ts";
import type { Gates } from "../limits/gates.ts";
import { gatedClaim, type GatedClaim, LIMITED } from "../limits/limited-claim.ts";
import type { Lines } from "../jobs/job-types.ts";
import { claimedJob, flag, maybeNumber, maybeText, number, text } from "../jobs/rows.ts";

export interface ClaimsDeps {
  readonly driver: Driver;
  readonly clock: Clock;
  readonly lines: Lines;
  readonly gates: Gates;
  readonly warn: StoreEvents["onWarning"];
}

export class Claims implements ClaimStore {
  readonly #driver: Driver;
  readonly #clock: Clock;
  readonly #lines: Lines;
  readonly #gates: Gates;
  readonly #warn: StoreEvents["onWarning"];
  #claimsTakeMs = 0;
  #budgetTurn = 0;
  #gatedTurn = 0;

  constructor({ driver, clock, lines, gates, warn }: ClaimsDeps) {
    this.#driver = driver;
    this.#clock = clock;
    this.#lines = lines;
    this.#gates = gates;
    this.#warn = warn;
  }

  async claim(session: number, scope: ClaimScope, cursor: ClaimCursor): Promise<ClaimedJob[]> {
    if (this.#gates.stale(this.#clock.monotonic())) await this.#readGates();
    const gates = this.#gates.concern(scope);
    if (gates === null) return this.#claimPlain(session, scope, cursor);
    // Who has the first choice changes with every claim, so that neither lanes nor jobs without one are kept waiting.
    cursor.lanesFirst = cursor.lanesFirst !== true;
    const askedAt = this.#clock.monotonic();
    // No jobs without a lane a moment ago, and no wake-up since: those with one are asked first, and alone if they give.
    const barren = isBarren(cursor, this.#clock.monotonic());
    const plain = (rest: ClaimScope) => this.#claimPlain(session, rest, cursor);
    const gated = (rest: ClaimScope) => this.#claimGated(session, rest, cursor, gates);
    const [first, second] = cursor.lanesFirst || barren ? [gated, plain] : [plain, gated];
    const jobs = await first(scope);
    const rest = without(scope, jobs);
    if (rest.limit === 0 || (barren && jobs.length > 0)) return this.#answered(jobs, askedAt);
    try {
      return this.#answered(byTurns(jobs, await second(rest)), askedAt);
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

  async #readGates(): Promise<void> {
    const rows = await this.#driver.read({ name: "gates", params: {} }, "claim");
    const names = (laned: boolean) =>
      rows.filter((row) => flag(row, "laned") === laned).map((row) => text(row, "queue"));
    this.#gates.learn({ laned: names(true), limited: names(false) }, this.#clock.monotonic());
  }

  /** Jobs with a lane, and jobs of queues with limits: one transaction, see limits/limited-claim.ts. */
  async #claimGated(
    session: number,
    scope: ClaimScope,
    cursor: ClaimCursor,
    gates: { readonly laned: boolean; readonly limited: boolean },
  ): Promise<ClaimedJob[]> {
    const sentAt = this.#clock.monotonic();
    this.#gatedTurn += 1;
    const ask = {
      ...gates,
      session,
      scope,
      now: this.#driver.now(),
      claimsTakeMs: this.#clock.system ? this.#claimsTakeMs : null,
      lanesFirst: cursor.lanesFirst !== false,
      turn: this.#gatedTurn,
      cursor,
      monotonic: () => this.#clock.monotonic(),
    };
    const claim = await this.#driver.transaction("claimLimited", () => gatedClaim(ask), "claim");
    return this.#limitedJobs(claim, { session, sentAt });
  }

  claimBudgeted: ClaimStore["claimBudgeted"] = async (session, given, budget, cursor) => {
    if (this.#gates.stale(this.#clock.monotonic())) await this.#readGates();
    const scope = { ...given, names: budget.names };
    this.#budgetTurn += 1;
    const ask = {
      budget,
      scope,
      concern: (narrowed: ClaimScope) => this.#gates.concern(narrowed),
      session,
      now: () => this.#driver.now(),
      monotonic: () => this.#clock.monotonic(),
      claimsTakeMs: this.#clock.system ? this.#claimsTakeMs : null,
      turn: this.#budgetTurn,
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
    { rows, rated, broken, strays, parts }: GatedClaim,
    { session, sentAt }: { session: number; sentAt: number },
  ): Promise<ClaimedJob[]> {
    for (const queue of broken) {
      this.#warn(
        `The limits of queue "${queue}" cannot be read: nothing is claimed from it. Set them again with hf.queues.set.`,
        { queue },
      );
    }
    if (strays > 0)
      this.#warn(
        `${strays} rows of "ready" had no row in "job", so that nothing could run: they were deleted.`,
        {
          count: strays,
        },
      );
    const unknown = unknownLines(rows, this.#lines);
    if (unknown.length > 0)
      this.#lines.learn(await this.#driver.read({ name: "namesOfLines", params: { ids: unknown } }, "claim"));
    const jobs = new Map<Row, ClaimedJob>();
    for (const row of rows) {
      const line = this.#lines.name(number(row, "line"));
      if (line === undefined) throw new TypeError(`line ${number(row, "line")} is not known`);
      const job = claimedJob(row, session, line);
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

  async #claimPlain(session: number, scope: ClaimScope, cursor: ClaimCursor): Promise<ClaimedJob[]> {
    const { queues, names, direction } = scopeParams(scope);
    if (queues.length === 0) return [];
    const now = this.#driver.now();
    const asks = asksOf(scope, cursor, () => this.#clock.monotonic());
    let ask = asks.next();
    while (ask.done !== true) {
      const { levels, onward } = ask.value;
      const [level] = levels;
      const call: Call<"claim" | "claimLevel"> =
        onward && levels.length === 1
          ? { name: "claimLevel", params: { now, session, ...level } }
          : { name: "claim", params: { now, session, names, direction, queues: ask.value.queues, levels } };
      ask = asks.next(await this.#driver.write(call, "claim"));
    }
    return this.#handOver(ask.value, session, scope, cursor);
  }

  async #handOver(
    rows: Row[],
    session: number,
    scope: ClaimScope,
    cursor: ClaimCursor,
  ): Promise<ClaimedJob[]> {
    const unknown = unknownLines(rows, this.#lines);
    if (unknown.length > 0)
      this.#lines.learn(await this.#driver.read({ name: "namesOfLines", params: { ids: unknown } }, "claim"));
    return claimedJobs(rows, session, scope, cursor, this.#lines);
  }

  async peek(scope: ClaimScope, cursor?: ClaimCursor): Promise<Peek> {
    const { queues, names, direction } = scopeParams(scope);
    // With the claims: a look that hangs for longer than a claim may would keep the worker from claiming.
    const { channel, message } = this.#driver.proof() ?? { channel: null, message: null };
    const startedMs = this.#clock.monotonic();
    const leftMs = completeInMs(cursor?.peekedAt ?? -Infinity, cursor?.peekMs ?? 0, startedMs);
    const levelsOf = (known: ClaimCursor | undefined) =>
      known === undefined || leftMs === 0 ? [] : aMomentBefore(knownLevels(scope, known));
    const ask = { now: this.#driver.now(), queues, names, direction };
    const call: Call = { name: "peek", params: { ...ask, levels: levelsOf(cursor), channel, message } };
    const [row] = await this.#driver.read(call, "claim");
    const queuesOf = (column: string) => JSON.parse(text(row as Row, column)) as string[];
    this.#gates.learn({ laned: queuesOf("laned"), limited: queuesOf("limited") }, this.#clock.monotonic());
    let gatedAt: number | null = null;
    if (this.#gates.concern(scope) !== null) {
      const levels = levelsOf(cursor && partOf(cursor, LIMITED));
      const [gated] = await this.#driver.read({ name: "peekGated", params: { ...ask, levels } }, "claim");
      gatedAt = maybeNumber(gated as Row, "due_at");
    }
    const endedMs = this.#clock.monotonic();
    if (cursor !== undefined && leftMs === 0)
      Object.assign(cursor, { peekedAt: endedMs, peekMs: endedMs - startedMs });
    const dueAt = earliest(maybeNumber(row as Row, "due_at"), gatedAt);
    return {
      now: number(row as Row, "now"),
      dueAt: dueAt === null || dueAt >= WAITING_AT ? null : dueAt,
      expiresAt: maybeNumber(row as Row, "expires_at"),
      completeInMs: leftMs === 0 ? null : leftMs,
      draining: maybeText(row as Row, "draining") === null ? [] : queuesOf("draining"),
    };
  }
}

/** Both lists keep their order; neither waits for the end of the other. */
function byTurns(a: readonly ClaimedJob[], b: readonly ClaimedJob[]): ClaimedJob[] {
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
