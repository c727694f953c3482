/**
 * One SQLite connection: running statements, and group commit.
 *
 *   write, write, write ──(same turn of the loop)──▶ begin immediate · all of them · commit (one fsync) ──▶ each resolves
 *                                                        └─ one fails ─▶ roll back, then each alone: only the guilty fails
 *
 * Invariants: every write transaction is `begin immediate` (a deferred one that upgrades fails at once, whatever the
 * timeout); busy_timeout is 0, and a busy database is tried again after 1–5 ms from a timer, because a blocking wait
 * stops the event loop (639 ms seen with 4 processes; ≤ 15 ms this way). A promise resolves after the commit.
 * Not here: opening, migrating, users' transactions, hearing of other connections (driver.ts).
 */
import { performance } from "node:perf_hooks";
import { type Clock, during, systemClock } from "../../clock.ts";
import { StateError, StoreError } from "../../errors.ts";
import {
  bind,
  composed,
  MOST_COMPOSED,
  parse,
  type Call,
  type Params,
  type Parsed,
  type Row,
  type RowList,
  type Script,
  type Statements,
  type Tables,
  type TransactionName,
  type Value,
  type WriteName,
} from "../catalogue.ts";
import { count, newCounters, runSync, type StoreCounters } from "../driver.ts";
import { BUSY_DEADLINE_MS } from "./connection.ts";
import { isBusy, toStoreError } from "./error-codes.ts";
import { FileClock, type Host } from "./file-clock.ts";
import type { FileWatch } from "./file.ts";
import { type Handle, inTransaction, rollBack, type Statement } from "./handle.ts";

/** How often reads compare the file with the one that was opened. Commits always do. */
const FILE_CHECK_EVERY_MS = 1_000;

/** Writes of new jobs alone, in which no lease is judged. */
const PLAIN: ReadonlySet<string> = new Set<Call["name"]>(["insertAlike", "insertNew"]);

interface Write {
  readonly name: string;
  readonly script: () => Script<unknown>;
  readonly since: number;
  /** The origin of the time by which its instants were made. */
  readonly origin: number;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** The connection, and what it needs to know of its client. */
export interface GroupCommitDeps {
  readonly handle: Handle;
  readonly catalogue: Statements;
  readonly tables: Tables;
  /** For messages. */
  readonly path: string;
  readonly clock: Clock;
  readonly random: () => number;
  /** The machine whose clocks the file's clock reads; undefined: this one. */
  readonly host: Host | undefined;
}

/** Runs statements and scripts over one connection. */
export abstract class GroupCommit {
  readonly counters: StoreCounters = newCounters();
  /** The file's, unless the client's is a fake one. */
  readonly clock: Clock;
  protected readonly fileClock: FileClock | null;
  protected readonly path: string;
  protected session: SqliteSession;
  protected watch: FileWatch | null = null;
  readonly #clientClock: Clock;
  readonly #random: () => number;
  #writes: Write[] = [];
  #flushing = false;
  #fileCheckedAt = -Infinity;
  #closed = false;

  constructor({ handle, catalogue, tables, path, clock, random, host }: GroupCommitDeps) {
    this.session = new SqliteSession(handle, catalogue);
    this.path = path;
    this.#clientClock = clock;
    this.#random = random;
    // A clock that was set is stepped in a turn of its own: whoever asked for the time has work to do.
    const stepSoon = () => void this.#enqueueWrite("setClock", function* (): Script<void> {}).catch(() => {});
    this.fileClock = clock.system ? new FileClock(clock, tables, stepSoon, host) : null;
    this.clock = this.fileClock ?? clock;
  }

  /** The wall clock was set: the file's time follows it, in a transaction of its own. */
  protected abstract stepClock(clock: FileClock): void;

  /** The file's time was moved, by this client or another one. */
  protected abstract clockMoved(byMs: number): void;

  now(): number {
    this.fileClock?.look();
    return Math.floor(this.clock.now());
  }

  async read(call: Call): Promise<Row[]> {
    this.#checkOpen();
    return this.patiently(() => {
      count(this.counters, call.name);
      return this.session.run(call);
    });
  }

  write(call: Call<WriteName>): Promise<Row[]> {
    return this.#enqueueWrite(call.name, function* (): Script<Row[]> {
      return yield call;
    });
  }

  transaction<T>(name: TransactionName, script: () => Script<T>): Promise<T> {
    return this.#enqueueWrite(name, script);
  }

  #enqueueWrite<T>(name: string, script: () => Script<T>): Promise<T> {
    const written = new Promise<T>((resolve, reject) => {
      if (this.#closed) return reject(closed());
      this.#writes.push({
        name,
        script,
        since: performance.now(),
        origin: this.origin,
        resolve,
        reject,
      });
      if (this.#flushing) return;
      this.#flushing = true;
      setImmediate(() => this.#flush());
    });
    return during(this.#clientClock, written);
  }

  /** One transaction for everything that was asked for since the last one. */
  #flush(): void {
    const batch = this.#writes;
    this.#writes = [];
    this.#flushing = false;
    if (batch.length === 0) return;
    const outcome = this.#commit(batch);
    if (outcome === "done") return;
    if (outcome === "busy") return this.#retryLater(batch);
    // One of them is guilty. Alone, each of the others succeeds.
    if (batch.length === 1) return batch[0]?.reject(outcome.error);
    for (const write of batch) {
      const alone = this.#commit([write]);
      if (alone === "busy") this.#retryLater([write]);
      else if (alone !== "done") write.reject(alone.error);
    }
  }

  #commit(batch: readonly Write[]): "done" | "busy" | { error: unknown } {
    const { handle } = this.session;
    const results: unknown[] = [];
    try {
      if (inTransaction(handle)) return "busy"; // the user's own handle, in the user's own transaction
      if (this.fileClock?.wasSet === true) this.stepClock(this.fileClock);
      handle.exec("begin immediate");
      if (this.fileClock?.isFresh !== true || !batch.every(({ name }) => PLAIN.has(name)))
        this.follow(handle);
      this.fileClock?.note(handle);
      for (const write of batch) results.push(this.run(this.session, write.script, write.origin));
      handle.exec("commit");
      this.counters.commits += 1;
      this.watch?.check();
    } catch (error) {
      if (inTransaction(handle)) rollBack(handle);
      return isBusy(error) ? "busy" : { error: this.toStoreError(error) };
    }
    batch.forEach((write, index) => write.resolve(results[index]));
    return "done";
  }

  /** Runs a script whose instants were made by another origin as if they had been made by this one. */
  protected run<T>(session: SqliteSession, script: () => Script<T>, origin: number): T {
    const by = Math.round(this.origin - origin);
    return runSync(script(), (call) => {
      count(this.counters, call.name);
      const { now } = call.params;
      const late = by !== 0 && typeof now === "number";
      return session.run(late ? { ...call, params: { ...call.params, now: now + by } } : call);
    });
  }

  protected get origin(): number {
    return this.fileClock?.origin ?? 0;
  }

  /** Takes over the file's time: in a transaction, so that it stays what it is. */
  protected follow(handle: Handle): void {
    const moved = this.fileClock?.follow(handle) ?? 0;
    if (moved !== 0) this.clockMoved(moved);
  }

  #retryLater(batch: readonly Write[]): void {
    this.counters.retries += 1;
    const now = performance.now();
    const waiting = batch.filter((write) => {
      if (now - write.since < BUSY_DEADLINE_MS) return true;
      write.reject(
        new StoreError(
          "DATABASE_BUSY",
          `${this.path} stayed locked for ${BUSY_DEADLINE_MS} ms. Find a long write transaction.`,
        ),
      );
      return false;
    });
    this.#writes.unshift(...waiting);
    if (this.#writes.length === 0 || this.#flushing) return;
    this.#flushing = true;
    systemClock.after(1 + this.#random() * 4, () => this.#flush());
  }

  /** Reads hardly ever meet a lock in WAL mode; when they do (recovery, a schema change), they wait their turn. */
  protected async patiently<T>(read: () => T): Promise<T> {
    const since = performance.now();
    for (;;) {
      try {
        return read();
      } catch (error) {
        if (!isBusy(error) || performance.now() - since > BUSY_DEADLINE_MS) throw this.toStoreError(error);
        await during(
          this.#clientClock,
          new Promise<void>((resolve) => void systemClock.after(1 + this.#random() * 4, () => resolve())),
        );
      }
    }
  }

  protected toStoreError(error: unknown): unknown {
    return toStoreError(this.watch?.explain(error) ?? error, this.path);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    if (this.#writes.length > 0) this.#flush();
    this.#closed = true;
    for (const write of this.#writes.splice(0)) write.reject(closed());
  }

  #checkOpen(): void {
    if (this.#closed) throw closed();
    this.#checkFile();
  }

  #checkFile(): void {
    if (this.watch === null) return;
    const now = performance.now();
    if (now - this.#fileCheckedAt < FILE_CHECK_EVERY_MS) return;
    this.watch.check();
    this.#fileCheckedAt = now;
  }
}

function closed(): StateError {
  return new StateError("CLOSED", "This Holdfast client is closed.");
}

interface Prepared {
  readonly parsed: Parsed;
  readonly statement: Statement;
  /** The columns, where rows come as arrays; null: they come as objects. */
  readonly columns: readonly string[] | null;
  /** The list that the statement runs over, row by row; null for a statement that runs once. */
  readonly list: string | null;
  /** The same for several rows at once, where that is possible: half of what a row costs is the call. */
  readonly several: Statement | null;
}

const ROWS_AT_ONCE = 10;

/** Runs catalogue calls on one handle, synchronously. */
export class SqliteSession {
  readonly handle: Handle;
  readonly #statements: Statements;
  readonly #prepared = new Map<string, readonly Prepared[]>();

  constructor(handle: Handle, statements: Statements) {
    this.handle = handle;
    this.#statements = statements;
  }

  run(call: Call): Row[] {
    const prepared = this.#prepared.get(call.name) ?? this.#prepare(call);
    const first = prepared[0];
    if (prepared.length === 1 && first !== undefined) return runOne(first, call.params);
    const rows: Row[] = [];
    for (const one of prepared) {
      for (const row of runOne(one, call.params)) rows.push(row);
    }
    return rows;
  }

  #prepare(call: Call): readonly Prepared[] {
    const { key, text: compose } = composed(this.#statements, call);
    const known = this.#prepared.get(key);
    if (known !== undefined) return known;
    const entry = compose();
    if (key !== call.name) this.#dropOldest();
    const prepared = (typeof entry === "string" ? [entry] : entry).map((text) => {
      const parsed = parse(text);
      const list = parsed.slots.find((slot) => slot.column !== null)?.param ?? null;
      const several = severalRows(parsed);
      const statement = this.handle.prepare(parsed.pieces.join("?"));
      return {
        parsed,
        list,
        statement,
        columns: asArrays(statement),
        several: several === null ? null : this.handle.prepare(several),
      };
    });
    this.#prepared.set(key, prepared);
    return prepared;
  }

  /** Makes room for a composed statement. */
  #dropOldest(): void {
    const kept = [...this.#prepared.keys()].filter((key) => key.includes(" "));
    const [oldest] = kept;
    if (oldest !== undefined && kept.length >= MOST_COMPOSED) this.#prepared.delete(oldest);
  }
}

/** An insert of one row of a list, for ten of them; null: the statement is no such insert. */
export function severalRows({ pieces, slots }: Parsed): string | null {
  const sql = pieces.join("?");
  if (!slots.some(({ column }) => column !== null) || !sql.trimStart().startsWith("insert")) return null;
  const row = /^[^]* values (\([^]*\))\s*$/.exec(sql)?.[1];
  return row === undefined ? null : sql + `, ${row}`.repeat(ROWS_AT_ONCE - 1);
}

function runOne(one: Prepared, params: Params): Row[] {
  if (one.list === null) return execute(one, bind(one.parsed, params, encode));
  const list = params[one.list] as RowList;
  if (list.length === 0) return [];
  const slots = one.parsed.slots;
  // Values that are the same for every row are bound once; the list's columns are filled in row by row.
  const values: unknown[] = bind(one.parsed, params, (value, slot) =>
    slot.column === null ? encode(value) : null,
  );
  const columns = slots.flatMap((slot, index) =>
    slot.column === null ? [] : [{ index, name: slot.column }],
  );
  const fill = (item: RowList[number]): void => {
    for (const { index, name } of columns) {
      const value = item[name];
      if (value === undefined) throw new TypeError(`a row lacks the column ${name}`);
      values[index] = value === true ? 1 : value === false ? 0 : value;
    }
  };
  const rows: Row[] = [];
  let next = 0;
  for (; one.several !== null && next + ROWS_AT_ONCE <= list.length; next += ROWS_AT_ONCE) {
    const all: unknown[] = [];
    for (let i = next; i < next + ROWS_AT_ONCE; i += 1) {
      fill(list[i] as RowList[number]);
      for (const value of values) all.push(value);
    }
    one.several.run(...all);
  }
  for (; next < list.length; next += 1) {
    fill(list[next] as RowList[number]);
    for (const row of execute(one, values)) rows.push(row);
  }
  return rows;
}

/** An object of node:sqlite's is a dictionary, slow to make and to read: arrays cost half, also with what `shaped` adds. */
function asArrays(statement: Statement): readonly string[] | null {
  if (statement.columns === undefined || statement.setReturnArrays === undefined) return null;
  const columns = statement.columns().map(({ name }) => name);
  if (columns.length > 0) statement.setReturnArrays(true);
  return columns;
}

function execute({ statement, columns }: Prepared, values: unknown[]): Row[] {
  if (statement.reader === false || columns?.length === 0) {
    statement.run(...values);
    return [];
  }
  const rows = statement.all(...values);
  return columns === null ? (rows as Row[]) : (rows as unknown[][]).map((row) => shaped(row, columns));
}

function shaped(values: readonly unknown[], columns: readonly string[]): Row {
  const row: Row = {};
  for (let i = 0; i < columns.length; i += 1) row[columns[i] as string] = values[i];
  return row;
}

function encode(value: Value | RowList): unknown {
  if (Array.isArray(value)) return JSON.stringify(value);
  if (typeof value === "boolean") return value ? 1 : 0;
  return value;
}
