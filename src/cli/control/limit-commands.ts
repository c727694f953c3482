/** `holdfast budgets`, `lanes` and `breakers`: the verbs of `hf.budgets`, `hf.lanes` and `hf.breakers`. */
import { UsageError } from "../../errors.ts";
import type { LaneOptions, LaneState } from "../../index.ts";
import { type Command, FORCE } from "../command.ts";
import { acting } from "../audit-record.ts";
import type { Context } from "../command-context.ts";
import { checkName } from "../../values/name.ts";
import { noteUnknownLane } from "../served.ts";
import { rateOf, rateText } from "../rate.ts";
import { oneLine, relative, table } from "../text.ts";
import { setting, WHILE, whileOf } from "./temporary.ts";

// --- budgets ------------------------------------------------------------------------------------------------

const budgetList: Command = {
  name: "list",
  summary: "list budgets with their tokens",
  json: "An array of budgets",
  examples: [{ line: "budgets list", says: "Tokens of each budget" }],
  run: async (ctx) => {
    const found = await (await ctx.client()).budgets.list();
    ctx.result(found, () =>
      found.length === 0
        ? "There are no budgets."
        : table(
            [
              { title: "budget", cell: ({ name }) => name, most: 60 },
              { title: "tokens", align: "right", cell: ({ tokens }) => Math.floor(tokens) },
              { title: "rate", align: "right", cell: ({ limit, per }) => rateText(limit, per) },
              { title: "burst", align: "right", cell: ({ burst }) => burst },
              { title: "note", cell: ({ tuned }) => (tuned ? "set by hand" : "") },
            ],
            found,
          ),
    );
  },
};

const budgetSet: Command = {
  name: "set",
  summary: "create or change a budget",
  args: "<name>",
  maxArgs: 1,
  options: {
    rate: { type: "string", value: "n/time", help: "Tokens per window: 50/1m" },
    burst: { type: "string", value: "n", help: "Maximum number of tokens; default the rate's number" },
    ...WHILE,
  },
  details: "The values survive restarts and override the code until: holdfast budgets reset <name>.",
  json: "{ set: name }",
  examples: [{ line: "budgets set slack --rate 50/1m", says: "50 a minute over the cluster" }],
  run: async (ctx) => {
    const which = ctx.argument(0, "the name of a budget");
    const burst = ctx.integer("burst");
    const rate = rateOf(ctx.string("rate") ?? "");
    const change = { ...rate, ...(burst === undefined ? {} : { burst }) };
    const during = whileOf(ctx);
    const hf = await ctx.client();
    await acting(ctx, hf, setting("budgets.set", which, change, during), () =>
      hf.budgets.set(which, change, during),
    );
    ctx.result({ set: which }, () => `${oneLine(which)}: set.`);
  },
};

function onBudget(
  name: "drain" | "reset" | "remove",
  summary: string,
  words: { ask?: string; done: string; none: string },
): Command {
  return {
    name,
    summary,
    args: "<name>",
    maxArgs: 1,
    ...(words.ask === undefined ? {} : { options: FORCE }),
    json: "{ name, changed: boolean }",
    examples: [{ line: `budgets ${name} slack${words.ask === undefined ? "" : " --force"}`, says: summary }],
    run: async (ctx) => {
      const which = checkName(ctx.argument(0, "the name of a budget"), "The name of a budget");
      const hf = await ctx.client();
      const none = (): string => `${which}: ${words.none}.`;
      if (words.ask !== undefined) {
        // No question about a budget that does not exist.
        if ((await hf.budgets.list()).every((budget) => budget.name !== which)) {
          ctx.result({ name: which, changed: false }, none);
          return 1;
        }
        if (!(await ctx.confirm(`${words.ask} ${which}?`))) return 1;
      }
      const outcome = { drain: "drained", reset: "reset", remove: "removed" }[name];
      const changed = await acting(ctx, hf, { action: `budgets.${name}`, target: which, outcome }, () =>
        hf.budgets[name](which),
      );
      ctx.result({ name: which, changed }, () => (changed ? `${which}: ${words.done}.` : none()));
      return changed ? 0 : 1;
    },
  };
}

export const budgets: Command = {
  name: "budgets",
  summary: "list, set, drain, reset, remove",
  subcommands: [
    budgetList,
    budgetSet,
    onBudget("drain", "take all tokens of a budget", {
      ask: "Drain",
      done: "drained",
      none: "there is no such budget",
    }),
    onBudget("reset", "restore the code's values", {
      done: "has the code's values",
      none: "the code defines no values",
    }),
    onBudget("remove", "remove a budget; its jobs are then throttled", {
      ask: "Remove the budget",
      done: "removed",
      none: "there is no such budget",
    }),
  ],
  fallback: "list",
};

// --- lanes --------------------------------------------------------------------------------------------------

function laneTable(lanes: readonly LaneState[]): string {
  const now = Date.now();
  return table(
    [
      { title: "queue", cell: ({ queue }) => queue, most: 40 },
      { title: "lane", cell: ({ key }) => oneLine(key), most: 50 },
      { title: "waiting", align: "right", cell: ({ waiting }) => (waiting >= 10_000 ? "10000+" : waiting) },
      { title: "running", align: "right", cell: ({ running }) => running },
      { title: "limit", align: "right", cell: ({ concurrency }) => concurrency ?? "–" },
      {
        title: "rate",
        align: "right",
        cell: ({ rate }) => (rate === null ? "–" : rateText(rate.limit, rate.perMs)),
      },
      { title: "weight", align: "right", cell: ({ weight }) => weight },
      {
        title: "note",
        cell: ({ paused, rateOpensAt, tuned }) =>
          [
            paused ? "paused" : "",
            rateOpensAt === null ? "" : `rate opens ${relative(rateOpensAt, now)}`,
            tuned ? "set by hand" : "",
          ]
            .filter((note) => note !== "")
            .join("; "),
      },
    ],
    lanes,
  );
}

const laneList: Command = {
  name: "list",
  summary: "list lanes with limits and counts",
  options: {
    queue: { type: "string", short: "q", value: "name", help: "Only this queue" },
    limit: { type: "string", short: "l", value: "n", help: "Page size, 1 to 1,000; default 100" },
    cursor: { type: "string", value: "cursor", help: "Show the page after this cursor" },
  },
  json: "{ lanes, cursor }",
  examples: [{ line: "lanes list --queue mail", says: "Lanes of one queue" }],
  run: async (ctx) => {
    const page = await (
      await ctx.client()
    ).lanes.list({
      queue: ctx.string("queue"),
      limit: ctx.integer("limit"),
      cursor: ctx.string("cursor"),
    });
    ctx.result(page, () => {
      if (page.lanes.length === 0) return "There are no lanes.";
      const text = laneTable(page.lanes);
      return page.cursor === null ? text : `${text}\n${ctx.paint("dim", `more: --cursor ${page.cursor}`)}`;
    });
  },
};

const laneSet: Command = {
  name: "set",
  summary: "change a lane's limits in every process",
  args: "<queue> <lane>",
  maxArgs: 2,
  options: {
    concurrency: { type: "string", value: "n", help: "Maximum number of running jobs over the cluster" },
    rate: { type: "string", value: "n/time", help: "Maximum number of starts in any window: 50/1m" },
    weight: { type: "string", value: "n", help: "Share among the lanes, 1 to 1,000" },
    ...WHILE,
  },
  details: 'Omitted limits stay. The value "none" removes a limit.',
  json: "The lane",
  examples: [
    { line: "lanes set mail tenant-7 --concurrency 5 --weight 3", says: "More for this tenant" },
    { line: "lanes set mail tenant-7 --concurrency 1 --for 30m", says: "A limit for 30 minutes" },
  ],
  run: async (ctx) => {
    const [queue, key] = laneOf(ctx);
    const change = limitsOf(ctx);
    if (Object.keys(change).length === 0)
      throw new UsageError("BAD_OPTION", "lanes set needs at least one limit. See: holdfast help lanes set");
    const hf = await ctx.client();
    const during = whileOf(ctx);
    await acting(ctx, hf, setting("lanes.set", `${queue}/${key}`, change, during), () =>
      hf.lanes.set(queue, key, change, during),
    );
    const { lanes: found } = await hf.lanes.list({ queue, key });
    ctx.result(found[0] ?? null, () => laneTable(found));
  },
};

function laneOf(ctx: Context): [queue: string, key: string] {
  return [ctx.argument(0, "a queue and a lane"), ctx.argument(1, "a queue and a lane")];
}

function limitsOf(ctx: Context): LaneOptions {
  const change: { -readonly [K in keyof LaneOptions]: LaneOptions[K] } = {};
  for (const option of ["concurrency", "weight"] as const) {
    const value = ctx.string(option);
    if (value !== undefined) change[option] = value === "none" ? null : ctx.integer(option);
  }
  const rate = ctx.string("rate");
  if (rate !== undefined) change.rate = rate === "none" ? null : rateOf(rate);
  return change;
}

function onLane(name: "pause" | "resume", summary: string, done: string): Command {
  return {
    name,
    summary,
    args: "<queue> <lane>",
    maxArgs: 2,
    json: "{ queue, lane, paused: boolean }",
    examples: [{ line: `lanes ${name} mail tenant-7`, says: summary }],
    run: async (ctx) => {
      const [queue, lane] = laneOf(ctx);
      const hf = await ctx.client();
      await noteUnknownLane(ctx, hf, queue, lane);
      const act = setting("lanes.set", `${queue}/${lane}`, { paused: name === "pause" });
      await acting(ctx, hf, act, () => hf.lanes[name](queue, lane));
      ctx.result({ queue, lane, paused: name === "pause" }, () => `${oneLine(lane)} in ${queue}: ${done}.`);
    },
  };
}

function giveUp(
  name: "reset" | "drop",
  outcome: "reset" | "dropped",
  { summary, details, says }: { readonly summary: string; readonly details: string; readonly says: string },
): Command {
  return {
    name,
    summary,
    args: "<queue> <lane>",
    maxArgs: 2,
    details,
    json: `{ queue, lane, ${outcome}: boolean }`,
    examples: [{ line: `lanes ${name} mail tenant-7`, says }],
    run: async (ctx) => {
      const [queue, lane] = laneOf(ctx);
      const hf = await ctx.client();
      const act = { action: `lanes.${name}`, target: `${queue}/${lane}`, outcome };
      const there = await acting(ctx, hf, act, () => hf.lanes[name](queue, lane));
      ctx.result({ queue, lane, [outcome]: there }, () =>
        there ? `${oneLine(lane)} in ${queue}: ${outcome}.` : `${queue} has no lane ${oneLine(lane)}.`,
      );
      return there ? 0 : 1;
    },
  };
}

export const lanes: Command = {
  name: "lanes",
  summary: "list, set, pause, resume, reset, drop",
  subcommands: [
    laneList,
    laneSet,
    onLane("pause", "pause a lane", "paused"),
    onLane("resume", "resume a lane", "resumed"),
    giveUp("reset", "reset", {
      summary: "restore the code's limits of a lane",
      details:
        "Removes limits and weight that were set by hand. A rate starts with an empty window. Running jobs stay counted, and a pause stays.",
      says: "Use the definition's limits",
    }),
    giveUp("drop", "dropped", {
      summary: "remove all settings of a lane",
      details:
        "Like reset, and also ends a pause. The lane is removed after a day without a job. A new job has the limits of its definition.",
      says: "The tenant has left",
    }),
  ],
  fallback: "list",
};

// --- breakers -----------------------------------------------------------------------------------------------

const breakerList: Command = {
  name: "list",
  summary: "list breakers that have counted failures",
  json: "An array of breakers",
  examples: [{ line: "breakers list", says: "Open breakers and their errors" }],
  run: async (ctx) => {
    const found = await (await ctx.client()).breakers.list();
    const now = Date.now();
    ctx.result(found, () =>
      found.length === 0
        ? "No breaker has counted a failure."
        : table(
            [
              { title: "breaker", cell: ({ key }) => oneLine(key), most: 60 },
              { title: "state", cell: ({ state }) => state },
              { title: "failures", align: "right", cell: ({ failures }) => failures },
              {
                title: "probe",
                cell: ({ probing, openUntil }) =>
                  probing ? "running" : openUntil === null ? "–" : relative(openUntil, now),
              },
              { title: "error", cell: ({ error }) => oneLine(error ?? ""), most: 80 },
            ],
            found,
          ),
    );
  },
};

const breakerReset: Command = {
  name: "reset",
  summary: "close a breaker",
  args: "<key>",
  maxArgs: 1,
  details: "Clears its failures. Its jobs are claimed again at once.",
  json: "{ key, reset: boolean }",
  examples: [{ line: "breakers reset queue:mail", says: "The mail server is back" }],
  run: async (ctx) => {
    const key = ctx.argument(0, "the key of a breaker");
    const hf = await ctx.client();
    const reset = await acting(ctx, hf, { action: "breakers.reset", target: key, outcome: "closed" }, () =>
      hf.breakers.reset(key),
    );
    ctx.result({ key, reset }, () => (reset ? "Closed." : `There is no breaker ${oneLine(key)}.`));
    return reset ? 0 : 1;
  },
};

export const breakers: Command = {
  name: "breakers",
  summary: "list, reset",
  subcommands: [breakerList, breakerReset],
  fallback: "list",
};
