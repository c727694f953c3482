// Three nights with a fake clock, one of them without 02:30. `node examples/schedule.ts`
import assert from "node:assert/strict";
import { defineJob, defineSchedule, open } from "holdfast";
import { FakeClock } from "holdfast/testing";

const occurrences: string[] = [];
const report = defineJob({
  name: "report",
  run: async (_input: null, ctx) => void occurrences.push(ctx.schedule?.at.toISOString() ?? "none"),
});
const nightly = defineSchedule({
  name: "nightly",
  cron: "30 2 * * *",
  timezone: "Europe/Berlin",
  job: report,
  input: null,
});

const clock = new FakeClock(Date.UTC(2026, 2, 27, 12)); // the clocks go forward on the 29th
const hf = await open("sqlite::memory:", { clock });
const worker = hf.work([report], { queues: ["default"], schedules: [nightly] });
await worker.ready;
await clock.advance("3d");
await worker.idle();

assert.deepEqual(occurrences, [
  "2026-03-28T01:30:00.000Z",
  "2026-03-29T01:00:00.000Z",
  "2026-03-30T00:30:00.000Z",
]);
console.log(`reports: ${occurrences.join(", ")}`);
await worker.stop();
await hf.close();
