/**
 * Fires schedules: every worker times the next occurrence exactly, and the database lets one of them have it.
 *
 *   look (dueSchedules) ──due──▶ fire each ──▶ look ──nothing due──▶ asleep until min(next occurrence, a minute)
 *     └─────────── more is due ◀───┤
 *                                  └ another process is at it, or the database failed ──▶ look again in about a second
 *
 * Invariants: one look is under way at a time; a schedule that fails keeps no other from firing, and no worker from
 * working: only a look that can never succeed ends it. A minute passes at most (5 s where no wake-ups arrive) without a
 * look, whatever was lost on the way: a timer that was never set is how Temporal's schedules stopped silently
 * (temporalio/temporal#11869). Nothing here rejects.
 * Not here: which occurrences fire (plan.ts), the transaction (schedule-rows.ts).
 */
import type { Clock, Timer } from "../clock.ts";
import type { Emitter } from "../events.ts";
import type { Enqueued, NewJob } from "../jobs/job.ts";
import type { Logger } from "../logger.ts";
import { describeFailure } from "../jobs/failure.ts";
import type { Store } from "../storage/store.ts";
import type { DueSchedules, ScheduleStore, OccurrenceReport } from "./store.ts";
import { troubleOf } from "../storage/trouble.ts";

export interface TickDeps {
  readonly store: { readonly schedules: Pick<ScheduleStore, "due" | "fire"> };
  readonly newId: () => string;
  readonly log: Logger;
  readonly events: Pick<Emitter, "emit">;
  /** Jobs were committed: counts them, and wakes who may run them. */
  readonly committed: (jobs: readonly NewJob[], outcomes: readonly Enqueued[]) => void;
  /** True: the tick ends before the next schedule. */
  readonly stopping?: () => boolean;
}

/** On SQLite they share a commit; on Postgres more would keep the pool (5 connections) from others. */
const firedAtOnce = 5;

/** What one tick did. */
export interface Tick {
  /** Schedules for which something was done. */
  readonly advanced: number;
  readonly fired: number;
  readonly skipped: number;
  readonly missed: number;
  /** Schedules that were found unreadable and are disabled now. */
  readonly disabled: number;
  /** Something is due that this tick could not do. */
  readonly left: boolean;
  /** The first error of the database, if any. */
  readonly error: unknown;
  /** What there is to wait for. */
  readonly next: DueSchedules;
}

/**
 * Fires everything that is due now, page by page: whatever cannot be fired is in nobody's way.
 *
 * @example
 * const { fired, next } = await tickOnce({ store, newId, log, events, committed });
 */
export async function tickOnce(deps: TickDeps): Promise<Tick> {
  const total = { advanced: 0, fired: 0, skipped: 0, missed: 0, disabled: 0 };
  const stopping = (): boolean => deps.stopping?.() === true;
  const first = await deps.store.schedules.due();
  let error: unknown = null;
  const fire = async (name: string): Promise<void> => {
    try {
      const report = await deps.store.schedules.fire(name, deps.newId);
      if (report === null) return;
      tell(deps, name, report);
      total.advanced += 1;
      total.fired += report.fired.length;
      total.skipped += report.skipped;
      total.missed += report.missed;
      if (report.fault !== null) total.disabled += 1;
    } catch (fault) {
      error ??= fault;
      deps.log.warn(
        { schedule: name, error: describeFailure(fault).message },
        `schedule ${name} could not fire; its occurrence stays due`,
      );
    }
  };
  for (let page: DueSchedules = first; ; page = await deps.store.schedules.due(page.after)) {
    const names = page.due.values();
    const some = async (): Promise<void> => {
      for (const name of names) if (!stopping()) await fire(name);
    };
    await Promise.all(Array.from({ length: firedAtOnce }, some));
    // What has become due since is for the next tick: this one must end.
    if (page.after === null || page.after.at > first.now || stopping()) break;
  }
  const next = first.due.length === 0 ? first : await deps.store.schedules.due();
  return { ...total, left: next.due.length > 0, error, next };
}

function tell(deps: TickDeps, name: string, report: OccurrenceReport): void {
  const { fired, skipped, missed, fault } = report;
  if (fault !== null) {
    deps.log.error({ schedule: name, error: fault }, `schedule ${name} is disabled: ${fault}`);
    deps.events.emit("schedule.disabled", { name, error: fault });
    return;
  }
  if (fired.length > 0) {
    deps.committed(
      fired.map(({ job }) => job),
      fired.map(({ id, status }) => ({ id, status })),
    );
  }
  for (const { occurrence, id } of fired)
    deps.events.emit("schedule.fired", { name, occurrence: new Date(occurrence), id });
  if (skipped > 0) deps.events.emit("schedule.skipped", { name, occurrences: skipped });
  if (missed > 0) {
    deps.log.warn({ schedule: name, missed }, `schedule ${name} missed ${missed} occurrences`);
    deps.events.emit("schedule.missed", { name, occurrences: missed });
  }
}

export interface SchedulerDeps extends TickDeps {
  readonly store: TickDeps["store"] & Pick<Store, "listening">;
  readonly clock: Clock;
  readonly random: () => number;
  /** It can never work: the tables are gone, a fault of our own. */
  readonly onFatal: (error: unknown) => void;
}

const longestSleepMs = 60_000;
/** Where no wake-up is proven to arrive, a schedule that another process puts is found by looking. */
const deafSleepMs = 5_000;
const retryMs = 1_000;
/** How often an occurrence that waits for a job's end is looked at, where nobody tells. */
const blockedMs = 5_000;
const apartMs = 1_000;

/** Ticks until it is stopped. */
export class Scheduler {
  readonly #deps: SchedulerDeps;
  #timer: Timer | undefined;
  #timerAt = Infinity;
  #tick: Promise<void> | undefined;
  #again = false;
  #lookedAt = -Infinity;
  /** The latest tick failed for a reason that nobody knows, and that was told. */
  #failing = false;
  #stopped = false;
  /** Jobs whose end lets an occurrence go. A field, so that a busy worker is spared a question for each of its jobs. */
  awaited: ReadonlySet<string> = new Set();

  constructor(deps: SchedulerDeps) {
    this.#deps = deps;
  }

  /** Looks now: at the start, and whenever schedules have changed. */
  look(): void {
    if (this.#stopped) return;
    if (this.#tick !== undefined) {
      this.#again = true;
      return;
    }
    this.#disarm();
    this.#tick = this.#turn().finally(() => {
      this.#tick = undefined;
      if (!this.#again) return;
      this.#again = false;
      this.look();
    });
  }

  /** Something has changed, perhaps schedules: looks within a second. */
  mayHaveChanged(): void {
    const waitMs = this.#lookedAt + apartMs - this.#deps.clock.monotonic();
    if (waitMs <= 0) this.look();
    else this.#arm(waitMs);
  }

  /** These jobs have ended here. */
  ended(id: string): void {
    if (this.awaited.has(id)) this.look();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#disarm();
    await this.#tick;
  }

  async #turn(): Promise<void> {
    const { store, clock, random } = this.#deps;
    this.#lookedAt = clock.monotonic();
    try {
      const tick = await tickOnce({ ...this.#deps, stopping: () => this.#stopped });
      const { left, error, next } = tick;
      this.awaited = new Set(next.awaited);
      let pollMs = (store.listening ? longestSleepMs : deafSleepMs) * (0.95 + random() / 10);
      if (next.awaited.length > 0) pollMs = Math.min(pollMs, blockedMs * (0.95 + random() / 10));
      let dueMs = next.nextAt === null ? Infinity : next.nextAt - next.now;
      if (left || error !== null) dueMs = Math.min(dueMs, retryMs * (0.5 + random()));
      this.#arm(Math.min(pollMs, dueMs), dueMs);
      // More has become due meanwhile. Where nothing came of this tick, another process is at it, or nothing can.
      if (left && tick.advanced > 0) this.#again = true;
      this.#failing = false;
    } catch (error) {
      this.#failed(error);
      this.#arm(retryMs * (0.75 + random() / 2));
    }
  }

  /** An outage is waited for, and so is what nobody knows; what can never work ends the worker, which names it. */
  #failed(error: unknown): void {
    const trouble = troubleOf(error);
    if (this.#stopped) return;
    if (trouble === "permanent") {
      this.#stopped = true;
      this.#disarm();
      this.#deps.onFatal(error);
      return;
    }
    const line = { error: describeFailure(error).message };
    if (trouble === "unclear" && !this.#failing)
      this.#deps.log.error(line, "firing schedules failed; retrying");
    else this.#deps.log.debug(line, "firing schedules is delayed");
    this.#failing = trouble === "unclear";
  }

  #arm(ms: number, latestMs = ms): void {
    if (this.#stopped) return;
    const at = this.#deps.clock.monotonic() + ms;
    if (at >= this.#timerAt) return;
    this.#disarm();
    this.#timerAt = at;
    const look = (): void => {
      this.#disarm();
      this.look();
    };
    this.#timer = this.#deps.clock.after(ms, look, { latestMs });
  }

  #disarm(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#timerAt = Infinity;
  }
}
