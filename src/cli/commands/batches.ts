/** `holdfast batches`: what was enqueued together, and how far it is. */
import { UsageError } from "../../errors.ts";
import type { BatchFilter, BatchSummary } from "../../operate/browse.ts";
import { checkInteger } from "../../values/options.ts";
import type { Command } from "../command.ts";
import { oneLine, relative, table } from "../text.ts";
import { operatorOf } from "../../operate/operator.ts";

const states: readonly NonNullable<BatchFilter["state"]>[] = ["open", "ended", "failed"];

const list: Command = {
  name: "list",
  summary: "batches, newest first, and how far each is",
  options: {
    state: {
      type: "string",
      short: "s",
      value: "state",
      help: "open (some jobs have not ended), ended, failed (some ended dead or cancelled)",
    },
    limit: { type: "string", short: "l", value: "n", help: "At most so many; default 20" },
    cursor: { type: "string", value: "cursor", help: "Go on where the page before ended" },
  },
  details:
    "A batch is what hf.batch enqueued together. Its jobs: holdfast jobs list --batch <id>. Counts of very large batches are of their newest jobs, and say so.",
  json: "{ batches: [{ id, createdAt, names, total, counted, cut, done, dead, cancelled, open, running, gone, startedAt, endedAt, then, policy }], cursor }",
  examples: [
    { line: "batches", says: "The newest ones" },
    { line: "batches list --state failed --json", says: "Those with jobs that ended badly" },
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
        return page.cursor === null ? "No batch." : `None among the newest. Go on: --cursor ${page.cursor}`;
      const rows = table(
        [
          { title: "batch", cell: ({ id }) => id },
          { title: "jobs", cell: ({ names }) => oneLine(names.join(", ")), most: 32 },
          { title: "how far", cell: howFar, most: 60 },
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
      return page.cursor === null ? rows : `${rows}\nMore: --cursor ${page.cursor}`;
    });
  },
};

/** "9,998 of 10,000, 2 dead". */
function howFar({ total, counted, cut, open, dead, cancelled, running }: BatchSummary): string {
  const of = cut ? counted : total;
  return [
    `${of - open} of ${of}${cut ? ` looked at of ${total}` : ""}`,
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
  summary: "what was enqueued together, and how far it is",
  subcommands: [list],
  fallback: "list",
};
