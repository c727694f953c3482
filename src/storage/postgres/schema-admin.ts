/** An operator's hands on a Postgres schema. Beside storage/sqlite/schema-admin.ts; the contract is in storage/admin.ts. */
import { randomBytes } from "node:crypto";
import { WAITING_AT } from "../../jobs/job.ts";
import {
  type Admin,
  type AdminTable,
  type LaneWakeup,
  LANE_WAKEUPS,
  FREEZER,
  NOT_COPIED,
  type Plain,
  type PlainRow,
  type ReturnedCapacity,
  RETURNED_CAPACITY,
} from "../admin.ts";
import type { Row } from "../catalogue.ts";
import { type Migration, pending } from "../migrate.ts";
import { postgresTables } from "./driver.ts";
import { isMissing, MOVED_STATE, sqlState, toStoreError } from "./error-codes.ts";
import { clientConfig, clientOf, Hosts } from "./hosts.ts";
import { NOTIFY_ALL } from "./listen.ts";
import { migrations } from "./migrations.ts";
import { loadPg, type PgClient, rowTypes } from "./pg.ts";
import { PIN, pinSession } from "./search-path.ts";

/** Tables whose rows are about one job each, and go with it. */
const ABOUT_JOBS = ["ready", "history", "member"] as const;

/** Every statement that makes the schema. */
export function migrationSql(schema: string, known: readonly Migration[] = migrations): string[] {
  return [
    `create schema if not exists "${schema}"`,
    ...known.flatMap((step) => step.sql(postgresTables(schema), schema)),
  ];
}

/** Makes the database of the URL where there is none, through `postgres` or, where that was dropped, `template1`. */
export async function createPostgresDatabase(url: string): Promise<boolean> {
  const hosts = Hosts.of(url);
  const name = decodeURIComponent(new URL(hosts.url).pathname.slice(1));
  const client = await connect(hosts.onDatabase("postgres")).catch((error: unknown) => {
    if (isMissing(error)) return connect(hosts.onDatabase("template1"));
    throw error;
  });
  try {
    const { rows } = await client.query(
      "select 1 from pg_catalog.pg_database where datname operator(pg_catalog.=) $1",
      [name],
    );
    if (rows.length > 0) return false;
    await client.query(`create database "${name.replaceAll('"', '""')}"`);
    return true;
  } catch (error) {
    throw toStoreError(error);
  } finally {
    await client.end();
  }
}

export async function openPostgresAdmin(url: string, schema: string, place: string): Promise<Admin> {
  const types = rowTypes(await loadPg());
  const client = await connect(Hosts.of(url));
  try {
    const send = async (text: string, values: readonly unknown[]) =>
      (await client.query({ text, values })).rows;
    return new PostgresAdmin(client, types, schema, place, await pinSession(client, send, true));
  } catch (error) {
    await client.end();
    throw toStoreError(error);
  }
}

async function connect(hosts: Hosts): Promise<PgClient> {
  const Client = clientOf(await loadPg(), hosts);
  try {
    return await hosts.first(async () => {
      const client = new Client(clientConfig("holdfast-admin"));
      client.on("error", () => {});
      await client.connect();
      return client;
    });
  } catch (error) {
    throw toStoreError(error);
  }
}

class PostgresAdmin implements Admin {
  readonly dialect = "postgres";
  readonly schema: string;
  readonly place: string;
  readonly #client: PgClient;
  readonly #types: unknown;
  readonly #hostile: boolean;
  #within = false;
  /** Columns whose values are lists or JSON, which SQLite keeps as text. */
  readonly #structured = new Map<string, ReadonlySet<string>>();

  constructor(client: PgClient, types: unknown, schema: string, place: string, hostile: boolean) {
    this.#client = client;
    this.#hostile = hostile;
    this.#types = types;
    this.schema = schema;
    this.place = place;
  }

  async status(): Promise<{ applied: number[]; pending: readonly Migration[] }> {
    const [table] = await this.#query("select to_regclass($1) is not null as here", [
      `"${this.schema}"."migration"`,
    ]);
    if (table?.["here"] !== true) return { applied: [], pending: migrations };
    const rows = await this.#query(
      `select version, breaking from ${this.#quoted("migration")} order by version`,
    );
    const applied = rows.map((row) => ({
      version: Number(row["version"]),
      breaking: row["breaking"] === true,
    }));
    return { applied: applied.map(({ version }) => version), pending: pending(migrations, applied) };
  }

  /** Makes the schema once more under another name, compares the catalogue's entries, and rolls back. */
  async drift(): Promise<string[] | null> {
    const scratch = `hf_doctor_${randomBytes(6).toString("hex")}`;
    await this.#begin();
    try {
      for (const sql of migrationSql(scratch)) await this.#query(sql);
      const expected = await this.#shape(scratch);
      const found = await this.#shape(this.schema);
      return compare(expected, found);
    } catch (error) {
      if (sqlState((error as { cause?: unknown }).cause) === "42501") return null;
      throw error;
    } finally {
      await this.#end("rollback");
    }
  }

  async drop(): Promise<void> {
    await this.#query(`drop schema if exists "${this.schema}" cascade`);
  }

  async tables(): Promise<AdminTable[]> {
    const rows = await this.#query(
      `select c.relname as name,
         array_to_json(array(select a.attname from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '' and not (c.relname = 'lane_rotation' and a.attname = 'from_at') order by a.attnum))::text as columns,
         array_to_json(array(select a.attname from pg_attribute a join pg_type t on t.oid = a.atttypid
           where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and (t.typcategory = 'A' or t.typname in ('json', 'jsonb'))))::text as structured,
         array_to_json(array(select a.attname from pg_index i cross join lateral unnest(i.indkey::int2[]) with ordinality as k (attnum, place)
           join pg_attribute a on a.attrelid = c.oid and a.attnum = k.attnum where i.indrelid = c.oid and i.indisprimary order by k.place))::text as key
       from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where n.nspname = $1 and c.relkind in ('r', 'p') and not c.relispartition order by c.relname`,
      [this.schema],
    );
    const list = (row: Row, column: string): string[] => JSON.parse(String(row[column])) as string[];
    for (const row of rows) this.#structured.set(String(row["name"]), new Set(list(row, "structured")));
    return rows
      .map((row) => ({ name: String(row["name"]), columns: list(row, "columns"), key: list(row, "key") }))
      .filter(({ name }) => !NOT_COPIED.includes(name));
  }

  async count(table: string): Promise<number> {
    return Number((await this.#query(`select count(*)::bigint as n from ${this.#quoted(table)}`))[0]?.["n"]);
  }

  async page(table: AdminTable, after: readonly Plain[] | null, limit: number): Promise<PlainRow[]> {
    const key = table.key.map((column) => `t."${column}"`).join(", ");
    const where =
      after === null || key === ""
        ? ""
        : ` where (${key}) > (${after.map((_, i) => `$${i + 1}`).join(", ")})`;
    const order = key === "" ? "" : ` order by ${key} limit ${limit}`;
    const rows = await this.#query(
      `select row_to_json(t)::text as row from ${this.#quoted(table.name)} t${where}${order}`,
      after ?? [],
    );
    return rows.map((row) => JSON.parse(String(row["row"])) as PlainRow);
  }

  async write(
    table: AdminTable,
    rows: readonly PlainRow[],
    note: { readonly key: string; readonly value: string },
  ): Promise<void> {
    const target = this.#quoted(table.name);
    const columns = table.columns.map((column) => `"${column}"`).join(", ");
    const structured = this.#structured.get(table.name) ?? new Set();
    const values = rows.map((row) =>
      Object.fromEntries(
        Object.entries(row).map(([column, value]) => [
          column,
          structured.has(column) && typeof value === "string" ? (JSON.parse(value) as Plain) : value,
        ]),
      ),
    );
    await this.#transaction(async () => {
      if (rows.length > 0)
        await this.#query(
          `insert into ${target} (${columns}) overriding system value
           select ${columns} from json_populate_recordset(null::${target}, $1::json) on conflict do nothing`,
          [JSON.stringify(values)],
        );
      await this.#note(note.key, note.value);
    });
  }

  async laneWakeups(): Promise<LaneWakeup[]> {
    const rows = await this.#query(
      `select b.job_type, u.lane, coalesce(min(u.at), $1::bigint) as at, coalesce(sum(u.back), 0)::int as back
       from ${this.#quoted(LANE_WAKEUPS)} b cross join lateral unnest(b.lanes, b.ats, b.backs) as u (lane, at, back) group by 1, 2 order by 1, 2`,
      [WAITING_AT],
    );
    return rows.map((row) => ({
      jobType: Number(row["job_type"]),
      lane: Number(row["lane"]),
      at: Number(row["at"]),
      back: Number(row["back"]),
    }));
  }

  async setLaneWakeups(laneWakeups: readonly LaneWakeup[]): Promise<void> {
    await this.#transaction(async () => {
      await this.#query(`delete from ${this.#quoted(LANE_WAKEUPS)}`);
      await this.#query(
        `insert into ${this.#quoted(LANE_WAKEUPS)} (job_type, lanes, ats, backs)
         select "jobType", array_agg(lane), array_agg(at), array_agg(back)
         from json_to_recordset($1::json) as b ("jobType" int, lane int, at bigint, back int) group by "jobType"`,
        [JSON.stringify(laneWakeups)],
      );
    });
  }

  async returnedCapacity(): Promise<ReturnedCapacity[]> {
    const rows = await this.#query(
      `select queue, sum(n)::bigint as n from ${this.#quoted(RETURNED_CAPACITY)} group by queue order by queue collate "C"`,
    );
    return rows.map((row) => ({ queue: String(row["queue"]), n: Number(row["n"]) }));
  }

  async setReturnedCapacity(returnedCapacity: readonly ReturnedCapacity[]): Promise<void> {
    await this.#transaction(async () => {
      await this.#query(`delete from ${this.#quoted(RETURNED_CAPACITY)}`);
      await this.#query(
        `insert into ${this.#quoted(RETURNED_CAPACITY)} (queue, n) select queue, n from json_to_recordset($1::json) as r (queue text, n int)`,
        [JSON.stringify(returnedCapacity)],
      );
    });
  }

  async raiseCounters(token: number): Promise<void> {
    const rows = await this.#query(
      `select c.relname as name, a.attname as column from pg_attribute a join pg_class c on c.oid = a.attrelid
       join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and a.attidentity <> '' and not c.relispartition`,
      [this.schema],
    );
    for (const row of rows) {
      const table = this.#quoted(String(row["name"]));
      const column = String(row["column"]);
      await this.#query(
        `select setval(pg_get_serial_sequence($1, $2), greatest((select coalesce(max("${column}"), 0) from ${table}), 1))`,
        [table, column],
      );
    }
    await this.#query(
      `select setval($1::regclass, greatest((select last_value from ${this.#quoted("token")}), $2::bigint, 1))`,
      [this.#quoted("token"), token],
    );
  }

  async lastToken(): Promise<number> {
    const [row] = await this.#query(`select last_value as value, is_called from ${this.#quoted("token")}`);
    return row?.["is_called"] === true ? Number(row["value"]) : 0;
  }

  async meta(key: string): Promise<string | null> {
    const [row] = await this.#query(`select value from ${this.#quoted("meta")} where key = $1`, [key]);
    return row === undefined ? null : String(row["value"]);
  }

  async setMeta(key: string, value: string | null): Promise<void> {
    if (value === null) await this.#query(`delete from ${this.#quoted("meta")} where key = $1`, [key]);
    else await this.#note(key, value);
  }

  async freeze(text: string): Promise<void> {
    const tables = await this.tables();
    const guard = `"${this.schema}"."${FREEZER}"`;
    const literal = text.replaceAll("'", "''").replaceAll("%", "%%");
    await this.#transaction(async () => {
      await this.#dropStrays();
      await this.#query(
        `create or replace function ${guard}() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $guard$
         begin raise exception 'holdfast: ${literal.replaceAll("$guard$", "")}' using errcode = '${MOVED_STATE}'; end $guard$`,
      );
      for (const { name } of tables) {
        await this.#query(`drop trigger if exists "${FREEZER}" on ${this.#quoted(name)}`);
        await this.#query(
          `create trigger "${FREEZER}" before insert or update or delete or truncate on ${this.#quoted(name)} for each statement execute function ${guard}()`,
        );
      }
    });
  }

  /** Rows about a job that is not there, where writes are not refused yet: a file would have no number for them. */
  async #dropStrays(): Promise<void> {
    const [frozen] = await this.#query(
      `select 1 from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace
       where n.nspname = $1 and t.tgname = $2 limit 1`,
      [this.schema, FREEZER],
    );
    if (frozen !== undefined) return;
    for (const table of ABOUT_JOBS)
      await this.#query(
        `delete from ${this.#quoted(table)} s where not exists (select from ${this.#quoted("job")} j where j.id = s.id)`,
      );
  }

  async thaw(): Promise<void> {
    const tables = await this.tables();
    await this.#transaction(async () => {
      for (const { name } of tables)
        await this.#query(`drop trigger if exists "${FREEZER}" on ${this.#quoted(name)}`);
      await this.#query(`drop function if exists "${this.schema}"."${FREEZER}"()`);
    });
  }

  async unhold(name: string): Promise<void> {
    await this.#query(`delete from ${this.#quoted("hold")} where name = $1`, [name]);
    // Workers that wait on the target look again at once.
    await this.#query(NOTIFY_ALL, [this.schema, [JSON.stringify({ k: "any" })]]);
  }

  async close(): Promise<void> {
    await this.#client.end();
  }

  /** Columns, indexes, constraints and views, as texts without the schema's name. */
  async #shape(schema: string): Promise<Map<string, string>> {
    const rows = await this.#query(
      `with ours as (
         select c.oid, c.relname, c.relkind from pg_class c join pg_namespace n on n.oid = c.relnamespace
         where n.nspname = $1 and not c.relispartition and c.relname <> 'migration')
       select 'table ' || o.relname || ', column ' || a.attname as thing,
         format_type(a.atttypid, a.atttypmod) || case when a.attnotnull then ' not null' else '' end || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '') as is
       from ours o join pg_attribute a on a.attrelid = o.oid and a.attnum > 0 and not a.attisdropped
         left join pg_attrdef d on d.adrelid = o.oid and d.adnum = a.attnum
       where o.relkind in ('r', 'p', 'v')
       union all
       select 'index ' || i.relname, pg_get_indexdef(i.oid) from ours o join pg_index x on x.indrelid = o.oid join pg_class i on i.oid = x.indexrelid
       union all
       select 'constraint ' || k.conname || ' of ' || o.relname, pg_get_constraintdef(k.oid) from ours o join pg_constraint k on k.conrelid = o.oid
       union all
       select 'sequence ' || o.relname, '' from ours o where o.relkind = 'S'`,
      [schema],
    );
    const prefix = new RegExp(`(?:"${schema}"|\\b${schema})\\.`, "g");
    return new Map(rows.map((row) => [String(row["thing"]), String(row["is"]).replaceAll(prefix, "")]));
  }

  #quoted(table: string): string {
    return `"${this.schema}"."${table}"`;
  }

  async #note(key: string, value: string): Promise<void> {
    await this.#query(
      `insert into ${this.#quoted("meta")} (key, value) values ($1, $2) on conflict (key) do update set value = excluded.value`,
      [key, value],
    );
  }

  async #query(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    if (this.#hostile && !this.#within) return this.#transaction(() => this.#query(text, values));
    try {
      return (await this.#client.query({ text, values, types: this.#types })).rows;
    } catch (error) {
      throw toStoreError(error);
    }
  }

  async #transaction<T>(body: () => Promise<T>): Promise<T> {
    await this.#begin();
    try {
      const result = await body();
      await this.#end("commit");
      return result;
    } catch (error) {
      await this.#end("rollback").catch(() => {});
      throw error;
    }
  }

  async #begin(): Promise<void> {
    this.#within = true;
    await this.#query(`begin; ${PIN}`);
  }

  async #end(how: "commit" | "rollback"): Promise<void> {
    await this.#query(how).finally(() => (this.#within = false));
  }
}

function compare(expected: ReadonlyMap<string, string>, found: ReadonlyMap<string, string>): string[] {
  const drift: string[] = [];
  for (const [thing, is] of expected) {
    const there = found.get(thing);
    if (there === undefined) drift.push(`${thing} is missing`);
    else if (there !== is) drift.push(`${thing} is "${there}", expected "${is}"`);
  }
  // An operator's own indexes do no harm; a foreign column or table may.
  for (const thing of found.keys())
    if (!expected.has(thing) && thing.startsWith("table ")) drift.push(`${thing} is unexpected`);
  return drift;
}
