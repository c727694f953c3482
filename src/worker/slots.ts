/**
 * The slots of one queue in this process, and the jobs that were claimed ahead for them.
 *
 *   claim ──▶ buffered ──a slot is free──▶ running ──▶ (ended)
 *                └── 1 s without a slot, pause, overload, shutdown ──▶ released
 *
 * Invariants: `running` never exceeds the slots that the queue had when a job was started; no more is claimed ahead
 * than the slots will start within about 200 ms, so long jobs are claimed one by one and no-op jobs in hundreds; a
 * job that has crashed before is never claimed ahead, so that a poison job takes as few others with it as can be.
 * Not here: claiming (claimer.ts), running (runner.ts).
 */
import type { ClaimedJob } from "../jobs/job.ts";
import type { Backoff } from "../jobs/backoff.ts";
import type { Rule } from "../limits/rules/breaker-rule.ts";

/** A claimed job that waits for a slot. */
export interface Buffered {
  readonly job: ClaimedJob;
  /** When it was claimed, by the monotonic clock. */
  readonly claimedAt: number;
}

const aheadMs = 200;
/** A job that was claimed ahead and finds no slot for so long is released: others may have one. */
const longestWaitMs = 1_000;
/** At most this many jobs of all queues together are claimed ahead. */
export const MOST_AHEAD = 1_500;

/** One queue's slots. */
export class Pool {
  readonly queue: string;
  /** Slots that the worker was given for the queue. */
  readonly configured: number;
  #setSlots: number | null = null;
  #paused = false;
  /** The worker is quiet: nothing is claimed or started. */
  quiet = false;
  /** Of the queue, from its live settings. */
  backoff: Backoff | null = null;
  /** Likewise. */
  breaker: Rule | null = null;
  running = 0;

  // A ring would save the compaction below; the buffer holds 1,500 at most and is emptied in order.
  #buffer: Buffered[] = [];
  #head = 0;

  /** How long a job holds its slot, smoothed. NaN until one has ended. */
  #heldMs = Number.NaN;
  /** The last claim brought a job that had crashed before: the next one takes only what can start at once. */
  #suspects = false;

  constructor(queue: string, slots: number) {
    this.queue = queue;
    this.configured = slots;
  }

  /** How many may run: 0 while the queue is paused or the worker is quiet. */
  get slots(): number {
    return this.#paused || this.quiet ? 0 : (this.#setSlots ?? this.configured);
  }

  get free(): number {
    return Math.max(0, this.slots - this.running);
  }

  get buffered(): number {
    return this.#buffer.length - this.#head;
  }

  get paused(): boolean {
    return this.#paused;
  }

  /** Takes over the queue's live settings, and says whether that makes more slots or fewer. */
  apply(settings: {
    readonly paused: boolean;
    readonly slots: number | null;
    readonly backoff: Backoff | null;
    readonly breaker?: Rule | null;
  }): "more" | "fewer" | "same" {
    const before = this.slots;
    this.#paused = settings.paused;
    this.#setSlots = settings.slots;
    this.backoff = settings.backoff;
    this.breaker = settings.breaker ?? null;
    if (this.slots === before) return "same";
    return this.slots > before ? "more" : "fewer";
  }

  /** How many this pool would take from a claim now, if `aheadLeft` may still be claimed ahead over all pools. */
  room(aheadLeft: number): number {
    const slots = this.slots;
    if (slots === 0) return 0;
    const now = Math.max(0, this.free - this.buffered);
    return now + Math.max(0, Math.min(this.#ahead(slots) - this.buffered, aheadLeft));
  }

  /** Whether a claim is worth its round trip: a slot stands empty, or half of what was claimed ahead is used up. */
  get hungry(): boolean {
    const slots = this.slots;
    if (slots === 0) return false;
    return this.free > this.buffered || this.buffered * 2 < this.#ahead(slots);
  }

  #ahead(slots: number): number {
    if (this.#suspects || Number.isNaN(this.#heldMs)) return 0;
    // Jobs that take no measurable time would give infinity.
    return Math.min(MOST_AHEAD, Math.floor((slots * aheadMs) / Math.max(this.#heldMs, 0.01)));
  }

  push(job: ClaimedJob, claimedAt: number): void {
    this.#buffer.push({ job, claimedAt });
  }

  /** The next job, if a slot is free for it. */
  take(): ClaimedJob | undefined {
    if (this.free === 0) return undefined;
    const next = this.#buffer[this.#head];
    if (next === undefined) return undefined;
    this.#head += 1;
    if (this.#head === this.#buffer.length) {
      this.#buffer = [];
      this.#head = 0;
    }
    return next.job;
  }

  /** When the longest-waiting buffered job has waited too long; Infinity: none waits. */
  get deadlineAt(): number {
    const oldest = this.#buffer[this.#head];
    return oldest === undefined ? Infinity : oldest.claimedAt + longestWaitMs;
  }

  /** Removes and gives the jobs that have waited too long. */
  takeStale(now: number): ClaimedJob[] {
    const stale = this.takeSome((_job, claimedAt) => claimedAt + longestWaitMs <= now);
    // They waited for a second where a fifth was expected: jobs take longer than they did.
    if (stale.length > 0) this.#heldMs = Math.max(this.#heldMs, 1_000);
    return stale;
  }

  /** Removes and gives everything that is buffered. */
  takeAll(): ClaimedJob[] {
    const all = this.#buffer.slice(this.#head).map(({ job }) => job);
    this.#buffer = [];
    this.#head = 0;
    return all;
  }

  /** Everything that is buffered. */
  *waiting(): Iterable<ClaimedJob> {
    for (let i = this.#head; i < this.#buffer.length; i += 1) yield this.#buffer[i]!.job;
  }

  /** Removes and gives those buffered jobs. */
  takeSome(wanted: (job: ClaimedJob, claimedAt: number) => boolean): ClaimedJob[] {
    const taken: ClaimedJob[] = [];
    this.#buffer = this.#buffer.slice(this.#head).filter(({ job, claimedAt }) => {
      if (!wanted(job, claimedAt)) return true;
      taken.push(job);
      return false;
    });
    this.#head = 0;
    return taken;
  }

  /** Learns from a job that has held its slot for this long. Slower ones count more: claiming too far ahead does harm, too short does not. */
  learn(heldMs: number): void {
    if (Number.isNaN(this.#heldMs)) this.#heldMs = heldMs;
    else this.#heldMs += (heldMs - this.#heldMs) * (heldMs > this.#heldMs ? 0.3 : 0.1);
  }

  /** Says whether the last claim brought a job that had crashed before. */
  sawSuspects(seen: boolean): void {
    this.#suspects = seen;
  }
}

/** What a claim may take from each pool; empty when none is hungry. */
export function claimLimits(pools: ReadonlyMap<string, Pool>): Map<string, number> {
  const limits = new Map<string, number>();
  let aheadLeft = MOST_AHEAD;
  let hungry = false;
  for (const pool of pools.values()) {
    aheadLeft -= pool.buffered;
    hungry ||= pool.hungry;
  }
  if (!hungry) return limits;
  for (const pool of pools.values()) {
    const room = pool.room(Math.max(0, aheadLeft));
    if (room === 0) continue;
    limits.set(pool.queue, room);
    aheadLeft -= Math.max(0, room - pool.free);
  }
  return limits;
}

/** What each pool could start at once. */
export function freeSlots(pools: ReadonlyMap<string, Pool>): Map<string, number> {
  const free = new Map<string, number>();
  for (const pool of pools.values()) free.set(pool.queue, Math.max(0, pool.free - pool.buffered));
  return free;
}
