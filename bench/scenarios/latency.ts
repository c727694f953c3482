/**
 * From `enqueue` to the start of the handler on an idle worker, with jobs of 0 and 5 ms. The enqueue is called in
 * one process and the job runs in another (latency), or both are in one (latency-local). The pauses between two
 * jobs vary, by at least the system's poll, so that no sample falls in step with a poll.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { microseconds, type Client } from "../adapter.ts";
import type { Context, Figures } from "../context.ts";
import { percentile } from "../measure.ts";

const jobTimes = [0, 5];
const patienceMs = 20_000;

async function samples(
  context: Context,
  client: Client,
  started: (n: number) => Promise<number>,
): Promise<number[]> {
  const { latencySamples, latencySeconds } = context.sizes;
  const latencies: number[] = [];
  const deadline = performance.now() + latencySeconds * 1000;
  const spread = Math.max(100, context.system.pollMs ?? 0);
  await sleep(500);
  for (let n = 0; n < latencySamples && performance.now() < deadline; n++) {
    const start = started(n);
    await client.add({ n, at: microseconds(), text: "x".repeat(70) });
    latencies.push((await start) / 1000);
    context.progress(`${n + 1} of ${latencySamples}`);
    await sleep(20 + Math.random() * spread);
  }
  return latencies;
}

function figuresOf(latencies: readonly number[], suffix: string): Figures {
  return {
    [`p50${suffix}`]: percentile(latencies, 50),
    [`p95${suffix}`]: percentile(latencies, 95),
    [`p99${suffix}`]: percentile(latencies, 99),
    [`samples${suffix}`]: latencies.length,
  };
}

/** Resolves with the latency of job `n` when it starts. */
class Starts {
  readonly #waiting = new Map<number, (latencyUs: number) => void>();

  readonly ran = (n: number, latencyUs: number): void => {
    this.#waiting.get(n)?.(latencyUs);
    this.#waiting.delete(n);
  };

  readonly of = (n: number): Promise<number> =>
    new Promise((resolve, reject) => {
      const late = setTimeout(
        () => reject(new Error(`WRONG: job ${n} did not start within 20 s`)),
        patienceMs,
      );
      this.#waiting.set(n, (latencyUs) => {
        clearTimeout(late);
        resolve(latencyUs);
      });
    });
}

export async function latency(context: Context): Promise<Figures> {
  const figures: Figures = {};
  for (const jobMs of jobTimes) {
    const target = await context.fresh("latency");
    const client = await context.open(target);
    const workers = await context.workers(target, 1);
    const starts = new Starts();
    workers.ran = starts.ran;
    await workers.work({ jobMs, each: true });
    Object.assign(
      figures,
      figuresOf(await samples(context, client, starts.of), jobMs === 0 ? "" : `Of${jobMs}`),
    );
    await workers.stop();
  }
  return figures;
}

export async function latencyLocal(context: Context): Promise<Figures> {
  const target = await context.fresh("latency");
  const client = await context.open(target);
  const starts = new Starts();
  const stop = await client.work((job) => starts.ran(job.n, microseconds() - job.at));
  const figures = figuresOf(await samples(context, client, starts.of), "Local");
  await stop();
  return figures;
}
