/** Holds in the database: one row for each named stop. */
import type { Row } from "../storage/catalogue.ts";
import type { Driver } from "../storage/driver.ts";
import type { Wake } from "../storage/wake.ts";
import { json, maybeText, number, text } from "../jobs/rows.ts";
import type { Hold, HoldStore } from "./store.ts";

export class Holds implements HoldStore {
  readonly #driver: Driver;
  readonly #wake: (wake: Wake) => void;

  constructor(driver: Driver, wake: (wake: Wake) => void) {
    this.#driver = driver;
    this.#wake = wake;
  }

  async list(): Promise<Hold[]> {
    return (await this.#driver.read({ name: "holds", params: {} })).map(hold);
  }

  async set({
    name,
    queues,
    reason,
  }: {
    name: string;
    queues: readonly string[] | null;
    reason: string | null;
  }): Promise<void> {
    await this.#driver.write({ name: "setHold", params: { now: this.#driver.now(), name, queues, reason } });
    this.#wake({ kind: "settings" });
  }

  async clear(name: string): Promise<boolean> {
    const cleared = (await this.#driver.write({ name: "clearHold", params: { name } })).length > 0;
    this.#wake({ kind: "any" });
    return cleared;
  }
}

function hold(row: Row): Hold {
  return {
    name: text(row, "name"),
    queues: json(maybeText(row, "queues")) as string[] | null,
    reason: maybeText(row, "reason"),
    setAt: new Date(number(row, "set_at")),
  };
}
