// Results and progress from another process: what a job came to is known elsewhere at once.
import { expect, onTestFinished, test } from "vitest";
import { defineJob, open, type OpenOptions, silentLogger } from "../../src/index.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { onEveryStore } from "../support/stores.ts";
import { waitFor } from "../support/wait.ts";

onEveryStore((target) => {
  test("[N22] a result is told to another client when the job ends, not at its next look; and so is its progress", async () => {
    const fresh = await target.fresh();
    const connect = async (options: OpenOptions = {}) => {
      const hf = await open(fresh.url, { ...fresh.options, logger: silentLogger, ...options });
      onTestFinished(() => hf.close());
      return hf;
    };
    // The one that waits has a clock that hardly moves: it never comes to look by itself.
    const clock = new FakeClock(Date.now());
    const [working, waiting] = [await connect(), await connect({ clock })];
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
    const { id } = await working.enqueue(job, 7);
    await waitFor(async () => (await waiting.jobs.get(id))?.progress !== null, { what: "its progress" });
    expect((await waiting.jobs.get(id))?.progress).toEqual({ at: 7 });
    const result = waiting.result(id);
    const watched = async (): Promise<boolean> => {
      const [row] = await fresh.query(`select watched from ${fresh.table("ready")}`);
      return row?.["watched"] === true || row?.["watched"] === 1;
    };
    await waitFor(watched, { what: "its end to be watched" });
    await waitFor(() => waiting.stats().then(() => clock.pending > 0), { what: "the next look to be timed" });
    await clock.advance(45);
    release();
    expect(await result).toEqual({ n: 7 });
  });
});
