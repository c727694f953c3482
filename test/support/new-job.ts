/** A job as the store takes it, with nothing but what a plain one has. */
import type { NewJob } from "../../src/jobs/job.ts";

export function newJob(id: string, given: Partial<NewJob> = {}): NewJob {
  return {
    id,
    name: "n",
    queue: "q",
    priority: 0,
    input: "null",
    delayMs: null,
    runAt: null,
    maxAttempts: null,
    timeoutMs: null,
    unique: null,
    lane: null,
    context: null,
    parentId: null,
    deadlineAt: null,
    extras: null,
    ...given,
  };
}
