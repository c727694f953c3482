// What inputs have in common, and what is only there by chance.
import { expect, test } from "vitest";
import { commonFields } from "../../src/observe/common-fields.ts";

const of = (n: number, make: (i: number) => unknown) => Array.from({ length: n }, (_, i) => make(i));

test("a field with one value in nearly all inputs is in common, the most agreed first", () => {
  const inputs = of(10, (i) => ({
    n: i,
    region: i < 8 ? "eu" : "us",
    user: { plan: "free", id: i },
    tags: ["a"],
  }));
  expect(commonFields(inputs)).toEqual([
    { path: "user.plan", value: '"free"', n: 10 },
    { path: "region", value: '"eu"', n: 8 },
  ]);
});

test("seven of ten are not nearly all; two inputs agree by chance; kinds of values differ", () => {
  expect(commonFields(of(10, (i) => ({ region: i < 7 ? "eu" : "us" })))).toEqual([]);
  expect(commonFields(of(2, () => ({ region: "eu" })))).toEqual([]);
  expect(commonFields(of(10, (i) => ({ id: i % 2 === 0 ? 1 : "1" })))).toEqual([]);
});

test("inputs that are no objects, long values, deep ones and very many fields do no harm", () => {
  expect(commonFields(of(4, () => "x"))).toEqual([{ path: "(the input)", value: '"x"', n: 4 }]);
  expect(commonFields(of(4, () => null))).toEqual([{ path: "(the input)", value: "null", n: 4 }]);
  expect(commonFields(of(4, () => ({ text: "x".repeat(200) })))).toEqual([]);
  expect(commonFields(of(4, () => ({ a: { b: { c: { d: 1 } } } })))).toEqual([]);
  const wide = of(4, () => Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`k${i}`, 1])));
  expect(commonFields(wide)).toHaveLength(200);
});
