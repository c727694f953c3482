/**
 * What the store needs of a database connection. Two files keep it: storage/sqlite/driver.ts and storage/postgres/driver.ts.
 *
 * A driver runs calls of the catalogue, alone or as a script in one transaction, with a deadline on each, and turns
 * the database's errors into ours. It knows nothing of jobs.
 */
import type { Clock } from "../clock.ts";
import type { Call, Row, Script, TransactionName, WriteName } from "./catalogue.ts";
import type { UserTx } from "./user-tx.ts";
import type { Wake } from "./wake.ts";

/**
 * Calls of one name have connections of their own, so that a burst of enqueues cannot delay a settle, nor those who look
 * (dashboard-reads.ts) an enqueue.
 */
export type Lane = "general" | "claim" | "settle" | "view";

/** A notification that another statement takes along. */
export interface AttachedStatement {
  readonly channel: string;
  readonly message: string;
}

export interface Driver {
  readonly dialect: "sqlite" | "postgres";
  readonly counters: StoreCounters;
  readonly renewalTarget: RenewalTarget | null;
  /** The clock that all clients of this database share. */
  readonly clock: Clock;
  /** What to bind as `:now`: null lets the database take its own clock. */
  now(): number | null;
  read(call: Call, lane?: Lane): Promise<Row[]>;
  /** One call in a transaction of its own; committed durably when it resolves. */
  write(call: Call<WriteName>, lane?: Lane): Promise<Row[]>;
  /** All that the script yields, in one transaction. The script is made anew for each try. */
  transaction<T>(name: TransactionName, script: () => Script<T>, lane?: Lane): Promise<T>;
  /** Runs a script inside the user's own transaction. At once, when `tx.sync`. */
  inUserTx<T>(tx: UserTx, script: () => Script<T>): Promise<T>;
  /** Whether an insert failed because its row is already there. */
  isDuplicate(error: unknown): boolean;
  /** Called when the database lacks a job type or a lane that a statement named; the statement wrote nothing. */
  onStaleType: () => void;
  userTx(handle: unknown): UserTx | Promise<UserTx>;
  /** Upkeep that is the dialect's own. `keepMs`: how long ended jobs are kept at most (Infinity: for ever); null: unknown. */
  tidy(keepMs?: number | null): Promise<void>;
  /** Whether there are partitions and this role may make and drop them. */
  readonly ownsPartitions: boolean;
  /** Of this process's pools; null: there are none. */
  readonly poolUse: PoolUse | null;
  /** The database as its own catalogue describes it. */
  inspect(): Promise<Inspection>;
  /** Drops whole what is older; answers how many pieces. 0 where the dialect has no such thing. */
  dropOld(policy: { doneMs: number; deadMs: number; exceptQueues: readonly string[] }): Promise<number>;
  listen(onWake: (wake: Wake) => void): () => void;
  readonly listening: boolean;
  /** What the next look is to send along, so that the wake-ups prove that they arrive; null: nothing now. */
  proof(): AttachedStatement | null;
  /** The wake-up as something that a statement sends when it commits; null: `notify` is the better way just now. */
  attached(wake: Wake): AttachedStatement | null;
  /** Tells other processes. Gathered; never throws. */
  notify(wake: Wake): void;
  /** A statement that tells others when the user's own transaction commits; null: not needed. */
  notifyInTx(tx: UserTx, wakes: readonly Wake[]): Promise<void>;
  close(): Promise<void>;
}

/** Connections of this process's pools. */
export interface PoolUse {
  readonly used: number;
  readonly idle: number;
  /** Callers who wait for one. */
  readonly waiting: number;
}

/** The database as its own catalogue describes it. Null: this database has no such thing, or the role may not see it. */
export interface Inspection {
  readonly dialect: "sqlite" | "postgres";
  /** Of SQLite's library or of the server. */
  readonly version: string;
  /** What is known to be wrong with this version, where it was opened all the same. */
  readonly versionFault: string | null;
  readonly sizeBytes: number;
  /** SQLite: pages of the file that hold nothing any more. */
  readonly freeBytes: number | null;
  /** SQLite: the WAL file. Postgres: the directory, where the role may see it. */
  readonly walBytes: number | null;
  /** Postgres: how large its settings let the WAL become. */
  readonly maxWalBytes: number | null;
  /** Postgres: the replication slot that keeps the most WAL, if any. */
  readonly slot: { readonly name: string; readonly active: boolean; readonly bytes: number } | null;
  /** Dead rows of the hot table, and live ones. */
  readonly deadRows: number | null;
  readonly liveRows: number | null;
  /** Postgres: the tables with the most dead rows, those of a day together. */
  readonly tables: readonly { readonly name: string; readonly dead: number; readonly live: number }[];
  readonly oldestTransactionMs: number | null;
  /** Postgres: whose that is, such as "psql, pid 4711, idle in transaction". */
  readonly oldestTransaction: { readonly pid: number; readonly text: string } | null;
  /** Postgres: how many transactions have begun since the oldest snapshot that somebody still reads; null: nobody does. */
  readonly xminAge: number | null;
  readonly connections: number | null;
  readonly maxConnections: number | null;
  /** False: a power cut may lose acknowledged commits. */
  readonly durable: boolean;
  /** Why `durable` is false, as the setting is written. */
  readonly durability: string;
  /** SQLite: a network file system's name, where it is on one. */
  readonly networkFileSystem: string | null;
  readonly diskFreeBytes: number | null;
  readonly invalidIndexes: readonly string[];
  /** Postgres: for how long from now there are partitions, how many, and jobs of today or later in the default one (10,001: more). */
  readonly partitions: { readonly aheadMs: number; readonly count: number; readonly rest: number } | null;
}

export interface StoreCounters {
  statements: number;
  commits: number;
  retries: number;
  readonly byName: Map<string, number>;
}

/** Enough for a thread to open the database by itself. */
export type RenewalTarget =
  | {
      readonly dialect: "sqlite";
      readonly path: string;
      readonly schema: string;
      /** Which files these are: no others are opened in their place. */
      readonly files: readonly { readonly path: string; readonly dev: number; readonly ino: number }[];
    }
  | { readonly dialect: "postgres"; readonly url: string; readonly schema: string };

/** Runs a script over an executor that answers at once. */
export function runSync<T>(script: Script<T>, run: (call: Call) => Row[]): T {
  let step = script.next();
  while (!step.done) step = script.next(run(step.value));
  return step.value;
}

/** Runs a script over an executor that answers later. */
export async function runAsync<T>(script: Script<T>, run: (call: Call) => Promise<Row[]>): Promise<T> {
  let step = script.next();
  while (!step.done) step = script.next(await run(step.value));
  return step.value;
}

export function newCounters(): StoreCounters {
  return { statements: 0, commits: 0, retries: 0, byName: new Map() };
}

export function count(counters: StoreCounters, name: string): void {
  counters.statements += 1;
  counters.byName.set(name, (counters.byName.get(name) ?? 0) + 1);
}
