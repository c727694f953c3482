// F, first half: slots, live settings, start-up, shutdown and remote stop of a worker.
import { cpus } from "node:os";
import { describe, expect, expectTypeOf, test } from "vitest";
import { defineJob } from "../../src/jobs/define-job.ts";
import { open } from "../../src/holdfast.ts";
import { silentLogger } from "../../src/logger.ts";
import { fixed } from "../../src/jobs/backoff.ts";
import { onEveryStore } from "../support/stores.ts";
import { heldJob, jobOf, newWorld, quickJob } from "../support/world.ts";

onEveryStore((target) => {
  test("[F1] never more jobs run than a queue has slots, however many wait", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    const { job, runs } = heldJob(world);
    await hf.enqueueMany(Array.from({ length: 25 }, (_, n) => ({ job, input: { n } })));
    const worker = await work([job], { queues: { default: 3 } });
    let ended = 0;
    while (ended < 25) {
      await world.until("the slots to fill", () => runs.length === Math.min(25, ended + 3));
      expect(worker.running).toBe(Math.min(3, 25 - ended));
      expect(runs.length - ended).toBeLessThanOrEqual(3);
      // Nothing is claimed that has no slot to come: long jobs come one by one.
      expect(await hf.jobs.count({ state: "running" })).toBeLessThanOrEqual(3);
      await world.advance("2s");
      runs[ended++]!.finish();
    }
    await world.finish(worker.idle());
    expect(await hf.jobs.count({ state: "done" })).toBe(25);
  });

  test("[F1] without a number a queue has one slot for each CPU", async () => {
    const fresh = await target.fresh();
    const hf = await open(fresh.url, { ...fresh.options, logger: silentLogger });
    try {
      const worker = hf.work([defineJob({ name: "n", run: () => 1 })], { queues: ["a", "b"] });
      await worker.ready;
      expect((await hf.workers.list())[0]!.queues).toEqual({ a: cpus().length, b: cpus().length });
    } finally {
      await hf.close();
      await fresh.dispose();
    }
  });

  test("[F2] slots, pause, backoff and retention of a queue change under a running worker, without a restart", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    const admin = await world.client();
    const { job, runs } = heldJob(world, "held", { retry: { attempts: 9 } });
    await work([job], { queues: { default: 1 } });
    await hf.enqueueMany(Array.from({ length: 6 }, (_, n) => ({ job, input: { n } })));
    await world.until("one to run", () => runs.length === 1);

    await admin.hf.queues.set("default", { slots: 3 });
    await world.until("three to run", () => runs.length === 3, "2s");

    await admin.hf.queues.set("default", { backoff: fixed("7s", { jitter: 0 }) });
    await world.advance("2s");
    runs[0]!.fail(new Error("no"));
    await world.until(
      "it to be put off",
      async () => (await jobOf(admin, runs[0]!.ctx.id)).state === "scheduled",
    );
    expect((await jobOf(admin, runs[0]!.ctx.id)).runAt!.getTime() - world.clock.now()).toBeGreaterThan(6_000);

    await admin.hf.queues.pause("default");
    await world.advance("2s");
    const started = runs.length;
    for (const run of runs.slice(1)) run.finish();
    await world.advance("10s");
    expect(runs).toHaveLength(started);
    await admin.hf.queues.resume("default");
    await world.until("it to go on", () => runs.length > started, "2s");

    expect((await hf.queues.list())[0]!.settings).toMatchObject({ slots: 3, retention: null });
    await admin.hf.queues.set("default", { retention: { done: "1s", dead: "1s" } });
    await world.advance("2s");
    expect((await hf.prune()).done).toBeGreaterThan(0);
    await expect(admin.hf.queues.set("default", { slots: -1 })).rejects.toMatchObject({ code: "BAD_OPTION" });
    await expect(admin.hf.queues.set("default", { slots: 1025 })).rejects.toMatchObject({
      code: "BAD_OPTION",
    });
  });

  test("[F3] a pause and a scale-down to none let running jobs finish, as attempt 1, and start nothing new", async () => {
    for (const slow of ["pause", "scale-down"]) {
      const world = await newWorld(target);
      const { hf, work } = await world.client();
      const { job, runs } = heldJob(world);
      await work([job], { queues: { default: 2 } });
      const [first, second] = await hf.enqueueMany([1, 2, 3].map((n) => ({ job, input: { n } })));
      await world.until("two to run", () => runs.length === 2);
      await (slow === "pause" ? hf.queues.pause("default") : hf.queues.set("default", { slots: 0 }));
      await world.advance("5s");
      expect(runs.map(({ ctx }) => ctx.signal.aborted)).toEqual([false, false]);
      for (const run of runs) run.finish("finished");
      await world.advance("10s");
      for (const { id } of [first!, second!]) {
        expect(await jobOf({ hf } as never, id)).toMatchObject({
          state: "done",
          attempt: 1,
          output: "finished",
        });
      }
      expect(runs).toHaveLength(2);
    }
  });

  test("[F4] a worker without a queue, or with a bad name, does not start; the error names the setting", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    const { job } = quickJob(world);
    const refused = (options: object, message: RegExp): void =>
      expect(() => hf.work([job], options)).toThrow(
        expect.objectContaining({ code: "NO_QUEUES", message: expect.stringMatching(message) as string }),
      );
    refused({}, /`queues`.*QUEUES/);
    refused({ queues: [] }, /`queues`.*QUEUES/);
    refused({ queues: {} }, /`queues`.*QUEUES/);
    refused({ queues: ["a,b"] }, /option queues/);
    refused({ queues: [""] }, /option queues/);
    world.env["QUEUES"] = "good,no good";
    refused({}, /QUEUES/);
    expect(() => hf.work([job], { queues: ["a"], name: "no good" })).toThrow(
      expect.objectContaining({ code: "BAD_NAME" }),
    );
    world.env["WORKER_NAME"] = "no good";
    expect(() => hf.work([job], { queues: ["a"] })).toThrow(
      expect.objectContaining({
        code: "BAD_NAME",
        message: expect.stringContaining("WORKER_NAME") as string,
      }),
    );
    delete world.env["WORKER_NAME"];
    expect(() => hf.work([], { queues: ["a"] })).toThrow(expect.objectContaining({ code: "NO_QUEUES" }));
    expect(await hf.workers.list()).toEqual([]);

    world.env["QUEUES"] = "mail=7, default";
    world.env["WORKER_NAME"] = "from-the-environment";
    await work([job]);
    expect(await hf.workers.list()).toMatchObject([
      { name: "from-the-environment", queues: { mail: 7, default: 4 } },
    ]);
  });

  describe("[F10] shutdown", () => {
    test("[F10] stops claiming at once, keeps the lease while jobs finish, and leaves no row behind", async () => {
      const world = await newWorld(target);
      const { hf, tap, work } = await world.client();
      const { job, runs } = heldJob(world);
      const worker = await work([job], { queues: { default: 1 }, shutdown: "10m" });
      const first = await hf.enqueue(job, { n: 1 });
      await world.until("it to run", () => runs.length === 1);
      const second = await hf.enqueue(job, { n: 2 });
      const stopped = worker.stop();
      const beats = tap.count("sessions.renew");
      await world.advance("100s");
      expect(tap.count("sessions.renew") - beats).toBeGreaterThanOrEqual(9);
      expect(runs).toHaveLength(1);
      expect(runs[0]!.ctx.signal.aborted).toBe(false);
      runs[0]!.finish("in time");
      await world.finish(stopped);
      expect(await hf.jobs.get(first.id)).toMatchObject({ state: "done", output: "in time", attempt: 1 });
      expect(await hf.jobs.get(second.id)).toMatchObject({ state: "ready", attempt: 0 });
      expect(await hf.workers.list()).toEqual([]);
      expect(await world.rows("claim")).toEqual([]);
      expect(worker.running).toBe(0);
    });

    test("[F10] gives a job that does not end in time back unburnt, at once, and another worker restarts it", async () => {
      const world = await newWorld(target);
      const [a, b] = [await world.client(), await world.client()];
      const { job, runs } = heldJob(world);
      const worker = await a.work([job], { queues: { default: 2 } });
      await a.hf.enqueueMany([1, 2].map((n) => ({ job, input: { n } })));
      await world.until("both to run", () => runs.length === 2);
      const [polite, deaf] = runs as [(typeof runs)[0], (typeof runs)[0]];
      polite.ctx.signal.addEventListener("abort", () => polite.fail(polite.ctx.signal.reason));
      await b.work([job], { queues: { default: 2 } });
      const stopped = worker.stop({ timeout: "5s" });
      await world.advance("4900ms");
      expect(polite.ctx.signal.aborted).toBe(false);
      await world.until("both to run elsewhere", () => runs.length === 4, "1500ms");
      await world.finish(stopped);
      expect(polite.ctx.signal.reason).toMatchObject({ code: "SHUTDOWN" });
      expect(deaf.ctx.signal.reason).toMatchObject({ code: "SHUTDOWN" });
      for (const run of runs.slice(2)) {
        expect(run.ctx.attempt).toBe(1);
        expect(await jobOf(b, run.ctx.id)).toMatchObject({
          state: "running",
          attempt: 1,
          crashes: 0,
          errors: [],
        });
      }
      deaf.finish("far too late");
      await world.advance("1s");
      expect(await jobOf(b, deaf.ctx.id)).toMatchObject({ state: "running", output: null });
    });

    test("[F10] gives back what was claimed ahead and not yet started", async () => {
      const world = await newWorld(target);
      const { hf, work } = await world.client();
      const quick = quickJob(world);
      const { job, runs } = heldJob(world);
      const worker = await work([quick.job, job], { queues: { default: 1 } });
      // Jobs that take no time teach the worker to claim far ahead; then come some that take long.
      await hf.enqueueMany(Array.from({ length: 20 }, (_, n) => ({ job: quick.job, input: { n } })));
      await world.finish(worker.idle());
      await hf.enqueueMany(Array.from({ length: 20 }, (_, n) => ({ job, input: { n } })));
      await world.until("one to run", () => runs.length === 1, "1s", 1);
      const stopped = worker.stop({ timeout: 0 });
      await world.finish(stopped);
      const counts = await Promise.all(
        (["ready", "running", "done"] as const).map((state) => hf.jobs.count({ state, name: "held" })),
      );
      expect(counts).toEqual([20, 0, 0]);
      const { jobs } = await hf.jobs.list({ name: "held" });
      expect(new Set(jobs.map(({ attempt }) => attempt))).toEqual(new Set([0]));
    });
  });

  test("[F11] a worker is stopped from another process, by id, by name or with all others, and drained says when", async () => {
    const world = await newWorld(target);
    const [a, b, admin] = [await world.client(), await world.client(), await world.client()];
    const { job, runs } = heldJob(world);
    const first = await a.work([job], { queues: { default: 1 }, name: "one" });
    const second = await b.work([job], { queues: { default: 1 }, name: "two" });
    await admin.hf.enqueueMany([1, 2, 3].map((n) => ({ job, input: { n } })));
    await world.until("both to run", () => runs.length === 2);

    expect(await admin.hf.workers.stop("nobody")).toBe(0);
    expect(await admin.hf.workers.stop(first.id)).toBe(1);
    await world.advance("11s");
    expect(await admin.hf.workers.drained("one")).toBe(false);
    runs.find(({ ctx }) => ctx.workerId === first.id)!.finish();
    await world.finish(first.stopped);
    expect(await admin.hf.workers.drained("one")).toBe(true);
    expect(await admin.hf.workers.drained()).toBe(false);
    expect(second.running).toBe(1);

    expect(await admin.hf.workers.stop("all")).toBe(1);
    await world.advance("11s");
    runs.find(({ ctx }) => ctx.workerId === second.id)!.finish();
    await world.finish(second.stopped);
    expect(await admin.hf.workers.drained()).toBe(true);
    expect(await admin.hf.jobs.count({ state: "ready" })).toBe(1);
    expect(await admin.hf.jobs.count({ state: "done" })).toBe(2);
  });

  test("[F13] [O13] two definitions of one name are rejected, the names are in the boot log, and inputs are typed", async () => {
    const world = await newWorld(target);
    const { hf, log, work } = await world.client();
    const first = quickJob(world, "same");
    const last = quickJob(world, "same");
    const other = defineJob({ name: "other", run: (input: { to: string }) => input.to.length });
    expect(() => hf.work([first.job, last.job, other], { queues: ["default"] })).toThrow(
      expect.objectContaining({ code: "DUPLICATE_NAME", details: { job: "same" } }) as Error,
    );
    await work([first.job, first.job, other], { queues: ["default"] });
    await hf.enqueue(first.job, { n: 1 });
    await world.until("it to run", () => first.runs.length === 1);
    expect(log.find(({ message }) => message.endsWith("starts"))?.details).toMatchObject({
      names: ["same", "other"],
    });
    expect((await hf.workers.list())[0]!.names).toEqual(["same", "other"]);
    expectTypeOf<NonNullable<typeof other.run>>().parameter(0).toEqualTypeOf<{ to: string }>();
    // @ts-expect-error a payload of another shape is refused by the compiler
    const wrong = (): Promise<unknown> => hf.enqueue(other, { to: 1 });
    expect(wrong).toBeTypeOf("function");
  });
});
