/**
 * Cron patterns: the text of a pattern as sets of numbers, and the days that match.
 *
 *   field         numbers     besides `*`, `?`, lists, ranges and steps
 *   second        0–59
 *   minute        0–59
 *   hour          0–23
 *   day of month  1–31        `L` last day, `15W` the weekday nearest to the 15th, `LW` the last weekday
 *   month         1–12        JAN–DEC
 *   day of week   0–7         SUN–SAT (0 and 7 are Sunday); `5#2` second Friday, `5L` last Friday; `+MON`: see below
 *   year          any
 *
 * A day matches by its date *or* its weekday where both fields are given, and by both where the weekday begins with `+`.
 * A range of weekdays may go over the end of the week (`FRI-MON`); every other range goes upwards.
 * Invariants: pure; calendar days only, without time zones; a pattern is short, a search ends after 400 years, in which
 * every combination of date and weekday occurs, and looks at each kind of year once, so no pattern can make this run for long.
 * Not here: zones and changes of the clocks (cron.ts), patterns in words (cron-words.ts).
 */
import { shown, UsageError } from "../errors.ts";

/** A pattern that was read. Times in ascending order. */
export interface CronPattern {
  readonly seconds: readonly number[];
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  /** The first matching day from `midnight` on, as the UTC midnight at which it begins; null: there is none. */
  dayFrom(midnight: number): number | null;
}

interface Field {
  readonly name: string;
  readonly least: number;
  readonly most: number;
  /** Names of its numbers, from the least on. */
  readonly names?: readonly string[];
  /** The length of the cycle that a range may go around. */
  readonly cycle?: number;
}

const second: Field = { name: "second", least: 0, most: 59 };
const minute: Field = { name: "minute", least: 0, most: 59 };
const hour: Field = { name: "hour", least: 0, most: 23 };
const date: Field = { name: "day of month", least: 1, most: 31 };
const month: Field = {
  name: "month",
  least: 1,
  most: 12,
  names: ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
};
const weekday: Field = {
  name: "day of week",
  least: 0,
  most: 7,
  names: ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
  cycle: 7,
};
/** From 0, so that steps count multiples: every fourth year is a leap year, mostly. */
const year: Field = { name: "year", least: 0, most: 9_999 };

const longestPattern = 256;
/** The calendar repeats after 400 years, weekdays included. */
const cycleYears = 400;
/** Stands for the last day of a month among its days. */
const last = 32;
/** A weekday of every week of a month, and the last one in it, as bits: bit n - 1 is the nth. */
const everyWeek = 0b011111;
const lastWeek = 0b100000;

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
 * Reads a pattern of 5 (minute first), 6 (second first) or 7 fields (year last).
 *
 * @throws UsageError BAD_CRON
 * @example
 * parseCron("0 0 L * *").dayFrom(Date.UTC(2026, 1, 1)); // Date.UTC(2026, 1, 28)
 */
export function parseCron(given: unknown): CronPattern {
  if (typeof given !== "string") throw badCron(given, "it is not a string");
  if (given.length > longestPattern) throw badCron(given, `it is longer than ${longestPattern} characters`);
  const word = given.trim().toLowerCase();
  const text = Object.hasOwn(nicknames, word) ? (nicknames[word] as string) : given.trim();
  const fields = text.split(/\s+/);
  if (fields.length === 5) fields.unshift("0");
  if (fields.length === 6) fields.push("*");
  if (fields.length !== 7)
    throw badCron(given, "it needs 5 fields, 6 with seconds first, or 7 with the year last");
  const [s = "", mi = "", h = "", d = "", mo = "", w = "", y = ""] = fields.map((field) =>
    field.replaceAll("?", "*").toUpperCase(),
  );
  try {
    const days = new Days({ date: d, month: mo, weekday: w, year: y });
    return {
      seconds: sorted(numbersOf(s, second)),
      minutes: sorted(numbersOf(mi, minute)),
      hours: sorted(numbersOf(h, hour)),
      dayFrom: (midnight) => days.from(midnight),
    };
  } catch (error) {
    throw error instanceof Unreadable ? badCron(given, error.message) : error;
  }
}

/** The error for a pattern that cannot be used. */
export function badCron(pattern: unknown, why: string): UsageError {
  return new UsageError(
    "BAD_CRON",
    `cron must be a pattern such as "30 2 * * *" (minute, hour, day of month, month, day of week); got ${shown(pattern)}: ${why}.`,
  );
}

/** The error for a pattern that was good once. */
export function passedCron(pattern: unknown): UsageError {
  return badCron(pattern, "its years have passed, so it would never fire");
}

/** Why a field cannot be read. */
class Unreadable extends Error {}

class Days {
  readonly #months: ReadonlySet<number>;
  /** Null: every year. */
  readonly #years: ReadonlySet<number> | null;
  readonly #dates = new Set<number>();
  /** Days whose nearest weekday matches. */
  readonly #nearest = new Set<number>();
  /** For each weekday, in which weeks of a month it matches. */
  readonly #weeks: number[] = Array.from({ length: 7 }, () => 0);
  readonly #match: "date" | "weekday" | "either" | "both";

  constructor(fields: { date: string; month: string; weekday: string; year: string }) {
    this.#months = numbersOf(fields.month, month);
    this.#years = fields.year === "*" ? null : numbersOf(fields.year, year);
    for (const part of fields.date.split(",")) this.#addDate(part);
    const both = fields.weekday.startsWith("+");
    const weekdays = both ? fields.weekday.slice(1) : fields.weekday;
    for (const part of weekdays.split(",")) this.#addWeekday(part);
    if (weekdays === "*") this.#match = "date";
    else if (fields.date === "*") this.#match = "weekday";
    else this.#match = both ? "both" : "either";
  }

  #addDate(part: string): void {
    if (part === "L") this.#dates.add(last);
    else if (part === "LW") this.#nearest.add(last);
    else if (/^\d+W$/.test(part)) this.#nearest.add(numberOf(part.slice(0, -1), date));
    else for (const n of partOf(part, date)) this.#dates.add(n);
  }

  #addWeekday(part: string): void {
    const [, days = part, nth] = /^(.+?)(?:#([1-5L])|L)$/.exec(part) ?? [];
    const weeks =
      days === part ? everyWeek : nth === undefined || nth === "L" ? lastWeek : 1 << (Number(nth) - 1);
    for (const n of partOf(days, weekday)) this.#weeks[n % 7] = (this.#weeks[n % 7] ?? 0) | weeks;
  }

  /** The first matching day from a midnight on. */
  from(midnight: number): number | null {
    const start = new Date(midnight);
    const firstYear = start.getUTCFullYear();
    const lastYear = this.#years === null ? firstYear + cycleYears : year.most;
    let m = start.getUTCMonth();
    let d = start.getUTCDate();
    // Years of the same length that begin on the same weekday have the same days: there are 14 kinds.
    const inVain = new Set<number>();
    for (let y = firstYear; y <= lastYear; y++, m = 0, d = 1) {
      if (this.#years?.has(y) === false) continue;
      const kind = kindOfYear(y);
      if (inVain.has(kind)) continue;
      if (m === 0 && d === 1) inVain.add(kind);
      for (; m < 12; m++, d = 1) {
        if (!this.#months.has(m + 1)) continue;
        const length = new Date(Date.UTC(y, m + 1, 0)).getUTCDate();
        const begins = new Date(Date.UTC(y, m, 1)).getUTCDay();
        for (; d <= length; d++) if (this.#matches(d, begins, length)) return Date.UTC(y, m, d);
      }
    }
    return null;
  }

  /** Whether a day of a month matches that begins on the weekday `begins` and has `length` days. */
  #matches(d: number, begins: number, length: number): boolean {
    switch (this.#match) {
      case "date":
        return this.#matchesDate(d, begins, length);
      case "weekday":
        return this.#matchesWeekday(d, begins, length);
      case "either":
        return this.#matchesDate(d, begins, length) || this.#matchesWeekday(d, begins, length);
      case "both":
        return this.#matchesDate(d, begins, length) && this.#matchesWeekday(d, begins, length);
    }
  }

  #matchesDate(d: number, begins: number, length: number): boolean {
    if (this.#dates.has(d) || (d === length && this.#dates.has(last))) return true;
    for (const n of this.#nearest) {
      const wanted = n === last ? length : n;
      if (wanted <= length && d === nearestWeekday(wanted, begins, length)) return true;
    }
    return false;
  }

  #matchesWeekday(d: number, begins: number, length: number): boolean {
    const weeks = this.#weeks[(begins + d - 1) % 7] ?? 0;
    if ((weeks & (1 << (Math.ceil(d / 7) - 1))) !== 0) return true;
    return (weeks & lastWeek) !== 0 && d + 7 > length;
  }
}

/** The weekday on which a year begins, and whether it is a leap year, as one number. */
function kindOfYear(y: number): number {
  const leap = new Date(Date.UTC(y, 1, 29)).getUTCDate() === 29;
  return new Date(Date.UTC(y, 0, 1)).getUTCDay() + (leap ? 7 : 0);
}

/** The day from Monday to Friday that is nearest to a day, within its month. */
function nearestWeekday(d: number, begins: number, length: number): number {
  const on = (begins + d - 1) % 7;
  if (on === 6) return d === 1 ? 3 : d - 1;
  if (on === 0) return d === length ? d - 2 : d + 1;
  return d;
}

/** The numbers of a list. */
function numbersOf(text: string, field: Field): Set<number> {
  const found = new Set<number>();
  for (const part of new Set(text.split(","))) for (const n of partOf(part, field)) found.add(n);
  return found;
}

/** The numbers of one part of a list: `5`, `1-5`, `*`, and every so many of them (`1-5/2`, `*\/2`). */
function partOf(part: string, field: Field): number[] {
  const { name, least, most, cycle } = field;
  const [, from = "", to, by] = /^(\*|\w+)(?:-(\w+))?(?:\/(\d+))?$/.exec(part) ?? [];
  if (from === "" || (from === "*" && to !== undefined))
    throw new Unreadable(part === "" ? `its ${name} is empty` : `its ${name} has ${shown(part)}`);
  if (from !== "*" && to === undefined) {
    if (by !== undefined)
      throw new Unreadable(`its ${name} has ${shown(part)}: a step needs a range, or * before it`);
    return [numberOf(from, field)];
  }
  const first = from === "*" ? least : numberOf(from, field);
  let end = to === undefined ? least + sizeOf(field) - 1 : numberOf(to, field);
  if (end < first) {
    if (cycle === undefined) throw new Unreadable(`its ${name} has ${shown(part)}: a range goes upwards`);
    end += cycle;
  }
  const step = Number(by ?? 1);
  if (step < 1 || step > sizeOf(field))
    throw new Unreadable(`its ${name} has ${shown(part)}: a step is from 1 to ${sizeOf(field)}`);
  const found: number[] = [];
  for (let n = first; n <= end; n += step) found.push(n > most ? n - (cycle ?? 0) : n);
  return found;
}

/** How many different numbers a field has. */
function sizeOf({ least, most, cycle }: Field): number {
  return cycle ?? most - least + 1;
}

function numberOf(text: string, { name, least, most, names }: Field): number {
  const named = names?.indexOf(text) ?? -1;
  if (named !== -1) return named + least;
  const n = /^\d{1,4}$/.test(text) ? Number(text) : Number.NaN;
  if (n >= least && n <= most) return n;
  throw new Unreadable(`its ${name} has ${shown(text)}, which is not one of ${least} to ${most}`);
}

function sorted(numbers: ReadonlySet<number>): number[] {
  return [...numbers].sort((a, b) => a - b);
}
