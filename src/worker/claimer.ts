/**
 * Decides when to claim, and sleeps exactly as long as there is nothing to do.
 *
 *              ┌──────── a slot is free · a wake-up · the due instant ────────┐
 *              ▼                                                              │
 *   ┌──▶ claiming ──full, and still hungry──┐                                 │
 *   └───────────────────────────────────────┘                                 │
 *              │ short                                                        │
 *              ▼                                                              │
 *           looking (peek) ──▶ asleep until min(next due, next session's end, poll)
 *              └── a session has ended ──▶ reap ──▶ claiming
 *
 * Invariants: one statement is in flight at a time (docs/decisions/one-claim-in-flight.md), and
 * what happens meanwhile is remembered; a claim that is wanted stays wanted until it is made, whatever a look finds; a look gives way to claims,
 * but not for longer than a second; nothing is claimed while 1,500 outcomes wait to be written; an idle worker sends
 * one cheap read per poll and nothing else; after a claim that failed, or a part of one, nothing is claimed before what the
 * session holds has been compared with what the worker knows; a look that promises work which the claim then does not find (a limit,
 * another worker was faster, rows that can never be claimed) never makes the loop spin (D17); nothing here rejects.
 * Not here: what a claim may take (slots.ts), what becomes of the jobs (runner.ts).
 */
import { type Clock, sleep, type Timer } from "../clock.ts";
import type { ClaimedJob } from "../jobs/job.ts";
import type { Logger } from "../logger.ts";
import { describeFailure } from "../jobs/failure.ts";
import type { ClaimCursor, ClaimScope } from "../jobs/claim-scope.ts";
import type { Store } from "../storage/store.ts";
import { claimLimits, freeSlots, MOST_AHEAD, type Pool } from "./slots.ts";
import { isTold, troubleOf } from "../storage/trouble.ts";
import type { WorkerBreakers } from "./breaker-guard.ts";
import type { WorkerBudgets } from "./budget-waits.ts";

export interface ClaimerDeps {
  readonly store: Pick<Store, "claims" | "listening" | "dialect">;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly workerId: string;
  readonly pools: ReadonlyMap<string, Pool>;
  readonly names: readonly string[];
  readonly order: ClaimScope["order"];
  readonly pollMs: number;
  /** The session under which something may be claimed now; null: not now, and `claim()` will be called again. */
  readonly claimable: () => number | null;
  /** True: the process has too much to do already. */
  readonly overloaded: () => boolean;
  /** True: others have newer code, and take first what becomes due. */
  readonly outdated: () => boolean;
  /** How many outcomes wait to be written. */
  readonly unsettled: () => number;
  readonly onClaimed: (jobs: readonly ClaimedJob[], session: number) => void;
  /** What keeps queues and kinds out of the claim while they fail. */
  readonly breakers?: Pick<WorkerBreakers, "any" | "refresh" | "closed" | "probe" | "assign" | "giveBack">;
  /** Which kinds have a budget. */
  readonly budgets?: WorkerBudgets;
  /** Before each look: a chance to read what changes seldom. */
  readonly onLook: () => void;
  /** Releases what the session holds and this worker does not know; gives how many. */
  readonly reconcile: (session: number) => Promise<number>;
  /** Takes over what dead sessions held; gives how many. */
  readonly reap: () => Promise<number>;
  /** Pauses the draining queues that have become empty. */
  readonly endDrains: () => Promise<unknown>;
  readonly onFatal: (error: unknown) => void;
}

/** A poll is a look that can wait: nothing is known to change by then. */
type Todo = "claim" | "look" | "poll";

/** Somebody who asked when `asked` claims had begun. */
interface Waiter {
  readonly asked: number;
  readonly claimed: number;
  /** Waits until nothing more can be claimed; else until one claim has ended. */
  readonly all: boolean;
  readonly resolve: (claimed: number) => void;
}

/** A claim's scope, as a worker asks. */
interface WorkerScope extends ClaimScope {
  readonly queues: ReadonlyMap<string, number>;
  readonly names: readonly string[];
  readonly free: ReadonlyMap<string, number>;
}

const listeningPollMs = 5_000;
const firstOutageMs = 50;
const longestOutageMs = 1_000;
const overloadMs = 250;
// A worker that has handed a job back for newer code is the first to know when it is due again: it would take it each time.
const outdatedMs = 100;
// A worker that gets one job every few milliseconds would otherwise look after each of them.
const looksApartMs = 100;
/** A look that began at the cursor is followed by one at everything, but not sooner. */
const looksBackMs = 1_000;
/** Where there is always more to claim, a look waits no longer than this: it finds the sessions that have died. */
const looksLateMs = 1_000;
/** Claims for all queues of a worker. */
export class Claimer {
  readonly #deps: ClaimerDeps;
  #cursor: ClaimCursor = freshCursor();
  /** When each is wanted next, by the monotonic clock. */
  readonly #wantedAt: Record<Todo, number> = { claim: Infinity, look: Infinity, poll: Infinity };
  #busy: Promise<void> | undefined;
  #timer: Timer | undefined;
  readonly #stop = new AbortController();

  /** The earliest due time that was given back, for each queue, since the last claim began. */
  readonly #givenBack = new Map<string, number>();
  /** Levels (queue and priority) of which a job has become due since the latest claim began. */
  readonly #due = new Map<string, { readonly queue: string; readonly rank: number }>();
  /** Somebody asks what is claimable: the next claim looks at everything. */
  #asked = false;
  #heldBack = false;
  #budgetsFirst = false;
  #lookedAt = -Infinity;
  #lookMs: number | null = null;
  #reapNotBefore = -Infinity;
  /** Queues that the latest look found draining. */
  #draining: readonly string[] = [];
  /** The claim that comes next was promised work by a look. */
  #promised = false;
  /** How many such claims in a row found nothing, and when the next one may be made. */
  #fruitless = 0;
  #claimNotBefore = -Infinity;
  /** How many tries in a row have failed. */
  #failures = 0;
  /** The session may hold jobs of a claim whose answer was lost. */
  #unsure = false;

  /** Claims are numbered, so that a waiter can tell one that was begun after its own question. */
  #begun = 0;
  #finished = 0;
  #claimed = 0;
  #waiters: Waiter[] = [];

  constructor(deps: ClaimerDeps) {
    this.#deps = deps;
  }

  /** Something may be claimable. */
  claim(): void {
    this.#want("claim");
  }

  /**
   * A job of this queue and priority is due. If no claim has met its level yet, the next one looks for it. Kept until that begins, as
   * everything that the next claim is told: the one that is in flight changes the cursor when it is answered.
   */
  claimFor(queue: string, priority: number): void {
    this.#due.set(`${queue}\n${priority}`, { queue, rank: -priority || 0 });
    this.claim();
  }

  /**
   * Jobs of this queue were given back that are due since then: the next claim goes back to them.
   */
  claimFrom(queue: string, runAt: number): void {
    this.expectFrom(queue, runAt);
    this.claim();
  }

  /** Jobs of this queue are about to be given back that are due since then: a claim that sees them goes back to them. */
  expectFrom(queue: string, runAt: number): void {
    this.#givenBack.set(queue, Math.min(runAt, this.#givenBack.get(queue) ?? Infinity));
    // At once too: a claim that has begun looks at the places of limited queues when it has locked them.
    goBack(this.#cursor, new Map([[queue, runAt]]));
  }

  /** The session may hold jobs that this worker does not know: compares before it does anything else. */
  reconcile(): void {
    this.#unsure = true;
    this.look();
  }

  /** Outcomes have been written. */
  settled(): void {
    if (!this.#heldBack || this.#deps.unsettled() >= MOST_AHEAD) return;
    this.#heldBack = false;
    this.claim();
  }

  /** Outcomes of this queue have been written: if it drains and nothing of it is here any more, that may have been the last. */
  emptied(queue: string): boolean {
    return this.#draining.includes(queue) && this.#isIdle(queue);
  }

  /** Something has changed that may matter. */
  look(): void {
    this.#want("look");
  }

  /** Something may be due soon: looks, but not more often than makes sense. */
  lookSoon(): void {
    this.#want("look", this.#lookedAt + looksApartMs - this.#deps.clock.monotonic());
  }

  /** How long the latest look took: what a read costs from here. */
  get lookMs(): number | null {
    return this.#lookMs;
  }

  /** A new session knows nothing of the old one's places. */
  forgetCursor(): void {
    this.#cursor = freshCursor();
  }

  /** Claims afresh. Resolves when nothing more can be claimed now, with how many were; also when it is stopped. */
  exhausted(): Promise<number> {
    return this.#after(true);
  }

  /** Claims afresh. Resolves when that claim has ended, though there may be more; also when it is stopped. */
  async once(): Promise<void> {
    await this.#after(false);
  }

  #after(all: boolean): Promise<number> {
    if (this.#stop.signal.aborted) return Promise.resolve(0);
    return new Promise((resolve) => {
      // A claim that is already under way may have looked before the caller's job was there: the next one counts.
      this.#waiters.push({ asked: this.#begun, claimed: this.#claimed, all, resolve });
      this.#asked = true;
      this.claim();
    });
  }

  /** Claims nothing more. Resolves when nothing is in flight. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#timer?.cancel();
    await this.#busy;
    await this.compare();
    for (const { resolve } of this.#waiters) resolve(0);
    this.#waiters = [];
  }

  /**
   * After the claimer has stopped: releases what the session holds and the worker does not know, if there may be something. When
   * the session is closed, it would be taken over as of a worker that died. Never rejects.
   */
  async compare(): Promise<void> {
    if (!this.#unsure) return;
    try {
      await this.#reconcile();
    } catch (error) {
      this.#unsure = true;
      const { workerId, log } = this.#deps;
      log.debug({ worker: workerId, error: describeFailure(error).message }, "comparing failed");
    }
  }

  #want(todo: Todo, inMs = 0): void {
    const at = this.#deps.clock.monotonic() + Math.max(0, inMs);
    if (at >= this.#wantedAt[todo]) return;
    this.#wantedAt[todo] = at;
    this.#goOn();
  }

  /** The only place that sets the timer: for what is wanted first. While something is in flight, its end leads here. */
  #goOn(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const firm = Math.min(this.#wantedAt.claim, this.#wantedAt.look);
    const at = Math.min(firm, this.#wantedAt.poll);
    if (this.#busy !== undefined || this.#stop.signal.aborted || at === Infinity) return;
    const now = this.#deps.clock.monotonic();
    if (at > now) {
      this.#timer = this.#deps.clock.after(at - now, () => this.#goOn(), { latestMs: firm - now });
      return;
    }
    this.#busy = this.#run().finally(() => {
      this.#busy = undefined;
      this.#tellWaiters();
      this.#goOn();
    });
  }

  #next(): Todo | null {
    const now = this.#deps.clock.monotonic();
    const { claim } = this.#wantedAt;
    const look = Math.min(this.#wantedAt.look, this.#wantedAt.poll);
    if (claim <= now && now < look + looksLateMs) return "claim";
    return look <= now ? "look" : null;
  }

  async #run(): Promise<void> {
    await Promise.resolve(); // so that `#busy` is set before anything here can ask again
    for (let todo = this.#next(); todo !== null && !this.#stop.signal.aborted; todo = this.#next()) {
      this.#wantedAt[todo] = Infinity;
      if (todo === "look") this.#wantedAt.poll = Infinity;
      try {
        if (this.#unsure) await this.#reconcile();
        if (todo === "claim") await this.#claim();
        else await this.#look();
        this.#failures = 0;
      } catch (error) {
        // Anything that claims may have committed before it failed.
        this.#unsure = true;
        await this.#outage(error);
      }
      this.#tellWaiters();
    }
  }

  async #reconcile(): Promise<void> {
    const session = this.#deps.claimable();
    if (session === null) return;
    this.#unsure = false;
    await this.#deps.reconcile(session);
  }

  /** A part of a claim failed after another had brought jobs, which must be handed over. The next claim meets the fault again. */
  #failedPartly(error: unknown): void {
    this.#unsure = true;
    this.#deps.log.warn(
      { worker: this.#deps.workerId, error: describeFailure(error).message },
      "a part of a claim failed",
    );
  }

  async #claim(): Promise<void> {
    const { store, pools, order } = this.#deps;
    const session = this.#deps.claimable();
    if (session === null) return this.#want("claim", this.#pollMs());
    if (this.#deps.overloaded()) return this.#want("claim", overloadMs);
    if (this.#deps.unsettled() >= MOST_AHEAD) {
      // Jobs end faster than their ends are written; claiming on would only fill the memory. `settled` asks again.
      this.#heldBack = true;
      return;
    }
    const names = await this.#beforeBreakers(session);
    const queues = this.#withoutBroken(claimLimits(pools), names);
    this.#begun += 1;
    const number = this.#begun;
    if (queues.size === 0) {
      this.#finished = number;
      // Full, or paused: a free slot or new settings ask again. Somebody must go on looking for dead sessions.
      return this.#want("poll", this.#pollMs());
    }
    let limit = 0;
    for (const room of queues.values()) limit += room;
    const promised = this.#promised;
    this.#promised = false;
    const scope = { queues, names, limit, order, free: freeSlots(pools) };
    this.#tellCursor();
    const { budgets } = this.#deps;
    const jobs = await (budgets?.any === true
      ? this.#claimWithBudgets(session, scope, this.#cursor, budgets)
      : store.claims.claim(session, scope, this.#cursor));
    if (this.#cursor.failed !== undefined) this.#failedPartly(this.#cursor.failed);
    delete this.#cursor.failed;
    this.#finished = number;
    this.#claimed += jobs.length;
    if (jobs.length > 0) {
      this.#fruitless = 0;
      this.#deps.onClaimed(jobs, session);
    } else if (promised) {
      this.#fruitless = Math.min(this.#fruitless + 1, 16);
      this.#claimNotBefore =
        this.#deps.clock.monotonic() + Math.min(this.#deps.pollMs, 25 * 2 ** (this.#fruitless - 1));
    }
    this.#armBudgets();
    if (this.#mayHaveMore(queues, jobs)) this.claim();
    else if (jobs.length === 0) this.lookSoon();
    // What was found may have neighbours: a claim by cursor has looked only where the last one got to.
    else if (jobs.length < limit) this.look();
    // All that was asked for: whoever frees a slot asks for more, and a look would only keep that claim waiting.
    else this.#want("poll", this.#pollMs());
  }

  #tellCursor(): void {
    if (this.#asked || this.#due.size > 0 || this.#givenBack.size > 0) this.#cursor.barren = false;
    goBack(this.#cursor, this.#givenBack);
    for (const part of partsOf(this.#cursor)) {
      if (this.#asked) part.lookedBackAt = -Infinity;
      if (part.unseen === true || this.#due.size === 0) continue;
      const known = new Set([...part.levels.values()].map(({ queue, rank }) => `${queue}\n${rank}`));
      for (const { queue, rank } of this.#due.values())
        if (!known.has(`${queue}\n${rank}`)) part.unseen = true;
    }
    this.#givenBack.clear();
    this.#due.clear();
    this.#asked = false;
  }

  /** Kinds with a budget and kinds without take turns in having the first choice of the slots. */
  async #claimWithBudgets(
    session: number,
    scope: WorkerScope,
    cursor: ClaimCursor,
    budgets: WorkerBudgets,
  ): Promise<ClaimedJob[]> {
    const names = budgets.free(scope.names);
    const plain = (rest: WorkerScope): Promise<ClaimedJob[]> =>
      names.length === 0 || rest.limit === 0
        ? Promise.resolve([])
        : this.#deps.store.claims.claim(session, { ...rest, names }, cursor);
    const budgeted = (rest: WorkerScope) => this.#claimBudgets(session, rest, budgets);
    this.#budgetsFirst = !this.#budgetsFirst;
    const [first, second] = this.#budgetsFirst ? [budgeted, plain] : [plain, budgeted];
    const jobs = await first(scope);
    try {
      return [...jobs, ...(await second(without(scope, jobs)))];
    } catch (error) {
      if (jobs.length === 0) throw error;
      this.#failedPartly(error);
      return jobs;
    }
  }

  /** Nothing is claimed ahead of need: its tokens would be gone from those who could use them now. */
  async #claimBudgets(session: number, scope: WorkerScope, budgets: WorkerBudgets): Promise<ClaimedJob[]> {
    const jobs: ClaimedJob[] = [];
    for (const budget of budgets.toAsk(scope.names)) {
      const { free, queues: asked } = without(scope, jobs);
      const queues = new Map([...free].filter(([queue, slots]) => slots > 0 && asked.has(queue)));
      const limit = [...queues.values()].reduce((sum, slots) => sum + slots, 0);
      if (limit === 0) break;
      try {
        const claim = await this.#deps.store.claims.claimBudgeted(
          session,
          { queues, limit, order: scope.order },
          budget,
          this.#cursor,
        );
        budgets.learn(budget, claim);
        jobs.push(...claim.jobs);
      } catch (error) {
        if (jobs.length === 0) throw error;
        this.#failedPartly(error);
        return jobs;
      }
    }
    return jobs;
  }

  /** A claim is due when the first empty budget has a token. */
  #armBudgets(): void {
    const inMs = this.#deps.budgets?.askInMs ?? null;
    if (inMs !== null) this.#want("claim", inMs);
  }

  /** The kinds that may be claimed. Tries a breaker that may be tried, with one job, before anything else. */
  async #beforeBreakers(session: number): Promise<readonly string[]> {
    const { breakers, pools } = this.#deps;
    if (breakers === undefined || !breakers.any) return this.#deps.names;
    await breakers.refresh();
    const { tryInMs } = breakers.closed();
    if (tryInMs === null) return this.#deps.names;
    const free = [...freeSlots(pools)].filter(([, slots]) => slots > 0).map(([queue]) => queue);
    const probe = tryInMs > 0 || free.length === 0 ? null : await breakers.probe(session);
    if (probe !== null) {
      const queues = probe.queue === null ? free : free.filter((queue) => queue === probe.queue);
      const names = probe.name === null ? this.#openNames() : [probe.name];
      let job: ClaimedJob | undefined;
      try {
        if (queues.length > 0) job = await this.#claimOne(session, queues, names);
      } finally {
        if (job === undefined) await breakers.giveBack(session, probe.key);
      }
      if (job !== undefined) {
        this.#claimed += 1;
        breakers.assign(probe.key, job.id);
        this.#deps.onClaimed([job], session);
      }
    }
    this.#armProbe();
    return this.#openNames();
  }

  async #claimOne(
    session: number,
    queues: readonly string[],
    names: readonly string[],
  ): Promise<ClaimedJob | undefined> {
    const { store, budgets, order } = this.#deps;
    const open = budgets?.any === true ? budgets.free(names) : names;
    const scope = { queues, names: open, limit: 1, order };
    const [job] = open.length === 0 ? [] : await store.claims.claim(session, scope, freshCursor());
    if (job !== undefined || budgets?.any !== true) return job;
    for (const queue of queues) {
      const free = new Map([[queue, 1]]);
      const [found] = await this.#claimBudgets(
        session,
        { queues: free, names, limit: 1, order, free },
        budgets,
      );
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** A claim is due when the first breaker may be tried. */
  #armProbe(): void {
    const { breakers } = this.#deps;
    if (breakers === undefined || !breakers.any) return;
    const { tryInMs } = breakers.closed();
    if (tryInMs !== null) this.#want("claim", Math.max(tryInMs, 50));
  }

  #openNames(): readonly string[] {
    const { breakers, names } = this.#deps;
    if (breakers === undefined || !breakers.any) return names;
    const closed = breakers.closed().names;
    return closed.size === 0 ? names : names.filter((name) => !closed.has(name));
  }

  #withoutBroken(queues: Map<string, number>, names: readonly string[]): Map<string, number> {
    const { breakers } = this.#deps;
    if (breakers === undefined || !breakers.any) return queues;
    if (names.length === 0) queues.clear();
    for (const queue of breakers.closed().queues) queues.delete(queue);
    return queues;
  }

  /** A queue that gave all it was asked for may have more; one that gave less has not. */
  #mayHaveMore(asked: ReadonlyMap<string, number>, jobs: readonly ClaimedJob[]): boolean {
    if (jobs.length === 0) return false;
    const got = new Map<string, number>();
    for (const { queue } of jobs) got.set(queue, (got.get(queue) ?? 0) + 1);
    for (const [queue, count] of got) {
      if (count >= (asked.get(queue) ?? 0) && this.#deps.pools.get(queue)?.hungry === true) return true;
    }
    return false;
  }

  async #look(): Promise<void> {
    const { store, clock, pools, order, random, breakers } = this.#deps;
    this.#deps.onLook();
    if (this.#deps.claimable() === null) return this.#want("poll", this.#pollMs());
    // What was open may have been closed by hand, or by another process's probe: else nothing would be looked for.
    if (breakers?.any === true && breakers.closed().tryInMs !== null) await breakers.refresh();
    const queues = new Map<string, number>();
    for (const pool of pools.values()) if (pool.slots > 0) queues.set(pool.queue, 1);
    const open = this.#openNames();
    this.#withoutBroken(queues, open);
    const names = this.#deps.budgets?.any === true ? this.#deps.budgets.open(open) : open;
    const askedAt = clock.monotonic();
    const peek = await store.claims.peek({ queues, names, limit: queues.size, order }, this.#cursor);
    this.#lookedAt = clock.monotonic();
    this.#lookMs = this.#lookedAt - askedAt;
    if (peek.completeInMs === null) this.#want("poll", this.#pollMs());
    else this.#want("look", Math.max(looksBackMs, peek.completeInMs));
    this.#armProbe();
    this.#armBudgets();
    if (peek.expiresAt !== null) {
      // A moment later than the lease's end, and not all workers at the same one.
      const inMs = peek.expiresAt - peek.now + 20 + random() * 180;
      if (peek.expiresAt > peek.now) this.#want("poll", inMs);
      else await this.#reap();
    }
    this.#draining = peek.draining;
    // Where a job of it is here, its end leads to the next look.
    if (this.#draining.some((queue) => this.#isIdle(queue))) await this.#deps.endDrains();
    if (peek.dueAt !== null) {
      const inMs = peek.dueAt - peek.now;
      if (inMs > 0) this.#want("claim", inMs + this.#standBackMs);
      else this.#workIsDue();
    }
  }

  #isIdle(queue: string): boolean {
    const pool = this.#deps.pools.get(queue);
    return pool?.running === 0 && pool.buffered === 0;
  }

  async #reap(): Promise<void> {
    const { clock, random } = this.#deps;
    const waitMs = this.#reapNotBefore - clock.monotonic();
    if (waitMs > 0) return this.#want("poll", waitMs);
    const taken = await this.#deps.reap();
    if (taken > 0) this.claim();
    this.#reapNotBefore = clock.monotonic() + 1_000 * (1 + random());
    this.#want(taken > 0 ? "look" : "poll", 1_000 * (1 + random()));
  }

  /**
   * The instant is kept, not only a timer: looks that come every few milliseconds (another process commits) would
   * put a timer off for ever, and this worker would stand idle beside a full queue.
   */
  #workIsDue(): void {
    // Perhaps of jobs without a lane, of which the latest claims have found none.
    this.#cursor.barren = false;
    if (claimLimits(this.#deps.pools).size === 0) return; // a free slot asks
    const waitMs = this.#fruitless === 0 ? 0 : this.#claimNotBefore - this.#deps.clock.monotonic();
    if (waitMs > 0) return this.#want("look", waitMs);
    this.#promised = true;
    this.#want("claim", this.#standBackMs);
  }

  get #standBackMs(): number {
    return this.#deps.outdated() ? outdatedMs : 0;
  }

  /** Waits a moment, and longer each time. One line tells of it, unless the store does. */
  async #outage(fault: unknown): Promise<void> {
    const { clock, log, random, store, workerId } = this.#deps;
    const trouble = troubleOf(fault);
    if (trouble === "permanent") {
      this.#stop.abort();
      this.#deps.onFatal(fault);
      return;
    }
    const waitMs = Math.min(longestOutageMs, firstOutageMs * 2 ** this.#failures);
    const { message, code } = describeFailure(fault);
    const line = { worker: workerId, error: message, code };
    if (this.#failures > 0 || isTold(fault, store.dialect)) log.debug(line, "claiming failed again");
    else if (trouble === "unclear") log.error(line, "claiming failed; it is tried again");
    else log.warn(line, "the database does not answer a claim; it is tried again");
    this.#failures += 1;
    await sleep(clock, waitMs * (0.75 + random() / 2), this.#stop.signal).catch(() => undefined);
    this.claim();
  }

  #pollMs(): number {
    const { store, pollMs, random } = this.#deps;
    const ms = store.listening ? Math.max(listeningPollMs, pollMs) : pollMs;
    return ms * (0.95 + random() / 10);
  }

  #tellWaiters(): void {
    if (this.#waiters.length === 0) return;
    const isMore = this.#next() !== null;
    const waits = ({ asked, all }: Waiter): boolean => asked >= this.#finished || (all && isMore);
    const told = this.#waiters.filter((waiter) => !waits(waiter));
    this.#waiters = this.#waiters.filter(waits);
    for (const { resolve, claimed } of told) resolve(this.#claimed - claimed);
  }
}

/** What is left of a worker's scope after these were claimed from it. */
function without(scope: WorkerScope, jobs: readonly ClaimedJob[]): WorkerScope {
  const queues = new Map(scope.queues);
  const free = new Map(scope.free);
  for (const { queue } of jobs)
    for (const left of [queues, free]) left.set(queue, Math.max(0, (left.get(queue) ?? 0) - 1));
  return { ...scope, queues, free, limit: Math.max(0, scope.limit - jobs.length) };
}

/** A job of a level that is not known any more may be among them: hence the look for those. */
function goBack(cursor: ClaimCursor, givenBack: ReadonlyMap<string, number>): void {
  if (givenBack.size === 0) return;
  for (const part of partsOf(cursor)) {
    for (const level of part.levels.values()) {
      const from = givenBack.get(level.queue);
      if (from !== undefined && level.runAt >= from) level.runAt = from - 1;
    }
    part.unseen = true;
  }
}

/** A cursor and all its parts. */
function* partsOf(cursor: ClaimCursor): Generator<ClaimCursor> {
  yield cursor;
  for (const part of cursor.parts?.values() ?? []) yield* partsOf(part);
}

function freshCursor(): ClaimCursor {
  return { levels: new Map(), lookedBackAt: -Infinity };
}
