/**
 * Insight: what an operator's screen asks of the database, and what it gets.
 *
 * Everything here is bounded, whatever the tables hold: a look walks at most so many entries of an index and says when
 * there is more behind them (`more`, `cursor`), a count stops at its cap. So a page costs milliseconds beside a
 * million jobs, and never a scan. Exact answers without a bound are `hf.jobs.count` and its kin.
 * Not here: the statements (browse-rows.ts and the dialects), HTTP (dashboard/).
 */
import type { JobState, StepKind } from "../jobs/job.ts";
import type { IdPart } from "../values/id-part.ts";
import type { WordFilter } from "./filter-range.ts";
import type { FailureGroupChange, FailureGroupState } from "../observe/failure-decision.ts";
import type { QueueSettings } from "../limits/queue-settings.ts";

export type { QueueSettings };

/** Which jobs a screen shows. Everything that is given must hold. */
export interface InsightFilter extends WordFilter {
  readonly ids?: readonly string[];
  readonly states?: readonly JobState[];
  readonly queues?: readonly string[];
  readonly names?: readonly string[];
  readonly lane?: string;
  readonly key?: string;
  /** The id of a run: what it called or enqueued. */
  readonly workflow?: string;
  /** The id of a batch: the jobs that were enqueued as one. */
  readonly batch?: string;
  /** The id of a trace: what was enqueued in it. */
  readonly trace?: string;
  /** Created at or after. */
  readonly since?: number;
  /** Created before. */
  readonly until?: number;
  /** The fingerprint of the latest failure. */
  readonly failureGroup?: string;
  /** Failed, and waiting for the next attempt. */
  readonly retrying?: boolean;
  /** Text in the input, the context or the errors. */
  readonly search?: string;
}

/** One job type of a list: everything but the bulk of a large input. */
export interface JobSummary {
  readonly id: string;
  readonly name: string;
  readonly queue: string;
  readonly state: JobState;
  /** It waits to be resumed. */
  readonly paused: boolean;
  readonly priority: number;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly crashes: number;
  /** JSON text; null where it is too large to be shown in a job type. */
  readonly input: string | null;
  readonly inputBytes: number;
  readonly error: string | null;
  readonly failureGroup: string | null;
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
    lost?: true;
  }[];
  readonly throttles: number;
  readonly leaseUntil: number | null;
  readonly timeoutMs: number | null;
  readonly deadlineAt: number | null;
  /** Of the W3C trace context that came with the enqueue. */
  readonly traceId: string | null;
  /** What somebody has asked of it while it runs, and it has not done yet. */
  readonly request: "cancel" | "pause" | null;
  /** Of the code that it needs: that enqueued it, or took it on since. */
  readonly version: number;
  /** What made it, and the runs of the same schedule before and after it, as far as they are kept. */
  readonly schedule: {
    readonly name: string;
    readonly at: number;
    readonly by: "occurrence" | "hand" | "backfill";
    readonly previous: ScheduleNeighbour | null;
    readonly next: ScheduleNeighbour | null;
  } | null;
  /** The batches that it is of, or comes after; newest first. */
  readonly batches: readonly BatchOfJob[];
}

/** A batch, as one of its jobs knows it. */
export interface BatchOfJob {
  readonly id: string;
  /** One of its jobs, or the one that comes after them. */
  readonly role: "job" | "then";
  readonly total: number;
  readonly then: { readonly id: string; readonly name: string } | null;
}

/** A slot of a schedule, and the job that it made. */
export interface ScheduleNeighbour {
  readonly at: number;
  readonly jobId: string;
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

/** How many jobs have one value of a facet. */
export interface FacetValue extends CappedCount {
  readonly value: string;
}

/** Counts by state, queue and name; each under the other parts of the filter, the most frequent first. */
export interface JobFacets {
  readonly states: readonly FacetValue[];
  readonly queues: readonly FacetValue[];
  readonly names: readonly FacetValue[];
  /** Some counts are among the newest jobs alone. */
  readonly cut: boolean;
}

/** Jobs of one queue and name that run. */
export interface RunningJobType {
  readonly queue: string;
  readonly name: string;
  readonly running: number;
  /** How many of those each session holds. */
  readonly heldBy: ReadonlyMap<number, number>;
  /** When the longest running attempt started. */
  readonly longestSince: number | null;
}

/** Jobs of one queue and name that have not ended. */
export interface JobTypeTally extends RunningJobType {
  readonly ready: CappedCount;
  readonly scheduled: CappedCount;
  readonly waiting: CappedCount;
  /** When the oldest ready job became due. */
  readonly oldestAt: number | null;
  /** When the next scheduled job becomes due. Null: there is none, or scheduled jobs are not counted. */
  readonly nextDueAt: number | null;
}

/** Failures with one fingerprint, of one name: a cause. */
export interface FailureGroup {
  readonly group: string;
  readonly name: string;
  /** Where most of its jobs are. */
  readonly queue: string;
  readonly queues: readonly string[];
  /** Of the definition that ran, the newest first. */
  readonly versions: readonly number[];
  readonly state: FailureGroupState;
  /** When and by whom it was resolved, ignored or opened again; null: nobody has decided anything. */
  readonly decidedAt: number | null;
  readonly decidedBy: string | null;
  /** Ignored until then, or until it has failed so many times since. */
  readonly untilAt: number | null;
  readonly untilCount: number | null;
  /** Failures since it was ignored until a count. */
  readonly since: number;
  readonly note: string | null;
  readonly link: string | null;
  /** Dead jobs among the newest that were looked at. */
  readonly dead: number;
  /** Jobs that failed so and wait for their next attempt. */
  readonly retrying: number;
  /** Attempts that failed so, as the workers counted them (or jobs that died so, where none did). */
  readonly lastHour: number;
  readonly lastDay: number;
  readonly lastWeek: number;
  /** The last 24 hours, by the hour, oldest first. */
  readonly day: readonly number[];
  readonly firstAt: number | null;
  readonly lastAt: number | null;
  /** The newest job of the group, a dead one if there is one; it may be gone. */
  readonly sample: string | null;
  readonly message: string | null;
}

/** One cause, with more of its past. */
export interface FailureGroupDetail extends FailureGroup {
  /** By the hour, oldest first. */
  readonly week: readonly number[];
  /** When the first of these hours begins. */
  readonly weekFrom: number;
  /** In 30 days, the most frequent first. */
  readonly places: readonly { readonly queue: string; readonly version: number; readonly n: number }[];
}

/** Which causes. */
export interface FailureGroupFilter {
  readonly queues?: readonly string[];
  readonly names?: readonly string[];
  readonly states?: readonly FailureGroupState[];
  /** Tells nothing of other queues than `queues`: for viewers who may see these alone. */
  readonly within?: boolean;
}

/** The groups, and how far was looked. */
export interface FailureGroups {
  readonly groups: readonly FailureGroup[];
  /** Ended jobs that were looked at, newest first. */
  readonly searched: number;
  readonly cut: boolean;
}

/** Failures by something else than their cause. */
export interface FailuresBy {
  readonly by: "name" | "queue" | "worker" | "version" | "hour";
  readonly lines: readonly {
    /** The kind, the queue, the worker, the version, or when the hour began (epoch milliseconds). */
    readonly value: string;
    /** Of a version: the name whose version it is. */
    readonly name: string | null;
    /** Attempts that failed. */
    readonly failures: number;
    readonly groups: number;
    readonly lastAt: number;
  }[];
  /** Only the newest counts were added up. */
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

/** Which runs: jobs that remember steps. */
export interface RunFilter {
  readonly states?: readonly JobState[];
  readonly queues?: readonly string[];
  readonly names?: readonly string[];
  /** It failed, or a step of it did, and will be tried again. */
  readonly retrying?: boolean;
  /** At one step for longer than this. A sleep that is not over, and the pause before a next try, do not count. */
  readonly atLeastMs?: number;
}

/** A run and how far it is. */
export interface RunSummary {
  readonly job: JobSummary;
  /** Steps that are known so far, and those of them that are over. */
  readonly known: number;
  readonly done: number;
  readonly retrying: boolean;
  /** The newest step that is not over; null: none is. */
  readonly at: {
    readonly name: string;
    readonly kind: StepKind;
    readonly since: number;
    /** When a sleep or the next try is due. */
    readonly until: number | null;
    /** The job that it waits for. */
    readonly child: string | null;
  } | null;
}

/** A page of runs, newest first. */
export interface RunPage {
  readonly runs: readonly RunSummary[];
  readonly cursor: string | null;
  readonly cut: boolean;
}

/** Which batches. */
export interface BatchFilter {
  /** Open: some of its jobs have not ended; failed: some have ended badly. */
  readonly state?: "open" | "ended" | "failed";
}

/** What was enqueued together, and how far it is. */
export interface BatchSummary {
  readonly id: string;
  readonly createdAt: number;
  /** The kinds of its jobs, the first few. */
  readonly names: readonly string[];
  /** How many jobs it had. */
  readonly total: number;
  /** How many of them were looked at, the newest; what follows is among those. */
  readonly counted: number;
  /** There are more. */
  readonly cut: boolean;
  readonly done: number;
  readonly dead: number;
  readonly cancelled: number;
  /** Not ended; those that run are among them. */
  readonly open: number;
  readonly running: number;
  /** Not kept any more. */
  readonly gone: number;
  /** When the first of them started, and when the last of them ended; null: not yet, or there are more than were looked at. */
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  /** What runs when all have ended. */
  readonly then: {
    readonly id: string;
    readonly name: string;
    /** Null: it is not kept any more. */
    readonly state: JobState | null;
  } | null;
  /** What becomes of it when one ends badly. */
  readonly policy: "cancel" | "continue" | "wait" | null;
}

/** A page of batches, newest first. */
export interface BatchPage {
  readonly batches: readonly BatchSummary[];
  /** Where to go on; null at the end. With a filter a page may be short and have more behind it. */
  readonly cursor: string | null;
}

/** Ids by a part of them. */
export interface IdMatches {
  /** Newest first. */
  readonly ids: readonly string[];
  /** There are others that begin or end so. */
  readonly more: boolean;
  /** Where to look on for ids that end so; null: every job was looked at. */
  readonly cursor: string | null;
  /** When the oldest that was looked at was made; null: there was none. */
  readonly since: number | null;
}

/** The looks. */
export interface Insight {
  /**
   * The jobs whose ids begin or end so: of those that begin so the newest, of those that end so the ones among as many of the newest
   * jobs as a few milliseconds suffice for. From a cursor on only ends are looked for.
   */
  matching(part: IdPart, page: { limit: number; cursor: string | null }): Promise<IdMatches>;
  /** Newest first; with `order: "due"` (scheduled jobs by queue and name alone) the next due first. */
  browse(
    filter: InsightFilter,
    page: { limit: number; cursor: string | null; order?: "newest" | "due" },
  ): Promise<InsightPage>;
  /** How many jobs of each state match. States that the filter leaves out are absent. */
  tally(filter: InsightFilter): Promise<StateTally>;
  /** What could be chosen beside the filter, and how many there are of it. */
  facets(filter: InsightFilter): Promise<JobFacets>;
  inspect(id: string): Promise<JobDetail | null>;
  /** Newest first. */
  runs(filter: RunFilter, page: { limit: number; cursor: string | null }): Promise<RunPage>;
  /** Newest first; how far each is, is counted up to a bound. */
  batches(filter: BatchFilter, page: { limit: number; cursor: string | null }): Promise<BatchPage>;
  /** Live jobs by queue and name: of all, or of these queues and names alone, which then have the bounds to themselves. */
  jobTypes(
    of?: Pick<InsightFilter, "queues" | "names">,
  ): Promise<{ now: number; jobTypes: readonly JobTypeTally[] }>;
  /** What runs, by queue and name: a few looks, where `job types` counts everything. */
  running(): Promise<{ now: number; jobTypes: readonly RunningJobType[] }>;
  /** Every queue and name that has had a job. */
  jobTypeNames(): Promise<readonly { readonly queue: string; readonly name: string }[]>;
  /** What wants attention first: regressed and open ones, then the most jobs. */
  failureGroups(filter: FailureGroupFilter): Promise<FailureGroups>;
  failureGroup(group: string): Promise<FailureGroupDetail | null>;
  /** As workers counted them since then. Which worker is known of the last hour or two alone. */
  failuresBy(by: FailuresBy["by"], since: number): Promise<FailuresBy>;
  /** Writes what was decided about a cause. False: no failure has it. */
  decideOn(group: string, change: FailureGroupChange): Promise<boolean>;
  /** The queues that have a row of their own (of these names): paused, cooled down, or with settings. */
  queueRows(names?: readonly string[]): Promise<
    readonly {
      name: string;
      pausedAt: number | null;
      drainingAt: number | null;
      coolUntil: number | null;
      settings: QueueSettings;
    }[]
  >;
  addAudit(entry: AuditEntry): Promise<void>;
  /** Newest first; all of it, or what was done to one thing. */
  audit(page: {
    readonly limit: number;
    readonly before: number | null;
    readonly target?: string;
  }): Promise<readonly AuditLine[]>;
  health(): Promise<DatabaseHealth>;
}
