/** A logger for the command line: readable lines on a terminal, JSON lines with --json; always on standard error. */
import { UsageError } from "../errors.ts";
import type { Logger } from "../index.ts";
import type { Context } from "./command-context.ts";
import { harmless, json, oneLine } from "./text.ts";

const levels = ["trace", "debug", "info", "warn", "error"] as const;
type Level = (typeof levels)[number];
const tones = { trace: "dim", debug: "dim", info: "accent", warn: "warn", error: "bad" } as const;

export function loggerTo(ctx: Context, least: string): Logger {
  const from = levels.indexOf(least as Level);
  if (from === -1)
    throw new UsageError(
      "BAD_OPTION",
      `--log-level takes ${levels.join(", ")}; got ${JSON.stringify(least)}.`,
    );
  const line =
    (level: Level) =>
    (details: Record<string, unknown>, message: string): void => {
      if (levels.indexOf(level) < from) return;
      const at = new Date().toISOString();
      if (ctx.json) ctx.note(json({ at, level, message, ...plain(details) }));
      else
        ctx.note(
          `${ctx.paintError("dim", at.slice(11, 23))} ${ctx.paintError(tones[level], level.padEnd(5))} ${oneLine(message)} ${ctx.paintError("dim", fields(details))}${ctx.paintError("dim", stackOf(details))}`,
        );
    };
  const logger: Logger = {
    debug: line("debug"),
    info: line("info"),
    warn: line("warn"),
    error: line("error"),
  };
  if (from === 0) logger.trace = line("trace");
  return logger;
}

/** A stack is printed whole below its line. Cut to the width of a field, it would end before the first frame of the job's own code. */
function isStack(name: string, value: unknown): value is string {
  return name === "stack" && typeof value === "string";
}

function stackOf({ stack }: Record<string, unknown>): string {
  if (!isStack("stack", stack)) return "";
  return harmless(stack)
    .split("\n")
    .map((line) => `\n    ${line}`)
    .join("");
}

function plain(details: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(details).map(([name, value]) => [name, value instanceof Error ? value.message : value]),
  );
}

function fields(details: Record<string, unknown>): string {
  return Object.entries(plain(details))
    .filter(([name, value]) => value !== null && value !== undefined && !isStack(name, value))
    .map(([name, value]) => `${name}=${oneLine(typeof value === "string" ? value : json(value), 200)}`)
    .join(" ");
}
