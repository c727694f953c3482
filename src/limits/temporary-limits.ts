/**
 * Limits for a while: what an operator sets with an end goes back by itself to what was there before.
 *
 *   set(…, { for: "1h" }) ─▶ override (what to go back to, until when) ─▶ the new limits
 *   the time has come, or `end` ─▶ what was there before ─▶ the override is forgotten
 *
 * Invariants: what to go back to is written before anything changes, and forgotten after it is back, so that a crash in
 * between costs a second try and nothing else; a second change for a while keeps the first one's way back; a change for good
 * of the same thing takes it out of the override, so that the end does not undo it.
 * Not here: who looks whether the time has come (upkeep/tasks.ts, every 40 s), the rows (temporary-limit-rows.ts).
 */
import { UsageError } from "../errors.ts";
import { type Duration, durationMs, instantMs } from "../values/duration.ts";
import { checkOptions } from "../values/options.ts";
import type { Retry } from "../storage/retry-calls.ts";
import type { Store } from "../storage/store.ts";
import type { BudgetRate, OverrideRow, OverrideTarget } from "./store.ts";
import type { LaneLimits } from "../jobs/job.ts";

/** How long a change holds; without either: for good. */
export interface OverrideOptions {
  /** So long from now: "1h". */
  readonly for?: Duration | undefined;
  readonly until?: Date | number | undefined;
}

/** A change that ends by itself. */
export interface Override {
  readonly kind: "queue" | "lane" | "budget";
  /** Of the queue or the budget; of a lane its queue. */
  readonly name: string;
  /** Of a lane. */
  readonly key: string | null;
  readonly setAt: Date;
  readonly untilAt: Date;
  /** What it goes back to; null: it was not there. */
  readonly back: Readonly<Record<string, unknown>> | null;
}

/** What `hf.overrides` needs of the client. */
export interface OverridesDeps {
  readonly store: Store;
  readonly retry: Retry;
  readonly checkOpen: () => void;
}

/** `hf.overrides`. */
export class Overrides {
  readonly #deps: OverridesDeps;

  constructor(deps: OverridesDeps) {
    this.#deps = deps;
  }

  /**
   * What holds for a while, the next end first.
   *
   * @example
   * for (const { kind, name, untilAt } of await hf.overrides.list()) console.log(kind, name, untilAt);
   */
  async list(): Promise<Override[]> {
    this.#deps.checkOpen();
    const rows = await this.#deps.retry.repeatable(() =>
      this.#deps.store.temporaryLimits.list({ due: false }),
    );
    return rows.map(({ kind, name, setAt, untilAt, back }) => {
      const [queue, key] = kind === "lane" ? (JSON.parse(name) as [string, string]) : [name, null];
      return { kind, name: queue, key, setAt: new Date(setAt), untilAt: new Date(untilAt), back };
    });
  }

  /**
   * Goes back at once. False: nothing holds for a while there.
   *
   * @example
   * await hf.overrides.end({ kind: "queue", name: "mail" });
   */
  async end(of: {
    readonly kind: Override["kind"];
    readonly name: string;
    readonly key?: string | null | undefined;
  }): Promise<boolean> {
    this.#deps.checkOpen();
    const { store, retry } = this.#deps;
    const name = of.kind === "lane" ? laneName(of.name, of.key ?? "") : of.name;
    const rows = await retry.repeatable(() => store.temporaryLimits.list({ due: false }));
    const row = rows.find((one) => one.kind === of.kind && one.name === name);
    if (row === undefined) return false;
    await retry.repeatable(() => goBack(store, row));
    return true;
  }
}

/**
 * Changes something for a while, or for good. `back` says what was there: it is asked for only if it will be needed.
 *
 * @throws UsageError BAD_OPTION, BAD_DURATION, BAD_INSTANT
 */
export async function override(
  store: Store,
  target: OverrideTarget,
  options: OverrideOptions | undefined,
  keys: readonly string[] | null,
  back: () => Promise<OverrideRow["back"]>,
  change: () => Promise<void>,
): Promise<void> {
  const until = untilOf(options);
  if (until !== null) await store.temporaryLimits.begin(target, await back(), until);
  await change();
  if (until === null) await store.temporaryLimits.forget(target, keys);
}

/** @throws UsageError */
export function untilOf(
  options: OverrideOptions | undefined,
): { at: number | null; delayMs: number | null } | null {
  const given = checkOptions(options ?? {}, ["for", "until"], "how long it holds") as OverrideOptions;
  if (given.for === undefined && given.until === undefined) return null;
  if (given.for !== undefined && given.until !== undefined)
    throw new UsageError(
      "BAD_OPTION",
      "for and until cannot both be given: one says how long from now, the other until when.",
    );
  if (given.for !== undefined) return { at: null, delayMs: durationMs(given.for, "for") };
  return { at: instantMs(given.until as Date, "until"), delayMs: null };
}

/** A queue's own values of these settings; null: the default. */
export async function queueStands(
  store: Store,
  queue: string,
  keys: readonly string[],
): Promise<Record<string, unknown>> {
  const known: Readonly<Record<string, unknown>> | undefined = {
    ...(await store.queues.settings([queue])).get(queue),
  };
  return Object.fromEntries(keys.map((key) => [key, known[key] ?? null]));
}

/** A lane's own values of these, and whether they were set by hand. */
export async function laneStands(
  store: Store,
  queue: string,
  key: string,
  keys: readonly string[],
): Promise<Record<string, unknown>> {
  const [lane] = (await store.lanes.list({ queue, key, cursor: 0, limit: 1 })).lanes;
  const known: Readonly<Record<string, unknown>> = { paused: false, ...lane };
  return {
    ...Object.fromEntries(keys.map((limit) => [limit, known[limit] ?? null])),
    tuned: lane?.tuned ?? false,
  };
}

/** A budget's numbers, and whether they were set by hand; null: there is none. */
export async function budgetStands(store: Store, name: string): Promise<Record<string, unknown> | null> {
  const row = (await store.budgets.list()).find((one) => one.name === name);
  return row === undefined
    ? null
    : { limit: row.limit, perMs: row.perMs, burst: row.burst, tuned: row.tuned };
}

export function laneName(queue: string, key: string): string {
  return JSON.stringify([queue, key]);
}

/** Puts back what was there, and then forgets that anything was different. */
async function goBack(store: Store, row: OverrideRow): Promise<void> {
  await putBack(store, row);
  await store.temporaryLimits.forget({ kind: row.kind, name: row.name }, null, row.untilAt);
}

/** Puts back what was there, as `queueStands` and its kin told it. */
async function putBack(
  store: Store,
  { kind, name, back }: OverrideTarget & Pick<OverrideRow, "back">,
): Promise<void> {
  if (kind === "queue") await store.queues.set(name, back ?? {});
  else if (kind === "lane") {
    const [queue, key] = JSON.parse(name) as [string, string];
    const { tuned, ...limits } = (back ?? {}) as Partial<LaneLimits> & { tuned?: boolean };
    await store.lanes.set(queue, key, limits);
    if (tuned === false) await store.lanes.untune(queue, key);
  } else {
    const { tuned, ...rate } = (back ?? {}) as unknown as BudgetRate & { tuned: boolean };
    if (back === null) await store.budgets.remove(name);
    // The code's numbers may be others by now, and they count again.
    else if (tuned || !(await store.budgets.reset(name))) await store.budgets.set(name, rate, false);
  }
}

/**
 * Goes back wherever the time has come.
 *
 * @example
 * await endOverridesOnce({ store });
 */
export async function endOverridesOnce({ store }: { readonly store: Store }): Promise<number> {
  const due = await store.temporaryLimits.list({ due: true });
  for (const row of due) await goBack(store, row);
  return due.length;
}
