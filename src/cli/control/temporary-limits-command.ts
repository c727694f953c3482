/** `holdfast temporary-limits`: temporary limits. */
import { UsageError } from "../../errors.ts";
import type { TemporaryLimit } from "../../index.ts";
import { acting } from "../audit-record.ts";
import type { Command } from "../command.ts";
import { oneLine, relative, table } from "../text.ts";

const list: Command = {
  name: "list",
  summary: "list temporary limits",
  json: "An array of { kind, name, key, setAt, untilAt, back }",
  examples: [{ line: "temporary-limits", says: "Ends and previous values" }],
  run: async (ctx) => {
    const found = await (await ctx.client()).temporaryLimits.list();
    const now = Date.now();
    ctx.result(found, () =>
      found.length === 0
        ? "There are no temporary limits."
        : table(
            [
              { title: "type", cell: ({ kind }) => kind },
              {
                title: "name",
                cell: ({ name, key }) => oneLine(key === null ? name : `${name} ${key}`),
                most: 60,
              },
              { title: "ends", cell: ({ untilAt }) => relative(untilAt, now) },
              {
                title: "restores",
                cell: ({ back }) =>
                  back === null ? "nothing: it is removed" : oneLine(JSON.stringify(back)),
                most: 80,
              },
            ],
            found,
          ),
    );
  },
};

const end: Command = {
  name: "end",
  summary: "end a temporary limit now",
  args: "<queue|lane|budget> <name> [<lane>]",
  maxArgs: 3,
  json: "{ ended: boolean }",
  examples: [
    { line: "temporary-limits end queue mail", says: "Restore the previous values" },
    { line: "temporary-limits end lane mail tenant-7", says: "A lane, by queue and key" },
  ],
  run: async (ctx) => {
    const kind = ctx.argument(0, "queue, lane or budget");
    if (kind !== "queue" && kind !== "lane" && kind !== "budget")
      throw new UsageError(
        "BAD_OPTION",
        `temporary-limits end takes queue, lane or budget; got ${oneLine(kind)}.`,
      );
    const of: { kind: TemporaryLimit["kind"]; name: string; key?: string } = {
      kind,
      name: ctx.argument(1, "a name"),
    };
    if (kind === "lane") of.key = ctx.argument(2, "a lane");
    const hf = await ctx.client();
    const target = of.key === undefined ? of.name : `${of.name}/${of.key}`;
    const ended = await acting(ctx, hf, { action: "temporary-limits.end", target, outcome: "back" }, () =>
      hf.temporaryLimits.end(of),
    );
    ctx.result({ ended }, () =>
      ended ? "Restored the previous values." : "There is no such temporary limit.",
    );
    return ended ? 0 : 1;
  },
};

export const temporaryLimits: Command = {
  name: "temporary-limits",
  summary: "list, end temporary limits",
  subcommands: [list, end],
  fallback: "list",
};
