// What the client's tests share: a client on a fresh store, closed after the test.
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished } from "vitest";
import { type Holdfast, open, type OpenOptions, silentLogger } from "../../src/index.ts";
import type { FakeClock } from "../../src/testing/index.ts";
import type { FreshStore, StoreTarget } from "./stores.ts";

export interface Client {
  readonly hf: Holdfast;
  readonly store: FreshStore;
}

/** A client on an empty store. */
export async function fresh(target: StoreTarget, options: OpenOptions = {}): Promise<Client> {
  const store = await target.migrated();
  return { store, hf: await connect(store, options) };
}

/** One more client on the same store. */
export async function connect(store: FreshStore, options: OpenOptions = {}): Promise<Holdfast> {
  const hf = await open(store.url, { ...store.options, logger: silentLogger, ...options });
  onTestFinished(() => hf.close());
  return hf;
}

/** How many rows a table has. */
export async function rows(store: FreshStore, table: string): Promise<number> {
  const [row] = await store.query(`select count(*) as n from ${store.table(table)}`);
  return Number(row?.["n"]);
}

/**
 * Advances the clock until the promise settles, 100 ms for every 5 real ones: a database on a socket answers in its
 * own time, and only then is the next timer set.
 */
export async function advancing<T>(clock: FakeClock, promise: Promise<T>): Promise<T> {
  let over = false;
  const settled = (): void => void (over = true);
  promise.then(settled, settled);
  while (!over) {
    await clock.advance(100);
    await sleep(5);
  }
  return promise;
}

/** What a promise is rejected with. */
export async function refusal(
  promise: Promise<unknown>,
): Promise<{ code: string; message: string; details: Record<string, unknown>; cause?: unknown }> {
  try {
    await promise;
  } catch (error) {
    return error as never;
  }
  throw new Error("It was not refused.");
}

// vitest types its asymmetric matchers as `any`.
export const aDate: unknown = expect.any(Date);
export const anError: unknown = expect.any(Error);
export const containing = (text: string): unknown => expect.stringContaining(text);
export const matching = (pattern: RegExp): unknown => expect.stringMatching(pattern);
/** An error with this code, for `toThrow`. */
export const coded = (code: string): Error => expect.objectContaining({ code }) as Error;
