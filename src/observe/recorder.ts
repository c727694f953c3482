/**
 * Counts what a worker does, minute by minute, and writes the minutes down.
 *
 *   settled ─▶ cell of (minute, queue, name), in memory ──every 10 s, if it changed──▶ store (the whole minute again)
 *                                                       └─ minute over, written ─▶ added to the process's totals
 *
 * Invariants: counting costs two histogram buckets and no statement; a minute is written whole under (minute, queue,
 * kind, worker), so that writing it twice, or after a lost answer, gives the same rows; an idle worker writes one row of
 * health a minute and nothing else; a database that is away costs the oldest minutes beyond ten, counted as `dropped`.
 * Not here: reading them (metrics.ts), percentiles (values/histogram.ts).
 */
import { freemem, loadavg } from "node:os";
import type { Clock, Timer } from "../clock.ts";
import type { ClaimedJob } from "../jobs/job.ts";
import type { Logger } from "../logger.ts";
import { describeFailure } from "../jobs/failure.ts";
import type { Store } from "../storage/store.ts";
import type { GaugeRow, MetricRow } from "./store.ts";
import { type Cell, Cells, type CountedOutcome } from "./cells.ts";
import { Failures } from "./failure-counts.ts";
import type { Settlement } from "../jobs/outcome.ts";

/** Null: nothing but the time that it took. A run that sleeps, waits or goes on to its next step has not failed. */
function countedAs({ outcome, transition }: Settlement): CountedOutcome | null {
  if (outcome.kind === "committed") return "done";
  // A run that undoes its steps first ends later, and is counted then.
  if (transition.move === "end" && transition.undo !== true) return transition.state;
  if (outcome.kind === "throttled" || outcome.kind === "released") return outcome.kind;
  return outcome.kind === "failed" || outcome.kind === "dead" ? "failed" : null;
}

export interface RecorderDeps {
  readonly store: Pick<Store, "series" | "failures" | "poolUse" | "now">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly workerId: string;
  /** The 99th percentile of the event loop's delay since the last call. */
  readonly loopDelay: () => number;
  /** How long the latest read took; null: there was none. */
  readonly checkMs: () => number | null;
  readonly running: () => number;
  readonly slots: () => number;
  /** Which version of a name's definition this worker runs. */
  readonly versionOf: (name: string) => number;
  /** What this process has counted so far in minutes that are over. */
  readonly totals: Cells;
}

const minuteMs = 60_000;
const flushEveryMs = 10_000;
const mostMinutes = 10;
// Older ones may have been added up by then (upkeep/series-pruner.ts).
const oldestMs = 30 * minuteMs;
// A worker that stops does not wait long for its last minute.
const lastFlushMs = 1_000;

/** Counts for one worker. */
export class Recorder {
  readonly #deps: RecorderDeps;
  /** Oldest first. */
  readonly #minutes = new Map<number, Cells>();
  readonly #failures: Failures;
  #timer: Timer | undefined;
  #flushAt = -Infinity;
  /** Something was counted since the last write. */
  #counted = false;
  #flushing: Promise<void> | undefined;
  /** How long the last write took, since the last gauge: most writes do not fall together with one. */
  #writeMs: number | null = null;
  #gaugedMinute = -1;
  #cpu: { readonly usage: NodeJS.CpuUsage; readonly at: number } | undefined;
  #dropped = 0;
  #stopped = false;

  constructor(deps: RecorderDeps) {
    this.#deps = deps;
    this.#failures = new Failures(deps.workerId, deps.versionOf);
  }

  /** Minutes that could not be written and are lost. */
  get dropped(): number {
    return this.#dropped;
  }

  start(): void {
    this.#cpu = { usage: process.cpuUsage(), at: this.#deps.clock.monotonic() };
    this.#gaugedMinute = this.#minute();
    this.#arm();
  }

  /** These outcomes have been written. */
  settled(settlements: readonly Settlement[]): void {
    const cells = this.#now();
    if (!this.#counted) this.#hurry();
    for (const settlement of settlements) {
      const { job, outcome, heldMs } = settlement;
      const counted = outcome.kind === "succeeded" ? "done" : this.#countedAs(settlement);
      if (counted !== undefined)
        cells.at(job.queue, job.name).add(counted, heldMs, job.startedAt - job.runAt);
    }
  }

  /** Undefined: no attempt was made. One that failed is counted by its cause as well. */
  #countedAs(settlement: Settlement): CountedOutcome | null | undefined {
    const { job, outcome, transition, heldMs } = settlement;
    if (outcome.kind === "failed" || outcome.kind === "dead")
      this.#failures.add(this.#minute(), job, transition, outcome.failure.message, heldMs);
    const unstarted =
      (outcome.kind === "released" || outcome.kind === "cancelled") && outcome.unstarted === true;
    return unstarted ? undefined : countedAs(settlement);
  }

  /** These attempts were lost to others. */
  lost(jobs: readonly ClaimedJob[]): void {
    const cells = this.#now();
    for (const { queue, name } of jobs) cells.at(queue, name).addLost();
  }

  /** What is counted and not yet part of the totals. */
  *unmerged(): Generator<Cell> {
    for (const cells of this.#minutes.values()) yield* cells;
  }

  /** Writes what has changed. Never rejects; one at a time. */
  flush(): Promise<void> {
    this.#flushing ??= this.#write().finally(() => (this.#flushing = undefined));
    return this.#flushing;
  }

  /** Writes the last minute, as far as that goes quickly. */
  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#stopped = true;
    const { clock, totals } = this.#deps;
    if (this.#isDirty()) {
      let timer: Timer | undefined;
      const late = new Promise<void>(
        (resolve) => (timer = clock.after(lastFlushMs, resolve, { unref: true })),
      );
      await Promise.race([this.flush(), late]);
      timer?.cancel();
    }
    for (const cells of this.#minutes.values()) totals.merge(cells);
    this.#minutes.clear();
  }

  #arm(ms = flushEveryMs, latestMs = Infinity): void {
    const { clock } = this.#deps;
    const flush = (): void => {
      this.#counted = false;
      void this.flush().then(() => {
        if (!this.#stopped && !this.#counted) this.#arm();
      });
    };
    this.#flushAt = clock.monotonic() + ms;
    this.#timer?.cancel();
    this.#timer = clock.after(ms, flush, { unref: true, latestMs });
  }

  /** Where the clock jumps, the write comes first: it would be refused as too old. */
  #hurry(): void {
    this.#counted = true;
    const leftMs = this.#flushAt - this.#deps.clock.monotonic();
    if (!this.#stopped) this.#arm(leftMs, leftMs);
  }

  #minute(): number {
    return Math.floor(this.#deps.clock.now() / minuteMs) * minuteMs;
  }

  #now(): Cells {
    const minute = this.#minute();
    return this.#minutes.get(minute) ?? this.#begin(minute);
  }

  #begin(minute: number): Cells {
    const cells = new Cells();
    this.#minutes.set(minute, cells);
    return cells;
  }

  #isDirty(): boolean {
    for (const cells of this.#minutes.values()) for (const cell of cells) if (cell.dirty) return true;
    return false;
  }

  async #write(): Promise<void> {
    const { store, log, workerId } = this.#deps;
    this.#dropOldest();
    const rows: MetricRow[] = [];
    const written: Cell[] = [];
    for (const [minute, cells] of this.#minutes) {
      for (const cell of cells) {
        if (!cell.dirty) continue;
        cell.dirty = false;
        written.push(cell);
        rows.push({
          minute,
          queue: cell.queue,
          name: cell.name,
          worker: workerId,
          ...cell.counts,
          ran: cell.ran.encode(),
          waited: cell.waited.encode(),
        });
      }
    }
    const failures = this.#failures.take();
    try {
      const startedAt = this.#deps.clock.monotonic();
      await store.series.putMetrics(rows);
      if (rows.length > 0) this.#writeMs = this.#deps.clock.monotonic() - startedAt;
      this.#forgetWritten();
      await store.failures.put(failures.groups, failures.rows);
      this.#failures.forget(this.#minute(), this.#minute() - oldestMs);
      await this.#gauge();
    } catch (error) {
      failures.again();
      for (const cell of written) cell.dirty = true;
      this.#dropOldest();
      log.debug(
        { worker: workerId, error: describeFailure(error).message },
        "the metrics of a minute could not be written",
      );
    }
  }

  /** Once a minute: how this process and its way to the database are. */
  async #gauge(): Promise<void> {
    const minute = this.#minute();
    if (minute === this.#gaugedMinute || this.#stopped) return;
    const { store, workerId, loopDelay, checkMs, running, slots } = this.#deps;
    const readMs = checkMs();
    const pool = store.poolUse;
    const values: Record<string, number> = {
      cpu: this.#cpuShare(),
      rss: process.memoryUsage.rss(),
      loopDelayMs: loopDelay(),
      running: running(),
      slots: slots(),
      ...(readMs === null ? {} : { dbReadMs: readMs }),
      hostLoad: loadavg()[0] ?? 0,
      hostFreeBytes: freemem(),
      ...(this.#writeMs === null ? {} : { dbWriteMs: this.#writeMs }),
      ...(pool === null ? {} : { poolUsed: pool.used, poolIdle: pool.idle, poolWaiting: pool.waiting }),
    };
    this.#gaugedMinute = minute;
    this.#writeMs = null;
    await store.series.putGauges(
      Object.entries(values).map(([name, value]): GaugeRow => ({ minute, source: workerId, name, value })),
    );
  }

  /** Of one core, since the last look. */
  #cpuShare(): number {
    const at = this.#deps.clock.monotonic();
    const usage = process.cpuUsage();
    const before = this.#cpu;
    this.#cpu = { usage, at };
    if (before === undefined || at <= before.at) return 0;
    const micros = usage.user + usage.system - before.usage.user - before.usage.system;
    return micros / 1_000 / (at - before.at);
  }

  /** A minute that is over and written is part of the totals from then on. */
  #forgetWritten(): void {
    const current = this.#minute();
    for (const [minute, cells] of this.#minutes) {
      if (minute >= current || [...cells].some((cell) => cell.dirty)) continue;
      this.#deps.totals.merge(cells);
      this.#minutes.delete(minute);
    }
  }

  #dropOldest(): void {
    const before = this.#minute() - oldestMs;
    for (;;) {
      const [oldest] = this.#minutes.keys();
      if (oldest === undefined || (this.#minutes.size <= mostMinutes && oldest >= before)) return;
      const cells = this.#minutes.get(oldest);
      if (cells !== undefined) this.#deps.totals.merge(cells);
      this.#minutes.delete(oldest);
      this.#dropped += 1;
    }
  }
}
