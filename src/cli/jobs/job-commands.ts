/** `holdfast jobs` and `holdfast why`. Not here: their `history` and `logs`, and the bulk actions (bulk-action.ts). */
import { UsageError } from "../../errors.ts";
import type { Job, JobHistory } from "../../index.ts";
import { type Command, FORCE, type Option } from "../command.ts";
import { acting } from "../audit-record.ts";
import type { Context } from "../command-context.ts";
import { checkEdit } from "../../operate/jobs-client.ts";
import { jobEdit, type KeptEdit } from "../../operate/operations.ts";
import { instantMs } from "../../values/duration.ts";
import { checkPatch, type InputPatch } from "../../values/json-patch.ts";
import { bulk, RATE } from "./bulk-action.ts";
import { remedyOf } from "./remedy.ts";
import { FILTER, filterOf, jobTable, Search } from "./filter-options.ts";
import { duration, grouped, harmless, json, oneLine, relative, table } from "../text.ts";
import { jobIdOf, wholeFilter } from "./job-id.ts";
import { jobHistory } from "./job-history-command.ts";
import { jobLogs } from "./job-logs-command.ts";
import { operatorOf } from "../../operate/operator.ts";

const ACTING: Readonly<Record<string, Option>> = {
  ...FILTER,
  ...RATE,
  "dry-run": { type: "boolean", help: "Count the jobs, show the first five, and change nothing" },
  ...FORCE,
};

const list: Command = {
  name: "list",
  summary: "list jobs, newest first",
  options: {
    ...FILTER,
    limit: { type: "string", short: "l", value: "n", help: "Page size, 1 to 1,000; default 50" },
    cursor: { type: "string", value: "cursor", help: "Show the page after this cursor" },
    all: { type: "boolean", help: "Show all pages; with --json, one job per line" },
    count: { type: "boolean", help: "Print only the number" },
  },
  json: "{ jobs, cursor, cut? }; with --all one job per line; with --count { count }",
  examples: [
    { line: "jobs list --state dead --queue mail --since 1d", says: "Dead mail jobs of the last day" },
    {
      line: "jobs list --where 'attempt:>3 age:<1h payload.user.id:42'",
      says: "By words of the dashboard's search",
    },
    {
      line: "jobs list --state dead --all --json | jq -r .error | sort | uniq -c",
      says: "Errors by frequency",
    },
  ],
  run: async (ctx) => {
    filterOf(ctx);
    const limit = ctx.integer("limit") ?? (ctx.flag("all") ? 500 : 50);
    const hf = await ctx.client();
    const search = new Search(
      hf,
      await wholeFilter(ctx, hf, filterOf(ctx, operatorOf(hf).env.clock.now()), "look"),
    );
    if (ctx.flag("count")) {
      const { count, more } = await search.count();
      ctx.result({ count, ...(more ? { more } : {}) }, () => `${grouped(count)}${more ? "+" : ""}`);
      return;
    }
    let cursor: string | null = ctx.string("cursor") ?? null;
    do {
      const page: Awaited<ReturnType<Search["page"]>> = await search.page(limit, cursor);
      ({ cursor } = page);
      if (!ctx.flag("all")) {
        ctx.result(page, () => pageText(ctx, page));
        return;
      }
      if (ctx.json) for (const job of page.jobs) ctx.line(job);
      else if (page.jobs.length > 0) ctx.print(jobTable(ctx, page.jobs, Date.now()));
    } while (cursor !== null && !ctx.io.signal.aborted);
  },
};

function pageText(ctx: Context, page: Awaited<ReturnType<Search["page"]>>): string {
  const { jobs: found, cursor, cut } = page;
  if (found.length === 0 && cursor === null) return "No jobs match.";
  const text = found.length === 0 ? "No jobs match so far." : jobTable(ctx, found, Date.now());
  if (cursor === null) return text;
  const more = cut === true ? "searched 20,000 to 50,000 jobs; to continue" : "more";
  return `${text}\n${ctx.paint("dim", `${more}: --cursor ${cursor}`)}`;
}

const show: Command = {
  name: "show",
  summary: "show one job, and the reason for its state",
  args: "<id>",
  maxArgs: 1,
  details: "The beginning or end of an id is enough (at least 4 digits), here and in every command.",
  json: "The job, with `why` and `history` (attempts, steps, signals, children)",
  examples: [{ line: "jobs show 0199…", says: "Input, output, errors, times, steps, related jobs" }],
  run: async (ctx) => {
    const id = await jobIdOf(ctx, "look");
    const hf = await ctx.client();
    const job = await hf.jobs.get(id);
    if (job === null) throw await ctx.noJob(id);
    const [why, history] = await Promise.all([hf.jobs.why(id), hf.jobs.history(id)]);
    ctx.result({ ...job, why, history }, () =>
      [jobText(ctx, job, why.text), ...(history === null ? [] : historyText(ctx, history))].join("\n"),
    );
    return 0;
  },
};

function jobText(ctx: Context, job: Job, why: string): string {
  const now = Date.now();
  const at = (date: Date | null): string =>
    date === null ? "–" : `${date.toISOString()} (${relative(date, now)})`;
  const fields: [string, string][] = [
    ["id", job.id],
    ["state", job.state],
    ["why", why],
    ["name", job.name],
    ["queue", job.queue],
    ["priority", String(job.priority)],
    ["attempts", attemptsText(job)],
    ["created", at(job.createdAt)],
    ["due", at(job.runAt)],
    ["started", at(job.startedAt)],
    ["ended", at(job.endedAt)],
  ];
  if (job.startedAt !== null && job.endedAt !== null)
    fields.push(["took", duration(job.endedAt.getTime() - job.startedAt.getTime())]);
  for (const name of ["key", "lane", "context", "workerId", "parentId", "step"] as const)
    if (job[name] !== null) fields.push([name, job[name]]);
  const lines = fields.map(([name, value]) => `${ctx.paint("dim", name.padEnd(9))} ${oneLine(value)}`);
  const block = (title: string, value: unknown): void => {
    if (value !== null) lines.push("", ctx.paint("bold", title), harmless(json(value, 2)));
  };
  block("input", job.input);
  block("output", job.output);
  block("progress", job.progress);
  for (const error of job.errors) {
    lines.push(
      "",
      `${ctx.paint("bad", attemptText(error))} ${ctx.paint("dim", `${error.at.toISOString()}${ranText(error)}`)}`,
    );
    lines.push(harmless(error.stack ?? error.message));
  }
  return lines.join("\n");
}

function attemptText({ attempt, lost }: Job["errors"][number]): string {
  return `attempt ${attempt} ${lost === true ? "was lost with its worker" : "failed"}`;
}

function ranText({ ranMs, lost }: Job["errors"][number]): string {
  if (ranMs === undefined) return "";
  return lost === true
    ? `, held for ${duration(ranMs)}, until its lease expired`
    : `, ran ${duration(ranMs)}`;
}

/** Sleeping and waiting release the attempt, so "0 of 5" could read as a run that never started. */
function attemptsText({ attempt, maxAttempts, crashes }: Job): string {
  const used = attempt === 0 ? `none used, ${maxAttempts} allowed` : `${attempt} of ${maxAttempts}`;
  return crashes === 0 ? used : `${used}; ${crashes} ${crashes === 1 ? "crash" : "crashes"}`;
}

/** Steps, signals and related jobs. */
function historyText(ctx: Context, { steps, signals, children }: JobHistory): string[] {
  const now = Date.now();
  const head = (text: string, _column: string, row: unknown): string =>
    row === null ? ctx.paint("dim", text) : text;
  const part = (title: string, text: string): string => `\n${ctx.paint("bold", title)}\n${text}`;
  const lines: string[] = [];
  if (steps.length > 0)
    lines.push(
      part(
        "steps",
        table(
          [
            { title: "step", cell: ({ name }) => oneLine(name), most: 40 },
            { title: "type", cell: ({ kind }) => kind },
            {
              title: "state",
              cell: ({ state, wakeAt }) => (wakeAt === null ? state : `until ${wakeAt.toISOString()}`),
            },
            { title: "tries", align: "right", cell: ({ tries }) => tries },
            {
              title: "took",
              align: "right",
              cell: ({ startedAt, endedAt }) =>
                endedAt === null ? "–" : duration(endedAt.getTime() - startedAt.getTime()),
            },
            {
              title: "result",
              cell: ({ error, child, output }) =>
                oneLine(error ?? child ?? (output === null ? "" : json(output)), 80),
              most: 80,
            },
          ],
          steps,
          head,
        ),
      ),
    );
  if (signals.length > 0)
    lines.push(
      part(
        "signals",
        table(
          [
            { title: "signal", cell: ({ name }) => oneLine(name), most: 40 },
            { title: "key", cell: ({ key }) => oneLine(key ?? "–"), most: 40 },
            { title: "state", cell: ({ state }) => state },
            { title: "since", cell: ({ since }) => relative(since, now) },
            { title: "data", cell: ({ data }) => (data === null ? "" : oneLine(json(data), 80)), most: 80 },
          ],
          signals,
          head,
        ),
      ),
    );
  if (children.length > 0)
    lines.push(
      part(
        "related jobs",
        table(
          [
            { title: "job", cell: ({ id }) => id },
            { title: "name", cell: ({ name }) => name ?? "–", most: 40 },
            {
              title: "relation",
              cell: ({ relation, step }) =>
                relation === "after"
                  ? "runs before this one"
                  : relation === "called"
                    ? `called in ${oneLine(step ?? "–", 40)}`
                    : "enqueued by this one",
            },
            { title: "state", cell: ({ state }) => state ?? "not kept" },
            { title: "error", cell: ({ error }) => oneLine(error ?? "", 60), most: 60 },
          ],
          children,
          head,
        ),
      ),
    );
  return lines;
}

const retry: Command = {
  name: "retry",
  summary: "run ended jobs again",
  args: "[<id>…]",
  maxArgs: 10_000,
  options: {
    ...ACTING,
    patch: {
      type: "string",
      value: "json",
      help: `Change the inputs first: '{"plan":"pro","old":null}' is merged, '[{"op":"replace",…}]' is a JSON Patch`,
    },
  },
  details:
    "Takes ids or a filter. A filter without --state selects dead jobs. If several jobs share a unique key, only the newest is retried.",
  json: "{ matched, retried, superseded, not_ended, not_found }, with --rate or if interrupted also { operation, state }; with --dry-run { dryRun, matched, samples }",
  examples: [
    { line: "jobs retry --queue mail --search ECONNREFUSED --dry-run", says: "Count the jobs" },
    { line: "jobs retry --queue mail --search ECONNREFUSED --force", says: "Retry them" },
    {
      line: `jobs retry --error 3f0c… --patch '{"plan":"pro"}' --dry-run`,
      says: "Preview the new inputs",
    },
    { line: "jobs retry --error 3f0c… --rate 50/s", says: "At most 50 a second" },
  ],
  run: (ctx) => {
    const patch = ctx.string("patch");
    return bulk(ctx, { action: "retry", ...(patch === undefined ? {} : { patch: patchOf(patch) }) });
  },
};

/** @throws UsageError */
function patchOf(text: string): InputPatch {
  try {
    return checkPatch(JSON.parse(text), "--patch");
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw new UsageError("BAD_OPTION", `--patch must be JSON: ${cause.message}. In a shell, quote it.`, {
      cause,
    });
  }
}

const cancel: Command = {
  name: "cancel",
  summary: "cancel jobs that have not ended",
  args: "[<id>…]",
  maxArgs: 10_000,
  options: ACTING,
  details: "A running job is asked to stop. It ends when its handler reacts.",
  json: "{ matched, cancelled, cancel_requested, ended, not_found }",
  examples: [{ line: "jobs cancel --queue imports --state ready,scheduled --force", says: "Empty a queue" }],
  run: (ctx) => bulk(ctx, { action: "cancel" }),
};

const pause: Command = {
  name: "pause",
  summary: "pause jobs until they are resumed",
  args: "[<id>…]",
  maxArgs: 10_000,
  options: ACTING,
  details:
    "A job that has not started does not start. A sleeping or waiting run does not continue. A running workflow stops before its next step. A handler without steps runs to its end; if it fails, the job is not retried until it is resumed.",
  json: "{ matched, paused, pause_requested, ended, not_found }",
  examples: [
    { line: "jobs pause 0199…", says: "One run, before its next step" },
    { line: "jobs pause --name import --force", says: "All jobs of this name" },
  ],
  run: (ctx) => bulk(ctx, { action: "pause" }),
};

const resume: Command = {
  name: "resume",
  summary: "resume paused jobs",
  args: "[<id>…]",
  maxArgs: 10_000,
  options: ACTING,
  json: "{ matched, resumed, not_paused, ended, not_found }",
  examples: [{ line: "jobs resume 0199…", says: "Continue one job" }],
  run: (ctx) => bulk(ctx, { action: "resume" }),
};

const terminate: Command = {
  name: "terminate",
  summary: "end jobs at once, without waiting for their handlers",
  args: "[<id>…]",
  maxArgs: 10_000,
  options: ACTING,
  details:
    "The jobs end as cancelled. The signal of a running handler aborts, its later writes are refused, and no step is compensated. Use `jobs cancel` if the handler reacts to its signal.",
  json: "{ matched, terminated, cancel_requested, ended, not_found }",
  examples: [{ line: "jobs terminate 0199… --force", says: "A handler that ignores its signal" }],
  run: (ctx) => bulk(ctx, { action: "terminate", destructive: true }),
};

const remove: Command = {
  name: "delete",
  summary: "delete jobs in any state",
  args: "[<id>…]",
  maxArgs: 10_000,
  options: ACTING,
  details: "Deletes everything that is stored for the jobs. A running job is asked to stop instead.",
  json: "{ matched, deleted, cancel_requested, not_found }",
  examples: [{ line: "jobs delete --state dead --until 30d --force", says: "Dead jobs older than 30 days" }],
  run: (ctx) => bulk(ctx, { action: "delete", destructive: true }),
};

const runNow: Command = {
  name: "run",
  summary: "make scheduled jobs due now",
  args: "[<id>…]",
  maxArgs: 10_000,
  options: ACTING,
  json: "{ matched, due, not_scheduled, not_found }",
  examples: [{ line: "jobs run 0199…", says: "Retry it now" }],
  run: (ctx) => bulk(ctx, { action: "run-now" }),
};

const edit: Command = {
  name: "edit",
  summary: "change the time, queue or priority of jobs",
  args: "[<id>…]",
  maxArgs: 10_000,
  options: {
    ...ACTING,
    delay: { type: "string", value: "duration", help: "Due after this time: 5m, 1h30m, 2d" },
    at: { type: "string", value: "date", help: "Due at this instant" },
    to: { type: "string", value: "queue", help: "Move to this queue" },
    priority: { type: "string", short: "p", value: "n", help: "Higher first" },
  },
  details:
    "Takes ids or a filter. Dead jobs (--state dead) may change queue and priority; they stay dead until they are retried. These jobs are skipped and counted: running or otherwise ended ones, sleeping or waiting ones (for a new time), those with an earlier deadline, and those with a key that is unique in the queue that they would leave.",
  json: "{ matched, edited, running, ended, waiting, past_deadline, keyed, not_found }; with --dry-run { dryRun, matched, samples }",
  examples: [
    { line: "jobs edit --queue mail --state ready --delay 2h --force", says: "Delay a queue's jobs" },
    {
      line: "jobs edit --queue mail --name newsletter --to mail-slow --dry-run",
      says: "Count the jobs that would move",
    },
    { line: "jobs edit 0199… --priority 10", says: "Run before the others" },
    {
      line: "jobs edit --error 3f9a… --state dead --to mail-dead --force",
      says: "Move the dead jobs of one failure group",
    },
  ],
  run: (ctx) => {
    const at = ctx.date("at");
    const delay = ctx.string("delay");
    const queue = ctx.string("to");
    const priority = ctx.integer("priority");
    const change: KeptEdit = {
      ...(delay === undefined ? {} : { delay }),
      ...(at === undefined ? {} : { at: instantMs(at, "at") }),
      ...(queue === undefined ? {} : { queue }),
      ...(priority === undefined ? {} : { priority }),
    };
    checkEdit(jobEdit(change)); // before anything is counted or asked
    return bulk(ctx, { action: "edit", change });
  },
};

const fork: Command = {
  name: "fork",
  summary: "run a workflow again from one of its steps, as a new job",
  args: "<id>",
  maxArgs: 1,
  options: { from: { type: "string", value: "step", help: "First step to run again" } },
  details:
    "The run must have ended. The new run keeps the results of earlier steps; the original run does not change.",
  json: "{ status, id }",
  examples: [{ line: "jobs fork 0199… --from send-invoice", says: "A new run from that step" }],
  run: async (ctx) => {
    const from = ctx.string("from") ?? "";
    const id = await jobIdOf(ctx, "act");
    const hf = await ctx.client();
    const made = await acting(
      ctx,
      hf,
      {
        action: "jobs.fork",
        target: id,
        outcome: "forked",
        details: (fork) => ({ from, job: fork.id }),
      },
      () => hf.jobs.fork(id, { from }),
    );
    ctx.result(made, () => `${made.status} ${made.id}`);
  },
};

export const jobs: Command = {
  name: "jobs",
  summary: "list, show, history, logs, retry, pause, resume, cancel, terminate, delete, run, edit, fork",
  subcommands: [
    list,
    show,
    jobHistory,
    jobLogs,
    retry,
    pause,
    resume,
    cancel,
    terminate,
    remove,
    runNow,
    edit,
    fork,
  ],
  fallback: "list",
};

export const why: Command = {
  name: "why",
  summary: "why a job is not running",
  args: "<id>",
  maxArgs: 1,
  json: "{ reason, text, remedy, … }; remedy: the command that helps, or null",
  examples: [
    {
      line: "why 0199…",
      says: "The reason in one sentence, and the command that helps",
    },
  ],
  run: async (ctx) => {
    const id = await jobIdOf(ctx, "look");
    const hf = await ctx.client();
    const answer = await hf.jobs.why(id);
    const remedy = remedyOf(answer);
    ctx.result(
      { ...answer, remedy },
      () =>
        `${ctx.paint("bold", answer.reason)}  ${oneLine(answer.text)}${remedy === null ? "" : `\n${ctx.paint("accent", `→ ${remedy}`)}`}`,
    );
    return answer.reason === "not-found" ? 1 : 0;
  },
};
