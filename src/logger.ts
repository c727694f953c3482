/**
 * Where log lines go: four levels and, for those who have it, a fifth, details first and the sentence second, so that a pino logger fits as it is.
 *
 * Invariant: a logger that throws harms nobody (`safely` wraps what the user gives).
 * Not here: what is logged and at which level; each part says so where it happens.
 */
import { shown, UsageError } from "./errors.ts";

/** One level of a logger. */
export type LogLine = (details: Record<string, unknown>, message: string) => void;

/**
 * What Holdfast needs of a logger. pino, and anything with the same four methods, fits.
 *
 * @example
 * const hf = await open(undefined, { logger: pino() });
 */
export interface Logger {
  debug: LogLine;
  info: LogLine;
  warn: LogLine;
  error: LogLine;
  /** What happens all the time: each claim, each attempt that starts and ends well, each look that finds nothing. Left out: not told. */
  trace?: LogLine;
}

const levels = ["debug", "info", "warn", "error"] as const;

function nothing(): void {
  // A silent logger's every level.
}

/**
 * Says nothing.
 *
 * @example
 * const hf = await open("sqlite:jobs.db", { logger: silentLogger });
 */
export const silentLogger: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing };

/**
 * Warnings and errors on the console: the default.
 *
 * @example
 * const hf = await open("sqlite:jobs.db", { logger: consoleLogger });
 */
export const consoleLogger: Logger = {
  debug: nothing,
  info: nothing,
  warn: (details, message) => console.warn(`holdfast: ${message}`, details),
  error: (details, message) => console.error(`holdfast: ${message}`, details),
};

/**
 * A user's logger, checked, and made harmless: a level that throws is dropped for that line.
 *
 * @throws UsageError BAD_OPTION
 * @example
 * const logger = safely(pino());
 */
export function safely(logger: unknown): Logger {
  for (const level of levels) {
    if (typeof (logger as Partial<Logger> | null | undefined)?.[level] === "function") continue;
    throw new UsageError(
      "BAD_OPTION",
      `logger must have the methods debug, info, warn and error, each (details, message) => void; got ${shown(logger)}.`,
      { details: { option: "logger", missing: level } },
    );
  }
  const given = logger as Logger;
  const guard = (level: keyof Logger): LogLine => {
    return (details, message) => {
      try {
        given[level]?.(details, message);
      } catch {
        // Nowhere is left to tell: the logger is what failed.
      }
    };
  };
  const safe: Logger = {
    debug: guard("debug"),
    info: guard("info"),
    warn: guard("warn"),
    error: guard("error"),
  };
  if (typeof given.trace === "function") safe.trace = guard("trace");
  return safe;
}
