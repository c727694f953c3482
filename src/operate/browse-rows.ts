/**
 * Insight over the catalogue: which index a filter is walked by, and how several walks become one page.
 *
 *   states            walked by
 *   running           claims (few)                 retrying          ready_failed (few)
 *   dead, cancelled   history_not_done              other live ones   ready, newest first
 *   done, or all      history, newest first        scheduled by due  the claim's own index, level by level
 *   any, of one run   job_parent, newest first     of one batch      member, newest first
 *
 * A walk goes in pieces, and ends when it has what was asked for, at its bound, or when its time is up: a page costs
 * milliseconds whatever the tables hold, and where it stopped is said.
 *
 * Invariant: a page is in the order of places over all its walks. A walk that reached its bound may have more behind its lowest
 * entry, so nothing older than that is given out; the cursor goes there, and the next page walks on.
 */
import { queueSettings } from "../limits/queue-settings.ts";
import { statSync } from "node:fs";
import type {
  AuditEntry,
  AuditLine,
  BatchFilter,
  BatchPage,
  CappedCount,
  DatabaseHealth,
  FailureGroup,
  FailureGroupDetail,
  FailureGroupFilter,
  FailureGroups,
  FailuresBy,
  IdMatches,
  Insight,
  InsightFilter,
  InsightPage,
  JobDetail,
  JobFacets,
  JobSummary,
  JobTypeTally,
  RunFilter,
  RunPage,
  RunningJobType,
  RunSummary,
  StateTally,
} from "./browse.ts";
import {
  JOB_STATES,
  type JobState,
  neededVersion,
  type RowKey,
  type StepKind,
  WAITING_AT,
} from "../jobs/job.ts";
import { DEEP_PARTS, SEARCHED, SEARCHED_DEEP } from "./browse-bounds.ts";
import { decodeFailures } from "../jobs/failure.ts";
import type { IdPart } from "../values/id-part.ts";
import { HIGHEST_ID, idTime, isId } from "../values/id.ts";
import { traceIdIn, tracePattern } from "../values/trace-id.ts";
import { DEFAULT_ATTEMPTS } from "../jobs/transition.ts";
import { given, type Params, type Row, type Script } from "../storage/catalogue.ts";
import { cursorFor, newestFirst, rowKeyIn } from "../jobs/page-cursor.ts";
import { UsageError } from "../errors.ts";
import type { Driver } from "../storage/driver.ts";
import { Batches } from "../enqueue/batch-rows.ts";
import { byAttention, failureGroup, jobsByGroup } from "../observe/failure-group-rows.ts";
import { type FacetCell, facetsOf } from "./facets.ts";
import { needle } from "./job-rows.ts";
import { type KnownGroup, type FailureRows, type GroupCounts, MOST_GROUPS } from "../observe/failure-rows.ts";
import type { FailureGroupChange } from "../observe/failure-decision.ts";
import { cappedAt, TallyCursor, tallyJobTypes, tallyRunning } from "../limits/queue-counts.ts";
import { extras, flag, maybeNumber, maybeText, number, text, unquoted } from "../jobs/rows.ts";

/** A count goes no further than this. */
const COUNT_CAP = 10_000;
/** Entries of a piece, and those that are looked at however long it takes; fewer, likewise. */
const PIECE = 1_000;
const LEAST = 4_000;
const DEEP_LEAST = 1_000;
/** Entries of the index of ids that are looked at however long it takes. */
const ID_PIECE = 5_000;
/** So long an answer walks on. It is asked between pieces, so that it takes a little longer. */
const PATIENCE_MS = 12;
/** Entries that failures are grouped over, and that all job types together are counted over (by state). */
const GROUP_SCAN = 10_000;
const FAILED_SCAN = 4_000;
const JOB_TYPES_BUDGET = 40_000;
/** Runs of a kind that are looked at for one with steps, and steps of it. */
/** Runs that one look asks for at a time, and in all. */
const RUN_PIECE = 100;
const MOST_RUNS = 1_000;
/** The first and the last of all ids. */
const LOWEST = "00000000-0000-0000-0000-000000000000";
const HIGHEST = HIGHEST_ID;
/** Ids carry their maker's clock; rows the database's. They may differ by so much before a time filter misses. */
export const CLOCK_SLACK_MS = 3_600_000;

type Source = "Live" | "Held" | "Failed" | "Ended" | "NotDone" | "Children" | "Members";
const LIVE: readonly JobState[] = ["scheduled", "ready", "running", "waiting"];
const NOT_DONE: readonly JobState[] = ["dead", "cancelled"];
const ENDED: readonly JobState[] = ["done", "dead", "cancelled"];

/** One walk and the states that it may give. */
interface Walk {
  readonly source: Source;
  readonly states: readonly JobState[];
}

/** The walks that together see every job of the filter, each job once. */
export function walksOf(filter: InsightFilter): readonly Walk[] {
  const wanted = filter.states ?? JOB_STATES;
  if (filter.retrying === true) {
    const states = wanted.filter((state) => state === "scheduled" || state === "ready");
    const source = relatedBy(filter) ?? "Failed";
    return states.length === 0 ? [] : [{ source, states }];
  }
  const live = wanted.filter((state) => LIVE.includes(state));
  const ended = wanted.filter((state) => !LIVE.includes(state));
  if (filter.ended !== undefined) live.length = 0;
  const related = relatedBy(filter);
  if (related !== null) {
    const states = [...live, ...ended];
    return states.length === 0 ? [] : [{ source: related, states }];
  }
  const walks: Walk[] = [];
  if (live.length === 1 && live[0] === "running") walks.push({ source: "Held", states: live });
  else if (live.length > 0)
    walks.push({ source: filter.failureGroup === undefined ? "Live" : "Failed", states: live });
  if (ended.length > 0) {
    const notDone = filter.failureGroup !== undefined || ended.every((state) => NOT_DONE.includes(state));
    walks.push({ source: notDone ? "NotDone" : "Ended", states: ended });
  }
  return walks;
}

/** A batch first: whose child its jobs are can be asked of each. */
function relatedBy(filter: InsightFilter): "Members" | "Children" | null {
  if (filter.batch !== undefined) return "Members";
  return filter.workflow === undefined ? null : "Children";
}

/** Index entries that a walk takes at most. Each may cost a row of its own; errors are long, and lie beside theirs. */
export function boundOf(source: Source, filter: InsightFilter): number {
  const lookedUp = source === "Failed" || source === "Children" || source === "Members";
  const deep = isDeep(filter) || filter.error !== undefined || lookedUp;
  return deep ? SEARCHED_DEEP : SEARCHED;
}

export class SqlInsight implements Insight {
  readonly #driver: Driver;
  readonly #knownGroups: FailureRows;
  readonly #batches: Batches;
  readonly #cursor = new TallyCursor();

  constructor(driver: Driver, knownGroups: FailureRows) {
    this.#driver = driver;
    this.#knownGroups = knownGroups;
    this.#batches = new Batches(
      driver,
      async (ids) => new Map((await this.#summaries(ids)).map(({ id, state }) => [id, state])),
    );
  }

  batches(filter: BatchFilter, page: { limit: number; cursor: string | null }): Promise<BatchPage> {
    return this.#batches.list(filter, page);
  }

  async browse(
    filter: InsightFilter,
    page: { limit: number; cursor: string | null; order?: "newest" | "due" },
  ): Promise<InsightPage> {
    if (filter.ids !== undefined) return this.#byIds(filter, filter.ids, page.limit);
    if (page.order === "due") return this.#due(filter, page);
    const deadline = performance.now() + PATIENCE_MS;
    const cursor = cursorFor(this.#driver, page.cursor);
    const walked = await Promise.all(
      walksOf(filter).map(async (walk) => {
        const { rows, bottom } = await this.#walk("browse", walk, filter, {
          cursor,
          deadline,
          limit: page.limit + 1,
          enough: (found) => found.length > page.limit,
        });
        return { jobs: rows.map((row) => ({ id: text(row, "id"), rowKey: rowKeyIn(row) })), bottom };
      }),
    );
    // Nothing below the highest bottom is known for certain, unless that walk has filled the page by itself.
    const floor = walked
      .filter(({ jobs }) => jobs.length <= page.limit)
      .reduce<RowKey | null>(
        (most, { bottom }) => (bottom !== null && (most === null || bottom > most) ? bottom : most),
        null,
      );
    const found = walked
      .flatMap(({ jobs }) => jobs)
      .filter(({ rowKey }) => floor === null || rowKey >= floor)
      .sort(newestFirst);
    const given = found.slice(0, page.limit);
    const full = found.length > page.limit;
    const next = full ? (given.at(-1)?.rowKey ?? null) : floor;
    return {
      jobs: await this.#summaries(given.map(({ id }) => id)),
      cursor: next === null ? null : String(next),
      cut: !full && floor !== null,
    };
  }

  /** One walk, piece by piece. `bottom`: where it stopped before the end; null: it saw everything. */
  async #walk(
    verb: "browse" | "tally",
    { source, states }: Walk,
    filter: InsightFilter,
    until: {
      readonly cursor: RowKey | null;
      readonly deadline: number;
      readonly limit?: number;
      readonly enough: (rows: readonly Row[]) => boolean;
    },
  ): Promise<{ rows: Row[]; bottom: RowKey | null }> {
    const most = boundOf(source, filter);
    const deep = most === SEARCHED_DEEP;
    const least = deep ? DEEP_LEAST : LEAST;
    const found: Row[] = [];
    let { cursor } = until;
    for (let walked = 0; ;) {
      const scan = Math.min(walked === 0 || deep ? PIECE : 3 * PIECE, most - walked);
      const limit = until.limit === undefined ? {} : { limit: until.limit };
      const rows = await this.#driver.read({
        name: `${verb}${source}`,
        params: { ...this.#params(filter, states, cursor), ...limit, scan },
      });
      const isLast = (row: Row): boolean => row[verb === "browse" ? "id" : "state"] === null;
      const last = rows.find(isLast) as Row;
      found.push(...rows.filter((row) => !isLast(row)));
      const taken = number(last, verb === "browse" ? "walked" : "n");
      walked += taken;
      const bottom = wasCut(last, taken, scan);
      if (bottom === null || walked >= most || until.enough(found)) return { rows: found, bottom };
      if (walked >= least && performance.now() > until.deadline) return { rows: found, bottom };
      cursor = bottom;
    }
  }

  async matching(part: IdPart, page: { limit: number; cursor: string | null }): Promise<IdMatches> {
    const deadline = performance.now() + PATIENCE_MS;
    const { first, last, end } = part;
    const limit = page.limit + 1;
    const begun =
      page.cursor === null
        ? await this.#driver.read({ name: "idsFrom", params: { first, last, limit } })
        : [];
    const ids = new Set(begun.map((row) => text(row, "id")));
    let before = page.cursor ?? HIGHEST;
    let since: number | null = null;
    const given = (cursor: string | null): IdMatches => {
      const all = [...ids].sort().reverse();
      return { ids: all.slice(0, page.limit), more: all.length > page.limit, cursor, since };
    };
    for (let walked = 0; ;) {
      const rows = await this.#driver.read({ name: "walkIds", params: { end, before, scan: ID_PIECE } });
      const bottom = rows.find((row) => row["walked"] !== null) as Row;
      for (const row of rows) if (row !== bottom) ids.add(text(row, "id"));
      const taken = number(bottom, "walked");
      if (taken > 0) {
        before = text(bottom, "id");
        since = idTime(before);
      }
      walked += taken;
      if (taken < ID_PIECE) return given(null);
      if (ids.size > page.limit || walked >= SEARCHED || performance.now() > deadline) return given(before);
    }
  }

  /** In one look: there are as many as were named. The rest of the filter holds for them as for any. */
  async #byIds(filter: InsightFilter, named: readonly string[], limit: number): Promise<InsightPage> {
    const ids = named.filter(isId);
    const { ids: _ids, ...others } = filter;
    if (ids.length === 0) return { jobs: [], cursor: null, cut: false };
    const wanted =
      Object.keys(others).length === 0 ? ids.slice(0, limit) : await this.#idsAmong(ids, others, limit);
    return { jobs: await this.#summaries([...wanted].sort().reverse()), cursor: null, cut: false };
  }

  async #idsAmong(ids: readonly string[], filter: InsightFilter, limit: number): Promise<string[]> {
    const states = walksOf(filter).flatMap((walk) => walk.states);
    if (states.length === 0) return [];
    const params = { ...this.#params(filter, states, null), ids, limit, scan: ids.length };
    const rows = await this.#driver.read({ name: "browseNamed", params });
    return rows.filter((row) => row["id"] !== null).map((row) => text(row, "id"));
  }

  /** What waits for something else until a time stands in the line as well, and is passed over: piece by piece, so that it may be much. */
  async #due(filter: InsightFilter, page: { limit: number; cursor: string | null }): Promise<InsightPage> {
    const deadline = performance.now() + PATIENCE_MS;
    const limit = page.limit + 1;
    const ids: string[] = [];
    let { cursor } = page;
    for (;;) {
      const [at, rowKey] = cursor?.split(" ") ?? [];
      const rows = await this.#driver.read({
        name: "jobsInOrder",
        params: {
          now: this.#driver.now(),
          queues: filter.queues ?? null,
          names: filter.names ?? null,
          fromAt: Number(at ?? -1),
          fromRowKey: cursorFor(this.#driver, rowKey ?? null) ?? LOWEST,
          limit,
        },
      });
      for (const row of rows) {
        const waits = row["waits"] === "signal" || row["waits"] === "jobs";
        if (!waits && ids.length === page.limit)
          return { jobs: await this.#summaries(ids), cursor, cut: false };
        if (!waits) ids.push(text(row, "id"));
        cursor = `${number(row, "run_at")} ${rowKeyIn(row)}`;
      }
      const end = rows.length < limit;
      if (end || performance.now() > deadline)
        return { jobs: await this.#summaries(ids), cursor: end ? null : cursor, cut: !end };
    }
  }

  async #summaries(ids: readonly string[]): Promise<JobSummary[]> {
    if (ids.length === 0) return [];
    const rows = await this.#driver.read({ name: "summaries", params: { now: this.#driver.now(), ids } });
    const byId = new Map(rows.map((row) => [text(row, "id"), summary(row)]));
    return ids.flatMap((id) => byId.get(id) ?? []);
  }

  async tally(filter: InsightFilter): Promise<StateTally> {
    if (filter.ids !== undefined) {
      const count = (await this.#byIds(filter, filter.ids, COUNT_CAP)).jobs.length;
      return { states: {}, total: { count, more: false } };
    }
    const deadline = performance.now() + PATIENCE_MS;
    const states: Partial<Record<JobState, CappedCount>> = {};
    const wanted = new Set(filter.states ?? JOB_STATES);
    // Live jobs by queue and name are counted on the claim's index, which knows due from not due.
    const live = isSimple(filter) && [...wanted].some((state) => LIVE.includes(state));
    const rest = [...wanted].filter((state) => !live || !LIVE.includes(state));
    const none: Partial<Record<JobState, CappedCount>> = {};
    const [counted, walks] = await Promise.all([
      live ? this.#tallySimple(filter) : none,
      this.#tallyWalks(filter, rest, deadline),
    ]);
    for (const state of LIVE)
      if (wanted.has(state) && counted[state] !== undefined) states[state] = counted[state];
    for (const { walk, rows, cut } of walks) {
      for (const state of walk.states) {
        const ofState = rows.filter((row) => row["state"] === state);
        states[state] = capped(
          ofState.reduce((n, row) => n + number(row, "n"), 0),
          cut,
        );
      }
    }
    const all = Object.values(states);
    const sum = all.reduce((n, { count }) => n + count, 0);
    return {
      states,
      total: capped(
        sum,
        all.some(({ more }) => more),
      ),
    };
  }

  /** Counts by state and job type, walk by walk. */
  #tallyWalks(
    filter: InsightFilter,
    states: readonly JobState[],
    deadline: number,
  ): Promise<{ walk: Walk; rows: Row[]; cut: boolean }[]> {
    return Promise.all(
      tallyWalks({ ...filter, states }).map(async (walk) => {
        // No count goes beyond its cap: when each state is there, nothing more is to be learnt.
        const enough = (rows: readonly Row[]): boolean =>
          walk.states.every(
            (state) =>
              rows.reduce((n, row) => (row["state"] === state ? n + number(row, "n") : n), 0) > COUNT_CAP,
          );
        const { rows, bottom } = await this.#walk("tally", walk, filter, {
          cursor: null,
          deadline,
          enough,
        });
        return { walk, rows, cut: bottom !== null };
      }),
    );
  }

  async facets(filter: InsightFilter): Promise<JobFacets> {
    const deadline = performance.now() + PATIENCE_MS;
    const { states: _states, queues: _queues, names: _names, ...others } = filter;
    if (filter.ids !== undefined) {
      const { jobs } = await this.#byIds(others, filter.ids, COUNT_CAP);
      const cells = jobs.map(({ state, queue, name }) => ({ state, queue, name, count: 1, more: false }));
      return facetsOf(cells, filter, capped, new Set());
    }
    const cells: FacetCell[] = [];
    // Live jobs by queue and name are counted on the claim's index, as `tally` does.
    const simple = isSimple(others);
    const [live, walks] = await Promise.all([
      simple ? this.jobTypes() : { jobTypes: [] },
      this.#tallyWalks(others, simple ? ENDED : JOB_STATES, deadline),
    ]);
    for (const { queue, name, running, ...counts } of live.jobTypes) {
      cells.push({ state: "running", queue, name, count: running, more: false });
      for (const state of ["scheduled", "ready", "waiting"] as const)
        cells.push({ state, queue, name, ...counts[state] });
    }
    const jobTypes = await this.#jobTypeNames(
      walks.flatMap(({ rows }) => rows.map((row) => number(row, "job_type"))),
    );
    for (const { walk, rows, cut } of walks) {
      for (const row of rows) {
        const jobType = jobTypes.get(number(row, "job_type"));
        const state = text(row, "state") as JobState;
        if (jobType !== undefined && walk.states.includes(state))
          cells.push({ state, ...jobType, count: number(row, "n"), more: cut });
      }
    }
    return facetsOf(
      cells,
      filter,
      capped,
      new Set(walks.flatMap(({ walk, cut }) => (cut ? walk.states : []))),
    );
  }

  async #jobTypeNames(ids: readonly number[]): Promise<Map<number, { queue: string; name: string }>> {
    const wanted = [...new Set(ids)];
    if (wanted.length === 0) return new Map();
    const rows = await this.#driver.read({ name: "jobTypesById", params: { ids: wanted } });
    return new Map(
      rows.map((row) => [number(row, "id"), { queue: text(row, "queue"), name: text(row, "name") }]),
    );
  }

  async #tallySimple(filter: InsightFilter): Promise<Partial<Record<JobState, CappedCount>>> {
    const { jobTypes } = await this.jobTypes(filter);
    const sums = { scheduled: zero, ready: zero, running: zero, waiting: zero };
    for (const jobType of jobTypes) {
      sums.scheduled = plus(sums.scheduled, jobType.scheduled);
      sums.ready = plus(sums.ready, jobType.ready);
      sums.waiting = plus(sums.waiting, jobType.waiting);
      sums.running = plus(sums.running, { count: jobType.running, more: false });
    }
    return sums;
  }

  async inspect(id: string): Promise<JobDetail | null> {
    if (!isId(id)) return null;
    const [row] = await this.#driver.read({ name: "inspect", params: { now: this.#driver.now(), id } });
    if (row === undefined) return null;
    const input = text(row, "input");
    const asked =
      text(row, "state") === "running"
        ? await this.#driver.read({ name: "requestsOf", params: { ids: [id] } })
        : [];
    return {
      ...summary(row),
      input,
      inputBytes: Buffer.byteLength(input),
      output: maybeText(row, "output"),
      progress: maybeText(row, "progress"),
      errors: decodeFailures(maybeText(row, "errors")),
      throttles: number(row, "throttles"),
      leaseUntil: maybeNumber(row, "lease_until"),
      timeoutMs: maybeNumber(row, "timeout_ms"),
      deadlineAt: maybeNumber(row, "deadline_at"),
      traceId: traceIdIn(maybeText(row, "extras")),
      request: asked[0] === undefined ? null : flag(asked[0], "pause") ? "pause" : "cancel",
      version: neededVersion(extras(row)),
      schedule: await this.#scheduleOf(row),
      batches: await this.#batches.of(id),
    };
  }

  /** What was asked for by hand is in no slot; its neighbours are those of its instant. */
  async #scheduleOf(row: Row): Promise<JobDetail["schedule"]> {
    const made = extras(row)?.schedule;
    if (made === undefined) return null;
    const { name, at, by = "occurrence" } = made;
    const rows = await this.#driver.read({ name: "occurrencesAround", params: { name, at } });
    const occurrences = rows.map((occurrence) => ({
      at: number(occurrence, "at"),
      jobId: text(occurrence, "job"),
    }));
    return {
      name,
      at,
      by,
      previous: occurrences.find((occurrence) => occurrence.at < at) ?? null,
      next: occurrences.find((occurrence) => occurrence.at > at) ?? null,
    };
  }

  async runs(filter: RunFilter, page: { limit: number; cursor: string | null }): Promise<RunPage> {
    if (page.cursor !== null && !isId(page.cursor))
      throw new UsageError("BAD_CURSOR", "cursor must be the value returned with the previous page.");
    const deadline = performance.now() + PATIENCE_MS;
    const runs: RunSummary[] = [];
    let before = page.cursor ?? HIGHEST;
    for (let walked = 0; ;) {
      const rows = await this.#driver.read({ name: "walkRuns", params: { before, scan: RUN_PIECE } });
      const ids = rows.map((row) => text(row, "id"));
      runs.push(...(await this.#runsOf(ids, filter)));
      walked += ids.length;
      const given = runs.slice(0, page.limit);
      if (runs.length > page.limit) return { runs: given, cursor: given.at(-1)?.job.id ?? null, cut: false };
      if (ids.length < RUN_PIECE) return { runs, cursor: null, cut: false };
      before = ids.at(-1) as string;
      if (walked >= MOST_RUNS || performance.now() > deadline) return { runs, cursor: before, cut: true };
    }
  }

  async #runsOf(ids: readonly string[], filter: RunFilter): Promise<RunSummary[]> {
    const jobs = (await this.#summaries(ids)).filter(
      ({ state, queue, name }) =>
        (filter.states?.includes(state) ?? true) &&
        (filter.queues?.includes(queue) ?? true) &&
        (filter.names?.includes(name) ?? true),
    );
    if (jobs.length === 0) return [];
    const params = {
      // From before the first start nothing is over.
      jobs: jobs.map(({ id, startedAt, endedAt }) => ({
        id,
        begun: startedAt ?? -1,
        ended: endedAt !== null,
      })),
    };
    const steps = new Map(
      (await this.#driver.read({ name: "runSteps", params })).map((row) => [text(row, "id"), row]),
    );
    const now = this.#driver.clock.now();
    return jobs
      .map((job) => runSummary(job, steps.get(job.id)))
      .filter(
        ({ retrying, at }) =>
          (filter.retrying !== true || retrying) &&
          (filter.atLeastMs === undefined || (at !== null && now - heldSince(at) >= filter.atLeastMs)),
      );
  }

  jobTypes(
    of?: Pick<InsightFilter, "queues" | "names">,
  ): Promise<{ now: number; jobTypes: readonly JobTypeTally[] }> {
    return tallyJobTypes(this.#driver, this.#cursor, { most: COUNT_CAP, budget: JOB_TYPES_BUDGET }, of);
  }

  running(): Promise<{ now: number; jobTypes: readonly RunningJobType[] }> {
    return tallyRunning(this.#driver);
  }

  async jobTypeNames(): Promise<readonly { readonly queue: string; readonly name: string }[]> {
    const rows = await this.#driver.read({ name: "jobTypeNames", params: {} });
    return rows.map((row) => ({ queue: text(row, "queue"), name: text(row, "name") }));
  }

  async failureGroups(filter: FailureGroupFilter): Promise<FailureGroups> {
    const { groups, searched } = await this.#failureGroups(filter, null);
    const wanted = groups
      .filter(({ state }) => filter.states === undefined || filter.states.includes(state))
      .sort(byAttention)
      .slice(0, MOST_GROUPS);
    const samples = await this.#samples(wanted);
    return {
      groups: wanted.map(({ week: _week, weekFrom: _from, places: _places, ...group }) =>
        withSample(group, samples.get(group.sample ?? "")),
      ),
      searched,
      cut: searched >= GROUP_SCAN,
    };
  }

  async failureGroup(id: string): Promise<FailureGroupDetail | null> {
    const { groups } = await this.#failureGroups({}, id);
    const [group] = groups;
    if (group === undefined) return null;
    return withSample(group, (await this.#samples([group])).get(group.sample ?? ""));
  }

  /** Those samples that still fail so; a retried job may have succeeded, or failed in another way. */
  async #samples(groups: readonly FailureGroup[]): Promise<ReadonlyMap<string, JobSummary>> {
    const of = new Set(groups.map(({ group }) => group));
    const samples = await this.#summaries(groups.flatMap(({ sample }) => sample ?? []));
    return new Map(
      samples.flatMap((job) =>
        job.failureGroup !== null && of.has(job.failureGroup) ? [[job.id, job] as const] : [],
      ),
    );
  }

  async #failureGroups(
    filter: FailureGroupFilter,
    only: string | null,
  ): Promise<{ groups: FailureGroupDetail[]; searched: number }> {
    const queues = filter.queues ?? null;
    const names = filter.names ?? null;
    const params = {
      now: this.#driver.now(),
      queues,
      names,
      group: only,
      cursor: null,
      before: HIGHEST,
      scan: GROUP_SCAN,
    };
    const detail = only === null ? "day" : "week";
    const [dead, failed, known] = await Promise.all([
      this.#driver.read({ name: "groupDead", params }),
      this.#driver.read({ name: "groupFailed", params: { ...params, scan: FAILED_SCAN } }),
      this.#countedGroups({ ids: only === null ? null : [only], names }, queues, detail),
    ]);
    const last = dead.find((row) => row["queue"] === null) as Row;
    const now = number(last, "day"); // in the last row: the database's clock
    const jobs = jobsByGroup(dead, failed);
    const knownGroups = new Map(known.knownGroups.map((knownGroup) => [knownGroup.group, knownGroup]));
    // A kind whose every error is new has as many causes as jobs: the largest are enough.
    const largest = [...jobs]
      .sort(([, one], [, other]) => other.dead + other.retrying - (one.dead + one.retrying))
      .slice(0, MOST_GROUPS)
      .map(([id]) => id);
    const unknown = only === null ? largest.filter((id) => !knownGroups.has(id)) : [];
    if (known.knownGroups.length >= MOST_GROUPS && unknown.length > 0)
      for (const knownGroup of (await this.#knownGroups.rows({ ids: unknown, names })).knownGroups)
        knownGroups.set(knownGroup.group, knownGroup);
    const ids = only === null ? [...new Set([...largest, ...knownGroups.keys()])] : [only];
    const counted = new Set(known.knownGroups.map(({ group }) => group));
    const uncounted = ids.filter((id) => !counted.has(id));
    const counts = new Map([
      ...known.counts,
      ...(await this.#knownGroups.counts(uncounted, queues, now, detail)),
    ]);
    const groups = ids
      .filter((id) => jobs.has(id) || knownGroups.has(id))
      .map((id) =>
        failureGroup(id, {
          jobs: jobs.get(id),
          knownGroup: knownGroups.get(id),
          counts: counts.get(id),
          message: null,
          now,
          within: filter.within === true ? queues : null,
        }),
      )
      .filter((group) => queues === null || group.queues.some((queue) => queues.includes(queue)));
    return { groups, searched: number(last, "n") };
  }

  /** What is kept of causes, with how often they were met: while others look which jobs there are of them. */
  async #countedGroups(
    asked: Parameters<FailureRows["rows"]>[0],
    queues: readonly string[] | null,
    detail: "day" | "week",
  ): Promise<{ knownGroups: readonly KnownGroup[]; counts: ReadonlyMap<string, GroupCounts> }> {
    const { now, knownGroups } = await this.#knownGroups.rows(asked);
    const ids = knownGroups.map(({ group }) => group);
    const counts =
      now === null
        ? new Map<string, GroupCounts>()
        : await this.#knownGroups.counts(ids, queues, now, detail);
    return { knownGroups, counts };
  }

  failuresBy(by: FailuresBy["by"], since: number): Promise<FailuresBy> {
    return this.#knownGroups.by(by, since);
  }

  async decideOn(group: string, change: FailureGroupChange): Promise<boolean> {
    const known = await this.#knownGroups.rows({ ids: [group], names: null });
    const named = known.knownGroups[0]?.name ?? (await this.#nameOf(group));
    if (known.knownGroups.length === 0 && named === null) return false;
    await this.#knownGroups.set(group, named, change);
    return true;
  }

  /** Whose failures they are, where no worker has told: of the newest job that failed so. */
  async #nameOf(failureGroup: string): Promise<string | null> {
    const page = await this.browse({ failureGroup }, { limit: 1, cursor: null });
    return page.jobs[0]?.name ?? null;
  }

  async queueRows(names?: readonly string[]): ReturnType<Insight["queueRows"]> {
    const rows = await this.#driver.read({ name: "queueRows", params: { names: names ?? null } });
    return rows.map((row) => ({
      name: text(row, "name"),
      pausedAt: maybeNumber(row, "paused_at"),
      drainingAt: maybeNumber(row, "drain_at"),
      coolUntil: maybeNumber(row, "cool_until"),
      settings: queueSettings(row),
    }));
  }

  addAudit(entry: AuditEntry): Promise<void> {
    const now = this.#driver.now();
    return this.#driver.transaction("addAudit", function* (): Script<void> {
      yield { name: "addAudit", params: { now, ...entry } };
      yield { name: "dropAudit", params: { now } };
    });
  }

  async audit(page: Parameters<Insight["audit"]>[0]): Promise<readonly AuditLine[]> {
    const params = { before: page.before ?? Number.MAX_SAFE_INTEGER, limit: page.limit };
    const rows = await this.#driver.read(
      page.target === undefined
        ? { name: "listAudit", params }
        : { name: "auditOf", params: { ...params, target: page.target } },
    );
    return rows.map((row) => ({
      id: number(row, "id"),
      at: number(row, "at"),
      actor: text(row, "actor"),
      action: text(row, "action"),
      target: maybeText(row, "target"),
      outcome: text(row, "outcome"),
      details: maybeText(row, "details"),
    }));
  }

  async health(): Promise<DatabaseHealth> {
    const started = performance.now();
    await this.#driver.read({ name: "now", params: { now: this.#driver.now() } });
    const roundTripMs = performance.now() - started;
    const [[row], tables] = await Promise.all([
      this.#driver.read({ name: "health", params: {} }),
      this.#driver.read({ name: "tables", params: {} }),
    ]);
    const health = row as Row;
    return {
      dialect: this.#driver.dialect,
      version: text(health, "version"),
      sizeBytes: number(health, "size"),
      freeBytes: maybeNumber(health, "free"),
      walBytes: this.#walBytes(),
      connections: maybeNumber(health, "connections"),
      maxConnections: maybeNumber(health, "max_connections"),
      oldestTransactionMs: maybeNumber(health, "oldest_ms"),
      roundTripMs,
      listening: this.#driver.listening,
      tables: tables.map((table) => ({
        name: text(table, "name"),
        bytes: maybeNumber(table, "bytes"),
        rows: maybeNumber(table, "rows"),
        deadRows: maybeNumber(table, "dead_rows"),
        vacuumedAt: maybeNumber(table, "vacuumed_at"),
      })),
    };
  }

  #walBytes(): number | null {
    const target = this.#driver.renewalTarget;
    if (target?.dialect !== "sqlite") return null;
    return statSync(`${target.path}-wal`, { throwIfNoEntry: false })?.size ?? null;
  }

  #params(filter: InsightFilter, states: readonly JobState[], cursor: RowKey | null): Params {
    // What had ended by then was created before.
    const before = Math.min(filter.until ?? Infinity, filter.ended?.max ?? Infinity);
    const { attempt, ran, ended, payload } = filter;
    const fields = given({
      cursor,
      states,
      queues: filter.queues,
      names: filter.names,
      group: filter.failureGroup,
      retrying: filter.retrying,
      workflow: filter.workflow,
      batch: filter.batch,
      deep: isDeep(filter),
      lane: filter.lane,
      key: filter.key,
      since: filter.since,
      until: filter.until,
      trace: filter.trace === undefined ? null : tracePattern(filter.trace),
      search: filter.search === undefined ? null : needle(filter.search),
      from: filter.since === undefined ? null : idAt(filter.since - CLOCK_SLACK_MS),
      before: before === Infinity ? null : idAt(before + CLOCK_SLACK_MS),
      attemptMin: attempt?.min,
      attemptMax: attempt?.max,
      ranMin: ran?.min,
      ranMax: ran?.max,
      endedMin: ended?.min,
      endedMax: ended?.max,
      worker: filter.worker,
      error: filter.error === undefined ? null : needle(filter.error),
      paths: payload?.map(({ path }) => JSON.stringify(path)),
      wants: payload?.map(({ value }) => value),
    });
    return { now: this.#driver.now(), ...fields };
  }
}

/** What the sample says: the message, and when it was tried (of a job that will be tried again nobody else may know). */
function withSample<G extends FailureGroup>(group: G, sample: JobSummary | undefined): G {
  if (sample === undefined) return group;
  return {
    ...group,
    message: sample.error ?? group.message,
    lastAt: group.lastAt ?? sample.startedAt,
  };
}

/** The lowest entry of a walk that reached its bound before the filter's time did; null: it saw everything. */
function wasCut(row: Row, walked: number, scan: number): RowKey | null {
  return walked >= scan ? (row["bottom"] as RowKey | null) : null;
}

/** The lowest UUIDv7 of an instant. */
function idAt(ms: number): string {
  const hex = Math.min(Math.max(0, Math.trunc(ms)), 0xffffffffffff)
    .toString(16)
    .padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}

function isDeep(filter: InsightFilter): boolean {
  const both = filter.batch !== undefined && filter.workflow !== undefined;
  return both || DEEP_PARTS.some((part) => filter[part] !== undefined);
}

function isSimple(filter: InsightFilter): boolean {
  const { failureGroup: group, retrying, attempt, ran, ended, worker, error, workflow, batch } = filter;
  const asked = [group, attempt, ran, ended, worker, error, workflow, batch].some(
    (part) => part !== undefined,
  );
  return !isDeep(filter) && !asked && retrying !== true;
}

/** Dead and cancelled jobs are counted by their own index: beside a million done ones they would not be seen. */
function tallyWalks(filter: InsightFilter): readonly Walk[] {
  if (relatedBy(filter) !== null) return walksOf(filter);
  const states = filter.states ?? [];
  const running = states.filter((state) => state === "running");
  const notDone = states.filter((state) => NOT_DONE.includes(state));
  const rest = states.filter((state) => state !== "running" && !NOT_DONE.includes(state));
  return [running, notDone, rest].flatMap((part) =>
    part.length === 0 ? [] : walksOf({ ...filter, states: part }),
  );
}

const zero: CappedCount = { count: 0, more: false };

function plus(a: CappedCount, b: CappedCount): CappedCount {
  return capped(a.count + b.count, a.more || b.more);
}

function capped(count: number, cut: boolean): CappedCount {
  return cappedAt(COUNT_CAP, count, cut);
}

/**
 * Whether a step is not over, as `hf.jobs.history` has it (workflows/job-history.ts): a sleep that the job has been started after, and the
 * step that a machine ended in, are over without a write of their own.
 */
export function stillOpen(step: string, begun: string, ended: string): string {
  return `(${step}.state = 'open' and not (${step}.kind = 'sleep' and coalesce(${step}.wake_at <= ${begun}, false))
            and not (${step}.kind = 'machine' and ${ended}))`;
}

/** A sleep, and the pause before a step's next try, are meant: what is due since then has stood still since then. */
function heldSince({ kind, since, until }: NonNullable<RunSummary["at"]>): number {
  return until !== null && (kind === "sleep" || kind === "step") ? Math.max(since, until) : since;
}

function named(row: Row): { readonly name: string; readonly kind: StepKind } {
  const kind = text(row, "kind") as StepKind;
  return { name: (kind === "machine" ? maybeText(row, "label") : null) ?? text(row, "name"), kind };
}

function runSummary(job: JobSummary, row: Row | undefined): RunSummary {
  const live = job.endedAt === null;
  const at = row === undefined || row["name"] === null || !live ? null : row;
  const failed = row !== undefined && (row["retrying"] === true || row["retrying"] === 1);
  return {
    job,
    known: row === undefined ? 0 : number(row, "known"),
    done: row === undefined ? 0 : number(row, "done"),
    retrying: live && (failed || (job.failureGroup !== null && job.state !== "running")),
    at:
      at === null
        ? null
        : {
            ...named(at),
            since: number(at, "started_at"),
            until: maybeNumber(at, "wake_at"),
            child: maybeText(at, "child"),
          },
  };
}

function summary(row: Row): JobSummary {
  const runAt = number(row, "run_at");
  const context = maybeText(row, "context");
  return {
    id: text(row, "id"),
    name: text(row, "name"),
    queue: text(row, "queue"),
    state: text(row, "state") as JobState,
    paused: row["waits"] === "resume",
    priority: -number(row, "rank") || 0,
    attempt: number(row, "attempt"),
    maxAttempts: maybeNumber(row, "max_attempts") ?? DEFAULT_ATTEMPTS,
    crashes: number(row, "crashes"),
    input: maybeText(row, "input"),
    inputBytes: maybeNumber(row, "input_bytes") ?? 0,
    error: decodeFailures(maybeText(row, "errors")).at(-1)?.message ?? null,
    failureGroup: maybeText(row, "failure_group"),
    key: maybeText(row, "key"),
    lane: maybeText(row, "lane"),
    context: context === null ? null : unquoted(context),
    parentId: maybeText(row, "parent_id"),
    workerId: maybeText(row, "worker_id"),
    createdAt: number(row, "created_at"),
    runAt: runAt >= WAITING_AT ? null : runAt,
    startedAt: maybeNumber(row, "started_at"),
    endedAt: maybeNumber(row, "ended_at"),
  };
}
