// The token bucket: exact in every window, with chunks, returns, crashes and clocks that go back.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type Bucket,
  drained,
  refill,
  retryAfter,
  returned,
  roomForJobs,
  takeFrom,
  takenForJobs,
  tuned,
} from "../../src/limits/rules/token-bucket.ts";
import { lateness, slowestLately } from "../../src/limits/rules/rate-window.ts";

const bucket = (change: Partial<Bucket> = {}): Bucket => ({
  limit: 10,
  perMs: 1_000,
  burst: 10,
  tokens: 10,
  filledAt: 0,
  chunks: [],
  ...change,
});

const plain = { chunk: 0, holder: "a", chunkMs: 1_000, unused: 0 };

function take(from: Bucket, n: number, now: number): { bucket: Bucket; granted: boolean } {
  const { bucket: after, take: got } = takeFrom(from, { ...plain, wants: [n] }, now);
  return { bucket: after, granted: got.granted[0] === true };
}

describe("a bucket", () => {
  test("[H1] grows by its rate, in fractions, up to its burst", () => {
    const empty = bucket({ tokens: 0 });
    expect(refill(empty, 50).tokens).toBeCloseTo(0.5);
    expect(refill(refill(empty, 50), 100).tokens).toBeCloseTo(1);
    expect(refill(empty, 10_000).tokens).toBe(10);
    let b = bucket({ tokens: 1 });
    for (let i = 0; i < 10; i++) {
      const got = take(b, 0.1, 0);
      expect(got.granted, `the ${i}th tenth`).toBe(true);
      b = got.bucket;
    }
    expect(take(b, 0.1, 0).granted).toBe(false);
  });

  test("[H1] a clock that goes back adds nothing, then or when it comes again", () => {
    const b = take(bucket({ filledAt: 100_000 }), 10, 100_000).bucket;
    const back = refill(b, 70_000);
    expect(back.tokens).toBe(0);
    expect(refill(back, 100_000).tokens).toBe(0);
    expect(refill(back, 100_100).tokens).toBeCloseTo(1);
    // By more than a minute: the clock was wrong before, so it counts from here on.
    const far = refill(b, 10_000);
    expect(far.tokens).toBe(0);
    expect(refill(far, 10_100).tokens).toBeCloseTo(1);
  });

  test("[H1] says when to ask again: two tokens' time, or what is missing, from 1 s to 60 s", () => {
    expect(retryAfter({ limit: 10, perMs: 1_000 }, 1)).toBe(1_000);
    expect(retryAfter({ limit: 1, perMs: 1_000 }, 1)).toBe(2_000);
    expect(retryAfter({ limit: 1, perMs: 10_000 }, 1)).toBe(20_000);
    expect(retryAfter({ limit: 1, perMs: 1_000 }, 7.5)).toBe(7_500);
    expect(retryAfter({ limit: 1, perMs: 3_600_000 }, 1)).toBe(60_000);
  });

  test("[H1] drained, it is empty until it has grown; tuned, it keeps its tokens within the new burst", () => {
    expect(drained(bucket(), 0).tokens).toBe(0);
    expect(refill(drained(bucket(), 0), 300).tokens).toBeCloseTo(3);
    expect(tuned(bucket(), { limit: 5, perMs: 1_000, burst: 4 }, 0)).toMatchObject({ tokens: 4, burst: 4 });
    expect(tuned(bucket({ tokens: 2 }), { limit: 5, perMs: 1_000, burst: 40 }, 0).tokens).toBe(2);
  });

  test("a chunk takes no more than a quarter, and what is left of it goes back", () => {
    const want = { wants: [1], chunk: 50, holder: "a", chunkMs: 1_000, unused: 0 };
    const { bucket: after, take: got } = takeFrom(bucket({ burst: 101, tokens: 101 }), want, 0);
    expect(got).toMatchObject({ granted: [true], chunk: 25 });
    expect(after.tokens).toBe(75);
    const back = takeFrom(after, { ...want, wants: [], chunk: 0, unused: 20 }, 0);
    expect(back.bucket).toMatchObject({ tokens: 95, chunks: [] });
    // Too late: it has ended, and counts as used.
    const late = takeFrom({ ...after, limit: 1e-9 }, { ...want, wants: [], chunk: 0, unused: 20 }, 1_000);
    expect(late.bucket.tokens).toBeCloseTo(75);
  });
});

test("[H1] while a chunk is out the row fills up only to what the chunk left, also after its end", () => {
  const full = bucket({ limit: 1_000, burst: 100, tokens: 100 });
  const { bucket: out, take: got } = takeFrom(
    full,
    { wants: [1], chunk: 50, holder: "a", chunkMs: 1_000, unused: 0 },
    0,
  );
  expect(got.chunk).toBe(24);
  expect(refill(out, 999).tokens).toBe(76); // its holder may spend 24 at this very moment
  expect(refill(out, 1_001).tokens).toBeCloseTo(77); // and did so at the last one
  expect(refill(out, 2_000).tokens).toBe(100);
});

/**
 * Processes that take, hold chunks, spend them, return them, or die with them, at times of their own; the row's clock
 * may go back. Whatever they do: in every window at most burst + limit × w / per.
 */
test("[H1] in any window w at most burst + limit × w / per are granted, also with chunks", () => {
  const step = fc.record({
    after: fc.integer({ min: 0, max: 700 }),
    who: fc.integer({ min: 0, max: 3 }),
    what: fc.constantFrom("take", "take", "take-all", "spend", "spend-all", "return", "die", "drain"),
    n: fc.double({ min: 0.1, max: 6, noNaN: true }),
    chunk: fc.integer({ min: 0, max: 60 }),
  });
  const rate = fc.record({
    limit: fc.double({ min: 0.5, max: 200, noNaN: true }),
    perMs: fc.integer({ min: 100, max: 20_000 }),
    burst: fc.double({ min: 1, max: 300, noNaN: true }),
  });
  fc.assert(
    fc.property(rate, fc.array(step, { maxLength: 150 }), (numbers, steps) => {
      const chunkMs = 1_000;
      let b: Bucket = { ...numbers, tokens: numbers.burst, filledAt: 0, chunks: [] };
      const purses = new Map<number, { left: number; until: number }>();
      const grants: { at: number; n: number }[] = [];
      let now = 0;
      for (const { after, who, what, n, chunk } of steps) {
        now += after;
        const purse = purses.get(who) ?? { left: 0, until: -1 };
        const usable = now < purse.until ? purse.left : 0;
        if (what === "spend" || what === "spend-all") {
          const spent = what === "spend" ? n : usable;
          if (usable < spent || spent === 0) continue;
          grants.push({ at: now, n: spent });
          purses.set(who, { ...purse, left: purse.left - spent });
        } else if (what === "die") purses.delete(who);
        else if (what === "drain") b = n > 5 ? drained(b, now) : b;
        else {
          const wanted = what === "take-all" ? refill(b, now).tokens : n;
          const wants = what === "return" || wanted === 0 ? [] : [wanted];
          const more = what === "take" ? chunk : 0;
          const want = { wants, chunk: more, holder: `${who}`, chunkMs, unused: usable };
          const { bucket: next, take: got } = takeFrom(b, want, now);
          b = next;
          if (got.granted[0] === true) grants.push({ at: now, n: wanted });
          purses.set(who, { left: got.chunk, until: now + chunkMs });
        }
      }
      for (const [i, first] of grants.entries()) {
        let sum = 0;
        for (const { at, n } of grants.slice(i)) {
          sum += n;
          const most = numbers.burst + ((at - first.at) * numbers.limit) / numbers.perMs;
          expect(sum).toBeLessThanOrEqual(most + 1e-6);
        }
      }
    }),
    { numRuns: 400 },
  );
});

describe("a bucket that jobs are claimed from", () => {
  test("[H1] no window has more starts than burst + limit × w / per, however late each of them comes", () => {
    const step = fc.record({
      wait: fc.nat(120),
      want: fc.integer({ min: 1, max: 6 }),
      // Each claimer has its own idea of how late its jobs may start; some callers take tokens directly.
      lateMs: fc.oneof(fc.constant(0), fc.nat(200)),
      startsAfter: fc.double({ min: 0, max: 1, noNaN: true }),
      direct: fc.boolean(),
      unstarted: fc.integer({ min: 0, max: 5 }),
    });
    const n = fc.constantFrom(0.25, 0.5, 1, 2, 2.5);
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 60 }),
        fc.constantFrom(1, 3, 10, 40),
        fc.constantFrom(2.5, 3, 10),
        n,
        (steps, limit, burst, tokens) => {
          let b = bucket({ limit, burst, tokens: burst });
          let now = 0;
          const starts: { at: number; n: number }[] = [];
          const late: { step: number; n: number; at: number }[] = [];
          for (const [number, { wait, want, lateMs, startsAfter, direct, unstarted }] of steps.entries()) {
            now += wait;
            // What was given back long after its claim, when others have used what has grown since.
            for (const back of late.filter(({ step }) => step === number)) b = returned(b, back.n, back.at);
            b = refill(b, now);
            if (direct) {
              const got = take(b, tokens, now);
              b = got.bucket;
              if (got.granted) starts.push({ at: now, n: tokens });
              continue;
            }
            const { room, retryInMs } = roomForJobs(b, tokens, lateMs, now);
            if (room === 0) {
              // What it says is true: then there is room, and not a good while before.
              expect(roomForJobs(refill(b, now + retryInMs), tokens, lateMs, now + retryInMs).room).toBe(1);
              if (retryInMs > 2)
                expect(
                  roomForJobs(refill(b, now + retryInMs - 2), tokens, lateMs, now + retryInMs - 2).room,
                ).toBe(0);
              // Some ask at the very instant: that is when late starts would hurt.
              if (unstarted > 2) now += retryInMs;
              continue;
            }
            const jobs = Math.min(want, room);
            b = takenForJobs(b, { jobs, n: tokens, lateMs }, now);
            expect(b.tokens).toBeGreaterThanOrEqual(0);
            if (unstarted === 1) b = returned(b, jobs * tokens, now);
            else if (unstarted === 2) late.push({ step: number + 1 + (want % 4), n: jobs * tokens, at: now });
            else for (let i = 0; i < jobs; i++) starts.push({ at: now + lateMs * startsAfter, n: tokens });
          }
          const sorted = starts.toSorted((x, y) => x.at - y.at);
          sorted.forEach((from, i) => {
            let sum = 0;
            for (const { at, n: taken } of sorted.slice(i)) {
              sum += taken;
              expect(sum).toBeLessThanOrEqual(burst + (limit * (at - from.at)) / 1_000 + 1e-6);
            }
          });
        },
      ),
      { numRuns: 2_000 },
    );
  });

  test.each([
    { limit: 40, burst: 5 },
    { limit: 300, burst: 100 },
  ])("[H1] of $limit a second, one is used again soon after a claim that took 5 s", ({ limit, burst }) => {
    const tookMs = 20;
    let b = bucket({ limit, burst, tokens: burst });
    let [slowestMs, now, started] = [slowestLately(0, 5_000), 0, 0];
    while (now < 30_000) {
      b = refill(b, now);
      const { startsMs } = lateness({ limit: 1, perMs: 1_000 / limit }, slowestMs);
      const { room, retryInMs } = roomForJobs(b, 1, startsMs, now);
      if (room > 0) {
        b = takenForJobs(b, { jobs: room, n: 1, lateMs: startsMs }, now);
        started += room;
        slowestMs = slowestLately(slowestMs, tookMs);
      }
      now += Math.max(tookMs, retryInMs);
    }
    expect(started).toBeGreaterThan((limit * 30) / 3);
  });

  test("[H1] one that is too small for one job says so", () => {
    expect(roomForJobs(bucket({ burst: 1, tokens: 1 }), 2, 0, 0)).toEqual({ room: 0, retryInMs: Infinity });
  });
});
