/**
 * What can be done to jobs, one or many, and the states in which it does something.
 *
 * By itself, because the page in ui/ offers by it what the server then does (operations.ts).
 */

/** `JobState` in jobs/job.ts, which policies do not know. */
type State = "scheduled" | "ready" | "running" | "waiting" | "done" | "dead" | "cancelled";

/** What can be done to a job, and to many. */
export type BulkAction =
  | "retry"
  | "run-now"
  | "pause"
  | "resume"
  | "cancel"
  | "terminate"
  | "delete"
  | "edit";
/** `purge` deletes what has not started, and leaves alone what begins to run meanwhile. */
export type BulkVerb = BulkAction | "purge";

const live: readonly State[] = ["scheduled", "ready", "running", "waiting"];

/** The states that an action can do something to. */
export const STATES_OF: Readonly<Record<BulkVerb, readonly State[]>> = {
  retry: ["dead", "cancelled", "done"],
  "run-now": ["scheduled"],
  pause: live,
  resume: ["waiting", "running"],
  cancel: live,
  terminate: live,
  delete: [...live, "done", "dead", "cancelled"],
  purge: ["scheduled", "ready", "waiting"],
  // Of dead ones the queue, where they stay dead, and the priority.
  edit: ["scheduled", "ready", "waiting", "dead"],
};
