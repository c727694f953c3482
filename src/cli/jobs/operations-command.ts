/** `holdfast operations`: bulk actions on this database, in any process. */
import { StateError } from "../../errors.ts";
import type { InsightFilter } from "../../operate/browse.ts";
import { type Operation, Operations } from "../../operate/operations.ts";
import type { Command } from "../command.ts";
import type { Context } from "../command-context.ts";
import { ACTOR } from "../audit-record.ts";
import { follow } from "./bulk-action.ts";
import { rateText } from "../rate.ts";
import { grouped, json, oneLine, relative, table } from "../text.ts";

const fields =
  "id, action, change, filter, rate, actor, state, standsStill, startedAt, endedAt, seenAt, total, matched, outcomes, refused, refusals, error";

const list: Command = {
  name: "list",
  summary: "list bulk actions, newest first",
  json: `[{ ${fields} }]`,
  examples: [{ line: "operations list", says: "Running, paused and stalled actions" }],
  run: async (ctx) => {
    const all = await new Operations(await ctx.client()).list();
    ctx.result(all, () => listText(ctx, all));
  },
};

function listText(ctx: Context, all: readonly Operation[]): string {
  if (all.length === 0) return "There are no bulk actions.";
  const now = Date.now();
  return table(
    [
      { title: "id", cell: ({ id }) => id },
      { title: "action", cell: ({ action }) => action },
      { title: "state", cell: stateText },
      { title: "done", align: "right", cell: progressText },
      { title: "refused", align: "right", cell: ({ refused }) => grouped(refused) },
      { title: "rate", cell: ({ rate }) => (rate === null ? "–" : rateText(rate.limit, rate.perMs)) },
      { title: "by", cell: ({ actor }) => actor, most: 24 },
      { title: "started", align: "right", cell: ({ startedAt }) => relative(new Date(startedAt), now) },
      { title: "jobs", cell: ({ filter }) => filterText(filter), most: 60 },
    ],
    all,
    (cell, column, operation) => {
      if (operation === null) return ctx.paint("dim", cell);
      if (column !== "state") return cell;
      return operation.standsStill || operation.state === "failed" ? ctx.paint("bad", cell) : cell;
    },
  );
}

const show: Command = {
  name: "show",
  summary: "show one bulk action: progress and outcomes",
  args: "<id>",
  maxArgs: 1,
  json: `{ ${fields} }`,
  examples: [{ line: "operations show 0199…", says: "Counts by outcome" }],
  run: async (ctx) => {
    const id = idOf(ctx);
    const operation = await new Operations(await ctx.client()).get(id);
    if (operation === null) throw unknown(id);
    ctx.result(operation, () => showText(ctx, operation));
  },
};

function showText(ctx: Context, operation: Operation): string {
  const now = Date.now();
  const at = (ms: number | null): string =>
    ms === null ? "–" : `${new Date(ms).toISOString()} (${relative(new Date(ms), now)})`;
  const lines: [string, string][] = [
    ["id", operation.id],
    ["action", operation.action],
    ["jobs", filterText(operation.filter)],
    ["state", stateText(operation)],
    ["done", progressText(operation)],
    ...Object.entries(operation.outcomes).map(([name, n]): [string, string] => [name, grouped(n)]),
    ["rate", operation.rate === null ? "–" : rateText(operation.rate.limit, operation.rate.perMs)],
    ["by", operation.actor],
    ["started", at(operation.startedAt)],
    ["ended", at(operation.endedAt)],
  ];
  for (const { id, outcome } of operation.refusals)
    lines.push(["refused", `${id} ${outcome.replaceAll("_", " ")}`]);
  if (operation.error !== null) lines.push(["error", operation.error]);
  return lines.map(([name, value]) => `${ctx.paint("dim", name.padEnd(9))} ${oneLine(value)}`).join("\n");
}

const pause: Command = {
  name: "pause",
  summary: "pause after the current chunk of jobs",
  args: "<id>",
  maxArgs: 1,
  json: `{ ${fields} }`,
  examples: [{ line: "operations pause 0199…", says: "The process that runs it stops" }],
  run: (ctx) => steer(ctx, (operations, id) => operations.pause(id, ACTOR)),
};

const stop: Command = {
  name: "stop",
  summary: "end a bulk action; completed changes stay",
  args: "<id>",
  maxArgs: 1,
  json: `{ ${fields} }`,
  examples: [{ line: "operations stop 0199…", says: "It cannot be resumed" }],
  run: (ctx) => steer(ctx, (operations, id) => operations.stop(id, ACTOR)),
};

const resume: Command = {
  name: "resume",
  summary: "continue a paused, failed or stalled bulk action in this process",
  args: "<id>",
  maxArgs: 1,
  json: "{ matched, …, operation, state }; if it cannot be resumed, the operation",
  examples: [{ line: "operations resume 0199…", says: "Continue it" }],
  run: async (ctx) => {
    const id = idOf(ctx);
    const operations = new Operations(await ctx.client());
    const resumed = await operations.resume(id, ACTOR);
    if (resumed === null) throw unknown(id);
    if ("left" in resumed) return follow(ctx, operations, resumed);
    ctx.result(resumed, () =>
      resumed.state === "running" ? `Another process runs ${id}.` : `${id} has ended: ${resumed.state}.`,
    );
    return 1;
  },
};

async function steer(
  ctx: Context,
  run: (operations: Operations, id: string) => Promise<Operation | null>,
): Promise<void> {
  const id = idOf(ctx);
  const operation = await run(new Operations(await ctx.client()), id);
  if (operation === null) throw unknown(id);
  ctx.result(operation, () => `${operation.state} after ${progressText(operation)}`);
}

function idOf(ctx: Context): string {
  return ctx.argument(0, "an id from `holdfast operations list`").toLowerCase();
}

function unknown(id: string): StateError {
  return new StateError(
    "NOT_FOUND",
    `There is no operation ${oneLine(id, 60)}. To list operations: holdfast operations list`,
    { details: { operation: id } },
  );
}

function stateText({ state, standsStill }: Operation): string {
  return standsStill ? "stalled" : state;
}

function progressText({ matched, total }: Operation): string {
  return `${grouped(matched)} of ${grouped(Math.max(matched, total.count))}${total.more ? "+" : ""}`;
}

function filterText(filter: InsightFilter): string {
  if (filter.ids !== undefined) return "by id";
  return Object.entries(filter)
    .filter(([name]) => name !== "until")
    .map(([name, value]) => `${name} ${valueText(value)}`)
    .join("; ");
}

function valueText(value: unknown): string {
  if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value.join(",");
  return typeof value === "string" ? value : json(value);
}

export const operations: Command = {
  name: "operations",
  summary: "bulk actions: list, show, pause, resume, stop",
  subcommands: [list, show, pause, resume, stop],
  fallback: "list",
};
