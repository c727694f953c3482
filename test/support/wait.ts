// Waiting for a condition with a deadline, and never for a guessed time.
import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";

export interface WaitOptions {
  /** What is awaited, for the error: "the second worker to take the job over". */
  what: string;
  /** Default 45 s: generous, since only a failing test ever waits for it. */
  deadlineMs?: number;
  everyMs?: number;
}

/** Polls until `condition` gives something truthy, and returns that. A throw counts as "not yet". */
export async function waitFor<T>(
  condition: () => T | Promise<T>,
  { what, deadlineMs = 45_000, everyMs = 20 }: WaitOptions,
): Promise<NonNullable<T>> {
  const deadline = performance.now() + deadlineMs;
  for (;;) {
    let last: T | undefined;
    let error: unknown;
    try {
      last = await condition();
      if (last) return last;
    } catch (caught) {
      error = caught;
    }
    if (performance.now() >= deadline) {
      const seen =
        error === undefined ? `last seen: ${inspect(last, { depth: 3 })}` : `last error: ${String(error)}`;
      throw new Error(`Waited ${deadlineMs} ms for ${what}; ${seen}`, { cause: error });
    }
    await sleep(everyMs);
  }
}
