/**
 * The dashboard's JSON, version 1: what every route takes and gives. The page in ui/ is written against these types, and
 * openapi.ts describes the same shapes for everybody else.
 *
 * Instants are epoch milliseconds. Counts stop at 10,000 and say so (`more`). JSON values of jobs travel as text, already
 * redacted, so that numbers keep all their digits. Fields are added, never renamed; a break would be /api/v2.
 */
import type {
  AuditLine,
  CappedCount,
  DatabaseHealth,
  ErrorGroup,
  ErrorGroupDetail,
  ErrorGroups,
  FailuresBy,
  InsightFilter,
  InsightPage,
  FacetValue,
  JobDetail as StoredDetail,
  JobFacets,
  JobSummary,
  QueueSettings,
  StateTally,
} from "../insight.ts";
import type { JobState } from "../job.ts";
import type { WordFilter, WordTexts } from "../policy/range.ts";
import type { TriageState } from "../policy/triage.ts";
import type { BulkAction, BulkVerb, KeptEdit, Operation as KeptOperation } from "../operations.ts";
import type { BreakerState, DutyState, Hold, WorkerState } from "../store.ts";

export type {
  AuditLine,
  BulkAction,
  BulkVerb,
  CappedCount,
  DatabaseHealth,
  ErrorGroup,
  ErrorGroupDetail,
  ErrorGroups,
  FailuresBy,
  FacetValue,
  JobFacets,
  JobState,
  QueueSettings,
  TriageState,
};

/** A thing of the client's as it travels: its instants are numbers. */
type Json<T> = {
  readonly [K in keyof T]: T[K] extends Date ? number : T[K] extends Date | null ? number | null : T[K];
};

/** What one may do. `view` and `view:payload` are reads; the rest are actions. */
export const PERMISSIONS = [
  "view",
  "view:payload",
  "jobs:search",
  "jobs:export",
  "jobs:retry",
  "jobs:run",
  "jobs:cancel",
  "jobs:delete",
  "jobs:edit",
  "jobs:enqueue",
  "errors:triage",
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

export interface About {
  readonly version: string;
  readonly dialect: "sqlite" | "postgres";
  readonly label: string | null;
  /** Its name, where the dashboard has several databases. */
  readonly database: string | null;
  /** Those that you may see, where there are several; else empty. */
  readonly databases: readonly DatabaseLine[];
}

/** One of several databases of a dashboard. */
export interface DatabaseLine {
  readonly name: string;
  readonly label: string | null;
  /** Where its page begins; its API is at /api/v1 below that. */
  readonly path: string;
}

// --- Overview -------------------------------------------------------------------------------------------------

export interface QueueLine {
  readonly name: string;
  readonly pausedAt: number | null;
  /** It is paused by itself when nothing in it is due and nothing of it runs. */
  readonly drainingAt: number | null;
  readonly coolUntil: number | null;
  /** Names of the holds over it. */
  readonly holds: readonly string[];
  /** Breakers that are not closed: its own, and those of kinds that have ready jobs in it. */
  readonly breakers: readonly string[];
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

/** A job in a list: its input is a preview. */
export interface JobLine extends Omit<JobSummary, "input"> {
  /** The input on one line, redacted and cut; null: too large, or not yours to see. */
  readonly preview: string | null;
}

export interface JobList extends Omit<InsightPage, "jobs"> {
  readonly jobs: readonly JobLine[];
}

/** `states`: each state's count under the other filters. */
export type JobCount = StateTally;

export interface JobDetail extends Omit<StoredDetail, "input" | "errors"> {
  /** `ranMs`: how long the attempt ran; null: not measured. */
  readonly errors: readonly {
    readonly at: number;
    readonly attempt: number;
    readonly message: string;
    readonly stack: string | null;
    readonly ranMs: number | null;
  }[];
  /** JSON text, redacted like `output` and `progress`; null: not yours to see. */
  readonly input: string | null;
  readonly payloadHidden: boolean;
  readonly why: { readonly reason: string; readonly text: string; readonly until: number | null };
}

/** Which jobs, in a query string or a bulk action's `filter`. */
export interface FilterJson
  extends Omit<InsightFilter, "states" | "queues" | "names" | keyof WordFilter>, WordTexts {
  /** Of its creation: ">5m". */
  readonly age?: string;
  readonly state?: readonly JobState[];
  readonly queue?: readonly string[];
  readonly name?: readonly string[];
}

/** What a bulk edit changes: at least one; `delay` or `at`, not both. `delay`: "5m", or milliseconds. */
export type EditJson = KeptEdit;

/** What a bulk action would do. Nothing was changed. */
export interface DryRun {
  readonly dryRun: true;
  readonly action: BulkVerb;
  readonly filter: FilterJson;
  /** Hand this back as `filter`: it leaves out what came later. */
  readonly bounded: FilterJson;
  readonly matched: CappedCount;
  readonly samples: readonly JobLine[];
  /** Of an edit: what it would do to the newest ones, and of how many that is said. Null for other actions. */
  readonly outcomes: Readonly<Record<string, number>> | null;
  readonly judged: number;
  readonly change: EditJson | null;
  /** Of a retry with a patch: what becomes of the samples' inputs. JSON texts, redacted; `after` null: it does not fit. */
  readonly patched:
    | readonly { readonly id: string; readonly before: string; readonly after: string | null }[]
    | null;
}

/** A bulk action that is under way or over; the same for every dashboard and terminal on the database. */
export interface Operation extends Omit<KeptOperation, "filter" | "patch"> {
  readonly filter: FilterJson;
  /** Of a retry: inputs are changed first. */
  readonly patched: boolean;
  /** How: JSON text, redacted; null: they are not, or it is not yours to see. */
  readonly patch: string | null;
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

/** What every queue's workers did, minute by minute. */
export interface QueueTrends {
  /** When the first minute begins. */
  readonly from: number;
  readonly stepMs: number;
  /** Minutes that are over, and the one under way. A queue of which nothing ended is not there. */
  readonly queues: Readonly<
    Record<string, { readonly done: readonly number[]; readonly failed: readonly number[] }>
  >;
}

export type HoldLine = Json<Hold>;

/** What one worker does for all, and who did it last. There is no leader: whoever asks first does it next. */
export type DutyLine = Json<DutyState>;

export interface WorkerLine extends Json<WorkerState> {
  /** The duties that it did last. */
  readonly duties: readonly string[];
  /** Its latest minute; null: not measured. */
  readonly rssBytes: number | null;
  readonly loopDelayMs: number | null;
  readonly slots: number;
  readonly running: number;
  /** At most 50. */
  readonly jobs: readonly string[];
}

// --- Schedules, flows, limits, series ---------------------------------------------------------------------------------

export interface ScheduleLine {
  readonly name: string;
  /** Null, like its queue and its timing: the row cannot be read (`error` says why). */
  readonly job: string | null;
  readonly queue: string | null;
  /** The cron expression, or null for an interval. */
  readonly cron: string | null;
  readonly everyMs: number | null;
  /** Null for an interval. */
  readonly timezone: string | null;
  readonly paused: boolean;
  readonly nextAt: number | null;
  /** A slot whose job is made when the one before has ended. */
  readonly waitingAt: number | null;
  readonly lastAt: number | null;
  readonly lastJobId: string | null;
  readonly missed: "skip" | "one" | "all" | null;
  readonly overlap: "allow" | "skip" | "queue" | null;
  readonly jitterMs: number;
  /** Slots that made a job, that made none because of an earlier one, and that passed while nobody was there. */
  readonly fired: number;
  readonly skipped: number;
  readonly passed: number;
  /** A bad row that disabled itself. */
  readonly error: string | null;
  /** The options that an operator changed: code does not overwrite them. */
  readonly edited: readonly string[];
  /** No live worker serves its queue and job. */
  readonly unserved: boolean;
}

/** What a backfill came to, or would (`dryRun`). */
export interface BackfillAnswer {
  readonly dryRun: boolean;
  readonly slots: readonly {
    readonly at: number;
    readonly jobId: string | null;
    readonly status: string | null;
  }[];
  /** Slots that have their job already. */
  readonly had: number;
  /** There are more behind these. */
  readonly more: boolean;
}

/** A day of slots in pieces of 15 minutes. */
export interface Calendar {
  readonly from: number;
  readonly stepMs: number;
  /** Some counts are estimates: too many slots to walk through. */
  readonly estimated: boolean;
  readonly pieces: readonly {
    readonly count: number;
    /** At most 5, those with most slots first. */
    readonly most: readonly { readonly name: string; readonly count: number }[];
  }[];
}

/** The newest jobs of each schedule, at most 20, oldest first; null: not kept any more. */
export interface ScheduleRuns {
  readonly runs: Readonly<
    Record<
      string,
      readonly {
        readonly id: string;
        readonly at: number;
        readonly state: JobState | null;
        /** From its slot to its start; null: not started. */
        readonly lateMs: number | null;
        readonly ranMs: number | null;
      }[]
    >
  >;
}

/** Jobs that run much longer than others of their kind. */
export interface StuckList {
  readonly jobs: readonly {
    readonly id: string;
    readonly name: string;
    readonly queue: string;
    readonly workerId: string | null;
    readonly startedAt: number;
    /** Of the attempts of its kind that ended in the last 24 hours. */
    readonly p95Ms: number;
  }[];
}

export interface FlowStep {
  readonly name: string;
  readonly kind: "step" | "sleep" | "signal" | "call" | "version" | "undo" | "machine";
  /** `cancelled`: the run ended before the step did. */
  readonly state: "done" | "failed" | "running" | "waiting" | "cancelled";
  /** Tries of this step by itself. */
  readonly tries: number;
  /** When it was tried, oldest first: the newest 32. Empty for sleeps, waits and calls. */
  readonly triedAt: readonly { readonly startedAt: number; readonly endedAt: number }[];
  readonly startedAt: number;
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
  /** Null: a job that is not kept any more. */
  readonly state: JobState | FlowStep["state"] | null;
  readonly jobId: string | null;
}
export interface FlowHistory {
  /** Attempts of the job: those that failed, and the latest. Null: not known. */
  readonly attempts: readonly {
    readonly attempt: number;
    readonly startedAt: number | null;
    readonly endedAt: number | null;
    readonly error: string | null;
  }[];
  /** In the order in which they were asked for: one page, the newest first of all. */
  readonly steps: readonly FlowStep[];
  /** How many there are in all. */
  readonly stepCount: number;
  /** Hand it back as `before` for the steps before these; null: there are none. */
  readonly earlier: number | null;
  /** What the run took, or waits for. */
  readonly signals: readonly {
    readonly name: string;
    readonly key: string | null;
    readonly step: string;
    readonly state: "waiting" | "taken" | "timeout";
    readonly since: number;
    readonly takenAt: number | null;
    /** JSON text, redacted. */
    readonly data: string | null;
  }[];
  /** Jobs that it called, enqueued, or waits for (`after`); at most 1,000. */
  readonly children: readonly {
    readonly id: string;
    readonly name: string | null;
    readonly relation: "called" | "enqueued" | "after";
    readonly state: JobState | null;
    readonly step: string | null;
    readonly error: string | null;
  }[];
  /** Steps, children and dependencies, for drawing; the job itself is among the nodes. */
  readonly graph: {
    readonly nodes: readonly FlowNode[];
    readonly edges: readonly { readonly from: string; readonly to: string }[];
    /** There are more steps than are drawn. */
    readonly cut: boolean;
  };
}

/** Runs, newest first: jobs that remember steps, and how far each is. */
export interface RunList {
  readonly runs: readonly {
    readonly id: string;
    readonly name: string;
    readonly queue: string;
    readonly state: JobState;
    readonly createdAt: number;
    readonly endedAt: number | null;
    readonly errorGroup: string | null;
    /** Steps that are known so far, and those of them that are over. */
    readonly known: number;
    readonly done: number;
    /** It failed, or a step of it did, and will be tried again. */
    readonly retrying: boolean;
    /** The newest step that is not over. */
    readonly at: {
      readonly name: string;
      readonly kind: FlowStep["kind"];
      readonly since: number;
      /** When a sleep or the next try is due. */
      readonly until: number | null;
      /** The job that it waits for. */
      readonly jobId: string | null;
    } | null;
  }[];
  readonly cursor: string | null;
  /** The look ended before the page was full: go on from the cursor. */
  readonly cut: boolean;
}

/** What a run that has not ended may still come to: the steps of the newest run of its kind that ended well. */
export interface ExpectedSteps {
  /** That run; null: none is known. */
  readonly jobId: string | null;
  /** In the order in which they were asked for, at most 500; each name once, and nothing of their results. */
  readonly steps: readonly {
    readonly name: string;
    readonly kind: FlowStep["kind"];
    /** The steps right before it: their places in this list, from 0. */
    readonly after: readonly number[];
  }[];
}

/** What a job's handler said, oldest first; a job keeps its newest 1,000 lines, or what `open` was told. */
export interface LogList {
  readonly lines: readonly {
    readonly id: string;
    readonly at: number;
    readonly level: "trace" | "debug" | "info" | "warn" | "error";
    readonly attempt: number;
    /** Redacted, like `details`. */
    readonly message: string;
    /** JSON text on one line. */
    readonly details: string | null;
  }[];
  /** How many are kept of the job, whatever was asked for. */
  readonly kept: number;
  /** How many match. */
  readonly matched: number;
  /** Hand it back as `before` for the lines before these; null: there are none. */
  readonly earlier: string | null;
}

/** A limit that holds for a while. */
export interface OverrideLine {
  readonly kind: "queue" | "lane" | "budget";
  /** Of the queue or the budget; of a lane its queue. */
  readonly name: string;
  readonly lane: string | null;
  readonly setAt: number;
  readonly untilAt: number;
  /** What it goes back to; null: it was not there. */
  readonly back: Readonly<Record<string, unknown>> | null;
}

/** How far limits over the cluster are used: now, and at the end of each of the last minutes (null: not measured). */
export interface LimitUse {
  readonly at: readonly number[];
  readonly queues: readonly {
    readonly name: string;
    readonly concurrency: number | null;
    readonly rate: { readonly limit: number; readonly perMs: number } | null;
    readonly running: number;
    /** Starts in the window of the rate that ends now. */
    readonly started: number | null;
    readonly opensAt: number | null;
    readonly runningThen: readonly (number | null)[];
    readonly startedThen: readonly (number | null)[];
  }[];
  readonly budgets: Readonly<Record<string, readonly (number | null)[]>>;
}

export interface LaneLine {
  readonly queue: string;
  readonly lane: string;
  readonly waiting: CappedCount;
  readonly running: number;
  readonly concurrency: number | null;
  readonly rate: { readonly limit: number; readonly perMs: number } | null;
  /** When the rate allows the next start, if it does not now. */
  readonly rateOpensAt: number | null;
  readonly weight: number;
  readonly paused: boolean;
  /** An operator set its limits: a definition's do not change them. */
  readonly tuned: boolean;
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
  /** An operator set its numbers: the code's do not count. */
  readonly tuned: boolean;
}

export type BreakerLine = Json<BreakerState>;

/** When workers of a build first started (`release` of `hf.work`). */
export interface Deploy {
  readonly at: number;
  readonly release: string;
}

/** Roll-ups of whole minutes. Each list has one value for each of `at`; null: nothing was measured. */
export interface Series {
  readonly stepMs: number;
  readonly at: readonly number[];
  /** Builds whose first worker started in this time, at most 50. */
  readonly deploys: readonly Deploy[];
  readonly done: readonly number[];
  /** Attempts that failed and run again. */
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

/** What waited and how many slots were used, measured once a minute; of longer steps the mean. Null: nobody measured it. */
export interface Load {
  readonly stepMs: number;
  readonly at: readonly number[];
  /** The fullest queues of this time, at most four. */
  readonly queues: readonly { readonly name: string; readonly ready: readonly (number | null)[] }[];
  /** Of all the others together. */
  readonly other: readonly (number | null)[];
  readonly running: readonly (number | null)[];
  readonly slots: readonly (number | null)[];
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
