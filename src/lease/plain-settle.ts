/**
 * The plain settle: jobs that are done, with nothing to free and nothing to drop, by one statement.
 *
 * Invariants: a row moves only for its holder; batches are written in id order, so that two with the same jobs cannot deadlock.
 * Not here: every other end, and jobs that go back (settle.ts).
 */
import type { Transition } from "../jobs/outcome.ts";
import { flag, text } from "../jobs/rows.ts";
import type { Call, Params, Row } from "../storage/catalogue.ts";
import type { Driver } from "../storage/driver.ts";

/** An end, of whatever kind. */
export type End = Transition & { move: "end" };

/** Settles of jobs that are done. */
export abstract class PlainSettles {
  readonly #driver: Driver;

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  /** Releases the jobs that wait for the ends of these rows. */
  protected abstract tellWatchers(ended: readonly End[], watched: readonly Row[]): Promise<void>;

  protected async settleDone(
    session: number,
    ended: readonly End[],
    spent: readonly number[],
  ): Promise<Set<string>> {
    const { call, endedOf } = doneCall(ended, { session, now: this.#driver.now(), spent });
    const rows = await this.#driver.write(call, "settle");
    const watched = rows.filter(isWatched);
    if (watched.length > 0) await this.tellWatchers(ended, named(ended, watched));
    return endedOf(rows);
  }
}

/** Whether all are done, with nothing to free and nothing to drop. Limits are another matter. */
export function areDone(transitions: readonly Transition[]): transitions is readonly End[] {
  return transitions.every((one) => one.move === "end" && one.state === "done" && one.keep && !one.keyed);
}

export function isWatched(row: Row): boolean {
  return flag(row, "watched");
}

export function isCounted(transition: Transition): boolean {
  return transition.counted !== undefined;
}

/** In id order. */
export function inIdOrder<Of extends { readonly id: string }>(transitions: readonly Of[]): Of[] {
  return [...transitions].sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** How a batch of plain successes is written, and which of them the answer says have ended. */
export function doneCall(
  ended: readonly End[],
  params: Params,
): { call: Call<"done" | "doneAlike">; endedOf: (rows: readonly Row[]) => Set<string> } {
  const token = ended[0]?.token ?? null;
  if (!ended.every((transition) => transition.token === token && transition.output === null)) {
    const rows = ended.map(({ rowKey, token, output }) => ({ rowKey, token, output }));
    return {
      call: { name: "done", params: { ...params, rows } },
      endedOf: (moved) => ids(named(ended, moved)),
    };
  }
  const rowKeys = ended.map(({ rowKey }) => rowKey) as string[] | number[];
  // What it names was watched, or was not its to end.
  const endedOf = (rows: readonly Row[]): Set<string> => {
    const missed = new Set(rows.filter((row) => !flag(row, "watched")).map((row) => row["row_key"]));
    const moved = new Set<string>();
    for (const { id, rowKey } of ended) if (missed.size === 0 || !missed.has(rowKey)) moved.add(id);
    return moved;
  };
  return {
    call: { name: "doneAlike", params: { ...params, token, rowKeys, count: rowKeys.length } },
    endedOf,
  };
}

/** Rows that say which jobs they mean by their places, with the ids that these have. */
export function named(ended: readonly End[], rows: readonly Row[]): Row[] {
  const byRowKey = new Map<unknown, string>(ended.map(({ rowKey, id }) => [rowKey, id]));
  return rows.map((row) => ({ ...row, id: byRowKey.get(row["row_key"]) }));
}

export function ids(rows: readonly Row[]): Set<string> {
  return new Set(rows.map((row) => text(row, "id")));
}
