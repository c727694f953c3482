/**
 * What limits cost a drain: the same no-op jobs free, in 1,000 lanes of concurrency 10 each, and in a queue that has a
 * limit over the cluster. The target: limited jobs reach at least half the rate of free ones.
 */
import type { Context, Figures } from "../context.ts";

const lanes = 1_000;

export async function limited(context: Context): Promise<Figures> {
  const count = context.scaled(context.sizes.jobs);
  const rate = async (what: string, options: { lanes?: number }, limit?: () => object): Promise<number> => {
    context.progress(what);
    const target = await context.fresh("drain");
    const client = await context.open(target);
    if (limit !== undefined || options.lanes !== undefined) await client.limit?.(limit?.() ?? {});
    await context.fill(client, count, options);
    await context.analyze(target);
    return (await context.drain(client, target, count)).rate;
  };
  const free = await rate("free", {});
  const laned = await rate(`${lanes} lanes`, { lanes });
  const queued = await rate("a queue's limit", {}, () => ({ concurrency: 1_000 }));
  return { jobs: count, free, laned, queued, lanedKept: laned / free, queuedKept: queued / free };
}
