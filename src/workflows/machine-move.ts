/**
 * What a machine's run and its attempt tell each other: where it stands, and that it goes on later.
 *
 * By itself, so that neither the context nor the attempt needs to know what a machine is.
 * Not here: machines (machine.ts).
 */
import type { ClaimedJob } from "../jobs/job.ts";
import type { Logger } from "../logger.ts";
import type { Backoff, BackoffFunction } from "../jobs/backoff.ts";
import type { Store } from "../storage/store.ts";

/** Marks moves, also those of another copy of the package. */
export const moveBrand: unique symbol = Symbol.for("holdfast.move") as never;

/** Where an attempt of a machine stands, for whoever settles it. */
export interface MachinePosition {
  readonly step: string;
  readonly attempt: number;
  readonly crashes: number;
  readonly policy: { readonly attempts: number; readonly backoff: Backoff | BackoffFunction };
}

/** A machine that goes on later, as its run returns it to the attempt. */
export interface Moved {
  readonly [moveBrand]: "moved";
  readonly delayMs: number;
}

/** Whether a handler's value says that its machine goes on later. */
export function isMoved(value: unknown): value is Moved {
  return isMove(value, "moved");
}

/** Whether a value is a move of this kind. */
export function isMove(value: unknown, kind: "next" | "finish" | "moved"): boolean {
  return (
    typeof value === "object" && value !== null && (value as { [moveBrand]?: unknown })[moveBrand] === kind
  );
}

/** What a machine's run reaches of its attempt; see worker/context.ts. */
export interface MachinePort {
  readonly job: ClaimedJob;
  readonly store: Pick<Store, "workflows">;
  /** Remembers, before a move is saved, that this version has taken the machine on. False: it is not ours any more. */
  readonly advance: () => Promise<boolean>;
  readonly maxBytes: number;
  /** Every line names the job. */
  readonly log: Pick<Logger, "info">;
  readonly monotonic: () => number;
  readonly patiently: <T>(call: () => Promise<T>) => Promise<T>;
  /** Tells whose retries count now; the timeout starts anew. */
  readonly stand: (place: MachinePosition) => void;
  readonly lost: () => void;
  /** It was asked to stop before its next step. */
  readonly pausing: () => boolean;
}

/** Where a context keeps it. */
export const machinePort: unique symbol = Symbol("machine");
