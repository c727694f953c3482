// Formats of numbers, times and sizes. Negative durations are shown as zero, because clocks of two machines may differ.
import { clock } from "../data/page-settings.ts";

export {
  count,
  countBeside,
  duration,
  number,
  plural,
  rate,
  rateOf,
  rateWords,
  written,
} from "../text/quantities.ts";

function pad(n: number): string {
  return String(n).padStart(2, "0");
}

export function ago(at: number | null, now: number): string {
  if (at === null) return "—";
  const ms = now - at;
  if (Math.abs(ms) < 1_000) return "now";
  const [unit, length] = unitOf(Math.abs(ms));
  const amount = `${Math.floor(Math.abs(ms) / length)} ${unit}`;
  return ms >= 0 ? `${amount} ago` : `in ${amount}`;
}

function unitOf(ms: number): readonly [unit: string, length: number] {
  if (ms < 60_000) return ["s", 1_000];
  if (ms < 3_600_000) return ["min", 60_000];
  return ms < 86_400_000 ? ["h", 3_600_000] : ["d", 86_400_000];
}

export function instant(at: number | null): string {
  if (at === null) return "—";
  return `${plain(at)}${clock.value === "utc" ? " UTC" : ""}`;
}

/** In the chosen time zone, as logs have it: "2026-01-31 12:00:00". */
function plain(at: number): string {
  const date = new Date(at);
  if (clock.value === "utc") return date.toISOString().replace("T", " ").slice(0, 19);
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())} ${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
}

/** A sentence of the server with its first instant in the page's format. Later ones may be quoted. */
export function atPageTime(text: string): string {
  return text.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/, (at) => instant(Date.parse(at)));
}

export function clockTime(at: number): string {
  return plain(at).slice(11, 16);
}

export function clockSecond(at: number): string {
  return plain(at).slice(11, 19);
}

/** Date, hour and minute. */
export function minuteOf(at: number | null): string {
  return at === null ? "—" : plain(at).slice(0, 16);
}

export function bytes(n: number | null): string {
  if (n === null) return "—";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let value = n;
  while (value >= 1_024 && units.length > 1) {
    value /= 1_024;
    units.shift();
  }
  return `${value.toFixed(value !== n && value < 10 ? 1 : 0)} ${units[0]}`;
}

/** The last digits of an id; the first are shared by jobs of the same time. */
export function shortId(id: string): string {
  return id.slice(-12);
}

/** "2026-01-31 12:00 to 12:05" for `from..to`; "at or after 2026-01-31 12:00" for `>=from`. */
export function windowText(range: string): string {
  const [, from, to] = /^(\d+)\.\.(\d+)$/.exec(range) ?? [];
  if (from === undefined || to === undefined) {
    const [, sign = "", at] = /^(>=|<=|>|<|=)?(\d+)$/.exec(range) ?? [];
    if (at === undefined) return range;
    return boundWords(sign, instant(Number(at)));
  }
  const [begin, end] = [plain(Number(from)), plain(Number(to) + 1)];
  const zone = clock.value === "utc" ? " UTC" : "";
  const whole = [begin, end].every((one) => one.slice(16, 19) === ":00");
  const until = whole ? 16 : 19;
  const sameDay = begin.slice(0, 10) === end.slice(0, 10);
  return `${begin.slice(0, until)} to ${end.slice(sameDay ? 11 : 0, until)}${zone}`;
}

function boundWords(sign: string, at: string): string {
  if (sign === ">=") return `at or after ${at}`;
  if (sign === ">") return `after ${at}`;
  if (sign === "<=") return `at or before ${at}`;
  return sign === "<" ? `before ${at}` : `at ${at}`;
}
