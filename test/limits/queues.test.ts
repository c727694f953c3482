// Queues, holds, state, workers, stats, prune.
import { describe, expect, test } from "vitest";
import { defineJob, exponential, presets } from "../../src/index.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { aDate, connect, fresh, refusal } from "../support/test-clients.ts";

const plain = defineJob({ name: "plain", run: async (_input: unknown) => {} });

onEveryStore((target) => {
  describe("hf.queues", () => {
    test("a paused queue gives nothing until it is resumed", async () => {
      const { hf } = await fresh(target);
      await hf.enqueue(plain, 1, { queue: "mail" });
      await hf.queues.pause("mail");
      expect(await hf.lease()).toEqual([]);
      expect((await hf.queues.list()).find(({ name }) => name === "mail")).toMatchObject({
        paused: true,
        counts: { ready: 1 },
      });
      await hf.queues.resume("mail");
      expect(await hf.lease()).toHaveLength(1);
    });

    test("settings are read back, merge, and null is back to the default", async () => {
      const { hf, store } = await fresh(target);
      await hf.queues.set("mail", {
        concurrency: 10,
        rate: { limit: 50, per: "1m" },
        retention: { done: "1d" },
        weight: 3,
        slots: 0,
        cooldown: { base: "5s", max: "1m" },
        backoff: exponential("2s", { jitter: 0 }),
      });
      const other = await connect(store);
      const settings = async () => (await other.queues.list()).find(({ name }) => name === "mail")?.settings;
      expect(await settings()).toEqual({
        concurrency: 10,
        rate: { limit: 50, perMs: 60_000 },
        retention: { doneMs: 86_400_000, deadMs: 30 * 86_400_000 },
        weight: 3,
        slots: 0,
        cooldown: { baseMs: 5_000, maxMs: 60_000 },
        total: null,
        breaker: null,
        backoff: exponential("2s", { jitter: 0 }),
      });
      await hf.queues.set("mail", { concurrency: null, slots: 7, ...presets.forge.queue });
      expect(await settings()).toMatchObject({
        concurrency: null,
        slots: 7,
        weight: 3,
        retention: { doneMs: 7 * 86_400_000 },
      });
    });

    test("[D11] a queue's backoff has base 60 s and max 1,800 s, clamped to 1 s and 1 day", async () => {
      const clock = new FakeClock();
      const { hf } = await fresh(target, { clock, random: () => 0.5 });
      const backoff = async () =>
        (await hf.queues.list()).find(({ name }) => name === "mail")?.settings.backoff;
      await hf.queues.set("mail", { backoff: {} });
      expect(await backoff()).toMatchObject({ baseMs: 60_000, maxMs: 1_800_000 });
      await hf.queues.set("mail", { backoff: { base: 0, max: 1e12 } });
      expect(await backoff()).toMatchObject({ baseMs: 1_000, maxMs: 86_400_000 });
      // It applies where neither the job nor its definition says otherwise.
      const { id } = await hf.enqueue("named", 1, { queue: "mail" });
      const [lease] = await hf.lease();
      await lease?.fail(new Error("no"));
      expect((await hf.jobs.get(id))?.runAt?.getTime()).toBe(clock.now() + 1_000);
    });

    test("wrong settings are refused", async () => {
      const { hf } = await fresh(target);
      const wrong: [object, string][] = [
        [{ concurency: 1 }, "UNKNOWN_OPTION"],
        [{ concurrency: 0 }, "BAD_OPTION"],
        [{ slots: 1_025 }, "BAD_OPTION"],
        [{ rate: { limit: 1 } }, "BAD_DURATION"],
        [{ rate: { limit: 0, per: "1s" } }, "BAD_OPTION"],
        [{ rate: { limit: 1, per: 0 } }, "BAD_DURATION"],
        [{ retention: { done: "x" } }, "BAD_DURATION"],
        [{ backoff: () => 1 }, "BAD_OPTION"],
        [{ weight: 0.5 }, "BAD_OPTION"],
      ];
      for (const [options, code] of wrong)
        expect(await refusal(hf.queues.set("mail", options))).toMatchObject({ code });
      for (const name of ["a,b", ""]) {
        expect(await refusal(hf.queues.set(name, {}))).toMatchObject({ code: "BAD_NAME" });
        expect(await refusal(hf.queues.pause(name))).toMatchObject({ code: "BAD_NAME" });
      }
      expect(await hf.queues.list()).toEqual([]);
    });
  });

  describe("hf.holds", () => {
    test("a hold stops its queues, or all, and jobs keep their attempts", async () => {
      const { hf } = await fresh(target);
      const { id } = await hf.enqueue(plain, 1, { queue: "crawl" });
      await hf.holds.set("expired", { queues: ["crawl"], reason: "log in" });
      await hf.holds.set("everything");
      expect(await hf.lease()).toEqual([]);
      expect(await hf.holds.clear("everything")).toBe(true);
      expect(await hf.lease()).toEqual([]);
      expect(await hf.holds.list()).toMatchObject([
        { name: "expired", queues: ["crawl"], reason: "log in", setAt: aDate },
      ]);
      expect(await hf.holds.clear("expired")).toBe(true);
      expect(await hf.holds.clear("expired")).toBe(false);
      expect((await hf.lease())[0]).toMatchObject({ id, attempt: 1 });
      expect(await refusal(hf.holds.set("x", { queues: [] }))).toMatchObject({ code: "BAD_OPTION" });
      expect(await refusal(hf.holds.set("a b"))).toMatchObject({ code: "BAD_NAME" });
    });
  });

  describe("hf.state", () => {
    test("values come back as they were set, from any client, until deleted", async () => {
      const { hf, store } = await fresh(target);
      expect(await hf.state.get("k")).toBeNull();
      await hf.state.set("k", { page: 7, nul: "\0" });
      const other = await connect(store);
      expect(await other.state.get("k")).toEqual({ page: 7, nul: "\0" });
      await hf.state.set("k", [1]);
      expect(await other.state.get("k")).toEqual([1]);
      expect(await hf.state.delete("k")).toBe(true);
      expect(await hf.state.delete("k")).toBe(false);
      expect(await refusal(hf.state.set("k", 1n))).toMatchObject({ code: "INPUT_NOT_JSON" });
      expect(await refusal(hf.state.set("", 1))).toMatchObject({ code: "BAD_KEY" });
      expect(await refusal(hf.state.get("a\0"))).toMatchObject({ code: "BAD_KEY" });
    });
  });

  describe("hf.workers", () => {
    test("lists what runs, stops one from afar, and says when it is gone", async () => {
      const { hf, store } = await fresh(target);
      const worker = hf.work([plain], { queues: { mail: 3 }, name: "w1", heartbeat: "100ms", lease: "10s" });
      await worker.ready;
      const other = await connect(store);
      expect(await other.workers.list()).toMatchObject([
        {
          id: worker.id,
          kind: "worker",
          name: "w1",
          queues: { mail: 3 },
          names: ["plain"],
          stopping: false,
          jobs: [],
        },
      ]);
      expect(await other.workers.drained()).toBe(false);
      expect(await other.workers.stop("nobody")).toBe(0);
      expect(await other.workers.stop("w1")).toBe(1);
      await worker.stopped;
      expect(await other.workers.drained("w1")).toBe(true);
      expect(await other.workers.list()).toEqual([]);
      expect(await refusal(hf.workers.stop(""))).toMatchObject({ code: "BAD_OPTION" });
    });
  });

  describe("hf.stats and hf.prune", () => {
    test("[J5] ready and scheduled are counted apart, and the lag is the age of the oldest ready job", async () => {
      const clock = new FakeClock();
      const { hf } = await fresh(target, { clock });
      expect(await hf.stats()).toMatchObject({
        totals: { ready: 0, scheduled: 0, done: 0 },
        lagMs: 0,
        queues: [],
        workers: 0,
      });
      await hf.enqueue(plain, 1, { delay: "1h" });
      await clock.advance("1m");
      expect(await hf.stats()).toMatchObject({ totals: { ready: 0, scheduled: 1 }, lagMs: 0 });
      await hf.enqueue(plain, 1, { queue: "mail" });
      await clock.advance("30s");
      await hf.enqueue(plain, 1);
      const stats = await hf.stats();
      expect(stats).toMatchObject({ totals: { ready: 2, scheduled: 1, running: 0 }, lagMs: 30_000 });
      expect(stats.queues.find(({ name }) => name === "default")).toMatchObject({
        counts: { ready: 1, scheduled: 1 },
        lagMs: 0,
      });
      const leases = await hf.lease({ limit: 2 });
      await leases[0]?.done();
      await leases[1]?.dead("no");
      expect((await hf.stats()).totals).toMatchObject({ ready: 0, done: 1, dead: 1, cancelled: 0 });
    });

    test("[I1] prune deletes what has outlived its retention and says how many; 0 keeps for ever", async () => {
      const clock = new FakeClock();
      const { hf } = await fresh(target, { clock });
      await hf.queues.set("kept", { retention: { done: 0, dead: 0 } });
      const end = async (queue: string, how: "done" | "dead"): Promise<string> => {
        const { id } = await hf.enqueue(plain, 1, { queue });
        const [lease] = await hf.lease();
        await (how === "done" ? lease?.done() : lease?.dead("no"));
        return id;
      };
      const old = [await end("default", "done"), await end("default", "dead")];
      const kept = [await end("kept", "done"), await end("kept", "dead")];
      await clock.advance("8d");
      const young = await end("default", "done");
      expect(await hf.prune()).toMatchObject({ done: 1, dead: 0 });
      expect(await hf.jobs.get(old[0] ?? "")).toBeNull();
      expect(await hf.jobs.get(old[1] ?? "")).toMatchObject({ state: "dead" });
      await clock.advance("30d");
      await hf.prune();
      expect(await hf.jobs.get(old[1] ?? "")).toBeNull();
      expect(await hf.jobs.get(young)).toBeNull();
      for (const id of kept) expect(await hf.jobs.get(id)).not.toBeNull();
    });
  });
});
