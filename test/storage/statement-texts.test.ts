// Every statement of both catalogues as its database receives it, in two files that are read and reviewed:
// snapshots/statements.sqlite.sql and snapshots/statements.postgres.sql. `npx vitest -u` writes them again.
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse, STATEMENTS, type StatementName, type Statements } from "../../src/storage/catalogue.ts";
import { compiled, postgresTables } from "../../src/storage/postgres/driver.ts";
import { lateJobs } from "../../src/storage/postgres/recent.ts";
import { statements as postgresStatements } from "../../src/storage/postgres/statements/jobs.ts";
import { sqliteTables } from "../../src/storage/sqlite/driver.ts";
import { severalRows } from "../../src/storage/sqlite/group-commit.ts";
import { statements as sqliteStatements } from "../../src/storage/sqlite/statements/jobs.ts";

const COLUMNS = 120;
const names = Object.keys(STATEMENTS) as StatementName[];

/** One text of a statement; `title` tells the texts of one statement apart. */
interface Shown {
  readonly title: string;
  readonly sql: string;
  readonly parameters: readonly string[];
}

function parametersOf(text: string): string[] {
  return parse(text).slots.map(({ param, column }) => (column === null ? param : `${param}.${column}`));
}

/** The texts of an entry. A composed statement is shown with no field of its filter and with all of them. */
function textsOf(catalogue: Statements, name: StatementName): readonly string[] {
  const entry = catalogue[name];
  if (typeof entry === "function") return [entry(() => false), entry(() => true)];
  return typeof entry === "string" ? [entry] : entry;
}

function inPostgres(title: string, text: string): Shown {
  return { title, sql: compiled(text).text, parameters: [...new Set(parametersOf(text))] };
}

/** A list of rows is bound row by row, and an insert of ten rows or more in groups of ten. */
function inSqlite(title: string, text: string): Shown[] {
  const parsed = parse(text);
  const parameters = parametersOf(text);
  const several = severalRows(parsed);
  const one = { title, sql: parsed.pieces.join("?"), parameters };
  return several === null ? [one] : [one, { title: `${title}, ten rows`, sql: several, parameters }];
}

/** Words at which a long line is broken; quoted text stays in one piece. */
function wordsOf(line: string): string[] {
  return line.match(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g) ?? [];
}

function wrapped(line: string): string[] {
  const indent = /^ */.exec(line)?.[0] ?? "";
  const lines: string[] = [];
  let current = indent;
  for (const word of wordsOf(line)) {
    const longer = current.trim() === "" ? `${current}${word}` : `${current} ${word}`;
    if (longer.length <= COLUMNS || current.trim() === "") current = longer;
    else {
      lines.push(current);
      current = `${indent}    ${word}`;
    }
  }
  return [...lines, current];
}

function shown({ title, sql, parameters }: Shown): string {
  const lines = sql.split("\n").filter((line) => line.trim() !== "");
  const indents = lines.slice(1).map((line) => line.search(/\S/));
  const indent = lines[0]?.startsWith(" ") === true ? Math.min(...lines.map((l) => l.search(/\S/))) : 0;
  const rest = lines[0]?.startsWith(" ") === true ? indent : Math.max(0, Math.min(...indents, Infinity) - 2);
  const flush = lines.map((line, i) => line.slice(i === 0 ? indent : Math.min(rest, line.search(/\S/))));
  const taken =
    parameters.length === 0 ? "" : wrapped(`-- with ${parameters.join(", ")}`).join("\n-- ") + "\n";
  return `-- ${title}\n${taken}${flush.flatMap(wrapped).join("\n").trimEnd()};\n`;
}

function file(dialect: string): string {
  return join(import.meta.dirname, "snapshots", `statements.${dialect}.sql`);
}

test("SQLite receives the statements of the committed list", async () => {
  const catalogue = sqliteStatements(sqliteTables("holdfast"));
  const all = names.flatMap((name) => {
    const texts = textsOf(catalogue, name);
    return texts.flatMap((text, i) =>
      inSqlite(texts.length === 1 ? name : `${name}, ${i + 1} of ${texts.length}`, text),
    );
  });
  await expect(all.map(shown).join("\n")).toMatchFileSnapshot(file("sqlite"));
});

test("Postgres receives the statements of the committed list, claims also with one day's table", async () => {
  const tables = postgresTables("holdfast");
  const catalogue = postgresStatements(tables);
  const ofDay = postgresStatements(tables, '"holdfast"."job_20260101"');
  const all = names.flatMap((name) => {
    const texts = textsOf(catalogue, name);
    const ofOneDay = textsOf(ofDay, name);
    return texts.flatMap((text, i) => {
      const title = texts.length === 1 ? name : `${name}, ${i + 1} of ${texts.length}`;
      const day = ofOneDay[i] ?? text;
      const plain = inPostgres(title, text);
      return text === day ? [plain] : [plain, inPostgres(`${title}, from the table of one day`, day)];
    });
  });
  const late = inPostgres("lateJobs", lateJobs(tables));
  await expect([...all, late].map(shown).join("\n")).toMatchFileSnapshot(file("postgres"));
});
