/** Durable values in the database: one row each, as JSON text. */
import type { Row } from "../storage/catalogue.ts";
import type { Driver } from "../storage/driver.ts";
import { maybeText, number, text } from "../jobs/rows.ts";
import type { StateRow, StateStore } from "./store.ts";

export class StateRows implements StateStore {
  readonly #driver: Driver;

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  async get(key: string): Promise<string | null> {
    const [row] = await this.#driver.read({ name: "getState", params: { key } });
    return row === undefined ? null : maybeText(row, "value");
  }

  async set(key: string, value: string): Promise<void> {
    await this.#driver.write({ name: "setState", params: { now: this.#driver.now(), key, value } });
  }

  async delete(key: string): Promise<boolean> {
    return (await this.#driver.write({ name: "deleteState", params: { key } })).length > 0;
  }

  async row(key: string): Promise<StateRow | null> {
    const [row] = await this.#driver.read({ name: "stateRow", params: { now: this.#driver.now(), key } });
    return row === undefined ? null : stateRow(row);
  }

  async rows(prefix: string, limit: number): Promise<StateRow[]> {
    const params = { now: this.#driver.now(), from: prefix, until: `${prefix}g`, limit };
    const rows = await this.#driver.read({ name: "stateRows", params });
    return rows.map(stateRow).filter(({ key }) => key.startsWith(prefix));
  }

  async swap(key: string, was: string, value: string): Promise<boolean> {
    const params = { now: this.#driver.now(), key, was, value };
    return (await this.#driver.write({ name: "swapState", params })).length > 0;
  }
}

function stateRow(row: Row): StateRow {
  return {
    key: text(row, "key"),
    value: text(row, "value"),
    setAt: number(row, "set_at"),
    now: number(row, "now"),
  };
}
