/** `holdfast batches`: the batches of `hf.batch` and their progress. */
import { UsageError } from "../../errors.ts";
import type { BatchFilter, BatchSummary } from "../../operate/browse.ts";
import { checkInteger } from "../../values/options.ts";
import type { Command } from "../command.ts";
import { oneLine, relative, table } from "../text.ts";
import { operatorOf } from "../../operate/operator.ts";

const states: readonly NonNullable<BatchFilter["state"]>[] = ["open", "ended", "failed"];

const list: Command = {
  name: "list",
  summary: "list batches with their progress, newest first",
  options: {
    state: {
      type: "string",
      short: "s",
      value: "state",
      help: "open (some jobs have not ended), ended, failed (some ended dead or cancelled)",
    },
    limit: { type: "string", short: "l", value: "n", help: "Page size, 1 to 200; default 20" },
    cursor: { type: "string", value: "cursor", help: "Show the page after this cursor" },
  },
  details:
    "To list the jobs of a batch: holdfast jobs list --batch <id>. Of a very large batch only the newest jobs are counted, and the result says so.",
  json: "{ batches: [{ id, createdAt, names, total, counted, cut, done, dead, cancelled, open, running, gone, startedAt, endedAt, then, policy }], cursor }",
  examples: [
    { line: "batches", says: "The newest batches" },
    { line: "batches list --state failed --json", says: "Batches with dead or cancelled jobs" },
  ],
  run: async (ctx) => {
    const asked = ctx.string("state");
    const state = states.find((one) => one === asked);
    if (asked !== undefined && state === undefined)
      throw new UsageError("BAD_OPTION", `--state takes ${states.join(", ")}; got ${oneLine(asked)}.`);
    const limit = checkInteger(ctx.integer("limit") ?? 20, "limit", { min: 1, max: 200 });
    const cursor = ctx.string("cursor") ?? null;
    const { insight } = operatorOf(await ctx.client()).store;
    const page = await insight.batches(state === undefined ? {} : { state }, { limit, cursor });
    const now = Date.now();
    ctx.result(page, () => {
      if (page.batches.length === 0)
        return page.cursor === null
          ? "There are no batches."
          : `None among the newest. To continue: --cursor ${page.cursor}`;
      const rows = table(
        [
          { title: "batch", cell: ({ id }) => id },
          { title: "jobs", cell: ({ names }) => oneLine(names.join(", ")), most: 32 },
          { title: "progress", cell: progressOf, most: 60 },
          { title: "then", cell: then, most: 40 },
          { title: "created", align: "right", cell: ({ createdAt }) => relative(new Date(createdAt), now) },
          {
            title: "ended",
            align: "right",
            cell: ({ endedAt }) => (endedAt === null ? "–" : relative(new Date(endedAt), now)),
          },
        ],
        page.batches,
      );
      return page.cursor === null ? rows : `${rows}\nmore: --cursor ${page.cursor}`;
    });
  },
};

/** "9,998 of 10,000, 2 dead". */
function progressOf({ total, counted, cut, open, dead, cancelled, running }: BatchSummary): string {
  const of = cut ? counted : total;
  return [
    `${of - open} of ${of}${cut ? ` counted, of ${total}` : ""}`,
    ...(dead > 0 ? [`${dead} dead`] : []),
    ...(cancelled > 0 ? [`${cancelled} cancelled`] : []),
    ...(running > 0 ? [`${running} running`] : []),
  ].join(", ");
}

function then({ then: after }: BatchSummary): string {
  return after === null ? "–" : `${oneLine(after.name)} (${after.state ?? "not kept"})`;
}

export const batches: Command = {
  name: "batches",
  summary: "progress of the batches of hf.batch",
  subcommands: [list],
  fallback: "list",
};
