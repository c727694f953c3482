/**
 * What schedules will do: how many occurrences lie in each piece of the time to come, and what a change of the clocks does to them.
 *
 * Invariants: pure; never walks through more occurrences than it is told to (a pattern of every second has 86,400 a day), and says
 * when it has estimated the rest.
 * Not here: when occurrences are (cron.ts).
 */
import type { Timing } from "./cron.ts";
import { zoneOf } from "./zone.ts";

/** How many occurrences lie in each of `buckets` pieces of `stepMs`, beginning at `from`. */
export function countOccurrences(
  timing: Timing,
  from: number,
  stepMs: number,
  buckets: number,
  most: number,
): { readonly counts: number[]; readonly estimated: boolean } {
  const counts = Array.from({ length: buckets }, () => 0);
  const until = from + stepMs * buckets;
  let walked = 0;
  for (let at = timing.next(from - 1); at !== null && at < until; at = timing.next(at)) {
    if (walked >= most) return { counts: estimated(counts, from, at, stepMs, walked), estimated: true };
    const bucket = Math.floor((at - from) / stepMs);
    counts[bucket] = (counts[bucket] ?? 0) + 1;
    walked += 1;
  }
  return { counts, estimated: false };
}

/** The rest at the rate so far. */
function estimated(
  counts: readonly number[],
  from: number,
  reached: number,
  stepMs: number,
  walked: number,
): number[] {
  const perStep = (walked / Math.max(1, reached - from)) * stepMs;
  const last = Math.floor((reached - from) / stepMs);
  return counts.map((count, i) => (i < last ? count : Math.round(perStep)));
}

/** An occurrence as the clock of its zone shows it. */
export interface LocalOccurrence {
  readonly at: number;
  /** "2026-03-29 03:00:00". */
  readonly local: string;
  /** "+02:00". */
  readonly offset: string;
  /** What a change of the clocks has to do with it. */
  readonly note: string | null;
}

/**
 * Occurrences in their zone's own time, with a word where the clocks change. `from`: the instant before the first.
 *
 * @example
 * localOccurrences([Date.UTC(2026, 2, 29, 1)], "Europe/Berlin", Date.UTC(2026, 2, 28));
 */
export function localOccurrences(
  occurrences: readonly number[],
  timezone: string,
  from: number,
): LocalOccurrence[] {
  const zone = zoneOf(timezone, "timezone");
  return occurrences.map((at, i) => {
    const offset = zone.offsetAt(at);
    const before = occurrences[i - 1] ?? from;
    const wall = at + offset;
    const change = zone.changes(before, at).at(-1);
    const ahead = zone.changes(at, at + 4 * hour).find((next) => next.after < next.before);
    return {
      at,
      local: new Date(wall).toISOString().slice(0, 19).replace("T", " "),
      offset: offsetText(offset),
      note:
        change !== undefined && change.at === at && change.after > change.before
          ? `the clocks go forward ${lengthOf(change.after - change.before)}: skipped times run now`
          : ahead !== undefined && wall >= ahead.at + ahead.after && wall < ahead.at + ahead.before
            ? "this time occurs twice because the clocks go back; it runs the first time"
            : change === undefined
              ? null
              : `after the clocks have gone ${change.after > change.before ? "forward" : "back"} ${lengthOf(Math.abs(change.after - change.before))}`,
    };
  });
}

const minute = 60_000;
const hour = 60 * minute;

function offsetText(ms: number): string {
  const minutes = Math.round(Math.abs(ms) / minute);
  const two = (n: number): string => String(n).padStart(2, "0");
  return `${ms < 0 ? "-" : "+"}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}

function lengthOf(ms: number): string {
  return ms % hour === 0 ? `${ms / hour} h` : `${Math.round(ms / minute)} min`;
}
