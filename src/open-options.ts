/**
 * The options of `open`, checked, with their defaults.
 *
 * Not here: what the store does with its part (storage/open.ts), where the defaults of time, chance and process come
 * from (holdfast.ts, the one place that touches the world).
 */
import type { Clock } from "./clock.ts";
import { shown, UsageError } from "./errors.ts";
import { checkEventLog, type EventLogOptions, type EventLogSettings } from "./observe/event-log.ts";
import { checkJobLog, type JobLogOptions, type JobLogSettings } from "./observe/job-log.ts";
import { consoleLogger, type Logger, safely } from "./logger.ts";
import { type Duration, durationMs } from "./values/duration.ts";
import { checkSchema } from "./values/name.ts";
import { checkInteger, checkOptions } from "./values/options.ts";
import type { ClaimScope } from "./jobs/claim-scope.ts";

/**
 * What `open` takes besides the database's address.
 *
 * @example
 * const hf = await open("postgres://localhost/app", { schema: "jobs", logger: pino(), route: (name) => name.split(":")[0] });
 */
export interface OpenOptions {
  /** SQLite: "full" (default) is on disk when `enqueue` resolves; "normal" may lose the last commits on power loss. */
  readonly durability?: "full" | "normal" | undefined;
  /** The schema on Postgres, the prefix of the tables on SQLite; default "holdfast". */
  readonly schema?: string | undefined;
  /** Brings the tables up to date (true, the default), leaves them alone (false), or only checks ("check"). */
  readonly migrate?: boolean | "check" | undefined;
  /** Default: warnings and errors on the console. */
  readonly logger?: Logger | undefined;
  /** Default: the machine's. */
  readonly clock?: Clock | undefined;
  /** Gives 0 … 1, for jitter; default Math.random. */
  readonly random?: (() => number) | undefined;
  /** Which queue a kind goes to where neither the enqueue nor the definition names one; default "default". */
  readonly route?: ((name: string) => string) | undefined;
  /** The largest input and output, in bytes of JSON; default 1 MiB. */
  readonly maxPayload?: number | undefined;
  /**
   * How long reads and enqueues are tried again while the database is away or failing; default "30s". On Postgres `open` waits as
   * long for a server that is not there yet; a password that is refused or a database that does not exist fails at once.
   */
  readonly retryFor?: Duration | undefined;
  /** Whether higher or lower priorities are claimed first; default "highest-first". */
  readonly order?: "highest-first" | "lowest-first" | undefined;
  /** How long ended jobs are kept where their queue does not say: done "7d", dead and cancelled "30d"; 0 for ever. */
  readonly retention?:
    | { readonly done?: Duration | undefined; readonly dead?: Duration | undefined }
    | undefined;
  /** Postgres: whether an enqueue in your transaction also sends a NOTIFY with its commit; default true. */
  readonly notify?: boolean | undefined;
  /** Postgres: connections for everything but claims and settles, which have their own; default 5. */
  readonly poolSize?: number | undefined;
  /** Workers count what they do and write one row a minute for each kind, see `hf.metrics`; default true. */
  readonly metrics?: boolean | undefined;
  /** Keeps a line for each event of a job in the database, see `hf.eventLog`; default false. */
  readonly eventLog?: boolean | EventLogOptions | undefined;
  /** Keeps what handlers say with `ctx.log` beside their job, see `hf.jobLog`; default false. */
  readonly jobLog?: boolean | JobLogOptions | undefined;
  /** Opens a SQLite library that has a known fault all the same. */
  readonly unsafeSqlite?: boolean | undefined;
}

/** The options that are the client's, checked. */
export interface ClientSettings {
  readonly logger: Logger;
  readonly route: ((name: string) => string) | null;
  readonly maxPayloadBytes: number;
  readonly retryForMs: number;
  readonly order: ClaimScope["order"];
  readonly retention: { readonly doneMs: number; readonly deadMs: number };
  readonly metrics: boolean;
  readonly eventLog: EventLogSettings | null;
  readonly jobLog: JobLogSettings | null;
}

/** The options that are the store's, checked. */
export interface StoreSettings {
  readonly durability: "full" | "normal";
  readonly schema: string;
  readonly migrate: boolean | "check";
  readonly notify: boolean;
  readonly poolSize: number;
  readonly unsafeSqlite: boolean;
}

const optionNames = [
  "durability",
  "schema",
  "migrate",
  "logger",
  "clock",
  "random",
  "route",
  "maxPayload",
  "retryFor",
  "order",
  "retention",
  "notify",
  "poolSize",
  "unsafeSqlite",
  "metrics",
  "eventLog",
  "jobLog",
];
const mebibyte = 1_048_576;
/** Where HOLDFAST_URL and DATABASE_URL are not set. */
const defaultUrl = "sqlite:./holdfast.db";

/**
 * The options, or an error for the first that is wrong.
 *
 * @throws UsageError UNKNOWN_OPTION, BAD_OPTION, BAD_DURATION, BAD_NAME
 */
export function checkOpenOptions(options: unknown): {
  given: OpenOptions;
  client: ClientSettings;
  store: StoreSettings;
} {
  const given = checkOptions(options, optionNames, "open") as OpenOptions;
  const retention = checkOptions(given.retention, ["done", "dead"], "retention") as NonNullable<
    OpenOptions["retention"]
  >;
  if (given.clock !== undefined) checkClock(given.clock);
  const client: ClientSettings = {
    logger: safely(given.logger ?? consoleLogger),
    route: optionalFunction(given.route, "route") ?? null,
    maxPayloadBytes: checkInteger(given.maxPayload ?? mebibyte, "maxPayload", {
      min: 1,
      max: 256 * mebibyte,
    }),
    retryForMs: durationMs(given.retryFor ?? "30s", "retryFor"),
    order: oneOf(given.order ?? "highest-first", ["highest-first", "lowest-first"], "order"),
    retention: {
      doneMs: durationMs(retention.done ?? "7d", "retention.done"),
      deadMs: durationMs(retention.dead ?? "30d", "retention.dead"),
    },
    metrics: oneOf(given.metrics ?? true, [true, false], "metrics"),
    eventLog: checkEventLog(given.eventLog),
    jobLog: checkJobLog(given.jobLog),
  };
  optionalFunction(given.random, "random");
  const store: StoreSettings = {
    durability: oneOf(given.durability ?? "full", ["full", "normal"], "durability"),
    schema: checkSchema(given.schema ?? "holdfast"),
    migrate: oneOf(given.migrate ?? true, [true, false, "check"], "migrate"),
    notify: oneOf(given.notify ?? true, [true, false], "notify"),
    poolSize: checkInteger(given.poolSize ?? 5, "poolSize", { min: 1, max: 1_000 }),
    unsafeSqlite: oneOf(given.unsafeSqlite ?? false, [true, false], "unsafeSqlite"),
  };
  return { given, client, store };
}

/**
 * The address or handle to open: what is given, else HOLDFAST_URL, else DATABASE_URL, else the file ./holdfast.db.
 *
 * @throws UsageError BAD_URL
 */
export function checkTarget(
  target: unknown,
  env: Readonly<Record<string, string | undefined>>,
): string | object {
  if (target === undefined) return env["HOLDFAST_URL"] || env["DATABASE_URL"] || defaultUrl;
  if (typeof target === "string" && target.trim() !== "") return target;
  if (typeof target === "object" && target !== null) return target;
  throw new UsageError(
    "BAD_URL",
    `open takes an address such as "sqlite:jobs.db", "sqlite::memory:" or "postgres://host/database", or a database handle of your own; got ${shown(target)}.`,
  );
}

function checkClock(clock: unknown): void {
  const { now, monotonic, after } = (clock ?? {}) as Partial<Clock>;
  if (typeof now === "function" && typeof monotonic === "function" && typeof after === "function") return;
  throw new UsageError(
    "BAD_OPTION",
    `clock must have the functions now, monotonic and after; got ${shown(clock)}.`,
    { details: { option: "clock" } },
  );
}

function optionalFunction<Fn>(value: Fn | undefined, what: string): Fn | undefined {
  if (value === undefined || typeof value === "function") return value;
  throw new UsageError("BAD_OPTION", `${what} must be a function; got ${shown(value)}.`, {
    details: { option: what },
  });
}

function oneOf<const T extends string | boolean>(value: unknown, allowed: readonly T[], what: string): T {
  if (allowed.includes(value as T)) return value as T;
  throw new UsageError(
    "BAD_OPTION",
    `${what} must be ${allowed.map((word) => JSON.stringify(word)).join(" or ")}; got ${shown(value)}.`,
    { details: { option: what } },
  );
}
