/**
 * Holdfast: durable jobs on SQLite and Postgres. The table of contents of the public API.
 */
import "./supported-node.ts"; // first

// Opening a database: everything else hangs on the client that it gives.
export { Holdfast, open } from "./holdfast.ts";
export type { OpenOptions } from "./open-options.ts";

// Defining jobs: a name, the shape of the input, how often to try, and the handler.
export { defineJob } from "./jobs/define-job.ts";
export type {
  AnyJob,
  CommonJobOptions,
  Handler,
  JobDefinition,
  UniqueOption,
  Upcast,
} from "./jobs/define-job.ts";
export type { JobContext } from "./worker/context.ts";
export type { JobContract, OnConflict, UniqueRule, UniqueScope } from "./jobs/requests.ts";
export type { InferInput, InferOutput, StandardSchemaV1 } from "./values/input-schema.ts";

// How long to wait: durations, backoffs, and the numbers of four known systems by name.
export { exponential, fixed, immediately, power } from "./jobs/backoff.ts";
export type { Backoff, BackoffFunction } from "./jobs/backoff.ts";
export type { Duration } from "./values/duration.ts";
export { presets } from "./jobs/presets.ts";
export type { Preset, PresetJob } from "./jobs/presets.ts";

// Workflows: machines, signals, and what a run that is done in steps takes and gives.
export { defineMachine, finish, next } from "./workflows/machine.ts";
export type {
  Finish,
  MachineContext,
  MachineDefinition,
  MachineOptions,
  MachineStep,
  Next,
  StepRetry,
} from "./workflows/machine.ts";
export { defineSignal } from "./workflows/signal.ts";
export type { SignalDefinition } from "./workflows/signal.ts";
export type { BudgetWaitOptions, CallOptions, StepOptions, WaitForOptions } from "./worker/context.ts";
export type { StepInfo } from "./workflows/request.ts";
export type { BatchOptions, SignalOptions } from "./holdfast.ts";
export type { BrokenWorkflow, WorkflowReport } from "./operate/check.ts";
export type {
  AttemptEntry,
  JobHistory,
  RelatedJob,
  SignalEntry,
  StepEntry,
} from "./workflows/job-history.ts";

// Decisions: what a handler throws on purpose.
export { Dead, Release, RetryAfter, Throttled } from "./jobs/decision.ts";
export { retryAfterMs } from "./values/retry-after.ts";

// Enqueuing: what one takes and what becomes of it.
export type {
  Enqueue,
  EnqueueItem,
  EnqueueMany,
  EnqueueOptions,
  EnqueueResult,
  EnqueueResults,
  EnqueueStatus,
} from "./jobs/requests.ts";

// Schedules: jobs by the clock.
export { defineSchedule } from "./schedules/define-schedule.ts";
export type {
  Schedule,
  ScheduleJobOptions,
  ScheduleOptions,
  ScheduleTiming,
} from "./schedules/define-schedule.ts";
export type {
  Backfill,
  BackfillOptions,
  CalendarOptions,
  ScheduleCalendar,
  ScheduleEdit,
  ScheduleRun,
  ScheduleRunsOptions,
  Schedules,
  ScheduleState,
} from "./schedules/schedules-client.ts";
export type { Missed, Overlap } from "./schedules/plan.ts";

// Budgets: rates over the whole cluster. Passes: recurring work that knows whether it ended clean.
export type { BudgetGrant, BudgetOptions, Budgets, BudgetState } from "./limits/budgets.ts";
export type { Pass, PassOptions, PassState } from "./state/pass.ts";

// Working: the worker that `hf.work` starts, and leases for those who run their own loop.
export { Worker } from "./worker/worker.ts";
export type { WorkOptions } from "./worker/worker.ts";
export { Lease } from "./lease/lease-client.ts";
export type { LeaseOptions, LeaseRenewal } from "./lease/lease-client.ts";

// Looking after jobs, queues and workers: what the namespaces of a client take and give.
export type { Job, JobFailure, JobState } from "./jobs/job.ts";
export type { JobQuery } from "./operate/filter.ts";
export type {
  BulkResult,
  CancelOptions,
  DeleteOptions,
  JobEdit,
  Jobs,
  ListQuery,
  RetryOptions,
  RunNowOutcome,
} from "./operate/jobs-client.ts";
export type { InputPatch, PatchStep } from "./values/json-patch.ts";
export type {
  DecisionOptions,
  FailureGroup,
  FailureGroupNote,
  FailureGroupQuery,
  FailureCount,
  FailureCountQuery,
  Errors,
  IgnoreOptions,
} from "./observe/failure-groups.ts";
export type { FailureGroupState } from "./observe/failure-decision.ts";
export type { Why, WhyReason } from "./operate/why.ts";
export type { TemporaryLimit, TemporaryLimitOptions, TemporaryLimits } from "./limits/temporary-limits.ts";
export type { PurgeResult, QueueOptions, Queues } from "./limits/queues.ts";
export type { HoldOptions, Holds } from "./limits/holds.ts";
export type { LaneQuery, Lanes } from "./limits/lanes.ts";
export type { BreakerOptions, LaneOptions, RateOption } from "./limits/rules/limit-options.ts";
export type { Breakers } from "./limits/breakers.ts";
export type { State } from "./state/state-client.ts";
export type { Workers } from "./worker/workers-client.ts";
export type { ClientCounters, Stats } from "./observe/stats.ts";
export type {
  Durations,
  GaugeSeries,
  GaugesQuery,
  LoadPoint,
  LoadQuery,
  NameTotals,
  MetricPoint,
  Metrics,
  MetricSeries,
  SeriesQuery,
} from "./observe/metrics.ts";
export type { EventLog, EventLogOptions, EventLogQuery, LoggedEvent } from "./observe/event-log.ts";
export type { JobLog, JobLogLine, JobLogOptions, JobLogQuery, LogLevel } from "./observe/job-log.ts";
export { health, latency, readiness } from "./observe/health.ts";
export type { Health, Latency } from "./observe/health.ts";
export type { CancelOutcome, DeleteOutcome, JobPage, RetryOutcome } from "./operate/store.ts";
export type { UpkeepTaskState, PruneReport } from "./upkeep/store.ts";
export type { WorkerState } from "./lease/store.ts";
export type { Hold, LanePage, LaneState, QueueCounts, QueueState } from "./limits/store.ts";
export type { BreakerState } from "./limits/store.ts";
export type { EditOutcome } from "./jobs/editable.ts";
export type { BreakerRule, QueueSettings } from "./limits/queue-settings.ts";

// Watching: events, middleware, logs.
export type { EventName, HoldfastEvents, Listener } from "./events.ts";
export type { EnqueueRequest, Middleware, RunRequest } from "./worker/middleware.ts";
export { consoleLogger, silentLogger } from "./logger.ts";
export type { Logger } from "./logger.ts";
export type { Clock, Timer, TimerOptions } from "./clock.ts";

// The command line: what holdfast.config.ts exports.
export { defineConfig } from "./config.ts";
export type { HoldfastConfig, Manifest } from "./config.ts";

// Errors: classed by who must act, each with a stable code.
export { HoldfastError, isHoldfastError, JobError, StateError, StoreError, UsageError } from "./errors.ts";
export type { ErrorCode } from "./errors.ts";
