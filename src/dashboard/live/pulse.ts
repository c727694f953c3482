/**
 * Health and readiness for those who ask without a token: yes or no, and no word of why.
 *
 * Invariant: however often it is asked, the database is asked once a second at most. It is asked as the client asks, not as
 * those who look do: a dashboard whose reads are slow is no reason to end the process.
 */
import type { Clock } from "../../clock.ts";
import { type Holdfast, readiness } from "../../index.ts";

const trustMs = 1_000;

/** What is told: whether the database answers, and whether work may be given to this process. */
export interface Beat {
  readonly healthy: boolean;
  readonly ready: boolean;
}

export class Pulse {
  readonly #hf: Holdfast;
  readonly #clock: Clock;
  #known: { readonly at: number; readonly beat: Promise<Beat> } | null = null;

  constructor(hf: Holdfast, clock: Clock) {
    this.#hf = hf;
    this.#clock = clock;
  }

  now(): Promise<Beat> {
    const at = this.#clock.monotonic();
    if (this.#known === null || at - this.#known.at >= trustMs)
      this.#known = {
        at,
        beat: readiness(this.#hf).then(({ ok, database }) => ({ healthy: database.ok, ready: ok })),
      };
    return this.#known.beat;
  }
}
