// A job that survives `kill -9`. Start it, kill it while it counts, start it again: `node examples/kill-me.ts`
//
// The key makes the second start find the job of the first one instead of enqueuing another.
import { setTimeout as sleep } from "node:timers/promises";
import { defineJob, open } from "holdfast";

const count = defineJob({
  name: "count",
  run: async (input: { to: number }, ctx) => {
    for (let n = 1; n <= input.to; n++) {
      console.log(`${n} of ${input.to}`);
      await ctx.progress(n);
      await sleep(500, undefined, { signal: ctx.signal });
    }
    return `counted to ${input.to}`;
  },
});

const hf = await open(process.env["HOLDFAST_URL"] ?? "sqlite:kill-me.db");
const job = await hf.enqueue(count, { to: 10 }, { key: "the only one" });
console.log(job.status === "duplicate" ? `job ${job.id} was there already` : `enqueued job ${job.id}`);
console.log(`to kill this process: kill -9 ${process.pid}`);

// A short lease, so that the wait after a kill is short. The default is 30 s.
const worker = hf.work([count], { queues: ["default"], lease: "3s" });
console.log(await hf.result(job));

await worker.stop();
await hf.close();
