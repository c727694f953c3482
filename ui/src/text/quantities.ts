// Quantities: numbers, durations and rates, for reading and for forms. Pure.
import type { CappedCount } from "../../../src/dashboard/api/contract.ts";

const numbers = new Intl.NumberFormat("en");

export function number(n: number): string {
  return numbers.format(n);
}

/** "1 job", "2 jobs". */
export function plural(n: number, one: string, many = `${one}s`): string {
  return `${number(n)} ${n === 1 ? one : many}`;
}

/** A duration as an axis mark: "5 s", not "5.0 s". */
export function durationMark(ms: number): string {
  if (ms === 0) return "0";
  return ms >= 1_000 && ms < 10_000 && ms % 1_000 === 0 ? `${ms / 1_000} s` : duration(ms);
}

export function duration(ms: number | null): string {
  if (ms === null) return "—";
  const value = Math.max(0, ms);
  if (value > 0 && value < 1) return "< 1 ms";
  if (value < 1_000) return `${Math.round(value)} ms`;
  if (value < 60_000) return `${(value / 1_000).toFixed(value < 10_000 ? 1 : 0)} s`;
  if (value < 3_600_000) return parts(value, 60_000, "min", 1_000, "s");
  if (value < 86_400_000) return parts(value, 3_600_000, "h", 60_000, "min");
  return parts(value, 86_400_000, "d", 3_600_000, "h");
}

/** "1 min 05 s"; "1 min" if the rest is zero. */
function parts(ms: number, large: number, largeUnit: string, small: number, smallUnit: string): string {
  const rest = Math.floor((ms % large) / small);
  const whole = `${Math.floor(ms / large)} ${largeUnit}`;
  return rest === 0 ? whole : `${whole} ${String(rest).padStart(2, "0")} ${smallUnit}`;
}

/** "50 per min", "1,000 per 10 s". */
export function rate({ limit, perMs }: { limit: number; perMs: number }): string {
  const unit = perMs % 1_000 === 0 && perMs < 60_000 ? `${perMs / 1_000} s` : duration(perMs);
  return `${number(limit)} per ${unit.replace(/^1 (?=\S+$)/, "")}`;
}

const units = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "m"],
  [1_000, "s"],
] as const;

/** A duration in a form, exact to the millisecond: "90s", "5m", "250ms". */
export function written(ms: number): string {
  if (ms === 0) return "0";
  const [length, unit] = units.find(([one]) => ms % one === 0) ?? [1, "ms"];
  return `${ms / length}${unit}`;
}

/** A rate in the notation of `rateOf`. */
export function rateWords({ limit, perMs }: { limit: number; perMs: number }): string {
  return `${limit} per ${written(perMs)}`;
}

/** Parses "100 per 1m". @throws Error with the expected notation */
export function rateOf(text: string | undefined): { limit: number; per: string } | null {
  if (text === undefined) return null;
  const [, limit, per] = /^(\d+)\s*(?:per|\/)\s*([\w.]+)$/.exec(text) ?? [];
  if (limit === undefined || per === undefined) throw new Error("Write a rate as: 100 per 1m");
  return { limit: Number(limit), per };
}

export function count({ count: n, more }: CappedCount): string {
  return more ? `${n >= 1_000 ? `${Math.floor(n / 1_000)}k` : number(n)}+` : number(n);
}

/** A total beside a list: never below the number of listed rows, even if it was capped or is older. */
export function countBeside(all: CappedCount, shown: number): string {
  return count({ ...all, count: Math.max(all.count, shown) });
}

/** A part counted at another moment than its whole: never above it. */
export function within(part: CappedCount, whole: CappedCount): CappedCount {
  if (whole.more) return part;
  const count = Math.min(part.count, whole.count);
  return { count, more: part.more && count < whole.count };
}
