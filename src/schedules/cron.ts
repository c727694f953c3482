/**
 * When a schedule is due: cron patterns in a time zone, and intervals.
 *
 * A pattern (cron-pattern.ts) says which times a clock must show. What a change of the clocks means for it, by two rules:
 *
 *   a pattern of certain hours   fires once for each wall-clock time: the first time that the clock in that zone
 *   (`30 2 * * *`)               reaches or passes it. A time that is skipped fires at the first instant after the
 *                                gap (several of them: once); a time that comes twice fires when it first comes.
 *   a pattern of every hour      fires whenever the clock shows a matching time. So `0-59/15 * * * *` goes on
 *   (`0 * * * *`)                every 15 minutes of real time, through a gap and through an hour that comes twice.
 *
 * Invariants: `next(t)` is strictly later than t and the earliest such occurrence; the same pattern, zone and instant give
 * the same occurrence in every process; nothing here can be made to run for long by a pattern (lengths are bounded).
 * Not here: what happens in an occurrence (plan.ts), storing it (schedule-rows.ts).
 */
import { badCron, type CronPattern, parseCron } from "./cron-pattern.ts";
import { type Zone, zoneOf } from "./zone.ts";

/** When something is due, again and again. Instants in epoch milliseconds. */
export interface Timing {
  /** The first occurrence later than `after`; null: there is none any more. */
  next(after: number): number | null;
  /** How many occurrences are later than `after` and not later than `to`. */
  count(after: number, to: number): number;
}

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

/** No zone is further from UTC than this, and no change of the clocks is larger than a day (Samoa, 2011). */
const reachMs = 16 * hour + day;

/**
 * The occurrences of a cron pattern of 5 (minute first), 6 (second first) or 7 fields (year last) in a time zone.
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
  return times.everyHour
    ? {
        next: (after) => whenShown(times, zone, after),
        count: (after, to) => countShown(times, zone, after, to),
      }
    : {
        next: (after) => whenReached(times, zone, after),
        count: (after, to) => countReached(times, zone, after, to),
      };
}

/**
 * The occurrences of an interval: `anchor` plus every whole multiple, from the first on.
 *
 * @example
 * intervalTiming(60_000, 0).next(90_000); // 120_000
 */
export function intervalTiming(everyMs: number, anchor: number): Timing {
  const passed = (at: number): number => Math.max(0, Math.floor((at - anchor) / everyMs));
  return {
    next: (after) => anchor + (passed(after) + 1) * everyMs,
    count: (after, to) => Math.max(0, passed(to) - passed(after)),
  };
}

/** The first instant later than `after` at which the clock reaches or passes a matching time for the first time. */
function whenReached(times: WallTimes, zone: Zone, after: number): number | null {
  const wall = times.next(shownUpTo(zone, after));
  return wall === null ? null : firstReached(zone, wall);
}

function countReached(times: WallTimes, zone: Zone, after: number, to: number): number {
  let found = times.count(shownUpTo(zone, after), shownUpTo(zone, to));
  // The times that a gap skips and the one right after it are one occurrence.
  for (const change of zone.changes(after, to)) {
    if (change.after < change.before) continue;
    found -= Math.max(0, times.count(change.at + change.before - 1, change.at + change.after) - 1);
  }
  return found;
}

/** The latest time that the clock has shown: what it shows, or more while an hour comes for the second time. */
function shownUpTo(zone: Zone, at: number): number {
  let latest = at + zone.offsetAt(at);
  for (const change of zone.changes(at - 2 * day, at))
    latest = Math.max(latest, change.at + change.before - 1);
  return latest;
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
      // An occurrence at the very instant of the change is seen with the new offset, hence 1 ms before it.
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

function countShown(times: WallTimes, zone: Zone, after: number, to: number): number {
  let found = 0;
  let from = after;
  let offset = zone.offsetAt(after);
  for (const change of zone.changes(after, to)) {
    found += times.count(from + offset, change.at - 1 + offset);
    from = change.at - 1;
    offset = change.after;
  }
  return found + times.count(from + offset, to + offset);
}

/** The wall-clock times that match a pattern. */
class WallTimes {
  /** Every hour of a matching day has occurrences. */
  readonly everyHour: boolean;
  /** Matching times of a day, in milliseconds since its midnight, as three lists to be combined. */
  readonly #hours: readonly number[];
  readonly #minutes: readonly number[];
  readonly #seconds: readonly number[];
  readonly #pattern: CronPattern;
  /** The day that was asked for last, and the first matching one from it on. */
  #asked = Number.NaN;
  #found: number | null = null;

  constructor(given: unknown) {
    this.#pattern = parseCron(given);
    this.#hours = this.#pattern.hours;
    this.#minutes = this.#pattern.minutes;
    this.#seconds = this.#pattern.seconds;
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

  /** How many matching times are later than `after` and not later than `to`. */
  count(after: number, to: number): number {
    if (to <= after) return 0;
    const first = Math.floor(after / day) * day;
    const last = Math.floor(to / day) * day;
    const perDay = this.#timesUpTo(day - 1);
    let found = 0;
    for (let at = this.#dayFrom(first); at !== null && at <= last; at = this.#dayFrom(at + day)) {
      found += at === last ? this.#timesUpTo(to - last) : perDay;
      if (at === first) found -= this.#timesUpTo(after - first);
    }
    return found;
  }

  /** How many matching times of a day are not later than `time`. */
  #timesUpTo(time: number): number {
    const before = (list: readonly number[], n: number): number => list.filter((each) => each < n).length;
    const [h, m, s] = [
      Math.floor(time / hour),
      Math.floor(time / minute) % 60,
      Math.floor(time / second) % 60,
    ];
    let found = before(this.#hours, h) * this.#minutes.length * this.#seconds.length;
    if (!this.#hours.includes(h)) return found;
    found += before(this.#minutes, m) * this.#seconds.length;
    return this.#minutes.includes(m) ? found + before(this.#seconds, s + 1) : found;
  }

  get #first(): number {
    return (this.#hours[0] ?? 0) * hour + (this.#minutes[0] ?? 0) * minute + (this.#seconds[0] ?? 0) * second;
  }

  /** The first matching day that begins at `from` or later. */
  #dayFrom(from: number): number | null {
    if (this.#asked <= from && (this.#found === null || from <= this.#found)) return this.#found;
    this.#asked = from;
    return (this.#found = this.#pattern.dayFrom(from));
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
