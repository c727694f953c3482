/**
 * What has been decided about a group of failures, and whether that still holds.
 *
 *   open ──ignore(until, count)──▶ ignored ──its time or its count is over──▶ open
 *     └───resolve──▶ resolved ──it fails so again──▶ regressed (open, and it was thought to be over)
 *
 * Only `open`, `ignored` and `resolved` are ever written, by hand. What they have come to is worked out by whoever looks, from
 * when it failed last and how often since; so failing costs nothing more, and nobody has to watch.
 * Invariant: pure.
 * Not here: counting failures (failure-counts.ts), keeping the decision (failure-rows.ts).
 */

/** What was decided by hand. */
export type Decision = "open" | "ignored" | "resolved";

/** Where a group stands: what was decided, and what has come of it. */
export type FailureGroupState = Decision | "regressed";

/** What wants attention first. */
export const FAILURE_GROUP_STATES: readonly FailureGroupState[] = [
  "regressed",
  "open",
  "ignored",
  "resolved",
];

/** A decision with its bounds. */
export interface FailureDecision {
  readonly decision: Decision;
  /** When it was decided; null: never. */
  readonly at: number | null;
  /** Ignored until then. */
  readonly untilAt: number | null;
  /** Ignored until it has failed so many times more. */
  readonly untilCount: number | null;
}

/** What is decided about a cause; left out stays as it is. */
export interface FailureGroupChange {
  readonly decision?: {
    readonly state: Decision;
    readonly by: string | null;
    /** Ignored until then, or so long from now. */
    readonly untilAt: number | null;
    readonly untilDelayMs: number | null;
    /** Ignored until it has failed so many times more. */
    readonly untilCount: number | null;
  };
  readonly note?: string | null;
  readonly link?: string | null;
}

/**
 * Where a group stands now. `lastAt`: when it failed last; `since`: how often since the decision.
 *
 * @example
 * failureGroupState({ decision: "resolved", at: 1_000, untilAt: null, untilCount: null }, { now: 3_000, lastAt: 2_000, since: 1 }); // "regressed"
 */
export function failureGroupState(
  { decision, at, untilAt, untilCount }: FailureDecision,
  seen: { readonly now: number; readonly lastAt: number | null; readonly since: number },
): FailureGroupState {
  if (decision === "resolved")
    return seen.lastAt !== null && seen.lastAt > (at ?? 0) ? "regressed" : "resolved";
  if (decision === "open") return "open";
  if (untilAt !== null && seen.now >= untilAt) return "open";
  return untilCount !== null && seen.since >= untilCount ? "open" : "ignored";
}
