/** `holdfast schedules`, `budgets`, `breakers` and `lanes`: the same verbs as `hf.schedules`, `hf.budgets` … */
import { UsageError } from "../../errors.ts";
import type { Command } from "../command.ts";
import type { Context } from "../context.ts";
import { rowTable, verb } from "../parts.ts";
import { oneLine } from "../text.ts";

type Rows = readonly Readonly<Record<string, unknown>>[];

function listing(part: string, what: string, columns: readonly string[]): Command {
  return {
    name: "list",
    summary: what,
    json: "An array",
    run: async (ctx) => {
      const rows = (await (await verb(ctx, part, "list"))()) as Rows;
      ctx.result(rows, () => rowTable(rows, columns));
    },
  };
}

/** A verb that takes one name. */
function acting(part: string, name: string, summary: string, done: string, force = false): Command {
  return {
    name,
    summary,
    args: "<name>",
    maxArgs: 1,
    ...(force ? { options: { force: { type: "boolean", short: "f", help: "Do not ask" } as const } } : {}),
    json: "{ name, result }",
    run: async (ctx) => {
      const which = ctx.argument(0, "a name");
      if (force && !(await ctx.confirm(`${summary.charAt(0).toUpperCase()}${summary.slice(1)}: ${which}?`)))
        return 1;
      const result = await (await verb(ctx, part, name))(which);
      ctx.result({ name: which, result: result ?? null }, () => `${oneLine(which)}: ${done}.`);
      return result === false ? 1 : 0;
    },
  };
}

export const schedules: Command = {
  name: "schedules",
  summary: "list, pause, resume, trigger, preview, remove",
  subcommands: [
    listing("schedules", "schedules with their next instants", [
      "name",
      "cron",
      "every",
      "everyMs",
      "timezone",
      "job",
      "paused",
      "nextAt",
      "lastAt",
      "error",
    ]),
    acting("schedules", "pause", "fire no more", "paused"),
    acting("schedules", "resume", "fire again", "resumed"),
    acting("schedules", "trigger", "enqueue its job now", "triggered"),
    {
      name: "preview",
      summary: "its next instants",
      args: "<name>",
      maxArgs: 1,
      options: { count: { type: "string", short: "n", value: "n", help: "How many; default 5" } },
      json: "An array of instants",
      run: async (ctx) => {
        const which = ctx.argument(0, "a name");
        const instants = (await (
          await verb(ctx, "schedules", "preview")
        )(which, ctx.integer("count") ?? 5)) as readonly unknown[];
        ctx.result(instants, () =>
          instants.map((at) => (at instanceof Date ? at.toISOString() : oneLine(String(at)))).join("\n"),
        );
      },
    },
    acting("schedules", "remove", "forget the schedule", "removed", true),
  ],
  fallback: "list",
};

export const budgets: Command = {
  name: "budgets",
  summary: "list, set, drain",
  subcommands: [
    listing("budgets", "budgets and what is left of them", [
      "name",
      "limit",
      "perMs",
      "burst",
      "tokens",
      "available",
      "updatedAt",
    ]),
    {
      name: "set",
      summary: "make or change a budget",
      args: "<name>",
      maxArgs: 1,
      options: {
        rate: { type: "string", value: "n/time", help: "50/1m" },
        burst: { type: "string", value: "n", help: "Default the rate's number" },
      },
      json: "{ name }",
      examples: [{ line: "budgets set slack --rate 50/1m", says: "Fifty a minute over the cluster" }],
      run: async (ctx) => {
        const which = ctx.argument(0, "a name");
        await (
          await verb(ctx, "budgets", "set")
        )(which, budgetOf(ctx));
        ctx.result({ name: which }, () => `${oneLine(which)}: set.`);
      },
    },
    acting("budgets", "drain", "take what is left", "drained", true),
  ],
  fallback: "list",
};

function budgetOf(ctx: Context): { limit: number; per: string; burst?: number } {
  const match = /^(\d+(?:\.\d+)?)\/(\w+)$/.exec(ctx.string("rate") ?? "");
  if (match === null)
    throw new UsageError("BAD_OPTION", "--rate takes a number and a window, such as 50/1m.");
  const burst = ctx.integer("burst");
  return { limit: Number(match[1]), per: match[2] as string, ...(burst === undefined ? {} : { burst }) };
}

export const breakers: Command = {
  name: "breakers",
  summary: "list, reset",
  subcommands: [
    listing("breakers", "breakers and their states", [
      "key",
      "state",
      "failures",
      "openedAt",
      "probeAt",
      "until",
      "reason",
    ]),
    acting("breakers", "reset", "close a breaker", "closed"),
  ],
  fallback: "list",
};

export const lanes: Command = {
  name: "lanes",
  summary: "list, pause, resume",
  subcommands: [
    listing("lanes", "lanes with their limits and counts", [
      "queue",
      "lane",
      "key",
      "running",
      "ready",
      "concurrency",
      "rate",
      "weight",
      "paused",
    ]),
    acting("lanes", "pause", "claim nothing more from a lane", "paused"),
    acting("lanes", "resume", "let a lane go on", "resumed"),
  ],
  fallback: "list",
};
