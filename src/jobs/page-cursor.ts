/** Where a list goes on: the place of the last job that was given out, as text, so that it holds when that job is gone. */
import { UsageError } from "../errors.ts";
import type { RowKey } from "./job.ts";
import { isId } from "../values/id.ts";
import type { Row } from "../storage/catalogue.ts";
import type { Driver } from "../storage/driver.ts";
import { text } from "./rows.ts";

/** A row's place: a column of its own where the dialect has numbers, else the id. */
export function rowKeyIn(row: Row): RowKey {
  const rowKey = row["row_key"];
  return typeof rowKey === "number" ? rowKey : text(row, "id");
}

/** The first of the two in the order of lists, newest first. */
export function newestFirst(a: { readonly rowKey: RowKey }, b: { readonly rowKey: RowKey }): number {
  return a.rowKey < b.rowKey ? 1 : -1;
}

/** A cursor as a statement takes it. @throws UsageError BAD_CURSOR */
export function cursorFor(driver: Pick<Driver, "dialect">, cursor: string | null): string | null {
  if (cursor === null) return null;
  const fits = driver.dialect === "sqlite" ? /^\d{1,15}$/.test(cursor) : isId(cursor);
  if (fits) return cursor;
  throw new UsageError("BAD_CURSOR", "cursor must be the value returned with the previous page.");
}
