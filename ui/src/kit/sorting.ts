// Tables whose rows are all on the page, by a column that somebody chose. Which one is in the address, so that a link shows what
// its sender saw: `?sort=ready` upwards, `?sort=-ready` downwards. Pure.
//
// Lists that come in pages are not sorted here: the page would be in order, and what is behind it nobody knows.
import type { CappedCount } from "../../../src/dashboard/api/contract.ts";

/** What rows are told apart by. A count that stopped at its cap is more than the same count that did not. */
export type Sortable = string | number | boolean | CappedCount | null;

export interface Order {
  /** Of the column, as `slugOf` has it. */
  readonly column: string;
  readonly down: boolean;
}

export interface SortColumn<T> {
  readonly head: string;
  readonly by?: (row: T) => Sortable;
}

/** A column's name in the address: "Rate used" is rate-used. */
export function slugOf(head: string): string {
  return head
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, "-")
    .replaceAll(/^-|-$/g, "");
}

/** Null: no order was chosen, or one that this table does not have. */
export function orderOf<T>(text: string | null, columns: readonly SortColumn<T>[]): Order | null {
  if (text === null) return null;
  const down = text.startsWith("-");
  const column = down ? text.slice(1) : text;
  return columns.some(({ head, by }) => by !== undefined && slugOf(head) === column)
    ? { column, down }
    : null;
}

/**
 * What a press on a column's head asks for, as it stands in the address: names upwards first and figures downwards, then the other way
 * round, then as they came (null).
 */
export function pressed(
  current: Order | null,
  column: { readonly head: string; readonly num?: boolean },
): string | null {
  const slug = slugOf(column.head);
  const first = column.num === true;
  const down = current?.column !== slug ? first : current.down === first ? !first : null;
  return down === null ? null : `${down ? "-" : ""}${slug}`;
}

/** Rows in order. What has no value is last either way; what is alike stays as it came. */
export function sorted<T>(
  rows: readonly T[],
  columns: readonly SortColumn<T>[],
  order: Order | null,
): readonly T[] {
  const by = order === null ? undefined : columns.find(({ head }) => slugOf(head) === order.column)?.by;
  if (order === null || by === undefined) return rows;
  const sign = order.down ? -1 : 1;
  return rows
    .map((row) => ({ row, value: by(row) }))
    .sort((a, b) => {
      if (a.value === null || b.value === null) return Number(a.value === null) - Number(b.value === null);
      return sign * compared(a.value, b.value);
    })
    .map(({ row }) => row);
}

const names = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

function compared(a: NonNullable<Sortable>, b: NonNullable<Sortable>): number {
  if (typeof a === "string" && typeof b === "string") return names.compare(a, b);
  return figure(a) - figure(b);
}

function figure(value: NonNullable<Sortable>): number {
  if (typeof value === "object") return value.count + (value.more ? 0.5 : 0);
  const number = Number(value);
  return Number.isNaN(number) ? 0 : number;
}
