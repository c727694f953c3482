/**
 * What came after what in a run: each step says how many results the run had been given when it asked for it, and which
 * of them it was itself. Nothing here is told by the clock: steps that take no time would be in any order.
 *
 *   s1 ─▶ given 1 ─▶ s2, s3 (both asked for after 1) ─▶ given 2, 3 ─▶ s4 (after 3)
 *
 * Steps that are alike and were under way at the same time count as one (a *burst*). Otherwise a fan-out of 40 in which the
 * 17th is asked for when the first is over would be drawn as a thicket.
 * Invariant: pure, and quick: a thousand steps take a few milliseconds.
 */
import { stemOf } from "../../operate/index.ts";

/** `given`, `place`: as in `StepEntry` (workflows/job-history.ts). */
export interface OrderedStep {
  readonly name: string;
  readonly kind: string;
  readonly given: number;
  readonly givenOrder: number | null;
}

/** From what was given when it was asked for, up to what had been given with it; without an end where nothing was asked for after it. */
interface Span {
  readonly from: number;
  readonly to: number;
}

interface Burst {
  readonly members: number[];
  /** Each sorted. */
  readonly starts: number[];
  readonly ends: number[];
  end: number;
}

/** More edges than this between two bursts are thinned out: 500 to 500 would be 250,000. */
const mostEdges = 1_024;

/** For each step, in the order in which they were asked for: the steps right before it. */
export function stepsBefore(steps: readonly OrderedStep[]): number[][] {
  const before: number[][] = steps.map(() => []);
  const bursts = burstsOf(steps);
  for (const [i, burst] of bursts.entries()) {
    const found: Burst[] = [];
    let latestStart = -Infinity;
    for (let j = i - 1; j >= 0; j -= 1) {
      const other = bursts[j] as Burst;
      // Without those that were over before another of them.
      if (last(other) <= latestStart || !isBefore(other, burst)) continue;
      if (found.some((one) => one.members.length > 1 && isBefore(other, one))) continue;
      found.push(other);
      latestStart = Math.max(latestStart, first(other));
    }
    for (const other of found) link(other.members, burst.members, before);
  }
  return before;
}

function burstsOf(steps: readonly OrderedStep[]): Burst[] {
  const spans = spansOf(steps);
  const bursts: Burst[] = [];
  const latest = new Map<string, Burst>();
  for (const [i, { name, kind }] of steps.entries()) {
    const { from, to } = spans[i] as Span;
    const family = `${kind} ${stemOf(name, kind)}`;
    let burst = latest.get(family);
    if (burst === undefined || from >= burst.end) {
      burst = { members: [], starts: [], ends: [], end: to };
      latest.set(family, burst);
      bursts.push(burst);
    }
    burst.members.push(i);
    burst.starts.push(from);
    burst.ends.push(to);
    burst.end = Math.max(burst.end, to);
  }
  for (const { starts, ends } of bursts) {
    starts.sort(ascending);
    ends.sort(ascending);
  }
  return bursts;
}

/**
 * Gives the results once more, as they were given. What has no place was given while nothing else was under way, so after
 * everything that was asked for before it. Of a history that is cut, what is not there may have been given too.
 */
function spansOf(steps: readonly OrderedStep[]): Span[] {
  const to = steps.map(() => Infinity);
  const placed = [...steps.keys()]
    .filter((i) => steps[i]?.givenOrder !== null)
    .sort((a, b) => (steps[a]?.givenOrder ?? 0) - (steps[b]?.givenOrder ?? 0));
  const alone: number[] = [];
  let count = 0;
  let nextPlaced = 0;
  let nextAlone = 0;
  for (const [i, { given, givenOrder }] of steps.entries()) {
    if (i === 0) count = given;
    while (count < given) {
      const next = placed[nextPlaced];
      if (next !== undefined && next < i) {
        to[next] = count += 1;
        nextPlaced += 1;
      } else if (nextAlone < alone.length) {
        to[alone[nextAlone] as number] = count += 1;
        nextAlone += 1;
      } else count = given;
    }
    if (givenOrder === null) alone.push(i);
  }
  return steps.map(({ given }, i) => ({ from: given, to: to[i] as number }));
}

/** All of it was over; or, of two bursts, it is a pipeline: when the nth began, so many of the others were over. */
function isBefore(one: Burst, other: Burst): boolean {
  if (last(one) <= first(other)) return true;
  const { length } = other.members;
  if (length < 2 || length > one.members.length) return false;
  return other.starts.every((start, n) => (one.ends[n] as number) <= start);
}

function link(from: readonly number[], to: readonly number[], before: number[][]): void {
  if (from.length * to.length <= mostEdges) {
    for (const step of to) before[step]?.push(...from);
    return;
  }
  for (let n = 0; n < Math.max(from.length, to.length); n += 1)
    before[to[n % to.length] as number]?.push(from[n % from.length] as number);
}

function first({ starts }: Burst): number {
  return starts[0] as number;
}

function last({ ends }: Burst): number {
  return ends.at(-1) as number;
}

function ascending(a: number, b: number): number {
  return a - b;
}
