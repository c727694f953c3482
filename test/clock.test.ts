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

  test("a timer that can wait fires at its latest or at the end, whichever comes first", async () => {
    const clock = new FakeClock(0);
    const fired: [string, number][] = [];
    const note = (name: string) => () => void fired.push([name, clock.now()]);
    clock.after(10, note("poll"), { latestMs: Infinity });
    clock.after(20, note("poll until 50"), { latestMs: 50 });
    clock.after(30, note("due"));
    clock.after(40, note("not before its time"), { latestMs: 5 });
    clock.after(200, note("later"), { latestMs: Infinity });
    await clock.advance(100);
    expect(fired).toEqual([
      ["due", 30],
      ["not before its time", 40],
      ["poll until 50", 50],
      ["poll", 100],
    ]);
    expect(clock.pending).toBe(1);
  });

  test("a timer that can wait fires once for a jump, however often it would have", async () => {
    const clock = new FakeClock();
    let polls = 0;
    const poll = (): void => {
      polls += 1;
      clock.after(500, poll, { latestMs: Infinity });
    };
    poll();
    await clock.advance("30d");
    expect(polls).toBe(2);
  });

  test("what acts ahead of a jump is told how far it goes; when it sets itself again at once, it fires in time", async () => {
    const clock = new FakeClock(0);
    const told: [string, number, number?][] = [];
    const renew = (byMs = 0): void => {
      told.push(["renewed", clock.now(), byMs]);
      clock.after(byMs + 10, renew, { ahead: renew });
    };
    clock.after(10, renew, { ahead: renew });
    clock.after(100, () => told.push(["due", clock.now()]));
    await clock.advance(105);
    expect(told).toEqual([
      ["renewed", 0, 100],
      ["due", 100],
    ]);
    const failing = new FakeClock(0);
    let tries = 0;
    const fail = (): void => {
      tries += 1;
      failing.after(10, fail, { ahead: fail });
    };
    fail();
    await failing.advance(40);
    // Ahead of each step and at its end, and no more: the clock gets on.
    expect(tries).toBeGreaterThanOrEqual(4);
    expect(tries).toBeLessThanOrEqual(9);
  });

  test("time stands still while a call is under way, and while what follows from it sets immediates", async () => {
    const clock = new FakeClock(0);
    const turns = 40;
    const seen: number[] = [];
    clock.after(10, () => {
      const call = new Promise((resolve) => setTimeout(resolve, 20));
      clock.during(call);
      void call.then(async () => {
        for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate);
        seen.push(clock.now());
        const refused = Promise.reject(new Error("refused"));
        clock.during(refused);
        await refused.catch(() => seen.push(clock.now()));
      });
    });
    clock.after(11, () => seen.push(clock.now()));
    await clock.advance(1_000);
    expect(seen).toEqual([10, 10, 11]);
  });

  test("something that sets immediates for ever does not hold up the clock", async () => {
    const clock = new FakeClock(0);
    let stop = false;
    const spin = (): void => void (stop || setImmediate(spin));
    spin();
    await clock.advance(10);
    stop = true;
    expect(clock.monotonic()).toBe(10);
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
