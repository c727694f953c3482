/**
 * The contract of a job: what those who enqueue it and those who run it agree on, and the shapes of an enqueue.
 *
 * Types, and the two bounds that both sides check. A contract knows nothing of handlers, so that a handler's context can offer
 * `ctx.enqueue` without the two types going round in a circle (define-job.ts adds the handler).
 *
 * Not here: making and checking a definition (define-job.ts), what an enqueue does (enqueue/enqueue.ts).
 */
import type { Enqueued, JobExtras, LaneLimits } from "./job.ts";
import type { Backoff, BackoffFunction } from "./backoff.ts";
import type { Duration } from "../values/duration.ts";
import type { StandardSchemaV1 } from "../values/input-schema.ts";

/** Marks definitions, also those of another copy of the package. */
export const jobBrand: unique symbol = Symbol.for("holdfast.job") as never;

/** Carries the output's type; never there at run time. */
declare const outputType: unique symbol;

export { ATTEMPT_BOUNDS, PRIORITY_BOUNDS } from "./job-bounds.ts";

/** Over which jobs a unique key is unique: those of this kind, those of the queue, or all. */
export type UniqueScope = "job" | "queue" | "global";

/**
 * What becomes of an enqueue whose key is taken by a job that has not started: the job stays as it is (`keep`), takes
 * everything of the new request (`replace`), or that with its delay starting anew (`debounce`). One that has
 * started stays as it is in any case: the outcome is then `duplicate`.
 */
export type OnConflict = "keep" | "replace" | "debounce";

/** How a kind computes its unique key, normalised. */
export interface UniqueRule<Input> {
  /** Null: this one is not unique. */
  readonly key: (input: Input) => string | number | null;
  readonly scope: UniqueScope;
  /** The key is also held this long after the enqueue, ended or not. Null: only while the job has not ended. */
  readonly forMs: number | null;
  readonly onConflict: OnConflict;
}

/**
 * What an enqueue writes of a definition into the row: only what the definition states. What it leaves open stays
 * null, so that the definition of whoever runs the job decides. Computed once, so that a call pays nothing for it.
 */
export interface RowDefaults {
  readonly maxAttempts: number | null;
  readonly timeoutMs: number | null;
  readonly extras: JobExtras | null;
}

/** What `enqueue` needs of a job's definition. */
export interface JobContract<Name extends string = string, Input = unknown, Output = unknown> {
  readonly [jobBrand]: true;
  readonly name: Name;
  /** Null: the client's router says, else "default". */
  readonly queue: string | null;
  readonly priority: number;
  readonly attempts: number;
  /** Null: the queue's setting, else the default. */
  readonly backoff: Backoff | BackoffFunction | null;
  readonly timeoutMs: number;
  readonly maxCrashes: number;
  readonly countCrashes: "attempt" | "crash";
  /** False: nothing is kept of the job once it is done. */
  readonly keep: boolean;
  readonly input: StandardSchemaV1<Input, unknown> | null;
  readonly unique: UniqueRule<Input> | null;
  readonly lane: ((input: Input) => string | null) | null;
  /** The limits that its lanes begin with. */
  readonly lanes: LaneLimits | null;
  readonly breaker: DefinitionBreaker | null;
  /** What each start takes of which budget. */
  readonly budget: DefinitionBudget | null;
  /** @internal */
  readonly row: RowDefaults;
  readonly [outputType]?: Output;
}

/** A kind's breaker; with `key`, one for each key. */
export interface DefinitionBreaker {
  readonly after: number;
  readonly cooldownMs: number;
  readonly key: ((input: never) => string | null) | null;
}

/** A kind's budget, and what one start of a job takes of it. */
export interface DefinitionBudget {
  readonly name: string;
  readonly tokens: number;
}

/** A contract of whatever input: what the inside of the client works with. */
export interface AnyContract {
  readonly [jobBrand]: true;
  readonly name: string;
  readonly queue: string | null;
  readonly priority: number;
  readonly attempts: number;
  readonly backoff: Backoff | BackoffFunction | null;
  readonly timeoutMs: number;
  readonly maxCrashes: number;
  readonly countCrashes: "attempt" | "crash";
  readonly keep: boolean;
  readonly input: StandardSchemaV1<unknown, unknown> | null;
  readonly unique: UniqueRule<never> | null;
  readonly lane: ((input: never) => string | null) | null;
  readonly lanes: LaneLimits | null;
  readonly breaker: DefinitionBreaker | null;
  readonly budget: DefinitionBudget | null;
  readonly row: RowDefaults;
}

/**
 * Options of one enqueue. What is not given comes from the definition; by name, from the definition of whoever runs it.
 *
 * @example
 * await hf.enqueue(sendMail, { to }, { delay: "5m", priority: 10, context: "signed up" });
 */
export interface EnqueueOptions {
  /** Due this long from now. Not together with `at`. */
  readonly delay?: Duration | undefined;
  /** Due at this instant; one that has passed is now. */
  readonly at?: Date | number | undefined;
  /** Higher first. */
  readonly priority?: number | undefined;
  readonly queue?: string | undefined;
  /** The unique key, in place of what the definition computes. */
  readonly key?: string | undefined;
  readonly lane?: string | undefined;
  readonly attempts?: number | undefined;
  readonly timeout?: Duration | undefined;
  /** A backoff for this job alone; functions cannot be stored and are refused. */
  readonly backoff?: Backoff | undefined;
  /** Free text: why this job exists. */
  readonly context?: string | undefined;
  /** Start by then (an instant, or a duration from now), or be cancelled. */
  readonly deadline?: Date | Duration | undefined;
  /** An id of your own (a UUID): enqueuing the same id twice is one job, the first. */
  readonly id?: string | undefined;
  /** Starts when these jobs (ids) have ended. */
  readonly after?: readonly string[] | undefined;
  /** What becomes of it when one of them ends dead or cancelled: default "cancel". */
  readonly onDead?: "cancel" | "continue" | "wait" | undefined;
  /** Your own transaction: the job exists if and only if you commit. */
  readonly tx?: object | undefined;
}

/** One job of `enqueueMany`. */
export type EnqueueItem = Omit<EnqueueOptions, "tx"> & {
  readonly job: AnyContract | string;
  readonly input: unknown;
};

/** Checks each item of `enqueueMany` against its own job's input. */
export type CheckedItems<Items extends readonly EnqueueItem[]> = {
  readonly [I in keyof Items]: Items[I] extends { job: JobContract<string, infer Input> }
    ? Omit<EnqueueOptions, "tx"> & { readonly job: Items[I]["job"]; readonly input: Input }
    : Items[I];
};

/**
 * What became of an enqueue. `id` is the job that now stands for the request.
 *
 *   enqueued   a new job
 *   duplicate  the key is taken: `id` is the job that holds it, unchanged
 *   replaced   `id` is the job that held the key and had not started: it now is what this request asked for
 *   debounced  the same, and its delay starts anew
 *
 * @example
 * const result = await hf.enqueue(sendMail, { to });
 * if (result.status === "duplicate") console.log(`already on its way: ${result.id}`);
 */
export type EnqueueResult<Output = unknown> =
  | ({ readonly status: "enqueued" } & ResultOf<Output>)
  | ({ readonly status: "duplicate" } & ResultOf<Output>)
  | ({ readonly status: "replaced" } & ResultOf<Output>)
  | ({ readonly status: "debounced" } & ResultOf<Output>);

interface ResultOf<Output> {
  readonly id: string;
  readonly [outputType]?: Output;
}

/** Every status of an enqueue. */
export type EnqueueStatus = Enqueued["status"];

/** Enqueues one job: by its definition, typed, or by name. */
export interface Enqueue {
  <Input, Output>(
    job: JobContract<string, Input, Output>,
    input: NoInfer<Input>,
    options?: EnqueueOptions,
  ): Promise<EnqueueResult<Output>>;
  (name: string, input: unknown, options?: EnqueueOptions): Promise<EnqueueResult>;
}

/** The outcomes of `enqueueMany`: one for each item, in their order. */
export type EnqueueResults<Items extends readonly EnqueueItem[]> = {
  -readonly [I in keyof Items]: Items[I] extends { job: JobContract<string, infer _Input, infer Output> }
    ? EnqueueResult<Output>
    : EnqueueResult;
};

/** Enqueues many jobs in one transaction, outcomes in order: all or none. */
export type EnqueueMany = <const Items extends readonly EnqueueItem[]>(
  items: Items & CheckedItems<Items>,
  options?: { readonly tx?: object | undefined },
) => Promise<EnqueueResults<Items>>;
