// A job that remembers its steps, sleeps, waits for a signal and calls another job. `node examples/workflow.ts`
import { defineJob, defineSignal, open } from "holdfast";

const packed = defineSignal<{ boxes: number }>({ name: "packed" });
const printLabel = defineJob({
  name: "print-label",
  run: async (input: { order: string; box: number }) => `${input.order}/${input.box}`,
});

const shipOrder = defineJob({
  name: "ship-order",
  run: async (input: { order: string }, ctx) => {
    // Done once, whatever happens afterwards.
    const charge = await ctx.step("charge", () => {
      console.log(`charging for ${input.order}`);
      return { ref: "ch_1" };
    });
    // No slot, no memory, no lease: this could take a year.
    await ctx.sleep("cool down", 100);
    const answer = await ctx.waitFor(packed, { key: input.order, timeout: "3d" });
    if (answer === null) return "never packed";
    const boxes = Array.from({ length: answer.boxes }, (_, n) => n + 1);
    const labels = await ctx.all(boxes.map((box) => ctx.call(printLabel, { order: input.order, box })));
    return `${charge.ref}: ${labels.join(", ")}`;
  },
});

const hf = await open("sqlite::memory:");
const worker = hf.work([shipOrder, printLabel], { queues: ["default"] });
const order = await hf.enqueue(shipOrder, { order: "o-1" });

// Before or after the run waits for it: a signal is kept.
await hf.signal(packed, { key: "o-1", data: { boxes: 2 } });
console.log(await hf.result(order));
const history = await hf.jobs.history(order.id);
for (const { name, state } of history?.steps ?? []) console.log(`${state} ${name}`);

await worker.stop();
await hf.close();
