/**
 * From a URL or a handle to a store: the only file of the library that knows there are dialects.
 *
 * Each dialect is imported when it is first needed, so that a program on SQLite never loads `pg` and one on Postgres
 * never loads node:sqlite.
 */
import { systemClock, type Clock } from "../clock.ts";
import { StoreError, UsageError } from "../errors.ts";
import { checkSchema, DEFAULT_SCHEMA } from "../values/name.ts";
import type { Store } from "./store.ts";
import type { Admin } from "./admin.ts";
import type { Driver, RenewalTarget } from "./driver.ts";
import type { RenewalConnection } from "../lease/renew.ts";
import { SqlStore } from "./sql-store.ts";

export interface StoreOptions {
  /** Postgres: the schema's name. SQLite: the prefix of the tables' names. Default "holdfast". */
  readonly schema?: string;
  /** True (default): brings the schema up to date. False or "check": refuses a schema that is behind. */
  readonly migrate?: boolean | "check";
  /** SQLite: "full" (default) survives a power cut; "normal" may lose the last commits to one, and is faster. */
  readonly durability?: "full" | "normal";
  /** Opens SQLite versions and file systems that are known to lose data. */
  readonly unsafeSqlite?: boolean;
  /** Postgres: connections for everything but claims and settles. Default 5. */
  readonly poolSize?: number;
  /** Postgres: send NOTIFY inside a user's transaction. Default true. */
  readonly notify?: boolean;
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly onConnectionLost?: (error: unknown) => void;
  readonly onConnectionBack?: (afterMs: number) => void;
  readonly onWarning?: (message: string, details: Record<string, unknown>) => void;
}

/** A handle that the user owns: a node:sqlite or better-sqlite3 database, or a node-postgres pool. */
export type StoreHandle = object;

export async function openStore(target: string | StoreHandle, options: StoreOptions = {}): Promise<Store> {
  return new SqlStore(await openDriver(target, options), options.onWarning);
}

export async function openDriver(target: string | StoreHandle, options: StoreOptions = {}): Promise<Driver> {
  const clock = options.clock ?? systemClock;
  const common = {
    schema: checkSchema(options.schema ?? DEFAULT_SCHEMA),
    migrate: options.migrate ?? true,
    clock,
    onWarning: options.onWarning ?? (() => {}),
  };
  const sqlite = async (handle: string | StoreHandle): Promise<Driver> => {
    const { SqliteDriver } = await import("./sqlite/driver.ts");
    return SqliteDriver.open(handle as string, {
      ...common,
      durability: options.durability ?? "full",
      unsafeSqlite: options.unsafeSqlite ?? false,
      random: options.random ?? Math.random,
    });
  };
  const postgres = async (handle: string | StoreHandle): Promise<Driver> => {
    const { PostgresDriver } = await import("./postgres/driver.ts");
    return PostgresDriver.open(handle as string, {
      ...common,
      poolSize: options.poolSize ?? 5,
      notify: options.notify ?? true,
      onConnectionLost: options.onConnectionLost ?? (() => {}),
      onConnectionBack: options.onConnectionBack ?? (() => {}),
    });
  };
  return typeof target === "string" ? byUrl(target, sqlite, postgres) : byHandle(target, sqlite, postgres);
}

/** A connection of its own for the thread that renews a session. */
export async function openRenewal(target: RenewalTarget): Promise<RenewalConnection> {
  if (target.dialect === "sqlite") {
    const { openSqliteRenewal } = await import("./sqlite/renewal-connection.ts");
    return openSqliteRenewal(target);
  }
  const { openPostgresRenewal } = await import("./postgres/renewal-connection.ts");
  return openPostgresRenewal(target.url, target.schema);
}

/** An operator's hands on the database of a URL. The file of a SQLite URL must exist, or is made. */
export async function openAdmin(url: string, schema: string): Promise<Admin> {
  const checked = checkSchema(schema);
  return byUrl<Promise<Admin>>(
    url,
    async () => (await import("./sqlite/schema-admin.ts")).openSqliteAdmin(url, checked),
    async () =>
      (await import("./postgres/schema-admin.ts")).openPostgresAdmin(url, checked, withoutSecrets(url)),
  );
}

/** Every statement that makes the schema, for those who deploy schemas themselves. Connects to nothing. */
export async function migrationSql(url: string, schema: string): Promise<string[]> {
  const checked = checkSchema(schema);
  return byUrl<Promise<string[]>>(
    url,
    async () => (await import("./sqlite/schema-admin.ts")).migrationSql(checked),
    async () => (await import("./postgres/schema-admin.ts")).migrationSql(checked),
  );
}

/** Makes the database of a URL where there is none; true when it was made. A SQLite file is made by opening it. */
export async function createDatabase(url: string): Promise<boolean> {
  return byUrl<Promise<boolean>>(
    url,
    async () => false,
    async () => (await import("./postgres/schema-admin.ts")).createPostgresDatabase(url),
  );
}

/** The file of a SQLite URL; null for a database in memory and for Postgres. */
export async function sqliteFile(url: string): Promise<string | null> {
  return byUrl<Promise<string | null>>(
    url,
    async () => (await import("./sqlite/file.ts")).databasePath(url),
    async () => null,
  );
}

function byUrl<T>(url: string, sqlite: (url: string) => T, postgres: (url: string) => T): T {
  if (/^postgres(ql)?:\/\//.test(url)) return postgres(url);
  if (/^(sqlite:|file:)/.test(url) || url === ":memory:") return sqlite(url);
  throw new UsageError(
    "BAD_URL",
    `Holdfast does not support this database URL: ${JSON.stringify(withoutSecrets(url))}. ` +
      `Use sqlite:jobs.db, sqlite::memory: or postgres://user:password@host:5432/database.`,
  );
}

async function byHandle<T>(
  handle: object,
  sqlite: (handle: object) => Promise<T>,
  postgres: (handle: object) => Promise<T>,
): Promise<T> {
  const { isHandle } = await import("./sqlite/handle.ts");
  if (isHandle(handle)) return sqlite(handle);
  const { isPool } = await import("./postgres/pg.ts");
  if (isPool(handle)) return postgres(handle);
  throw new StoreError(
    "DRIVER_MISSING",
    "Holdfast does not support this handle. Give a URL, a DatabaseSync of node:sqlite, a better-sqlite3 Database or a node-postgres Pool.",
  );
}

/**
 * A URL as it may be shown: without user, password and query. A password may hold signs that should have been escaped, and no
 * part of it may stay: but for a file, everything before the last @ goes, and all of it where only what looks like a query has one.
 */
export function withoutSecrets(url: string): string {
  const [head = "", ...query] = url.split("?");
  if (/^(?:sqlite|file):/.test(url)) return head.replace(/\/\/[^@/]*@/, "//");
  const slashes = head.indexOf("//");
  const start = slashes === -1 ? head.indexOf(":") + 1 : slashes + 2;
  if (!head.includes("@"))
    return query.some((part) => part.includes("@")) ? `${head.slice(0, start)}…` : head;
  return head.slice(0, start) + head.slice(head.lastIndexOf("@") + 1);
}
