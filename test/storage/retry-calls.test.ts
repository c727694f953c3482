import { describe, expect, test } from "vitest";
import { StoreError } from "../../src/errors.ts";
import { silentLogger } from "../../src/logger.ts";
import { Retry } from "../../src/storage/retry-calls.ts";
import { FakeClock } from "../../src/testing/index.ts";

function failing(clock: FakeClock, errors: readonly Error[]) {
  const left = [...errors];
  const times: number[] = [];
  return {
    times,
    call: async (): Promise<string> => {
      times.push(clock.monotonic());
      const error = left.shift();
      if (error !== undefined) throw error;
      return "ok";
    },
  };
}

const busy = new StoreError("DATABASE_BUSY", "locked");
const lost = new StoreError("CONNECTION_LOST", "gone");

describe("trying again", () => {
  test("a conflict is tried again after 100 ms, 300 ms and 1 s, then surfaces", async () => {
    const clock = new FakeClock();
    const { call, times } = failing(clock, [busy, busy, busy, busy]);
    const result = expect(new Retry(clock, 30_000, silentLogger).once(call)).rejects.toBe(busy);
    await clock.advance("10s");
    await result;
    expect(times).toEqual([0, 100, 400, 1_400]);
  });

  test("[O14] each repetition after a conflict is logged with its delay; one after a lost connection is not", async () => {
    const clock = new FakeClock();
    const lines: unknown[] = [];
    const log = { warn: (details: object, message: string) => void lines.push([details, message]) };
    const deadlock = new StoreError("STORE_FAILED", "see cause", {
      cause: Object.assign(new Error("x"), { code: "40P01" }),
    });
    const { call } = failing(clock, [busy, deadlock, lost]);
    const result = new Retry(clock, 30_000, log).repeatable(call);
    await clock.advance("10s");
    expect(await result).toBe("ok");
    expect(lines).toEqual([
      [{ delayMs: 100, tries: 1, code: "DATABASE_BUSY" }, expect.stringContaining("100 ms")],
      [{ delayMs: 300, tries: 2, code: "40P01" }, expect.stringContaining("300 ms")],
    ]);
  });

  test("two conflicts are three calls and a success", async () => {
    const clock = new FakeClock();
    const { call, times } = failing(clock, [busy, busy]);
    const result = new Retry(clock, 30_000, silentLogger).repeatable(call);
    await clock.advance("10s");
    expect(await result).toBe("ok");
    expect(times).toHaveLength(3);
  });

  test("conflicts are known by code, also a driver's below ours; words do not count", async () => {
    const clock = new FakeClock();
    const deadlock = new StoreError("STORE_FAILED", "see cause", {
      cause: Object.assign(new Error("x"), { code: "40P01" }),
    });
    const first = failing(clock, [deadlock]);
    const result = new Retry(clock, 30_000, silentLogger).once(first.call);
    await clock.advance("1s");
    expect(await result).toBe("ok");
    const unique = Object.assign(new Error("database is busy: deadlock detected"), { code: "23505" });
    const second = failing(clock, [unique]);
    await expect(new Retry(clock, 30_000, silentLogger).once(second.call)).rejects.toBe(unique);
    expect(second.times).toHaveLength(1);
  });

  test("a server that fails is asked again as after a conflict; what may be repeated is then waited out", async () => {
    const clock = new FakeClock();
    const out = new StoreError("DATABASE_FAILING", "out of memory");
    const once = failing(clock, [out, out, out, out]);
    const refused = expect(new Retry(clock, 30_000, silentLogger).once(once.call)).rejects.toBe(out);
    await clock.advance("10s");
    await refused;
    expect(once.times).toHaveLength(4);
    const repeated = failing(
      clock,
      Array.from({ length: 10 }, () => out),
    );
    const result = new Retry(clock, 30_000, silentLogger).repeatable(repeated.call);
    await clock.advance("20s");
    expect(await result).toBe("ok");
  });

  test("a lost connection is waited out until the deadline for what may be repeated", async () => {
    const clock = new FakeClock();
    const { call, times } = failing(
      clock,
      Array.from({ length: 100 }, () => lost),
    );
    const result = expect(new Retry(clock, 5_000, silentLogger).repeatable(call)).rejects.toBe(lost);
    await clock.advance("20s");
    await result;
    expect(times.slice(0, 5)).toEqual([0, 100, 300, 700, 1_500]);
    expect(times.at(-1)).toBe(5_000);
  });

  test("a lost connection surfaces at once for what may not", async () => {
    const clock = new FakeClock();
    const { call, times } = failing(clock, [lost]);
    await expect(new Retry(clock, 5_000, silentLogger).once(call)).rejects.toBe(lost);
    expect(times).toHaveLength(1);
  });
});
