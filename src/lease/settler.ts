/**
 * Writes what attempts came to: one settle at a time, and while it is on its way the next gathers.
 *
 *   push ─▶ gathering ─▶ in flight ──answered──▶ settled (ids that moved) | lost (ids that did not)
 *              ▲            ├─ the database is away ─▶ again, until it answers or the session is lost
 *              │            ├─ it refuses a row for what is in it ─▶ halved until that one stands alone: dead
 *              └─ 5 s later ┴─ it refuses for any other reason ─▶ again; halved, so that what it would take goes through
 *
 * Invariants: an outcome is dropped only when its lease is known to be lost, or for a named cause that lies in the row
 * itself; at most one settle is in flight; a token is given as spent exactly when nothing claimed under it is held any
 * more; nothing here rejects.
 *
 * Not here: what an outcome becomes (jobs/transition.ts), telling anybody (worker/worker.ts).
 */
import { type Clock, sleep } from "../clock.ts";
import type { ClaimedJob, Job } from "../jobs/job.ts";
import type { Logger } from "../logger.ts";
import { describeFailure } from "../jobs/failure.ts";
import type { Store } from "../storage/store.ts";
import type { Transition, Outcome } from "../jobs/transition.ts";
import { isAway, isRowsFault, troubleOf } from "../storage/trouble.ts";

/** An outcome on its way to the database. */
export interface Settlement {
  readonly job: ClaimedJob;
  readonly outcome: Outcome;
  readonly transition: Transition;
  readonly heldMs: number;
  /** The machine's step that it ended in; null: it is no machine. */
  readonly step: string | null;
  /** Attempts that the job, or the machine's step, has in all. Left out: not known. */
  readonly maxAttempts?: number;
}

export interface SettlerDeps {
  readonly store: Pick<Store, "settles" | "jobs" | "workflows">;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly workerId: string;
  /** These are about to be sent. */
  readonly onSending?: (settlements: readonly Settlement[]) => void;
  /** The database has written these. */
  readonly onSettled: (settlements: readonly Settlement[]) => void;
  /** These jobs are not ours any more; nothing was written. */
  readonly onLost: (jobs: readonly ClaimedJob[]) => void;
  /** Settling cannot go on: trying again will not help. */
  readonly onFatal: (error: unknown) => void;
  /** Fewer are gathered or in flight than before. */
  readonly onFewer: () => void;
  /** Nothing is gathered or in flight any more. */
  readonly onEmpty: () => void;
}

// A statement of a thousand rows takes a few milliseconds; more would only delay the first of them.
const largestBatch = 1_000;
// So many of one claim are a batch of their own: those that are alike in this too are ended by a cheaper statement.
const longRun = 200;
const firstRetryMs = 100;
const longestRetryMs = 1_000;
// A refusal that is true for every batch alike passes by waiting; one that is not shows itself by then.
const wholeTries = 3;
const asideMs = 5_000;

/** Gathers and writes settlements. */
export class Settler {
  readonly #deps: SettlerDeps;
  #gathered: Settlement[] = [];
  #inFlight: readonly Settlement[] = [];
  #scheduled = false;
  /** How many jobs of each token are claimed and not yet handed to a settle. */
  readonly #outstanding = new Map<number, number>();
  readonly #lostSessions = new Set<number>();
  /** Refused by themselves, and sent again later. */
  readonly #aside = new Set<Settlement>();
  /** Of these a try may have been written before its answer was lost. */
  readonly #doubtful = new WeakSet<Settlement>();
  /** Nothing of the job's own is in these rows any more, so that it cannot be what the database refuses. */
  readonly #bare = new WeakSet<Settlement>();
  /** Tokens whose claims are to be forgotten, left over from a settle that was refused. */
  #owed: number[] = [];
  #wakeSleeper: AbortController | undefined;
  #broken = false;

  constructor(deps: SettlerDeps) {
    this.#deps = deps;
  }

  /** Notes what a claim brought, so that its token can be given back with the last of them. */
  hold(jobs: readonly ClaimedJob[]): void {
    for (let i = 0; i < jobs.length;) {
      const token = jobs[i]!.token;
      const from = i;
      while (i < jobs.length && jobs[i]!.token === token) i += 1;
      this.#outstanding.set(token, (this.#outstanding.get(token) ?? 0) + i - from);
    }
  }

  /** These were taken away, and no settle will name them; a claim of which nothing else is held is buried by the sweep. */
  letGo(jobs: readonly ClaimedJob[]): void {
    for (const { token } of jobs) {
      const left = (this.#outstanding.get(token) ?? 0) - 1;
      if (left > 0) this.#outstanding.set(token, left);
      else this.#outstanding.delete(token);
    }
  }

  /** How many outcomes are not yet known to be written. */
  get pending(): number {
    return this.#gathered.length + this.#inFlight.length + this.#aside.size;
  }

  /** Every job whose outcome is not yet known to be written. */
  *holding(): Iterable<ClaimedJob> {
    for (const { job } of this.#gathered) yield job;
    for (const { job } of this.#inFlight) yield job;
    for (const { job } of this.#aside) yield job;
  }

  push(settlement: Settlement): void {
    if (this.#broken) return;
    this.#gathered.push(settlement);
    if (this.#inFlight.length > 0 || this.#scheduled) return;
    // The end of this turn of the event loop: an idle worker loses nothing, and no-op jobs, which end in hundreds
    // within one turn, go in one statement instead of the first one alone.
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      void this.#flush();
    });
  }

  /** Everything held under this session is lost: what is gathered or being retried is given up. */
  dropSession(session: number): void {
    this.#lostSessions.add(session);
    this.#wakeSleeper?.abort();
    const lost = [...this.#gathered, ...this.#aside].filter(({ job }) => job.session === session);
    for (const entry of lost) this.#aside.delete(entry);
    this.#gathered = this.#gathered.filter(({ job }) => job.session !== session);
    // Tokens of a dead session need not be given back: whoever takes its jobs over clears them away.
    this.#outstanding.clear();
    this.#owed = [];
    if (lost.length > 0) this.#deps.onLost(lost.map(({ job }) => job));
    this.#deps.onFewer();
    this.#tellIfEmpty();
  }

  async #flush(): Promise<void> {
    while (this.#gathered.length > 0 && this.#inFlight.length === 0 && !this.#broken) {
      const batch = this.#nextBatch();
      this.#inFlight = batch;
      try {
        await this.#write(batch, this.#spentBy(batch));
      } catch (error) {
        this.#broken = true;
        this.#gathered = [];
        this.#aside.clear();
        this.#deps.onFatal(error);
      }
      this.#inFlight = [];
      this.#deps.onFewer();
    }
    this.#tellIfEmpty();
  }

  #nextBatch(): Settlement[] {
    const all = this.#gathered;
    const session = all[0]?.job.session;
    const run = runOf(all);
    if (run >= longRun && run < all.length) {
      this.#gathered = all.slice(run);
      return all.slice(0, run);
    }
    if (all.length <= largestBatch && all.every(({ job }) => job.session === session)) {
      this.#gathered = [];
      return all;
    }
    const batch: Settlement[] = [];
    const rest: Settlement[] = [];
    for (const entry of all)
      (entry.job.session === session && batch.length < largestBatch ? batch : rest).push(entry);
    this.#gathered = rest;
    return batch;
  }

  #spentBy(batch: readonly Settlement[]): number[] {
    const spent = this.#owed.splice(0);
    for (const { job } of batch) {
      const left = (this.#outstanding.get(job.token) ?? 0) - 1;
      if (left > 0) {
        this.#outstanding.set(job.token, left);
      } else if (this.#outstanding.delete(job.token)) {
        spent.push(job.token);
      }
    }
    return spent;
  }

  async #write(batch: readonly Settlement[], spent: readonly number[]): Promise<void> {
    const session = batch[0]?.job.session;
    if (session === undefined) return;
    let refusals = 0;
    for (let tries = 0; ; tries++) {
      if (this.#lostSessions.has(session)) {
        this.#deps.onLost(batch.map(({ job }) => job));
        return;
      }
      try {
        this.#deps.onSending?.(batch);
        const moved = await this.#deps.store.settles.settle(
          session,
          batch.map(({ transition }) => transition),
          spent,
        );
        await this.#answered(batch, moved);
        return;
      } catch (error) {
        if (troubleOf(error) === "permanent") throw error;
        if (isRowsFault(error)) return this.#writeApart(batch, spent, error);
        for (const entry of batch) this.#doubtful.add(entry);
        if (!isAway(error) && ++refusals >= wholeTries) return this.#writeRefused(batch, spent, error);
        this.#deps.log.debug(
          {
            worker: this.#deps.workerId,
            jobs: batch.length,
            tries: tries + 1,
            error: describeFailure(error).message,
          },
          "settling is tried again",
        );
        await this.#pause(Math.min(longestRetryMs, firstRetryMs * 2 ** tries));
      }
    }
  }

  /** In halves. The claims that are spent by the whole go with the second. */
  async #writeHalves(batch: readonly Settlement[], spent: readonly number[]): Promise<void> {
    const half = Math.ceil(batch.length / 2);
    await this.#write(batch.slice(0, half), []);
    // What was refused of the first half is held still.
    await this.#write(
      batch.slice(half),
      spent.filter((token) => !this.#outstanding.has(token)),
    );
  }

  /**
   * Refused again and again, for a reason that need not lie in any row: nothing is given up. The batch is halved, so that what
   * the database would take goes through, and what it refuses even alone waits aside, where it keeps nobody else waiting.
   */
  async #writeRefused(batch: readonly Settlement[], spent: readonly number[], error: unknown): Promise<void> {
    const [only] = batch;
    if (batch.length > 1) return this.#writeHalves(batch, spent);
    if (only === undefined) return;
    const { id, token } = only.job;
    this.#deps.log.warn(
      { job: id, error: describeFailure(error).message },
      "the database refuses the outcome of a job; it is tried again",
    );
    this.#outstanding.set(token, (this.#outstanding.get(token) ?? 0) + 1);
    this.#owed.push(...spent.filter((other) => other !== token));
    this.#aside.add(only);
    this.#deps.clock.after(asideMs, () => {
      if (this.#aside.delete(only)) this.push(only);
    });
  }

  /**
   * The database refused a row for what is in it. The others must not suffer for it, so the batch is halved until it stands
   * alone, and that job is settled as dead with nothing of its own in the row but the database's answer.
   */
  async #writeApart(batch: readonly Settlement[], spent: readonly number[], error: unknown): Promise<void> {
    const [only] = batch;
    if (batch.length > 1) return this.#writeHalves(batch, spent);
    if (only === undefined) return;
    if (this.#bare.has(only)) return this.#writeRefused(batch, spent, error);
    const failure = describeFailure(error);
    this.#deps.log.error(
      { job: only.job.id, error: failure.message },
      "the outcome of a job could not be written; it is dead",
    );
    const record = {
      at: this.#deps.clock.now(),
      attempt: only.job.attempt,
      message: `its outcome could not be written: ${failure.code ?? "STORE_FAILED"}`,
      stack: null,
    };
    const transition: Transition = {
      move: "end",
      id: only.job.id,
      place: only.job.place,
      token: only.job.token,
      state: "dead",
      output: null,
      errors: JSON.stringify([record]),
      attempt: only.job.attempt,
      crashes: only.job.crashes,
      keyed: only.job.keyed,
      keep: true,
      ...(only.job.counted === undefined ? null : { counted: only.job.counted }),
    };
    const dead: Settlement = {
      ...only,
      outcome: { kind: "dead", failure: { message: record.message, stack: null } },
      transition,
    };
    this.#bare.add(dead);
    if (this.#doubtful.has(only)) this.#doubtful.add(dead);
    await this.#write([dead], spent);
  }

  async #answered(batch: readonly Settlement[], moved: ReadonlySet<string>): Promise<void> {
    if (moved.size >= batch.length) {
      this.#deps.onSettled(batch);
      return;
    }
    const settled: Settlement[] = [];
    let missing: Settlement[] = [];
    for (const entry of batch) (moved.has(entry.job.id) ? settled : missing).push(entry);
    const doubtful = missing.filter((entry) => this.#doubtful.has(entry));
    if (doubtful.length > 0) {
      const written = await this.#writtenBefore(doubtful);
      settled.push(...missing.filter(({ job }) => written.has(job.id)));
      missing = missing.filter(({ job }) => !written.has(job.id));
      // The try that wrote them may not have told those who wait for their ends.
      if (written.size > 0) await this.#deps.store.workflows.sweep().catch(() => undefined);
    }
    if (settled.length > 0) this.#deps.onSettled(settled);
    if (missing.length > 0) this.#deps.onLost(missing.map(({ job }) => job));
  }

  /**
   * Of the jobs that a second try did not move, those that the first try had moved before its answer was lost.
   * Only rows say so, because the fence is gone either way. A takeover raises `crashes`, which no settle of ours
   * does, so a row that bears our state (or, if it went back to the line, our count of crashes) is our own work.
   * When even the rows cannot be read, nothing is claimed to be lost: that would be a false alarm at worst once
   * per outage, and the rows are right in any case.
   */
  async #writtenBefore(missing: readonly Settlement[]): Promise<ReadonlySet<string>> {
    const written = new Set<string>();
    const ids = missing.map(({ job }) => job.id);
    let rows: Map<string, Job>;
    try {
      const page = await this.#deps.store.jobs.list({ ids }, { limit: ids.length, cursor: null });
      rows = new Map(page.jobs.map((job) => [job.id, job]));
    } catch {
      return new Set(ids);
    }
    for (const { transition } of missing) {
      if (bears(rows.get(transition.id), transition, this.#deps.workerId)) written.add(transition.id);
    }
    return written;
  }

  async #pause(ms: number): Promise<void> {
    this.#wakeSleeper = new AbortController();
    const jittered = ms * (0.5 + this.#deps.random() / 2);
    await sleep(this.#deps.clock, jittered, this.#wakeSleeper.signal).catch(() => undefined);
    this.#wakeSleeper = undefined;
  }

  #tellIfEmpty(): void {
    if (this.pending === 0) this.#deps.onEmpty();
  }
}

function bears(row: Job | undefined, transition: Transition, workerId: string): boolean {
  if (transition.move === "end")
    return row === undefined
      ? !transition.keep
      : row.state === transition.state && row.attempt === transition.attempt;
  if (row === undefined) return true; // it went back to the line and somebody deleted it there
  const untouched =
    row.state === "running" && row.workerId === workerId && row.attempt === transition.attempt;
  return row.crashes === transition.crashes && !untouched;
}

/** How many of the first ones are of one claim, a batch at the most. */
function runOf(all: readonly Settlement[]): number {
  const most = Math.min(all.length, largestBatch);
  const token = all[0]?.job.token;
  let run = 0;
  while (run < most && all[run]!.job.token === token) run += 1;
  return run;
}
