// A client for conformance tests: on a fake clock, over a store that a test can look into and make fail.
//
// `faults` sits between the client and the real store: what a test puts there runs in place of the store's verb and
// may call through. Everything that is opened here is closed when the test ends, with the clock moving meanwhile,
// so that a test that leaves a handler hanging does not hang itself.
import { onTestFinished } from "vitest";
import { type Clock, systemClock } from "../../src/clock.ts";
import { Emitter } from "../../src/events.ts";
import { Holdfast } from "../../src/holdfast.ts";
import { silentLogger } from "../../src/logger.ts";
import { checkOpenOptions, type OpenOptions } from "../../src/open-options.ts";
import { openStore } from "../../src/storage/open.ts";
import type { Store } from "../../src/storage/store.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { between, bound, type Member, type Verb } from "./store-parts.ts";
import type { FreshStore, StoreTarget } from "./stores.ts";

/** No jitter: 0.5 is the middle of every spread. */
export const steady = (): number => 0.5;

/** Long enough that no lease passes while a test moves the clock by hours. */
export const patient = { lease: "20d", heartbeat: "9d" } as const;

const machine = { host: "test", pid: process.pid, hostId: "test-host", cpus: 2, env: {}, loopDelay: () => 0 };

export interface TestClient {
  readonly hf: Holdfast;
  readonly store: Store;
  readonly clock: FakeClock;
  readonly fresh: FreshStore;
  /** Verbs of the store that this test replaces; `original` is the real one. */
  readonly faults: Faults;
  /** Rows of one of Holdfast's tables. */
  readonly rows: (table: string, where?: string) => Promise<Record<string, unknown>[]>;
  readonly count: (table: string) => Promise<number>;
  /** Another client on the same database and clock. */
  readonly another: (options?: OpenOptions) => Promise<TestClient>;
}

export type Faults = { [V in Verb]?: Member<V> };

/** Opens a client on a new, empty store. */
export async function client(target: StoreTarget, options: OpenOptions = {}): Promise<TestClient> {
  return clientOn(await target.migrated(), options);
}

export async function clientOn(fresh: FreshStore, options: OpenOptions = {}): Promise<TestClient> {
  const clock = (options.clock ?? new FakeClock()) as FakeClock;
  const given: OpenOptions = { random: steady, logger: silentLogger, ...options, ...fresh.options, clock };
  const settings = checkOpenOptions(given);
  const events = new Emitter(() => {});
  const store = await openStore(fresh.url, {
    ...settings.store,
    clock,
    random: steady,
    onWarning: (message, details) => events.emit("warning", { message, details }),
  });
  const faults: Faults = {};
  const env = { clock, random: given.random ?? steady, ...machine };
  const hf = new Holdfast(faulty(store, faults), settings.client, env, events);
  await hf.prepare();
  onTestFinished(() => closing(hf.close(), clock));
  const rows = (table: string, where = "true"): Promise<Record<string, unknown>[]> =>
    fresh.query(`select *${fresh.idIn(table)} from ${fresh.table(table)} where ${where}`);
  return {
    hf,
    store,
    clock,
    fresh,
    faults,
    rows,
    count: async (table) => (await rows(table)).length,
    another: (more = {}) => clientOn(fresh, { ...options, clock, ...more }),
  };
}

/** The machine's clock and the store's own; for what only real wake-ups and real processes show. */
export const realTime: { readonly clock: Clock } = { clock: systemClock };

/** Waits for `work` while the clock moves, a second at a time. */
export async function advanceUntil<T>(clock: FakeClock, work: Promise<T>): Promise<T> {
  let over = false;
  const ended = work.finally(() => (over = true));
  ended.catch(() => {});
  while (!over) {
    await clock.advance("1s");
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return ended;
}

async function closing(closed: Promise<void>, clock: Clock): Promise<void> {
  if (clock instanceof FakeClock) await advanceUntil(clock, closed);
  else await closed;
}

function faulty(store: Store, faults: Faults): Store {
  return between(store, (verb, value, owner) => bound(faults[verb] ?? value, owner));
}
