/**
 * Machines: jobs in steps, of which each says which comes next.
 *
 *   start ─▶ step ──next("other", data)──▶ saved ─▶ step ── … ──finish(output)──▶ done
 *              │            └─ { delay } ─▶ scheduled, without a slot
 *              └─ throws ─▶ tried again by the step's own rule, then dead: the failed step is kept, and a retry starts there
 *
 * Invariants: the next step, its data and the new counters are saved in one fenced write, so a machine is always in
 * exactly one step; a finished step is never run again. Data that JSON cannot hold, and a step that does not exist, are
 * the error of the step that moves: the machine stays in it.
 * Not here: steps inside a plain job (run.ts).
 */
import type { JobContext } from "../worker/context.ts";
import { ATTEMPT_BOUNDS, type JobContract } from "../jobs/requests.ts";
import { type AnyJob, type CommonJobOptions, defineJob, jobOptionNames } from "../jobs/define-job.ts";
import { type Decision, orThrow } from "../jobs/decision.ts";
import { JobError, shown, StateError, UsageError } from "../errors.ts";
import type { ClaimedJob } from "../jobs/job.ts";
import { type Backoff, type BackoffFunction, checkBackoff, fixed } from "../jobs/backoff.ts";
import { type Duration, durationMs } from "../values/duration.ts";
import { decodeJson, encodeJson } from "../values/json.ts";
import { checkName } from "../values/name.ts";
import { checkInteger, checkOptions, isPlainObject } from "../values/options.ts";
import { validate, isStandardSchema, type StandardSchemaV1 } from "../values/input-schema.ts";
import {
  isMove,
  moveBrand,
  type MachinePosition,
  machinePort,
  type MachinePort,
  type Moved,
} from "./machine-move.ts";

const keptSteps = 1_000;
const outputCodes = { notJson: "OUTPUT_NOT_JSON", tooLarge: "OUTPUT_TOO_LARGE" } as const;

/** A move to another step, as `next` makes it. */
export interface Next<Step extends string = string, Data = unknown> {
  readonly [moveBrand]: "next";
  readonly step: Step;
  readonly data: Data;
  readonly delayMs: number;
}

/** The end of a machine, as `finish` makes it. */
export interface Finish<Output = unknown> {
  readonly [moveBrand]: "finish";
  readonly output: Output;
}

/**
 * Moves a machine to another step, at once or after a delay. Typed by that step's data, where it is returned.
 *
 * @throws UsageError BAD_DURATION, UNKNOWN_OPTION
 * @example
 * return next("greet", { name }, { delay: "1h" });
 */
export function next<const Step extends string, Data>(
  step: Step,
  data: Data,
  options?: { readonly delay?: Duration | undefined },
): Next<Step, Data> {
  const { delay } = checkOptions(options, ["delay"], "next") as { delay?: Duration };
  const delayMs = delay === undefined ? 0 : durationMs(delay, "delay");
  return { [moveBrand]: "next", step, data, delayMs };
}

/**
 * Ends a machine; the output is the job's.
 *
 * @example
 * return finish({ ok: true });
 */
export function finish<Output>(output?: Output): Finish<Output> {
  return { [moveBrand]: "finish", output: output as Output };
}

/** What the steps of a machine are told: a job's context without what machines have no use for. */
export type MachineContext = Omit<JobContext, "step" | "sleep" | "waitFor" | "call" | "all" | "version">;

/** The data that each step takes, by its name. */
type DataOf<Steps> = {
  [Name in keyof Steps]: Steps[Name] extends { run: (data: infer Data, ...rest: never[]) => unknown }
    ? Data
    : never;
};

/** Every move that a machine with these data may make. */
type MoveOf<Data, Output> =
  | {
      [Name in keyof Data & string]: Next<Name, Data[Name]>;
    }[keyof Data & string]
  | Finish<Output>;

/** A move that a step makes and that its machine does not know. */
type CheckedSteps<Steps> = {
  [Name in keyof Steps]: Steps[Name] extends { run: (...args: infer Args) => infer Result }
    ? Awaited<Result> extends MoveOf<DataOf<Steps>, unknown> | Decision
      ? Steps[Name]
      : Omit<Steps[Name], "run"> & { run: (...args: Args) => Promise<MoveOf<DataOf<Steps>, unknown>> }
    : Steps[Name];
};

/** What the machine finishes with. */
type OutputOf<Steps> = {
  [Name in keyof Steps]: Steps[Name] extends { run: (...args: never[]) => infer Result }
    ? [Extract<Awaited<Result>, Finish>] extends [never]
      ? never
      : Extract<Awaited<Result>, Finish> extends Finish<infer Output>
        ? Output
        : never
    : never;
}[keyof Steps];

/** How often a step is tried, and how long after each failure. */
export interface StepRetry {
  readonly attempts?: number | undefined;
  readonly backoff?: Backoff | BackoffFunction | undefined;
}

/** One step of a machine. */
export interface MachineStep<Data> {
  /** Attempts of this step, and the time between them. Default: the machine's `retry`, else 1 attempt and 1 s. */
  readonly retry?: StepRetry | undefined;
  /** Checks the data before the step runs. */
  readonly data?: StandardSchemaV1<unknown, Data> | undefined;
  readonly run: (data: Data, ctx: MachineContext) => unknown;
}

type AnyStep = {
  readonly retry?: MachineStep<never>["retry"];
  readonly data?: StandardSchemaV1 | undefined;
  readonly run: (data: never, ctx: MachineContext) => unknown;
};

/** A machine, as `defineMachine` makes it: enqueue it like any job. */
export interface MachineDefinition<Name extends string, Input, Output> extends JobContract<
  Name,
  Input,
  Output
> {
  readonly run: ((input: never, ctx: JobContext) => unknown) | null;
  readonly machine: {
    readonly start: string;
    readonly steps: readonly string[];
    /** The steps that check their data, each with its schema. */
    readonly data: Readonly<Record<string, StandardSchemaV1>>;
  };
}

/**
 * The options of a machine besides its steps: those of a job. `unique`, `lane` and the breaker's `key` get the machine's input,
 * the data of its first step. `keep`, `unique`, `lane`, `budget` and `breaker` are about the machine, not about a step: a unique
 * key is held until the machine ends; a lane and a budget count each start of the machine by a worker, also after a delayed move
 * and a retry; a breaker counts a step that moves with a delay as a success.
 */
export type MachineOptions<Name extends string, Input> = Omit<
  CommonJobOptions<Name, Input>,
  "retry" | "signals"
> & {
  /** The default of each step: 1 attempt and 1 s where neither says more. */
  readonly retry?: StepRetry | undefined;
};

const optionNames = [
  ...jobOptionNames.filter((name) => !["input", "signals", "run"].includes(name)),
  "start",
  "steps",
];

interface CheckedStep {
  readonly policy: MachinePosition["policy"];
  readonly data: StandardSchemaV1 | null;
  readonly run: (data: unknown, ctx: MachineContext) => unknown;
}

/**
 * Defines a machine. Each step returns `next(step, data)`, `finish(output)` or a decision (`new Dead(…)` …); a wrong name or wrong data does not compile.
 *
 * @throws UsageError BAD_NAME, BAD_OPTION, UNKNOWN_OPTION
 * @example
 * const greet = defineMachine({
 *   name: "greet",
 *   start: "read",
 *   steps: {
 *     read: { retry: { attempts: 6 }, run: async (data: { file: string }) => next("greet", { name: await read(data.file) }) },
 *     greet: { run: async (data: { name: string }) => finish({ hello: data.name }) },
 *   },
 * });
 */
export function defineMachine<
  const Name extends string,
  const Steps extends Readonly<Record<string, AnyStep>>,
  const Start extends keyof Steps & string,
>(
  options: MachineOptions<Name, NoInfer<DataOf<Steps>[Start]>> & {
    readonly start: Start;
    readonly steps: Steps & CheckedSteps<Steps>;
    /** Of each step. */
    readonly timeout?: Duration | undefined;
    /** Raise it when the steps, or their data, change: a worker with an older one leaves what newer code has moved. Default 1. */
    readonly version?: number | undefined;
  },
): MachineDefinition<Name, DataOf<Steps>[Start], OutputOf<Steps>> {
  const given = checkOptions(options, optionNames, "defineMachine");
  const {
    start,
    steps: _steps,
    retry,
    ...rest
  } = given as { start: unknown; steps: unknown; retry: unknown; name: string };
  const steps = checkSteps(given["steps"], rest.name, checkRetry(retry, `machine "${rest.name}"`, ONCE));
  if (typeof start !== "string" || !steps.has(start))
    throw new UsageError(
      "BAD_OPTION",
      `start must be one of the steps of machine "${rest.name}"; got ${shown(start)}.`,
    );
  // A crash is judged by a process that may not know at which step it was: no step may have more attempts than this.
  const stepAttempts = Math.max(...Array.from(steps.values(), ({ policy }) => policy.attempts));
  const job = defineJob({
    ...rest,
    retry: { attempts: stepAttempts },
    run: (input: unknown, ctx): unknown => runMachine(steps, start, job.countCrashes, input, ctx),
  }) as unknown as AnyJob;
  // Each step has attempts of its own, so none may be fixed in the row.
  const extras = {
    step: start,
    ...job.row.extras,
    ...(job.countCrashes === "attempt" ? { stepAttempts } : null),
  };
  const row = { ...job.row, maxAttempts: null, extras };
  const data = Object.fromEntries(
    [...steps].flatMap(([name, step]) => (step.data === null ? [] : [[name, step.data]])),
  );
  return Object.freeze({ ...job, row, machine: { start, steps: [...steps.keys()], data } }) as never;
}

const ONCE: CheckedStep["policy"] = { attempts: 1, backoff: fixed("1s") };

function checkRetry(retry: unknown, what: string, inherited: CheckedStep["policy"]): CheckedStep["policy"] {
  const { attempts, backoff } = checkOptions(retry, ["attempts", "backoff"], `retry of ${what}`) as StepRetry;
  return {
    attempts:
      attempts === undefined
        ? inherited.attempts
        : checkInteger(attempts, `retry.attempts of ${what}`, ATTEMPT_BOUNDS),
    backoff: backoff === undefined ? inherited.backoff : checkBackoff(backoff, `retry.backoff of ${what}`),
  };
}

function checkSteps(
  given: unknown,
  machine: string,
  inherited: CheckedStep["policy"],
): Map<string, CheckedStep> {
  if (!isPlainObject(given) || Object.keys(given).length === 0)
    throw new UsageError(
      "BAD_OPTION",
      `steps of machine "${machine}" must be an object of steps; got ${shown(given)}.`,
    );
  return new Map(
    Object.entries(given).map(([name, step]) => {
      const what = `step "${name}" of machine "${machine}"`;
      checkName(name, `The name of a step of machine "${machine}"`);
      const { retry, data, run } = checkOptions(
        step ?? null,
        ["retry", "data", "run"],
        what,
      ) as Partial<AnyStep>;
      if (typeof run !== "function") throw new UsageError("BAD_OPTION", `${what} needs a function \`run\`.`);
      if (data !== undefined && !isStandardSchema(data))
        throw new UsageError("BAD_OPTION", `data of ${what} must be a Standard Schema; got ${shown(data)}.`);
      const policy = checkRetry(retry, what, inherited);
      return [name, { policy, data: data ?? null, run: run as CheckedStep["run"] }];
    }),
  );
}

async function runMachine(
  steps: ReadonlyMap<string, CheckedStep>,
  start: string,
  countCrashes: "attempt" | "crash",
  input: unknown,
  ctx: JobContext,
): Promise<unknown> {
  const port = (ctx as unknown as { [machinePort]: MachinePort })[machinePort];
  const { job, store } = port;
  const saved = job.begun ? await port.patiently(() => store.workflows.step(job.id, "$machine")) : null;
  if (
    job.begun &&
    saved === null &&
    (await port.patiently(() => store.workflows.countSteps(job.id))).count > 0
  )
    throw new JobError(
      "DIVERGED",
      `Machine "${job.name}": the history belongs to a job with steps. Nothing was run. Deploy matching code, then retry the job.`,
      { details: { job: job.id } },
    );
  let name = saved?.label ?? start;
  let data = saved === null ? input : decodeJson(saved.output ?? "null", `data of step "${name}"`);
  let seq = saved?.seq ?? 0;
  let place = { attempt: job.attempt, crashes: job.crashes };
  for (;;) {
    const step = steps.get(name);
    if (step === undefined)
      throw badMove(job, `the machine is at step "${name}", which the code does not have`);
    // The process that found the crash knew no step, so it allowed as many attempts as the most patient step has.
    const usedUp = place.crashes > 0 && place.attempt > (job.maxAttempts ?? step.policy.attempts);
    if (usedUp && (job.extras?.countCrashes ?? countCrashes) === "attempt") {
      port.stand({ ...place, attempt: place.attempt - 1, step: name, policy: step.policy });
      throw new JobError("KILLED_WORKER", `Step "${name}" has no attempt left: ${killed(place.crashes)}.`);
    }
    port.stand({ ...place, step: name, policy: step.policy });
    const startedAt = port.monotonic();
    const checked =
      step.data === null ? data : await validate(step.data, data, `data of step "${name}"`, "INPUT_INVALID");
    const move: unknown = orThrow(await step.run(checked, ctx));
    if (isMove(move, "finish")) return (move as Finish).output;
    if (!isMove(move, "next")) throw badMove(job, `step "${name}" returned neither next(…) nor finish(…)`);
    const to = move as Next;
    if (!steps.has(to.step))
      throw badMove(job, `step "${name}" moves to step "${to.step}", which does not exist`);
    const text = encodeJson(to.data ?? null, `data of step "${to.step}"`, port.maxBytes, outputCodes);
    const tookMs = port.monotonic() - startedAt;
    const at = seq;
    const target = to.step;
    const from = { label: name, tries: place.attempt };
    const kept =
      (await port.advance()) &&
      (await port.patiently(() =>
        store.workflows.saveMachine(job.session, {
          id: job.id,
          token: job.token,
          attempt: to.delayMs > 0 ? null : 1,
          steps: [
            {
              name: "$machine",
              seq: at + 1,
              state: "open",
              tries: 0,
              tookMs: 0,
              output: text,
              label: target,
            },
            // The last thousand are kept to be looked at: a machine may go round for years.
            { name: `~${at % keptSteps}`, seq: at, state: "done", tookMs, output: null, ...from },
          ],
        }),
      ));
    if (!kept) {
      port.lost();
      throw new StateError(
        "LEASE_LOST",
        `Job ${job.id} is no longer leased to this attempt: its move was not recorded.`,
      );
    }
    port.log.info({ step: to.step, from: name, delayMs: to.delayMs }, `moved to step ${to.step}`);
    if (to.delayMs > 0 || port.pausing())
      return { [moveBrand]: "moved", delayMs: to.delayMs } satisfies Moved;
    name = to.step;
    data = decodeJson(text, `data of step "${name}"`);
    seq += 1;
    place = { attempt: 1, crashes: 0 };
  }
}

function killed(crashes: number): string {
  return `the machine killed its worker ${crashes} ${crashes === 1 ? "time" : "times"}`;
}

function badMove(job: ClaimedJob, what: string): JobError {
  return new JobError("BAD_MOVE", `Machine "${job.name}": ${what}.`, { details: { job: job.id } });
}
