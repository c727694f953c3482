/**
 * Ends of attempts whose handler did more than return a value: it asked for steps, moved a machine, or called `ctx.commit`; and of
 * those that ran before, perhaps in steps.
 *
 * Invariants: a history that the code has not asked for is read before the job ends; whether `ctx.commit` was committed, the row says.
 * Not here: steps (workflows/run.ts), the ends of every other attempt (attempt.ts, attempt-outcomes.ts).
 */
import { type HoldfastError, JobError } from "../../errors.ts";
import { describeFailure } from "../../jobs/failure.ts";
import type { ClaimedJob } from "../../jobs/job.ts";
import type { Outcome } from "../../jobs/outcome.ts";
import { isMoved } from "../../workflows/machine-move.ts";
import type { WorkflowRun } from "../../workflows/run.ts";
import { coded, deadOf, stoppedBy } from "./attempt-outcomes.ts";
import { type AttemptContext, type WorkflowDeps, workflowRun } from "../context.ts";
import type { StopCause } from "./stop-causes.ts";

/** The attempt that ends, and how its end is told. */
export interface Ending {
  readonly job: ClaimedJob;
  readonly machine: boolean;
  readonly workflow: WorkflowRun | null;
  readonly committed: boolean;
  readonly stopCause: StopCause | undefined;
  readonly ctx: AttemptContext | null;
  readonly deps: WorkflowDeps | undefined;
  readonly end: (outcome: Outcome) => void;
  readonly returned: (value: unknown) => void;
  readonly threw: (error: unknown) => void;
  readonly onUnawaited: (steps: readonly string[]) => void;
}

/** The handler has returned. False: its value is the job's output, as of any other attempt. */
export function endsOtherwise(ending: Ending, value: unknown): boolean {
  const { workflow, stopCause: cause, end } = ending;
  if (endsByCommit(ending)) return true;
  if (isUnread(ending)) {
    void ending.ctx?.[workflowRun].close().then(() => ending.returned(value), ending.threw);
    return true;
  }
  if (workflow !== null) {
    const unawaited = cause === undefined ? workflow.unawaited : [];
    const diverged = workflow.finished();
    if (workflow.undoing) return true;
    if (unawaited.length > 0) ending.onUnawaited(unawaited);
    if (diverged !== null) {
      end(cause === undefined ? deadOf(diverged, true) : stoppedBy(cause));
      return true;
    }
  }
  if (!ending.machine || !isMoved(value)) return false;
  // A move is no end: it stands through a shutdown, and a cancel finds the machine between two steps.
  const moved = { kind: "moved", delayMs: value.delayMs } as const;
  end(cause === undefined || cause.kind === "shutdown" ? moved : stoppedBy(cause));
  return true;
}

/** After `ctx.commit`, the row says whether the handler's transaction was committed. False: it was not called, or the lease is lost. */
export function endsByCommit(ending: Ending, thrown: { readonly error: unknown } | null = null): boolean {
  const { job, deps, end } = ending;
  if (!ending.committed || ending.stopCause?.kind === "lost") return false;
  const told = (held: boolean): void => {
    if (!held) end({ kind: "committed" });
    else if (thrown !== null) end({ kind: "failed", failure: describeFailure(thrown.error) });
    else end({ kind: "failed", failure: coded(notCommitted(job)) });
  };
  if (deps === undefined) told(false);
  else
    deps.store.workflows.stillHeld(job.session, job.id, job.token).then(
      (held) => told(held),
      // The database is away: the settle that follows finds out, under the fence.
      () => told(true),
    );
  return true;
}

/**
 * It ran before, perhaps in steps, and its handler has returned without waiting for any: its history says. A run that
 * is being undone comes again (jobs/transition.ts).
 */
function isUnread({ job, machine, deps, workflow }: Ending): boolean {
  return job.begun && !job.undoing && !machine && deps !== undefined && workflow?.loaded !== true;
}

function notCommitted(job: ClaimedJob): HoldfastError {
  return new JobError(
    "NOT_COMMITTED",
    "The handler called ctx.commit and returned, but its transaction was not committed.",
    { details: { job: job.id } },
  );
}
