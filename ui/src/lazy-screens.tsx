// Screens that nobody begins with: fetched when they are first opened, so that the first script stays small.
import type { JobsKind } from "./job-columns.tsx";
import { lazily } from "./lazy.tsx";
import { t } from "./text.ts";

const loading = () => (
  <div class="empty" role="status">
    <p>{t("Loading…")}</p>
  </div>
);

export const Audit = lazily(() => import("./screens/audit.tsx").then((screen) => screen.Audit), loading);
export const Batches = lazily(
  () => import("./screens/batches.tsx").then((screen) => screen.Batches),
  loading,
);
export const Database = lazily(
  () => import("./screens/database.tsx").then((screen) => screen.Database),
  loading,
);
export const Jobs = lazily<{ kind: JobsKind }>(
  () => import("./screens/jobs.tsx").then((screen) => screen.Jobs),
  loading,
);
export const Matches = lazily<{ part: string }>(
  () => import("./screens/job-matches.tsx").then((screen) => screen.Matches),
  loading,
);
export const Limits = lazily(() => import("./screens/limits.tsx").then((screen) => screen.Limits), loading);
export const QueueScreen = lazily<{ name: string }>(
  () => import("./screens/queue.tsx").then((screen) => screen.QueueScreen),
  loading,
);
export const Runs = lazily(() => import("./screens/runs.tsx").then((screen) => screen.Runs), loading);
export const Schedules = lazily(
  () => import("./screens/schedules.tsx").then((screen) => screen.Schedules),
  loading,
);
export const ScheduleScreen = lazily<{ name: string }>(
  () => import("./screens/schedule.tsx").then((screen) => screen.ScheduleScreen),
  loading,
);
export const Workers = lazily(
  () => import("./screens/workers.tsx").then((screen) => screen.Workers),
  loading,
);
export const ErrorScreen = lazily<{ group: string }>(
  () => import("./screens/error.tsx").then((screen) => screen.ErrorScreen),
  loading,
);
export const Palette = lazily(() => import("./palette.tsx").then((part) => part.Palette), loading);
export const Help = lazily(() => import("./help.tsx").then((part) => part.Help), loading);
