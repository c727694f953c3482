import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CLOSED, standingOf, tally } from "../../src/limits/rules/breaker-rule.ts";
import { type Asker, shareOfTotal, shareOut, splitByWeight } from "../../src/limits/rules/fairness.ts";
import { checkBreaker, checkLaneLimits, checkRate } from "../../src/limits/rules/limit-options.ts";
import {
  givenBack,
  lateness,
  parseStarts,
  roomIn,
  started,
  type Starts,
} from "../../src/limits/rules/rate-window.ts";

describe("rates", () => {
  test("no window has more starts than the limit, whatever comes when, and none is refused without need", () => {
    const steps = fc.array(fc.record({ wait: fc.nat(400), want: fc.integer({ min: 1, max: 5 }) }), {
      maxLength: 60,
    });
    fc.assert(
      fc.property(
        steps,
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 1, max: 500 }),
        (all, limit, perMs) => {
          const rate = { limit, perMs };
          let starts: Starts = [];
          let now = 0;
          const times: number[] = [];
          for (const { wait, want } of all) {
            now += wait;
            const { room, opensAt } = roomIn(starts, rate, now);
            const used = times.filter((at) => at > now - perMs).length;
            expect(room).toBe(limit - used);
            if (room === 0) expect(opensAt).toBe(times.filter((at) => at > now - perMs).at(-limit)! + perMs);
            const n = Math.min(want, room);
            starts = started(starts, rate, now, n);
            for (let i = 0; i < n; i++) times.push(now);
          }
          for (const from of times)
            expect(times.filter((at) => at >= from && at < from + perMs).length).toBeLessThanOrEqual(limit);
        },
      ),
    );
  });

  test("no window has more starts than the limit, however late after its claim each of them comes", () => {
    const steps = fc.array(
      fc.record({
        wait: fc.nat(400),
        want: fc.integer({ min: 1, max: 5 }),
        took: fc.nat(300),
        late: fc.nat(1_000),
      }),
      { maxLength: 60 },
    );
    fc.assert(
      fc.property(
        steps,
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 1, max: 900 }),
        (all, limit, perMs) => {
          const rate = { limit, perMs };
          let starts: Starts = [];
          let now = 0;
          const times: number[] = [];
          for (const { wait, want, took, late } of all) {
            now += wait;
            const n = Math.min(want, roomIn(starts, rate, now).room);
            const { startsMs, beginsMs } = lateness(rate, took);
            expect(beginsMs).toBeGreaterThanOrEqual(Math.min(took, 9_500));
            expect(startsMs - beginsMs).toBeGreaterThanOrEqual(10);
            starts = started(starts, rate, now, n, now + startsMs);
            for (let i = 0; i < n; i++) times.push(now + ((late * (i + 1)) % (startsMs + 1)));
          }
          for (const from of times)
            expect(times.filter((at) => at >= from && at < from + perMs).length).toBeLessThanOrEqual(limit);
        },
      ),
    );
  });

  test("merging many entries never lets a start come back early", () => {
    const rate = { limit: 100_000, perMs: 10_000 };
    let starts: Starts = [];
    for (let now = 0; now < 5_000; now += 1) starts = started(starts, rate, now, 1);
    expect(starts.length).toBeLessThanOrEqual(1_000);
    expect(starts.reduce((sum, [, n]) => sum + n, 0)).toBe(5_000);
    expect(roomIn(starts, rate, 10_000).room).toBeLessThanOrEqual(95_001);
  });

  test("a clock that was set back holds a rate for one window at the most", () => {
    const rate = { limit: 1, perMs: 1_000 };
    const starts = started([], rate, 1_000_000, 1);
    expect(roomIn(starts, rate, 5)).toEqual({ room: 0, opensAt: 1_005 });
    expect(roomIn(started(starts, rate, 5, 0), rate, 1_005).room).toBe(1);
  });

  test("what was given back is taken from its own entry, or from none", () => {
    expect(
      givenBack(
        [
          [0, 2],
          [500, 1],
        ],
        [0, 500],
      ),
    ).toEqual([[0, 1]]);
    expect(givenBack([[500, 1]], [0])).toEqual([[500, 1]]);
  });

  test("a spoilt text is no starts", () => {
    for (const text of [null, "", "{", "[1]", '[["a", 1]]', "[[1, null]]", "null"])
      expect(parseStarts(text)).toEqual([]);
    expect(parseStarts("[[1,2]]")).toEqual([[1, 2]]);
  });
});

describe("fairness", () => {
  const asker = (vtime: number, weight = 1, most = Infinity, group = "q"): Asker => {
    let left = most;
    return { group, vtime, weight, most: () => left, give: () => (left -= 1) };
  };
  const counts = (order: number[], n: number) =>
    Array.from({ length: n }, (_, i) => order.filter((at) => at === i).length);

  test("who is furthest behind is next, by weight", () => {
    expect(shareOut([asker(0), asker(0)], new Map([["q", 4]]))).toEqual([0, 1, 0, 1]);
    expect(counts(shareOut([asker(0, 3), asker(0, 1)], new Map([["q", 8]])), 2)).toEqual([6, 2]);
    expect(shareOut([asker(10), asker(0)], new Map([["q", 3]]))).toEqual([1, 1, 1]);
  });

  test("a lane's own limit ends its share, and others take the rest", () => {
    expect(counts(shareOut([asker(0, 1, 2), asker(0)], new Map([["q", 10]])), 2)).toEqual([2, 8]);
    expect(shareOut([asker(0, 1, 0)], new Map([["q", 10]]))).toEqual([]);
  });

  test("each queue has its own room", () => {
    const order = shareOut(
      [asker(0), asker(0, 1, 9, "other")],
      new Map([
        ["q", 1],
        ["other", 2],
      ]),
    );
    expect(counts(order, 2)).toEqual([1, 2]);
  });

  test("a total is split without remainder and without gap", () => {
    fc.assert(
      fc.property(
        fc.nat(1_000),
        fc.uniqueArray(fc.nat(100), { minLength: 1, maxLength: 20 }),
        (total, sessions) => {
          const parts = sessions.map((session) => shareOfTotal(total, sessions, session));
          expect(parts.reduce((sum, part) => sum + part, 0)).toBe(total);
          expect(Math.max(...parts) - Math.min(...parts)).toBeLessThanOrEqual(1);
        },
      ),
    );
    expect([9, 7, 8].map((session) => shareOfTotal(10, [9, 7, 8], session))).toEqual([4, 3, 3]);
  });

  test("slots are split by weight, each queue keeps one", () => {
    expect(splitByWeight(8, [3, 1])).toEqual([6, 2]);
    expect(splitByWeight(4, [1_000, 1])).toEqual([3, 1]);
    expect(splitByWeight(10, [1, 1, 1])).toEqual([4, 3, 3]);
  });
});

describe("breakers", () => {
  const rule = { after: 3, cooldownMs: 1_000 };
  const failed = (failures: number) => ({ failures, succeeded: false, error: "no" });
  const good = { failures: 0, succeeded: true, error: null };

  test("open after so many failures in a row, half-open after the cooldown, closed by the probe", () => {
    let circuit = tally(CLOSED, failed(2), rule, 1, 0);
    expect(standingOf(circuit, 0)).toBe("closed");
    expect(tally(circuit, { ...failed(1), succeeded: true }, rule, 1, 0).failures).toBe(1);
    circuit = tally(circuit, failed(1), rule, 1, 100);
    expect(circuit).toMatchObject({ failures: 3, openedAt: 100, openUntil: 1_100, error: "no" });
    expect(standingOf(circuit, 1_099)).toBe("open");
    expect(standingOf(circuit, 1_100)).toBe("half-open");
    expect(tally(circuit, good, rule, 2, 1_200)).toBe(circuit);
    const probed = { ...circuit, probe: 2 };
    expect(tally(probed, failed(1), rule, 2, 1_200)).toMatchObject({
      openUntil: 2_200,
      probe: null,
      failures: 4,
    });
    expect(tally(probed, good, rule, 2, 1_200)).toBe(CLOSED);
    expect(tally(probed, good, rule, 3, 1_200)).toBe(probed);
  });
});

describe("limits as they are written", () => {
  test("what cannot be a limit is refused, and the error names it", () => {
    for (const bad of [0, -1, 1.5, Number.NaN, Infinity, 1e9, "3", {}]) {
      expect(() => checkLaneLimits({ concurrency: bad }, "lanes")).toThrow(
        /lanes\.concurrency must be an integer from 1 to/,
      );
      expect(() => checkRate({ limit: bad, per: "1s" }, "rate")).toThrow(/rate\.limit must be an integer/);
      expect(() => checkBreaker({ after: bad }, "breaker")).toThrow(/breaker\.after must be an integer/);
      expect(() => checkLaneLimits({ weight: bad }, "lanes")).toThrow(/lanes\.weight must be an integer/);
    }
    for (const per of [0, -5, "0s", "40d", undefined, "soon"])
      expect(() => checkRate({ limit: 1, per }, "rate")).toThrow(/rate\.per/);
    expect(() => checkBreaker({ cooldown: "10ms" }, "breaker")).toThrow(/cooldown must be at least 1 s/);
    expect(() => checkLaneLimits({ concurency: 1 }, "lanes")).toThrow(/Did you mean "concurrency"/);
    expect(checkLaneLimits({ concurrency: null, rate: null }, "lanes")).toEqual({
      concurrency: null,
      rate: null,
    });
  });
});
