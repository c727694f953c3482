/**
 * The dashboard's JSON, version 1: what every route takes and gives. The page in ui/ is written against these types, and
 * openapi.ts describes the same shapes for everybody else.
 *
 * Instants are epoch milliseconds. Counts stop at 10,000 and say so (`more`). JSON values of jobs travel as text, already
 * redacted, so that numbers keep all their digits. Fields are added, never renamed; a break would be /api/v2.
 *
 * The parts of features that a client may not have (flows, schedules, lanes, budgets, breakers, series) are here as well:
 * `/api/v1/features` says which there are, and the others' routes answer 404 FEATURE_ABSENT.
 */
import type { CappedCount, DatabaseHealth, QueueSettings } from "../insight.ts";
import type { JobState } from "../job.ts";

export type { CappedCount, DatabaseHealth, JobState, QueueSettings };

/** What one may do. `view` and `view:payload` are reads; the rest are actions. */
export const PERMISSIONS = [
  "view",
  "view:payload",
  "jobs:search",
  "jobs:retry",
  "jobs:run",
  "jobs:cancel",
  "jobs:delete",
  "jobs:enqueue",
  "queues:pause",
  "queues:set",
  "limits:set",
  "schedules:trigger",
  "schedules:set",
  "flows:signal",
  "workers:stop",
  "audit:view",
] as const;
/** One of the things that a person may be allowed to do on the dashboard. */
export type Permission = (typeof PERMISSIONS)[number];

/** Error codes of the API itself; codes of Holdfast (BAD_OPTION, …) come through as they are. */
export type ApiErrorCode =
  | "BAD_REQUEST"
  | "UNAUTHORIZED"
  | "FORBIDDEN"
  | "READ_ONLY"
  | "BAD_HOST"
  | "CROSS_SITE"
  | "NOT_FOUND"
  | "FEATURE_ABSENT"
  | "METHOD_NOT_ALLOWED"
  | "CONFLICT"
  | "TOO_LARGE"
  | "UNSUPPORTED_MEDIA_TYPE"
  | "TOO_MANY_REQUESTS"
  | "UNAVAILABLE"
  | "INTERNAL";

/** The body of every answer that is not 2xx. */
export interface ErrorBody {
  readonly error: {
    readonly code: string;
    readonly message: string;
    /** Which parameter or field. */
    readonly field?: string;
    /** With 500: the same id is in the log. */
    readonly requestId?: string;
  };
}

export interface Me {
  readonly user: string;
  readonly permissions: readonly Permission[];
  readonly readOnly: boolean;
}

export type Feature = "flows" | "schedules" | "lanes" | "budgets" | "breakers" | "series";
export interface Features {
  readonly version: string;
  readonly dialect: "sqlite" | "postgres";
  readonly label: string | null;
  readonly features: Readonly<Record<Feature, boolean>>;
}

// --- Overview -------------------------------------------------------------------------------------------------

export interface QueueLine {
  readonly name: string;
  readonly pausedAt: number | null;
  readonly coolUntil: number | null;
  /** Names of the holds over it. */
  readonly holds: readonly string[];
  readonly ready: CappedCount;
  readonly scheduled: CappedCount;
  readonly waiting: CappedCount;
  readonly running: number;
  /** Over all live workers. */
  readonly slots: number;
  readonly workers: number;
  readonly oldestMs: number | null;
  /** Kinds with ready jobs that no live worker serves. */
  readonly unserved: readonly string[];
}

export interface Overview {
  readonly at: number;
  readonly verdict: { readonly level: "good" | "warn" | "bad" | "idle"; readonly text: string };
  readonly totals: {
    readonly ready: CappedCount;
    readonly scheduled: CappedCount;
    readonly waiting: CappedCount;
    readonly running: number;
    readonly retrying: CappedCount;
    readonly dead: CappedCount;
  };
  readonly oldestMs: number | null;
  readonly slots: number;
  readonly workers: number;
  readonly holds: number;
  /** The busiest first, at most 200. */
  readonly queues: readonly QueueLine[];
  readonly queueCount: number;
}

/** What the server has seen since somebody first looked: one point a second, at most 15 minutes. */
export interface Recent {
  readonly at: readonly number[];
  readonly ready: readonly number[];
  readonly running: readonly number[];
  readonly scheduled: readonly number[];
  readonly oldestMs: readonly (number | null)[];
}

// --- Jobs -----------------------------------------------------------------------------------------------------

export interface JobLine {
  readonly id: string;
  readonly name: string;
  readonly queue: string;
  readonly state: JobState;
  readonly priority: number;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly crashes: number;
  /** The input on one line, redacted and cut; null: too large, or not yours to see. */
  readonly preview: string | null;
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

export interface JobList {
  readonly jobs: readonly JobLine[];
  readonly cursor: string | null;
  /** The search stopped at its bound before the page was full: go on from the cursor. */
  readonly cut: boolean;
}

export interface JobCount {
  readonly total: CappedCount;
  /** Each state's count under the other filters. */
  readonly states: Partial<Record<JobState, CappedCount>>;
}

export interface JobDetail extends Omit<JobLine, "preview"> {
  /** JSON text, redacted; null: not yours to see. */
  readonly input: string | null;
  readonly output: string | null;
  readonly progress: string | null;
  readonly errors: readonly { at: number; attempt: number; message: string; stack: string | null }[];
  readonly throttles: number;
  readonly leaseUntil: number | null;
  readonly timeoutMs: number | null;
  readonly deadlineAt: number | null;
  readonly payloadHidden: boolean;
  readonly why: { readonly reason: string; readonly text: string; readonly until: number | null };
}

/** Which jobs, in a query string or a bulk action's `filter`. */
export interface FilterJson {
  readonly ids?: readonly string[];
  readonly state?: readonly JobState[];
  readonly queue?: readonly string[];
  readonly name?: readonly string[];
  readonly lane?: string;
  readonly key?: string;
  readonly since?: number;
  readonly until?: number;
  readonly errorGroup?: string;
  readonly retrying?: boolean;
  readonly search?: string;
}

export type BulkAction = "retry" | "run-now" | "cancel" | "delete";

/** What a bulk action would do. Nothing was changed. */
export interface DryRun {
  readonly dryRun: true;
  readonly action: BulkAction;
  readonly filter: FilterJson;
  /** Hand this back as `filter`: it leaves out what came later. */
  readonly bounded: FilterJson;
  readonly matched: CappedCount;
  readonly samples: readonly JobLine[];
}

export interface Operation {
  readonly id: string;
  readonly action: BulkAction;
  readonly filter: FilterJson;
  readonly actor: string;
  readonly state: "running" | "done" | "stopped" | "failed";
  readonly startedAt: number;
  readonly endedAt: number | null;
  readonly matched: number;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly error: string | null;
}

export interface ErrorGroupLine {
  readonly group: string;
  readonly queue: string;
  readonly name: string;
  readonly message: string | null;
  readonly dead: number;
  readonly retrying: number;
  readonly lastHour: number;
  readonly lastDay: number;
  readonly firstAt: number | null;
  readonly lastAt: number | null;
  readonly sample: string;
}
export interface ErrorGroups {
  readonly groups: readonly ErrorGroupLine[];
  /** Ended jobs that were looked at, newest first. */
  readonly searched: number;
  readonly cut: boolean;
}

// --- Queues, holds, workers, database, audit ----------------------------------------------------------------------

export interface QueueDetail extends QueueLine {
  readonly settings: QueueSettings;
  readonly kinds: readonly {
    readonly name: string;
    readonly ready: CappedCount;
    readonly scheduled: CappedCount;
    readonly waiting: CappedCount;
    readonly running: number;
    readonly oldestMs: number | null;
    readonly served: boolean;
  }[];
  readonly workersHere: readonly {
    readonly id: string;
    readonly name: string;
    readonly slots: number;
    readonly running: number;
  }[];
  /** Why nothing is claimed from it; empty: nothing stands in the way. */
  readonly obstacles: readonly string[];
}

export interface HoldLine {
  readonly name: string;
  readonly queues: readonly string[] | null;
  readonly reason: string | null;
  readonly setAt: number;
}

export interface WorkerLine {
  readonly id: string;
  readonly session: number;
  readonly kind: "worker" | "lease";
  readonly name: string;
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  readonly queues: Readonly<Record<string, number>>;
  readonly names: readonly string[];
  readonly slots: number;
  readonly startedAt: number;
  readonly beatAt: number;
  readonly leaseUntil: number;
  readonly stopping: boolean;
  readonly running: number;
  /** At most 50. */
  readonly jobs: readonly string[];
}

export interface AuditLine {
  readonly id: number;
  readonly at: number;
  readonly actor: string;
  readonly action: string;
  readonly target: string | null;
  readonly outcome: string;
  readonly details: string | null;
}

// --- Features that a client may not have -----------------------------------------------------------------------------

export interface ScheduleLine {
  readonly name: string;
  readonly job: string;
  readonly queue: string;
  /** The cron expression, or null for an interval. */
  readonly cron: string | null;
  readonly everyMs: number | null;
  readonly timezone: string;
  readonly paused: boolean;
  readonly nextAt: number | null;
  readonly lastAt: number | null;
  readonly lastJobId: string | null;
  readonly missed: "skip" | "one" | "all";
  readonly overlap: "allow" | "skip" | "queue";
  readonly jitterMs: number;
  readonly fired: number;
  readonly skipped: number;
  /** A bad row that disabled itself. */
  readonly error: string | null;
  /** An operator changed it: code does not overwrite it. */
  readonly edited: boolean;
}

export interface FlowStep {
  readonly name: string;
  readonly kind: "step" | "sleep" | "wait" | "call" | "machine";
  readonly state: "done" | "failed" | "running" | "waiting" | "pending";
  readonly attempt: number;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  /** A sleep's or a wait's end. */
  readonly until: number | null;
  /** JSON text, redacted. */
  readonly output: string | null;
  readonly error: string | null;
  /** The job that a `call` waits for. */
  readonly jobId: string | null;
}
export interface FlowNode {
  readonly id: string;
  readonly label: string;
  readonly kind: "job" | FlowStep["kind"];
  readonly state: JobState | FlowStep["state"];
  readonly jobId: string | null;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
}
export interface FlowHistory {
  readonly steps: readonly FlowStep[];
  readonly signals: readonly {
    name: string;
    key: string | null;
    at: number;
    usedAt: number | null;
    data: string | null;
  }[];
  readonly children: readonly {
    id: string;
    name: string;
    queue: string;
    state: JobState;
    createdAt: number;
    endedAt: number | null;
  }[];
  /** Steps, children and dependencies, for drawing; the job itself is among the nodes. */
  readonly graph: {
    readonly nodes: readonly FlowNode[];
    readonly edges: readonly { from: string; to: string }[];
  };
}

export interface LaneLine {
  readonly queue: string;
  readonly lane: string;
  readonly ready: CappedCount;
  readonly running: number;
  readonly concurrency: number | null;
  readonly rate: { readonly limit: number; readonly perMs: number } | null;
  readonly weight: number;
  readonly paused: boolean;
}
export interface LaneList {
  readonly lanes: readonly LaneLine[];
  readonly cursor: string | null;
}

export interface BudgetLine {
  readonly name: string;
  readonly limit: number;
  readonly perMs: number;
  readonly burst: number;
  readonly tokens: number;
  /** When the next token comes, if there is none now. */
  readonly nextAt: number | null;
}

export interface BreakerLine {
  readonly key: string;
  readonly state: "closed" | "open" | "half-open";
  readonly failures: number;
  readonly threshold: number;
  readonly openUntil: number | null;
  readonly error: string | null;
}

/** Minute roll-ups. Each list has one value for each of `at`; null: nothing was measured. */
export interface Series {
  readonly stepMs: number;
  readonly at: readonly number[];
  readonly enqueued: readonly number[];
  readonly done: readonly number[];
  readonly retried: readonly number[];
  readonly dead: readonly number[];
  readonly waitMs: {
    readonly p50: readonly (number | null)[];
    readonly p95: readonly (number | null)[];
    readonly p99: readonly (number | null)[];
  };
  readonly runMs: {
    readonly p50: readonly (number | null)[];
    readonly p95: readonly (number | null)[];
    readonly p99: readonly (number | null)[];
  };
}

// --- The stream -----------------------------------------------------------------------------------------------------

/** `event: snapshot` comes first, then `event: change`; at least every 5 seconds. */
export interface StreamEvent {
  readonly overview: Overview;
}
/** `event: trouble`: the database did not answer; the stream stays and goes on when it does. */
export interface StreamTrouble {
  readonly message: string;
}
