// The smallest program: one job, enqueued, run, its result awaited. `node examples/hello.ts`
import { defineJob, open } from "holdfast";

const greet = defineJob({
  name: "greet",
  run: async (input: { name: string }) => `Hello, ${input.name}!`,
});

const hf = await open("sqlite::memory:");
const worker = hf.work([greet], { queues: ["default"] });

const job = await hf.enqueue(greet, { name: "Ada" });
console.log(await hf.result(job));

await worker.stop();
await hf.close();
