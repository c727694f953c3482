/**
 * Running a workflow again from one of its steps, as a job of its own: what the first run did before that step is taken over,
 * and everything from it on is done anew.
 *
 *   first run   a ── b ── c ── d ── end        stays as it is
 *   its fork    a ── b ── c'── d'── end'       a and b are given from the first run's history; c is done again
 *
 * Invariant: only what replays the same way is taken over. A history is given in its order (run.ts), so the handler asks for the
 * chosen step at the same place again; that holds if everything asked for before it was over. Pure.
 * Not here: the rows (fork-rows.ts).
 */
/** What of a step's record says whether it can be taken over. */
export interface PastStep {
  readonly name: string;
  readonly seq: number;
  readonly kind: string;
  readonly state: string;
  readonly wakeAt: number | null;
}

/** Why there can be no fork; null where there can. `before`: steps with a lower number are taken over. */
export type ForkPlan =
  | { readonly refused: string; readonly before: null }
  | { readonly refused: null; readonly before: number };

export function planFork(
  { state, endedAt }: { readonly state: string; readonly endedAt: number },
  steps: readonly PastStep[],
  from: string,
): ForkPlan {
  const refused = (why: string): ForkPlan => ({ refused: why, before: null });
  if (steps.some(({ kind }) => kind === "machine"))
    return refused("A machine cannot be forked: it moves between its steps by its own rules.");
  if (steps.some(({ name, kind }) => name === "$undo" || kind === "undo"))
    return refused(
      "Its steps were compensated, so their results are no longer valid. Retry the job instead.",
    );
  const chosen = steps.find(({ name }) => name === from);
  if (chosen === undefined)
    return refused(`The run has no step "${from}". hf.jobs.history(id) lists its steps.`);
  if (chosen.kind === "version")
    return refused(`"${from}" is a version mark, not a step. Choose the step after it.`);
  // A sleep whose time has come is over, though nobody may have written so (run.ts).
  const over = ({ kind, state: of, wakeAt }: PastStep): boolean =>
    of !== "open" || (kind === "sleep" && wakeAt !== null && wakeAt <= endedAt);
  const open = steps.find((step) => step.seq < chosen.seq && !over(step));
  if (open !== undefined)
    return refused(
      `Step "${open.name}", which started before "${from}", had not finished when the run was ${state}. Choose that step.`,
    );
  return { refused: null, before: chosen.seq };
}
