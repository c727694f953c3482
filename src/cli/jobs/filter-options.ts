/**
 * The filter options that commands on jobs share: parsing them, and listing the jobs that match.
 * Not here: actions on these jobs (bulk-action.ts).
 */
import { UsageError } from "../../errors.ts";
import type { Holdfast, Job, JobQuery, JobState } from "../../index.ts";
import type { CappedCount, InsightFilter } from "../../operate/browse.ts";
import { checkBatchId, checkRunId } from "../../operate/filter.ts";
import { countOf } from "../../operate/operations.ts";
import { INSTANT_HELP, instantOf, WINDOW_HELP, windowOf } from "../../values/instant.ts";
import { bornWithin, wordFilter } from "../../operate/filter-range.ts";
import { checkTrace } from "../../values/trace-id.ts";
import { parseSearch, SEARCH_WORDS } from "../../operate/search-words.ts";
import type { Option } from "../command.ts";
import type { Context } from "../command-context.ts";
import { relative, shownValue, table } from "../text.ts";
import { operatorOf } from "../../operate/operator.ts";

export const FILTER: Readonly<Record<string, Option>> = {
  state: {
    type: "string",
    short: "s",
    multiple: true,
    value: "state",
    help: "scheduled, ready, running, waiting, done, dead, cancelled; several with commas",
  },
  queue: { type: "string", short: "q", multiple: true, value: "name", help: "In these queues" },
  name: { type: "string", short: "n", multiple: true, value: "name", help: "With these job names" },
  lane: { type: "string", value: "text", help: "In this lane" },
  key: { type: "string", value: "text", help: "With this unique key" },
  workflow: { type: "string", value: "id", help: "Called or enqueued by this run" },
  batch: { type: "string", value: "id", help: "In this batch (an id from `batches list`)" },
  trace: {
    type: "string",
    value: "id",
    help: "Enqueued in this trace: its id (32 hex digits) or a traceparent",
  },
  error: { type: "string", value: "group", help: "In this failure group (from `errors list`)" },
  retrying: { type: "boolean", help: "Failed, and waiting for a retry" },
  search: { type: "string", value: "text", help: "With this text in the input, context or latest error" },
  since: {
    type: "string",
    value: "when",
    help: "Created at or after: 2026-01-31, 2026-01-31T12:00Z, or 2h (ago)",
  },
  until: { type: "string", value: "when", help: "Created before" },
  where: {
    type: "string",
    short: "w",
    multiple: true,
    value: "words",
    help: "Words of the dashboard's search: 'attempt:>3 age:>5m run:>10s ended:1h payload.user.id:42 worker:web-1 error:refused'",
  },
};

/** A filter while it is built. */
type Draft = { -readonly [K in keyof InsightFilter]: InsightFilter[K] | undefined };

/**
 * The filter of the options and of --where. Its ids may still be parts of ids (job-id.ts). Ages count from `now`: the database's
 * clock, if jobs are changed.
 */
export function filterOf(ctx: Context, now: number = Date.now()): InsightFilter {
  const options = paramsOfOptions(ctx);
  const { params: words, text, unknown } = parseSearch(ctx.strings("where").join(" "));
  if (unknown.length > 0)
    throw new UsageError(
      "BAD_OPTION",
      `--where has unknown words: ${unknown.join(", ")}. Known words: ${SEARCH_WORDS.map(({ word }) => word).join(", ")} (payload.user.id:42).`,
    );
  const said: Params = { ...words, ...(text === "" ? {} : { search: [text] }) };
  // An instant in --where replaces the option's; any other part may be given in one place only.
  const twice = Object.keys(said).find((param) => !isInstant(param) && Object.hasOwn(options, param));
  if (twice !== undefined)
    throw new UsageError(
      "BAD_OPTION",
      `${twice === "failureGroup" ? "error" : twice} is given both as an option and in --where. Omit one.`,
    );
  const params: Params = { ...options, ...said };
  const one = (param: string): string | undefined => {
    const values = params[param];
    if (values !== undefined && values.length > 1)
      throw new UsageError("BAD_OPTION", `--where has ${param} twice.`, { details: { option: param } });
    return values?.[0];
  };
  const many = (param: string): string[] | undefined => params[param]?.flatMap((value) => value.split(","));
  const at = (param: "since" | "until"): number | undefined => {
    const value = one(param);
    const name = Object.hasOwn(said, param) ? `where ${param}:` : param;
    return value === undefined ? undefined : instant(value, name, now).getTime();
  };
  const age = one("age");
  const born = age === undefined ? {} : bornWithin(age, now);
  const [since, until] = [at("since"), at("until")];
  const filter: Draft = {
    ids: many("ids"),
    states: many("state") as JobState[] | undefined,
    queues: many("queue"),
    names: many("name"),
    lane: one("lane"),
    key: one("key"),
    workflow: one("workflow"),
    batch: one("batch"),
    trace: one("trace"),
    failureGroup: one("failureGroup"),
    retrying: params["retrying"] === undefined ? undefined : true,
    search: one("search"),
    // An age narrows the instants.
    since: Math.max(since ?? -Infinity, born.since ?? -Infinity),
    until: Math.min(until ?? Infinity, born.until ?? Infinity),
    ...wordFilter({
      ...given("attempt", one("attempt")),
      ...given("run", one("run")),
      ...given("worker", one("worker")),
      ...given("error", one("error")),
      ...given("ended", endedOf(one("ended"), now)),
      ...given("payload", params["payload"]),
    }),
  };
  return Object.fromEntries(
    Object.entries(filter).filter(
      ([, part]) => part !== undefined && part !== Infinity && part !== -Infinity,
    ),
  );
}

type Params = Readonly<Record<string, readonly string[]>>;

/** The options, by the parameters of the words that mean the same. */
function paramsOfOptions(ctx: Context): Params {
  const params: Record<string, readonly string[]> = {};
  for (const option of ["state", "queue", "name"]) {
    const values = ctx.list(option);
    if (values !== undefined) params[option] = values;
  }
  for (const option of ["lane", "key", "workflow", "batch", "trace", "search", "since", "until"]) {
    const value = ctx.string(option);
    if (value !== undefined) params[option] = [value];
  }
  const group = ctx.string("error");
  if (group !== undefined && !/^[0-9a-f]{16}$/.test(group))
    throw new UsageError(
      "BAD_OPTION",
      "--error takes a failure group from `holdfast errors list`: 16 hex digits.",
    );
  if (group !== undefined) params["failureGroup"] = [group];
  if (ctx.flag("retrying")) params["retrying"] = ["true"];
  return params;
}

function isInstant(param: string): boolean {
  return param === "since" || param === "until";
}

function given<Name extends string, Value>(name: Name, value: Value | undefined): { [K in Name]?: Value } {
  return (value === undefined ? {} : { [name]: value }) as { [K in Name]?: Value };
}

interface Page {
  readonly jobs: readonly Job[];
  readonly cursor: string | null;
  /** The search stopped at its bound: more jobs may match behind the cursor. */
  readonly cut?: boolean;
}

/** Pages of the jobs that match, newest first. */
export class Search {
  readonly #hf: Holdfast;
  readonly #filter: InsightFilter;
  /** The filter of `hf.jobs`, which counts exactly; null if only a bounded search can answer. */
  readonly #query: JobQuery | null;

  constructor(hf: Holdfast, filter: InsightFilter) {
    this.#hf = hf;
    this.#filter = checked(filter);
    const { ids, states, queues, names, lane, key, workflow, batch, search, since, until, ...rest } = filter;
    // No index has traces or failures, so these filters search piece by piece, up to a bound.
    this.#query =
      Object.keys(rest).length > 0
        ? null
        : {
            ids,
            state: states,
            queue: queues,
            name: names,
            lane,
            key,
            workflow,
            batch,
            search,
            since,
            until,
          };
  }

  async count(): Promise<CappedCount> {
    if (this.#query === null) return countOf(operatorOf(this.#hf).store.insight, this.#filter);
    return { count: await this.#hf.jobs.count(this.#query), more: false };
  }

  async page(limit: number, cursor: string | null): Promise<Page> {
    if (this.#query !== null) return this.#hf.jobs.list({ ...this.#query, limit, cursor });
    const found = await operatorOf(this.#hf).store.insight.browse(this.#filter, { limit, cursor });
    const ids = found.jobs.map(({ id }) => id);
    const { jobs } = ids.length === 0 ? { jobs: [] } : await this.#hf.jobs.list({ ids, limit: ids.length });
    return { jobs, cursor: found.cursor, ...(found.cut ? { cut: true } : {}) };
  }
}

/**
 * The filter with checked ids: an unknown id must not match everything.
 *
 * @throws UsageError BAD_OPTION
 */
export function checked(filter: InsightFilter): InsightFilter {
  const { workflow, batch, trace } = filter;
  return {
    ...filter,
    ...(workflow === undefined ? {} : { workflow: checkRunId(workflow) }),
    ...(batch === undefined ? {} : { batch: checkBatchId(batch) }),
    ...(trace === undefined ? {} : { trace: checkTrace(trace) }),
  };
}

/** A date, or a duration before now. */
export function instant(text: string, what: string, now: number = Date.now()): Date {
  const at = instantOf(text, now);
  if (at !== null) return new Date(at);
  throw new UsageError("BAD_INSTANT", `--${what} takes ${INSTANT_HELP}; got ${JSON.stringify(text)}.`);
}

function endedOf(text: string | undefined, now: number): string | undefined {
  if (text === undefined) return undefined;
  const window = windowOf(text, now);
  if (window !== null) return window;
  throw new UsageError("BAD_INSTANT", `--where ended: takes ${WINDOW_HELP}; got ${JSON.stringify(text)}.`);
}

const tones = { done: "good", dead: "bad", cancelled: "dim", running: "accent", ready: "bold" } as const;

/** Jobs as a table. On a terminal each row fits one line; piped output is never cut, so that it can be searched. */
export function jobTable(ctx: Context, jobs: readonly Job[], now: number): string {
  const { isTTY, columns } = ctx.io.stdout;
  return table(
    [
      { title: "id", cell: ({ id }) => id },
      { title: "state", cell: ({ state }) => state, spare: 5 },
      { title: "name", cell: ({ name }) => name, least: 16, spare: 4 },
      { title: "queue", cell: ({ queue }) => queue, least: 12, spare: 2 },
      {
        title: "attempt",
        align: "right",
        spare: 1,
        cell: ({ attempt, maxAttempts }) => `${attempt}/${maxAttempts}`,
      },
      { title: "created", align: "right", spare: 0, cell: ({ createdAt }) => relative(createdAt, now) },
      {
        title: "details",
        least: 24,
        spare: 3,
        cell: (job) => detailOf(job, now, isTTY ? columns : Infinity),
      },
    ],
    jobs,
    (text, column, job) => {
      if (job === null) return ctx.paint("dim", text);
      const tone = column === "state" ? tones[job.state as keyof typeof tones] : undefined;
      return tone === undefined ? text : ctx.paint(tone, text);
    },
    isTTY ? columns : Infinity,
  );
}

function detailOf(job: Job, now: number, most: number): string {
  if (job.error !== null && job.state !== "done") return job.error;
  if (job.state === "scheduled") return `due ${relative(job.runAt, now)}`;
  return shownValue(job.input, most);
}
