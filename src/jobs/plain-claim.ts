/**
 * The plain claim: jobs without limits, by one statement that takes them level by level.
 *
 * A level is one (job type, rank): its jobs stand in the index in the order (run_at, place). A claim walks the levels of its scope in
 * order, as many as it needs. One that starts at the cursor steps over the index entries of jobs that are gone, which Postgres
 * cannot remove while anybody holds an old snapshot (a prototype of this shape kept a fifth of its rate without the cursor, and all
 * of it with):
 *
 *   known levels, each from where the last claim got to ··· the edge, the last rank that was claimed from ──▶ all behind it
 *
 * A cursor could hide an insert that committed late, a level that is new, or a row that a crashed claimer released. They are found by
 * the look back: once a second at the most, at once when a claim comes back empty. Where looks back have become costly, most of
 * them only go back a second in the known levels, and to all others.
 * Not here: limits (lease/claim.ts), when to claim (worker/claimer.ts).
 */
import type { Clock } from "../clock.ts";
import type { Call, Row, RowList } from "../storage/catalogue.ts";
import type { Driver } from "../storage/driver.ts";
import type { ClaimCursor, ClaimLevel, ClaimScope } from "./claim-scope.ts";
import { type ClaimedJob, type Counted, WAITING_AT } from "./job.ts";
import type { JobTypes } from "./job-types.ts";
import { rowKeyIn } from "./page-cursor.ts";
import { context, extras, flag, json, maybeNumber, maybeText, number, text } from "./rows.ts";

const RESCAN_MS = 1_000;
/** Inserts commit so much later than they were due, at most, to be found by every look back. */
export const LATE_MS = 1_000;
/** Levels that a look at everything leaves known. */
const MOST_KEPT = 8;
/** Levels that are known, the latest: each costs a claim of several levels one probe. */
const MOST_KNOWN = 32;
/** Looks at everything may take this share of the time, at most. */
const RESCAN_SHARE = 20;
/** Before every rank that a job can have. */
const FIRST_RANK = -2_147_483_649;

/** What a look at the levels of a scope found. All instants are epoch milliseconds of the database's clock. */
export interface PlainPeek {
  readonly now: number;
  readonly dueAt: number | null;
  readonly expiresAt: number | null;
  readonly completeInMs: number | null;
  readonly draining: readonly string[];
  /** Queues with lanes, and queues with limits, anywhere. */
  readonly laned: readonly string[];
  readonly limited: readonly string[];
}

export interface PlainClaimsDeps {
  readonly driver: Driver;
  readonly clock: Clock;
  readonly jobTypes: JobTypes;
}

/** Claims of jobs without limits. */
export class PlainClaims {
  readonly #driver: Driver;
  readonly #clock: Clock;
  readonly #jobTypes: JobTypes;

  constructor({ driver, clock, jobTypes }: PlainClaimsDeps) {
    this.#driver = driver;
    this.#clock = clock;
    this.#jobTypes = jobTypes;
  }

  protected async claimPlain(session: number, scope: ClaimScope, cursor: ClaimCursor): Promise<ClaimedJob[]> {
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
    await this.learnJobTypes(ask.value);
    return claimedJobs(ask.value, session, scope, cursor, this.#jobTypes);
  }

  /** The names of job types that this process has not met yet. */
  protected async learnJobTypes(rows: readonly Row[]): Promise<void> {
    if (rows.every((row) => this.#jobTypes.name(number(row, "job_type")) !== undefined)) return;
    const ids = unknownJobTypes(rows, this.#jobTypes);
    this.#jobTypes.learn(await this.#driver.read({ name: "jobTypesById", params: { ids } }, "claim"));
  }

  protected async peekPlain(
    scope: ClaimScope,
    cursor: ClaimCursor | undefined,
    now: number | null,
  ): Promise<PlainPeek> {
    const { queues, names, direction } = scopeParams(scope);
    const { channel, message } = this.#driver.proof() ?? { channel: null, message: null };
    const startedMs = this.#clock.monotonic();
    const leftMs = completeInMs(cursor?.dueCheckedAt ?? -Infinity, cursor?.dueCheckMs ?? 0, startedMs);
    const levels = cursor === undefined || leftMs === 0 ? [] : aMomentBefore(knownLevels(scope, cursor));
    const params = { now, queues, names, direction, levels, channel, message };
    // With the claims: a look that hangs for longer than a claim may would keep the worker from claiming.
    const [found] = await this.#driver.read({ name: "checkDue", params }, "claim");
    const row = found as Row;
    const endedMs = this.#clock.monotonic();
    if (cursor !== undefined && leftMs === 0)
      Object.assign(cursor, { dueCheckedAt: endedMs, dueCheckMs: endedMs - startedMs });
    return {
      now: number(row, "now"),
      dueAt: dueAtIn(row),
      expiresAt: maybeNumber(row, "expires_at"),
      completeInMs: leftMs === 0 ? null : leftMs,
      draining: namesIn(row, "draining"),
      laned: namesIn(row, "laned"),
      limited: namesIn(row, "limited"),
    };
  }
}

/** Null: nothing is due at a known time. */
export function dueAtIn(row: Row): number | null {
  const dueAt = maybeNumber(row, "due_at");
  return dueAt === null || dueAt >= WAITING_AT ? null : dueAt;
}

function namesIn(row: Row, column: string): string[] {
  return row[column] === null ? [] : (JSON.parse(text(row, column)) as string[]);
}

function isLimits(queues: ClaimScope["queues"]): queues is ReadonlyMap<string, number> {
  return typeof queues === "object" && "get" in queues;
}

function isList(queues: ClaimScope["queues"]): queues is readonly string[] {
  return Array.isArray(queues);
}

/** What is left of a scope after these were claimed from it. */
export function without(scope: ClaimScope, jobs: readonly ClaimedJob[]): ClaimScope {
  if (jobs.length === 0) return scope;
  const less = (limits: ReadonlyMap<string, number>): Map<string, number> => {
    const left = new Map(limits);
    for (const { queue } of jobs)
      if (left.has(queue)) left.set(queue, Math.max(0, (left.get(queue) ?? 0) - 1));
    return left;
  };
  return {
    ...scope,
    limit: Math.max(0, scope.limit - jobs.length),
    queues: isLimits(scope.queues) ? less(scope.queues) : scope.queues,
    ...(scope.free === undefined ? null : { free: less(scope.free) }),
  };
}

/** `:queues` of a scope: each with the group whose limit it shares. A claim from the first rank on has no edge. */
function scopeRows(scope: ClaimScope): RowList {
  const edge = FIRST_RANK;
  if (scope.queues === "all") return [{ queue: null, group: "", limit: scope.limit, edge }];
  if (isList(scope.queues))
    return scope.queues.map((queue) => ({ queue, group: "", limit: scope.limit, edge }));
  return [...scope.queues]
    .filter(([, limit]) => limit > 0)
    .map(([queue, limit]) => ({ queue, group: queue, limit, edge }));
}

export function scopeParams(scope: ClaimScope): {
  queues: RowList;
  names: readonly string[] | null;
  direction: number;
} {
  const queues = scopeRows(scope);
  return {
    queues,
    names: scope.names === "all" ? null : scope.names,
    direction: directionOf(scope),
  };
}

function directionOf({ order }: ClaimScope): number {
  return order === "highest-first" ? 1 : -1;
}

interface ClaimAsk {
  readonly queues: RowList;
  readonly levels: RowList;
  /** It goes on where the last one got to. */
  readonly onward: boolean;
}

/**
 * What a claim asks the database for, until something answers with jobs: what the cursor tells, then a look back. Whoever drives it gives
 * back the rows, and at the end has those of the last one.
 */
export function* asksOf(
  scope: ClaimScope,
  cursor: ClaimCursor,
  monotonic: () => number,
): Generator<ClaimAsk, Row[], Row[]> {
  const levels = knownLevels(scope, cursor);
  if (levels.length > 0 && !mustRescan(cursor, monotonic())) {
    const rows = yield { queues: edgeRows(scope, cursor, levels), levels, onward: true };
    if (rows.length > 0) return rows;
  }
  const startedMs = monotonic();
  const all = completeInMs(cursor.rescannedAt, cursor.rescanMs ?? 0, startedMs) === 0;
  const rows = yield { queues: scopeRows(scope), levels: all ? [] : aMomentBefore(levels), onward: false };
  rescanned(cursor, rows, all ? { startedMs, endedMs: monotonic() } : null);
  return rows;
}

/** The cursor of a part of what a caller claims, whose places and edges are its own: under limits, or of one budget. */
export function partOf(cursor: ClaimCursor, name: string): ClaimCursor {
  const parts = (cursor.parts ??= new Map<string, ClaimCursor>());
  const known = parts.get(name);
  if (known !== undefined) return known;
  const part: ClaimCursor = { levels: new Map(), rescannedAt: -Infinity };
  parts.set(name, part);
  return part;
}

/** The known levels that are in scope. */
export function knownLevels(scope: ClaimScope, cursor: ClaimCursor): RowList {
  const levels: Record<string, string | number>[] = [];
  for (const level of cursor.levels.values()) {
    const shared = scope.queues === "all" || (isList(scope.queues) && scope.queues.includes(level.queue));
    const limit = shared ? scope.limit : isLimits(scope.queues) ? (scope.queues.get(level.queue) ?? 0) : 0;
    // A kind may be left out for a time: its breaker is open, or its budget is empty.
    if (limit === 0 || (scope.names !== "all" && !scope.names.includes(level.name))) continue;
    const { jobType, rank, queue, runAt, rowKey } = level;
    levels.push({ jobType, rank, queue, group: shared ? "" : queue, limit, runAt, rowKey });
  }
  return levels;
}

/** `:queues` of a claim that goes on where the last one got to: the groups of the known levels, each from its edge. */
export function edgeRows(scope: ClaimScope, cursor: ClaimCursor, levels: RowList): RowList {
  const groups = new Set(levels.map(({ group }) => group));
  return scopeRows(scope)
    .filter(({ group }) => groups.has(group))
    .map((row) => ({ ...row, edge: cursor.edges?.get(String(row["group"])) ?? FIRST_RANK }));
}

/** The same levels, from a moment before. */
export function aMomentBefore(levels: RowList): RowList {
  return levels.map((level) => ({ ...level, runAt: Number(level["runAt"]) - LATE_MS }));
}

/** True: the next claim looks at more than the cursor tells. */
export function mustRescan(cursor: ClaimCursor, monotonicMs: number): boolean {
  const everyMs = Math.max(RESCAN_MS, (cursor.rescanMs ?? 0) * RESCAN_SHARE);
  return cursor.unseen === true || monotonicMs >= cursor.rescannedAt + everyMs;
}

/** How long until a look at everything has its share of the time again, if the last one was then and took so long. */
export function completeInMs(lookedAt: number, tookMs: number, monotonicMs: number): number {
  return Math.max(0, lookedAt + tookMs * RESCAN_SHARE - monotonicMs);
}

/** True: the latest look at everything, less than a second ago, found nothing, and no wake-up has come since. */
export function isEmpty(cursor: ClaimCursor, monotonicMs: number): boolean {
  return cursor.empty === true && monotonicMs < cursor.rescannedAt + RESCAN_MS;
}

/**
 * After a look back, before its jobs are handed over: a level that gave some goes on behind them, although a claim has been further
 * (there may be more that came late). The others begin where they did.
 */
export function rescanned(
  cursor: ClaimCursor,
  rows: readonly Row[],
  all: { readonly startedMs: number; readonly endedMs: number } | null,
): void {
  cursor.empty = rows.length === 0;
  cursor.unseen = false;
  cursor.edges?.clear();
  for (const { job_type: jobType, rank } of rows)
    cursor.levels.delete(levelKey(Number(jobType), Number(rank)));
  if (all === null) return;
  // A few are kept: the next job mostly comes to one of them.
  keepLatest(cursor, MOST_KEPT);
  cursor.rescannedAt = all.endedMs;
  cursor.rescanMs = all.endedMs - all.startedMs;
}

function levelKey(jobType: number, rank: number): string {
  return `${jobType}:${rank}`;
}

function keepLatest({ levels }: ClaimCursor, most: number): void {
  for (const key of levels.keys()) {
    if (levels.size <= most) return;
    levels.delete(key);
  }
}

/** Moves the cursor past what was claimed, and hands the jobs over in claim order (RETURNING promises none). */
function claimedJobs(
  rows: Row[],
  session: number,
  scope: ClaimScope,
  cursor: ClaimCursor,
  jobTypes: JobTypes,
): ClaimedJob[] {
  const direction = directionOf(scope);
  const jobs = rows.map((row) => {
    const jobType = row["job_type"] as number;
    const name = jobTypes.name(jobType);
    if (name === undefined) throw new TypeError(`job type ${jobType} is not known`);
    return claimedJob(row, session, name);
  });
  movePast(cursor, scope, rows, jobs);
  return jobs.sort(
    (a, b) => (b.priority - a.priority) * direction || a.runAt - b.runAt || (a.rowKey < b.rowKey ? -1 : 1),
  );
}

/** The cursor goes on behind these jobs, of which the rows are given in the same order. */
export function movePast(
  cursor: ClaimCursor,
  scope: ClaimScope,
  rows: readonly Row[],
  jobs: readonly ClaimedJob[],
): void {
  const direction = directionOf(scope);
  const grouped = isLimits(scope.queues);
  const edges = (cursor.edges ??= new Map<string, number>());
  let last: ClaimLevel | undefined;
  jobs.forEach((job, i) => {
    const jobType = rows[i]?.["job_type"] as number;
    const rank = rows[i]?.["rank"] as number;
    // Most jobs of a claim are of the level of the one before.
    if (last === undefined || last.jobType !== jobType || last.rank !== rank) {
      last = levelOf(cursor, jobType, rank, job);
      const group = grouped ? job.queue : "";
      edges.set(group, Math.max(edges.get(group) ?? FIRST_RANK, rank * direction));
    }
    if (job.runAt > last.runAt || (job.runAt === last.runAt && job.rowKey > last.rowKey)) {
      last.runAt = job.runAt;
      last.rowKey = job.rowKey;
    }
  });
  keepLatest(cursor, MOST_KNOWN);
}

/** The job's level, which is now the latest. */
function levelOf(
  cursor: ClaimCursor,
  jobType: number,
  rank: number,
  { queue, name, runAt, rowKey }: ClaimedJob,
): ClaimLevel {
  const key = levelKey(jobType, rank);
  const level = cursor.levels.get(key) ?? { jobType, rank, queue, name, runAt, rowKey };
  cursor.levels.delete(key);
  cursor.levels.set(key, level);
  return level;
}

/** In the order of claims, which a statement's answer need not have. */
export function inClaimOrder(rows: readonly Row[], direction: number): Row[] {
  return rows
    .map((row) => ({
      row,
      rank: number(row, "rank") * direction,
      runAt: number(row, "run_at"),
      rowKey: rowKeyIn(row),
    }))
    .sort((a, b) => a.rank - b.rank || a.runAt - b.runAt || (a.rowKey < b.rowKey ? -1 : 1))
    .map(({ row }) => row);
}

/** Job types in the answer that this process has not met yet. */
function unknownJobTypes(rows: readonly Row[], jobTypes: JobTypes): number[] {
  const missing = new Set<number>();
  for (const row of rows) {
    const jobType = number(row, "job_type");
    if (jobTypes.name(jobType) === undefined) missing.add(jobType);
  }
  return [...missing];
}

/** What a claim's row has. Postgres gives a bigint as text where it may be large. */
interface ClaimedRow {
  readonly id: string;
  readonly row_key?: number;
  readonly token: number | string;
  readonly rank: number;
  readonly input: string;
  readonly attempt: number;
  readonly max_attempts: number | null;
  readonly run_at: number | string;
  readonly started_at: number | string;
  readonly lane?: string | null;
  readonly cancel_reason?: string | null;
  readonly counted?: number | null;
  readonly rest: string | null;
}

/**
 * A claimed or orphaned job. `session` and where it comes from are the caller's to know. Most jobs have no `rest`, and a
 * drain makes tens of thousands of these a second: hence one literal, and columns that are read by their names.
 */
export function claimedJob(row: Row, session: number, jobType: { queue: string; name: string }): ClaimedJob {
  const from = row as unknown as ClaimedRow;
  const job: ClaimedJob = {
    id: from.id,
    rowKey: from.row_key ?? from.id,
    token: Number(from.token),
    session,
    name: jobType.name,
    queue: jobType.queue,
    priority: -from.rank || 0,
    input: from.input,
    attempt: from.attempt,
    crashes: 0,
    begun: false,
    undoing: false,
    maxAttempts: from.max_attempts,
    timeoutMs: null,
    errors: null,
    keyed: false,
    lane: from.lane ?? null,
    context: null,
    parentId: null,
    runAt: Number(from.run_at),
    startedAt: Number(from.started_at),
    deadlineAt: null,
    extras: null,
    cancelReason: from.cancel_reason ?? null,
  };
  if (from.rest === null && (from.counted ?? null) === null) return job;
  const counted = (from.counted ?? null) === null ? null : { counted: countedIn(row, jobType.queue) };
  return { ...job, ...restOf(from.rest), ...counted };
}

/** What few jobs have comes as one text. */
function restOf(text: string | null): Partial<ClaimedJob> | null {
  if (text === null) return null;
  const rest = JSON.parse(text) as Row;
  return {
    crashes: number(rest, "crashes"),
    begun: flag(rest, "begun"),
    undoing: flag(rest, "undoing"),
    timeoutMs: maybeNumber(rest, "timeout_ms"),
    errors: maybeText(rest, "errors"),
    keyed: rest["key"] !== null,
    context: context(rest),
    parentId: maybeText(rest, "parent_id"),
    deadlineAt: maybeNumber(rest, "deadline_at"),
    extras: extras(rest),
  };
}

/** The instants at which a claim counts as starts of its jobs, as they are kept with it: by the lane's number, by the queue's name. */
export interface KeptRates {
  readonly lanes: Record<number, number>;
  readonly queues: Record<string, number>;
}

/** 1: in its lane; 2: in its queue. */
function countedIn(row: Row, queue: string): Counted {
  const bits = number(row, "counted");
  const lane = (bits & 1) === 0 ? null : maybeNumber(row, "lane_id");
  const counted = { lane, jobType: number(row, "job_type"), queue: (bits & 2) === 0 ? null : queue };
  // Only where a claim is read anew: whoever claims knows them (lease/claim.ts).
  const rates = json(maybeText(row, "rates")) as KeptRates | null;
  if (rates === null) return counted;
  // Where there is no rate, no entry is of that instant.
  const at = { lane: rates.lanes?.[lane ?? -1] ?? 0, queue: rates.queues?.[queue] ?? 0 };
  return { ...counted, at };
}
