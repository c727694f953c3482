// Bands on a time axis, for a job's life and for each step of a run. Pure: the time is passed in. Instants come from
// several clocks: a band that would end before it begins becomes a point and says so.
import type { WorkflowStep, JobDetail } from "../../../src/dashboard/api/contract.ts";

export type BandKind =
  | "run"
  | "failed"
  | "lost"
  | "delay"
  | "wait"
  | "backoff"
  | "sleep"
  | "signal"
  | "call"
  | "steps";

export interface Band {
  readonly kind: BandKind;
  readonly from: number;
  readonly to: number;
  /** Still open: it ends now, or when planned. */
  readonly open: boolean;
}

export interface Bands {
  readonly bands: readonly Band[];
  /** Clocks differ: it would end before it began. */
  readonly skewed: boolean;
}

/** Smaller differences between two clocks are ignored. */
const alikeMs = 5;

class Builder {
  readonly bands: Band[] = [];
  skewed = false;

  add(kind: BandKind, from: number, to: number, open = false): void {
    if (to < from - alikeMs) this.skewed = true;
    this.bands.push({ kind, from, to: Math.max(from, to), open });
  }

  /** A gap; none if it has no length. */
  gap(kind: BandKind, from: number, to: number, open = false): void {
    if (to < from - alikeMs) this.skewed = true;
    else if (to > from) this.bands.push({ kind, from, to, open });
  }
}

/** The first start of a job, by its first attempt or step, if known. */
export function startOf(firstAttemptAt: number | null, firstStepAt: number | null): number {
  return Math.min(firstAttemptAt ?? Infinity, firstStepAt ?? Infinity);
}

/**
 * A job's life: delay, waiting, attempts, retry delays. An unmeasured attempt has only an end. `firstStepAt`: a run
 * that slept has worked since then, though only its latest start is stored.
 */
export function lifeOf(
  job: Pick<JobDetail, "createdAt" | "runAt" | "startedAt" | "endedAt" | "state" | "errors">,
  firstStepAt: number | null,
  now: number,
): Bands {
  const life = new Builder();
  const attempts: { from: number; to: number; kind: "run" | "failed" | "lost"; open: boolean }[] = job.errors
    .filter(({ attempt }) => attempt > 0)
    .map(({ at, ranMs, lost }) => ({
      from: at - (ranMs ?? 0),
      to: at,
      kind: lost ? "lost" : "failed",
      open: false,
    }));
  const running = job.state === "running";
  const last = job.startedAt;
  if (last !== null && (running || job.state === "done"))
    attempts.push({
      from: last,
      to: job.endedAt ?? Math.max(now, last),
      kind: "run",
      open: running,
    });
  let at = job.createdAt;
  const first = attempts[0];
  const started = first === undefined ? null : startOf(first.from, firstStepAt);
  // The due time is that of the next or latest attempt. A delay before the first is known only while there was one
  // attempt.
  const due = attempts.length <= 1 && firstStepAt === null ? job.runAt : null;
  if (due !== null && due > at) {
    life.gap("delay", at, due, started === null);
    at = due;
  }
  if (started === null && firstStepAt !== null) {
    // A run that sleeps or waits: it has begun, and no attempt runs or has failed.
    life.gap("wait", at, firstStepAt);
    life.gap("steps", Math.max(at, firstStepAt), job.endedAt ?? Math.max(now, at), job.endedAt === null);
    return life;
  }
  if (started === null) {
    const end = job.endedAt ?? Math.max(now, at);
    if (job.state !== "scheduled") life.gap("wait", at, end, job.endedAt === null);
    return life;
  }
  life.gap("wait", at, started);
  if (first !== undefined && started < first.from) life.gap("steps", started, first.from);
  for (const [i, attempt] of attempts.entries()) {
    const before = attempts[i - 1];
    // A lost job is due at once and waits for its takeover.
    if (before !== undefined) life.gap(before.kind === "lost" ? "wait" : "backoff", before.to, attempt.from);
    life.add(attempt.kind, attempt.from, attempt.to, attempt.open);
  }
  const end = attempts.at(-1);
  if (end !== undefined && end.kind !== "run" && job.endedAt === null && job.runAt !== null)
    life.gap("backoff", end.to, Math.max(job.runAt, Math.min(now, end.to)), true);
  return life;
}

/** One line of the waterfall. */
export interface Track extends Bands {
  readonly step: WorkflowStep;
}

/** `now`: the current time, or the end of an ended job. */
export function tracksOf(steps: readonly WorkflowStep[], now: number): Track[] {
  return steps.map((step) => {
    const track = new Builder();
    bandsOf(step, now, track);
    return { step, bands: track.bands, skewed: track.skewed };
  });
}

function bandsOf(step: WorkflowStep, now: number, track: Builder): void {
  const { startedAt, endedAt, until } = step;
  const over = endedAt !== null || step.state === "cancelled";
  const end = endedAt ?? Math.max(now, startedAt);
  switch (step.kind) {
    case "sleep":
      track.add("sleep", startedAt, over ? end : (until ?? end), !over);
      return;
    case "signal":
      track.add("signal", startedAt, end, !over);
      return;
    case "call":
      track.add("call", startedAt, end, !over);
      return;
    case "step":
      triesInto(step, now, track);
      return;
    case "version":
    case "undo":
    case "machine":
      track.add(step.state === "failed" ? "failed" : "run", startedAt, end, !over);
  }
}

function triesInto(step: WorkflowStep, now: number, track: Builder): void {
  const tries = step.triedAt;
  if (tries.length === 0) {
    const end = step.endedAt ?? Math.max(now, step.startedAt);
    const open = step.endedAt === null && step.state !== "cancelled";
    track.add(step.state === "failed" ? "failed" : "run", step.startedAt, end, open);
    return;
  }
  for (const [i, one] of tries.entries()) {
    const before = tries[i - 1];
    if (before !== undefined) track.gap("backoff", before.endedAt, one.startedAt);
    const good = i === tries.length - 1 && step.state === "done";
    track.add(good ? "run" : "failed", one.startedAt, one.endedAt);
  }
  const last = tries.at(-1);
  if (last !== undefined && step.until !== null && step.state !== "cancelled")
    track.gap("backoff", last.endedAt, step.until, true);
}

/** From the earliest to the latest instant. */
export function rangeOf(tracks: readonly Bands[]): { from: number; to: number } {
  let from = Infinity;
  let to = -Infinity;
  for (const { bands } of tracks)
    for (const band of bands) {
      from = Math.min(from, band.from);
      to = Math.max(to, band.to);
    }
  if (from === Infinity) return { from: 0, to: 1 };
  return { from, to: Math.max(to, from + 1) };
}

const seconds = 1_000;
const minutes = 60 * seconds;
const hours = 60 * minutes;
const days = 24 * hours;
const lengths = [
  1,
  2,
  5,
  10,
  20,
  50,
  100,
  200,
  500,
  ...[1, 2, 5, 10, 15, 30].map((n) => n * seconds),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * minutes),
  ...[1, 2, 3, 6, 12].map((n) => n * hours),
  ...[1, 2, 7, 14, 30, 90, 365].map((n) => n * days),
];

/** At most `most` round distances from `start` within the window. */
export function ticksOf(start: number, from: number, to: number, most = 6): number[] {
  const step =
    lengths.find((length) => (to - from) / length <= most) ?? Math.max(365 * days, (to - from) / most);
  const ticks: number[] = [];
  for (let at = Math.max(0, Math.ceil((from - start) / step)) * step; start + at <= to; at += step)
    ticks.push(at);
  return ticks;
}

/** A zoomed window: within the whole, at least one millisecond long. */
export function zoomed(
  view: { from: number; to: number },
  whole: { from: number; to: number },
  by: { factor?: number; shift?: number },
): { from: number; to: number } {
  const length = Math.min(whole.to - whole.from, Math.max(1, (view.to - view.from) * (by.factor ?? 1)));
  const middle = (view.from + view.to) / 2 + (by.shift ?? 0) * (view.to - view.from);
  const from = Math.min(Math.max(whole.from, middle - length / 2), whole.to - length);
  return { from, to: from + length };
}

/** Visible rows, with a few on either side. */
export function rowsInSight(
  scrollTop: number,
  height: number,
  rowHeight: number,
  count: number,
): { first: number; last: number } {
  const first = Math.max(0, Math.floor(scrollTop / rowHeight) - 8);
  return { first, last: Math.min(count, Math.ceil((scrollTop + height) / rowHeight) + 8) };
}
