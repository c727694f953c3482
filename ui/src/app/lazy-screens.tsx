// Screens that nobody begins with: fetched when they are first opened, so that the first script stays small.
import type { JobsKind } from "../jobs/job-columns.tsx";
import { lazily } from "../kit/lazy-component.tsx";
import { t } from "../language/translation.ts";

const loading = () => (
  <div class="empty" role="status">
    <p>{t("Loading…")}</p>
  </div>
);

export const Audit = lazily(
  () => import("../screens/audit-screen.tsx").then((screen) => screen.Audit),
  loading,
);
export const Batches = lazily(
  () => import("../screens/batches-screen.tsx").then((screen) => screen.Batches),
  loading,
);
export const Database = lazily(
  () => import("../screens/database-screen.tsx").then((screen) => screen.Database),
  loading,
);
export const Jobs = lazily<{ kind: JobsKind }>(
  () => import("../screens/jobs-screen.tsx").then((screen) => screen.Jobs),
  loading,
);
export const Matches = lazily<{ part: string }>(
  () => import("../screens/job-matches-screen.tsx").then((screen) => screen.Matches),
  loading,
);
export const Limits = lazily(
  () => import("../screens/limits-screen.tsx").then((screen) => screen.Limits),
  loading,
);
export const QueueScreen = lazily<{ name: string }>(
  () => import("../screens/queue-screen.tsx").then((screen) => screen.QueueScreen),
  loading,
);
export const Runs = lazily(
  () => import("../screens/workflows-screen.tsx").then((screen) => screen.Runs),
  loading,
);
export const Schedules = lazily(
  () => import("../screens/schedules-screen.tsx").then((screen) => screen.Schedules),
  loading,
);
export const ScheduleScreen = lazily<{ name: string }>(
  () => import("../screens/schedule-screen.tsx").then((screen) => screen.ScheduleScreen),
  loading,
);
export const Workers = lazily(
  () => import("../screens/workers-screen.tsx").then((screen) => screen.Workers),
  loading,
);
export const ErrorScreen = lazily<{ group: string }>(
  () => import("../screens/failure-screen.tsx").then((screen) => screen.ErrorScreen),
  loading,
);
export const Palette = lazily(() => import("./palette.tsx").then((part) => part.Palette), loading);
export const Help = lazily(() => import("./help-dialog.tsx").then((part) => part.Help), loading);
