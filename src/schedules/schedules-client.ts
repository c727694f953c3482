/**
 * `hf.schedules`: schedules of all processes: put them, look at them, change them while they run.
 *
 * What the code says (`put`) and what an operator says (`edit`, `pause`) are kept apart: an edit survives restarts and
 * every later `put`, until `reset` gives it up.
 * Invariant: everything is checked before anything is written, the job's input against its schema included.
 * Not here: firing (scheduler.ts), occurrences (cron.ts).
 */
import type { EnqueueOptions, EnqueueResult } from "../jobs/requests.ts";
import { shown, StateError, UsageError } from "../errors.ts";
import type { Enqueued, JobState, NewJob } from "../jobs/job.ts";
import { type Duration, durationMs, instantMs } from "../values/duration.ts";
import { encodeJson } from "../values/json.ts";
import { checkName } from "../values/name.ts";
import { checkInteger, checkOptions } from "../values/options.ts";
import { type Missed, type Overlap, type ScheduleEdits, type ScheduleSpec, timingOf } from "./plan.ts";
import { countOccurrences } from "./upcoming.ts";
import type { Retry } from "../storage/retry-calls.ts";
import {
  checkEdit,
  defineSchedule,
  EDIT_NAMES,
  isSchedule,
  type Schedule,
  type ScheduleOptions,
  type ScheduleTiming,
} from "./define-schedule.ts";
import { takesJobs } from "../limits/serving.ts";
import type { Store } from "../storage/store.ts";
import type { WorkerState } from "../lease/store.ts";
import type { ScheduleRow } from "./store.ts";

/**
 * A schedule as `hf.schedules.list()` gives it.
 *
 * @example
 * const { name, nextAt, lastRunAt, counts } = await hf.schedules.get("nightly-report");
 */
export interface ScheduleState {
  readonly name: string;
  readonly cron: string | null;
  /** The interval in milliseconds. */
  readonly every: number | null;
  readonly timezone: string | null;
  readonly missed: Missed | null;
  readonly overlap: Overlap | null;
  /** In milliseconds. */
  readonly jitter: number;
  /** The name of the job that it makes. */
  readonly job: string | null;
  readonly queue: string | null;
  readonly priority: number;
  readonly input: unknown;
  readonly paused: boolean;
  readonly pausedAt: Date | null;
  /** Why it is disabled: its row cannot be read. `put`, `edit` or `reset` mends it. */
  readonly fault: string | null;
  /** The options that an operator has changed. */
  readonly edited: readonly string[];
  /** The next occurrence; null while it is paused or disabled, or when there is none any more. */
  readonly nextAt: Date | null;
  /** An occurrence whose job is made as soon as the previous one has ended (`overlap: "queue"`). */
  readonly waitingAt: Date | null;
  /** The occurrence of the latest job. */
  readonly lastRunAt: Date | null;
  readonly lastJobId: string | null;
  /** The newest jobs that it made, at most 20, newest last: the occurrence of each, or when it was triggered. */
  readonly recent: readonly { readonly jobId: string; readonly at: Date }[];
  /** Occurrences that made a job, that made none because an earlier job had not ended (or its key was taken), and that were missed. */
  readonly counts: { readonly fired: number; readonly skipped: number; readonly missed: number };
  /** No live worker takes jobs of its kind from its queue; one that is quiet or stops does not count. */
  readonly unserved: boolean;
  readonly createdAt: Date;
}

/** What an operator may change of a schedule. */
export type ScheduleEdit = ScheduleTiming &
  Pick<EnqueueOptions, "queue" | "priority" | "attempts" | "timeout"> & { readonly input?: unknown };

/** What `hf.schedules.runs` takes. */
export interface ScheduleRunsOptions {
  /** At most so many: 1 to 500; default 100. */
  readonly limit?: number | undefined;
}

/**
 * A run of a schedule as `hf.schedules.runs()` gives it: a job that it made, and what became of it.
 *
 * @example
 * const [{ at, state, lateMs, ranMs }] = await hf.schedules.runs("nightly-report", { limit: 1 });
 */
export interface ScheduleRun {
  /** When it was due: its occurrence. Of a run by hand: when somebody asked for it. */
  readonly at: Date;
  /** What made it: the occurrence itself, a backfill of the occurrence afterwards, or a trigger by hand beside the occurrences. */
  readonly by: "occurrence" | "backfill" | "hand";
  readonly jobId: string;
  /** Null, with all that follows: the job is not kept any more. */
  readonly state: JobState | null;
  readonly attempt: number | null;
  /** When the latest attempt started. */
  readonly startedAt: Date | null;
  readonly endedAt: Date | null;
  /**
   * From its occurrence to the start of its first attempt, jitter included. Null where it has not started, where it is not known
   * (a worker died under it, it slept or was given back: only the latest start is kept), and for what no occurrence made: a backfill
   * or a run by hand is never late.
   */
  readonly lateMs: number | null;
  /** How long the latest attempt ran; of a run that slept, since it last went on. Null until it has ended. */
  readonly ranMs: number | null;
}

/** What `hf.schedules` needs of the client. */
export interface SchedulesDeps {
  readonly store: Store;
  readonly retry: Retry;
  readonly checkOpen: () => void;
  readonly maxPayloadBytes: number;
  readonly newId: () => string;
  /** Checks a job as an enqueue would, and gives its row. */
  readonly prepare: (schedule: Schedule) => NewJob | Promise<NewJob>;
  readonly committed: (jobs: readonly NewJob[], outcomes: readonly Enqueued[]) => void;
}

const mostPreviewed = 1_000;
const mostRuns = 500;
const inputCodes = { notJson: "INPUT_NOT_JSON", tooLarge: "INPUT_TOO_LARGE" } as const;

/** What `hf.schedules.calendar` takes. */
export interface CalendarOptions {
  /** Length of a piece, a second at least; default "15m". */
  readonly step?: Duration | undefined;
  /** How many; default 96: a day. */
  readonly pieces?: number | undefined;
}

/** What `hf.schedules.calendar` gives. */
export interface ScheduleCalendar {
  readonly from: Date;
  readonly stepMs: number;
  readonly pieces: readonly {
    readonly at: Date;
    readonly count: number;
    /** Those with most occurrences first. */
    readonly schedules: readonly { readonly name: string; readonly count: number }[];
  }[];
  /** There were too many occurrences to walk through: some counts go on at the rate of those before. */
  readonly estimated: boolean;
}

const mostWalked = 20_000;

/** What `hf.schedules.backfill` takes. */
export interface BackfillOptions {
  /** The first instant that counts. */
  readonly from: Date | number;
  /** Occurrences before it; default now. */
  readonly to?: Date | number | undefined;
  /** At most so many jobs at a time: 1 to 1,000; default 100. */
  readonly limit?: number | undefined;
  /** Says which occurrences it would be, and makes nothing. */
  readonly dryRun?: boolean | undefined;
}

/** What a backfill came to. */
export interface Backfill {
  /** Oldest first. In a dry run without a job. "duplicate": its job is unique, and another stands for it. */
  readonly occurrences: readonly {
    readonly at: Date;
    readonly jobId: string | null;
    readonly status: EnqueueResult["status"] | null;
  }[];
  /** Occurrences that were passed over because they have their job. */
  readonly had: number;
  /** There are more: the same call again goes on. */
  readonly more: boolean;
}

/** `hf.schedules`. */
export class Schedules {
  readonly #deps: SchedulesDeps;

  constructor(deps: SchedulesDeps) {
    this.#deps = deps;
  }

  /**
   * Puts a schedule: adds it, or gives the one of this name what the code says now. What an operator has changed or
   * paused stays, and so do occurrences that are due.
   *
   * @throws UsageError as `defineSchedule`, and as `enqueue` for its job and input
   * @example
   * await hf.schedules.put({ name: "tenant-7-report", cron: "0 6 * * 1", timezone: "Asia/Tokyo", job: report, input: { tenant: 7 } });
   */
  async put<Input>(schedule: Schedule | ScheduleOptions<Input>): Promise<ScheduleState> {
    this.#deps.checkOpen();
    const definition = isSchedule(schedule) ? schedule : defineSchedule(schedule);
    const spec = specOf(definition, await this.#deps.prepare(definition));
    const { name, firstRun } = definition;
    return this.#state(
      await this.#deps.retry.repeatable(() => this.#deps.store.schedules.put(name, spec, firstRun)),
    );
  }

  /**
   * Every schedule, by name.
   *
   * @example
   * for (const { name, nextAt, fault } of await hf.schedules.list()) console.log(name, nextAt, fault);
   */
  async list(): Promise<ScheduleState[]> {
    this.#deps.checkOpen();
    const { store, retry } = this.#deps;
    const rows = await retry.repeatable(() => store.schedules.list(null));
    const workers = rows.length === 0 ? [] : await retry.repeatable(() => store.workers.list());
    return rows.map((row) => stateOf(row, workers));
  }

  /**
   * One schedule, or null.
   *
   * @example
   * const schedule = await hf.schedules.get("nightly-report");
   */
  async get(name: string): Promise<ScheduleState | null> {
    this.#deps.checkOpen();
    const known = checkName(name, "The name of a schedule");
    const [row] = await this.#deps.retry.repeatable(() => this.#deps.store.schedules.list(known));
    return row === undefined ? null : this.#state(row);
  }

  /**
   * Removes a schedule; jobs that it made stay. False: there was none. A worker that has it in its `schedules` puts
   * it again when it starts.
   *
   * @example
   * await hf.schedules.remove("tenant-7-report");
   */
  async remove(name: string): Promise<boolean> {
    this.#deps.checkOpen();
    const known = checkName(name, "The name of a schedule");
    return this.#deps.retry.once(() => this.#deps.store.schedules.remove(known));
  }

  /**
   * Pauses a schedule, for all processes and across restarts. Occurrences that pass meanwhile are not missed: there are none.
   *
   * @throws StateError SCHEDULE_NOT_FOUND
   * @example
   * await hf.schedules.pause("nightly-report");
   */
  async pause(name: string): Promise<ScheduleState> {
    return this.#change(name, (known) => this.#deps.store.schedules.pause(known, true));
  }

  /**
   * Lets a paused schedule go on with its next occurrence from now.
   *
   * @throws StateError SCHEDULE_NOT_FOUND
   * @example
   * await hf.schedules.resume("nightly-report");
   */
  async resume(name: string): Promise<ScheduleState> {
    return this.#change(name, (known) => this.#deps.store.schedules.pause(known, false));
  }

  /**
   * Changes a schedule as its operator. The change survives restarts and every `put`, until `reset`.
   *
   * @throws StateError SCHEDULE_NOT_FOUND
   * @throws UsageError BAD_CRON, BAD_TIMEZONE, BAD_OPTION, …
   * @example
   * await hf.schedules.edit("nightly-report", { cron: "0 4 * * *" });
   */
  async edit(name: string, change: ScheduleEdit): Promise<ScheduleState> {
    const given = checkOptions(change, EDIT_NAMES, "schedules.edit") as ScheduleEdit;
    const { input, ...rest } = given;
    const text =
      input === undefined
        ? {}
        : { input: encodeJson(input, "input", this.#deps.maxPayloadBytes, inputCodes) };
    return this.#change(name, (known) =>
      this.#deps.store.schedules.edit(known, (spec): ScheduleEdits => ({
        ...checkEdit(rest, spec, known),
        ...text,
      })),
    );
  }

  /**
   * Gives up what an operator has edited, and a fault; the next occurrence counts from now.
   *
   * @throws StateError SCHEDULE_NOT_FOUND
   * @example
   * await hf.schedules.reset("nightly-report");
   */
  async reset(name: string): Promise<ScheduleState> {
    return this.#change(name, (known) => this.#deps.store.schedules.reset(known));
  }

  /**
   * Makes a job now, in the same queue and with the same input as an occurrence's, also while the schedule is paused.
   * Its occurrences and its last run stay as they are.
   *
   * @throws StateError SCHEDULE_NOT_FOUND
   * @example
   * const { id } = await hf.schedules.trigger("nightly-report");
   */
  async trigger(name: string): Promise<EnqueueResult> {
    this.#deps.checkOpen();
    const known = checkName(name, "The name of a schedule");
    const { store, retry, newId, committed } = this.#deps;
    const done = await retry.once(() => store.schedules.trigger(known, newId));
    if (done === null) throw notFound(known);
    committed([done.job], [{ id: done.id, status: done.status }]);
    return { status: done.status, id: done.id };
  }

  /**
   * Makes the jobs of occurrences that passed without one: while nobody was there, before the schedule was, or during a pause.
   * Each occurrence gets one job, however often this is called (an occurrence is remembered for 30 days after its job was made): also
   * those that fired by themselves are left out. The oldest first, at most `limit` (100; up to 1,000) at a time; `more` says
   * that there are others, and the same call again goes on. `ctx.schedule.at` tells the handler which occurrence it is for. The jobs
   * are due now, `overlap` and jitter do not count, and the schedule's own occurrences go on as they would.
   *
   * @throws StateError SCHEDULE_NOT_FOUND
   * @throws UsageError BAD_OPTION, BAD_INSTANT
   * @example
   * const { occurrences } = await hf.schedules.backfill("nightly-report", { from: new Date("2026-11-01"), dryRun: true });
   * await hf.schedules.backfill("nightly-report", { from: new Date("2026-11-01"), to: new Date("2026-11-08") });
   */
  async backfill(name: string, options: BackfillOptions): Promise<Backfill> {
    this.#deps.checkOpen();
    const known = checkName(name, "The name of a schedule");
    const given = checkOptions(
      options,
      ["from", "to", "limit", "dryRun"],
      "schedules.backfill",
    ) as unknown as BackfillOptions;
    const { store, retry, newId, committed } = this.#deps;
    const from = instantMs(given.from, "from");
    const to = given.to === undefined ? await retry.repeatable(() => store.now()) : instantMs(given.to, "to");
    if (from >= to)
      throw new UsageError("BAD_OPTION", "from must be earlier than to and now.", {
        details: { option: "from" },
      });
    const range = {
      from,
      to,
      limit: checkInteger(given.limit ?? 100, "limit", { min: 1, max: 1_000 }),
      dryRun: given.dryRun === true,
    };
    const done = await retry.once(() => store.schedules.backfill(known, range, newId));
    if (done === null) throw notFound(known);
    const made = done.occurrences.flatMap(({ made: one }) => one ?? []);
    if (made.length > 0)
      committed(
        made.map(({ job }) => job),
        made.map(({ id, status }) => ({ id, status })),
      );
    return {
      occurrences: done.occurrences.map(({ at, made: one }) => ({
        at: new Date(at),
        jobId: one?.id ?? null,
        status: one?.status ?? null,
      })),
      had: done.had,
      more: done.more,
    };
  }

  /**
   * The newest runs of a schedule, newest first: which job each occurrence got, how late that started, how long it ran, and how
   * it ended. Occurrences are remembered for 30 days; of runs by hand, and of rarer occurrences, those among the newest 20.
   *
   * @throws StateError SCHEDULE_NOT_FOUND
   * @throws UsageError BAD_OPTION
   * @example
   * for (const { at, state, lateMs, ranMs } of await hf.schedules.runs("nightly-report", { limit: 30 }))
   *   console.log(at, state, lateMs, ranMs);
   */
  async runs(name: string, options: ScheduleRunsOptions = {}): Promise<ScheduleRun[]> {
    this.#deps.checkOpen();
    const known = checkName(name, "The name of a schedule");
    const given = checkOptions(options, ["limit"], "schedules.runs") as ScheduleRunsOptions;
    const limit = checkInteger(given.limit ?? 100, "limit", { min: 1, max: mostRuns });
    const rows = await this.#deps.retry.repeatable(() => this.#deps.store.schedules.runs(known, limit));
    if (rows === null) throw notFound(known);
    return rows.map((row) => ({
      ...row,
      at: new Date(row.at),
      startedAt: date(row.startedAt),
      endedAt: date(row.endedAt),
    }));
  }

  /**
   * The next occurrences of a schedule, or of one that has not been put yet. At most 1,000; fewer where they end.
   *
   * @throws StateError SCHEDULE_NOT_FOUND
   * @example
   * const [first, second] = await hf.schedules.preview("nightly-report", 2);
   */
  async preview(schedule: string | Schedule, n = 10): Promise<Date[]> {
    this.#deps.checkOpen();
    const most = checkInteger(n, "n of schedules.preview", { min: 1, max: mostPreviewed });
    const { timing, from } = isSchedule(schedule)
      ? { timing: schedule.timing, from: null }
      : await this.#timing(schedule);
    const now = from?.now ?? (await this.#deps.retry.repeatable(() => this.#deps.store.now()));
    const occurrences = timingOf(timing, from?.anchorAt ?? now);
    const found: Date[] = [];
    for (let at = occurrences.next(now); at !== null && found.length < most; at = occurrences.next(at))
      found.push(new Date(at));
    return found;
  }

  /**
   * How many occurrences of which schedules lie in each piece of the time to come, for a picture of where they pile up. Paused
   * ones have none.
   *
   * @example
   * const { pieces } = await hf.schedules.calendar({ step: "15m", pieces: 96 });
   */
  async calendar(options: CalendarOptions = {}): Promise<ScheduleCalendar> {
    this.#deps.checkOpen();
    const given = checkOptions(options, ["step", "pieces"], "schedules.calendar") as CalendarOptions;
    const stepMs = Math.max(1_000, durationMs(given.step ?? "15m", "step"));
    const n = checkInteger(given.pieces ?? 96, "pieces", { min: 1, max: 1_000 });
    const { store, retry } = this.#deps;
    const [rows, now] = await Promise.all([
      retry.repeatable(() => store.schedules.list(null)),
      retry.repeatable(() => store.now()),
    ]);
    const from = Math.floor(now / stepMs) * stepMs;
    const live = rows.filter((row) => row.spec !== null && row.pausedAt === null && row.fault === null);
    // Bounded in all, so that a thousand schedules of every minute do not hold the event loop for seconds.
    const most = Math.max(50, Math.floor(mostWalked / Math.max(1, live.length)));
    const pieces = Array.from({ length: n }, (_, i) => ({
      at: new Date(from + i * stepMs),
      count: 0,
      schedules: [] as { name: string; count: number }[],
    }));
    let estimated = false;
    for (const row of live) {
      const counted = countOccurrences(
        timingOf(row.spec as ScheduleSpec, row.anchorAt),
        from,
        stepMs,
        n,
        most,
      );
      estimated ||= counted.estimated;
      for (const [i, count] of counted.counts.entries()) {
        const piece = pieces[i];
        if (count === 0 || piece === undefined) continue;
        piece.count += count;
        piece.schedules.push({ name: row.name, count });
      }
    }
    for (const { schedules } of pieces) schedules.sort((a, b) => b.count - a.count);
    return { from: new Date(from), stepMs, pieces, estimated };
  }

  async #timing(name: unknown): Promise<{ timing: ScheduleSpec; from: ScheduleRow }> {
    if (typeof name !== "string")
      throw new UsageError(
        "BAD_OPTION",
        `schedules.preview takes a schedule name, or the result of defineSchedule; got ${shown(name)}.`,
      );
    const known = checkName(name, "The name of a schedule");
    const [row] = await this.#deps.retry.repeatable(() => this.#deps.store.schedules.list(known));
    if (row === undefined) throw notFound(known);
    if (row.spec !== null) return { timing: row.spec, from: row };
    throw new StateError("SCHEDULE_NOT_FOUND", `Schedule "${known}" cannot be read: ${row.fault ?? ""}`, {
      details: { name: known },
    });
  }

  async #change(name: string, write: (known: string) => Promise<ScheduleRow | null>): Promise<ScheduleState> {
    this.#deps.checkOpen();
    const known = checkName(name, "The name of a schedule");
    const row = await this.#deps.retry.repeatable(() => write(known));
    if (row === null) throw notFound(known);
    return this.#state(row);
  }

  async #state(row: ScheduleRow): Promise<ScheduleState> {
    return stateOf(row, await this.#deps.retry.repeatable(() => this.#deps.store.workers.list()));
  }
}

function notFound(name: string): StateError {
  return new StateError(
    "SCHEDULE_NOT_FOUND",
    `There is no schedule "${name}". To list schedules: hf.schedules.list() or \`holdfast schedules list\`.`,
    { details: { name } },
  );
}

/** What is kept of a schedule: the row of its job without what differs from occurrence to occurrence. */
function specOf({ timing }: Schedule, job: NewJob): ScheduleSpec {
  const { queue, priority, input, maxAttempts, timeoutMs, lane, unique, context } = job;
  return {
    ...timing,
    job: job.name,
    queue,
    priority,
    input,
    maxAttempts,
    timeoutMs,
    lane,
    unique,
    context,
    extras: job.extras === null ? null : { ...job.extras },
  };
}

const editNames: Readonly<Record<string, string>> = {
  everyMs: "every",
  jitterMs: "jitter",
  maxAttempts: "attempts",
  timeoutMs: "timeout",
};

function stateOf(row: ScheduleRow, workers: readonly WorkerState[]): ScheduleState {
  const { spec } = row;
  const silent = row.pausedAt !== null || row.fault !== null;
  return {
    name: row.name,
    cron: spec?.cron ?? null,
    every: spec?.everyMs ?? null,
    timezone: spec === null || spec.cron === null ? null : spec.timezone,
    missed: spec?.missed ?? null,
    overlap: spec?.overlap ?? null,
    jitter: spec?.jitterMs ?? 0,
    job: spec?.job ?? null,
    queue: spec?.queue ?? null,
    priority: spec?.priority ?? 0,
    input: spec === null ? null : decoded(spec.input),
    paused: row.pausedAt !== null,
    pausedAt: date(row.pausedAt),
    fault: row.fault,
    edited: row.edited
      .map((name) => editNames[name] ?? name)
      .filter((name) => spec === null || !absent(name, spec)),
    nextAt: silent ? null : date(row.nextAt),
    waitingAt: date(row.waitingAt),
    lastRunAt: date(row.lastRunAt),
    lastJobId: row.lastJobId,
    recent: row.recent.map(({ id, at }) => ({ jobId: id, at: new Date(at) })),
    counts: { fired: row.fired, skipped: row.skipped, missed: row.missed },
    unserved: spec !== null && !workers.some((worker) => serves(worker, spec)),
    createdAt: new Date(row.createdAt),
  };
}

/** An edit of the occurrences also writes what it takes away; that is not shown. */
function absent(name: string, spec: ScheduleSpec): boolean {
  return (
    (name === "every" && spec.everyMs === null) ||
    (name !== "every" && spec.cron === null && (name === "cron" || name === "timezone"))
  );
}

function serves(worker: WorkerState, spec: ScheduleSpec): boolean {
  return takesJobs(worker) && Object.hasOwn(worker.queues, spec.queue) && worker.names.includes(spec.job);
}

function decoded(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function date(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms);
}
