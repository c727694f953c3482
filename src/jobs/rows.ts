/**
 * Rows as the databases give them → what the rest of the program works with.
 *
 * The only place that knows column names and how each driver hands over numbers and JSON. A text that is not JSON
 * becomes the text itself: a row that somebody spoilt by hand must not make a listing fail.
 */
import { type Job, type JobExtras, type JobState, WAITING_AT } from "./job.ts";
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

/** Kept as a JSON string, so that NUL and lone surrogates survive Postgres. */
export function context(row: Row): string | null {
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
