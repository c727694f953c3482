// What is recorded of a failure, whatever was thrown: never throws, bounded, complete.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { UsageError } from "../../src/errors.ts";
import {
  appendFailure,
  cutText,
  decodeFailures,
  describeFailure,
  type FailureRecord,
} from "../../src/jobs/failure.ts";

const bytes = (text: string): number => Buffer.byteLength(text);
const hostile = (): never => {
  throw new Error("no");
};

describe("describeFailure", () => {
  test('the whole chain of causes is told: "top: middle: root" [D12]', () => {
    const error = new Error("top", { cause: new Error("middle", { cause: new Error("root") }) });
    const failure = describeFailure(error);
    expect(failure.message).toBe("top: middle: root");
    expect(failure.stack).toMatch(
      /^Error: top\n[^]*\nCaused by: Error: middle\n[^]*\nCaused by: Error: root\n/,
    );
  });

  test("a cause that was already quoted by hand is not told twice", () => {
    const root = new Error("root");
    expect(describeFailure(new Error(`top: ${root.message}`, { cause: root })).message).toBe("top: root");
  });

  test.each<[string, unknown, string]>([
    ["undefined", undefined, "thrown: undefined"],
    ["null", null, "thrown: null"],
    ["a number", 404, "thrown: 404"],
    ["a BigInt", 5n, "thrown: 5"],
    ["a symbol", Symbol("x"), "thrown: Symbol(x)"],
    ["a string", "boom", "boom"],
    ["an empty string", "", '""'],
    ["an object", { status: 500 }, "thrown: { status: 500 }"],
    ["an object with a message", { message: "boom" }, "boom"],
    ["an error without a message", new TypeError(), "TypeError"],
    ["an error whose cause is a string", new Error("top", { cause: "root" }), "top: root"],
    ["an error whose cause is a number", new Error("top", { cause: 404 }), "top: 404"],
    ["an error whose cause is null", new Error("top", { cause: null }), "top"],
    [
      "an AggregateError",
      new AggregateError([new Error("a", { cause: new Error("b") }), "c"], "all"),
      "all [a: b; c]",
    ],
    ["an AggregateError without a message", new AggregateError([new Error("a")]), "AggregateError [a]"],
    ["NUL and a lone surrogate, unharmed", new Error("a\0b\ud800c"), "a\0b\ud800c"],
  ])("%s", (_, thrown, message) => {
    expect(describeFailure(thrown).message).toBe(message);
  });

  test("an AggregateError of a thousand tells the first eight", () => {
    const error = new AggregateError(
      Array.from({ length: 1_000 }, (_, i) => new Error(`e${i}`)),
      "all",
    );
    expect(describeFailure(error).message).toBe("all [e0; e1; e2; e3; e4; e5; e6; e7; and 992 more]");
  });

  test("a value without a stack has none", () => {
    expect(describeFailure("x").stack).toBeNull();
    expect(describeFailure(undefined)).toEqual({ message: "thrown: undefined", stack: null });
  });

  test("the first code in the chain is kept, if it is a string", () => {
    const refused = Object.assign(new Error("connect"), { code: "ECONNREFUSED" });
    expect(describeFailure(new Error("top", { cause: refused })).code).toBe("ECONNREFUSED");
    expect(describeFailure(new UsageError("BAD_KEY", "x", { cause: refused })).code).toBe("BAD_KEY");
    expect(describeFailure(Object.assign(new Error("x"), { code: 5 }))).not.toHaveProperty("code");
  });

  test("a circular chain ends", () => {
    const a = new Error("a");
    const b = new Error("b", { cause: a });
    a.cause = b;
    expect(describeFailure(a).message).toBe("a: b");
    const self = new AggregateError([], "self");
    self.errors.push(self);
    expect(describeFailure(self).message).toBe("self");
  });

  test("an endless chain ends", () => {
    class Endless extends Error {
      override get cause(): unknown {
        return new Endless("same");
      }
    }
    expect(describeFailure(new Endless("same")).message).toBe("same");
    class Bush extends Error {
      get errors(): unknown[] {
        return [new Bush("x"), new Bush("x")];
      }
      override get cause(): unknown {
        return new Bush("y");
      }
    }
    expect(bytes(describeFailure(new Bush("x")).message)).toBeLessThanOrEqual(8_192);
  });

  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  test.each<[string, unknown]>([
    [
      "getters that throw",
      Object.defineProperties(new Error("x"), {
        message: { get: hostile },
        stack: { get: hostile },
        cause: { get: hostile },
        name: { get: hostile },
      }),
    ],
    [
      "a Proxy whose traps all throw",
      new Proxy(new Error("x"), {
        get: hostile,
        has: hostile,
        getPrototypeOf: hostile,
        ownKeys: hostile,
        getOwnPropertyDescriptor: hostile,
      }),
    ],
    ["a revoked Proxy", revoked.proxy],
    [
      "an object whose toString throws",
      { toString: hostile, [Symbol.toPrimitive]: hostile, [Symbol.toStringTag]: hostile },
    ],
    [
      "an error whose message is an object",
      Object.assign(new Error("x"), { message: { toString: hostile } }),
    ],
    ["an object whose inspection throws", { [Symbol.for("nodejs.util.inspect.custom")]: hostile }],
    ["a function", hostile],
    ["a class", class X extends Map {}],
    ["an object without a prototype", Object.create(null)],
    ["errors that is a hostile array", { message: "x", errors: new Proxy([], { get: hostile }) }],
  ])("%s: described, not thrown", (_, thrown) => {
    const failure = describeFailure(thrown);
    expect(failure.message.length).toBeGreaterThan(0);
  });

  test("anything at all is described within the limits, by text that JSON can hold", () => {
    fc.assert(
      fc.property(
        fc.anything({
          withNullPrototype: true,
          withObjectString: true,
          withBigInt: true,
          withMap: true,
          withSet: true,
        }),
        (thrown) => {
          for (const value of [
            thrown,
            new Error("x", { cause: thrown }),
            { message: thrown, stack: thrown, errors: thrown, code: thrown },
          ]) {
            const failure = describeFailure(value);
            expect(bytes(failure.message)).toBeLessThanOrEqual(8_192);
            expect(JSON.parse(JSON.stringify(failure))).toEqual(failure);
          }
        },
      ),
    );
  });

  test("a message of 10 MB is cut to 8 KiB, and the stack keeps its frames", () => {
    const failure = describeFailure(new Error("é".repeat(5_000_000)));
    expect(bytes(failure.message)).toBeLessThanOrEqual(8_192);
    expect(bytes(failure.message)).toBeGreaterThan(8_180);
    expect(failure.message).toMatch(/é… \[cut\]$/);
    expect(bytes(failure.stack ?? "")).toBeLessThanOrEqual(16_384);
    expect(failure.stack).toContain("failure.test.ts");
  });

  test("a stack of 10 MB is cut to 16 KiB", () => {
    const failure = describeFailure(Object.assign(new Error("x"), { stack: "y".repeat(10_000_000) }));
    expect(bytes(failure.stack ?? "")).toBe(16_384);
  });
});

describe("cutText", () => {
  test("what fits is untouched, what does not is cut between characters and marked, never over the limit", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "binary", maxLength: 60 }),
        fc.integer({ min: 10, max: 100 }),
        (text, limit) => {
          const cut = cutText(text, limit);
          expect(bytes(cut)).toBeLessThanOrEqual(limit);
          if (bytes(text) <= limit) expect(cut).toBe(text);
          else expect(text.startsWith(cut.replace(/… \[cut\]$/, ""))).toBe(true);
          if (text.isWellFormed()) expect(cut.isWellFormed()).toBe(true);
        },
      ),
    );
  });

  test("a pair of surrogates is never split", () => {
    for (let limit = 10; limit < 30; limit++)
      expect(cutText("😀".repeat(50), limit).isWellFormed()).toBe(true);
  });
});

describe("the history of failures", () => {
  const record = (n: number, extra: Partial<FailureRecord> = {}): FailureRecord => ({
    at: n,
    attempt: n,
    message: `e${n}`,
    stack: `s${n}`,
    ...extra,
  });
  const history = (records: FailureRecord[]): string =>
    records.reduce<string | null>(appendFailure, null) ?? "";

  test("of 40 failures the 32 newest are kept, oldest first [D12]", () => {
    const records = Array.from({ length: 40 }, (_, i) => record(i + 1));
    expect(decodeFailures(history(records))).toEqual(records.slice(8));
  });

  test("old stacks go before old entries", () => {
    const records = Array.from({ length: 32 }, (_, i) => record(i + 1, { stack: "s".repeat(16_000) }));
    const encoded = history(records);
    const kept = decodeFailures(encoded);
    expect(bytes(encoded)).toBeLessThanOrEqual(65_536);
    expect(kept.map((entry) => entry.attempt)).toEqual(records.map((entry) => entry.attempt));
    expect(kept[0]?.stack).toBeNull();
    expect(kept.at(-1)).toEqual(records.at(-1));
  });

  test("at most 64 KiB are kept, and always the newest", () => {
    const records = Array.from({ length: 32 }, (_, i) =>
      record(i + 1, { message: "m".repeat(8_000), stack: null }),
    );
    const encoded = history(records);
    expect(bytes(encoded)).toBeLessThanOrEqual(65_536);
    expect(decodeFailures(encoded)).toEqual(records.slice(-8));
  });

  test("an entry that is too long by itself, because JSON escapes it, loses its stack and not its message", () => {
    const newest = record(1, { message: "\0".repeat(8_192), stack: "\ud800".repeat(5_000) });
    const encoded = appendFailure(null, newest);
    expect(bytes(encoded)).toBeLessThanOrEqual(65_536);
    expect(decodeFailures(encoded)[0]?.message).toBe(newest.message);
    const worst = appendFailure(
      null,
      record(1, { message: "\ud800".repeat(10_000), stack: "\0".repeat(20_000) }),
    );
    expect(bytes(worst)).toBeLessThanOrEqual(65_536);
    expect(decodeFailures(worst)).toHaveLength(1);
  });

  test("any failures: bounded, newest kept unharmed, readable", () => {
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.constantFrom("\0".repeat(9_000), "\ud800\n".repeat(9_000), "x".repeat(70_000)),
    );
    fc.assert(
      fc.property(
        fc.array(fc.record({ at: fc.nat(), attempt: fc.nat(), message: text, stack: fc.option(text) }), {
          minLength: 1,
          maxLength: 50,
        }),
        (records) => {
          const encoded = history(records);
          expect(bytes(encoded)).toBeLessThanOrEqual(65_536);
          expect(encoded.isWellFormed() && !encoded.includes("\0")).toBe(true);
          const kept = decodeFailures(encoded);
          expect(kept.length).toBeLessThanOrEqual(32);
          const newest = records.at(-1);
          expect(kept.at(-1)).toMatchObject({
            at: newest?.at,
            attempt: newest?.attempt,
            message: cutText(newest?.message ?? "", 8_192),
          });
        },
      ),
    );
  });

  test.each([null, "", "{", "5", "null", '{"a":1}', "[1,null,{}]"])(
    "a history that cannot be read counts as empty: %s",
    (encoded) => {
      expect(decodeFailures(encoded)).toEqual([]);
      expect(decodeFailures(appendFailure(encoded, record(1)))).toEqual([record(1)]);
    },
  );
});
