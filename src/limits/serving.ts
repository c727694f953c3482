/**
 * Which workers would take a job: one rule for `why`, the overview, the split of totals and the commands.
 *
 * Pure. A worker that stops or is quiet is alive and may still run jobs, but it claims none.
 */

/** What of a worker says what it serves. */
export interface ServingWorker {
  readonly kind: "worker" | "lease";
  readonly stopping: boolean;
  readonly quietAt: Date | null;
  readonly queues: Readonly<Record<string, number>>;
  readonly names: readonly string[];
}

/** Whether it claims at all. */
export function takesJobs(worker: Pick<ServingWorker, "kind" | "stopping" | "quietAt">): boolean {
  return worker.kind === "worker" && !worker.stopping && worker.quietAt === null;
}

/** Whether it would claim, were it not for being quiet. */
export function isQuiet(worker: Pick<ServingWorker, "kind" | "stopping" | "quietAt">): boolean {
  return worker.kind === "worker" && !worker.stopping && worker.quietAt !== null;
}
