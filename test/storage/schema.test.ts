// The schema as a picture in the repository: columns, constraints, indexes, views and triggers of both dialects.
// A change of a migration shows itself here; `UPDATE_SCHEMA=1 npx vitest run test/storage/schema.test.ts` takes it over.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openStore } from "../../src/storage/open.ts";
import { migrations as postgresMigrations } from "../../src/storage/postgres/migrations.ts";
import { postgresTables } from "../../src/storage/postgres/driver.ts";
import { migrations as sqliteMigrations } from "../../src/storage/sqlite/migrations.ts";
import { sqliteTables } from "../../src/storage/sqlite/driver.ts";
import { type FreshStore, onEveryStore } from "../support/stores.ts";

/** The schema as text, with its own name taken out. Partitions of single days come and go and are left out. */
async function pictureOf(fresh: FreshStore): Promise<string> {
  if (fresh.dialect === "sqlite") {
    const rows = await fresh.query(
      "select type, name, sql from sqlite_master where sql is not null and name not like 'sqlite_%' order by type, name",
    );
    return rows
      .map((row) => `${String(row["type"])} ${String(row["name"])}\n${oneSpace(String(row["sql"]))}\n`)
      .join("\n");
  }
  const schema = fresh.options.schema!;
  const parts: string[] = [];
  const add = async (title: string, sql: string): Promise<void> => {
    const rows = await fresh.query(sql, [schema]);
    const lines = rows.map((row) =>
      Object.values(row)
        .map((value) => oneSpace(String(value)))
        .join(" | "),
    );
    parts.push(`${title}\n${lines.join("\n")}\n`);
  };
  const notDaily = (name: string): string => `${name} !~ '_[0-9]{8}(_|$)'`;
  await add(
    "columns",
    `select table_name, column_name, data_type, is_nullable, coalesce(column_default, identity_generation, '-') from information_schema.columns
     where table_schema = ? and ${notDaily("table_name")} order by table_name, ordinal_position`,
  );
  await add(
    "constraints",
    `select c.conrelid::regclass::text, c.conname, pg_get_constraintdef(c.oid) from pg_constraint c join pg_namespace n on n.oid = c.connamespace
     where n.nspname = ? and c.contype <> 'n' and ${notDaily("c.conrelid::regclass::text")} order by 1, 2`,
  );
  await add(
    "indexes",
    `select indexdef from pg_indexes where schemaname = ? and ${notDaily("indexname")} and ${notDaily("tablename")} order by indexname`,
  );
  await add(
    "options",
    `select relname, relkind, coalesce(array_to_string(reloptions, ' '), '-') from pg_class where relnamespace = ?::regnamespace and relkind in ('r', 'p', 'S', 'v') and ${notDaily("relname")} order by 1`,
  );
  await add(
    "functions",
    "select proname, prosrc, array_to_string(proconfig, ' ') from pg_proc where pronamespace = ?::regnamespace order by 1",
  );
  await add(
    "triggers",
    "select tgname, pg_get_triggerdef(t.oid) from pg_trigger t join pg_class c on c.oid = t.tgrelid where c.relnamespace = ?::regnamespace and not tgisinternal order by 1",
  );
  return parts.join("\n").replaceAll(schema, "SCHEMA");
}

function oneSpace(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}

onEveryStore((target) => {
  test("the schema is the one in the picture", async () => {
    const fresh = await target.fresh();
    await (await openStore(fresh.url, fresh.options)).close();
    const picture = await pictureOf(fresh);
    const path = join(import.meta.dirname, "snapshots", `${target.dialect}.txt`);
    if (process.env["UPDATE_SCHEMA"] !== undefined || !existsSync(path)) writeFileSync(path, picture);
    expect(picture).toBe(readFileSync(path, "utf8"));
  });

  test("a database that was migrated step by step equals a fresh one", async () => {
    const [fresh, stepped] = [await target.fresh(), await target.fresh()];
    await (await openStore(fresh.url, fresh.options)).close();
    const sqlite = target.dialect === "sqlite";
    const schema = stepped.options.schema ?? "holdfast";
    const tables = sqlite ? sqliteTables(schema) : postgresTables(schema);
    const known = sqlite ? sqliteMigrations : postgresMigrations;
    if (!sqlite) await stepped.query(`create schema "${schema}"`);
    // As the first version left it, with a job of that time in it; then the newest version opens it.
    const [first] = known;
    const [like] = await fresh.query(
      sqlite
        ? "select sql from sqlite_master where name = 'holdfast_migration'"
        : "select string_agg(column_name || ' ' || data_type || case when is_nullable = 'NO' then ' not null' else '' end, ', ' order by ordinal_position) as sql from information_schema.columns where table_schema = ? and table_name = 'migration'",
      sqlite ? [] : [fresh.options.schema],
    );
    await stepped.query(
      sqlite
        ? String(like!["sql"])
        : `create table ${tables.migration} (${String(like!["sql"])}, primary key (version))`,
    );
    for (const sql of first!.sql(tables, schema)) await stepped.query(sql);
    const [applied] = await fresh.query(
      `select * from ${fresh.table("migration")} where version = ${first!.version}`,
    );
    const values = Object.values(applied!);
    await stepped.query(
      `insert into ${tables.migration} values (${values.map(() => "?").join(", ")})`,
      values,
    );
    await stepped.query(`insert into ${stepped.table("enqueue")} (name, input) values ('old', '1')`);
    const store = await openStore(stepped.url, stepped.options);
    const versions = await stepped.query(
      `select version from ${stepped.table("migration")} order by version`,
    );
    expect(versions.map((row) => row["version"])).toEqual(known.map(({ version }) => version));
    expect(await store.jobs.count({ name: "old", state: "ready" })).toBe(1);
    await store.close();
    expect(await pictureOf(stepped)).toBe(await pictureOf(fresh));
  });

  test("a schema that a newer version has changed incompatibly is refused, and one that it only added to is not", async () => {
    const fresh = await target.fresh();
    await (await openStore(fresh.url, fresh.options)).close();
    const add = (version: number, breaking: boolean): Promise<unknown> =>
      fresh.query(
        `insert into ${fresh.table("migration")} select ${version}, 'later', ${target.dialect === "sqlite" ? Number(breaking) : breaking}, applied_at from ${fresh.table("migration")} limit 1`,
      );
    await add(9_001, false);
    await (await openStore(fresh.url, fresh.options)).close();
    await add(9_002, true);
    await expect(openStore(fresh.url, fresh.options)).rejects.toMatchObject({ code: "SCHEMA_TOO_NEW" });
  });
});

test("migrations are numbered without a gap, in both dialects alike", () => {
  const versions = sqliteMigrations.map(({ version, name }) => `${version} ${name}`);
  expect(postgresMigrations.map(({ version, name }) => `${version} ${name}`)).toEqual(versions);
  expect(sqliteMigrations.map(({ version }) => version)).toEqual(
    sqliteMigrations.map((_, index) => index + 1),
  );
});
