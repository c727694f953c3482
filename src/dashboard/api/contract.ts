/**
 * The dashboard's JSON, version 1: what every route takes and gives. The page in ui/ is written against these types, and
 * openapi.ts describes the same shapes for everybody else.
 *
 * Instants are epoch milliseconds. Counts stop at 10,000 and say so (`more`). JSON values of jobs travel as text, already
 * redacted, so that numbers keep all their digits. Fields are added, never renamed; a break would be /api/v2.
 */
import type { Check } from "../../operate/diagnosis.ts";
import type {
  AuditLine,
  BatchPage as BatchList,
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
  IdMatches,
  JobFacets,
  JobSummary,
  QueueSettings,
  StateTally,
} from "../../operate/browse.ts";
import type { JobState } from "../../jobs/job.ts";
import type { WordFilter, WordTexts } from "../../operate/filter-range.ts";
import type { BulkAction, BulkVerb, KeptEdit, Operation as KeptOperation } from "../../operate/operations.ts";
import type { DutyState } from "../../upkeep/store.ts";
import type { WorkerState } from "../../lease/store.ts";
import type { Hold, BreakerState } from "../../limits/store.ts";
import type { WhyReason } from "../../operate/why.ts";
import type { Delta, Fields } from "../live/delta.ts";

export type {
  AuditLine,
  BatchList,
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
  "jobs:pause",
  "jobs:cancel",
  "jobs:terminate",
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
    /** With INPUT_INVALID: what the schema found, and where (`.user.email`, `.items[0]`). At most 20. */
    readonly issues?: readonly { readonly path: string; readonly message: string }[];
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
  /** As `#rrggbb`; null: the page's own. */
  readonly labelColor: string | null;
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
  /** How many may run at once over the cluster; null: no limit is set. */
  readonly concurrency: number | null;
  /** Its rate over the cluster, and the starts in the window that ends now. */
  readonly rate: { readonly limit: number; readonly perMs: number; readonly used: number } | null;
  /** Over all live workers that are not quiet. */
  readonly slots: number;
  readonly workers: number;
  /** Live workers of it that are quiet. */
  readonly quiet: number;
  readonly oldestMs: number | null;
  /** Kinds with ready jobs that no live worker serves. */
  readonly unserved: readonly string[];
}

export interface Overview {
  readonly at: number;
  readonly verdict: {
    readonly level: "good" | "warn" | "bad" | "idle";
    readonly text: string;
    /** The same in pieces, some of which lead somewhere. */
    readonly parts: readonly VerdictPart[];
  };
  readonly totals: {
    readonly ready: CappedCount;
    readonly scheduled: CappedCount;
    readonly waiting: CappedCount;
    readonly running: number;
    readonly retrying: CappedCount;
    readonly dead: CappedCount;
  };
  readonly oldestMs: number | null;
  /** Jobs done a minute, in the last five that are over; null: nothing was counted. */
  readonly perMinute: number | null;
  /** Of workers that are not quiet. */
  readonly slots: number;
  /** All that live. */
  readonly workers: number;
  /** How many of them are quiet. */
  readonly quiet: number;
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

/** Jobs by a part of their ids. */
export interface JobMatches extends Omit<IdMatches, "ids"> {
  /** Newest first. */
  readonly jobs: readonly JobLine[];
}

/** `states`: each state's count under the other filters. */
export type JobCount = StateTally;

export interface JobDetail extends Omit<StoredDetail, "input" | "errors"> {
  /** `ranMs`: how long the attempt ran; null: not measured. `lost`: with its worker; then it was held so long, until its lease passed. */
  readonly errors: readonly {
    readonly at: number;
    readonly attempt: number;
    readonly message: string;
    readonly stack: string | null;
    readonly ranMs: number | null;
    readonly lost: boolean;
  }[];
  /** JSON text, redacted like `output` and `progress`; null: not yours to see, or not asked for (`without`). */
  readonly input: string | null;
  /** Other if the input or output is another; null: there is none, or it is not yours to see. Good as long as the server runs. */
  readonly inputTag: string | null;
  readonly outputTag: string | null;
  readonly payloadHidden: boolean;
  /** Where something was taken out of the input, from the top: [["user", "password"]]; [[]] is all of it. */
  readonly masked: readonly (readonly string[])[];
  readonly why: { readonly reason: string; readonly text: string; readonly until: number | null };
  /** The versions of its definition that living workers have, least first. */
  readonly workerVersions: readonly number[];
}

/** Whether an input fits its kind's schema. */
export interface InputCheck {
  /** False: this process does not have the definition, or it has no schema. */
  readonly checked: boolean;
  /** What does not fit; empty: it does. */
  readonly issues: readonly { readonly path: string; readonly message: string }[];
}

/** Kinds that workers have registered, or that this process has the definition of; by name, at most 1,000. */
export interface KindList {
  readonly kinds: readonly {
    readonly name: string;
    /** Its definition computes a unique key, a lane. */
    readonly unique: boolean;
    readonly lane: boolean;
    /** This process has its definition. */
    readonly here: boolean;
  }[];
}

/** What is known of a kind to whoever would enqueue one. */
export interface KindDetail {
  readonly name: string;
  readonly here: boolean;
  /** Where its jobs go where nobody says otherwise, as far as this process knows. */
  readonly queue: string;
  /** Its definition computes a unique key, a lane. If not here, they must be given. */
  readonly unique: boolean;
  readonly lane: boolean;
  /** An input is held against a schema before it is enqueued. */
  readonly checked: boolean;
  /** That schema as JSON Schema (draft 2020-12), where it offers that and is not too large. */
  readonly schema: Readonly<Record<string, unknown>> | null;
  /** The signals that it declares to wait for, and what their data is to be, in the same way. */
  readonly signals: readonly Pick<KindDetail, "name" | "checked" | "schema">[];
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
  /** Settings that hold for a while: until when, and what those of them that were changed go back to. */
  readonly override: {
    readonly untilAt: number;
    readonly back: Readonly<Record<string, unknown>> | null;
  } | null;
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
    /** Of this queue, and how many of its jobs run in them. */
    readonly slots: number;
    readonly running: number;
    readonly quiet: boolean;
  }[];
  /** The lanes with most jobs, at most ten, as far as the jobs that are due longest and shortest tell. */
  readonly lanes: readonly LaneLine[];
  /** When the next of its scheduled jobs is due. */
  readonly nextAt: number | null;
  /** Why nothing is claimed from it, all that holds; empty: nothing stands in the way. */
  readonly obstacles: readonly string[];
  /** The same with the reason, which is one of `why`'s, or "slots-taken" or "nothing-due". */
  readonly standstill: readonly {
    readonly reason: WhyReason | "slots-taken" | "nothing-due";
    readonly text: string;
    /** When it passes by itself, where that is known. */
    readonly until: number | null;
  }[];
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
  /** The first of them, at most 5, by name. */
  readonly runs: readonly {
    readonly id: string;
    readonly name: string;
    readonly queue: string;
    readonly startedAt: number | null;
  }[];
  /** Attempts that failed with it in the last hour. */
  readonly failed: number;
}

/** A worker whose lease passed without its saying so, in the last hour. */
export interface LostWorkerLine {
  readonly id: string;
  readonly name: string;
  readonly host: string;
  readonly pid: number;
  readonly release: string | null;
  readonly beatAt: number;
  readonly lostAt: number;
  /** Jobs that nobody has taken over yet. */
  readonly held: number;
}

export interface WorkerList {
  readonly workers: readonly WorkerLine[];
  readonly duties: readonly DutyLine[];
  /** Latest first, at most 20. */
  readonly lost: readonly LostWorkerLine[];
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
  /** When it fires, as a person would say it: "Weekdays at 09:00, Europe/London". */
  readonly words: string;
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
  /** No live worker takes jobs of its kind from its queue. */
  readonly unserved: boolean;
  /** What keeps its queue from being claimed from, in words; empty: nothing. */
  readonly obstacles: readonly string[];
}

/** The next runs of a timing that nobody has saved, or what is wrong with it. */
export interface TimingPreview {
  readonly words: string | null;
  readonly error: string | null;
  readonly runs: readonly {
    readonly at: number;
    readonly local: string;
    readonly offset: string;
    readonly note: string | null;
  }[];
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
        /** From its slot to its start; null: not started, or retried since. */
        readonly lateMs: number | null;
        readonly ranMs: number | null;
      }[]
    >
  >;
}

/** The newest runs of one schedule, newest first. */
export interface ScheduleHistory {
  readonly runs: readonly ScheduleRunLine[];
}

export interface ScheduleRunLine {
  /** Its slot; of a run by hand: when somebody asked for it. */
  readonly at: number;
  readonly by: "slot" | "backfill" | "hand";
  readonly jobId: string;
  /** Null, with all that follows: the job is not kept any more. */
  readonly state: JobState | null;
  readonly attempt: number | null;
  /** Of the latest attempt. */
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  /** From its slot to its first start; null: not started, not known, or no slot made it. */
  readonly lateMs: number | null;
  /** How long the latest attempt ran. */
  readonly ranMs: number | null;
}

/** A piece of the verdict, and where on the page it leads; null: nowhere. */
export interface VerdictPart {
  readonly text: string;
  readonly to: string | null;
}

/** What `holdfast doctor` says of the database, in its words, and how the database is kept. */
export interface DoctorReport {
  /** When it was looked. */
  readonly at: number;
  /** Nothing is wrong. */
  readonly ok: boolean;
  readonly checks: readonly Check[];
  /** The newest migration that was applied. */
  readonly schema: { readonly version: number; readonly name: string; readonly appliedAt: number };
  /** As the dashboard's own client was opened; 0: for ever. */
  readonly retention: {
    readonly doneMs: number;
    /** Of dead and cancelled jobs. */
    readonly deadMs: number;
    /** So many queues have their own. */
    readonly queues: number;
    /** Null: this client keeps no event log. */
    readonly eventLogMs: number | null;
  };
  /** When ended jobs were last deleted, by which worker, and from when on it is due again; null: never yet. */
  readonly prune: { readonly doneAt: number; readonly nextAt: number; readonly by: string | null } | null;
  /** What keeps Postgres from cleaning up. Null where nobody does, or nobody may know. */
  readonly oldest: {
    readonly transactionMs: number | null;
    /** Such as "psql, pid 4711, idle in transaction". */
    readonly whose: string | null;
    /** Transactions that have begun since the oldest snapshot that is still read. */
    readonly xminAge: number | null;
  };
}

/** The kinds whose attempts take longest, slowest first; at most 8. */
export interface SlowKinds {
  readonly kinds: readonly {
    readonly name: string;
    readonly p95Ms: number;
    /** Attempts that this is known from. */
    readonly count: number;
  }[];
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
  /** Its number: steps are in the order of it. */
  readonly seq: number;
  readonly name: string;
  readonly kind: "step" | "sleep" | "signal" | "call" | "version" | "undo" | "machine";
  /** `cancelled`: the run ended before the step did. */
  readonly state: "done" | "failed" | "running" | "waiting" | "cancelled";
  /** The attempt of the job that it was last written in. */
  readonly attempt: number;
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
  /** Null: a job that is not kept any more, or that this person may not view. */
  readonly state: JobState | FlowStep["state"] | null;
  readonly jobId: string | null;
  /** The step that it stands for; null: a job. */
  readonly seq: number | null;
}
export interface FlowHistory {
  /** Attempts of the job: those that failed, and the latest. Null: not known. */
  readonly attempts: readonly {
    readonly attempt: number;
    readonly startedAt: number | null;
    readonly endedAt: number | null;
    readonly error: string | null;
    /** With its worker: it ended when its lease passed. */
    readonly lost: boolean;
  }[];
  /** In the order in which they were asked for: one page, the newest first of all. */
  readonly steps: readonly FlowStep[];
  /** How many there are in all, up to 10,000; then `stepCountMore`. */
  readonly stepCount: number;
  readonly stepCountMore: boolean;
  /** Hand it back as `before` for the steps before these; null: there are none. */
  readonly earlier: number | null;
  /** What the run took in these steps, and what it waits for. */
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
    /** Null: it is not kept any more, or `hidden`. */
    readonly name: string | null;
    readonly relation: "called" | "enqueued" | "after";
    readonly state: JobState | null;
    readonly step: string | null;
    readonly error: string | null;
    /** It is in a queue that this person may not view. */
    readonly hidden: boolean;
  }[];
  /** The newest 1,000 steps, children and dependencies, for drawing; the job itself is among the nodes. */
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
    /** It waits to be resumed. */
    readonly paused: boolean;
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
    /** Jobs that are due. */
    readonly waiting: CappedCount;
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
  /** Jobs that are due of kinds that take from it at each start; null: no kind does, only handlers by themselves. */
  readonly waiting: CappedCount | null;
  /** When it was looked at: its tokens have grown since. */
  readonly at: number;
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
  /** Ready jobs of all other queues together; null for viewers who may not see these. */
  readonly other: readonly (number | null)[];
  readonly running: readonly (number | null)[];
  readonly slots: readonly (number | null)[];
}

/**
 * How the database was, measured once a minute; of longer steps the mean (over many hours, of a few of its minutes). Each list has
 * one value for each of `at`. Null: nobody measured it, or the database has no such thing.
 */
export interface DatabaseSeries {
  readonly stepMs: number;
  readonly at: readonly number[];
  readonly sizeBytes: readonly (number | null)[];
  readonly walBytes: readonly (number | null)[];
  readonly diskFreeBytes: readonly (number | null)[];
  /** Of the whole database, whoever has them. */
  readonly connections: readonly (number | null)[];
  /** How long a worker's look for jobs took: over all workers, and for the slowest. */
  readonly readMs: { readonly mean: readonly (number | null)[]; readonly most: readonly (number | null)[] };
  /** How long it took a worker to write its minute. */
  readonly writeMs: { readonly mean: readonly (number | null)[]; readonly most: readonly (number | null)[] };
  /** Connections of the workers' own pools, all processes together; null: there are no pools (SQLite), or nothing was measured. */
  readonly pool: {
    readonly used: readonly (number | null)[];
    readonly idle: readonly (number | null)[];
    /** Callers who waited for a connection. */
    readonly waiting: readonly (number | null)[];
  } | null;
}

/** What the workers of a host used, all processes together. */
export interface HostLine {
  readonly host: string;
  /** In cores: 1.5 is one and a half. */
  readonly cpu: readonly (number | null)[];
  readonly rssBytes: readonly (number | null)[];
  /** How late the event loop was, of the process in which it was latest. */
  readonly loopDelayMs: readonly (number | null)[];
}

/** How the workers' machines were, measured once a minute; as `DatabaseSeries`. */
export interface HostSeries {
  readonly stepMs: number;
  readonly at: readonly number[];
  /** Those whose workers used most CPU, at most four. */
  readonly hosts: readonly HostLine[];
  /** The highest of all others; null: there are none. */
  readonly others: (Omit<HostLine, "host"> & { readonly hosts: number }) | null;
  readonly deploys: readonly Deploy[];
}

// --- The stream -----------------------------------------------------------------------------------------------------

/** On every answer to a GET: when it was begun to be read, in epoch milliseconds of the server's clock. */
export const READ_AT = "x-holdfast-read-at";

/** `event: snapshot`: the whole of a topic, which is what its route answers. It comes first. */
export interface StreamSnapshot {
  readonly topic: string;
  /** When it was begun to be read: what the header of that name says of an answer. */
  readonly readAt: number;
  readonly value: Fields;
}
/** `event: change`: what has changed of it; `event: age`: nothing but ages, every 5 seconds. */
export interface StreamChange {
  readonly topic: string;
  readonly readAt: number;
  readonly delta: Delta;
}
/** `event: current`: whoever came back with `Last-Event-ID` knows it as it is. @public */
export interface StreamCurrent {
  readonly topic: string;
}
/** `event: refused`: it cannot be told, as its route would say (there is no such job). */
export interface StreamRefused {
  readonly topic: string;
  readonly status: number;
  readonly code: string;
  readonly message: string;
}
/** `event: trouble`: the database did not answer; the stream stays and goes on when it does. @public */
export interface StreamTrouble {
  readonly topic: string;
  readonly message: string;
}
