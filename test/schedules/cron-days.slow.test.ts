// Which days a pattern matches, against a brute-force calendar: every day from 2024 to 2035, judged by hand-written rules.
import { describe, expect, test } from "vitest";
import { cronTiming } from "../../src/schedules/cron.ts";

const day = 86_400_000;
const firstDay = Date.UTC(2024, 0, 1);
const end = Date.UTC(2036, 0, 1);

interface Day {
  readonly at: number;
  readonly year: number;
  readonly month: number;
  readonly date: number;
  readonly weekday: number;
  /** How many days its month has. */
  readonly length: number;
}

type Rule = (of: Day) => boolean;

const calendar: Day[] = [];
for (let at = firstDay; at < end; at += day) {
  const on = new Date(at);
  const [year, month] = [on.getUTCFullYear(), on.getUTCMonth() + 1];
  const leap = year % 4 === 0; // 2024 to 2035 has no century
  const length = month === 2 ? (leap ? 29 : 28) : [4, 6, 9, 11].includes(month) ? 30 : 31;
  calendar.push({ at, year, month, date: on.getUTCDate(), weekday: on.getUTCDay(), length });
}

/** `instants`: when each day of the calendar fires, in order. */
function compare(pattern: string, zone: string, rule: Rule, instants?: readonly number[]): void {
  const timing = cronTiming(pattern, zone);
  const expected: number[] = [];
  for (const [i, of] of calendar.entries()) if (rule(of)) expected.push(instants?.[i] ?? of.at);
  const until = (instants?.at(-1) ?? end - day) + 1;
  const found: number[] = [];
  const before = (instants?.[0] ?? firstDay) - 1;
  for (let at = timing.next(before); at !== null && at < until; at = timing.next(at)) found.push(at);
  if (found.join() === expected.join()) return;
  const iso = (list: readonly number[]): string[] => list.map((at) => new Date(at).toISOString());
  expect(iso(found), `${pattern} in ${zone}`).toEqual(iso(expected));
}

const range = (from: number, to: number, step = 1): number[] =>
  Array.from({ length: Math.max(0, Math.floor((to - from) / step) + 1) }, (_, i) => from + i * step);

const monthly = new Map<string, readonly number[]>();

/** The days of a month from Monday to Friday. */
function workdays({ year, month, length }: Day): readonly number[] {
  const known = monthly.get(`${year} ${month}`);
  if (known !== undefined) return known;
  const found = range(1, length).filter((date) => {
    const weekday = new Date(Date.UTC(year, month - 1, date)).getUTCDay();
    return weekday >= 1 && weekday <= 5;
  });
  monthly.set(`${year} ${month}`, found);
  return found;
}

function nearest(of: Day, to: number): number | null {
  if (to > of.length) return null;
  let best = Infinity;
  for (const date of workdays(of)) if (Math.abs(date - to) < Math.abs(best - to)) best = date;
  return best;
}

const nth = (of: Day): number => range(1, of.date).filter((date) => (of.date - date) % 7 === 0).length;
const isLast = (of: Day): boolean => of.date > of.length - 7;

function oneOf(list: readonly number[]): Rule {
  const set = new Set(list);
  return ({ date }) => set.has(date);
}

/** Each class of the field day of month, with the days it stands for. */
const dates = new Map<string, Rule>();
for (const a of range(1, 31)) {
  dates.set(`${a}`, ({ date }) => date === a);
  dates.set(`*/${a}`, oneOf(range(1, 31, a)));
  dates.set(`?/${a}`, oneOf(range(1, 31, a)));
  dates.set(`${a},L`, ({ date, length }) => date === a || date === length);
  dates.set(`${a}W`, (of) => nearest(of, a) === of.date);
  dates.set(`${a}w,31`, (of) => nearest(of, a) === of.date || of.date === 31);
  for (const b of range(a, 31)) {
    dates.set(`${a},${b}`, ({ date }) => date === a || date === b);
    dates.set(`${a}-${b}`, ({ date }) => date >= a && date <= b);
    const step = 1 + ((a + b) % 9);
    dates.set(`${a}-${b}/${step}`, oneOf(range(a, b, step)));
  }
}
dates.set("L", ({ date, length }) => date === length);
dates.set("LW", (of) => of.date === workdays(of).at(-1));
dates.set("lw,1", (of) => of.date === workdays(of).at(-1) || of.date === 1);
dates.set("1-3,*/10,28-31", ({ date }) => [1, 2, 3, 11, 21, 28, 29, 30, 31].includes(date));

const names = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
/** Each class of the field day of week. */
const weekdays = new Map<string, Rule>();
for (const a of range(0, 7)) {
  const one: Rule = ({ weekday }) => weekday === a % 7;
  weekdays.set(`${a}`, one);
  weekdays.set(`${a}-${a}`, one);
  for (const n of range(1, 5)) weekdays.set(`${a}#${n}`, (of) => one(of) && nth(of) === n);
  weekdays.set(`${a}L`, (of) => one(of) && isLast(of));
  weekdays.set(`${a}#L`, (of) => one(of) && isLast(of));
  if (a > 0) weekdays.set(`*/${a}`, ({ weekday }) => weekday % a === 0);
  for (const b of range(0, 7)) {
    const over = new Set(range(a, b >= a ? b : b + 7).map((n) => n % 7));
    weekdays.set(`${a}-${b}`, ({ weekday }) => over.has(weekday));
    weekdays.set(`${a}-${b}#2`, (of) => over.has(of.weekday) && nth(of) === 2);
    weekdays.set(`${a},${b}`, ({ weekday }) => weekday === a % 7 || weekday === b % 7);
  }
}
for (const [a, from] of names.entries()) {
  weekdays.set(from, ({ weekday }) => weekday === a);
  weekdays.set(`${from.toLowerCase()}#3`, (of) => of.weekday === a && nth(of) === 3);
  weekdays.set(`${from}L`, (of) => of.weekday === a && isLast(of));
  for (const [b, to] of names.entries()) {
    const over = new Set(range(a, b >= a ? b : b + 7).map((n) => n % 7));
    weekdays.set(`${from}-${to}`, ({ weekday }) => over.has(weekday));
  }
}

const months = new Map<string, Rule>([
  ["2", ({ month }) => month === 2],
  ["FEB,Mar", ({ month }) => month === 2 || month === 3],
  ["jan-dec/2", ({ month }) => month % 2 === 1],
  ["*/5", ({ month }) => [1, 6, 11].includes(month)],
]);

/** Every so many of a map, so that combinations stay few and still meet every class. */
const some = (map: ReadonlyMap<string, Rule>, every: number): [string, Rule][] =>
  [...map].filter((_, i) => i % every === 0);

describe("days of a pattern from 2024 to 2035", () => {
  test("[G1] 1 March is a day like any other", () => {
    for (const field of ["*/5", "*/6", "*/10", "*/15", "1,31", "1,30", "*/3"]) {
      const rule = dates.get(field) as Rule;
      const on1March: Rule = (of) => rule(of) && of.month === 3 && of.date === 1;
      expect(calendar.filter(on1March), field).toHaveLength(12);
      compare(`0 0 ${field} * *`, "UTC", rule);
    }
  });

  test("[G1] every kind of day of month", () => {
    expect(dates.size).toBeGreaterThan(1_500);
    for (const [field, rule] of dates) compare(`0 0 ${field} * *`, "UTC", rule);
  });

  test("[G1] every kind of day of week; SUN-SUN is Sunday alone, FRI-MON goes over the weekend", () => {
    for (const [field, rule] of weekdays) compare(`0 0 * * ${field}`, "UTC", rule);
    compare("0 0 ? * SUN-SUN", "UTC", ({ weekday }) => weekday === 0);
    compare("0 0 * * FRI-MON", "UTC", ({ weekday }) => [5, 6, 0, 1].includes(weekday));
    compare("0 0 * * SAT-SUN,WED", "UTC", ({ weekday }) => [6, 0, 3].includes(weekday));
    compare("0 0 * * FRI-MON/2", "UTC", ({ weekday }) => weekday === 5 || weekday === 0);
  });

  test("[G1] days of month with months, with years, and with days of week, one of both or both at once", () => {
    for (const [month, inMonth] of months)
      for (const [date, onDate] of some(dates, 41)) {
        const inYear: Rule = ({ year }) => year === 2027 || year % 4 === 0;
        compare(`0 0 ${date} ${month} *`, "UTC", (of) => inMonth(of) && onDate(of));
        compare(`0 0 0 ${date} ${month} * 2027,*/4`, "UTC", (of) => inMonth(of) && onDate(of) && inYear(of));
      }
    for (const [date, onDate] of some(dates, 113))
      for (const [weekday, onWeekday] of some(weekdays, 7)) {
        compare(`0 0 ${date} * ${weekday}`, "UTC", (of) => onDate(of) || onWeekday(of));
        const both: Rule = (of) => of.month < 3 && onDate(of) && onWeekday(of);
        // Some can never match: the last Sunday is not the first of a month.
        if (calendar.some(both)) compare(`0 0 ${date} 1,2 +${weekday}`, "UTC", both);
      }
  });

  test("[G1] days of month in time zones, at noon on the wall", () => {
    for (const zone of ["Europe/Berlin", "Pacific/Kiritimati", "Pacific/Pago_Pago"]) {
      const clock = new Intl.DateTimeFormat("sv-SE", {
        timeZone: zone,
        dateStyle: "short",
        timeStyle: "short",
      });
      let hour = -2; // noon is from 14 hours before noon in UTC to 11 after it
      const noons = calendar.map(({ at }) => {
        const wanted = `${new Date(at).toISOString().slice(0, 10)} 12:00`;
        for (let tries = 0; clock.format(at + hour * 3_600_000) !== wanted; tries++) {
          if (tries > 26) throw new Error(`no noon in ${zone}`);
          hour = hour === 23 ? -2 : hour + 1;
        }
        return at + hour * 3_600_000;
      });
      for (const [field, rule] of some(dates, 163)) compare(`0 12 ${field} * *`, zone, rule, noons);
      for (const [field, rule] of some(weekdays, 41)) compare(`0 12 * * ${field}`, zone, rule, noons);
    }
  });
});

describe("patterns that are refused", () => {
  test.each([
    "0 0 15L * *",
    "0 0 L5 * *",
    "0 0 0 * *",
    "0 0 W * *",
    "0 0 32W * *",
    "0 0 1-5W * *",
    "0 0 */32 * *",
    "0 0 5/5 * *",
    "0 0 10-5 * *",
    "0 0 1,,2 * *",
    "0 0 *-5 * *",
    "0 0 31 4,6 *",
    "0 0 * 13 *",
    "0 0 * JAN-FOO *",
    "0 0 * DEC-JAN *",
    "0 0 JAN * *",
    "0 0 * * 8",
    "0 0 * * L",
    "0 0 * * 5#6",
    "0 0 * * 5#",
    "0 0 * * +",
    "0 0 * * 1+2",
    "0 0 * * SUNDAY",
    "0 0 * * */8",
    "0 0 30 2 +MON",
    "0 0 0 29 2 * 2027",
    "0 0 0 1 1 * 10000",
    "0 22-2 * * *",
    "@daily @daily",
    "__proto__",
    "constructor",
    "*/0 * * * *",
    "*/61 * * * *",
    "1- * * * *",
    "60 * * * *",
    "99999999999999999999 * * * *",
    "1e1 * * * *",
    // Nothing but weekdays, on Sundays, in each of 10,000 years.
    `0 0 0 ${range(1, 31)
      .map((date) => `${date}W`)
      .join()} * +SUN *,*`,
  ])("[G2] %s", (pattern) => {
    expect(() => cronTiming(pattern, "UTC")).toThrow(expect.objectContaining({ code: "BAD_CRON" }));
  });

  test("the message names the field and what is wrong with it", () => {
    expect(() => cronTiming("0 25 * * *", "UTC")).toThrow(/hour has "25", which is not one of 0 to 23/);
    expect(() => cronTiming("0 0 5/5 * *", "UTC")).toThrow(/day of month has "5\/5": a step needs a range/);
    expect(() => cronTiming("0 0 30 2 *", "UTC")).toThrow(/no date matches it/);
  });
});
