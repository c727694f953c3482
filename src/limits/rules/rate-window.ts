/**
 * Exact rates: at most `limit` starts in every window of `perMs`, kept as the instants of the latest starts.
 *
 * A start is an entry (instant, how many); what is older than a window is forgotten. A job that was claimed now starts a
 * moment later: its entry is the latest instant at which it may (its claimer gives it back if it cannot), so that it is the
 * starts that keep to the rate, however late each of them comes. Entries are as many as there were
 * claims in a window; past `mostEntries` neighbours are merged into the later instant of the two, which can only make
 * room come back later, never earlier: the limit holds in every window whatever is merged.
 *
 * Invariants: pure; an instant that lies ahead of `now` counts as within the window; one that lies further ahead than a
 * start can be late and a window more is a clock that was set back, and is taken as now, so that a rate cannot stand still
 * for much longer than its window.
 * Not here: where the entries are kept (a lane's or a queue's row), who asks (limits/limited-claim.ts).
 */

/** At most `limit` starts in every window of `perMs`. */
export interface Rate {
  readonly limit: number;
  readonly perMs: number;
}

/** Starts: [instant, how many], in order. */
export type Starts = readonly (readonly [at: number, n: number])[];

const mostEntries = 1_000;
/** However slow a database is, no claim allows its jobs to start later than this. */
const MOST_LATE_MS = 10_000;

/**
 * How many may start now, and when the next one may if none can.
 *
 * @example
 * roomIn([[0, 2]], { limit: 2, perMs: 1_000 }, 500); // { room: 0, opensAt: 1_000 }
 */
export function roomIn(starts: Starts, rate: Rate, now: number): { room: number; opensAt: number } {
  const live = within(starts, rate.perMs, now);
  const used = live.reduce((sum, [, n]) => sum + n, 0);
  const room = Math.max(0, rate.limit - used);
  if (room > 0) return { room, opensAt: now };
  // The first instant at which enough of the oldest have left: a lowered limit may need several to go.
  let left = used;
  for (const [at, n] of live) {
    left -= n;
    if (left < rate.limit) return { room: 0, opensAt: at + rate.perMs };
  }
  return { room: 0, opensAt: now + rate.perMs };
}

/**
 * The starts with `n` more, which come at `by` at the latest.
 *
 * @example
 * started([], { limit: 2, perMs: 1_000 }, 500, 2, 600); // [[600, 2]]
 */
export function started(starts: Starts, rate: Rate, now: number, n: number, by = now): Starts {
  const live = within(starts, rate.perMs, now).map(([at, count]) => [at, count] as [number, number]);
  if (n > 0) {
    const same = live.find(([at]) => at === by);
    if (same !== undefined) same[1] += n;
    else live.push([by, n]);
    live.sort((a, b) => a[0] - b[0]);
  }
  return live.length > mostEntries ? merged(live) : live;
}

/** How late after its claim a job may start. */
export interface Lateness {
  /** By then it has started, or has been given back: what is counted. */
  readonly startsMs: number;
  /** Until then its worker may set about it: the rest is for what comes between its look at the clock and the handler. */
  readonly beginsMs: number;
}

/**
 * How long claims have lately taken, with one more: the slowest of them, a tenth less with each. Half with each that took less than a
 * quarter: what held up one claim (a failover) must not hold up rates for a minute.
 *
 * @example
 * slowestLately(100, 40); // 90
 */
export function slowestLately(beforeMs: number, tookMs: number): number {
  return Math.max(tookMs, beforeMs * (tookMs < beforeMs / 4 ? 0.5 : 0.9));
}

/**
 * A tenth of the rate's window, from 20 ms to a second; more where claims have lately taken longer than that. Half of the
 * tenth is kept for a process that the machine stops just before the handler's first line.
 *
 * @example
 * lateness({ limit: 5, perMs: 500 }, 3); // { startsMs: 50, beginsMs: 25 }
 */
export function lateness(rate: Rate, claimsTakeMs: number): Lateness {
  const tenth = Math.min(1_000, Math.max(20, Math.floor(rate.perMs / 10)));
  const reserve = Math.ceil(tenth / 2);
  const startsMs = Math.min(MOST_LATE_MS, Math.max(tenth, Math.ceil(claimsTakeMs * 1.5) + reserve));
  return { startsMs, beginsMs: startsMs - reserve };
}

/**
 * The starts without those of jobs that were claimed at these instants and given back before they started. Each is
 * taken from its own entry: any other would let its place come back too early.
 *
 * @example
 * givenBack([[0, 2], [500, 1]], [0]); // [[0, 1], [500, 1]]
 */
export function givenBack(starts: Starts, claimedAt: readonly number[]): Starts {
  const kept = starts.map(([at, n]) => [at, n] as [number, number]);
  for (const instant of claimedAt) {
    const entry = kept.find(([at, n]) => at === instant && n > 0);
    if (entry !== undefined) entry[1] -= 1;
  }
  return kept.filter(([, n]) => n > 0);
}

/** A text that is not ours (a hand in the tables) is no starts at all: it harms one window and nothing else. */
export function parseStarts(text: string | null): Starts {
  if (text === null) return [];
  try {
    const value: unknown = JSON.parse(text);
    if (Array.isArray(value) && value.every(isEntry)) return value as Starts;
  } catch {
    // As below.
  }
  return [];
}

function isEntry(entry: unknown): boolean {
  return (
    Array.isArray(entry) &&
    entry.length === 2 &&
    entry.every((part) => typeof part === "number" && Number.isFinite(part))
  );
}

function within(starts: Starts, perMs: number, now: number): Starts {
  return starts
    .map(([at, n]) => [at > now + perMs + MOST_LATE_MS ? now : at, n] as const)
    .filter(([at]) => at + perMs > now)
    .sort((a, b) => a[0] - b[0]);
}

function merged(starts: readonly (readonly [number, number])[]): Starts {
  const half: (readonly [number, number])[] = [];
  for (let i = 0; i < starts.length; i += 2) {
    const [first, second] = [starts[i] as readonly [number, number], starts[i + 1]];
    half.push(second === undefined ? first : [second[0], first[1] + second[1]]);
  }
  return half;
}
