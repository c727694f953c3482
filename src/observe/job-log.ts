/**
 * The job log: what handlers say with `ctx.log`, kept beside their job. Off unless `open` is told otherwise.
 *
 *   ctx.log.info(…) ─▶ your logger, as always
 *                   └─▶ buffer, at most 10,000 lines ──every second──▶ one transaction ─▶ the newest `lines` of each job
 *                          └─ full ─▶ dropped, and counted
 *
 * Off by default: who has a place for logs needs no second one, and a job that says nothing costs nothing either way. Whoever
 * has turned it on reads lines where the job is looked at: the dashboard, `holdfast jobs logs`, `hf.jobLog.list`.
 *
 * Invariants: nothing waits for the log and nothing fails because of it; a crash loses what was buffered, a second at most;
 * a job keeps its newest 1,000 lines (`lines`), each with 4 KiB of message and 4 KiB of details at most; lines go when their
 * job goes, and a job that is gone gets none.
 * Not here: your own logger (logger.ts), what happened to a job (event-log.ts).
 */
import type { Clock, Timer } from "../clock.ts";
import { UsageError } from "../errors.ts";
import type { ClaimedJob } from "../jobs/job.ts";
import type { Logger } from "../logger.ts";
import { cutText, describeFailure } from "../jobs/failure.ts";
import { isId } from "../values/id.ts";
import { checkInteger, checkOptions } from "../values/options.ts";
import type { Retry } from "../storage/retry-calls.ts";
import type { Store } from "../storage/store.ts";
import type { LogLineRow } from "./store.ts";

/** How loud a line is, quietest first. */
export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error"] as const;
/** How loud a line of a log is. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** The option `jobLog` of `open`. */
export interface JobLogOptions {
  /** The quietest level that is kept; default "info". */
  readonly level?: LogLevel | undefined;
  /** How many lines a job keeps, the newest: 1 to 10,000, default 1,000. */
  readonly lines?: number | undefined;
}

/** Checked. */
export interface JobLogSettings {
  readonly level: LogLevel;
  readonly lines: number;
}

/** One line, as `hf.jobLog.list` gives it. */
export interface JobLogLine {
  readonly id: string;
  readonly at: Date;
  readonly level: LogLevel;
  /** The attempt that said it. */
  readonly attempt: number;
  readonly message: string;
  /** What was given beside the message, as JSON kept it; null: nothing. */
  readonly details: unknown;
}

/** Which lines of a job. */
export interface JobLogQuery {
  /** This level and louder. */
  readonly level?: LogLevel | undefined;
  /** Text in the message or the details, whatever the case. */
  readonly search?: string | undefined;
}

export interface JobLogDeps {
  readonly store: Store;
  readonly retry: Retry;
  readonly clock: Clock;
  readonly log: Logger;
  readonly newId: () => string;
  readonly checkOpen: () => void;
  /** Null: nothing is kept. */
  readonly settings: JobLogSettings | null;
}

const flushEveryMs = 1_000;
const mostBuffered = 10_000;
const batchSize = 1_000;
const maxTextBytes = 4_096;
const mostLines = 10_000;

/**
 * The option, checked; null when nothing is kept.
 *
 * @throws UsageError BAD_OPTION, UNKNOWN_OPTION
 */
export function checkJobLog(option: unknown): JobLogSettings | null {
  if (option === undefined || option === false) return null;
  const given = (option === true ? {} : checkOptions(option, ["level", "lines"], "jobLog")) as JobLogOptions;
  return {
    level: checkLevel(given.level ?? "info", "jobLog.level"),
    lines: checkInteger(given.lines ?? 1_000, "jobLog.lines", { min: 1, max: mostLines }),
  };
}

/** @throws UsageError BAD_OPTION */
export function checkLevel(level: unknown, what: string): LogLevel {
  if (LOG_LEVELS.includes(level as LogLevel)) return level as LogLevel;
  throw new UsageError("BAD_OPTION", `${what} must be one of ${LOG_LEVELS.join(", ")}.`, {
    details: { option: what },
  });
}

/** `hf.jobLog`. */
export class JobLog {
  readonly #deps: JobLogDeps;
  #buffer: LogLineRow[] = [];
  #dropped = 0;
  #timer: Timer | undefined;
  #flushing: Promise<void> | undefined;

  constructor(deps: JobLogDeps) {
    this.#deps = deps;
  }

  /** Whether this client keeps lines, how many wait to be written, and how many were dropped because 10,000 did. */
  get status(): { readonly on: boolean; readonly buffered: number; readonly dropped: number } {
    return { on: this.#deps.settings !== null, buffered: this.#buffer.length, dropped: this.#dropped };
  }

  /**
   * What a job's handler has said, oldest first: all that is kept of it.
   *
   * @example
   * for (const { at, level, message } of await hf.jobLog.list(id, { level: "warn" })) console.log(at, level, message);
   */
  async list(id: string, query: JobLogQuery = {}): Promise<JobLogLine[]> {
    this.#deps.checkOpen();
    const given = checkOptions(query, ["level", "search"], "jobLog.list") as JobLogQuery;
    const least = LOG_LEVELS.indexOf(checkLevel(given.level ?? "trace", "level"));
    const wanted = given.search?.toLowerCase() ?? "";
    const known = id.toLowerCase();
    if (!isId(known)) return [];
    const { store, retry } = this.#deps;
    const rows = await retry.repeatable(() => store.series.logLines(known, mostLines));
    return rows
      .filter(({ level }) => LOG_LEVELS.indexOf(level as LogLevel) >= least)
      .map(lineOf)
      .filter(
        ({ message, details }) =>
          wanted === "" ||
          message.toLowerCase().includes(wanted) ||
          (details !== null && JSON.stringify(details).toLowerCase().includes(wanted)),
      );
  }

  /**
   * Writes what is buffered now. Resolves when it is written, or could not be.
   *
   * @example
   * await hf.jobLog.flush();
   */
  flush(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#flushing ??= this.#write().finally(() => (this.#flushing = undefined));
    return this.#flushing;
  }

  /** @internal A logger that also keeps what it is told; the very same where nothing is kept. */
  keeping(log: Logger, job: ClaimedJob): Logger {
    const { settings } = this.#deps;
    if (settings === null) return log;
    const least = LOG_LEVELS.indexOf(settings.level);
    const lines: Partial<Record<LogLevel, Logger["info"]>> = {};
    for (const [rank, level] of LOG_LEVELS.entries()) {
      const told = log[level];
      if (rank < least) {
        if (told !== undefined) lines[level] = told;
        continue;
      }
      lines[level] = (details, message) => {
        told?.(details, message);
        this.#add(job, level, details, message);
      };
    }
    return lines as Logger;
  }

  /** @internal Writes the rest. */
  async close(): Promise<void> {
    if (this.#flushing !== undefined) await this.#flushing;
    if (this.#buffer.length > 0) await this.flush();
    this.#timer?.cancel();
  }

  #add(job: ClaimedJob, level: LogLevel, details: unknown, message: unknown): void {
    if (this.#buffer.length >= mostBuffered) {
      this.#dropped += 1;
      return;
    }
    // pino takes a line without details too: the message then comes first.
    const alone = typeof details === "string" && message === undefined;
    this.#buffer.push({
      id: this.#deps.newId(),
      job: job.id,
      at: this.#deps.clock.now(),
      level,
      attempt: job.attempt,
      // As JSON: NUL and lone surrogates are given back as they came, on both stores.
      message: JSON.stringify(cutText(String((alone ? details : message) ?? ""), maxTextBytes)),
      details: alone ? null : detailsOf(details),
    });
    this.#timer ??= this.#deps.clock.after(flushEveryMs, () => void this.flush(), { unref: true });
  }

  async #write(): Promise<void> {
    const { store, log, settings } = this.#deps;
    while (this.#buffer.length > 0) {
      const batch = this.#buffer.slice(0, batchSize);
      try {
        await store.series.putLogLines(batch, settings?.lines ?? mostLines);
      } catch (error) {
        log.debug(
          { error: describeFailure(error).message, buffered: this.#buffer.length },
          "the job log could not be written; lines wait in memory",
        );
        this.#timer ??= this.#deps.clock.after(flushEveryMs, () => void this.flush(), { unref: true });
        return;
      }
      this.#buffer.splice(0, batch.length);
    }
  }
}

/** The details as JSON, errors by what they say; cut to a text that says so. Never throws. */
function detailsOf(details: unknown): string | null {
  if (typeof details !== "object" || details === null) return null;
  try {
    const text = JSON.stringify(details, (_key, value: unknown) => {
      if (value instanceof Error) return describeFailure(value).message;
      return typeof value === "bigint" ? String(value) : value;
    });
    if (text === undefined || text === "{}") return null;
    const cut = cutText(text, maxTextBytes);
    return cut === text ? text : JSON.stringify(cut);
  } catch {
    return JSON.stringify("details that JSON cannot represent");
  }
}

function lineOf({ id, at, level, attempt, message, details }: LogLineRow): JobLogLine {
  return {
    id,
    at: new Date(at),
    level: level as LogLevel,
    attempt,
    message: String(parsed(message)),
    details: details === null ? null : parsed(details),
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
