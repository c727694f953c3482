/**
 * Insight: what an operator's screen asks of the database, and what it gets.
 *
 * Everything here is bounded, whatever the tables hold: a look walks at most so many entries of an index and says when
 * there is more behind them (`more`, `cursor`), a count stops at its cap. So a page costs milliseconds beside a
 * million jobs, and never a scan. Exact answers without a bound are `hf.jobs.count` and its kin.
 * Not here: the statements (sql/insight.ts and the dialects), HTTP (dashboard/).
 */
import type { JobState } from "./job.ts";
import type { QueueSettings } from "./queue-settings.ts";

export type { QueueSettings };

/** Which jobs a screen shows. Everything that is given must hold. */
export interface InsightFilter {
  readonly ids?: readonly string[];
  readonly states?: readonly JobState[];
  readonly queues?: readonly string[];
  readonly names?: readonly string[];
  readonly lane?: string;
  readonly key?: string;
  /** Created at or after. */
  readonly since?: number;
  /** Created before. */
  readonly until?: number;
  /** The fingerprint of the latest failure. */
  readonly errorGroup?: string;
  /** Failed, and waiting for the next attempt. */
  readonly retrying?: boolean;
  /** Text in the input, the context or the errors. */
  readonly search?: string;
}

/** One line of a list: everything but the bulk of a large input. */
export interface JobSummary {
  readonly id: string;
  readonly name: string;
  readonly queue: string;
  readonly state: JobState;
  readonly priority: number;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly crashes: number;
  /** JSON text; null where it is too large to be shown in a line. */
  readonly input: string | null;
  readonly inputBytes: number;
  readonly error: string | null;
  readonly errorGroup: string | null;
  readonly key: string | null;
  readonly lane: string | null;
  readonly context: string | null;
  readonly parentId: string | null;
  readonly workerId: string | null;
  readonly createdAt: number;
  readonly runAt: number | null;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
}

/** Everything of one job, its texts as they are stored. */
export interface JobDetail extends JobSummary {
  /** JSON text. */
  readonly input: string;
  /** JSON text. */
  readonly output: string | null;
  /** JSON text. */
  readonly progress: string | null;
  readonly errors: readonly {
    at: number;
    attempt: number;
    message: string;
    stack: string | null;
    ranMs?: number;
  }[];
  readonly throttles: number;
  readonly leaseUntil: number | null;
  readonly timeoutMs: number | null;
  readonly deadlineAt: number | null;
}

/** A page of summaries. */
export interface InsightPage {
  readonly jobs: readonly JobSummary[];
  /** Where to go on; null at the end. */
  readonly cursor: string | null;
  /** The walk's bound was reached before the page was full: there may be more behind the cursor. */
  readonly cut: boolean;
}

/** A count up to a cap. */
export interface CappedCount {
  readonly count: number;
  /** There are more, or there may be. */
  readonly more: boolean;
}

/** How many match, in all and by state. */
export interface StateTally {
  readonly total: CappedCount;
  readonly states: Partial<Record<JobState, CappedCount>>;
}

/** Jobs of one queue and kind that have not ended. */
export interface LineTally {
  readonly queue: string;
  readonly name: string;
  readonly ready: CappedCount;
  readonly scheduled: CappedCount;
  readonly waiting: CappedCount;
  readonly running: number;
  /** When the oldest ready job became due. */
  readonly oldestAt: number | null;
  /** When the longest running attempt started. */
  readonly longestSince: number | null;
}

/** Failures with one fingerprint, of one kind, in one queue. */
export interface ErrorGroup {
  readonly group: string;
  readonly queue: string;
  readonly name: string;
  /** Dead jobs among the newest that were looked at. */
  readonly dead: number;
  /** Jobs that failed so and wait for their next attempt. */
  readonly retrying: number;
  readonly lastHour: number;
  readonly lastDay: number;
  readonly firstAt: number | null;
  readonly lastAt: number | null;
  /** The newest job of the group. */
  readonly sample: string;
  readonly message: string | null;
}

/** The groups, and how far was looked. */
export interface ErrorGroups {
  readonly groups: readonly ErrorGroup[];
  /** Ended jobs that were looked at, newest first. */
  readonly searched: number;
  readonly cut: boolean;
}

/** What an operator did. */
export interface AuditEntry {
  readonly actor: string;
  readonly action: string;
  readonly target: string | null;
  readonly outcome: string;
  /** JSON text. */
  readonly details: string | null;
}

/** An entry on the trail. */
export interface AuditLine extends AuditEntry {
  readonly id: number;
  readonly at: number;
}

/** How the database is. */
export interface DatabaseHealth {
  readonly dialect: "sqlite" | "postgres";
  readonly version: string;
  readonly sizeBytes: number;
  /** SQLite: free pages. */
  readonly freeBytes: number | null;
  readonly walBytes: number | null;
  readonly connections: number | null;
  readonly maxConnections: number | null;
  /** Postgres: age of the oldest open transaction. */
  readonly oldestTransactionMs: number | null;
  /** How long a trivial query took just now. */
  readonly roundTripMs: number;
  readonly listening: boolean;
  readonly tables: readonly {
    readonly name: string;
    readonly bytes: number | null;
    readonly rows: number | null;
    readonly deadRows: number | null;
    readonly vacuumedAt: number | null;
  }[];
}

/** The looks. */
export interface Insight {
  /** Newest first; with `order: "due"` (scheduled jobs by queue and name alone) the next due first. */
  browse(
    filter: InsightFilter,
    page: { limit: number; cursor: string | null; order?: "newest" | "due" },
  ): Promise<InsightPage>;
  /** How many jobs of each state match. States that the filter leaves out are absent. */
  tally(filter: InsightFilter): Promise<StateTally>;
  inspect(id: string): Promise<JobDetail | null>;
  /** Live jobs by queue and kind. */
  lines(): Promise<{ now: number; lines: readonly LineTally[] }>;
  errorGroups(filter: Pick<InsightFilter, "queues" | "names">): Promise<ErrorGroups>;
  /** The queues that have a row of their own: paused, cooled down, or with settings. */
  queueRows(): Promise<
    readonly { name: string; pausedAt: number | null; coolUntil: number | null; settings: QueueSettings }[]
  >;
  addAudit(entry: AuditEntry): Promise<void>;
  audit(page: { limit: number; before: number | null }): Promise<readonly AuditLine[]>;
  health(): Promise<DatabaseHealth>;
}
