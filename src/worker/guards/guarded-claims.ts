/**
 * Claims of a worker that has breakers or budgets.
 *
 *   refresh the breakers ─▶ one may be tried ─▶ claim its one job ─▶ claim what is open: without budgets │ by budget, in turns
 *
 * Invariants: a job type or queue whose breaker is open is in no claim and no look; nothing that costs tokens is claimed ahead of
 * need, because its tokens would be gone from workers that could use them now.
 * Not here: what is open (breaker-guard.ts, budget-waits.ts), when to claim (claimer.ts).
 */
import type { ClaimedJob } from "../../jobs/job.ts";
import type { Store } from "../../storage/store.ts";
import type { ClaimCursor, ClaimScope } from "../../jobs/claim-scope.ts";
import { freeSlots, type Pool } from "../slots.ts";
import type { WorkerBreakers } from "./breaker-guard.ts";
import type { WorkerBudgets } from "./budget-waits.ts";
import type { ClaimGuard, WorkerScope } from "./guard.ts";

export interface GuardedClaimsDeps {
  readonly store: Pick<Store, "claims">;
  readonly pools: ReadonlyMap<string, Pool>;
  readonly names: readonly string[];
  readonly order: ClaimScope["order"];
  readonly breakers: WorkerBreakers;
  readonly budgets: WorkerBudgets;
}

const soonestProbeMs = 50;

/** The guard of one worker's claims. */
export class GuardedClaims implements ClaimGuard {
  readonly #deps: GuardedClaimsDeps;
  #budgetsFirst = false;

  constructor(deps: GuardedClaimsDeps) {
    this.#deps = deps;
  }

  async beforeClaim(session: number, cursor: ClaimCursor): Promise<ClaimedJob | undefined> {
    const { breakers, pools } = this.#deps;
    if (!breakers.any) return undefined;
    await breakers.refresh();
    const free = [...freeSlots(pools)].filter(([, slots]) => slots > 0).map(([queue]) => queue);
    if (breakers.closed().tryInMs !== 0 || free.length === 0) return undefined;
    const probe = await breakers.probe(session);
    if (probe === null) return undefined;
    const queues = probe.queue === null ? free : free.filter((queue) => queue === probe.queue);
    const names = probe.name === null ? this.#openNames() : [probe.name];
    let job: ClaimedJob | undefined;
    try {
      if (queues.length > 0) job = await this.#claimOne(session, queues, names, cursor);
    } finally {
      if (job === undefined) await breakers.giveBack(session, probe.key);
    }
    if (job !== undefined) breakers.assign(probe.key, job.id);
    return job;
  }

  /** A breaker that was open may have been closed by hand, or by another process's probe. */
  async beforeLook(): Promise<void> {
    const { breakers } = this.#deps;
    if (breakers.any && breakers.closed().tryInMs !== null) await breakers.refresh();
  }

  narrow(queues: Map<string, number>): readonly string[] {
    const { breakers } = this.#deps;
    const names = this.#openNames();
    if (names.length === 0) queues.clear();
    if (breakers.any) for (const queue of breakers.closed().queues) queues.delete(queue);
    return names;
  }

  worthLook(names: readonly string[]): readonly string[] {
    return this.#deps.budgets.open(names);
  }

  /** Job types with a budget and those without take turns in having the first choice of the slots. */
  async claim(session: number, scope: WorkerScope, cursor: ClaimCursor): Promise<ClaimedJob[]> {
    const { store, budgets } = this.#deps;
    if (!budgets.any) return store.claims.claim(session, scope, cursor);
    const names = budgets.free(scope.names);
    const plain = (rest: WorkerScope): Promise<ClaimedJob[]> =>
      names.length === 0 || rest.limit === 0
        ? Promise.resolve([])
        : store.claims.claim(session, { ...rest, names }, cursor);
    const budgeted = (rest: WorkerScope) => this.#claimBudgets(session, rest, cursor);
    this.#budgetsFirst = !this.#budgetsFirst;
    const [first, second] = this.#budgetsFirst ? [budgeted, plain] : [plain, budgeted];
    const jobs = await first(scope);
    try {
      return [...jobs, ...(await second(without(scope, jobs)))];
    } catch (error) {
      if (jobs.length === 0) throw error;
      cursor.failed = error;
      return jobs;
    }
  }

  get probeInMs(): number | null {
    const { breakers } = this.#deps;
    const tryInMs = breakers.any ? breakers.closed().tryInMs : null;
    return tryInMs === null ? null : Math.max(tryInMs, soonestProbeMs);
  }

  get claimInMs(): number | null {
    const { probeInMs } = this;
    const { budgets } = this.#deps;
    const tokensInMs = budgets.any ? budgets.askInMs : null;
    if (probeInMs === null || tokensInMs === null) return probeInMs ?? tokensInMs;
    return Math.min(probeInMs, tokensInMs);
  }

  async #claimBudgets(session: number, scope: WorkerScope, cursor: ClaimCursor): Promise<ClaimedJob[]> {
    const { store, budgets } = this.#deps;
    const jobs: ClaimedJob[] = [];
    for (const budget of budgets.toAsk(scope.names)) {
      const { free, queues: asked } = without(scope, jobs);
      const queues = new Map([...free].filter(([queue, slots]) => slots > 0 && asked.has(queue)));
      const limit = [...queues.values()].reduce((sum, slots) => sum + slots, 0);
      if (limit === 0) break;
      try {
        const claim = await store.claims.claimBudgeted(
          session,
          { queues, limit, order: scope.order },
          budget,
          cursor,
        );
        budgets.learn(budget, claim);
        jobs.push(...claim.jobs);
      } catch (error) {
        if (jobs.length === 0) throw error;
        cursor.failed = error;
        return jobs;
      }
    }
    return jobs;
  }

  async #claimOne(
    session: number,
    queues: readonly string[],
    names: readonly string[],
    cursor: ClaimCursor,
  ): Promise<ClaimedJob | undefined> {
    const { store, budgets, order } = this.#deps;
    const open = budgets.any ? budgets.free(names) : names;
    const scope = { queues, names: open, limit: 1, order };
    // By a cursor of its own: the worker's may have passed the one job.
    const own: ClaimCursor = { levels: new Map(), rescannedAt: -Infinity };
    const [job] = open.length === 0 ? [] : await store.claims.claim(session, scope, own);
    if (job !== undefined || !budgets.any) return job;
    for (const queue of queues) {
      const free = new Map([[queue, 1]]);
      const [found] = await this.#claimBudgets(
        session,
        { queues: free, names, limit: 1, order, free },
        cursor,
      );
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #openNames(): readonly string[] {
    const { breakers, names } = this.#deps;
    if (!breakers.any) return names;
    const closed = breakers.closed().names;
    return closed.size === 0 ? names : names.filter((name) => !closed.has(name));
  }
}

/** The scope that is left after these were claimed from it. */
function without(scope: WorkerScope, jobs: readonly ClaimedJob[]): WorkerScope {
  const queues = new Map(scope.queues);
  const free = new Map(scope.free);
  for (const { queue } of jobs)
    for (const left of [queues, free]) left.set(queue, Math.max(0, (left.get(queue) ?? 0) - 1));
  return { ...scope, queues, free, limit: Math.max(0, scope.limit - jobs.length) };
}
