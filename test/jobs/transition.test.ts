import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { LEGAL_MOVES, type ClaimedJob } from "../../src/jobs/job.ts";
import { exponential, fixed } from "../../src/jobs/backoff.ts";
import { MAX_DELAY_MS } from "../../src/values/duration.ts";
import { decodeFailures } from "../../src/jobs/failure.ts";
import type { Policy } from "../../src/jobs/outcome.ts";
import { decide, mayRepeat, policyFor } from "../../src/jobs/transition.ts";

const env = { now: () => 1_000, random: () => 0.5 };
const policy: Policy = {
  maxAttempts: 5,
  backoff: fixed("10s"),
  maxCrashes: 5,
  countCrashes: "crash",
  keep: true,
};

function job(change: Partial<ClaimedJob> = {}): ClaimedJob {
  return {
    id: "job-1",
    rowKey: "place-1",
    token: 7,
    session: 3,
    name: "send-mail",
    queue: "mail",
    priority: 0,
    input: "{}",
    attempt: 1,
    crashes: 0,
    begun: false,
    undoing: false,
    maxAttempts: null,
    timeoutMs: null,
    errors: null,
    keyed: true,
    lane: null,
    context: null,
    parentId: null,
    runAt: 0,
    startedAt: 0,
    deadlineAt: null,
    extras: null,
    cancelReason: null,
    ...change,
  };
}

const failure = { message: "boom", stack: null };
const messages = (errors: string | null): string[] => decodeFailures(errors).map(({ message }) => message);

describe("decide", () => {
  test("a success ends as done with its output, and keeps the earlier errors", () => {
    const errors = JSON.stringify([{ at: 1, attempt: 1, message: "before", stack: null }]);
    expect(decide(job({ attempt: 2, errors }), { kind: "succeeded", output: '"ok"' }, policy, env)).toEqual({
      move: "end",
      id: "job-1",
      rowKey: "place-1",
      token: 7,
      state: "done",
      output: '"ok"',
      errors,
      attempt: 2,
      crashes: 0,
      keyed: true,
      keep: true,
    });
  });

  test("with keep: false only a done job leaves nothing behind", () => {
    const forgetful = { ...policy, keep: false, maxAttempts: 1 };
    expect(decide(job(), { kind: "succeeded", output: null }, forgetful, env)).toMatchObject({ keep: false });
    expect(decide(job(), { kind: "failed", failure }, forgetful, env)).toMatchObject({
      state: "dead",
      keep: true,
    });
    expect(decide(job(), { kind: "cancelled", reason: "x" }, forgetful, env)).toMatchObject({
      state: "cancelled",
      keep: true,
    });
  });

  test("a failure runs again after the backoff until the attempts are used up, then it is dead", () => {
    for (const attempt of [1, 2, 3, 4]) {
      expect(decide(job({ attempt }), { kind: "failed", failure }, policy, env)).toMatchObject({
        move: "again",
        delayMs: 10_000,
        attempt,
        throttled: false,
      });
    }
    const last = decide(job({ attempt: 5 }), { kind: "failed", failure }, policy, env);
    expect(last).toMatchObject({ move: "end", state: "dead", attempt: 5 });
    expect(messages(last.errors)).toEqual(["boom"]);
  });

  test("RetryAfter's delay stands in for the backoff, but not for the limit of attempts", () => {
    expect(decide(job(), { kind: "failed", failure, retryInMs: 123 }, policy, env)).toMatchObject({
      move: "again",
      delayMs: 123,
    });
    expect(
      decide(job({ attempt: 5 }), { kind: "failed", failure, retryInMs: 123 }, policy, env),
    ).toMatchObject({ state: "dead" });
  });

  test("the backoff grows with the attempt", () => {
    const growing = { ...policy, maxAttempts: 99, backoff: exponential("1m", { max: "1h", jitter: 0 }) };
    const delays = [1, 2, 3, 7].map((attempt) =>
      decide(job({ attempt }), { kind: "failed", failure }, growing, env),
    );
    expect(delays.map((transition) => (transition.move === "again" ? transition.delayMs : 0))).toEqual([
      60_000, 120_000, 240_000, 3_600_000,
    ]);
  });

  test("Throttled and Release give the attempt back, never below 0", () => {
    expect(
      decide(job({ attempt: 3 }), { kind: "throttled", delayMs: 5_000, reason: "429" }, policy, env),
    ).toMatchObject({ move: "again", delayMs: 5_000, attempt: 2, throttled: true, errors: null });
    expect(
      decide(job({ attempt: 3 }), { kind: "throttled", delayMs: null, reason: "429" }, policy, env),
    ).toMatchObject({ delayMs: 10_000 });
    expect(
      decide(job({ attempt: 0 }), { kind: "released", delayMs: 0, reason: null }, policy, env),
    ).toMatchObject({ move: "again", delayMs: 0, attempt: 0, throttled: false });
  });

  test("[O12] a Release without a delay keeps the due time, and waits 1 s where the run before ended so too", () => {
    const thrown = { kind: "released", delayMs: 0, reason: "x", thrown: true } as const;
    const begun = job({ begun: true });
    expect(decide(begun, thrown, policy, env)).toMatchObject({
      delayMs: 0,
      keeps: { runAt: begun.runAt },
      note: '{"kind":"released","reason":"x","thrown":true}',
    });
    const again = decide(begun, { ...thrown, repeated: true }, policy, env);
    expect(again).toMatchObject({ delayMs: 1_000 });
    expect(again).not.toHaveProperty("keeps");
    expect(mayRepeat(begun, thrown)).toBe(true);
    expect(mayRepeat(job({ begun: false }), thrown)).toBe(false);
    expect(mayRepeat(begun, { ...thrown, delayMs: 5 })).toBe(false);
    const forced = { kind: "released", delayMs: 0, reason: "shutdown", forced: true } as const;
    expect(mayRepeat(begun, forced)).toBe(false);
    expect(decide(begun, forced, policy, env)).toMatchObject({
      note: '{"kind":"released","reason":"shutdown"}',
    });
  });

  test("a cancelled job says why, and one that never started used no attempt", () => {
    const cancelled = decide(
      job({ attempt: 2 }),
      { kind: "cancelled", reason: "cancelled by user" },
      policy,
      env,
    );
    expect(cancelled).toMatchObject({ move: "end", state: "cancelled", attempt: 2 });
    expect(messages(cancelled.errors)).toEqual(["cancelled by user"]);
    expect(
      decide(job({ attempt: 2 }), { kind: "cancelled", reason: "x", unstarted: true }, policy, env),
    ).toMatchObject({ attempt: 1 });
  });

  test("a lost lease is ready at once, keeps its attempt and counts a crash", () => {
    const lost = decide(job({ attempt: 2, crashes: 1 }), { kind: "lost" }, policy, env);
    expect(lost).toMatchObject({ move: "again", delayMs: 0, attempt: 1, crashes: 2 });
    expect(messages(lost.errors)).toEqual(["its worker died (crash 2)"]);
    expect(decodeFailures(lost.errors)).toMatchObject([{ at: env.now(), lost: true }]);
    expect(decodeFailures(lost.errors)[0]).not.toHaveProperty("ranMs");
  });

  test("what was lost was held until its lease passed, whenever somebody finds it", () => {
    const held = job({ startedAt: 5_000, leaseUntil: 35_000 });
    expect(decodeFailures(decide(held, { kind: "lost" }, policy, env).errors)).toMatchObject([
      { at: 35_000, ranMs: 30_000, lost: true },
    ]);
    const gone = job({ startedAt: 5_000, leaseUntil: null });
    expect(decodeFailures(decide(gone, { kind: "lost" }, policy, env).errors)[0]).not.toHaveProperty("ranMs");
    const failed = decide(job(), { kind: "failed", failure }, policy, env);
    expect(decodeFailures(failed.errors)[0]).not.toHaveProperty("lost");
  });

  test("one crash too many is the end: killed its worker n times", () => {
    const lost = decide(job({ crashes: 4 }), { kind: "lost" }, policy, env);
    expect(lost).toMatchObject({ move: "end", state: "dead", crashes: 5 });
    expect(messages(lost.errors)).toEqual(["killed its worker 5 times"]);
    expect(messages(decide(job(), { kind: "lost" }, { ...policy, maxCrashes: 1 }, env).errors)).toEqual([
      "killed its worker 1 time",
    ]);
  });

  test("where crashes count as attempts, the attempt stays used and the attempts are the limit", () => {
    const strict: Policy = { ...policy, countCrashes: "attempt", maxAttempts: 3 };
    expect(decide(job({ attempt: 2, crashes: 9 }), { kind: "lost" }, strict, env)).toMatchObject({
      move: "again",
      attempt: 2,
      crashes: 10,
      delayMs: 0,
    });
    expect(decide(job({ attempt: 3 }), { kind: "lost" }, strict, env)).toMatchObject({
      move: "end",
      state: "dead",
    });
  });

  test("a lost job whose cancel was asked for ends cancelled", () => {
    const lost = decide(
      job({ cancelReason: "cancelled by user", crashes: 4 }),
      { kind: "lost" },
      policy,
      env,
    );
    expect(lost).toMatchObject({ move: "end", state: "cancelled", crashes: 5 });
    expect(messages(lost.errors)).toEqual(["cancelled by user"]);
  });

  test("whatever comes in: a legal transition with the job's own fence and a delay that the database can add", () => {
    const outcome = fc.oneof(
      fc.record({ kind: fc.constant("succeeded" as const), output: fc.constantFrom(null, "1") }),
      fc.record({
        kind: fc.constant("failed" as const),
        failure: fc.constant(failure),
        retryInMs: fc.double(),
      }),
      fc.record({ kind: fc.constant("dead" as const), failure: fc.constant(failure) }),
      fc.record({
        kind: fc.constant("throttled" as const),
        delayMs: fc.option(fc.double()),
        reason: fc.string(),
      }),
      fc.record({
        kind: fc.constant("released" as const),
        delayMs: fc.double(),
        reason: fc.option(fc.string()),
      }),
      fc.record({ kind: fc.constant("cancelled" as const), reason: fc.string() }),
      fc.record({ kind: fc.constant("lost" as const) }),
    );
    fc.assert(
      fc.property(
        outcome,
        fc.integer({ min: 0, max: 40_000 }),
        fc.integer({ min: 0, max: 100 }),
        (each, attempt, crashes) => {
          const given = job({ attempt, crashes });
          const transition = decide(given, each, policy, env);
          expect(transition).toMatchObject({ id: given.id, token: given.token });
          expect(transition.attempt).toBeGreaterThanOrEqual(0);
          expect(transition.attempt).toBeLessThanOrEqual(attempt);
          expect(transition.crashes - crashes).toBe(each.kind === "lost" ? 1 : 0);
          const later = transition.move === "again" && transition.delayMs > 0;
          const state = transition.move === "end" ? transition.state : later ? "scheduled" : "ready";
          expect(LEGAL_MOVES.running).toContain(state);
          if (transition.move === "again") {
            expect(Number.isInteger(transition.delayMs)).toBe(true);
            expect(transition.delayMs).toBeGreaterThanOrEqual(0);
            expect(transition.delayMs).toBeLessThanOrEqual(MAX_DELAY_MS);
          }
        },
      ),
    );
  });
});

describe("policyFor", () => {
  const definition = {
    attempts: 3,
    backoff: fixed("2s"),
    maxCrashes: 2,
    countCrashes: "attempt",
    keep: false,
  } as const;

  test("the row wins, then the definition, then the queue, then the defaults", () => {
    const rowed = job({
      maxAttempts: 9,
      extras: { backoff: fixed("1s"), maxCrashes: 8, countCrashes: "crash", keep: true },
    });
    expect(policyFor(rowed, definition, fixed("3s"))).toEqual({
      maxAttempts: 9,
      backoff: fixed("1s"),
      maxCrashes: 8,
      countCrashes: "crash",
      keep: true,
    });
    expect(policyFor(job(), definition, fixed("3s"))).toEqual({
      maxAttempts: 3,
      backoff: fixed("2s"),
      maxCrashes: 2,
      countCrashes: "attempt",
      keep: false,
    });
    expect(policyFor(job(), { ...definition, backoff: null }, fixed("3s")).backoff).toEqual(fixed("3s"));
    expect(policyFor(job(), null, null)).toMatchObject({
      maxAttempts: 5,
      maxCrashes: 5,
      countCrashes: "crash",
      keep: true,
      backoff: { kind: "exponential", baseMs: 60_000, maxMs: 3_600_000 },
    });
  });

  test.each([{ kind: "x" }, { kind: "fixed", ms: "soon", jitter: 0 }, 5, null])(
    "a row's backoff that is none (%j) gives way to the definition's",
    (spoilt) => {
      const given = job({ extras: { backoff: spoilt as never } });
      const definition = {
        attempts: 3,
        backoff: fixed("7s"),
        maxCrashes: 5,
        countCrashes: "crash",
        keep: true,
      } as const;
      expect(policyFor(given, definition, spoilt as never).backoff).toEqual(fixed("7s"));
    },
  );

  test("a run that waits gives its attempt back and starts anew with its crashes; a machine that moves starts anew", () => {
    const wait = { waits: "signal", at: 5, topics: ["t"], open: 0, every: false } as const;
    const given = job({ attempt: 3, crashes: 2 });
    const policy = policyFor(given, null, null);
    const env = { now: () => 0, random: () => 0.5 };
    expect(decide(given, { kind: "suspended", ...wait }, policy, env)).toMatchObject({
      move: "wait",
      attempt: 2,
      crashes: 0,
      ...wait,
    });
    expect(decide(given, { kind: "moved", delayMs: 7 }, policy, env)).toMatchObject({
      move: "again",
      delayMs: 7,
      attempt: 0,
      crashes: 0,
    });
    expect(decide(given, { kind: "committed" }, policy, env)).toMatchObject({ move: "none", attempt: 3 });
    const undone = { kind: "undone", state: "cancelled", errors: "[]" } as const;
    expect(decide(given, undone, policy, env)).toMatchObject({
      move: "end",
      state: "cancelled",
      errors: "[]",
    });
  });
});
