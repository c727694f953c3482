/**
 * Parameters from outside, checked: query strings and JSON bodies become filters, pages and options, or a 400 that names
 * the field. An unknown parameter is refused: a misspelt filter would otherwise show (or delete) everything.
 */
import { checkBatchId, checkRunId } from "../../operate/filter.ts";
import type { InsightFilter } from "../../operate/browse.ts";
import { isId } from "../../values/id.ts";
import { checkName, checkText } from "../../values/name.ts";
import { bornWithin, wordFilter } from "../../operate/filter-range.ts";
import { checkTrace } from "../../values/trace-id.ts";
import type { FilterJson } from "./contract.ts";
import { ApiError } from "../http.ts";
import type { JobState } from "../../index.ts";
import { JOB_STATES } from "../../operate/index.ts";

export const FILTER_PARAMS = [
  "ids",
  "state",
  "queue",
  "name",
  "lane",
  "key",
  "workflow",
  "batch",
  "trace",
  "since",
  "until",
  "errorGroup",
  "retrying",
  "search",
  "attempt",
  "age",
  "run",
  "ended",
  "worker",
  "error",
  "payload",
] as const;

export function bad(field: string, message: string): ApiError {
  return new ApiError("BAD_REQUEST", `${field} ${message}`, { field });
}

/** @throws ApiError 400 for a parameter that is not one. */
export function onlyParams(params: URLSearchParams, known: readonly string[]): void {
  for (const [name, value] of params) {
    if (!known.includes(name))
      throw bad(name.slice(0, 60), `is not a parameter. There are: ${known.join(", ") || "none"}.`);
    // Postgres takes it in no text.
    if (value.includes("\0")) throw bad(name, "must not contain a NUL character.");
  }
}

export function onlyFields(body: Readonly<Record<string, unknown>>, known: readonly string[], at = ""): void {
  for (const name of Object.keys(body))
    if (!known.includes(name))
      throw bad(`${at}${name.slice(0, 60)}`, `is not a field. There are: ${known.join(", ") || "none"}.`);
}

export function integer(
  params: URLSearchParams,
  name: string,
  range: { min: number; max: number; or: number },
): number {
  const text = params.get(name);
  if (text === null) return range.or;
  const value = Number(text);
  if (!/^\d{1,16}$/.test(text) || value < range.min || value > range.max)
    throw bad(name, `must be an integer from ${range.min} to ${range.max}.`);
  return value;
}

/** `state=ready,dead`, or `state` twice. */
function list(params: URLSearchParams, name: string): string[] | undefined {
  const all = params.getAll(name).flatMap((value) => value.split(","));
  const given = all.filter((value) => value !== "");
  if (given.length > 1_000) throw bad(name, "has too many values.");
  return given.length === 0 ? undefined : given;
}

export function filterOfQuery(params: URLSearchParams): FilterJson {
  const text = (name: string): string | undefined => params.get(name) ?? undefined;
  const instant = (name: string): number | undefined =>
    params.has(name) ? integer(params, name, { min: 0, max: 8.64e15, or: 0 }) : undefined;
  return defined({
    ids: list(params, "ids"),
    state: list(params, "state") as JobState[] | undefined,
    queue: list(params, "queue"),
    name: list(params, "name"),
    lane: text("lane"),
    key: text("key"),
    workflow: text("workflow"),
    batch: text("batch"),
    trace: text("trace"),
    since: instant("since"),
    until: instant("until"),
    errorGroup: text("errorGroup"),
    retrying: params.has("retrying") ? params.get("retrying") === "true" : undefined,
    search: text("search") === "" ? undefined : text("search"),
    ...wordTextsOf(text),
    // Each by itself: a value may have a comma.
    payload: params.has("payload") ? params.getAll("payload") : undefined,
  });
}

function wordTextsOf(text: (name: string) => string | undefined) {
  return {
    attempt: text("attempt"),
    age: text("age"),
    run: text("run"),
    ended: text("ended"),
    worker: text("worker"),
    error: text("error"),
  };
}

export function filterOfBody(value: unknown): FilterJson {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw bad("filter", "must be an object.");
  const body = value as Record<string, unknown>;
  onlyFields(body, FILTER_PARAMS, "filter.");
  const texts = (name: string): string[] | undefined => {
    const given = body[name];
    if (given === undefined) return undefined;
    const all = Array.isArray(given) ? (given as unknown[]) : [given];
    if (all.length > 1_000 || !all.every((one) => typeof one === "string"))
      throw bad(`filter.${name}`, "must be a string or an array of at most 1,000 strings.");
    return all;
  };
  const text = (name: string): string | undefined => {
    const given = body[name];
    if (given !== undefined && typeof given !== "string") throw bad(`filter.${name}`, "must be a string.");
    return given;
  };
  const instant = (name: string): number | undefined => {
    const given = body[name];
    if (given !== undefined && !(Number.isSafeInteger(given) && (given as number) >= 0))
      throw bad(`filter.${name}`, "must be an instant in epoch milliseconds.");
    return given as number | undefined;
  };
  const retrying = body["retrying"];
  if (retrying !== undefined && typeof retrying !== "boolean")
    throw bad("filter.retrying", "must be true or false.");
  return defined({
    ids: texts("ids"),
    state: texts("state") as JobState[] | undefined,
    queue: texts("queue"),
    name: texts("name"),
    lane: text("lane"),
    key: text("key"),
    workflow: text("workflow"),
    batch: text("batch"),
    trace: text("trace"),
    since: instant("since"),
    until: instant("until"),
    errorGroup: text("errorGroup"),
    retrying,
    search: text("search") === "" ? undefined : text("search"),
    ...wordTextsOf(text),
    payload: texts("payload"),
  });
}

/**
 * A filter whose ages are instants: what is asked for now must be what is done a minute later.
 *
 * @throws UsageError BAD_OPTION
 */
export function ageless({ age, ...filter }: FilterJson, now: number): FilterJson {
  if (age === undefined) return filter;
  const born = bornWithin(age, now);
  return defined({
    ...filter,
    since: born.since === undefined ? filter.since : Math.max(born.since, filter.since ?? 0),
    until: born.until === undefined ? filter.until : Math.min(born.until, filter.until ?? Infinity),
  });
}

/** The filter as the store takes it; its ages are instants by now. */
export function insightFilter(filter: FilterJson): InsightFilter {
  const {
    ids,
    state,
    queue,
    name,
    lane,
    key,
    workflow,
    batch,
    trace,
    since,
    until,
    errorGroup,
    retrying,
    search,
  } = filter;
  for (const one of state ?? [])
    if (!JOB_STATES.includes(one)) throw bad("state", `must be one of ${JOB_STATES.join(", ")}.`);
  if (errorGroup !== undefined && !/^[0-9a-f]{16}$/.test(errorGroup))
    throw bad("errorGroup", "must be what /errors gave as group.");
  return defined({
    ids: ids?.map((id) => id.toLowerCase()).filter(isId),
    states: state,
    queues: queue?.map((one) => checkName(one, "queue")),
    names: name?.map((one) => checkName(one, "name")),
    lane: lane === undefined ? undefined : checkText(lane, "lane"),
    key: key === undefined ? undefined : checkText(key, "key"),
    workflow: workflow === undefined ? undefined : checkRunId(workflow),
    batch: batch === undefined ? undefined : checkBatchId(batch),
    trace: trace === undefined ? undefined : checkTrace(trace),
    since,
    until,
    errorGroup,
    retrying: retrying === true ? true : undefined,
    search: search === undefined ? undefined : checkText(search, "search", 4_096),
    ...wordFilter(filter),
  });
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Without the keys whose value is undefined. */
export function defined<T extends object>(value: T): Defined<T> {
  return Object.fromEntries(Object.entries(value).filter(([, part]) => part !== undefined)) as Defined<T>;
}
