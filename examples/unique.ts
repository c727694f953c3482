// At most one job for each key that has not ended. `node examples/unique.ts`
import { defineJob, open } from "holdfast";

const reindex = defineJob({
  name: "reindex",
  unique: { key: (input) => input.document, onConflict: "debounce" },
  run: async (input: { document: string; words: number }) => `${input.document}: ${input.words} words`,
});

const hf = await open("sqlite::memory:");
// A user types: each change replaces the input and starts the delay again.
for (const words of [10, 20, 30]) {
  const { status } = await hf.enqueue(reindex, { document: "notes", words }, { delay: "200ms" });
  console.log(status);
}

const worker = hf.work([reindex], { queues: ["default"] });
const { jobs } = await hf.jobs.list({ name: "reindex" });
for (const { id } of jobs) console.log(await hf.result(id));

await worker.stop();
await hf.close();
