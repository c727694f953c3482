/**
 * Which workers would take a job: one rule for `why`, the overview, the split of totals and the commands.
 *
 * Pure. A worker that stops or is quiet is alive and may still run jobs, but it claims none.
 */
import type { WorkerState } from "../storage/store.ts";

/** Whether it claims at all. */
export function takesJobs(worker: Pick<WorkerState, "kind" | "stopping" | "quietAt">): boolean {
  return worker.kind === "worker" && !worker.stopping && worker.quietAt === null;
}

/** Whether it would claim, were it not for being quiet. */
export function isQuiet(worker: Pick<WorkerState, "kind" | "stopping" | "quietAt">): boolean {
  return worker.kind === "worker" && !worker.stopping && worker.quietAt !== null;
}
