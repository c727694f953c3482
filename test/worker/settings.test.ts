import { describe, expect, test } from "vitest";
import { workerSettings, type WorkOptions } from "../../src/worker/settings.ts";

const given = { env: {}, cpus: 4, host: "web 1" };
const codeOf = (options: WorkOptions | undefined, env: Record<string, string> = {}): unknown => {
  try {
    return workerSettings(options, { ...given, env });
  } catch (error) {
    return [(error as { code: string }).code, (error as Error).message];
  }
};

describe("the options of a worker", () => {
  test("[F1] one slot per CPU where nobody says otherwise", () => {
    expect([...workerSettings({ queues: ["mail", "default"] }, given).queues]).toEqual([
      ["mail", 4],
      ["default", 4],
    ]);
    expect([...workerSettings({ queues: { mail: 20, default: { concurrency: 5 } } }, given).queues]).toEqual([
      ["mail", 20],
      ["default", 5],
    ]);
  });

  test("[C3] safe defaults: lease 30 s, heartbeat 10 s or a third of a shorter lease", () => {
    expect(workerSettings({ queues: ["a"] }, given)).toMatchObject({
      leaseMs: 30_000,
      beatMs: 10_000,
      pollMs: 500,
      shutdownMs: 30_000,
      maxBlockMs: 60_000,
      maxLoopDelayMs: 500,
      signals: false,
      name: "web-1",
    });
    expect(workerSettings({ queues: ["a"], lease: "3s" }, given).beatMs).toBe(1_000);
  });

  test("[C3] a heartbeat that cannot keep the lease is refused", () => {
    for (const [lease, heartbeat] of [
      ["30s", "30s"],
      ["10s", "30s"],
      ["30s", 0],
      [0, 0],
    ] as const) {
      expect(codeOf({ queues: ["a"], lease, heartbeat })).toMatchObject([
        "BAD_LEASE",
        expect.stringContaining("heartbeat"),
      ]);
    }
  });

  test("[O13] a signal that is none and a retry out of range are refused by name", () => {
    const bad = (options: object): unknown => codeOf({ queues: ["a"], ...options });
    expect(bad({ signal: "stop" })).toMatchObject(["BAD_OPTION", expect.stringContaining("signal of work")]);
    expect(bad({ retry: { attempts: 0 } })).toMatchObject([
      "BAD_OPTION",
      expect.stringContaining("retry.attempts of work"),
    ]);
    expect(bad({ retry: { backoff: "1m" } })).toMatchObject([
      "BAD_OPTION",
      expect.stringContaining("retry.backoff of work"),
    ]);
    expect(bad({ retry: { tries: 3 } })).toMatchObject(["UNKNOWN_OPTION", expect.stringContaining("tries")]);
    expect(workerSettings({ queues: ["a"] }, given)).toMatchObject({
      signal: null,
      attempts: null,
      backoff: null,
    });
  });

  test("[F4] no queue, or one with a bad name, is refused and names the setting", () => {
    expect(codeOf(undefined)).toMatchObject(["NO_QUEUES", expect.stringMatching(/`queues`.*QUEUES/)]);
    expect(codeOf({ queues: [] })).toMatchObject(["NO_QUEUES", expect.any(String)]);
    expect(codeOf({ queues: {} })).toMatchObject(["NO_QUEUES", expect.any(String)]);
    expect(codeOf({ queues: ["a,b"] })).toMatchObject([
      "NO_QUEUES",
      expect.stringContaining("option queues"),
    ]);
    expect(codeOf(undefined, { QUEUES: "a b" })).toMatchObject([
      "NO_QUEUES",
      expect.stringContaining("QUEUES"),
    ]);
  });

  test("[F4] QUEUES and WORKER_NAME stand in for the options, which win", () => {
    const settings = workerSettings(undefined, {
      ...given,
      env: { QUEUES: "mail=20, default", WORKER_NAME: "w1" },
    });
    expect([...settings.queues]).toEqual([
      ["mail", 20],
      ["default", 4],
    ]);
    expect(settings.name).toBe("w1");
    expect(
      workerSettings({ queues: ["x"], name: "own" }, { ...given, env: { QUEUES: "y", WORKER_NAME: "w1" } }),
    ).toMatchObject({ name: "own" });
  });

  test("unknown options and values out of range are refused", () => {
    expect(codeOf({ queue: ["a"] } as never)).toMatchObject([
      "UNKNOWN_OPTION",
      expect.stringContaining('"queues"'),
    ]);
    expect(codeOf({ queues: { a: 0 } })).toMatchObject(["BAD_OPTION", expect.any(String)]);
    expect(codeOf({ queues: { a: { concurency: 1 } } } as never)).toMatchObject([
      "UNKNOWN_OPTION",
      expect.any(String),
    ]);
    expect(codeOf({ queues: "a" } as never)).toMatchObject(["BAD_OPTION", expect.any(String)]);
    expect(codeOf({ queues: ["a"], poll: "soon" })).toMatchObject(["BAD_DURATION", expect.any(String)]);
    expect(codeOf({ queues: ["a"], poll: 0 })).toMatchObject(["BAD_OPTION", expect.any(String)]);
    expect(codeOf({ queues: ["a"], signals: 1 } as never)).toMatchObject(["BAD_OPTION", expect.any(String)]);
  });
});

test("the release is the option's, else the environment's, else nobody's; and what cannot be shown is refused", () => {
  const given = { env: { HOLDFAST_RELEASE: "2026-11-16.3" }, cpus: 2, host: "web-1" };
  expect(workerSettings({ queues: ["mail"], release: "v42" }, given).release).toBe("v42");
  expect(workerSettings({ queues: ["mail"] }, given).release).toBe("2026-11-16.3");
  expect(workerSettings({ queues: ["mail"] }, { ...given, env: {} }).release).toBeNull();
  for (const release of ["two words", "x".repeat(101), "é", 42, "\u001b[2J"])
    expect(() => workerSettings({ queues: ["mail"], release: release as never }, given)).toThrow(/release/);
});
