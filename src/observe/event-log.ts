/**
 * The event log: what happened to which job, kept in the database. Off unless `open` is told otherwise.
 *
 *   event (after its commit) ─▶ buffer, at most 50,000 ──every 2 s──▶ one statement
 *                                  └─ full ─▶ dropped, and counted
 *
 * Off by default, because a plain job would then cost several rows more than it needs: its own row already tells when it
 * was made, started and ended, and what went wrong. Who needs the whole story (audits, the life of a flaky job) turns it on.
 *
 * Invariants: nothing waits for the log and nothing fails because of it; a line speaks of what has been committed; a
 * crash loses what was buffered, 2 s at most; a batch that is sent again writes no line twice (ids are the client's).
 */
import type { Clock, Timer } from "../clock.ts";
import { UsageError } from "../errors.ts";
import { type Emitter, type EventName, type HoldfastEvents, EVENT_NAMES } from "../events.ts";
import type { Logger } from "../logger.ts";
import { type Duration, durationMs, instantMs } from "../values/duration.ts";
import { describeFailure } from "../jobs/failure.ts";
import { isId } from "../values/id.ts";
import { checkInteger, checkOptions } from "../values/options.ts";
import type { Retry } from "../storage/retry-calls.ts";
import type { Store } from "../storage/store.ts";
import type { EventRow } from "./store.ts";

/** What is kept: lines about jobs, and those about workers and the cluster. */
const LOGGED_EVENTS: readonly EventName[] = [
  "job.enqueued",
  "job.started",
  "job.done",
  "job.failed",
  "job.dead",
  "job.cancelled",
  "job.throttled",
  "job.released",
  "job.crashed",
  "lease.lost",
  "worker.started",
  "worker.stopped",
];

/** The option `eventLog` of `open`. */
export interface EventLogOptions {
  /** Which events; default: every one about jobs, leases and workers' comings and goings. */
  readonly events?: readonly EventName[] | undefined;
  /** How long lines are kept; default "7d". */
  readonly keep?: Duration | undefined;
}

/** Checked. */
export interface EventLogSettings {
  readonly events: readonly EventName[];
  readonly keepMs: number;
}

/** One line, as `hf.eventLog.list` gives it. */
export interface LoggedEvent {
  readonly id: string;
  readonly at: Date;
  readonly event: string;
  /** The job's id. */
  readonly job: string | null;
  readonly name: string | null;
  readonly queue: string | null;
  readonly attempt: number | null;
  readonly workerId: string | null;
  /** What else the event says: an error, a delay, how long it took. */
  readonly detail: unknown;
}

/** Which lines. */
export interface EventLogQuery {
  readonly job?: string | undefined;
  readonly event?: string | readonly string[] | undefined;
  readonly queue?: string | readonly string[] | undefined;
  readonly name?: string | readonly string[] | undefined;
  readonly since?: Date | number | undefined;
  readonly until?: Date | number | undefined;
  /** 1 to 1,000; default 100. */
  readonly limit?: number | undefined;
  readonly cursor?: string | null | undefined;
}

export interface EventLogDeps {
  readonly store: Store;
  readonly retry: Retry;
  readonly clock: Clock;
  readonly events: Emitter;
  readonly log: Logger;
  readonly newId: () => string;
  readonly checkOpen: () => void;
  /** Null: nothing is written. */
  readonly settings: EventLogSettings | null;
}

const flushEveryMs = 2_000;
const mostBuffered = 50_000;
const batchSize = 1_000;
const maxDetailChars = 4_096;
const defaultKeep = "7d";

/**
 * The option, checked; null when the log is off.
 *
 * @throws UsageError BAD_OPTION, UNKNOWN_OPTION, BAD_DURATION
 */
export function checkEventLog(option: unknown): EventLogSettings | null {
  if (option === undefined || option === false) return null;
  const given = (
    option === true ? {} : checkOptions(option, ["events", "keep"], "eventLog")
  ) as EventLogOptions;
  const events = given.events ?? LOGGED_EVENTS;
  for (const event of events) {
    if (EVENT_NAMES.includes(event)) continue;
    throw new UsageError("BAD_OPTION", `eventLog.events: there is no event ${JSON.stringify(event)}.`, {
      details: { option: "eventLog.events" },
    });
  }
  return { events, keepMs: durationMs(given.keep ?? defaultKeep, "eventLog.keep") };
}

/** `hf.eventLog`. */
export class EventLog {
  readonly #deps: EventLogDeps;
  #buffer: EventRow[] = [];
  #dropped = 0;
  #timer: Timer | undefined;
  #flushing: Promise<void> | undefined;
  readonly #off: (() => void)[] = [];

  constructor(deps: EventLogDeps) {
    this.#deps = deps;
    for (const event of deps.settings?.events ?? [])
      this.#off.push(deps.events.on(event, (said) => this.#add(event, said)));
  }

  /** Whether this client writes to the log, how many lines wait to be written, and how many were dropped because 50,000 did. */
  get status(): { readonly on: boolean; readonly buffered: number; readonly dropped: number } {
    return { on: this.#deps.settings !== null, buffered: this.#buffer.length, dropped: this.#dropped };
  }

  /**
   * Lines, newest first.
   *
   * @example
   * const { events } = await hf.eventLog.list({ job: id });
   */
  async list(query: EventLogQuery = {}): Promise<{ events: LoggedEvent[]; cursor: string | null }> {
    this.#deps.checkOpen();
    const given = checkOptions(
      query,
      ["job", "event", "queue", "name", "since", "until", "limit", "cursor"],
      "eventLog.list",
    ) as EventLogQuery;
    const limit =
      given.limit === undefined ? 100 : checkInteger(given.limit, "limit", { min: 1, max: 1_000 });
    const cursor = given.cursor ?? null;
    if (cursor !== null && !isId(cursor))
      throw new UsageError("BAD_CURSOR", "cursor must be the value returned with the previous page.");
    const job = given.job ?? null;
    if (job !== null && !isId(job)) return { events: [], cursor: null };
    const { store, retry } = this.#deps;
    const rows = await retry.repeatable(() =>
      store.series.events({
        job,
        events: listOf(given.event),
        queues: listOf(given.queue),
        names: listOf(given.name),
        since: given.since === undefined ? 0 : instantMs(given.since, "since"),
        until: given.until === undefined ? Number.MAX_SAFE_INTEGER : instantMs(given.until, "until"),
        limit,
        cursor,
      }),
    );
    return {
      events: rows.map(logged),
      cursor: rows.length < limit ? null : (rows.at(-1)?.id ?? null),
    };
  }

  /**
   * Writes what is buffered now. Resolves when it is written, or could not be.
   *
   * @example
   * await hf.eventLog.flush();
   */
  flush(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#flushing ??= this.#write().finally(() => (this.#flushing = undefined));
    return this.#flushing;
  }

  /** @internal Writes the rest and listens no more. */
  async close(): Promise<void> {
    for (const off of this.#off) off();
    if (this.#flushing !== undefined) await this.#flushing;
    if (this.#buffer.length > 0) await this.flush();
    this.#timer?.cancel();
  }

  #add(event: EventName, said: HoldfastEvents[EventName]): void {
    if (this.#buffer.length >= mostBuffered) {
      this.#dropped += 1;
      return;
    }
    const { id, name, queue, attempt, workerId, ...rest } = said as unknown as Record<string, unknown>;
    this.#buffer.push({
      id: this.#deps.newId(),
      at: this.#deps.clock.now(),
      event,
      job: typeof id === "string" ? id : null,
      name: typeof name === "string" ? name : null,
      queue: typeof queue === "string" ? queue : null,
      attempt: typeof attempt === "number" ? attempt : null,
      worker: typeof workerId === "string" ? workerId : null,
      detail: detailOf(rest),
    });
    this.#timer ??= this.#deps.clock.after(flushEveryMs, () => void this.flush(), { unref: true });
  }

  async #write(): Promise<void> {
    const { store, log } = this.#deps;
    while (this.#buffer.length > 0) {
      const batch = this.#buffer.slice(0, batchSize);
      try {
        await store.series.putEvents(batch);
      } catch (error) {
        log.debug(
          { error: describeFailure(error).message, buffered: this.#buffer.length },
          "the event log could not be written; events wait in memory",
        );
        this.#timer ??= this.#deps.clock.after(flushEveryMs, () => void this.flush(), { unref: true });
        return;
      }
      this.#buffer.splice(0, batch.length);
    }
  }
}

function detailOf(rest: Record<string, unknown>): string | null {
  if (Object.keys(rest).length === 0) return null;
  const cut = Object.fromEntries(
    Object.entries(rest).map(([key, value]) => [
      key,
      typeof value === "string" && value.length > maxDetailChars
        ? `${value.slice(0, maxDetailChars)}…`
        : value,
    ]),
  );
  try {
    return JSON.stringify(cut);
  } catch {
    return null;
  }
}

function logged(row: EventRow): LoggedEvent {
  const { id, at, event, job, name, queue, attempt, worker, detail } = row;
  let parsed: unknown = null;
  try {
    parsed = detail === null ? null : JSON.parse(detail);
  } catch {
    parsed = detail;
  }
  return { id, at: new Date(at), event, job, name, queue, attempt, workerId: worker, detail: parsed };
}

function listOf(value: string | readonly string[] | undefined): readonly string[] | null {
  if (value === undefined) return null;
  return typeof value === "string" ? [value] : value;
}
