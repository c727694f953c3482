/** The store's words → the contract's JSON, redacted on the way. */
import { createHmac, randomBytes } from "node:crypto";
import type { JobDetail as StoredDetail, JobSummary } from "../../operate/browse.ts";
import type { Why } from "../../operate/why.ts";
import type { HoldLine, JobDetail, JobLine, WorkerLine } from "./contract.ts";
import { slotsOf } from "./overview.ts";
import type { Redactor } from "../access/redact.ts";
import type { Hold, WorkerState } from "../../index.ts";

const previewLength = 200;
const errorLength = 400;

export function jobLine(job: JobSummary, redactor: Redactor, mayPayload: boolean): JobLine {
  const { input, ...rest } = job;
  const preview = mayPayload ? redactor.json(input, job) : null;
  return {
    ...rest,
    preview: preview === null ? null : cut(preview, previewLength),
    error: mayPayload ? cutMaybe(redactor.text(job.error), errorLength) : errorKind(job.error),
    context: mayPayload ? redactor.text(job.context) : null,
  };
}

/** A line of a file: like a line of a list, with the whole of what may be shown. */
export function fullLine(job: JobSummary, redactor: Redactor, mayPayload: boolean): JobSummary {
  return {
    ...job,
    error: mayPayload ? redactor.text(job.error) : errorKind(job.error),
    context: mayPayload ? redactor.text(job.context) : null,
    input: mayPayload ? redactor.json(job.input, job) : null,
  };
}

export function jobDetail(
  job: StoredDetail,
  why: Why,
  redactor: Redactor,
  mayPayload: boolean,
  /** What is left out of input and output, which may be large. */
  left: readonly string[] = [],
): Omit<JobDetail, "workerVersions"> {
  const text = (value: string | null): string | null => (mayPayload ? redactor.json(value, job, 2) : null);
  const input =
    mayPayload && !left.includes("input") ? redactor.masking(job.input, job, 2) : { text: null, masked: [] };
  return {
    ...job,
    input: input.text,
    masked: input.masked,
    inputTag: mayPayload ? tagOf(job.input) : null,
    output: left.includes("output") ? null : text(job.output),
    outputTag: mayPayload ? tagOf(job.output) : null,
    progress: text(job.progress),
    context: mayPayload ? redactor.text(job.context) : null,
    error: mayPayload ? redactor.text(job.error) : errorKind(job.error),
    errors: job.errors.map(({ at, attempt, message, stack, ranMs, lost }) => ({
      at,
      attempt,
      message: mayPayload ? redactor.text(message) : (errorKind(message) ?? ""),
      stack: mayPayload ? redactor.text(stack) : null,
      ranMs: ranMs ?? null,
      lost: lost ?? false,
    })),
    payloadHidden: !mayPayload,
    why: {
      reason: why.reason,
      text: mayPayload ? redactor.text(why.text) : without(why.text, job.error),
      until: why.until?.getTime() ?? null,
    },
  };
}

/** Of this process: nobody can find out by trying what stands where something was taken out. */
const tagKey = randomBytes(32);

function tagOf(text: string | null): string | null {
  return text === null ? null : createHmac("sha256", tagKey).update(text).digest("base64url").slice(0, 16);
}

export function holdLine({ name, queues, reason, setAt }: Hold): HoldLine {
  return { name, queues, reason, setAt: setAt.getTime() };
}

export function workerLine(
  worker: WorkerState,
  more: Pick<WorkerLine, "upkeepTasks" | "rssBytes" | "loopDelayMs" | "runs" | "failed">,
): WorkerLine {
  const { startedAt, beatAt, leaseUntil, quietAt, jobs, ...rest } = worker;
  return {
    ...rest,
    ...more,
    slots: slotsOf(worker),
    startedAt: startedAt.getTime(),
    beatAt: beatAt.getTime(),
    leaseUntil: leaseUntil.getTime(),
    quietAt: quietAt?.getTime() ?? null,
    running: jobs.length,
    jobs: jobs.slice(0, 50),
  };
}

/**
 * Error texts quote payloads ("no user ann"): who may not see those gets the kind of error and no more. Cutting at the first
 * sign that is no letter is not enough: values are made of letters too.
 */
export function errorKind(error: string | null): string | null {
  return error === null
    ? null
    : `${/^(?:[A-Za-z]{0,40}(?:Error|Exception)|E[A-Z]{3,20})\b/.exec(error)?.[0] ?? ""}…`;
}

/** The sentence without the error that it quotes. */
function without(text: string, error: string | null): string {
  return error === null || error === "" ? text : text.replaceAll(error, () => errorKind(error) ?? "");
}

function cutMaybe(text: string | null, length: number): string | null {
  return text === null ? null : cut(text, length);
}

function cut(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

/** An instant as it travels. */
export function ms(date: Date | null): number | null {
  return date === null ? null : date.getTime();
}
