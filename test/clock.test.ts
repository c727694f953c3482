// The machine's clock and the fake one: timers, sleeping, advancing.
import { describe, expect, test, vi } from "vitest";
import { type Clock, sleep, systemClock } from "../src/clock.ts";
import { FakeClock } from "../src/testing/fake-clock.ts";

describe("systemClock", () => {
  test("the wall clock is the machine's and monotonic time does not go back", () => {
    const before = Date.now();
    expect(systemClock.now()).toBeGreaterThanOrEqual(before);
    const first = systemClock.monotonic();
    expect(systemClock.monotonic()).toBeGreaterThanOrEqual(first);
    expect(systemClock.system).toBe(true);
  });

  test("a timer fires once, a cancelled one never, and cancelling late is harmless", async () => {
    const fired = vi.fn();
    const never = vi.fn();
    const timer = systemClock.after(5, fired);
    systemClock.after(5, never).cancel();
    await sleep(systemClock, 30);
    timer.cancel();
    expect(fired).toHaveBeenCalledTimes(1);
    expect(never).not.toHaveBeenCalled();
  });

  test("a timer beyond 2^31 ms fires at its time and not at once", () => {
    vi.useFakeTimers();
    try {
      const fired = vi.fn();
      const ms = 2 ** 31 * 3 + 5;
      systemClock.after(ms, fired);
      vi.advanceTimersByTime(ms - 1);
      expect(fired).not.toHaveBeenCalled();
      vi.advanceTimersByTime(1);
      expect(fired).toHaveBeenCalledTimes(1);
      const late = vi.fn();
      const timer = systemClock.after(ms, late);
      vi.advanceTimersByTime(2 ** 31);
      timer.cancel();
      vi.advanceTimersByTime(ms);
      expect(late).not.toHaveBeenCalled();
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  test("an unref'd timer does not keep the process alive", () => {
    const handles: NodeJS.Timeout[] = [];
    const original = globalThis.setTimeout;
    const spy = vi.spyOn(globalThis, "setTimeout").mockImplementation((fn, ms) => {
      const handle = original(fn, ms);
      handles.push(handle);
      return handle;
    });
    const timers = [systemClock.after(1e12, () => {}, { unref: true }), systemClock.after(1e12, () => {})];
    spy.mockRestore();
    expect(handles.map((handle) => handle.hasRef())).toEqual([false, true]);
    for (const timer of timers) timer.cancel();
  });
});

describe("sleep", () => {
  test("an abort ends it with the signal's reason and leaves no timer", async () => {
    const clock = new FakeClock();
    const stop = new AbortController();
    const sleeping = sleep(clock, 1_000, stop.signal);
    expect(clock.pending).toBe(1);
    stop.abort(new Error("stopped"));
    await expect(sleeping).rejects.toThrow("stopped");
    expect(clock.pending).toBe(0);
  });

  test("with a signal that has aborted it does not begin", async () => {
    const clock = new FakeClock();
    await expect(sleep(clock, 1_000, AbortSignal.abort(new Error("stopped")))).rejects.toThrow("stopped");
    expect(clock.pending).toBe(0);
  });

  test("afterwards no listener is left on the signal", async () => {
    const { signal } = new AbortController();
    const remove = vi.spyOn(signal, "removeEventListener");
    await sleep(systemClock, 1, signal);
    expect(remove).toHaveBeenCalledTimes(1);
  });
});

describe("FakeClock", () => {
  test("it stands still until it is advanced", async () => {
    const clock = new FakeClock();
    expect(new Date(clock.now()).toISOString()).toBe("2026-01-01T00:00:00.000Z");
    await clock.advance("1h30m");
    expect(new Date(clock.now()).toISOString()).toBe("2026-01-01T01:30:00.000Z");
    expect(clock.monotonic()).toBe(5_400_000);
    expect(clock.system).toBe(false);
  });

  test("timers fire in order, each at its own instant, and those not due wait", async () => {
    const clock: Clock & FakeClock = new FakeClock(0);
    const fired: [string, number][] = [];
    for (const [name, ms] of [
      ["c", 30],
      ["a", 10],
      ["b", 20],
      ["b2", 20],
      ["d", 40],
    ] as const) {
      clock.after(ms, () => fired.push([name, clock.now()]));
    }
    clock.after(15, () => fired.push(["cancelled", clock.now()])).cancel();
    await clock.advance(30);
    expect(fired).toEqual([
      ["a", 10],
      ["b", 20],
      ["b2", 20],
      ["c", 30],
    ]);
    expect(clock.pending).toBe(1);
  });

  test("a loop that sleeps and works with promises and immediates goes round as often as it would have", async () => {
    const clock = new FakeClock(0);
    const rounds: number[] = [];
    const loop = async (): Promise<void> => {
      for (;;) {
        await sleep(clock, 500);
        await Promise.resolve();
        await new Promise(setImmediate);
        rounds.push(clock.now());
      }
    };
    void loop();
    await clock.advance("5s");
    expect(rounds).toEqual([500, 1000, 1500, 2000, 2500, 3000, 3500, 4000, 4500, 5000]);
  });

  test("a timer of no delay takes 1 ms, so that a loop without delay ends", async () => {
    const clock = new FakeClock(0);
    let rounds = 0;
    const again = (): void => {
      rounds += 1;
      clock.after(0, again);
    };
    clock.after(Number.NaN, again);
    await clock.advance(10);
    expect(rounds).toBe(10);
  });

  test("setting the wall clock fires no timer and moves none", async () => {
    const clock = new FakeClock(0);
    const fired = vi.fn();
    clock.after(1_000, fired);
    clock.set(Date.UTC(2030, 0, 1));
    await clock.advance(999);
    expect(fired).not.toHaveBeenCalled();
    expect(clock.now()).toBe(Date.UTC(2030, 0, 1) + 999);
    clock.set(5);
    expect([clock.now(), clock.monotonic()]).toEqual([5, 999]);
    await clock.advance(1);
    expect(fired).toHaveBeenCalledTimes(1);
  });

  test("its functions can be handed on by themselves", () => {
    const { now, monotonic, after } = new FakeClock(7);
    after(5, () => {});
    expect([now(), monotonic()]).toEqual([7, 0]);
  });

  test("an error in a timer reaches whoever advanced the clock", async () => {
    const clock = new FakeClock();
    clock.after(1, () => {
      throw new Error("boom");
    });
    await expect(clock.advance(5)).rejects.toThrow("boom");
  });
});
