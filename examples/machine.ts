// A job in named steps, each typed by the next; it fails, is fixed, and resumes at the failed step. `node examples/machine.ts`
import { defineMachine, finish, fixed, next, open } from "holdfast";

let paperJam = true;
const invoice = defineMachine({
  name: "invoice",
  start: "sum",
  steps: {
    sum: {
      run: async (data: { items: number[] }) => {
        console.log("summing up");
        return next("print", { total: data.items.reduce((sum, item) => sum + item, 0) }, { delay: 50 });
      },
    },
    print: {
      retry: { attempts: 2, backoff: fixed(10) },
      run: async (data: { total: number }) => {
        if (paperJam) throw new Error("paper jam");
        return finish({ printed: `total ${data.total}` });
      },
    },
  },
});

const hf = await open("sqlite::memory:");
const worker = hf.work([invoice], { queues: ["default"] });
const { id } = await hf.enqueue(invoice, { items: [1, 2, 3] });
await hf.result(id).catch((error: Error) => console.log(error.message.replace(id, "…")));
console.log(`failed at step: ${(await hf.jobs.get(id))?.step}`);

paperJam = false;
await hf.jobs.retry(id);
console.log(await hf.result(id));

await worker.stop();
await hf.close();
