/**
 * What the dashboard and the command line share beyond the public API: the operators' interface of a client, and the
 * names of lower rooms that both need. They import this file, other files of this room, `src/index.ts`, the other public
 * entries, and the rooms without state (`values`, `errors`, `clock`, `version`).
 *
 * Invariant: no file below the public index imports this one.
 */
export { isClient, type Operator, operatorOf } from "./operator.ts";

// Jobs and their inputs.
export { isJob } from "../jobs/define-job.ts";
export { describeFailure } from "../jobs/failure.ts";
export { JOB_STATES } from "../jobs/job.ts";
export { checkDeclared, topicOf } from "../workflows/signal.ts";

// Workflows.
export { stemOf } from "../workflows/alike-steps.ts";
export { historyPage, type HistoryPage } from "../workflows/job-history.ts";
export { readRunFile, type RunFile, runFileOf } from "../workflows/run-file.ts";

// Schedules.
export { passedCron } from "../schedules/cron-pattern.ts";
export { timingInWords } from "../schedules/cron-words.ts";
export { localOccurrences } from "../schedules/upcoming.ts";

// Limits.
export type { BudgetRow, TemporaryLimitRow, QueueUse } from "../limits/store.ts";
export { shareOfTotal } from "../limits/rules/fairness.ts";
export { NO_SETTINGS } from "../limits/rules/no-settings.ts";
export { counted, MOST_COUNTED } from "../limits/queue-counts.ts";
export { isQuiet, takesJobs } from "../limits/serving.ts";

// Measurements and failures.
export { FAILURE_GROUP_STATES } from "../observe/failure-decision.ts";
export { checkBy, checkGroup, checkFailureGroupState, isGroup } from "../observe/failure-groups.ts";
export { checkLevel, LOG_LEVELS } from "../observe/job-log.ts";
export type { LoadRow, QueueMinute, SeriesStore } from "../observe/store.ts";

// The database.
export type { DefinitionInfo } from "../enqueue/store.ts";
export { type Admin, MOVED_TO } from "../storage/admin.ts";
export { createDatabase, migrationSql, openAdmin, sqliteFile, withoutSecrets } from "../storage/open.ts";
export type { Store } from "../storage/store.ts";
export { asDashboardRead } from "../storage/dashboard-reads.ts";
