// Results and progress from another process: what a job came to is known elsewhere at once.
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { defineJob, open, silentLogger } from "../../src/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { waitFor } from "../support/wait.ts";

onEveryStore((target) => {
  test("[N22] a result is told to another client when the job ends, not at its next look; and so is its progress", async () => {
    const fresh = await target.fresh();
    const connect = async () => {
      const hf = await open(fresh.url, { ...fresh.options, logger: silentLogger });
      onTestFinished(() => hf.close());
      return hf;
    };
    const [working, waiting] = [await connect(), await connect()];
    let release: () => void = () => {};
    const job = defineJob({
      name: "slow",
      run: async (n: number, ctx) => {
        await ctx.progress({ at: n });
        await new Promise<void>((resolve) => (release = resolve));
        return { n };
      },
    });
    const worker = working.work([job], { queues: ["default"] });
    await worker.ready;
    const delays: number[] = [];
    for (let n = 0; n < 5; n += 1) {
      const { id } = await working.enqueue(job, n);
      const result = waiting.result(id);
      await waitFor(async () => (await waiting.jobs.get(id))?.progress !== null, { what: "its progress" });
      expect((await waiting.jobs.get(id))?.progress).toEqual({ at: n });
      // By now it looks twice a second only: what comes sooner was told.
      await sleep(1_100);
      const releasedAt = performance.now();
      release();
      expect(await result).toEqual({ n });
      delays.push(performance.now() - releasedAt);
    }
    // By looking alone it would take 250 ms on average; one slow turn of a busy machine is forgiven.
    delays.sort((a, b) => a - b);
    expect(delays[2]).toBeLessThan(100);
  });
});
