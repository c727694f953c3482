/**
 * `holdfast bench-probe`: a load generator that measures the database at hand: pick-up, end to end, jobs per second.
 *
 * Its jobs have their own queue and name and are not kept. Its own worker runs them, so the figures are those of the database and
 * the network, not of your handlers.
 */
import { sleep, systemClock } from "../../clock.ts";
import { UsageError } from "../../errors.ts";
import { defineJob, type Holdfast } from "../../index.ts";
import { durationMs } from "../../values/duration.ts";
import { idFactory } from "../../values/id.ts";
import type { Command } from "../command.ts";
import type { Context } from "../command-context.ts";
import { duration, grouped, table } from "../text.ts";

const queue = "holdfast-probe";

interface Mark {
  readonly sentAt: number;
  startedAt: number;
}

export interface ProbeReport {
  readonly jobs: number;
  readonly seconds: number;
  readonly jobsPerSecond: number;
  readonly enqueueMs: Percentiles;
  readonly pickupMs: Percentiles;
  readonly endToEndMs: Percentiles;
}

interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

export const benchProbe: Command = {
  name: "bench-probe",
  summary: "put load on this database; measure latency and throughput",
  options: {
    jobs: { type: "string", short: "n", value: "n", help: "Number of jobs; default 1000" },
    rate: { type: "string", value: "n", help: "Enqueues per second; default unlimited" },
    "in-flight": { type: "string", value: "n", help: "Concurrent enqueues; default 10" },
    concurrency: { type: "string", value: "n", help: "Slots of the worker; default 10" },
    work: { type: "string", value: "duration", help: "Duration of each job; default 0" },
  },
  details:
    "Pick-up is the time from the enqueue to the start of the handler; end to end is the time until the end is on disk. The jobs are not kept.",
  json: "{ jobs, seconds, jobsPerSecond, enqueueMs, pickupMs, endToEndMs }, each with p50, p95, p99",
  examples: [
    { line: "bench-probe --jobs 10000", says: "At full speed" },
    { line: "bench-probe --jobs 300 --rate 20", says: "Latency under light load" },
  ],
  run: async (ctx) => {
    const hf = await ctx.client({ migrate: true });
    const report = await probe(ctx, hf);
    ctx.result(report, () => text(report));
  },
};

async function probe(ctx: Context, hf: Holdfast): Promise<ProbeReport> {
  const total = positive(ctx, "jobs", 1_000);
  const inFlight = positive(ctx, "in-flight", 10);
  const rate = ctx.string("rate") === undefined ? Infinity : positive(ctx, "rate", 1);
  const workMs = durationMs(ctx.string("work") ?? 0, "--work");
  const marks = new Map<string, Mark>();
  const [enqueue, pickup, endToEnd]: number[][] = [[], [], []];
  const over = Promise.withResolvers<void>();
  const job = defineJob({
    name: "holdfast-probe",
    queue,
    keep: false,
    run: async (_input: null, { id }) => {
      const mark = marks.get(id);
      if (mark !== undefined) mark.startedAt = performance.now();
      if (workMs > 0) await sleep(systemClock, workMs);
    },
  });
  hf.on("job.done", ({ id }) => {
    const mark = marks.get(id);
    if (mark === undefined) return;
    marks.delete(id);
    pickup!.push(mark.startedAt - mark.sentAt);
    endToEnd!.push(performance.now() - mark.sentAt);
    show(endToEnd!.length, total);
    if (endToEnd!.length === total) over.resolve();
  });
  const show = ctx.progress("probe");
  const worker = hf.work([job], { queues: { [queue]: positive(ctx, "concurrency", 10) } });
  await worker.ready;
  const newId = idFactory(() => Date.now());
  const startedAt = performance.now();
  let sent = 0;
  const sender = async (): Promise<void> => {
    while (sent < total && !ctx.io.signal.aborted) {
      const turn = sent++;
      const dueMs = startedAt + (turn / rate) * 1_000 - performance.now();
      if (dueMs > 0) await sleep(systemClock, dueMs);
      const id = newId();
      const sentAt = performance.now();
      marks.set(id, { sentAt, startedAt: sentAt });
      await hf.enqueue(job, null, { id });
      enqueue!.push(performance.now() - sentAt);
    }
  };
  ctx.io.signal.addEventListener("abort", () => over.resolve(), { once: true });
  await Promise.all(Array.from({ length: Math.min(inFlight, total) }, sender));
  await over.promise;
  const seconds = (performance.now() - startedAt) / 1_000;
  await worker.stop();
  return {
    jobs: endToEnd!.length,
    seconds: round(seconds),
    jobsPerSecond: round(endToEnd!.length / seconds),
    enqueueMs: percentiles(enqueue!),
    pickupMs: percentiles(pickup!),
    endToEndMs: percentiles(endToEnd!),
  };
}

function positive(ctx: Context, option: string, otherwise: number): number {
  const value = ctx.integer(option) ?? otherwise;
  if (value >= 1) return value;
  throw new UsageError("BAD_OPTION", `--${option} takes a number above 0.`);
}

function percentiles(values: readonly number[]): Percentiles {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number): number => round(sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0);
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}

function round(value: number): number {
  return Number(value.toPrecision(4));
}

function text(report: ProbeReport): string {
  const rows: readonly (readonly [string, Percentiles])[] = [
    ["enqueue", report.enqueueMs],
    ["pick-up", report.pickupMs],
    ["end to end", report.endToEndMs],
  ];
  return `${grouped(report.jobs)} jobs in ${report.seconds} s: ${grouped(report.jobsPerSecond)} jobs/s\n\n${table(
    [
      { title: "", cell: ([name]) => name },
      { title: "p50", align: "right", cell: ([, { p50 }]) => duration(p50) },
      { title: "p95", align: "right", cell: ([, { p95 }]) => duration(p95) },
      { title: "p99", align: "right", cell: ([, { p99 }]) => duration(p99) },
    ],
    rows,
  )}`;
}
