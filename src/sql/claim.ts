/**
 * Claiming: which levels to look at, where each claim got to, and when to look at everything again.
 *
 * A level is one (line, rank): its jobs stand in the index in the order (run_at, place). A claim that starts at the cursor
 * steps over the index entries of jobs that are gone, which Postgres cannot remove while anybody holds an old snapshot
 * (a prototype of this shape kept a fifth of its rate without the cursor, and all of it with). What a cursor could hide — an
 * insert that committed late, a level that is new, a row that a crashed claimer let go — is found by the look back:
 * once a second at the most, at once when a claim comes back empty.
 */
import type { ClaimedJob } from "../job.ts";
import type { ClaimCursor, ClaimLevel, ClaimScope } from "../store.ts";
import type { Row, RowList } from "./catalogue.ts";
import type { Lines } from "./lines.ts";
import { placeIn } from "./cursor.ts";
import { claimedJob, number } from "./rows.ts";

const LOOK_BACK_MS = 1_000;
/** Levels that are kept while nothing is in them. */
const MOST_KEPT = 8;
/** The look back may take this share of the time, at most. */
const LOOK_BACK_SHARE = 20;

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

/** `:queues` of a scope: each with the group whose limit it shares. */
export function scopeRows(scope: ClaimScope): RowList {
  if (scope.queues === "all") return [{ queue: null, group: "", limit: scope.limit }];
  if (isList(scope.queues)) return scope.queues.map((queue) => ({ queue, group: "", limit: scope.limit }));
  return [...scope.queues]
    .filter(([, limit]) => limit > 0)
    .map(([queue, limit]) => ({ queue, group: queue, limit }));
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
    direction: scope.order === "highest-first" ? 1 : -1,
  };
}

/** The known levels that are in scope, as `:levels`; null when only a sweep will do. */
export function cursorLevels(scope: ClaimScope, cursor: ClaimCursor, monotonicMs: number): RowList | null {
  if (
    cursor.levels.size === 0 ||
    monotonicMs >= cursor.lookedBackAt + (cursor.lookBackEveryMs ?? LOOK_BACK_MS)
  )
    return null;
  const levels: Record<string, string | number>[] = [];
  for (const level of cursor.levels.values()) {
    const shared = scope.queues === "all" || (isList(scope.queues) && scope.queues.includes(level.queue));
    const limit = shared ? scope.limit : isLimits(scope.queues) ? (scope.queues.get(level.queue) ?? 0) : 0;
    if (limit === 0) continue;
    const group = shared ? "" : level.queue;
    levels.push({
      line: level.line,
      rank: level.rank,
      queue: level.queue,
      group,
      limit,
      runAt: level.runAt,
      place: level.place,
    });
  }
  return levels.length === 0 ? null : levels;
}

/** True: the latest look at everything, less than a second ago, found nothing, and no wake-up has come since. */
export function isBarren(cursor: ClaimCursor, monotonicMs: number): boolean {
  return cursor.barren === true && monotonicMs < cursor.lookedBackAt + LOOK_BACK_MS;
}

/**
 * After a sweep: the levels that gave jobs are those that may have more. Where none did, a few are kept: the next job
 * mostly comes to one of them, and is claimed by the cheaper statement.
 */
export function lookedBack(cursor: ClaimCursor, found: number, startedMs: number, endedMs: number): void {
  cursor.barren = found === 0;
  if (found > 0 || cursor.levels.size > MOST_KEPT) cursor.levels.clear();
  cursor.lookedBackAt = endedMs;
  cursor.lookBackEveryMs = Math.max(LOOK_BACK_MS, (endedMs - startedMs) * LOOK_BACK_SHARE);
}

/** Moves the cursor past what was claimed, and hands the jobs over in claim order (RETURNING promises none). */
export function claimedJobs(
  rows: Row[],
  session: number,
  scope: ClaimScope,
  cursor: ClaimCursor,
  lines: Lines,
): ClaimedJob[] {
  const direction = scope.order === "highest-first" ? 1 : -1;
  let last: ClaimLevel | undefined;
  const jobs = rows.map((row) => {
    const line = row["line"] as number;
    const name = lines.name(line);
    if (name === undefined) throw new TypeError(`line ${line} is not known`);
    const job = claimedJob(row, session, name);
    last = reached(cursor, last, line, row["rank"] as number, job);
    return job;
  });
  return jobs.sort(
    (a, b) => (b.priority - a.priority) * direction || a.runAt - b.runAt || (a.place < b.place ? -1 : 1),
  );
}

/** The job's level, moved past the job. Most jobs of a claim are of the level of the one before. */
function reached(
  cursor: ClaimCursor,
  last: ClaimLevel | undefined,
  line: number,
  rank: number,
  { queue, runAt, place }: ClaimedJob,
): ClaimLevel {
  const same = last !== undefined && last.line === line && last.rank === rank;
  const level = same ? last : cursor.levels.get(`${line}:${rank}`);
  if (level === undefined) {
    const first: ClaimLevel = { line, rank, queue, runAt, place };
    cursor.levels.set(`${line}:${rank}`, first);
    return first;
  }
  if (runAt > level.runAt || (runAt === level.runAt && place > level.place)) {
    level.runAt = runAt;
    level.place = place;
  }
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
