// Numbers, times and sizes as people read them. Nothing here is negative: clocks of two machines may differ.
import type { CappedCount } from "../../src/dashboard/contract.ts";
import { clock } from "./settings.ts";

const whole = new Intl.NumberFormat("en");

export function number(n: number): string {
  return whole.format(n);
}

export function count({ count: n, more }: CappedCount): string {
  return more ? `${n >= 1_000 ? `${Math.floor(n / 1_000)}k` : number(n)}+` : number(n);
}

export function duration(ms: number | null): string {
  if (ms === null) return "—";
  const value = Math.max(0, ms);
  if (value < 1) return value === 0 ? "0 ms" : "< 1 ms";
  if (value < 1_000) return `${Math.round(value)} ms`;
  if (value < 60_000) return `${(value / 1_000).toFixed(value < 10_000 ? 1 : 0)} s`;
  if (value < 3_600_000) return parts(value, 60_000, "min", 1_000, "s");
  if (value < 86_400_000) return parts(value, 3_600_000, "h", 60_000, "min");
  return parts(value, 86_400_000, "d", 3_600_000, "h");
}

/** "1 min 05 s", and "1 min" where nothing is left over. */
function parts(ms: number, large: number, largeName: string, small: number, smallName: string): string {
  const rest = Math.floor((ms % large) / small);
  return `${Math.floor(ms / large)} ${largeName}${rest === 0 ? "" : ` ${pad(rest)} ${smallName}`}`;
}

/** "50 per min", "1,000 per 10 s". */
export function rate({ limit, perMs }: { limit: number; perMs: number }): string {
  const unit = perMs % 1_000 === 0 && perMs < 60_000 ? `${perMs / 1_000} s` : duration(perMs);
  return `${number(limit)} per ${unit.replace(/^1 (?=\S+$)/, "")}`;
}

/** What somebody wrote as a rate: "100 per 1m". @throws Error that says how. */
export function rateOf(text: string | undefined): { limit: number; per: string } | null {
  if (text === undefined) return null;
  const [, limit, per] = /^(\d+)\s*(?:per|\/)\s*(\w+)$/.exec(text) ?? [];
  if (limit === undefined || per === undefined) throw new Error("Write the rate as 100 per 1m.");
  return { limit: Number(limit), per };
}

function pad(n: number): string {
  return String(n).padStart(2, "0");
}

export function ago(at: number | null, now: number): string {
  if (at === null) return "—";
  const ms = now - at;
  const text = short(Math.abs(ms));
  if (Math.abs(ms) < 1_000) return "now";
  return ms >= 0 ? `${text} ago` : `in ${text}`;
}

function short(ms: number): string {
  if (ms < 60_000) return `${Math.floor(ms / 1_000)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min`;
  if (ms < 86_400_000) return `${Math.floor(ms / 3_600_000)} h`;
  return `${Math.floor(ms / 86_400_000)} d`;
}

export function instant(at: number | null): string {
  if (at === null) return "—";
  const date = new Date(at);
  if (clock.value === "utc") return `${date.toISOString().replace("T", " ").slice(0, 19)} UTC`;
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())} ${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
}

/** Hour and minute. */
export function clockTime(at: number): string {
  return instant(at).slice(11, 16);
}

export function bytes(n: number | null): string {
  if (n === null) return "—";
  if (n < 1_024) return `${n} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let value = n;
  let unit = "B";
  for (const next of units) {
    if (value < 1_024) break;
    value /= 1_024;
    unit = next;
  }
  return `${value.toFixed(value < 10 ? 1 : 0)} ${unit}`;
}

export function plural(n: number, noun: string): string {
  return `${number(n)} ${noun}${n === 1 ? "" : "s"}`;
}

/** The tail of an id: what differs. */
export function shortId(id: string): string {
  return id.slice(-12);
}

/** "2026-01-31 12:00 to 12:05", of `from..to`. */
export function windowText(range: string): string {
  const [, from, to] = /^(\d+)\.\.(\d+)$/.exec(range) ?? [];
  if (from === undefined || to === undefined) return range;
  const [begin, end] = [instant(Number(from)), instant(Number(to) + 1)];
  const sameDay = begin.slice(0, 10) === end.slice(0, 10);
  return `${begin.slice(0, 16)} to ${sameDay ? end.slice(11, 16) : end.slice(0, 16)}`;
}
