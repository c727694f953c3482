/**
 * Parts of a filter that are written as text: `>3`, `3..5`, `>5m`, `user.id:42`.
 *
 *   >n  n or more than n is left out   >=n   <n   <=n   n..m (both counted)   n (a number: just that; a time: that or more)
 *
 * Invariants: pure; what cannot be read is refused with the option's name, before anything is asked of the database.
 */
import { shown, UsageError } from "../errors.ts";
import { durationMs } from "../values/duration.ts";
import { checkText } from "../values/name.ts";

/** From and to, both counted; left out: no bound. */
export interface Range {
  readonly min?: number;
  readonly max?: number;
}

/** A value in a job's input. */
export interface PayloadMatch {
  readonly path: readonly string[];
  /** As text: 42, true, null, or what a string says. */
  readonly value: string;
}

/** What a filter can say beside names and times. */
export interface WordFilter {
  readonly attempt?: Range;
  /** How long its attempt ran, or has run so far: milliseconds. */
  readonly ran?: Range;
  /** When it ended. */
  readonly ended?: Range;
  /** The worker of its latest attempt, by name or id. */
  readonly worker?: string;
  /** Text in its errors. */
  readonly error?: string;
  readonly payload?: readonly PayloadMatch[];
}

/** The same as text. */
export interface WordTexts {
  readonly attempt?: string;
  readonly run?: string;
  readonly ended?: string;
  readonly worker?: string;
  readonly error?: string;
  readonly payload?: readonly string[];
}

/**
 * The filter that the texts say.
 *
 * @throws UsageError BAD_OPTION
 * @example
 * wordFilter({ attempt: ">3", run: ">10s" }); // { attempt: { min: 4 }, ran: { min: 10_001 } }
 */
export function wordFilter(texts: WordTexts): WordFilter {
  const { attempt, run, ended, worker, error, payload } = texts;
  return {
    ...(attempt === undefined ? {} : { attempt: range(attempt, "attempt", whole, "exactly") }),
    ...(run === undefined ? {} : { ran: range(run, "run", span, "or more") }),
    ...(ended === undefined ? {} : { ended: range(ended, "ended", whole, "exactly") }),
    ...(worker === undefined ? {} : { worker: checkText(worker, "worker") }),
    ...(error === undefined ? {} : { error: checkText(error, "error", 4_096) }),
    ...(payload === undefined || payload.length === 0 ? {} : { payload: payload.map(payloadMatch) }),
  };
}

/** The texts that say the filter. */
export function wordTexts({ attempt, ran, ended, worker, error, payload }: WordFilter): WordTexts {
  return {
    ...(attempt === undefined ? {} : { attempt: rangeText(attempt, "") }),
    ...(ran === undefined ? {} : { run: rangeText(ran, "ms") }),
    ...(ended === undefined ? {} : { ended: rangeText(ended, "") }),
    ...(worker === undefined ? {} : { worker }),
    ...(error === undefined ? {} : { error }),
    ...(payload === undefined
      ? {}
      : { payload: payload.map(({ path, value }) => `${path.join(".")}:${value}`) }),
  };
}

/**
 * Since when and until when something of this age was created.
 *
 * @example
 * bornWithin(">5m", now); // { until: now - 300_000 }
 */
export function bornWithin(age: string, now: number): { since?: number; until?: number } {
  const { min, max } = range(age, "age", span, "or more");
  return {
    ...(max === undefined ? {} : { since: now - max }),
    // Created before: at least so old is up to and with that instant.
    ...(min === undefined ? {} : { until: now - min + 1 }),
  };
}

type Read = (text: string, what: string) => number;

function range(text: string, what: string, read: Read, bare: "exactly" | "or more"): Range {
  const [, from, to] = /^(.+?)\.\.(.+)$/.exec(text) ?? [];
  if (from !== undefined && to !== undefined) return { min: read(from, what), max: read(to, what) };
  const [, sign = "", value = ""] = /^(>=|<=|>|<|=)?(.+)$/s.exec(text) ?? [];
  const n = read(value, what);
  switch (sign) {
    case ">":
      return { min: n + 1 };
    case ">=":
      return { min: n };
    case "<":
      return { max: n - 1 };
    case "<=":
      return { max: n };
    case "=":
      return { min: n, max: n };
    default:
      return bare === "exactly" ? { min: n, max: n } : { min: n };
  }
}

function whole(text: string, what: string): number {
  if (/^\d{1,16}$/.test(text)) return Number(text);
  throw unreadable(what, text, "a whole number such as 3, >3, <=3 or 3..5");
}

function span(text: string, what: string): number {
  try {
    return durationMs(text, what);
  } catch {
    throw unreadable(what, text, "a time such as >5m, <10s or 1h..2h");
  }
}

function rangeText({ min, max }: Range, unit: string): string {
  if (min === max) return `=${min}${unit}`;
  if (max === undefined) return `>=${min}${unit}`;
  return min === undefined ? `<=${max}${unit}` : `${min}${unit}..${max}${unit}`;
}

// No control character and no half of a surrogate pair: no database takes them.
const segment = /^[^\s".:\\[\]{}\p{Cc}\p{Cs}]{1,128}$/u;

function payloadMatch(text: string): PayloadMatch {
  const at = text.indexOf(":");
  const path = text.slice(0, Math.max(0, at)).split(".");
  if (at > 0 && path.length <= 16 && path.every((one) => segment.test(one)))
    return { path, value: checkText(text.slice(at + 1), "payload", 4_096) };
  throw unreadable("payload", text, "a path and a value such as user.id:42");
}

function unreadable(option: string, text: string, wanted: string): UsageError {
  return new UsageError("BAD_OPTION", `${option} takes ${wanted}; got ${shown(text)}.`, {
    details: { option },
  });
}
