/**
 * Which queues have lanes or limits, as far as this process knows: a claim of other queues is a plain one.
 *
 * Invariant: to know too little costs time and never a limit. The plain statements leave jobs with a lane and limited queues out themselves.
 */
import type { ClaimScope } from "../jobs/claim-scope.ts";

/** Which queues have lanes or limits, as far as this process knows. */
export class LimitedQueues {
  #laned: ReadonlySet<string> = new Set();
  #limited: ReadonlySet<string> = new Set();
  #readAt = -Infinity;

  /** What in scope must be claimed under limits; null: nothing. */
  concern(scope: ClaimScope): { laned: boolean; limited: boolean } | null {
    if (this.#laned.size === 0 && this.#limited.size === 0) return null;
    const laned = meets(scope, this.#laned);
    const limited = meets(scope, this.#limited);
    return laned || limited ? { laned, limited } : null;
  }

  /** Whether any queue has lanes. */
  get anyLanes(): boolean {
    return this.#laned.size > 0;
  }

  /** True: nobody has looked for so long that a busy worker might never hear of a new one. */
  stale(monotonicMs: number): boolean {
    return monotonicMs - this.#readAt > 5_000;
  }

  learn(known: { laned: Iterable<string>; limited: Iterable<string> }, monotonicMs: number): void {
    this.#laned = new Set(known.laned);
    this.#limited = new Set(known.limited);
    this.#readAt = monotonicMs;
  }

  /** This process has put a job into a lane of this queue. */
  add(name: string): void {
    if (!this.#laned.has(name)) this.#laned = new Set([...this.#laned, name]);
  }

  forget(): void {
    this.#readAt = -Infinity;
  }
}

function meets(scope: ClaimScope, names: ReadonlySet<string>): boolean {
  if (scope.queues === "all") return names.size > 0;
  const { queues } = scope;
  for (const queue of "get" in queues ? queues.keys() : queues) if (names.has(queue)) return true;
  return false;
}
