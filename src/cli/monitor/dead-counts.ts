/** Counts of dead jobs by queue, for tables of queues. They use the dashboard's bounded counts, so they never scan the history. */
import type { Holdfast, QueueState } from "../../index.ts";
import type { CappedCount } from "../../operate/browse.ts";
import { operatorOf } from "../../operate/operator.ts";

/** A queue with its count of dead jobs. */
export interface ShownQueue extends QueueState {
  readonly dead: CappedCount;
}

/** Maximum number of queues that are counted one by one. */
const mostAsked = 50;

export async function withDead(hf: Holdfast, queues: readonly QueueState[]): Promise<ShownQueue[]> {
  const { insight } = operatorOf(hf).store;
  const facets = await insight.facets({ states: ["dead"] });
  const found = new Map<string, CappedCount>(facets.queues.map(({ value, ...count }) => [value, count]));
  // The answer has only the most frequent queues, and may have ended early.
  const all = facets.states.find(({ value }) => value === "dead") ?? { count: 0, more: false };
  const seen = [...found.values()].reduce((sum, { count }) => sum + count, 0);
  const certain = !all.more && seen >= all.count;
  const missing = queues.filter(({ name }) => !found.has(name)).map(({ name }) => name);
  if (!certain)
    for (const [i, name] of missing.entries())
      found.set(
        name,
        i < mostAsked
          ? (await insight.tally({ states: ["dead"], queues: [name] })).total
          : { count: 0, more: true },
      );
  return queues.map((queue) => ({ ...queue, dead: found.get(queue.name) ?? { count: 0, more: false } }));
}
