// Timings in words, and what is better left as it is written. A sentence that is said is also held against the occurrences themselves.
import { describe, expect, test } from "vitest";
import { cronTiming } from "../../src/schedules/cron.ts";
import { timingInWords } from "../../src/schedules/cron-words.ts";

const of = (cron: string, timezone: string | null = null) => timingInWords({ cron, everyMs: null, timezone });

test.each([
  ["* * * * *", "Every minute"],
  ["*/15 * * * *", "Every 15 minutes"],
  ["0-59/15 * * * *", "Every 15 minutes"],
  ["0 * * * *", "Every hour"],
  ["@hourly", "Every hour"],
  ["5 * * * *", "Every hour at :05"],
  ["0,30 * * * *", "Every hour at :00 and :30"],
  ["*/10 * * * * *", "Every 10 seconds"],
  ["* * * * * *", "Every second"],
])("%s is %s, in any zone", (cron, words) => {
  expect(of(cron, "Asia/Tokyo")).toBe(words);
});

test.each([
  ["0 9 * * 1-5", "Weekdays at 09:00"],
  ["0 9 * * MON-FRI", "Weekdays at 09:00"],
  ["0 9 * * 1,2,3,4,5", "Weekdays at 09:00"],
  ["0 9 * * 0-6", "Every day at 09:00"],
  ["30 2 * * *", "Every day at 02:30"],
  ["0 30 2 * * *", "Every day at 02:30"],
  ["0 30 2 * * * *", "Every day at 02:30"],
  ["@daily", "Every day at 00:00"],
  ["@weekly", "Sundays at 00:00"],
  ["0 6 * * 7", "Sundays at 06:00"],
  ["0 6 * * 6,0", "Saturdays and Sundays at 06:00"],
  ["0 6 * * mon,wed,fri", "Mondays, Wednesdays and Fridays at 06:00"],
  ["0 9,12,17 * * *", "Every day at 09:00, 12:00 and 17:00"],
  ["0 */6 * * *", "Every 6 hours"],
  ["30 */6 * * *", "Every 6 hours at :30"],
  ["0 9-17 * * 1-5", "Weekdays, every hour from 09:00 to 17:00"],
  ["*/20 9-17 * * *", "Every 20 minutes from 09:00 to 17:40"],
  ["*/7 8-18 * * 1-5", "Weekdays, every 7 minutes of each hour (:00 to :56) from 08:00 to 18:56"],
  ["*/25 9 * * *", "Every 25 minutes of each hour (:00 to :50) from 09:00 to 09:50"],
  ["*/20 9 * * *", "Every 20 minutes from 09:00 to 09:40"],
  ["*/5 * * * 6", "Saturdays, every 5 minutes"],
  ["0 3 1 * *", "The 1st of each month at 03:00"],
  ["0 3 1,15 * *", "The 1st and 15th of each month at 03:00"],
  ["0 3 2,3,11,22 * *", "The 2nd, 3rd, 11th and 22nd of each month at 03:00"],
  ["0 3 L * *", "The last day of each month at 03:00"],
  ["0 0 1 1 *", "Every year on 1 January at 00:00"],
  ["0 0 1 1,7 *", "The 1st of January and July at 00:00"],
  ["0 8 * 6 *", "Every day in June at 08:00"],
  ["0 8 * JUN,JUL 1-5", "Weekdays in June and July at 08:00"],
])("%s is %s", (cron, words) => {
  expect(of(cron, "Europe/London")).toBe(`${words}, Europe/London`);
  expect(of(cron)).toBe(words);
});

test.each([
  "0 9 1 * 1", // the first, or Mondays?
  "*/7 * * * *", // not even: 56, then 0
  "*/45 9-17 * * *",
  "0 */5 * * *",
  "0 9 * * 1#2",
  "0 9 15W * *",
  "0 9 * * 5L",
  "0,10,20,30,40 9 * * *",
  "0 9 * * * 2027 *",
  "0 0 9 * * * 2027",
  "30 0 9 * * *",
  "0 22-3 * * *",
  "0 9 1-20 * *",
  "0 9 * 1-6 *",
  "nonsense",
  "",
])("%s stays as it is written", (cron) => {
  expect(of(cron)).toBe(cron);
  expect(of(cron, "UTC")).toBe(`${cron}, UTC`);
});

test.each([
  [60_000, "Every minute"],
  [90_000, "Every 90 seconds"],
  [7_200_000, "Every 2 hours"],
  [86_400_000, "Every day"],
  [1_500, "Every 1500 milliseconds"],
])("an interval of %d ms is %s", (everyMs, words) => {
  expect(timingInWords({ cron: null, everyMs, timezone: null })).toBe(words);
  expect(timingInWords({ cron: null, everyMs: null, timezone: null })).toBe("—");
});

describe("what is said is so", () => {
  const from = Date.UTC(2026, 10, 16); // a Monday
  const week = (cron: string): string[] => {
    const found: string[] = [];
    const timing = cronTiming(cron, "UTC");
    for (let at = timing.next(from - 1); at !== null && at < from + 7 * 86_400_000; at = timing.next(at))
      found.push(new Date(at).toISOString().slice(8, 16));
    return found;
  };
  test("the ends of a stretch, and the days of a week", () => {
    expect([week("*/20 9-17 * * 1")[0], week("*/20 9-17 * * 1").at(-1)]).toEqual(["16T09:00", "16T17:40"]);
    const sevens = week("*/7 8-18 * * 1");
    expect([sevens[0], sevens[8], sevens[9], sevens.at(-1), sevens.length]).toEqual([
      "16T08:00",
      "16T08:56",
      "16T09:00",
      "16T18:56",
      9 * 11,
    ]);
    expect(week("0 6 * * 7")).toEqual(["22T06:00"]);
    expect(week("0 6 * * 6,0")).toEqual(["21T06:00", "22T06:00"]);
    expect(week("0 9 * * MON-FRI")).toHaveLength(5);
    expect(week("*/15 9 * * 2")).toEqual(["17T09:00", "17T09:15", "17T09:30", "17T09:45"]);
  });
});
