/** Lanes, budgets, breakers and temporary limits in the contract's JSON. */
import type { BreakerState, Holdfast, LaneState, TemporaryLimit } from "../../index.ts";
import type { CappedCount, JobTypeTally } from "../../operate/browse.ts";
import type { Operator } from "../../operate/index.ts";
import type { BreakerLine, BudgetLine, LaneLine, LimitUse, TemporaryLimitLine } from "./contract.ts";
import { ms } from "./shapes.ts";

const minuteMs = 60_000;
const mostCounted = 10_000;

export function laneLine({ key, waiting, pausedAt: _, rateOpensAt, ...lane }: LaneState): LaneLine {
  return {
    ...lane,
    lane: key,
    waiting: { count: waiting, more: waiting >= mostCounted },
    rateOpensAt: ms(rateOpensAt),
  };
}

export function temporaryLimitLine({
  kind,
  name,
  key,
  setAt,
  untilAt,
  back,
}: TemporaryLimit): TemporaryLimitLine {
  return { kind, name, lane: key, setAt: setAt.getTime(), untilAt: untilAt.getTime(), back };
}

/** How far limits are used now, and at the end of each of the last minutes. */
export async function readUse(hf: Holdfast, { store, env }: Operator, minutes: number): Promise<LimitUse> {
  const from = Math.floor(env.clock.now() / minuteMs) * minuteMs - (minutes - 1) * minuteMs;
  const at = Array.from({ length: minutes }, (_, i) => from + i * minuteMs);
  const [queues, known] = await Promise.all([
    store.queues.use(),
    hf.metrics.gauges({ name: ["running", "started", "tokens"], since: from }),
  ]);
  // Only queues with limits: the screen shows no others.
  const limited = queues.map(({ name }) => name);
  const jobTypes = limited.length === 0 ? [] : (await store.insight.jobTypes({ queues: limited })).jobTypes;
  const then = (source: string, name: string): (number | null)[] => {
    const points = known.find((one) => one.source === source && one.name === name)?.points ?? [];
    const byAt = new Map(points.map((point) => [point.at.getTime(), point.value]));
    return at.map((one) => byAt.get(one) ?? null);
  };
  const budgets = known.filter(({ source }) => source.startsWith("budget:"));
  return {
    at,
    queues: queues.map((queue) => ({
      ...queue,
      waiting: readyOf(jobTypes.filter((jobType) => jobType.queue === queue.name)),
      runningThen: then(`queue:${queue.name}`, "running"),
      startedThen: then(`queue:${queue.name}`, "started"),
    })),
    budgets: Object.fromEntries(
      budgets.map(({ source }) => [source.slice("budget:".length), then(source, "tokens")]),
    ),
  };
}

export async function readBudgets(hf: Holdfast, { store, env }: Operator): Promise<readonly BudgetLine[]> {
  const [all, definitions] = await Promise.all([hf.budgets.list(), store.definitions.list()]);
  const at = env.clock.now();
  const takers = new Map<string, string>();
  for (const [name, { budget }] of definitions) if (budget) takers.set(name, budget.name);
  const names = [...takers.keys()];
  const jobTypes = names.length === 0 ? [] : (await store.insight.jobTypes({ names })).jobTypes;
  return all.map(({ per, ...budget }) => ({
    ...budget,
    perMs: per,
    at,
    waiting: [...takers.values()].includes(budget.name)
      ? readyOf(jobTypes.filter(({ name }) => takers.get(name) === budget.name))
      : null,
  }));
}

function readyOf(lines: readonly JobTypeTally[]): CappedCount {
  return lines.reduce<CappedCount>(
    (sum, { ready }) => ({ count: sum.count + ready.count, more: sum.more || ready.more }),
    { count: 0, more: false },
  );
}

export function breakerLine({ openedAt, openUntil, ...breaker }: BreakerState): BreakerLine {
  return { ...breaker, openedAt: ms(openedAt), openUntil: ms(openUntil) };
}

const stateOrder = { open: 0, "half-open": 1, closed: 2 } as const;

export function byState(a: BreakerLine, b: BreakerLine): number {
  return stateOrder[a.state] - stateOrder[b.state] || a.key.localeCompare(b.key);
}
