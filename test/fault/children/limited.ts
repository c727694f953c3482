// A process with workers for tests of limits. Each run writes when it starts and ends, by the machine's monotonic clock,
// which all processes share, in lines that survive SIGKILL.
//
//   node test/fault/children/limited.ts '{"url":"sqlite:…","log":"/tmp/…","workers":2,"queues":{"default":5}}'
import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { defineJob, open, silentLogger } from "../../../src/index.ts";

export interface LimitedSpec {
  readonly url: string;
  readonly options?: { readonly schema?: string };
  readonly log: string;
  readonly workers: number;
  readonly queues: Readonly<Record<string, number>>;
  /** Of the kind "call". */
  readonly budget?: { readonly name: string; readonly tokens?: number };
}

export interface Entry {
  readonly event: "start" | "end";
  /** The queue, or queue and lane: what the limit is of. */
  readonly of: string;
  readonly run: string;
  readonly pid: number;
  /** Milliseconds of the machine's monotonic clock. */
  readonly at: number;
}

const spec = JSON.parse(process.argv[2] ?? "{}") as LimitedSpec;

function note(event: Entry["event"], of: string, run: string): void {
  const at = Number(process.hrtime.bigint() / 1_000n) / 1_000;
  appendFileSync(spec.log, `${JSON.stringify({ event, of, run, pid: process.pid, at } satisfies Entry)}\n`);
}

const nap = defineJob({
  name: "nap",
  maxCrashes: 100,
  run: async (input: { ms: number; of: string }, ctx) => {
    const run = `${ctx.id}:${ctx.token}`;
    note("start", input.of, run);
    await sleep(input.ms);
    note("end", input.of, run);
  },
});

const call = defineJob({
  name: "call",
  maxCrashes: 100,
  ...(spec.budget === undefined ? null : { budget: spec.budget }),
  run: async (input: { ms: number; of: string }, ctx) => {
    const run = `${ctx.id}:${ctx.token}`;
    note("start", input.of, run);
    await sleep(input.ms);
    note("end", input.of, run);
  },
});

/** Fails for as long as the file is there. */
const ping = defineJob({
  name: "ping",
  maxCrashes: 100,
  retry: { attempts: 1_000, backoff: { kind: "fixed", ms: 100, jitter: 0 } },
  run: async (input: { ms: number; of: string; down: string }, ctx) => {
    const run = `${ctx.id}:${ctx.token}`;
    note("start", input.of, run);
    await sleep(input.ms);
    note("end", input.of, run);
    if (existsSync(input.down)) throw new Error("503");
  },
});

/** A run that sleeps between two steps: it holds its place in the lane only while it is awake. */
const walk = defineJob({
  name: "walk",
  maxCrashes: 100,
  timeout: "1m",
  run: async (input: { ms: number; of: string }, ctx) => {
    const run = `${ctx.id}:${ctx.token}`;
    note("start", input.of, run);
    await ctx.step("first", () => sleep(input.ms));
    note("end", input.of, run);
    await ctx.sleep("rest", input.ms * 5);
    note("start", input.of, `${run}:2`);
    await ctx.step("second", () => sleep(input.ms));
    note("end", input.of, `${run}:2`);
  },
});

const hf = await open(spec.url, { ...spec.options, logger: silentLogger });
const workers = Array.from({ length: spec.workers }, (_, n) =>
  hf.work([nap, call, walk, ping], { queues: spec.queues, lease: "3s", heartbeat: "750ms", name: `w${n}` }),
);
await Promise.all(workers.map((worker) => worker.ready));
console.log(JSON.stringify({ type: "ready" }));
process.on("SIGTERM", () => void hf.close());
