/**
 * Progress of one attempt on its way to the database.
 *
 * Invariants: one write at a time for each attempt; what is written is the newest value; a write that the fence refuses means that
 * the attempt is not ours any more, and the handler is told. Any other refusal is waited for (storage/patience.ts).
 */
import { StateError } from "../errors.ts";
import type { ClaimedJob } from "../jobs/job.ts";
import type { SettleStore } from "../lease/store.ts";

/** Tries a call again while the database refuses it. */
type Patiently = <T>(call: () => Promise<T>) => Promise<T>;

/**
 * Writes the newest value; values that are overtaken while a write is under way are never written, so a handler
 * that reports ten thousand times a second costs one write at a time.
 */
export class ProgressWriter {
  readonly #job: ClaimedJob;
  readonly #store: Pick<SettleStore, "progress">;
  readonly #patiently: Patiently;
  #next: string | undefined;
  #writing: Promise<void> | undefined;

  constructor(job: ClaimedJob, store: Pick<SettleStore, "progress">, patiently: Patiently) {
    this.#job = job;
    this.#store = store;
    this.#patiently = patiently;
  }

  write(text: string): Promise<void> {
    this.#next = text;
    return (this.#writing ??= this.#drain().finally(() => {
      this.#writing = undefined;
    }));
  }

  async #drain(): Promise<void> {
    while (this.#next !== undefined) {
      let text: string = this.#next;
      const { id, token, session, attempt } = this.#job;
      // A repeat has the newest value too.
      const held = await this.#patiently(() => {
        text = this.#next ?? text;
        this.#next = undefined;
        return this.#store.progress(session, id, token, text);
      });
      if (held) continue;
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
