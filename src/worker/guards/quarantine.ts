/**
 * Which jobs that have crashed before may start.
 *
 * Such a job is never held ahead of need: if its neighbour takes the process down, that would count as one more crash of its own.
 * Of those that have crashed twice or more, only one at a time is started within a few seconds: the guilty one then goes down
 * without the others, instead of all of them being counted up to dead together (C8). The time is short, so that long jobs do not
 * keep each other waiting: a poison job usually kills soon.
 */
import type { ClaimedJob } from "../../jobs/job.ts";

const quarantineMs = 5_000;

export class Quarantine {
  readonly #random: () => number;
  #suspect: string | undefined;
  #suspectAt = -Infinity;

  constructor(random: () => number) {
    this.#random = random;
  }

  /** Why a job that has crashed before is released, and for how long; null: it may start. */
  refusal(
    job: ClaimedJob,
    slotIsFree: boolean,
    now: number,
  ): { readonly reason: string; readonly delayMs: number } | null {
    if (!slotIsFree) return { reason: "it has crashed before, and no slot is free", delayMs: 0 };
    if (job.crashes < 2) return null;
    const other =
      this.#suspect !== undefined && this.#suspect !== job.id && now - this.#suspectAt < quarantineMs;
    if (other) {
      const reason = "it has crashed before, and so has another that was just started";
      return { reason, delayMs: 50 + this.#random() * 150 };
    }
    this.#suspect = job.id;
    this.#suspectAt = now;
    return null;
  }

  /** An attempt of it has ended. */
  ended(job: ClaimedJob): void {
    if (this.#suspect === job.id) this.#suspect = undefined;
  }
}
