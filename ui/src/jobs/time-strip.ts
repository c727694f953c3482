// The time range of the bars above a job list. Pure.
import type { ListFilter } from "./job-filter.ts";

const minute = 60_000;
const hour = 60 * minute;
/** The server keeps series this long. */
const longest = 31 * 24 * hour - hour;
/** An hour has 61 minutes, because it begins and ends within one. */
const mostBars = 90;

/** The last hour; or the filter's own range (creation or end), with as much again on both sides. */
export function stretchOf({ since, ended }: ListFilter, now: number): { from: number; to: number } {
  const [from = Number.NaN, to = now] = (ended ?? "").match(/\d+/g)?.map(Number) ?? [];
  const window = /^(>=?)?\d+(\.\.\d+)?$/.test(ended ?? "") && from < now ? { from, to } : null;
  const created = Number(since ?? Number.NaN);
  const begin = window?.from ?? (created < now ? created : now - hour);
  const end = Math.min(now, window?.to ?? now);
  // A range within the last hour is shown in it.
  if (begin >= now - hour) return { from: now - hour, to: now };
  const beside = window === null ? 0 : Math.max(end - begin, hour / 4);
  const last = Math.min(now, end + beside);
  return { from: Math.floor(Math.max(0, begin - beside, last - longest)), to: Math.ceil(last) };
}

export interface Strip {
  readonly stepMs: number;
  readonly at: readonly number[];
  readonly sums: readonly number[];
  readonly bad: readonly number[];
}

/** The series summed into a few bars. */
export function stripOf(series: {
  readonly stepMs: number;
  readonly at: readonly number[];
  readonly done: readonly number[];
  readonly retried: readonly number[];
  readonly dead: readonly number[];
}): Strip {
  const each = Math.max(1, Math.ceil(series.at.length / mostBars));
  const gathered = (value: (i: number) => number): number[] => {
    const sums: number[] = [];
    for (let i = 0; i < series.at.length; i += 1) {
      const bar = Math.floor(i / each);
      sums[bar] = (sums[bar] ?? 0) + value(i);
    }
    return sums;
  };
  const bad = gathered((i) => (series.dead[i] ?? 0) + (series.retried[i] ?? 0));
  const done = gathered((i) => series.done[i] ?? 0);
  return {
    stepMs: series.stepMs * each,
    at: series.at.filter((_, i) => i % each === 0),
    sums: done.map((n, i) => n + (bad[i] ?? 0)),
    bad,
  };
}
