// Tables by a column that somebody chose.
import { describe, expect, test } from "vitest";
import { orderOf, pressed, type SortColumn, slugOf, sorted } from "../../ui/src/kit/sorting.ts";

interface Row {
  readonly name: string;
  readonly count: number | null;
  readonly capped?: { readonly count: number; readonly more: boolean };
}
const columns: SortColumn<Row>[] = [
  { head: "Name", by: ({ name }) => name },
  { head: "Rate used", by: ({ count }) => count },
  { head: "Ready", by: ({ capped }) => capped ?? null },
  { head: "Last 30 min" },
];
const names = (rows: readonly Row[], text: string | null): string[] =>
  sorted(rows, columns, orderOf(text, columns)).map(({ name }) => name);

describe("sorting", () => {
  test("[K2] the address names a column and the way, and what no column is called sorts nothing", () => {
    expect(slugOf("Rate used")).toBe("rate-used");
    expect(orderOf("rate-used", columns)).toEqual({ column: "rate-used", down: false });
    expect(orderOf("-name", columns)).toEqual({ column: "name", down: true });
    for (const text of [null, "", "-", "nobody", "last-30-min", "__proto__"])
      expect(orderOf(text, columns), String(text)).toBeNull();
    const rows: Row[] = ["b", "a"].map((name) => ({ name, count: 1 }));
    expect(names(rows, "nobody")).toEqual(["b", "a"]);
  });

  test("[K2] names are in the order that people count in, and figures by size", () => {
    const rows: Row[] = ["mail-10", "Mail-9", "zoo", "éclair", "mail-1"].map((name, n) => ({
      name,
      count: n,
    }));
    expect(names(rows, "name")).toEqual(["éclair", "mail-1", "Mail-9", "mail-10", "zoo"]);
    expect(names(rows, "-name")).toEqual(["zoo", "mail-10", "Mail-9", "mail-1", "éclair"]);
    expect(names(rows, "-rate-used")).toEqual(["mail-1", "éclair", "zoo", "Mail-9", "mail-10"]);
  });

  test("[K2] what has no value is last either way, and what is alike stays as it came", () => {
    const rows: Row[] = [
      { name: "none", count: null },
      { name: "two", count: 2 },
      { name: "one", count: 1 },
      { name: "also two", count: 2 },
      { name: "none as well", count: null },
    ];
    expect(names(rows, "rate-used")).toEqual(["one", "two", "also two", "none", "none as well"]);
    expect(names(rows, "-rate-used")).toEqual(["two", "also two", "one", "none", "none as well"]);
    expect(rows.map(({ name }) => name)[0]).toBe("none");
  });

  test("[K2] a count that stopped at its cap is more than the same that did not", () => {
    const rows: Row[] = [
      { name: "at the cap", count: 0, capped: { count: 10_000, more: true } },
      { name: "as many", count: 0, capped: { count: 10_000, more: false } },
      { name: "few", count: 0, capped: { count: 3, more: false } },
    ];
    expect(names(rows, "-ready")).toEqual(["at the cap", "as many", "few"]);
    expect(names(rows, "ready")).toEqual(["few", "as many", "at the cap"]);
  });

  test("[K2] a press sorts, the next one turns it round, and the third leaves it as it came", () => {
    const name = { head: "Name" };
    const used = { head: "Rate used", num: true };
    expect(pressed(null, name)).toBe("name");
    expect(pressed({ column: "name", down: false }, name)).toBe("-name");
    expect(pressed({ column: "name", down: true }, name)).toBeNull();
    expect(pressed({ column: "name", down: true }, used)).toBe("-rate-used");
    expect(pressed({ column: "rate-used", down: true }, used)).toBe("rate-used");
    expect(pressed({ column: "rate-used", down: false }, used)).toBeNull();
  });
});
