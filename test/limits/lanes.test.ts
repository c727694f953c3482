// N5, N6: lanes and limits of queues, on a fake clock; with real processes and kills in test/fault/limits.test.ts.
import { expect, test } from "vitest";
import { defineJob } from "../../src/jobs/define-job.ts";
import { Throttled } from "../../src/index.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { laneCounts, queueCounts } from "../support/lane-counts.ts";
import { onEveryStore } from "../support/stores.ts";
import { heldJob, newWorld, quickJob, type Run, sessionInfo } from "../support/world.ts";

type Lanes = { concurrency?: number; rate?: { limit: number; per: string }; weight?: number };
const laneOf = (input: { n: number }): string => `tenant-${Math.floor(input.n / 1_000)}`;
const inLane = (tenant: number, n: number) => ({ n: tenant * 1_000 + n });

/** What runs now: started and not ended. */
function running(runs: readonly Run<{ n: number }>[], ended: ReadonlySet<number>): number[] {
  return runs.filter(({ input }) => !ended.has(input.n)).map(({ input }) => input.n);
}

onEveryStore((target) => {
  test("[N5] of a lane no more run at once than its concurrency, over all workers, and other lanes go on", async () => {
    const world = await newWorld(target);
    const [a, b] = [await world.client(), await world.client()];
    const { job, runs } = heldJob(world, "held", { lane: laneOf, lanes: { concurrency: 2 } });
    await a.work([job], { queues: { default: 10 } });
    await b.work([job], { queues: { default: 10 } });
    for (let n = 0; n < 6; n++) await a.hf.enqueue(job, inLane(0, n));
    for (let n = 0; n < 3; n++) await b.hf.enqueue(job, inLane(1, n));
    await world.until("two of each lane to run", () => runs.length === 4);
    await world.advance("10s");
    expect(runs.map(({ input }) => laneOf(input)).sort()).toEqual([
      "tenant-0",
      "tenant-0",
      "tenant-1",
      "tenant-1",
    ]);
    const ended = new Set<number>();
    for (let left = 9; left > 0; left--) {
      const next = runs.find(({ input }) => !ended.has(input.n))!;
      ended.add(next.input.n);
      next.finish();
      await world.until(
        "the next to run",
        () => runs.length >= Math.min(9, 13 - left) || running(runs, ended).length >= Math.min(left - 1, 2),
        "5s",
      );
      const per = new Map<string, number>();
      for (const n of running(runs, ended)) per.set(laneOf({ n }), (per.get(laneOf({ n })) ?? 0) + 1);
      for (const count of per.values()) expect(count).toBeLessThanOrEqual(2);
    }
    await world.until("all to be done", async () => (await a.hf.jobs.count({ state: "done" })) === 9);
    expect(await laneCounts(world.fresh)).toEqual([0, 0]);
  });

  test("[N5] a queue with limits goes on while another is paused, drained or cools down", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    const { job, runs } = quickJob(world);
    await hf.queues.set("default", { concurrency: 2, rate: { limit: 100, per: "1m" } });
    await hf.queues.pause("nobody-uses-it");
    expect(await hf.queues.drain("empty")).toBe("paused");
    await hf.queues.set("busy", { cooldown: { base: "1h", max: "1h" } });
    await hf.enqueue("other", null, { queue: "busy" });
    const [lease] = await hf.lease({ queues: ["busy"] });
    await lease!.fail(new Throttled("1s"));
    expect((await hf.queues.list()).find(({ name }) => name === "busy")?.coolUntil).not.toBeNull();
    await work([job], { queues: { default: 10 } });
    for (let n = 0; n < 3; n++) await hf.enqueue(job, { n });
    await world.until("all to have run", () => runs.length === 3, "5s");
    await hf.queues.pause("default");
    await hf.enqueue(job, { n: 3 });
    await world.advance("5s");
    expect(runs).toHaveLength(3);
  });

  test("[N5] of a queue no more run at once than its concurrency, and a change is live", async () => {
    const world = await newWorld(target);
    const [a, b] = [await world.client(), await world.client()];
    const { job, runs } = heldJob(world);
    await a.hf.queues.set("default", { concurrency: 3 });
    await a.work([job], { queues: { default: 10 } });
    await b.work([job], { queues: { default: 10 } });
    for (let n = 0; n < 10; n++) await a.hf.enqueue(job, { n });
    await world.advance("5s");
    expect(runs).toHaveLength(3);
    runs[0]!.finish();
    await world.until("the fourth", () => runs.length === 4);
    await a.hf.queues.set("default", { concurrency: 5 });
    await world.advance("3s");
    expect(runs).toHaveLength(6);
    await a.hf.queues.set("default", { concurrency: 1 });
    runs[1]!.finish();
    await world.advance("3s");
    expect(runs).toHaveLength(6);
    await a.hf.queues.set("default", { concurrency: null });
    await world.until("the rest", () => runs.length === 10);
    for (const run of runs) run.finish();
    await world.until("all to be done", async () => (await a.hf.jobs.count({ state: "done" })) === 10);
    expect(await queueCounts(world.fresh)).toEqual([0]);
  });

  test("[N5] jobs that run when a limit is set count, without having been counted when they started", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    const { job, runs } = heldJob(world);
    await work([job], { queues: { default: 10 } });
    for (let n = 0; n < 3; n++) await hf.enqueue(job, { n });
    await world.until("three to run", () => runs.length === 3);
    await hf.queues.set("default", { concurrency: 4 });
    for (let n = 3; n < 8; n++) await hf.enqueue(job, { n });
    await world.advance("5s");
    expect(runs).toHaveLength(4);
    runs[0]!.finish();
    runs[1]!.finish();
    await world.until("two more", () => runs.length === 6);
    await world.advance("20s");
    expect(runs).toHaveLength(6);
    for (const run of runs) run.finish();
    await world.until("the last ones", () => runs.length === 8);
    expect(await world.rows("uncounted_job")).toEqual([]);
  });

  test("[N5] lane, queue and slots combine: the least of them holds", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    const { job, runs } = heldJob(world, "held", { lane: laneOf, lanes: { concurrency: 2 } });
    await hf.queues.set("default", { concurrency: 5 });
    await work([job], { queues: { default: 4 } });
    for (let tenant = 0; tenant < 4; tenant++)
      for (let n = 0; n < 3; n++) await hf.enqueue(job, inLane(tenant, n));
    await world.advance("5s");
    expect(runs).toHaveLength(4);
    const other = await world.client();
    await other.work([job], { queues: { default: 4 } });
    await world.advance("5s");
    expect(runs).toHaveLength(5);
    expect(await queueCounts(world.fresh)).toEqual([5]);
  });

  test("[N5] a worker that dies gives its places back when its lease has passed, and not before", async () => {
    const world = await newWorld(target);
    const [a, b] = [await world.client(), await world.client()];
    const { job, runs } = heldJob(world, "held", { lane: laneOf, lanes: { concurrency: 1 } });
    await a.hf.queues.set("default", { concurrency: 1 });
    await a.work([job], { queues: { default: 2 } });
    await a.hf.enqueue(job, inLane(0, 0));
    await world.until("it to run", () => runs.length === 1);
    a.tap.kill();
    await b.work([job], { queues: { default: 2 } });
    await b.hf.enqueue(job, inLane(0, 1));
    await world.advance("25s");
    expect(runs).toHaveLength(1);
    await world.until("one to run", () => runs.length === 2, "15s");
    await world.advance("5s");
    expect(runs).toHaveLength(2);
    runs[1]!.finish();
    await world.until("the other", () => runs.length === 3);
    runs[2]!.finish();
    await world.until("all to be done", async () => (await b.hf.jobs.count({ state: "done" })) === 2);
    expect(await laneCounts(world.fresh)).toEqual([0]);
    expect(await queueCounts(world.fresh)).toEqual([0]);
  });

  test("[N5] a place that one name gives back is another name's at once, though each has a worker of its own", async () => {
    const world = await newWorld(target);
    const [a, b] = [await world.client(), await world.client()];
    const lanes: Lanes = { concurrency: 1 };
    const first = heldJob(world, "first", { lane: laneOf, lanes });
    const second = heldJob(world, "second", { lane: laneOf, lanes });
    await a.work([first.job], { queues: { default: 5 } });
    await b.work([second.job], { queues: { default: 5 } });
    await a.hf.enqueue(first.job, inLane(0, 0));
    await world.until("the first to run", () => first.runs.length === 1);
    await b.hf.enqueue(second.job, inLane(0, 1));
    await world.advance("2s");
    expect(second.runs).toHaveLength(0);
    // Its worker hears of the end, writes it down and claims no more: nobody of its own kind takes in what it gave back.
    a.tap.around = (verb, call) => (verb === "claims.claim" ? Promise.resolve([]) : call());
    first.runs[0]!.finish();
    await world.until("the other kind to run", () => second.runs.length === 1, "10s");
    second.runs[0]!.finish();
    await world.until("it to end", async () => (await b.hf.jobs.count({ state: "done" })) === 2);
    expect(await laneCounts(world.fresh)).toEqual([0]);
  });

  test("[N5] a claim takes half of a large limit at most, so that work goes on while the next is fetched", async () => {
    const world = await newWorld(target);
    const { hf, tap } = await world.client();
    await hf.queues.set("default", { concurrency: 300 });
    await hf.enqueueMany(Array.from({ length: 400 }, (_, n) => ({ job: "any", input: n })));
    const session = await tap.raw.sessions.open(sessionInfo());
    const ask = { queues: ["default"], names: "all", limit: 400, order: "highest-first" } as const;
    const claim = async () => {
      const jobs = await tap.raw.claims.claim(session, ask, { levels: new Map(), rescannedAt: -Infinity });
      return jobs.length;
    };
    expect([await claim(), await claim(), await claim()]).toEqual([150, 150, 0]);
  });

  test("[N5] a rate holds in every sliding window, for a lane and for a queue", async () => {
    for (const of of ["lane", "queue"] as const) {
      const world = await newWorld(target);
      const { hf, work } = await world.client();
      const rate = { limit: 3, per: "10s" } as const;
      const lanes: Lanes = of === "lane" ? { rate } : {};
      const { job, runs } = quickJob(world, "quick", { lane: laneOf, lanes });
      if (of === "queue") await hf.queues.set("default", { rate });
      await work([job], { queues: { default: 10 } });
      await hf.enqueue(job, inLane(0, 0));
      await world.advance("4s");
      for (let n = 1; n < 8; n++) await hf.enqueue(job, inLane(0, n));
      await world.until("all to have run", () => runs.length === 8, "60s");
      const starts = runs.map(({ at }) => at - runs[0]!.at);
      for (const start of starts)
        expect(starts.filter((at) => at >= start && at < start + 10_000).length).toBeLessThanOrEqual(3);
      // And no later than it must be: 1 at 0 s, 2 at 4 s, 1 at 10 s, 2 at 14 s, 1 at 20 s, 1 at 24 s.
      expect(starts.map((at) => Math.round(at / 1_000))).toEqual([0, 4, 4, 10, 14, 14, 20, 24]);
    }
  });

  test("[N6] a tenant with few jobs does not wait behind one with many", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    const { job, runs } = quickJob(world, "quick", { lane: laneOf });
    const many = Array.from({ length: 900 }, (_, n) => ({ job, input: inLane(0, n) }));
    await hf.enqueueMany(many);
    await hf.enqueueMany(Array.from({ length: 10 }, (_, n) => ({ job, input: inLane(1, n) })));
    await work([job], { queues: { default: 4 } });
    await world.until("all to have run", () => runs.length === 910);
    const last = runs.findLastIndex(({ n }) => n >= 1_000);
    expect(last).toBeLessThan(40);
  });

  test("[N6] lanes get places by their weights", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    const { job, runs } = heldJob(world, "held", { lane: laneOf });
    await hf.lanes.set("default", "tenant-0", { weight: 3 });
    for (let n = 0; n < 40; n++)
      await hf.enqueueMany([
        { job, input: inLane(0, n) },
        { job, input: inLane(1, n) },
      ]);
    await work([job], { queues: { default: 8 } });
    for (let round = 1; round <= 4; round++) {
      await world.until("all slots to be taken", () => runs.length === round * 8);
      for (const run of runs) run.finish();
    }
    const first = runs.slice(0, 32).map(({ input }) => laneOf(input));
    expect(first.filter((lane) => lane === "tenant-0").length).toBe(24);
  });

  test("[N6] names with lanes share a queue, also where there is room for one job at a time", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    const jobs = ["some", "more", "most"].map((name) => quickJob(world, name, { lane: laneOf }));
    for (let n = 0; n < 15; n++) for (const { job } of jobs) await hf.enqueue(job, inLane(n % 3, n));
    await hf.queues.set("default", { concurrency: 1 });
    const behind = (): number[] => jobs.map(({ runs }) => 15 - runs.length);
    await work(
      jobs.map(({ job }) => job),
      { queues: { default: 1 } },
    );
    await world.until("half of them to have run", () => jobs.flatMap(({ runs }) => runs).length >= 21);
    for (const left of behind()) expect(left).toBeLessThan(13);
    await world.until("all to have run", () => jobs.flatMap(({ runs }) => runs).length === 45);
    const leased = jobs.map(() => 0);
    for (let n = 0; n < 12; n++)
      for (const { job } of jobs) await hf.enqueue(job, inLane(n % 3, n), { queue: "leased" });
    for (let n = 0; n < 12; n++) {
      const [lease] = await hf.lease({ queues: ["leased"], limit: 1 });
      leased[jobs.findIndex(({ job }) => job.name === lease!.name)]! += 1;
    }
    for (const count of leased) expect(count).toBeGreaterThan(1);
  });

  test("[N6] jobs without a lane and jobs with one share a queue", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    const { job, runs } = heldJob(world, "held", { lane: ({ n }) => (n < 100 ? null : "x") });
    for (let n = 0; n < 20; n++)
      await hf.enqueueMany([
        { job, input: { n } },
        { job, input: { n: n + 100 } },
      ]);
    await work([job], { queues: { default: 2 } });
    for (let round = 1; round <= 8; round++) {
      await world.until("all slots to be taken", () => runs.length === round * 2);
      for (const run of runs) run.finish();
    }
    const laned = runs.slice(0, 16).filter(({ input }) => input.n >= 100).length;
    expect(laned).toBeGreaterThanOrEqual(6);
    expect(laned).toBeLessThanOrEqual(10);
  });

  test("[N6] a job without a lane that comes while lanes keep a worker busy does not wait for them", async () => {
    const world = await newWorld(target);
    const [{ hf, work }, other] = [await world.client(), await world.client()];
    const { job, runs } = heldJob(world, "held", { lane: ({ n }) => (n < 100 ? null : "x") });
    for (let n = 100; n < 200; n++) await hf.enqueue(job, { n });
    await work([job], { queues: { default: 2 } });
    let finished = 0;
    const next = async (): Promise<void> => {
      await world.until("both slots to be taken", () => runs.length === finished + 2);
      await world.advance("100ms");
      runs[finished++]!.finish();
    };
    for (let round = 0; round < 10; round++) await next();
    // One comes at each distance from the last look for jobs without a lane, which comes once a second.
    for (let n = 0; n < 8; n++) {
      await (n % 2 === 0 ? hf : other.hf).enqueue(job, { n });
      for (let round = 0; round < 7; round++) await next();
      expect(runs.map(({ input }) => input.n)).toContain(n);
    }
  });

  test("[N5] a paused lane stands still and goes on when it is resumed, from any process", async () => {
    const world = await newWorld(target);
    const [a, b] = [await world.client(), await world.client()];
    const { job, runs } = quickJob(world, "quick", { lane: laneOf });
    await a.work([job], { queues: { default: 4 } });
    await b.hf.lanes.pause("default", "tenant-0");
    await b.hf.enqueue(job, inLane(0, 1));
    await b.hf.enqueue(job, inLane(1, 1));
    await world.advance("10s");
    expect(runs.map(({ n }) => n)).toEqual([1_001]);
    expect((await a.hf.lanes.list({ queue: "default" })).lanes).toMatchObject([
      { key: "tenant-0", paused: true, waiting: 1, running: 0 },
      { key: "tenant-1", paused: false, waiting: 0, running: 0 },
    ]);
    await b.hf.lanes.resume("default", "tenant-0");
    await world.until("it to run", () => runs.length === 2, "6s");
  });

  test("[N5] priority, delays, retries, run-now and retry from the dead work within a lane", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    const { job, runs } = heldJob(world, "held", {
      lane: laneOf,
      lanes: { concurrency: 1 },
      retry: { attempts: 1 },
    });
    await hf.enqueue(job, inLane(0, 1));
    await hf.enqueue(job, inLane(0, 2), { priority: 5 });
    const late = await hf.enqueue(job, inLane(0, 3), { delay: "1h" });
    const dead = await hf.enqueue(job, inLane(0, 4), { delay: "30s" });
    await work([job], { queues: { default: 4 } });
    const next = async (n: number) => {
      await world.until(`run ${n}`, () => runs.length === n);
      return runs[n - 1]!;
    };
    const first = await next(1);
    expect(first.input.n).toBe(2);
    first.finish();
    (await next(2)).finish();
    await world.advance("31s");
    const failing = await next(3);
    expect(failing.input.n).toBe(4);
    failing.fail(new Error("no"));
    await world.until("it to be dead", async () => (await hf.jobs.get(dead.id))?.state === "dead");
    await hf.jobs.runNow(late.id);
    const hurried = await next(4);
    expect(hurried.input.n).toBe(3);
    await hf.jobs.retry(dead.id);
    await world.advance("2s");
    expect(runs).toHaveLength(4);
    hurried.finish();
    (await next(5)).finish();
    await world.until("all to be done", async () => (await hf.jobs.count({ state: "done" })) === 4);
    expect(await laneCounts(world.fresh)).toEqual([0]);
  });

  test("[N5] hf.lease keeps to the limits too", async () => {
    const world = await newWorld(target);
    const { hf } = await world.client();
    const { job } = heldJob(world, "held", { lane: laneOf, lanes: { concurrency: 2 } });
    for (let n = 0; n < 5; n++) await hf.enqueue(job, inLane(0, n));
    for (let n = 0; n < 5; n++) await hf.enqueue(job, { n }, { queue: "limited", lane: `own-${n}` });
    await hf.queues.set("limited", { concurrency: 3 });
    const leases = await hf.lease({ limit: 100, for: "60s" });
    expect(leases.map(({ queue }) => queue).sort()).toEqual([
      "default",
      "default",
      "limited",
      "limited",
      "limited",
    ]);
    expect(await hf.lease({ limit: 100 })).toEqual([]);
    await leases.find(({ queue }) => queue === "default")!.done();
    expect(await hf.lease({ limit: 100 })).toHaveLength(1);
  });

  test("[N6] the first job of a lane, if it was delayed, is claimed however late a claim comes after its due time", async () => {
    const world = await newWorld(target);
    const { hf } = await world.client();
    const { job } = quickJob(world, "quick", { lane: ({ n }: { n: number }) => `lane-${n}` });
    const { id } = await hf.enqueue(job, { n: 1 }, { delay: "1s" });
    // It puts the lane to sleep until the job is due.
    expect(await hf.lease({ names: ["quick"] })).toEqual([]);
    await world.advance("1500ms");
    expect((await hf.lease({ names: ["quick"] })).map((lease) => lease.id)).toEqual([id]);
  });

  test("[N6] a claim finds the only due job behind lanes that have run empty, however many they are", async () => {
    const world = await newWorld(target);
    const { hf } = await world.client();
    const { job } = quickJob(world, "quick", { lane: ({ n }: { n: number }) => `lane-${n}` });
    for (let n = 0; n < 200; n++) await hf.enqueue(job, { n });
    const leases = [
      ...(await hf.lease({ names: ["quick"], limit: 100 })),
      ...(await hf.lease({ names: ["quick"], limit: 100 })),
    ];
    expect(leases).toHaveLength(200);
    for (const lease of leases) await lease.done();
    const { id } = await hf.enqueue(job, { n: 999 });
    expect((await hf.lease({ names: ["quick"], limit: 1 })).map((lease) => lease.id)).toEqual([id]);
  });

  test("[N5] a definition's limits are those of its lanes until an operator sets others", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    const { job } = quickJob(world, "quick", { lane: laneOf, lanes: { concurrency: 2 } });
    await hf.enqueue(job, inLane(0, 1));
    await hf.lanes.set("default", "tenant-1", { concurrency: 7 });
    const { job: changed } = quickJob(world, "quick", { lane: laneOf, lanes: { concurrency: 4, weight: 2 } });
    await work([changed], { queues: ["default"] });
    expect((await hf.lanes.list()).lanes).toMatchObject([
      { key: "tenant-0", concurrency: 4, weight: 2, tuned: false },
      { key: "tenant-1", concurrency: 7, weight: 1, tuned: true },
    ]);
    await hf.enqueue("quick", inLane(2, 1), { lane: "tenant-2" });
    expect((await hf.lanes.list({ key: "tenant-2" })).lanes).toMatchObject([{ concurrency: 4, weight: 2 }]);
  });

  test("[N5] limits that cannot be are refused by name, and nothing is written", async () => {
    const world = await newWorld(target);
    const { hf } = await world.client();
    const code = (wanted: string) => expect.objectContaining({ code: wanted }) as unknown;
    for (const bad of [0, -1, 1.5, Infinity, 1e9, "3"]) {
      const wrong = bad as number;
      await expect(hf.queues.set("q", { concurrency: wrong })).rejects.toEqual(code("BAD_OPTION"));
      await expect(hf.queues.set("q", { rate: { limit: wrong, per: "1s" } })).rejects.toEqual(
        code("BAD_OPTION"),
      );
      await expect(hf.lanes.set("q", "k", { concurrency: wrong })).rejects.toEqual(code("BAD_OPTION"));
      await expect(hf.lanes.set("q", "k", { weight: wrong })).rejects.toEqual(code("BAD_OPTION"));
      await expect(hf.queues.set("q", { breaker: { after: wrong } })).rejects.toEqual(code("BAD_OPTION"));
    }
    for (const bad of [-1, 1.5, 1e9])
      await expect(hf.queues.set("q", { total: bad })).rejects.toEqual(code("BAD_OPTION"));
    await expect(hf.queues.set("q", { rate: { limit: 1, per: 0 } })).rejects.toEqual(code("BAD_DURATION"));
    await expect(hf.lanes.set("q", "", { concurrency: 1 })).rejects.toEqual(code("BAD_KEY"));
    await expect(hf.lanes.list({ cursor: "x" })).rejects.toEqual(code("BAD_CURSOR"));
    expect(() => defineJob({ name: "x", lanes: { concurrency: 1 } })).toThrow(/need `lane`/);
    const throws = defineJob({
      name: "throws",
      lane: () => {
        throw new Error("no");
      },
    });
    const number = defineJob({ name: "number", lane: () => 7 as unknown as string });
    await expect(hf.enqueue(throws, {})).rejects.toEqual(code("BAD_KEY"));
    await expect(hf.enqueue(number, {})).rejects.toEqual(code("BAD_KEY"));
    for (const table of ["queue", "lane", "job"]) expect(await world.rows(table)).toEqual([]);
  });

  test("[N5] spoilt limits in a row stop their own queue alone, and are reported", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    const { job, runs } = quickJob(world);
    await hf.queues.set("spoilt", { concurrency: 1 });
    await hf.queues.set("good", { concurrency: 1 });
    const { fresh } = world;
    await fresh.query(
      `update ${fresh.table("queue")} set settings = '{"concurrency":-3}' where name = 'spoilt'`,
    );
    await work([job], { queues: { spoilt: 1, good: 1 } });
    const { id } = await hf.enqueue(job, { n: 1 }, { queue: "spoilt" });
    await hf.enqueue(job, { n: 2 }, { queue: "good" });
    await world.advance("5s");
    expect(runs.map(({ n }) => n)).toEqual([2]);
    expect((await hf.jobs.why(id)).text).toMatch(/cannot be read/);
    await hf.queues.set("spoilt", { concurrency: 1 });
    await world.until("it to run", () => runs.length === 2, "10s");
    await expect(
      fresh.query(
        `insert into ${fresh.table("lane")} (queue, key, concurrency, used_at) values ('q', 'k', 0, 0)`,
      ),
    ).rejects.toThrow();
  });

  test("[N5] a lane's jobs by name and by raw SQL are counted like all others", async () => {
    // Raw SQL takes the database's own time, which must be over.
    const world = await newWorld(target, new FakeClock(Date.now() + 60_000));
    const { hf, work } = await world.client();
    const { job, runs } = heldJob(world, "held", { lane: laneOf, lanes: { concurrency: 1 } });
    await work([job], { queues: { default: 5 } });
    await hf.enqueue("held", { n: 1 }, { lane: "tenant-0" });
    await world.until("the first to run", () => runs.length === 1);
    const { fresh } = world;
    const view = fresh.dialect === "sqlite" ? '"holdfast_enqueue"' : fresh.table("enqueue");
    await fresh.query(`insert into ${view} (name, input, lane) values ('held', '{"n":2}', 'tenant-0')`);
    await fresh.query(`insert into ${view} (name, input, lane) values ('held', '{"n":1001}', 'tenant-1')`);
    await world.advance("11s");
    expect(runs.map(({ input }) => input.n).sort((x, y) => x - y)).toEqual([1, 1_001]);
    runs.find(({ input }) => input.n === 1)!.finish();
    await world.until("the next", () => runs.some(({ input }) => input.n === 2));
    expect(await laneCounts(world.fresh)).toEqual([1, 1]);
  });

  test("[N5] a job that is replaced moves to its new lane, and a cancelled one leaves nothing behind", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    const { job, runs } = heldJob(world, "held", {
      lane: laneOf,
      lanes: { concurrency: 1 },
      unique: { key: () => "one", onConflict: "replace" },
    });
    await hf.enqueue(job, inLane(0, 1));
    expect(await hf.enqueue(job, inLane(1, 1))).toMatchObject({ status: "replaced" });
    await work([job], { queues: { default: 5 } });
    await world.until("it to run", () => runs.length === 1);
    expect(await laneCounts(world.fresh)).toEqual([0, 1]);
    expect(laneOf(runs[0]!.input)).toBe("tenant-1");
    await hf.jobs.cancel(runs[0]!.ctx.id);
    runs[0]!.fail(new Error("stopped"));
    await world.until("it to be over", async () => (await hf.jobs.count({ state: "cancelled" })) === 1);
    expect(await laneCounts(world.fresh)).toEqual([0, 0]);
  });

  test("[N5] jobs of a lane whose name nobody serves keep nobody else waiting", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    const { job, runs } = quickJob(world, "quick", { lane: laneOf });
    const other = defineJob({ name: "unserved", lane: laneOf });
    await hf.enqueueMany(Array.from({ length: 500 }, (_, n) => ({ job: other, input: { n: n * 1_000 } })));
    await hf.enqueue(job, inLane(3, 1));
    await work([job], { queues: { default: 1 } });
    await world.until("it to run", () => runs.length === 1, "2s");
    expect(await hf.jobs.count({ state: "ready" })).toBe(500);
  });
});
