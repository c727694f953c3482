/**
 * Writes what attempts came to: one settle at a time, and while it is on its way the next gathers.
 *
 *   push ─▶ gathering ─▶ in flight ──answered──▶ settled (ids that moved) | lost (ids that did not)
 *                           └─ the database is away ─▶ again, until it answers or the session is lost
 *
 * Invariants: an outcome is dropped only when its lease is known to be lost; at most one settle is in flight; a
 * token is given as spent exactly when nothing claimed under it is held any more; nothing here rejects.
 *
 * Not here: what an outcome becomes (transition.ts), telling anybody (worker.ts).
 */
import { type Clock, sleep } from "../clock.ts";
import type { ClaimedJob, Job } from "../job.ts";
import type { Logger } from "../logger.ts";
import { describeFailure } from "../policy/failure.ts";
import type { Store, Transition } from "../store.ts";
import type { Outcome } from "../transition.ts";
import { troubleOf } from "./trouble.ts";

/** An outcome on its way to the database. */
export interface Settlement {
  readonly job: ClaimedJob;
  readonly outcome: Outcome;
  readonly transition: Transition;
  readonly heldMs: number;
}

export interface SettlerDeps {
  readonly store: Pick<Store, "settle" | "list">;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly workerId: string;
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

/** Gathers and writes settlements. */
export class Settler {
  readonly #deps: SettlerDeps;
  #gathered: Settlement[] = [];
  #inFlight = 0;
  #scheduled = false;
  /** How many jobs of each token are claimed and not yet handed to a settle. */
  readonly #outstanding = new Map<number, number>();
  readonly #lostSessions = new Set<number>();
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
    return this.#gathered.length + this.#inFlight;
  }

  push(settlement: Settlement): void {
    if (this.#broken) return;
    this.#gathered.push(settlement);
    if (this.#inFlight > 0 || this.#scheduled) return;
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
    const lost = this.#gathered.filter(({ job }) => job.session === session);
    this.#gathered = this.#gathered.filter(({ job }) => job.session !== session);
    // Tokens of a dead session need not be given back: whoever takes its jobs over clears them away.
    this.#outstanding.clear();
    if (lost.length > 0) this.#deps.onLost(lost.map(({ job }) => job));
    this.#deps.onFewer();
    this.#tellIfEmpty();
  }

  async #flush(): Promise<void> {
    while (this.#gathered.length > 0 && this.#inFlight === 0 && !this.#broken) {
      const batch = this.#nextBatch();
      this.#inFlight = batch.length;
      try {
        await this.#write(batch, this.#spentBy(batch));
      } catch (error) {
        this.#broken = true;
        this.#gathered = [];
        this.#deps.onFatal(error);
      }
      this.#inFlight = 0;
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
    const spent: number[] = [];
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
    let unknown = false;
    for (let tries = 0; ; tries++) {
      if (this.#lostSessions.has(session)) {
        this.#deps.onLost(batch.map(({ job }) => job));
        return;
      }
      try {
        const moved = await this.#deps.store.settle(
          session,
          batch.map(({ transition }) => transition),
          spent,
        );
        await this.#answered(batch, moved, unknown);
        return;
      } catch (error) {
        const trouble = troubleOf(error);
        if (trouble === "permanent") throw error;
        if (trouble === "unclear") {
          await this.#writeApart(batch, spent, error);
          return;
        }
        unknown = true;
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

  /**
   * The database refused the batch and did not say that it was away: one row is at fault (or a fault of ours shows
   * itself in it). The others must not suffer for it, so the batch is halved until it stands alone, and that job
   * is settled as dead with nothing of its own in the row but the database's answer.
   */
  async #writeApart(batch: readonly Settlement[], spent: readonly number[], error: unknown): Promise<void> {
    const [only] = batch;
    if (batch.length > 1) {
      const half = Math.ceil(batch.length / 2);
      await this.#write(batch.slice(0, half), []);
      await this.#write(batch.slice(half), spent);
      return;
    }
    if (only === undefined || only.outcome.kind === "dead") throw error;
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
    await this.#write(
      [{ ...only, outcome: { kind: "dead", failure: { message: record.message, stack: null } }, transition }],
      spent,
    );
  }

  async #answered(batch: readonly Settlement[], moved: ReadonlySet<string>, unknown: boolean): Promise<void> {
    if (moved.size >= batch.length) {
      this.#deps.onSettled(batch);
      return;
    }
    const settled: Settlement[] = [];
    let missing: Settlement[] = [];
    for (const entry of batch) (moved.has(entry.job.id) ? settled : missing).push(entry);
    if (unknown) {
      const written = await this.#writtenBefore(missing);
      settled.push(...missing.filter(({ job }) => written.has(job.id)));
      missing = missing.filter(({ job }) => !written.has(job.id));
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
      const page = await this.#deps.store.list({ ids }, { limit: ids.length, cursor: null });
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
