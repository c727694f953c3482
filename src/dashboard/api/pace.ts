/**
 * How fast things go, and whether the backlog grows: what the verdict says beside how things stand.
 *
 * Two reads of minutes that workers have counted, at most every 15 seconds however often somebody looks. What nobody counted is
 * null, never 0. Not here: the words (verdict.ts).
 */
import type { Clock } from "../../clock.ts";
import type { LoadRow, QueueMinute, SeriesStore } from "../../operate/index.ts";

export interface Pace {
  /** Jobs done a minute, in the last five that are over; null: nothing was counted. */
  readonly perMinute: number | null;
  readonly growth: Growth | null;
}

/** The backlog has grown, look by look. */
export interface Growth {
  /** The queue that grew most; null: none of those that are followed by name. */
  readonly queue: string | null;
  /** So many more than at first. */
  readonly more: number;
  readonly overMs: number;
  /** As many were ready at first: back there, it is over. */
  readonly from: number;
}

export const UNKNOWN_PACE: Pace = { perMinute: null, growth: null };

const minuteMs = 60_000;
const lately = 5;
const everyMs = 15_000;
/** Fewer looks, or fewer jobs more, are chance. */
const fewestLooks = 4;
const fewestMore = 50;
const leastShare = 0.2;
/** What nobody has measured since then says nothing about now. */
const staleMs = 3 * minuteMs;

/** Reads it, and remembers it for a while. */
export class PaceReader {
  readonly #series: Pick<SeriesStore, "queueMinutes" | "gaugeSteps">;
  readonly #clock: Clock;
  #known: { readonly pace: Promise<Pace>; readonly at: number } | null = null;

  constructor(series: Pick<SeriesStore, "queueMinutes" | "gaugeSteps">, clock: Clock) {
    this.#series = series;
    this.#clock = clock;
  }

  read(): Promise<Pace> {
    const at = this.#clock.monotonic();
    if (this.#known === null || at - this.#known.at >= everyMs) {
      const pace = this.#read();
      this.#known = { pace, at };
      // The next look asks again.
      pace.catch(() => (this.#known = null));
    }
    return this.#known.pace;
  }

  async #read(): Promise<Pace> {
    const now = this.#clock.now();
    const minute = Math.floor(now / minuteMs) * minuteMs;
    const [minutes, looks] = await Promise.all([
      this.#series.queueMinutes(minute - lately * minuteMs, minute),
      this.#series.gaugeSteps({
        since: minute - (lately + 1) * minuteMs,
        until: minute + minuteMs,
        stepMs: minuteMs,
        names: ["ready"],
      }),
    ]);
    return { perMinute: perMinute(minutes), growth: growthOf(looks, now) };
  }
}

function perMinute(minutes: readonly QueueMinute[]): number | null {
  if (minutes.length === 0) return null;
  return Math.round(minutes.reduce((sum, { done }) => sum + done, 0) / lately);
}

/** Each look no less than the one before, and much more in all. Pure. */
export function growthOf(looks: readonly LoadRow[], now: number): Growth | null {
  const all = looks.filter(({ source }) => source === "queues").sort((a, b) => a.at - b.at);
  const [first, last] = [all[0], all.at(-1)];
  if (first === undefined || last === undefined || all.length < fewestLooks) return null;
  if (now - last.at > staleMs || all.some(({ sum }, i) => sum < (all[i - 1]?.sum ?? 0))) return null;
  const more = last.sum - first.sum;
  if (more < Math.max(fewestMore, first.sum * leastShare)) return null;
  const then = (source: string, at: number): number =>
    looks.find((row) => row.source === source && row.at === at)?.sum ?? 0;
  const grown = looks
    .filter(({ at, source }) => at === last.at && source.startsWith("queue:"))
    .map(({ source, sum }) => ({ queue: source.slice("queue:".length), by: sum - then(source, first.at) }))
    .sort((a, b) => b.by - a.by || (a.queue < b.queue ? -1 : 1));
  const most = grown[0];
  return {
    queue: most === undefined || most.by <= 0 ? null : most.queue,
    more,
    overMs: last.at - first.at,
    from: first.sum,
  };
}
