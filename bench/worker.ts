/**
 * A worker process of the benchmark: opens a system, works when told, and reports what ran. Forked by workers.ts.
 *
 *   open ──▶ "opened" ──"work"──▶ "working", then "count" while it runs ──"stop"──▶ "report", exit
 */
import type { Client, Payload, Run, Target } from "./adapter.ts";
import { microseconds } from "./adapter.ts";
import { Tally } from "./measure.ts";
import { systemOf } from "./systems.ts";

export type Order =
  | { kind: "open"; system: string; target: Target }
  | { kind: "work"; jobMs: number; each: boolean; latencies: boolean; markEvery: number; tellAt: number }
  | { kind: "stop" };

export type Answer =
  | { kind: "opened" }
  | { kind: "working" }
  | { kind: "count"; count: number }
  | { kind: "ran"; n: number; latencyUs: number }
  | { kind: "report"; report: Report }
  | { kind: "failed"; error: string };

export interface Report {
  readonly count: number;
  readonly doubles: number;
  readonly bits: string;
  readonly latenciesUs: readonly number[];
  /** [jobs run, microseconds] for every `markEvery` jobs. */
  readonly marks: readonly (readonly [number, number])[];
  /** When the first job started; 0 if none did. */
  readonly firstAt: number;
  readonly cpuUs: number;
  readonly maxRss: number;
}

const tally = new Tally();
const latenciesUs: number[] = [];
const marks: [number, number][] = [];
let client: Client | undefined;
let stopWork: (() => Promise<void>) | undefined;
let told = 0;
let firstAt = 0;
let maxRss = 0;
let cpuAtStart = process.cpuUsage();

const say = (answer: Answer): void => void process.send?.(answer);
/** A report of a million jobs is not out when `send` returns, and would be lost with the process. */
const said = (answer: Answer): Promise<void> =>
  new Promise((resolve) => process.send?.(answer, undefined, undefined, () => resolve()));

function runner(order: Order & { kind: "work" }): Run {
  const { jobMs, each, latencies, markEvery, tellAt } = order;
  const note = (job: Payload): void => {
    if (firstAt === 0) firstAt = microseconds();
    tally.add(job.n);
    if (tally.count === tellAt) say({ kind: "count", count: (told = tellAt) });
    if (latencies) latenciesUs.push(microseconds() - job.at);
    if (each) say({ kind: "ran", n: job.n, latencyUs: microseconds() - job.at });
    if (markEvery > 0 && tally.count % markEvery === 0) marks.push([tally.count, microseconds()]);
  };
  if (jobMs === 0) return note;
  return (job) => {
    note(job);
    return new Promise((resolve) => setTimeout(resolve, jobMs));
  };
}

async function obey(order: Order): Promise<void> {
  if (order.kind === "open") {
    client = await systemOf(order.system).open(order.target);
    say({ kind: "opened" });
    return;
  }
  if (order.kind === "work") {
    cpuAtStart = process.cpuUsage();
    const look = (): void => {
      maxRss = Math.max(maxRss, process.memoryUsage.rss());
      if (tally.count !== told) say({ kind: "count", count: (told = tally.count) });
    };
    // Each job tells of itself where latency is measured: a look in between would stand in the way of its start.
    if (!order.each) setInterval(look, 10).unref();
    stopWork = await client!.work(runner(order));
    say({ kind: "working" });
    return;
  }
  const cpu = process.cpuUsage(cpuAtStart);
  // What a worker does after it was told to stop counts too: a job that runs then, runs.
  await stopWork?.();
  await said({
    kind: "report",
    report: {
      count: tally.count,
      doubles: tally.doubles,
      bits: tally.toBase64(),
      latenciesUs,
      marks,
      firstAt,
      cpuUs: cpu.user + cpu.system,
      maxRss: Math.max(maxRss, process.memoryUsage.rss()),
    },
  });
  await client?.close();
  process.exit(0);
}

process.on("message", (order: Order) => {
  obey(order).catch((error: unknown) => {
    say({ kind: "failed", error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
    setTimeout(() => process.exit(1), 50);
  });
});
process.on("disconnect", () => process.exit(1));
