// JSON: lossless or refused, with the path; always text that both databases take.
import vm from "node:vm";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeJson, encodeJson } from "../../src/values/json.ts";

const codes = { notJson: "INPUT_NOT_JSON", tooLarge: "INPUT_TOO_LARGE" } as const;
const encode = (value: unknown, limit = 10_000_000): string => encodeJson(value, "input", limit, codes);
const roundTrip = (value: unknown): unknown => decodeJson(encode(value), "input");
const nested = (depth: number): unknown => {
  let value: unknown = [];
  for (let i = 1; i < depth; i++) value = i % 2 === 0 ? [value] : { value };
  return value;
};

describe("what JSON can hold comes back as it went in", () => {
  test("any JSON value", () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
        fc.pre(!JSON.stringify(value).includes("-0"));
        expect(roundTrip(value)).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  test("any string, NUL and lone surrogates included, as UTF-8 text without NUL", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)) }),
        (value) => {
          const text = encode({ [value]: value });
          expect(text.isWellFormed()).toBe(true);
          expect(text).not.toContain("\0");
          expect(Buffer.from(text).toString()).toBe(text);
          expect(decodeJson(text, "input")).toEqual({ [value]: value });
        },
      ),
    );
  });

  test.each([
    ["NUL", "a\0b"],
    ["a lone surrogate", "\ud800"],
    ["line separators", "\u2028\u2029"],
    ["null", null],
    ["false", false],
    ["an empty string", ""],
    ["the largest number", Number.MAX_VALUE],
    ["an object without a prototype", Object.assign(Object.create(null), { a: 1 })],
    ["an object of another realm", vm.runInNewContext("({ a: [1, { b: 2 }] })")],
  ])("%s", (_, value) => {
    expect(roundTrip(value)).toEqual(JSON.parse(JSON.stringify(value)));
  });

  test("key order is kept", () => {
    expect(encode({ z: 1, a: 2, m: 3 })).toBe('{"z":1,"a":2,"m":3}');
  });

  test("a 5 MB string and 100,000 keys", () => {
    const text = "x".repeat(5_000_000);
    expect(roundTrip(text)).toBe(text);
    const keys = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`k${i}`, i]));
    expect(roundTrip(keys)).toEqual(keys);
  });

  test("the same object twice is no cycle", () => {
    const shared = { a: 1 };
    expect(encode({ x: shared, y: [shared, shared] })).toBe('{"x":{"a":1},"y":[{"a":1},{"a":1}]}');
  });
});

describe("JSON's own habits are kept", () => {
  test("a property that is undefined is left out", () => {
    expect(encode({ a: undefined, b: 1 })).toBe('{"b":1}');
  });

  test("-0 becomes 0", () => {
    expect(encode([-0])).toBe("[0]");
  });

  test("a Date becomes its ISO string", () => {
    expect(encode({ at: new Date(0) })).toBe('{"at":"1970-01-01T00:00:00.000Z"}');
    expect(encode(vm.runInNewContext("new Date(0)"))).toBe('"1970-01-01T00:00:00.000Z"');
  });

  test("toJSON is honoured, and what it gives is checked", () => {
    expect(encode({ url: new URL("https://a.b/") })).toBe('{"url":"https://a.b/"}');
    const self = { a: 1, toJSON: (): unknown => self };
    expect(() => encode({ self })).toThrow("input.self.toJSON is a function");
    expect(() => encode({ x: { toJSON: () => ({ price: 5n }) } })).toThrow("input.x.price is a BigInt");
    expect(() => encode({ x: { toJSON: () => undefined } })).toThrow("input.x is undefined");
    // JSON.stringify would write the Date that toJSON gave as {}.
    expect(() => encode({ x: { toJSON: () => new Date(0) } })).toThrow("input.x is a Date");
    expect(encode([1, { toJSON: (key: string) => key }])).toBe('[1,"1"]');
    expect(encode(Object.assign([1n], { toJSON: () => "ok" }))).toBe('"ok"');
  });

  test("a toJSON that encodes something itself does not change the limit of the whole", () => {
    const inner = { toJSON: () => encode("x", 3) };
    expect(encode([inner, "y".repeat(100)], 120)).toHaveLength(112);
  });

  test("an instance of a class is stored as its fields", () => {
    class Point {
      x = 1;
      get double(): number {
        return this.x * 2;
      }
    }
    expect(encode(new Point())).toBe('{"x":1}');
  });
});

describe("what JSON would lose is refused, with its path", () => {
  const circular: Record<string, unknown> = { a: {} };
  (circular["a"] as Record<string, unknown>)["b"] = [circular];
  test.each<[string, unknown, string]>([
    ["undefined", undefined, "input is undefined"],
    ["a function", { run: () => 1 }, "input.run is a function"],
    ["a symbol", [Symbol("x")], "input[0] is a symbol"],
    ["a BigInt", { items: [0, 0, 0, { price: 5n }] }, "input.items[3].price is a BigInt"],
    ["NaN", { a: Number.NaN }, "input.a is NaN"],
    ["Infinity", { a: JSON.parse("1e400") as number }, "input.a is Infinity"],
    ["-Infinity", [-Infinity], "input[0] is -Infinity"],
    ["a Map", { m: new Map([[1, 2]]) }, "input.m is a Map, which JSON cannot hold"],
    ["a Set", new Set([1]), "input is a Set, which JSON cannot hold"],
    ["a WeakMap", [new WeakMap()], "input[0] is a WeakMap, which JSON cannot hold"],
    ["a Promise", { p: Promise.resolve() }, "input.p is a Promise, which JSON cannot hold"],
    ["a RegExp", { r: /x/ }, "input.r is a RegExp, which JSON cannot hold"],
    ["an Error", { e: new Error("x") }, "input.e is an Error, which JSON cannot hold"],
    ["a boxed number", { n: Object(1) as unknown }, "input.n is a Number, which JSON cannot hold"],
    ["a Buffer", { b: Buffer.from("x") }, "input.b is a Uint8Array; store it as a string, such as base64"],
    ["a typed array", new Float64Array(2), "input is a Float64Array; store it as a string, such as base64"],
    ["an ArrayBuffer", [new ArrayBuffer(2)], "input[0] is an ArrayBuffer, which JSON cannot hold"],
    [
      "URLSearchParams",
      { q: new URLSearchParams("a=1") },
      "input.q is a URLSearchParams, which JSON cannot hold",
    ],
    ["an invalid Date", { at: new Date(Number.NaN) }, "input.at is an invalid Date"],
    ["undefined in an array", [1, undefined], "input[1] is undefined"],
    ["a sparse array", Array(2 ** 32 - 1), "input[0] is undefined"],
    ["a cycle", circular, "input.a.b[0] is a cycle: it contains itself"],
    ["a key that is no identifier", { "a b": { '"': 5n } }, 'input["a b"]["\\""] is a BigInt'],
    [
      "a getter that throws",
      {
        a: {
          get b(): never {
            throw new Error("no");
          },
        },
      },
      "input.a.b cannot be read: it throws",
    ],
    [
      "a toJSON that throws",
      {
        a: {
          toJSON: (): never => {
            throw new Error("no");
          },
        },
      },
      "input.a has a toJSON that throws",
    ],
    [
      "a Proxy whose traps throw",
      {
        p: new Proxy(
          {},
          {
            ownKeys: () => {
              throw new Error("no");
            },
          },
        ),
      },
      "input.p cannot be read: it throws",
    ],
  ])("%s", (_, value, message) => {
    expect(() => encode(value)).toThrow(
      expect.objectContaining({ name: "UsageError", code: "INPUT_NOT_JSON", message: `${message}.` }),
    );
  });

  test("a revoked Proxy", () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    expect(() => encode({ proxy })).toThrow(expect.objectContaining({ code: "INPUT_NOT_JSON" }));
  });

  test("a toJSON that changes its mind after the check", () => {
    let calls = 0;
    const fickle = { toJSON: (): unknown => (calls++ === 0 ? 1 : undefined) };
    expect(() => encode(fickle)).toThrow(expect.objectContaining({ code: "INPUT_NOT_JSON" }));
  });

  test("anything at all: stored as JSON.stringify would, or a typed refusal", () => {
    fc.assert(
      fc.property(
        fc.anything({
          withBigInt: true,
          withDate: true,
          withMap: true,
          withSet: true,
          withTypedArray: true,
          withSparseArray: true,
        }),
        (value) => {
          try {
            expect(encode(value)).toBe(JSON.stringify(value));
          } catch (error) {
            expect(error).toMatchObject({ code: "INPUT_NOT_JSON" });
          }
        },
      ),
    );
  });

  test("the path of a refusal stays short", () => {
    let value: unknown = 5n;
    for (let i = 0; i < 900; i++) value = { ["key".repeat(100)]: value };
    expect(() => encode(value)).toThrow(
      expect.objectContaining({ message: expect.stringMatching(/^.{0,400}$/) as unknown }),
    );
  });
});

describe("depth and size", () => {
  test("1,000 levels are stored, 1,001 are refused, and so are 20,000", () => {
    expect(roundTrip(nested(1_000))).toEqual(nested(1_000));
    for (const depth of [1_001, 20_000]) {
      expect(() => encode(nested(depth))).toThrow("input is nested more than 1000 levels deep.");
    }
  });

  test("the limit is in bytes of UTF-8 and exact", () => {
    expect(encode("é".repeat(9), 20)).toHaveLength(11);
    expect(() => encode("é".repeat(9), 19)).toThrow(expect.objectContaining({ code: "INPUT_TOO_LARGE" }));
    expect(encode([1, 2, 3], 7)).toBe("[1,2,3]");
    expect(() => encode([1, 2, 3], 6)).toThrow(expect.objectContaining({ code: "INPUT_TOO_LARGE" }));
  });

  test("whether a value fits is decided by its text alone", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.nat(200), (value, limit) => {
        const bytes = Buffer.byteLength(JSON.stringify(value));
        if (bytes <= limit) expect(encode(value, limit)).toBe(JSON.stringify(value));
        else expect(() => encode(value, limit)).toThrow(expect.objectContaining({ code: "INPUT_TOO_LARGE" }));
      }),
    );
  });

  test("data that doubles at each of 60 levels is refused before it is written", () => {
    let value: unknown = "x";
    for (let i = 0; i < 60; i++) value = [value, value];
    expect(() => encode(value, 1_000_000)).toThrow(expect.objectContaining({ code: "INPUT_TOO_LARGE" }));
  });

  test("an output is refused with an error for the reader of the job", () => {
    expect(() =>
      encodeJson(5n, "output", 10, { notJson: "OUTPUT_NOT_JSON", tooLarge: "OUTPUT_TOO_LARGE" }),
    ).toThrow(expect.objectContaining({ name: "JobError", code: "OUTPUT_NOT_JSON" }));
  });
});

describe("decodeJson", () => {
  test("text that is not JSON is a DECODE_FAILED that does not quote it", () => {
    for (const text of ["", "{", "secret", '{"a":01}', "\0"]) {
      expect(() => decodeJson(text, "input")).toThrow(
        expect.objectContaining({
          name: "JobError",
          code: "DECODE_FAILED",
          message: expect.not.stringContaining("secret") as unknown,
        }),
      );
    }
  });

  test("__proto__ and constructor are ordinary keys both ways, and pollute nothing", () => {
    const text = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}';
    const value = decodeJson(text, "input");
    expect(Object.keys(value as object)).toEqual(["__proto__", "constructor"]);
    expect(encode(value)).toBe(text);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });
});
