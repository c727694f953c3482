/**
 * The jobs that a command line means: whole ids as they are, and parts of ids (values/id-part.ts) as the one id that has the part.
 *
 * Invariants: several that fit are never chosen among; what would change a job by a part of its id is refused where an older job
 * might have the part too; and which job a part was taken for is said. What fits nothing stays as it was given, so that each
 * command says of it what it says of an unknown id.
 */
import { UsageError } from "../../errors.ts";
import type { Holdfast } from "../../index.ts";
import { beginsWith, type IdPart, idPart } from "../../values/id-part.ts";
import { isId } from "../../values/id.ts";
import type { Context } from "../command-context.ts";
import type { Wanted } from "./filter-options.ts";
import { relative } from "../text.ts";
import { operatorOf } from "../../operate/operator.ts";

/** So long it looks for ids that end so, newest first; a million of them take about a second. */
const patienceMs = 2_000;
/** Candidates that are listed. */
const shownIds = 10;
/** Whoever has so many digits of an end means one job: they are random. A beginning is known to be unique. */
const sureOfEnd = 12;
const sureOfBeginning = 8;

/** Whether a command only reads what it is told of. */
type Use = "look" | "act";

/**
 * The id that the first argument means. Whether there is one is asked before the database is.
 *
 * @throws UsageError BAD_OPTION where several jobs have the part (exit 2), with the candidates
 */
export async function jobIdOf(ctx: Context, use: Use): Promise<string> {
  const given = ctx.argument(0, "the id of a job");
  return wholeId(ctx, await ctx.client(), given, use);
}

/** The ids that these mean, each once. */
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
export async function wholeFilter(ctx: Context, hf: Holdfast, wanted: Wanted, use: Use): Promise<Wanted> {
  const { ids, workflow } = wanted;
  return {
    ...wanted,
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
        `${given} is a part of ${id}, but jobs from before ${found.since?.toISOString() ?? "then"} were not looked at, and one of them may have it too. Give the whole id if it is the one.`,
        { details: { job: id } },
      );
    case "one":
      if (!ctx.json) ctx.note(ctx.paintError("dim", `${given} is ${id}`));
      return id;
  }
}

/** What was found of a part. */
export interface Found {
  readonly ids: readonly string[];
  readonly more: boolean;
  /** Jobs from before then were not looked at for an id that ends so; null: all were. */
  readonly since: Date | null;
}

/** Whether a part means one job, none, several, or one of which it is not certain that it is the only one. */
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
      `${given} is a part of ${more ? `more than ${ids.length}` : ids.length} ids. Give more of the one that you mean:`,
      ...lines,
    ].join("\n"),
    { details: { jobs: ids } },
  );
}
