/** `holdfast schedules`: the verbs of `hf.schedules`. */
import { UsageError } from "../../errors.ts";
import type { Holdfast, ScheduleEdit, ScheduleRun, ScheduleState } from "../../index.ts";
import { timingInWords } from "../../operate/index.ts";
import { checkName } from "../../values/name.ts";
import { type Command, FORCE } from "../command.ts";
import { acting } from "../audit-record.ts";
import type { Context } from "../command-context.ts";
import { duration, oneLine, relative, table } from "../text.ts";

const timing = ({ cron, every, timezone }: ScheduleState): string =>
  timingInWords({ cron, everyMs: every, timezone });

function noteOf(schedule: ScheduleState): string {
  const notes: string[] = [];
  if (schedule.fault !== null) notes.push(schedule.fault);
  if (schedule.paused) notes.push("paused");
  else if (schedule.nextAt === null && schedule.fault === null) notes.push("no further occurrence");
  if (schedule.edited.length > 0) notes.push(`edited: ${schedule.edited.join(", ")}`);
  if (schedule.unserved) notes.push("no worker serves it");
  return notes.join("; ");
}

function scheduleTable(ctx: Context, schedules: readonly ScheduleState[]): string {
  if (schedules.length === 0) return "There are no schedules.";
  const now = Date.now();
  const when = (at: Date | null): string => (at === null ? "–" : relative(at, now));
  return table(
    [
      { title: "schedule", cell: ({ name }) => name, most: 40 },
      { title: "when", cell: timing, most: 60 },
      { title: "pattern", cell: ({ cron }) => cron ?? "–", most: 30 },
      {
        title: "job",
        cell: ({ job, queue }) => (job === null ? "–" : `${job} in ${queue ?? "–"}`),
        most: 50,
      },
      { title: "next", cell: ({ nextAt }) => when(nextAt) },
      { title: "last", cell: ({ lastRunAt }) => when(lastRunAt) },
      { title: "fired", align: "right", cell: ({ counts }) => counts.fired },
      { title: "note", cell: noteOf, most: 80 },
    ],
    schedules,
    (text, _column, schedule) =>
      schedule === null ? ctx.paint("dim", text) : schedule.fault === null ? text : ctx.paint("bad", text),
  );
}

const list: Command = {
  name: "list",
  summary: "list schedules with their next occurrences",
  json: "An array of schedules",
  examples: [{ line: "schedules list", says: "Every schedule, with its next run" }],
  run: async (ctx) => {
    const found = await (await ctx.client()).schedules.list();
    ctx.result(found, () => scheduleTable(ctx, found));
  },
};

/** A command that takes a name and prints the changed schedule. */
function changing(
  name: "pause" | "resume" | "reset",
  summary: string,
  details: string,
  done: string,
): Command {
  return {
    name,
    summary,
    args: "<name>",
    maxArgs: 1,
    details,
    json: "The schedule",
    examples: [{ line: `schedules ${name} nightly`, says: summary }],
    run: async (ctx) => {
      const which = ctx.argument(0, "the name of a schedule");
      const hf = await ctx.client();
      const outcome = { pause: "paused", resume: "resumed", reset: "reset" }[name];
      const state = await acting(ctx, hf, { action: `schedules.${name}`, target: which, outcome }, () =>
        hf.schedules[name](which),
      );
      ctx.result(state, () => `${oneLine(which)}: ${done}.`);
    },
  };
}

const edit: Command = {
  name: "edit",
  summary: "change a schedule; the change survives restarts",
  args: "<name>",
  maxArgs: 1,
  options: {
    cron: { type: "string", value: "pattern", help: 'Pattern, such as "0 4 * * *"' },
    every: { type: "string", value: "duration", help: "An interval instead of a pattern: 90s, 1h" },
    timezone: { type: "string", value: "zone", help: "IANA time zone: Europe/Berlin" },
    missed: { type: "string", value: "rule", help: "Missed occurrences: skip, one or all" },
    overlap: { type: "string", value: "rule", help: "While an earlier job is active: allow, skip or queue" },
    jitter: { type: "string", value: "duration", help: "Maximum delay after the occurrence" },
    queue: { type: "string", short: "q", value: "name", help: "Queue of its jobs" },
    priority: { type: "string", short: "p", value: "n", help: "Priority of its jobs" },
    attempts: { type: "string", value: "n", help: "Maximum number of attempts" },
    timeout: { type: "string", value: "duration", help: "Timeout of one attempt" },
    input: { type: "string", value: "json", help: "Input of its jobs" },
  },
  details: "Omitted settings stay. To restore the code's definition: holdfast schedules reset <name>.",
  json: "The schedule",
  examples: [{ line: 'schedules edit nightly --cron "0 4 * * *"', says: "Fire at four o'clock" }],
  run: async (ctx) => {
    const which = ctx.argument(0, "the name of a schedule");
    const change = editOf(ctx);
    if (Object.keys(change).length === 0)
      throw new UsageError(
        "BAD_OPTION",
        "schedules edit needs at least one change. See: holdfast help schedules edit",
      );
    const hf = await ctx.client();
    const { input: _, ...words } = change; // an input may be secret
    const act = { action: "schedules.set", target: which, outcome: "set", details: words };
    const state = await acting(ctx, hf, act, () => hf.schedules.edit(which, change));
    ctx.result(state, () => scheduleTable(ctx, [state]));
  },
};

function editOf(ctx: Context): ScheduleEdit {
  const change: Record<string, unknown> = {};
  for (const name of ["cron", "every", "timezone", "missed", "overlap", "jitter", "queue", "timeout"]) {
    const value = ctx.string(name);
    if (value !== undefined) change[name] = value;
  }
  for (const name of ["priority", "attempts"]) {
    const value = ctx.integer(name);
    if (value !== undefined) change[name] = value;
  }
  const input = ctx.string("input");
  if (input === undefined) return change;
  try {
    return { ...change, input: JSON.parse(input) as unknown };
  } catch (cause) {
    throw new UsageError("INPUT_NOT_JSON", `--input must be JSON: ${(cause as Error).message}.`, { cause });
  }
}

const trigger: Command = {
  name: "trigger",
  summary: "enqueue the job of a schedule now",
  args: "<name>",
  maxArgs: 1,
  details:
    "The job has the schedule's queue and input. The next occurrence does not change. Works while the schedule is paused.",
  json: "{ status, id }",
  examples: [{ line: "schedules trigger nightly", says: "One job now" }],
  run: async (ctx) => {
    const which = ctx.argument(0, "the name of a schedule");
    const hf = await ctx.client();
    const made = await acting(
      ctx,
      hf,
      {
        action: "schedules.trigger",
        target: which,
        outcome: "triggered",
        details: ({ id }) => ({ job: id }),
      },
      () => hf.schedules.trigger(which),
    );
    ctx.result(made, () => `${made.status} ${made.id}`);
  },
};

const backfill: Command = {
  name: "backfill",
  summary: "make jobs for past occurrences without one",
  args: "<name>",
  maxArgs: 1,
  options: {
    from: { type: "string", value: "date", help: "First instant" },
    to: { type: "string", value: "date", help: "End, exclusive; default now" },
    limit: { type: "string", value: "n", help: "Maximum number of jobs, up to 1,000; default 100" },
    "dry-run": { type: "boolean", help: "List the occurrences, and change nothing" },
    ...FORCE,
  },
  details:
    "Each occurrence gets one job, even if the command is repeated. The jobs are due now; ctx.schedule.at is the occurrence.",
  json: "{ occurrences: [{ at, jobId, status }], had, more }",
  examples: [
    { line: "schedules backfill nightly --from 2026-11-01 --dry-run", says: "Occurrences without a job" },
    {
      line: "schedules backfill nightly --from 2026-11-01 --to 2026-11-08 --force",
      says: "Without confirmation",
    },
  ],
  run: async (ctx) => {
    const which = ctx.argument(0, "the name of a schedule");
    const [from, to, limit] = [ctx.date("from"), ctx.date("to"), ctx.integer("limit")];
    if (from === undefined) throw new UsageError("BAD_OPTION", "schedules backfill needs a date in --from.");
    const range = {
      from,
      ...(to === undefined ? {} : { to }),
      ...(limit === undefined ? {} : { limit }),
    };
    const hf = await ctx.client();
    const dry = await hf.schedules.backfill(which, { ...range, dryRun: true });
    const n = dry.occurrences.length;
    const jobs = `${n}${dry.more ? " (and more)" : ""} ${n === 1 ? "occurrence" : "occurrences"} of ${oneLine(which)}`;
    if (ctx.flag("dry-run")) {
      const listed = dry.occurrences.map(({ at }) => at.toISOString());
      ctx.result(dry, () => [`${jobs} without a job; ${dry.had} with one.`, ...listed].join("\n"));
      return 0;
    }
    if (n > 0 && !(await ctx.confirm(`Make jobs for ${jobs}?`))) return 1;
    const done = await acting(
      ctx,
      hf,
      {
        action: "schedules.backfill",
        target: which,
        outcome: ({ occurrences }) => `${occurrences.length} made`,
        details: { from: from.getTime(), to: to?.getTime() },
      },
      () => hf.schedules.backfill(which, range),
    );
    ctx.result(
      done,
      () => `Made ${done.occurrences.length}${done.more ? "; run the command again for the rest" : ""}.`,
    );
    return 0;
  },
};

const preview: Command = {
  name: "preview",
  summary: "show the next occurrences of a schedule",
  args: "<name>",
  maxArgs: 1,
  options: { count: { type: "string", short: "n", value: "n", help: "Number of occurrences; default 5" } },
  json: "An array of instants",
  examples: [{ line: "schedules preview nightly", says: "The next five occurrences" }],
  run: async (ctx) => {
    const which = ctx.argument(0, "the name of a schedule");
    const instants = await (await ctx.client()).schedules.preview(which, ctx.integer("count") ?? 5);
    ctx.result(instants, () =>
      instants.length === 0
        ? "There is no further occurrence."
        : instants.map((at) => at.toISOString()).join("\n"),
    );
  },
};

const MADE_BY = { occurrence: "schedule", backfill: "backfill", hand: "hand" } as const;

function runTable(ctx: Context, found: readonly ScheduleRun[]): string {
  const length = (ms: number | null): string => (ms === null ? "–" : duration(ms));
  return table(
    [
      { title: "occurrence", cell: ({ at }) => at.toISOString() },
      { title: "by", cell: ({ by }) => MADE_BY[by] },
      { title: "state", cell: ({ state }) => state ?? "not kept" },
      { title: "late", align: "right", cell: ({ lateMs }) => length(lateMs) },
      { title: "ran", align: "right", cell: ({ ranMs }) => length(ranMs) },
      { title: "attempt", align: "right", cell: ({ attempt }) => attempt ?? "–" },
      { title: "job", cell: ({ jobId }) => jobId },
    ],
    found,
    (text, _column, run) =>
      run === null ? ctx.paint("dim", text) : run.state === "dead" ? ctx.paint("bad", text) : text,
  );
}

const runs: Command = {
  name: "runs",
  summary: "list the newest runs with lateness, duration and state",
  args: "<name>",
  maxArgs: 1,
  options: {
    limit: { type: "string", short: "n", value: "n", help: "Number of runs, up to 500; default 20" },
  },
  details:
    "`late` is the time from the occurrence to the start of the first attempt; `ran` is the duration of the latest attempt. Manual runs and backfills have no lateness. Runs are kept for 30 days.",
  json: "An array of runs: { at, by, jobId, state, attempt, startedAt, endedAt, lateMs, ranMs }",
  examples: [{ line: "schedules runs nightly --limit 7", says: "The last seven nights" }],
  run: async (ctx) => {
    const which = ctx.argument(0, "the name of a schedule");
    const found = await (await ctx.client()).schedules.runs(which, { limit: ctx.integer("limit") ?? 20 });
    ctx.result(found, () =>
      found.length === 0 ? `${oneLine(which)} has made no job yet.` : runTable(ctx, found),
    );
  },
};

const remove: Command = {
  name: "remove",
  summary: "remove a schedule",
  args: "<name>",
  maxArgs: 1,
  options: FORCE,
  details: "Its jobs stay. A worker whose code defines the schedule adds it again when it starts.",
  json: "{ removed: boolean }",
  examples: [{ line: "schedules remove nightly --force", says: "Without confirmation" }],
  run: async (ctx) => {
    const which = checkName(ctx.argument(0, "the name of a schedule"), "The name of a schedule");
    const hf: Holdfast = await ctx.client();
    const none = (): string => `There is no schedule ${which}.`;
    // No question about a schedule that does not exist.
    if ((await hf.schedules.list()).every(({ name }) => name !== which)) {
      ctx.result({ removed: false }, none);
      return 1;
    }
    if (!(await ctx.confirm(`Remove the schedule ${which}?`))) return 1;
    const removed = await acting(
      ctx,
      hf,
      { action: "schedules.remove", target: which, outcome: "removed" },
      () => hf.schedules.remove(which),
    );
    ctx.result({ removed }, () => (removed ? "Removed." : none()));
    return removed ? 0 : 1;
  },
};

export const schedules: Command = {
  name: "schedules",
  summary: "list, preview, runs, pause, resume, edit, reset, trigger, backfill, remove",
  subcommands: [
    list,
    preview,
    runs,
    changing("pause", "pause a schedule", "Applies in every process until it is resumed.", "paused"),
    changing("resume", "resume a schedule", "It fires at its next occurrence.", "resumed"),
    edit,
    changing("reset", "restore the code's definition", "Removes edits and clears a fault.", "reset"),
    trigger,
    backfill,
    remove,
  ],
  fallback: "list",
};
