/**
 * Rows as the databases give them → what the rest of the program works with.
 *
 * The only place that knows column names and how each driver hands over numbers and JSON. A text that is not JSON
 * becomes the text itself: a row that somebody spoilt by hand must not make a listing fail.
 */
import { type ClaimedJob, type Counted, type Job, type JobExtras, type JobState, WAITING_AT } from "./job.ts";
import { DEFAULT_ATTEMPTS } from "./transition.ts";
import { decodeFailures } from "./failure.ts";
import type { Row } from "../storage/catalogue.ts";

export function text(row: Row, column: string): string {
  const value = row[column];
  return typeof value === "string" ? value : String(value);
}

export function maybeText(row: Row, column: string): string | null {
  const value = row[column];
  return value === null || value === undefined ? null : String(value);
}

export function number(row: Row, column: string): number {
  return Number(row[column]);
}

export function maybeNumber(row: Row, column: string): number | null {
  const value = row[column];
  return value === null || value === undefined ? null : Number(value);
}

export function flag(row: Row, column: string): boolean {
  const value = row[column];
  return value === true || value === 1;
}

function date(row: Row, column: string): Date | null {
  const value = maybeNumber(row, column);
  return value === null ? null : new Date(value);
}

export function json(value: string | null): unknown {
  if (value === null) return null;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

export function extras(row: Row): JobExtras | null {
  return json(maybeText(row, "extras")) as JobExtras | null;
}

/** What a claim's row has. Postgres gives a bigint as text where it may be large. */
interface ClaimedRow {
  readonly id: string;
  readonly place?: number;
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
export function claimedJob(row: Row, session: number, line: { queue: string; name: string }): ClaimedJob {
  const from = row as unknown as ClaimedRow;
  const rest = from.rest === null ? null : (JSON.parse(from.rest) as Row);
  const job: ClaimedJob = {
    id: from.id,
    place: from.place ?? from.id,
    token: Number(from.token),
    session,
    name: line.name,
    queue: line.queue,
    priority: -from.rank || 0,
    input: from.input,
    attempt: from.attempt,
    crashes: rest === null ? 0 : number(rest, "crashes"),
    begun: rest !== null && flag(rest, "begun"),
    undoing: rest !== null && flag(rest, "undoing"),
    maxAttempts: from.max_attempts,
    timeoutMs: rest === null ? null : maybeNumber(rest, "timeout_ms"),
    errors: rest === null ? null : maybeText(rest, "errors"),
    keyed: rest !== null && rest["key"] !== null,
    lane: from.lane ?? null,
    context: rest === null ? null : context(rest),
    parentId: rest === null ? null : maybeText(rest, "parent_id"),
    runAt: Number(from.run_at),
    startedAt: Number(from.started_at),
    deadlineAt: rest === null ? null : maybeNumber(rest, "deadline_at"),
    extras: rest === null ? null : extras(rest),
    cancelReason: from.cancel_reason ?? null,
  };
  return (from.counted ?? null) === null ? job : { ...job, counted: countedIn(row, line.queue) };
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
  const counted = { lane, line: number(row, "line"), queue: (bits & 2) === 0 ? null : queue };
  // Only where a claim is read anew: whoever claims knows them (lease/claim.ts).
  const rates = json(maybeText(row, "rates")) as KeptRates | null;
  if (rates === null) return counted;
  // Where there is no rate, no entry is of that instant.
  const at = { lane: rates.lanes?.[lane ?? -1] ?? 0, queue: rates.queues?.[queue] ?? 0 };
  return { ...counted, at };
}

/** Kept as a JSON string, so that NUL and lone surrogates survive Postgres. */
function context(row: Row): string | null {
  const value = row["context"];
  return value === null || value === undefined ? null : String(json(String(value)));
}

export function job(row: Row): Job {
  const failures = decodeFailures(maybeText(row, "errors")).map((failure) => ({
    ...failure,
    at: new Date(failure.at),
  }));
  const runAt = number(row, "run_at");
  return {
    id: text(row, "id"),
    name: text(row, "name"),
    queue: text(row, "queue"),
    state: text(row, "state") as JobState,
    priority: -number(row, "rank") || 0,
    input: json(text(row, "input")),
    output: json(maybeText(row, "output")),
    progress: json(maybeText(row, "progress")),
    attempt: number(row, "attempt"),
    maxAttempts: maybeNumber(row, "max_attempts") ?? DEFAULT_ATTEMPTS,
    crashes: number(row, "crashes"),
    error: failures.at(-1)?.message ?? null,
    errors: failures,
    key: maybeText(row, "key"),
    lane: maybeText(row, "lane"),
    context: context(row),
    createdAt: new Date(number(row, "created_at")),
    runAt: runAt >= WAITING_AT ? null : new Date(runAt),
    startedAt: date(row, "started_at"),
    endedAt: date(row, "ended_at"),
    leaseUntil: date(row, "lease_until"),
    workerId: maybeText(row, "worker_id"),
    parentId: maybeText(row, "parent_id"),
    step: maybeText(row, "step") ?? extras(row)?.step ?? null,
    waitsFor: maybeText(row, "waits") as Job["waitsFor"],
  };
}

/** Text that is kept as a JSON string, because it may have what no database takes. */
export function unquoted(stored: string): string {
  try {
    return String(JSON.parse(stored));
  } catch {
    return stored;
  }
}
