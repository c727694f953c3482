/**
 * Budgets in the database: one row each, read and written under its lock; the arithmetic is policy/budget.ts.
 *
 * `takeTokens` is a script of its own, so that a claim can take a job's budget in the claim's transaction.
 */
import {
  type Bucket,
  type BudgetTake,
  type Chunk,
  drained,
  refill,
  takeFrom,
  tuned,
  type Want,
} from "../policy/budget.ts";
import type { BudgetRate, BudgetRequest, BudgetRow } from "../store.ts";
import type { Row, Script } from "./catalogue.ts";
import type { Driver } from "./driver.ts";
import { flag, maybeText, number, text } from "./rows.ts";

export class Budgets {
  readonly #driver: Driver;

  constructor(driver: Driver) {
    this.#driver = driver;
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
    await this.#driver.transaction(function* (): Script<void> {
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
  }

  reset(name: string): Promise<boolean> {
    return this.#changing(name, (row, now) => {
      const code = rateOf(maybeText(row, "standard"));
      return code === null
        ? null
        : saved(row, tuned(bucketOf(row), code, now), { tuned: false, standard: maybeText(row, "standard") });
    });
  }

  drain(name: string): Promise<boolean> {
    return this.#changing(name, (row, now) => saved(row, drained(bucketOf(row), now)));
  }

  async remove(name: string): Promise<boolean> {
    return (await this.#driver.write({ name: "removeBudget", params: { name } })).length > 0;
  }

  take(name: string, request: BudgetRequest): Promise<BudgetTake | null> {
    const now = this.#driver.now();
    return this.#driver.transaction(() => takeTokens(name, request, now));
  }

  #changing(
    name: string,
    change: (row: Row, now: number) => ReturnType<typeof saved> | null,
  ): Promise<boolean> {
    const at = this.#driver.now();
    return this.#driver.transaction(function* (): Script<boolean> {
      const [row] = yield { name: "lockBudget", params: { now: at, name } };
      const call = row === undefined ? null : change(row, number(row, "now"));
      if (call === null) return false;
      yield call;
      return true;
    });
  }
}

/** Takes from a budget inside a transaction; null: there is no such budget. Locks its row until the commit. */
export function* takeTokens(name: string, want: Want, now: number | null): Script<BudgetTake | null> {
  const [row] = yield { name: "lockBudget", params: { now, name } };
  if (row === undefined) return null;
  const { bucket, take } = takeFrom(bucketOf(row), want, number(row, "now"));
  yield saved(row, bucket);
  return take;
}

/** `n` tokens or none, without a chunk: what a claim needs. */
export function* takeNow(
  name: string,
  n: number,
  now: number | null,
): Script<{ readonly granted: boolean; readonly retryAfterMs: number }> {
  const want = { wants: [n], chunk: 0, holder: "", chunkMs: 0, unused: 0 };
  const take = yield* takeTokens(name, want, now);
  return { granted: take?.granted[0] ?? false, retryAfterMs: take?.retryAfterMs[0] ?? 60_000 };
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
