/** Counts of queues that are looked at again and again: they stop at a bound, and say so. */
import type { QueueState } from "../../limits/store.ts";
import { grouped } from "../../values/amounts.ts";

/** So far the jobs of a kind are counted by what looks every second: a million take seconds. */
export const MOST_COUNTED = 10_000;

type State = keyof QueueState["counts"];

/** 1,234, or 10,000+ where there may be more. */
export function counted(queues: readonly QueueState[], state: State): string {
  const sum = queues.reduce((total, { counts }) => total + counts[state], 0);
  return `${grouped(sum)}${queues.some(({ atLeast }) => atLeast.includes(state)) ? "+" : ""}`;
}
