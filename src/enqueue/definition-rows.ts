/** The names that workers have registered: what an enqueue by name must know of each. */
import type { LaneLimits } from "../jobs/job.ts";
import { flag, maybeText, text } from "../jobs/rows.ts";
import { limitColumns } from "../limits/lane-rows.ts";
import type { Driver } from "../storage/driver.ts";
import type { DefinitionInfo, DefinitionStore } from "./store.ts";

export class Definitions implements DefinitionStore {
  readonly #driver: Driver;

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  async list(): Promise<Map<string, DefinitionInfo>> {
    const rows = await this.#driver.read({ name: "definitions", params: {} });
    return new Map(
      rows.map((row) => [
        text(row, "name"),
        {
          unique: flag(row, "has_unique"),
          lane: flag(row, "has_lane"),
          machine: flag(row, "is_machine"),
          lanes: row["lanes"] === null ? null : (JSON.parse(text(row, "lanes")) as LaneLimits),
          budget: budgetOf(maybeText(row, "budget")),
        },
      ]),
    );
  }

  async register(definitions: ReadonlyMap<string, DefinitionInfo>): Promise<void> {
    const rows = [...definitions].map(([name, { unique, lane, machine, lanes, budget }]) => ({
      name,
      unique,
      lane,
      machine: machine === true,
      lanes: (lanes ?? null) === null ? null : JSON.stringify(lanes),
      budget: (budget ?? null) === null ? null : JSON.stringify(budget),
    }));
    if (rows.length > 0)
      await this.#driver.write({ name: "registerDefinitions", params: { now: this.#driver.now(), rows } });
    // A definition's limits are those of its lanes, unless an operator has set others.
    const laned = [...definitions].flatMap(([name, { lane, lanes }]) =>
      lane ? [{ name, ...limitColumns(lanes ?? null) }] : [],
    );
    if (laned.length > 0) await this.#driver.write({ name: "tuneLanes", params: { rows: laned } });
  }
}

function budgetOf(value: string | null): NonNullable<DefinitionInfo["budget"]> | null {
  return value === null ? null : (JSON.parse(value) as NonNullable<DefinitionInfo["budget"]>);
}
