/**
 * Claiming: which levels to look at, where each claim got to, and when to look at everything again.
 *
 * A level is one (line, rank): its jobs stand in the index in the order (run_at, place). A claim walks the levels of its scope in
 * order, as many as it needs. One that starts at the cursor steps over the index entries of jobs that are gone, which Postgres
 * cannot remove while anybody holds an old snapshot (a prototype of this shape kept a fifth of its rate without the cursor, and all
 * of it with):
 *
 *   known levels, each from where the last claim got to ··· the edge, the last rank that was claimed from ──▶ all behind it
 *
 * What a cursor could hide (an insert that committed late, a level that is new, a row that a crashed claimer let go) is found by
 * the look back: once a second at the most, at once when a claim comes back empty. Where looks back have become costly, most of
 * them only go back a second in the known levels, and to all others.
 */
import type { ClaimedJob, Place } from "./job.ts";

import type { Row, RowList } from "../storage/catalogue.ts";
import type { Lines } from "./job-types.ts";
import { placeIn } from "./page-cursor.ts";
import { claimedJob, number } from "./rows.ts";

/** What a worker serves. */
export interface ClaimScope {
  /** How many jobs this claim may take from each queue; or the queues that share `limit`. */
  readonly queues: ReadonlyMap<string, number> | readonly string[] | "all";
  /** Job names; "all", for the low-level lease: every plain job, without machines and runs with recorded steps. */
  readonly names: readonly string[] | "all";
  /** How many in all; with a limit for each queue, their sum. */
  readonly limit: number;
  readonly order: "highest-first" | "lowest-first";
  /** How many each queue could start at once: no more is taken of what has a rate. Left out: all. */
  readonly free?: ReadonlyMap<string, number>;
}

/** How far the jobs of one kind and priority have been claimed. */
export interface ClaimLevel {
  readonly line: number;
  readonly rank: number;
  readonly queue: string;
  readonly name: string;
  runAt: number;
  place: Place;
}

/**
 * Where one level's claims have got to. A level is a (queue, name, rank) line-up ordered by (runAt, id); a claim
 * that starts at the cursor does not walk over the dead index entries of the jobs before it, which an old
 * snapshot would otherwise make ever more of.
 */
export interface ClaimCursor {
  /** Opaque: kept by the caller between claims, filled by the store. */
  readonly levels: Map<string, ClaimLevel>;
  /** Filled by the store: for each group of the scope, the last rank that a claim took from, in claim order. */
  edges?: Map<string, number>;
  /** When a claim last looked at everything, by the monotonic clock. -Infinity asks the next one to. */
  lookedBackAt: number;
  /** Filled by the store: how long that took. One that takes long is made less often. */
  lookBackMs?: number;
  /** Filled by the store: the same of `peek`. */
  peekedAt?: number;
  peekMs?: number;
  /** A level that no claim has met may have jobs: the next claim looks for it. */
  unseen?: boolean;
  /** Filled by the store: the last look at everything found nothing. False again as soon as somebody tells of due jobs. */
  barren?: boolean;
  /** Filled by the store: where the turns of lanes begin, by line. */
  turns?: Map<number, TurnFloor>;
  /** Filled by the store: the places of what is claimed by other statements, under limits or of one budget. */
  parts?: Map<string, ClaimCursor>;
  /** Filled by the store: whose turn it is to have the first choice, lanes or jobs without one. */
  lanesFirst?: boolean;
  /** Filled by the store: why a part of the last claim failed whose other part brought jobs. It may have taken some too. */
  failed?: unknown;
}

/** How far the turns of a line have come, in virtual time. */
export interface TurnFloor {
  /** All that are active are behind it. */
  readonly from: number;
  /** Where the furthest behind of them was at a later look, by the monotonic clock: what commits late may still be before that. */
  readonly next: number;
  readonly nextAt: number;
}

const LOOK_BACK_MS = 1_000;
/** Inserts commit so much later than they were due, at most, to be found by every look back. */
export const LATE_MS = 1_000;
/** Levels that a look at everything leaves known. */
const MOST_KEPT = 8;
/** Levels that are known, the latest: each costs a claim of several levels one probe. */
const MOST_KNOWN = 32;
/** Looks at everything may take this share of the time, at most. */
const LOOK_BACK_SHARE = 20;
/** Before every rank that a job can have. */
const FIRST_RANK = -2_147_483_649;

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
  if (levels.length > 0 && !mustLookBack(cursor, monotonic())) {
    const rows = yield { queues: edgeRows(scope, cursor, levels), levels, onward: true };
    if (rows.length > 0) return rows;
  }
  const startedMs = monotonic();
  const all = completeInMs(cursor.lookedBackAt, cursor.lookBackMs ?? 0, startedMs) === 0;
  const rows = yield { queues: scopeRows(scope), levels: all ? [] : aMomentBefore(levels), onward: false };
  lookedBack(cursor, rows, all ? { startedMs, endedMs: monotonic() } : null);
  return rows;
}

/** The cursor of a part of what a caller claims, whose places and edges are its own: under limits, or of one budget. */
export function partOf(cursor: ClaimCursor, name: string): ClaimCursor {
  const parts = (cursor.parts ??= new Map<string, ClaimCursor>());
  const known = parts.get(name);
  if (known !== undefined) return known;
  const part: ClaimCursor = { levels: new Map(), lookedBackAt: -Infinity };
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
    const { line, rank, queue, runAt, place } = level;
    levels.push({ line, rank, queue, group: shared ? "" : queue, limit, runAt, place });
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
export function mustLookBack(cursor: ClaimCursor, monotonicMs: number): boolean {
  const everyMs = Math.max(LOOK_BACK_MS, (cursor.lookBackMs ?? 0) * LOOK_BACK_SHARE);
  return cursor.unseen === true || monotonicMs >= cursor.lookedBackAt + everyMs;
}

/** How long until a look at everything has its share of the time again, if the last one was then and took so long. */
export function completeInMs(lookedAt: number, tookMs: number, monotonicMs: number): number {
  return Math.max(0, lookedAt + tookMs * LOOK_BACK_SHARE - monotonicMs);
}

/** True: the latest look at everything, less than a second ago, found nothing, and no wake-up has come since. */
export function isBarren(cursor: ClaimCursor, monotonicMs: number): boolean {
  return cursor.barren === true && monotonicMs < cursor.lookedBackAt + LOOK_BACK_MS;
}

/**
 * After a look back, before its jobs are handed over: a level that gave some goes on behind them, although a claim has been further
 * (there may be more that came late). The others begin where they did.
 */
export function lookedBack(
  cursor: ClaimCursor,
  rows: readonly Row[],
  all: { readonly startedMs: number; readonly endedMs: number } | null,
): void {
  cursor.barren = rows.length === 0;
  cursor.unseen = false;
  cursor.edges?.clear();
  for (const { line, rank } of rows) cursor.levels.delete(levelKey(Number(line), Number(rank)));
  if (all === null) return;
  // A few are kept: the next job mostly comes to one of them.
  keepLatest(cursor, MOST_KEPT);
  cursor.lookedBackAt = all.endedMs;
  cursor.lookBackMs = all.endedMs - all.startedMs;
}

function levelKey(line: number, rank: number): string {
  return `${line}:${rank}`;
}

function keepLatest({ levels }: ClaimCursor, most: number): void {
  for (const key of levels.keys()) {
    if (levels.size <= most) return;
    levels.delete(key);
  }
}

/** Moves the cursor past what was claimed, and hands the jobs over in claim order (RETURNING promises none). */
export function claimedJobs(
  rows: Row[],
  session: number,
  scope: ClaimScope,
  cursor: ClaimCursor,
  lines: Lines,
): ClaimedJob[] {
  const direction = directionOf(scope);
  const jobs = rows.map((row) => {
    const line = row["line"] as number;
    const name = lines.name(line);
    if (name === undefined) throw new TypeError(`line ${line} is not known`);
    return claimedJob(row, session, name);
  });
  movePast(cursor, scope, rows, jobs);
  return jobs.sort(
    (a, b) => (b.priority - a.priority) * direction || a.runAt - b.runAt || (a.place < b.place ? -1 : 1),
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
    const line = rows[i]?.["line"] as number;
    const rank = rows[i]?.["rank"] as number;
    // Most jobs of a claim are of the level of the one before.
    if (last === undefined || last.line !== line || last.rank !== rank) {
      last = levelOf(cursor, line, rank, job);
      const group = grouped ? job.queue : "";
      edges.set(group, Math.max(edges.get(group) ?? FIRST_RANK, rank * direction));
    }
    if (job.runAt > last.runAt || (job.runAt === last.runAt && job.place > last.place)) {
      last.runAt = job.runAt;
      last.place = job.place;
    }
  });
  keepLatest(cursor, MOST_KNOWN);
}

/** The job's level, which is now the latest. */
function levelOf(
  cursor: ClaimCursor,
  line: number,
  rank: number,
  { queue, name, runAt, place }: ClaimedJob,
): ClaimLevel {
  const key = levelKey(line, rank);
  const level = cursor.levels.get(key) ?? { line, rank, queue, name, runAt, place };
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
      place: placeIn(row),
    }))
    .sort((a, b) => a.rank - b.rank || a.runAt - b.runAt || (a.place < b.place ? -1 : 1))
    .map(({ row }) => row);
}

/** Lines in the answer that this process has not met yet. */
export function unknownLines(rows: readonly Row[], lines: Lines): number[] {
  const missing = new Set<number>();
  for (const row of rows) {
    const line = number(row, "line");
    if (lines.name(line) === undefined) missing.add(line);
  }
  return [...missing];
}
