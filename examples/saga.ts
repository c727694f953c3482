// Steps with compensations, and a job that fails. `node examples/saga.ts`
import { Dead, defineJob, open } from "holdfast";

const trip = defineJob({
  name: "trip",
  run: async (input: { car: boolean }, ctx) => {
    const book = (what: string) =>
      ctx.step(what, () => (console.log(`booked ${what}`), { ref: `${what}-1` }), {
        undo: ({ ref }) => console.log(`gave back ${ref}`),
      });
    await book("flight");
    await book("hotel");
    if (!input.car) throw new Dead("no car left");
    return (await book("car")).ref;
  },
});

const hf = await open("sqlite::memory:");
const worker = hf.work([trip], { queues: ["default"] });
const { id } = await hf.enqueue(trip, { car: false });
await hf.result(id).catch((error: { code: string }) => console.log(error.code));

await worker.stop();
await hf.close();
