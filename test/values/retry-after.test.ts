import { describe, expect, test } from "vitest";
import { retryAfterMs } from "holdfast";

const now = Date.parse("2026-03-01T12:00:00Z");

describe("the header Retry-After", () => {
  test.each([
    ["120", 120_000],
    [" 5 ", 5_000],
    ["0", 0],
    ["1.5", 1_500],
    ["Sun, 01 Mar 2026 12:00:30 GMT", 30_000],
    ["Sunday, 01-Mar-26 12:00:30 GMT", 30_000],
    ["Sun Mar  1 12:00:30 2026 GMT", 30_000],
    ["Sun, 01 Mar 2026 11:00:00 GMT", 0],
    ["Fri, 31 Dec 9999 23:59:59 GMT", 86_400_000],
    ["99999999999999999999", 86_400_000],
  ])("%s is %d ms", (header, ms) => {
    expect(retryAfterMs(header, "7s", now)).toBe(ms);
  });

  test.each([null, undefined, "", "soon", "-5", "12 minutes", "Sun, 99 Foo", "1e9", "Infinity"])(
    "%s is what is given for it",
    (header) => {
      expect(retryAfterMs(header, "7s", now)).toBe(7_000);
      expect(retryAfterMs(header)).toBe(30_000);
    },
  );

  test("what is given for it must be a duration", () => {
    expect(() => retryAfterMs(null, "soon")).toThrow(expect.objectContaining({ code: "BAD_DURATION" }));
  });
});
