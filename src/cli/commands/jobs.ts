/** `holdfast jobs`: list, errors, show, history, logs, retry, cancel, delete, run, edit. */
import { UsageError } from "../../errors.ts";
import type { Job, JobHistory } from "../../index.ts";
import { type Command, FORCE, type Option } from "../command.ts";
import type { Context } from "../context.ts";
import { checkEdit } from "../../jobs.ts";
import { jobsErrors } from "./errors.ts";
import { jobEdit, type KeptEdit } from "../../operations.ts";
import { instantMs } from "../../policy/duration.ts";
import { checkPatch, type InputPatch } from "../../policy/patch.ts";
import { bulk, FILTER, filterOf, jobTable, RATE, Search } from "../filter.ts";
import { duration, grouped, harmless, json, oneLine, relative, table } from "../text.ts";
import { jobHistory } from "./job-history.ts";
import { jobLogs } from "./job-logs.ts";

const acting: Readonly<Record<string, Option>> = {
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
    const filter = filterOf(ctx);
    const limit = ctx.integer("limit") ?? (ctx.flag("all") ? 500 : 50);
    const hf = await ctx.client();
    const search = new Search(hf, filter);
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
  json: "The job, with `why` and `history` (attempts, steps, signals, children)",
  examples: [{ line: "jobs show 0199…", says: "Input, output, errors, times, steps, related jobs" }],
  run: async (ctx) => {
    const hf = await ctx.client();
    const id = ctx.argument(0, "the id of a job");
    const job = await hf.jobs.get(id);
    if (job === null) {
      ctx.note(`There is no job ${oneLine(id, 60)}.`);
      return 1;
    }
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
    ["attempt", `${job.attempt} of ${job.maxAttempts}${job.crashes > 0 ? `, ${job.crashes} crashes` : ""}`],
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
      `${ctx.paint("bad", `attempt ${error.attempt}`)} ${ctx.paint("dim", error.at.toISOString())}`,
    );
    lines.push(harmless(error.stack ?? error.message));
  }
  return lines.join("\n");
}

/** Steps, signals and related jobs, as far as there are any. */
function historyText(ctx: Context, { steps, signals, children }: JobHistory): string[] {
  const now = Date.now();
  const head = (text: string, _column: number, row: unknown): string =>
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
    ...acting,
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
  options: acting,
  details: "A running job is asked to stop; it ends when its handler has heard.",
  json: "{ matched, cancelled, cancel_requested, ended, not_found }",
  examples: [{ line: "jobs cancel --queue imports --state ready,scheduled --force", says: "Empty a queue" }],
  run: (ctx) => bulk(ctx, { action: "cancel" }),
};

const remove: Command = {
  name: "delete",
  summary: "delete jobs, whatever their state",
  args: "[<id>…]",
  maxArgs: 10_000,
  options: acting,
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
  options: acting,
  json: "{ matched, due, not_scheduled }",
  examples: [{ line: "jobs run 0199…", says: "Do not wait for the retry" }],
  run: (ctx) => bulk(ctx, { action: "run-now" }),
};

const edit: Command = {
  name: "edit",
  summary: "put jobs to another time, queue or priority",
  args: "[<id>…]",
  maxArgs: 10_000,
  options: {
    ...acting,
    delay: { type: "string", value: "duration", help: "Due so long from now: 5m, 1h30m, 2d" },
    at: { type: "string", value: "date", help: "Due at an instant" },
    to: { type: "string", value: "queue", help: "Into this queue" },
    priority: { type: "string", short: "p", value: "n", help: "Higher first" },
  },
  details:
    "Ids, or a filter. Jobs that run, have ended, sleep or wait (for a new time), must start by an earlier instant, or are unique within the queue that they would leave are passed over, and counted.",
  json: "{ matched, edited, running, ended, waiting, past_deadline, keyed, not_found }; with --dry-run { dryRun, matched, samples }",
  examples: [
    { line: "jobs edit --queue mail --state ready --delay 2h --force", says: "Put a queue's jobs off" },
    {
      line: "jobs edit --queue mail --name newsletter --to mail-slow --dry-run",
      says: "How many would move",
    },
    { line: "jobs edit 0199… --priority 10", says: "Ahead of the others" },
  ],
  run: (ctx) => {
    const at = ctx.string("at");
    const delay = ctx.string("delay");
    const queue = ctx.string("to");
    const priority = ctx.integer("priority");
    const change: KeptEdit = {
      ...(delay === undefined ? {} : { delay }),
      ...(at === undefined ? {} : { at: instantMs(new Date(at), "at") }),
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
    const id = ctx.argument(0, "the id of a job");
    const made = await (await ctx.client()).jobs.fork(id, { from: ctx.string("from") ?? "" });
    ctx.result(made, () => `${made.status} ${made.id}`);
  },
};

export const jobs: Command = {
  name: "jobs",
  summary: "list, errors, show, retry, cancel, delete, run, edit, fork",
  subcommands: [list, jobsErrors, show, jobHistory, jobLogs, retry, cancel, remove, runNow, edit, fork],
  fallback: "list",
};

export const why: Command = {
  name: "why",
  summary: "why a job is not running",
  args: "<id>",
  maxArgs: 1,
  json: "{ reason, text, … }",
  examples: [{ line: "why 0199…", says: "One sentence: paused, held, unserved, due later …" }],
  run: async (ctx) => {
    const hf = await ctx.client();
    const id = ctx.argument(0, "the id of a job");
    const answer = await hf.jobs.why(id);
    ctx.result(answer, () => `${ctx.paint("bold", answer.reason)}  ${oneLine(answer.text)}`);
    return answer.reason === "not-found" ? 1 : 0;
  },
};

export const enqueue: Command = {
  name: "enqueue",
  summary: "enqueue a job by its name",
  args: "<kind> [<json>]",
  maxArgs: 2,
  options: {
    delay: { type: "string", value: "duration", help: "Due after 5m, 1h30m, 2d" },
    at: { type: "string", value: "date", help: "Due at an instant" },
    priority: { type: "string", short: "p", value: "n", help: "Higher first; default 0" },
    queue: { type: "string", short: "q", value: "name", help: "Default: the router's, else default" },
    key: { type: "string", value: "text", help: "The unique key" },
    lane: { type: "string", value: "text", help: "The lane" },
    attempts: { type: "string", value: "n", help: "How often at the most" },
    timeout: { type: "string", value: "duration", help: "For one attempt" },
    deadline: { type: "string", value: "duration", help: "Not started by then: cancelled" },
    context: { type: "string", value: "text", help: "Why this job exists" },
    id: { type: "string", value: "uuid", help: "Its id: enqueuing the same one again is harmless" },
    wait: { type: "string", value: "duration", help: "Wait so long for its end, and print its output" },
  },
  details:
    "The input is JSON: the second argument, or standard input when that is -. Without one it is null.",
  json: "{ status, id }; with --wait { status, id, output }",
  examples: [
    { line: `enqueue send-mail '{"to":"ada@example.org"}' --queue mail --delay 5m`, says: "One job" },
    { line: "enqueue report --wait 1m --json", says: "Wait for what it gives" },
  ],
  run: async (ctx) => {
    const name = ctx.argument(0, "the name of a job");
    const input = await inputOf(ctx);
    const hf = await ctx.client();
    const at = ctx.string("at");
    const enqueued = await hf.enqueue(name, input, {
      delay: ctx.string("delay"),
      at: at === undefined ? undefined : new Date(at),
      priority: ctx.integer("priority"),
      queue: ctx.string("queue"),
      key: ctx.string("key"),
      lane: ctx.string("lane"),
      attempts: ctx.integer("attempts"),
      timeout: ctx.string("timeout"),
      deadline: ctx.string("deadline"),
      context: ctx.string("context"),
      id: ctx.string("id"),
    });
    const wait = ctx.string("wait");
    if (wait === undefined) {
      ctx.result(enqueued, () => `${enqueued.status} ${enqueued.id}`);
      return;
    }
    const output = await hf.result(enqueued.id, { timeout: wait });
    ctx.result({ ...enqueued, output }, () => harmless(json(output, 2)));
  },
};

async function inputOf(ctx: Context): Promise<unknown> {
  const given = ctx.args[1];
  if (given === undefined) return null;
  const text = given === "-" ? await ctx.io.read() : given;
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw new UsageError(
      "INPUT_NOT_JSON",
      `The input must be JSON: ${(cause as Error).message}. In a shell, quote it: '{"to":"ada"}'.`,
      { cause },
    );
  }
}
