/**
 * The view `enqueue`: what a row that comes by raw SQL may have, and what whoever inserts another one is told.
 *
 * Invariants: the bounds are those of the client's own options; a row outside of them is refused whole, so that no claim
 * meets a value that it cannot compute with.
 * Not here: the conditions themselves (each dialect's trigger has its own way to write them).
 */
import { LATEST_INSTANT, MAX_DELAY_MS } from "../values/duration.ts";
import { ATTEMPT_BOUNDS, MAX_CONTEXT_CHARS, PRIORITY_BOUNDS } from "../jobs/job-bounds.ts";
import { MAX_KEY_BYTES } from "../values/name.ts";

/** The numbers of a row, each with its bounds. */
export const RAW_NUMBERS: readonly { readonly column: string; readonly min: number; readonly max: number }[] =
  [
    { column: "priority", ...PRIORITY_BOUNDS },
    { column: "run_at", min: 0, max: LATEST_INSTANT },
    { column: "delay_ms", min: 0, max: MAX_DELAY_MS },
    { column: "max_attempts", ...ATTEMPT_BOUNDS },
  ];

/** What is said of a row that is refused. */
export const REFUSALS = {
  number: ({ column, min, max }: (typeof RAW_NUMBERS)[number]): string =>
    `holdfast: ${column} must be a whole number from ${min} to ${max}`,
  name: (column: "name" | "queue"): string =>
    `holdfast: ${column} must match ^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$`,
  input: "holdfast: input must be JSON",
  lane: `holdfast: lane must be text of 1 to ${MAX_KEY_BYTES} bytes`,
  context: `holdfast: context must be text of at most ${MAX_CONTEXT_CHARS} characters`,
  id: "holdfast: id must be a UUID of version 7",
  takenId: "holdfast: id belongs to a job that is there already",
  usedId: "holdfast: id belongs to a job that was deleted within the last hour",
} as const;
