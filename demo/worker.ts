/**
 * One of the demo's worker processes: `node demo/worker.ts <database> <log file> <name>`.
 *
 * Its log is written with O_APPEND, one write for each line, so that it is whole up to the moment of a SIGKILL.
 */
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Dead, type JobContext, open } from "holdfast";
import * as jobs from "./jobs.ts";

const [database = "", logFile = "", name = "worker"] = process.argv.slice(2);
// Without its parent it has nothing to do: no demo leaves processes behind.
process.on("disconnect", () => process.exit());

function log(event: jobs.LogEntry["event"], job: { id: string; name: string }, note = ""): void {
  const entry: jobs.LogEntry = { at: Date.now(), worker: name, event, id: job.id, name: job.name, note };
  appendFileSync(logFile, `${JSON.stringify(entry)}\n`);
}

/** The work of a handler: takes its time, then has its effect, which here is a line in the log. */
async function work(ctx: JobContext, ms: number): Promise<void> {
  await sleep(ms, undefined, { signal: ctx.signal });
  log("effect", ctx);
}

const between = (low: number, high: number): number => low + Math.random() * (high - low);

const handlers = [
  jobs.sendMail.handle((_input, ctx) => work(ctx, between(100, 220))),
  jobs.rebuildIndex.handle((_input, ctx) => work(ctx, between(120, 200))),
  jobs.resetPassword.handle((_input, ctx) => work(ctx, 100)),
  jobs.syncAccount.handle((_input, ctx) => work(ctx, 700)),
  jobs.sendReminder.handle((_input, ctx) => work(ctx, 120)),
  jobs.chargeCard.handle(async ({ failures }, ctx) => {
    await sleep(100, undefined, { signal: ctx.signal });
    if (ctx.attempt <= failures) throw new Error("the card network timed out");
    await work(ctx, 100);
  }),
  jobs.parseUpload.handle(async ({ file, hopeless }, ctx) => {
    await sleep(100, undefined, { signal: ctx.signal });
    if (hopeless) throw new Dead(`${file} is not a spreadsheet`);
    throw new Error(`row 17 of ${file} has no date`);
  }),
  jobs.exportData.handle(async (_input, ctx) => {
    await work(ctx, 60_000);
  }),
  jobs.transcodeVideo.handle(async ({ seconds }, ctx) => {
    const steps = seconds * 5;
    for (let step = 1; step <= steps; step++) {
      await sleep(200, undefined, { signal: ctx.signal });
      await ctx.progress(Math.round((step / steps) * 100));
    }
    await work(ctx, 0);
  }),
];

const hf = await open(`sqlite:${database}`);

hf.on("job.started", (job) => log("started", job, `attempt ${job.attempt}`));
hf.on("job.done", (job) => log("done", job));
hf.on("job.failed", (job) => log("failed", job, `${job.error}; again in ${job.delayMs} ms`));
hf.on("job.dead", (job) => log("dead", job, job.error));
hf.on("job.cancelled", (job) => log("cancelled", job, job.reason));
hf.on("job.crashed", (job) => log("crashed", job));

const worker = hf.work(handlers, { queues: { default: 4, video: 1 }, name, shutdown: "5s", ...jobs.lease });
await worker.ready;
process.send?.("ready");
await worker.stopped;
await hf.close();
process.disconnect?.();
