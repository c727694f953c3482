/**
 * Failures by cause, put together: jobs that are dead or retrying of it now (a bounded walk), what workers counted of it by the
 * minute, and what was decided about it.
 *
 * Invariant: pure, but for the looks that it is handed. A cause that only some of these know is listed all the same: its
 * jobs may all have come good, or may have failed under `hf.lease`, where no worker counts.
 */
import type { FailureGroup, FailureGroupDetail } from "../operate/browse.ts";
import { failureGroupState, FAILURE_GROUP_STATES } from "./failure-decision.ts";
import type { Row } from "../storage/catalogue.ts";
import { maybeNumber, number, text } from "../jobs/rows.ts";
import { type KnownGroup, type GroupCounts, HOURS_SHOWN, noHours } from "./failure-rows.ts";

const HOUR = 3_600_000;

/** Jobs of one cause, as the walks found them. */
export interface Jobs {
  readonly name: string;
  /** The most frequent first. */
  readonly queues: readonly string[];
  readonly dead: number;
  readonly retrying: number;
  readonly lastHour: number;
  readonly lastDay: number;
  readonly lastWeek: number;
  readonly firstAt: number | null;
  readonly lastAt: number | null;
  readonly sample: string;
}

/** One entry for each cause, over all queues. `dead` and `failed`: the rows of groupDead and groupFailed. */
export function jobsByGroup(dead: readonly Row[], failed: readonly Row[]): Map<string, Jobs> {
  const found = new Map<string, Jobs & { readonly counts: Map<string, number> }>();
  const add = (row: Row, of: Pick<Jobs, "dead" | "retrying" | "lastHour" | "lastDay" | "lastWeek">): void => {
    const group = text(row, "failure_group");
    const known = found.get(group);
    const counts = known?.counts ?? new Map<string, number>();
    const queue = text(row, "queue");
    counts.set(queue, (counts.get(queue) ?? 0) + of.dead + of.retrying);
    const sample = text(row, "sample");
    found.set(group, {
      name: text(row, "name"),
      counts,
      queues: [...counts].sort(([, a], [, b]) => b - a).map(([name]) => name),
      dead: (known?.dead ?? 0) + of.dead,
      retrying: (known?.retrying ?? 0) + of.retrying,
      lastHour: (known?.lastHour ?? 0) + of.lastHour,
      lastDay: (known?.lastDay ?? 0) + of.lastDay,
      lastWeek: (known?.lastWeek ?? 0) + of.lastWeek,
      firstAt: least(known?.firstAt ?? null, maybeNumber(row, "first_at")),
      lastAt: most(known?.lastAt ?? null, maybeNumber(row, "last_at")),
      // A dead one before one that will be tried again: it can be tried by hand.
      sample: known === undefined || (of.dead > 0 && sample > known.sample) ? sample : known.sample,
    });
  };
  for (const row of dead)
    if (row["queue"] !== null)
      add(row, {
        dead: number(row, "n"),
        retrying: 0,
        lastHour: number(row, "hour"),
        lastDay: number(row, "day"),
        lastWeek: number(row, "week"),
      });
  for (const row of failed)
    add(row, { dead: 0, retrying: number(row, "n"), lastHour: 0, lastDay: 0, lastWeek: 0 });
  return new Map([...found].map(([group, { counts: _counts, ...jobs }]) => [group, jobs]));
}

/**
 * A cause as viewers of `queues` alone may see it. The text, the sample, the times and the note of a cause that other queues
 * have met as well may be those of the other queues: they are left out.
 */
function within(
  queues: readonly string[],
  {
    knownGroup,
    counts,
  }: { readonly knownGroup: KnownGroup | undefined; readonly counts: GroupCounts | undefined },
): { readonly knownGroup: KnownGroup | undefined; readonly counts: GroupCounts | undefined } {
  const met = counts?.places ?? [];
  const places = met.filter(({ queue }) => queues.includes(queue));
  // Without counts nobody knows which queue the text is from.
  if (places.length > 0 && places.length === met.length) return { knownGroup, counts };
  return {
    knownGroup: knownGroup && {
      ...knownGroup,
      firstAt: places.reduce<number | null>((at, place) => least(at, place.firstAt), null),
      lastAt: places.reduce<number | null>((at, place) => most(at, place.lastAt), null),
      sample: null,
      message: null,
      by: null,
      note: null,
      link: null,
      since: 0,
    },
    counts: counts && { ...counts, places },
  };
}

/** Everything about one cause. `message` is that of its sample, where the job is still there. */
export function failureGroup(
  group: string,
  of: {
    readonly jobs: Jobs | undefined;
    readonly knownGroup: KnownGroup | undefined;
    readonly counts: GroupCounts | undefined;
    readonly message: string | null;
    readonly now: number;
    /** Nothing of other queues is told; null: of all. */
    readonly within: readonly string[] | null;
  },
): FailureGroupDetail {
  const { jobs, now } = of;
  const { knownGroup, counts } = of.within === null ? of : within(of.within, of);
  const lastAt = most(jobs?.lastAt ?? null, knownGroup?.lastAt ?? null);
  const hours = counts?.hours ?? noHours();
  const day = hours.slice(-24);
  const places = counts?.places ?? [];
  const queues = [...new Set([...(jobs?.queues ?? []), ...places.map(({ queue }) => queue)])];
  return {
    group,
    name: jobs?.name ?? knownGroup?.name ?? "",
    queue: queues[0] ?? "",
    queues,
    versions: [...new Set(places.map(({ version }) => version))].sort((a, b) => b - a),
    state: stateOf(of),
    decidedAt: knownGroup?.at ?? null,
    decidedBy: knownGroup?.by ?? null,
    untilAt: knownGroup?.untilAt ?? null,
    untilCount: knownGroup?.untilCount ?? null,
    since: knownGroup?.since ?? 0,
    note: knownGroup?.note ?? null,
    link: knownGroup?.link ?? null,
    dead: jobs?.dead ?? 0,
    retrying: jobs?.retrying ?? 0,
    lastHour: Math.max(counts?.lastHour ?? 0, jobs?.lastHour ?? 0),
    lastDay: Math.max(sum(day), jobs?.lastDay ?? 0),
    lastWeek: Math.max(sum(hours), jobs?.lastWeek ?? 0),
    day,
    firstAt: least(jobs?.firstAt ?? null, knownGroup?.firstAt ?? null),
    lastAt,
    sample: jobs?.sample ?? knownGroup?.sample ?? null,
    message: of.message ?? knownGroup?.message ?? null,
    week: hours,
    weekFrom: Math.floor(now / HOUR) * HOUR - (HOURS_SHOWN - 1) * HOUR,
    places: places.map(({ queue, version, n }) => ({ queue, version, n })),
  };
}

/** A decision is about the cause in all queues, and so is what has come of it. */
function stateOf({ jobs, knownGroup, now }: Parameters<typeof failureGroup>[1]): FailureGroup["state"] {
  if (knownGroup === undefined) return "open";
  const lastAt = most(jobs?.lastAt ?? null, knownGroup.lastAt);
  return failureGroupState(knownGroup, { now, lastAt, since: knownGroup.since });
}

/** What wants attention first, then the most jobs, then the most failures. */
export function byAttention(a: FailureGroup, b: FailureGroup): number {
  const rank = ({ state }: FailureGroup): number => FAILURE_GROUP_STATES.indexOf(state);
  return (
    rank(a) - rank(b) ||
    b.dead + b.retrying - (a.dead + a.retrying) ||
    b.lastDay - a.lastDay ||
    (b.lastAt ?? 0) - (a.lastAt ?? 0)
  );
}

function least(a: number | null, b: number | null): number | null {
  return a === null ? b : b === null ? a : Math.min(a, b);
}

function most(a: number | null, b: number | null): number | null {
  return a === null ? b : b === null ? a : Math.max(a, b);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, n) => total + n, 0);
}
