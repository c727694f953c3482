/**
 * Budgets in the database: one row each, read and written under its lock; the arithmetic is limits/rules/token-bucket.ts.
 *
 * `takeTokens`, `lockBucket` and `returnTokens` are scripts of their own, for transactions that have more to do: a claim of
 * jobs that have a budget (budget-claim.ts), and the settle that gives such jobs back unstarted.
 */
import {
  type Bucket,
  type BudgetTake,
  type Chunk,
  drained,
  refill,
  returned,
  takeFrom,
  tuned,
  type Want,
} from "./rules/token-bucket.ts";
import type { BudgetStore, BudgetRate, BudgetRequest, BudgetRow } from "./store.ts";
import type { Call, Row, Script } from "../storage/catalogue.ts";
import type { Driver } from "../storage/driver.ts";
import type { Wake } from "../storage/wake.ts";
import { flag, maybeText, number, text } from "../jobs/rows.ts";

export class Budgets implements BudgetStore {
  readonly #driver: Driver;
  readonly #wake: (wake: Wake) => void;

  constructor(driver: Driver, wake: (wake: Wake) => void) {
    this.#driver = driver;
    this.#wake = wake;
  }

  async list(): Promise<BudgetRow[]> {
    const rows = await this.#driver.read({ name: "budgetRows", params: { now: this.#driver.now() } });
    return rows.map((row) => {
      const { limit, perMs, burst, tokens } = refill(bucketOf(row), number(row, "now"));
      return { name: text(row, "name"), limit, perMs, burst, tuned: flag(row, "tuned"), tokens };
    });
  }

  async set(name: string, rate: BudgetRate, standard: boolean): Promise<void> {
    const now = this.#driver.now();
    await this.#driver.transaction("setBudget", function* (): Script<void> {
      const added = {
        name: "addBudget",
        params: {
          now,
          name,
          amount: rate.limit,
          per: rate.perMs,
          burst: rate.burst,
          tuned: !standard,
          standard: standard ? JSON.stringify(rate) : null,
        },
      } as const;
      const [row] = yield { name: "lockBudget", params: { now, name } };
      if (row === undefined && (yield added).length > 0) return;
      const [there] = row === undefined ? yield { name: "lockBudget", params: { now, name } } : [row];
      if (there === undefined) return;
      const code = standard ? JSON.stringify(rate) : maybeText(there, "standard");
      const kept = standard && flag(there, "tuned");
      const bucket = bucketOf(there);
      yield saved(there, kept ? bucket : tuned(bucket, rate, number(there, "now")), {
        tuned: kept || !standard,
        standard: code,
      });
    });
    this.#wake({ kind: "settings" }); // workers time the next token
  }

  async reset(name: string): Promise<boolean> {
    const known = await this.#changing(name, (row, now) => {
      const code = rateOf(maybeText(row, "standard"));
      return code === null
        ? null
        : saved(row, tuned(bucketOf(row), code, now), { tuned: false, standard: maybeText(row, "standard") });
    });
    this.#wake({ kind: "settings" });
    return known;
  }

  drain(name: string): Promise<boolean> {
    return this.#changing(name, (row, now) => saved(row, drained(bucketOf(row), now)));
  }

  async remove(name: string): Promise<boolean> {
    return (await this.#driver.write({ name: "removeBudget", params: { name } })).length > 0;
  }

  take(name: string, request: BudgetRequest): Promise<BudgetTake | null> {
    const now = this.#driver.now();
    return this.#driver.transaction("takeBudget", () => takeTokens(name, request, now));
  }

  #changing(
    name: string,
    change: (row: Row, now: number) => ReturnType<typeof saved> | null,
  ): Promise<boolean> {
    const at = this.#driver.now();
    return this.#driver.transaction("changeBudget", function* (): Script<boolean> {
      const [row] = yield { name: "lockBudget", params: { now: at, name } };
      const call = row === undefined ? null : change(row, number(row, "now"));
      if (call === null) return false;
      yield call;
      return true;
    });
  }
}

/** Takes from a budget inside a transaction; null: there is no such budget. Locks its row until the commit. */
function* takeTokens(name: string, want: Want, now: number | null): Script<BudgetTake | null> {
  const [row] = yield { name: "lockBudget", params: { now, name } };
  if (row === undefined) return null;
  const { bucket, take } = takeFrom(bucketOf(row), want, number(row, "now"));
  yield saved(row, bucket);
  return take;
}

/** A budget at this instant, locked until the commit, and the call that writes it; null: there is none. */
export function* lockBucket(
  name: string,
  now: number | null,
): Script<{ bucket: Bucket; now: number; save: (bucket: Bucket) => Call } | null> {
  const [row] = yield { name: "lockBudget", params: { now, name } };
  if (row === undefined) return null;
  const at = number(row, "now");
  return { bucket: refill(bucketOf(row), at), now: at, save: (bucket) => saved(row, bucket) };
}

/** Tokens to give back to a budget, and when the first of them were taken. */
export interface Unused {
  readonly tokens: number;
  readonly at: number;
}

/** Gives tokens back, by budget. In the order of names, so that two that give back cannot wait for each other. */
export function* returnTokens(unused: ReadonlyMap<string, Unused>): Script<void> {
  for (const [name, { tokens, at }] of [...unused].sort(([a], [b]) => (a < b ? -1 : 1))) {
    // The row's own instants say what time it is: giving back must not make anything grow that a claim did not see.
    const [row] = yield { name: "lockBudget", params: { now: null, name } };
    if (row !== undefined) yield saved(row, returned(bucketOf(row), tokens, at));
  }
}

function saved(
  row: Row,
  bucket: Bucket,
  change: { tuned: boolean; standard: string | null } = {
    tuned: flag(row, "tuned"),
    standard: maybeText(row, "standard"),
  },
) {
  return {
    name: "setBudget",
    params: {
      name: text(row, "name"),
      amount: bucket.limit,
      per: bucket.perMs,
      burst: bucket.burst,
      tokens: bucket.tokens,
      filledAt: bucket.filledAt,
      chunks: bucket.chunks.length === 0 ? null : JSON.stringify(bucket.chunks),
      ...change,
    },
  } as const;
}

function bucketOf(row: Row): Bucket {
  return {
    limit: number(row, "amount"),
    perMs: number(row, "per_ms"),
    burst: number(row, "burst"),
    tokens: number(row, "tokens"),
    filledAt: number(row, "filled_at"),
    chunks: chunksOf(maybeText(row, "chunks")),
  };
}

function chunksOf(value: string | null): readonly Chunk[] {
  try {
    return value === null ? [] : (JSON.parse(value) as Chunk[]);
  } catch {
    return []; // spoilt by hand
  }
}

function rateOf(value: string | null): BudgetRate | null {
  try {
    return value === null ? null : (JSON.parse(value) as BudgetRate);
  } catch {
    return null;
  }
}
