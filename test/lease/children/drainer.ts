// Two workers in one process that note which jobs they start; at the word "report" they say which, and end.
import { once } from "node:events";
import { defineJob, open } from "../../../src/index.ts";

const [url = "", schema = "holdfast"] = process.argv.slice(2);
const started: string[] = [];
const job = defineJob({ name: "drained", run: (_input, ctx) => void started.push(ctx.id) });
const clients = await Promise.all([open(url, { schema }), open(url, { schema })]);
const workers = clients.map((hf) => hf.work([job], { queues: { default: 4 } }));
await Promise.all(workers.map((worker) => worker.ready));
console.log(JSON.stringify({ type: "working" }));
await once(process.stdin, "data");
process.stdin.destroy();
await Promise.all(clients.map((hf) => hf.close()));
console.log(JSON.stringify({ type: "started", ids: started }));
