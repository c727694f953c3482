// Durations counted into buckets: percentiles to 5 %, merging, and texts that come from anywhere.
import fc from "fast-check";
import { expect, test } from "vitest";
import { Histogram } from "../../src/values/histogram.ts";

function of(values: readonly number[]): Histogram {
  const histogram = new Histogram();
  for (const value of values) histogram.add(value);
  return histogram;
}

test("a percentile is within 5 % of the exact one", () => {
  const durations = fc.array(fc.double({ min: 0.01, max: 1e8, noNaN: true }), {
    minLength: 1,
    maxLength: 300,
  });
  fc.assert(
    fc.property(durations, fc.constantFrom(0.5, 0.95, 0.99), (values, share) => {
      const sorted = [...values].sort((a, b) => a - b);
      const exact = sorted[Math.max(1, Math.ceil(share * sorted.length)) - 1]!;
      const told = of(values).percentile(share)!;
      expect(Math.abs(told - exact) / exact).toBeLessThan(0.055);
    }),
  );
});

test("merging is counting together, in any order, and survives its text", () => {
  const durations = fc.array(fc.double({ min: 0, max: 1e6, noNaN: true }));
  fc.assert(
    fc.property(durations, durations, (a, b) => {
      const merged = of(a);
      merged.merge(Histogram.decode(of(b).encode()));
      const together = of([...b, ...a]);
      expect(merged.count).toBe(together.count);
      for (const share of [0, 0.5, 0.95, 0.99, 1])
        expect(merged.percentile(share)).toBe(together.percentile(share));
      expect(merged.sumMs).toBeCloseTo(together.sumMs, 1);
      const texts = new Histogram();
      texts.mergeText(`${of(a).encode()},${of(b).encode()}`);
      const counts = (text: string): unknown[] => (JSON.parse(text) as unknown[]).slice(1);
      expect(counts(texts.encode())).toEqual(counts(together.encode()));
      expect(texts.sumMs).toBeCloseTo(together.sumMs, 1);
    }),
  );
});

test("a text that is no histogram adds nothing, and spoils none beside it", () => {
  const good = of([1, 20, 300]).encode();
  for (const bad of ["[]", "[1,2]", "[-1,3,4]", "[1,x,4]", "[1,2,3", "[1,,2]", '["a",1,2]', "[1,2.5,3]"]) {
    expect(Histogram.decode(bad).count).toBe(0);
    const beside = new Histogram();
    beside.mergeText(`${good},${bad}`);
    expect(beside.encode()).toBe(good);
  }
  for (const bad of ["", "null", "{}", '{"a":[1,2,3]}', "nonsense"])
    expect(Histogram.decode(bad).count).toBe(0);
});

test("nothing counted has no percentile, and negative durations count as none", () => {
  expect(new Histogram().percentile(0.5)).toBeNull();
  expect(of([-5, Number.NaN]).count).toBe(2);
  expect(of([-5]).percentile(0.5)).toBe(0);
});

test("counts up to a bound grow to the whole", () => {
  const histogram = of([1, 10, 100, 1_000]);
  expect(histogram.countUpTo(5)).toBe(1);
  expect(histogram.countUpTo(500)).toBe(3);
  expect(histogram.countUpTo(1e9)).toBe(4);
});

test.each(["", "null", "[1,2]", "{}", '["x"]', "[1,-3,4]", "[0,99999,1]"])(
  "a bad text is an empty histogram: %s",
  (text) => {
    expect(Histogram.decode(text).count).toBe(0);
  },
);
