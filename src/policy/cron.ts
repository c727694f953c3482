/**
 * When a schedule is due: cron patterns in a time zone, and intervals.
 *
 * croner parses patterns and knows which days match. What it does at a change of the clocks is not ours (11.0 runs
 * `0,30 1 * * *` four times where the hour comes twice), so zones are handled here, by two rules:
 *
 *   a pattern of certain hours   fires once for each wall-clock time: the first time that the clock in that zone
 *   (`30 2 * * *`)               reaches or passes it. A time that is skipped fires at the first instant after the
 *                                gap (several of them: once); a time that comes twice fires when it first comes.
 *   a pattern of every hour      fires whenever the clock shows a matching time. So `0-59/15 * * * *` goes on
 *   (`0 * * * *`)                every 15 minutes of real time, through a gap and through an hour that comes twice.
 *
 * Invariants: `next(t)` is strictly later than t and the earliest such slot; the same pattern, zone and instant give
 * the same slot in every process; nothing here can be made to run for long by a pattern (lengths are bounded).
 * Not here: what happens in a slot (policy/schedule.ts), storing it (sql/schedules.ts).
 */
import { Cron, CronPattern } from "croner";
import { shown, UsageError } from "../errors.ts";
import { type Zone, zoneOf } from "./zone.ts";

/** When something is due, again and again. Instants in epoch milliseconds. */
export interface Timing {
  /** The first slot later than `after`; null: there is none any more. */
  next(after: number): number | null;
}

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;
const longestPattern = 256;

/** No zone is further from UTC than this, and no change of the clocks is larger than a day (Samoa, 2011). */
const reachMs = 16 * hour + day;

/** Words for patterns of five fields. */
export const nicknames: Readonly<Record<string, string>> = {
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
  "@monthly": "0 0 1 * *",
  "@weekly": "0 0 * * 0",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@hourly": "0 * * * *",
};

/**
 * The slots of a cron pattern of 5 (minute first), 6 (second first) or 7 fields (year last) in a time zone.
 *
 * @throws UsageError BAD_CRON, BAD_TIMEZONE
 * @example
 * cronTiming("30 2 * * *", "Europe/Berlin").next(Date.now());
 */
export function cronTiming(pattern: unknown, timezone: unknown): Timing {
  const times = new WallTimes(pattern);
  const zone = zoneOf(timezone, "timezone");
  if (times.next(Date.UTC(1970, 0, 1) - second) === null)
    throw badCron(pattern, "no date matches it, so it would never fire");
  return {
    next: (after) => (times.everyHour ? whenShown(times, zone, after) : whenReached(times, zone, after)),
  };
}

/**
 * The slots of an interval: `anchor` plus every whole multiple, from the first on.
 *
 * @example
 * intervalTiming(60_000, 0).next(90_000); // 120_000
 */
export function intervalTiming(everyMs: number, anchor: number): Timing {
  return {
    next: (after) => anchor + Math.max(1, Math.floor((after - anchor) / everyMs) + 1) * everyMs,
  };
}

/** The first instant later than `after` at which the clock reaches or passes a matching time for the first time. */
function whenReached(times: WallTimes, zone: Zone, after: number): number | null {
  // Times that the clock has shown already are over, also while an hour comes for the second time.
  let shownUpTo = after + zone.offsetAt(after);
  for (const change of zone.changes(after - 2 * day, after))
    shownUpTo = Math.max(shownUpTo, change.at + change.before - 1);
  const wall = times.next(shownUpTo);
  return wall === null ? null : firstReached(zone, wall);
}

/** The first instant at which the clock shows `wall` or a later time. */
function firstReached(zone: Zone, wall: number): number {
  const from = wall - reachMs;
  let start = from;
  let offset = zone.offsetAt(from);
  for (const change of zone.changes(from, wall + reachMs)) {
    const at = Math.max(start, wall - offset);
    if (at < change.at) return at;
    start = change.at;
    offset = change.after;
  }
  return Math.max(start, wall - offset);
}

/** The first instant later than `after` at which the clock shows a matching time. */
function whenShown(times: WallTimes, zone: Zone, after: number): number | null {
  let from = after;
  for (;;) {
    const offset = zone.offsetAt(from);
    const wall = times.next(from + offset);
    const until = Math.min(wall === null ? Infinity : wall - offset, from + 3 * day);
    const [change] = zone.changes(from, until);
    if (change !== undefined) {
      // A slot at the very instant of the change is seen with the new offset, hence 1 ms before it.
      if (wall !== null && wall - offset < change.at) return wall - offset;
      const wallThen = times.next(change.at + change.after - 1);
      if (wallThen === change.at + change.after) return change.at;
      from = change.at;
    } else if (wall === null) return null;
    else if (wall - offset <= from + 3 * day) return wall - offset;
    // Nothing matches until then, whatever the clocks do in between: a change brings back a day at the most.
    else from = wall - offset - 2 * day;
  }
}

/** The wall-clock times that match a pattern. */
class WallTimes {
  /** Every hour of a matching day has slots. */
  readonly everyHour: boolean;
  /** Matching times of a day, in milliseconds since its midnight, as three lists to be combined. */
  readonly #hours: readonly number[];
  readonly #minutes: readonly number[];
  readonly #seconds: readonly number[];
  readonly #days: Cron;
  /** The day that was asked for last, and the first matching one from it on. */
  #asked = Number.NaN;
  #found: number | null = null;

  constructor(given: unknown) {
    const fields = fieldsOf(given);
    try {
      const parsed = new CronPattern(fields.join(" "), "UTC");
      this.#hours = set(parsed.hour);
      this.#minutes = set(parsed.minute);
      this.#seconds = set(parsed.second);
      this.#days = new Cron(["0 0 0", ...fields.slice(3)].join(" "), { timezone: "UTC", paused: true });
    } catch (cause) {
      throw badCron(given, cause instanceof Error ? cause.message.replace(/^CronPattern: /, "") : "", cause);
    }
    this.everyHour = this.#hours.length === 24;
  }

  /** The first matching time later than `wall`. */
  next(wall: number): number | null {
    const today = Math.floor(wall / day) * day;
    if (this.#dayFrom(today) === today) {
      const time = this.#timeAfter(wall - today);
      if (time !== null) return today + time;
    }
    const later = this.#dayFrom(today + day);
    return later === null ? null : later + this.#first;
  }

  get #first(): number {
    return (this.#hours[0] ?? 0) * hour + (this.#minutes[0] ?? 0) * minute + (this.#seconds[0] ?? 0) * second;
  }

  /** The first matching day that begins at `from` or later. */
  #dayFrom(from: number): number | null {
    if (this.#asked <= from && (this.#found === null || from <= this.#found)) return this.#found;
    this.#asked = from;
    const found = this.#days.nextRun(new Date(from - second));
    return (this.#found = found === null ? null : found.getTime());
  }

  /** The first matching time of a day later than `time`. */
  #timeAfter(time: number): number | null {
    const [h, m, s] = [
      Math.floor(time / hour),
      Math.floor((time % hour) / minute),
      Math.floor((time % minute) / second),
    ];
    if (this.#hours.includes(h)) {
      const laterSecond = this.#minutes.includes(m) ? this.#seconds.find((each) => each > s) : undefined;
      if (laterSecond !== undefined) return h * hour + m * minute + laterSecond * second;
      const laterMinute = this.#minutes.find((each) => each > m);
      if (laterMinute !== undefined)
        return h * hour + laterMinute * minute + (this.#seconds[0] ?? 0) * second;
    }
    const laterHour = this.#hours.find((each) => each > h);
    if (laterHour === undefined) return null;
    return laterHour * hour + (this.#minutes[0] ?? 0) * minute + (this.#seconds[0] ?? 0) * second;
  }
}

/** Seven fields: second, minute, hour, day of month, month, day of week, year. */
function fieldsOf(given: unknown): string[] {
  if (typeof given !== "string") throw badCron(given, "it is not a string");
  if (given.length > longestPattern) throw badCron(given, `it is longer than ${longestPattern} characters`);
  const fields = (nicknames[given.trim().toLowerCase()] ?? given.trim()).split(/\s+/);
  if (fields.length === 5) fields.unshift("0");
  if (fields.length === 6) fields.push("*");
  if (fields.length === 7) return fields;
  throw badCron(given, "it needs 5 fields, 6 with seconds first, or 7 with the year last");
}

function set(marks: readonly number[]): number[] {
  return marks.flatMap((mark, index) => (mark === 0 ? [] : [index]));
}

function badCron(pattern: unknown, why: string, cause?: unknown): UsageError {
  return new UsageError(
    "BAD_CRON",
    `cron must be a pattern such as "30 2 * * *" (minute, hour, day of month, month, day of week); got ${shown(pattern)}: ${why}.`,
    cause === undefined ? {} : { cause },
  );
}
