// What a job's page makes of what it is told: moments, stacks, progress and lines. Pure.
import { describe, expect, test } from "vitest";
import type { WorkflowStep } from "../../src/dashboard/api/contract.ts";
import { foldOf, momentsOf } from "../../ui/src/job-page/timeline-moments.ts";
import { shareOf } from "../../ui/src/job-page/progress-share.ts";
import { linesOf } from "../../ui/src/workflows/step-lines.ts";
import { stackParts } from "../../ui/src/code/stack-frames.ts";
import { lifeOf } from "../../ui/src/workflows/waterfall.ts";

const job: Parameters<typeof momentsOf>[0] = {
  attempt: 1,
  context: null,
  crashes: 0,
  createdAt: 1_000,
  endedAt: null,
  failureGroup: null,
  errors: [],
  runAt: 1_000,
  startedAt: null,
  state: "ready",
  throttles: 0,
  workerId: null,
};
const failed = (attempt: number, at: number, ranMs: number | null) => ({
  at,
  attempt,
  message: `no. ${attempt}`,
  stack: null,
  ranMs,
  lost: false,
});
const told = (given: Partial<typeof job>, stepped = false) =>
  momentsOf({ ...job, ...given }, stepped).map(({ what, at }) => [what, at]);

describe("moments", () => {
  test("each attempt has its start where it was measured, its end, and the gap before it", () => {
    const list = momentsOf({
      ...job,
      state: "done",
      attempt: 3,
      errors: [failed(1, 2_500, 500), failed(2, 9_000, null)],
      startedAt: 20_000,
      endedAt: 21_000,
      runAt: 19_000,
      workerId: "web-1",
    });
    expect(list.map(({ what, at }) => [what, at])).toEqual([
      ["Enqueued", 1_000],
      ["Attempt 1 started", 2_000],
      ["Attempt 1 failed", 2_500],
      ["Attempt 2 failed", 9_000],
      ["Attempt 3 started", 20_000],
      ["Done", 21_000],
    ]);
    expect(list[4]?.why).toEqual([
      "on web-1",
      { before: "waited", ms: 1_000 },
      { ms: 11_000, after: "after the previous failure" },
    ]);
    expect(list.some(({ skewed }) => skewed)).toBe(false);
  });

  test("when it was due, is ready, or is tried next is told, and of a run no due time of its first start", () => {
    expect(told({ runAt: 5_000, state: "done", startedAt: 6_000, endedAt: 7_000 })).toContainEqual([
      "Due",
      5_000,
    ]);
    expect(told({ runAt: 5_000, state: "done", startedAt: 6_000, endedAt: 7_000 }, true)).not.toContainEqual([
      "Due",
      5_000,
    ]);
    expect(told({})).toContainEqual(["Ready", 1_000]);
    expect(told({ state: "scheduled", errors: [failed(1, 2_000, 1)], runAt: 9_000 }).at(-1)).toEqual([
      "Next attempt",
      9_000,
    ]);
    expect(told({ state: "scheduled", runAt: 9_000 })).toEqual([
      ["Enqueued", 1_000],
      ["Due", 9_000],
    ]);
  });

  test("crashes and throttles are told without an instant, which nobody kept", () => {
    expect(told({ crashes: 2, throttles: 1 }).filter(([, at]) => at === null)).toEqual([
      ["Worker lost 2 times", null],
      ["Throttled once", null],
    ]);
  });

  test("an attempt that was lost with its worker is told as such, with how long it was held", () => {
    const lost = { ...failed(1, 40_000, 30_000), message: "its worker died (crash 1)", lost: true };
    const list = momentsOf({ ...job, crashes: 2, errors: [lost], state: "running", startedAt: 41_000 });
    expect(list.map(({ what }) => what)).toEqual([
      "Enqueued",
      "Attempt 1 started",
      "Attempt 1 was lost: its worker died",
      "Attempt 1 started",
      "Worker lost once", // the other one, of which nothing is kept
    ]);
    expect(list[2]).toMatchObject({
      at: 40_000,
      kind: "warn",
      why: [
        "its worker died (crash 1)",
        { before: "held for", ms: 30_000, after: "until its lease expired" },
      ],
    });
    expect(list[3]?.why).toContainEqual({ ms: 1_000, after: "after the lost attempt" });
  });

  test("a run waited for its first step, as its bar has it, and went on when it was started again", () => {
    const waitOf = (given: Partial<typeof job>, firstStepAt: number): number | undefined => {
      const whole = { ...job, ...given };
      const wait = lifeOf(whole, firstStepAt, 9_000).bands.find(({ kind }) => kind === "wait");
      const list = momentsOf(whole, true, firstStepAt);
      const waits = list.flatMap(({ why }) => why.filter((one) => typeof one !== "string"));
      const told = waits.filter(({ before }) => before === "waited").map(({ ms }) => ms);
      expect(told).toEqual([wait === undefined ? 0 : wait.to - wait.from]);
      return told[0];
    };
    const slept: Partial<typeof job> = { state: "done", runAt: 5_000, startedAt: 5_000, endedAt: 5_100 };
    expect(waitOf(slept, 1_028)).toBe(28);
    expect(momentsOf({ ...job, ...slept }, true, 1_028).map(({ what, at }) => [what, at])).toEqual([
      ["Enqueued", 1_000],
      ["Started", 1_028],
      ["Went on", 5_000],
      ["Done", 5_100],
    ]);
    // While it sleeps for the first time.
    const sleeps: Partial<typeof job> = { state: "scheduled", attempt: 0, runAt: 9_000, startedAt: 1_020 };
    expect(waitOf(sleeps, 1_028)).toBe(28);
    expect(momentsOf({ ...job, ...sleeps }, true, 1_028).map(({ what }) => what)).toEqual([
      "Enqueued",
      "Started",
      "Due",
    ]);
    // It has not slept.
    const straight: Partial<typeof job> = { state: "done", startedAt: 1_020, endedAt: 1_100 };
    expect(waitOf(straight, 1_028)).toBe(20);
    expect(momentsOf({ ...job, ...straight }, true, 1_028).map(({ what }) => what)).toEqual([
      "Enqueued",
      "Attempt 1 started",
      "Done",
    ]);
    const again = {
      ...straight,
      attempt: 2,
      errors: [failed(1, 1_090, 70)],
      startedAt: 2_000,
      endedAt: 3_000,
    };
    expect(waitOf(again, 1_028)).toBe(20);
    expect(momentsOf({ ...job, ...again }, true, 1_028).map(({ what }) => what)).toEqual([
      "Enqueued",
      "Attempt 1 started",
      "Attempt 1 failed",
      "Attempt 2 started",
      "Done",
    ]);
  });

  test("of a long life the first and the last moments are shown", () => {
    expect(foldOf(10)).toBeNull();
    expect(foldOf(66)).toEqual({ from: 3, to: 62 });
  });

  test("what would be before what it came after has a badge, and no time is negative", () => {
    const list = momentsOf({ ...job, state: "done", startedAt: 500, endedAt: 400, runAt: 1_000 });
    expect(list.map(({ what, skewed }) => [what, skewed])).toEqual([
      ["Enqueued", false],
      ["Attempt 1 started", true],
      ["Done", true],
    ]);
    expect(list.flatMap(({ why }) => why)).toEqual([
      { before: "waited", ms: 0 },
      { before: "ran", ms: 0 },
    ]);
  });
});

describe("stacks", () => {
  test("runs of library frames fold, one alone does not, and causes stay", () => {
    const text = [
      "Error: no",
      "    at mine (/app/a.ts:1:1)",
      "    at lib (/app/node_modules/x/y.js:1:1)",
      "    at lib (C:\\app\\node_modules\\x\\y.js:1:1)",
      "    at process (node:internal/a:1:1)",
      "    at mine (/app/b.ts:1:1)",
      "    at one (node:fs:1:1)",
      "Caused by: Error: node_modules/x was gone",
      "    at mine (/app/c.ts:1:1)",
    ].join("\n");
    const parts = stackParts(text);
    expect(parts.map((part) => (part.kind === "library" ? part.lines.length : part.library))).toEqual([
      false,
      false,
      3,
      false,
      true,
      false,
      false,
    ]);
    const all = parts.flatMap((part) => (part.kind === "library" ? part.lines : [part.text]));
    expect(all.join("\n")).toBe(text);
  });
});

describe("progress", () => {
  test.each([
    ["0.25", 0.25, "25 %"],
    ["1", 1, "100 %"],
    ["40", 0.4, "40 %"],
    ['{"done":3,"total":12}', 0.25, "3 of 12"],
    ['{"processed":1500,"of":3000}', 0.5, "1,500 of 3,000"],
    ['{"percent":7}', 0.07, "7 %"],
  ])("%s is a share", (text, share, words) => {
    expect(shareOf(text)).toEqual({ share, words });
  });

  test.each([
    "101",
    "-1",
    '"half"',
    "null",
    "[1,2]",
    '{"done":5,"total":0}',
    '{"done":5,"total":3}',
    "{",
    "true",
  ])("%s is shown as it is", (text) => {
    expect(shareOf(text)).toBeNull();
  });
});

test("lines of a history are JSON, newest first, and keep every digit of a result", () => {
  const step = { seq: 0, name: "a", output: '{\n  "n": 12345678901234567890.10\n}' } as WorkflowStep;
  const lines = linesOf([step, { ...step, seq: 1, name: "b", output: null }]);
  expect(lines).toEqual([
    '{"seq":1,"name":"b"}',
    '{"seq":0,"name":"a","output":{"n": 12345678901234567890.10}}',
  ]);
});
