import * as v from "valibot";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { defineJob, exponential, fixed } from "../../src/index.ts";
import { MAX_DELAY_MS } from "../../src/values/duration.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { anError, connect, fresh, refusal, rows } from "../support/test-clients.ts";

const plain = defineJob({ name: "plain", run: async (_input: unknown) => {} });

onEveryStore((target) => {
  describe("enqueue", () => {
    test("[A3] a second enqueue of an active key returns the first id and adds no row", async () => {
      const { hf, store } = await fresh(target);
      const first = await hf.enqueue(plain, 1, { key: "k" });
      const second = await hf.enqueue(plain, 2, { key: "k" });
      expect(first.status).toBe("enqueued");
      expect(second).toEqual({ status: "duplicate", id: first.id });
      expect(await rows(store, "job")).toBe(1);
    });

    test("[A4] a job is due now, after a delay or at an instant, and a huge delay is clamped", async () => {
      const clock = new FakeClock();
      const { hf } = await fresh(target, { clock });
      const start = clock.now();
      const delayed = await hf.enqueue(plain, 1, { delay: "2s" });
      await clock.advance("1s");
      expect(await hf.lease()).toEqual([]);
      expect(await hf.jobs.get(delayed.id)).toMatchObject({ state: "scheduled" });
      await clock.advance(1_100);
      const [lease] = await hf.lease();
      expect(lease?.id).toBe(delayed.id);
      await lease?.done();
      const at = await hf.enqueue(plain, 1, { at: new Date(start + 60_000) });
      expect((await hf.jobs.get(at.id))?.runAt).toEqual(new Date(start + 60_000));
      const past = await hf.enqueue(plain, 1, { at: new Date(start - 60_000) });
      expect(await hf.jobs.get(past.id)).toMatchObject({ state: "ready" });
      const far = await hf.enqueue(plain, 1, { delay: 1e15 });
      expect((await hf.jobs.get(far.id))?.runAt?.getTime()).toBe(clock.now() + MAX_DELAY_MS);
    });

    test("[A7] many jobs are one transaction: outcomes in order, duplicates apart, a bad one refuses all", async () => {
      const { hf, store } = await fresh(target);
      const before = await hf.enqueue(plain, 0, { key: "k0" });
      const items = Array.from({ length: 1_000 }, (_, n) => ({ job: plain, input: n, key: `k${n % 500}` }));
      const results = await hf.enqueueMany(items);
      expect(results).toHaveLength(1_000);
      expect(results[0]).toEqual({ status: "duplicate", id: before.id });
      expect(results.slice(1, 500).every(({ status }) => status === "enqueued")).toBe(true);
      for (let n = 500; n < 1_000; n++)
        expect(results[n]).toEqual({ status: "duplicate", id: results[n - 500]?.id });
      expect(await rows(store, "job")).toBe(500);
      const refused = await refusal(
        hf.enqueueMany([
          { job: plain, input: 1 },
          { job: plain, input: 1n },
          { job: plain, input: 2 },
        ]),
      );
      expect(refused).toMatchObject({ code: "INPUT_NOT_JSON", details: { index: 1 } });
      expect(refused.message).toMatch(/^Item 1 /);
      expect(await rows(store, "job")).toBe(500);
      expect(await hf.enqueueMany([])).toEqual([]);
    });

    test("[A9] what JSON cannot hold is refused before anything is written", async () => {
      const { hf, store } = await fresh(target);
      const cycle: { self?: unknown } = {};
      cycle.self = cycle;
      for (const input of [
        1n,
        cycle,
        undefined,
        () => 1,
        { a: Number.NaN },
        { a: [Infinity] },
        new Map(),
        Symbol("s"),
      ]) {
        expect(await refusal(hf.enqueue(plain, input))).toMatchObject({
          name: "UsageError",
          code: "INPUT_NOT_JSON",
        });
      }
      expect(await refusal(hf.enqueue(plain, "x".repeat(1_048_577)))).toMatchObject({
        code: "INPUT_TOO_LARGE",
      });
      const strict = defineJob({ name: "strict", input: z.object({ n: z.number() }) });
      expect(await refusal(hf.enqueue(strict, { n: Number.NaN }))).toMatchObject({ code: "INPUT_INVALID" });
      expect(await rows(store, "job")).toBe(0);
    });

    test("NUL, lone surrogates, deep and __proto__ input come back unharmed", async () => {
      const { hf } = await fresh(target);
      const deep = Array.from({ length: 500 }).reduce<unknown>((inner) => [inner], 1);
      const input = {
        nul: "a\0b",
        half: "\ud800x",
        emoji: "😀",
        deep,
        ...(JSON.parse('{"__proto__":{"polluted":true}}') as object),
      };
      const { id } = await hf.enqueue(plain, input, { context: "\0 \udfff" });
      const job = await hf.jobs.get(id);
      expect(JSON.stringify(job?.input)).toBe(JSON.stringify(input));
      expect(job?.context).toBe("\0 \udfff");
      expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    });

    test("the limit of an input is an option", async () => {
      const { hf } = await fresh(target, { maxPayload: 100 });
      await hf.enqueue(plain, "x".repeat(98));
      expect(await refusal(hf.enqueue(plain, "x".repeat(99)))).toMatchObject({ code: "INPUT_TOO_LARGE" });
    });

    test("[A10] context, priority, attempts and queue are read back", async () => {
      const { hf } = await fresh(target);
      const { id } = await hf.enqueue(
        plain,
        { a: 1 },
        { context: "why", priority: -7, attempts: 3, queue: "mail", lane: "tenant", key: "k" },
      );
      expect(await hf.jobs.get(id)).toMatchObject({
        input: { a: 1 },
        context: "why",
        priority: -7,
        maxAttempts: 3,
        queue: "mail",
        lane: "tenant",
        key: "k",
        attempt: 0,
      });
      const other = await hf.enqueue(plain, { a: 1 });
      expect(await hf.jobs.get(other.id)).toMatchObject({
        context: null,
        priority: 0,
        maxAttempts: 5,
        queue: "default",
        lane: null,
        key: null,
      });
      const defined = defineJob({ name: "defined", queue: "q", priority: 9, retry: { attempts: 2 } });
      const third = await hf.enqueue(defined, null);
      expect(await hf.jobs.get(third.id)).toMatchObject({
        priority: 9,
        maxAttempts: 2,
        queue: "q",
        input: null,
      });
    });

    test("[A11] a kind goes where the router says unless a queue is named, and names are checked", async () => {
      const { hf, store } = await fresh(target, {
        route: (name) => (name === "lost" ? "a,b" : `for-${name}`),
      });
      const queueOf = async (id: string): Promise<string | undefined> => (await hf.jobs.get(id))?.queue;
      expect(await queueOf((await hf.enqueue(plain, 1)).id)).toBe("for-plain");
      expect(await queueOf((await hf.enqueue("by-name", 1)).id)).toBe("for-by-name");
      expect(await queueOf((await hf.enqueueMany([{ job: plain, input: 1 }]))[0]?.id ?? "")).toBe(
        "for-plain",
      );
      expect(await queueOf((await hf.enqueue(plain, 1, { queue: "own" })).id)).toBe("own");
      expect(await queueOf((await hf.enqueue(defineJob({ name: "x", queue: "defined" }), 1)).id)).toBe(
        "defined",
      );
      const before = await rows(store, "job");
      for (const queue of ["a,b", "", " ", "x".repeat(129), "é"])
        expect(await refusal(hf.enqueue(plain, 1, { queue }))).toMatchObject({ code: "BAD_NAME" });
      for (const name of ["a,b", "", "-x"])
        expect(await refusal(hf.enqueue(name, 1))).toMatchObject({ code: "BAD_NAME" });
      expect(await refusal(hf.enqueue("lost", 1))).toMatchObject({ code: "BAD_NAME" });
      expect(await rows(store, "job")).toBe(before);
    });

    test("[A12] a key holds while its job has not ended, whoever enqueues, and is free afterwards", async () => {
      const clock = new FakeClock();
      const { hf, store } = await fresh(target, { clock });
      const other = await connect(store, { clock });
      const results = await Promise.all(
        Array.from({ length: 50 }, (_, n) => (n % 2 === 0 ? hf : other).enqueue(plain, n, { key: "k" })),
      );
      expect(new Set(results.map(({ id }) => id)).size).toBe(1);
      expect(results.filter(({ status }) => status === "enqueued")).toHaveLength(1);
      const [running] = await hf.lease();
      expect((await hf.enqueue(plain, 0, { key: "k" })).status).toBe("duplicate");
      await running?.fail(new Error("later"));
      expect(await hf.jobs.get(running?.id ?? "")).toMatchObject({ state: "scheduled" });
      expect((await hf.enqueue(plain, 0, { key: "k" })).status).toBe("duplicate");
      await hf.jobs.runNow(running?.id ?? "");
      const [again] = await hf.lease();
      await again?.done();
      const after = await hf.enqueue(plain, 0, { key: "k" });
      expect(after.status).toBe("enqueued");
      expect(after.id).not.toBe(running?.id);
    });

    test("[A12] a key is unique over its name, its queue or everything", async () => {
      const { hf } = await fresh(target);
      const kinds = (scope: "job" | "queue" | "global") =>
        ["x", "y"].map((name) =>
          defineJob({
            name: `${scope}-${name}`,
            unique: { key: (input: string) => `${scope}-${input}`, scope },
          }),
        );
      const statuses = async (scope: "job" | "queue" | "global"): Promise<string[]> => {
        const [x, y] = kinds(scope);
        if (x === undefined || y === undefined) throw new Error("two kinds");
        const all = [
          await hf.enqueue(x, "k"),
          await hf.enqueue(y, "k"),
          await hf.enqueue(y, "k", { queue: "other" }),
        ];
        return all.map(({ status }) => status);
      };
      expect(await statuses("job")).toEqual(["enqueued", "enqueued", "duplicate"]);
      expect(await statuses("queue")).toEqual(["enqueued", "duplicate", "enqueued"]);
      expect(await statuses("global")).toEqual(["enqueued", "duplicate", "duplicate"]);
    });

    test("[A13] the key can be a field of the input, per name", async () => {
      const { hf } = await fresh(target);
      const fetch = defineJob({
        name: "fetch",
        unique: "chapterId",
        run: async (_input: { chapterId: number }) => {},
      });
      const first = await hf.enqueue(fetch, { chapterId: 7 });
      expect(await hf.enqueue(fetch, { chapterId: 7 })).toEqual({ status: "duplicate", id: first.id });
      expect((await hf.enqueue(fetch, { chapterId: 8 })).status).toBe("enqueued");
      expect((await hf.enqueue(plain, { chapterId: 7 })).status).toBe("enqueued");
      expect((await hf.enqueue(plain, { chapterId: 7 })).status).toBe("enqueued");
      expect(await refusal(hf.enqueue(fetch, {} as never))).toMatchObject({ code: "BAD_KEY" });
    });

    test("[A14] ids of one process are in the order of the calls, also within a millisecond", async () => {
      const { hf } = await fresh(target, { clock: new FakeClock() });
      const results = await Promise.all(Array.from({ length: 10_000 }, (_, n) => hf.enqueue(plain, n)));
      const ids = results.map(({ id }) => id);
      expect(ids).toEqual([...ids].sort());
      let next = 0;
      for (let n = 0; n < 10; n++) {
        for (const lease of await hf.lease({ limit: 1_000, for: "10m" })) expect(lease.input).toBe(next++);
      }
      expect(next).toBe(10_000);
    });

    test("[N3] a conflict is told, never silent, and counted", async () => {
      const { hf } = await fresh(target);
      const kept = defineJob({ name: "kept", unique: () => "k", run: async (_input: number) => {} });
      const replaced = defineJob({
        name: "replaced",
        unique: { key: () => "k", onConflict: "replace" },
        run: async (_input: number) => {},
      });
      const debounced = defineJob({
        name: "debounced",
        unique: { key: () => "k", onConflict: "debounce" },
        run: async (_input: number) => {},
      });
      await hf.enqueue(kept, 1);
      expect((await hf.enqueue(kept, 2)).status).toBe("duplicate");
      const first = await hf.enqueue(replaced, 1);
      const second = await hf.enqueue(replaced, 2, { priority: 5 });
      expect(second).toEqual({ status: "replaced", id: first.id });
      expect(await hf.jobs.get(second.id)).toMatchObject({ input: 2, priority: 5 });
      const waiting = await hf.enqueue(debounced, 1, { delay: "1m" });
      const pushed = await hf.enqueue(debounced, 2, { delay: "2m" });
      expect(pushed).toEqual({ status: "debounced", id: waiting.id });
      const job = await hf.jobs.get(pushed.id);
      expect(job?.input).toBe(2);
      expect((job?.runAt?.getTime() ?? 0) - (job?.createdAt.getTime() ?? 0)).toBeGreaterThan(110_000);
      const { counters } = await hf.stats();
      expect(counters).toMatchObject({ enqueued: 3, duplicate: 1, replaced: 1, debounced: 1, suppressed: 2 });
    });

    test("[N4] concurrent enqueues share statements and commits, and one bad input fails alone", async () => {
      const { hf, store } = await fresh(target);
      await hf.enqueue(plain, "the first learns its line");
      const before = (await hf.stats()).counters;
      const calls = Array.from({ length: 1_000 }, (_, n) => hf.enqueue(plain, n === 500 ? 1n : n));
      const results = await Promise.allSettled(calls);
      expect(results.flatMap(({ status }, n) => (status === "rejected" ? [n] : []))).toEqual([500]);
      const after = (await hf.stats()).counters;
      expect(after.enqueued - before.enqueued).toBe(999);
      expect(after.statements - before.statements).toBeLessThan(36);
      expect(await rows(store, "job")).toBe(1_000);
    });

    test("an id of one's own makes an enqueue that can be repeated", async () => {
      const { hf, store } = await fresh(target);
      const id = "0199C1D8-7c00-7000-8000-00000000000A";
      expect((await hf.enqueue(plain, 1, { id })).id).toBe(id.toLowerCase());
      expect((await hf.enqueue(plain, 1, { id })).id).toBe(id.toLowerCase());
      expect(await rows(store, "job")).toBe(1);
      expect(await hf.jobs.get(id)).toMatchObject({ input: 1 });
      expect(await refusal(hf.enqueue(plain, 1, { id: "7" }))).toMatchObject({ code: "BAD_OPTION" });
    });

    test("the raw input is stored, checked by its schema, synchronous or not", async () => {
      const { hf, store } = await fresh(target);
      const dated = defineJob({
        name: "dated",
        input: z.object({ b: z.string().transform((text) => text.length), a: z.number().default(1) }),
      });
      const { id } = await hf.enqueue(dated, { b: "abc" });
      expect((await hf.jobs.get(id))?.input).toEqual({ b: "abc" });
      const slow = defineJob({
        name: "slow",
        input: v.pipeAsync(
          v.object({ to: v.string() }),
          v.checkAsync(async ({ to }) => to !== "nobody", "unknown"),
        ),
      });
      await hf.enqueue(slow, { to: "a" });
      expect(await refusal(hf.enqueue(slow, { to: "nobody" }))).toMatchObject({ code: "INPUT_INVALID" });
      expect(await refusal(hf.enqueue(dated, { b: 1 } as never))).toMatchObject({
        code: "INPUT_INVALID",
        details: { issues: [{ path: ".b" }] },
      });
      expect(
        await refusal(
          hf.enqueueMany([
            { job: slow, input: { to: "a" } },
            { job: slow, input: { to: "nobody" } },
          ]),
        ),
      ).toMatchObject({
        code: "INPUT_INVALID",
        details: { index: 1 },
      });
      expect(await rows(store, "job")).toBe(2);
    });

    test("wrong options are refused before anything is written", async () => {
      const { hf, store } = await fresh(target);
      const wrong: [object, string][] = [
        [{ dealy: "5m" }, "UNKNOWN_OPTION"],
        [{ afterwards: [] }, "UNKNOWN_OPTION"],
        [JSON.parse('{"__proto__":1}') as object, "UNKNOWN_OPTION"],
        [{ delay: -1 }, "BAD_DURATION"],
        [{ delay: "soon" }, "BAD_DURATION"],
        [{ delay: Number.NaN }, "BAD_DURATION"],
        [{ at: new Date(Number.NaN) }, "BAD_INSTANT"],
        [{ at: "tomorrow" }, "BAD_INSTANT"],
        [{ delay: 1, at: new Date() }, "BAD_OPTION"],
        [{ priority: 0.5 }, "BAD_PRIORITY"],
        [{ priority: "1" }, "BAD_PRIORITY"],
        [{ attempts: 0 }, "BAD_OPTION"],
        [{ timeout: 0 }, "BAD_DURATION"],
        [{ key: "" }, "BAD_KEY"],
        [{ key: "a\0" }, "BAD_KEY"],
        [{ lane: "x".repeat(600) }, "BAD_KEY"],
        [{ context: 1 }, "BAD_OPTION"],
        [{ deadline: "never" }, "BAD_DURATION"],
        [{ backoff: () => 1 }, "BAD_OPTION"],
        [{ tx: {} }, "TX_UNSUPPORTED"],
      ];
      for (const [options, code] of wrong)
        expect({ options, ...(await refusal(hf.enqueue(plain, 1, options))) }).toMatchObject({
          options,
          code,
        });
      expect(await refusal(hf.enqueue({ name: "x" } as never, 1))).toMatchObject({ code: "UNKNOWN_JOB" });
      expect(await refusal(hf.enqueueMany([{ job: plain, input: 1, tx: {} } as never]))).toMatchObject({
        code: "UNKNOWN_OPTION",
        details: { index: 0 },
      });
      expect(await refusal(hf.enqueueMany("x" as never))).toMatchObject({ code: "BAD_OPTION" });
      const thrower = defineJob({
        name: "thrower",
        unique: () => {
          throw new Error("no");
        },
      });
      expect(await refusal(hf.enqueue(thrower, 1))).toMatchObject({
        code: "BAD_KEY",
        cause: anError,
      });
      expect(await rows(store, "job")).toBe(0);
    });

    test("an enqueue by name must give the key and lane that the kind computes", async () => {
      const { hf, store } = await fresh(target);
      const unique = defineJob({ name: "unique", unique: "to", run: async (_input: { to: string }) => {} });
      const laned = defineJob({
        name: "laned",
        lane: (input: { tenant: string }) => input.tenant,
        run: async (_input: { tenant: string }) => {},
      });
      // Nobody has registered them yet: nothing is known that could be missed.
      expect((await hf.enqueue("unique", { to: "a" })).status).toBe("enqueued");
      const worker = hf.work([unique, laned], { queues: ["elsewhere"] });
      await worker.ready;
      expect(await refusal(hf.enqueue("unique", { to: "a" }))).toMatchObject({ code: "KEY_REQUIRED" });
      expect(await refusal(hf.enqueue("laned", { tenant: "a" }))).toMatchObject({ code: "LANE_REQUIRED" });
      expect((await hf.enqueue("unique", { to: "a" }, { key: "a" })).status).toBe("enqueued");
      expect((await hf.enqueue(unique, { to: "a" })).status).toBe("duplicate");
      expect((await hf.enqueue("laned", { tenant: "a" }, { lane: "a" })).status).toBe("enqueued");
      const other = await connect(store);
      expect(await refusal(other.enqueue("unique", { to: "a" }))).toMatchObject({ code: "KEY_REQUIRED" });
    });

    test("a job's own backoff and what its definition states are in its row", async () => {
      const clock = new FakeClock();
      const { hf } = await fresh(target, { clock });
      await hf.enqueue(
        defineJob({ name: "defined", retry: { backoff: exponential("10s", { jitter: 0 }) } }),
        1,
      );
      await hf.enqueue("named", 1, { backoff: fixed("7s") });
      await hf.enqueue("default", 1);
      const delays: Record<string, number> = {};
      for (const lease of await hf.lease({ limit: 10 })) {
        await lease.fail(new Error("no"));
        delays[lease.name] = ((await hf.jobs.get(lease.id))?.runAt?.getTime() ?? 0) - clock.now();
      }
      expect(delays).toMatchObject({ defined: 10_000, named: 7_000 });
      expect(delays["default"]).toBeGreaterThanOrEqual(48_000);
    });
  });
});
