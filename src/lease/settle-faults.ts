/**
 * Settles that did not go through: sent again through an outage, narrowed to the row that is at fault, or told from lost ones.
 *
 *   the database is away ─────────────▶ again, until it answers or the session is lost
 *   it refuses a row for its content ─▶ halved until that row stands alone: its job is dead
 *   it refuses for any other reason ──▶ again; halved, so that the rest goes through; the one left is set aside for 5 s
 *   it answers, but ids are missing ──▶ written by an earlier try (the rows say), or lost
 *
 * Invariants: those of settler.ts. Only a permanent fault rejects.
 * Not here: gathering, and which tokens are spent (settler.ts).
 */
import { type Clock, sleep } from "../clock.ts";
import { describeFailure } from "../jobs/failure.ts";
import type { ClaimedJob, Job } from "../jobs/job.ts";
import type { Settlement, Transition } from "../jobs/outcome.ts";
import type { Logger } from "../logger.ts";
import type { Store } from "../storage/store.ts";
import { isAway, isRowsFault, troubleOf } from "../storage/trouble.ts";

export interface SettleFaultsDeps {
  readonly store: Pick<Store, "settles" | "jobs" | "workflows">;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly workerId: string;
  /** The database has written these. */
  readonly onSettled: (settlements: readonly Settlement[]) => void;
  /** Another holder has these jobs; nothing was written. */
  readonly onLost: (jobs: readonly ClaimedJob[]) => void;
  /** One try. */
  readonly send: (batch: readonly Settlement[], spent: readonly number[]) => Promise<void>;
  /** Gathers it again. */
  readonly push: (settlement: Settlement) => void;
  /** Whether something claimed under this token is not handed to a settle. */
  readonly isHeld: (token: number) => boolean;
  /** One more job of this token is held. */
  readonly keep: (token: number) => void;
}

const firstRetryMs = 100;
const longestRetryMs = 1_000;
// A refusal that is true for every batch alike passes by waiting; one that is not shows itself by then.
const wholeTries = 3;
const asideMs = 5_000;

export class SettleFaults {
  readonly #deps: SettleFaultsDeps;
  /** Refused by themselves, and sent again later. */
  readonly aside = new Set<Settlement>();
  /** Tokens that a refused settle was to report as spent. */
  owed: number[] = [];
  /** A try of these may have been written before its answer was lost. */
  readonly #doubtful = new WeakSet<Settlement>();
  /** These rows have no content of their job any more, so it cannot be what the database refuses. */
  readonly #bare = new WeakSet<Settlement>();
  #wakeSleeper: AbortController | undefined;

  constructor(deps: SettleFaultsDeps) {
    this.#deps = deps;
  }

  /** Takes these out of what is set aside, and ends a pause: their session is lost. */
  drop(isLost: (settlement: Settlement) => boolean): Settlement[] {
    this.#wakeSleeper?.abort();
    this.owed = [];
    const lost = [...this.aside].filter(isLost);
    for (const entry of lost) this.aside.delete(entry);
    return lost;
  }

  /** A try has failed: goes on until every one of the batch is written, lost, dead or set aside. */
  async overcome(batch: readonly Settlement[], spent: readonly number[], first: unknown): Promise<void> {
    let error = first;
    let refusals = 0;
    for (let tries = 0; ; tries += 1) {
      if (troubleOf(error) === "permanent") throw error;
      if (isRowsFault(error)) return this.#refusedForContent(batch, spent, error);
      for (const entry of batch) this.#doubtful.add(entry);
      if (!isAway(error) && ++refusals >= wholeTries) return this.#refused(batch, spent, error);
      const { log, workerId } = this.#deps;
      log.debug(
        { worker: workerId, jobs: batch.length, tries: tries + 1, error: describeFailure(error).message },
        "retrying to settle",
      );
      await this.#pause(Math.min(longestRetryMs, firstRetryMs * 2 ** tries));
      try {
        return await this.#deps.send(batch, spent);
      } catch (again) {
        error = again;
      }
    }
  }

  /** In halves. The claims that are spent by the whole go with the second. */
  async #halves(batch: readonly Settlement[], spent: readonly number[]): Promise<void> {
    const half = Math.ceil(batch.length / 2);
    await this.#write(batch.slice(0, half), []);
    // A refused one of the first half is still held.
    const rest = spent.filter((token) => !this.#deps.isHeld(token));
    await this.#write(batch.slice(half), rest);
  }

  async #write(batch: readonly Settlement[], spent: readonly number[]): Promise<void> {
    try {
      await this.#deps.send(batch, spent);
    } catch (error) {
      await this.overcome(batch, spent, error);
    }
  }

  /**
   * Refused again and again, for a reason that need not lie in any row: nothing is given up. The batch is halved, so that
   * the database takes the rest, and the one that it refuses even alone is set aside, where it keeps no other waiting.
   */
  async #refused(batch: readonly Settlement[], spent: readonly number[], error: unknown): Promise<void> {
    const [only] = batch;
    if (batch.length > 1) return this.#halves(batch, spent);
    if (only === undefined) return;
    const { log, clock, keep, push } = this.#deps;
    const { id, token } = only.job;
    log.warn(
      { job: id, error: describeFailure(error).message },
      "the database refused the outcome of a job; retrying",
    );
    keep(token);
    this.owed.push(...spent.filter((other) => other !== token));
    this.aside.add(only);
    clock.after(asideMs, () => {
      if (this.aside.delete(only)) push(only);
    });
  }

  /**
   * The database refused a row for its content. The others must not suffer for it, so the batch is halved until it stands
   * alone, and that job is settled as dead with no content of its own but the database's answer.
   */
  async #refusedForContent(
    batch: readonly Settlement[],
    spent: readonly number[],
    error: unknown,
  ): Promise<void> {
    const [only] = batch;
    if (batch.length > 1) return this.#halves(batch, spent);
    if (only === undefined) return;
    if (this.#bare.has(only)) return this.#refused(batch, spent, error);
    const { log, clock } = this.#deps;
    const { code, message } = describeFailure(error);
    log.error(
      { job: only.job.id, error: message },
      "the outcome of a job could not be written; the job is dead",
    );
    const dead = unwritable(only, code ?? "STORE_FAILED", clock.now());
    this.#bare.add(dead);
    if (this.#doubtful.has(only)) this.#doubtful.add(dead);
    await this.#write([dead], spent);
  }

  /** The database has moved these of the batch. The others were moved by an earlier try, or are lost. */
  async answered(batch: readonly Settlement[], moved: ReadonlySet<string>): Promise<void> {
    const settled = batch.filter(({ job }) => moved.has(job.id));
    let missing = batch.filter(({ job }) => !moved.has(job.id));
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
   * The jobs that an earlier try had moved before its answer was lost. Only their rows say so, because the fence is gone either
   * way. A takeover raises `crashes`, which no settle of ours does: a row in our state, or one that went back with our count of
   * crashes, is our own work. When the rows cannot be read, nothing is called lost: that would be a false alarm once in an outage
   * at worst, and the rows are right in any case.
   */
  async #writtenBefore(missing: readonly Settlement[]): Promise<ReadonlySet<string>> {
    const { store, workerId } = this.#deps;
    const ids = missing.map(({ job }) => job.id);
    let rows: Map<string, Job>;
    try {
      const page = await store.jobs.list({ ids }, { limit: ids.length, cursor: null });
      rows = new Map(page.jobs.map((job) => [job.id, job]));
    } catch {
      return new Set(ids);
    }
    const own = missing.filter(({ transition }) => bears(rows.get(transition.id), transition, workerId));
    return new Set(own.map(({ transition }) => transition.id));
  }

  async #pause(ms: number): Promise<void> {
    this.#wakeSleeper = new AbortController();
    const jittered = ms * (0.5 + this.#deps.random() / 2);
    await sleep(this.#deps.clock, jittered, this.#wakeSleeper.signal).catch(() => undefined);
    this.#wakeSleeper = undefined;
  }
}

/** The job dead, with nothing in its row but the code of the database's answer. */
function unwritable(refused: Settlement, code: string, at: number): Settlement {
  const { id, rowKey, token, attempt, crashes, keyed, counted } = refused.job;
  const message = `its outcome could not be written: ${code}`;
  const transition: Transition = {
    move: "end",
    id,
    rowKey,
    token,
    state: "dead",
    output: null,
    errors: JSON.stringify([{ at, attempt, message, stack: null }]),
    attempt,
    crashes,
    keyed,
    keep: true,
    ...(counted === undefined ? null : { counted }),
  };
  return { ...refused, outcome: { kind: "dead", failure: { message, stack: null } }, transition };
}

/** Whether the row is as this transition leaves it. */
function bears(row: Job | undefined, transition: Transition, workerId: string): boolean {
  if (transition.move === "end")
    return row === undefined
      ? !transition.keep
      : row.state === transition.state && row.attempt === transition.attempt;
  if (row === undefined) return true; // it went back to its queue and was deleted there
  const untouched =
    row.state === "running" && row.workerId === workerId && row.attempt === transition.attempt;
  return row.crashes === transition.crashes && !untouched;
}
