// Results, events, middleware, opening, closing, and trying again on a real store.
import { readFileSync } from "node:fs";
import { describe, expect, onTestFinished, test } from "vitest";
import { StoreError } from "../src/errors.ts";
import { Emitter } from "../src/events.ts";
import { Holdfast } from "../src/holdfast.ts";
import { defineJob, open, silentLogger } from "../src/index.ts";
import { checkOpenOptions } from "../src/open-options.ts";
import { openStore } from "../src/storage/open.ts";
import { FakeClock } from "../src/testing/index.ts";
import { VERSION } from "../src/version.ts";
import { onEveryStore, type StoreTarget } from "./support/stores.ts";
import { waitFor } from "./support/wait.ts";
import { between, bound, type Verb } from "./support/store-parts.ts";
import { advancing, coded, connect, containing, fresh, refusal, rows } from "./support/test-clients.ts";

test("the version is the package's", () => {
  const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
  expect(VERSION).toBe(version);
});

const plain = defineJob({ name: "plain", run: async (input: unknown) => input });
const unknownId = "0199c1d8-7c00-7000-8000-000000000000";

/** A client whose store's `verb` fails as told: before it does anything, or after it has done it. */
async function failing(
  target: StoreTarget,
  verb: Verb,
  errors: readonly Error[],
  when: "before" | "after" = "before",
) {
  const clock = new FakeClock();
  const fresh = await target.fresh();
  const store = await openStore(fresh.url, { ...fresh.options, clock });
  const left = [...errors];
  let calls = 0;
  const faulty = between(store, (called, value, owner) => {
    if (typeof value !== "function" || called !== verb) return bound(value, owner);
    return (...args: unknown[]): unknown => {
      calls += 1;
      const error = left.shift();
      if (error === undefined) return Reflect.apply(value, owner, args);
      if (when === "before") return Promise.reject(error);
      return (Reflect.apply(value, owner, args) as Promise<unknown>).then(() => Promise.reject(error));
    };
  });
  const { client } = checkOpenOptions({ logger: silentLogger });
  const env = { clock, random: () => 0.5, host: "h", pid: 1, hostId: "h-1", cpus: 2, env: {} };
  const hf = new Holdfast(faulty, client, env, new Emitter(() => {}));
  onTestFinished(() => hf.close());
  return { hf, clock, fresh, calls: () => calls };
}

onEveryStore((target) => {
  describe("trying again", () => {
    test("[A8] two conflicts are three calls and one job; a unique violation is one call", async () => {
      const busy = new StoreError("DATABASE_BUSY", "locked");
      const { hf, clock, fresh, calls } = await failing(target, "newJobs.enqueue", [busy, busy]);
      const result = hf.enqueue(plain, 1);
      await clock.advance(99);
      expect(calls()).toBe(1);
      await clock.advance(1);
      expect(calls()).toBe(2);
      await clock.advance(300);
      expect((await result).status).toBe("enqueued");
      expect(calls()).toBe(3);
      expect(await rows(fresh, "job")).toBe(1);
      const violation = Object.assign(new Error("duplicate key"), { code: "23505" });
      const second = await failing(target, "newJobs.enqueue", [violation]);
      expect(await refusal(second.hf.enqueue(plain, 1))).toBe(violation);
      expect(second.calls()).toBe(1);
    });

    test.for([
      ["plain", {}, {}],
      ["keyed", { key: "a" }, { key: "b" }],
    ] as const)(
      "a commit of %s jobs whose answer was lost is sent again and is made once",
      async ([, one, two]) => {
        const unknown = new StoreError("CONNECTION_LOST", "the answer was lost");
        const { hf, clock, fresh, calls } = await failing(target, "newJobs.enqueue", [unknown], "after");
        const results = Promise.all([hf.enqueue(plain, 1, one), hf.enqueue(plain, 2, two)]);
        expect((await advancing(clock, results)).map(({ status }) => status)).toEqual([
          "enqueued",
          "enqueued",
        ]);
        expect(calls()).toBe(2);
        expect(await rows(fresh, "job")).toBe(2);
      },
    );

    test("reads wait out a lost connection, and give up at the deadline", async () => {
      const lost = new StoreError("CONNECTION_LOST", "gone");
      const { hf, clock, calls } = await failing(target, "jobs.count", [lost, lost]);
      expect(await advancing(clock, hf.jobs.count())).toBe(0);
      expect(calls()).toBe(3);
      const away = await failing(
        target,
        "jobs.count",
        Array.from({ length: 1_000 }, () => lost),
      );
      const never = refusal(away.hf.jobs.count());
      await away.clock.advance("31s");
      expect(await never).toBe(lost);
    });
  });

  describe("settling through an outage", () => {
    const away = new StoreError("CONNECTION_LOST", "gone");
    test.for(["before", "after"] as const)(
      "[D18] a settle that fails twice, %s it was written, is done once",
      async (when) => {
        const { hf, clock, calls } = await failing(target, "settles.settle", [away, away], when);
        const { id } = await hf.enqueue(plain, 1);
        const [lease] = await hf.lease({ for: "1m" });
        await advancing(clock, lease?.done("once") ?? Promise.resolve());
        expect(calls()).toBe(3);
        expect(await hf.jobs.get(id)).toMatchObject({ state: "done", output: "once", attempt: 1 });
      },
    );

    test("a settle is given up when the lease has passed", async () => {
      const { hf, clock } = await failing(
        target,
        "settles.settle",
        Array.from({ length: 1_000 }, () => away),
      );
      await hf.enqueue(plain, 1);
      const [lease] = await hf.lease({ for: "5s" });
      const done = refusal(lease?.done("late") ?? Promise.resolve());
      expect(await advancing(clock, done)).toMatchObject({ code: "LEASE_LOST" });
    });
  });

  describe("with a worker", () => {
    test("a result that is made here is seen at once, without looking", async () => {
      const clock = new FakeClock();
      const { hf } = await fresh(target, { clock });
      const go = Promise.withResolvers<void>();
      const slow = defineJob({
        name: "slow",
        run: async (input: number) => {
          await go.promise;
          return input * 2;
        },
      });
      const worker = hf.work([slow], { queues: ["default"] });
      await worker.ready;
      const result = hf.result(await hf.enqueue(slow, 21));
      await expect.poll(() => worker.running).toBe(1);
      go.resolve();
      expect(await result).toBe(42);
    });

    test("[E2][E3] a cancel reaches a job that runs here at once, and it ends cancelled by user", async () => {
      const clock = new FakeClock();
      const { hf } = await fresh(target, { clock });
      const stubborn = defineJob({
        name: "stubborn",
        run: async (_input: unknown, ctx) => {
          await new Promise((_, reject) =>
            ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason as Error)),
          );
        },
      });
      const worker = hf.work([stubborn], { queues: ["default"] });
      await worker.ready;
      const enqueued = await hf.enqueue(stubborn, 1);
      const result = refusal(hf.result(enqueued));
      await expect.poll(() => worker.running).toBe(1);
      expect(await hf.jobs.cancel(enqueued.id)).toBe("cancel_requested");
      expect(await result).toMatchObject({ code: "JOB_CANCELLED" });
      expect(await hf.jobs.get(enqueued.id)).toMatchObject({
        state: "cancelled",
        error: "cancelled by user",
        attempt: 1,
      });
    });
  });

  describe("hf.result", () => {
    test("gives the output from this process and from another", async () => {
      const { hf, store } = await fresh(target);
      const other = await connect(store);
      const enqueued = await hf.enqueue(plain, { n: 1 });
      const here = hf.result(enqueued, { timeout: "20s" });
      const there = other.result(enqueued.id, { timeout: "20s" });
      // Who begins to wait for a job locks its row for a moment, and a claim passes over what is locked.
      const lease = await waitFor(async () => (await hf.lease())[0], { what: "a lease of the job" });
      await lease.done({ ok: true });
      expect(await Promise.all([here, there])).toEqual([{ ok: true }, { ok: true }]);
    });

    test("rejects with a code for dead, cancelled, unknown and too late", async () => {
      const clock = new FakeClock();
      const { hf } = await fresh(target, { clock });
      const dead = await hf.enqueue(plain, 1);
      const waiting = refusal(hf.result(dead));
      await (await hf.lease())[0]?.dead("no use");
      expect(await waiting).toMatchObject({
        name: "StateError",
        code: "JOB_DEAD",
        message: containing("no use"),
      });
      const cancelled = await hf.enqueue(plain, 1, { delay: "1h" });
      await hf.jobs.cancel(cancelled.id);
      expect(await refusal(hf.result(cancelled))).toMatchObject({ code: "JOB_CANCELLED" });
      expect(await refusal(hf.result(unknownId))).toMatchObject({ code: "JOB_NOT_FOUND" });
      expect(await refusal(hf.result("nonsense"))).toMatchObject({ code: "JOB_NOT_FOUND" });
      expect(await refusal(hf.result(7 as never))).toMatchObject({ code: "BAD_OPTION" });
      const slow = await hf.enqueue(plain, 1, { delay: "1h" });
      const late = refusal(hf.result(slow, { timeout: "2s" }));
      expect(await advancing(clock, late)).toMatchObject({ code: "RESULT_TIMEOUT" });
    });
  });

  describe("hf.on and hf.use", () => {
    test("events tell what happened, after it was committed", async () => {
      const { hf } = await fresh(target);
      const seen: unknown[] = [];
      const off = hf.on("job.enqueued", async (event) =>
        seen.push({ ...event, there: (await hf.jobs.get(event.id)) !== null }),
      );
      const { id } = await hf.enqueue(plain, 1, { priority: 3 });
      await expect
        .poll(() => seen)
        .toEqual([{ id, status: "enqueued", name: "plain", queue: "default", priority: 3, there: true }]);
      off();
      await hf.enqueue(plain, 1);
      expect(seen).toHaveLength(1);
      expect(() => hf.on("job.explode" as never, () => {})).toThrow(coded("BAD_OPTION"));
    });

    test("a listener that throws harms nobody and is told as an error", async () => {
      const { hf } = await fresh(target);
      const errors: unknown[] = [];
      hf.on("job.enqueued", () => {
        throw new Error("mine");
      });
      hf.on("job.enqueued", () => Promise.reject(new Error("mine too")));
      hf.on("error", ({ error }) => {
        errors.push(error);
        throw new Error("and the error listener");
      });
      expect((await hf.enqueue(plain, 1)).status).toBe("enqueued");
      await expect.poll(() => errors.map(String)).toEqual(["Error: mine", "Error: mine too"]);
    });

    test("middleware wraps every enqueue, outermost first, and may change input and context", async () => {
      const { hf, store } = await fresh(target);
      const order: string[] = [];
      hf.use({
        enqueue: async (request, next) => {
          order.push("outer in");
          request.context = "traced";
          const result = await next();
          order.push(`outer out ${result.status}`);
          return result;
        },
      }).use({
        enqueue: (request, next) => {
          order.push("inner in");
          request.input = { wrapped: request.input };
          return next();
        },
      });
      const { id } = await hf.enqueue(plain, 1);
      expect(order).toEqual(["outer in", "inner in", "outer out enqueued"]);
      expect(await hf.jobs.get(id)).toMatchObject({ input: { wrapped: 1 }, context: "traced" });
      const many = await hf.enqueueMany([
        { job: plain, input: 2 },
        { job: plain, input: 3 },
      ]);
      expect(await hf.jobs.get(many[1]?.id ?? "")).toMatchObject({ input: { wrapped: 3 } });
      hf.use({
        enqueue: (request, next) =>
          request.name === "forbidden" ? Promise.reject(new Error("forbidden")) : next(),
      });
      const before = await rows(store, "job");
      await expect(
        hf.enqueueMany([
          { job: plain, input: 1 },
          { job: "forbidden", input: 1 },
        ]),
      ).rejects.toThrow("forbidden");
      expect(await rows(store, "job")).toBe(before);
      expect(() => hf.use({ before: 1 } as never)).toThrow(coded("UNKNOWN_OPTION"));
      expect(() => hf.use({})).toThrow(coded("BAD_OPTION"));
    });

    test("a middleware that calls next twice is told", async () => {
      const { hf } = await fresh(target);
      hf.use({
        enqueue: async (_request, next) => {
          await next();
          return next();
        },
      });
      expect(await refusal(hf.enqueue(plain, 1))).toMatchObject({ code: "ILLEGAL_MOVE" });
    });

    test("a middleware that forgets to return what next gives is told so, instead of its caller", async () => {
      const { hf } = await fresh(target);
      hf.use({ enqueue: (_request, next) => next() });
      hf.use({ enqueue: (async (_request: unknown, next: () => unknown) => void (await next())) as never });
      const forgot = { code: "BAD_OPTION", message: containing("return next()") };
      expect(await refusal(hf.enqueue(plain, 1))).toMatchObject(forgot);
      expect(await refusal(hf.enqueueMany([{ job: plain, input: 1 }]))).toMatchObject(forgot);
    });
  });

  describe("open and close", () => {
    test("wrong options are refused before the database is touched", async () => {
      const store = await target.fresh();
      const wrong: [object, string][] = [
        [{ shcema: "x" }, "UNKNOWN_OPTION"],
        [{ schema: "a b" }, "BAD_NAME"],
        [{ durability: "some" }, "BAD_OPTION"],
        [{ migrate: "yes" }, "BAD_OPTION"],
        [{ logger: {} }, "BAD_OPTION"],
        [{ clock: {} }, "BAD_OPTION"],
        [{ route: "x" }, "BAD_OPTION"],
        [{ maxPayload: 0 }, "BAD_OPTION"],
        [{ retryFor: "x" }, "BAD_DURATION"],
        [{ order: "up" }, "BAD_OPTION"],
        [{ random: 1 }, "BAD_OPTION"],
        [{ poolSize: 0 }, "BAD_OPTION"],
      ];
      for (const [options, code] of wrong)
        expect(await refusal(open(store.url, options))).toMatchObject({ name: "UsageError", code });
      expect(await refusal(open("mysql://x"))).toMatchObject({ code: "BAD_URL" });
      expect(await refusal(open(""))).toMatchObject({ code: "BAD_URL" });
      expect(await refusal(open(7 as never))).toMatchObject({ code: "BAD_URL" });
    });

    test("a closed client refuses everything, has written what was gathered, and closing twice is closing once", async () => {
      const { hf, store } = await fresh(target);
      const gathered = Promise.all(Array.from({ length: 50 }, (_, n) => hf.enqueue(plain, n)));
      const waiting = refusal(hf.result((await hf.enqueue(plain, 1, { delay: "1h" })).id));
      const closing = hf.close();
      expect(hf.close()).toBe(closing);
      await closing;
      expect(await gathered).toHaveLength(50);
      expect(await waiting).toMatchObject({ code: "CLOSED" });
      expect(await rows(store, "job")).toBe(51);
      for (const call of [
        () => hf.enqueue(plain, 1),
        () => hf.enqueueMany([]),
        () => hf.jobs.get(unknownId),
        () => hf.jobs.list(),
        () => hf.jobs.retry(unknownId),
        () => hf.jobs.cancel({ state: "ready" }),
        () => hf.queues.list(),
        () => hf.queues.pause("a"),
        () => hf.holds.set("a"),
        () => hf.state.get("a"),
        () => hf.workers.list(),
        () => hf.workers.stop("all"),
        () => hf.lease(),
        () => hf.result(unknownId),
        () => hf.stats(),
        () => hf.prune(),
      ]) {
        expect(await refusal(call())).toMatchObject({ name: "StateError", code: "CLOSED" });
      }
      expect(() => hf.work([plain], { queues: ["a"] })).toThrow(coded("CLOSED"));
    });

    test("close stops the workers first, and what runs may still enqueue", async () => {
      const { hf, store } = await fresh(target);
      const started = Promise.withResolvers<void>();
      const go = Promise.withResolvers<void>();
      const parent = defineJob({
        name: "parent",
        run: async (_input: unknown, ctx) => {
          started.resolve();
          await go.promise;
          await ctx.enqueue(plain, "child");
        },
      });
      const worker = hf.work([parent], { queues: ["default"] });
      await worker.ready;
      const { id } = await hf.enqueue(parent, 1);
      await started.promise;
      const closing = hf.close();
      expect(await refusal(hf.enqueue(plain, 1))).toMatchObject({ code: "CLOSED" });
      go.resolve();
      await closing;
      const other = await connect(store);
      expect(await other.jobs.get(id)).toMatchObject({ state: "done" });
      expect((await other.jobs.list({ name: "plain" })).jobs).toMatchObject([
        { input: "child", parentId: id },
      ]);
    });

    test("a client is disposed of at the end of its block", async () => {
      const store = await target.fresh();
      let kept;
      {
        await using hf = await open(store.url, { ...store.options, logger: silentLogger });
        kept = hf;
      }
      expect(await refusal(kept.stats())).toMatchObject({ code: "CLOSED" });
    });
  });
});
