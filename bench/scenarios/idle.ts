/** An idle worker with default settings: queries and transactions per second, CPU time. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Context, Figures } from "../context.ts";

export async function idle(context: Context): Promise<Figures> {
  const seconds = context.sizes.idleSeconds;
  const target = await context.fresh("idle");
  const workers = await context.workers(target, 1);
  const started = performance.now();
  await workers.work();
  // Start-up (migrations, first looks, statistics that come late) is not idling.
  await sleep(5_000);
  const before = await context.counters();
  const from = performance.now();
  for (let left = seconds; left > 0; left--) {
    context.progress(`${left} s left`);
    await sleep(1_000);
  }
  const elapsed = (performance.now() - from) / 1000;
  const counters = await context.since(before);
  const whole = (performance.now() - started) / 1000;
  const { reports } = await workers.stop();
  return {
    idleCpuMs: reports[0]!.cpuUs / 1000 / whole,
    ...(counters && {
      idleQueries: counters.queries / elapsed,
      idleTransactions: counters.transactions / elapsed,
      idleWal: counters.walBytes / elapsed,
    }),
  };
}
