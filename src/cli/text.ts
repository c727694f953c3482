/**
 * Texts for a terminal: job data made harmless, tables, instants. Durations and sizes are in values/amounts.ts.
 *
 * Invariant: nothing that comes from a database reaches a terminal with a control character in it. A job's name or error can
 * hold escape sequences that move the cursor, set the window's title or answer for the user (terminal injection).
 * Pure.
 */
import { stripVTControlCharacters } from "node:util";
import { duration, grouped } from "../values/amounts.ts";

export { duration, grouped } from "../values/amounts.ts";

// C0 and C1 controls, DEL, and the marks that turn the direction of text around.
const CONTROLS =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029]/g;

/** Without escape sequences; other control characters as \x1b is written. Newlines and tabs stay. */
export function harmless(text: string): string {
  return stripVTControlCharacters(text).replaceAll(CONTROLS, visible);
}

/** As `harmless`, on one line, and no longer than `most`. */
export function oneLine(text: string, most = Infinity): string {
  const line = harmless(text).replaceAll(/\s+/g, " ").trim();
  return line.length > most ? `${line.slice(0, Math.max(0, most - 1))}…` : line;
}

function visible(character: string): string {
  const code = character.charCodeAt(0);
  return code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
}

/** JSON that is safe for a terminal: control characters that JSON does not escape are escaped too. */
export function json(value: unknown, indent?: number): string {
  return JSON.stringify(value, plain, indent).replaceAll(
    /[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function plain(_key: string, value: unknown): unknown {
  if (typeof value === "bigint") return Number(value);
  return value instanceof Map ? Object.fromEntries(value) : value;
}

/** A value of a job on one line. */
export function shownValue(value: unknown, most = 80): string {
  if (value === null || value === undefined) return "–";
  return oneLine(typeof value === "string" ? value : json(value), most);
}

export interface Column<Row> {
  readonly title: string;
  readonly align?: "left" | "right";
  /** Cut to this. */
  readonly most?: number;
  /** Columns with a number are omitted from a table that is too wide, the lowest first. */
  readonly spare?: number;
  /** Columns of a table that is too wide are cut to this, the last column first, before any is omitted. */
  readonly least?: number;
  readonly cell: (row: Row) => string | number;
}

/** Aligned columns; the last one is not padded. `paint` colours a padded cell. */
export function table<Row>(
  all: readonly Column<Row>[],
  rows: readonly Row[],
  paint: (text: string, title: string, row: Row | null) => string = (text) => text,
  width = Infinity,
): string {
  const columns = width === Infinity ? all : fitting(all, rows, width);
  const cells = rows.map((row) =>
    columns.map(({ cell, most }) => {
      const value = cell(row);
      return oneLine(typeof value === "number" ? grouped(value) : value, most);
    }),
  );
  const widths = columns.map(({ title }, i) =>
    Math.max(title.length, ...cells.map((row) => (row[i] ?? "").length)),
  );
  const line = (texts: readonly string[], row: Row | null): string =>
    texts
      .map((text, i) => {
        const right = columns[i]?.align === "right";
        const last = i === texts.length - 1;
        const padded = right ? text.padStart(widths[i] ?? 0) : last ? text : text.padEnd(widths[i] ?? 0);
        return paint(padded, columns[i]?.title ?? "", row);
      })
      .join("  ")
      .trimEnd();
  const titles = columns.map(({ title }) => title);
  return [line(titles, null), ...cells.map((texts, i) => line(texts, rows[i] as Row))].join("\n");
}

/** The columns that fit the width: cut first, then omitted. */
function fitting<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  width: number,
): readonly Column<Row>[] {
  const widest = table(columns, rows)
    .split("\n")
    .reduce((most, line) => Math.max(most, line.length), 0);
  if (widest <= width) return columns;
  const cut = narrowed(columns, rows, widest - width);
  if (cut !== null) return cut;
  const [first] = columns
    .filter(({ spare }) => spare !== undefined)
    .sort((a, b) => (a.spare ?? 0) - (b.spare ?? 0));
  return first === undefined
    ? columns
    : fitting(
        columns.filter((column) => column !== first),
        rows,
        width,
      );
}

/** The columns cut by this many characters; null if they cannot be. */
function narrowed<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  tooMuch: number,
): readonly Column<Row>[] | null {
  let left = tooMuch;
  const cut = columns.toReversed().map((column) => {
    if (column.least === undefined || left <= 0) return column;
    const [{ length: wide }] = table([column], rows)
      .split("\n")
      .toSorted((a, b) => b.length - a.length) as [string, ...string[]];
    const most = Math.max(column.least, column.title.length, wide - left);
    if (most >= wide) return column;
    left -= wide - most;
    return { ...column, most };
  });
  return left <= 0 ? cut.toReversed() : null;
}

/** "1,234", or "10,000+" if the count stopped there. */
export function shownCount({ count, more }: { readonly count: number; readonly more: boolean }): string {
  return `${grouped(count)}${more ? "+" : ""}`;
}

/** How long ago or in how long, from `now`. */
export function relative(at: Date | null, now: number): string {
  if (at === null) return "–";
  const ms = at.getTime() - now;
  return ms > 0 ? `in ${duration(ms)}` : `${duration(-ms)} ago`;
}

/** A bar of `width` cells. */
export function bar(share: number, width: number): string {
  const filled = Math.max(0, Math.min(width, Math.round(share * width)));
  return "█".repeat(filled) + "░".repeat(width - filled);
}

/** Lines of text wrapped at words. */
export function wrap(text: string, width: number, indent = ""): string {
  const lines: string[] = [];
  for (const paragraph of text.split("\n")) {
    let line = "";
    for (const word of paragraph.split(" ")) {
      if (line !== "" && line.length + 1 + word.length > width) {
        lines.push(line);
        line = word;
      } else line = line === "" ? word : `${line} ${word}`;
    }
    lines.push(line);
  }
  return lines.map((line) => (line === "" ? "" : indent + line)).join("\n");
}

/** A painted line cut to a number of columns. Colours take no room and are reset at the end. */
export function clipped(line: string, columns: number): string {
  // oxlint-disable-next-line no-control-regex -- colours begin with this character
  const parts = [...line.matchAll(/(\u001b\[[0-9;]*m)|[^\u001b]+/g)];
  const width = parts.reduce(
    (sum, [part, colour]) => sum + (colour === undefined ? Array.from(part).length : 0),
    0,
  );
  if (width <= columns) return line;
  let left = Math.max(0, columns - 1);
  let shown = "";
  for (const [part, colour] of parts) {
    const signs = colour === undefined ? Array.from(part).slice(0, left) : [part];
    if (colour === undefined) left -= signs.length;
    shown += signs.join("");
  }
  return `${shown}…\u001b[0m`;
}

/** A date as it is written in ISO 8601; null for anything else. */
export function dateOf(text: string): Date | null {
  const date = /^\d{4}-\d\d-\d\d/.test(text) ? new Date(text) : new Date(Number.NaN);
  return Number.isNaN(date.getTime()) ? null : date;
}
