/**
 * Requests, checked against the schema of their route: query strings and JSON bodies become typed values, or a 400 that
 * names the field. An unknown parameter is refused: a misspelt filter would otherwise show (or delete) everything.
 */
import { checkBatchId, checkRunId } from "../../operate/filter.ts";
import type { InsightFilter } from "../../operate/browse.ts";
import { isId } from "../../values/id.ts";
import { checkName, checkText } from "../../values/name.ts";
import { bornWithin, wordFilter } from "../../operate/filter-range.ts";
import { checkTrace } from "../../values/trace-id.ts";
import type { FilterJson } from "./contract.ts";
import { ApiError } from "../http.ts";
import { JOB_STATES } from "../../operate/index.ts";
import type { ObjectSchema, Schema } from "./schema.ts";

export function bad(field: string, message: string): ApiError {
  return new ApiError("BAD_REQUEST", `${field} ${message}`, { field });
}

/**
 * The parameters of a query string. One that the schema does not have is refused; an absent one takes its default.
 *
 * @throws ApiError 400
 */
export function readQuery(schema: ObjectSchema | undefined, params: URLSearchParams): object {
  const known = schema?.properties ?? {};
  for (const [name, value] of params) {
    if (!Object.hasOwn(known, name)) throw unknown(name, "parameter", known);
    // Postgres takes it in no text.
    if (value.includes("\0")) throw bad(name, "must not contain a NUL character.");
  }
  return defined(
    Object.fromEntries(
      Object.entries(known).map(([name, one]) => [
        name,
        params.has(name) ? parameter(name, one, params.getAll(name)) : one.default,
      ]),
    ),
  );
}

function parameter(name: string, schema: Schema, given: readonly string[]): unknown {
  const [text = "", ...more] = given;
  if (schema.type !== "array" && more.length > 0) throw bad(name, "must be given once.");
  if (schema.type === "boolean") return text === "true";
  if (schema.type === "integer") {
    if (!/^\d{1,16}$/.test(text)) throw outside(name, schema);
    return checked(schema, Number(text), name);
  }
  if (schema.type !== "array") return checked(schema, text, name);
  const values =
    schema.explode === true ? given : given.flatMap((one) => one.split(",")).filter((one) => one !== "");
  return values.length === 0 ? undefined : checked(schema, values, name);
}

/**
 * A JSON body. A field that the schema does not have is refused.
 *
 * @throws ApiError 400
 */
export function readBody(schema: ObjectSchema | undefined, body: unknown): object {
  return fields(schema ?? { properties: {}, required: [] }, body as object, "");
}

function fields(schema: Pick<ObjectSchema, "properties" | "required">, value: object, at: string): object {
  const given = Object.entries(value);
  for (const [name] of given)
    if (!Object.hasOwn(schema.properties, name)) throw unknown(name, "field", schema.properties, at);
  for (const name of schema.required)
    if (!Object.hasOwn(value, name)) throw bad(`${at}${name}`, "must be given.");
  return Object.fromEntries(
    given.map(([name, one]) => [name, checked(schema.properties[name] as Schema, one, `${at}${name}`)]),
  );
}

/** The value, if the schema allows it. */
function checked(schema: Schema, value: unknown, field: string): unknown {
  const [whole] = schema.oneOf ?? [];
  if (whole !== undefined) return value === null ? null : checked(whole, value, field);
  const types = [schema.type ?? []].flat();
  if (types.length === 0 || (value === null && types.includes("null"))) return value;
  if (types.includes("array")) return texts(schema, value, field);
  if (types.includes("object")) {
    if (typeof value !== "object" || value === null || Array.isArray(value))
      throw bad(field, "must be an object.");
    const { properties, required = [] } = schema;
    return properties === undefined ? value : fields({ properties, required }, value, `${field}.`);
  }
  if (types.includes("string") && typeof value === "string") {
    if (schema.enum === undefined || schema.enum.includes(value)) return value;
    throw bad(field, `must be one of ${schema.enum.join(", ")}.`);
  }
  if (types.includes("boolean") && typeof value === "boolean") return value;
  if (types.includes("number") && typeof value === "number") return value;
  const { minimum = -Infinity, maximum = Infinity } = schema;
  if (types.includes("integer") && Number.isSafeInteger(value)) {
    if ((value as number) >= minimum && (value as number) <= maximum) return value;
    throw outside(field, schema);
  }
  if (types.includes("integer") && schema.minimum !== undefined) throw outside(field, schema);
  const wanted = types.map((type) => words[type] ?? type);
  throw bad(field, `must be ${wanted.join(" or ")}.`);
}

const words: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  integer: "an integer",
  boolean: "true or false",
};

function texts({ maxItems = 1_000, items }: Schema, value: unknown, field: string): readonly unknown[] {
  const all: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (all.length > maxItems || !all.every((one) => typeof one === "string"))
    throw bad(field, `must be a string or an array of at most ${maxItems.toLocaleString("en")} strings.`);
  return all.map((one) => checked(items ?? {}, one, field));
}

function outside(field: string, { minimum, maximum }: Schema): ApiError {
  return bad(field, `must be an integer from ${minimum} to ${maximum}.`);
}

function unknown(name: string, what: "field" | "parameter", known: object, at = ""): ApiError {
  const all = Object.keys(known).join(", ") || "none";
  return bad(`${at}${name.slice(0, 60)}`, `is not a ${what}. There are: ${all}.`);
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
    failureGroup,
    retrying,
    search,
  } = filter;
  for (const one of state ?? [])
    if (!JOB_STATES.includes(one)) throw bad("state", `must be one of ${JOB_STATES.join(", ")}.`);
  if (failureGroup !== undefined && !/^[0-9a-f]{16}$/.test(failureGroup))
    throw bad("failureGroup", "must be a `group` of /errors.");
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
    failureGroup,
    retrying: retrying === true ? true : undefined,
    search: search === undefined || search === "" ? undefined : checkText(search, "search", 4_096),
    ...wordFilter(filter),
  });
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Without the keys whose value is undefined. */
export function defined<T extends object>(value: T): Defined<T> {
  return Object.fromEntries(Object.entries(value).filter(([, part]) => part !== undefined)) as Defined<T>;
}
