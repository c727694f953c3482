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
import { bornWithin, wordFilter, type WordFilter } from "../../operate/filter-range.ts";
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

/** Which jobs: what `hf.jobs` knows, and what only the looks of the dashboard do. */
export interface Wanted extends JobQuery {
  /** The fingerprint of the latest failure. */
  readonly error?: string;
  readonly retrying?: true;
  /** What only words can say. */
  readonly words?: WordFilter;
}

/** The filter that the options say. `now`: what an age counts from; the database's, where jobs are acted on. */
export function filterOf(ctx: Context, now: number = Date.now()): Wanted {
  const filter: { -readonly [K in keyof Wanted]: Wanted[K] } = {};
  const states = ctx.list("state");
  if (states !== undefined) filter.state = states as JobState[];
  const queues = ctx.list("queue");
  if (queues !== undefined) filter.queue = queues;
  const names = ctx.list("name");
  if (names !== undefined) filter.name = names;
  for (const option of ["lane", "key", "workflow", "batch", "trace", "search"] as const) {
    const value = ctx.string(option);
    if (value !== undefined) filter[option] = value;
  }
  for (const option of ["since", "until"] as const) {
    const value = ctx.string(option);
    if (value !== undefined) filter[option] = instant(value, option, now);
  }
  const error = ctx.string("error");
  if (error !== undefined) {
    if (!/^[0-9a-f]{16}$/.test(error))
      throw new UsageError(
        "BAD_OPTION",
        "--error takes a failure group from `holdfast errors list`: 16 hex digits.",
      );
    filter.error = error;
  }
  if (ctx.flag("retrying")) filter.retrying = true;
  return withWords(filter, ctx.strings("where").join(" "), now);
}

/** The filter with what the words say. A word for what an option says as well is refused: which of them should hold? */
function withWords(filter: Wanted, given: string, now: number): Wanted {
  if (given.trim() === "") return filter;
  const { params, text, unknown } = parseSearch(given);
  if (unknown.length > 0)
    throw new UsageError(
      "BAD_OPTION",
      `--where has unknown words: ${unknown.join(", ")}. Known words: ${SEARCH_WORDS.map(({ word }) => word).join(", ")} (payload.user.id:42).`,
    );
  const one = (param: string): string | undefined => {
    const values = params[param];
    if (values !== undefined && values.length > 1)
      throw new UsageError("BAD_OPTION", `--where has ${param} twice.`, { details: { option: param } });
    return values?.[0];
  };
  const many = (param: string): string[] | undefined => params[param]?.flatMap((value) => value.split(","));
  const [since, until, age] = [one("since"), one("until"), one("age")];
  const born = age === undefined ? {} : bornWithin(age, now);
  // An age narrows what an option or another word says of the same.
  const after = since === undefined ? filter.since : instant(since, "where since:", now);
  const before = until === undefined ? filter.until : instant(until, "where until:", now);
  const [attempt, run, worker, error] = [one("attempt"), one("run"), one("worker"), one("error")];
  const ended = one("ended");
  const words = wordFilter({
    ...(ended === undefined ? {} : { ended: endedOf(ended, now) }),
    ...(attempt === undefined ? {} : { attempt }),
    ...(run === undefined ? {} : { run }),
    ...(worker === undefined ? {} : { worker }),
    ...(error === undefined ? {} : { error }),
    ...(params["payload"] === undefined ? {} : { payload: params["payload"] }),
  });
  const said: Record<string, unknown> = {
    ids: many("ids"),
    state: many("state"),
    queue: many("queue"),
    name: many("name"),
    lane: one("lane"),
    key: one("key"),
    workflow: one("workflow"),
    batch: one("batch"),
    trace: one("trace"),
    error: one("errorGroup"),
    search: text === "" ? undefined : text,
    since,
    until,
    words: Object.keys(words).length === 0 ? undefined : words,
  };
  const known = Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined));
  const twice = Object.keys(known).find((name) => Object.hasOwn(filter, name));
  if (twice !== undefined)
    throw new UsageError("BAD_OPTION", `${twice} is given both as an option and in --where. Omit one.`);
  const from = Math.max(Number(after ?? -Infinity), born.since ?? -Infinity);
  const to = Math.min(Number(before ?? Infinity), born.until ?? Infinity);
  return {
    ...filter,
    ...known,
    ...(from === -Infinity ? {} : { since: new Date(from) }),
    ...(to === Infinity ? {} : { until: new Date(to) }),
  };
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
  readonly #wanted: JobQuery;
  /** Set where the wish is one that only the dashboard's looks can answer. */
  readonly #look: InsightFilter | null;

  constructor(hf: Holdfast, wanted: Wanted) {
    const { error, retrying, words, ...query } = wanted;
    this.#hf = hf;
    this.#wanted = query;
    // No index has traces: a look goes through them piece by piece, and stops at its bound.
    const asked = [error, retrying, words, query.trace].some((part) => part !== undefined);
    this.#look = asked ? lookOf(wanted) : null;
  }

  async count(): Promise<CappedCount> {
    if (this.#look !== null) return countOf(operatorOf(this.#hf).store.insight, this.#look);
    return { count: await this.#hf.jobs.count(this.#wanted), more: false };
  }

  async page(limit: number, cursor: string | null): Promise<Page> {
    if (this.#look === null) return this.#hf.jobs.list({ ...this.#wanted, limit, cursor });
    const found = await operatorOf(this.#hf).store.insight.browse(this.#look, { limit, cursor });
    const ids = found.jobs.map(({ id }) => id);
    const { jobs } = ids.length === 0 ? { jobs: [] } : await this.#hf.jobs.list({ ids, limit: ids.length });
    return { jobs, cursor: found.cursor, ...(found.cut ? { cut: true } : {}) };
  }
}

/** The same as the dashboard's looks take it. */
export function lookOf({
  state,
  queue,
  name,
  since,
  until,
  lane,
  key,
  workflow,
  batch,
  trace,
  search,
  error,
  retrying,
  words,
  ids,
}: Wanted): InsightFilter {
  const list = <T extends string>(value: T | readonly T[]): readonly T[] =>
    typeof value === "string" ? [value] : value;
  return {
    ...(state === undefined ? {} : { states: list(state) }),
    ...(queue === undefined ? {} : { queues: list(queue) }),
    ...(name === undefined ? {} : { names: list(name) }),
    ...(lane === undefined ? {} : { lane }),
    ...(key === undefined ? {} : { key }),
    ...(workflow === undefined ? {} : { workflow: checkRunId(workflow) }),
    ...(batch === undefined ? {} : { batch: checkBatchId(batch) }),
    ...(trace === undefined ? {} : { trace: checkTrace(trace) }),
    ...(search === undefined ? {} : { search }),
    ...(since === undefined ? {} : { since: Number(since) }),
    ...(until === undefined ? {} : { until: Number(until) }),
    ...(error === undefined ? {} : { errorGroup: error }),
    ...(retrying === undefined ? {} : { retrying }),
    ...(ids === undefined ? {} : { ids }),
    ...words,
  };
}

/** A date, or a duration before now. */
export function instant(text: string, what: string, now: number = Date.now()): Date {
  const at = instantOf(text, now);
  if (at !== null) return new Date(at);
  throw new UsageError("BAD_INSTANT", `--${what} takes ${INSTANT_HELP}; got ${JSON.stringify(text)}.`);
}

function endedOf(text: string, now: number): string {
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
