/**
 * Outcomes of attempts whose handler did not simply return: it was stopped, threw, or got an input that does not fit.
 *
 * Invariant: a failure that JSON, a schema or the code will meet again next time is no reason to try again: the job is dead at once.
 * Not here: runs, machines and `ctx.commit` (workflow-ends.ts), what an outcome makes of the job (jobs/transition.ts).
 */
import type { Clock } from "../../clock.ts";
import { isHoldfastError, type JobError } from "../../errors.ts";
import { isDead, isRelease, isRetryAfter, isThrottled } from "../../jobs/decision.ts";
import { describeFailure, type Failure } from "../../jobs/failure.ts";
import type { ClaimedJob } from "../../jobs/job.ts";
import type { Outcome } from "../../jobs/outcome.ts";
import { outdatedBy } from "../../workflows/advance.ts";
import { type StopCause, timeoutText } from "./stop-causes.ts";

const finalCodes: ReadonlySet<string> = new Set([
  "OUTPUT_NOT_JSON",
  "OUTPUT_TOO_LARGE",
  "INSIDE_STEP",
  "DECODE_FAILED",
  "DIVERGED",
  "BAD_MOVE",
]);
// How long a job that needs newer code stays away from a worker that has older. Long enough that a deploy of minutes costs
// little, short enough that nobody misses the time once the new workers are there.
const outdatedMs = 5_000;

/** The attempt was told to stop and did not finish. */
export function stoppedBy(cause: StopCause): Outcome {
  switch (cause.kind) {
    case "timeout":
      return {
        kind: "failed",
        failure: { message: timeoutText(cause.timeoutMs), stack: null, code: "TIMEOUT" },
      };
    case "cancelled":
      return { kind: "cancelled", reason: cause.reason };
    case "shutdown":
      return { kind: "released", delayMs: 0, reason: "shutdown", forced: true };
    case "lost":
      return { kind: "lost" };
  }
}

/** The handler threw. `asked`: it had been told to stop, or asked to come to an early end. */
export function threw(
  error: unknown,
  run: {
    readonly cause: StopCause | undefined;
    readonly asked: boolean;
    /** The run's history has steps that the code has not asked for. */
    readonly diverged: JobError | null;
    readonly clock: Pick<Clock, "now">;
  },
): Outcome {
  const { cause } = run;
  if (cause !== undefined && cause.kind !== "shutdown") return stoppedBy(cause);
  const decided = run.diverged === null ? decidedBy(error, run) : deadOf(run.diverged, true);
  if (decided !== null) return decided;
  return cause === undefined ? { kind: "failed", failure: describeFailure(error) } : stoppedBy(cause);
}

/** The outcome that a thrown decision asks for; null for a plain error. */
function decidedBy(
  error: unknown,
  { asked, clock }: { readonly asked: boolean; readonly clock: Pick<Clock, "now"> },
): Outcome | null {
  if (isHoldfastError(error) && finalCodes.has(error.code)) return deadOf(error, error.code === "DIVERGED");
  if (isDead(error)) return { kind: "dead", failure: describeFailure(error) };
  if (isRetryAfter(error))
    return { kind: "failed", failure: describeFailure(error), retryInMs: error.delayFrom(clock.now()) };
  if (isThrottled(error)) return { kind: "throttled", delayMs: error.retryAfterMs, reason: error.reason };
  if (!isRelease(error)) return null;
  const { delayMs, reason } = error;
  // One that answers `ctx.stopping` cannot spin: nothing claims the job until its queue or a worker is back.
  return { kind: "released", delayMs, reason, ...(asked ? null : { thrown: true }) };
}

export function deadOf(error: unknown, diverged = false): Outcome {
  return { kind: "dead", failure: coded(error), ...(diverged ? { diverged } : null) };
}

/** An input that cannot be read or does not fit is dead at once; a schema that itself broke may work next time. */
export function unfit(error: unknown): Outcome {
  const broke = isHoldfastError(error) && error.code === "INPUT_INVALID" && !("issues" in error.details);
  return broke ? { kind: "failed", failure: coded(error) } : deadOf(error);
}

/** A job that newer code has made or advanced is left to newer workers, as during a deploy; null: this version will do. */
export function outdated(job: ClaimedJob, version: number): Outcome | null {
  const reason = outdatedBy(job.name, job.extras, version);
  if (reason === null) return null;
  return { kind: "released", delayMs: outdatedMs, reason, unstarted: true, outdated: true };
}

/** The failure with its code in the message: `errors` keeps messages only, and programs look for the code. */
export function coded(error: unknown): Failure {
  const failure = describeFailure(error);
  return failure.code === undefined
    ? failure
    : { ...failure, message: `${failure.code}: ${failure.message}` };
}
