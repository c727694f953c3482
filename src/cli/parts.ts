/**
 * Parts of a client that a command can do without at compile time: schedules, budgets, breakers, lanes.
 *
 * Their commands are written against the public names alone (`hf.schedules.list()` …), so that a build without one of them
 * says so instead of failing somewhere inside.
 */
import { StateError } from "../errors.ts";
import type { Context } from "./context.ts";
import { shownValue, table } from "./text.ts";

export type Part = Readonly<Record<string, ((...args: never[]) => unknown) | undefined>>;
export type Verb = (...args: unknown[]) => Promise<unknown>;

/** A verb of a namespace of the client. */
export async function verb(ctx: Context, part: string, name: string): Promise<Verb> {
  const hf = (await ctx.client()) as unknown as Record<string, Part | undefined>;
  const found = hf[part]?.[name];
  if (found === undefined)
    throw new StateError(
      "ILLEGAL_MOVE",
      `This version of Holdfast has no hf.${part}.${name}: upgrade the package.`,
    );
  return (found as Verb).bind(hf[part]);
}

/** Rows of whatever a list gives, as a table with these columns. */
export function rowTable(
  rows: readonly Readonly<Record<string, unknown>>[],
  columns: readonly string[],
): string {
  if (rows.length === 0) return "There are none.";
  const present = columns.filter((column) =>
    rows.some((row) => row[column] !== undefined && row[column] !== null),
  );
  return table(
    present.map((title) => ({
      title,
      most: 60,
      cell: (row: Readonly<Record<string, unknown>>) => {
        const value = row[title];
        return value instanceof Date ? value.toISOString() : shownValue(value, 60);
      },
    })),
    rows,
  );
}
