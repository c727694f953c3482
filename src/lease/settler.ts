/**
 * Writes what attempts came to: one settle at a time, and while it is on its way the next gathers.
 *
 *   push ─▶ gathering ─▶ in flight ──answered──▶ settled (ids that moved) | lost (ids that did not)
 *              ▲             └── refused, or no answer ──▶ settle-faults.ts
 *              └── 5 s later ── set aside ◀────────────────────┘
 *
 * Invariants: an outcome is dropped only when its lease is known to be lost, or for a named cause that lies in the row
 * itself; at most one settle is in flight; a token is reported as spent exactly when nothing claimed under it is held any
 * more; nothing here rejects.
 *
 * Not here: what an outcome becomes (jobs/transition.ts), what follows from it (worker/wiring.ts).
 */
import type { ClaimedJob } from "../jobs/job.ts";
import type { Settlement } from "../jobs/outcome.ts";
import { SettleFaults, type SettleFaultsDeps } from "./settle-faults.ts";

export interface SettlerDeps extends Omit<SettleFaultsDeps, "send" | "push" | "isHeld" | "keep"> {
  /** These are about to be sent, or sent again. */
  readonly onSending?: (settlements: readonly Settlement[]) => void;
  /** Settling has failed for good. */
  readonly onFatal: (error: unknown) => void;
  /** Fewer outcomes are pending than before. */
  readonly onFewer: () => void;
  /** No outcome is pending. */
  readonly onEmpty: () => void;
}

// A statement of a thousand rows takes a few milliseconds; more would only delay the first of them.
const largestBatch = 1_000;
// So many of one claim are a batch of their own: those that are alike in this too are ended by a cheaper statement.
const longRun = 200;

/** Gathers and writes settlements. */
export class Settler {
  readonly #deps: SettlerDeps;
  readonly #faults: SettleFaults;
  #gathered: Settlement[] = [];
  #inFlight: readonly Settlement[] = [];
  #scheduled = false;
  /** How many jobs of each token are claimed and not yet handed to a settle. */
  readonly #outstanding = new Map<number, number>();
  readonly #lostSessions = new Set<number>();
  #broken = false;

  constructor(deps: SettlerDeps) {
    this.#deps = deps;
    this.#faults = new SettleFaults({
      ...deps,
      send: (batch, spent) => this.#send(batch, spent),
      push: (settlement) => this.push(settlement),
      isHeld: (token) => this.#outstanding.has(token),
      keep: (token) => this.#outstanding.set(token, (this.#outstanding.get(token) ?? 0) + 1),
    });
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

  /** These were taken away, and no settle will name them. The upkeep removes a claim of which nothing else is held. */
  letGo(jobs: readonly ClaimedJob[]): void {
    for (const { token } of jobs) {
      const left = (this.#outstanding.get(token) ?? 0) - 1;
      if (left > 0) this.#outstanding.set(token, left);
      else this.#outstanding.delete(token);
    }
  }

  /** How many outcomes are not yet known to be written. */
  get pending(): number {
    return this.#gathered.length + this.#inFlight.length + this.#faults.aside.size;
  }

  /** Every job whose outcome is not yet known to be written. */
  *holding(): Iterable<ClaimedJob> {
    for (const { job } of this.#gathered) yield job;
    for (const { job } of this.#inFlight) yield job;
    for (const { job } of this.#faults.aside) yield job;
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
    const isLost = ({ job }: Settlement): boolean => job.session === session;
    const lost = [...this.#gathered.filter(isLost), ...this.#faults.drop(isLost)];
    this.#gathered = this.#gathered.filter((entry) => !isLost(entry));
    // Tokens of a dead session are not reported: whoever takes its jobs over clears them away.
    this.#outstanding.clear();
    if (lost.length > 0) this.#deps.onLost(lost.map(({ job }) => job));
    this.#deps.onFewer();
    this.#tellIfEmpty();
  }

  async #flush(): Promise<void> {
    while (this.#gathered.length > 0 && this.#inFlight.length === 0 && !this.#broken) {
      const batch = this.#nextBatch();
      this.#inFlight = batch;
      await this.#write(batch, this.#spentBy(batch));
      this.#inFlight = [];
      this.#deps.onFewer();
    }
    this.#tellIfEmpty();
  }

  /** Of one session, because a settle names one; and of one claim, where it brought many. */
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

  /** The tokens under which nothing is held once this batch is written. */
  #spentBy(batch: readonly Settlement[]): number[] {
    const spent = this.#faults.owed.splice(0);
    for (const { job } of batch) {
      const left = (this.#outstanding.get(job.token) ?? 0) - 1;
      if (left > 0) this.#outstanding.set(job.token, left);
      else if (this.#outstanding.delete(job.token)) spent.push(job.token);
    }
    return spent;
  }

  /** Never rejects. */
  async #write(batch: readonly Settlement[], spent: readonly number[]): Promise<void> {
    try {
      try {
        await this.#send(batch, spent);
      } catch (error) {
        await this.#faults.overcome(batch, spent, error);
      }
    } catch (error) {
      this.#broken = true;
      this.#gathered = [];
      this.#faults.aside.clear();
      this.#deps.onFatal(error);
    }
  }

  async #send(batch: readonly Settlement[], spent: readonly number[]): Promise<void> {
    const { store, onSending, onSettled, onLost } = this.#deps;
    const { session } = batch[0]!.job;
    if (this.#lostSessions.has(session)) return onLost(batch.map(({ job }) => job));
    onSending?.(batch);
    const transitions = batch.map(({ transition }) => transition);
    const moved = await store.settles.settle(session, transitions, spent);
    if (moved.size >= batch.length) onSettled(batch);
    else await this.#faults.answered(batch, moved);
  }

  #tellIfEmpty(): void {
    if (this.pending === 0) this.#deps.onEmpty();
  }
}

/** How many of the first ones are of one claim, a batch at the most. */
function runOf(all: readonly Settlement[]): number {
  const most = Math.min(all.length, largestBatch);
  const token = all[0]?.job.token;
  let run = 0;
  while (run < most && all[run]!.job.token === token) run += 1;
  return run;
}
