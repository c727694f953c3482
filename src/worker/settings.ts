/**
 * The options of `hf.work`, checked and turned into numbers.
 *
 * Invariants: a worker never starts with an option that it would ignore, without a queue, or with a lease that its
 * heartbeat cannot keep (0 < heartbeat < lease); an error names the option or the environment variable.
 * Not here: what the settings do (worker.ts), a queue's live settings in the database (slots.ts).
 */
import { ATTEMPT_BOUNDS } from "../jobs/requests.ts";
import type { AnyJob } from "../jobs/define-job.ts";
import { shown, UsageError } from "../errors.ts";
import { type Backoff, type BackoffFunction, checkBackoff } from "../jobs/backoff.ts";
import { type Duration, durationMs } from "../values/duration.ts";
import { checkName } from "../values/name.ts";
import { checkInteger, checkOptions, isPlainObject } from "../values/options.ts";
import { checkSchedules, type Schedule } from "../schedules/define-schedule.ts";

/**
 * The options of `hf.work`.
 *
 * @example
 * hf.work([sendMail], { queues: { mail: 20, default: { concurrency: 5 } }, signals: true });
 */
export interface WorkOptions {
  /** The queues to serve, with the slots of this process for each; without a number, one slot per CPU. Else the environment's QUEUES ("mail=20,default"). */
  queues?: readonly string[] | Readonly<Record<string, number | { concurrency?: number }>>;
  /** Schedules to put when it starts. False: this worker fires none, not even those of others. */
  schedules?: readonly Schedule[] | false;
  /** How long this worker's jobs are safe without a heartbeat. Default 30 s. */
  lease?: Duration;
  /** How often the lease is renewed. Default 10 s, or a third of a shorter lease. */
  heartbeat?: Duration;
  /** How often to look for work while wake-ups are not proven to arrive. Default 500 ms. */
  poll?: Duration;
  /** How long `stop` lets running jobs finish. Default 30 s. */
  shutdown?: Duration;
  /** Stop on SIGTERM and SIGINT; a second one exits at once. Default false. */
  signals?: boolean;
  /** Stops the worker when it aborts, as `stop` would; one that has aborted already stops it at once. */
  signal?: AbortSignal;
  /** Attempts and backoff of jobs whose row, definition and queue do not say. Steps of machines have their own. */
  retry?: { attempts?: number | undefined; backoff?: Backoff | BackoffFunction | undefined };
  /** Shown in `hf.workers.list()`. Else the environment's WORKER_NAME, else the host's name. */
  name?: string;
  /** Which build of yours this is, such as a tag or a commit: a mark on the dashboard's charts where the first worker with it started. Else the environment's HOLDFAST_RELEASE. */
  release?: string;
  /** How long the event loop may be blocked before the lease is let go. Default 60 s. */
  maxBlock?: Duration;
  /** Event-loop delay above which nothing more is claimed. Default 500 ms. */
  maxLoopDelay?: Duration;
}

/** The options as the worker uses them. */
export interface WorkerSettings {
  /** Queue name → slots. */
  readonly queues: ReadonlyMap<string, number>;
  /** Null: this worker fires no schedules. */
  readonly schedules: readonly Schedule[] | null;
  /** Those of them that were given no number: weights share their slots out. */
  readonly even: ReadonlySet<string>;
  readonly leaseMs: number;
  readonly beatMs: number;
  readonly pollMs: number;
  readonly shutdownMs: number;
  readonly signals: boolean;
  readonly signal: AbortSignal | null;
  /** Null: the default. */
  readonly attempts: number | null;
  readonly backoff: Backoff | BackoffFunction | null;
  readonly name: string;
  /** Null: nobody said. */
  readonly release: string | null;
  readonly maxBlockMs: number;
  readonly maxLoopDelayMs: number;
}

/** What stands in for options that are not given. */
export interface SettingsEnv {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cpus: number;
  readonly host: string;
}

const optionNames = [
  "queues",
  "schedules",
  "lease",
  "heartbeat",
  "poll",
  "shutdown",
  "signals",
  "signal",
  "retry",
  "name",
  "release",
  "maxBlock",
  "maxLoopDelay",
];
const mostSlots = 1_024;

/**
 * Checks the options of `hf.work`.
 *
 * @throws UsageError UNKNOWN_OPTION, BAD_OPTION, BAD_DURATION, BAD_NAME, NO_QUEUES, BAD_LEASE
 * @example
 * const settings = workerSettings({ queues: ["mail"] }, { env: process.env, cpus: 4, host: "web-1" });
 */
export function workerSettings(options: WorkOptions | undefined, given: SettingsEnv): WorkerSettings {
  const known = checkOptions(options, optionNames, "work") as WorkOptions;
  const leaseMs = durationMs(known.lease ?? "30s", "lease");
  const beatMs = durationMs(known.heartbeat ?? Math.min(10_000, Math.floor(leaseMs / 3)), "heartbeat");
  if (!(beatMs > 0 && beatMs < leaseMs)) {
    throw new UsageError(
      "BAD_LEASE",
      `heartbeat (${beatMs} ms) must be more than 0 and less than lease (${leaseMs} ms), or the lease expires between two heartbeats.`,
      {
        details: { leaseMs, beatMs },
      },
    );
  }
  return {
    ...queuesOf(known.queues, given),
    schedules: known.schedules === false ? null : checkSchedules(known.schedules ?? []),
    leaseMs,
    beatMs,
    pollMs: positive(known.poll ?? "500ms", "poll"),
    shutdownMs: durationMs(known.shutdown ?? "30s", "shutdown"),
    signals: flag(known.signals, "signals"),
    signal: signalOf(known.signal),
    ...retryOf(known.retry),
    name: nameOf(known.name, given),
    release: releaseOf(known.release, given),
    maxBlockMs: positive(known.maxBlock ?? "60s", "maxBlock"),
    maxLoopDelayMs: positive(known.maxLoopDelay ?? "500ms", "maxLoopDelay"),
  };
}

function signalOf(signal: unknown): AbortSignal | null {
  if (signal === undefined) return null;
  if (signal instanceof AbortSignal) return signal;
  throw new UsageError("BAD_OPTION", `signal of work must be an AbortSignal; got ${shown(signal)}.`, {
    details: { option: "signal" },
  });
}

function retryOf(retry: unknown): Pick<WorkerSettings, "attempts" | "backoff"> {
  const { attempts, backoff } = checkOptions(retry, ["attempts", "backoff"], "retry of work");
  return {
    attempts:
      attempts === undefined ? null : checkInteger(attempts, "retry.attempts of work", ATTEMPT_BOUNDS),
    backoff: backoff === undefined ? null : checkBackoff(backoff, "retry.backoff of work"),
  };
}

/** The definitions with the worker's defaults where they do not say. A machine's steps have a rule of their own. */
export function withDefaults(
  definitions: ReadonlyMap<string, AnyJob>,
  { attempts, backoff }: Pick<WorkerSettings, "attempts" | "backoff">,
): ReadonlyMap<string, AnyJob> {
  if (attempts === null && backoff === null) return definitions;
  const filled = [...definitions].map(([name, definition]): [string, AnyJob] => {
    if ((definition.machine ?? null) !== null) return [name, definition];
    const own = definition.row.maxAttempts ?? attempts ?? definition.attempts;
    return [name, { ...definition, attempts: own, workerBackoff: backoff }];
  });
  return new Map(filled);
}

function releaseOf(release: unknown, given: SettingsEnv): string | null {
  const text = release ?? given.env["HOLDFAST_RELEASE"];
  if (text === undefined || text === "") return null;
  if (typeof text === "string" && /^[\x21-\x7e]{1,100}$/.test(text)) return text;
  throw new UsageError(
    "BAD_OPTION",
    "release must be 1 to 100 characters without spaces, such as a tag or a commit.",
    {
      details: { option: "release" },
    },
  );
}

function queuesOf(
  queues: WorkOptions["queues"],
  given: SettingsEnv,
): Pick<WorkerSettings, "queues" | "even"> {
  const found = new Map<string, number>();
  const even = new Set<string>();
  for (const [name, slots] of pairsOf(queues, given.env["QUEUES"])) {
    const queue = queueName(name, queues === undefined);
    found.set(queue, slots === undefined ? Math.max(1, given.cpus) : slotsOf(slots, name));
    if (slots === undefined) even.add(queue);
    else even.delete(queue);
  }
  if (found.size > 0) return { queues: found, even };
  throw new UsageError(
    "NO_QUEUES",
    'A worker needs queues: give the option `queues` (["mail"] or { mail: 20 }), or set the environment variable QUEUES ("mail,default").',
    {
      details: { option: "queues", variable: "QUEUES" },
    },
  );
}

function pairsOf(
  queues: WorkOptions["queues"],
  variable: string | undefined,
): [name: unknown, slots: unknown][] {
  if (queues === undefined) {
    const parts = (variable ?? "").split(",").map((part) => part.trim());
    return parts.filter((part) => part !== "").map((part) => fromVariable(part));
  }
  if (Array.isArray(queues)) return queues.map((name: unknown) => [name, undefined]);
  if (isPlainObject(queues)) return Object.entries(queues);
  throw new UsageError(
    "BAD_OPTION",
    `queues must be an array of names or an object of name → slots; got ${shown(queues)}.`,
    { details: { option: "queues" } },
  );
}

function fromVariable(part: string): [name: unknown, slots: unknown] {
  const [name, slots] = part.split("=", 2);
  return [name?.trim(), slots === undefined ? undefined : Number(slots)];
}

function queueName(name: unknown, fromEnvironment: boolean): string {
  const setting = fromEnvironment ? "the environment variable QUEUES" : "the option queues";
  try {
    return checkName(name, `a queue's name in ${setting}`);
  } catch (cause) {
    throw new UsageError("NO_QUEUES", (cause as Error).message, { details: { setting }, cause });
  }
}

function slotsOf(value: unknown, name: unknown): number {
  const what = `queues.${String(name)}`;
  const bounds = { min: 1, max: mostSlots };
  if (!isPlainObject(value)) return checkInteger(value, what, bounds);
  const { concurrency } = checkOptions(value, ["concurrency"], what);
  return checkInteger(concurrency, `${what}.concurrency`, bounds);
}

function nameOf(name: string | undefined, given: SettingsEnv): string {
  if (name !== undefined) return checkName(name, "the worker's name");
  const variable = given.env["WORKER_NAME"];
  if (variable !== undefined && variable !== "")
    return checkName(variable, "the environment variable WORKER_NAME");
  // A host's name is whatever its operator gave it; ours must fit into a log line and an address.
  const host = given.host.replaceAll(/[^A-Za-z0-9._:-]/g, "-").slice(0, 128);
  return /^[A-Za-z0-9]/.test(host) ? host : "worker";
}

function positive(value: Duration, what: string): number {
  const ms = durationMs(value, what);
  if (ms > 0) return ms;
  throw new UsageError("BAD_OPTION", `${what} must be more than 0.`, { details: { option: what } });
}

function flag(value: unknown, what: string): boolean {
  if (value === undefined) return false;
  if (typeof value === "boolean") return value;
  throw new UsageError("BAD_OPTION", `${what} must be true or false; got ${shown(value)}.`, {
    details: { option: what },
  });
}

/**
 * The handlers by name. One definition may be given twice; two with one name are rejected (F13), because one of them
 * would never run.
 *
 * @throws UsageError NO_QUEUES when there is none, or one without a handler; DUPLICATE_NAME
 * @example
 * const handlers = handlersOf([sendMail, resize]);
 */
export function handlersOf(definitions: readonly AnyJob[]): ReadonlyMap<string, AnyJob> {
  const handlers = new Map<string, AnyJob>();
  for (const definition of definitions) {
    if (definition.run === null) {
      throw new UsageError(
        "NO_QUEUES",
        `Job ${shown(definition.name)} has no handler. Give its definition \`run\`, or give the worker \`definition.handle(fn)\`.`,
        { details: { job: definition.name } },
      );
    }
    if ((handlers.get(definition.name) ?? definition) !== definition) {
      throw new UsageError(
        "DUPLICATE_NAME",
        `Two definitions of this worker have the name ${shown(definition.name)}: rename or omit one.`,
        { details: { job: definition.name } },
      );
    }
    handlers.set(definition.name, definition);
  }
  if (handlers.size > 0) return handlers;
  throw new UsageError("NO_QUEUES", "A worker needs at least one job with a handler.");
}
