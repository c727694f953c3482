// Schedules whose jobs have a lane: they stand in it like any other job.
import { expect, test } from "vitest";
import { defineSchedule } from "../../src/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { heldJob, newWorld, quickJob } from "../support/world.ts";

onEveryStore((target) => {
  test("[G3] [N5] what a schedule fires into a lane runs, and keeps to the lane's limits", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { job, runs } = heldJob(world, "held", { lane: () => "acme", lanes: { concurrency: 1 } });
    const schedule = defineSchedule({ name: "often", every: "10s", job, input: { n: 1 } });
    await client.work([job], { queues: { default: 5 }, schedules: [schedule] });
    await world.advance("35s", 500);
    expect(runs).toHaveLength(1);
    await client.hf.schedules.pause("often");
    expect((await client.hf.lanes.list({ queue: "default" })).lanes).toMatchObject([
      { key: "acme", running: 1, concurrency: 1 },
    ]);
    const waiting = await client.hf.jobs.count({ state: "ready", lane: "acme" });
    expect(waiting).toBeGreaterThanOrEqual(2);
    for (let n = 0; n <= waiting; n += 1) {
      await world.until(`run ${n}`, () => runs.length === n + 1);
      await world.advance("1s");
      expect(runs).toHaveLength(n + 1);
      runs[n]!.finish();
    }
  });

  test("[G6] [N5] triggered by hand, and with a lane of the schedule's own, it runs in that lane", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { job, runs } = quickJob(world);
    await client.work([job], { queues: { default: 5 } });
    const schedule = defineSchedule({ name: "yearly", cron: "0 0 1 1 *", job, input: { n: 1 }, lane: "own" });
    await client.hf.schedules.put(schedule);
    await client.hf.lanes.pause("default", "own");
    await client.hf.schedules.trigger("yearly");
    await world.advance("3s");
    expect(runs).toHaveLength(0);
    await client.hf.lanes.resume("default", "own");
    await world.until("it to run", () => runs.length === 1);
  });
});
