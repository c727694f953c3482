// Numbers that a double cannot hold.
import { describe, expect, test } from "vitest";
import { losesDigits, parseExact } from "../../src/values/exact-numbers.ts";

describe("digits", () => {
  test.each([
    "0",
    "-0",
    "1",
    "1.0",
    "1e3",
    "1E+3",
    "0.1",
    "1.50",
    "100",
    "9007199254740991",
    "5e-324",
    "1e21",
    "-12.5e-1",
    "0.000",
  ])("%s is a number as it is", (source) => expect(losesDigits(source)).toBe(false));

  test.each([
    "9007199254740993",
    "12345678901234567890",
    "-12345678901234567890",
    "0.1234567890123456789",
    "1.00000000000000000001",
    "1e-400",
  ])("%s would lose some", (source) => expect(losesDigits(source)).toBe(true));

  test("are kept where they would be lost, and nothing else is changed", () => {
    const text = '{"n":12345678901234567890,"m":[9007199254740993,1],"s":"12345678901234567890"}';
    expect(JSON.stringify(parseExact(text))).toBe(text);
    expect(parseExact('{"a":[1,2.5,"x",null,true]}')).toEqual({ a: [1, 2.5, "x", null, true] });
  });

  test("what is too large for a number stays what an enqueue refuses, and what is not JSON is refused", () => {
    expect(parseExact("1e400")).toBe(Infinity);
    expect(() => parseExact("{")).toThrow(SyntaxError);
  });
});
