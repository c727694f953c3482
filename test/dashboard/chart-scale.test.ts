// What the axes of a chart are marked by.
import { expect, test } from "vitest";
import { axisSize, DURATIONS, timeRange } from "../../ui/src/charts/axis-scale.ts";
import { duration, durationMark } from "../../ui/src/text/quantities.ts";

test("[K2] a chart with one instant, or none, shows the minute before it, and others what they have", () => {
  expect(timeRange([1_000], 7_000)).toEqual([940, 1_000]);
  expect(timeRange([], 7_000)).toEqual([6_940, 7_000]);
  expect(timeRange([990, 1_000], 7_000)).toEqual([940, 1_000]);
  expect(timeRange([100, 500, 1_000], 7_000)).toEqual([100, 1_000]);
});

test("[K2] steps of an axis of durations are whole numbers of one unit, and no two of its marks read the same", () => {
  for (const step of DURATIONS) {
    expect(durationMark(step)).toMatch(/^[\d,]+ (?:ms|s|min|h|d)$/);
    const marks = [0, 1, 2, 3, 4, 5].map((n) => durationMark(n * step));
    expect(new Set(marks).size, marks.join()).toBe(marks.length);
  }
});

test("[K2] the longest mark has room beside the plot, and short ones no less than before", () => {
  expect(axisSize(null)).toBe(62);
  expect(axisSize([])).toBe(62);
  expect(axisSize(["1 s", "2 s"])).toBe(62);
  const longest = duration(1_000_000);
  expect(longest).toBe("16 min 40 s");
  // At 11 px a digit is some 6.2 px wide, with 10 px between the words and the plot.
  expect(axisSize(["5 s", longest])).toBeGreaterThanOrEqual(longest.length * 6.2 + 10);
  expect(axisSize([longest])).toBe(axisSize(["5 s", longest]));
});

test("[K2] the marks of an axis of times are whole: 5 s stands below 10 s", () => {
  expect([0, 500, 5_000, 10_000, 60_000].map(durationMark)).toEqual(["0", "500 ms", "5 s", "10 s", "1 min"]);
  expect(durationMark(2_500)).toBe(duration(2_500));
});
