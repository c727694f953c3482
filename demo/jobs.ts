/**
 * What the demo's processes agree on: the kinds of job (their handlers are in worker.ts), where jobs go, and what
 * a worker writes into its log.
 */
import { defineJob, fixed } from "holdfast";

/** The short and plain ones, by the dozen. */
export const sendMail = defineJob<"send-mail", { to: string }>({ name: "send-mail" });

/** Fails its first `failures` attempts. */
export const chargeCard = defineJob<"charge-card", { order: number; failures: number }>({
  name: "charge-card",
  retry: { attempts: 5, backoff: fixed("600ms") },
});

/** Fails every time, or finds at once that trying again is pointless. */
export const parseUpload = defineJob<"parse-upload", { file: string; hopeless: boolean }>({
  name: "parse-upload",
  retry: { attempts: 3, backoff: fixed("500ms") },
});

/** Low priority: many of them make a backlog. */
export const rebuildIndex = defineJob<"rebuild-index", { shard: number }>({
  name: "rebuild-index",
  priority: -5,
});

/** High priority: overtakes the backlog. */
export const resetPassword = defineJob<"reset-password", { user: string }>({
  name: "reset-password",
  priority: 10,
});

/** One job for each account at a time. */
export const syncAccount = defineJob<"sync-account", { account: string }>({
  name: "sync-account",
  unique: (input) => input.account,
});

/** Due later. */
export const sendReminder = defineJob<"send-reminder", { to: string }>({ name: "send-reminder" });

/** Runs until somebody cancels it. */
export const exportData = defineJob<"export-data", { table: string }>({ name: "export-data" });

/** The long one, whose worker is killed. */
export const transcodeVideo = defineJob<"transcode-video", { file: string; seconds: number }>({
  name: "transcode-video",
  queue: "video",
});

/** One line of a worker's log. */
export interface LogEntry {
  readonly at: number;
  readonly worker: string;
  /** `effect` is written by the handler when its work is complete, the others after the commit that they speak of. */
  readonly event: "started" | "effect" | "done" | "failed" | "dead" | "cancelled" | "crashed";
  readonly id: string;
  readonly name: string;
  readonly note: string;
}

/** Short, so that a takeover is quick to watch. The default is 30 s and 10 s. */
export const lease = { lease: "3s", heartbeat: "1s" } as const;
