/**
 * Ends that need an answer of the database before they are settled. A job that ends in its first run needs none.
 *
 *   released without a delay, and run before ─▶ did that run end so too? ─▶ released, now or in a second
 *   ends, and run before ─▶ are there steps to undo? ─▶ ends · its steps are undone first
 *
 * Invariant: a job of which the answer is not known is not settled; the worker that takes it over asks again.
 * Not here: what the answers mean (jobs/transition.ts), undoing (workflows/compensation.ts).
 */
import type { ClaimedJob } from "../../jobs/job.ts";
import type { DecideEnv, Outcome, Policy, Settlement } from "../../jobs/outcome.ts";
import { triedToUndo } from "../../jobs/transition.ts";
import type { Settler } from "../../lease/settler.ts";
import type { Store } from "../../storage/store.ts";
import { troubleOf } from "../../storage/trouble.ts";
import type { Attempt } from "../attempt.ts";

export interface EndAsksDeps {
  readonly store: { readonly workflows: Pick<Store["workflows"], "undoable"> } & Pick<Store, "jobs">;
  /** Asks until the database answers, or `over`. */
  readonly patiently: <T>(call: () => Promise<T>, over: () => boolean) => Promise<T>;
  readonly settler: Pick<Settler, "push" | "letGo">;
  /** Jobs of which the database is asked. */
  readonly asking: Set<ClaimedJob>;
  /** The database says for good that it cannot be asked. */
  readonly onFatal: (error: unknown) => void;
  readonly onAnswered: () => void;
}

type Undo = "undo" | "undoing" | undefined;

interface Ask {
  readonly id: string;
  /** The answer is not needed any more. */
  readonly over: () => boolean;
  readonly resolve: (answer: Undo) => void;
  readonly reject: (error: unknown) => void;
}

const notYetUndone: Outcome = { kind: "released", delayMs: 0, reason: "its steps are not compensated yet" };

export class EndAsks {
  readonly #deps: EndAsksDeps;
  #waiting: Ask[] = [];

  constructor(deps: EndAsksDeps) {
    this.#deps = deps;
  }

  /** The claim does not say how the run before this one ended, because few jobs need it. */
  async released(
    attempt: Attempt,
    outcome: Outcome & { readonly kind: "released" },
  ): Promise<Outcome & { readonly kind: "released" }> {
    const { store, patiently, asking } = this.#deps;
    const { job } = attempt;
    asking.add(job);
    let repeated = true;
    try {
      const row = await patiently(
        () => store.jobs.place(job.id),
        () => isLost(attempt),
      );
      repeated = row?.note?.thrown === true;
    } catch {
      // The database says no for good, and will say so of the settle.
    }
    asking.delete(job);
    return repeated ? { ...outcome, repeated } : outcome;
  }

  /** Settles a job that ends, once it is known whether steps of it are to be undone first. */
  settle(settlement: Settlement, attempt: Attempt | undefined, policy: Policy, env: DecideEnv): void {
    const undo = mustUndo(settlement, attempt);
    if (undo === "ask") void this.#askUndo(settlement, attempt, policy, env);
    else this.#push(settlement, undo, policy, env);
  }

  #push(settlement: Settlement, undo: Undo, policy: Policy, env: DecideEnv): void {
    const { settler } = this.#deps;
    const { job, transition, outcome } = settlement;
    if (undo === undefined || transition.move !== "end") return settler.push(settlement);
    if (undo === "undo") return settler.push({ ...settlement, transition: { ...transition, undo: true } });
    settler.push({
      ...settlement,
      transition: triedToUndo(job, transition, policy, env),
      // A handler that returned before its first step has not done the job.
      outcome: outcome.kind === "succeeded" ? notYetUndone : outcome,
    });
  }

  async #askUndo(
    settlement: Settlement,
    attempt: Attempt | undefined,
    policy: Policy,
    env: DecideEnv,
  ): Promise<void> {
    const { asking, settler, onFatal, onAnswered } = this.#deps;
    const { job } = settlement;
    asking.add(job);
    const over = (): boolean => attempt !== undefined && isLost(attempt);
    try {
      this.#push(settlement, await this.#undoable(job.id, over), policy, env);
    } catch (error) {
      settler.letGo([job]);
      if (!over() && troubleOf(error) === "permanent") onFatal(error);
    } finally {
      asking.delete(job);
      onAnswered();
    }
  }

  /** Asked for all that ended in one turn of the event loop at once: a thousand dead jobs that are retried end so. */
  #undoable(id: string, over: () => boolean): Promise<Undo> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ id, over, resolve, reject });
      if (this.#waiting.length === 1) setImmediate(() => void this.#askAll());
    });
  }

  async #askAll(): Promise<void> {
    const { store, patiently } = this.#deps;
    const asks = this.#waiting;
    this.#waiting = [];
    try {
      const ids = asks.map(({ id }) => id).sort();
      const over = (): boolean => asks.every((ask) => ask.over());
      const answers = await patiently(() => store.workflows.undoable(ids), over);
      for (const { id, resolve } of asks) resolve(answers.get(id));
    } catch (error) {
      for (const { reject } of asks) reject(error);
    }
  }
}

/** Whether steps of it are to be undone before it ends as decided, or were to be and have not been. */
function mustUndo({ job, transition }: Settlement, attempt: Attempt | undefined): Undo | "ask" {
  const workflow = attempt?.workflow ?? null;
  if (transition.move !== "end" || transition.undo === false) return undefined;
  if (workflow?.loaded === true)
    return transition.state !== "done" && workflow.undoable && !workflow.undoing ? "undo" : undefined;
  // It ended before it had asked for anything: this run was to undo steps, or an earlier one, in whichever process, may have done some.
  if (job.undoing) return "undoing";
  return transition.state !== "done" && job.begun ? "ask" : undefined;
}

function isLost(attempt: Attempt): boolean {
  return attempt.stopCause?.kind === "lost";
}
