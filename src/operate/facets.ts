/**
 * Counts of a filter's jobs by state, queue and name. Each of the three leaves its own part of the filter out, so that it shows
 * what else there is to choose: beside `queue=mail` the other queues are still counted.
 *
 * Invariant: pure. A count that a walk's bound cut short says so (`more`), and none goes beyond the cap.
 * Not here: the walks (browse-rows.ts).
 */
import type { CappedCount, FacetValue, InsightFilter, JobFacets } from "./browse.ts";
import type { JobState } from "../jobs/job.ts";

/** Jobs of one state, queue and name. */
export interface FacetCell {
  readonly state: JobState;
  readonly queue: string;
  readonly name: string;
  readonly count: number;
  readonly more: boolean;
}

/** As many values of a facet are given, the most frequent first. */
const mostValues = 50;

export function facetsOf(
  cells: readonly FacetCell[],
  filter: Pick<InsightFilter, "states" | "queues" | "names">,
  capped: (count: number, more: boolean) => CappedCount,
  cut: ReadonlySet<JobState>,
): JobFacets {
  const holds = (wanted: readonly string[] | undefined, value: string): boolean =>
    wanted === undefined || wanted.includes(value);
  const sums = (of: (cell: FacetCell) => string, among: (cell: FacetCell) => boolean): FacetValue[] => {
    const found = new Map<string, { count: number; more: boolean }>();
    for (const cell of cells) {
      if (!among(cell) || (cell.count === 0 && !cell.more)) continue;
      const known = found.get(of(cell)) ?? { count: 0, more: false };
      found.set(of(cell), { count: known.count + cell.count, more: known.more || cell.more });
    }
    return [...found]
      .map(([value, { count, more }]) => ({ value, ...capped(count, more) }))
      .sort((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1))
      .slice(0, mostValues);
  };
  const { states, queues, names } = filter;
  const found = sums(
    ({ state }) => state,
    ({ queue, name }) => holds(queues, queue) && holds(names, name),
  );
  // Of a state that was looked for and not found in time, nobody knows that there is none.
  const unseen = [...cut].filter((state) => found.every(({ value }) => value !== state));
  return {
    states: [...found, ...unseen.map((value) => ({ value, count: 0, more: true }))],
    queues: sums(
      ({ queue }) => queue,
      ({ state, name }) => holds(states, state) && holds(names, name),
    ),
    names: sums(
      ({ name }) => name,
      ({ state, queue }) => holds(states, state) && holds(queues, queue),
    ),
    cut: cut.size > 0,
  };
}
