/**
 * The filter options that commands on jobs share, turned into the filter of `hf.jobs`; and acting on what it finds.
 */
import { UsageError } from "../errors.ts";
import type { Holdfast, Job, JobQuery, JobState } from "../index.ts";
import type { CappedCount, InsightFilter } from "../insight.ts";
import { durationMs } from "../policy/duration.ts";
import type { Option } from "./command.ts";
import type { Context } from "./context.ts";
import { grouped, oneLine, relative, shownValue, table } from "./text.ts";

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
};

/** Which jobs: what `hf.jobs` knows, and what only the looks of the dashboard do. */
export interface Wanted extends JobQuery {
  /** The fingerprint of the latest failure. */
  readonly error?: string;
  readonly retrying?: true;
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
  return filter;
}

interface Page {
  readonly jobs: readonly Job[];
  readonly cursor: string | null;
}

/** The jobs that are wanted, newest first, page by page. */
export class Search {
  readonly #hf: Holdfast;
  readonly #wanted: JobQuery;
  /** Set where the wish is one that only the dashboard's looks can answer. */
  readonly #look: InsightFilter | null;

  constructor(hf: Holdfast, wanted: Wanted) {
    const { error, retrying, ...query } = wanted;
    this.#hf = hf;
    this.#wanted = query;
    this.#look =
      error === undefined && retrying === undefined
        ? null
        : { ...lookOf(query), ...troubled(error, retrying) };
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
    return { jobs, cursor: found.cursor };
  }
}

function troubled(error: string | undefined, retrying: true | undefined): InsightFilter {
  return {
    ...(error === undefined ? {} : { errorGroup: error }),
    ...(retrying === undefined ? {} : { retrying }),
  };
}

function lookOf({ state, queue, name, since, until, lane, key, search }: JobQuery): InsightFilter {
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

/** What an action does to ids in batches; gives how many became what. */
export type Act = (hf: Holdfast, ids: readonly string[]) => Promise<Readonly<Record<string, number>>>;

const batch = 500;
const samples = 5;

/**
 * Acts on ids, or on all jobs that the filter finds: says how many first, asks, shows progress, says what became of them.
 */
export async function bulk(
  ctx: Context,
  verb: string,
  act: Act,
  defaults: { readonly states?: readonly JobState[]; readonly destructive?: boolean },
): Promise<number> {
  const hf = await ctx.client();
  const filter = filterOf(ctx);
  if (ctx.args.length > 0) {
    if (Object.keys(filter).length > 0)
      throw new UsageError("BAD_OPTION", `${verb} takes ids or a filter, not both.`);
    return byIds(ctx, hf, verb, act, defaults.destructive === true);
  }
  if (Object.keys(filter).length === 0)
    throw new UsageError(
      "BAD_OPTION",
      `jobs ${verb} needs ids, or a filter such as --state dead --queue mail. With a filter, --dry-run tells how many.`,
    );
  const search = new Search(hf, {
    ...(filter.state === undefined && filter.retrying === undefined && defaults.states !== undefined
      ? { state: defaults.states }
      : {}),
    ...filter,
    until: filter.until ?? new Date(Date.now() + 1_000),
  });
  const total = await search.count();
  const matched = total.count;
  const none = matched === 0 && !total.more;
  const first = none ? [] : (await search.page(samples, null)).jobs;
  const told = { matched, ...(total.more ? { more: true } : {}) };
  if (ctx.flag("dry-run")) {
    ctx.result({ dryRun: true, ...told, samples: first }, () => dryRunText(ctx, verb, total, first));
    return 0;
  }
  if (none) {
    ctx.result({ matched: 0 }, () => "No job matches.");
    return 0;
  }
  if (!(await ctx.confirm(`${capital(verb)} ${shownCount(total)} ${matched === 1 ? "job" : "jobs"}?`)))
    return 1;
  const counts = await inBatches(ctx, hf, search, matched, verb, act);
  ctx.result({ ...told, ...counts }, () => countsText(counts));
  return 0;
}

async function inBatches(
  ctx: Context,
  hf: Holdfast,
  search: Search,
  matched: number,
  verb: string,
  act: Act,
): Promise<Record<string, number>> {
  const show = ctx.progress(verb);
  const counts: Record<string, number> = {};
  let seen = 0;
  let cursor: string | null = null;
  do {
    // Newest first and by id, so that what an action does to a job does not move the page.
    const page: Page = await search.page(batch, cursor);
    const ids = page.jobs.map(({ id }) => id);
    if (ids.length > 0) add(counts, await act(hf, ids));
    seen += ids.length;
    show(seen, Math.max(seen, matched));
    cursor = page.cursor;
  } while (cursor !== null && !ctx.io.signal.aborted);
  return counts;
}

async function byIds(
  ctx: Context,
  hf: Holdfast,
  verb: string,
  act: Act,
  destructive: boolean,
): Promise<number> {
  const { args } = ctx;
  const noun = args.length === 1 ? "job" : "jobs";
  if (ctx.flag("dry-run")) {
    const { jobs } = await hf.jobs.list({ ids: args, limit: Math.min(1_000, Math.max(1, args.length)) });
    ctx.result({ dryRun: true, matched: jobs.length, samples: jobs.slice(0, samples) }, () =>
      dryRunText(ctx, verb, { count: jobs.length, more: false }, jobs.slice(0, samples)),
    );
    return 0;
  }
  if (destructive && !(await ctx.confirm(`${capital(verb)} ${args.length} ${noun}?`))) return 1;
  const counts: Record<string, number> = {};
  for (let i = 0; i < args.length; i += batch) add(counts, await act(hf, args.slice(i, i + batch)));
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
