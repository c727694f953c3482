/** The contract of schedules as rows. schedule-rows.ts keeps it for both databases. */
import type { Enqueued, JobState, NewJob } from "../jobs/job.ts";
import type { ScheduleEdits, ScheduleSpec } from "./plan.ts";

/** A schedule as it is kept. Instants in epoch milliseconds. */
export interface ScheduleRow {
  readonly name: string;
  /** Null: the row cannot be read. */
  readonly spec: ScheduleSpec | null;
  /** Which parts of it an operator has changed. */
  readonly edited: readonly string[];
  readonly nextAt: number | null;
  /** An occurrence whose job is made when the previous one has ended. */
  readonly waitingAt: number | null;
  readonly anchorAt: number;
  readonly createdAt: number;
  readonly pausedAt: number | null;
  /** Why it is disabled. */
  readonly fault: string | null;
  /** The occurrence of the latest job. */
  readonly lastRunAt: number | null;
  readonly lastJobId: string | null;
  /** The newest jobs that it made, at most 20, newest last; `at` is the occurrence, or when it was triggered. */
  readonly recent: readonly { readonly id: string; readonly at: number; readonly by?: "hand" }[];
  readonly fired: number;
  readonly skipped: number;
  readonly missed: number;
  readonly now: number;
}

/** One of a schedule's jobs, and what became of it. Instants in epoch milliseconds. */
export interface ScheduleRunRow {
  readonly at: number;
  readonly by: "occurrence" | "backfill" | "hand";
  readonly jobId: string;
  /** Null: the job is not kept any more. */
  readonly state: JobState | null;
  readonly attempt: number | null;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  readonly lateMs: number | null;
  readonly ranMs: number | null;
}

/** What there is to do for schedules, and when next. */
export interface DueSchedules {
  readonly now: number;
  /** A page of schedules that are due; on the first page also those whose waiting occurrence waits for nothing any more. */
  readonly due: readonly string[];
  /** Jobs that have not ended and that occurrences wait for. */
  readonly awaited: readonly string[];
  readonly nextAt: number | null;
  /** Where the next page begins; null: this was the last. */
  readonly after: DueCursor | null;
}

/** The last schedule of a page of those that are due. */
export interface DueCursor {
  readonly at: number;
  readonly name: string;
}

/** A job that an occurrence came to. */
export interface FiredOccurrence {
  readonly occurrence: number;
  readonly id: string;
  readonly status: Enqueued["status"];
  readonly job: NewJob;
}

/** What came of a schedule's due occurrences. */
export interface OccurrenceReport {
  readonly fired: readonly FiredOccurrence[];
  /** Occurrences without a job because an earlier one had not ended, or its key was taken. */
  readonly skipped: number;
  readonly missed: number;
  /** An occurrence waits for the previous job to end. */
  readonly waiting: boolean;
  /** The row cannot be read: it is disabled now, and this is why. */
  readonly fault: string | null;
}

/** What a trigger by hand came to. */
export interface Triggered {
  readonly job: NewJob;
  readonly status: Enqueued["status"];
  readonly id: string;
}

/** Occurrences from `from` (included) to `to` (not), oldest first, at most `limit` of those that have no job. */
export interface BackfillRange {
  readonly from: number;
  readonly to: number;
  readonly limit: number;
  readonly dryRun: boolean;
}

/** What a backfill came to, or would. */
export interface Backfilled {
  /** In order; without a job in a dry run. */
  readonly occurrences: readonly { readonly at: number; readonly made: Triggered | null }[];
  /** Occurrences that had their job already. */
  readonly had: number;
  /** There are more behind these. */
  readonly more: boolean;
}

/** Schedules. */
export interface ScheduleStore {
  /** All of them, or the one of this name. */
  list(name: string | null): Promise<ScheduleRow[]>;
  /** Adds a schedule, or changes its definition; an operator's edits and the occurrences that are due stay. */
  put(name: string, spec: ScheduleSpec, firstRun: "seed" | "fire"): Promise<ScheduleRow>;
  /** Null: there is none. What `edits` throws is thrown, and nothing is written. */
  edit(name: string, edits: (spec: ScheduleSpec) => ScheduleEdits): Promise<ScheduleRow | null>;
  /** Gives up an operator's edits and a fault, and counts from now. */
  reset(name: string): Promise<ScheduleRow | null>;
  pause(name: string, paused: boolean): Promise<ScheduleRow | null>;
  remove(name: string): Promise<boolean>;
  /** Makes a job now, without touching the occurrences. */
  trigger(name: string, newId: () => string): Promise<Triggered | null>;
  /** Jobs for occurrences of the past that have none; null: there is no such schedule. */
  backfill(name: string, range: BackfillRange, newId: () => string): Promise<Backfilled | null>;
  /** The jobs of its newest occurrences, and those by hand among its `recent`, newest first; null: there is no such schedule. */
  runs(name: string, limit: number): Promise<ScheduleRunRow[] | null>;
  /** What is due, page by page, and when the next occurrence is; a cheap read. */
  due(after?: DueCursor | null): Promise<DueSchedules>;
  /** Makes the jobs of a schedule's due occurrences and advances it, in one transaction. Null: not due, or not ours to do. */
  fire(name: string, newId: () => string): Promise<OccurrenceReport | null>;
}
