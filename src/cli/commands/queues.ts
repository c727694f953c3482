/** `holdfast queues` and `holdfast holds`: what runs, and what is told not to. */
import { UsageError } from "../../errors.ts";
import type { QueueOptions, QueueState } from "../../index.ts";
import type { Command } from "../command.ts";
import { acting } from "../parts/audit.ts";
import type { Context } from "../command-context.ts";
import { counted, MOST_COUNTED } from "../../limits/queue-counts.ts";
import { rateOf } from "../parts/rate.ts";
import { type ShownQueue, withDead } from "../parts/dead-counts.ts";
import { noteUnknown } from "../parts/served.ts";
import { setting, WHILE, whileOf } from "../parts/temporary.ts";
import { type Column, duration, oneLine, relative, shownCount, table } from "../text.ts";
import { drain } from "./drain.ts";

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
  if (queue.draining) notes.push(`draining, since ${relative(queue.drainingAt, now)}`);
  if (queue.coolUntil !== null && queue.coolUntil.getTime() > now)
    notes.push(`cools down, ${relative(queue.coolUntil, now)}`);
  if (queue.unserved.length > 0) notes.push(`no worker for ${queue.unserved.join(", ")}`);
  return notes.join("; ");
}

const list: Command = {
  name: "list",
  summary: "queues with counts, lag and settings",
  details:
    "next: when the next scheduled job becomes due. Dead jobs are counted up to 10,000; a plus says that there may be more.",
  json: "An array of queues; dead: { count, more }; nextDueAt: null without a scheduled job",
  examples: [
    { line: "queues list --json | jq '.[] | select(.unserved != [])'", says: "Queues nobody serves" },
  ],
  run: async (ctx) => {
    const hf = await ctx.client();
    const queues = await withDead(hf, await hf.queues.list());
    ctx.result(queues, () =>
      queues.length === 0 ? "There are no queues yet." : queueTable(ctx, queues, Date.now()),
    );
  },
};

const pause: Command = {
  name: "pause",
  summary: "claim nothing more from these queues",
  args: "<name>…",
  maxArgs: 1_000,
  details: "What runs finishes. Any process can resume it.",
  json: "{ paused: [names] }",
  examples: [{ line: "queues pause mail", says: "Until: holdfast queues resume mail" }],
  run: async (ctx) => {
    const hf = await ctx.client();
    ctx.argument(0, "the name of a queue");
    await noteUnknown(ctx, hf);
    for (const name of ctx.args)
      await acting(ctx, hf, { action: "queues.pause", target: name, outcome: "paused" }, () =>
        hf.queues.pause(name),
      );
    ctx.result({ paused: ctx.args }, () => `Paused ${ctx.args.map((name) => oneLine(name)).join(", ")}.`);
  },
};

const resume: Command = {
  name: "resume",
  summary: "let these queues go on",
  args: "<name>…",
  maxArgs: 1_000,
  json: "{ resumed: [names] }",
  examples: [{ line: "queues resume mail", says: "Claims begin within a moment" }],
  run: async (ctx) => {
    const hf = await ctx.client();
    ctx.argument(0, "the name of a queue");
    await noteUnknown(ctx, hf);
    for (const name of ctx.args)
      await acting(ctx, hf, { action: "queues.resume", target: name, outcome: "resumed" }, () =>
        hf.queues.resume(name),
      );
    ctx.result({ resumed: ctx.args }, () => `Resumed ${ctx.args.map((name) => oneLine(name)).join(", ")}.`);
  },
};

const set: Command = {
  name: "set",
  summary: "change a queue's settings, live, for every process",
  args: "<name>",
  maxArgs: 1,
  options: {
    concurrency: {
      type: "string",
      value: "n",
      help: "How many may run at once over the cluster; none takes the limit away",
    },
    rate: { type: "string", value: "n/time", help: "At most n starts in every window: 50/1m; none" },
    weight: { type: "string", value: "n", help: "A worker's share between its queues; none" },
    slots: { type: "string", value: "n", help: "Slots of each worker process, 0 to 1024; none" },
    total: { type: "string", value: "n", help: "Slots of all worker processes together; none" },
    breaker: {
      type: "string",
      value: "n[,duration]",
      help: "Stop after n failures in a row, and try again after so long: 10,30s; none",
    },
    "keep-done": { type: "string", value: "duration", help: "How long done jobs are kept; 0 for ever; none" },
    "keep-dead": {
      type: "string",
      value: "duration",
      help: "How long dead and cancelled jobs are kept; 0 for ever; none",
    },
    backoff: {
      type: "string",
      value: "base[,max]",
      help: "Where neither job nor definition has one: 10s,1h; none",
    },
    cooldown: {
      type: "string",
      value: "base[,max]",
      help: "Throttled cools the whole queue down: 5s,5m; none",
    },
    ...WHILE,
  },
  details: 'The word "none" brings a setting back to its default.',
  json: "The queue",
  examples: [
    {
      line: "queues set mail --concurrency 10 --rate 50/1m",
      says: "Ten at once, fifty a minute, over the cluster",
    },
    { line: "queues set mail --concurrency none", says: "No limit again" },
    { line: "queues set mail --concurrency 2 --for 1h", says: "Then back to what it was" },
  ],
  run: async (ctx) => {
    const name = ctx.argument(0, "the name of a queue");
    const change = changeOf(ctx);
    if (Object.keys(change).length === 0)
      throw new UsageError("BAD_OPTION", "queues set needs something to set: holdfast help queues set");
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
  summary: "delete every job of a queue that has not started",
  args: "<name>",
  maxArgs: 1,
  options: {
    "dry-run": { type: "boolean", help: "Say how many, and do nothing" },
    force: { type: "boolean", help: "Do not ask" },
  },
  details:
    "Ready, scheduled and waiting jobs. What runs goes on, what has ended stays. Pause the queue first if nothing more of it is to start.",
  json: "{ matched, deleted, running }; with --dry-run { dryRun, matched }",
  examples: [
    { line: "queues purge mail --dry-run", says: "How many jobs that would be" },
    { line: "queues purge mail --force", says: "Without asking" },
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
      () => `Deleted ${result.deleted}${result.running > 0 ? `; ${result.running} had begun to run` : ""}.`,
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
  summary: "named stops in force",
  json: "An array of holds",
  examples: [{ line: "holds list", says: "What is held, and why" }],
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
  summary: "stop claims under a name",
  args: "<name>",
  maxArgs: 1,
  options: {
    queue: {
      type: "string",
      short: "q",
      multiple: true,
      value: "name",
      help: "Over these queues; default all",
    },
    reason: { type: "string", short: "r", value: "text", help: "Why" },
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
        `Nothing is claimed ${over === undefined ? "at all" : `from ${over.join(", ")}`} until: holdfast holds clear ${name}`,
    );
  },
};

const holdClear: Command = {
  name: "clear",
  summary: "end a hold",
  args: "<name>",
  maxArgs: 1,
  json: "{ cleared: boolean }",
  examples: [{ line: "holds clear session-expired", says: "Let the jobs go on" }],
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
  summary: "list, set, clear named stops",
  subcommands: [holdList, holdSet, holdClear],
  fallback: "list",
};
