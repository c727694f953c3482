/**
 * Which kinds of a worker have a budget, and which budgets are known to be empty until when.
 *
 *   open ──a claim found no token──▶ closed until its next token ──▶ open
 *     ▲                                  └── set by hand, or something has changed a second after it was asked
 *     └──────────────────────────────────────────┘
 *
 * Invariants: what is closed here is only a reason not to ask; whether there are tokens, the claim alone says, under the
 * lock of the budget's row (limits/budget-claim.ts). A closed budget is asked again after five seconds at the latest: what
 * changed it may have been in another process, and its message lost.
 */
import type { Clock } from "../../clock.ts";
import type { AnyJob } from "../../jobs/define-job.ts";
import type { BudgetedJobs, BudgetScope } from "../../limits/store.ts";

export interface WorkerBudgetsDeps {
  readonly clock: Clock;
  readonly random: () => number;
  readonly definitions: ReadonlyMap<string, AnyJob>;
  readonly warn: (message: string, details: Record<string, unknown>) => void;
}

interface Closed {
  /** By the monotonic clock. */
  readonly until: number;
  readonly askedAt: number;
}

const longestMs = 5_000;
// Two workers that wait for the same token need not ask in the same millisecond; and a fast budget is asked in batches.
const shortestMs = 20;
const askedLongAgoMs = 1_000;
const warnEveryMs = 60_000;

/** The budgets of one worker. */
export class WorkerBudgets {
  readonly #deps: WorkerBudgetsDeps;
  readonly #scopes: readonly BudgetScope[];
  readonly #names = new Set<string>();
  readonly #closed = new Map<BudgetScope, Closed>();
  readonly #warnedAt = new Map<string, number>();
  #next = 0;

  constructor(deps: WorkerBudgetsDeps) {
    this.#deps = deps;
    const scopes = new Map<string, { name: string; tokens: number; names: string[] }>();
    for (const { name, budget } of deps.definitions.values()) {
      // Definitions of another copy of the package, older than this, have no such field.
      if (budget === null || budget === undefined) continue;
      this.#names.add(name);
      const key = `${budget.name}\n${budget.tokens}`;
      const scope = scopes.get(key) ?? { name: budget.name, tokens: budget.tokens, names: [] };
      scope.names.push(name);
      scopes.set(key, scope);
    }
    this.#scopes = [...scopes.values()];
  }

  /** Whether any kind of this worker has a budget. */
  get any(): boolean {
    return this.#scopes.length > 0;
  }

  /** Of these names, those without a budget. */
  free(names: readonly string[]): readonly string[] {
    return names.filter((name) => !this.#names.has(name));
  }

  /** Of these names, those whose budget is not known to be empty: what is worth looking for. */
  open(names: readonly string[]): readonly string[] {
    const shut = new Set(
      this.#scopes.filter((scope) => this.#isClosed(scope)).flatMap((scope) => scope.names),
    );
    return names.filter((name) => !shut.has(name));
  }

  /** The budgets to ask for these names, each time beginning with another. */
  toAsk(names: readonly string[]): BudgetScope[] {
    this.#next = (this.#next + 1) % Math.max(1, this.#scopes.length);
    const inOrder = [...this.#scopes.slice(this.#next), ...this.#scopes.slice(0, this.#next)];
    return inOrder
      .filter((scope) => !this.#isClosed(scope))
      .map((scope) => (scope.names.every((name) => names.includes(name)) ? scope : narrowed(scope, names)))
      .filter((scope) => scope.names.length > 0);
  }

  /** What a claim has found out. */
  learn(scope: BudgetScope, { known, retryInMs }: Pick<BudgetedJobs, "known" | "retryInMs">): void {
    const own = this.#scopes.find((each) => each.name === scope.name && each.tokens === scope.tokens);
    if (own === undefined) return;
    if (known && retryInMs === null) {
      this.#closed.delete(own);
      return;
    }
    const askedAt = this.#deps.clock.monotonic();
    const waitMs = Math.min(longestMs, known ? (retryInMs ?? 0) : longestMs);
    // A little later than the token comes, and not all workers at the same instant.
    const spreadMs = this.#deps.random() * Math.min(shortestMs, waitMs / 4);
    this.#closed.set(own, { until: askedAt + Math.max(shortestMs, waitMs + spreadMs), askedAt });
    if (!known) {
      this.#warn(
        own.name,
        `There is no budget "${own.name}", so no job of ${own.names.join(", ")} is claimed. Set it with hf.budgets.set.`,
      );
    } else if (retryInMs === Infinity) {
      this.#warn(
        own.name,
        `The budget "${own.name}" never has the ${own.tokens} tokens that one job of ${own.names.join(", ")} takes. Raise its burst, or take fewer.`,
      );
    }
  }

  /** They were set by hand: the next claim asks. */
  forget(): void {
    this.#closed.clear();
  }

  /** Something has changed, perhaps these: those that were asked a while ago are asked again. */
  mayHaveChanged(): void {
    const before = this.#deps.clock.monotonic() - askedLongAgoMs;
    for (const [scope, { askedAt }] of this.#closed) if (askedAt <= before) this.#closed.delete(scope);
  }

  /** In how many milliseconds the first closed one is to be asked again; null: none is closed. */
  get askInMs(): number | null {
    let first = Infinity;
    for (const { until } of this.#closed.values()) first = Math.min(first, until);
    return first === Infinity ? null : Math.max(0, first - this.#deps.clock.monotonic());
  }

  #isClosed(scope: BudgetScope): boolean {
    const closed = this.#closed.get(scope);
    if (closed === undefined) return false;
    if (closed.until > this.#deps.clock.monotonic()) return true;
    this.#closed.delete(scope);
    return false;
  }

  #warn(budget: string, message: string): void {
    const now = this.#deps.clock.monotonic();
    if (now - (this.#warnedAt.get(budget) ?? -Infinity) < warnEveryMs) return;
    this.#warnedAt.set(budget, now);
    this.#deps.warn(message, { budget });
  }
}

function narrowed(scope: BudgetScope, names: readonly string[]): BudgetScope {
  return { ...scope, names: scope.names.filter((name) => names.includes(name)) };
}
