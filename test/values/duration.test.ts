// Durations and instants: what is accepted, what is refused, and that nothing overflows.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isHoldfastError } from "../../src/errors.ts";
import {
  clampInstant,
  type Duration,
  durationMs,
  instantMs,
  LATEST_INSTANT,
  MAX_DELAY_MS,
} from "../../src/values/duration.ts";

const refused = (fn: () => unknown): unknown => {
  try {
    return fn();
  } catch (error) {
    return isHoldfastError(error) ? `${error.name} ${error.code}` : error;
  }
};

describe("durationMs", () => {
  test.each<[Duration, number]>([
    [0, 0],
    [1.4, 1],
    ["250ms", 250],
    ["90s", 90_000],
    ["5m", 300_000],
    ["1h30m", 5_400_000],
    ["1.5h", 5_400_000],
    ["1.1m", 66_000],
    ["2d", 172_800_000],
    ["1w", 604_800_000],
    ["1w2d3h4m5s6ms", 788_645_006],
    ["0s", 0],
  ])("%j is %d ms", (value, ms) => {
    expect(durationMs(value, "delay")).toBe(ms);
  });

  test.each([
    -1,
    -5,
    NaN,
    Infinity,
    -Infinity,
    "",
    " ",
    "5",
    "5 m",
    "m",
    "5x",
    "-5m",
    "1m1h",
    "5m5m",
    "1e3s",
    ".5s",
    "5.s",
    "Infinity",
    "٥s",
  ])("%o is refused as BAD_DURATION", (value) => {
    expect(refused(() => durationMs(value, "delay"))).toBe("UsageError BAD_DURATION");
  });

  test.each([null, undefined, {}, [], true, 5n, new Date()])(
    "a value of another type is refused: %s",
    (value) => {
      expect(refused(() => durationMs(value as never, "delay"))).toBe("UsageError BAD_DURATION");
    },
  );

  test("a refusal names the option and what is accepted", () => {
    expect(() => durationMs("5 minutes", "timeout")).toThrow(
      /^timeout must be a duration: .*"1h30m".*got "5 minutes"\.$/,
    );
  });

  test("-0 is 0", () => {
    expect(Object.is(durationMs(-0, "delay"), 0)).toBe(true);
  });

  test("a huge duration is clamped to 100 years [A4]", () => {
    for (const value of [1e15, Number.MAX_VALUE, 2 ** 53, "999999999w"])
      expect(durationMs(value, "delay")).toBe(MAX_DELAY_MS);
    expect(durationMs(2 ** 31, "delay")).toBe(2 ** 31);
  });

  test("whatever is accepted is a whole number in range", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.double(), fc.string(), fc.stringMatching(/^(\d{1,12}(\.\d{1,5})?(w|d|h|m|s|ms)){1,3}$/)),
        (value) => {
          try {
            const ms = durationMs(value, "x");
            expect(Number.isInteger(ms) && ms >= 0 && ms <= MAX_DELAY_MS).toBe(true);
          } catch (error) {
            expect(error).toMatchObject({ code: "BAD_DURATION" });
          }
        },
      ),
    );
  });

  test("a hostile string is answered without backtracking", () => {
    const text = "1".repeat(50_000);
    expect(refused(() => durationMs(text, "delay"))).toBe("UsageError BAD_DURATION");
  });
});

describe("instantMs", () => {
  test("a Date and a number are both epoch milliseconds", () => {
    expect(instantMs(new Date("2026-01-01T00:00:00Z"), "at")).toBe(1_767_225_600_000);
    expect(instantMs(1_767_225_600_000, "at")).toBe(1_767_225_600_000);
  });

  test("an invalid Date and a value of another type are refused", () => {
    for (const value of [new Date(Number.NaN), Number.NaN, Infinity, "2026-01-01", null, {}]) {
      expect(refused(() => instantMs(value as Date, "at"))).toBe("UsageError BAD_INSTANT");
    }
    expect(() => instantMs(new Date(Number.NaN), "at")).toThrow("got an invalid Date");
  });

  test("the year 275760 and the time before 1970 are clamped", () => {
    expect(instantMs(new Date(8.64e15), "at")).toBe(LATEST_INSTANT);
    expect(instantMs(new Date(-1), "at")).toBe(0);
  });
});

test("the latest instant plus the longest delay still is a Date", () => {
  expect(new Date(LATEST_INSTANT + MAX_DELAY_MS).getTime()).toBe(LATEST_INSTANT + MAX_DELAY_MS);
  expect(Number.isSafeInteger(LATEST_INSTANT)).toBe(true);
});

test("an instant that cannot be computed is never at once", () => {
  expect(clampInstant(Number.NaN)).toBe(LATEST_INSTANT);
  expect(clampInstant(Infinity)).toBe(LATEST_INSTANT);
  expect(clampInstant(-Infinity)).toBe(0);
  expect(clampInstant(1.5)).toBe(2);
});
