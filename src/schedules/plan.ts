/**
 * What a schedule does when it is due: which occurrences get a job, which were missed, and when it is due next.
 *
 *   occurrence ──≤ 60 s late──▶ fires, whatever `missed` says
 *        └─ later ──▶ missed: skip  none gets a job
 *                             one   they share one job: that of an occurrence that is due in time, else of the latest of them
 *                             all   each gets a job, the newest 1,000 at the most
 *
 * Invariants: pure, with the clock passed in; the same row and instant give the same plan in every process; every due occurrence
 * fires or is counted as missed; a plan walks through the occurrences that fire alone, however long nobody was there.
 * Not here: when occurrences are (cron.ts), whether the previous job still runs (schedule-rows.ts asks).
 */
import { shown, UsageError } from "../errors.ts";
import { cronTiming, intervalTiming, type Timing } from "./cron.ts";
import { MAX_DELAY_MS } from "../values/duration.ts";
import { checkName } from "../values/name.ts";
import { isPlainObject } from "../values/options.ts";

/** What becomes of occurrences that nobody was there for. */
export type Missed = "skip" | "one" | "all";
/** What becomes of an occurrence while the job of an earlier one has not ended. */
export type Overlap = "allow" | "skip" | "queue";

export const MISSED: readonly Missed[] = ["skip", "one", "all"];
export const OVERLAP: readonly Overlap[] = ["allow", "skip", "queue"];

/** An occurrence that is this late is missed. */
export const LATE_MS = 60_000;
/** The shortest interval. */
export const SHORTEST_EVERY_MS = 1_000;
/** Occurrences that are made up for at once, at the most. */
export const MOST_CATCH_UP = 1_000;

/**
 * A schedule as it is kept: everything that its jobs need, so that any process can make them. The queue, key and lane
 * were computed when it was put, by the code that has the definition and the router.
 */
export interface ScheduleSpec {
  readonly cron: string | null;
  readonly everyMs: number | null;
  /** An interval has no use for it. */
  readonly timezone: string | null;
  readonly missed: Missed;
  readonly overlap: Overlap;
  readonly jitterMs: number;
  readonly job: string;
  readonly queue: string;
  readonly priority: number;
  /** JSON text. */
  readonly input: string;
  readonly maxAttempts: number | null;
  readonly timeoutMs: number | null;
  readonly lane: string | null;
  readonly unique: {
    readonly scope: string;
    readonly key: string;
    readonly forMs: number | null;
    readonly onConflict: "keep" | "replace" | "debounce";
  } | null;
  readonly context: string | null;
  readonly extras: Readonly<Record<string, unknown>> | null;
}

/** What an operator changed. */
export type ScheduleEdits = Partial<
  Pick<
    ScheduleSpec,
    | "cron"
    | "everyMs"
    | "timezone"
    | "missed"
    | "overlap"
    | "jitterMs"
    | "queue"
    | "priority"
    | "input"
    | "maxAttempts"
    | "timeoutMs"
  >
>;

/** What is to be done for a schedule now. */
export interface Plan {
  /** Occurrences that get a job, in order. */
  readonly fire: readonly number[];
  /** Occurrences that get none because they were missed. */
  readonly missed: number;
  /** The next occurrence; null: there is none any more. */
  readonly nextAt: number | null;
}

/** When the schedule's occurrences are. */
export function timingOf(
  spec: Pick<ScheduleSpec, "cron" | "everyMs" | "timezone">,
  anchorAt: number,
): Timing {
  if (spec.cron !== null) return cronTiming(spec.cron, spec.timezone ?? "UTC");
  return intervalTiming(spec.everyMs as number, anchorAt);
}

/** Whether two schedules have the same occurrences. */
export function sameTiming(a: ScheduleSpec, b: ScheduleSpec): boolean {
  return a.cron === b.cron && a.everyMs === b.everyMs && (a.cron === null || a.timezone === b.timezone);
}

/** The plan at `now` of a schedule whose first occurrence that was not looked at yet is `nextAt`. */
export function planOccurrences(timing: Timing, missed: Missed, nextAt: number | null, now: number): Plan {
  if (nextAt === null || nextAt > now) return { fire: [], missed: 0, nextAt };
  const total = countFrom(timing, nextAt, nextAt, now);
  const inTime = countFrom(timing, nextAt, now - LATE_MS, now);
  const late = total - inTime;
  const madeUp = madeUpFor(missed, late, inTime);
  return {
    fire: newest(timing, nextAt, now, madeUp + inTime),
    missed: late - madeUp,
    nextAt: timing.next(now),
  };
}

/** How many occurrences that were missed get a job all the same. */
function madeUpFor(missed: Missed, late: number, inTime: number): number {
  if (missed === "all") return Math.min(late, MOST_CATCH_UP);
  return missed === "one" && inTime === 0 ? 1 : 0;
}

/** How many occurrences lie between `from` and `now`, where `first` is one, on the timing or not, and none is earlier. */
function countFrom(timing: Timing, first: number, from: number, now: number): number {
  return from <= first ? 1 + timing.count(first, now) : timing.count(from - 1, now);
}

/** The newest `n` occurrences from `first` (one itself) to `now`, oldest first. */
function newest(timing: Timing, first: number, now: number, n: number): number[] {
  const from = startOfNewest(timing, first, now, n);
  const found = from === first ? [first] : [];
  let occurrence = timing.next(from === first ? first : from - 1);
  for (; occurrence !== null && occurrence <= now; occurrence = timing.next(occurrence))
    found.push(occurrence);
  return found;
}

/**
 * The latest instant from which there are `n` occurrences to `now`. By counting, which costs little where a walk through all of
 * them may not: the window doubles until it holds them, so that no count is longer than it must be, and is then halved.
 */
function startOfNewest(timing: Timing, first: number, now: number, n: number): number {
  const holds = (from: number): boolean => countFrom(timing, first, from, now) >= n;
  if (n > 0 && !holds(first + 1)) return first;
  let from = now;
  while (!holds(from)) from = Math.max(first, now - 2 * (now - from) - LATE_MS);
  let tooLate = now + 1;
  while (tooLate - from > 1) {
    const middle = Math.floor((from + tooLate) / 2);
    if (holds(middle)) from = middle;
    else tooLate = middle;
  }
  return from;
}

/** As many occurrences of the past are walked through for one backfill. */
const MOST_WALKED = 100_000;

/** Occurrences of a time that have no job, oldest first; `had` of those that were passed have one. Pure. */
export function occurrencesWithout(
  timing: Timing,
  range: { readonly from: number; readonly to: number; readonly limit: number },
  made: ReadonlySet<number | null>,
): { readonly occurrences: readonly number[]; readonly had: number; readonly more: boolean } {
  const occurrences: number[] = [];
  let had = 0;
  let walked = 0;
  for (let at = timing.next(range.from - 1); at !== null && at < range.to; at = timing.next(at)) {
    walked += 1;
    if (made.has(at)) had += 1;
    else if (occurrences.length === range.limit) return { occurrences, had, more: true };
    else occurrences.push(at);
    if (walked >= MOST_WALKED) return { occurrences, had, more: true };
  }
  return { occurrences, had, more: false };
}

/**
 * How much later than its occurrence a job is due: the same for an occurrence in every process, spread evenly over `jitterMs`.
 *
 * @example
 * jitterOf("report", occurrence, 30_000); // 0 to 29_999
 */
export function jitterOf(name: string, occurrence: number, jitterMs: number): number {
  if (jitterMs <= 0) return 0;
  let hash = 0x811c9dc5;
  for (const char of `${name}\n${occurrence}`)
    hash = Math.imul(hash ^ (char.codePointAt(0) ?? 0), 0x01000193);
  // FNV's low bits are weak for texts that differ in their last digits only: mix them.
  hash ^= hash >>> 16;
  hash = Math.imul(hash, 0x7feb352d);
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 0x846ca68b);
  hash ^= hash >>> 16;
  return Math.floor(((hash >>> 0) / 4_294_967_296) * jitterMs);
}

/**
 * A stored schedule, checked as if a stranger had written it: somebody may have.
 *
 * @throws UsageError what is wrong with it
 */
export function readSpec(spec: string, edits: string | null): ScheduleSpec {
  const merged = { ...record(spec, "spec"), ...(edits === null ? {} : record(edits, "edits")) };
  const checked = merged as unknown as ScheduleSpec;
  checkName(checked.job, "The schedule's job");
  checkName(checked.queue, "The schedule's queue");
  oneOf(checked.missed, MISSED, "missed");
  oneOf(checked.overlap, OVERLAP, "overlap");
  const { everyMs, jitterMs, priority, maxAttempts, timeoutMs } = checked;
  if (!isText(checked.input)) throw bad("input", checked.input);
  if ((typeof checked.cron === "string") === (typeof everyMs === "number")) throw bad("cron", checked.cron);
  if (everyMs !== null && !isWhole(everyMs, SHORTEST_EVERY_MS, MAX_DELAY_MS)) throw bad("every", everyMs);
  if (!isWhole(jitterMs, 0, MAX_DELAY_MS)) throw bad("jitter", jitterMs);
  if (!isWhole(priority, -1e9, 1e9)) throw bad("priority", priority);
  if (maxAttempts !== null && !isWhole(maxAttempts, 1, 32_767)) throw bad("attempts", maxAttempts);
  if (timeoutMs !== null && !isWhole(timeoutMs, 1, MAX_DELAY_MS)) throw bad("timeout", timeoutMs);
  if (checked.lane !== null && !isText(checked.lane)) throw bad("lane", checked.lane);
  if (checked.context !== null && typeof checked.context !== "string") throw bad("context", checked.context);
  if (checked.extras !== null && !isPlainObject(checked.extras)) throw bad("extras", checked.extras);
  if (checked.unique !== null && !isUnique(checked.unique)) throw bad("key", checked.unique);
  return checked;
}

function isUnique(unique: unknown): boolean {
  if (!isPlainObject(unique)) return false;
  const { scope, key, forMs, onConflict } = unique;
  return (
    isText(scope) &&
    isText(key) &&
    (forMs === null || isWhole(forMs, 0, MAX_DELAY_MS)) &&
    ["keep", "replace", "debounce"].includes(onConflict as string)
  );
}

function isWhole(value: unknown, min: number, max: number): boolean {
  return Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
}

/** Text that both databases take: one that they refuse would fail at every tick, for ever. */
function isText(value: unknown): boolean {
  return typeof value === "string" && value.isWellFormed() && !value.includes("\0");
}

function record(text: string, what: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (isPlainObject(value)) return value;
  } catch {
    // told below
  }
  throw new UsageError("BAD_OPTION", `The schedule's ${what} in the database is not a JSON object.`);
}

function oneOf(value: unknown, allowed: readonly string[], what: string): void {
  if (!allowed.includes(value as string)) throw bad(what, value);
}

function bad(what: string, value: unknown): UsageError {
  return new UsageError(
    "BAD_OPTION",
    `The schedule's ${what} in the database is not valid: ${shown(value)}. Put or edit the schedule.`,
    { details: { what } },
  );
}
