// Backoff: the tables, the caps, the jitter, and the way to storage and back.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type Backoff,
  backoffMs,
  checkBackoff,
  DEFAULT_BACKOFF,
  exponential,
  fixed,
  immediately,
  power,
  queueBackoff,
} from "../../src/jobs/backoff.ts";
import { MAX_DELAY_MS } from "../../src/values/duration.ts";

const half = (): number => 0.5;
const seconds = (backoff: Backoff, attempts: readonly number[]): number[] =>
  attempts.map((n) => backoffMs(backoff, n, half) / 1_000);
const anyBackoff: fc.Arbitrary<Backoff> = fc.oneof(
  fc.record({
    kind: fc.constant("exponential" as const),
    baseMs: fc.nat(MAX_DELAY_MS),
    maxMs: fc.nat(MAX_DELAY_MS),
    factor: fc.double({ min: 1, max: 1_000, noNaN: true }),
    jitter: fc.double({ min: 0, max: 1, noNaN: true }),
  }),
  fc.record({
    kind: fc.constant("power" as const),
    maxMs: fc.nat(MAX_DELAY_MS),
    jitter: fc.double({ min: 0, max: 1, noNaN: true }),
  }),
  fc.record({
    kind: fc.constant("fixed" as const),
    ms: fc.nat(MAX_DELAY_MS),
    jitter: fc.double({ min: 0, max: 1, noNaN: true }),
  }),
  fc.constant({ kind: "off" as const }),
);

describe("the delays", () => {
  const table = exponential("60s", { max: "1h", jitter: 0 });

  test("exponential: 60, 120, 240, 480, 960, 1920, 3600 for n = 1 … 7 [D10]", () => {
    expect(seconds(table, [1, 2, 3, 4, 5, 6, 7, 8])).toEqual([60, 120, 240, 480, 960, 1920, 3600, 3600]);
  });

  test("attempts that make no sense are the first, huge ones are capped [D10]", () => {
    expect(seconds(table, [0, -5, Number.NaN, -Infinity])).toEqual([60, 60, 60, 60]);
    expect(seconds(table, [310, 1e6, 2 ** 53, Infinity])).toEqual([3600, 3600, 3600, 3600]);
    expect(seconds(exponential(0), [1, 1e6, Infinity])).toEqual([0, 0, 0]);
  });

  test("power: 2, 4, 8 … seconds, uncapped until 100 years [D10]", () => {
    expect(seconds(power(), [0, 1, 2, 3, 4, 20])).toEqual([2, 2, 4, 8, 16, 1_048_576]);
    expect(backoffMs(power(), 1e6, half)).toBe(MAX_DELAY_MS);
    expect(seconds(power({ max: "10s" }), [3, 4])).toEqual([8, 10]);
  });

  test("fixed is always the same, off is at once [D10]", () => {
    expect(seconds(fixed("1s"), [1, 2, 1e6])).toEqual([1, 1, 1]);
    expect(seconds(immediately(), [1, 1e6])).toEqual([0, 0]);
  });

  test("a function of the attempt may give any duration [D10]", () => {
    expect(backoffMs((n) => n * 1_000, 3, half)).toBe(3_000);
    expect(backoffMs(() => "5m", 3, half)).toBe(300_000);
    expect(backoffMs(() => 1e300, 3, half)).toBe(MAX_DELAY_MS);
  });

  test("a function that throws or gives no duration is replaced by the default", () => {
    for (const bad of [
      () => Number.NaN,
      () => -1,
      () => "soon",
      () => undefined as never,
      () => JSON.parse("{") as never,
    ]) {
      expect(backoffMs(bad, 1, half)).toBe(60_000);
    }
  });

  test("1,000 samples lie within ± 20 %, reach both sides and are not all equal [D10]", () => {
    const samples = Array.from({ length: 1_000 }, () => backoffMs(DEFAULT_BACKOFF, 1, Math.random));
    expect(Math.min(...samples)).toBeGreaterThanOrEqual(48_000);
    expect(Math.max(...samples)).toBeLessThanOrEqual(72_000);
    expect(Math.min(...samples)).toBeLessThan(54_000);
    expect(Math.max(...samples)).toBeGreaterThan(66_000);
    expect(new Set(samples).size).toBeGreaterThan(100);
  });

  test("jitter spreads around the cap too", () => {
    expect(backoffMs(DEFAULT_BACKOFF, 100, () => 0)).toBe(2_880_000);
    expect(backoffMs(DEFAULT_BACKOFF, 100, () => 1)).toBe(4_320_000);
  });

  test("every delay is a whole number from 0 to 100 years, whatever the attempt and the randomness", () => {
    fc.assert(
      fc.property(
        anyBackoff,
        fc.oneof(fc.integer(), fc.double()),
        fc.double(),
        (backoff, attempt, random) => {
          const ms = backoffMs(backoff, attempt, () => random);
          expect(Number.isInteger(ms) && ms >= 0 && ms <= MAX_DELAY_MS).toBe(true);
        },
      ),
    );
  });

  test("without jitter a later attempt never waits less", () => {
    fc.assert(
      fc.property(anyBackoff, fc.integer({ min: 1, max: 2_000 }), (backoff, attempt) => {
        const plain = "jitter" in backoff ? { ...backoff, jitter: 0 } : backoff;
        expect(backoffMs(plain, attempt + 1, half)).toBeGreaterThanOrEqual(backoffMs(plain, attempt, half));
      }),
    );
  });
});

describe("making and checking", () => {
  test("the default is exponential from a minute to an hour, ± 20 %", () => {
    expect(DEFAULT_BACKOFF).toEqual({
      kind: "exponential",
      baseMs: 60_000,
      maxMs: 3_600_000,
      factor: 2,
      jitter: 0.2,
    });
    expect(exponential("1m")).toEqual(DEFAULT_BACKOFF);
  });

  test.each<[string, () => unknown, string]>([
    ["a negative base", () => exponential(-1), "BAD_DURATION"],
    ["a jitter over 1", () => exponential("1m", { jitter: 20 }), "BAD_OPTION"],
    ["a factor below 1", () => exponential("1m", { factor: 0.5 }), "BAD_OPTION"],
    ["a factor that is no number", () => exponential("1m", { factor: Number.NaN }), "BAD_OPTION"],
    ["an unknown option", () => fixed("1s", { jiter: 1 } as never), "UNKNOWN_OPTION"],
    ["an empty delay", () => fixed(""), "BAD_DURATION"],
    ["a string as a backoff", () => checkBackoff("exponential", "retry.backoff"), "BAD_OPTION"],
    ["an unknown kind", () => checkBackoff({ kind: "fibonacci" }, "retry.backoff"), "BAD_OPTION"],
    ["a kind with missing fields", () => checkBackoff({ kind: "fixed" }, "retry.backoff"), "BAD_OPTION"],
    [
      "NaN in a field",
      () => checkBackoff({ kind: "fixed", ms: Number.NaN, jitter: 0 }, "retry.backoff"),
      "BAD_OPTION",
    ],
  ])("%s is refused", (_, make, code) => {
    expect(make).toThrow(expect.objectContaining({ name: "UsageError", code }));
  });

  test("our backoffs and functions pass the check", () => {
    const own = (): number => 5;
    expect(checkBackoff(own, "retry.backoff")).toBe(own);
    expect(checkBackoff(power(), "retry.backoff")).toEqual(power());
  });

  test("a queue's knobs default to 60 s and 1,800 s, and 0 and 1e9 become 1 s and a day [D11]", () => {
    expect(queueBackoff()).toMatchObject({ baseMs: 60_000, maxMs: 1_800_000 });
    expect(queueBackoff({ base: 0, max: 0 })).toMatchObject({ baseMs: 1_000, maxMs: 1_000 });
    expect(queueBackoff({ base: 1e9, max: 1e9 })).toMatchObject({ baseMs: 86_400_000, maxMs: 86_400_000 });
    expect(queueBackoff({ base: "1000000000s", max: "2d" })).toMatchObject({
      baseMs: 86_400_000,
      maxMs: 86_400_000,
    });
  });
});
