/** Durable steps: how many a second, one run alone and a hundred side by side, and what resuming after many costs. */
import type { Context, Figures } from "../context.ts";

export async function steps(context: Context): Promise<Figures> {
  const target = await context.fresh("drain");
  const client = await context.open(target);
  const workflows = await client.workflows?.();
  if (workflows === undefined) return {};
  const figures: Figures = {};
  try {
    await workflows.run(1, 20); // connections and statements are made
    const each = 100;
    for (const runs of [1, 100]) {
      context.progress(`${runs} runs of ${each} steps`);
      const started = performance.now();
      await workflows.run(runs, each);
      figures[`steps, ${runs} at a time`] = (runs * each) / ((performance.now() - started) / 1000);
    }
    for (const done of [0, 1_000]) {
      context.progress(`resuming after ${done} steps`);
      figures[`resume after ${done} steps, ms`] = await workflows.resume(done);
    }
  } finally {
    await workflows.close();
  }
  return figures;
}
