// What a run remembers goes with its job, also where whole days are dropped.
import { expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { idAt } from "../../src/values/id.ts";
import { onPostgres } from "../support/stores.ts";
import { jobOf, newWorld } from "../support/world.ts";

const lease = { lease: "20d", heartbeat: "9d" } as const;
const day = 86_400_000;

// Only Postgres has days.
onPostgres((target) => {
  test("[N11] a day that is dropped takes its steps and dependencies with it, and leaves those of runs that live", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const today = Math.floor(Date.now() / day) * day;
    world.clock.set(today + 1_000);
    const job = defineJob({ name: "short", run: async (_: null, ctx) => ctx.step("a", () => 1) });
    const long = defineJob({
      name: "long",
      run: async (_: null, ctx) => {
        const first = await ctx.step("a", () => "kept");
        await ctx.waitFor("go");
        return first;
      },
    });
    const first = await one.hf.enqueue(job, null);
    await one.hf.enqueue(job, null, { after: [first.id] });
    const alive = await one.hf.enqueue(long, null);
    const worker = await one.work([job, long], { queues: { default: 5 }, ...lease });
    await world.until("settled", async () => (await one.hf.jobs.count({ state: "done" })) === 2);
    await world.until("waiting", async () => (await jobOf(one, alive.id)).state === "waiting");
    await world.finish(worker.stop());
    expect([first.id, alive.id].every((id) => id >= idAt(today))).toBe(true);
    await world.clock.advance(10 * day);
    expect((await one.hf.prune()).partitions).toBeGreaterThan(0);
    const steps = await world.rows("step");
    expect(
      steps
        .map((row) => [row["job"], String(row["name"])] as const)
        .sort(([, a], [, b]) => a.localeCompare(b)),
    ).toEqual([
      [alive.id, "a"],
      [alive.id, "signal:go"],
    ]);
    expect(await world.rows("dependency")).toEqual([]);
    await one.work([long], { queues: { default: 5 }, ...lease });
    await one.hf.signal("go");
    await world.until("done", async () => (await jobOf(one, alive.id)).state === "done");
    expect((await jobOf(one, alive.id)).output).toBe("kept");
  });
});
