// How a statement is executed: on Postgres counted by EXPLAIN ANALYZE, on SQLite as its plan tells.
import { DatabaseSync } from "node:sqlite";
import { Compiler } from "../../src/storage/postgres/driver.ts";
import {
  composed,
  parse,
  type Params,
  type StatementName,
  type Statement,
} from "../../src/storage/catalogue.ts";
import { sqliteTables } from "../../src/storage/sqlite/driver.ts";
import { statements as sqliteStatements } from "../../src/storage/sqlite/statements/jobs.ts";
import type { FreshStore } from "../support/stores.ts";

/** A step of Postgres's plan. */
export interface Node {
  "Node Type": string;
  "Relation Name"?: string;
  "Index Name"?: string;
  "Total Cost": number;
  "Actual Rows": number;
  "Actual Loops": number;
  "Rows Removed by Filter"?: number;
  "Rows Removed by Index Recheck"?: number;
  Plans?: Node[];
}

export function walk(node: Node): Node[] {
  return [node, ...(node.Plans ?? []).flatMap(walk)];
}

/** Rows that were fetched from a table, whether they were wanted or not. Postgres 18 gives averages with fractions. */
export function rowsRead(nodes: readonly Node[], table: RegExp): number {
  const scans = nodes.filter(
    (node) => node["Node Type"].endsWith("Scan") && table.test(node["Relation Name"] ?? ""),
  );
  const read = scans.map(
    (node) =>
      (node["Actual Rows"] +
        (node["Rows Removed by Filter"] ?? 0) +
        (node["Rows Removed by Index Recheck"] ?? 0)) *
      node["Actual Loops"],
  );
  return Math.ceil(read.reduce((sum, rows) => sum + rows, 0));
}

/** The tables of which something was read from end to end. */
export function wholeTables(nodes: readonly Node[], table: RegExp): unknown[] {
  return nodes
    .filter((node) => node["Node Type"] === "Seq Scan" && rowsRead([node], table) > 0)
    .map((node) => node["Relation Name"]);
}

/** Runs it on Postgres, and tells what it did. */
export async function explainOnPostgres(
  fresh: FreshStore,
  name: StatementName,
  params: Params,
): Promise<Node[]> {
  const { text, values } = new Compiler(fresh.options.schema!).prepare({ name, params });
  const [row] = await fresh.query(`explain (analyze, buffers, format json) ${text}`, [...values]);
  const [{ Plan }] = row!["QUERY PLAN"] as [{ Plan: Node }];
  return walk(Plan);
}

/** The texts of a statement; of one that is composed, the text with every condition. */
export function textsOf(statement: Statement): readonly string[] {
  return typeof statement === "function" ? [statement(() => true)] : [statement].flat();
}

/** The lines of SQLite's plan. */
export function planOnSqlite(fresh: FreshStore, name: StatementName): string[] {
  const handle = new DatabaseSync(fresh.url.slice("sqlite:".length));
  try {
    const text = textsOf(sqliteStatements(sqliteTables("holdfast"))[name])[0] as string;
    return handle
      .prepare(`explain query plan ${parse(text).pieces.join("?")}`)
      .all()
      .map((step) => String((step as { detail: unknown }).detail));
  } finally {
    handle.close();
  }
}

/**
 * Runs it on SQLite, the first statement of a list, in a transaction that is rolled back, and tells how many rows of `ready` it has met. SQLite
 * does not count them itself, so each condition on the table begins with a function that does.
 */
export function rowsReadOnSqlite(fresh: FreshStore, name: StatementName, params: Params): number {
  const handle = new DatabaseSync(fresh.url.slice("sqlite:".length), { timeout: 5_000 });
  let read = 0;
  try {
    handle.function("met", { varargs: true }, () => {
      read += 1;
      return 1;
    });
    const [entry] = [composed(sqliteStatements(sqliteTables("holdfast")), { name, params }).text()].flat();
    const { pieces, slots } = parse(entry as string);
    const text = pieces.join("?").replaceAll(/("holdfast_ready" (\w+)\s+where) /g, "$1 met($2.seq) and ");
    const values = slots.map(({ param }) => {
      const value = params[param] ?? null;
      return typeof value === "object" && value !== null ? JSON.stringify(value) : value;
    });
    handle.exec("begin");
    handle.prepare(text).all(...(values as (string | number | null)[]));
    handle.exec("rollback");
    return read;
  } finally {
    handle.close();
  }
}

/** A look at jobs without a filter. */
export const nothingAsked = {
  ids: null,
  states: ["ready", "done"],
  queues: null,
  names: null,
  group: null,
  retrying: false,
  workflow: null,
  batch: null,
  deep: false,
  lane: null,
  key: null,
  trace: null,
  since: null,
  until: null,
  search: null,
  attemptMin: null,
  attemptMax: null,
  endedMin: null,
  endedMax: null,
  ranMin: null,
  ranMax: null,
  worker: null,
  error: null,
  paths: null,
  wants: null,
  cursor: null,
  before: "ffffffff-ffff-ffff-ffff-ffffffffffff",
  from: "00000000-0000-0000-0000-000000000000",
  scan: 1_000,
  limit: 50,
};
