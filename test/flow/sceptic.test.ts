// Flows as somebody uses them who does not believe in them.
import { expect, test } from "vitest";
import * as z from "zod";
import { defineJob, isHoldfastError, Throttled } from "../../src/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { jobOf, newWorld } from "../support/world.ts";

const lease = { lease: "20d", heartbeat: "9d" } as const;
const queues = { default: 5 } as const;

onEveryStore((target) => {
  test("[N11] a sleep of no time, or until an instant that has passed, keeps its place in the history", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const job = defineJob({
      name: "naps",
      run: async (_: null, ctx) => {
        await ctx.sleep("none", 0);
        await ctx.step("a", () => 1);
        await ctx.sleep("past", new Date(0));
        await ctx.step("b", () => 2);
        await ctx.sleep("long", "1h");
        return ctx.step("c", () => 3);
      },
    });
    await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, null);
    await world.until("asleep", async () => (await jobOf(one, id)).waitsFor === "sleep");
    await world.advance("61m", "1m");
    await world.until("done", async () => (await jobOf(one, id)).state === "done");
    expect((await jobOf(one, id)).output).toBe(3);
  });

  test("[N11] a handler that catches its shutdown and asks for more does not spoil the run: it goes on with the next worker", async () => {
    const world = await newWorld(target);
    const [one, two] = [await world.client(), await world.client()];
    let first = true;
    const cleaned: string[] = [];
    const job = defineJob({
      name: "stubborn",
      run: async (_: null, ctx) => {
        try {
          await ctx.step("long", async ({ signal }) => {
            if (!first) return "long";
            first = false;
            return new Promise((_resolve, reject) => {
              signal.addEventListener("abort", () => reject(signal.reason as Error));
            });
          });
        } catch (error) {
          await ctx.step("clean", () => cleaned.push("clean"));
          throw error;
        }
        await ctx.sleep("nap", "1m");
        return "whole";
      },
    });
    const worker = await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, null);
    await world.until("in the step", async () => !first);
    await world.finish(worker.stop({ timeout: 100 }));
    expect(await jobOf(one, id)).toMatchObject({ state: "ready", attempt: 0 });
    await two.work([job], { queues, ...lease });
    await world.advance("70s", "1s");
    await world.until("done", async () => (await jobOf(one, id)).state === "done");
    expect((await jobOf(one, id)).output).toBe("whole");
    expect(cleaned).toEqual([]);
  });

  test("[N11] a decision that a step throws is the job's, also where the handler catches it and asks for more", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    let tries = 0;
    const job = defineJob({
      name: "decided",
      run: async (_: null, ctx) => {
        await ctx
          .step("limited", () => {
            tries += 1;
            if (tries === 1) throw new Throttled("10s");
            return tries;
          })
          .catch(() => undefined);
        await ctx.step("next", () => 1);
        await ctx.sleep("nap", "1m");
        return "whole";
      },
    });
    await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, null);
    await world.until("throttled", async () => (await one.hf.jobs.why(id)).reason === "throttled");
    await world.advance("90s", "1s");
    await world.until("done", async () => (await jobOf(one, id)).state === "done");
    expect((await jobOf(one, id)).output).toBe("whole");
  });

  test("[N11] a call that cannot be made fails like a step: the handler may go on without it, now and after a sleep", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const child = defineJob({ name: "child", input: z.object({ n: z.number() }), run: async ({ n }) => n });
    const codes: unknown[] = [];
    const job = defineJob({
      name: "caller",
      run: async (_: null, ctx) => {
        const missed = await ctx
          .call(child, { n: "one" } as never)
          .catch((error: unknown) => (isHoldfastError(error) ? error.code : String(error)));
        codes.push(missed);
        await ctx.step("a", () => 1);
        await ctx.sleep("nap", "1m");
        return ctx.call(child, { n: 2 });
      },
    });
    await one.work([job, child], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, null);
    await world.until("asleep", async () => (await jobOf(one, id)).waitsFor === "sleep");
    await world.advance("70s", "1s");
    await world.until("done", async () => (await jobOf(one, id)).state === "done");
    expect((await jobOf(one, id)).output).toBe(2);
    expect(new Set(codes)).toEqual(new Set(["INPUT_INVALID"]));
    const history = await one.hf.jobs.history(id);
    expect(history?.steps.find(({ state }) => state === "failed")?.error).toMatch(/input/);
  });
});
