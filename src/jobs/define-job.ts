/**
 * Definitions: what a kind of job is called, takes, and how it is run; checked once, when it is made.
 *
 * Invariants: a definition is frozen and complete (every option has a value or an explicit null), so that neither
 * `enqueue` nor a worker checks or computes anything of it again. With a schema, `enqueue` takes the schema's input
 * type and the handler gets its output type; without one, both are the handler's first parameter.
 *
 * Not here: what an enqueue does with it (enqueue/enqueue.ts), what an attempt does (worker/attempt.ts).
 */
import type { Decision } from "./decision.ts";
import type { JobContext } from "../worker/context.ts";
import {
  type AnyContract,
  ATTEMPT_BOUNDS,
  jobBrand,
  type JobContract,
  type DefinitionBreaker,
  type DefinitionBudget,
  type OnConflict,
  PRIORITY_BOUNDS,
  type RowDefaults,
  type UniqueRule,
  type UniqueScope,
} from "./requests.ts";
import { shown, UsageError } from "../errors.ts";
import { isSignal, type SignalDefinition } from "../workflows/signal.ts";
import type { JobExtras, LaneLimits } from "./job.ts";
import { type Backoff, type BackoffFunction, checkBackoff } from "./backoff.ts";
import { checkTokens } from "../limits/rules/token-bucket.ts";
import { type Duration, durationMs } from "../values/duration.ts";
import {
  type BreakerOptions,
  checkBreaker,
  checkLaneLimits,
  type LaneOptions,
} from "../limits/rules/limit-options.ts";
import { checkName } from "../values/name.ts";
import { checkInteger, checkOptions, isPlainObject } from "../values/options.ts";
import {
  type InferInput,
  type InferOutput,
  isStandardSchema,
  type StandardSchemaV1,
} from "../values/input-schema.ts";
import { DEFAULT_ATTEMPTS, DEFAULT_CRASHES } from "./transition.ts";

/** Ten minutes: how long an attempt may run where nobody says otherwise. */
export const DEFAULT_TIMEOUT_MS = 600_000;

/** Runs one attempt. What it returns is the job's output; what it throws fails the attempt, or decides (`Dead`, …). */
export type Handler<Parsed, Output> = (input: Parsed, ctx: JobContext) => Output | Promise<Output>;

/**
 * A kind of job, as `defineJob` makes it.
 *
 * @example
 * export const sendMail = defineJob({ name: "send-mail", run: async (input: { to: string }) => { … } });
 */
export interface JobDefinition<
  Name extends string = string,
  Input = unknown,
  Parsed = Input,
  Output = unknown,
> extends JobContract<Name, Input, Output> {
  readonly input: StandardSchemaV1<Input, Parsed> | null;
  readonly run: Handler<Parsed, Output> | null;
  /**
   * The same definition with a handler: lets a contract be shared without its handler's code.
   *
   * @example
   * export const handlers = [sendMail.handle(async (input, ctx) => { … })];
   */
  handle<Result extends Output>(
    run: Handler<Parsed, Result | Decision>,
  ): JobDefinition<Name, Input, Parsed, Result>;
}

/** A definition of whatever input and output: what workers are made of. */
export interface AnyJob extends AnyContract {
  readonly run: ((input: never, ctx: JobContext) => unknown) | null;
  /** Of the input's shape; 1 where it is not said. */
  readonly version?: number;
  /** From each version to the next. */
  readonly upcast?: Upcast | null;
  /** What it waits for, where it says so. */
  readonly signals?: readonly SignalDefinition[];
  /** The backoff of the worker that runs it, where neither it nor the queue says. */
  readonly workerBackoff?: Backoff | BackoffFunction | null;
  /** Set for machines. */
  readonly machine?: object | null;
}

/** Brings an input of each older version to the next: `{ 1: (old) => …, 2: … }`. */
export type Upcast = Readonly<Record<number, (input: never) => unknown>>;

/** How a name's jobs are made unique: a function of the input, the name of one of its fields, or either with settings. */
export type UniqueOption<Input> =
  | ((input: Input) => string | number | null)
  | FieldOf<NoInfer<Input>>
  | {
      readonly key: ((input: Input) => string | number | null) | FieldOf<NoInfer<Input>>;
      /** Default "job": only jobs of this name. */
      readonly scope?: UniqueScope | undefined;
      /** The key is also held this long after the enqueue, ended or not. */
      readonly for?: Duration | undefined;
      /** Default "keep". */
      readonly onConflict?: OnConflict | undefined;
    };

// Behind NoInfer where it is used: from a field's name alone TypeScript would make up `{ chapterId: any }`.
type FieldOf<Input> = unknown extends Input
  ? string
  : Input extends object
    ? Extract<keyof Input, string>
    : never;

/** What every definition may say, whatever its types. */
export interface CommonJobOptions<Name extends string, Input> {
  /** Letters, digits and . _ : - up to 128. */
  readonly name: Name;
  /** Default: the client's router, else "default". */
  readonly queue?: string | undefined;
  /** An integer, higher first; default 0. */
  readonly priority?: number | undefined;
  /** Default: 5 attempts, exponential("1m", { max: "1h", jitter: 0.2 }). */
  readonly retry?:
    | { readonly attempts?: number | undefined; readonly backoff?: Backoff | BackoffFunction | undefined }
    | undefined;
  /** Then the signal aborts and the attempt fails; default "10m". */
  readonly timeout?: Duration | undefined;
  /** At most one job for each key that has not ended. */
  readonly unique?: UniqueOption<Input> | undefined;
  /** Jobs of one queue that share a key (a tenant). */
  readonly lane?: ((input: Input) => string | null) | undefined;
  /** The limits of each lane of this name, until `hf.lanes.set` sets others. Needs `lane`. */
  readonly lanes?: LaneOptions | undefined;
  /** Stops the kind (or with `key`, what shares a key) after so many failures in a row, until a probe succeeds. */
  readonly breaker?:
    | (BreakerOptions & { readonly key?: ((input: Input) => string | null) | undefined })
    | undefined;
  /**
   * A job is claimed only when this budget has its tokens, and takes them: its name, or with how many tokens one start
   * takes (default 1; may be a fraction). Until it is set with `hf.budgets.set`, nothing of the kind is claimed.
   */
  readonly budget?: string | { readonly name: string; readonly tokens?: number | undefined } | undefined;
  /** How many times the job may take its worker's process down before it is dead; default 5. */
  readonly maxCrashes?: number | undefined;
  /** "attempt": a crash uses up an attempt instead of being counted apart. */
  readonly countCrashes?: "attempt" | "crash" | undefined;
  /** False: nothing is kept of the job once it is done. */
  readonly keep?: boolean | undefined;
  /** Raise it when the input's shape, or the flow, changes; default 1. It is kept with each job. */
  readonly version?: number | undefined;
  /** Brings inputs of older versions up to the newest, one version at a time. */
  readonly upcast?: Upcast | undefined;
  /**
   * The signals that it waits for, as `defineSignal` makes them: their data is checked where it is sent by a process that has this
   * definition, and in the run; the dashboard makes a form of it.
   */
  readonly signals?: readonly SignalDefinition[] | undefined;
}

/** The options of `defineJob`, by name. */
export const jobOptionNames = [
  "name",
  "input",
  "queue",
  "priority",
  "retry",
  "timeout",
  "unique",
  "lane",
  "lanes",
  "breaker",
  "budget",
  "maxCrashes",
  "countCrashes",
  "keep",
  "version",
  "upcast",
  "signals",
  "run",
];

/**
 * Defines a kind of job.
 *
 * @throws UsageError for anything that is not an option, or out of range
 * @example
 * const sendMail = defineJob({
 *   name: "send-mail",
 *   input: z.object({ to: z.email() }),
 *   retry: { attempts: 5, backoff: exponential("1m", { max: "1h" }) },
 *   unique: (input) => input.to,
 *   run: async (input, ctx) => { await smtp.send(input.to, { signal: ctx.signal }); },
 * });
 */
export function defineJob<const Name extends string, Schema extends StandardSchemaV1, Output = unknown>(
  options: CommonJobOptions<Name, InferInput<Schema>> & {
    /** Checked on enqueue and again before a run. */
    readonly input: Schema;
    readonly run?: Handler<InferOutput<Schema>, Output> | undefined;
  },
): JobDefinition<Name, InferInput<Schema>, InferOutput<Schema>, Exclude<Output, Decision>>;
export function defineJob<const Name extends string, Input = unknown, Output = unknown>(
  options: CommonJobOptions<Name, Input> & {
    readonly input?: undefined;
    readonly run?: Handler<Input, Output> | undefined;
  },
): JobDefinition<Name, Input, Input, Exclude<Output, Decision>>;
export function defineJob(given: object): unknown {
  const options = checkOptions(given, jobOptionNames, "defineJob") as unknown as UncheckedOptions;
  const name = checkName(options.name, "The name of a job");
  const what = (option: string): string => `${option} of job "${name}"`;
  const retry = checkOptions(options.retry, ["attempts", "backoff"], what("retry")) as NonNullable<
    typeof options.retry
  >;
  const attempts = optional(retry.attempts, (value) =>
    checkInteger(value, what("retry.attempts"), ATTEMPT_BOUNDS),
  );
  const backoff = optional(retry.backoff, (value) => checkBackoff(value, what("retry.backoff")));
  const timeoutMs = optional(options.timeout, (value) => positiveMs(value, what("timeout")));
  const version = optional(options.version, (value) =>
    checkInteger(value, what("version"), { min: 1, max: 1_000_000 }),
  );
  const upcast = optional(options.upcast, (value) => checkUpcast(value, version ?? 1, what("upcast")));
  const extras = extrasOf(options, backoff, what);
  const row: RowDefaults = Object.freeze({ maxAttempts: attempts, timeoutMs, extras });
  return complete({
    [jobBrand]: true,
    name,
    queue: optional(options.queue, (value) => checkName(value, what("queue"))),
    priority:
      optional(options.priority, (value) => checkInteger(value, what("priority"), PRIORITY_BOUNDS)) ?? 0,
    attempts: attempts ?? DEFAULT_ATTEMPTS,
    backoff,
    timeoutMs: timeoutMs ?? DEFAULT_TIMEOUT_MS,
    maxCrashes: extras?.maxCrashes ?? DEFAULT_CRASHES,
    countCrashes: extras?.countCrashes ?? "crash",
    keep: extras?.keep ?? true,
    input: optional(options.input, (value) => checkSchemaOption(value, what("input"))),
    unique: optional(options.unique, (value) => uniqueRule(value, what("unique"))),
    lane: optional(options.lane, (value) => checkFunction(value, what("lane"))),
    lanes: optional(options.lanes, (value) => lanesOf(value, options.lane, what("lanes"))),
    breaker: optional(options.breaker, (value) => breakerOf(value, what("breaker"))),
    budget: optional(options.budget, (value) => budgetOf(value, what("budget"))),
    row,
    version: version ?? 1,
    upcast,
    signals: optional(options.signals, (value) => checkSignals(value, what("signals"))) ?? [],
    run: optional(options.run, (value) => checkFunction(value, what("run"))),
  });
}

type UncheckedOptions = CommonJobOptions<string, never> & {
  readonly input?: StandardSchemaV1 | undefined;
  readonly run?: Handler<never, unknown> | undefined;
};

/** Whether a value is a definition, also one that another copy of the package made. */
export function isJob(value: unknown): value is AnyJob {
  return (
    typeof value === "object" && value !== null && (value as { [jobBrand]?: unknown })[jobBrand] === true
  );
}

function complete(fields: AnyJob): AnyJob {
  return Object.freeze({
    ...fields,
    handle: (run: Handler<never, unknown>) =>
      complete({ ...fields, run: checkFunction(run, `handler of job "${fields.name}"`) }),
  });
}

// Only what is stated goes into the row: a crash may be found by a process that has no definition at hand.
function extrasOf(
  options: CommonJobOptions<string, never>,
  backoff: Backoff | BackoffFunction | null,
  what: (option: string) => string,
): JobExtras | null {
  const extras: { -readonly [K in keyof JobExtras]: JobExtras[K] } = {};
  if (options.maxCrashes !== undefined)
    extras.maxCrashes = checkInteger(options.maxCrashes, what("maxCrashes"), { min: 1, max: 32_767 });
  if (options.countCrashes !== undefined)
    extras.countCrashes = oneOf(options.countCrashes, ["attempt", "crash"] as const, what("countCrashes"));
  if (options.keep !== undefined) {
    if (typeof options.keep !== "boolean") throw bad(what("keep"), "true or false", options.keep);
    if (!options.keep) extras.keep = false;
  }
  if (backoff !== null && typeof backoff !== "function") extras.backoff = backoff;
  if (options.version !== undefined && options.version > 1) extras.version = options.version;
  return Object.keys(extras).length === 0 ? null : Object.freeze(extras);
}

function lanesOf(value: unknown, lane: unknown, what: string): LaneLimits {
  if (lane === undefined) {
    throw new UsageError(
      "BAD_OPTION",
      `The ${what} need \`lane\`, the function or field that gives a job its lane.`,
      {
        details: { what },
      },
    );
  }
  return { concurrency: null, rate: null, weight: null, ...checkLaneLimits(value, what) };
}

function breakerOf(
  value: { readonly key?: ((input: never) => string | null) | undefined },
  what: string,
): DefinitionBreaker {
  return {
    ...checkBreaker(value, what, ["key"]),
    key: optional(value.key, (key) => checkFunction(key, `${what}.key`)),
  };
}

function budgetOf(value: unknown, what: string): DefinitionBudget {
  if (typeof value === "string") return Object.freeze({ name: checkName(value, `The ${what}`), tokens: 1 });
  if (!isPlainObject(value)) throw bad(what, "the name of a budget, or { name, tokens }", value);
  const { name, tokens } = checkOptions(value, ["name", "tokens"], what);
  return Object.freeze({
    name: checkName(name, `The ${what}.name`),
    tokens: tokens === undefined ? 1 : checkTokens(tokens, `The ${what}.tokens`),
  });
}

function uniqueRule(option: UniqueOption<never>, what: string): UniqueRule<never> {
  if (typeof option === "function" || typeof option === "string") {
    return { key: keyFunction(option, what), scope: "job", forMs: null, onConflict: "keep" };
  }
  const given = checkOptions(option, ["key", "scope", "for", "onConflict"], what) as Exclude<
    typeof option,
    string
  >;
  return {
    key: keyFunction(given.key, `${what}.key`),
    scope:
      given.scope === undefined
        ? "job"
        : oneOf(given.scope, ["job", "queue", "global"] as const, `${what}.scope`),
    forMs: optional(given.for, (value) => positiveMs(value, `${what}.for`)),
    onConflict:
      given.onConflict === undefined
        ? "keep"
        : oneOf(given.onConflict, ["keep", "replace", "debounce"] as const, `${what}.onConflict`),
  };
}

function keyFunction(key: unknown, what: string): (input: never) => string | number | null {
  if (typeof key === "function") return key as (input: never) => string | null;
  if (typeof key !== "string" || key === "")
    throw bad(what, "a function of the input, or the name of one of its fields", key);
  // A missing field is undefined, which enqueue refuses: a misspelt name must not turn uniqueness off.
  return (input: unknown) =>
    (typeof input === "object" && input !== null
      ? (input as Record<string, never>)[key]
      : undefined) as never;
}

function checkUpcast(value: unknown, version: number, what: string): Upcast {
  if (!isPlainObject(value)) throw bad(what, "an object of functions by version, { 1: (old) => … }", value);
  for (const [from, step] of Object.entries(value)) {
    checkInteger(Number(from), `A version in ${what}`, { min: 1, max: Math.max(1, version - 1) });
    checkFunction(step, `${what}[${from}]`);
  }
  return value as Upcast;
}

function checkSignals(value: unknown, what: string): readonly SignalDefinition[] {
  if (!Array.isArray(value) || !value.every(isSignal))
    throw bad(what, "an array of signals made by defineSignal", value);
  const names = value.map(({ name }) => name);
  const twice = names.find((name, i) => names.indexOf(name) < i);
  if (twice !== undefined)
    throw new UsageError("BAD_OPTION", `The ${what} name "${twice}" twice.`, { details: { what } });
  return Object.freeze([...value]);
}

function checkSchemaOption(value: unknown, what: string): StandardSchemaV1 {
  if (isStandardSchema(value)) return value;
  throw bad(what, "a Standard Schema (zod, valibot, arktype …)", value);
}

function checkFunction<Fn>(value: Fn, what: string): Fn {
  if (typeof value === "function") return value;
  throw bad(what, "a function", value);
}

function positiveMs(value: Duration, what: string): number {
  const ms = durationMs(value, what);
  if (ms > 0) return ms;
  throw new UsageError("BAD_DURATION", `${what} must be longer than 0; got ${shown(value)}.`, {
    details: { what },
  });
}

function oneOf<const T extends string>(value: unknown, allowed: readonly T[], what: string): T {
  if (allowed.includes(value as T)) return value as T;
  throw bad(what, allowed.map((word) => `"${word}"`).join(" or "), value);
}

function bad(what: string, wanted: string, got: unknown): UsageError {
  return new UsageError("BAD_OPTION", `The ${what} must be ${wanted}; got ${shown(got)}.`, {
    details: { what },
  });
}

function optional<Given, Taken>(value: Given | undefined, check: (value: Given) => Taken): Taken | null {
  return value === undefined ? null : check(value);
}
