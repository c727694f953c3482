/**
 * Why an attempt is told to stop, and the signals by which its handler learns of it.
 *
 *   timeout · cancelled · shutdown · lost lease ─▶ `ctx.stopping`, then `ctx.signal`
 *   shutdown · paused · quiet (the attempt goes on) ─▶ `ctx.stopping` alone
 */
import { type HoldfastError, JobError, StateError } from "../../errors.ts";
import type { ClaimedJob } from "../../jobs/job.ts";

/** Why an attempt is told to stop. */
export type StopCause =
  | { readonly kind: "timeout"; readonly timeoutMs: number }
  | { readonly kind: "cancelled"; readonly reason: string }
  | { readonly kind: "shutdown" }
  | { readonly kind: "lost" };

/** Why a handler is asked to come to an early end, while its attempt goes on. */
export type StoppingReason = "shutdown" | "paused" | "quiet";

/** The signals of one attempt. Each is made when its handler asks for it, because few do; one that is made late is born aborted. */
export class StopSignals {
  readonly #job: ClaimedJob;
  #cause: StopCause | undefined;
  #reason: StoppingReason | undefined;
  #signal: AbortController | undefined;
  #stopping: AbortController | undefined;

  constructor(job: ClaimedJob, cause: StopCause | undefined, reason: StoppingReason | undefined) {
    this.#job = job;
    this.#cause = cause;
    this.#reason = reason;
  }

  get signal(): AbortSignal {
    if (this.#signal === undefined) {
      this.#signal = new AbortController();
      if (this.#cause !== undefined) this.#signal.abort(reasonOf(this.#cause, this.#job));
    }
    return this.#signal.signal;
  }

  /** Aborts before `signal`, or with it. */
  get stopping(): AbortSignal {
    if (this.#stopping === undefined) {
      this.#stopping = new AbortController();
      if (this.#reason !== undefined) this.#stopping.abort(stoppingError(this.#reason, this.#job));
      else if (this.#cause !== undefined) this.#stopping.abort(reasonOf(this.#cause, this.#job));
    }
    return this.#stopping.signal;
  }

  stop(cause: StopCause): void {
    this.#cause = cause;
    // `stopping` first: a listener of `signal` must find that it has fired.
    for (const controller of [this.#stopping, this.#signal])
      if (controller?.signal.aborted === false) controller.abort(reasonOf(cause, this.#job));
  }

  tellStopping(reason: StoppingReason): void {
    this.#reason = reason;
    this.#stopping?.abort(stoppingError(reason, this.#job));
  }
}

/** The value of `ctx.stopping.reason` while the attempt goes on. */
function stoppingError(reason: StoppingReason, job: ClaimedJob): JobError {
  const details = { job: job.id, attempt: job.attempt, reason };
  switch (reason) {
    case "shutdown":
      return new JobError("SHUTDOWN", "The worker is shutting down. End early if you can.", { details });
    case "paused":
      return new JobError("PAUSED", `The queue ${job.queue} was paused. End early if you can.`, { details });
    case "quiet":
      return new JobError("PAUSED", "The worker was made quiet. End early if you can.", { details });
  }
}

/** The value of `ctx.signal.reason`. */
function reasonOf(cause: StopCause, job: ClaimedJob): HoldfastError {
  const details = { job: job.id, attempt: job.attempt };
  switch (cause.kind) {
    case "timeout":
      return new JobError("TIMEOUT", timeoutText(cause.timeoutMs), {
        details: { ...details, timeoutMs: cause.timeoutMs },
      });
    case "cancelled":
      return new JobError("CANCELLED", cause.reason, { details });
    case "shutdown":
      return new JobError("SHUTDOWN", "The worker is shutting down and releases the attempt. Stop now.", {
        details,
      });
    case "lost":
      return new StateError(
        "LEASE_LOST",
        `Job ${job.id} is no longer leased to this worker: another may run it now. Stop; later writes of this attempt are refused.`,
        {
          details: { ...details, token: job.token },
        },
      );
  }
}

export function timeoutText(timeoutMs: number): string {
  return `timeout after ${timeoutMs / 1_000}s`;
}
