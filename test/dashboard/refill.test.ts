// What a budget has between two looks at it, and when it gives again.
import { expect, test } from "vitest";
import { refillOf, tokensAt } from "../../ui/src/limits/budget-refill.ts";

const slack = { tokens: 0.25, limit: 30, perMs: 60_000, burst: 10, at: 1_000_000 };

test("it grows by its rate up to its burst, and a clock that is behind takes nothing away", () => {
  expect(tokensAt(slack, slack.at)).toBe(0.25);
  expect(tokensAt(slack, slack.at + 1_500)).toBe(1);
  expect(tokensAt(slack, slack.at + 3_600_000)).toBe(10);
  expect(tokensAt(slack, slack.at - 5_000)).toBe(0.25);
});

test("first the next one is waited for, then only that it is full; one that holds no whole token has no next one", () => {
  expect(refillOf(slack, slack.at)).toEqual({ nextMs: 1_500, fullMs: 19_500 });
  expect(refillOf(slack, slack.at + 1_500)).toEqual({ nextMs: null, fullMs: 18_000 });
  expect(refillOf(slack, slack.at + 19_500)).toEqual({ nextMs: null, fullMs: 0 });
  expect(refillOf({ ...slack, burst: 0.5 }, slack.at)).toEqual({ nextMs: null, fullMs: 500 });
});
