/** `holdfast jobs`: list, errors, show, history, logs, retry, cancel, delete, run, edit. */
import { UsageError } from "../../errors.ts";
import type { Job, JobHistory } from "../../index.ts";
import { type Command, FORCE, type Option } from "../command.ts";
import { acting } from "../parts/audit.ts";
import type { Context } from "../command-context.ts";
import { checkEdit } from "../../operate/jobs-client.ts";
import { jobsErrors } from "./errors.ts";
import { jobEdit, type KeptEdit } from "../../operate/operations.ts";
import { instantMs } from "../../values/duration.ts";
import { checkPatch, type InputPatch } from "../../values/json-patch.ts";
import { bulk, RATE } from "../parts/bulk.ts";
import { remedyOf } from "../parts/remedy.ts";
import { FILTER, filterOf, jobTable, Search } from "../parts/filter-options.ts";
import { duration, grouped, harmless, json, oneLine, relative, table } from "../text.ts";
import { jobIdOf, wholeFilter } from "../parts/job-id.ts";
import { jobHistory } from "./job-history.ts";
import { jobLogs } from "./job-logs.ts";
import { operatorOf } from "../../operate/operator.ts";

const ACTING: Readonly<Record<string, Option>> = {
  ...FILTER,
  ...RATE,
  "dry-run": { type: "boolean", help: "Say how many, show the first, and do nothing" },
  ...FORCE,
};

const list: Command = {
  name: "list",
  summary: "jobs, newest first",
  options: {
    ...FILTER,
    limit: { type: "string", short: "l", value: "n", help: "How many on a page, 1 to 1,000; default 50" },
    cursor: { type: "string", value: "cursor", help: "The page behind this one (its cursor)" },
    all: { type: "boolean", help: "Every page; with --json one job a line" },
    count: { type: "boolean", help: "Only how many" },
  },
  json: "{ jobs, cursor, cut? }; with --all one job a line; with --count { count }",
  examples: [
    { line: "jobs list --state dead --queue mail --since 1d", says: "Dead mail jobs of the last day" },
    {
      line: "jobs list --where 'attempt:>3 age:<1h payload.user.id:42'",
      says: "By words, as in the dashboard",
    },
    {
      line: "jobs list --state dead --all --json | jq -r .error | sort | uniq -c",
      says: "Errors by how often",
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
  if (found.length === 0 && cursor === null) return "No job matches.";
  const text = found.length === 0 ? "No job matches so far." : jobTable(ctx, found, Date.now());
  if (cursor === null) return text;
  const more = cut === true ? "searched 20,000 to 50,000 jobs; on from there" : "more";
  return `${text}\n${ctx.paint("dim", `${more}: --cursor ${cursor}`)}`;
}

const show: Command = {
  name: "show",
  summary: "everything about one job, and why it is where it is",
  args: "<id>",
  maxArgs: 1,
  details: "The beginning or the end of an id is enough (4 digits at least), here and in every command.",
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
    ["kind", job.name],
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
  return lost === true ? `, held for ${duration(ranMs)}, until its lease passed` : `, ran ${duration(ranMs)}`;
}

/** Sleeping and waiting give the attempt back, so "0 of 5" would deny that a run has begun. */
function attemptsText({ attempt, maxAttempts, crashes }: Job): string {
  const used = attempt === 0 ? `none used up, ${maxAttempts} allowed` : `${attempt} of ${maxAttempts}`;
  return crashes === 0 ? used : `${used}; ${crashes} ${crashes === 1 ? "crash" : "crashes"}`;
}

/** Steps, signals and related jobs, as far as there are any. */
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
            { title: "kind", cell: ({ kind }) => kind },
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
            { title: "kind", cell: ({ name }) => name ?? "–", most: 40 },
            {
              title: "relation",
              cell: ({ relation, step }) =>
                relation === "after"
                  ? "runs before this one"
                  : relation === "called"
                    ? `called in ${oneLine(step ?? "–", 40)}`
                    : "enqueued by this one",
            },
            { title: "state", cell: ({ state }) => state ?? "gone" },
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
      help: `Change the inputs first: '{"plan":"pro","old":null}' is merged into them, '[{"op":"replace",…}]' is a JSON Patch`,
    },
  },
  details:
    "Ids, or a filter. A filter without --state means dead jobs. Of several jobs with one unique key only the newest comes back.",
  json: "{ matched, retried, superseded, not_ended, not_found }, with --rate or where it was broken off also { operation, state }; with --dry-run { dryRun, matched, samples }",
  examples: [
    { line: "jobs retry --queue mail --search ECONNREFUSED --dry-run", says: "How many would come back" },
    { line: "jobs retry --queue mail --search ECONNREFUSED --force", says: "Bring them back" },
    {
      line: `jobs retry --error 3f0c… --patch '{"plan":"pro"}' --dry-run`,
      says: "What the inputs would become",
    },
    { line: "jobs retry --error 3f0c… --rate 50/s", says: "No faster than the other side can take it" },
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
  details: "A running job is asked to stop; it ends when its handler has heard.",
  json: "{ matched, cancelled, cancel_requested, ended, not_found }",
  examples: [{ line: "jobs cancel --queue imports --state ready,scheduled --force", says: "Empty a queue" }],
  run: (ctx) => bulk(ctx, { action: "cancel" }),
};

const pause: Command = {
  name: "pause",
  summary: "hold jobs where they are until they are resumed",
  args: "[<id>…]",
  maxArgs: 10_000,
  options: ACTING,
  details:
    "What has not started does not start, what sleeps or waits does not go on, and a workflow that runs stops before its next step. A handler without steps comes to its end; if it fails, it is not tried again before it is resumed.",
  json: "{ matched, paused, pause_requested, ended, not_found }",
  examples: [
    { line: "jobs pause 0199…", says: "One run, before its next step" },
    { line: "jobs pause --name import --force", says: "Every import, wherever it is" },
  ],
  run: (ctx) => bulk(ctx, { action: "pause" }),
};

const resume: Command = {
  name: "resume",
  summary: "let paused jobs go on",
  args: "[<id>…]",
  maxArgs: 10_000,
  options: ACTING,
  json: "{ matched, resumed, not_paused, ended, not_found }",
  examples: [{ line: "jobs resume 0199…", says: "From where it stopped" }],
  run: (ctx) => bulk(ctx, { action: "resume" }),
};

const terminate: Command = {
  name: "terminate",
  summary: "end jobs now, whatever their handlers do",
  args: "[<id>…]",
  maxArgs: 10_000,
  options: ACTING,
  details:
    "They end as cancelled without waiting for a handler (its signal aborts, and nothing it still does counts), and no step is undone. `cancel` is the gentle way; this is for what does not listen.",
  json: "{ matched, terminated, cancel_requested, ended, not_found }",
  examples: [{ line: "jobs terminate 0199… --force", says: "A handler that ignores its signal" }],
  run: (ctx) => bulk(ctx, { action: "terminate", destructive: true }),
};

const remove: Command = {
  name: "delete",
  summary: "delete jobs, whatever their state",
  args: "[<id>…]",
  maxArgs: 10_000,
  options: ACTING,
  details: "Nothing of them stays. A running job is asked to stop instead.",
  json: "{ matched, deleted, cancel_requested, not_found }",
  examples: [
    { line: "jobs delete --state dead --until 30d --force", says: "Dead jobs that are older than 30 days" },
  ],
  run: (ctx) => bulk(ctx, { action: "delete", destructive: true }),
};

const runNow: Command = {
  name: "run",
  summary: "make scheduled jobs due now",
  args: "[<id>…]",
  maxArgs: 10_000,
  options: ACTING,
  json: "{ matched, due, not_scheduled, not_found }",
  examples: [{ line: "jobs run 0199…", says: "Do not wait for the retry" }],
  run: (ctx) => bulk(ctx, { action: "run-now" }),
};

const edit: Command = {
  name: "edit",
  summary: "put jobs to another time, queue or priority",
  args: "[<id>…]",
  maxArgs: 10_000,
  options: {
    ...ACTING,
    delay: { type: "string", value: "duration", help: "Due so long from now: 5m, 1h30m, 2d" },
    at: { type: "string", value: "date", help: "Due at an instant" },
    to: { type: "string", value: "queue", help: "Into this queue" },
    priority: { type: "string", short: "p", value: "n", help: "Higher first" },
  },
  details:
    "Ids, or a filter. Dead jobs (--state dead) take another queue and priority and stay dead there, until they are retried. Jobs that run, have ended otherwise, sleep or wait (for a new time), must start by an earlier instant, or are unique within the queue that they would leave are passed over, and counted.",
  json: "{ matched, edited, running, ended, waiting, past_deadline, keyed, not_found }; with --dry-run { dryRun, matched, samples }",
  examples: [
    { line: "jobs edit --queue mail --state ready --delay 2h --force", says: "Put a queue's jobs off" },
    {
      line: "jobs edit --queue mail --name newsletter --to mail-slow --dry-run",
      says: "How many would move",
    },
    { line: "jobs edit 0199… --priority 10", says: "Ahead of the others" },
    {
      line: "jobs edit --error 3f9a… --state dead --to mail-dead --force",
      says: "Put the dead jobs of one cause aside",
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
  options: { from: { type: "string", value: "step", help: "The first step that is done again" } },
  details: "It must have ended. What it did before that step is taken over; the first run stays as it is.",
  json: "{ status, id }",
  examples: [{ line: "jobs fork 0199… --from send-invoice", says: "A new run, from there on" }],
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
  summary: "list, errors, show, retry, pause, resume, cancel, terminate, delete, run, edit, fork",
  subcommands: [
    list,
    jobsErrors,
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
  json: "{ reason, text, remedy, … }; remedy: what to do, or null",
  examples: [
    {
      line: "why 0199…",
      says: "One sentence (paused, held, unserved, due later …), and what to do about it",
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
