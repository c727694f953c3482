/** `enqueue` one by one: jobs/s with 1, 10 and 100 calls in flight, and what a call costs. */
import { microseconds } from "../adapter.ts";
import type { Context, Figures } from "../context.ts";

const filler = "x".repeat(70);

/** Calls `add` with so many in flight for so long; gives calls/s, after a warm-up. */
export async function inFlight(
  add: (n: number) => Promise<unknown>,
  calls: number,
  seconds: number,
  first = 0,
): Promise<{ rate: number; next: number }> {
  let n = first;
  let counted = 0;
  let counting = false;
  const begin = performance.now();
  const countFrom = begin + Math.max(300, seconds * 100);
  const end = countFrom + seconds * 1_000;
  let countedFrom = countFrom;
  const lane = async (): Promise<void> => {
    for (;;) {
      const now = performance.now();
      if (now >= end) return;
      if (!counting && now >= countFrom) {
        counting = true;
        countedFrom = now;
        counted = 0;
      }
      await add(n++);
      counted += 1;
    }
  };
  await Promise.all(Array.from({ length: calls }, lane));
  return { rate: counted / ((performance.now() - countedFrom) / 1000), next: n };
}

export async function enqueue(context: Context): Promise<Figures> {
  const figures: Figures = {};
  for (const calls of [1, 10, 100]) {
    // A table for each, so that one does not pay for the rows of the one before.
    const target = await context.fresh("drain");
    const client = await context.open(target);
    context.progress(`${calls} in flight`);
    const before = await context.counters();
    const cpu = process.cpuUsage();
    const { rate, next } = await inFlight(
      (n) => client.add({ n, at: microseconds(), text: filler }),
      calls,
      context.sizes.enqueueSeconds,
    );
    figures[`one${calls}`] = rate;
    const used = process.cpuUsage(cpu);
    const counters = await context.since(before);
    figures[`one${calls}CpuUs`] = (used.user + used.system) / next;
    if (counters) {
      figures[`one${calls}Wal`] = counters.walBytes / next;
      figures[`one${calls}Queries`] = counters.queries / next;
    }
  }
  return figures;
}
