// Leases without a worker: you take jobs and settle each one yourself. `node examples/own-loop.ts`
import { open } from "holdfast";

const hf = await open("sqlite::memory:");
await hf.enqueueMany([1, 2, 3].map((n) => ({ job: "square", input: n })));

for (;;) {
  const leases = await hf.lease({ queues: ["default"], names: ["square"], limit: 2, for: "30s" });
  if (leases.length === 0) break;
  for (const lease of leases) {
    const n = Number(lease.input);
    await lease.done(n * n);
  }
}

const { jobs } = await hf.jobs.list({ name: "square" });
console.log(
  jobs
    .map(({ input, output }) => `${String(input)}² = ${String(output)}`)
    .toSorted()
    .join(", "),
);
await hf.close();
