/**
 * Progress of one attempt on its way to the database.
 *
 * Invariants: one write at a time for each attempt; what is written is the newest value; a write that is refused means that the
 * attempt is not ours any more, and the handler is told.
 */
import { StateError } from "./errors.ts";
import type { ClaimedJob } from "./job.ts";
import type { Store } from "./store.ts";

/**
 * Writes the newest value; values that are overtaken while a write is under way are never written, so a handler
 * that reports ten thousand times a second costs one write at a time.
 */
export class ProgressWriter {
  readonly #job: ClaimedJob;
  readonly #store: Pick<Store, "progress">;
  #next: string | undefined;
  #writing: Promise<void> | undefined;

  constructor(job: ClaimedJob, store: Pick<Store, "progress">) {
    this.#job = job;
    this.#store = store;
  }

  write(text: string): Promise<void> {
    this.#next = text;
    return (this.#writing ??= this.#drain().finally(() => {
      this.#writing = undefined;
    }));
  }

  async #drain(): Promise<void> {
    while (this.#next !== undefined) {
      const text = this.#next;
      this.#next = undefined;
      const { id, token, session, attempt } = this.#job;
      if (await this.#store.progress(session, id, token, text)) continue;
      throw new StateError(
        "LEASE_LOST",
        `Job ${id} is no longer leased to this attempt (${attempt}): its progress was not written. Stop working on it.`,
        {
          details: { job: id, attempt, token },
        },
      );
    }
  }
}
