// Schemas: zod, valibot and hand-made ones through the one convention.
import * as v from "valibot";
import { describe, expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import {
  type InferInput,
  type InferOutput,
  isStandardSchema,
  type StandardSchemaV1,
  validate,
} from "../../src/values/input-schema.ts";

const zod = z.object({ to: z.email(), count: z.string().transform(Number) });
const valibot = v.object({
  to: v.pipe(v.string(), v.email()),
  count: v.pipe(v.string(), v.transform(Number)),
});
const asynchronous = z.object({ to: z.string().refine(async (to) => to !== "taken", "is taken") });

const own = (answer: StandardSchemaV1["~standard"]["validate"]): StandardSchemaV1 => ({
  "~standard": { version: 1, vendor: "test", validate: answer },
});

describe.each([
  ["zod", zod],
  ["valibot", valibot],
] as const)("%s", (_, schema) => {
  test("a good input gives the output, in the same turn", () => {
    expect(validate(schema, { to: "a@b.cd", count: "3" }, "input", "INPUT_INVALID")).toEqual({
      to: "a@b.cd",
      count: 3,
    });
  });

  test("a bad input is refused with every path and message", () => {
    expect(() => validate(schema, { to: 5 }, "input", "INPUT_INVALID")).toThrow(
      expect.objectContaining({
        name: "UsageError",
        code: "INPUT_INVALID",
        message: expect.stringMatching(
          /^input does not fit its schema\. input\.to: .+; input\.count: .+$/,
        ) as unknown,
        details: {
          what: "input",
          issues: [
            { path: ".to", message: expect.any(String) as unknown },
            { path: ".count", message: expect.any(String) as unknown },
          ],
        },
      }),
    );
  });

  test("input and output types are inferred", () => {
    expectTypeOf<InferInput<typeof schema>>().toEqualTypeOf<{ to: string; count: string }>();
    expectTypeOf<InferOutput<typeof schema>>().toEqualTypeOf<{ to: string; count: number }>();
    const output = validate(schema, { to: "a@b.cd", count: "3" }, "input", "INPUT_INVALID");
    expectTypeOf(output).toEqualTypeOf<
      { to: string; count: number } | Promise<{ to: string; count: number }>
    >();
  });

  test("it is a Standard Schema", () => {
    expect(isStandardSchema(schema)).toBe(true);
  });
});

test("an asynchronous schema gives a promise", async () => {
  await expect(validate(asynchronous, { to: "free" }, "input", "INPUT_INVALID")).resolves.toEqual({
    to: "free",
  });
  await expect(validate(asynchronous, { to: "taken" }, "input", "INPUT_INVALID")).rejects.toMatchObject({
    code: "INPUT_INVALID",
    message: "input does not fit its schema. input.to: is taken",
  });
});

test("a schema that throws or rejects is the same error, with its cause", async () => {
  const boom = new Error("boom");
  const throws = own(() => {
    throw boom;
  });
  expect(() => validate(throws, 1, "input", "INPUT_INVALID")).toThrow(
    expect.objectContaining({ code: "INPUT_INVALID", cause: boom }),
  );
  await expect(
    validate(
      own(() => Promise.reject(boom)),
      1,
      "input",
      "INPUT_INVALID",
    ),
  ).rejects.toMatchObject({ code: "INPUT_INVALID", cause: boom });
});

test("paths of every form are written out", () => {
  const path = ["items", 3, { key: "price" }, "a b", Symbol("s")];
  expect(() =>
    validate(
      own(() => ({ issues: [{ message: "bad", path }] })),
      1,
      "input",
      "INPUT_INVALID",
    ),
  ).toThrow('input.items[3].price["a b"][Symbol(s)]: bad');
});

test("of a thousand issues twenty are told", () => {
  const issues = Array.from({ length: 1_000 }, (_, i) => ({ message: `m${i}` }));
  expect(() =>
    validate(
      own(() => ({ issues })),
      1,
      "input",
      "INPUT_INVALID",
    ),
  ).toThrow(/m19; and 980 more$/);
});

test("what is no schema is told apart, functions included", () => {
  expect(
    isStandardSchema(
      Object.assign(
        () => 1,
        own(() => ({ value: 1 })),
      ),
    ),
  ).toBe(true);
  for (const value of [null, undefined, 5, {}, () => 1, { "~standard": {} }, { "~standard": null }])
    expect(isStandardSchema(value)).toBe(false);
});
