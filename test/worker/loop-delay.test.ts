// How late the event loop was: the mean of the last moment for the claimer, the 99th percentile of the minute for the eye.
import { expect, test } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { type DelayHistogram, measured } from "../../src/worker/loop-delay.ts";

/** A histogram of what is put in, in milliseconds. */
function fakeHistogram() {
  let values: number[] = [];
  let on = false;
  const histogram: DelayHistogram & { readonly put: (...ms: number[]) => void; readonly on: () => boolean } =
    {
      get count() {
        return values.length;
      },
      get mean() {
        return (values.reduce((sum, ms) => sum + ms, 0) / values.length) * 1e6;
      },
      percentile: (p) => {
        const sorted = values.toSorted((a, b) => a - b);
        return (sorted[Math.ceil((p / 100) * sorted.length) - 1] ?? 0) * 1e6;
      },
      reset: () => void (values = []),
      enable: () => (on = true),
      disable: () => !(on = false),
      put: (...ms) => void values.push(...ms),
      on: () => on,
    };
  return histogram;
}

function probe() {
  const made: ReturnType<typeof fakeHistogram>[] = [];
  let now = 0;
  const delay = measured({ ...systemClock, monotonic: () => now }, () => {
    const one = fakeHistogram();
    made.push(one);
    return one;
  });
  return {
    delay,
    made,
    put: (...ms: number[]) => made.forEach((one) => one.put(...ms)),
    pass: (ms: number) => void (now += ms),
  };
}

test("the minute's figure is its 99th percentile, and the claimer's looks take nothing from it", () => {
  const { delay, put, pass } = probe();
  for (let look = 0; look < 50; look++) {
    // The sampler itself waits 20 ms; twice in the minute the loop was 480 ms late.
    put(20, look % 25 === 3 ? 500 : 20);
    pass(300);
    delay.read();
  }
  expect(delay.p99()).toBe(480);
  expect(delay.p99()).toBe(0);
  put(...Array.from({ length: 1_000 }, () => 25), 900);
  expect(delay.p99()).toBe(5);
});

test("what has stopped measures no more", () => {
  const { delay, made } = probe();
  expect(made.map((one) => one.on())).toEqual([true, true]);
  delay.stop();
  expect(made.map((one) => one.on())).toEqual([false, false]);
});
