/** `holdfast jobs logs`: the stored log lines of a job's handler. */
import type { JobLogLine } from "../../index.ts";
import { checkLevel } from "../../operate/index.ts";
import type { Command } from "../command.ts";
import type { Context } from "../command-context.ts";
import { jobIdOf } from "./job-id.ts";
import { harmless, json, oneLine } from "../text.ts";

export const jobLogs: Command = {
  name: "logs",
  summary: "show the stored ctx.log lines of a job",
  args: "<id>",
  maxArgs: 1,
  options: {
    level: {
      type: "string",
      value: "level",
      help: "This level and above: trace, debug, info, warn, error",
    },
    search: { type: "string", short: "s", value: "text", help: "Only lines with this text" },
  },
  details:
    "Processes whose `open` has the option jobLog store lines within a second. A job keeps its newest 1,000.",
  json: "{ lines: [{ id, at, level, attempt, message, details }] }",
  examples: [{ line: "jobs logs 0199… --level warn", says: "Warnings and errors" }],
  run: async (ctx) => {
    const level = ctx.string("level");
    const id = await jobIdOf(ctx, "look");
    const hf = await ctx.client();
    if ((await hf.jobs.get(id)) === null) throw await ctx.noJob(id);
    const lines = await hf.jobLog.list(id, {
      ...(level === undefined ? {} : { level: checkLevel(level, "--level") }),
      search: ctx.string("search"),
    });
    ctx.result({ lines }, () => textOf(ctx, lines));
    return 0;
  },
};

const tones = { trace: "dim", debug: "dim", info: "good", warn: "warn", error: "bad" } as const;

function textOf(ctx: Context, lines: readonly JobLogLine[]): string {
  if (lines.length === 0)
    return "The job has no stored lines. Workers store lines if `open` has the option jobLog.";
  return lines
    .map(({ at, level, attempt, message, details }) => {
      const more = details === null ? "" : ` ${ctx.paint("dim", harmless(json(details)))}`;
      const head = `${ctx.paint("dim", at.toISOString())} ${ctx.paint(tones[level], level.padEnd(5))}`;
      return `${head} ${ctx.paint("dim", `#${attempt}`)} ${oneLine(message)}${more}`;
    })
    .join("\n");
}
