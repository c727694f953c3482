/**
 * The rows of temporary limits: one for each queue, lane or budget with a temporary change. Not here: their meaning
 * (temporary-limits.ts).
 */
import type { TemporaryLimitStore, TemporaryLimitRow, TemporaryLimitTarget } from "./store.ts";
import type { Row, Script } from "../storage/catalogue.ts";
import type { Driver } from "../storage/driver.ts";
import { maybeText, number, text } from "../jobs/rows.ts";

export class TemporaryLimits implements TemporaryLimitStore {
  readonly #driver: Driver;

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  async list({ due }: { due: boolean }): Promise<TemporaryLimitRow[]> {
    const rows = await this.#driver.read({
      name: "temporaryLimits",
      params: { now: this.#driver.now(), due },
    });
    return rows.map((row) => ({
      kind: text(row, "kind") as TemporaryLimitRow["kind"],
      name: text(row, "name"),
      setAt: number(row, "set_at"),
      untilAt: number(row, "until_at"),
      back: backOf(row),
    }));
  }

  /** The values recorded first are kept; a later change only adds settings that are not recorded yet. */
  begin(
    target: TemporaryLimitTarget,
    back: TemporaryLimitRow["back"],
    until: { at: number | null; delayMs: number | null },
  ): Promise<void> {
    const now = this.#driver.now();
    return this.#driver.transaction("beginTemporaryLimit", function* (): Script<void> {
      const [row] = yield { name: "lockTemporaryLimit", params: { ...target } };
      const merged = row === undefined ? back : merge(back, backOf(row));
      yield {
        name: "putTemporaryLimit",
        params: {
          now,
          ...target,
          at: until.at,
          delay: until.delayMs,
          back: merged === null ? null : JSON.stringify(merged),
        },
      };
    });
  }

  /** Removes these settings from the record (null: all); with `untilAt`, only if the end has not changed since. */
  forget(target: TemporaryLimitTarget, keys: readonly string[] | null, untilAt?: number): Promise<void> {
    const now = this.#driver.now();
    return this.#driver.transaction("trimTemporaryLimit", function* (): Script<void> {
      const [row] = yield { name: "lockTemporaryLimit", params: { ...target } };
      if (row === undefined || (untilAt !== undefined && number(row, "until_at") !== untilAt)) return;
      const left = Object.entries(backOf(row) ?? {}).filter(
        ([key]) => key !== "tuned" && keys !== null && !keys.includes(key),
      );
      if (left.length === 0) yield { name: "deleteTemporaryLimit", params: { ...target } };
      else
        yield {
          name: "putTemporaryLimit",
          params: {
            now,
            ...target,
            at: number(row, "until_at"),
            delay: null,
            back: JSON.stringify(Object.fromEntries(left)),
          },
        };
    });
  }
}

function backOf(row: Row): TemporaryLimitRow["back"] {
  const back = maybeText(row, "back");
  return back === null ? null : (JSON.parse(back) as NonNullable<TemporaryLimitRow["back"]>);
}

function merge(
  later: TemporaryLimitRow["back"],
  first: TemporaryLimitRow["back"],
): TemporaryLimitRow["back"] {
  return first === null ? null : { ...later, ...first };
}
