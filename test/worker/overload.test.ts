// N8 and N15: a process that has too much to do takes no more; deaths, errors and shutdowns are told apart.
import { expect, test } from "vitest";
import { Emitter } from "../../src/events.ts";
import { silentLogger } from "../../src/logger.ts";
import { MiddlewareChain } from "../../src/worker/middleware.ts";
import { Worker } from "../../src/worker/worker.ts";
import { onEveryStore } from "../support/stores.ts";
import { heldJob, jobOf, newWorld, quickJob } from "../support/world.ts";

onEveryStore((target) => {
  test("[N8] while the event loop is late nothing is claimed, and claiming goes on when it keeps up again", async () => {
    const world = await newWorld(target);
    const { hf, tap } = await world.client();
    const { job, runs } = quickJob(world);
    let delayMs = 0;
    const events = new Emitter(() => {});
    const told: string[] = [];
    events.on("worker.paused", ({ reason }) => told.push(`paused: ${reason}`));
    events.on("worker.resumed", ({ reason }) => told.push(`resumed: ${reason}`));
    const worker = new Worker(
      {
        store: tap.store,
        clock: world.clock,
        random: () => 0.5,
        log: silentLogger,
        events,
        middleware: new MiddlewareChain(),
        enqueueFor: () => ({ enqueue: hf.enqueue, enqueueMany: hf.enqueueMany }),
        budget: (name, n) => hf.budgets.take(name, n),
        maxPayloadBytes: 1_000,
        retention: { doneMs: 0, deadMs: 0 },
        workerId: "w",
        hostId: "h",
        host: "h",
        pid: 1,
        version: "0",
        order: "highest-first",
        env: {},
        cpus: 1,
        loopDelay: () => delayMs,
      },
      [job],
      { queues: { default: 5 }, maxLoopDelay: "200ms" },
    );
    await world.finish(worker.ready);
    delayMs = 201;
    await hf.enqueue(job, { n: 1 });
    const claims = tap.count("claims.claim");
    await world.advance("20s");
    expect(runs).toEqual([]);
    expect(tap.count("claims.claim")).toBe(claims);
    delayMs = 200;
    await world.until("it to run", () => runs.length === 1, "1s");
    expect(told).toEqual(["paused: event-loop delay", "resumed: event-loop delay"]);
    await world.finish(worker.stop());
  });

  test("[N15] a thrown error, a shutdown and a process death are counted apart", async () => {
    const world = await newWorld(target);
    const [a, b, c] = [await world.client(), await world.client(), await world.client()];
    const { job, runs } = heldJob(world, "held", { retry: { attempts: 2, backoff: () => 0 } });
    const work = { queues: { default: 1 }, lease: "10s", heartbeat: "3s" } as const;
    const { id } = await a.hf.enqueue(job, { n: 1 });
    const first = await a.work([job], work);
    await world.until("the first run", () => runs.length === 1);
    runs[0]!.fail(new Error("thrown"));
    await world.until("the second run", () => runs.length === 2);
    expect(runs[1]!.ctx.attempt).toBe(2);

    await world.finish(first.stop({ timeout: 0 }));
    expect(await jobOf(a, id)).toMatchObject({ state: "ready", attempt: 1, crashes: 0, error: "thrown" });

    await b.work([job], work);
    await world.until("the third run", () => runs.length === 3);
    expect(runs[2]!.ctx.attempt).toBe(2);
    b.tap.kill();
    await c.work([job], work);
    await world.until("the fourth run", () => runs.length === 4, "20s");
    expect(runs[3]!.ctx.attempt).toBe(2);
    expect(await jobOf(c, id)).toMatchObject({ attempt: 2, crashes: 1, error: "its worker died (crash 1)" });

    // The second error is the last that its two attempts allow, whatever else has happened in between.
    runs[3]!.fail(new Error("thrown again"));
    await world.until("it to end", async () => (await jobOf(c, id)).state === "dead");
    expect(await jobOf(c, id)).toMatchObject({ attempt: 2, crashes: 1, error: "thrown again" });
  });

  test("[N15] a job that keeps killing its process ends dead with the count, and the others go on", async () => {
    const world = await newWorld(target);
    const admin = await world.client();
    const poison = heldJob(world, "poison", { maxCrashes: 3 });
    const { id } = await admin.hf.enqueue(poison.job, { n: 0 });
    const good = quickJob(world);
    for (let deaths = 1; deaths <= 3; deaths++) {
      const victim = await world.client();
      await victim.work([poison.job], { queues: { default: 1 }, lease: "3s", heartbeat: "1s" });
      await world.until("it to be run", () => poison.runs.length === deaths);
      victim.tap.kill();
      await world.advance("4s");
      await admin.hf.enqueue(good.job, { n: deaths });
    }
    const last = await world.client();
    const dead = last.told("job.dead");
    const crashed = last.told("job.crashed");
    await last.work([poison.job, good.job], { queues: { default: 2 } });
    await world.until("the others to be done", () => good.runs.length === 3);
    await world.until("it to end", async () => (await jobOf(last, id)).state === "dead");
    expect(await jobOf(last, id)).toMatchObject({ crashes: 3, error: "killed its worker 3 times" });
    expect(dead).toMatchObject([{ id, error: "killed its worker 3 times" }]);
    expect(crashed).toMatchObject([{ id, crashes: 3, dead: true }]);
    expect(poison.runs).toHaveLength(3);
  });
});
