// How late a run started, from what is kept of it: said where it is known, and not guessed where it is not.
import { expect, test } from "vitest";
import { type KeptRun, lateMsOf, ranMsOf } from "../../src/schedules/lateness.ts";

const at = 1_000_000;
const kept: KeptRun = {
  attempt: 1,
  crashes: 0,
  throttles: 0,
  runAt: at,
  startedAt: at + 40,
  endedAt: at + 100,
  stepped: false,
  failures: [],
};
const failure = { at: at + 90, attempt: 1, message: "no", stack: null, ranMs: 60 };
const retried: KeptRun = {
  ...kept,
  attempt: 2,
  runAt: at + 5_090,
  startedAt: at + 5_100,
  endedAt: at + 5_300,
  failures: [failure],
};

test.each<[string, Partial<KeptRun> & { jitter?: number }, number | null]>([
  ["taken up once: its start", kept, 40],
  ["with jitter that was given to it", { ...kept, runAt: at + 900, startedAt: at + 905, jitter: 1_000 }, 905],
  ["never before its occurrence, whatever a clock said", { ...kept, startedAt: at - 5 }, 0],
  ["not started", { ...kept, startedAt: null, endedAt: null }, null],
  ["retried: the start of its first attempt, not of the latest", retried, 30],
  ["retried within its jitter", { ...retried, jitter: 60_000 }, 30],
  ["its first failure is not kept any more", { ...retried, failures: [{ ...failure, attempt: 7 }] }, null],
  [
    "its first failure was not measured",
    { ...retried, failures: [{ at: at + 90, attempt: 1, message: "no", stack: null }] },
    null,
  ],
  ["a worker died under it", { ...retried, crashes: 1 }, null],
  ["it was throttled", { ...kept, throttles: 2, runAt: at + 9_000 }, null],
  ["it was given back, or slept", { ...kept, runAt: at + 9_000, startedAt: at + 9_001 }, null],
  ["it has steps, and failed after it may have slept", { ...retried, stepped: true }, null],
  ["it has steps, and was taken up once", { ...kept, stepped: true }, 40],
])("how late, %s", (_name, { jitter = 0, ...run }, late) => {
  expect(lateMsOf(at, { ...kept, ...run }, jitter)).toBe(late);
});

test("how long the latest attempt ran is known when it has ended", () => {
  expect(ranMsOf(retried)).toBe(200);
  expect(ranMsOf({ startedAt: at, endedAt: null })).toBeNull();
  expect(ranMsOf({ startedAt: null, endedAt: at })).toBeNull();
  expect(ranMsOf({ startedAt: at + 5, endedAt: at })).toBe(0);
});
