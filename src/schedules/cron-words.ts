/**
 * A schedule's timing as a person would say it: "Weekdays at 09:00, Europe/London".
 *
 * Invariants: pure; says only what is exactly so. A pattern that needs more than one plain sentence (both kinds of days, hours
 * in steps that do not come out even, W and #) is given as it is written: a wrong sentence would be worse than none.
 * Not here: when occurrences are (cron.ts), which also says what is wrong with a pattern.
 */

import { nicknames } from "./cron-pattern.ts";

/** What is said of: a pattern in its zone, or an interval. */
export interface Spoken {
  readonly cron: string | null;
  readonly everyMs: number | null;
  readonly timezone: string | null;
}

const weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"] as const;
const months = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
] as const;
/** More would be read out, not understood. */
const mostNamed = 4;

/**
 * The timing in words; the pattern itself where it cannot be said simply.
 *
 * @example
 * timingInWords({ cron: "0 9 * * 1-5", everyMs: null, timezone: "Europe/London" }); // "Weekdays at 09:00, Europe/London"
 */
export function timingInWords({ cron, everyMs, timezone }: Spoken): string {
  if (cron === null) return everyMs === null ? "—" : intervalInWords(everyMs);
  const said = patternInWords(cron);
  if (said === null) return timezone === null ? cron : `${cron}, ${timezone}`;
  // Every ten minutes is every ten minutes, whatever the clock on the wall shows.
  return said.zoned && timezone !== null ? `${said.words}, ${timezone}` : said.words;
}

const units = [
  [86_400_000, "day"],
  [3_600_000, "hour"],
  [60_000, "minute"],
  [1_000, "second"],
  [1, "millisecond"],
] as const;

function intervalInWords(everyMs: number): string {
  const [ms, unit] = units.find(([length]) => everyMs % length === 0) ?? [1, "millisecond"];
  return every(everyMs / ms, unit);
}

function every(n: number, unit: string): string {
  return n === 1 ? `Every ${unit}` : `Every ${n} ${unit}s`;
}

/** Null: not in a plain sentence. */
function patternInWords(cron: string): { readonly words: string; readonly zoned: boolean } | null {
  const nickname = cron.trim().toLowerCase();
  const pattern = Object.hasOwn(nicknames, nickname) ? nicknames[nickname] : undefined;
  const fields = (pattern ?? cron.trim()).split(/\s+/);
  if (fields.length === 5) fields.unshift("0");
  if (fields.length === 6) fields.push("*");
  const [second = "", minute = "", hour = "", date = "", month = "", weekday = "", year = ""] = fields;
  if (fields.length !== 7 || year !== "*") return null;
  const day = dayInWords(date, month, weekday);
  if (day === null) return null;
  if (second !== "0") {
    const step = stepOf(second, 60);
    const always = minute === "*" && hour === "*" && day === "";
    return step !== null && always ? { words: every(step, "second"), zoned: false } : null;
  }
  const time = timeInWords(minute, hour);
  if (time === null) return null;
  if (time.at) return { words: `${day === "" ? "Every day" : day} ${time.words}`, zoned: true };
  if (day === "") return { words: capital(time.words), zoned: time.zoned };
  return { words: `${day}, ${time.words}`, zoned: true };
}

/** `at`: certain times of a day. `zoned`: it is only some hours of a day. */
function timeInWords(
  minute: string,
  hour: string,
): { readonly words: string; readonly at: boolean; readonly zoned: boolean } | null {
  const minutes = numbersOf(minute, 0, 59);
  const hours = numbersOf(hour, 0, 23);
  const minuteStep = stepOf(minute, 60);
  const hourStep = stepOf(hour, 24);
  const range = /^(\d{1,2})-(\d{1,2})$/.exec(hour);
  if (hours !== null && minutes?.length === 1 && hours.length <= mostNamed)
    return { words: `at ${listed(hours.map((h) => clock(h, minutes[0] ?? 0)))}`, at: true, zoned: true };
  if (minuteStep !== null && hour === "*")
    return { words: every(minuteStep, "minute").toLowerCase(), at: false, zoned: false };
  if (minutes !== null && minutes.length <= mostNamed && hourStep !== null) {
    const past = minutes.length === 1 && minutes[0] === 0 ? "" : ` at ${listed(minutes.map(colon))}`;
    return { words: every(hourStep, "hour").toLowerCase() + past, at: false, zoned: hourStep > 1 };
  }
  const [from, to] = range === null ? [hours?.[0], hours?.[0]] : [Number(range[1]), Number(range[2])];
  if (from === undefined || to === undefined || from > to || to > 23) return null;
  if (range === null && hours?.length !== 1) return null;
  if (minuteStep !== null)
    return {
      words: `${every(minuteStep, "minute").toLowerCase()} from ${clock(from, 0)} to ${clock(to, 60 - minuteStep)}`,
      at: false,
      zoned: true,
    };
  const uneven = unevenOf(minute);
  if (uneven !== null)
    return {
      words: `${every(uneven, "minute").toLowerCase()} of each hour (:00 to ${colon(lastOf(uneven))}) from ${clock(from, 0)} to ${clock(to, lastOf(uneven))}`,
      at: false,
      zoned: true,
    };
  if (minutes?.length !== 1 || range === null) return null;
  const m = minutes[0] ?? 0;
  return { words: `every hour from ${clock(from, m)} to ${clock(to, m)}`, at: false, zoned: true };
}

/** "": every day. Null: not in a plain sentence. */
function dayInWords(date: string, month: string, weekday: string): string | null {
  const inMonths = any(month) ? [] : numbersOf(named(month, months, 1), 1, 12);
  if (inMonths === null || inMonths.length > mostNamed) return null;
  const within = inMonths.length === 0 ? "" : ` in ${listed(inMonths.map((n) => months[n - 1] ?? ""))}`;
  if (any(date) && any(weekday)) return within === "" ? "" : `Every day${within}`;
  if (!any(date) && !any(weekday)) return null; // one or the other: nobody remembers which
  if (any(date)) {
    const days = weekdaysOf(weekday);
    return days === null
      ? null
      : days === "" && within === ""
        ? ""
        : `${days === "" ? "Every day" : days}${within}`;
  }
  if (/^l$/i.test(date))
    return within === "" ? "The last day of each month" : `The last day${within.replace(" in ", " of ")}`;
  const dates = numbersOf(date, 1, 31);
  if (dates === null || dates.length > mostNamed) return null;
  const [only] = dates;
  if (dates.length === 1 && inMonths.length === 1)
    return `Every year on ${only} ${months[(inMonths[0] ?? 1) - 1]}`;
  const of = within === "" ? " of each month" : within.replace(" in ", " of ");
  return `The ${listed(dates.map(ordinal))}${of}`;
}

function weekdaysOf(field: string): string | null {
  const found = numbersOf(named(field, weekdays, 0), 0, 7);
  if (found === null) return null;
  const days = [...new Set(found.map((n) => n % 7))].sort((a, b) => a - b);
  const key = days.join("");
  if (key === "0123456") return "";
  if (key === "12345") return "Weekdays";
  // The week begins on Monday, so that a weekend is one.
  const ordered = days.includes(0) ? [...days.filter((n) => n > 0), 0] : days;
  return ordered.length > mostNamed ? null : listed(ordered.map((n) => `${weekdays[n] ?? ""}s`));
}

/** Names by their numbers: JAN → 1, MON → 1. */
function named(field: string, names: readonly string[], first: number): string {
  return field.replace(/[a-z]{3,}/gi, (word) => {
    const at = names.findIndex((name) => name.slice(0, 3).toLowerCase() === word.toLowerCase());
    return at === -1 ? word : String(at + first);
  });
}

function any(field: string): boolean {
  return field === "*" || field === "?";
}

/** The numbers of a list and of ranges in it, in order; null for anything else. */
function numbersOf(field: string, least: number, most: number): number[] | null {
  const found = new Set<number>();
  for (const part of field.split(",")) {
    const match = /^(\d{1,2})(?:-(\d{1,2}))?$/.exec(part);
    if (match === null) return null;
    const from = Number(match[1]);
    const to = Number(match[2] ?? from);
    if (from < least || to > most || from > to) return null;
    for (let n = from; n <= to; n++) found.add(n);
  }
  return [...found].sort((a, b) => a - b);
}

/** Each so many, where they come out even: 1 for `*`. */
function stepOf(field: string, whole: number): number | null {
  if (field === "*") return 1;
  const match = new RegExp(`^(?:\\*|0-${whole - 1})/(\\d{1,2})$`).exec(field);
  const step = Number(match?.[1] ?? 0);
  return step > 0 && step < whole && whole % step === 0 ? step : null;
}

/** Each so many minutes, beginning anew with every hour: a step that does not come out even. Fewer than three are no row. */
function unevenOf(field: string): number | null {
  const step = Number(/^(?:\*|0-59)\/(\d{1,2})$/.exec(field)?.[1] ?? 0);
  return step > 0 && step < 30 && 60 % step !== 0 ? step : null;
}

/** The last minute of an hour that such a step comes to. */
function lastOf(step: number): number {
  return Math.floor(59 / step) * step;
}

function clock(hour: number, minute: number): string {
  return `${String(hour).padStart(2, "0")}${colon(minute)}`;
}

function colon(minute: number): string {
  return `:${String(minute).padStart(2, "0")}`;
}

function listed(parts: readonly string[]): string {
  return parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1) ?? ""}`;
}

function ordinal(n: number): string {
  const tail = n > 10 && n < 14 ? "th" : (["th", "st", "nd", "rd"][n % 10] ?? "th");
  return `${n}${tail}`;
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
