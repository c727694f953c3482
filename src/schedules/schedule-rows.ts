/**
 * Schedules in the database: one row each, and one transaction for an occurrence's advance and its job's insert.
 *
 *   due ──claimSchedule (row lock)──▶ plan (plan.ts) ──▶ insert jobs ──▶ advance ──commit
 *           └ locked by another, or advanced already: not ours        └ the row cannot be read ─▶ disabled, alone
 *
 * There is no leader. Every worker tries; the row's lock lets one in, and `advanceSchedule` compares `next_at` with what
 * it was planned from. A crash before the commit leaves occurrence and job undone together, and the next worker does both.
 * Invariants: `last_run_at` moves only when a job is made; a row that cannot be read harms only itself; what fails for
 * the database's sake is rolled back and tried again, never disabled.
 * Not here: which occurrences fire (plan.ts), when to look (scheduler.ts).
 */
import { StoreError } from "../errors.ts";
import type { Enqueued, JobState, NewJob } from "../jobs/job.ts";
import { passedCron } from "./cron-pattern.ts";
import { clampInstant } from "../values/duration.ts";
import { decodeFailures, describeFailure } from "../jobs/failure.ts";
import {
  jitterOf,
  planOccurrences,
  readSpec,
  sameTiming,
  type ScheduleEdits,
  type ScheduleSpec,
  occurrencesWithout,
  timingOf,
} from "./plan.ts";
import { type KeptRun, lateMsOf, ranMsOf } from "./lateness.ts";
import type {
  ScheduleStore,
  Backfilled,
  BackfillRange,
  DueCursor,
  DueSchedules,
  FiredOccurrence,
  ScheduleRow,
  ScheduleRunRow,
  OccurrenceReport,
  Triggered,
} from "./store.ts";
import type { Row, Script } from "../storage/catalogue.ts";
import type { Driver } from "../storage/driver.ts";
import type { Wake } from "../storage/wake.ts";
import type { JobPlaces, PlaceOf } from "../enqueue/placed-jobs.ts";
import { enqueueScript } from "../enqueue/unique-keys.ts";
import { extras, flag, maybeNumber, maybeText, number, text } from "../jobs/rows.ts";

/** Ids of a schedule's jobs that may still be live: more would be triggers by hand that never end. */
const mostJobs = 100;
const mostRecent = 20;
const dueAtOnce = 200;

const nothing: OccurrenceReport = {
  fired: [],
  skipped: 0,
  missed: 0,
  waiting: false,
  fault: null,
};

export class Schedules implements ScheduleStore {
  readonly #driver: Driver;
  readonly #places: JobPlaces;
  readonly #wake: (wake: Wake) => void;

  constructor(driver: Driver, places: JobPlaces, wake: (wake: Wake) => void) {
    this.#driver = driver;
    this.#places = places;
    this.#wake = wake;
  }

  async list(name: string | null): Promise<ScheduleRow[]> {
    const rows = await this.#driver.read({ name: "scheduleRows", params: { now: this.#driver.now(), name } });
    return rows.map(scheduleRow);
  }

  /** Adds it, or gives it this code's definition; what an operator changed stays. */
  put(name: string, spec: ScheduleSpec, firstRun: "seed" | "fire"): Promise<ScheduleRow> {
    const written = JSON.stringify(spec);
    return this.#changing(name, function* (found, now) {
      let row = found;
      if (row === undefined) {
        const first = occurrenceToCome(spec, now, now);
        const nextAt = firstRun === "fire" ? now : first;
        const params = { now, name, spec: written, nextAt, anchorAt: now };
        if ((yield { name: "addSchedule", params }).length > 0) return;
        // Another process has just added it: these words come after.
        [row] = (yield { name: "lockSchedule", params: { now, name } }) as [Row];
      }
      if (text(row, "spec") === written && row["fault"] === null) return;
      const edits = inTheirZone(row, spec);
      const fault = faultOf(written, edits);
      if (fault === null) return yield* change(row, now, { spec: written, edits });
      // Somebody has spoilt the edits by hand: that is no reason for the code that puts to fail.
      yield rewritten(row, now, { spec: written, edits });
      yield { name: "disableSchedule", params: { now, name, fault } };
    });
  }

  /** Null: there is none. `edits` is given the schedule as it stands, and gives the changes. */
  edit(name: string, edits: (spec: ScheduleSpec) => ScheduleEdits): Promise<ScheduleRow | null> {
    return this.#changingKnown(name, function* (row, now) {
      const before = maybeText(row, "edits");
      const made = edits(readSpec(text(row, "spec"), before));
      const all = { ...(before === null ? {} : (JSON.parse(before) as ScheduleEdits)), ...made };
      yield* change(row, now, { spec: text(row, "spec"), edits: JSON.stringify(all) });
    });
  }

  /** Gives up an operator's changes, and counts from now. */
  reset(name: string): Promise<ScheduleRow | null> {
    return this.#changingKnown(name, function* (row, now) {
      yield* change(row, now, { spec: text(row, "spec"), edits: null, afresh: true });
    });
  }

  /** Resuming counts from now: what passed during the pause was not missed. */
  pause(name: string, paused: boolean): Promise<ScheduleRow | null> {
    return this.#changingKnown(name, function* (row, now) {
      if ((row["paused_at"] !== null) === paused && row["fault"] === null) return;
      const edits = maybeText(row, "edits");
      yield* change(row, now, { spec: text(row, "spec"), edits, paused, afresh: !paused });
    });
  }

  async remove(name: string): Promise<boolean> {
    return (await this.#driver.write({ name: "removeSchedule", params: { name } })).length > 0;
  }

  /** A job now, beside the occurrences; null: there is no such schedule. */
  async trigger(name: string, newId: () => string): Promise<Triggered | null> {
    if ((await this.#prepared(name)) === null) return null;
    const driver = this.#driver;
    const places = this.#places;
    const at = driver.now();
    return driver.transaction("triggerSchedule", function* (): Script<Triggered | null> {
      const [row] = yield { name: "lockSchedule", params: { now: at, name } };
      if (row === undefined) return null;
      const now = number(row, "now");
      const current = readSpec(text(row, "spec"), maybeText(row, "edits"));
      const job = newJob(name, current, newId(), { occurrence: null, now, by: "hand" });
      const [outcome] = yield* insert([job], places, at);
      const { id, status } = outcome as Enqueued;
      yield {
        name: "advanceSchedule",
        params: {
          name,
          expected: maybeNumber(row, "next_at"),
          nextAt: maybeNumber(row, "next_at"),
          waitingAt: maybeNumber(row, "waiting_at"),
          lastRunAt: null,
          lastJobId: id,
          jobs: jobsText([...(yield* liveOf(row)), id]),
          recent: recentText(row, [{ id, at: now, by: "hand" }]),
          fired: 0,
          skipped: 0,
          missed: 0,
        },
      };
      return { job, status, id };
    });
  }

  /**
   * Jobs for occurrences of the past that have none. Under the schedule's lock, so that an occurrence that fires at this moment and two
   * backfills at once still make one job each; the schedule itself goes on as it was.
   */
  async backfill(name: string, range: BackfillRange, newId: () => string): Promise<Backfilled | null> {
    if ((await this.#prepared(name)) === null) return null;
    const places = this.#places;
    const at = this.#driver.now();
    return this.#driver.transaction("backfillSchedule", function* (): Script<Backfilled | null> {
      const [row] = yield { name: "lockSchedule", params: { now: at, name } };
      if (row === undefined) return null;
      const now = number(row, "now");
      const spec = readSpec(text(row, "spec"), maybeText(row, "edits"));
      // What it has not come to yet, and what waits, is the schedule's own, unless it is paused: then nothing of it will be made.
      const paused = row["paused_at"] !== null;
      const own = paused ? null : maybeNumber(row, "next_at");
      const to = Math.min(range.to, now, own ?? now);
      const rows = yield { name: "occurrencesMade", params: { name, from: range.from, to } };
      const waiting = paused ? null : maybeNumber(row, "waiting_at");
      const made = new Set([...rows.map((occurrence) => number(occurrence, "at")), waiting]);
      const timing = timingOf(spec, number(row, "anchor_at"));
      const found = occurrencesWithout(timing, { ...range, to }, made);
      if (range.dryRun || found.occurrences.length === 0)
        return {
          ...found,
          occurrences: found.occurrences.map((occurrence) => ({ at: occurrence, made: null })),
        };
      // Due now, not then: they stand behind what is waiting, and are no backlog of weeks.
      const jobs = found.occurrences.map((occurrence) => ({
        ...newJob(name, spec, newId(), { occurrence, now, by: "backfill" }),
        runAt: null,
      }));
      const outcomes = yield* insert(jobs, places, at);
      const occurrences = found.occurrences.map((occurrence, i) => ({
        at: occurrence,
        made: { job: jobs[i] as NewJob, ...(outcomes[i] as Enqueued) },
      }));
      yield* remember(
        name,
        occurrences
          .filter(({ made: { status } }) => status !== "duplicate")
          .map((one) => ({ at: one.at, job: one.made.id })),
        now,
      );
      return { ...found, occurrences };
    });
  }

  /** Occurrences have their jobs' ids for 30 days; jobs by hand, and those of rarer occurrences, are among the schedule's `recent`. */
  async runs(name: string, limit: number): Promise<ScheduleRunRow[] | null> {
    const [schedule] = await this.list(name);
    if (schedule === undefined) return null;
    const rows = await this.#driver.read({ name: "newestOccurrences", params: { name, limit } });
    const made = new Map<string, ScheduleRow["recent"][number]>();
    for (const row of rows) made.set(text(row, "job"), { id: text(row, "job"), at: number(row, "at") });
    for (const one of schedule.recent) if (!made.has(one.id)) made.set(one.id, one);
    const newest = [...made.values()].sort((a, b) => b.at - a.at).slice(0, limit);
    const kept = await this.#kept(newest.map(({ id }) => id));
    return newest.map((run) => runOf(run, kept.get(run.id), schedule.spec?.jitterMs ?? 0));
  }

  async #kept(ids: readonly string[]): Promise<ReadonlyMap<string, Row>> {
    if (ids.length === 0) return new Map();
    const rows = await this.#driver.read({
      name: "occurrenceJobs",
      params: { now: this.#driver.now(), ids },
    });
    return new Map(rows.map((row) => [text(row, "id"), row]));
  }

  async due(after: DueCursor | null = null): Promise<DueSchedules> {
    const from = after ?? { at: 0, name: "" };
    const params = { now: this.#driver.now(), ...from, limit: dueAtOnce };
    const rows = await this.#driver.read({ name: "dueSchedules", params });
    const now = rows[0] === undefined ? 0 : number(rows[0], "now");
    const page = rows.filter((row) => row["jobs"] === null);
    const waiting = rows.filter((row) => row["jobs"] !== null);
    const due = page.filter((row) => number(row, "next_at") <= now);
    const live = await this.#live(waiting.flatMap(idsOf));
    const free = waiting.filter((row) => !idsOf(row).some((id) => live.has(id)));
    const last = due.at(-1);
    const next = page[due.length];
    return {
      now,
      due: [...due, ...free].map((row) => text(row, "name")),
      awaited: [...live],
      nextAt: next === undefined ? null : number(next, "next_at"),
      after:
        last !== undefined && due.length === dueAtOnce
          ? { at: number(last, "next_at"), name: text(last, "name") }
          : null,
    };
  }

  /** Those of these jobs that have not ended. */
  async #live(ids: readonly string[]): Promise<ReadonlySet<string>> {
    if (ids.length === 0) return new Set();
    const rows = await this.#driver.read({ name: "liveJobs", params: { ids } });
    return new Set(rows.map((row) => text(row, "id")));
  }

  /** Does what is due for one schedule. Null: nothing, or another process is at it. */
  async fire(name: string, newId: () => string): Promise<OccurrenceReport | null> {
    try {
      if ((await this.#prepared(name)) === null) return null;
    } catch (error) {
      // It cannot be read: the transaction below finds the same, and says so in the row.
      if (error instanceof StoreError) throw error;
    }
    const driver = this.#driver;
    const places = this.#places;
    const at = driver.now();
    return driver.transaction("fireSchedule", function* (): Script<OccurrenceReport | null> {
      const [row] = yield { name: "claimSchedule", params: { now: at, name } };
      if (row === undefined) return null;
      const now = number(row, "now");
      let spec: ScheduleSpec;
      let plan: ReturnType<typeof planOccurrences>;
      try {
        spec = readSpec(text(row, "spec"), maybeText(row, "edits"));
        const timing = timingOf(spec, number(row, "anchor_at"));
        plan = planOccurrences(timing, spec.missed, maybeNumber(row, "next_at"), now);
      } catch (error) {
        const fault = describeFailure(error).message;
        yield { name: "disableSchedule", params: { now: at, name, fault } };
        return { ...nothing, fault };
      }
      // Changed since it was read, to a job type that is not known yet: the next look finds it again.
      if (!places.knows(placeOf(spec))) return null;
      return yield* act(row, spec, plan, { name, now, at, newId, places });
    });
  }

  /** The schedule's row, with the job type that its jobs need made known. */
  async #prepared(name: string): Promise<Row | null> {
    const params = { now: this.#driver.now(), name };
    const [row] = await this.#driver.read({ name: "scheduleRows", params });
    if (row === undefined) return null;
    const spec = readSpec(text(row, "spec"), maybeText(row, "edits"));
    await this.#places.learn(placeOf(spec));
    return row;
  }

  async #changingKnown(
    name: string,
    body: (row: Row, now: number) => Script<void>,
  ): Promise<ScheduleRow | null> {
    const at = this.#driver.now();
    const changed = await this.#driver.transaction(
      "changeSchedule",
      function* (): Script<ScheduleRow | null> {
        const [row] = yield { name: "lockSchedule", params: { now: at, name } };
        if (row === undefined) return null;
        yield* body(row, number(row, "now"));
        return scheduleRow((yield { name: "lockSchedule", params: { now: at, name } })[0] as Row);
      },
    );
    this.#wake({ kind: "settings" }); // workers time the next occurrence
    return changed;
  }

  async #changing(
    name: string,
    body: (row: Row | undefined, now: number) => Script<void>,
  ): Promise<ScheduleRow> {
    const at = this.#driver.now();
    const changed = await this.#driver.transaction("putSchedule", function* (): Script<ScheduleRow> {
      const [clock] = yield { name: "now", params: { now: at } };
      const now = number(clock as Row, "now");
      const find = { name: "lockSchedule", params: { now: at, name } } as const;
      const [row] = yield find;
      yield* body(row, now);
      const [written] = yield find;
      return scheduleRow(written as Row);
    });
    this.#wake({ kind: "settings" }); // workers time the next occurrence
    return changed;
  }
}

interface Env {
  readonly name: string;
  readonly now: number;
  /** What to bind as `:now`. */
  readonly at: number | null;
  readonly newId: () => string;
  readonly places: JobPlaces;
}

/** Makes the jobs of a plan, as far as the jobs that still run allow, and advances the row. */
function* act(
  row: Row,
  spec: ScheduleSpec,
  plan: ReturnType<typeof planOccurrences>,
  env: Env,
): Script<OccurrenceReport | null> {
  // Also where they do not matter: they do once an operator or the code changes `overlap`.
  const live = yield* liveOf(row);
  const waitingAt = maybeNumber(row, "waiting_at");
  const queued = waitingAt === null ? plan.fire : [waitingAt, ...plan.fire];
  const { fire, waiting } = admitted(spec.overlap, queued, live.length > 0);
  if (fire.length === 0 && waiting === waitingAt && plan.nextAt === maybeNumber(row, "next_at")) return null;
  const jobs = fire.map((occurrence) => newJob(env.name, spec, env.newId(), { occurrence, now: env.now }));
  const outcomes = jobs.length === 0 ? [] : yield* insert(jobs, env.places, env.at);
  const fired: FiredOccurrence[] = [];
  for (const [i, { status, id }] of outcomes.entries())
    if (status !== "duplicate")
      fired.push({ occurrence: fire[i] as number, id, status, job: jobs[i] as NewJob });
  const skipped = queued.length - fired.length - (waiting === null ? 0 : 1);
  const advanced = yield {
    name: "advanceSchedule",
    params: {
      name: env.name,
      expected: maybeNumber(row, "next_at"),
      nextAt: plan.nextAt,
      waitingAt: waiting,
      lastRunAt: fired.at(-1)?.occurrence ?? null,
      lastJobId: fired.at(-1)?.id ?? null,
      jobs: jobsText([...live, ...fired.map(({ id }) => id)]),
      recent: recentText(
        row,
        fired.map(({ id, occurrence }) => ({ id, at: occurrence })),
      ),
      fired: fired.length,
      skipped,
      missed: plan.missed,
    },
  };
  yield* remember(
    env.name,
    fired.map(({ occurrence, id }) => ({ at: occurrence, job: id })),
    env.now,
  );
  // Under the row's lock nobody can have advanced it meanwhile. If somebody has, nothing of this may stand.
  if (advanced.length === 0) throw new Error(`schedule ${env.name} was advanced by another process`);
  return { fired, skipped, missed: plan.missed, waiting: waiting !== null, fault: null };
}

/** These occurrences have their job. */
function* remember(
  name: string,
  occurrences: readonly { at: number; job: string }[],
  madeAt: number,
): Script<void> {
  if (occurrences.length === 0) return;
  yield {
    name: "addOccurrences",
    params: { rows: occurrences.map((occurrence) => ({ name, ...occurrence, madeAt })) },
  };
}

/** Which occurrences get a job now, and which one waits until the job before it has ended. */
function admitted(
  overlap: ScheduleSpec["overlap"],
  occurrences: readonly number[],
  busy: boolean,
): { readonly fire: readonly number[]; readonly waiting: number | null } {
  if (overlap === "allow") return { fire: occurrences, waiting: null };
  const fire = busy ? [] : occurrences.slice(0, 1);
  const rest = occurrences.slice(fire.length);
  return { fire, waiting: overlap === "queue" ? (rest[0] ?? null) : null };
}

/** Of the jobs that this schedule made, those that have not ended. */
function* liveOf(row: Row): Script<string[]> {
  const ids = idsOf(row);
  if (ids.length === 0) return [];
  const live = new Set((yield { name: "liveJobs", params: { ids } }).map((found) => text(found, "id")));
  return ids.filter((id) => live.has(id));
}

function* insert(jobs: readonly NewJob[], places: JobPlaces, now: number | null): Script<Enqueued[]> {
  return yield* enqueueScript(
    jobs.map((job) => places.place(job)),
    now,
  );
}

function placeOf({ queue, job, lane }: ScheduleSpec): PlaceOf {
  return { queue, name: job, lane };
}

/** Writes what defines a schedule; its next occurrence is counted anew when the occurrences have changed, or `afresh`. */
function* change(
  row: Row,
  now: number,
  to: { spec: string; edits: string | null; paused?: boolean; afresh?: boolean },
): Script<void> {
  const spec = readSpec(to.spec, to.edits);
  const before = readable(row);
  const retimed = before === null || !sameTiming(before, spec);
  const afresh = to.afresh === true || retimed;
  const anchorAt = before === null || before.everyMs !== spec.everyMs ? now : number(row, "anchor_at");
  // A last run in the future (somebody's clock was wrong) is waited for.
  const from = Math.max(now, maybeNumber(row, "last_run_at") ?? 0);
  if (retimed && to.afresh !== true) occurrenceToCome(spec, anchorAt, now);
  const call = rewritten(row, now, to);
  const { params } = call;
  yield {
    ...call,
    params: {
      ...params,
      anchorAt,
      nextAt: afresh ? timingOf(spec, anchorAt).next(to.afresh === true ? now : from) : params.nextAt,
      waitingAt: to.afresh === true ? null : params.waitingAt,
      paused: to.paused ?? params.paused,
    },
  };
}

/**
 * The next occurrence of a timing that somebody gives.
 *
 * @throws UsageError BAD_CRON: there is none, its years have passed
 */
function occurrenceToCome(spec: ScheduleSpec, anchorAt: number, now: number): number {
  const at = timingOf(spec, anchorAt).next(now);
  if (at === null) throw passedCron(spec.cron);
  return at;
}

/** An operator's edits, beside new words of the code: a pattern stays in its zone where the code has no zone any more. */
function inTheirZone(row: Row, spec: ScheduleSpec): string | null {
  const written = maybeText(row, "edits");
  const before = readable(row);
  if (written === null || before === null || spec.timezone !== null) return written;
  const edits = JSON.parse(written) as ScheduleEdits;
  return typeof edits.cron === "string" ? JSON.stringify({ timezone: before.timezone, ...edits }) : written;
}

/** The row with another definition, and all else as it is; a fault is gone. */
function rewritten(row: Row, now: number, to: { spec: string; edits: string | null }) {
  return {
    name: "setSchedule",
    params: {
      now,
      name: text(row, "name"),
      spec: to.spec,
      edits: to.edits,
      anchorAt: number(row, "anchor_at"),
      nextAt: maybeNumber(row, "next_at"),
      waitingAt: maybeNumber(row, "waiting_at"),
      paused: row["paused_at"] !== null,
    },
  } as const;
}

/** What is wrong with a definition; null: nothing. */
function faultOf(spec: string, edits: string | null): string | null {
  try {
    timingOf(readSpec(spec, edits), 0);
    return null;
  } catch (error) {
    return describeFailure(error).message;
  }
}

function readable(row: Row): ScheduleSpec | null {
  try {
    const spec = readSpec(text(row, "spec"), maybeText(row, "edits"));
    timingOf(spec, 0);
    return spec;
  } catch {
    return null;
  }
}

function newJob(
  name: string,
  spec: ScheduleSpec,
  id: string,
  { occurrence, now, by }: { occurrence: number | null; now: number; by?: "hand" | "backfill" },
): NewJob {
  const made = { name, at: occurrence ?? now, ...(by === undefined ? {} : { by }) };
  return {
    id,
    name: spec.job,
    queue: spec.queue,
    priority: spec.priority,
    input: spec.input,
    delayMs: null,
    runAt: occurrence === null ? null : clampInstant(occurrence + jitterOf(name, occurrence, spec.jitterMs)),
    maxAttempts: spec.maxAttempts,
    timeoutMs: spec.timeoutMs,
    unique: spec.unique,
    lane: spec.lane,
    context: spec.context ?? `schedule ${name}`,
    parentId: null,
    deadlineAt: null,
    extras: { ...spec.extras, schedule: made },
  };
}

function idsOf(row: Row): string[] {
  try {
    const ids: unknown = JSON.parse(maybeText(row, "jobs") ?? "[]");
    const isId = (id: unknown): id is string => typeof id === "string" && /^[0-9a-f-]{36}$/.test(id);
    return Array.isArray(ids) ? ids.filter(isId) : [];
  } catch {
    return []; // spoilt by hand: nothing is known to run
  }
}

/** The newest jobs that it made, newest last, with one more or several. */
function recentText(row: Row, made: ScheduleRow["recent"]): string {
  return JSON.stringify([...recentOf(row), ...made].slice(-mostRecent));
}

function recentOf(row: Row): ScheduleRow["recent"] {
  const isMade = (made: unknown): made is ScheduleRow["recent"][number] => {
    const { id, at } = (made ?? {}) as { id?: unknown; at?: unknown };
    return typeof id === "string" && /^[0-9a-f-]{36}$/.test(id) && Number.isSafeInteger(at);
  };
  try {
    const made: unknown = JSON.parse(maybeText(row, "recent") ?? "[]");
    return Array.isArray(made) ? made.filter(isMade) : [];
  } catch {
    return []; // spoilt by hand: it begins anew
  }
}

function jobsText(ids: readonly string[]): string {
  return JSON.stringify([...new Set(ids)].slice(-mostJobs));
}

/** `row`: what is kept of its job. Only what an occurrence made by itself can be late. */
function runOf(
  { id, at, by: asked }: ScheduleRow["recent"][number],
  row: Row | undefined,
  jitterMs: number,
): ScheduleRunRow {
  if (row === undefined) {
    const unknown = { attempt: null, startedAt: null, endedAt: null, lateMs: null, ranMs: null };
    return { at, by: asked ?? "occurrence", jobId: id, state: null, ...unknown };
  }
  const by = asked ?? extras(row)?.schedule?.by ?? "occurrence";
  const kept: KeptRun = {
    attempt: number(row, "attempt"),
    crashes: number(row, "crashes"),
    throttles: number(row, "throttles"),
    runAt: number(row, "run_at"),
    startedAt: maybeNumber(row, "started_at"),
    endedAt: maybeNumber(row, "ended_at"),
    stepped: flag(row, "stepped"),
    failures: decodeFailures(maybeText(row, "errors")),
  };
  return {
    at,
    by,
    jobId: id,
    state: text(row, "state") as JobState,
    attempt: kept.attempt,
    startedAt: kept.startedAt,
    endedAt: kept.endedAt,
    lateMs: by === "occurrence" ? lateMsOf(at, kept, jitterMs) : null,
    ranMs: ranMsOf(kept),
  };
}

function scheduleRow(row: Row): ScheduleRow {
  const edits = maybeText(row, "edits");
  const base = {
    name: text(row, "name"),
    nextAt: maybeNumber(row, "next_at"),
    waitingAt: maybeNumber(row, "waiting_at"),
    anchorAt: number(row, "anchor_at"),
    createdAt: number(row, "created_at"),
    pausedAt: maybeNumber(row, "paused_at"),
    lastRunAt: maybeNumber(row, "last_run_at"),
    lastJobId: maybeText(row, "last_job_id"),
    recent: recentOf(row),
    fired: number(row, "fired"),
    skipped: number(row, "skipped"),
    missed: number(row, "missed"),
    now: number(row, "now"),
  };
  try {
    const spec = readSpec(text(row, "spec"), edits);
    const edited = edits === null ? [] : Object.keys(JSON.parse(edits) as object);
    return { ...base, spec, edited, fault: maybeText(row, "fault") };
  } catch (error) {
    return {
      ...base,
      spec: null,
      edited: [],
      fault: maybeText(row, "fault") ?? describeFailure(error).message,
    };
  }
}
