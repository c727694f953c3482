/** `holdfast jobs` and `holdfast why`. Not here: the subcommands that change jobs (job-actions.ts). */
import type { Job, JobHistory } from "../../index.ts";
import type { Command } from "../command.ts";
import { acting } from "../audit-record.ts";
import type { Context } from "../command-context.ts";
import { jobActions } from "./job-actions.ts";
import { remedyOf } from "./remedy.ts";
import { FILTER, filterOf, jobTable, Search } from "./filter-options.ts";
import { duration, grouped, harmless, json, oneLine, relative, table } from "../text.ts";
import { jobIdOf, wholeFilter } from "./job-id.ts";
import { jobHistory } from "./job-history-command.ts";
import { jobLogs } from "./job-logs-command.ts";
import { operatorOf } from "../../operate/operator.ts";

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
  subcommands: [list, show, jobHistory, jobLogs, ...jobActions, fork],
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
