/**
 * Actions on many jobs: by ids in chunks, or by a filter as an operation that all processes can see and control.
 *
 * Invariants: an action by filter first counts the jobs and asks; a dry run changes nothing; an action by ids is one entry in the
 * audit trail (an operation writes its own). Not here: the filter (filter-options.ts), the action on a job (operate/operations.ts).
 */
import { UsageError } from "../../errors.ts";
import type { Holdfast, Job } from "../../index.ts";
import type { CappedCount } from "../../operate/browse.ts";
import {
  actionFilter,
  actOn,
  type BulkVerb,
  checkRate,
  type Driven,
  type KeptEdit,
  Operations,
  type Task,
} from "../../operate/operations.ts";
import { type InputPatch, patched } from "../../values/json-patch.ts";
import { ACTOR, record } from "../audit-record.ts";
import type { Option } from "../command.ts";
import type { Context } from "../command-context.ts";
import { checked, filterOf, jobTable, Search } from "./filter-options.ts";
import { wholeFilter, wholeIds } from "./job-id.ts";
import { rateOf, rateText } from "../rate.ts";
import { grouped, json, oneLine, shownCount } from "../text.ts";
import { operatorOf } from "../../operate/operator.ts";

const batch = 500;
const samples = 5;

/** Outcomes without a change, in words. By id, they also set the exit code. */
const REFUSED: Readonly<Record<string, (one: boolean) => string>> = {
  ended: () => "had already ended",
  not_ended: (one) => `${one ? "has" : "have"} not ended`,
  not_found: () => "not found",
  not_paused: (one) => `${one ? "is" : "are"} not paused`,
  not_scheduled: (one) => `${one ? "is" : "are"} not scheduled`,
};

/** An action on jobs, by ids or by a filter. */
export interface BulkCommand extends Pick<Task, "action"> {
  readonly change?: KeptEdit;
  readonly patch?: InputPatch;
  /** Asks first even with ids. */
  readonly destructive?: boolean;
}

/** For commands that act on many jobs. */
export const RATE: Readonly<Record<"rate", Option>> = {
  rate: { type: "string", value: "n/time", help: "Maximum speed, with a filter: 50/s, 600/1m" },
};

/**
 * Acts on ids, or on all jobs that match the filter: counts them, asks, shows progress, and prints the outcomes. By filter it is
 * an operation, which every dashboard and `holdfast operations` can show, pause, resume and stop.
 */
export async function bulk(ctx: Context, command: BulkCommand): Promise<number> {
  const verb = verbOf(command.action);
  const asked = filterOf(ctx);
  const rate = ctx.string("rate");
  const perRate = rate === undefined ? null : checkRate(rateOf(rate));
  if (ctx.args.length > 0) {
    if (Object.keys(asked).length > 0 || perRate !== null)
      throw new UsageError("BAD_OPTION", `${verb} takes ids or a filter (with --rate), not both.`);
    return byIds(ctx, await ctx.client(), command);
  }
  if (Object.keys(asked).length === 0)
    throw new UsageError(
      "BAD_OPTION",
      `jobs ${verb} needs ids, or a filter such as --state dead --queue mail. --dry-run counts the jobs of a filter.`,
    );
  const hf = await ctx.client();
  const now = operatorOf(hf).env.clock.now();
  const filter = await wholeFilter(ctx, hf, filterOf(ctx, now), "act");
  const until = filter.until ?? now + 1_000;
  const task: Task = {
    action: command.action,
    filter: { ...actionFilter(command.action, checked(filter)), until },
    change: command.change ?? null,
    patch: command.patch ?? null,
    rate: perRate,
  };
  const search = new Search(hf, task.filter);
  const total = await search.count();
  const matched = total.count;
  const none = matched === 0 && !total.more;
  const first = none ? [] : (await search.page(samples, null)).jobs;
  if (ctx.flag("dry-run")) {
    tellDryRun(ctx, verb, total, first, command.patch);
    return 0;
  }
  if (none) {
    ctx.result({ matched: 0 }, () => "No jobs match.");
    return 0;
  }
  const back = { pause: "resume", resume: "pause" }[command.action as string];
  const warning = back === undefined ? undefined : `\`jobs ${back}\` with the same filter reverts it.`;
  if (
    !(await ctx.confirm(`${capital(verb)} ${shownCount(total)} ${matched === 1 ? "job" : "jobs"}?`, warning))
  )
    return 1;
  const operations = new Operations(hf);
  return follow(ctx, operations, await operations.start(task, ACTOR));
}

/** Shows the progress until the operation ends or another process takes it over. Ctrl-C pauses it. */
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
        `${rateText(rate.limit, rate.perMs)}; to pause it: holdfast operations pause ${driven.id}`,
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
        : `${countsText(last.outcomes)}; ${state}. To continue: holdfast operations resume ${last.id}`,
  );
  return whole ? 0 : 1;
}

function verbOf(action: BulkVerb): string {
  return action === "run-now" ? "run" : action;
}

async function byIds(
  ctx: Context,
  hf: Holdfast,
  { action, change, patch, destructive }: BulkCommand,
): Promise<number> {
  const args = await wholeIds(ctx, hf, ctx.args, "act");
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
  const acted = (): number => Object.values(counts).reduce((sum, count) => sum + count, 0);
  try {
    for (let i = 0; i < args.length; i += batch)
      add(
        counts,
        await actOn(hf, { action, change: change ?? null, patch: patch ?? null }, args.slice(i, i + batch)),
      );
  } finally {
    // Also if an error stopped it in the middle.
    if (acted() > 0) await recordActed(ctx, hf, { action, change, patch }, { ids: args, counts });
  }
  const missing = args.length - acted();
  if (missing > 0) counts["not_found"] = (counts["not_found"] ?? 0) + missing;
  // With a part of an id, the output names the whole id.
  const given = new Set(ctx.args.map((id) => id.toLowerCase()));
  const whole = args.every((id) => given.has(id));
  ctx.result({ matched: args.length, ...counts, ...(whole ? {} : { ids: args }) }, () => countsText(counts));
  return Object.keys(counts).some((outcome) => outcome in REFUSED) ? 1 : 0;
}

async function recordActed(
  ctx: Context,
  hf: Holdfast,
  { action, change, patch }: { [K in "action" | "change" | "patch"]: BulkCommand[K] },
  { ids, counts }: { ids: readonly string[]; counts: Readonly<Record<string, number>> },
): Promise<void> {
  const [first = ""] = ids;
  const one = ids.length === 1;
  await record(ctx, hf, {
    action: `jobs.${action}`,
    target: one ? first : JSON.stringify({ ids }),
    outcome: one ? (Object.keys(counts)[0] ?? "done") : countsText(counts),
    details: {
      ...counts,
      ...(change === undefined ? {} : { change }),
      ...(patch === undefined ? {} : { patched: true }), // the patch may hold a secret
    },
  });
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
            `\n${id}\n${ctx.paint("bad", `- ${oneLine(before)}`)}\n${after === null ? ctx.paint("warn", "the patch does not apply; the input does not change") : ctx.paint("good", `+ ${oneLine(after)}`)}`,
        ),
      ].join("\n"),
  );
}

function dryRunText(ctx: Context, verb: string, total: CappedCount, first: readonly Job[]): string {
  const { count, more } = total;
  const head = `${capital(verb)} would affect ${shownCount(total)} ${count === 1 && !more ? "job" : "jobs"}. No changes made.`;
  if (first.length === 0) return head;
  const rest = { count: count - first.length, more };
  return `${head}\n\n${jobTable(ctx, first, Date.now())}${rest.count > 0 || more ? `\n… and ${shownCount(rest)} more` : ""}`;
}

function countsText(counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts).map(
    ([outcome, count]) =>
      `${grouped(count)} ${REFUSED[outcome]?.(count === 1) ?? outcome.replaceAll("_", " ")}`,
  );
  return parts.length === 0 ? "No changes made." : oneLine(parts.join(", "));
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
