/**
 * What goes wrong in a workflow: how a failure is thrown into the handler, live and again from the history, and what kind it is.
 *
 * Invariant: the handler meets the same class, code and message in both lives of a run.
 */
import { isDead, isRelease, isThrottled } from "../jobs/decision.ts";
import { type HoldfastError, isHoldfastError, JobError, UsageError } from "../errors.ts";
import { decodeFailures, type Failure } from "../jobs/failure.ts";
import type { StepRecord } from "./store.ts";

/** What a remembered failure is thrown as, in every later life of the run. */
export function recordedError(record: StepRecord): HoldfastError {
  if (record.kind !== "call") return stepError(record.name, decodeFailure(record.error), undefined);
  if (record.child === null) return callError(record.name, decodeFailure(record.error));
  const message = decodeFailures(record.error).at(-1)?.message ?? "no error was recorded";
  return new JobError(
    "CALL_FAILED",
    `The job ${record.child ?? ""} that step "${record.name}" called is ${record.label ?? "dead"}: ${message}`,
    { details: { step: record.name, job: record.child, state: record.label } },
  );
}

/** A step that has failed for good. */
export function stepError(name: string, failure: Failure, cause: unknown): JobError {
  if (isFinalCode(failure.code))
    return new JobError(failure.code, failure.message, { details: { step: name } });
  const details = { step: name, code: failure.code ?? null };
  return new JobError(
    "STEP_FAILED",
    `Step "${name}" failed: ${failure.message}`,
    cause === undefined ? { details } : { details, cause },
  );
}

/** A call that never was: as it was thrown then. */
function callError(name: string, failure: Failure): UsageError {
  const { code, message } = failure;
  return new UsageError((code ?? "BAD_OPTION") as UsageError["code"], message, { details: { step: name } });
}

function decodeFailure(text: string | null): Failure {
  try {
    return JSON.parse(text ?? "") as Failure;
  } catch {
    return { message: "no error was recorded", stack: null };
  }
}

/** It is about the job, and says nothing about the step. */
export function isAboutJob(error: unknown): boolean {
  return isDead(error) || isThrottled(error) || isRelease(error);
}

/** The handler asked for something that there cannot be. */
export function isUsage(error: unknown): error is UsageError {
  return isHoldfastError(error) && error instanceof UsageError;
}

/** Errors of ours that say nothing about the step's own work. */
export function isOurs(error: unknown): boolean {
  return isHoldfastError(error) && error.code === "LEASE_LOST";
}

/** Trying again would come to the same. */
export function isFinal(error: unknown): boolean {
  return isHoldfastError(error) && isFinalCode(error.code);
}

function isFinalCode(code: string | undefined): code is (typeof finalCodes)[number] {
  return finalCodes.includes(code as never);
}

const finalCodes = ["OUTPUT_NOT_JSON", "OUTPUT_TOO_LARGE", "INSIDE_STEP"] as const;
