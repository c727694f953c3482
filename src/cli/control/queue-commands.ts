/** `holdfast queues` and `holdfast holds`. */
import { UsageError } from "../../errors.ts";
import type { QueueOptions, QueueState } from "../../index.ts";
import type { Command } from "../command.ts";
import { acting } from "../audit-record.ts";
import type { Context } from "../command-context.ts";
import { counted, MOST_COUNTED } from "../../operate/index.ts";
import { rateOf } from "../rate.ts";
import { type ShownQueue, withDead } from "../monitor/dead-counts.ts";
import { noteUnknown } from "../served.ts";
import { setting, WHILE, whileOf } from "./temporary.ts";
import { type Column, duration, oneLine, relative, shownCount, table } from "../text.ts";
import { drain } from "./drain-command.ts";

/** Queues as a table for people. */
export function queueTable(
  ctx: Pick<Context, "paint">,
  queues: readonly (QueueState & Partial<Pick<ShownQueue, "dead">>)[],
  now: number,
  width?: number,
): string {
  const told = queues.some(({ dead }) => dead !== undefined);
  return table(
    [
      { title: "queue", cell: ({ name }) => name, most: 40 },
      { title: "ready", align: "right", cell: cellOf("ready") },
      { title: "running", align: "right", cell: cellOf("running") },
      { title: "scheduled", align: "right", spare: 4, cell: cellOf("scheduled") },
      { title: "waiting", align: "right", spare: 3, cell: cellOf("waiting") },
      ...(told ? [deadColumn] : []),
      { title: "lag", align: "right", cell: ({ lagMs }) => duration(lagMs) },
      { title: "next", align: "right", spare: 1, cell: ({ nextDueAt }) => relative(nextDueAt, now) },
      { title: "limit", align: "right", spare: 2, cell: ({ settings }) => settings.concurrency ?? "–" },
      { title: "note", cell: (queue) => noteOf(queue, now), most: 80 },
    ],
    queues,
    (text, column, queue) => {
      if (queue === null) return ctx.paint("dim", text);
      if (column === "dead" && queue.dead !== undefined && queue.dead.count > 0)
        return ctx.paint("bad", text);
      return column === "note" ? ctx.paint(queue.unserved.length > 0 ? "bad" : "warn", text) : text;
    },
    width,
  );
}

const deadColumn: Column<Partial<Pick<ShownQueue, "dead">>> = {
  title: "dead",
  align: "right",
  cell: ({ dead }) => (dead === undefined ? "–" : shownCount(dead)),
};

function cellOf(state: keyof QueueState["counts"]): (queue: QueueState) => number | string {
  return (queue) => (queue.atLeast.includes(state) ? counted([queue], state) : queue.counts[state]);
}

function noteOf(queue: QueueState, now: number): string {
  const notes: string[] = [];
  if (queue.paused) notes.push(`paused ${relative(queue.pausedAt, now)}`);
  if (queue.draining) notes.push(`draining, started ${relative(queue.drainingAt, now)}`);
  if (queue.coolUntil !== null && queue.coolUntil.getTime() > now)
    notes.push(`cooling down, ends ${relative(queue.coolUntil, now)}`);
  if (queue.unserved.length > 0) notes.push(`no worker for ${queue.unserved.join(", ")}`);
  return notes.join("; ");
}

const list: Command = {
  name: "list",
  summary: "list queues with counts, lag and settings",
  details:
    "`next` is the due time of the next scheduled job. Dead jobs are counted up to 10,000; a plus sign means that there may be more.",
  json: "An array of queues; dead: { count, more }; nextDueAt: null without a scheduled job",
  examples: [
    { line: "queues list --json | jq '.[] | select(.unserved != [])'", says: "Queues without a worker" },
  ],
  run: async (ctx) => {
    const hf = await ctx.client();
    const queues = await withDead(hf, await hf.queues.list());
    ctx.result(queues, () =>
      queues.length === 0 ? "There are no queues yet." : queueTable(ctx, queues, Date.now()),
    );
  },
};

function onQueues(
  name: "pause" | "resume",
  done: "paused" | "resumed",
  { details, says }: { readonly details?: string; readonly says: string },
): Command {
  return {
    name,
    summary: `${name} queues`,
    args: "<name>…",
    maxArgs: 1_000,
    ...(details === undefined ? {} : { details }),
    json: `{ ${done}: [names] }`,
    examples: [{ line: `queues ${name} mail`, says }],
    run: async (ctx) => {
      const hf = await ctx.client();
      ctx.argument(0, "the name of a queue");
      await noteUnknown(ctx, hf);
      for (const queue of ctx.args)
        await acting(ctx, hf, { action: `queues.${name}`, target: queue, outcome: done }, () =>
          hf.queues[name](queue),
        );
      const names = ctx.args.map((queue) => oneLine(queue)).join(", ");
      ctx.result({ [done]: ctx.args }, () => `${done === "paused" ? "Paused" : "Resumed"} ${names}.`);
    },
  };
}

const pause = onQueues("pause", "paused", {
  details: "No job is claimed until the queue is resumed. Running jobs finish.",
  says: "Until: holdfast queues resume mail",
});
const resume = onQueues("resume", "resumed", { says: "Workers claim its jobs again" });

const set: Command = {
  name: "set",
  summary: "change a queue's settings in every process",
  args: "<name>",
  maxArgs: 1,
  options: {
    concurrency: {
      type: "string",
      value: "n",
      help: "Maximum number of running jobs over the cluster",
    },
    rate: { type: "string", value: "n/time", help: "Maximum number of starts in any window: 50/1m" },
    weight: { type: "string", value: "n", help: "Share of a worker's slots among its queues" },
    slots: { type: "string", value: "n", help: "Slots of each worker process, 0 to 1024" },
    total: { type: "string", value: "n", help: "Slots of all worker processes together" },
    breaker: {
      type: "string",
      value: "n[,duration]",
      help: "Open after n failures in a row, probe after the duration: 10,30s",
    },
    "keep-done": { type: "string", value: "duration", help: "Retention of done jobs; 0 keeps them for ever" },
    "keep-dead": {
      type: "string",
      value: "duration",
      help: "Retention of dead and cancelled jobs; 0 keeps them for ever",
    },
    backoff: {
      type: "string",
      value: "base[,max]",
      help: "For jobs without a backoff of their own: 10s,1h",
    },
    cooldown: {
      type: "string",
      value: "base[,max]",
      help: "Stop the queue after a Throttled: 5s,5m",
    },
    ...WHILE,
  },
  details: 'The value "none" restores the default of a setting.',
  json: "The queue",
  examples: [
    {
      line: "queues set mail --concurrency 10 --rate 50/1m",
      says: "At most 10 at once and 50 a minute over the cluster",
    },
    { line: "queues set mail --concurrency none", says: "Remove the limit" },
    { line: "queues set mail --concurrency 2 --for 1h", says: "A limit for one hour" },
  ],
  run: async (ctx) => {
    const name = ctx.argument(0, "the name of a queue");
    const change = changeOf(ctx);
    if (Object.keys(change).length === 0)
      throw new UsageError(
        "BAD_OPTION",
        "queues set needs at least one setting. See: holdfast help queues set",
      );
    const hf = await ctx.client();
    const during = whileOf(ctx);
    await acting(ctx, hf, setting("queues.set", name, change, during), () =>
      hf.queues.set(name, change, during),
    );
    const queue = (await hf.queues.list({ upTo: MOST_COUNTED })).find((one) => one.name === name);
    ctx.result(queue ?? { name }, () =>
      queue === undefined ? "Set." : queueTable(ctx, [queue], Date.now()),
    );
  },
};

const purge: Command = {
  name: "purge",
  summary: "delete all jobs of a queue that have not started",
  args: "<name>",
  maxArgs: 1,
  options: {
    "dry-run": { type: "boolean", help: "Count the jobs, and change nothing" },
    force: { type: "boolean", help: "Do not ask for confirmation" },
  },
  details:
    "Deletes ready, scheduled and waiting jobs. Running and ended jobs stay. Pause the queue first to keep further jobs from starting.",
  json: "{ matched, deleted, running }; with --dry-run { dryRun, matched }",
  examples: [
    { line: "queues purge mail --dry-run", says: "Count the jobs" },
    { line: "queues purge mail --force", says: "Without confirmation" },
  ],
  run: async (ctx) => {
    const name = ctx.argument(0, "the name of a queue");
    const hf = await ctx.client();
    const { matched } = await hf.queues.purge(name, { dryRun: true });
    const those = `${matched} ${matched === 1 ? "job" : "jobs"} of ${oneLine(name)} that ${matched === 1 ? "has" : "have"} not started`;
    if (ctx.flag("dry-run")) {
      ctx.result({ dryRun: true, matched }, () => `Would delete ${those}.`);
      return 0;
    }
    if (matched > 0 && !(await ctx.confirm(`Delete ${those}?`))) return 1;
    const result = await acting(
      ctx,
      hf,
      {
        action: "jobs.purge",
        target: JSON.stringify({ queues: [name] }),
        outcome: ({ deleted }) => `${deleted} deleted`,
      },
      () => hf.queues.purge(name),
    );
    ctx.result(
      result,
      () => `Deleted ${result.deleted}${result.running > 0 ? `; ${result.running} had started` : ""}.`,
    );
    return 0;
  },
};

function changeOf(ctx: Context): QueueOptions {
  const change: { -readonly [K in keyof QueueOptions]: QueueOptions[K] } = {};
  for (const option of ["concurrency", "weight", "slots", "total"] as const) {
    const value = ctx.string(option);
    if (value !== undefined) change[option] = value === "none" ? null : ctx.integer(option);
  }
  const rate = ctx.string("rate");
  if (rate !== undefined) change.rate = rate === "none" ? null : rateOf(rate);
  const breaker = ctx.string("breaker");
  if (breaker !== undefined) change.breaker = breaker === "none" ? null : breakerOf(breaker);
  const [done, dead] = [ctx.string("keep-done"), ctx.string("keep-dead")];
  if (done === "none" || dead === "none") change.retention = null;
  else if (done !== undefined || dead !== undefined)
    change.retention = { done: keepOf(done), dead: keepOf(dead) };
  for (const option of ["backoff", "cooldown"] as const) {
    const value = ctx.string(option);
    if (value === undefined) continue;
    const [base, max] = value.split(",");
    const pair = max === undefined ? { base: base as string } : { base: base as string, max };
    change[option] = value === "none" ? null : pair;
  }
  return change;
}

function breakerOf(text: string): NonNullable<QueueOptions["breaker"]> {
  const match = /^(\d+)(?:,(\w+))?$/.exec(text);
  if (match === null)
    throw new UsageError(
      "BAD_OPTION",
      `--breaker takes a number of failures and a duration, such as 10,30s; got ${JSON.stringify(text)}.`,
    );
  return { after: Number(match[1]), ...(match[2] === undefined ? {} : { cooldown: match[2] }) };
}

function keepOf(value: string | undefined): string | number | undefined {
  return value === "0" ? 0 : value;
}

export const queues: Command = {
  name: "queues",
  summary: "list, pause, drain, resume, set, purge",
  subcommands: [list, pause, drain, resume, set, purge],
  fallback: "list",
};

const holdList: Command = {
  name: "list",
  summary: "list active holds",
  json: "An array of holds",
  examples: [{ line: "holds list", says: "Active holds with their reasons" }],
  run: async (ctx) => {
    const found = await (await ctx.client()).holds.list();
    ctx.result(found, () =>
      found.length === 0
        ? "There are no holds."
        : table(
            [
              { title: "hold", cell: ({ name }) => name },
              { title: "queues", cell: (hold) => hold.queues?.join(", ") ?? "all", most: 60 },
              { title: "since", cell: ({ setAt }) => relative(setAt, Date.now()) },
              { title: "reason", cell: ({ reason }) => reason ?? "", most: 80 },
            ],
            found,
          ),
    );
  },
};

const holdSet: Command = {
  name: "set",
  summary: "set a hold: nothing is claimed until it is cleared",
  args: "<name>",
  maxArgs: 1,
  options: {
    queue: {
      type: "string",
      short: "q",
      multiple: true,
      value: "name",
      help: "Queues to hold; default all",
    },
    reason: { type: "string", short: "r", value: "text", help: "Reason, shown in lists" },
  },
  json: "{ set: name }",
  examples: [
    { line: `holds set session-expired --queue crawl --reason "log in again"`, says: "Until it is cleared" },
  ],
  run: async (ctx) => {
    const name = ctx.argument(0, "the name of a hold");
    const reason = ctx.string("reason");
    const over = ctx.list("queue");
    const what = {
      ...(over === undefined ? {} : { queues: over }),
      ...(reason === undefined ? {} : { reason }),
    };
    const hf = await ctx.client();
    await acting(ctx, hf, { action: "holds.set", target: name, outcome: "set", details: what }, () =>
      hf.holds.set(name, what),
    );
    ctx.result(
      { set: name },
      () =>
        `No job is claimed${over === undefined ? "" : ` from ${over.join(", ")}`} until: holdfast holds clear ${name}`,
    );
  },
};

const holdClear: Command = {
  name: "clear",
  summary: "clear a hold",
  args: "<name>",
  maxArgs: 1,
  json: "{ cleared: boolean }",
  examples: [{ line: "holds clear session-expired", says: "Jobs are claimed again" }],
  run: async (ctx) => {
    const name = ctx.argument(0, "the name of a hold");
    const hf = await ctx.client();
    const cleared = await acting(ctx, hf, { action: "holds.clear", target: name, outcome: "cleared" }, () =>
      hf.holds.clear(name),
    );
    ctx.result({ cleared }, () => (cleared ? "Cleared." : `There is no hold ${oneLine(name)}.`));
    return cleared ? 0 : 1;
  },
};

export const holds: Command = {
  name: "holds",
  summary: "list, set, clear holds (named pauses)",
  subcommands: [holdList, holdSet, holdClear],
  fallback: "list",
};
