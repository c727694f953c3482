// Counts of the page that must not contradict each other.
import { expect, test } from "vitest";
import { within } from "../../ui/src/text/quantities.ts";

test("[K1] a part is never more than the whole, which was counted at another moment", () => {
  const some = (count: number, more = false) => ({ count, more });
  expect(within(some(75), some(77))).toEqual(some(75));
  expect(within(some(77), some(76))).toEqual(some(76));
  expect(within(some(3, true), some(77))).toEqual(some(3, true));
  expect(within(some(80, true), some(77))).toEqual(some(77));
  expect(within(some(500), some(200, true))).toEqual(some(500));
});
