import { describe, expect, test } from "vitest";
import { Dead, defineJob, fixed, type Lease, Release, RetryAfter, Throttled } from "../../src/index.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { aDate, containing, fresh, refusal, rows } from "../support/test-clients.ts";

const plain = defineJob({ name: "plain", run: async (_input: unknown) => {} });

/** Every way in which a holder can write. */
const ways: Readonly<Record<string, (lease: Lease) => Promise<unknown>>> = {
  done: (lease) => lease.done(1),
  fail: (lease) => lease.fail(new Error("late")),
  dead: (lease) => lease.dead("late"),
  throttle: (lease) => lease.throttle("1s"),
  release: (lease) => lease.release(),
  renew: (lease) => lease.renew(),
};

onEveryStore((target) => {
  describe("hf.lease", () => {
    test("[B2] leases come in claim order, up to the limit", async () => {
      const clock = new FakeClock();
      const { hf } = await fresh(target, { clock });
      for (const [input, priority] of [
        ["c", 0],
        ["a", 5],
        ["d", 0],
        ["b", 5],
        ["e", -1],
      ] as const) {
        await hf.enqueue(plain, input, { priority });
        await clock.advance(1);
      }
      expect((await hf.lease({ limit: 3 })).map(({ input }) => input)).toEqual(["a", "b", "c"]);
      expect((await hf.lease({ limit: 10 })).map(({ input }) => input)).toEqual(["d", "e"]);
      expect(await hf.lease({ limit: 10 })).toEqual([]);
    });

    test("[B4] the order can be lowest first, and a retry does not overtake a job that is due longer", async () => {
      const clock = new FakeClock();
      const { hf } = await fresh(target, { clock, order: "lowest-first" });
      await hf.enqueue(plain, "high", { priority: 5 });
      await hf.enqueue(plain, "low", { priority: 1 });
      const all = await hf.lease({ limit: 2 });
      expect(all.map(({ input }) => input)).toEqual(["low", "high"]);
      for (const lease of all) await lease.done();
      await hf.enqueue(plain, "first", { backoff: fixed("30s") });
      const [first] = await hf.lease();
      await first?.fail(new Error("again"));
      await hf.enqueue(plain, "second");
      await clock.advance("31s");
      expect((await hf.lease({ limit: 2 })).map(({ input }) => input)).toEqual(["second", "first"]);
    });

    test("leases are filtered by queue and name, and several queues share the limit", async () => {
      const { hf } = await fresh(target);
      for (const queue of ["a", "b", "c"])
        for (const name of ["x", "y"]) await hf.enqueue(name, `${queue}-${name}`, { queue });
      expect((await hf.lease({ queues: ["b"], names: ["y"], limit: 10 })).map(({ input }) => input)).toEqual([
        "b-y",
      ]);
      expect(await hf.lease({ queues: ["a", "c"], limit: 3 })).toHaveLength(3);
      const rest = await hf.lease({ queues: ["a", "c"], limit: 3 });
      expect(rest).toHaveLength(1);
      expect(rest[0]?.attempt).toBe(1);
      expect(await hf.lease({ queues: ["nobody"] })).toEqual([]);
    });

    test("[B7] an input that cannot be decoded is dead, and its neighbours are delivered", async () => {
      const { hf, store } = await fresh(target);
      const results = await hf.enqueueMany([1, 2, 3].map((input) => ({ job: plain, input })));
      await store.query(`update ${store.table("job")} set input = '{not json' where id = ?`, [
        results[1]?.id,
      ]);
      const leases = await hf.lease({ limit: 3 });
      expect(leases.map(({ input }) => input)).toEqual([1, 3]);
      for (const lease of leases) await lease.done();
      expect(await hf.jobs.get(results[1]?.id ?? "")).toMatchObject({
        state: "dead",
        attempt: 1,
        error: containing("is not valid JSON"),
      });
      expect(await hf.jobs.count({ state: "dead" })).toBe(1);
    });

    test("[C1] a holder that is too late changes nothing, whichever way it tries, and is told and counted once", async () => {
      const clock = new FakeClock();
      const warnings: string[] = [];
      const note = (_details: object, message: string): void => void warnings.push(message);
      const logger = { debug: () => {}, info: () => {}, warn: note, error: () => {} };
      const { hf } = await fresh(target, { clock, logger });
      for (const [way, write] of Object.entries(ways)) {
        const { id } = await hf.enqueue(plain, way);
        const [stale] = await hf.lease({ for: "300ms" });
        await clock.advance("400ms");
        const [holder] = await hf.lease({ for: "10m" });
        expect([holder?.id, stale?.id]).toEqual([id, id]);
        expect(holder?.token).toBeGreaterThan(stale?.token ?? Infinity);
        const before = await hf.jobs.get(id);
        const lost = (await hf.stats()).counters.leasesLost;
        warnings.length = 0;
        if (stale === undefined) throw new Error("no lease");
        expect(await refusal(write(stale))).toMatchObject({
          name: "StateError",
          code: "LEASE_LOST",
          details: { job: id },
        });
        expect(await refusal(write(stale))).toMatchObject({ code: "LEASE_LOST" });
        expect(await hf.jobs.get(id)).toEqual(before);
        expect(warnings.filter((message) => message.includes("lease was lost"))).toHaveLength(1);
        expect((await hf.stats()).counters.leasesLost).toBe(lost + 1);
        await holder?.done(way);
        expect(await hf.jobs.get(id)).toMatchObject({ state: "done", output: way, crashes: 1, attempt: 1 });
      }
    });

    test("[C2] renewing extends a living lease and never revives an expired one", async () => {
      const clock = new FakeClock();
      const { hf } = await fresh(target, { clock });
      await hf.enqueue(plain, 1);
      const [lease] = await hf.lease({ for: "10s" });
      for (let n = 0; n < 5; n++) {
        await clock.advance("8s");
        expect((await lease?.renew())?.expiresAt).toEqual(new Date(clock.now() + 10_000));
      }
      expect(await hf.lease()).toEqual([]);
      await clock.advance("11s");
      expect(await refusal(lease?.renew() ?? Promise.resolve())).toMatchObject({ code: "LEASE_LOST" });
      expect(await hf.lease()).toHaveLength(1);
    });

    test("a lease that expires is taken over by the next lease, without a worker", async () => {
      const clock = new FakeClock();
      const { hf } = await fresh(target, { clock });
      const crashed: number[] = [];
      hf.on("job.crashed", ({ crashes }) => crashed.push(crashes));
      const { id } = await hf.enqueue(plain, 1);
      await hf.lease({ for: "300ms" });
      expect(await hf.lease()).toEqual([]);
      await clock.advance("301ms");
      expect((await hf.lease()).map((lease) => ({ id: lease.id, attempt: lease.attempt }))).toEqual([
        { id, attempt: 1 },
      ]);
      expect(crashed).toEqual([1]);
    });

    test("[D1] done is kept with its end, or nothing is kept by option", async () => {
      const { hf, store } = await fresh(target);
      const kept = await hf.enqueue(plain, 1);
      const gone = await hf.enqueue(defineJob({ name: "gone", keep: false }), 1);
      for (const lease of await hf.lease({ limit: 2 })) await lease.done({ n: 1 });
      expect(await hf.jobs.get(kept.id)).toMatchObject({
        state: "done",
        endedAt: aDate,
        output: { n: 1 },
      });
      expect(await hf.jobs.get(gone.id)).toBeNull();
      expect([await rows(store, "ready"), await rows(store, "history")]).toEqual([0, 1]);
    });

    test("[D2] a job fails until its attempts are used up, then it is dead", async () => {
      const clock = new FakeClock();
      const { hf } = await fresh(target, { clock });
      const { id } = await hf.enqueue(plain, 1, { attempts: 3 });
      for (let attempt = 1; attempt <= 3; attempt++) {
        const [lease] = await hf.lease();
        expect(lease).toMatchObject({ attempt, maxAttempts: 3 });
        await lease?.fail(new Error(`number ${attempt}`));
        await clock.advance("2h");
      }
      expect(await hf.lease()).toEqual([]);
      const job = await hf.jobs.get(id);
      expect(job).toMatchObject({ state: "dead", attempt: 3, error: "number 3" });
      expect(job?.errors.map(({ attempt, message }) => [attempt, message])).toEqual([
        [1, "number 1"],
        [2, "number 2"],
        [3, "number 3"],
      ]);
    });

    test("[D3][D4][D5] a lease can be dead at once, throttled or released", async () => {
      const clock = new FakeClock();
      const { hf } = await fresh(target, { clock });
      const dead = await hf.enqueue(plain, 1);
      await (await hf.lease())[0]?.dead("gone for good");
      expect(await hf.jobs.get(dead.id)).toMatchObject({ state: "dead", attempt: 1, error: "gone for good" });
      const throttled = await hf.enqueue(plain, 1);
      await (await hf.lease())[0]?.throttle("5s");
      expect(await hf.jobs.get(throttled.id)).toMatchObject({
        state: "scheduled",
        attempt: 0,
        runAt: new Date(clock.now() + 5_000),
      });
      const released = await hf.enqueue(plain, 1);
      await (await hf.lease())[0]?.release({ delay: "1m" });
      expect(await hf.jobs.get(released.id)).toMatchObject({
        state: "scheduled",
        attempt: 0,
        runAt: new Date(clock.now() + 60_000),
      });
      const again = await hf.enqueue(plain, 1);
      await (await hf.lease())[0]?.release();
      expect(await hf.jobs.get(again.id)).toMatchObject({ state: "ready", attempt: 0 });
    });

    test("fail takes decisions as a handler's throw does", async () => {
      const clock = new FakeClock();
      const { hf } = await fresh(target, { clock });
      const after = async (error: unknown) => {
        const { id } = await hf.enqueue(plain, 1);
        await (await hf.lease())[0]?.fail(error);
        return hf.jobs.get(id);
      };
      expect(await after(new Dead("no"))).toMatchObject({ state: "dead", error: "no" });
      expect(await after(new RetryAfter("15m", "later"))).toMatchObject({
        attempt: 1,
        runAt: new Date(clock.now() + 900_000),
        error: "later",
      });
      expect(await after(new Throttled("10s"))).toMatchObject({
        attempt: 0,
        runAt: new Date(clock.now() + 10_000),
      });
      expect(await after(new Release("not me", { delay: "1s" }))).toMatchObject({
        attempt: 0,
        runAt: new Date(clock.now() + 1_000),
      });
      expect(await after("a string")).toMatchObject({
        attempt: 1,
        state: "scheduled",
        error: containing("a string"),
      });
    });

    test("an output that JSON cannot hold is refused, and the lease is still held", async () => {
      const { hf } = await fresh(target);
      const { id } = await hf.enqueue(plain, 1);
      const [lease] = await hf.lease();
      expect(await refusal(lease?.done(1n) ?? Promise.resolve())).toMatchObject({ code: "OUTPUT_NOT_JSON" });
      await lease?.done("fine");
      expect(await hf.jobs.get(id)).toMatchObject({ state: "done", output: "fine" });
      expect(await refusal(lease?.done("twice") ?? Promise.resolve())).toMatchObject({ code: "LEASE_LOST" });
    });

    test("the session ends with its last lease, and an empty look opens none", async () => {
      const { hf } = await fresh(target);
      expect(await hf.lease()).toEqual([]);
      expect(await hf.workers.list()).toEqual([]);
      await hf.enqueueMany([1, 2].map((input) => ({ job: plain, input })));
      const [one, two] = await hf.lease({ limit: 2 });
      expect(await hf.workers.list()).toMatchObject([{ kind: "lease" }]);
      await one?.done();
      expect(await hf.workers.list()).toHaveLength(1);
      await two?.done();
      expect(await hf.workers.list()).toEqual([]);
    });

    test("many settles made side by side are all committed when they resolve", async () => {
      const { hf } = await fresh(target);
      await hf.enqueueMany(Array.from({ length: 200 }, (_, n) => ({ job: plain, input: n })));
      const leases = await hf.lease({ limit: 200 });
      const { commits } = (await hf.stats()).counters;
      await Promise.all(leases.map((lease) => lease.done(lease.input)));
      const after = await hf.stats();
      expect(after.totals).toMatchObject({ running: 0, done: 200 });
      expect(after.counters.commits - commits).toBeLessThan(10);
    });

    test("a job that was not started by its deadline is cancelled with that reason", async () => {
      const clock = new FakeClock();
      const { hf } = await fresh(target, { clock });
      const late = await hf.enqueue(plain, "late", { deadline: "1m" });
      const dated = await hf.enqueue(plain, "dated", { deadline: new Date(clock.now() + 60_000) });
      const open = await hf.enqueue(plain, "open", { deadline: "1h" });
      await clock.advance("2m");
      expect((await hf.lease({ limit: 10 })).map(({ id }) => id)).toEqual([open.id]);
      for (const { id } of [late, dated]) {
        expect(await hf.jobs.get(id)).toMatchObject({
          state: "cancelled",
          error: containing("deadline passed"),
          attempt: 0,
        });
      }
    });

    test("wrong options are refused", async () => {
      const { hf } = await fresh(target);
      const wrong: [object, string][] = [
        [{ queue: "a" }, "UNKNOWN_OPTION"],
        [{ queues: [] }, "BAD_OPTION"],
        [{ queues: "mail" }, "BAD_OPTION"],
        [{ queues: ["a,b"] }, "BAD_NAME"],
        [{ names: [""] }, "BAD_NAME"],
        [{ limit: 0 }, "BAD_OPTION"],
        [{ limit: 1_001 }, "BAD_OPTION"],
        [{ for: 0 }, "BAD_LEASE"],
        [{ for: "soon" }, "BAD_DURATION"],
      ];
      for (const [options, code] of wrong) expect(await refusal(hf.lease(options))).toMatchObject({ code });
    });
  });
});
