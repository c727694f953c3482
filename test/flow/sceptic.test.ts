// Flows as somebody uses them who does not believe in them.
import { expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
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
});
