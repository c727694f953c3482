/**
 * Which jobs: the filter that `jobs.list`, `jobs.count` and the bulk actions take, checked.
 *
 * Invariant: what leaves here is safe to bind (ids are UUIDs, names are names, instants are whole milliseconds).
 * Not here: how a filter becomes a statement (browse-rows.ts, job-rows.ts), paging (jobs-client.ts).
 */
import { shown, UsageError } from "../errors.ts";
import { JOB_STATES, type JobState } from "../jobs/job.ts";
import { instantMs } from "../values/duration.ts";
import { isId } from "../values/id.ts";
import { checkName, checkText } from "../values/name.ts";
import { checkOptions } from "../values/options.ts";
import { checkTrace } from "../values/trace-id.ts";
import type { JobFilter } from "./store.ts";

/**
 * Which jobs. Everything that is given must hold; nothing given is every job.
 *
 * @example
 * await hf.jobs.count({ state: "dead", queue: "mail", since: new Date("2026-01-01") });
 */
export interface JobQuery {
  readonly ids?: readonly string[] | undefined;
  /** Without it: all states. */
  readonly state?: JobState | readonly JobState[] | undefined;
  readonly queue?: string | readonly string[] | undefined;
  readonly name?: string | readonly string[] | undefined;
  readonly lane?: string | undefined;
  /** The unique key. */
  readonly key?: string | undefined;
  /** The id of a run: the jobs that it called or enqueued, and not itself. */
  readonly workflow?: string | undefined;
  /** The id of a batch, as `hf.batch` gives it: its jobs. */
  readonly batch?: string | undefined;
  /** The id of a trace (32 hexadecimal digits), or a traceparent: the jobs that were enqueued in it. */
  readonly trace?: string | undefined;
  /** Text that the input, the context or the latest error contains. */
  readonly search?: string | undefined;
  /** Created at or after. */
  readonly since?: Date | number | undefined;
  /** Created before. */
  readonly until?: Date | number | undefined;
}

/** The names of a filter's options. */
export const FILTER_OPTIONS: readonly string[] = [
  "ids",
  "state",
  "queue",
  "name",
  "lane",
  "key",
  "workflow",
  "batch",
  "trace",
  "search",
  "since",
  "until",
];

/** The filter as the store takes it. `options` has been checked for unknown keys. */
export function checkFilter(query: JobQuery): JobFilter {
  const filter: { -readonly [K in keyof JobFilter]: JobFilter[K] } = {};
  if (query.ids !== undefined) filter.ids = checkIds(query.ids);
  if (query.state !== undefined) filter.state = asList(query.state).map(checkState);
  if (query.queue !== undefined) filter.queue = asList(query.queue).map((name) => checkName(name, "queue"));
  if (query.name !== undefined) filter.name = asList(query.name).map((name) => checkName(name, "name"));
  if (query.lane !== undefined) filter.lane = checkText(query.lane, "lane");
  if (query.key !== undefined) filter.key = checkText(query.key, "key");
  if (query.workflow !== undefined) filter.workflow = checkRunId(query.workflow);
  if (query.batch !== undefined) filter.batch = checkBatchId(query.batch);
  if (query.trace !== undefined) filter.trace = checkTrace(query.trace);
  if (query.search !== undefined && query.search !== "") filter.search = checkSearch(query.search);
  if (query.since !== undefined) filter.since = instantMs(query.since, "since");
  if (query.until !== undefined) filter.until = instantMs(query.until, "until");
  return filter;
}

/**
 * The filter of a bulk action. An empty one is refused: it would mean every job there is, which is a slip of the
 * caller (a variable that is undefined) far more often than a wish.
 */
export function checkBulkFilter(query: JobQuery, what: string): JobFilter {
  const filter = checkFilter(checkOptions(query, FILTER_OPTIONS, what));
  if (Object.keys(filter).length > 0) return filter;
  throw new UsageError(
    "BAD_OPTION",
    `${what} needs an id, or a filter that is not empty, such as { state: "dead" }.`,
  );
}

/** An id that a caller gave: must be a string; whether a job has it is another question. */
export function checkIdText(id: unknown, what: string): string {
  if (typeof id === "string") return id.toLowerCase();
  throw new UsageError("BAD_OPTION", `${what} takes the id of a job (a string); got ${shown(id)}.`);
}

/**
 * The id of a run. What cannot be one is refused: in a bulk action it would otherwise mean nothing, or everything.
 *
 * @throws UsageError BAD_OPTION
 */
export function checkRunId(id: unknown): string {
  const known = typeof id === "string" ? id.toLowerCase() : "";
  if (isId(known)) return known;
  throw new UsageError("BAD_OPTION", `workflow must be the id of a run; got ${shown(id)}.`, {
    details: { option: "workflow" },
  });
}

/**
 * The id of a batch, for the same reason.
 *
 * @throws UsageError BAD_OPTION
 */
export function checkBatchId(id: unknown): string {
  const known = typeof id === "string" ? id.toLowerCase() : "";
  if (isId(known)) return known;
  throw new UsageError("BAD_OPTION", `batch must be the id returned by hf.batch; got ${shown(id)}.`, {
    details: { option: "batch" },
  });
}

function checkIds(ids: unknown): readonly string[] {
  if (!Array.isArray(ids))
    throw new UsageError("BAD_OPTION", `ids must be an array of ids; got ${shown(ids)}.`, {
      details: { option: "ids" },
    });
  // What is not a UUID cannot be the id of a job; Postgres would refuse it (22P02) and with it the others.
  return ids.map((id) => checkIdText(id, "ids")).filter(isId);
}

function checkState(state: unknown): JobState {
  if (JOB_STATES.includes(state as JobState)) return state as JobState;
  throw new UsageError("BAD_OPTION", `state must be one of ${JOB_STATES.join(", ")}; got ${shown(state)}.`, {
    details: { option: "state" },
  });
}

function checkSearch(search: unknown): string {
  return checkText(search, "search", 4_096);
}

function asList<T>(value: T | readonly T[]): readonly T[] {
  if (!Array.isArray(value)) return [value as T];
  return value as readonly T[];
}
