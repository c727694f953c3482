/**
 * The demo's own books: every enqueue goes through here, and what the queue answered is written down, so that the
 * end can be compared with it.
 */
import type { EnqueueOptions, EnqueueStatus, Holdfast, JobContract } from "holdfast";
import { sendMail } from "./jobs.ts";
import type { Accepted } from "./tally.ts";

export class Ledger {
  readonly accepted: Accepted[] = [];
  duplicates = 0;
  readonly #hf: Holdfast;
  readonly #labels = new Map<string, string>();
  readonly #numbers = new Map<string, number>();

  constructor(hf: Holdfast) {
    this.#hf = hf;
  }

  /** Enqueues one job and gives its id, or that of the job which stands for it. */
  async enqueue<Input>(job: JobContract<string, Input>, input: Input, delayMs?: number): Promise<string> {
    const askedAt = Date.now();
    const options: EnqueueOptions = delayMs === undefined ? {} : { delay: delayMs };
    const { status, id } = await this.#hf.enqueue(job, input, options);
    this.#write(status, id, job, askedAt, delayMs ?? 0);
    return id;
  }

  /** Enqueues many in one transaction. */
  async enqueueMails(n: number): Promise<void> {
    const askedAt = Date.now();
    const items = Array.from({ length: n }, (_, i) => ({
      job: sendMail,
      input: { to: `user${i}@example.org` },
    }));
    for (const { status, id } of await this.#hf.enqueueMany(items)) {
      this.#write(status, id, sendMail, askedAt, 0);
    }
  }

  /** What a person calls the job: "charge-card 3". */
  labelOf(id: string): string {
    return this.#labels.get(id) ?? id;
  }

  #write(
    status: EnqueueStatus,
    id: string,
    job: { name: string; priority: number },
    askedAt: number,
    delayMs: number,
  ): void {
    if (status !== "enqueued") {
      this.duplicates += 1;
      return;
    }
    const n = (this.#numbers.get(job.name) ?? 0) + 1;
    const label = `${job.name} ${n}`;
    this.#numbers.set(job.name, n);
    this.#labels.set(id, label);
    this.accepted.push({ id, label, priority: job.priority, at: Date.now(), dueAt: askedAt + delayMs });
  }
}
