// Cron patterns and time zones, against an oracle (cron-oracle.ts). All zones: cron-zones.slow.test.ts.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cronTiming, intervalTiming } from "../../src/schedules/cron.ts";
import { at, hour, iso, minute, minutesOf, oracle, patterns, occurrences } from "./cron-oracle.ts";

describe("cron in a time zone", () => {
  test.each([
    ["Pacific/Apia", "2011-12-30T10:00:00Z", "a day that was left out"],
    ["Pacific/Kwajalein", "1993-08-21T12:00:00Z", "a day that was left out"],
    ["Europe/Dublin", "2026-10-25T01:00:00Z", "winter time that is the exception"],
    ["Africa/Casablanca", "2026-02-15T02:00:00Z", "the clock is put back for Ramadan"],
    ["Australia/Lord_Howe", "2026-10-03T15:30:00Z", "a gap of half an hour"],
    ["Antarctica/Troll", "2026-03-29T01:00:00Z", "a gap of two hours"],
    ["America/Caracas", "2016-05-01T07:00:00Z", "a change of half an hour for good"],
  ])("[G1] %s at %s (%s): as the oracle says", (zone, change) => {
    const from = at(change) - 30 * hour;
    const to = at(change) + 30 * hour;
    const walk = minutesOf(zone, from, to);
    for (const pattern of patterns) {
      const timing = cronTiming(pattern, zone);
      const expected = oracle(pattern, walk, from);
      expect(iso(occurrences(timing, from, to)), pattern).toEqual(iso(expected));
      // Also asked from anywhere: a worker may start in the middle of an hour that comes for the second time.
      for (let asked = from; asked < to; asked += 10 * minute) {
        const next = expected.find((occurrence) => occurrence > asked);
        if (next !== undefined && timing.next(asked) !== next)
          expect(timing.next(asked), `${pattern} after ${iso([asked])[0]}`).toBe(next);
      }
    }
  });

  test("[G1] a time that is skipped fires once, right after the gap", () => {
    const berlin = cronTiming("30 2 * * *", "Europe/Berlin");
    expect(iso(occurrences(berlin, at("2026-03-28T12:00Z"), at("2026-03-30T12:00Z")))).toEqual([
      "2026-03-29T01:00Z",
      "2026-03-30T00:30Z",
    ]);
    const howe = cronTiming("15 2 * * *", "Australia/Lord_Howe");
    expect(iso(occurrences(howe, at("2026-10-03T00:00Z"), at("2026-10-04T00:00Z")))).toEqual([
      "2026-10-03T15:30Z",
    ]);
  });

  test("[G1] a time that comes twice fires once, when it first comes", () => {
    const daily = cronTiming("30 2 * * *", "Europe/Berlin");
    expect(iso(occurrences(daily, at("2026-10-24T12:00Z"), at("2026-10-26T00:00Z")))).toEqual([
      "2026-10-25T00:30Z",
    ]);
    const twice = cronTiming("*/30 1 * * *", "America/New_York");
    expect(iso(occurrences(twice, at("2026-11-01T00:00Z"), at("2026-11-01T12:00Z")))).toEqual([
      "2026-11-01T05:00Z",
      "2026-11-01T05:30Z",
    ]);
  });

  test("[G1] a pattern of every hour goes on in real time through both changes", () => {
    for (const [from, to] of [
      ["2026-03-28T22:00Z", "2026-03-29T06:00Z"],
      ["2026-10-24T22:00Z", "2026-10-25T06:00Z"],
    ] as const) {
      const found = occurrences(cronTiming("*/15 * * * *", "Europe/Berlin"), at(from), at(to));
      expect(found).toHaveLength(32);
      expect(found.every((occurrence, i) => occurrence === at(from) + (i + 1) * 15 * minute)).toBe(true);
    }
  });
});

describe("patterns", () => {
  const start = at("2026-01-01T00:00:00Z");
  test.each([
    ["* * * * *", "UTC", ["2026-01-01T00:01Z", "2026-01-01T00:02Z"]],
    ["*/20 * * * * *", "UTC", ["2026-01-01T00:00:20.000Z", "2026-01-01T00:00:40.000Z"]],
    ["0 30 2 * * * 2027", "UTC", ["2027-01-01T02:30Z", "2027-01-02T02:30Z"]],
    ["@daily", "Asia/Kolkata", ["2026-01-01T18:30Z", "2026-01-02T18:30Z"]],
    ["0 0 L * *", "UTC", ["2026-01-31T00:00Z", "2026-02-28T00:00Z"]],
    ["0 9 * * MON-FRI", "UTC", ["2026-01-01T09:00Z", "2026-01-02T09:00Z"]],
    ["0 0 29 2 *", "UTC", ["2028-02-29T00:00Z", "2032-02-29T00:00Z"]],
    ["0 0 13 * 5", "UTC", ["2026-01-02T00:00Z", "2026-01-09T00:00Z"]], // the 13th or a Friday
    ["0 * 29 2 *", "Europe/Berlin", ["2028-02-28T23:00Z", "2028-02-29T00:00Z"]],
  ])("%s in %s", (pattern, zone, expected) => {
    const timing = cronTiming(pattern, zone);
    const first = timing.next(start) as number;
    expect(iso([first, timing.next(first) as number])).toEqual(expected);
  });

  test("[G2] every occurrence is later than what was asked for, and none lies between", () => {
    const field = (low: number, high: number): fc.Arbitrary<string> =>
      fc.oneof(
        fc.constant("*"),
        fc.integer({ min: 2, max: 20 }).map((step) => `*/${step}`),
        fc
          .array(fc.integer({ min: low, max: high }), { minLength: 1, maxLength: 3 })
          .map((list) => list.join()),
      );
    const weekday = fc.constantFrom("*", "1-5", "0", "6,7", "*/2");
    const pattern = fc.tuple(field(0, 59), field(0, 23), fc.constant("*"), fc.constant("*"), weekday);
    const zone = fc.constantFrom("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe");
    fc.assert(
      fc.property(pattern, zone, fc.integer({ min: 0, max: 366 * 24 * 60 }), (fields, name, offset) => {
        const timing = cronTiming(fields.join(" "), name);
        const from = start + offset * minute;
        const next = timing.next(from) as number;
        expect(next).toBeGreaterThan(from);
        const between = from + Math.floor((next - from) / 2);
        expect(timing.next(between - 1)).toBe(next);
        expect(timing.next(next - 1)).toBe(next);
      }),
      { numRuns: 200 },
    );
  });

  test("an end of the years is an end", () => {
    expect(cronTiming("0 0 0 1 1 * 2020", "UTC").next(start)).toBeNull();
    expect(cronTiming("0 0 * * * * 2025", "Europe/Berlin").next(start)).toBeNull();
  });

  test.each([
    "",
    "* * * *",
    "* * * * * * * *",
    "60 * * * *",
    "0 24 * * *",
    "0 0 32 * *",
    "0 0 30 2 *",
    "*/0 * * * *",
    "1--100000000 * * * *",
    "a * * * *",
    "-1 * * * *",
    "0.5 * * * *",
    "@reboot",
    "2026-05-05T00:00:00",
    `${"1,".repeat(50_000)}1 * * * *`,
    null,
    5,
    {},
  ])("[G2] refuses the pattern %s", (pattern) => {
    expect(() => cronTiming(pattern, "UTC")).toThrow(expect.objectContaining({ code: "BAD_CRON" }));
  });

  test.each(["", "Mars/Olympus", "Europe", "x".repeat(1_000), 1, null])("refuses the zone %s", (zone) => {
    expect(() => cronTiming("* * * * *", zone)).toThrow(expect.objectContaining({ code: "BAD_TIMEZONE" }));
  });
});

describe("intervals", () => {
  test("fire at whole multiples of the interval after the anchor, the first one interval later", () => {
    const timing = intervalTiming(90_000, 1_000);
    expect([timing.next(0), timing.next(1_000), timing.next(90_999), timing.next(91_000)]).toEqual([
      91_000, 91_000, 91_000, 181_000,
    ]);
    expect(timing.next(1_000 + 90_000 * 1e6)).toBe(1_000 + 90_000 * (1e6 + 1));
  });
});
