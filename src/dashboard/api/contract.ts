/**
 * The dashboard's JSON, version 1: every shape that a route takes or answers with, declared once. The static types, which
 * the page in ui/ uses too, the checks of requests and the OpenAPI document are derived from these declarations.
 *
 * Instants are epoch milliseconds. Counts stop at 10,000 and say so (`more`). JSON values of jobs travel as text, already
 * redacted, so that numbers keep all their digits. Fields are added, never renamed; a break would be /api/v2.
 * The page imports types alone from here, so that no schema is part of its bundle.
 */
import type { JobState } from "../../index.ts";
import type { QueueSettings } from "../../operate/browse.ts";
import { JOB_STATES, FAILURE_GROUP_STATES } from "../../operate/index.ts";
import { STATES_OF, type BulkVerb } from "../../operate/operations.ts";
import type { WhyReason } from "../../operate/why.ts";
import type { Delta, Fields } from "../live/delta.ts";
import {
  anyObject,
  anything,
  described,
  duration,
  flag,
  type Infer,
  instant,
  integer,
  jsonText,
  list,
  maybe,
  number,
  object,
  oneOf,
  record,
  text,
  texts,
  typed,
} from "./schema.ts";

export type { BulkAction, BulkVerb } from "../../operate/operations.ts";
export type { JobState } from "../../index.ts";

/** Everything that a person can be allowed to do. `view` and `view:payload` are reads; the rest are actions. */
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
  "errors:decide",
  "queues:pause",
  "queues:set",
  "limits:set",
  "schedules:trigger",
  "schedules:set",
  "workflows:signal",
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

const permission = oneOf(...PERMISSIONS);
const state = oneOf(...JOB_STATES);
const verb = typed<BulkVerb>({ type: "string", enum: Object.keys(STATES_OF) });
const measured = list(maybe(number));
const stepKinds = ["step", "sleep", "signal", "call", "version", "undo", "machine"] as const;
const stepKind = oneOf(...stepKinds);
const workflowState = oneOf(...JOB_STATES, "failed");
const standstill = typed<WhyReason | "slots-taken" | "nothing-due">(text);
/** JSON Schema, draft 2020-12; null: there is none, or it is too large. */
const jsonSchema = described("JSON Schema, draft 2020-12.", maybe(anyObject));

/** The body of every answer that is not 2xx. */
export const ErrorBody = object({
  error: object(
    { code: text, message: text },
    {
      /** Which parameter or field. */
      field: text,
      /** With INPUT_INVALID: the schema's findings, and where (`.user.email`, `.items[0]`). At most 20. */
      issues: list(object({ path: text, message: text })),
      /** With 500: the same id is in the log. */
      requestId: text,
    },
  ),
});
export type ErrorBody = Infer<typeof ErrorBody>;

/** A count up to a cap. */
export const CappedCount = described("`more`: there may be more.", object({ count: integer, more: flag }));
export type CappedCount = Infer<typeof CappedCount>;

/** One of several databases of a dashboard. */
export const DatabaseLine = object({ name: text, label: maybe(text), path: text });
export type DatabaseLine = Infer<typeof DatabaseLine>;

export const About = object({
  version: text,
  dialect: oneOf("sqlite", "postgres"),
  label: maybe(text),
  /** As `#rrggbb`; null: the page's own. */
  labelColor: maybe(text),
  /** Its name, where the dashboard has several databases. */
  database: maybe(text),
  /** Those that you may see, where there are several; else empty. */
  databases: list(DatabaseLine),
});
export type About = Infer<typeof About>;

export const Me = object({ user: text, permissions: list(permission), readOnly: flag });
export type Me = Infer<typeof Me>;

export const Health = object({ ok: flag });

const lag = { lagMs: number, ready: integer, running: integer };
export const Latency = object({
  ...lag,
  queues: list(object({ queue: text, ...lag })),
});

export const Metrics = described("The Prometheus text format, 0.0.4.", text);

export const OpenApi = anyObject;

export const Stream = described("text/event-stream.", text);

export const Export = described(
  "One job per line, with its input; with format=csv, comma-separated values with a header.",
  text,
);

export const Done = object({ ok: flag });

const queueFields = {
  name: text,
  pausedAt: maybe(instant),
  /** It is paused by itself when nothing in it is due and nothing of it runs. */
  drainingAt: maybe(instant),
  coolUntil: maybe(instant),
  /** Names of the holds over it. */
  holds: list(text),
  /** Breakers that are not closed: its own, and those of kinds that have ready jobs in it. */
  breakers: list(text),
  ready: CappedCount,
  scheduled: CappedCount,
  waiting: CappedCount,
  running: integer,
  /** How many may run at once over the cluster; null: no limit is set. */
  concurrency: maybe(integer),
  /** Its rate over the cluster, and the starts in the window that ends now. */
  rate: maybe(object({ limit: integer, perMs: integer, used: integer })),
  /** Over all live workers that are not quiet. */
  slots: integer,
  workers: integer,
  /** Live workers of it that are quiet. */
  quiet: integer,
  oldestMs: maybe(number),
  /** Job names with ready jobs and without a live worker. */
  unserved: list(text),
};

export const QueueLine = object(queueFields);
export type QueueLine = Infer<typeof QueueLine>;

/** A piece of the verdict, and the address on the page that it links to. */
export const VerdictPart = object({ text, to: maybe(text) });
export type VerdictPart = Infer<typeof VerdictPart>;

export const Overview = object({
  at: instant,
  verdict: object({
    level: oneOf("good", "warn", "bad", "idle"),
    text,
    /** The same in pieces, some of which lead somewhere. */
    parts: list(VerdictPart),
  }),
  totals: object({
    ready: CappedCount,
    scheduled: CappedCount,
    waiting: CappedCount,
    running: integer,
    retrying: CappedCount,
    dead: CappedCount,
  }),
  oldestMs: maybe(number),
  /** Jobs done a minute, in the last five that are over; null: nothing was counted. */
  perMinute: maybe(integer),
  /** Of workers that are not quiet. */
  slots: integer,
  /** All that live. */
  workers: integer,
  /** How many of them are quiet. */
  quiet: integer,
  holds: integer,
  /** The busiest first, at most 200. */
  queues: list(QueueLine),
  queueCount: integer,
});
export type Overview = Infer<typeof Overview>;

/** What the server has seen since somebody first looked: one point a second, at most 15 minutes. */
export const Recent = object({
  at: list(instant),
  ready: list(integer),
  running: list(integer),
  scheduled: list(integer),
  oldestMs: measured,
});
export type Recent = Infer<typeof Recent>;

const jobFields = {
  id: text,
  name: text,
  queue: text,
  state,
  /** It waits to be resumed. */
  paused: flag,
  priority: integer,
  attempt: integer,
  maxAttempts: integer,
  crashes: integer,
  inputBytes: integer,
  error: maybe(text),
  failureGroup: maybe(text),
  key: maybe(text),
  lane: maybe(text),
  context: maybe(text),
  parentId: maybe(text),
  workerId: maybe(text),
  createdAt: instant,
  runAt: maybe(instant),
  startedAt: maybe(instant),
  endedAt: maybe(instant),
};

/** A job in a list: its input is a preview. */
export const JobLine = object({ ...jobFields, preview: maybe(text) });
export type JobLine = Infer<typeof JobLine>;

export const JobList = object({ jobs: list(JobLine), cursor: maybe(text), cut: flag });
export type JobList = Infer<typeof JobList>;

/** `states`: each state's count under the other filters. */
export const JobCount = object({
  total: CappedCount,
  states: typed<Partial<Record<JobState, CappedCount>>>(record(CappedCount)),
});
export type JobCount = Infer<typeof JobCount>;

/** Jobs by a part of their ids. */
export const JobMatches = object({
  jobs: list(JobLine),
  more: flag,
  cursor: maybe(text),
  since: maybe(instant),
});
export type JobMatches = Infer<typeof JobMatches>;

/** How many jobs have one value of a facet. */
export const FacetValue = object({ value: text, count: integer, more: flag });
export type FacetValue = Infer<typeof FacetValue>;

/** Counts by state, queue and kind; each under the other parts of the filter, the most frequent first. */
export const JobFacets = object({
  states: list(FacetValue),
  queues: list(FacetValue),
  names: list(FacetValue),
  cut: flag,
});
export type JobFacets = Infer<typeof JobFacets>;

/** Everything of one job, its texts as they are stored. */
export const JobDetail = object({
  ...jobFields,
  /** JSON text, redacted like `output` and `progress`; null: not yours to see, or not asked for (`without`). */
  input: jsonText,
  /** Other if the input or output is another; null: there is none, or it is not yours to see. Good as long as the server runs. */
  inputTag: maybe(text),
  /** JSON text. */
  output: jsonText,
  outputTag: maybe(text),
  /** JSON text. */
  progress: jsonText,
  /** `ranMs`: how long the attempt ran; null: not measured. `lost`: with its worker; then it was held so long, until its lease passed. */
  errors: list(
    object({
      at: instant,
      attempt: integer,
      message: text,
      stack: maybe(text),
      ranMs: maybe(integer),
      lost: flag,
    }),
  ),
  throttles: integer,
  leaseUntil: maybe(instant),
  timeoutMs: maybe(integer),
  deadlineAt: maybe(instant),
  /** Of the W3C trace context that came with the enqueue. */
  traceId: maybe(text),
  /** What somebody has asked of it while it runs, and it has not done yet. */
  request: maybe(oneOf("cancel", "pause")),
  /** Of the code that it needs: that enqueued it, or took it on since. */
  version: integer,
  /** What made it, and the runs of the same schedule before and after it, as far as they are kept. */
  schedule: maybe(
    object({
      name: text,
      at: instant,
      by: oneOf("occurrence", "hand", "backfill"),
      previous: maybe(object({ at: instant, jobId: text })),
      next: maybe(object({ at: instant, jobId: text })),
    }),
  ),
  /** The batches that it is of, or comes after; newest first. */
  batches: list(
    object({
      id: text,
      role: oneOf("job", "then"),
      total: integer,
      then: maybe(object({ id: text, name: text })),
    }),
  ),
  /** The versions of its definition that living workers have, least first. */
  workerVersions: list(integer),
  payloadHidden: flag,
  /** Where something was taken out of the input, from the top: [["user", "password"]]; [[]] is all of it. */
  masked: described("Paths of redacted values in the input.", list(list(text))),
  why: object({ reason: text, text, until: maybe(instant) }),
});
export type JobDetail = Infer<typeof JobDetail>;

/** Which jobs: in a query string, or as `filter` of a bulk action. */
export const FilterJson = object(
  {},
  {
    ids: texts,
    state: typed<readonly JobState[]>({ ...texts, items: state }),
    queue: texts,
    name: texts,
    lane: text,
    key: text,
    workflow: described("The id of a run: the jobs that it called or enqueued.", text),
    batch: described("The id of a batch: its jobs.", text),
    trace: described("The id of a trace (32 hex digits) or a traceparent: the jobs enqueued in it.", text),
    since: instant,
    until: instant,
    failureGroup: text,
    retrying: flag,
    search: text,
    attempt: described("`3`, `>3`, `<=3`, `3..5`.", text),
    age: described("Time since its creation: `>5m`, `<1h`.", text),
    run: described("Duration of its run: `>10s`.", text),
    ended: described("When it ended: `from..to`, in epoch milliseconds.", text),
    worker: described("The worker of its latest attempt, by name or id.", text),
    error: described("Text in its errors.", text),
    payload: described("A value in its input: `user.id:42`.", { ...texts, explode: true }),
  },
);
export type FilterJson = Infer<typeof FilterJson>;

/** Kinds that workers have registered, or that this process has the definition of; by name, at most 1,000. */
export const DefinitionList = object({
  names: list(object({ name: text, unique: flag, lane: flag, here: flag })),
});
export type DefinitionList = Infer<typeof DefinitionList>;

/** What is known of a kind to whoever would enqueue one. */
export const DefinitionDetail = object({
  name: text,
  here: flag,
  /** Where its jobs go where nobody says otherwise, as far as this process knows. */
  queue: text,
  /** Its definition computes a unique key, a lane. If not here, they must be given. */
  unique: flag,
  lane: flag,
  /** An input is held against a schema before it is enqueued. */
  checked: flag,
  /** That schema as JSON Schema (draft 2020-12), where it offers that and is not too large. */
  schema: jsonSchema,
  /** The signals that it declares to wait for, and what their data is to be, in the same way. */
  signals: list(object({ name: text, checked: flag, schema: jsonSchema })),
});
export type DefinitionDetail = Infer<typeof DefinitionDetail>;

export const Enqueued = object({
  status: oneOf("enqueued", "duplicate", "replaced", "debounced"),
  id: text,
});

export const Outcome = object({ outcome: text });
export type Outcome = Infer<typeof Outcome>;

/** A bulk edit: at least one field; `delay` or `at`, not both. `delay`: "5m", or milliseconds. */
export const EditJson = object({}, { delay: duration, at: instant, queue: text, priority: integer });
export type EditJson = Infer<typeof EditJson>;

/** What a bulk action would do. Nothing was changed. */
export const DryRun = object({
  dryRun: typed<true>({ const: true }),
  action: verb,
  filter: FilterJson,
  /** Hand this back as `filter`: it leaves out what came later. */
  bounded: FilterJson,
  matched: CappedCount,
  samples: list(JobLine),
  /** Of an edit: what it would do to the newest ones, and of how many that is said. Null for other actions. */
  outcomes: maybe(record(integer)),
  judged: integer,
  change: maybe(EditJson),
  /** Of a retry with a patch: what becomes of the samples' inputs. JSON texts, redacted; `after` null: it does not fit. */
  patched: maybe(list(object({ id: text, before: text, after: maybe(text) }))),
});
export type DryRun = Infer<typeof DryRun>;

/** A bulk action that is under way or over; the same for every dashboard and terminal on the database. */
export const Operation = object({
  id: text,
  action: verb,
  change: maybe(EditJson),
  /** Of a retry: inputs are changed first. */
  patched: flag,
  /** How: JSON text, redacted; null: they are not, or it is not yours to see. */
  patch: jsonText,
  filter: FilterJson,
  /** Who started it. */
  actor: text,
  state: oneOf("running", "paused", "done", "stopped", "failed"),
  /** It runs by its row, but nobody has driven it for longer than a chunk takes. */
  standsStill: flag,
  rate: maybe(object({ limit: integer, perMs: integer })),
  startedAt: instant,
  endedAt: maybe(instant),
  /** When its row was last written. */
  seenAt: instant,
  /** How many matched at its start. */
  total: CappedCount,
  /** How many it has come to. */
  matched: integer,
  /** Of those that it has come to: to whom the action could not be done. */
  refused: integer,
  /** The first of them, with what stood in the way. */
  refusals: list(object({ id: text, outcome: text })),
  outcomes: record(integer),
  error: maybe(text),
});
export type Operation = Infer<typeof Operation>;

export const OperationList = object({ operations: list(Operation) });

/** A bulk action, asked for. `patch`: an object to merge into the inputs (RFC 7396), or a JSON Patch (RFC 6902). */
export const BulkAsked = object(
  { action: verb, filter: FilterJson },
  {
    dryRun: flag,
    change: EditJson,
    patch: anything,
    rate: maybe(object({ limit: number }, { per: duration })),
  },
);
export type BulkAsked = Infer<typeof BulkAsked>;

export const BulkAnswer = typed<DryRun | Operation>({ oneOf: [DryRun, Operation] });

const failureGroupFields = {
  group: text,
  name: text,
  /** Where most of its jobs are. */
  queue: text,
  queues: list(text),
  /** Of the definition that ran, the newest first. */
  versions: list(integer),
  state: oneOf(...FAILURE_GROUP_STATES),
  /** When and by whom it was resolved, ignored or opened again; null: nobody has decided anything. */
  decidedAt: maybe(instant),
  decidedBy: maybe(text),
  /** Ignored until then, or until it has failed so many times since. */
  untilAt: maybe(instant),
  untilCount: maybe(integer),
  /** Failures since it was ignored until a count. */
  since: integer,
  note: maybe(text),
  link: maybe(text),
  /** Dead jobs among the newest that were looked at. */
  dead: integer,
  /** Jobs that failed so and wait for their next attempt. */
  retrying: integer,
  /** Attempts that failed so, as the workers counted them (or jobs that died so, where none did). */
  lastHour: integer,
  lastDay: integer,
  lastWeek: integer,
  /** The last 24 hours, by the hour, oldest first. */
  day: list(integer),
  firstAt: maybe(instant),
  lastAt: maybe(instant),
  /** The newest job of the group, a dead one if there is one; it may be gone. */
  sample: maybe(text),
  message: maybe(text),
};

/** Failures of one job name with one fingerprint. */
export const FailureGroup = object(failureGroupFields);
export type FailureGroup = Infer<typeof FailureGroup>;

/** The groups, and how far was looked. */
export const FailureGroups = object({ groups: list(FailureGroup), searched: integer, cut: flag });
export type FailureGroups = Infer<typeof FailureGroups>;

/** One cause, with more of its past. */
export const FailureGroupDetail = object({
  ...failureGroupFields,
  /** By the hour, oldest first. */
  week: list(integer),
  /** When the first of these hours begins. */
  weekFrom: instant,
  /** In 30 days, the most frequent first. */
  places: list(object({ queue: text, version: integer, n: integer })),
});
export type FailureGroupDetail = Infer<typeof FailureGroupDetail>;

/** When workers of a build first started (`release` of `hf.work`). */
export const Deploy = object({ at: instant, release: text });
export type Deploy = Infer<typeof Deploy>;

/** Failures by something else than their cause. */
export const FailuresBy = object({
  by: oneOf("name", "queue", "worker", "version", "hour"),
  lines: list(
    object({ value: text, name: maybe(text), failures: integer, groups: integer, lastAt: instant }),
  ),
  /** Only the newest counts were added up. */
  cut: flag,
});
export type FailuresBy = Infer<typeof FailuresBy>;

export const QueueList = object({ queues: list(QueueLine) });

/** What a backfill came to, or would (`dryRun`). */
export const BackfillAnswer = object({
  dryRun: flag,
  occurrences: list(object({ at: instant, jobId: maybe(text), status: maybe(text) })),
  /** Slots that have their job already. */
  had: integer,
  /** There are more behind these. */
  more: flag,
});
export type BackfillAnswer = Infer<typeof BackfillAnswer>;

/** What every queue's workers did, minute by minute. */
export const QueueTrends = object({
  /** When the first minute begins. */
  from: instant,
  stepMs: integer,
  /** Minutes that are over, and the one under way. A queue of which nothing ended is not there. */
  queues: record(object({ done: list(integer), failed: list(integer) })),
});
export type QueueTrends = Infer<typeof QueueTrends>;

export const LaneLine = object({
  queue: text,
  lane: text,
  waiting: CappedCount,
  running: integer,
  concurrency: maybe(integer),
  rate: maybe(object({ limit: number, perMs: integer })),
  /** When the rate allows the next start, if it does not now. */
  rateOpensAt: maybe(instant),
  weight: number,
  paused: flag,
  /** An operator set its limits: a definition's do not change them. */
  tuned: flag,
});
export type LaneLine = Infer<typeof LaneLine>;

export const QueueDetail = object({
  ...queueFields,
  settings: typed<QueueSettings>({ type: "object" }),
  /** Settings that hold for a while: until when, and what those of them that were changed go back to. */
  temporaryLimit: maybe(object({ untilAt: instant, back: maybe(anyObject) })),
  names: list(
    object({
      name: text,
      ready: CappedCount,
      scheduled: CappedCount,
      waiting: CappedCount,
      running: integer,
      oldestMs: maybe(number),
      served: flag,
    }),
  ),
  workersHere: list(object({ id: text, name: text, slots: integer, running: integer, quiet: flag })),
  /** The lanes with most jobs, at most ten, as far as the jobs that are due longest and shortest tell. */
  lanes: list(LaneLine),
  /** When the next of its scheduled jobs is due. */
  nextAt: maybe(instant),
  /** Why nothing is claimed from it, all that holds; empty: nothing stands in the way. */
  obstacles: list(text),
  /** The same with the reason, which is one of `why`'s, or "slots-taken" or "nothing-due". */
  standstill: list(object({ reason: standstill, text, until: maybe(instant) })),
});
export type QueueDetail = Infer<typeof QueueDetail>;

export const HoldLine = object({
  name: text,
  queues: maybe(list(text)),
  reason: maybe(text),
  setAt: instant,
});
export type HoldLine = Infer<typeof HoldLine>;

export const HoldList = object({
  holds: list(HoldLine),
});

export const WorkerLine = object({
  id: text,
  /** Session number. */
  session: integer,
  kind: oneOf("worker", "lease"),
  name: text,
  host: text,
  pid: integer,
  /** Holdfast's version. */
  version: text,
  /** What runs the program: "node 24.21.0". Null: it did not say. */
  runtime: maybe(text),
  /** The build of the program (`release` of the worker); null where none was given. */
  release: maybe(text),
  queues: record(integer),
  names: list(text),
  /** The versions of its definitions, where they are not 1. */
  versions: record(integer),
  slots: integer,
  startedAt: instant,
  beatAt: instant,
  leaseUntil: instant,
  stopping: flag,
  /** Since when it is quiet: it claims nothing until it is resumed. Null: it is not. */
  quietAt: maybe(instant),
  running: integer,
  /** At most 50. */
  jobs: list(text),
  /** The upkeep tasks that it did last. */
  upkeepTasks: list(text),
  /** Its latest minute; null: not measured. */
  rssBytes: maybe(number),
  loopDelayMs: maybe(number),
  /** The first of them, at most 5, by name. */
  runs: list(object({ id: text, name: text, queue: text, startedAt: maybe(instant) })),
  /** Attempts that failed with it in the last hour. */
  failed: integer,
});
export type WorkerLine = Infer<typeof WorkerLine>;

/** A worker whose lease passed in the last hour without its release. */
export const LostWorkerLine = object({
  id: text,
  name: text,
  host: text,
  pid: integer,
  release: maybe(text),
  beatAt: instant,
  lostAt: instant,
  /** Jobs that nobody has taken over yet. */
  held: integer,
});
export type LostWorkerLine = Infer<typeof LostWorkerLine>;

/** A task that one worker does for all, and who did it last. There is no leader: the next to ask does it next. */
export const UpkeepTaskLine = object({ name: text, by: maybe(text), doneAt: instant, nextAt: instant });
export type UpkeepTaskLine = Infer<typeof UpkeepTaskLine>;

export const WorkerList = object({
  workers: list(WorkerLine),
  /** Latest first, at most 20. */
  lost: list(LostWorkerLine),
  upkeepTasks: list(UpkeepTaskLine),
});
export type WorkerList = Infer<typeof WorkerList>;

/** How the database is. */
export const DatabaseHealth = object({
  dialect: oneOf("sqlite", "postgres"),
  version: text,
  sizeBytes: number,
  /** SQLite: free pages. */
  freeBytes: maybe(number),
  walBytes: maybe(number),
  connections: maybe(integer),
  maxConnections: maybe(integer),
  /** Postgres: age of the oldest open transaction. */
  oldestTransactionMs: maybe(number),
  /** How long a trivial query took just now. */
  roundTripMs: number,
  listening: flag,
  tables: list(
    object({
      name: text,
      bytes: maybe(number),
      rows: maybe(number),
      deadRows: maybe(number),
      vacuumedAt: maybe(instant),
    }),
  ),
});
export type DatabaseHealth = Infer<typeof DatabaseHealth>;

/** What `holdfast doctor` says of the database, in its words, and how the database is kept. */
export const DoctorReport = object({
  /** When it was looked. */
  at: instant,
  /** Nothing is wrong. */
  ok: flag,
  checks: list(
    object({
      name: text,
      verdict: oneOf("ok", "wrong", "note", "unknown"),
      text,
      remedy: maybe(text),
    }),
  ),
  /** The newest migration that was applied. */
  schema: object({ version: integer, name: text, appliedAt: instant }),
  /** As the dashboard's own client was opened; 0: for ever. */
  retention: object({ doneMs: integer, deadMs: integer, queues: integer, eventLogMs: maybe(integer) }),
  /** When ended jobs were last deleted, by which worker, and from when on it is due again; null: never yet. */
  prune: maybe(object({ doneAt: instant, nextAt: instant, by: maybe(text) })),
  /** What keeps Postgres from cleaning up. Null where nobody does, or nobody may know. */
  oldest: object({ transactionMs: maybe(number), whose: maybe(text), xminAge: maybe(integer) }),
});
export type DoctorReport = Infer<typeof DoctorReport>;

/** What was done, and what taking it back would do. */
export const AuditLine = object({
  id: integer,
  at: instant,
  actor: text,
  action: text,
  target: maybe(text),
  outcome: text,
  details: maybe(text),
});
export type AuditLine = Infer<typeof AuditLine>;

export const AuditList = object({
  entries: list(AuditLine),
  before: maybe(integer),
});

const percentiles = object({ p50: measured, p95: measured, p99: measured });
/** Roll-ups of whole minutes. Each list has one value for each of `at`; null: nothing was measured. */
export const Series = object({
  stepMs: integer,
  at: list(instant),
  /** Builds whose first worker started in this time, at most 50. */
  deploys: list(Deploy),
  done: list(number),
  /** Attempts that failed and run again. */
  retried: list(number),
  dead: list(number),
  waitMs: percentiles,
  runMs: percentiles,
});
export type Series = Infer<typeof Series>;

/** What waited and how many slots were used, measured once a minute; of longer steps the mean. Null: nobody measured it. */
export const Load = object({
  stepMs: integer,
  at: list(instant),
  /** The fullest queues of this time, at most four. */
  queues: list(object({ name: text, ready: measured })),
  /** Ready jobs of all other queues together; null for viewers who may not see these. */
  other: measured,
  running: measured,
  slots: measured,
});
export type Load = Infer<typeof Load>;

/**
 * How the database was, measured once a minute; of longer steps the mean (over many hours, of a few of its minutes). Each list has
 * one value for each of `at`. Null: nobody measured it, or the database has no such thing.
 */
export const DatabaseSeries = object({
  stepMs: integer,
  at: list(instant),
  sizeBytes: measured,
  walBytes: measured,
  diskFreeBytes: measured,
  /** Of the whole database, whoever has them. */
  connections: measured,
  /** How long a worker's look for jobs took: over all workers, and for the slowest. */
  readMs: object({ mean: measured, most: measured }),
  /** How long it took a worker to write its minute. */
  writeMs: object({ mean: measured, most: measured }),
  /** Connections of the workers' own pools, all processes together; null: there are no pools (SQLite), or nothing was measured. */
  pool: maybe(object({ used: measured, idle: measured, waiting: measured })),
});
export type DatabaseSeries = Infer<typeof DatabaseSeries>;

/** What the workers of a host used, all processes together. */
export const HostLine = object({ host: text, cpu: measured, rssBytes: measured, loopDelayMs: measured });
export type HostLine = Infer<typeof HostLine>;

/** How the workers' machines were, measured once a minute; as `DatabaseSeries`. */
export const HostSeries = object({
  stepMs: integer,
  at: list(instant),
  /** Those whose workers used most CPU, at most four. */
  hosts: list(HostLine),
  /** The highest of all others; null: there are none. */
  others: maybe(object({ hosts: integer, cpu: measured, rssBytes: measured, loopDelayMs: measured })),
  deploys: list(Deploy),
});
export type HostSeries = Infer<typeof HostSeries>;

export const ScheduleLine = object({
  name: text,
  /** Null, like its queue and its timing: the row cannot be read (`error` says why). */
  job: maybe(text),
  queue: maybe(text),
  /** The cron expression, or null for an interval. */
  cron: maybe(text),
  everyMs: maybe(integer),
  /** Null for an interval. */
  timezone: maybe(text),
  /** When it fires, as a person would say it: "Weekdays at 09:00, Europe/London". */
  words: text,
  paused: flag,
  nextAt: maybe(instant),
  /** A slot whose job is made when the one before has ended. */
  waitingAt: maybe(instant),
  lastAt: maybe(instant),
  lastJobId: maybe(text),
  missed: maybe(oneOf("skip", "one", "all")),
  overlap: maybe(oneOf("allow", "skip", "queue")),
  jitterMs: integer,
  /** Slots that made a job, that made none because of an earlier one, and that passed while nobody was there. */
  fired: integer,
  skipped: integer,
  passed: integer,
  /** A bad row that disabled itself. */
  error: maybe(text),
  /** The options that an operator changed: code does not overwrite them. */
  edited: list(text),
  /** No live worker takes jobs of its kind from its queue. */
  unserved: flag,
  /** What keeps its queue from being claimed from, in words; empty: nothing. */
  obstacles: list(text),
});
export type ScheduleLine = Infer<typeof ScheduleLine>;

export const ScheduleList = object({
  schedules: list(ScheduleLine),
});

/** The next runs of a timing that nobody has saved, or what is wrong with it. */
export const TimingPreview = object({
  words: maybe(text),
  error: maybe(text),
  runs: list(object({ at: instant, local: text, offset: text, note: maybe(text) })),
});
export type TimingPreview = Infer<typeof TimingPreview>;

export const Preview = object({
  at: list(instant),
  runs: list(object({ at: instant, local: text, offset: text, note: maybe(text) })),
});

/** A day of slots in pieces of 15 minutes. */
export const Calendar = object({
  from: instant,
  stepMs: integer,
  /** Some counts are estimates: too many slots to walk through. */
  estimated: flag,
  pieces: list(object({ count: integer, most: list(object({ name: text, count: integer })) })),
});
export type Calendar = Infer<typeof Calendar>;

/** The newest jobs of each schedule, at most 20, oldest first; null: not kept any more. */
export const ScheduleRuns = object({
  runs: record(
    list(
      object({
        id: text,
        at: instant,
        state: maybe(state),
        lateMs: maybe(number),
        ranMs: maybe(number),
      }),
    ),
  ),
});
export type ScheduleRuns = Infer<typeof ScheduleRuns>;

export const ScheduleRunLine = object({
  /** Its slot; of a run by hand: when somebody asked for it. */
  at: instant,
  by: oneOf("occurrence", "backfill", "hand"),
  jobId: text,
  /** Null, with all that follows: the job is not kept any more. */
  state: maybe(state),
  attempt: maybe(integer),
  /** Of the latest attempt. */
  startedAt: maybe(instant),
  endedAt: maybe(instant),
  /** From its slot to its first start; null: not started, not known, or no slot made it. */
  lateMs: maybe(number),
  /** How long the latest attempt ran. */
  ranMs: maybe(number),
});
export type ScheduleRunLine = Infer<typeof ScheduleRunLine>;

/** The newest runs of one schedule, newest first. */
export const ScheduleHistory = object({
  runs: list(ScheduleRunLine),
});
export type ScheduleHistory = Infer<typeof ScheduleHistory>;

/** The kinds whose attempts take longest, slowest first; at most 8. */
export const SlowNames = object({ names: list(object({ name: text, p95Ms: number, count: integer })) });
export type SlowNames = Infer<typeof SlowNames>;

/** Jobs that run much longer than others of their kind. */
export const StuckList = object({
  jobs: list(
    object({
      id: text,
      name: text,
      queue: text,
      workerId: maybe(text),
      startedAt: instant,
      /** Of the attempts of its kind that ended in the last 24 hours. */
      p95Ms: number,
    }),
  ),
});
export type StuckList = Infer<typeof StuckList>;

export const Triggered = object({ id: text });

/** What a job's handler said, oldest first; a job keeps its newest 1,000 lines, or what `open` was told. */
export const LogList = object({
  lines: list(
    object({
      id: text,
      at: instant,
      level: oneOf("trace", "debug", "info", "warn", "error"),
      attempt: integer,
      /** Redacted, like `details`. */
      message: text,
      /** JSON text on one line. */
      details: jsonText,
    }),
  ),
  /** How many are kept of the job, whatever was asked for. */
  kept: integer,
  /** How many match. */
  matched: integer,
  /** Hand it back as `before` for the lines before these; null: there are none. */
  earlier: maybe(text),
});
export type LogList = Infer<typeof LogList>;

export const RunFile = described("The history of a run for `holdfast check run.json`, redacted.", anyObject);

/** Whether an input fits its kind's schema. */
export const InputCheck = object({ checked: flag, issues: list(object({ path: text, message: text })) });
export type InputCheck = Infer<typeof InputCheck>;

export const WorkflowNode = object({
  id: text,
  label: text,
  kind: oneOf("job", ...stepKinds),
  /** Null: a job that is not kept any more, or that this person may not view. */
  state: maybe(workflowState),
  jobId: maybe(text),
  /** The step that it stands for; null: a job. */
  seq: maybe(integer),
});
export type WorkflowNode = Infer<typeof WorkflowNode>;

export const WorkflowStep = object({
  /** Its number: steps are in the order of it. */
  seq: integer,
  name: text,
  kind: stepKind,
  /** `cancelled`: the run ended before the step did. */
  state: oneOf("done", "failed", "running", "waiting", "cancelled"),
  /** The attempt of the job that it was last written in. */
  attempt: integer,
  /** Tries of this step by itself. */
  tries: integer,
  /** When it was tried, oldest first: the newest 32. Empty for sleeps, waits and calls. */
  triedAt: list(object({ startedAt: instant, endedAt: instant })),
  startedAt: instant,
  endedAt: maybe(instant),
  /** A sleep's or a wait's end. */
  until: maybe(instant),
  /** JSON text, redacted. */
  output: jsonText,
  error: maybe(text),
  /** The job that a `call` waits for. */
  jobId: maybe(text),
});
export type WorkflowStep = Infer<typeof WorkflowStep>;

export const WorkflowHistory = object({
  /** Attempts of the job: those that failed, and the latest. Null: not known. */
  attempts: list(
    object({
      attempt: integer,
      startedAt: maybe(instant),
      endedAt: maybe(instant),
      error: maybe(text),
      /** With its worker: it ended when its lease passed. */
      lost: flag,
    }),
  ),
  /** How many there are in all, up to 10,000; then `stepCountMore`. */
  stepCount: integer,
  stepCountMore: flag,
  /** Hand it back as `before` for the steps before these; null: there are none. */
  earlier: maybe(integer),
  /** In the order in which they were asked for: one page, the newest first of all. */
  steps: list(WorkflowStep),
  /** What the run took in these steps, and what it waits for. */
  signals: list(
    object({
      name: text,
      key: maybe(text),
      step: text,
      state: oneOf("waiting", "taken", "timeout"),
      since: instant,
      takenAt: maybe(instant),
      /** JSON text, redacted. */
      data: jsonText,
    }),
  ),
  /** Jobs that it called, enqueued, or waits for (`after`); at most 1,000. */
  children: list(
    object({
      id: text,
      /** Null: it is not kept any more, or `hidden`. */
      name: maybe(text),
      relation: oneOf("called", "enqueued", "after"),
      state: maybe(state),
      step: maybe(text),
      error: maybe(text),
      /** It is in a queue that this person may not view. */
      hidden: flag,
    }),
  ),
  /** The newest 1,000 steps, children and dependencies, for drawing; the job itself is among the nodes. */
  graph: object({
    nodes: list(WorkflowNode),
    edges: list(object({ from: text, to: text })),
    /** There are more steps than are drawn. */
    cut: flag,
  }),
});
export type WorkflowHistory = Infer<typeof WorkflowHistory>;

/** Runs, newest first: jobs that remember steps, and how far each is. */
export const RunList = object({
  runs: list(
    object({
      id: text,
      name: text,
      queue: text,
      state,
      /** It waits to be resumed. */
      paused: flag,
      createdAt: instant,
      endedAt: maybe(instant),
      failureGroup: maybe(text),
      /** Steps that are known so far, and those of them that are over. */
      known: integer,
      done: integer,
      /** It failed, or a step of it did, and will be tried again. */
      retrying: flag,
      /** The newest step that is not over. */
      at: maybe(
        object({ name: text, kind: stepKind, since: instant, until: maybe(instant), jobId: maybe(text) }),
      ),
    }),
  ),
  cursor: maybe(text),
  /** The look ended before the page was full: go on from the cursor. */
  cut: flag,
});
export type RunList = Infer<typeof RunList>;

export const BatchList = object({
  batches: list(
    object({
      id: text,
      createdAt: instant,
      names: described("The first few names of its jobs.", list(text)),
      /** How many jobs it had. */
      total: integer,
      counted: described("Number of counted jobs, the newest ones.", integer),
      cut: described("More jobs exist than were counted.", flag),
      done: integer,
      dead: integer,
      cancelled: integer,
      open: described("Jobs that have not ended, including running ones.", integer),
      running: integer,
      gone: described("No longer kept.", integer),
      /** When the first of them started, and when the last of them ended; null: not yet, or there are more than were looked at. */
      startedAt: maybe(instant),
      endedAt: maybe(instant),
      /** What runs when all have ended. */
      then: maybe(object({ id: text, name: text, state: maybe(state) })),
      /** What becomes of it when one ends badly. */
      policy: maybe(oneOf("cancel", "continue", "wait")),
    }),
  ),
  /** Where to go on; null at the end. With a filter a page may be short and have more behind it. */
  cursor: maybe(text),
});
export type BatchList = Infer<typeof BatchList>;

export const LaneList = object({ lanes: list(LaneLine), cursor: maybe(text) });
export type LaneList = Infer<typeof LaneList>;

export const ThrottledLanes = object({ lanes: list(LaneLine) });

/** A temporary limit. */
export const TemporaryLimitLine = object({
  kind: oneOf("queue", "lane", "budget"),
  /** Of the queue or the budget; of a lane its queue. */
  name: text,
  lane: maybe(text),
  setAt: instant,
  untilAt: instant,
  /** What it goes back to; null: it was not there. */
  back: maybe(anyObject),
});
export type TemporaryLimitLine = Infer<typeof TemporaryLimitLine>;

export const TemporaryLimitList = object({
  temporaryLimits: list(TemporaryLimitLine),
});

/** How far limits over the cluster are used: now, and at the end of each of the last minutes (null: not measured). */
export const LimitUse = object({
  at: list(instant),
  queues: list(
    object({
      name: text,
      concurrency: maybe(integer),
      rate: maybe(object({ limit: number, perMs: integer })),
      running: integer,
      /** Jobs that are due. */
      waiting: CappedCount,
      /** Starts in the window of the rate that ends now. */
      started: maybe(integer),
      opensAt: maybe(instant),
      runningThen: measured,
      startedThen: measured,
    }),
  ),
  budgets: record(measured),
});
export type LimitUse = Infer<typeof LimitUse>;

export const BudgetLine = object({
  name: text,
  limit: number,
  perMs: integer,
  burst: number,
  tokens: number,
  /** An operator set its numbers: the code's do not count. */
  tuned: flag,
  /** Jobs that are due of kinds that take from it at each start; null: no kind does, only handlers by themselves. */
  waiting: maybe(CappedCount),
  /** When it was looked at: its tokens have grown since. */
  at: instant,
});
export type BudgetLine = Infer<typeof BudgetLine>;

export const BudgetList = object({
  budgets: list(BudgetLine),
});

export const BreakerLine = object({
  key: text,
  state: oneOf("closed", "open", "half-open"),
  failures: integer,
  openedAt: maybe(instant),
  openUntil: maybe(instant),
  probing: flag,
  error: maybe(text),
});
export type BreakerLine = Infer<typeof BreakerLine>;

export const BreakerList = object({
  breakers: list(BreakerLine),
});

// --- The stream

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
