/**
 * Which step's function is running, so that a call of the run from inside it is refused instead of waited for.
 *
 * A step that waited for its own run would never end: the run gives nothing before the step has ended. An AsyncLocalStorage
 * tells the function of a step from the handler and from other steps that run beside it. It is entered for steps alone:
 * plain jobs pay nothing.
 * Invariants: only calls of the same run count, since a step may start other runs in its process. A finished function lets go
 * of its run, because whatever it opened (a connection, say) keeps the store alive.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { UsageError } from "../errors.ts";
import type { ClaimedJob } from "../jobs/job.ts";

interface Inside {
  /** The run, by its claim. Null once the function has ended. */
  run: ClaimedJob | null;
  /** As errors name it. */
  readonly where: string;
  misuse: UsageError | null;
}

const current = new AsyncLocalStorage<Inside>();

/** Runs the function of a step. A refused call fails the step, also where the function swallows the refusal. */
export async function runInside(run: ClaimedJob, where: string, fn: () => unknown): Promise<unknown> {
  const inside: Inside = { run, where, misuse: null };
  try {
    const value = await current.run(inside, fn);
    if (inside.misuse === null) return value;
  } catch (error) {
    if (inside.misuse === null) throw error;
  } finally {
    inside.run = null;
  }
  throw inside.misuse;
}

/** The refusal of a call that comes from inside a step of this run; null: it comes from the handler. */
export function refusalInside(run: ClaimedJob, call: string): UsageError | null {
  const inside = current.getStore();
  if (inside === undefined || inside.run !== run) return null;
  inside.misuse ??= new UsageError(
    "INSIDE_STEP",
    `${call} was called inside ${inside.where}. Call it in the handler, before or after the step. A step cannot wait for its own run.`,
    { details: { job: run.id, call } },
  );
  return inside.misuse;
}
