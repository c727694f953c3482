// Numbers, times and sizes as people read them. Nothing here is negative: clocks of two machines may differ.
import { amount } from "../language/quantities.ts";
import { clock } from "../data/page-settings.ts";
import { language, t, usual } from "../language/translation.ts";

export {
  amount,
  count,
  countBeside,
  duration,
  number,
  rate,
  rateOf,
  rateWords,
  written,
} from "../language/quantities.ts";

function pad(n: number): string {
  return String(n).padStart(2, "0");
}

export function ago(at: number | null, now: number): string {
  if (at === null) return "—";
  const ms = now - at;
  if (Math.abs(ms) < 1_000) return t("now");
  const [unit, length] = unitOf(Math.abs(ms));
  const n = Math.floor(Math.abs(ms) / length);
  if (!usual) return relative.format(ms >= 0 ? -n : n, unit);
  return ms >= 0 ? t("{n} ago", { n: amount(n, unit) }) : t("in {n}", { n: amount(n, unit) });
}

const relative = new Intl.RelativeTimeFormat(language, { style: "short" });

function unitOf(ms: number): readonly [unit: "second" | "minute" | "hour" | "day", length: number] {
  if (ms < 60_000) return ["second", 1_000];
  if (ms < 3_600_000) return ["minute", 60_000];
  return ms < 86_400_000 ? ["hour", 3_600_000] : ["day", 86_400_000];
}

export function instant(at: number | null): string {
  if (at === null) return "—";
  if (usual) return `${plain(at)}${clock.value === "utc" ? " UTC" : ""}`;
  return dates("medium", "medium", clock.value === "utc" ? "short" : undefined).format(at);
}

/** As logs have it, in the zone that was chosen: "2026-01-31 12:00:00". */
function plain(at: number): string {
  const date = new Date(at);
  if (clock.value === "utc") return date.toISOString().replace("T", " ").slice(0, 19);
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())} ${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
}

type Length = "short" | "medium" | undefined;
const known = new Map<string, Intl.DateTimeFormat>();

/** As the language has it. Made once each: making one costs more than using it a hundred times. */
function dates(day: Length, time: Length, zone?: "short"): Intl.DateTimeFormat {
  const key = `${clock.value} ${day} ${time} ${zone}`;
  let found = known.get(key);
  if (found === undefined) {
    const in_ = clock.value === "utc" ? { timeZone: "UTC" } : {};
    const style =
      zone === undefined
        ? {
            ...(day === undefined ? {} : { dateStyle: day }),
            ...(time === undefined ? {} : { timeStyle: time }),
          }
        : ({
            year: "numeric",
            month: "short",
            day: "numeric",
            hour: "2-digit",
            minute: "2-digit",
            second: "2-digit",
            timeZoneName: zone,
          } as const);
    known.set(key, (found = new Intl.DateTimeFormat(language, { ...in_, ...style })));
  }
  return found;
}

/** A sentence of the server's with its instant as the page shows instants. The first: what comes after may be quoted. */
export function atPageTime(text: string): string {
  return text.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/, (at) => instant(Date.parse(at)));
}

/** Hour and minute. */
export function clockTime(at: number): string {
  return usual ? plain(at).slice(11, 16) : dates(undefined, "short").format(at);
}

/** Hour, minute and second. */
export function clockSecond(at: number): string {
  return usual ? plain(at).slice(11, 19) : dates(undefined, "medium").format(at);
}

/** The day, hour and minute. */
export function minuteOf(at: number | null): string {
  if (at === null) return "—";
  return usual ? plain(at).slice(0, 16) : dates("short", "short").format(at);
}

export function bytes(n: number | null): string {
  if (n === null) return "—";
  if (n < 1_024) return amount(n, "byte");
  const units = ["kilobyte", "megabyte", "gigabyte", "terabyte"] as const;
  let value = n;
  let unit: (typeof units)[number] = "kilobyte";
  for (const next of units) {
    if (value < 1_024) break;
    value /= 1_024;
    unit = next;
  }
  return amount(value, unit, { behind: value < 10 ? 1 : 0 });
}

/** The tail of an id: what differs. */
export function shortId(id: string): string {
  return id.slice(-12);
}

/** "2026-01-31 12:00 to 12:05", of `from..to`; "from 2026-01-31 12:00 on", of `>=from`. */
export function windowText(range: string): string {
  const [, from, to] = /^(\d+)\.\.(\d+)$/.exec(range) ?? [];
  if (from === undefined || to === undefined) {
    const [, sign = "", at] = /^(>=|<=|>|<|=)?(\d+)$/.exec(range) ?? [];
    if (at === undefined) return range;
    return boundWords(sign, instant(Number(at)));
  }
  if (!usual) return dates("short", "medium").formatRange(Number(from), Number(to) + 1);
  const [begin, end] = [plain(Number(from)), plain(Number(to) + 1)];
  const zone = clock.value === "utc" ? " UTC" : "";
  const whole = [begin, end].every((one) => one.slice(16, 19) === ":00");
  const until = whole ? 16 : 19;
  const sameDay = begin.slice(0, 10) === end.slice(0, 10);
  return t("{begin} to {end}{zone}", {
    begin: begin.slice(0, until),
    end: end.slice(sameDay ? 11 : 0, until),
    zone,
  });
}

function boundWords(sign: string, at: string): string {
  if (sign === ">=") return t("at or after {at}", { at });
  if (sign === ">") return t("after {at}", { at });
  if (sign === "<=") return t("at or before {at}", { at });
  return sign === "<" ? t("before {at}", { at }) : t("at {at}", { at });
}
