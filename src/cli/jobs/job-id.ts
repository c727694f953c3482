/**
 * Resolves the ids of a command line: a whole id stays, a part of an id (values/id-part.ts) becomes the one id that matches.
 *
 * Invariants: several matches are an error; a command that changes a job refuses a part that an unsearched older job may match
 * too; a resolved part is printed. A part without a match stays as given, so each command reports it as an unknown id.
 */
import { UsageError } from "../../errors.ts";
import type { Holdfast } from "../../index.ts";
import type { InsightFilter } from "../../operate/browse.ts";
import { beginsWith, type IdPart, idPart } from "../../values/id-part.ts";
import { isId } from "../../values/id.ts";
import type { Context } from "../command-context.ts";
import { relative } from "../text.ts";
import { operatorOf } from "../../operate/operator.ts";

/** The time for searching ends of ids, newest first. A million ids take about a second. */
const patienceMs = 2_000;
/** Listed matches. */
const shownIds = 10;
/** An end of this length is random enough to mean one job. Beginnings are searched completely. */
const sureOfEnd = 12;
const sureOfBeginning = 8;

/** Whether a command reads or changes the job. */
type Use = "look" | "act";

/**
 * The id of the first argument. A missing argument is an error before the database is opened.
 *
 * @throws UsageError BAD_OPTION if several jobs match (exit code 2), with the matches
 */
export async function jobIdOf(ctx: Context, use: Use): Promise<string> {
  const given = ctx.argument(0, "the id of a job");
  return wholeId(ctx, await ctx.client(), given, use);
}

/** The resolved ids, without duplicates. */
export async function wholeIds(
  ctx: Context,
  hf: Holdfast,
  given: readonly string[],
  use: Use,
): Promise<string[]> {
  const ids: string[] = [];
  for (const text of given) ids.push(await wholeId(ctx, hf, text, use));
  return [...new Set(ids)];
}

/** The filter with whole ids in place of parts. */
export async function wholeFilter(
  ctx: Context,
  hf: Holdfast,
  filter: InsightFilter,
  use: Use,
): Promise<InsightFilter> {
  const { ids, workflow } = filter;
  return {
    ...filter,
    ...(ids === undefined ? {} : { ids: await wholeIds(ctx, hf, ids, use) }),
    ...(workflow === undefined ? {} : { workflow: await wholeId(ctx, hf, workflow, use) }),
  };
}

async function wholeId(ctx: Context, hf: Holdfast, given: string, use: Use): Promise<string> {
  const text = given.toLowerCase();
  const part = isId(text) ? null : idPart(text);
  if (part === null) return text;
  const found = await find(hf, part);
  const [id = text] = found.ids;
  switch (meant(part, found, use)) {
    case "none":
      return text;
    case "several":
      throw await several(hf, given, found);
    case "perhaps":
      throw new UsageError(
        "BAD_OPTION",
        `${given} matches ${id}, but jobs from before ${found.since?.toISOString() ?? "then"} were not searched and may match too. If this is the job, give its whole id.`,
        { details: { job: id } },
      );
    case "one":
      if (!ctx.json) ctx.note(ctx.paintError("dim", `${given} is ${id}`));
      return id;
  }
}

/** The result of a search for a part. */
export interface Found {
  readonly ids: readonly string[];
  readonly more: boolean;
  /** Jobs from before this instant were not searched for the end; null if all were. */
  readonly since: Date | null;
}

/** Whether a part matches none, one, several, or one that may not be the only one. */
export function meant(
  part: IdPart,
  { ids, more, since }: Found,
  use: Use,
): "none" | "one" | "several" | "perhaps" {
  const [id] = ids;
  if (id === undefined) return "none";
  if (ids.length > 1 || more) return "several";
  return use === "look" || since === null || isSure(id, part) ? "one" : "perhaps";
}

function isSure(id: string, part: IdPart): boolean {
  return part.digits >= (beginsWith(id, part) ? sureOfBeginning : sureOfEnd);
}

async function find(hf: Holdfast, part: IdPart): Promise<Found> {
  const { store, env } = operatorOf(hf);
  const until = env.clock.monotonic() + patienceMs;
  const ids = new Set<string>();
  let cursor: string | null = null;
  for (;;) {
    const found = await store.insight.matching(part, { limit: shownIds, cursor });
    for (const id of found.ids) ids.add(id);
    ({ cursor } = found);
    const [id] = ids;
    const sure = found.more || ids.size > 1 || (id !== undefined && isSure(id, part));
    if (sure || cursor === null || env.clock.monotonic() >= until)
      return {
        ids: [...ids].slice(0, shownIds),
        more: found.more || ids.size > shownIds,
        since: cursor === null || found.since === null ? null : new Date(found.since),
      };
  }
}

async function several(hf: Holdfast, given: string, { ids, more }: Found): Promise<UsageError> {
  const { jobs } = await hf.jobs.list({ ids });
  const now = operatorOf(hf).env.clock.now();
  const lines = jobs.map(
    ({ id, state, name, createdAt }) => `  ${id}  ${state}  ${name}  ${relative(createdAt, now)}`,
  );
  return new UsageError(
    "BAD_OPTION",
    [
      `${given} matches ${more ? `more than ${ids.length}` : ids.length} jobs. Give more digits of the id:`,
      ...lines,
    ].join("\n"),
    { details: { jobs: ids } },
  );
}
