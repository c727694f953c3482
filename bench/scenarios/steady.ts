/**
 * Enqueue and drain at once, in two processes. offered: so many jobs/s, and how late they start. flood: 100 enqueues
 * in flight all the time; jobs/s that come out at the other end. snapshot-steady: offered load while another
 * connection holds a snapshot, in slices of ten seconds.
 */
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { type Client, microseconds } from "../adapter.ts";
import type { Context, Figures } from "../context.ts";
import { percentile, type Tally } from "../measure.ts";
import { inFlight } from "./enqueue.ts";

const offeredPerSecond = 500;
const mostCalls = 200;
const filler = "x".repeat(70);

function check(tally: Tally, count: number): void {
  const missing = tally.missing(count);
  if (missing > 0 || tally.doubles > 0) {
    throw new Error(`WRONG: of ${count} jobs ${missing} never ran, ${tally.doubles} ran twice`);
  }
}

/**
 * Enqueues at a rate, whether the calls come back or not, up to so many at once: a system that takes less than it is
 * offered is offered less, and its rate shows it.
 */
async function offer(
  client: Client,
  perSecond: number,
  seconds: number,
  second?: (second: number) => void,
): Promise<number> {
  const calls = new Set<Promise<unknown>>();
  const failures: unknown[] = [];
  const started = performance.now();
  let n = 0;
  for (let told = 0; failures.length === 0;) {
    const elapsed = (performance.now() - started) / 1000;
    if (elapsed >= seconds) break;
    if (Math.floor(elapsed) > told) second?.((told = Math.floor(elapsed)));
    for (; n < elapsed * perSecond && calls.size < mostCalls; n++) {
      const call = client.add({ n, at: microseconds(), text: filler });
      calls.add(call);
      call.then(
        () => calls.delete(call),
        (error: unknown) => failures.push(error),
      );
    }
    await sleep(2);
  }
  await Promise.all(calls);
  return n;
}

/** How many jobs/s are offered: as many as suit the system. */
function offered(context: Context): number {
  return context.system.factor < 0.1 ? offeredPerSecond / 5 : offeredPerSecond;
}

export async function steady(context: Context): Promise<Figures> {
  const { steadySeconds } = context.sizes;
  const perSecond = offered(context);
  const figures: Figures = { offered: perSecond };
  {
    const target = await context.fresh("steady");
    const client = await context.open(target);
    const workers = await context.workers(target, 1);
    await workers.work({ latencies: true });
    context.progress(`${perSecond} jobs/s`);
    const count = await offer(client, perSecond, steadySeconds);
    await workers.reached(count, 120_000);
    const { tally, reports } = await workers.stop();
    check(tally, count);
    const latencies = reports.flatMap(({ latenciesUs }) => latenciesUs.map((us) => us / 1000));
    figures["steadyRate"] = count / steadySeconds;
    figures["steadyP50"] = percentile(latencies, 50);
    figures["steadyP99"] = percentile(latencies, 99);
  }
  const target = await context.fresh("steady");
  const client = await context.open(target);
  const workers = await context.workers(target, 1);
  await workers.work();
  context.progress("flood");
  const started = performance.now();
  const { next } = await inFlight(
    (n) => client.add({ n, at: microseconds(), text: filler }),
    100,
    steadySeconds,
  );
  const offeredFor = (performance.now() - started) / 1000;
  await workers.reached(next, 300_000, (done) => context.progress(`flood ${done}/${next}`));
  figures["flood"] = next / ((performance.now() - started) / 1000);
  figures["floodIn"] = next / offeredFor;
  const { tally } = await workers.stop();
  check(tally, next);
  return figures;
}

export async function snapshotSteady(context: Context): Promise<Figures> {
  const seconds = context.sizes.snapshotSeconds;
  const target = await context.fresh("steady");
  const client = await context.open(target);
  const workers = await context.workers(target, 1);
  const holder = new pg.Client({ connectionString: target.url });
  await holder.connect();
  const slices = new Map<number, number[]>();
  const started = performance.now();
  workers.ran = (_n, latencyUs) => {
    const slice = Math.floor((performance.now() - started) / 10_000);
    const known = slices.get(slice);
    if (known === undefined) slices.set(slice, [latencyUs / 1000]);
    else known.push(latencyUs / 1000);
  };
  await workers.work({ each: true });
  let held = Promise.resolve();
  const count = await offer(client, offered(context), seconds, (second) => {
    context.progress(`second ${second} of ${seconds}`);
    if (second === Math.min(10, Math.floor(seconds / 4))) held = hold(holder);
  });
  await held;
  await workers.reached(count, 300_000);
  const { tally } = await workers.stop();
  check(tally, count);
  await holder.end();
  const figures: Figures = { offered: offered(context) };
  for (const [slice, latencies] of slices) {
    figures[`rate${(slice + 1) * 10}s`] = latencies.length / 10;
    figures[`p99at${(slice + 1) * 10}s`] = percentile(latencies, 99);
  }
  return figures;
}

/** A REPEATABLE READ transaction that has read something: vacuum can remove nothing that died since. */
export async function hold(client: pg.Client): Promise<void> {
  await client.query("begin isolation level repeatable read");
  await client.query("select count(*) from pg_class");
}
