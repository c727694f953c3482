/**
 * Holdfast: durable jobs on SQLite and Postgres. The table of contents of the public API.
 */
import "./supported-node.ts"; // first

// Opening a database: everything else hangs on the client that it gives.
export { Holdfast, open } from "./holdfast.ts";
export type { OpenOptions } from "./open-options.ts";

// Defining jobs: a name, the shape of the input, how often to try, and the handler.
export { defineJob } from "./definition.ts";
export type { AnyJob, CommonJobOptions, Handler, JobDefinition, UniqueOption, Upcast } from "./definition.ts";
export type { JobContext } from "./context.ts";
export type { JobContract, OnConflict, UniqueRule, UniqueScope } from "./contract.ts";
export type { InferInput, InferOutput, StandardSchemaV1 } from "./policy/schema.ts";

// How long to wait: durations, backoffs, and the numbers of four known systems by name.
export { exponential, fixed, immediately, power } from "./policy/backoff.ts";
export type { Backoff, BackoffFunction } from "./policy/backoff.ts";
export type { Duration } from "./policy/duration.ts";
export { presets } from "./policy/presets.ts";
export type { Preset, PresetJob } from "./policy/presets.ts";

// Flows: machines, signals, and what a run that is done in steps takes and gives.
export { defineMachine, finish, next } from "./flow/machine.ts";
export type {
  Finish,
  MachineContext,
  MachineDefinition,
  MachineOptions,
  MachineStep,
  Next,
  StepRetry,
} from "./flow/machine.ts";
export { defineSignal } from "./flow/signal.ts";
export type { SignalDefinition } from "./flow/signal.ts";
export type { BudgetWaitOptions, CallOptions, StepOptions, WaitForOptions } from "./context.ts";
export type { StepInfo } from "./flow/ask.ts";
export type { BatchOptions, SignalOptions } from "./holdfast.ts";
export type { BrokenFlow, FlowReport } from "./flow/check.ts";
export type { AttemptEntry, JobHistory, RelatedJob, SignalEntry, StepEntry } from "./flow/job-history.ts";

// Decisions: what a handler throws on purpose.
export { Dead, Release, RetryAfter, Throttled } from "./decision.ts";
export { retryAfterMs } from "./policy/retry-after.ts";

// Enqueuing: what one takes and what becomes of it.
export type {
  Enqueue,
  EnqueueItem,
  EnqueueMany,
  EnqueueOptions,
  EnqueueResult,
  EnqueueResults,
  EnqueueStatus,
} from "./contract.ts";

// Schedules: jobs by the clock.
export { defineSchedule } from "./schedule.ts";
export type { Schedule, ScheduleJobOptions, ScheduleOptions, ScheduleTiming } from "./schedule.ts";
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
} from "./schedules.ts";
export type { Missed, Overlap } from "./policy/schedule.ts";

// Budgets: rates over the whole cluster. Passes: recurring work that knows whether it ended clean.
export type { BudgetGrant, BudgetOptions, Budgets, BudgetState } from "./budgets.ts";
export type { Pass, PassOptions, PassState } from "./pass.ts";

// Working: the worker that `hf.work` starts, and leases for those who run their own loop.
export { Worker } from "./worker.ts";
export type { WorkOptions } from "./worker.ts";
export { Lease } from "./lease.ts";
export type { LeaseOptions, LeaseRenewal } from "./lease.ts";

// Looking after jobs, queues and workers: what the namespaces of a client take and give.
export type { Job, JobFailure, JobState } from "./job.ts";
export type { JobQuery } from "./filter.ts";
export type {
  BulkResult,
  CancelOptions,
  DeleteOptions,
  JobEdit,
  Jobs,
  ListQuery,
  RetryOptions,
  RunNowOutcome,
} from "./jobs.ts";
export type { InputPatch, PatchStep } from "./policy/patch.ts";
export type {
  DecisionOptions,
  ErrorGroup,
  ErrorGroupNote,
  ErrorGroupQuery,
  FailureCount,
  FailureCountQuery,
  Errors,
  IgnoreOptions,
} from "./error-groups.ts";
export type { TriageState } from "./policy/triage.ts";
export type { Why, WhyReason } from "./why.ts";
export type { Override, OverrideOptions, Overrides } from "./overrides.ts";
export type { PurgeResult, QueueOptions, Queues } from "./queues.ts";
export type { HoldOptions, Holds } from "./holds.ts";
export type { LaneQuery, Lanes } from "./lanes.ts";
export type { BreakerOptions, LaneOptions, RateOption } from "./policy/limits.ts";
export type { Breakers } from "./breakers.ts";
export type { State } from "./state.ts";
export type { Workers } from "./workers.ts";
export type { ClientCounters, Stats } from "./stats.ts";
export type {
  Durations,
  GaugeSeries,
  GaugesQuery,
  LoadPoint,
  LoadQuery,
  KindTotals,
  MetricPoint,
  Metrics,
  MetricSeries,
  SeriesQuery,
} from "./metrics.ts";
export type { EventLog, EventLogOptions, EventLogQuery, LoggedEvent } from "./event-log.ts";
export type { JobLog, JobLogLine, JobLogOptions, JobLogQuery, LogLevel } from "./job-log.ts";
export { health, latency, readiness } from "./health.ts";
export type { Health, Latency } from "./health.ts";
export type {
  BreakerRule,
  BreakerState,
  CancelOutcome,
  DeleteOutcome,
  DutyState,
  EditOutcome,
  Hold,
  JobPage,
  LanePage,
  LaneState,
  PruneReport,
  QueueCounts,
  QueueSettings,
  QueueState,
  RetryOutcome,
  WorkerState,
} from "./store.ts";

// Watching: events, middleware, logs.
export type { EventName, HoldfastEvents, Listener } from "./events.ts";
export type { EnqueueRequest, Middleware, RunRequest } from "./middleware.ts";
export { consoleLogger, silentLogger } from "./logger.ts";
export type { Logger } from "./logger.ts";
export type { Clock, Timer, TimerOptions } from "./clock.ts";

// The command line: what holdfast.config.ts exports.
export { defineConfig } from "./config.ts";
export type { HoldfastConfig, Manifest } from "./config.ts";

// Errors: classed by who must act, each with a stable code.
export { HoldfastError, isHoldfastError, JobError, StateError, StoreError, UsageError } from "./errors.ts";
export type { ErrorCode } from "./errors.ts";
