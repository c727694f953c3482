// Sorting of tables whose rows are all loaded. The column is part of the address: `?sort=ready` ascending,
// `?sort=-ready` descending. Pure. Lists in pages are not sorted here, because rows beyond the page are unknown.
import type { CappedCount } from "../../../src/dashboard/api/contract.ts";

/** A value to sort by. A capped count is more than the same exact count. */
export type Sortable = string | number | boolean | CappedCount | null;

export interface Order {
  /** The column, as `slugOf` names it. */
  readonly column: string;
  readonly down: boolean;
}

export interface SortColumn<T> {
  readonly head: string;
  readonly by?: (row: T) => Sortable;
}

/** A column's name in the address: rate-used for "Rate used". */
export function slugOf(head: string): string {
  return head
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, "-")
    .replaceAll(/^-|-$/g, "");
}

/** Null: no order, or an unknown column. */
export function orderOf<T>(text: string | null, columns: readonly SortColumn<T>[]): Order | null {
  if (text === null) return null;
  const down = text.startsWith("-");
  const column = down ? text.slice(1) : text;
  return columns.some(({ head, by }) => by !== undefined && slugOf(head) === column)
    ? { column, down }
    : null;
}

/**
 * The order after a click on a column's head: names ascending first, numbers descending first, then reversed, then
 * unsorted (null).
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

/** Sorted rows. Missing values are last in both directions; equal rows keep their order. */
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
