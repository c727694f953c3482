/**
 * `hf.budgets`: rates for the whole cluster, such as "50 calls a minute to Slack, over all processes".
 *
 *   take ──▶ purse of this process ──has enough──▶ granted, without the database
 *                     └─ has not ──▶ the row, once for all who wait: their tokens, and a chunk for the next ones
 *
 * A chunk is as large as what this process has used lately in a quarter of a second, and never more than a sixteenth
 * of the burst: so a budget with a small burst is always taken from the row, one token at a time, and a large one is
 * no hot row. A chunk ends after a second, and what is left of it goes back after half of that.
 * Invariants: one visit to the row for each budget at a time; a purse grants nothing after its chunk's end, by the
 * monotonic clock, counted from before the visit was sent.
 * Not here: the arithmetic (limits/rules/token-bucket.ts), the row (budget-rows.ts).
 */
import type { Clock, Timer } from "../clock.ts";
import { shown, UsageError } from "../errors.ts";
import { type BudgetTake, checkTokens } from "./rules/token-bucket.ts";
import { type Duration, durationMs } from "../values/duration.ts";
import { checkName } from "../values/name.ts";
import { checkOptions } from "../values/options.ts";
import { budgetStands, changeLimits, type TemporaryLimitOptions, untilOf } from "./temporary-limits.ts";
import type { Retry } from "../storage/retry-calls.ts";
import type { Store } from "../storage/store.ts";
import type { BudgetRate } from "./store.ts";

/** What `hf.budgets.set` takes. */
export interface BudgetOptions {
  /** How many tokens come in `per`; may be a fraction. */
  readonly limit: number;
  readonly per: Duration;
  /** How many there can be at once; default `limit`. */
  readonly burst?: number | undefined;
  /** These are the code's numbers: what an operator has set by hand stays. Default false. */
  readonly default?: boolean | undefined;
}

/** What became of a take. */
export interface BudgetGrant {
  readonly granted: boolean;
  /** When it was not granted: after how many milliseconds to ask again. Else 0. */
  readonly retryAfter: number;
}

/** A budget, as `hf.budgets.list()` gives it. */
export interface BudgetState {
  readonly name: string;
  readonly limit: number;
  /** In milliseconds. */
  readonly per: number;
  readonly burst: number;
  /** What the database could give now; chunks that processes hold are not in it. */
  readonly tokens: number;
  /** Its numbers were set by hand, so the code's do not count. */
  readonly tuned: boolean;
}

/** What `hf.budgets` needs of the client. */
export interface BudgetsDeps {
  readonly store: Store;
  readonly retry: Retry;
  readonly clock: Clock;
  readonly checkOpen: () => void;
  readonly newId: () => string;
  readonly warn: (message: string, details: Record<string, unknown>) => void;
}

const chunkMs = 1_000;
const returnMs = 500;
const demandMs = 250;
const unknownRetryMs = 60_000;

/** `hf.budgets`. */
export class Budgets {
  readonly #deps: BudgetsDeps;
  readonly #purses = new Map<string, Purse>();

  constructor(deps: BudgetsDeps) {
    this.#deps = deps;
  }

  /**
   * Sets a budget. A new one starts full; one that is there keeps its tokens, as far as the new burst allows. What is
   * set here is an operator's choice and outlives restarts; with `default: true` it is the code's, which counts as long
   * as nobody has chosen otherwise.
   *
   * @throws UsageError BAD_NAME, BAD_OPTION, BAD_DURATION
   * @example
   * await hf.budgets.set("slack", { limit: 50, per: "1m", default: true });
   * await hf.budgets.set("slack", { limit: 5, per: "1m" }, { for: "1h" });   // then back, within 45 s
   */
  async set(name: string, options: BudgetOptions, when?: TemporaryLimitOptions): Promise<void> {
    this.#deps.checkOpen();
    const known = checkName(name, "The name of a budget");
    const given = checkOptions(
      options,
      ["limit", "per", "burst", "default"],
      "budgets.set",
    ) as unknown as BudgetOptions;
    const rate: BudgetRate = {
      limit: checkTokens(given.limit, "limit"),
      perMs: durationMs(given.per, "per"),
      burst:
        given.burst === undefined ? checkTokens(given.limit, "limit") : checkTokens(given.burst, "burst"),
    };
    if (rate.perMs === 0)
      throw new UsageError("BAD_DURATION", "per must be longer than 0.", { details: { option: "per" } });
    if (given.default !== undefined && typeof given.default !== "boolean")
      throw new UsageError("BAD_OPTION", `default must be true or false; got ${shown(given.default)}.`, {
        details: { option: "default" },
      });
    const { store, retry } = this.#deps;
    const standard = given.default === true;
    const change = (): Promise<void> => store.budgets.set(known, rate, standard);
    const back = (): Promise<Record<string, unknown> | null> => budgetStands(store, known);
    // The code's numbers are no choice of an operator's: they neither end one nor can be for a while.
    if (standard && untilOf(when) !== null)
      throw new UsageError(
        "BAD_OPTION",
        "default: true stores the value of the code and cannot have an end.",
        {
          details: { option: "default" },
        },
      );
    await retry.repeatable(() =>
      standard ? change() : changeLimits(store, { kind: "budget", name: known }, when, null, back, change),
    );
    this.#purses.get(known)?.forget();
  }

  /**
   * Gives up what was set by hand, for the code's numbers. False: there are none.
   *
   * @example
   * await hf.budgets.reset("slack");
   */
  async reset(name: string): Promise<boolean> {
    return this.#change(name, (known) => this.#deps.store.budgets.reset(known));
  }

  /**
   * Takes `n` tokens (default 1), or none. A budget that nobody has set grants nothing: a misspelt name must not be
   * a way around a limit.
   *
   * @throws UsageError BAD_OPTION `n` is not positive, or more than the budget can ever have
   * @example
   * const { granted, retryAfter } = await hf.budgets.take("slack");
   */
  async take(name: string, n = 1): Promise<BudgetGrant> {
    this.#deps.checkOpen();
    const { granted, retryAfter } = await this.takeFor(name, n);
    return { granted, retryAfter };
  }

  /** @internal As `take`, for handlers: they may take while their worker stops. */
  async takeFor(name: string, n: number): Promise<BudgetGrant & { readonly unknown?: true }> {
    const known = checkName(name, "The name of a budget");
    return this.#purse(known).take(checkTokens(n, "n of a budget"));
  }

  /**
   * Empties a budget: the other side says that we were too fast, so it knows better than our count. Other processes may
   * go on with what they hold for up to a second. False: there is none of this name.
   *
   * @example
   * if (response.status === 429) { await hf.budgets.drain("slack"); throw new Throttled("30s"); }
   */
  async drain(name: string): Promise<boolean> {
    return this.#change(name, (known) => this.#deps.store.budgets.drain(known));
  }

  /**
   * Removes a budget: what takes from it is throttled. False: there was none.
   *
   * @example
   * await hf.budgets.remove("slack");
   */
  async remove(name: string): Promise<boolean> {
    return this.#change(name, (known) => this.#deps.store.budgets.remove(known), "once");
  }

  /**
   * Every budget, by name.
   *
   * @example
   * for (const { name, tokens, burst } of await hf.budgets.list()) console.log(name, `${tokens} of ${burst}`);
   */
  async list(): Promise<BudgetState[]> {
    this.#deps.checkOpen();
    const rows = await this.#deps.retry.repeatable(() => this.#deps.store.budgets.list());
    return rows.map(({ name, limit, perMs, burst, tokens, tuned }) => ({
      name,
      limit,
      per: perMs,
      burst,
      tokens,
      tuned,
    }));
  }

  /** @internal Gives back what this process holds. */
  async close(): Promise<void> {
    await Promise.all([...this.#purses.values()].map((purse) => purse.close()));
  }

  async #change(
    name: string,
    write: (known: string) => Promise<boolean>,
    tries: "once" | "repeatable" = "repeatable",
  ): Promise<boolean> {
    this.#deps.checkOpen();
    const known = checkName(name, "The name of a budget");
    this.#purses.get(known)?.forget();
    const changed = await this.#deps.retry[tries](() => write(known));
    this.#purses.get(known)?.forget();
    return changed;
  }

  #purse(name: string): Purse {
    let purse = this.#purses.get(name);
    if (purse === undefined) {
      purse = new Purse(name, this.#deps);
      this.#purses.set(name, purse);
    }
    return purse;
  }
}

interface Waiter {
  readonly n: number;
  readonly resolve: (grant: BudgetGrant & { readonly unknown?: true }) => void;
  readonly reject: (error: unknown) => void;
}

const granted: BudgetGrant = Object.freeze({ granted: true, retryAfter: 0 });

/** What this process holds of one budget. */
class Purse {
  readonly #name: string;
  readonly #deps: BudgetsDeps;
  readonly #holder: string;
  #left = 0;
  #until = -Infinity;
  #timer: Timer | undefined;
  #waiters: Waiter[] = [];
  #visit: Promise<void> | undefined;
  /** Tokens granted since the last visit, and when that was: what the next chunk is measured by. */
  #used = 0;
  #visitedAt = -Infinity;
  #burst = 0;

  constructor(name: string, deps: BudgetsDeps) {
    this.#name = name;
    this.#deps = deps;
    this.#holder = deps.newId().slice(-12);
  }

  take(n: number): Promise<BudgetGrant & { readonly unknown?: true }> {
    if (this.#waiters.length === 0 && this.#spend(n)) return Promise.resolve(granted);
    return new Promise((resolve, reject) => {
      this.#waiters.push({ n, resolve, reject });
      this.#visit ??= this.#visits();
    });
  }

  /** What it holds was taken under other numbers: it is given back with the next visit, and not granted from. */
  forget(): void {
    this.#left = 0;
    this.#until = -Infinity;
  }

  async close(): Promise<void> {
    this.#timer?.cancel();
    await this.#visit;
    if (this.#left > 0) await this.#giveBack();
  }

  #spend(n: number): boolean {
    if (n > this.#left || this.#deps.clock.monotonic() >= this.#until) return false;
    this.#left -= n;
    this.#used += n;
    return true;
  }

  async #visits(): Promise<void> {
    await Promise.resolve(); // whoever asks in this turn comes along
    while (this.#waiters.length > 0) {
      const waiters = this.#waiters;
      this.#waiters = [];
      try {
        this.#answer(waiters, await this.#ask(waiters.map(({ n }) => n)));
      } catch (error) {
        for (const { reject } of waiters) reject(error);
      }
      // Those who came meanwhile: from the new chunk, as far as it goes.
      while (this.#waiters[0] !== undefined && this.#spend(this.#waiters[0].n))
        this.#waiters.shift()?.resolve(granted);
    }
    this.#visit = undefined;
  }

  async #ask(wants: readonly number[]): Promise<BudgetTake | null> {
    const { store, retry, clock } = this.#deps;
    const askedAt = clock.monotonic();
    const sinceMs = Math.max(1, askedAt - this.#visitedAt);
    const demand = sinceMs === Infinity ? 0 : (this.#used * demandMs) / Math.max(sinceMs, demandMs / 4);
    const chunk = wants.length === 0 ? 0 : Math.floor(Math.min(demand, this.#burst / 16));
    const unused = askedAt < this.#until ? this.#left : 0;
    this.forget();
    this.#used = 0;
    this.#visitedAt = askedAt;
    const request = { wants, chunk: chunk >= 2 ? chunk : 0, holder: this.#holder, chunkMs, unused };
    const visit = (): Promise<BudgetTake | null> => store.budgets.take(this.#name, request);
    // Tokens of a visit whose answer was lost are gone: that is safe. Giving back is not worth waiting for.
    const take = await (wants.length === 0 ? retry.once(visit) : retry.repeatable(visit));
    if (take === null) return null;
    this.#burst = take.burst;
    this.#left = take.chunk;
    this.#until = askedAt + chunkMs;
    if (take.chunk > 0) this.#returnLater();
    return take;
  }

  #answer(waiters: readonly Waiter[], take: BudgetTake | null): void {
    if (take === null) {
      this.#deps.warn(
        `There is no budget "${this.#name}", so its jobs are throttled. Set it with hf.budgets.set.`,
        {
          budget: this.#name,
        },
      );
      for (const { resolve } of waiters)
        resolve({ granted: false, retryAfter: unknownRetryMs, unknown: true });
      return;
    }
    for (const [i, { n, resolve, reject }] of waiters.entries()) {
      if (take.granted[i] === true) {
        this.#used += n;
        resolve(granted);
      } else if (n > take.burst) {
        reject(
          new UsageError(
            "BAD_OPTION",
            `${n} tokens of the budget "${this.#name}" can never be granted: it holds at most ${take.burst} (its burst).`,
            { details: { budget: this.#name, n, burst: take.burst } },
          ),
        );
      } else resolve({ granted: false, retryAfter: take.retryAfterMs[i] ?? unknownRetryMs });
    }
  }

  #returnLater(): void {
    this.#timer?.cancel();
    this.#timer = this.#deps.clock.after(
      returnMs,
      () => {
        if (this.#left > 0 && this.#visit === undefined) void this.#giveBack();
      },
      { unref: true },
    );
  }

  /** Never fails: a chunk that cannot be given back ends by itself, as used. */
  async #giveBack(): Promise<void> {
    try {
      await this.#ask([]);
    } catch {
      this.forget();
    }
  }
}
