// Cancelling a job that runs: its signal aborts, and the job ends as cancelled. `node examples/cancel.ts`
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { defineJob, open } from "holdfast";

const started = new EventTarget();
const exportTable = defineJob({
  name: "export-table",
  run: async (input: { table: string }, ctx) => {
    started.dispatchEvent(new Event("started"));
    await sleep(60_000, undefined, { signal: ctx.signal });
    return input.table;
  },
});

const hf = await open("sqlite::memory:");
const worker = hf.work([exportTable], { queues: ["default"] });
const [{ id }] = await Promise.all([hf.enqueue(exportTable, { table: "events" }), once(started, "started")]);

console.log(await hf.jobs.cancel(id));
await hf.result(id).catch((error: Error & { code?: string }) => console.log(error.code));
console.log((await hf.jobs.get(id))?.state);

await worker.stop();
await hf.close();
