// A handler that was told to stop and is not waited for any longer goes on until it asks for something: then it must be told, or it would
// never come to its end, and keep what it holds.
import { expect, test } from "vitest";
import { defineJob, isHoldfastError } from "../../src/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { newWorld } from "../support/world.ts";

onEveryStore((target) => {
  test("[E8] what a handler asks for after it was given up is answered with the reason why it was stopped", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const told: string[] = [];
    const busy = Promise.withResolvers<void>();
    const job = defineJob({
      name: "deaf",
      timeout: "1s",
      retry: { attempts: 1 },
      run: async (_: object, ctx) => {
        await busy.promise;
        for (const call of [
          () => ctx.step("step", () => 1),
          () => ctx.sleep("sleep", "1s"),
          () => ctx.waitFor("signal"),
          () => ctx.call("other", {}),
        ])
          await call().catch((error: unknown) =>
            told.push(isHoldfastError(error) ? error.code : String(error)),
          );
      },
    });
    await client.work([job], { queues: { default: 1 } });
    const { id } = await client.hf.enqueue(job, {});
    await world.until(
      "it to be given up",
      async () => (await client.hf.jobs.get(id))?.state === "dead",
      "30s",
    );
    busy.resolve();
    await world.until("it to be told", () => told.length === 4, "30s");
    expect(new Set(told)).toEqual(new Set(["TIMEOUT"]));
  });

  test("[E8] a handler that waits for a step while it is given up is told so", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const told: unknown[] = [];
    const job = defineJob({
      name: "waits",
      timeout: "1s",
      retry: { attempts: 1 },
      run: (_: object, ctx) =>
        ctx.step("never", () => new Promise<void>(() => {})).catch((error: unknown) => void told.push(error)),
    });
    await client.work([job], { queues: { default: 1 } });
    const { id } = await client.hf.enqueue(job, {});
    await world.until(
      "it to be given up",
      async () => (await client.hf.jobs.get(id))?.state === "dead",
      "30s",
    );
    await world.until("it to be told", () => told.length === 1, "30s");
  });
});
