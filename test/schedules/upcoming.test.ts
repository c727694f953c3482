// What schedules will do: occurrences by pieces of time, and what changes of the clocks do to them.
import { describe, expect, test } from "vitest";
import { cronTiming, intervalTiming } from "../../src/schedules/cron.ts";
import { countOccurrences, localOccurrences } from "../../src/schedules/upcoming.ts";

const quarter = 15 * 60_000;
const from = Date.UTC(2026, 5, 1);

describe("occurrences by pieces of time", () => {
  test("each occurrence is counted in its piece, an occurrence on the edge in the later one", () => {
    const hourly = countOccurrences(cronTiming("0 * * * *", "UTC"), from, quarter, 8, 100);
    expect(hourly).toEqual({ counts: [1, 0, 0, 0, 1, 0, 0, 0], estimated: false });
    const ten = countOccurrences(intervalTiming(600_000, from), from, quarter, 4, 100);
    expect(ten.counts.reduce((sum, n) => sum + n, 0)).toBe(5);
  });

  test("more occurrences than may be walked through go on at the same rate, and it is said", () => {
    const every = countOccurrences(cronTiming("* * * * * *", "UTC"), from, quarter, 96, 1_000);
    expect(every.estimated).toBe(true);
    for (const count of every.counts) expect(Math.abs(count - 900)).toBeLessThan(10);
  });

  test("a pattern that has no occurrence there gives none", () => {
    expect(countOccurrences(cronTiming("0 0 25 12 *", "UTC"), from, quarter, 4, 10).counts).toEqual([
      0, 0, 0, 0,
    ]);
  });
});

describe("changes of the clocks", () => {
  const occurrencesOf = (pattern: string, zone: string, after: number, n: number): number[] => {
    const timing = cronTiming(pattern, zone);
    const occurrences: number[] = [];
    for (let at = timing.next(after); at !== null && occurrences.length < n; at = timing.next(at))
      occurrences.push(at);
    return occurrences;
  };
  const notes = (pattern: string, zone: string, after: number, n = 3) =>
    localOccurrences(occurrencesOf(pattern, zone, after, n), zone, after);

  test("a time that is skipped says so, and so does the next occurrence after an ordinary one", () => {
    const start = Date.UTC(2026, 2, 28, 12);
    const [skipped, next] = notes("30 2 * * *", "Europe/Berlin", start);
    expect(skipped).toEqual({
      at: Date.UTC(2026, 2, 29, 1),
      local: "2026-03-29 03:00:00",
      offset: "+02:00",
      note: "the clocks go forward 1 h: skipped times run now",
    });
    expect(next?.note).toBeNull();
    const [after] = notes("0 9 * * *", "Europe/Berlin", start);
    expect(after?.note).toBe("after the clocks have gone forward 1 h");
  });

  test("a time that comes twice says so", () => {
    const [twice, next] = notes("30 2 * * *", "Europe/Berlin", Date.UTC(2026, 9, 24, 12));
    expect(twice).toMatchObject({
      local: "2026-10-25 02:30:00",
      offset: "+02:00",
      note: "this time occurs twice because the clocks go back; it runs the first time",
    });
    expect(next).toMatchObject({ offset: "+01:00", note: "after the clocks have gone back 1 h" });
  });

  test("half an hour is half an hour, west is west, and UTC has no notes", () => {
    const lord = notes("0 9 * * *", "Australia/Lord_Howe", Date.UTC(2026, 3, 4), 3);
    expect(lord.map(({ note }) => note)).toContain("after the clocks have gone back 30 min");
    expect(notes("0 9 * * *", "America/St_Johns", Date.UTC(2026, 0, 1), 1)[0]?.offset).toBe("-03:30");
    expect(notes("0 9 * * *", "UTC", Date.UTC(2026, 2, 28), 5).every(({ note }) => note === null)).toBe(true);
  });
});
