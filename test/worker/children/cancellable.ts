// A worker whose one job waits until it is told to stop.
import { defineJob, open } from "../../../src/index.ts";

const [url = "", schema = "holdfast"] = process.argv.slice(2);
const say = (type: string, more: object = {}): void => console.log(JSON.stringify({ type, ...more }));
const job = defineJob({
  name: "cancellable",
  run: (_input, ctx) =>
    new Promise((_, reject) => {
      say("running", { id: ctx.id });
      ctx.signal.addEventListener("abort", () => {
        say("aborted");
        reject(ctx.signal.reason as Error);
      });
    }),
});
const hf = await open(url, { schema });
hf.on("job.cancelled", ({ reason }) => say("cancelled", { reason }));
hf.work([job], { queues: ["default"], lease: "3s", heartbeat: "300ms" });
