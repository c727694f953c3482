// Decisions of a handler about its failure. `node examples/retries.ts`
import { Dead, defineJob, fixed, open, RetryAfter, silentLogger } from "holdfast";

const fetchPage = defineJob({
  name: "fetch-page",
  retry: { attempts: 3, backoff: fixed("50ms") },
  run: async (input: { status: number[] }, ctx) => {
    const status = input.status[ctx.attempt - 1] ?? 200;
    if (status === 404) throw new Dead("the page does not exist"); // trying again is pointless
    if (status === 503) throw new RetryAfter("100ms", "down for maintenance"); // not before then
    if (status !== 200) throw new Error(`status ${status}`); // again after the backoff
    return `fetched in attempt ${ctx.attempt}`;
  },
});

const hf = await open("sqlite::memory:", { logger: silentLogger });
hf.on("job.failed", ({ attempt, error, delayMs }) =>
  console.log(`attempt ${attempt}: ${error}; again in ${delayMs} ms`),
);
const worker = hf.work([fetchPage], { queues: ["default"] });

for (const status of [[500, 503, 200], [404], [500, 500, 500]]) {
  const { id } = await hf.enqueue(fetchPage, { status });
  await hf.result(id).then(
    (output) => console.log(`done: ${String(output)}`),
    (error: Error & { code?: string }) => console.log(`${error.code}: ${error.message}`),
  );
}

await worker.stop();
await hf.close();
