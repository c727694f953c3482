/**
 * Compares what a session holds in the database with what its worker knows, and releases the rest.
 *
 *   claim ──answer lost──▶ held by the session, known to nobody ──compared──▶ released: no attempt used, limits returned
 *
 * A claim whose answer is lost may have committed, may still commit (the server works on after the client's deadline), or may
 * not. Its jobs would be "running" for as long as the session is renewed, and limits would stay consumed: 50 of 3,000 jobs
 * were stranded by one muted connection. The same is true of jobs whose end was lost with a primary that failed.
 *
 * Invariants: called while no claim is in flight, so that a job which the worker does not know is not on its way to it; a
 * release is fenced like every other settle, so a job that was settled meanwhile is not touched.
 * Not here: when to compare (worker/claimer.ts after a failed claim, worker/wiring.ts at each renewal).
 */
import type { Clock } from "../clock.ts";
import type { AnyJob } from "../jobs/define-job.ts";
import type { RowKey } from "../jobs/job.ts";
import type { Logger } from "../logger.ts";
import type { Store } from "../storage/store.ts";
import { decide, policyFor, UNHEARD } from "../jobs/transition.ts";

/** Claimed jobs by token, each by its row key: what a worker knows, or what the database says that it holds. */
export class HeldJobs {
  readonly #byToken = new Map<number, Set<RowKey>>();

  constructor(jobs: Iterable<{ readonly token: number; readonly rowKey: RowKey }> = []) {
    for (const { token, rowKey } of jobs) this.add(token, rowKey);
  }

  add(token: number, rowKey: RowKey): void {
    const rowKeys = this.#byToken.get(token);
    if (rowKeys === undefined) this.#byToken.set(token, new Set([rowKey]));
    else rowKeys.add(rowKey);
  }

  has({ token, rowKey }: { readonly token: number; readonly rowKey: RowKey }): boolean {
    return this.#byToken.get(token)?.has(rowKey) === true;
  }

  hasToken(token: number): boolean {
    return this.#byToken.has(token);
  }
}

export interface ReconcilerDeps {
  readonly store: Pick<Store, "sessions" | "settles">;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly workerId: string;
  readonly definitions: Pick<ReadonlyMap<string, AnyJob>, "get">;
  /** Everything that was claimed and is not known to be settled or lost. */
  readonly known: () => HeldJobs;
}

/**
 * Releases the jobs that the session holds and the worker does not know. Rejects when the database cannot be asked.
 *
 * @returns how many were released
 */
export async function reconcile(deps: ReconcilerDeps, session: number): Promise<number> {
  const { store, clock, random, log, workerId, definitions } = deps;
  const { alive, claims } = await store.sessions.renew(session);
  if (!alive) return 0; // whoever renews the session finds out
  const suspects = unknownTokens(claims, deps.known());
  if (suspects.length === 0) return 0;
  const rows = await store.sessions.heldUnder(session, suspects);
  const known = deps.known();
  const unknown = rows.filter((job) => !known.has(job));
  if (unknown.length === 0) return 0;
  const env = { now: () => clock.now(), random };
  const transitions = unknown.map((job) =>
    decide(job, UNHEARD, policyFor(job, definitions.get(job.name) ?? null, null), env),
  );
  const spent = suspects.filter((token) => !known.hasToken(token));
  const released = await store.settles.settle(session, transitions, spent);
  if (released.size === 0) return 0;
  log.warn(
    { worker: workerId, session, jobs: released.size },
    `released ${released.size} jobs of a claim whose answer was lost`,
  );
  return released.size;
}

/** The tokens under which the session holds a job that the worker does not know. */
export function unknownTokens(
  claims: readonly { readonly token: number; readonly held: readonly RowKey[] }[],
  known: HeldJobs,
): number[] {
  return claims
    .filter(({ token, held }) => held.some((rowKey) => !known.has({ token, rowKey })))
    .map(({ token }) => token);
}
