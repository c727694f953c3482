// Many jobs, and one that follows when all have ended. `node examples/batch.ts`
import { Dead, defineJob, open } from "holdfast";

const fetchPage = defineJob({
  name: "fetch-page",
  run: async (input: { page: number }) => {
    if (input.page === 3) throw new Dead("page 3 does not exist");
    return input.page;
  },
});
const report = defineJob({
  name: "report",
  run: async (input: { title: string }) => `${input.title} is ready`,
});

const hf = await open("sqlite::memory:");
const worker = hf.work([fetchPage, report], { queues: ["default"] });
const pages = [1, 2, 3].map((page) => ({ job: fetchPage, input: { page } }));

const lenient = await hf.batch(pages, {
  then: { job: report, input: { title: "What we have" } },
  onDead: "continue",
});
const strict = await hf.batch(pages, { then: { job: report, input: { title: "All or nothing" } } });
if (lenient.then !== null) console.log(await hf.result(lenient.then));
if (strict.then !== null)
  await hf.result(strict.then).catch((error: { code: string }) => console.log(error.code));

await worker.stop();
await hf.close();
