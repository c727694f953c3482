// A worker process for fault tests: runs the jobs below and writes down what it does, in lines that survive SIGKILL.
//
//   node test/fault/children/worker.ts '{"url":"sqlite:…","log":"/tmp/…","work":{"queues":{"default":5}}}'
//
// It installs no handler for unhandled rejections: Node then ends the process with 1, and the test sees it.
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { defineJob, type JobContext, open, silentLogger, type WorkOptions } from "../../../src/index.ts";

export interface WorkerSpec {
  readonly url: string;
  readonly options?: { readonly schema?: string };
  /** Where the events go, one JSON object a line. */
  readonly log: string;
  readonly work: WorkOptions;
  /** How many jobs to enqueue beside working. */
  readonly enqueue?: number;
}

const spec = JSON.parse(process.argv[2] ?? "{}") as WorkerSpec;

function say(type: string, details: object = {}): void {
  console.log(JSON.stringify({ type, ...details }));
}

function note(event: string, ctx: JobContext): void {
  const line = {
    event,
    job: ctx.id,
    token: ctx.token,
    attempt: ctx.attempt,
    pid: process.pid,
    at: Date.now(),
  };
  appendFileSync(spec.log, `${JSON.stringify(line)}\n`);
}

/** Keeps the event loop to itself. */
function block(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

const maxCrashes = 100;
const timeout = "10m";
const nap = defineJob({
  name: "nap",
  maxCrashes,
  timeout,
  run: async (input: { ms: number }, ctx) => {
    note("start", ctx);
    await sleep(input.ms);
    note("end", ctx);
    return ctx.token;
  },
});
const blocks = defineJob({
  name: "block",
  maxCrashes,
  timeout,
  run: (input: { ms: number }, ctx) => {
    note("start", ctx);
    block(input.ms);
    note("end", ctx);
    return ctx.token;
  },
});
const deaf = defineJob({
  name: "deaf",
  maxCrashes,
  timeout,
  run: async (input: { ms: number }, ctx) => {
    note("start", ctx);
    const until = Date.now() + input.ms;
    while (Date.now() < until) await sleep(10); // what keeps the process alive, whatever its signal says
    note("end", ctx);
  },
});
const kills = defineJob({
  name: "kill",
  maxCrashes: 3,
  run: async (_input: object, ctx) => {
    note("start", ctx);
    process.kill(process.pid, "SIGKILL");
    await sleep(60_000);
  },
});

const hf = await open(spec.url, { ...spec.options, logger: silentLogger });
hf.on("job.started", ({ id, attempt }) => say("started", { id, attempt }));
hf.on("job.done", ({ id }) => say("done", { id }));
hf.on("lease.lost", ({ id, token }) => {
  appendFileSync(
    spec.log,
    `${JSON.stringify({ event: "lost", job: id, token, pid: process.pid, at: Date.now() })}\n`,
  );
  say("lost", { id, token });
});
hf.on("error", ({ error, during }) => say("error", { during, error: String(error) }));
hf.on("warning", ({ message }) => say("warning", { message }));
hf.on("connection.lost", () => say("connection.lost"));
const worker = hf.work([nap, blocks, deaf, kills], { signals: true, ...spec.work });
await worker.ready;
say("ready", { id: worker.id });
void worker.stopped
  .then(
    () => say("stopped"),
    (error: unknown) => say("failed", { error: String(error) }),
  )
  .then(() => hf.close());

if (spec.enqueue !== undefined) {
  const many = Array.from({ length: spec.enqueue }, () => hf.enqueue(nap, { ms: 5 }));
  const outcomes = await Promise.allSettled(many);
  const failures = outcomes
    .filter((outcome) => outcome.status === "rejected")
    .map(({ reason }) => String(reason));
  const ids = outcomes.filter((outcome) => outcome.status === "fulfilled").map(({ value }) => value.id);
  say("enqueued", { ids, failures });
}
