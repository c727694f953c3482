// Testing a delay of a day in no time. `node examples/fake-time.ts`
import assert from "node:assert/strict";
import { defineJob, open } from "holdfast";
import { FakeClock } from "holdfast/testing";

const sent: string[] = [];
const remind = defineJob({
  name: "remind",
  run: async (input: { to: string }) => void sent.push(input.to),
});

const clock = new FakeClock();
const hf = await open("sqlite::memory:", { clock });
const worker = hf.work([remind], { queues: ["default"] });
await worker.ready;

await hf.enqueue(remind, { to: "ada" }, { delay: "1d" });
await clock.advance("23h");
await worker.idle();
assert.deepEqual(sent, []);

await clock.advance("1h");
await worker.idle();
assert.deepEqual(sent, ["ada"]);
console.log("a day has passed");

await worker.stop();
await hf.close();
