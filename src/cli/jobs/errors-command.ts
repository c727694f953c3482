/** `holdfast errors`: failure groups and the decisions about them. */
import { StateError } from "../../errors.ts";
import type { FailureGroup, FailureGroupQuery, FailureCountQuery } from "../../index.ts";
import { checkBy, checkGroup, checkFailureGroupState } from "../../operate/index.ts";
import { type Command, type Option } from "../command.ts";
import { ACTOR, acting } from "../audit-record.ts";
import type { Context } from "../command-context.ts";
import { instant } from "./filter-options.ts";
import { grouped, oneLine, relative, table } from "../text.ts";

const noting: Readonly<Record<string, Option>> = {
  note: { type: "string", value: "text", help: "Note; an empty text removes it" },
  link: { type: "string", value: "url", help: "Link to an issue or a change; an empty text removes it" },
};

const fields =
  "group, name, queue, queues, versions, state, decidedAt, decidedBy, untilAt, untilCount, since, note, link, dead, retrying, lastHour, lastDay, lastWeek, day, firstAt, lastAt, sample, message";

const list: Command = {
  name: "list",
  summary: "list failure groups, regressed and open ones first",
  options: {
    queue: { type: "string", short: "q", multiple: true, value: "name", help: "Only these queues" },
    name: { type: "string", short: "n", multiple: true, value: "name", help: "Only these job names" },
    state: {
      type: "string",
      short: "s",
      multiple: true,
      value: "state",
      help: "open, regressed, ignored, resolved; default open and regressed",
    },
    all: { type: "boolean", help: "Include ignored and resolved groups" },
    by: {
      type: "string",
      value: "what",
      help: "Count failures by kind, queue, worker (of the last hour or two), version or hour",
    },
    since: { type: "string", value: "when", help: "With --by: start of the count; default 1d (ago)" },
  },
  json: `[{ ${fields} }]; with --by [{ value, name, failures, causes, lastAt }]`,
  examples: [
    { line: "errors list --by queue --since 6h", says: "Failures by queue" },
    { line: "errors list --queue mail", says: "Failure groups of one queue" },
    { line: "jobs retry --error 3f0c… --dry-run", says: "Preview the retry of one group" },
  ],
  run: async (ctx) => {
    const by = ctx.string("by");
    if (by !== undefined) return listBy(ctx, checkBy(by));
    const states = ctx.list("state")?.map(checkFailureGroupState);
    const query: FailureGroupQuery = {
      queue: ctx.list("queue"),
      name: ctx.list("name"),
      state: states ?? (ctx.flag("all") ? undefined : ["open", "regressed"]),
    };
    const hf = await ctx.client();
    const groups = await hf.errors.list(query);
    ctx.result(groups, () => listText(ctx, groups));
  },
};

async function listBy(ctx: Context, by: FailureCountQuery["by"]): Promise<void> {
  const given = ctx.string("since");
  const hf = await ctx.client();
  const since = given === undefined ? {} : { since: instant(given, "since") };
  const counts = await hf.errors.counts({ by, ...since });
  ctx.result(counts, () =>
    counts.length === 0
      ? "There are no failures in this time."
      : table(
          [
            {
              title: by,
              cell: ({ value, name }) =>
                by === "hour"
                  ? new Date(Number(value)).toISOString().slice(0, 16).replace("T", " ")
                  : `${name === null ? "" : `${name} `}${value}`,
              most: 60,
            },
            { title: "failures", align: "right", cell: ({ failures }) => grouped(failures) },
            { title: "groups", align: "right", cell: ({ groups }) => grouped(groups) },
            { title: "last", align: "right", cell: ({ lastAt }) => relative(lastAt, Date.now()) },
          ],
          counts,
          (cell, _column, count) => (count === null ? ctx.paint("dim", cell) : cell),
        ),
  );
}

function listText(ctx: Context, groups: readonly FailureGroup[]): string {
  if (groups.length === 0) return "There are no open failure groups.";
  const now = Date.now();
  const text = table(
    [
      { title: "group", cell: ({ group }) => group },
      { title: "state", cell: ({ state }) => state },
      { title: "dead", align: "right", cell: ({ dead }) => grouped(dead) },
      { title: "retrying", align: "right", cell: ({ retrying }) => grouped(retrying) },
      { title: "24h", align: "right", cell: ({ lastDay }) => grouped(lastDay) },
      { title: "name", cell: ({ name }) => name, most: 32 },
      { title: "queue", cell: ({ queues }) => queues.join(", "), most: 24 },
      {
        title: "last",
        align: "right",
        cell: ({ lastAt }) => (lastAt === null ? "–" : relative(lastAt, now)),
      },
      {
        title: "error",
        most: Math.max(30, ctx.io.stdout.columns - 110),
        cell: ({ message }) => message ?? "",
      },
    ],
    groups,
    (cell, column, group) => {
      if (group === null) return ctx.paint("dim", cell);
      if (column !== "state") return cell;
      return group.state === "regressed" ? ctx.paint("bad", cell) : cell;
    },
  );
  const first = groups[0]?.group ?? "";
  return `${text}\n${ctx.paint("dim", `holdfast errors show ${first}\nholdfast jobs retry --error ${first} --dry-run`)}`;
}

const show: Command = {
  name: "show",
  summary: "show one failure group: counts, queues, versions, decision",
  args: "<group>",
  maxArgs: 1,
  json: `{ ${fields}, week, weekFrom, places }`,
  examples: [{ line: "errors show 3f0c…", says: "Counts, queues, versions, note, link" }],
  run: async (ctx) => {
    const id = groupOf(ctx);
    const hf = await ctx.client();
    const group = await hf.errors.get(id);
    if (group === null) throw unknown(id);
    ctx.result(group, () => showText(ctx, group));
  },
};

function showText(ctx: Context, group: FailureGroup): string {
  const now = Date.now();
  const at = (date: Date | null): string =>
    date === null ? "–" : `${date.toISOString()} (${relative(date, now)})`;
  const until = [
    ...(group.untilAt === null ? [] : [`until ${at(group.untilAt)}`]),
    ...(group.untilCount === null
      ? []
      : [`until ${grouped(group.untilCount)} more (${grouped(group.since)} so far)`]),
  ];
  const lines: [string, string][] = [
    ["group", group.group],
    ["error", group.message ?? "–"],
    ["state", [group.state, ...until].join(", ")],
    [
      "decided",
      group.decidedAt === null
        ? "–"
        : `${at(group.decidedAt)}${group.decidedBy === null ? "" : ` by ${group.decidedBy}`}`,
    ],
    ["name", group.name],
    ["queues", group.queues.join(", ")],
    ["versions", group.versions.join(", ") || "–"],
    ["dead", `${grouped(group.dead)}, ${grouped(group.retrying)} retrying`],
    [
      "failures",
      `${grouped(group.lastHour)} in 1h, ${grouped(group.lastDay)} in 24h, ${grouped(group.lastWeek)} in 7d`,
    ],
    ["first", at(group.firstAt)],
    ["last", at(group.lastAt)],
    ["sample", group.sample ?? "–"],
  ];
  if (group.note !== null) lines.push(["note", group.note]);
  if (group.link !== null) lines.push(["link", group.link]);
  return lines.map(([name, value]) => `${ctx.paint("dim", name.padEnd(9))} ${oneLine(value)}`).join("\n");
}

const resolve: Command = {
  name: "resolve",
  summary: "mark a group as resolved; it is regressed if the failure occurs again",
  args: "<group>",
  maxArgs: 1,
  options: noting,
  json: "{ group, state }",
  examples: [{ line: `errors resolve 3f0c… --note "fixed in 2.4.1"`, says: "With a note" }],
  run: (ctx) => decide(ctx, "resolve", (hf, group, note) => hf.errors.resolve(group, note)),
};

const ignore: Command = {
  name: "ignore",
  summary: "ignore a group for good, for a time, or for a number of failures",
  args: "<group>",
  maxArgs: 1,
  options: {
    for: { type: "string", value: "duration", help: "For this time: 12h, 7d" },
    until: { type: "string", value: "date", help: "Until this instant" },
    count: { type: "string", value: "n", help: "Until this many further failures" },
    ...noting,
  },
  json: "{ group, state }",
  examples: [
    { line: "errors ignore 3f0c… --for 7d", says: "For a week" },
    { line: "errors ignore 3f0c… --count 1000", says: "Until 1,000 further failures" },
  ],
  run: (ctx) => {
    const bounds = {
      for: ctx.string("for"),
      until: ctx.date("until"),
      count: ctx.integer("count"),
    };
    return decide(ctx, "ignore", (hf, group, note) => hf.errors.ignore(group, { ...bounds, ...note }));
  },
};

const reopen: Command = {
  name: "reopen",
  summary: "reopen a resolved or ignored group",
  args: "<group>",
  maxArgs: 1,
  options: noting,
  json: "{ group, state }",
  examples: [{ line: "errors reopen 3f0c…", says: "The group is open again" }],
  run: (ctx) => decide(ctx, "reopen", (hf, group, note) => hf.errors.reopen(group, note)),
};

const note: Command = {
  name: "note",
  summary: "set the note or link of a group",
  args: "<group>",
  maxArgs: 1,
  options: noting,
  json: "{ group, note, link }",
  examples: [{ line: `errors note 3f0c… --note "asked the bank"`, says: "Keep a note with the group" }],
  run: async (ctx) => {
    const id = groupOf(ctx);
    const given = noteOf(ctx);
    const hf = await ctx.client();
    const act = { action: "errors.note", target: id, outcome: "noted", details: given };
    if (!(await acting(ctx, hf, act, () => hf.errors.set(id, given)))) throw unknown(id);
    ctx.result({ group: id, ...given }, () => `noted ${id}`);
  },
};

type Client = Awaited<ReturnType<Context["client"]>>;

async function decide(
  ctx: Context,
  verb: "resolve" | "ignore" | "reopen",
  run: (hf: Client, group: string, note: ReturnType<typeof noteOf> & { by: string }) => Promise<boolean>,
): Promise<void> {
  const id = groupOf(ctx);
  const hf = await ctx.client();
  const given = noteOf(ctx);
  const outcome = { resolve: "resolved", ignore: "ignored", reopen: "opened" }[verb];
  const act = { action: `errors.${verb}`, target: id, outcome, details: given };
  if (!(await acting(ctx, hf, act, () => run(hf, id, { ...given, by: ACTOR })))) throw unknown(id);
  const state = { resolve: "resolved", ignore: "ignored", reopen: "open" }[verb];
  ctx.result({ group: id, state }, () => `${state} ${id}`);
}

function groupOf(ctx: Context): string {
  return checkGroup(ctx.argument(0, "a failure group from `holdfast errors list`"));
}

function noteOf(ctx: Context): { note?: string; link?: string } {
  const [text, link] = [ctx.string("note"), ctx.string("link")];
  return { ...(text === undefined ? {} : { note: text }), ...(link === undefined ? {} : { link }) };
}

function unknown(id: string): StateError {
  return new StateError(
    "NOT_FOUND",
    `There is no failure group ${id}. The id is wrong, or the group was pruned.`,
    {
      details: { group: id },
    },
  );
}

export const errors: Command = {
  name: "errors",
  summary: "list, show, resolve, ignore, reopen, note",
  subcommands: [list, show, resolve, ignore, reopen, note],
  fallback: "list",
};
