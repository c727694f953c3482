// Numbers, durations and rates, as people read them and as they write them in forms. Pure: nothing of the page is asked.
import type { CappedCount } from "../../../src/dashboard/api/contract.ts";
import { language, number, t, usual } from "./translation.ts";

export { number };

type Unit =
  | "byte"
  | "kilobyte"
  | "megabyte"
  | "gigabyte"
  | "terabyte"
  | "day"
  | "hour"
  | "minute"
  | "second"
  | "millisecond";

const unitNames: Readonly<Record<Unit, string>> = {
  byte: "B",
  kilobyte: "kB",
  megabyte: "MB",
  gigabyte: "GB",
  terabyte: "TB",
  day: "d",
  hour: "h",
  minute: "min",
  second: "s",
  millisecond: "ms",
};

/** "5 min". `digits`: at the least so many before the point, and just so many behind it. */
export function amount(n: number, unit: Unit, digits: { before?: number; behind?: number } = {}): string {
  const { before = 1, behind = 0 } = digits;
  if (usual) return `${n.toFixed(behind).padStart(before, "0")} ${unitNames[unit]}`;
  const form = { minimumIntegerDigits: before, minimumFractionDigits: behind, maximumFractionDigits: behind };
  return n.toLocaleString(language, { style: "unit", unit, unitDisplay: "short", ...form });
}

/** A duration on an axis, where the marks are whole: "5 s", not "5.0 s". */
export function durationMark(ms: number): string {
  return ms >= 1_000 && ms < 10_000 && ms % 1_000 === 0 ? amount(ms / 1_000, "second") : duration(ms);
}

export function duration(ms: number | null): string {
  if (ms === null) return "—";
  const value = Math.max(0, ms);
  if (value > 0 && value < 1) return `< ${amount(1, "millisecond")}`;
  if (value < 1_000) return amount(Math.round(value), "millisecond");
  if (value < 60_000) return amount(value / 1_000, "second", { behind: value < 10_000 ? 1 : 0 });
  if (value < 3_600_000) return parts(value, 60_000, "minute", 1_000, "second");
  if (value < 86_400_000) return parts(value, 3_600_000, "hour", 60_000, "minute");
  return parts(value, 86_400_000, "day", 3_600_000, "hour");
}

/** "1 min 05 s", and "1 min" where nothing is left over. */
function parts(ms: number, large: number, largeUnit: Unit, small: number, smallUnit: Unit): string {
  const rest = Math.floor((ms % large) / small);
  const whole = amount(Math.floor(ms / large), largeUnit);
  return rest === 0 ? whole : `${whole} ${amount(rest, smallUnit, { before: 2 })}`;
}

/** "50 per min", "1,000 per 10 s". */
export function rate({ limit, perMs }: { limit: number; perMs: number }): string {
  const unit = perMs % 1_000 === 0 && perMs < 60_000 ? amount(perMs / 1_000, "second") : duration(perMs);
  return t("{limit} per {unit}", { limit: number(limit), unit: unit.replace(/^1 (?=\S+$)/, "") });
}

const units = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "m"],
  [1_000, "s"],
] as const;

/** A duration as it is written in forms, to the millisecond: "90s", "5m", "250ms". */
export function written(ms: number): string {
  if (ms === 0) return "0";
  const [length, unit] = units.find(([one]) => ms % one === 0) ?? [1, "ms"];
  return `${ms / length}${unit}`;
}

/** A rate as `rateOf` takes it. */
export function rateWords({ limit, perMs }: { limit: number; perMs: number }): string {
  return `${limit} per ${written(perMs)}`;
}

/** What somebody wrote as a rate: "100 per 1m". @throws Error that says how. */
export function rateOf(text: string | undefined): { limit: number; per: string } | null {
  if (text === undefined) return null;
  const [, limit, per] = /^(\d+)\s*(?:per|\/)\s*([\w.]+)$/.exec(text) ?? [];
  if (limit === undefined || per === undefined) throw new Error(t("Write the rate as 100 per 1m."));
  return { limit: Number(limit), per };
}

export function count({ count: n, more }: CappedCount): string {
  return more ? `${n >= 1_000 ? `${Math.floor(n / 1_000)}k` : number(n)}+` : number(n);
}

/** Of so many that are shown: a count that was cut short, or is older than they are, is never below them. */
export function countBeside(all: CappedCount, shown: number): string {
  return count({ ...all, count: Math.max(all.count, shown) });
}

/** A part of a whole that was counted at another moment: it is never told to be more. */
export function within(part: CappedCount, whole: CappedCount): CappedCount {
  if (whole.more) return part;
  const count = Math.min(part.count, whole.count);
  return { count, more: part.more && count < whole.count };
}
