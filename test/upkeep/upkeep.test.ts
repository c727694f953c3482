// F, second half: the registry, wake-ups, timers, outages, and loops that die.
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { defineJob } from "../../src/jobs/define-job.ts";
import { StoreError } from "../../src/errors.ts";
import { open } from "../../src/holdfast.ts";
import { silentLogger } from "../../src/logger.ts";
import { pruneOnce } from "../../src/upkeep/job-pruner.ts";
import { reapOnce } from "../../src/lease/reaper.ts";
import { tidyOnce } from "../../src/upkeep/storage-care.ts";
import { reportUnservedOnce } from "../../src/upkeep/unserved.ts";
import { onEveryStore } from "../support/stores.ts";
import { waitFor } from "../support/wait.ts";
import { heldJob, jobOf, lost, newWorld, quickJob, sessionInfo, type Verb } from "../support/world.ts";

onEveryStore((target) => {
  test("[F6] jobs in a misspelt queue are warned of at every tick and listed as unserved, until somebody serves them", async () => {
    const world = await newWorld(target);
    const { hf, log, told, work } = await world.client();
    const { job } = quickJob(world);
    await work([job], { queues: ["mail"] });
    await hf.enqueue(job, { n: 1 }, { queue: "mial" });
    const unserved = told("queue.unserved");
    await world.advance("63s");
    expect(unserved).toEqual([{ queue: "mial", names: ["quick"] }]);
    await world.advance("63s");
    expect(unserved).toHaveLength(2);
    expect(log.filter(({ level, message }) => level === "warn" && message.includes("mial"))).toHaveLength(2);
    const listed = async () => (await hf.queues.list()).find(({ name }) => name === "mial")!.unserved;
    expect(await listed()).toEqual(["quick"]);

    const other = await world.client();
    await other.work([job], { queues: ["mial"] });
    expect(await listed()).toEqual([]);
    await world.advance("130s");
    expect(unserved).toHaveLength(2);
  });

  test("[F7] the registry shows each worker with what it runs, and forgets one that died within 75 s", async () => {
    const world = await newWorld(target);
    const [a, b] = [await world.client(), await world.client()];
    const { job, runs } = heldJob(world);
    const worker = await a.work([job], { queues: { default: 2, mail: 3 }, name: "first" });
    const { id } = await a.hf.enqueue(job, { n: 1 });
    await world.until("it to run", () => runs.length === 1);
    expect(await b.hf.workers.list()).toMatchObject([
      { id: worker.id, name: "first", host: "host", pid: 1, queues: { default: 2, mail: 3 }, jobs: [id] },
    ]);
    const beatAt = async () => (await b.hf.workers.list())[0]!.beatAt.getTime();
    const before = await beatAt();
    await world.advance("10s");
    expect((await beatAt()) - before).toBe(10_000);

    const second = await b.work([job], { queues: { default: 2 }, name: "first" });
    expect(second.id).not.toBe(worker.id);
    expect(await b.hf.workers.list()).toHaveLength(2);
    a.tap.kill();
    await world.advance("75s");
    expect((await b.hf.workers.list()).map((each) => each.id)).toEqual([second.id]);
    const sessions = await world.rows("session");
    expect(sessions.filter((session) => session["closed_at"] === null)).toHaveLength(1);
  });

  test("[F8] a worker that sleeps is woken by another client's enqueue, and no garbage on the wire harms it", async () => {
    const fresh = await target.fresh();
    const options = { ...fresh.options, logger: silentLogger };
    const [a, b] = [await open(fresh.url, options), await open(fresh.url, options)];
    onTestFinished(async () => {
      await Promise.all([a.close(), b.close()]);
      await fresh.dispose();
    });
    const seen: number[] = [];
    const job = defineJob({ name: "n", run: (input: { n: number }) => void seen.push(input.n) });
    // With a poll of ten minutes only a wake-up can start it in the time that a test has.
    const worker = a.work([job], { queues: { default: 1, [`a._:-${"z".repeat(123)}`]: 1 }, poll: "10m" });
    await worker.ready;
    if (target.dialect === "postgres") {
      for (const payload of ["", "{", "null", '{"k":"work"}', '{"k":"stop","s":"x"}', "x".repeat(7_000)]) {
        await fresh.query("select pg_notify(?, ?)", [fresh.options.schema, payload]);
      }
    }
    for (let n = 0; n < 5; n++) {
      await b.enqueue(job, { n });
      await waitFor(() => seen.length === n + 1, { what: "the sleeping worker to be woken" });
    }
    await b.enqueue(job, { n: 5 }, { queue: `a._:-${"z".repeat(123)}` });
    await waitFor(() => seen.length === 6, { what: "the queue with the longest name to wake it" });
    const hostile = `x'); drop table ready; --`;
    await expect(b.enqueue(job, { n: 6 }, { queue: hostile })).rejects.toMatchObject({ code: "BAD_NAME" });
  });

  test("[F8] where no wake-up arrives the poll of 500 ms finds the job", async () => {
    const world = await newWorld(target);
    const [a, b] = [await world.client(), await world.client()];
    const { job, runs } = quickJob(world);
    a.tap.deaf = true;
    await a.work([job], { queues: ["default"] });
    await world.advance("5s");
    await b.hf.enqueue(job, { n: 1 });
    const at = world.clock.now();
    await world.advance("600ms");
    expect(runs).toHaveLength(1);
    expect(runs[0]!.at).toBeGreaterThan(at);
  });

  test("[F8] what wakes without work leads to reads alone, so two idle workers come to rest", async () => {
    const world = await newWorld(target);
    const { tap, work } = await world.client();
    const { job } = quickJob(world);
    await work([job], { queues: ["default"] });
    await world.advance("1s");
    const writes: Verb[] = [
      "claims.claim",
      "sessions.renew",
      "settles.settle",
      "sessions.open",
      "definitions.register",
      "upkeep.takeTask",
    ];
    const before = tap.count(...writes);
    // What each renewal of another process looks like on SQLite: something has changed, no telling what.
    for (let n = 0; n < 50; n++) {
      tap.raw.wake({ kind: "any" });
      await world.advance("20ms");
    }
    expect(tap.count(...writes) - before).toBe(0);
  });

  test("[F9] an idle worker sleeps until the exact instant at which a job is due", async () => {
    const world = await newWorld(target);
    const { hf, tap, work } = await world.client();
    const { job, runs } = quickJob(world);
    await work([job], { queues: ["default"] });
    await world.advance("20s");
    const enqueuedAt = world.clock.now();
    await hf.enqueue(job, { n: 1 }, { delay: "3s" });
    await world.advance("1s");
    const asked = tap.count("claims.claim", "claims.checkDue");
    await world.advance("1999ms", "1999ms");
    expect(runs).toEqual([]);
    await world.advance("1ms");
    expect(runs.map(({ at }) => at - enqueuedAt)).toEqual([3_000]);
    expect(tap.count("claims.claim", "claims.checkDue") - asked).toBeLessThanOrEqual(4);
  });

  test("[F9] an idle worker asks next to nothing, and wakes by itself when a dead worker's lease ends", async () => {
    const world = await newWorld(target);
    const [a, b] = [await world.client(), await world.client()];
    const { job, runs } = heldJob(world);
    await a.work([job], { queues: { default: 1 } });
    await a.hf.enqueue(job, { n: 1 });
    await world.until("it to run", () => runs.length === 1);
    await b.work([job], { queues: { default: 1 } });
    a.tap.kill();
    const endsAt = (await jobOf(b, runs[0]!.ctx.id)).leaseUntil!.getTime();
    await world.advance("2s");
    const asked = b.tap.count("claims.claim", "claims.checkDue");
    await world.advance("20s");
    // One look every 5 s while wake-ups are proven to arrive.
    expect(b.tap.count("claims.claim", "claims.checkDue") - asked).toBeLessThanOrEqual(5);
    await world.until("it to run again", () => runs.length === 2, "30s");
    expect(runs[1]!.at - endsAt).toBeGreaterThanOrEqual(0);
    expect(runs[1]!.at - endsAt).toBeLessThanOrEqual(300);
  });

  test("[F12] a worker waits while the database is away, and goes on with nothing lost", async () => {
    const world = await newWorld(target);
    const [a, b] = [await world.client(), await world.client()];
    const { job, runs } = heldJob(world);
    const worker = await a.work([job], { queues: { default: 1 } });
    const first = await a.hf.enqueue(job, { n: 1 });
    await world.until("it to run", () => runs.length === 1);
    a.tap.around = () => lost();
    runs[0]!.finish("during the outage");
    const second = await b.hf.enqueue(job, { n: 2 });
    const claims = a.tap.count("claims.claim", "settles.settle");
    await world.advance("10s");
    // About once a second, not in a spin.
    expect(a.tap.count("claims.claim", "settles.settle") - claims).toBeLessThanOrEqual(25);
    expect(await jobOf(b, first.id)).toMatchObject({ state: "running" });

    a.tap.around = null;
    await world.until("the next to run", () => runs.length === 2, "5s");
    expect(await jobOf(b, first.id)).toMatchObject({
      state: "done",
      output: "during the outage",
      attempt: 1,
      crashes: 0,
    });
    runs[1]!.finish();
    await world.finish(worker.idle());
    expect(await jobOf(b, second.id)).toMatchObject({ state: "done", attempt: 1 });
  });

  test("[F12] a fault that no waiting mends ends the worker with a named cause", async () => {
    const world = await newWorld(target);
    const { told, work } = await world.client();
    const { job } = quickJob(world);
    const errors = told("error");
    const worker = await work([job], { queues: ["default"] });
    await world.fresh.query(`drop table ${world.fresh.table("ready")}`);
    const ended = worker.stopped.then(
      () => "stopped",
      (error: unknown) => error,
    );
    expect(await world.finish(ended)).toMatchObject({ code: "SCHEMA_MISSING" });
    expect(errors).toMatchObject([{ during: "claiming", error: { code: "SCHEMA_MISSING" } }]);
  });

  const loops: [verb: Verb, during: string][] = [
    ["claims.claim", "claiming"],
    ["claims.checkDue", "claiming"],
    ["settles.settle", "settling"],
    ["upkeep.takeTask", "the upkeep task"],
    ["queues.settings", "reading the queues' settings"],
    ["sessions.open", "opening a session"],
    ["sessions.renew", "renewing the lease"],
  ];
  test.each(loops)(
    "[F14] a loop that can never go on because of %s is named, and takes its worker down instead of going on without it",
    async (verb, during) => {
      const world = await newWorld(target);
      const { hf, log, tap, told } = await world.client();
      const { job } = quickJob(world);
      const errors = told("error");
      await hf.enqueue(job, { n: 1 });
      tap.around = (called, call) =>
        called === verb ? Promise.reject(new StoreError("SCHEMA_TOO_NEW", "newer than us")) : call();
      const worker = hf.work([job], { queues: ["default"] });
      const ended = worker.stopped.then(
        () => "stopped",
        (error: unknown) => error,
      );
      expect(await world.finish(ended, "10m")).toMatchObject({ code: "SCHEMA_TOO_NEW" });
      expect(errors[0]).toMatchObject({ during: expect.stringContaining(during) as string });
      expect(log.some(({ level, message }) => level === "error" && message.includes(during))).toBe(true);
      await expect(
        worker.ready.then(
          () => "was ready",
          () => "never ready",
        ),
      ).resolves.toMatch(/ready/);
    },
  );

  test.each(loops)(
    "[O9] a loop that meets a fault nobody knows in %s logs it, waits and goes on when it is over",
    async (verb) => {
      const world = await newWorld(target);
      const { hf, log, tap } = await world.client();
      const { job } = quickJob(world);
      let failures = 0;
      tap.around = (called, call) => {
        if (called !== verb || (failures += 1) > 3) return call();
        return Promise.reject(new TypeError("a fault of ours"));
      };
      const worker = hf.work([job], { queues: ["default"] });
      const { id } = await hf.enqueue(job, { n: 1 });
      await world.until("the job to be done", async () => (await hf.jobs.get(id))?.state === "done", "5m");
      await world.until("the faults to be over", () => failures > 3, "30m", "5s");
      expect(
        log.some(
          ({ level, details }) => level !== "info" && JSON.stringify(details).includes("a fault of ours"),
        ),
      ).toBe(true);
      await world.finish(worker.stop());
    },
  );

  test("[F15] every upkeep task has a one-shot form that fake time drives", async () => {
    const world = await newWorld(target);
    const { hf, tap, told } = await world.client();
    const { store } = tap;
    const deps = { store, clock: world.clock, random: () => 0.5, log: silentLogger };
    const events = { emit: () => {}, has: () => false };
    expect(systemClock.system).toBe(true);

    const { id } = await hf.enqueue("quick", { n: 1 });
    const crashed = told("job.crashed");
    await hf.lease({ for: "10s" });
    const reap = () => reapOnce({ ...deps, events, definition: () => undefined });
    await world.advance("9s");
    expect(await reap()).toBe(0);
    await world.advance("1s");
    expect(await reap()).toBe(1);
    expect(await reap()).toBe(0);
    expect(crashed).toEqual([]);
    expect(await hf.jobs.get(id)).toMatchObject({ state: "ready", crashes: 1 });

    await store.sessions.open(sessionInfo({ leaseMs: 5_000 }));
    expect(await store.sessions.forgetDead()).toBe(0);
    await world.advance("5s");
    expect(await store.sessions.forgetDead()).toBe(1);

    expect(await reportUnservedOnce({ store, log: silentLogger, events })).toEqual({
      ready: new Map([["default", 1]]),
      unserved: [{ name: "default", unserved: ["quick"] }],
    });

    const [lease] = await hf.lease();
    await lease!.done();
    const retention = { doneMs: 60_000, deadMs: 60_000 };
    await world.advance("59s", "59s");
    expect(await pruneOnce({ store, log: silentLogger, retention })).toMatchObject({ done: 0 });
    await world.advance("1s");
    expect(await pruneOnce({ store, log: silentLogger, retention })).toMatchObject({ done: 1 });
    expect(await hf.jobs.get(id)).toBeNull();
    await tidyOnce({ store, retention: { doneMs: 7 * 86_400_000, deadMs: 30 * 86_400_000 } });
  });
});
