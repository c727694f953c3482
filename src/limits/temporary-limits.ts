/**
 * Temporary limits: a change with an end, after which the previous values are restored.
 *
 *   set(…, { for: "1h" }) ─▶ the previous values and the end are recorded ─▶ the new limits
 *   the end, or `end(…)`  ─▶ the previous values are restored ─▶ the record is deleted
 *
 * Invariants: the previous values are recorded before a change and deleted after their restoration, so a crash in between
 * only repeats the restoration; a second temporary change keeps the values recorded by the first; a permanent change
 * removes its settings from the record, so that the end does not revert them.
 * Not here: the check for ended limits (upkeep/tasks.ts, every 40 s), the rows (temporary-limit-rows.ts).
 */
import { UsageError } from "../errors.ts";
import { type Duration, durationMs, instantMs } from "../values/duration.ts";
import { checkOptions } from "../values/options.ts";
import type { Retry } from "../storage/retry-calls.ts";
import type { Store } from "../storage/store.ts";
import type { BudgetRate, TemporaryLimitRow, TemporaryLimitTarget } from "./store.ts";
import type { LaneLimits } from "../jobs/job.ts";

/** The end of a change. Without either, the change is permanent. */
export interface TemporaryLimitOptions {
  /** A duration from now: "1h". */
  readonly for?: Duration | undefined;
  readonly until?: Date | number | undefined;
}

/** A temporary limit. */
export interface TemporaryLimit {
  readonly kind: "queue" | "lane" | "budget";
  /** The queue or the budget; for a lane, its queue. */
  readonly name: string;
  /** The key of a lane; null for others. */
  readonly key: string | null;
  readonly setAt: Date;
  readonly untilAt: Date;
  /** The values to restore; null if the budget did not exist. */
  readonly back: Readonly<Record<string, unknown>> | null;
}

/** The parts of the client that `hf.temporaryLimits` uses. */
export interface TemporaryLimitsDeps {
  readonly store: Store;
  readonly retry: Retry;
  readonly checkOpen: () => void;
}

/** `hf.temporaryLimits`. */
export class TemporaryLimits {
  readonly #deps: TemporaryLimitsDeps;

  constructor(deps: TemporaryLimitsDeps) {
    this.#deps = deps;
  }

  /**
   * Lists the temporary limits, the next end first.
   *
   * @example
   * for (const { kind, name, untilAt } of await hf.temporaryLimits.list()) console.log(kind, name, untilAt);
   */
  async list(): Promise<TemporaryLimit[]> {
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
   * Ends a temporary limit now. Returns false if there is none.
   *
   * @example
   * await hf.temporaryLimits.end({ kind: "queue", name: "mail" });
   */
  async end(of: {
    readonly kind: TemporaryLimit["kind"];
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
 * Makes a temporary or permanent change. `back` reads the previous values; it is called for a temporary change only.
 *
 * @throws UsageError BAD_OPTION, BAD_DURATION, BAD_INSTANT
 */
export async function changeLimits(
  store: Store,
  target: TemporaryLimitTarget,
  options: TemporaryLimitOptions | undefined,
  keys: readonly string[] | null,
  back: () => Promise<TemporaryLimitRow["back"]>,
  change: () => Promise<void>,
): Promise<void> {
  const until = untilOf(options);
  if (until !== null) await store.temporaryLimits.begin(target, await back(), until);
  await change();
  if (until === null) await store.temporaryLimits.forget(target, keys);
}

/** @throws UsageError */
export function untilOf(
  options: TemporaryLimitOptions | undefined,
): { at: number | null; delayMs: number | null } | null {
  const given = checkOptions(
    options ?? {},
    ["for", "until"],
    "the time of the change",
  ) as TemporaryLimitOptions;
  if (given.for === undefined && given.until === undefined) return null;
  if (given.for !== undefined && given.until !== undefined)
    throw new UsageError("BAD_OPTION", "Give either for (a duration) or until (an instant), not both.");
  if (given.for !== undefined) return { at: null, delayMs: durationMs(given.for, "for") };
  return { at: instantMs(given.until as Date, "until"), delayMs: null };
}

/** A queue's own values of these settings; null means the default. */
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

/** A lane's own values of these limits, and whether an operator set them. */
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

/** A budget's values, and whether an operator set them; null without a budget. */
export async function budgetStands(store: Store, name: string): Promise<Record<string, unknown> | null> {
  const row = (await store.budgets.list()).find((one) => one.name === name);
  return row === undefined
    ? null
    : { limit: row.limit, perMs: row.perMs, burst: row.burst, tuned: row.tuned };
}

export function laneName(queue: string, key: string): string {
  return JSON.stringify([queue, key]);
}

/** Restores the previous values, and then deletes the record. */
async function goBack(store: Store, row: TemporaryLimitRow): Promise<void> {
  await putBack(store, row);
  await store.temporaryLimits.forget({ kind: row.kind, name: row.name }, null, row.untilAt);
}

/** Restores values that `queueStands`, `laneStands` or `budgetStands` read. */
async function putBack(
  store: Store,
  { kind, name, back }: TemporaryLimitTarget & Pick<TemporaryLimitRow, "back">,
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
    // The code may define other values by now, and those apply.
    else if (tuned || !(await store.budgets.reset(name))) await store.budgets.set(name, rate, false);
  }
}

/**
 * Restores the previous values of every temporary limit that has ended.
 *
 * @example
 * await revertExpiredLimitsOnce({ store });
 */
export async function revertExpiredLimitsOnce({ store }: { readonly store: Store }): Promise<number> {
  const due = await store.temporaryLimits.list({ due: true });
  for (const row of due) await goBack(store, row);
  return due.length;
}
