/**
 * One shape for the SQLite handles that people have: node:sqlite's DatabaseSync and better-sqlite3's Database.
 *
 * Both prepare, run and return rows synchronously and differ in little: better-sqlite3 refuses `all()` on a statement
 * without rows, and each says in its own way whether a transaction is open. Statements are kept for each handle.
 */
import {
  bind,
  composed,
  MOST_COMPOSED,
  parse,
  type Parsed,
  type Call,
  type Params,
  type Row,
  type RowList,
  type Statements,
  type Value,
} from "../catalogue.ts";

/** What both drivers' statements can do. */
export interface Statement {
  get(...values: unknown[]): unknown;
  all(...values: unknown[]): unknown[];
  run(...values: unknown[]): unknown;
  /** better-sqlite3 only: false for statements that return no rows. */
  readonly reader?: boolean;
  /** node:sqlite only, since 22.16 and 24.0. */
  columns?(): { readonly name: string }[];
  setReturnArrays?(enabled: boolean): void;
}

/** What both drivers' handles can do. */
export interface Handle {
  prepare(sql: string): Statement;
  exec(sql: string): unknown;
  close(): unknown;
  /** node:sqlite. */
  readonly isTransaction?: boolean;
  /** better-sqlite3. */
  readonly inTransaction?: boolean;
}

/** Whether this is a SQLite handle that we can use. */
export function isHandle(value: unknown): value is Handle {
  if (typeof value !== "object" || value === null) return false;
  const handle = value as Partial<Record<keyof Handle, unknown>>;
  return (
    typeof handle.prepare === "function" &&
    typeof handle.exec === "function" &&
    (typeof handle.isTransaction === "boolean" || typeof handle.inTransaction === "boolean")
  );
}

/** Whether the handle comes from better-sqlite3, which brings a SQLite of its own into the process. */
export function isForeign(handle: Handle): boolean {
  return handle.isTransaction === undefined;
}

/** Another connection through the same library as this one. */
export function openLike(handle: Handle, path: string): Handle {
  const Database = handle.constructor as new (path: string, options: { timeout: number }) => Handle;
  return new Database(path, { timeout: 0 });
}

/** The database's file; null: it is in memory. */
export function fileOf(handle: Handle): string | null {
  const rows = handle.prepare("pragma database_list").all() as { name: string; file: string | null }[];
  return rows.find(({ name }) => name === "main")?.file || null;
}

export function inTransaction(handle: Handle): boolean {
  return handle.isTransaction ?? handle.inTransaction ?? false;
}

export function rollBack(handle: Handle): void {
  try {
    handle.exec("rollback");
  } catch {
    // SQLite has already rolled back by itself (a full disk does that).
  }
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
    const prepared = this.#prepare(call);
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
    if (key !== call.name) this.#forgetOne();
    const prepared = (typeof entry === "string" ? [entry] : entry).map((text) => {
      const parsed = parse(text);
      const list = parsed.slots.find((slot) => slot.column !== null)?.param ?? null;
      const sql = parsed.pieces.join("?");
      const row = list === null ? undefined : /^[^]* values (\([^]*\))\s*$/.exec(sql)?.[1];
      const several =
        row === undefined || !sql.trimStart().startsWith("insert")
          ? null
          : this.handle.prepare(sql + `, ${row}`.repeat(ROWS_AT_ONCE - 1));
      const statement = this.handle.prepare(sql);
      return { parsed, list, statement, columns: asArrays(statement), several };
    });
    this.#prepared.set(key, prepared);
    return prepared;
  }

  /** Makes room for a composed statement: drops the oldest. */
  #forgetOne(): void {
    const kept = [...this.#prepared.keys()].filter((key) => key.includes(" "));
    const [oldest] = kept;
    if (oldest !== undefined && kept.length >= MOST_COMPOSED) this.#prepared.delete(oldest);
  }
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
