// How a handler learns that its worker stops or its queue is paused, before its signal aborts (O14).
import { expect, test } from "vitest";
import { defineJob } from "../../src/jobs/define-job.ts";
import { onEveryStore } from "../support/stores.ts";
import { heldJob, newWorld } from "../support/world.ts";

onEveryStore((target) => {
  test("[O14] ctx.stopping fires at once when the worker stops, and ctx.signal at the end of the grace", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    const { job, runs } = heldJob(world);
    const worker = await work([job], { queues: { default: 1 } });
    await hf.enqueue(job, { n: 1 });
    await world.until("it to run", () => runs.length === 1);
    const { ctx } = runs[0]!;
    expect(ctx.stopping.aborted).toBe(false);
    const order: string[] = [];
    ctx.stopping.addEventListener("abort", () => order.push("stopping"));
    ctx.signal.addEventListener("abort", () => order.push("signal"));
    const stopped = worker.stop({ timeout: "5s" });
    await world.quiet();
    expect(order).toEqual(["stopping"]);
    expect(ctx.stopping.reason).toMatchObject({ code: "SHUTDOWN" });
    await world.advance("4s");
    expect(ctx.signal.aborted).toBe(false);
    await world.advance("1100ms");
    expect(order).toEqual(["stopping", "signal"]);
    await world.finish(stopped);
  });

  test("[O14] ctx.stopping fires before ctx.signal, whatever aborts it, and for a handler that asks late", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    const { job, runs } = heldJob(world, "held", { timeout: "3s", retry: { attempts: 1 } });
    await work([job], { queues: { default: 2 } });
    for (const n of [1, 2]) await hf.enqueue(job, { n });
    await world.until("both to run", () => runs.length === 2);
    const [one, two] = runs.map(({ ctx }) => ctx);
    const order: string[] = [];
    one!.signal.addEventListener("abort", () => order.push(`signal ${one!.stopping.aborted}`));
    one!.stopping.addEventListener("abort", () => order.push("stopping"));
    await hf.jobs.cancel(one!.id);
    await world.quiet();
    expect(order).toEqual(["stopping", "signal true"]);
    expect(one!.stopping.reason).toMatchObject({ code: "CANCELLED" });
    await world.advance("3500ms");
    expect(two!.stopping.reason).toMatchObject({ code: "TIMEOUT" });
    runs[0]!.finish();
  });

  test("[O14] a pause of its queue, a hold and a quiet worker fire ctx.stopping; the job goes on", async () => {
    const world = await newWorld(target);
    const [a, b] = [await world.client(), await world.client()];
    const { job, runs } = heldJob(world);
    const other = heldJob(world, "other", { queue: "other" });
    const worker = await a.work([job, other.job], { queues: { default: 1, other: 1 } });
    await b.hf.enqueue(other.job, { n: 0 });
    const next = async (how: () => Promise<unknown>, undo: () => Promise<unknown>): Promise<void> => {
      const before = runs.length;
      await b.hf.enqueue(job, { n: before });
      await world.until("it to run", () => runs.length > before);
      const run = runs.at(-1)!;
      expect(run.ctx.stopping.aborted).toBe(false);
      await world.finish(how());
      await world.until("it to be told", () => run.ctx.stopping.aborted, "2s");
      expect(run.ctx.stopping.reason).toMatchObject({ code: "PAUSED" });
      expect(run.ctx.signal.aborted).toBe(false);
      await world.finish(undo());
      await world.advance("1s");
      expect(run.ctx.stopping.aborted, "it stays so").toBe(true);
      run.finish("done");
      await world.until("its end", async () => (await b.hf.jobs.get(run.ctx.id))?.state === "done");
    };
    await next(
      () => b.hf.queues.pause("default"),
      () => b.hf.queues.resume("default"),
    );
    await next(
      () => b.hf.holds.set("incident", { reason: "test", queues: ["default"] }),
      () => b.hf.holds.clear("incident"),
    );
    expect(other.runs[0]!.ctx.stopping.aborted, "of another queue").toBe(false);
    await next(
      () => worker.quiet(),
      () => worker.resume(),
    );
    expect(other.runs[0]!.ctx.stopping.aborted).toBe(true);
    other.runs[0]!.finish();
  });

  test("[O14] a pass that ends early because ctx.stopping fired is not clean", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    const begun = Promise.withResolvers<void>();
    const crawl = defineJob({
      name: "crawl",
      run: (_input: null, ctx) =>
        hf.state.pass(
          "crawl",
          (pass) =>
            new Promise<void>((resolve) => {
              pass.signal.addEventListener("abort", () => resolve());
              begun.resolve();
            }),
          { signal: ctx.stopping },
        ),
    });
    const worker = await work([crawl], { queues: { default: 1 } });
    const { id } = await hf.enqueue(crawl, null);
    await world.finish(begun.promise);
    await world.finish(worker.stop());
    expect(await hf.jobs.get(id)).toMatchObject({ state: "done" });
    expect(await hf.state.passes()).toMatchObject([{ clean: false }]);
  });
});
