/**
 * Definitions of schedules: what runs, when, and what happens to occurrences that were missed or that overlap.
 *
 * Invariants: a definition is checked when it is made and then frozen; what it cannot check (a schema that answers
 * later, the kinds in the database) is checked by `put`, before anything is written.
 * Not here: when occurrences are (cron.ts), what a due occurrence comes to (plan.ts), `hf.schedules` (schedules-client.ts).
 */
import {
  type AnyContract,
  ATTEMPT_BOUNDS,
  type EnqueueOptions,
  type JobContract,
  PRIORITY_BOUNDS,
} from "../jobs/requests.ts";
import { isJob } from "../jobs/define-job.ts";
import { shown, UsageError } from "../errors.ts";
import { type Duration, durationMs } from "../values/duration.ts";
import { cronTiming } from "./cron.ts";
import { checkName } from "../values/name.ts";
import { checkInteger, checkOptions } from "../values/options.ts";
import { type Missed, MISSED, type Overlap, OVERLAP, SHORTEST_EVERY_MS } from "./plan.ts";

/** Marks definitions, also those of another copy of the package. */
const scheduleBrand: unique symbol = Symbol.for("holdfast.schedule") as never;

/** When a schedule is due, and what it does about occurrences that it cannot keep. */
export interface ScheduleTiming {
  /** 5 fields (minute hour day-of-month month day-of-week), 6 with seconds first, 7 with the year last, or "@daily" and its like. Not together with `every`. */
  readonly cron?: string | undefined;
  /** An interval of at least a second, counted from when the schedule was first put. Not together with `cron`. */
  readonly every?: Duration | undefined;
  /** IANA name for `cron`; default "UTC". */
  readonly timezone?: string | undefined;
  /** Occurrences more than 60 s late: no job for them, one job for all, or one each (the newest 1,000). Default "one". */
  readonly missed?: Missed | undefined;
  /** While the job of an earlier occurrence has not ended: make another, make none, or make one when it has ended. Default "allow". */
  readonly overlap?: Overlap | undefined;
  /** Each job is due up to this much later than its occurrence; the same for an occurrence in every process. Default 0, at most a day. */
  readonly jitter?: Duration | undefined;
}

/** Options of the jobs that a schedule makes, as in `enqueue`. */
export type ScheduleJobOptions = Pick<
  EnqueueOptions,
  "queue" | "priority" | "key" | "lane" | "attempts" | "timeout" | "backoff" | "context"
>;

/** What `defineSchedule` takes. */
export interface ScheduleOptions<Input = unknown> extends ScheduleTiming, ScheduleJobOptions {
  /** Letters, digits and . _ : - up to 128. One schedule for each name in a database. */
  readonly name: string;
  /** The job's definition, or its name. */
  readonly job: JobContract<string, Input> | string;
  /** What each of its jobs gets. */
  readonly input: NoInfer<Input>;
  /** When the schedule is put for the first time: wait for its next occurrence, or make a job at once. Default "seed". */
  readonly firstRun?: "seed" | "fire" | undefined;
}

/**
 * A schedule, as `defineSchedule` makes it.
 *
 * @example
 * hf.work([report], { queues: ["default"], schedules: [nightly] });
 */
export interface Schedule {
  readonly [scheduleBrand]: true;
  readonly name: string;
  /** @internal */
  readonly timing: CheckedTiming;
  /** @internal */
  readonly job: AnyContract | string;
  /** @internal */
  readonly input: unknown;
  /** @internal */
  readonly options: ScheduleJobOptions;
  /** @internal */
  readonly firstRun: "seed" | "fire";
}

/** The timing with every option present. */
export interface CheckedTiming {
  readonly cron: string | null;
  readonly everyMs: number | null;
  readonly timezone: string | null;
  readonly missed: Missed;
  readonly overlap: Overlap;
  readonly jitterMs: number;
}

const timingNames = ["cron", "every", "timezone", "missed", "overlap", "jitter"] as const;
const jobNames = ["queue", "priority", "key", "lane", "attempts", "timeout", "backoff", "context"] as const;
const optionNames = ["name", "job", "input", "firstRun", ...timingNames, ...jobNames];
/** What `hf.schedules.edit` takes. */
export const EDIT_NAMES = [...timingNames, "queue", "priority", "attempts", "timeout", "input"] as const;

const longestEveryMs = 3_653 * 86_400_000;
const longestJitterMs = 86_400_000;

/**
 * Defines a schedule: hand it to `hf.work` or to `hf.schedules.put`.
 *
 * @throws UsageError BAD_CRON, BAD_TIMEZONE, BAD_DURATION, BAD_NAME, BAD_OPTION, UNKNOWN_OPTION
 * @example
 * const nightly = defineSchedule({
 *   name: "nightly-report", cron: "30 2 * * *", timezone: "Europe/Berlin",
 *   job: report, input: { of: "yesterday" }, overlap: "skip",
 * });
 */
export function defineSchedule<Input>(options: ScheduleOptions<Input>): Schedule {
  const given = checkOptions(options, optionNames, "defineSchedule") as unknown as ScheduleOptions;
  const name = checkName(given.name, "The name of a schedule");
  if (typeof given.job !== "string" && !isJob(given.job)) {
    throw new UsageError(
      "UNKNOWN_JOB",
      `job of schedule "${name}" must be a definition made by defineJob, or a job's name; got ${shown(given.job)}.`,
    );
  }
  if (typeof given.job === "string") checkName(given.job, `job of schedule "${name}"`);
  const firstRun = oneOf(given.firstRun ?? "seed", ["seed", "fire"] as const, "firstRun", name);
  const jobOptions: Record<string, unknown> = {};
  for (const option of jobNames) if (given[option] !== undefined) jobOptions[option] = given[option];
  return Object.freeze({
    [scheduleBrand]: true as const,
    name,
    timing: checkTiming(given, name),
    job: given.job,
    input: given.input === undefined ? null : given.input,
    options: jobOptions,
    firstRun,
  });
}

/** Whether a value is a definition, also one that another copy of the package made. */
export function isSchedule(value: unknown): value is Schedule {
  return (
    typeof value === "object" &&
    value !== null &&
    (value as { [scheduleBrand]?: unknown })[scheduleBrand] === true
  );
}

/** Checks the list that `hf.work` takes. */
export function checkSchedules(schedules: unknown): readonly Schedule[] {
  if (!Array.isArray(schedules) || !schedules.every(isSchedule)) {
    throw new UsageError(
      "BAD_OPTION",
      "schedules must be an array of schedules made by defineSchedule, or false for a worker that fires none.",
      { details: { option: "schedules" } },
    );
  }
  const names = schedules.map(({ name }) => name);
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice === undefined) return schedules;
  throw new UsageError("BAD_OPTION", `schedules has two schedules named "${twice}".`, {
    details: { option: "schedules", name: twice },
  });
}

function checkTiming(given: ScheduleTiming, name: string): CheckedTiming {
  if ((given.cron === undefined) === (given.every === undefined)) {
    throw new UsageError(
      "BAD_OPTION",
      `Schedule "${name}" needs either cron or every${given.cron === undefined ? "" : ", and has both"}.`,
      { details: { option: given.cron === undefined ? "cron" : "every", name } },
    );
  }
  return {
    ...occurrencesOf(given, "UTC", name),
    missed: oneOf(given.missed ?? "one", MISSED, "missed", name),
    overlap: oneOf(given.overlap ?? "allow", OVERLAP, "overlap", name),
    jitterMs: given.jitter === undefined ? 0 : jitterMs(given.jitter, name),
  };
}

function occurrencesOf(
  given: ScheduleTiming,
  timezone: string,
  name: string,
): Pick<CheckedTiming, "cron" | "everyMs" | "timezone"> {
  if (given.every === undefined) {
    cronTiming(given.cron, given.timezone ?? timezone);
    return { cron: given.cron as string, everyMs: null, timezone: given.timezone ?? timezone };
  }
  if (given.timezone !== undefined) {
    throw new UsageError(
      "BAD_OPTION",
      `Schedule "${name}" has an interval, which has no timezone. Use cron, or omit timezone.`,
      { details: { option: "timezone", name } },
    );
  }
  const everyMs = durationMs(given.every, `every of schedule "${name}"`);
  if (everyMs < SHORTEST_EVERY_MS || everyMs > longestEveryMs) {
    throw new UsageError(
      "BAD_DURATION",
      `every of schedule "${name}" must be from 1 second to 10 years; got ${shown(given.every)}.`,
      { details: { option: "every", name } },
    );
  }
  return { cron: null, everyMs, timezone: null };
}

/** The change that an edit makes to a schedule whose timing is `now`. */
export function checkEdit(
  change: ScheduleTiming & Pick<EnqueueOptions, "queue" | "priority" | "attempts" | "timeout">,
  current: Pick<CheckedTiming, "cron" | "timezone">,
  name: string,
): Record<string, unknown> {
  const edits: Record<string, unknown> = {};
  if (change.cron !== undefined && change.every !== undefined)
    throw new UsageError("BAD_OPTION", "An edit takes either cron or every, not both.", {
      details: { option: "every", name },
    });
  if (change.every !== undefined || change.cron !== undefined || change.timezone !== undefined) {
    if (change.every === undefined && change.cron === undefined && current.cron === null)
      throw new UsageError("BAD_OPTION", `Schedule "${name}" has an interval, which has no timezone.`, {
        details: { option: "timezone", name },
      });
    const cron = change.every === undefined ? (change.cron ?? current.cron ?? undefined) : undefined;
    const occurrences = occurrencesOf({ ...change, cron }, current.timezone ?? "UTC", name);
    // Only what was changed: a pattern that was edited stays in the zone that the code says. An interval has no use for the
    // zone, and keeps it for the next pattern.
    if (change.every !== undefined || change.cron !== undefined)
      Object.assign(edits, { cron: occurrences.cron, everyMs: occurrences.everyMs });
    if (change.timezone !== undefined || (change.cron !== undefined && current.timezone === null))
      edits["timezone"] = occurrences.timezone;
  }
  if (change.missed !== undefined) edits["missed"] = oneOf(change.missed, MISSED, "missed", name);
  if (change.overlap !== undefined) edits["overlap"] = oneOf(change.overlap, OVERLAP, "overlap", name);
  if (change.jitter !== undefined) edits["jitterMs"] = jitterMs(change.jitter, name);
  if (change.queue !== undefined) edits["queue"] = checkName(change.queue, "queue");
  if (change.priority !== undefined)
    edits["priority"] = checkInteger(change.priority, "priority", PRIORITY_BOUNDS);
  if (change.attempts !== undefined)
    edits["maxAttempts"] = checkInteger(change.attempts, "attempts", ATTEMPT_BOUNDS);
  if (change.timeout !== undefined) {
    const ms = durationMs(change.timeout, "timeout");
    if (ms === 0) throw new UsageError("BAD_DURATION", "timeout must be longer than 0.");
    edits["timeoutMs"] = ms;
  }
  return edits;
}

function jitterMs(jitter: Duration, name: string): number {
  const ms = durationMs(jitter, `jitter of schedule "${name}"`);
  if (ms <= longestJitterMs) return ms;
  throw new UsageError("BAD_DURATION", `jitter of schedule "${name}" must be at most a day.`, {
    details: { option: "jitter", name },
  });
}

function oneOf<const T extends string>(value: unknown, allowed: readonly T[], what: string, name: string): T {
  if (allowed.includes(value as T)) return value as T;
  throw new UsageError(
    "BAD_OPTION",
    `${what} of schedule "${name}" must be ${allowed.map((word) => `"${word}"`).join(" or ")}; got ${shown(value)}.`,
    { details: { option: what, name } },
  );
}
