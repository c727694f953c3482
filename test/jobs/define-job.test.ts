import { describe, expect, test } from "vitest";
import * as z from "zod";
import { isJob } from "../../src/jobs/define-job.ts";
import { defineJob, defineSignal, exponential, fixed, presets } from "../../src/index.ts";
import { coded } from "../support/test-clients.ts";

describe("defineJob", () => {
  test("has the documented defaults", () => {
    const job = defineJob({ name: "plain" });
    expect(job).toMatchObject({
      name: "plain",
      queue: null,
      priority: 0,
      attempts: 5,
      backoff: null,
      timeoutMs: 600_000,
      maxCrashes: 5,
      countCrashes: "crash",
      keep: true,
      input: null,
      unique: null,
      lane: null,
      run: null,
    });
    expect(job.row).toEqual({ maxAttempts: null, timeoutMs: null, extras: null });
    expect(Object.isFrozen(job)).toBe(true);
  });

  test("writes into rows only what it states", () => {
    const job = defineJob({
      name: "full",
      retry: { attempts: 3, backoff: fixed("1s") },
      timeout: "5s",
      maxCrashes: 2,
      keep: false,
    });
    expect(job.row).toEqual({
      maxAttempts: 3,
      timeoutMs: 5_000,
      extras: { maxCrashes: 2, keep: false, backoff: fixed("1s") },
    });
    // A function cannot be stored: the runner's definition has it.
    expect(defineJob({ name: "own", retry: { backoff: (attempt) => attempt * 10 } }).row.extras).toBeNull();
  });

  test("takes a preset by spreading it", () => {
    const job = defineJob({
      name: "fetch",
      ...presets.crawler.job,
      run: async (input: { url: string }) => input.url,
    });
    expect(job).toMatchObject({
      attempts: 5,
      timeoutMs: 600_000,
      countCrashes: "attempt",
      backoff: exponential("60s", { max: "3600s", factor: 2, jitter: 0.2 }),
    });
  });

  test("gives the handler elsewhere with handle()", () => {
    const contract = defineJob({ name: "mail", input: z.object({ to: z.string() }), queue: "mail" });
    const run = async (): Promise<number> => 1;
    const handled = contract.handle(run);
    expect(contract.run).toBeNull();
    expect(handled).toMatchObject({ name: "mail", queue: "mail", run });
    expect(isJob(handled)).toBe(true);
    expect(() => contract.handle("no" as never)).toThrow(coded("BAD_OPTION"));
  });

  test.for([
    [{ name: "a", dealy: 1 }, "UNKNOWN_OPTION"],
    [{ name: "a", retry: { atempts: 1 } }, "UNKNOWN_OPTION"],
    [{ name: "a,b" }, "BAD_NAME"],
    [{ name: "" }, "BAD_NAME"],
    [{ name: "x".repeat(129) }, "BAD_NAME"],
    [{}, "BAD_NAME"],
    [{ name: "a", queue: "a b" }, "BAD_NAME"],
    [{ name: "a", priority: 1.5 }, "BAD_PRIORITY"],
    [{ name: "a", priority: 1e10 }, "BAD_PRIORITY"],
    [{ name: "a", timeout: "soon" }, "BAD_DURATION"],
    [{ name: "a", timeout: 0 }, "BAD_DURATION"],
    [{ name: "a", timeout: -1 }, "BAD_DURATION"],
    [{ name: "a", retry: { attempts: 0 } }, "BAD_OPTION"],
    [{ name: "a", retry: { backoff: "1m" } }, "BAD_OPTION"],
    [{ name: "a", input: {} }, "BAD_OPTION"],
    [{ name: "a", run: 1 }, "BAD_OPTION"],
    [{ name: "a", lane: "tenant" }, "BAD_OPTION"],
    [{ name: "a", unique: 1 }, "BAD_OPTION"],
    [{ name: "a", unique: { key: "to", scope: "world" } }, "BAD_OPTION"],
    [{ name: "a", unique: { key: "to", onConflict: "drop" } }, "BAD_OPTION"],
    [{ name: "a", unique: { key: "to", fro: "1m" } }, "UNKNOWN_OPTION"],
    [{ name: "a", countCrashes: "never" }, "BAD_OPTION"],
    [{ name: "a", maxCrashes: 0 }, "BAD_OPTION"],
    [{ name: "a", keep: "no" }, "BAD_OPTION"],
    [{ name: "a", signals: ["packed"] }, "BAD_OPTION"],
    [{ name: "a", signals: { packed: z.string() } }, "BAD_OPTION"],
    [{ name: "a", signals: [defineSignal({ name: "b" }), defineSignal({ name: "b" })] }, "BAD_OPTION"],
    ["a", "BAD_OPTION"],
  ] as const)("refuses %j with %s", ([options, code]) => {
    expect(() => defineJob(options as never)).toThrow(coded(code));
  });

  test("suggests the option that was meant", () => {
    expect(() => defineJob({ name: "a", tiemout: "1m" } as never)).toThrow(/Did you mean "timeout"/);
  });
});
