/**
 * Lifts everything from one database to another: SQLite to Postgres, back, or between two of a name. Ids are kept.
 *
 *   begin ─▶ source frozen, target on hold ─▶ copy, table by table, batch by batch ─▶ compare every row ─▶ done
 *     └──────────── interrupted anywhere: run it again, and it goes on behind the last batch ────────────┘
 *
 * Invariants: from the freeze on nothing can be written to the source, whoever tries (triggers, not good will), so what is
 * copied is one state; a batch and the note of how far it got are one transaction, and rows that are there already are
 * passed over, so nothing is lost or doubled; nothing runs on the target before every row of both has been compared
 * (a hold stops its workers); only then is the move done, and the source stays frozen and says where its jobs are.
 * The tables are read from the databases' own catalogues, so that whatever a migration adds comes along.
 *
 * Not here: stopping the source's workers first (the CLI does), how a database freezes or copies (storage/admin.ts).
 */
import { createHash } from "node:crypto";
import { StateError, StoreError } from "../errors.ts";
import { DEFAULT_SCHEMA } from "../values/name.ts";
import {
  type Admin,
  type AdminTable,
  LANE_WAKEUPS,
  MOVED_AT,
  MOVED_TO,
  type Plain,
  type PlainRow,
  RETURNED_CAPACITY,
} from "../storage/admin.ts";

/** How far a move is. */
export interface MoveProgress {
  readonly phase: "copy" | "compare";
  readonly table: string;
  readonly rows: number;
  readonly total: number;
}

/** What was moved. */
export interface MoveReport {
  readonly from: string;
  readonly to: string;
  readonly tables: readonly { readonly table: string; readonly rows: number }[];
  /** True: an earlier run had begun. */
  readonly resumed: boolean;
}

export interface MoveOptions {
  /** Rows in one transaction; fewer where rows are large. */
  readonly batch?: number;
  readonly onProgress?: (progress: MoveProgress) => void;
}

const HOLD = "holdfast.move";
const FROM = "move.from";
const TO = "move.to";
const STATE = "move.state";
const mostBytes = 8_000_000;

interface Cursor {
  readonly after: readonly Plain[] | null;
  readonly rows: number;
  readonly done: boolean;
}

/**
 * Moves, or goes on with a move. Both databases must be migrated by this version.
 *
 * @throws StateError MOVE_REFUSED
 * @throws StoreError MOVE_INCOMPLETE
 */
export async function move(source: Admin, target: Admin, options: MoveOptions = {}): Promise<MoveReport> {
  const { tables, resumed, done } = await begin(source, target);
  if (!done) {
    await source.freeze(`This database has moved to ${placeOf(target, source)}`);
    await source.setMeta(TO, await instanceOf(target));
    const total = await sumOf(source, tables);
    await copyAll(source, target, tables, total, options);
    await target.setLaneWakeups(await source.laneWakeups());
    await target.setReturnedCapacity(await source.returnedCapacity());
    await compareAll(source, target, tables, total, options);
    await target.raiseCounters(await source.lastToken());
    await target.setMeta(STATE, "done");
  }
  await target.unhold(HOLD);
  if ((await source.meta(MOVED_TO)) === null) {
    await source.setMeta(MOVED_AT, String(Date.now()));
    await source.setMeta(MOVED_TO, placeOf(target, source));
  }
  const report: { table: string; rows: number }[] = [];
  for (const { name } of tables) report.push({ table: name, rows: await source.count(name) });
  return { from: source.place, to: target.place, tables: report, resumed };
}

/** Where one of two databases is, with its schema where an address alone would lead to another. */
export function placeOf(
  one: Pick<Admin, "dialect" | "place" | "schema">,
  other: Pick<Admin, "schema">,
): string {
  if (one.schema === other.schema && one.schema === DEFAULT_SCHEMA) return one.place;
  return `${one.place} (${one.dialect === "sqlite" ? "prefix" : "schema"} ${one.schema})`;
}

/**
 * Gives a move up: the source takes writes again, and the target, which holds a part of the jobs, is to be dropped.
 *
 * @throws StateError MOVE_REFUSED when the move is done: the jobs are at the target then
 */
export async function abortMove(source: Admin): Promise<void> {
  if ((await source.meta(MOVED_TO)) !== null)
    throw refused(
      `The jobs of ${source.place} were moved to ${await source.meta(MOVED_TO)}. To reverse the move, move them into an empty database.`,
    );
  await source.thaw();
  await source.setMeta(TO, null);
}

/** Whether the two fit together, and whether an earlier run had begun. Nothing is written to the source yet. */
async function begin(
  source: Admin,
  target: Admin,
): Promise<{ tables: readonly Pair[]; resumed: boolean; done: boolean }> {
  const [sourceId, targetId] = [await instanceOf(source), await instanceOf(target)];
  if (sourceId === targetId) throw refused(`${source.place} and ${target.place} are the same database.`);
  const goingTo = await source.meta(TO);
  if (goingTo !== null && goingTo !== targetId)
    throw refused(
      `A move of ${source.place} to another database has begun. Finish it, or abort it with --abort.`,
    );
  if ((await target.meta(MOVED_TO)) !== null || (await target.meta(TO)) !== null)
    throw refused(
      `${target.place} has itself been moved and refuses writes. Drop it first (holdfast drop --force), or choose another.`,
    );
  const tables = pairs(source, target, await source.tables(), await target.tables());
  const from = await target.meta(FROM);
  if (from !== null && from !== sourceId)
    throw refused(`${target.place} holds the jobs of another database. Choose an empty one.`);
  const done = from !== null && (await target.meta(STATE)) === "done";
  if (from === null) {
    for (const { name } of tables)
      if ((await target.count(name)) > 0)
        throw refused(
          `${target.place} is not empty: its table ${name} has rows. Move into an empty database, or drop it first.`,
        );
    await target.setMeta(FROM, sourceId);
  }
  if (!done) {
    const hold = tables.find(({ name }) => name === "hold");
    if (hold !== undefined)
      await target.write(
        hold.target,
        [
          {
            name: HOLD,
            queues: null,
            reason: `jobs are being moved here from ${source.place}`,
            set_at: Date.now(),
          },
        ],
        { key: STATE, value: "copying" },
      );
  }
  return { tables, resumed: from !== null, done };
}

interface Pair {
  readonly name: string;
  readonly source: AdminTable;
  readonly target: AdminTable;
}

function pairs(
  from: Admin,
  to: Admin,
  sources: readonly AdminTable[],
  targets: readonly AdminTable[],
): readonly Pair[] {
  const names = (tables: readonly AdminTable[]): string =>
    tables
      .map(({ name }) => name)
      .sort()
      .join(", ");
  if (names(sources) !== names(targets))
    throw refused(
      `${from.place} has the tables ${names(sources)}; ${to.place} has ${names(targets)}. Migrate both with this version first.`,
    );
  // Jobs first: a database that numbers them gives its other tables the numbers (storage/sqlite/schema-admin.ts).
  const copied = sources
    .filter(({ name }) => name !== LANE_WAKEUPS && name !== RETURNED_CAPACITY)
    .toSorted((a, b) => Number(b.name === "job") - Number(a.name === "job"));
  return copied.map((source) => {
    const target = targets.find(({ name }) => name === source.name) as AdminTable;
    if ([...source.columns].sort().join() !== [...target.columns].sort().join())
      throw refused(`The table ${source.name} has other columns in ${to.place} than in ${from.place}.`);
    return { name: source.name, source, target };
  });
}

async function copyAll(
  source: Admin,
  target: Admin,
  tables: readonly Pair[],
  total: number,
  options: MoveOptions,
): Promise<void> {
  let before = 0;
  for (const pair of tables) {
    let cursor = await cursorOf(target, pair.name);
    let limit = options.batch ?? 500;
    while (!cursor.done) {
      const rows = await source.page(pair.source, cursor.after, limit);
      const last = rows.at(-1);
      cursor = {
        after: last === undefined ? cursor.after : pair.source.key.map((column) => last[column] ?? null),
        rows: cursor.rows + rows.length,
        done: pair.source.key.length === 0 || rows.length < limit,
      };
      await target.write(pair.target, rows, { key: cursorKey(pair.name), value: JSON.stringify(cursor) });
      options.onProgress?.({ phase: "copy", table: pair.name, rows: before + cursor.rows, total });
      limit = nextLimit(rows, limit, options.batch ?? 500);
    }
    before += cursor.rows;
  }
}

/** Rows of a megabyte each come a few at a time. */
function nextLimit(rows: readonly PlainRow[], limit: number, most: number): number {
  if (rows.length === 0) return limit;
  const bytes = rows.reduce((sum, row) => sum + sizeOf(row), 0);
  const each = Math.max(1, bytes / rows.length);
  return Math.max(1, Math.min(most, Math.floor(mostBytes / each)));
}

function sizeOf(row: PlainRow): number {
  let bytes = 0;
  for (const value of Object.values(row)) bytes += typeof value === "string" ? value.length : 8;
  return bytes;
}

/** Every row of both, whatever their order: counts, and a sum over each row's digest. */
async function compareAll(
  source: Admin,
  target: Admin,
  tables: readonly Pair[],
  total: number,
  options: MoveOptions,
): Promise<void> {
  let compared = 0;
  for (const pair of tables) {
    const a = await digestOf(source, pair.source, options);
    const b = await digestOf(target, pair.target, options);
    if (a.rows !== b.rows || a.sum !== b.sum)
      throw new StoreError(
        "MOVE_INCOMPLETE",
        `The table ${pair.name} has ${a.rows} rows in ${source.place} and ${b.rows} in ${target.place}` +
          (a.rows === b.rows ? ", and their contents differ" : "") +
          `. Nothing runs on the target. Another program may have written to it. Drop it and move again.`,
        { details: { table: pair.name, source: a.rows, target: b.rows } },
      );
    compared += a.rows;
    options.onProgress?.({ phase: "compare", table: pair.name, rows: compared, total });
  }
  const rung = async (admin: Admin): Promise<string> =>
    JSON.stringify(
      (await admin.laneWakeups()).map(({ jobType, lane, at, back }) => [jobType, lane, at, back]),
    );
  if ((await rung(source)) !== (await rung(target)))
    throw differs("The table of lane wake-ups", LANE_WAKEUPS, source, target);
  const returnedCapacity = async (admin: Admin): Promise<string> =>
    JSON.stringify((await admin.returnedCapacity()).map(({ queue, n }) => [queue, n]));
  if ((await returnedCapacity(source)) !== (await returnedCapacity(target)))
    throw differs("The table of returned capacity", RETURNED_CAPACITY, source, target);
}

function differs(what: string, table: string, source: Admin, target: Admin): StoreError {
  return new StoreError(
    "MOVE_INCOMPLETE",
    `${what} differs between ${source.place} and ${target.place}. Nothing runs on the target. Another program may have written to it. Drop it and move again.`,
    { details: { table } },
  );
}

async function digestOf(
  admin: Admin,
  table: AdminTable,
  options: MoveOptions,
): Promise<{ rows: number; sum: number }> {
  let after: readonly Plain[] | null = null;
  let limit = options.batch ?? 500;
  let rows = 0;
  let sum = 0;
  for (;;) {
    const page: readonly PlainRow[] = await admin.page(table, after, limit);
    for (const row of page) {
      if (table.name === "hold" && row["name"] === HOLD) continue;
      rows += 1;
      sum = (sum + digest(row, table.columns)) % 2 ** 48;
    }
    const last = page.at(-1);
    if (last === undefined || page.length < limit || table.key.length === 0) return { rows, sum };
    after = table.key.map((column) => last[column] ?? null);
    limit = nextLimit(page, limit, options.batch ?? 500);
  }
}

/** The same for a row however its database writes booleans and lists. */
function digest(row: PlainRow, columns: readonly string[]): number {
  const canonical = columns.toSorted().map((column) => {
    const value = row[column] ?? null;
    if (typeof value === "boolean") return value ? 1 : 0;
    return typeof value === "object" && value !== null ? JSON.stringify(value) : value;
  });
  return createHash("sha1").update(JSON.stringify(canonical)).digest().readUIntBE(0, 6);
}

async function cursorOf(target: Admin, table: string): Promise<Cursor> {
  const text = await target.meta(cursorKey(table));
  return text === null ? { after: null, rows: 0, done: false } : (JSON.parse(text) as Cursor);
}

function cursorKey(table: string): string {
  return `move.cursor.${table}`;
}

async function sumOf(admin: Admin, tables: readonly Pair[]): Promise<number> {
  let sum = 0;
  for (const { name } of tables) sum += await admin.count(name);
  return sum;
}

async function instanceOf(admin: Admin): Promise<string> {
  const instance = await admin.meta("instance");
  if (instance === null) throw refused(`${admin.place} has no Holdfast schema. Run: holdfast migrate`);
  return instance;
}

function refused(message: string): StateError {
  return new StateError("MOVE_REFUSED", message);
}
