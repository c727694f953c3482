/**
 * What an operator does with a whole database: create, migrate, compare, drop, copy, freeze. The CLI's side door.
 *
 * Two files keep it, storage/sqlite/schema-admin.ts and storage/postgres/schema-admin.ts; `openAdmin` in open.ts chooses. Tables are read from the
 * database's own catalogue, so that whatever a migration adds is copied, frozen and dropped with the rest.
 * Rows travel as JSON values: numbers, texts, booleans, null, lists.
 *
 * Not here: the path of a job (sql-store.ts), the order in which a move does these things (../move.ts).
 */
import type { Migration } from "./migrate.ts";

/** A value of a row on its way from one database to another. */
export type Plain = string | number | boolean | null | readonly Plain[] | { readonly [key: string]: Plain };
export type PlainRow = Readonly<Record<string, Plain>>;

export interface AdminTable {
  /** Without prefix or schema. */
  readonly name: string;
  readonly columns: readonly string[];
  /** The primary key's columns, in its order; empty where there is none. */
  readonly key: readonly string[];
}

/** What rang for one lane and job type and no claim has heard yet (limits/limited-claim.ts). */
export interface LaneWakeup {
  readonly jobType: number;
  readonly lane: number;
  readonly at: number;
  readonly back: number;
}

/** Places of a queue's limit that jobs have left and that no claim has counted yet (limits/limited-claim.ts). */
export interface ReturnedCapacity {
  readonly queue: string;
  readonly n: number;
}

export interface Admin {
  readonly dialect: "sqlite" | "postgres";
  readonly schema: string;
  /** Where it is, without secrets. */
  readonly place: string;

  /** Migrations that are applied, and those that this version knows and the database lacks. */
  status(): Promise<{ readonly applied: readonly number[]; readonly pending: readonly Migration[] }>;
  /** What the schema lacks or has beyond what the migrations make; null: the role may not compare. */
  drift(): Promise<readonly string[] | null>;
  /** Removes every table, view and function of ours. */
  drop(): Promise<void>;

  /** The tables of ours, `meta` and `migration` left out. */
  tables(): Promise<readonly AdminTable[]>;
  count(table: string): Promise<number>;
  /** Rows after a key, in the key's order. */
  page(table: AdminTable, after: readonly Plain[] | null, limit: number): Promise<readonly PlainRow[]>;
  /** Writes rows (those that are there already are passed over) and a note in `meta`, in one transaction. */
  write(
    table: AdminTable,
    rows: readonly PlainRow[],
    note: { readonly key: string; readonly value: string },
  ): Promise<void>;
  /** All lane wake-ups, those of one lane and job type added up, in their order: the databases keep them in different shapes. */
  laneWakeups(): Promise<readonly LaneWakeup[]>;
  /** Puts these in place of all others. */
  setLaneWakeups(laneWakeups: readonly LaneWakeup[]): Promise<void>;
  /** All returned capacity, those of one queue added up, in their order: Postgres keeps a row for each settle, SQLite one for each queue. */
  returnedCapacity(): Promise<readonly ReturnedCapacity[]>;
  /** Puts these in place of all others. */
  setReturnedCapacity(returnedCapacity: readonly ReturnedCapacity[]): Promise<void>;
  /** After rows came with their own numbers: the database's counters must go on behind them. */
  raiseCounters(token: number): Promise<void>;
  /** The largest token that was ever given. */
  lastToken(): Promise<number>;

  meta(key: string): Promise<string | null>;
  /** Null removes it. */
  setMeta(key: string, value: string | null): Promise<void>;
  /**
   * Every write to a table of ours is refused from here on, whoever makes it, with this text. Rows that could not be copied are deleted first,
   * in the same transaction: rows about a job that is not there.
   */
  freeze(text: string): Promise<void>;
  thaw(): Promise<void>;
  /** Ends a hold. */
  unhold(name: string): Promise<void>;
  close(): Promise<void>;
}

/** Where the jobs are now, in `meta`, once a move is done (../move.ts). */
export const MOVED_TO = "move.moved_to";
/** When that was, in epoch milliseconds. */
export const MOVED_AT = "move.moved_at";
/** Copied as what they mean (`lane wake-ups`, `returned capacity`), not row by row. */
export const LANE_WAKEUPS = "lane_wakeup";
export const RETURNED_CAPACITY = "returned_capacity";
/** These belong to one database and are not copied. */
export const NOT_COPIED: readonly string[] = ["meta", "migration"];
/** Names of ours in the catalogue that no migration makes: what `freeze` adds. */
export const FREEZER = "moved";
