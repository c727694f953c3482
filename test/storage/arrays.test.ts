/** Arrays are written by us, so Postgres must read from them exactly what went in. */
import fc from "fast-check";
import pg from "pg";
import { expect, test } from "vitest";
import { arrayBytes, arrayText } from "../../src/storage/postgres/arrays.ts";
import { onPostgres } from "../support/stores.ts";

onPostgres((target) => {
  test("any text comes back from an array as it went in, and null as null", async () => {
    const { url } = await target.fresh();
    const client = new pg.Client(url);
    await client.connect();
    // Postgres holds no NUL and no half of a surrogate pair; what we send is JSON or checked, and has neither.
    const text = fc
      .string({ unit: "binary" })
      .filter((value) => value.isWellFormed() && !value.includes("\0"));
    const awkward = fc.constantFrom(
      "",
      "null",
      "NULL",
      "{}",
      '"',
      "\\",
      '\\"',
      "a,b",
      " a ",
      "\n",
      "{a}",
      "'",
    );
    const item = fc.oneof(text, awkward, fc.constant(null));
    await fc.assert(
      fc.asyncProperty(fc.array(item), async (items) => {
        for (const array of [arrayText(items), arrayBytes("text", items)]) {
          const { rows } = await client.query<{ back: unknown }>("select to_json($1::text[]) as back", [
            array,
          ]);
          expect(rows[0]?.back).toEqual(items);
        }
      }),
    );
    await client.end();
  });

  test("numbers, truths and ids come back from arrays of bytes as they went in", async () => {
    const { url } = await target.fresh();
    const client = new pg.Client(url);
    await client.connect();
    const cases: [type: string, item: fc.Arbitrary<string | number | boolean>][] = [
      ["int", fc.integer()],
      ["bigint", fc.maxSafeInteger()],
      ["bool", fc.boolean()],
      ["uuid", fc.uuid()],
    ];
    for (const [type, item] of cases) {
      await fc.assert(
        fc.asyncProperty(fc.array(fc.option(item)), async (items) => {
          const { rows } = await client.query<{ back: unknown }>(`select to_json($1::${type}[]) as back`, [
            arrayBytes(type, items),
          ]);
          expect(rows[0]?.back).toEqual(items);
        }),
        { numRuns: 50 },
      );
    }
    expect(arrayBytes("float8", [1.5])).toBeNull();
    await client.end();
  });
});
