/**
 * One shape for the SQLite handles that people have: node:sqlite's DatabaseSync and better-sqlite3's Database.
 *
 * Both prepare, run and return rows synchronously and differ in little: better-sqlite3 refuses `all()` on a statement
 * without rows, and each says in its own way whether a transaction is open.
 */
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
