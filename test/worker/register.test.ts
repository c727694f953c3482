// O2: a worker registers its names, and the limits of their lanes, before it claims, however often that fails.
import { expect, test } from "vitest";
import { onEveryStore } from "../support/stores.ts";
import { lost, newWorld, quickJob } from "../support/world.ts";

onEveryStore((target) => {
  for (const times of [1, 9])
    test(`[O2] kinds and the limits of their lanes are registered, though the connection was lost ${times} times`, async () => {
      const world = await newWorld(target);
      const one = await world.client();
      const options = { lane: () => "x", lanes: { concurrency: 1 } };
      const { job, runs } = quickJob(world, "quick", options);
      let refused = 0;
      one.tap.around = (verb, call) =>
        verb === "definitions.register" && refused < times ? ((refused += 1), lost()) : call();
      // No job starts before its lane has its limit.
      await one.hf.enqueue(job, { n: 0 });
      await one.work([job], { queues: { default: 4 } });
      await world.until("the job", () => runs.length === 1, "20s");
      expect(refused).toBe(times);
      const two = await world.client();
      await expect(two.hf.enqueue("quick", { n: 1 })).rejects.toMatchObject({ code: "LANE_REQUIRED" });
      const told = one.log.filter(({ message }) => message.includes("could not be registered"));
      expect(told.length).toBeLessThanOrEqual(4);
    });
});
