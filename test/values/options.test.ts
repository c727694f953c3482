// Options objects: nothing that a user writes is silently ignored.
import vm from "node:vm";
import { describe, expect, test } from "vitest";
import { checkInteger, checkOptions } from "../../src/values/options.ts";

const allowed = ["delay", "at", "priority", "queue", "concurrency"];

describe("checkOptions", () => {
  test("known options pass, also none, also from another realm", () => {
    const options = { delay: "5m", at: undefined };
    expect(checkOptions(options, allowed, "enqueue")).toBe(options);
    expect(checkOptions(undefined, allowed, "enqueue")).toEqual({});
    expect(checkOptions(Object.create(null), allowed, "enqueue")).toEqual({});
    expect(checkOptions(vm.runInNewContext("({ delay: 5 })"), allowed, "enqueue")).toEqual({ delay: 5 });
  });

  test.each([
    ["dealy", "delay"],
    ["Priority", "priority"],
    ["prority", "priority"],
    ["concurency", "concurrency"],
    ["queues", "queue"],
    ["ta", "at"],
  ])("%s: did you mean %s?", (key, near) => {
    expect(() => checkOptions({ [key]: 1 }, allowed, "enqueue")).toThrow(
      expect.objectContaining({
        code: "UNKNOWN_OPTION",
        message: `enqueue has no option "${key}". Did you mean "${near}"?`,
      }),
    );
  });

  test.each([
    ["retries", ["name", "retry", "run"], "retry"],
    ["retrys", ["name", "retry", "run"], "retry"],
    ["priorities", ["priority", "queue"], "priority"],
    ["delayMs", ["delay", "at"], "delay"],
    ["timeoutMs", ["queue", "timeout"], "timeout"],
    ["maxAttempts", ["attempts", "backoff"], "attempts"],
    ["max_attempts", ["attempts", "backoff"], "attempts"],
    ["runAt", ["delay", "at"], "at"],
    ["time_zone", ["cron", "timezone"], "timezone"],
  ])("%s of %j: did you mean %s?", (key, of, near) => {
    expect(() => checkOptions({ [key]: 1 }, of, "it")).toThrow(`Did you mean "${near}"?`);
  });

  test("a word that has an option's letters by chance suggests none", () => {
    for (const key of ["format", "category", "colour", "reason", "runner"])
      expect(() => checkOptions({ [key]: 1 }, ["at", "run", "for", "as"], "it")).toThrow("Its options are");
  });

  test("an option that is near none gets the list", () => {
    expect(() => checkOptions({ colour: 1 }, allowed, "enqueue")).toThrow(
      'enqueue has no option "colour". Its options are: delay, at, priority, queue, concurrency.',
    );
    expect(() => checkOptions({ ["x".repeat(100_000)]: 1 }, allowed, "enqueue")).toThrow("Its options are");
  });

  test("an unknown option whose value is undefined is refused all the same", () => {
    expect(() => checkOptions({ dealy: undefined }, allowed, "enqueue")).toThrow("delay");
  });

  test("a __proto__ key is an unknown option and pollutes nothing", () => {
    expect(() => checkOptions(JSON.parse('{"__proto__":{"delay":1}}'), allowed, "enqueue")).toThrow(
      expect.objectContaining({ code: "UNKNOWN_OPTION" }),
    );
    expect(() => checkOptions({ constructor: 1 }, allowed, "enqueue")).toThrow(
      expect.objectContaining({ code: "UNKNOWN_OPTION" }),
    );
    expect(({} as { delay?: unknown }).delay).toBeUndefined();
  });

  test.each([null, 5, "x", [], new Map(), new Date(), () => 1, new URL("https://a.b/")])(
    "%s is refused: not a plain object",
    (value) => {
      expect(() => checkOptions(value, allowed, "enqueue")).toThrow(
        expect.objectContaining({ code: "BAD_OPTION" }),
      );
    },
  );
});

describe("checkInteger", () => {
  test("an integer within bounds passes, and -0 becomes 0", () => {
    expect(checkInteger(5, "attempts", { min: 1, max: 5 })).toBe(5);
    expect(Object.is(checkInteger(-0, "priority", { min: -5, max: 5 }), 0)).toBe(true);
  });

  test.each([0, 6, 1.5, Number.NaN, Infinity, "5", 5n, null, undefined])("%s is refused", (value) => {
    expect(() => checkInteger(value, "attempts", { min: 1, max: 5 })).toThrow(
      expect.objectContaining({ code: "BAD_OPTION" }),
    );
  });

  test("the refusal has the code that was asked for", () => {
    expect(() => checkInteger(1.5, "priority", { min: -9, max: 9, code: "BAD_PRIORITY" })).toThrow(
      expect.objectContaining({
        code: "BAD_PRIORITY",
        message: "priority must be an integer from -9 to 9; got 1.5.",
      }),
    );
  });
});
