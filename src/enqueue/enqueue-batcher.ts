/**
 * Gathering: concurrent enqueues of one client become one batch, one statement and one commit.
 *
 *   add ─▶ waiting ──flush──▶ in flight ──commit──▶ each promise resolves
 *             ▲                   │
 *             └── gathers while ──┘   one batch in flight at a time, so the client's own order is kept
 *
 * The jobs of an `enqueueMany` are a transaction of their own, so several of those may be in flight side by side where the
 * store can write them at once: while one is written the next is made ready. Single jobs wait for them, and they
 * for single jobs.
 *
 * A client has two of these: jobs with a unique key go their own way, because a key that a user's open transaction
 * holds makes their statement wait, and nothing else may wait with it.
 *
 * A lone enqueue goes in the same turn (a microtask: calls made side by side are together in the first batch).
 * After a flight that others waited for, the next one leaves in the next turn of the event loop instead, so that
 * whoever was answered by this flight and enqueues again joins it; without that, 100 callers settle into batches of
 * 1 and 99 by turns, two commits where one would do.
 *
 * Invariants: a promise settles only after the commit that holds its job, or with the error of its own job: when a
 * batch is refused for a reason that may lie in one job, it is halved until the guilty one stands alone.
 * Not here: checking a job (enqueue.ts), trying again (storage/retry-calls.ts, inside `write`).
 */
import { isHoldfastError } from "../errors.ts";
import type { Enqueued, NewJob } from "../jobs/job.ts";

const mostJobs = 1_000;
const mostChars = 4 * 1024 * 1024;

interface Written {
  readonly outcomes: readonly Enqueued[];
  readonly told: boolean;
}

/** What gathering needs. */
export interface EnqueueBatcherDeps {
  /** Writes a batch in one transaction; outcomes in order, and whether other processes know of it. */
  write(jobs: readonly NewJob[]): Promise<Written>;
  /** Told once for each commit. */
  committed(jobs: readonly NewJob[], outcomes: readonly Enqueued[], told: boolean): void;
  /** Calls back in the next turn of the event loop. */
  nextTurn(fn: () => void): void;
  /** How many groups may be in flight at once. */
  readonly groupsAtOnce: number;
}

interface Single {
  readonly job: NewJob;
  readonly resolve: (outcome: Enqueued) => void;
  readonly reject: (error: unknown) => void;
}

/** Jobs of one `enqueueMany`: a transaction of their own, all or none. */
interface Group {
  readonly jobs: readonly NewJob[];
  readonly resolve: (outcomes: readonly Enqueued[]) => void;
  readonly reject: (error: unknown) => void;
}

type Waiting = Single | Group;

/** The enqueues of one client on their way to the store. */
export class EnqueueBatcher {
  readonly #deps: EnqueueBatcherDeps;
  #waiting: Waiting[] = [];
  /** A departure is due in this turn or the next. */
  #leaving = false;
  #singlesFly = false;
  #groupsFly = 0;
  #idle: (() => void)[] = [];

  constructor(deps: EnqueueBatcherDeps) {
    this.#deps = deps;
  }

  /** Resolves after the commit that holds the job. */
  add(job: NewJob): Promise<Enqueued> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ job, resolve, reject });
      if (this.#mayLeave()) this.#leaveBy(queueMicrotask);
    });
  }

  /** Resolves after the one commit that holds them all. */
  addAll(jobs: readonly NewJob[]): Promise<readonly Enqueued[]> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ jobs, resolve, reject });
      if (this.#mayLeave()) this.#leaveBy(queueMicrotask);
    });
  }

  /** Resolves when nothing waits and nothing is in flight. */
  idle(): Promise<void> {
    if (this.#waiting.length === 0 && !this.#flying) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  get #flying(): boolean {
    return this.#singlesFly || this.#groupsFly > 0;
  }

  #mayLeave(): boolean {
    const first = this.#waiting[0];
    if (this.#leaving || first === undefined || this.#singlesFly) return false;
    return this.#groupsFly === 0 || ("jobs" in first && this.#groupsFly < this.#deps.groupsAtOnce);
  }

  #leaveBy(later: (fn: () => void) => void): void {
    this.#leaving = true;
    later(this.#leave);
  }

  readonly #leave = (): void => {
    this.#leaving = false;
    const first = this.#waiting[0];
    if (first !== undefined && "jobs" in first) {
      this.#waiting.shift();
      this.#groupsFly += 1;
      void this.#flyGroup(first);
    } else {
      this.#singlesFly = true;
      void this.#flySingles(this.#takeSingles());
    }
    if (this.#mayLeave()) this.#leaveBy(queueMicrotask);
  };

  // Called before the promises of a flight settle: who enqueues on being answered, and alone, leaves at once.
  #landed(): void {
    if (this.#mayLeave()) this.#leaveBy((fn) => this.#deps.nextTurn(fn));
    if (this.#waiting.length > 0 || this.#flying) return;
    for (const resolve of this.#idle.splice(0)) resolve();
  }

  // As many as fit into a batch, up to the next group.
  #takeSingles(): Single[] {
    const all = this.#waiting;
    let count = 0;
    let chars = 0;
    while (count < all.length && count < mostJobs) {
      const next = all[count];
      if (next === undefined || "jobs" in next) break;
      chars += next.job.input.length;
      if (count > 0 && chars > mostChars) break;
      count += 1;
    }
    if (count === all.length) {
      this.#waiting = [];
      return all as Single[];
    }
    return all.splice(0, count) as Single[];
  }

  /** Never rejects. */
  async #flyGroup(group: Group): Promise<void> {
    let written: Written;
    try {
      written = await this.#deps.write(group.jobs);
    } catch (error) {
      this.#groupsFly -= 1;
      this.#landed();
      group.reject(error);
      return;
    }
    try {
      this.#deps.committed(group.jobs, written.outcomes, written.told);
    } finally {
      this.#groupsFly -= 1;
      this.#landed();
      group.resolve(written.outcomes);
    }
  }

  /** Never rejects. */
  async #flySingles(batch: readonly Single[]): Promise<void> {
    const jobs = jobsOf(batch);
    let written: Written;
    try {
      written = await this.#deps.write(jobs);
    } catch (error) {
      await this.#refused(batch, error);
      this.#singlesFly = false;
      this.#landed();
      return;
    }
    try {
      this.#deps.committed(jobs, written.outcomes, written.told);
    } finally {
      this.#singlesFly = false;
      this.#landed();
      answer(batch, written.outcomes);
    }
  }

  async #refused(batch: readonly Single[], error: unknown): Promise<void> {
    if (batch.length === 1 || !mayBeOneJobsFault(error)) {
      for (const { reject } of batch) reject(error);
      return;
    }
    const middle = batch.length >> 1;
    for (const half of [batch.slice(0, middle), batch.slice(middle)]) {
      const jobs = jobsOf(half);
      try {
        const { outcomes, told } = await this.#deps.write(jobs);
        this.#deps.committed(jobs, outcomes, told);
        answer(half, outcomes);
      } catch (again) {
        await this.#refused(half, again);
      }
    }
  }
}

function jobsOf(batch: readonly Single[]): NewJob[] {
  return batch.map(({ job }) => job);
}

function answer(batch: readonly Single[], outcomes: readonly Enqueued[]): void {
  for (let i = 0; i < batch.length; i++) (batch[i] as Single).resolve(outcomes[i] as Enqueued);
}

// Everything else that a store reports (gone, full, read-only, too old …) is true for every job alike.
function mayBeOneJobsFault(error: unknown): boolean {
  return (
    !isHoldfastError(error) ||
    error.code === "STORE_FAILED" ||
    error.code === "LOCK_TIMEOUT" ||
    error.code === "INTERNAL" ||
    error.code.startsWith("INPUT_") ||
    error.code.startsWith("BAD_")
  );
}
