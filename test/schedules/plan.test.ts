// Which occurrences of a downtime fire, against a list of all of them.
import fc from "fast-check";
import { expect, test } from "vitest";
import { cronTiming, intervalTiming, type Timing } from "../../src/schedules/cron.ts";
import { LATE_MS, type Missed, MOST_CATCH_UP, planOccurrences } from "../../src/schedules/plan.ts";

const second = 1_000;
const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const start = Date.UTC(2026, 0, 1);

/** Every occurrence in (from, to]. */
function occurrences(timing: Timing, from: number, to: number): number[] {
  const found: number[] = [];
  for (let at = timing.next(from); at !== null && at <= to; at = timing.next(at)) found.push(at);
  return found;
}

/** The plan as the documentation says it, from all occurrences that were due. */
function expected(due: readonly number[], missed: Missed, now: number) {
  const inTime = due.filter((occurrence) => now - occurrence <= LATE_MS);
  const late = due.filter((occurrence) => now - occurrence > LATE_MS);
  const made = { skip: 0, one: inTime.length > 0 ? 0 : 1, all: MOST_CATCH_UP }[missed];
  const madeUp = late.slice(Math.max(0, late.length - made));
  return { fire: [...madeUp, ...inTime], missed: late.length - madeUp.length };
}

function check(timing: Timing, first: number, now: number): void {
  const due = [first, ...occurrences(timing, first, now)];
  for (const missed of ["skip", "one", "all"] as const) {
    const { fire, missed: count, nextAt } = planOccurrences(timing, missed, first, now);
    expect({ fire, missed: count }, `missed ${missed}, ${due.length} due`).toEqual(
      expected(due, missed, now),
    );
    expect(nextAt).toBe(timing.next(now));
  }
}

test("[G4] after any downtime the newest thousand are made up for, none in time is lost, the rest is missed", () => {
  const everySecond = intervalTiming(second, start);
  for (const slept of [1, 59, 60, 61, 62, 999, 1_000, 1_001, 1_060, 1_061, 1_062, 1_500, 1_999, 2_001, 5_000])
    check(everySecond, start + second, start + slept * second);
  const everyMinute = cronTiming("* * * * *", "Europe/Berlin");
  for (const slept of [999, 1_000, 1_001, 1_002, 1_003, 1_500, 2_000, 2_048, 3_000])
    check(everyMinute, start + minute, start + slept * minute + 30 * second);
});

test.each([
  ["* * 3 * * *", "UTC"], // an hour full of them, a day of none
  ["* * * 1 * *", "America/New_York"],
  ["*/2 * * * * *", "Europe/Berlin"],
  ["*/5 1-3 * * *", "Europe/Berlin"],
  ["0,30 */2 * * *", "Australia/Lord_Howe"],
  ["0 0 1 * *", "UTC"],
])("[G4] occurrences that come in bursts, and changes of the clocks: %s in %s", (pattern, zone) => {
  const timing = cronTiming(pattern, zone);
  for (const from of [Date.UTC(2026, 2, 7, 11), Date.UTC(2026, 2, 28, 20), Date.UTC(2026, 9, 24, 20)])
    for (const slept of [hour, 7 * hour, 3 * day]) {
      const first = timing.next(from) as number;
      if (first <= from + slept) check(timing, first, from + slept);
    }
});

test("[G4] occurrences are counted as a walk through them counts them", () => {
  const pattern = fc.constantFrom(
    "* * * * *",
    "*/15 * * * *",
    "0 * * * *",
    "30 2 * * *",
    "*/20 1-3 * * *",
    "59 23 * * *",
    "0 0 * * *",
    "* 2 * * 0",
    "0 12 L * *",
    "0 0 0 1 1 * 2026",
  );
  const zone = fc.constantFrom(
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Tokyo",
  );
  // Around the changes of the clocks, and anywhere.
  const from = fc.oneof(
    fc.integer({ min: 0, max: 400 * 24 * 60 }).map((minutes) => start + minutes * minute),
    fc
      .tuple(
        fc.constantFrom(Date.UTC(2026, 2, 29, 1), Date.UTC(2026, 9, 25, 1), Date.UTC(2026, 10, 1, 6)),
        fc.integer({ min: -12 * 3_600, max: 12 * 3_600 }),
      )
      .map(([at, seconds]) => at + seconds * second),
  );
  fc.assert(
    fc.property(pattern, zone, from, fc.integer({ min: 0, max: 3 * 86_400 }), (text, name, at, seconds) => {
      const timing = cronTiming(text, name);
      const to = at + seconds * second;
      expect(timing.count(at, to)).toBe(occurrences(timing, at, to).length);
    }),
    { numRuns: 300 },
  );
});

test("[G4] years of absence are planned without a walk through them", () => {
  const timing = cronTiming("* * * * * *", "Europe/Berlin");
  let asked = 0;
  const counting: Timing = {
    next: (after) => {
      asked += 1;
      return timing.next(after);
    },
    count: (after, to) => timing.count(after, to),
  };
  const now = start + 1_000 * day;
  const plan = planOccurrences(counting, "all", start, now);
  expect(plan.fire.at(-1)).toBe(now);
  expect(plan.fire).toHaveLength(1_061);
  expect(plan.missed).toBe(1_000 * 86_400 + 1 - 1_061);
  expect(asked).toBeLessThan(1_100);
});
