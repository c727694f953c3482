/**
 * Decides when to claim, and sleeps exactly as long as there is nothing to do.
 *
 *              ┌──────── a slot is free · a wake-up · the due instant ────────┐
 *              ▼                                                              │
 *   ┌──▶ claiming ──full, and still hungry──┐                                 │
 *   └───────────────────────────────────────┘                                 │
 *              │ short                                                        │
 *              ▼                                                              │
 *           looking (checkDue) ──▶ asleep until min(next due, next session's end, poll)
 *              └── a session has ended ──▶ reap ──▶ claiming
 *
 * Invariants: one statement is in flight at a time (docs/decisions/one-claim-in-flight.md), and
 * what happens meanwhile is remembered; a claim that is wanted stays wanted until it is made, whatever a look finds; a look gives way to claims,
 * but not for longer than a second; nothing is claimed while 1,500 outcomes wait to be written; an idle worker sends
 * one cheap read per poll and nothing else; a look that promises work which the claim then does not find (a limit, another
 * worker was faster, rows that can never be claimed) never makes the loop spin (D17); nothing here rejects.
 * Not here: what a claim may take (slots.ts), breakers and budgets (guards/), claims that failed (claim-faults.ts), what becomes of the
 * jobs (runner.ts).
 */
import type { Timer } from "../clock.ts";
import type { ClaimedJob } from "../jobs/job.ts";
import type { Settlement, Transition } from "../jobs/outcome.ts";
import type { Settler } from "../lease/settler.ts";
import type { WorkerSession } from "../lease/worker-session.ts";
import type { Store } from "../storage/store.ts";
import type { ClaimCursor, ClaimScope } from "../jobs/claim-scope.ts";
import type { Wake } from "../storage/wake.ts";
import { ClaimFaults, type ClaimFaultsDeps } from "./claim-faults.ts";
import type { ClaimGuard, Guards } from "./guards/guard.ts";
import type { LiveSettings } from "./live-settings.ts";
import type { Overload } from "./loop-delay.ts";
import type { Report } from "./report.ts";
import { claimLimits, freeSlots, MOST_AHEAD, type Pool } from "./slots.ts";

export interface ClaimerDeps extends Omit<ClaimFaultsDeps, "claimable"> {
  readonly store: Pick<Store, "claims" | "listening" | "dialect" | "wake">;
  readonly pools: ReadonlyMap<string, Pool>;
  readonly names: readonly string[];
  readonly order: ClaimScope["order"];
  readonly guards: Readonly<Guards>;
  readonly session: Pick<WorkerSession, "claimable">;
  readonly live: Pick<LiveSettings, "known" | "looked">;
  readonly overload: Pick<Overload, "isOver">;
  readonly settler: Pick<Settler, "pending">;
  readonly report: Pick<Report, "claimed" | "outdated">;
  readonly onClaimed: (jobs: readonly ClaimedJob[], session: number) => void;
  /** Takes over what dead sessions held; resolves to how many jobs. */
  readonly reap: () => Promise<number>;
  /** Pauses the draining queues that have become empty. */
  readonly endDrains: () => Promise<unknown>;
}

/** A poll is a look that can wait: nothing is known to change by then. */
type Todo = "claim" | "look" | "poll";

/** A caller that asked when `asked` claims had begun. */
interface Waiter {
  readonly asked: number;
  readonly claimed: number;
  /** Waits until nothing more can be claimed; else until one claim has ended. */
  readonly all: boolean;
  readonly resolve: (claimed: number) => void;
}

const listeningPollMs = 5_000;
const overloadMs = 250;
// A worker that has handed a job back for newer code is the first to know when it is due again: it would take it each time.
const outdatedMs = 100;
// A worker that gets one job every few milliseconds would otherwise look after each of them.
const checksApartMs = 100;
/** A look that began at the cursor is followed by one at everything, but not sooner. */
const rescansMs = 1_000;
/** Where there is always more to claim, a look waits no longer than this: it finds the sessions that have died. */
const checksLateMs = 1_000;

/** Claims for all queues of a worker. */
export class Claimer {
  readonly #deps: ClaimerDeps;
  readonly #faults: ClaimFaults;
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
  #lookedAt = -Infinity;
  #checkMs: number | null = null;
  #reapNotBefore = -Infinity;
  /** Queues that the latest look found draining. */
  #draining: readonly string[] = [];
  /** The claim that comes next was promised work by a look. */
  #promised = false;

  /** Claims are numbered, so that a waiter can tell one that was begun after its own question. */
  #begun = 0;
  #finished = 0;
  #claimed = 0;
  #waiters: Waiter[] = [];

  constructor(deps: ClaimerDeps) {
    this.#deps = deps;
    this.#faults = new ClaimFaults({ ...deps, claimable: () => this.#claimable });
  }

  // --- what others tell ---------------------------------------------------------------------------------

  /** Something may be claimable. */
  claim(): void {
    this.#want("claim");
  }

  /**
   * A job of this queue and priority is due, or (`from`) jobs that are due since then were given back. If no claim has met the job's
   * level yet, the next one looks for it. Kept until that begins: the one in flight changes the cursor when it is answered.
   */
  woken({ queue, priority, from }: Wake & { readonly kind: "work" }): void {
    if (!this.#deps.pools.has(queue)) return;
    if (from === undefined) this.#due.set(`${queue}\n${priority}`, { queue, rank: -priority || 0 });
    else this.#expectFrom(queue, from);
    this.claim();
  }

  /** These are about to be written: a claim may see a job that goes back before this worker hears that it has. */
  expect(settlements: readonly Settlement[]): void {
    for (const { transition } of settlements)
      if (transition.move === "again" && transition.keeps !== undefined)
        this.#expectFrom(transition.keeps.queue, transition.keeps.runAt);
  }

  #expectFrom(queue: string, runAt: number): void {
    this.#givenBack.set(queue, Math.min(runAt, this.#givenBack.get(queue) ?? Infinity));
    // At once too: a claim that has begun looks at the places of limited queues when it has locked them.
    goBack(this.#cursor, new Map([[queue, runAt]]));
  }

  /** These are written: jobs that have not ended may be claimed again, here or by others that have a free slot for them. */
  written(settlements: readonly Settlement[]): void {
    let later = false;
    let now: Set<string> | undefined;
    for (const { job, transition } of settlements) {
      // What drains may have become empty with this job.
      if (this.#draining.includes(job.queue) && this.#isIdle(job.queue)) later = true;
      const when = goesOn(transition);
      if (when === "now") (now ??= new Set()).add(job.queue);
      if (when === "later" || transition.move === "wait") later = true;
    }
    for (const queue of now ?? []) this.#deps.store.wake({ kind: "work", queue, priority: 0 });
    if (later) this.checkSoon();
  }

  /** Fewer outcomes wait to be written. */
  settled(): void {
    if (!this.#heldBack || this.#deps.settler.pending >= MOST_AHEAD) return;
    this.#heldBack = false;
    this.claim();
  }

  /** The session may hold jobs that this worker does not know: compares before it does anything else. */
  reconcile(): void {
    this.#faults.unsure = true;
    this.look();
  }

  /** Something has changed that may matter. */
  look(): void {
    this.#want("look");
  }

  /** Something may be due soon: looks, but not more often than makes sense. */
  checkSoon(): void {
    this.#want("look", this.#lookedAt + checksApartMs - this.#deps.clock.monotonic());
  }

  /** How long the latest look took: what a read costs from here. */
  get checkMs(): number | null {
    return this.#checkMs;
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

  /** After it has stopped: releases what the session holds and the worker does not know, if there may be something. Never rejects. */
  async compare(): Promise<void> {
    await this.#faults.settle();
  }

  // --- when ---------------------------------------------------------------------------------------------

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
    if (claim <= now && now < look + checksLateMs) return "claim";
    return look <= now ? "look" : null;
  }

  async #run(): Promise<void> {
    await Promise.resolve(); // so that `#busy` is set before anything here can ask again
    for (let todo = this.#next(); todo !== null && !this.#stop.signal.aborted; todo = this.#next()) {
      this.#wantedAt[todo] = Infinity;
      if (todo === "look") this.#wantedAt.poll = Infinity;
      try {
        if (this.#faults.unsure) await this.#faults.reconcile();
        if (todo === "claim") await this.#claim();
        else await this.#look();
        this.#faults.failures = 0;
      } catch (error) {
        if (await this.#faults.outage(error, this.#stop.signal)) this.claim();
        else this.#stop.abort();
      }
      this.#tellWaiters();
    }
  }

  /** The session under which something may be claimed now; null: not now, and `claim` will be called again. */
  get #claimable(): number | null {
    const { live, session } = this.#deps;
    return live.known ? session.claimable : null;
  }

  // --- claim --------------------------------------------------------------------------------------------

  async #claim(): Promise<void> {
    const { store, pools, order, guards } = this.#deps;
    const session = this.#claimable;
    if (session === null) return this.#want("claim", this.#pollMs());
    if (this.#deps.overload.isOver()) return this.#want("claim", overloadMs);
    if (this.#deps.settler.pending >= MOST_AHEAD) {
      // Jobs end faster than their ends are written; claiming on would only fill the memory. `settled` asks again.
      this.#heldBack = true;
      return;
    }
    const guard = guards.claims;
    if (guard !== null) await this.#beforeClaim(guard, session);
    const queues = claimLimits(pools);
    const names = guard === null ? this.#deps.names : guard.narrow(queues);
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
    const jobs = await (guard ?? store.claims).claim(session, scope, this.#cursor);
    this.#finished = number;
    this.#handOver(jobs, session);
    if (jobs.length > 0) this.#faults.fruitless = 0;
    else if (promised) this.#faults.foundNothing();
    if (guard !== null) this.#afterGuarded(guard);
    if (this.#mayHaveMore(queues, jobs)) this.claim();
    else if (jobs.length === 0) this.checkSoon();
    // What was found may have neighbours: a claim by cursor has looked only where the last one got to.
    else if (jobs.length < limit) this.look();
    // All that was asked for: whoever frees a slot asks for more, and a look would only keep that claim waiting.
    else this.#want("poll", this.#pollMs());
  }

  #handOver(jobs: readonly ClaimedJob[], session: number): void {
    if (this.#cursor.failed !== undefined) {
      this.#faults.part(this.#cursor.failed);
      delete this.#cursor.failed;
    }
    this.#claimed += jobs.length;
    if (jobs.length === 0) return;
    if (this.#deps.log.trace !== undefined) this.#deps.report.claimed(jobs);
    this.#deps.onClaimed(jobs, session);
  }

  async #beforeClaim(guard: ClaimGuard, session: number): Promise<void> {
    const probed = await guard.beforeClaim(session, this.#cursor);
    this.#handOver(probed === undefined ? [] : [probed], session);
    // Tokens alone are no reason: with every slot taken, a claim that is due at once would be due again and again.
    if (guard.probeInMs !== null) this.#want("claim", guard.probeInMs);
  }

  /** A claim is due when something may be claimed that may not be now. */
  #afterGuarded({ claimInMs }: ClaimGuard): void {
    if (claimInMs !== null) this.#want("claim", claimInMs);
  }

  #tellCursor(): void {
    if (this.#asked || this.#due.size > 0 || this.#givenBack.size > 0) this.#cursor.empty = false;
    goBack(this.#cursor, this.#givenBack);
    for (const part of partsOf(this.#cursor)) {
      if (this.#asked) part.rescannedAt = -Infinity;
      if (part.unseen === true || this.#due.size === 0) continue;
      const known = new Set([...part.levels.values()].map(({ queue, rank }) => `${queue}\n${rank}`));
      for (const { queue, rank } of this.#due.values())
        if (!known.has(`${queue}\n${rank}`)) part.unseen = true;
    }
    this.#givenBack.clear();
    this.#due.clear();
    this.#asked = false;
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

  // --- look ---------------------------------------------------------------------------------------------

  async #look(): Promise<void> {
    const { store, clock, pools, order, live, log, workerId } = this.#deps;
    log.trace?.({ worker: workerId }, "tick: polling for jobs");
    live.looked();
    if (this.#claimable === null) return this.#want("poll", this.#pollMs());
    const guard = this.#deps.guards.claims;
    if (guard !== null) await guard.beforeLook();
    const queues = new Map<string, number>();
    for (const pool of pools.values()) if (pool.slots > 0) queues.set(pool.queue, 1);
    const names = guard === null ? this.#deps.names : guard.worthLook(guard.narrow(queues));
    const askedAt = clock.monotonic();
    const checkDue = await store.claims.checkDue({ queues, names, limit: queues.size, order }, this.#cursor);
    this.#lookedAt = clock.monotonic();
    this.#checkMs = this.#lookedAt - askedAt;
    if (checkDue.completeInMs === null) this.#want("poll", this.#pollMs());
    else this.#want("look", Math.max(rescansMs, checkDue.completeInMs));
    if (guard !== null) this.#afterGuarded(guard);
    if (checkDue.expiresAt !== null) await this.#sessionEnds(checkDue.expiresAt - checkDue.now);
    this.#draining = checkDue.draining;
    // Where a job of it is here, its end leads to the next look.
    if (this.#draining.some((queue) => this.#isIdle(queue))) await this.#deps.endDrains();
    if (checkDue.dueAt === null) return;
    const inMs = checkDue.dueAt - checkDue.now;
    if (inMs > 0) this.#want("claim", inMs + this.#standBackMs);
    else this.#workIsDue();
  }

  #isIdle(queue: string): boolean {
    const pool = this.#deps.pools.get(queue);
    return pool?.running === 0 && pool.buffered === 0;
  }

  /** The lease of some session passes in so many milliseconds, or has passed: then its jobs are taken over, once a second at most. */
  async #sessionEnds(inMs: number): Promise<void> {
    const { clock, random } = this.#deps;
    // A moment later than the lease's end, and not all workers at the same one.
    if (inMs > 0) return this.#want("poll", inMs + 20 + random() * 180);
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
    this.#cursor.empty = false;
    if (claimLimits(this.#deps.pools).size === 0) return; // a free slot asks
    const waitMs = this.#faults.fruitlessWaitMs;
    if (waitMs > 0) return this.#want("look", waitMs);
    this.#promised = true;
    this.#want("claim", this.#standBackMs);
  }

  get #standBackMs(): number {
    return this.#deps.report.outdated ? outdatedMs : 0;
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

/** When a job that has not ended goes on; null: it has ended, or the settle tells of it (lease/settle.ts). */
function goesOn(transition: Transition): "now" | "later" | null {
  if (transition.move === "wait") return transition.at === 0 ? "now" : "later";
  if (transition.move === "end") return transition.undo === true ? "now" : null;
  if (transition.move === "none" || transition.keeps !== undefined) return null;
  return transition.delayMs === 0 ? "now" : "later";
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
  return { levels: new Map(), rescannedAt: -Infinity };
}
