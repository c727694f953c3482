/**
 * What came after what in a run. Nothing of it is written down: a step that began when another was over came after it.
 *
 * Steps that are alike and ran side by side count as one (a *burst*). Otherwise the instants would draw a fan-out of 40 as a
 * thicket: the 17th may begin in the very millisecond in which the 16th is over.
 * Invariant: pure, and quick: a thousand steps take a few milliseconds.
 */
import { stemOf } from "../policy/alike.ts";

export interface TimedStep {
  readonly name: string;
  readonly kind: string;
  readonly startedAt: number;
  /** Null: it is not over. */
  readonly endedAt: number | null;
}

interface Burst {
  readonly members: number[];
  /** Each sorted; a step that is not over ends never. */
  readonly starts: number[];
  readonly ends: number[];
}

/** More edges than this between two bursts are thinned out: 500 to 500 would be 250,000. */
const mostEdges = 1_024;

/** For each step, in the order in which they were asked for: the steps right before it. */
export function stepsBefore(steps: readonly TimedStep[]): number[][] {
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

function burstsOf(steps: readonly TimedStep[]): Burst[] {
  const chains = chainsOf(steps);
  const bursts: Burst[] = [];
  const known = new Map<Chain, Burst>();
  for (const [i, { startedAt, endedAt }] of steps.entries()) {
    const chain = chains[i] as Chain;
    let burst = chain.overlaps ? known.get(chain) : undefined;
    if (burst === undefined) {
      burst = { members: [], starts: [], ends: [] };
      known.set(chain, burst);
      bursts.push(burst);
    }
    burst.members.push(i);
    burst.starts.push(startedAt);
    burst.ends.push(endedAt ?? Infinity);
  }
  for (const { starts, ends } of bursts) {
    starts.sort(ascending);
    ends.sort(ascending);
  }
  return bursts;
}

/** Steps that are alike, each begun before the others were over or in that very millisecond. */
interface Chain {
  end: number;
  /** Two of them ran at the same time. Where none did, they came one after the other, however quickly. */
  overlaps: boolean;
}

/** For each step its chain. */
function chainsOf(steps: readonly TimedStep[]): Chain[] {
  const latest = new Map<string, Chain>();
  return steps.map(({ name, kind, startedAt, endedAt }) => {
    const family = `${kind} ${stemOf(name, kind)}`;
    const end = endedAt ?? Infinity;
    let chain = latest.get(family);
    if (chain === undefined || startedAt > chain.end) latest.set(family, (chain = { end, overlaps: false }));
    else chain.overlaps ||= startedAt < chain.end;
    chain.end = Math.max(chain.end, end);
    return chain;
  });
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
