/** `holdfast check` and `holdfast signal`: commands for active runs. */
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { systemClock } from "../../clock.ts";
import { UsageError } from "../../errors.ts";
import { checkFiles } from "../../operate/check.ts";
import { readRunFile, type RunFile } from "../../operate/index.ts";
import type { Command } from "../command.ts";
import { acting } from "../audit-record.ts";
import type { Context } from "../command-context.ts";
import { oneLine, table } from "../text.ts";

export const check: Command = {
  name: "check",
  summary: "find active runs that this code would break",
  args: "[<file>…]",
  maxArgs: 1_000,
  options: {
    limit: { type: "string", short: "l", value: "n", help: "Maximum number of runs; default 10,000" },
  },
  details:
    "Replays the history of each active run against the jobs of holdfast.config.ts. It runs no step and writes nothing, but code outside of steps does run. Files (from `holdfast jobs history`, or *History* on the dashboard) are replayed without a database. Exit code 1: at least one run would break.",
  json: "{ checked, broken: [{ id, name, step, message }] }",
  examples: [
    { line: "check --url $PRODUCTION_REPLICA", says: "With the new code, before the deploy" },
    { line: "check run.json", says: "One run, from its file" },
  ],
  run: async (ctx) => {
    const { config, path } = await ctx.config();
    if (path === null)
      throw new UsageError(
        "BAD_CONFIG",
        "There is no holdfast.config.ts here or up to 4 folders up. The check needs the jobs of your project.",
      );
    const limit = ctx.integer("limit");
    const definitions = (config.jobs ?? []).filter((job) => job.run !== null);
    const report =
      ctx.args.length > 0
        ? await checkFiles(offline, definitions, await filesOf(ctx))
        : await (await ctx.client()).check(definitions, limit === undefined ? {} : { limit });
    ctx.result(report, () => {
      const runs = report.checked === 1 ? "1 run" : `${report.checked} runs`;
      if (report.broken.length === 0) return `Replayed ${runs}: none would break.`;
      const rows = table(
        [
          { title: "job", cell: ({ id }) => id },
          { title: "name", cell: ({ name }) => name, most: 40 },
          { title: "step", cell: ({ step }) => oneLine(step ?? "–"), most: 40 },
          { title: "problem", cell: ({ message }) => oneLine(message), most: 200 },
        ],
        report.broken,
      );
      return `${rows}\nReplayed ${runs}: ${report.broken.length} would break.`;
    });
    return report.broken.length === 0 ? 0 : 1;
  },
};

const offline = { clock: systemClock, random: Math.random, maxPayloadBytes: 256 * 1_048_576 };

/** @throws UsageError BAD_RUN_FILE for the first unreadable file. */
async function filesOf(ctx: Context): Promise<RunFile[]> {
  const files: RunFile[] = [];
  for (const name of ctx.args) {
    const path = resolve(ctx.io.cwd, name);
    let text: string;
    try {
      text = await readFile(path, "utf8");
    } catch (cause) {
      throw new UsageError("BAD_RUN_FILE", `${name} cannot be read: ${(cause as Error).message}.`, {
        cause,
        details: { file: name },
      });
    }
    files.push(readRunFile(text, name));
  }
  return files;
}

export const signal: Command = {
  name: "signal",
  summary: "send a signal to the run that waits for it",
  args: "<name> [<json>]",
  maxArgs: 2,
  options: {
    key: { type: "string", value: "text", help: "Only to a run that waits with this key" },
    expires: { type: "string", value: "duration", help: "How long an untaken signal is kept; default 7d" },
  },
  details: "The data is JSON; default null.",
  json: "{ sent: name }",
  examples: [{ line: `signal approved '{"by":"Ada"}' --key order-7`, says: "The run continues" }],
  run: async (ctx) => {
    const name = ctx.argument(0, "the name of a signal");
    let data: unknown = null;
    try {
      data = JSON.parse(ctx.args[1] ?? "null") as unknown;
    } catch (cause) {
      throw new UsageError("INPUT_NOT_JSON", `The data must be JSON: ${(cause as Error).message}.`, {
        cause,
      });
    }
    const [key, expires] = [ctx.string("key"), ctx.string("expires")];
    const hf = await ctx.client();
    await acting(
      ctx,
      hf,
      { action: "workflows.signal", target: name, outcome: "sent", details: { key } },
      () => hf.signal(name, { data, key, expires }),
    );
    ctx.result({ sent: name }, () => `Sent ${oneLine(name)}.`);
  },
};
