/** The store's words → the contract's JSON, redacted on the way. */
import type { JobDetail as StoredDetail, JobSummary } from "../insight.ts";
import type { Hold, WorkerState } from "../store.ts";
import type { Why } from "../why.ts";
import type { HoldLine, JobDetail, JobLine, WorkerLine } from "./contract.ts";
import { slotsOf } from "./overview.ts";
import type { Redactor } from "./redact.ts";

const previewLength = 200;
const errorLength = 400;

export function jobLine(job: JobSummary, redactor: Redactor, mayPayload: boolean): JobLine {
  const { input, ...rest } = job;
  const preview = mayPayload ? redactor.json(input, job) : null;
  return {
    ...rest,
    preview: preview === null ? null : cut(preview, previewLength),
    error: mayPayload ? cutMaybe(redactor.text(job.error), errorLength) : errorHead(job.error),
    context: mayPayload ? redactor.text(job.context) : null,
  };
}

export function jobDetail(job: StoredDetail, why: Why, redactor: Redactor, mayPayload: boolean): JobDetail {
  const text = (value: string | null): string | null => (mayPayload ? redactor.json(value, job, 2) : null);
  return {
    ...job,
    input: text(job.input),
    output: text(job.output),
    progress: text(job.progress),
    context: mayPayload ? redactor.text(job.context) : null,
    error: mayPayload ? redactor.text(job.error) : errorHead(job.error),
    errors: job.errors.map(({ at, attempt, message, stack }) => ({
      at,
      attempt,
      message: mayPayload ? redactor.text(message) : (errorHead(message) ?? ""),
      stack: mayPayload ? redactor.text(stack) : null,
    })),
    payloadHidden: !mayPayload,
    why: {
      reason: why.reason,
      // It may quote the error.
      text: mayPayload ? redactor.text(why.text) : (errorHead(why.text) ?? ""),
      until: why.until?.getTime() ?? null,
    },
  };
}

export function holdLine({ name, queues, reason, setAt }: Hold): HoldLine {
  return { name, queues, reason, setAt: setAt.getTime() };
}

export function workerLine(worker: WorkerState): WorkerLine {
  const { startedAt, beatAt, leaseUntil, jobs, ...rest } = worker;
  return {
    ...rest,
    slots: slotsOf(worker),
    startedAt: startedAt.getTime(),
    beatAt: beatAt.getTime(),
    leaseUntil: leaseUntil.getTime(),
    running: jobs.length,
    jobs: jobs.slice(0, 50),
  };
}

/** Error texts quote payloads ("no user ann@example.org"): who may not see those gets the words before the first value. */
function errorHead(error: string | null): string | null {
  return error === null ? null : `${/^[A-Za-z _-]{0,60}/.exec(error)?.[0].trim() ?? ""}…`;
}

function cutMaybe(text: string | null, length: number): string | null {
  return text === null ? null : cut(text, length);
}

function cut(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}
