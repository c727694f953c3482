// The oracle of cron patterns in time zones: a walk over every minute, by the runtime's own calendar. It knows nothing of
// zone.ts, cron.ts or cron-pattern.ts.
import type { Timing } from "../../src/schedules/cron.ts";

export const minute = 60_000;
export const hour = 60 * minute;
const day = 24 * hour;

/** Occurrences in (from, to]. */
export function occurrences(timing: Timing, from: number, to: number): number[] {
  const found: number[] = [];
  for (let at = timing.next(from); at !== null && at <= to; at = timing.next(at)) found.push(at);
  return found;
}

export function iso(instants: readonly number[]): string[] {
  return instants.map((at) => new Date(at).toISOString().replace(":00.000Z", "Z"));
}

export function at(text: string): number {
  return Date.parse(text);
}

interface Shown {
  readonly instant: number;
  /** The wall clock as if it were UTC. */
  readonly wall: number;
}

const formats = new Map<string, Intl.DateTimeFormat>();

export function wallOf(zone: string, instant: number): number {
  let format = formats.get(zone);
  if (format === undefined) {
    format = new Intl.DateTimeFormat("en-GB", {
      timeZone: zone,
      hourCycle: "h23",
      dateStyle: "short",
      timeStyle: "medium",
    });
    formats.set(zone, format);
  }
  const [, d, mo, y, h, mi, s] =
    /^(\d+)\/(\d+)\/(\d+), (\d+):(\d+):(\d+)$/.exec(format.format(instant)) ?? [];
  return Date.UTC(Number(y), Number(mo) - 1, Number(d), Number(h), Number(mi), Number(s));
}

/** Every hour at which the zone's offset has changed since the hour before. */
export function changesOf(zone: string, from: number, to: number): number[] {
  const found: number[] = [];
  // No zone changes its clock and takes it back within two days.
  const stride = 2 * day;
  let before = wallOf(zone, from) - from;
  for (let t = from + stride; t <= to; t += stride) {
    const offset = wallOf(zone, t) - t;
    if (offset === before) continue;
    for (let u = t - stride + hour; u <= t; u += hour) {
      const then = wallOf(zone, u) - u;
      if (then !== before) found.push(u);
      before = then;
    }
  }
  return found;
}

function fieldMatches(field: string, value: number): boolean {
  return field.split(",").some((part) => {
    const [range = "", step = "1"] = part.split("/");
    const [low, high] = range === "*" ? [0, 99] : range.split("-").map(Number);
    const first = low ?? 0;
    const last = high ?? (part.includes("/") ? 99 : first);
    return value >= first && value <= last && (value - first) % Number(step) === 0;
  });
}

/** The values of a field that match, as a mask: the walk asks millions of times. */
function mask(field: string): readonly boolean[] {
  return Array.from({ length: 60 }, (_, value) => fieldMatches(field, value));
}

const compiled = new Map<string, readonly (readonly boolean[])[]>();

function matches(pattern: string, wall: number): boolean {
  const masks = compiled.get(pattern) ?? pattern.split(" ").map(mask);
  compiled.set(pattern, masks);
  const [minutes = [], hours = [], days = [], months = [], weekdays = []] = masks;
  const time = Math.floor(wall / minute) % 1_440;
  if (minutes[time % 60] !== true || hours[Math.floor(time / 60)] !== true) return false;
  const date = new Date(wall);
  const dom = days[date.getUTCDate()] === true;
  const dow = weekdays[date.getUTCDay()] === true || (date.getUTCDay() === 0 && weekdays[7] === true);
  const [, , domField, , dowField] = pattern.split(" ");
  return (
    months[date.getUTCMonth() + 1] === true && (domField === "*" ? dow : dowField === "*" ? dom : dom || dow)
  );
}

/**
 * What must fire in (from, to], given every minute of it and of some time before. A pattern of every hour: whenever the
 * clock shows it. Any other: for each matching time on the clock's dial, the first minute at which the clock showed
 * that time or a later one.
 */
export function oracle(pattern: string, minutes: readonly Shown[], from: number): number[] {
  if (pattern.split(" ")[1] === "*")
    return minutes
      .filter(({ instant, wall }) => instant > from && matches(pattern, wall))
      .map(({ instant }) => instant);
  const due = new Set<number>();
  let reached = (minutes[0] as Shown).wall;
  for (const { instant, wall } of minutes) {
    let passed = false;
    for (let w = reached + minute; w <= wall; w += minute) passed = passed || matches(pattern, w);
    reached = Math.max(reached, wall);
    if (passed && instant > from) due.add(instant);
  }
  return [...due];
}

/** Every minute from a day before `from`. */
export function minutesOf(zone: string, from: number, to: number): Shown[] {
  const found: Shown[] = [];
  for (let instant = from - day; instant <= to; instant += minute)
    found.push({ instant, wall: wallOf(zone, instant) });
  return found;
}

/** Patterns of every kind that a change of the clock can meet. */
export const patterns = [
  "* * * * *",
  "*/2 * * * *",
  "*/7 * * * *",
  "*/15 * * * *",
  "*/30 * * * *",
  "0 * * * *",
  "30 * * * *",
  "59 * * * *",
  "15,45 * * * *",
  "0 */2 * * *",
  "30 */3 * * *",
  "0 */4 * * *",
  "0 0 * * *",
  "1 0 * * *",
  "30 0 * * *",
  "0 1 * * *",
  "30 1 * * *",
  "*/30 1 * * *",
  "*/10 1 * * *",
  "0 2 * * *",
  "15 2 * * *",
  "30 2 * * *",
  "59 2 * * *",
  "* 2 * * *",
  "*/20 2 * * *",
  "0 3 * * *",
  "30 3 * * *",
  "0 1-3 * * *",
  "45 1,2,3 * * *",
  "*/5 0-4 * * *",
  "0 9-17 * * *",
  "*/15 20-23 * * *",
  "30 23 * * *",
  "59 23 * * *",
  "0 12 * * *",
  "0 0 1 * *",
  "30 2 * * 0",
  "30 2 29-31 * *",
  "0 2 * 3,10,11 0",
  "0 2 1-7 * 0",
];
