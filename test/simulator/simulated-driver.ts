/**
 * The seam between a virtual process and its database: the real SQLite driver, reached through a network that fails.
 *
 *   request ──(delay)──▶ executed by the real driver ──(delay)──▶ answer
 *      │ refused            │ killed, or the client's deadline has passed      │ lost, cut
 *
 * Faults are drawn for each call from the seed. A client sees the errors that the Postgres driver gives for the same event: they are the
 * harder ones, because a client of SQLite never loses an answer.
 *
 * Invariants: a request of a killed process that has not arrived is never executed, and none of its answers arrive; a request that has been
 * executed stays executed.
 */
import { StoreError } from "../../src/errors.ts";
import type { Call, Row, Script, TransactionName, WriteName } from "../../src/storage/catalogue.ts";
import type { Driver, Lane } from "../../src/storage/driver.ts";
import type { UserTx } from "../../src/storage/user-tx.ts";
import type { Wake } from "../../src/storage/wake.ts";
import type { Random } from "./random.ts";
import type { Process, World } from "./world.ts";

/** Every kind of fault that the simulator can inject. */
export const faultKinds = [
  "answerLost",
  "refused",
  "delayed",
  "cut",
  "deadlinePassed",
  "killedBefore",
  "killedAfter",
  "killed",
  "frozen",
  "clockStep",
  "wakeLost",
  "wakeLate",
  "wakeTwice",
  "diskFull",
  "restarted",
] as const;

export type FaultKind = (typeof faultKinds)[number];

/** How often each kind of fault occurs: a probability for each call or wake-up. */
export type FaultRates = Readonly<Partial<Record<FaultKind, number>>>;

/** What all processes of one simulation share: the wire, the faults and their count. */
export class Network {
  readonly world: World;
  readonly counts = new Map<FaultKind, number>();
  /** Faults happen until this instant. */
  faultsUntil = 0;
  rates: FaultRates = {};
  /** The database refuses all connections until this instant. */
  downUntil = -Infinity;
  readonly #random: Random;
  readonly #listeners = new Set<{ readonly process: Process; readonly hear: (wake: Wake) => void }>();
  readonly #connections = new Set<SimulatedDriver>();

  constructor(world: World, random: Random) {
    this.world = world;
    this.#random = random;
  }

  /** Draws a fault of one of these kinds. */
  draw(kinds: readonly FaultKind[]): FaultKind | null {
    const drawn = this.#random.next();
    if (this.world.now >= this.faultsUntil) return null;
    let sum = 0;
    for (const kind of kinds) {
      sum += this.rates[kind] ?? 0;
      if (drawn < sum) {
        this.counted(kind);
        return kind;
      }
    }
    return null;
  }

  counted(kind: FaultKind): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
  }

  /** One way through the network. */
  latency(): number {
    return this.#random.chance(0.02) ? this.#random.between(5, 60) : this.#random.between(0.1, 1.5);
  }

  between(low: number, high: number): number {
    return this.#random.between(low, high);
  }

  chance(probability: number): boolean {
    return this.#random.chance(probability);
  }

  join(driver: SimulatedDriver): void {
    this.#connections.add(driver);
  }

  leave(driver: SimulatedDriver): void {
    this.#connections.delete(driver);
  }

  /** The database's server ends all connections and takes new ones after `ms`. */
  restart(ms: number): void {
    this.counted("restarted");
    this.downUntil = this.world.now + ms;
    for (const connection of this.#connections) connection.cut();
  }

  listen(process: Process, hear: (wake: Wake) => void): () => void {
    const listener = { process, hear };
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Tells the other processes. Never relied on: it may be lost, late or doubled. */
  tell(from: Process, wake: Wake): void {
    for (const { process, hear } of this.#listeners) {
      if (process === from || !process.alive) continue;
      const fault = this.draw(["wakeLost", "wakeLate", "wakeTwice"]);
      if (fault === "wakeLost") continue;
      const delay = fault === "wakeLate" ? this.between(50, 20_000) : this.latency();
      this.world.after(process, delay, () => hear(wake));
      if (fault === "wakeTwice") this.world.after(process, this.between(1, 5_000), () => hear(wake));
    }
  }
}

const callFaults: readonly FaultKind[] = ["answerLost", "refused", "delayed", "cut", "deadlinePassed"];
const writeFaults: readonly FaultKind[] = [...callFaults, "diskFull", "killedBefore", "killedAfter"];
/** As the Postgres driver's own. */
const DEADLINE_MS = 5_000;

export class SimulatedDriver implements Driver {
  readonly dialect = "sqlite";
  readonly renewalTarget = null;
  readonly poolUse = null;
  readonly ownsPartitions = false;
  readonly proof = (): null => null;
  readonly attached = (): null => null;
  readonly listening = true;
  onStaleType: () => void = () => {};
  readonly #inner: Driver;
  readonly #process: Process;
  readonly #network: Network;
  /** Requests that have no answer yet. */
  readonly #open = new Set<(error: unknown) => void>();

  constructor(inner: Driver, process: Process, network: Network) {
    this.#inner = inner;
    this.#process = process;
    this.#network = network;
    network.join(this);
  }

  get counters(): Driver["counters"] {
    return this.#inner.counters;
  }

  get clock(): Driver["clock"] {
    return this.#inner.clock;
  }

  now(): number | null {
    return this.#inner.now();
  }

  read(call: Call): Promise<Row[]> {
    return this.#call(callFaults, () => this.#inner.read(call));
  }

  write(call: Call<WriteName>): Promise<Row[]> {
    return this.#call(writeFaults, () => this.#inner.write(call));
  }

  transaction<T>(name: TransactionName, script: () => Script<T>, lane?: Lane): Promise<T> {
    return this.#call(writeFaults, () => this.#inner.transaction(name, script, lane));
  }

  /** Breaks every connection of this process: what is under way may have been executed. */
  cut(): void {
    const lost = connectionLost();
    for (const reject of this.#open) reject(lost);
    this.#open.clear();
  }

  #call<T>(kinds: readonly FaultKind[], execute: () => Promise<T>): Promise<T> {
    const process = this.#process;
    const network = this.#network;
    const { world } = network;
    if (!process.alive) return new Promise<T>(() => {});
    const fault = network.draw(kinds);
    if (fault === "killedBefore") {
      process.kill();
      return new Promise<T>(() => {});
    }
    return new Promise<T>((resolve, reject) => {
      const settled = (fn: () => void): void => {
        if (!this.#open.delete(fail)) return;
        fn();
      };
      const fail = (error: unknown): void => reject(error);
      this.#open.add(fail);
      const answer = (fn: () => void): void =>
        void world.after(process, network.latency(), () => settled(fn));
      const arrive = (): void => {
        if (network.downUntil > world.now) return answer(() => fail(unreachable()));
        if (fault === "refused") return answer(() => fail(failing()));
        if (fault === "diskFull") return answer(() => fail(diskFull()));
        execute().then(
          (value) => {
            if (fault === "killedAfter") process.kill();
            else if (fault === "answerLost" || fault === "cut") answer(() => fail(connectionLost()));
            else answer(() => resolve(value));
          },
          (error: unknown) => answer(() => fail(error)),
        );
      };
      if (fault === "cut") this.#cutSoon();
      if (fault === "deadlinePassed") {
        // The client gives up; the server goes on for a while, where it was not cancelled in time.
        world.after(process, DEADLINE_MS, () => settled(() => fail(deadlinePassed())));
        if (network.chance(0.5)) this.#arriveAt(network.between(1, 3 * DEADLINE_MS), arrive);
        return;
      }
      this.#arriveAt(network.latency() + (fault === "delayed" ? network.between(20, 2_000) : 0), arrive);
    });
  }

  /** A request that was sent arrives even if its process dies meanwhile, in half of all cases. */
  #arriveAt(ms: number, arrive: () => void): void {
    const process = this.#process;
    const dies = this.#network.chance(0.5);
    this.#network.world.after(null, ms, () => {
      if (process.alive || !dies) arrive();
    });
  }

  #cutSoon(): void {
    this.#network.world.after(this.#process, this.#network.between(0, 3), () => this.cut());
  }

  inUserTx<T>(tx: UserTx, script: () => Script<T>): Promise<T> {
    return this.#inner.inUserTx(tx, script);
  }

  isDuplicate(error: unknown): boolean {
    return this.#inner.isDuplicate(error);
  }

  userTx(handle: unknown): UserTx | Promise<UserTx> {
    return this.#inner.userTx(handle);
  }

  async tidy(): Promise<void> {}

  inspect(): ReturnType<Driver["inspect"]> {
    return this.#inner.inspect();
  }

  async dropOld(): Promise<number> {
    return 0;
  }

  listen(onWake: (wake: Wake) => void): () => void {
    const inner = this.#inner.listen(onWake);
    const outer = this.#network.listen(this.#process, onWake);
    return () => {
      inner();
      outer();
    };
  }

  notify(wake: Wake): void {
    if (this.#process.alive) this.#network.tell(this.#process, wake);
  }

  async notifyInTx(): Promise<void> {}

  async close(): Promise<void> {
    this.#network.leave(this);
    await this.#inner.close();
  }
}

function connectionLost(): StoreError {
  return new StoreError("CONNECTION_LOST", "The connection to the database was lost.");
}

function unreachable(): StoreError {
  return new StoreError("DATABASE_UNREACHABLE", "The database cannot be reached.");
}

function failing(): StoreError {
  return new StoreError("DATABASE_FAILING", "The database failed to execute the statement.");
}

function diskFull(): StoreError {
  return new StoreError("DISK_FULL", "The database's disk is full.");
}

function deadlinePassed(): StoreError {
  return new StoreError("STATEMENT_TIMEOUT", "The database did not answer within 5 s.");
}
