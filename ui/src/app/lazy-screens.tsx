// Screens that are seldom the first. Loaded when they first open, so that the first script stays small.
import type { JobsOfName } from "../jobs/job-columns.tsx";
import { lazily } from "../kit/lazy-component.tsx";

const loading = () => (
  <div class="empty" role="status">
    <p>Loading…</p>
  </div>
);

export const AuditScreen = lazily(
  () => import("../screens/audit-screen.tsx").then((screen) => screen.AuditScreen),
  loading,
);
export const BatchesScreen = lazily(
  () => import("../screens/batches-screen.tsx").then((screen) => screen.BatchesScreen),
  loading,
);
export const DatabaseScreen = lazily(
  () => import("../screens/database-screen.tsx").then((screen) => screen.DatabaseScreen),
  loading,
);
export const JobsScreen = lazily<{ kind: JobsOfName }>(
  () => import("../screens/jobs-screen.tsx").then((screen) => screen.JobsScreen),
  loading,
);
export const JobMatchesScreen = lazily<{ part: string }>(
  () => import("../screens/job-matches-screen.tsx").then((screen) => screen.JobMatchesScreen),
  loading,
);
export const LimitsScreen = lazily(
  () => import("../screens/limits-screen.tsx").then((screen) => screen.LimitsScreen),
  loading,
);
export const QueueScreen = lazily<{ name: string }>(
  () => import("../screens/queue-screen.tsx").then((screen) => screen.QueueScreen),
  loading,
);
export const WorkflowsScreen = lazily(
  () => import("../screens/workflows-screen.tsx").then((screen) => screen.WorkflowsScreen),
  loading,
);
export const SchedulesScreen = lazily(
  () => import("../screens/schedules-screen.tsx").then((screen) => screen.SchedulesScreen),
  loading,
);
export const ScheduleScreen = lazily<{ name: string }>(
  () => import("../screens/schedule-screen.tsx").then((screen) => screen.ScheduleScreen),
  loading,
);
export const WorkersScreen = lazily(
  () => import("../screens/workers-screen.tsx").then((screen) => screen.WorkersScreen),
  loading,
);
export const FailureScreen = lazily<{ group: string }>(
  () => import("../screens/failure-screen.tsx").then((screen) => screen.FailureScreen),
  loading,
);
export const Palette = lazily(() => import("./palette.tsx").then((part) => part.Palette), loading);
export const HelpDialog = lazily(() => import("./help-dialog.tsx").then((part) => part.HelpDialog), loading);
