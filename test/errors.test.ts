// Errors and decisions: codes, causes, and recognition across copies of the package.
import { inspect } from "node:util";
import { describe, expect, test, vi } from "vitest";
import * as decisions from "../src/jobs/decision.ts";
import * as errors from "../src/errors.ts";

const { Dead, Release, RetryAfter, Throttled, isDead, isRelease, isRetryAfter, isThrottled } = decisions;

async function otherCopy(): Promise<{ decisions: typeof decisions; errors: typeof errors }> {
  vi.resetModules();
  return {
    decisions: await import("../src/jobs/decision.ts"),
    errors: await import("../src/errors.ts"),
  };
}

const hostile = new Proxy(
  {},
  {
    has: () => {
      throw new Error("no");
    },
  },
);

describe("errors", () => {
  test("an error has its class's name, a code, details and a cause", () => {
    const cause = new Error("root");
    const error = new errors.StateError("LEASE_LOST", "Job 1 is lost.", { details: { job: 1 }, cause });
    expect(error).toMatchObject({
      name: "StateError",
      code: "LEASE_LOST",
      message: "Job 1 is lost.",
      details: { job: 1 },
      cause,
    });
    expect(error).toBeInstanceOf(errors.HoldfastError);
    expect(error.stack).toMatch(/^StateError: Job 1 is lost\./);
  });

  test("without extras there are empty details and no cause", () => {
    const error = new errors.StoreError("DISK_FULL", "full");
    expect(error.details).toEqual({});
    expect("cause" in error).toBe(false);
    expect(inspect(error)).not.toContain("Symbol");
  });

  test("an error of another copy of the package is recognised", async () => {
    const other = await otherCopy();
    const error = new other.errors.JobError("TIMEOUT", "timeout after 600s");
    expect(error).not.toBeInstanceOf(errors.HoldfastError);
    expect(errors.isHoldfastError(error)).toBe(true);
  });

  test.each([
    null,
    undefined,
    5,
    "x",
    {},
    new Error("x"),
    Object.assign(new Error("x"), { code: "TIMEOUT" }),
    hostile,
  ])("what is not ours is not recognised", (value) => {
    expect(errors.isHoldfastError(value)).toBe(false);
  });

  test("a value in a message is short, on one line, and never the content of an object", () => {
    expect(errors.shown("a\nb")).toBe('"a\\nb"');
    expect(errors.shown("x".repeat(1_000))).toHaveLength(62);
    expect(errors.shown({ secret: 1 })).toBe("an object");
    expect([[], null, undefined, -0, 5n, () => 1, Symbol("x"), Number.NaN].map(errors.shown)).toEqual([
      "an array",
      "null",
      "undefined",
      "-0",
      "the BigInt 5n",
      "a function",
      "a symbol",
      "NaN",
    ]);
  });
});

describe("decisions", () => {
  test("Dead has its reason and cause", () => {
    const cause = new Error("root");
    expect(new Dead("gone", { cause })).toMatchObject({
      name: "Dead",
      message: "gone",
      reason: "gone",
      cause,
    });
    expect("cause" in new Dead("gone")).toBe(false);
  });

  test("RetryAfter takes a duration or an instant", () => {
    expect(new RetryAfter("15m", "closed")).toMatchObject({
      name: "RetryAfter",
      delayMs: 900_000,
      at: null,
      reason: "closed",
    });
    expect(new RetryAfter(new Date(5_000))).toMatchObject({
      delayMs: null,
      at: 5_000,
      reason: "retry later",
    });
    expect(new RetryAfter("15m").delayFrom(1)).toBe(900_000);
    expect(new RetryAfter(new Date(5_000)).delayFrom(2_000)).toBe(3_000);
    expect(new RetryAfter(new Date(5_000)).delayFrom(9_000)).toBe(0);
  });

  test("Throttled and Release have defaults for everything", () => {
    expect(new Throttled()).toMatchObject({ name: "Throttled", retryAfterMs: null, reason: "throttled" });
    expect(new Throttled("5s", "429")).toMatchObject({ retryAfterMs: 5_000, reason: "429" });
    expect(new Release()).toMatchObject({ name: "Release", delayMs: 0, reason: "released" });
    expect(new Release("session expired", { delay: "1m" })).toMatchObject({
      delayMs: 60_000,
      reason: "session expired",
    });
  });

  test.each<[string, () => unknown, string]>([
    ["Dead without a reason", () => new Dead(undefined as never), "BAD_OPTION"],
    ["Dead with an error as its reason", () => new Dead(new Error("x") as never), "BAD_OPTION"],
    ["Dead with an unknown option", () => new Dead("x", { couse: 1 } as never), "UNKNOWN_OPTION"],
    ["RetryAfter with a negative delay", () => new RetryAfter(-1), "BAD_DURATION"],
    ["RetryAfter with an invalid Date", () => new RetryAfter(new Date(Number.NaN)), "BAD_INSTANT"],
    ["RetryAfter without anything", () => new RetryAfter(undefined as never), "BAD_INSTANT"],
    ["Throttled with NaN", () => new Throttled(Number.NaN), "BAD_DURATION"],
    ["Release with a bad delay", () => new Release("x", { delay: "soon" }), "BAD_DURATION"],
  ])("%s is refused where it is made", (_, make, code) => {
    expect(make).toThrow(expect.objectContaining({ name: "UsageError", code }));
  });

  test("each is recognised as itself alone, also from another copy of the package", async () => {
    const other = (await otherCopy()).decisions;
    const guards = [isDead, isRetryAfter, isThrottled, isRelease];
    for (const kit of [decisions, other]) {
      const made = [new kit.Dead("x"), new kit.RetryAfter(1), new kit.Throttled(), new kit.Release()];
      expect(made.map((decision) => guards.map((guard) => guard(decision)))).toEqual(
        made.map((_, i) => guards.map((__, j) => i === j)),
      );
    }
    for (const value of [null, undefined, 5, new Error("Dead"), { name: "Dead" }, hostile]) {
      expect(guards.some((guard) => guard(value))).toBe(false);
    }
  });
});
