/**
 * The filter options that commands on jobs share, turned into the filter of `hf.jobs`; and acting on what it finds.
 */
import { userInfo } from "node:os";
import { UsageError } from "../errors.ts";
import type { Holdfast, Job, JobQuery, JobState } from "../index.ts";
import type { CappedCount, InsightFilter } from "../insight.ts";
import {
  actionFilter,
  actOn,
  type BulkVerb,
  checkRate,
  type Driven,
  type KeptEdit,
  Operations,
  type Task,
} from "../operations.ts";
import { durationMs } from "../policy/duration.ts";
import { type InputPatch, patched } from "../policy/patch.ts";
import { bornWithin, wordFilter, type WordFilter } from "../policy/range.ts";
import { parseSearch, SEARCH_WORDS } from "../policy/words.ts";
import type { Option } from "./command.ts";
import type { Context } from "./context.ts";
import { rateOf, rateText } from "./rate.ts";
import { grouped, json, oneLine, relative, shownValue, table } from "./text.ts";

export const FILTER: Readonly<Record<string, Option>> = {
  state: {
    type: "string",
    short: "s",
    multiple: true,
    value: "state",
    help: "scheduled, ready, running, waiting, done, dead, cancelled; several with commas",
  },
  queue: { type: "string", short: "q", multiple: true, value: "name", help: "Of these queues" },
  name: { type: "string", short: "n", multiple: true, value: "kind", help: "Of these kinds" },
  lane: { type: "string", value: "text", help: "Of this lane" },
  key: { type: "string", value: "text", help: "With this unique key" },
  error: { type: "string", value: "group", help: "With this error, as `errors list` names it" },
  retrying: { type: "boolean", help: "That failed and will try again" },
  search: { type: "string", value: "text", help: "Whose input, context or latest error contains this" },
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
    help: "As in the dashboard's search: 'attempt:>3 age:>5m run:>10s payload.user.id:42 worker:web-1 error:refused'",
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

/** The filter that the options say. */
export function filterOf(ctx: Context): Wanted {
  const filter: { -readonly [K in keyof Wanted]: Wanted[K] } = {};
  const states = ctx.list("state");
  if (states !== undefined) filter.state = states as JobState[];
  const queues = ctx.list("queue");
  if (queues !== undefined) filter.queue = queues;
  const names = ctx.list("name");
  if (names !== undefined) filter.name = names;
  for (const option of ["lane", "key", "search"] as const) {
    const value = ctx.string(option);
    if (value !== undefined) filter[option] = value;
  }
  for (const option of ["since", "until"] as const) {
    const value = ctx.string(option);
    if (value !== undefined) filter[option] = instant(value, option);
  }
  const error = ctx.string("error");
  if (error !== undefined) {
    if (!/^[0-9a-f]{16}$/.test(error))
      throw new UsageError(
        "BAD_OPTION",
        "--error takes a group as `holdfast errors list` names it: 16 hex digits.",
      );
    filter.error = error;
  }
  if (ctx.flag("retrying")) filter.retrying = true;
  return withWords(filter, ctx.strings("where").join(" "));
}

/** The filter with what the words say. A word for what an option says as well is refused: which of them should hold? */
function withWords(filter: Wanted, given: string): Wanted {
  if (given.trim() === "") return filter;
  const { params, text, unknown } = parseSearch(given);
  if (unknown.length > 0)
    throw new UsageError(
      "BAD_OPTION",
      `--where does not know ${unknown.join(", ")}. There are: ${SEARCH_WORDS.map(({ word }) => word).join(", ")} (payload.user.id:42).`,
    );
  const one = (param: string): string | undefined => {
    const values = params[param];
    if (values !== undefined && values.length > 1)
      throw new UsageError("BAD_OPTION", `--where has ${param} twice.`, { details: { option: param } });
    return values?.[0];
  };
  const many = (param: string): string[] | undefined => params[param]?.flatMap((value) => value.split(","));
  const [since, until, age] = [one("since"), one("until"), one("age")];
  const born = age === undefined ? {} : bornWithin(age, Date.now());
  const [attempt, run, worker, error] = [one("attempt"), one("run"), one("worker"), one("error")];
  const words = wordFilter({
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
    error: one("errorGroup"),
    search: text === "" ? undefined : text,
    since: since === undefined ? born.since : instant(since, "where since:"),
    until: until === undefined ? born.until : instant(until, "where until:"),
    words: Object.keys(words).length === 0 ? undefined : words,
  };
  const known = Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined));
  const twice = Object.keys(known).find((name) => Object.hasOwn(filter, name));
  if (twice !== undefined)
    throw new UsageError("BAD_OPTION", `${twice} is given both as an option and in --where: leave one out.`);
  return { ...filter, ...known };
}

interface Page {
  readonly jobs: readonly Job[];
  readonly cursor: string | null;
  /** The bound of one search was reached: there may be more behind the cursor. */
  readonly cut?: boolean;
}

/** The jobs that are wanted, newest first, page by page. */
export class Search {
  readonly #hf: Holdfast;
  readonly #wanted: JobQuery;
  /** Set where the wish is one that only the dashboard's looks can answer. */
  readonly #look: InsightFilter | null;

  constructor(hf: Holdfast, wanted: Wanted) {
    const { error, retrying, words, ...query } = wanted;
    this.#hf = hf;
    this.#wanted = query;
    const plain = error === undefined && retrying === undefined && words === undefined;
    this.#look = plain ? null : lookOf(wanted);
  }

  async count(): Promise<CappedCount> {
    if (this.#look !== null) return (await this.#hf.internals.store.insight.tally(this.#look)).total;
    return { count: await this.#hf.jobs.count(this.#wanted), more: false };
  }

  async page(limit: number, cursor: string | null): Promise<Page> {
    if (this.#look === null) return this.#hf.jobs.list({ ...this.#wanted, limit, cursor });
    const found = await this.#hf.internals.store.insight.browse(this.#look, { limit, cursor });
    const ids = found.jobs.map(({ id }) => id);
    const { jobs } = ids.length === 0 ? { jobs: [] } : await this.#hf.jobs.list({ ids, limit: ids.length });
    return { jobs, cursor: found.cursor, ...(found.cut ? { cut: true } : {}) };
  }
}

/** The same as the dashboard's looks take it. */
function lookOf({
  state,
  queue,
  name,
  since,
  until,
  lane,
  key,
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
    ...(search === undefined ? {} : { search }),
    ...(since === undefined ? {} : { since: Number(since) }),
    ...(until === undefined ? {} : { until: Number(until) }),
    ...(error === undefined ? {} : { errorGroup: error }),
    ...(retrying === undefined ? {} : { retrying }),
    ...(ids === undefined ? {} : { ids }),
    ...words,
  };
}

/** "1,234", and "10,000+" where counting stopped. */
function shownCount({ count, more }: CappedCount): string {
  return `${grouped(count)}${more ? "+" : ""}`;
}

/** A date, or how long ago. */
export function instant(text: string, what: string): Date {
  if (/^\d+(\.\d+)?(w|d|h|m|s|ms)/.test(text)) return new Date(Date.now() - durationMs(text, `--${what}`));
  const date = new Date(text);
  if (!Number.isNaN(date.getTime())) return date;
  throw new UsageError(
    "BAD_INSTANT",
    `--${what} takes a date (2026-01-31, 2026-01-31T12:00Z) or how long ago (90s, 2h, 7d); got ${JSON.stringify(text)}.`,
  );
}

const tones = { done: "good", dead: "bad", cancelled: "dim", running: "accent", ready: "bold" } as const;

/** Jobs as a table for people. */
export function jobTable(ctx: Context, jobs: readonly Job[], now: number): string {
  return table(
    [
      { title: "id", cell: ({ id }) => id },
      { title: "state", cell: ({ state }) => state },
      { title: "kind", cell: ({ name }) => name, most: 32 },
      { title: "queue", cell: ({ queue }) => queue, most: 24 },
      { title: "attempt", align: "right", cell: ({ attempt, maxAttempts }) => `${attempt}/${maxAttempts}` },
      { title: "created", align: "right", cell: ({ createdAt }) => relative(createdAt, now) },
      {
        title: "about",
        most: Math.max(30, ctx.io.stdout.columns - 110),
        cell: (job) => about(job, now),
      },
    ],
    jobs,
    (text, column, job) => {
      if (job === null) return ctx.paint("dim", text);
      const tone = column === 1 ? tones[job.state as keyof typeof tones] : undefined;
      return tone === undefined ? text : ctx.paint(tone, text);
    },
  );
}

function about(job: Job, now: number): string {
  if (job.error !== null && job.state !== "done") return job.error;
  if (job.state === "scheduled") return `due ${relative(job.runAt, now)}`;
  return shownValue(job.input);
}

const batch = 500;
const samples = 5;

/** What is done to jobs, by ids or by a filter. */
export interface BulkCommand extends Pick<Task, "action"> {
  readonly change?: KeptEdit;
  readonly patch?: InputPatch;
  /** Asks first even where ids are given. */
  readonly destructive?: boolean;
}

/** For commands that act on many jobs. */
export const RATE: Readonly<Record<"rate", Option>> = {
  rate: { type: "string", value: "n/time", help: "At most so many: 50/s, 600/1m; with a filter" },
};

/**
 * Acts on ids, or on all jobs that the filter finds: says how many first, asks, shows progress, says what became of them. By
 * filter it is an operation, which every dashboard and `holdfast operations` can see, pause, go on with and stop.
 */
export async function bulk(ctx: Context, command: BulkCommand): Promise<number> {
  const verb = verbOf(command.action);
  const hf = await ctx.client();
  const filter = filterOf(ctx);
  const rate = ctx.string("rate");
  const perRate = rate === undefined ? null : checkRate(rateOf(rate));
  if (ctx.args.length > 0) {
    if (Object.keys(filter).length > 0 || perRate !== null)
      throw new UsageError("BAD_OPTION", `${verb} takes ids or a filter (with --rate), not both.`);
    return byIds(ctx, hf, command);
  }
  if (Object.keys(filter).length === 0)
    throw new UsageError(
      "BAD_OPTION",
      `jobs ${verb} needs ids, or a filter such as --state dead --queue mail. With a filter, --dry-run tells how many.`,
    );
  const look = actionFilter(command.action, lookOf(filter));
  const until = filter.until ?? new Date(Date.now() + 1_000);
  const search = new Search(hf, {
    ...filter,
    ...(look.states === undefined ? {} : { state: look.states }),
    until,
  });
  const total = await search.count();
  const matched = total.count;
  const none = matched === 0 && !total.more;
  const first = none ? [] : (await search.page(samples, null)).jobs;
  if (ctx.flag("dry-run")) {
    tellDryRun(ctx, verb, total, first, command.patch);
    return 0;
  }
  if (none) {
    ctx.result({ matched: 0 }, () => "No job matches.");
    return 0;
  }
  if (!(await ctx.confirm(`${capital(verb)} ${shownCount(total)} ${matched === 1 ? "job" : "jobs"}?`)))
    return 1;
  const task: Task = {
    action: command.action,
    filter: { ...look, until: Number(until) },
    change: command.change ?? null,
    patch: command.patch ?? null,
    rate: perRate,
  };
  const operations = new Operations(hf);
  return follow(ctx, operations, await operations.start(task, ACTOR));
}

/** Shows how far it is until it is over, or somebody else has it; what is broken off here is paused. */
export async function follow(ctx: Context, operations: Operations, driven: Driven): Promise<number> {
  const { action, rate, total } = driven.now();
  const show = ctx.progress(verbOf(action));
  const { signal } = ctx.io;
  const breakOff = (): void => void operations.pause(driven.id, ACTOR).catch(() => {});
  signal.addEventListener("abort", breakOff, { once: true });
  if (signal.aborted) breakOff();
  if (rate !== null && !ctx.json)
    ctx.note(
      ctx.paintError(
        "dim",
        `${rateText(rate.limit, rate.perMs)}; from elsewhere: holdfast operations pause ${driven.id}`,
      ),
    );
  const ticking = setInterval(() => {
    const { matched } = driven.now();
    if (matched < total.count) show(matched, total.count);
  }, 250);
  const last = await driven.left;
  clearInterval(ticking);
  signal.removeEventListener("abort", breakOff);
  show(last.matched, Math.max(last.matched, last.state === "done" ? last.matched : total.count));
  const { matched, state } = last;
  const whole = state === "done";
  ctx.result(
    { matched, ...last.outcomes, ...(whole && rate === null ? {} : { operation: last.id, state }) },
    () =>
      whole
        ? countsText(last.outcomes)
        : `${countsText(last.outcomes)}; ${state}. Go on: holdfast operations resume ${last.id}`,
  );
  return whole ? 0 : 1;
}

export const ACTOR = `cli: ${userName()}`;

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return "somebody"; // a container's user may have no name
  }
}

function verbOf(action: BulkVerb): string {
  return action === "run-now" ? "run" : action;
}

async function byIds(
  ctx: Context,
  hf: Holdfast,
  { action, change, patch, destructive }: BulkCommand,
): Promise<number> {
  const { args } = ctx;
  const verb = verbOf(action);
  const noun = args.length === 1 ? "job" : "jobs";
  if (ctx.flag("dry-run")) {
    const { jobs } = await hf.jobs.list({ ids: args, limit: Math.min(1_000, Math.max(1, args.length)) });
    const total = { count: jobs.length, more: false };
    tellDryRun(ctx, verb, total, jobs.slice(0, samples), patch);
    return 0;
  }
  if (destructive === true && !(await ctx.confirm(`${capital(verb)} ${args.length} ${noun}?`))) return 1;
  const counts: Record<string, number> = {};
  for (let i = 0; i < args.length; i += batch)
    add(
      counts,
      await actOn(hf, { action, change: change ?? null, patch: patch ?? null }, args.slice(i, i + batch)),
    );
  const acted = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const missing = args.length - acted;
  if (missing > 0) counts["not_found"] = (counts["not_found"] ?? 0) + missing;
  ctx.result({ matched: args.length, ...counts }, () => countsText(counts));
  return (counts["not_found"] ?? 0) > 0 ? 1 : 0;
}

function add(counts: Record<string, number>, more: Readonly<Record<string, number>>): void {
  for (const [outcome, count] of Object.entries(more))
    if (outcome !== "matched" && count > 0) counts[outcome] = (counts[outcome] ?? 0) + count;
}

function tellDryRun(
  ctx: Context,
  verb: string,
  total: CappedCount,
  first: readonly Job[],
  patch: InputPatch | undefined,
): void {
  const { count, more } = total;
  const changes =
    patch === undefined
      ? []
      : first.map(({ id, input }) => {
          const before = json(input);
          return { id, before, after: patched(before, patch) };
        });
  ctx.result(
    {
      dryRun: true,
      matched: count,
      ...(more ? { more: true } : {}),
      samples: first,
      ...(patch === undefined ? {} : { patched: changes }),
    },
    () =>
      [
        dryRunText(ctx, verb, total, first),
        ...changes.map(
          ({ id, before, after }) =>
            `\n${id}\n${ctx.paint("bad", `- ${oneLine(before)}`)}\n${after === null ? ctx.paint("warn", "the patch does not fit: it stays as it is") : ctx.paint("good", `+ ${oneLine(after)}`)}`,
        ),
      ].join("\n"),
  );
}

function dryRunText(ctx: Context, verb: string, total: CappedCount, first: readonly Job[]): string {
  const { count, more } = total;
  const head = `${verb} would meet ${shownCount(total)} ${count === 1 && !more ? "job" : "jobs"}. Nothing was done.`;
  if (first.length === 0) return head;
  const rest = { count: count - first.length, more };
  return `${head}\n\n${jobTable(ctx, first, Date.now())}${rest.count > 0 || more ? `\n… and ${shownCount(rest)} more` : ""}`;
}

function countsText(counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts).map(
    ([outcome, count]) => `${grouped(count)} ${outcome.replaceAll("_", " ")}`,
  );
  return parts.length === 0 ? "Nothing was done." : oneLine(parts.join(", "));
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
