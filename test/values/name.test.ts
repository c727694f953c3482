// Names, keys and schema names: what gets in, and that nothing hostile does.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkName, checkSchema, checkText } from "../../src/values/name.ts";

describe("checkName", () => {
  test.each(["a", "send-mail", "A.b_c:d-9", "0", "x".repeat(128)])("%s is a name", (name) => {
    expect(checkName(name, "job name")).toBe(name);
  });

  test.each([
    "",
    "a,b",
    "-a",
    ".a",
    "a b",
    "a\n",
    "é",
    "a/b",
    "x".repeat(129),
    'a"b\\c',
    "a;drop table",
    "a\0",
    null,
    undefined,
    5,
    {},
  ])("%j is refused as BAD_NAME", (name) => {
    expect(() => checkName(name, "queue")).toThrow(
      expect.objectContaining({ code: "BAD_NAME", name: "UsageError" }),
    );
  });

  test("a refusal says which characters may be used", () => {
    expect(() => checkName("a b", "queue")).toThrow(
      'queue must have 1 to 128 characters of A-Z a-z 0-9 . _ : - and begin with a letter or digit; got "a b".',
    );
  });
});

describe("checkText", () => {
  test("any text that both databases store unchanged is a key", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", minLength: 1, maxLength: 40 }), (key) => {
        fc.pre(!key.includes("\0") && Buffer.byteLength(key) <= 512);
        expect(checkText(key, "key")).toBe(key);
      }),
    );
  });

  test.each([
    ["", "non-empty"],
    [5, "non-empty"],
    [null, "non-empty"],
    ["a\0b", "NUL"],
    ["a\ud800", "surrogate"],
    ["é".repeat(257), "at most 512 bytes"],
    ["x".repeat(1_000_000), "at most 512 bytes"],
  ])("%j is refused as BAD_KEY", (key, reason) => {
    expect(() => checkText(key, "key", 512)).toThrow(
      expect.objectContaining({ code: "BAD_KEY", message: expect.stringContaining(reason) as unknown }),
    );
  });

  test("512 bytes are counted, not characters", () => {
    expect(checkText("é".repeat(256), "key")).toHaveLength(256);
    expect(checkText("x".repeat(512), "key")).toHaveLength(512);
    expect(() => checkText("x".repeat(513), "key")).toThrow();
  });

  test("a refusal does not print a huge key", () => {
    expect(() => checkText("x".repeat(1_000_000), "key")).toThrow(
      expect.objectContaining({ message: expect.stringMatching(/^.{0,200}$/) as unknown }),
    );
  });
});

describe("checkSchema", () => {
  test.each(["holdfast", "_x", "a1_b", "a".repeat(48)])("%s is a schema name", (name) => {
    expect(checkSchema(name)).toBe(name);
  });

  test.each(["", "Holdfast", "1a", "a-b", 'a"b', "a;b", "a".repeat(49), "naïve", "a b", "a\n", null, {}])(
    "%j is refused",
    (name) => {
      expect(() => checkSchema(name)).toThrow(expect.objectContaining({ code: "BAD_NAME" }));
    },
  );
});
