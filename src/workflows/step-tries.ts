/**
 * When the tries of a step were: kept with the step only where there was more than a first try that went well, so that a
 * step without trouble writes nothing for it.
 *
 * Kept as text, `[[start, took], …]` in milliseconds, in a column that steps have no other use for. The starts are by the
 * clocks of the workers that tried; whoever reads them sets them against the step's own start, which is the database's.
 * Invariants: at most the newest 32; what cannot be read counts as nothing.
 */
import type { StepRecord } from "./store.ts";

/** One try: when it began, and how long it took. Epoch milliseconds. */
export interface StepTry {
  readonly startedAt: number;
  readonly endedAt: number;
}

const mostTries = 32;

/** The tries so far with one more, as text; null for a first try that went well. */
export function withTry(
  record: StepRecord | null | undefined,
  startedAt: number,
  tookMs: number,
  ok: boolean,
): string | null {
  const before = record === null || record === undefined ? [] : decode(record.label);
  if (ok && before.length === 0) return null;
  const all = [...before, [Math.round(startedAt), Math.max(0, Math.round(tookMs))] as const];
  return JSON.stringify(all.slice(-mostTries));
}

/**
 * The tries of a step, oldest first, by the database's clock. One that went well at once has one; what is not known
 * (a history from before, more than 32) is left out.
 */
export function triesOf(step: StepRecord): StepTry[] {
  if (step.kind !== "step") return [];
  const tries = decode(step.label);
  const first = tries[0];
  if (first === undefined)
    return step.endedAt === null ? [] : [{ startedAt: step.startedAt, endedAt: step.endedAt }];
  // The step's start is that of its first try: the first that is kept, unless older ones have been dropped.
  const shift = tries.length < mostTries ? step.startedAt - first[0] : 0;
  return tries.map(([at, tookMs]) => ({ startedAt: at + shift, endedAt: at + shift + tookMs }));
}

function decode(text: string | null): (readonly [number, number])[] {
  if (text === null) return [];
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value.filter(isTry) : [];
  } catch {
    return [];
  }
}

function isTry(value: unknown): value is readonly [number, number] {
  return Array.isArray(value) && value.length === 2 && value.every((part) => Number.isFinite(part));
}
