// All rows of a database, as what can be compared with the rows of another one: instants, ids and numbers that a database gives
// out stand there as what they are, and not by their values.
import { WAITING_AT } from "../../src/jobs/job.ts";
import { TABLES } from "../../src/storage/catalogue.ts";
import type { FreshStore } from "./stores.ts";

const OWN = TABLES.filter((table) => !["migration", "meta", "token"].includes(table));
/** Numbers that a database gives out. */
const GIVEN_OUT = new Set([
  "token",
  "session",
  "probe_session",
  "counted",
  "job_type",
  "lane",
  "lanes",
  "rowKey",
  "held",
]);
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

export type Tables = Readonly<Record<string, readonly string[]>>;
type Rows = readonly { readonly table: string; readonly row: Readonly<Record<string, unknown>> }[];

export async function empty(fresh: FreshStore): Promise<void> {
  if (fresh.dialect === "postgres")
    await fresh.query(OWN.map((table) => `delete from ${fresh.table(table)}`).join(";\n"));
  else for (const table of OWN) await fresh.query(`delete from ${fresh.table(table)}`);
}

async function allRows(fresh: FreshStore): Promise<Rows> {
  if (fresh.dialect === "postgres") {
    const each = OWN.map(
      (table) => `select '${table}' as "table", to_jsonb(x) as "row" from ${fresh.table(table)} x`,
    );
    return (await fresh.query(each.join("\nunion all "))) as unknown as Rows;
  }
  const found: { table: string; row: Record<string, unknown> }[] = [];
  for (const table of OWN)
    for (const row of await fresh.query(`select * from ${fresh.table(table)}`)) found.push({ table, row });
  return found;
}

/** Says of values what they are; ids of jobs by the order in which the jobs came. */
export type Shown = (value: unknown, column?: string) => unknown;

/** `ignored`: "table" or "table.column". */
export async function tablesOf(
  fresh: FreshStore,
  ignored: readonly string[] = [],
): Promise<{ tables: Tables; shown: Shown }> {
  const rows = await allRows(fresh);
  const jobs = rows.flatMap(({ table, row }) => (table === "job" ? [String(row["id"])] : [])).sort();
  const names = new Map(jobs.map((id, n) => [id, `job ${n}`]));
  const shown: Shown = (value, column) => {
    if (value === null || value === undefined) return null;
    if (column !== undefined && GIVEN_OUT.has(column)) return "given out";
    if (typeof value === "boolean") return Number(value);
    if (typeof value === "number")
      return value === WAITING_AT ? "never" : value > 1e11 ? "an instant" : value;
    if (typeof value === "string")
      return value
        .replace(UUID, (id) => names.get(id) ?? "an id")
        .replace(/\d{12,}(\.\d+)?/g, "an instant")
        .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "an instant");
    if (value instanceof Date) return "an instant";
    if (value instanceof Map || value instanceof Set) return shown([...value]);
    if (Array.isArray(value)) return value.map((one) => shown(one));
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, shown(one, key)]));
  };
  const tables: Record<string, string[]> = {};
  for (const { table, row } of rows) {
    if (ignored.includes(table)) continue;
    const kept = Object.entries(row)
      .filter(([column]) => !ignored.includes(`${table}.${column}`))
      .map(([column, value]) => {
        const number =
          typeof value === "number" && (column === "id" || (column === "seq" && table !== "step"));
        // The jobs of a claim: SQLite has their numbers.
        if (column === "ids")
          return [column, (typeof value === "string" ? (JSON.parse(value) as []) : (value as [])).length];
        const text = shown(value, column);
        // The rates of a claim name lanes by their numbers.
        if (column === "rates" && typeof text === "string")
          return [column, text.replaceAll(/\\?"\d+\\?":/g, "a lane:")];
        return [column, number ? "given out" : text];
      });
    (tables[table] ??= []).push(JSON.stringify(Object.fromEntries(kept)));
  }
  // Two bells for one lane say what one says.
  if (tables["lane_wakeup"] !== undefined) tables["lane_wakeup"] = [...new Set(tables["lane_wakeup"])];
  for (const list of Object.values(tables)) list.sort();
  return { tables, shown };
}
