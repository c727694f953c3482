// Every store that Holdfast promises one behaviour on, for suites that must hold on all of them:
//
//   onEveryStore((target) => {
//     test("[A3] a second enqueue of an active key adds no row", async () => {
//       const store = await target.fresh();
//       const hf = await open(store.url, store.options);
//       …
//       expect(await store.query(`select count(*) as n from ${store.table("job")}`)).toEqual([{ n: 1 }]);
//     });
//   });
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import pg from "pg";
import { afterAll, describe, inject, onTestFinished } from "vitest";
import { urlOf } from "./ask-postgres.ts";
import { removeDirectory, temporaryDirectory } from "./guard.ts";
import type { ProvidedServer } from "./postgres-servers.ts";
import { takeSchema } from "./schema-pool.ts";

export interface StoreTarget {
  /** "sqlite", "postgres 14", "postgres 18" or "postgres (DATABASE_URL)". */
  readonly name: string;
  readonly dialect: "sqlite" | "postgres";
  /** A new empty store; disposed of after the suite if the test does not. */
  fresh(): Promise<FreshStore>;
  /**
   * For a test that does not care how the tables came about: a store without a row that is migrated already, where that is
   * cheaper (schema-pool.ts). Disposed of after the test.
   */
  migrated(): Promise<FreshStore>;
}

/** Where an empty store is, and a side door to it. Holdfast has not touched it yet. */
export interface FreshStore extends AsyncDisposable {
  readonly dialect: "sqlite" | "postgres";
  readonly url: string;
  readonly options: { schema?: string };
  /**
   * Raw SQL on a connection of its own. `?` stands for a parameter in both dialects. Postgres's bigint comes back
   * as a number, as in SQLite; booleans (0/1) and JSON (text) are still SQLite's own.
   */
  query(sql: string, params?: unknown[]): Promise<Record<string, unknown>[]>;
  /** The quoted name of Holdfast's table: `"holdfast_job"`, or `"<schema>"."job"`. */
  table(name: string): string;
  /** For raw SQL on `ready` and `history`: the column that says whose row it is, and its value for the job with this id. */
  readonly jobKey: string;
  readonly jobKeyOf: (id: string) => string;
  /** After the `*` of a query on a table: the job's id, where the row has it not. */
  readonly idIn: (table: string) => string;
  dispose(): Promise<void>;
}

/** Defines `suite` once per store, in a describe block of the store's name. */
export function onEveryStore(suite: (target: StoreTarget) => void): void {
  for (const target of everyStore()) describeStore(target, suite);
}

/** Once per dialect, for what takes minutes and has nothing to do with the server's version. */
export function onEveryDialect(suite: (target: StoreTarget) => void): void {
  for (const target of everyStore("newest")) describeStore(target, suite);
}

/** For what only one dialect has by nature; say why in the test's name or a comment. */
export function onSqlite(suite: (target: StoreTarget) => void): void {
  for (const target of everyStore()) if (target.dialect === "sqlite") describeStore(target, suite);
}

/** On every Postgres; as `onSqlite`. */
export function onPostgres(suite: (target: StoreTarget) => void): void {
  for (const target of everyStore()) if (target.dialect === "postgres") describeStore(target, suite);
}

/**
 * Which servers, by HOLDFAST_TEST_POSTGRES: "newest", "oldest" (that one alone, without SQLite), "none" (the newest, skipped), or
 * every one of them.
 */
function everyStore(which: string | undefined = process.env["HOLDFAST_TEST_POSTGRES"]): StoreTarget[] {
  const all = inject("postgresServers");
  const servers =
    which === "newest" || which === "none" ? all.slice(-1) : which === "oldest" ? all.slice(0, 1) : all;
  const sqlite = { name: "sqlite", dialect: "sqlite" as const, fresh: freshSqlite, migrated: freshSqlite };
  return [
    ...(which === "oldest" ? [] : [sqlite]),
    ...servers.map((server) => ({
      name: server.name,
      dialect: "postgres" as const,
      fresh: () => freshPostgres(server),
      migrated: () => (server.ours ? migratedPostgres(server) : freshPostgres(server)),
    })),
  ];
}

function describeStore(target: StoreTarget, suite: (target: StoreTarget) => void): void {
  const open: FreshStore[] = [];
  const fresh = async (): Promise<FreshStore> => {
    const store = await target.fresh();
    open.push(store);
    return store;
  };
  // For machines without Postgres: the reason for the skip is their own setting.
  const skip = target.dialect === "postgres" && process.env["HOLDFAST_TEST_POSTGRES"] === "none";
  describe.skipIf(skip)(target.name, () => {
    afterAll(async () => {
      await Promise.all(open.splice(0).map((store) => store.dispose()));
    });
    const migrated = async (): Promise<FreshStore> => {
      const store = await target.migrated();
      onTestFinished(() => store.dispose());
      return store;
    };
    suite({ ...target, fresh, migrated });
  });
}

async function freshSqlite(): Promise<FreshStore> {
  const directory = temporaryDirectory("sqlite");
  const path = join(directory, "jobs.db");
  let database: DatabaseSync | undefined;
  const dispose = async (): Promise<void> => {
    database?.close();
    database = undefined;
    removeDirectory(directory);
  };
  return {
    dialect: "sqlite",
    url: `sqlite:${path}`,
    options: {},
    async query(sql, params = []) {
      database ??= new DatabaseSync(path, { timeout: 5_000 });
      return database
        .prepare(sql)
        .all(...(params as SQLInputValue[]))
        .map((row) => ({ ...row }));
    },
    table: (name) => `"holdfast_${name}"`,
    jobKey: "seq",
    jobKeyOf: (id) => `(select j.seq from "holdfast_job" j where j.id = ${id})`,
    idIn: (table) =>
      ["ready", "history"].includes(table)
        ? `, (select j.id from "holdfast_job" j where j.seq = "holdfast_${table}".seq) as id`
        : "",
    dispose,
    [Symbol.asyncDispose]: dispose,
  };
}

async function freshPostgres(server: ProvidedServer): Promise<FreshStore> {
  const schema = `t_${randomBytes(6).toString("hex")}`;
  return postgresStore(await urlOf(server), schema, async (side) => {
    try {
      // A suite that leaves a transaction open should hear of it, not hang.
      await side.query("set lock_timeout = '5s'");
      await side.query(`drop schema if exists "${schema}" cascade`);
    } catch (error) {
      throw new Error(`Could not drop schema ${schema}: does a test leave a transaction open?`, {
        cause: error,
      });
    }
  });
}

async function migratedPostgres(server: ProvidedServer): Promise<FreshStore> {
  const { url, schema, give } = await takeSchema(await urlOf(server));
  return postgresStore(url, schema, null, give);
}

function postgresStore(
  url: string,
  schema: string,
  remove: ((side: pg.Client) => Promise<void>) | null,
  give: () => Promise<void> = async () => {},
): FreshStore {
  let connecting: Promise<pg.Client> | undefined;
  let disposed = false;
  const client = (): Promise<pg.Client> => (connecting ??= connect(url));
  const dispose = async (): Promise<void> => {
    if (disposed) return;
    disposed = true;
    const side = remove === null ? await connecting : await client();
    try {
      if (side !== undefined) await remove?.(side);
    } finally {
      await side?.end();
    }
    await give();
  };
  return {
    dialect: "postgres",
    url,
    options: { schema },
    async query(sql, params = []) {
      const result = await (await client()).query<Record<string, unknown>>(numbered(sql, params), params);
      return result.rows;
    },
    table: (name) => `"${schema}"."${name}"`,
    jobKey: "id",
    jobKeyOf: (id) => id,
    idIn: () => "",
    dispose,
    [Symbol.asyncDispose]: dispose,
  };
}

const int8 = 20;

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.setTypeParser(int8, Number);
  client.on("error", () => {});
  await client.connect();
  return client;
}

/** `?` → `$1`, `$2`, …; left alone where there is nothing to bind, since `?` is also an operator of jsonb. */
function numbered(sql: string, params: unknown[]): string {
  if (params.length === 0 || /\$1\b/.test(sql)) return sql;
  let n = 0;
  return sql.replaceAll("?", () => `$${++n}`);
}
