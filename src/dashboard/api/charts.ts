/**
 * Series of a client in the contract's JSON: throughput, load, deploys, and how long attempts usually take.
 *
 * Not here: the database and the workers' machines (machine-charts.ts).
 */
import type { Holdfast, LoadPoint, MetricPoint, MetricSeries } from "../../index.ts";
import { operatorOf } from "../../operate/index.ts";
import type { Deploy, Load, Series } from "./contract.ts";
import { FEWEST_ATTEMPTS, type Usual } from "./stuck.ts";

const minuteMs = 60_000;
const hourMs = 3_600_000;
const dayMs = 86_400_000;
const mostPoints = 720;
/** Each minute keeps this many queues by name (upkeep/gauges.ts). */
const mostNamed = 20;
/** For charts with a line for each queue. */
const fewerPoints = 240;
/** A chart has a colour for each. */
const mostLines = 4;

interface Range {
  readonly from: number;
  readonly to: number;
}

/** Throughput of all jobs, or of one queue or name. */
export async function readSeries(
  hf: Holdfast,
  { queue, name, from, to }: Range & { readonly queue?: string; readonly name?: string },
): Promise<Series> {
  const step = stepFor(from, to, mostPoints);
  const [all] = await hf.metrics.series({ since: from, until: to, step, queue, name });
  return { ...seriesOf(all?.points ?? [], from, to, step), deploys: await deploysIn(hf, from, to) };
}

/** Ready jobs and slots; of one queue its ready jobs alone. */
export async function readLoad(
  hf: Holdfast,
  { from, to, queue }: Range & { readonly queue?: string | undefined },
): Promise<Load> {
  const stepMs = stepFor(from, to, fewerPoints);
  const points = await hf.metrics.load({ since: from, until: to, step: stepMs });
  return queue === undefined ? loadOf(points, from, to, stepMs) : loadIn(queue, points, from, to, stepMs);
}

/** Builds by when their first worker started, oldest first. Minutes are kept 30 days: an older build counts as new. */
export async function deploysIn(hf: Holdfast, from: number, to: number): Promise<readonly Deploy[]> {
  const seen = await hf.metrics.gauges({ name: "release", since: Math.max(0, to - 30 * dayMs), until: to });
  return seen
    .map(({ source, points }) => ({ release: source, at: points[0]?.at.getTime() ?? 0 }))
    .filter(({ at }) => at >= from)
    .sort((a, b) => a.at - b.at)
    .slice(-50);
}

/** How long attempts of these jobs took in the last 24 hours. */
export async function usualOf(hf: Holdfast, names: readonly string[]): Promise<ReadonlyMap<string, Usual>> {
  const now = operatorOf(hf).env.clock.now();
  const known = new Map<string, Usual>();
  const learn = (found: readonly MetricSeries[]): void => {
    for (const { name, points } of found) {
      // Midnight may split a day into two points: the one with more attempts counts.
      const [most] = [...points].sort((a, b) => b.ran.count - a.ran.count);
      if (name !== null && most?.ran.p95 !== null && most !== undefined)
        known.set(name, { count: most.ran.count, p95Ms: most.ran.p95 });
    }
  };
  // An ended hour is one row for each name. Only names without enough attempts there are read by the minute.
  const until = Math.floor(now / hourMs) * hourMs - hourMs;
  learn(await hf.metrics.series({ name: names, since: now - dayMs, until, step: dayMs, by: "name" }));
  const others = names.filter((name) => (known.get(name)?.count ?? 0) < FEWEST_ATTEMPTS);
  const half = hourMs / 2;
  if (others.length > 0)
    learn(await hf.metrics.series({ name: others, since: now - half, step: half, by: "name" }));
  return known;
}

/** Every step of the range has a point: zero where nothing happened, null where nothing was measured. Pure. */
export function seriesOf(
  points: readonly MetricPoint[],
  from: number,
  to: number,
  stepMs: number,
): Omit<Series, "deploys"> {
  const { at, found } = stepped(points, from, to, stepMs);
  const percentiles = (of: "ran" | "waited") => ({
    p50: found.map((point) => point?.[of].p50 ?? null),
    p95: found.map((point) => point?.[of].p95 ?? null),
    p99: found.map((point) => point?.[of].p99 ?? null),
  });
  return {
    stepMs,
    at,
    done: found.map((point) => point?.done ?? 0),
    retried: found.map((point) => point?.failed ?? 0),
    dead: found.map((point) => point?.dead ?? 0),
    waitMs: percentiles("waited"),
    runMs: percentiles("ran"),
  };
}

/** The fullest queues by name, and the rest together. Pure. */
export function loadOf(points: readonly LoadPoint[], from: number, to: number, stepMs: number): Load {
  const { at, found } = stepped(points, from, to, stepMs);
  const sums = new Map<string, number>();
  for (const { queues } of points)
    for (const [name, ready] of Object.entries(queues)) sums.set(name, (sums.get(name) ?? 0) + ready);
  const fullest = [...sums]
    .sort(([a, most], [b, more]) => more - most || (a < b ? -1 : 1))
    .slice(0, mostLines)
    .map(([name]) => name);
  const readyOf = (point: LoadPoint | undefined, name: string): number | null =>
    (point?.ready ?? null) === null ? null : (point?.queues[name] ?? 0);
  return {
    stepMs,
    at,
    queues: fullest.map((name) => ({ name, ready: found.map((point) => readyOf(point, name)) })),
    other: found.map((point) => {
      const shown = fullest.reduce((sum, name) => sum + (readyOf(point, name) ?? 0), 0);
      const all = point?.ready ?? null;
      return all === null ? null : Math.max(0, Math.round((all - shown) * 10) / 10);
    }),
    running: found.map((point) => point?.running ?? null),
    slots: found.map((point) => point?.slots ?? null),
  };
}

/** What waited in one queue. Only the 20 fullest of a minute are known by name: beyond them it is not known. Pure. */
export function loadIn(
  queue: string,
  points: readonly LoadPoint[],
  from: number,
  to: number,
  stepMs: number,
): Load {
  const { at, found } = stepped(points, from, to, stepMs);
  const ready = found.map((point) => {
    if ((point?.ready ?? null) === null) return null;
    const names = Object.keys(point?.queues ?? {});
    return point?.queues[queue] ?? (names.length >= mostNamed ? null : 0);
  });
  const other = found.map((point, i) => {
    const all = point?.ready ?? null;
    return all === null ? null : Math.max(0, Math.round((all - (ready[i] ?? 0)) * 10) / 10);
  });
  const unknown = found.map(() => null);
  return { stepMs, at, queues: [{ name: queue, ready }], other, running: unknown, slots: unknown };
}

/** Every step of the range, with its point where there is one. */
function stepped<Point extends { readonly at: Date }>(
  points: readonly Point[],
  from: number,
  to: number,
  stepMs: number,
): { at: number[]; found: (Point | undefined)[] } {
  const byAt = new Map(points.map((point) => [point.at.getTime(), point]));
  const at = stepsOf(from, to, stepMs);
  return { at, found: at.map((one) => byAt.get(one)) };
}

/** The length of a step: whole minutes, at most `most` steps in the range. Pure. */
export function stepFor(from: number, to: number, most: number): number {
  return minuteMs * Math.ceil((to - from) / minuteMs / most);
}

/** When each step begins. Pure. */
export function stepsOf(from: number, to: number, stepMs: number): number[] {
  const at: number[] = [];
  for (let one = Math.floor(from / stepMs) * stepMs; one < to; one += stepMs) at.push(one);
  return at;
}
