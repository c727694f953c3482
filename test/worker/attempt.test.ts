import { describe, expect, test, vi } from "vitest";
import * as v from "valibot";
import { Attempt, type AttemptDeps } from "../../src/worker/attempt.ts";
import { Dead, Release, RetryAfter, Throttled } from "../../src/jobs/decision.ts";
import type { Handler } from "../../src/jobs/define-job.ts";
import type { ClaimedJob } from "../../src/jobs/job.ts";
import { silentLogger } from "../../src/logger.ts";
import { MiddlewareChain } from "../../src/worker/middleware.ts";
import type { Outcome } from "../../src/jobs/outcome.ts";

const claimed: ClaimedJob = {
  id: "job-1",
  rowKey: "job-1",
  token: 7,
  session: 3,
  name: "job",
  queue: "default",
  priority: 0,
  input: '{"n":1}',
  attempt: 2,
  crashes: 0,
  begun: false,
  undoing: false,
  maxAttempts: null,
  timeoutMs: null,
  errors: null,
  keyed: false,
  lane: null,
  context: "why",
  parentId: null,
  runAt: 0,
  startedAt: 0,
  deadlineAt: null,
  extras: null,
  cancelReason: null,
};

interface Started {
  readonly attempt: Attempt;
  readonly outcome: Promise<Outcome>;
  readonly outcomes: Outcome[];
  readonly runawayEnds: () => number;
}

function start(
  run: Handler<never, unknown>,
  given: {
    job?: Partial<ClaimedJob>;
    input?: unknown;
    middleware?: MiddlewareChain;
    progress?: (text: string) => boolean;
    /** By the monotonic clock, which `monotonic` reads; the attempt starts at 0. */
    deadlineAt?: number;
    monotonic?: () => number;
  } = {},
): Started {
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  const outcomes: Outcome[] = [];
  let runaways = 0;
  const deps: AttemptDeps = {
    middleware: given.middleware ?? new MiddlewareChain(),
    maxOutputBytes: 1_000,
    clock: { now: () => 10_000, monotonic: given.monotonic ?? (() => 0) },
    context: {
      store: {
        settles: {
          progress: (_session, _id, _token, text) => Promise.resolve(given.progress?.(text) ?? true),
        },
      },
      log: silentLogger,
      workerId: "worker-1",
      hostId: "host-1",
      maxPayloadBytes: 1_000,
      enqueueFor: () => ({ enqueue: vi.fn() as never, enqueueMany: vi.fn() as never }),
      budget: () => Promise.resolve({ granted: true, retryAfter: 0 }),
    },
    onEnd: (_attempt, outcome) => {
      outcomes.push(outcome);
      resolve(outcome);
    },
    onRunawayEnd: () => void (runaways += 1),
  };
  const definition = { attempts: 5, timeoutMs: 5_000, input: (given.input ?? null) as never, run };
  const attempt = new Attempt({ ...claimed, ...given.job }, definition, deps);
  attempt.deadlineAt = given.deadlineAt ?? Infinity;
  attempt.start();
  return { attempt, outcome: promise, outcomes, runawayEnds: () => runaways };
}

const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

describe("an attempt", () => {
  test("gives the handler its input and says what it returned", async () => {
    expect(await start((input: unknown) => ({ got: input })).outcome).toEqual({
      kind: "succeeded",
      output: '{"got":{"n":1}}',
    });
    expect(await start(async () => "later").outcome).toEqual({ kind: "succeeded", output: '"later"' });
    expect(await start(() => undefined).outcome).toEqual({ kind: "succeeded", output: null });
  });

  test("[D13] a throw, a rejection and a thenable's own throw are failures like any other", async () => {
    const boom = { kind: "failed", failure: { message: "boom" } };
    expect(
      await start(() => {
        throw new Error("boom");
      }).outcome,
    ).toMatchObject(boom);
    expect(await start(() => Promise.reject(new Error("boom"))).outcome).toMatchObject(boom);
    expect(
      await start(() => ({
        // oxlint-disable-next-line unicorn/no-thenable -- the point of this line
        then: () => {
          throw new Error("boom");
        },
      })).outcome,
    ).toMatchObject(boom);
    expect(
      await start(() => {
        throw undefined as unknown;
      }).outcome,
    ).toMatchObject({ kind: "failed", failure: { message: expect.stringContaining("undefined") as string } });
  });

  test("decisions become their outcomes", async () => {
    const thrown = (error: Error): Promise<Outcome> =>
      start(() => {
        throw error;
      }).outcome;
    expect(await thrown(new Dead("no such user"))).toMatchObject({
      kind: "dead",
      failure: { message: "no such user" },
    });
    expect(await thrown(new RetryAfter("15m"))).toMatchObject({ kind: "failed", retryInMs: 900_000 });
    expect(await thrown(new RetryAfter(new Date(12_000)))).toMatchObject({
      kind: "failed",
      retryInMs: 2_000,
    });
    expect(await thrown(new Throttled("5s"))).toEqual({
      kind: "throttled",
      delayMs: 5_000,
      reason: "throttled",
    });
    expect(await thrown(new Release("expired", { delay: "1m" }))).toEqual({
      kind: "released",
      delayMs: 60_000,
      reason: "expired",
      thrown: true,
    });
  });

  test("[B7] an input that is not JSON is dead at once, and its handler is not called", async () => {
    const run = vi.fn();
    expect(await start(run, { job: { input: "{oops" } }).outcome).toMatchObject({
      kind: "dead",
      failure: { code: "DECODE_FAILED" },
    });
    expect(run).not.toHaveBeenCalled();
  });

  test("an input that does not fit its schema is dead; what the schema gives is what the handler gets", async () => {
    const input = v.object({
      n: v.pipe(
        v.number(),
        v.transform((n) => n + 1),
      ),
    });
    expect(await start((parsed: unknown) => parsed, { input }).outcome).toEqual({
      kind: "succeeded",
      output: '{"n":2}',
    });
    const refused = await start(() => "no", { input: v.object({ n: v.string() }) }).outcome;
    expect(refused).toMatchObject({ kind: "dead", failure: { code: "INPUT_INVALID" } });
    const later = v.pipeAsync(
      v.object({ n: v.number() }),
      v.checkAsync(async () => false, "taken"),
    );
    expect(await start(() => "no", { input: later }).outcome).toMatchObject({ kind: "dead" });
  });

  test("a schema that itself breaks is tried again", async () => {
    const input = {
      "~standard": {
        version: 1,
        vendor: "x",
        validate: () => {
          throw new Error("the lookup failed");
        },
      },
    };
    expect(await start(() => "no", { input }).outcome).toMatchObject({
      kind: "failed",
      failure: { code: "INPUT_INVALID" },
    });
  });

  test("an output that JSON cannot hold, or that is too large, is dead with its code in the message", async () => {
    const notJson = await start(() => ({ n: 1n })).outcome;
    expect(notJson).toMatchObject({ kind: "dead", failure: { code: "OUTPUT_NOT_JSON" } });
    expect(notJson.kind === "dead" && notJson.failure.message).toMatch(/^OUTPUT_NOT_JSON: output\.n/);
    expect(await start(() => "x".repeat(2_000)).outcome).toMatchObject({
      kind: "dead",
      failure: { code: "OUTPUT_TOO_LARGE" },
    });
    expect(
      await start(
        () =>
          new Proxy(
            {},
            {
              get() {
                throw new Error("no");
              },
            },
          ),
      ).outcome,
    ).toMatchObject({ kind: "dead" });
  });

  test("middleware is around the handler and may replace its result", async () => {
    const middleware = new MiddlewareChain();
    const seen: unknown[] = [];
    middleware.use({
      run: async (request, next) => {
        seen.push(request.input, request.ctx.id);
        return `${String(await next())}!`;
      },
    });
    expect(await start(() => "hi", { middleware }).outcome).toEqual({ kind: "succeeded", output: '"hi!"' });
    expect(seen).toEqual([{ n: 1 }, "job-1"]);
  });
});

describe("[E4] the context", () => {
  test("says who runs what", async () => {
    const outcome = await start((_: unknown, ctx) => ({
      id: ctx.id,
      name: ctx.name,
      queue: ctx.queue,
      attempt: ctx.attempt,
      max: ctx.maxAttempts,
      context: ctx.context,
      worker: ctx.workerId,
      host: ctx.hostId,
      token: ctx.token,
      aborted: ctx.signal.aborted,
    })).outcome;
    expect(outcome.kind === "succeeded" && JSON.parse(outcome.output ?? "")).toEqual({
      id: "job-1",
      name: "job",
      queue: "default",
      attempt: 2,
      max: 5,
      context: "why",
      worker: "worker-1",
      host: "host-1",
      token: 7,
      aborted: false,
    });
  });

  test("writes the newest progress only, one at a time, and tells a holder that lost its lease", async () => {
    const written: string[] = [];
    await start(
      async (_: unknown, ctx) => {
        await Promise.all([1, 2, 3].map((n) => ctx.progress(n)));
      },
      { progress: (text) => (written.push(text), true) },
    ).outcome;
    expect(written.length).toBeLessThan(3);
    expect(written.at(-1)).toBe("3");
    expect(
      await start((_: unknown, ctx) => ctx.progress(1), { progress: () => false }).outcome,
    ).toMatchObject({ kind: "failed", failure: { code: "LEASE_LOST" } });
  });
});

describe("stopping an attempt", () => {
  test("[D14] a handler that blocks the event loop past its timeout has failed, however it ends", async () => {
    const timedOut = {
      kind: "failed",
      failure: { message: "timeout after 5s", stack: null, code: "TIMEOUT" },
    };
    const endingAt = (ms: number, end: () => unknown): Promise<Outcome> => {
      let now = 0;
      const run = (): unknown => {
        now = ms;
        return end();
      };
      return start(run, { deadlineAt: 5_000, monotonic: () => now }).outcome;
    };
    const dies = (): never => {
      throw new Dead("no such user");
    };
    expect(await endingAt(4_999, () => 1)).toEqual({ kind: "succeeded", output: "1" });
    expect(await endingAt(5_000, () => 1)).toEqual(timedOut);
    expect(await endingAt(60_000, async () => 1)).toEqual(timedOut);
    expect(await endingAt(4_999, dies)).toMatchObject({ kind: "dead" });
    expect(await endingAt(5_000, dies)).toEqual(timedOut);
  });

  const waits: Handler<never, unknown> = (_input, ctx) =>
    new Promise((_resolve, reject) =>
      ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason as Error)),
    );

  test("the signal aborts with the cause, and the outcome is the cause's", async () => {
    const causes = [
      [
        { kind: "timeout", timeoutMs: 600_000 },
        { kind: "failed", failure: { message: "timeout after 600s" } },
      ],
      [
        { kind: "cancelled", reason: "cancelled by user" },
        { kind: "cancelled", reason: "cancelled by user" },
      ],
      [{ kind: "shutdown" }, { kind: "released", delayMs: 0 }],
      [{ kind: "lost" }, { kind: "lost" }],
    ] as const;
    for (const [cause, outcome] of causes) {
      const started = start(waits);
      started.attempt.stop(cause);
      expect(await started.outcome).toMatchObject(outcome);
    }
  });

  test("a handler that finishes after a cancel or at a shutdown keeps its result; after its timeout or a lost lease it does not", async () => {
    const finishing = async (cause: Parameters<Attempt["stop"]>[0]): Promise<Outcome> => {
      const { promise, resolve } = Promise.withResolvers<string>();
      const started = start(() => promise);
      started.attempt.stop(cause);
      resolve("finished");
      return started.outcome;
    };
    expect(await finishing({ kind: "cancelled", reason: "x" })).toEqual({
      kind: "succeeded",
      output: '"finished"',
    });
    expect(await finishing({ kind: "shutdown" })).toEqual({ kind: "succeeded", output: '"finished"' });
    expect(await finishing({ kind: "timeout", timeoutMs: 1 })).toMatchObject({ kind: "failed" });
    expect(await finishing({ kind: "lost" })).toEqual({ kind: "lost" });
  });

  test("at a shutdown a decision still counts, a plain error gives the attempt back", async () => {
    const throwing = async (thrown: Error): Promise<Outcome> => {
      const { promise, reject } = Promise.withResolvers<string>();
      const started = start(() => promise);
      started.attempt.stop({ kind: "shutdown" });
      reject(thrown);
      return started.outcome;
    };
    expect(await throwing(new Dead("for good"))).toMatchObject({ kind: "dead" });
    expect(await throwing(new Error("aborted"))).toMatchObject({ kind: "released" });
  });

  test("the first cause stands, but a lost lease outweighs it", async () => {
    const started = start(waits);
    started.attempt.stop({ kind: "cancelled", reason: "first" });
    started.attempt.stop({ kind: "timeout", timeoutMs: 5 });
    expect(started.attempt.stopCause).toEqual({ kind: "cancelled", reason: "first" });
    const deaf = start(() => new Promise(() => undefined));
    deaf.attempt.stop({ kind: "cancelled", reason: "first" });
    deaf.attempt.stop({ kind: "lost" });
    expect(deaf.attempt.abandon()).toBe(true);
    expect(await deaf.outcome).toEqual({ kind: "lost" });
  });

  test("a signal that is first asked for after the abort is born aborted", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const started = start(async (_: unknown, ctx) => {
      await promise;
      return ctx.signal.aborted;
    });
    started.attempt.stop({ kind: "cancelled", reason: "x" });
    resolve();
    expect(await started.outcome).toEqual({ kind: "succeeded", output: "true" });
  });

  test("an abandoned handler has one outcome, and its late end is noticed without harm", async () => {
    for (const end of ["resolve", "reject"] as const) {
      const door = Promise.withResolvers<string>();
      const started = start(() => door.promise);
      started.attempt.stop({ kind: "timeout", timeoutMs: 1_000 });
      expect(started.attempt.abandon()).toBe(true);
      expect(started.attempt.abandon()).toBe(false);
      expect(started.outcomes).toMatchObject([{ kind: "failed", failure: { message: "timeout after 1s" } }]);
      if (end === "resolve") door.resolve("late");
      else door.reject(new Error("late"));
      await turn();
      expect(started.outcomes).toHaveLength(1);
      expect(started.runawayEnds()).toBe(1);
    }
  });
});
