// F, quiet: a worker that claims nothing until it is resumed, lives on, and is counted as what it is.
import { expect, test } from "vitest";
import { prometheus } from "../../src/prometheus/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { heldJob, lost, newWorld, quickJob } from "../support/world.ts";

const many = (count: number): readonly number[] => Array.from({ length: count }, (_, n) => n);

onEveryStore((target) => {
  test("[F11] a quiet worker finishes what runs, claims nothing, and goes on when it is resumed", async () => {
    const world = await newWorld(target);
    const [client, admin] = [await world.client(), await world.client()];
    const { job, runs } = heldJob(world);
    const worker = await client.work([job], { queues: { default: 2 }, name: "one" });
    const paused = client.told("worker.paused");
    const resumed = client.told("worker.resumed");
    await admin.hf.enqueueMany(many(4).map((n) => ({ job, input: { n } })));
    await world.until("the slots to fill", () => runs.length === 2);

    expect(await admin.hf.workers.quiet("nobody")).toBe(0);
    expect(await admin.hf.workers.quiet("one")).toBe(1);
    await world.quiet(); // by the wake-up: no time passes
    expect(worker.quietAt?.getTime()).toBe(world.clock.now());
    expect(paused).toEqual([{ workerId: worker.id, name: "one", reason: "quiet" }]);

    runs[0]!.finish();
    await world.advance("2m");
    expect(runs).toHaveLength(2);
    expect(runs[1]!.ctx.signal.aborted).toBe(false);
    expect(await admin.hf.jobs.count({ state: "done" })).toBe(1);
    const [listed] = await admin.hf.workers.list();
    expect(listed).toMatchObject({ id: worker.id, stopping: false, quietAt: worker.quietAt });
    expect(listed!.jobs).toEqual([runs[1]!.ctx.id]);
    // Once more is no other instant.
    expect(await admin.hf.workers.quiet("all")).toBe(1);
    await world.advance("1s");
    expect((await admin.hf.workers.list())[0]!.quietAt).toEqual(listed!.quietAt);

    expect(await admin.hf.workers.resume(worker.id)).toBe(1);
    await world.until("the slots to fill again", () => runs.length === 3, "1s");
    expect([worker.quietAt, (await admin.hf.workers.list())[0]!.quietAt]).toEqual([null, null]);
    expect(resumed).toEqual([{ workerId: worker.id, name: "one", reason: "quiet" }]);
    for (const wrong of ["", null as unknown as string])
      for (const verb of ["quiet", "resume"] as const)
        await expect(admin.hf.workers[verb](wrong)).rejects.toMatchObject({ code: "BAD_OPTION" });
  });

  test("[F11] a worker that is quiet, or stops, serves nothing: neither a schedule nor a queue", async () => {
    const world = await newWorld(target);
    const [client, admin] = [await world.client(), await world.client()];
    const { job, runs } = heldJob(world);
    const worker = await client.work([job], { queues: { default: 1 }, name: "one" });
    await admin.hf.schedules.put({ name: "daily", every: "1d", job, input: { n: 0 } });
    const unserved = async (): Promise<unknown> => [
      (await admin.hf.schedules.get("daily"))?.unserved,
      (await admin.hf.queues.list())[0]?.unserved,
    ];
    await admin.hf.enqueueMany(many(2).map((n) => ({ job, input: { n } })));
    await world.until("one to run", () => runs.length === 1);
    expect(await unserved()).toEqual([false, []]);
    await admin.hf.workers.quiet("one");
    await world.quiet();
    expect(await unserved()).toEqual([true, [job.name]]);
    await admin.hf.workers.resume("one");
    await world.quiet();
    expect(await unserved()).toEqual([false, []]);
    await admin.hf.workers.stop("one");
    expect(await unserved()).toEqual([true, [job.name]]);
    runs[0]!.finish();
    await worker.stop();
  });

  test("[F11] without a wake-up it is heard with the next renewal", async () => {
    const world = await newWorld(target);
    const [client, admin] = [await world.client(), await world.client()];
    const { job, runs } = heldJob(world);
    const worker = await client.work([job], { queues: ["default"], heartbeat: "10s" });
    client.tap.deaf = true;
    await admin.hf.workers.quiet("all");
    await world.advance("11s");
    expect(worker.quietAt).not.toBeNull();
    await admin.hf.enqueue(job, { n: 1 });
    await admin.hf.workers.resume("all");
    await world.advance("11s");
    expect(worker.quietAt).toBeNull();
    await world.until("it to run", () => runs.length === 1);
  });

  test("[F10] it gives back, unburnt, what it has claimed ahead, and another worker takes it", async () => {
    const world = await newWorld(target);
    const [client, other] = [await world.client(), await world.client()];
    const quick = quickJob(world);
    const { job, runs } = heldJob(world);
    const worker = await client.work([quick.job, job], { queues: { default: 1 } });
    // Jobs that take no time teach the worker to claim far ahead; then come some that take long.
    await client.hf.enqueueMany(many(20).map((n) => ({ job: quick.job, input: { n } })));
    await world.finish(worker.idle());
    await client.hf.enqueueMany(many(20).map((n) => ({ job, input: { n } })));
    await world.until("one to run", () => runs.length === 1, "1s", 1);
    expect(await client.hf.jobs.count({ state: "running" })).toBeGreaterThan(1);
    await world.finish(worker.quiet(), "500ms");
    await world.quiet();
    expect(await client.hf.jobs.count({ state: "running" })).toBe(1);
    const { jobs } = await client.hf.jobs.list({ state: "ready" });
    expect(new Set(jobs.map(({ attempt, crashes }) => [attempt, crashes].join()))).toEqual(new Set(["0,0"]));
    await other.work([job], { queues: { default: 19 } });
    await world.until("the other to run the rest", () => runs.length === 20);
    expect(worker.running).toBe(1);
  });

  test("[F11] a claim that was on its way brings it nothing to start", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { job, runs } = heldJob(world);
    const worker = await client.work([job], { queues: { default: 2 } });
    const answer = Promise.withResolvers<void>();
    client.tap.around = async (verb, call) => {
      const found = await call();
      if (verb === "claims.claim") await client.tap.late(answer.promise);
      return found;
    };
    await client.hf.enqueueMany(many(2).map((n) => ({ job, input: { n } })));
    await world.until("the claim", async () => (await client.hf.jobs.count({ state: "running" })) === 2);
    await world.finish(worker.quiet());
    answer.resolve();
    await world.advance("300ms"); // at once, and not because they have waited for a slot for too long
    expect(runs).toEqual([]);
    expect(await client.hf.jobs.count({ state: "ready" })).toBe(2);
    client.tap.around = null;
    await world.finish(worker.resume());
    await world.until("both to run", () => runs.length === 2);
  });

  test("[F11] a renewal that was on its way does not undo what the process itself has changed since", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const worker = await client.work([quickJob(world).job], { queues: ["default"], heartbeat: "5s" });
    const told = client.told("worker.resumed");
    const answer = Promise.withResolvers<void>();
    let held = 0;
    client.tap.around = async (verb, call) => {
      const renewal = await call();
      if (verb === "sessions.renew" && held++ === 0) await client.tap.late(answer.promise);
      return renewal;
    };
    await world.until("a renewal", () => held === 1);
    await world.finish(worker.quiet());
    answer.resolve();
    await world.advance("20s");
    expect(worker.quietAt).not.toBeNull();
    expect(told).toEqual([]);
  });

  test("[F11] it stays quiet when its session is lost and a new one is opened", async () => {
    const world = await newWorld(target);
    const [client, admin] = [await world.client(), await world.client()];
    const { job, runs } = quickJob(world);
    const worker = await client.work([job], { queues: ["default"] });
    await world.finish(worker.quiet());
    await world.advance("11s");
    const before = await admin.hf.workers.list();
    client.tap.around = (verb, call) =>
      verb === "sessions.renew" || verb === "sessions.open" ? lost() : call();
    await world.until(
      "the session to be lost",
      async () => (await admin.hf.workers.list()).length === 0,
      "2m",
    );
    await admin.hf.enqueue(job, { n: 1 });
    client.tap.around = null;
    await world.until("a new session", async () => (await admin.hf.workers.list()).length === 1);
    const after = await admin.hf.workers.list();
    expect(after[0]!.session).not.toBe(before[0]!.session);
    expect(after[0]!.quietAt).toEqual(before[0]!.quietAt);
    await world.advance("1m");
    expect(runs).toEqual([]);
    await admin.hf.workers.resume("all");
    await world.until("it to run", () => runs.length === 1);
  });

  test("[F11] what is said while a session is being opened holds for it", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { job, runs } = quickJob(world);
    await client.hf.enqueue(job, { n: 1 });
    const opened = Promise.withResolvers<void>();
    client.tap.around = async (verb, call) => {
      const answer = await call();
      if (verb === "sessions.open") await client.tap.late(opened.promise);
      return answer;
    };
    const worker = client.hf.work([job], { queues: ["default"] });
    await world.quiet();
    await worker.quiet();
    opened.resolve();
    await world.finish(worker.ready); // a quiet worker is ready too
    await world.advance("1m");
    expect(runs).toEqual([]);
    expect((await client.hf.workers.list())[0]!.quietAt).not.toBeNull();
    await world.finish(worker.idle());
    await world.finish(worker.resume());
    await world.until("it to run", () => runs.length === 1);
  });

  test("[F11] when the database cannot be told, nothing has changed", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { job, runs } = quickJob(world);
    const worker = await client.work([job], { queues: ["default"] });
    client.tap.around = (verb, call) => (verb === "workers.quiet" ? lost() : call());
    await expect(worker.quiet()).rejects.toMatchObject({ code: "CONNECTION_LOST" });
    await client.hf.enqueue(job, { n: 1 });
    await world.until("it to run", () => runs.length === 1);
    expect(worker.quietAt).toBeNull();
  });

  test("[F11] it still looks after dead workers, and can be stopped", async () => {
    const world = await newWorld(target);
    const [client, dying] = [await world.client(), await world.client()];
    const { job, runs } = heldJob(world);
    const doomed = await dying.work([job], { queues: { default: 1 } });
    const { id } = await client.hf.enqueue(job, { n: 1 });
    await world.until("it to run", () => runs.length === 1);
    const worker = await client.work([job], { queues: { default: 1 } });
    await world.finish(worker.quiet());
    expect(doomed.running).toBe(1);
    dying.tap.kill();
    await world.until(
      "it to be given back",
      async () => (await client.hf.jobs.get(id))?.state === "ready",
      "2m",
    );
    expect(runs).toHaveLength(1);
    await client.hf.workers.stop(worker.id);
    await world.finish(worker.stopped);
    expect(await client.hf.workers.drained()).toBe(true);
  });

  test("[N9] it serves nothing: why, the queues, the split of a total and the metrics say so", async () => {
    const world = await newWorld(target);
    const [client, other, admin] = [await world.client(), await world.client(), await world.client()];
    const { job, runs } = heldJob(world);
    const one = await client.work([job], { queues: { default: 4 }, name: "one" });
    const two = await other.work([job], { queues: { default: 4 }, name: "two" });
    await admin.hf.queues.set("default", { total: 2 });
    await world.advance("10s");
    await world.finish(one.quiet());
    await admin.hf.enqueueMany(many(2).map((n) => ({ job, input: { n } })));
    await world.until("the other to have the whole total", () => two.running === 2, "20s");
    await world.finish(two.quiet());
    for (const run of runs) run.finish();
    const { id } = await admin.hf.enqueue(job, { n: 9 });
    await world.advance("1s");

    expect(await admin.hf.jobs.why(id)).toMatchObject({
      reason: "workers-quiet",
      text: "The 2 workers are quiet. Jobs start when one of them is resumed.",
    });
    const queues = await admin.hf.queues.list();
    expect(queues).toMatchObject([{ name: "default", unserved: ["held"] }]);
    const metrics = await prometheus(admin.hf).text();
    expect(metrics).toContain("holdfast_workers 2");
    expect(metrics).toContain("holdfast_workers_quiet 2");
    expect(metrics).not.toContain('holdfast_slots{queue="default"}');

    await world.finish(one.stop());
    expect((await admin.hf.jobs.why(id)).text).toMatch(/^The only worker, two, has been quiet since .*Z\. /);
    await admin.hf.workers.resume("two");
    await world.until("it to run", () => runs.length === 3);
  });
});
