/**
 * An operator's hands on a SQLite file. Beside storage/postgres/schema-admin.ts; the contract is in storage/admin.ts.
 *
 * Jobs are numbered here (seq.ts), and their numbers are this file's own: rows leave it with ids in their place, in the
 * order of the numbers, and what comes in is numbered anew. A job must be here before the rows that are about it.
 */
import { MOST_COUNTED } from "../../jobs/job-bounds.ts";
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
import { type Migration, pending } from "../migrate.ts";
import { openFile } from "./connection.ts";
import { sqliteTables } from "./driver.ts";
import { toStoreError } from "./error-codes.ts";
import { databasePath } from "./file.ts";
import type { Handle } from "./handle.ts";
import { migrations } from "./migrations.ts";

/** Keyed by the number that `job` gives; a claim's list is of numbers too. */
const NUMBERED: readonly string[] = ["ready", "history", "member"];
/** Columns with counts of a job (attempts, crashes): Postgres has two bytes for each. */
const COUNTS: readonly string[] = ["attempt", "crashes", "throttles"];

interface Entry {
  readonly type: string;
  readonly name: string;
  readonly sql: string | null;
}

/** Every statement that makes the schema. */
export function migrationSql(schema: string, known: readonly Migration[] = migrations): string[] {
  return known.flatMap((step) => step.sql(sqliteTables(schema), schema));
}

export async function openSqliteAdmin(url: string, schema: string): Promise<Admin> {
  const path = databasePath(url);
  const handle = await openFile(path, "full");
  handle.exec("pragma busy_timeout = 10000");
  return new SqliteAdmin(handle, path ?? ":memory:", schema);
}

class SqliteAdmin implements Admin {
  readonly dialect = "sqlite";
  readonly schema: string;
  readonly place: string;
  readonly #handle: Handle;
  readonly #path: string;

  constructor(handle: Handle, path: string, schema: string) {
    this.#handle = handle;
    this.#path = path;
    this.schema = schema;
    this.place = `sqlite:${path}`;
  }

  async status(): Promise<{ applied: number[]; pending: readonly Migration[] }> {
    if (!this.#entries().some(({ name }) => name === `${this.schema}_migration`))
      return { applied: [], pending: migrations };
    const rows = this.#all(`select version, breaking from "${this.schema}_migration" order by version`);
    const applied = rows.map((row) => ({ version: Number(row["version"]), breaking: row["breaking"] === 1 }));
    return { applied: applied.map(({ version }) => version), pending: pending(migrations, applied) };
  }

  async drift(): Promise<string[]> {
    const scratch = await openFile(null, "normal");
    try {
      for (const sql of migrationSql(this.schema)) scratch.exec(sql);
      const expected = entriesOf(scratch, this.schema);
      const found = this.#entries().filter(({ name }) => name !== `${this.schema}_migration`);
      return compare(expected, found);
    } finally {
      scratch.close();
    }
  }

  async drop(): Promise<void> {
    const entries = this.#entries();
    this.#transaction(() => {
      for (const type of ["trigger", "view", "table"])
        for (const { name } of entries.filter((entry) => entry.type === type))
          this.#handle.exec(`drop ${type} if exists "${name}"`);
    });
  }

  async tables(): Promise<AdminTable[]> {
    return this.#entries()
      .filter(({ type }) => type === "table")
      .map(({ name }) => name.slice(this.schema.length + 1))
      .filter((name) => !NOT_COPIED.includes(name))
      .map((name) => {
        const columns = this.#all(`select name, pk from pragma_table_info('${this.schema}_${name}')`);
        const names = columns.map((column) => String(column["name"]));
        return {
          name,
          columns:
            NUMBERED.includes(name) || name === "job"
              ? ["id", ...names.filter((column) => !["seq", "id"].includes(column))]
              : names,
          key: columns
            .filter((column) => Number(column["pk"]) > 0)
            .sort((a, b) => Number(a["pk"]) - Number(b["pk"]))
            .map((column) => String(column["name"])),
        };
      });
  }

  async count(table: string): Promise<number> {
    return Number(this.#all(`select count(*) as n from ${this.#quoted(table)}`)[0]?.["n"]);
  }

  async page(table: AdminTable, after: readonly Plain[] | null, limit: number): Promise<PlainRow[]> {
    const key = table.key.map((column) => `"${column}"`).join(", ");
    const where =
      after === null || key === "" ? "" : ` where (${key}) > (${after.map(() => "?").join(", ")})`;
    const order = key === "" ? "" : ` order by ${key} limit ${limit}`;
    const more = this.#outward(table.name);
    const rows = this.#all(`select *${more} from ${this.#quoted(table.name)}${where}${order}`, after ?? []);
    const whole = this.#integerColumns(table.name, false);
    const counts = NUMBERED.includes(table.name) ? COUNTS : [];
    for (const row of rows) {
      for (const column of whole) if (typeof row[column] === "number") row[column] = Math.round(row[column]);
      for (const column of counts)
        if (typeof row[column] === "number") row[column] = Math.min(row[column], MOST_COUNTED);
    }
    return rows as PlainRow[];
  }

  /** SQLite keeps a fraction in a column of integers, which Postgres refuses: a fraction leaves this file rounded. */
  #integerColumns(table: string, ofKey: boolean): string[] {
    const columns = this.#all(
      `select name from pragma_table_info('${this.schema}_${table}') where upper(type) = 'INTEGER' and (pk > 0) = ${Number(ofKey)}`,
    );
    return columns.map((column) => String(column["name"]));
  }

  /**
   * Deletes and rounds what no other database would take: rows about a job that is not there, and fractions in keys, which pages are turned by and
   * which can therefore not be rounded on their way.
   */
  #mend(tables: readonly AdminTable[]): void {
    for (const name of NUMBERED) {
      const table = this.#quoted(name);
      this.#run(
        `delete from ${table} where not exists (select 1 from ${this.#quoted("job")} j where j.seq = ${table}.seq)`,
        [],
      );
    }
    for (const { name } of tables)
      for (const column of this.#integerColumns(name, true)) {
        const odd = `typeof("${column}") = 'real'`;
        this.#run(
          `update or ignore ${this.#quoted(name)} set "${column}" = cast(round("${column}") as integer) where ${odd}`,
          [],
        );
        // The row of the whole number was there already.
        this.#run(`delete from ${this.#quoted(name)} where ${odd}`, []);
      }
  }

  #frozen(): string[] {
    return this.#all("select name from sqlite_master where type = 'trigger'")
      .map((row) => String(row["name"]))
      .filter((name) => name.startsWith(`${this.schema}_${FREEZER}_`));
  }

  async write(
    table: AdminTable,
    rows: readonly PlainRow[],
    note: { readonly key: string; readonly value: string },
  ): Promise<void> {
    this.#transaction(() => {
      const insert = this.#handle.prepare(this.#insert(table));
      for (const row of rows) insert.run(...table.columns.map((column) => stored(row[column] ?? null)));
      this.#note(note.key, note.value);
    });
  }

  async laneWakeups(): Promise<LaneWakeup[]> {
    return this.#all(
      `select job_type as "jobType", lane, cast(round(at) as integer) as at, back from ${this.#quoted(LANE_WAKEUPS)} order by job_type, lane`,
    ) as unknown as LaneWakeup[];
  }

  async setLaneWakeups(laneWakeups: readonly LaneWakeup[]): Promise<void> {
    this.#transaction(() => {
      this.#run(`delete from ${this.#quoted(LANE_WAKEUPS)}`, []);
      const insert = this.#handle.prepare(
        `insert into ${this.#quoted(LANE_WAKEUPS)} (job_type, lane, at, back) values (?, ?, ?, ?)`,
      );
      for (const { jobType, lane, at, back } of laneWakeups) insert.run(jobType, lane, at, back);
    });
  }

  async returnedCapacity(): Promise<ReturnedCapacity[]> {
    return this.#all(
      `select queue, cast(round(n) as integer) as n from ${this.#quoted(RETURNED_CAPACITY)} order by queue`,
    ) as unknown as ReturnedCapacity[];
  }

  async setReturnedCapacity(returnedCapacity: readonly ReturnedCapacity[]): Promise<void> {
    this.#transaction(() => {
      this.#run(`delete from ${this.#quoted(RETURNED_CAPACITY)}`, []);
      const insert = this.#handle.prepare(
        `insert into ${this.#quoted(RETURNED_CAPACITY)} (queue, n) values (?, ?)`,
      );
      for (const { queue, n } of returnedCapacity) insert.run(queue, n);
    });
  }

  async raiseCounters(token: number): Promise<void> {
    // SQLite's own counters have followed the rows; the token's must also know of claims that are gone.
    this.#transaction(() => {
      const name = `${this.schema}_claim`;
      this.#run("update sqlite_sequence set seq = max(seq, ?) where name = ?", [token, name]);
      this.#run(
        "insert into sqlite_sequence (name, seq) select ?, ? where not exists (select 1 from sqlite_sequence where name = ?)",
        [name, token, name],
      );
    });
  }

  async lastToken(): Promise<number> {
    const rows = this.#all("select seq from sqlite_sequence where name = ?", [`${this.schema}_claim`]);
    return Number(rows[0]?.["seq"] ?? 0);
  }

  async meta(key: string): Promise<string | null> {
    const value = this.#all(`select value from ${this.#quoted("meta")} where key = ?`, [key])[0]?.["value"];
    return value === undefined ? null : String(value);
  }

  async setMeta(key: string, value: string | null): Promise<void> {
    this.#transaction(() => {
      if (value === null) this.#run(`delete from ${this.#quoted("meta")} where key = ?`, [key]);
      else this.#note(key, value);
    });
  }

  async freeze(text: string): Promise<void> {
    const tables = await this.tables();
    const literal = `'holdfast: ${text.replaceAll("'", "''")}'`;
    this.#transaction(() => {
      if (this.#frozen().length === 0) this.#mend(tables);
      for (const { name } of tables)
        for (const verb of ["insert", "update", "delete"])
          this.#handle.exec(
            `create trigger if not exists "${this.schema}_${FREEZER}_${name}_${verb}" before ${verb} on ${this.#quoted(name)} begin select raise(abort, ${literal}); end`,
          );
    });
  }

  async thaw(): Promise<void> {
    const frozen = this.#frozen();
    this.#transaction(() => {
      for (const name of frozen) this.#handle.exec(`drop trigger if exists "${name}"`);
    });
  }

  async unhold(name: string): Promise<void> {
    this.#transaction(() => this.#run(`delete from ${this.#quoted("hold")} where name = ?`, [name]));
  }

  async close(): Promise<void> {
    this.#handle.close();
  }

  #quoted(table: string): string {
    return `"${this.schema}_${table}"`;
  }

  #entries(): Entry[] {
    return entriesOf(this.#handle, this.schema);
  }

  /** What a row needs besides its columns, to leave without numbers. A claim may name jobs that have gone since. */
  #outward(table: string): string {
    const job = this.#quoted("job");
    if (table === "claim")
      return `, (select json_group_array(coalesce(j.id, o.value)) from json_each(ids) o left join ${job} j on j.seq = o.value
        where j.id is not null or o.type = 'text') as ids`;
    if (!NUMBERED.includes(table)) return "";
    return `, (select j.id from ${job} j where j.seq = ${this.#quoted(table)}.seq) as id`;
  }

  /** The way in: ids become numbers. */
  #insert({ name, columns }: AdminTable): string {
    const into = `insert into ${this.#quoted(name)}`;
    const job = this.#quoted("job");
    const list = columns.map((column) => `"${column}"`);
    if (NUMBERED.includes(name)) {
      const numbers = ["seq", ...list.slice(1)].join(", ");
      const given = columns.map((column, index) => `?${index + 1} as "${column}"`).join(", ");
      const values = list.slice(1).map((column) => `g.${column}`);
      return `${into} (${numbers}) select ${["j.seq", ...values].join(", ")}
        from (select ${given}) g join ${job} j on j.id = g.id where true on conflict do nothing`;
    }
    const values = columns.map((column) =>
      name === "claim" && column === "ids"
        ? `(select json_group_array(coalesce(j.seq, o.value)) from json_each(?) o left join ${job} j on j.id = o.value)`
        : "?",
    );
    return `${into} (${list.join(", ")}) values (${values.join(", ")}) on conflict do nothing`;
  }

  #note(key: string, value: string): void {
    this.#run(
      `insert into ${this.#quoted("meta")} (key, value) values (?, ?) on conflict (key) do update set value = excluded.value`,
      [key, value],
    );
  }

  #all(sql: string, values: readonly Plain[] = []): Record<string, unknown>[] {
    try {
      return this.#handle.prepare(sql).all(...values) as Record<string, unknown>[];
    } catch (error) {
      throw toStoreError(error, this.#path);
    }
  }

  #run(sql: string, values: readonly Plain[]): void {
    this.#handle.prepare(sql).run(...values);
  }

  #transaction(body: () => void): void {
    try {
      this.#handle.exec("begin immediate");
      try {
        body();
        this.#handle.exec("commit");
      } catch (error) {
        this.#handle.exec("rollback");
        throw error;
      }
    } catch (error) {
      throw toStoreError(error, this.#path);
    }
  }
}

/** Ours: those with our prefix, but not those of another schema whose name begins with ours ("jobs" beside "jobs_eu"). */
function entriesOf(handle: Handle, schema: string): Entry[] {
  const all = handle
    .prepare("select type, name, sql from sqlite_master where sql is not null order by type, name")
    .all() as unknown as Entry[];
  const names = all.map(({ name }) => name);
  const others = names
    .filter((name) => name.endsWith("_migration") && name.startsWith(`${schema}_`))
    .map((name) => name.slice(0, -"_migration".length))
    .filter((other) => other !== schema && names.includes(`${other}_meta`));
  return all.filter(
    ({ name }) => name.startsWith(`${schema}_`) && !others.some((other) => name.startsWith(`${other}_`)),
  );
}

function compare(expected: readonly Entry[], found: readonly Entry[]): string[] {
  const plain = (sql: string | null): string => (sql ?? "").replaceAll(/\s+/g, " ");
  const byName = new Map(found.map((entry) => [entry.name, entry]));
  const drift: string[] = [];
  for (const { type, name, sql } of expected) {
    const there = byName.get(name);
    byName.delete(name);
    if (there === undefined) drift.push(`${type} ${name} is missing`);
    else if (plain(there.sql) !== plain(sql)) drift.push(`${type} ${name} differs from the migrations`);
  }
  // Indexes of an operator's own do no harm; what `move` puts there is told by other means.
  for (const { type, name } of byName.values())
    if (type === "table" || type === "view") drift.push(`${type} ${name} is unexpected`);
  return drift;
}

/** SQLite has no booleans and no lists: 0 and 1, and JSON text. */
function stored(value: Plain): string | number | null {
  if (typeof value === "boolean") return value ? 1 : 0;
  return typeof value === "object" && value !== null ? JSON.stringify(value) : value;
}
