/**
 * Middleware: code of the user around every enqueue and every run, outermost first.
 *
 * Invariants: `next` may be called at most once; what `next` gives must be handed back (or replaced) by the
 * middleware. Without middleware both paths cost nothing: callers ask `enqueues.length` and `runs.length`.
 * Not here: what happens inside (enqueue/enqueue.ts, attempt.ts).
 */
import type { JobContext } from "./context.ts";
import type { EnqueueRequest, EnqueueStep } from "../enqueue/enqueue-many.ts";
import { shown, StateError, UsageError } from "../errors.ts";
import type { ClaimedJob, Enqueued } from "../jobs/job.ts";
import { idTime } from "../values/id.ts";
import { checkOptions, isPlainObject } from "../values/options.ts";

/** An attempt about to run. */
export interface RunRequest {
  readonly name: string;
  readonly queue: string;
  readonly id: string;
  readonly attempt: number;
  readonly priority: number;
  /** When this attempt was due, by the database's clock. */
  readonly runAt: Date;
  /** When the job's id was made, by the clock of the process that enqueued it. */
  readonly createdAt: Date;
  /** The free text given at enqueue: written by users. */
  readonly context: string | null;
  /** As the schema gave it. */
  readonly input: unknown;
  readonly ctx: JobContext;
  /** What the `enqueue` middleware sent along. */
  readonly carrier: Readonly<Record<string, string>>;
}

/** The request of an attempt. The id tells when the job was made, so no claim has to read the column. */
export function runRequest(job: ClaimedJob, input: unknown, ctx: JobContext): RunRequest {
  const { id, name, queue, attempt, priority, context } = job;
  const [runAt, createdAt] = [new Date(job.runAt), new Date(idTime(id))];
  const carrier = job.extras?.carrier ?? {};
  return { id, name, queue, attempt, priority, runAt, createdAt, context, input, ctx, carrier };
}

/**
 * Code around enqueue, run, or both.
 *
 * @example
 * hf.use({ run: async (attempt, next) => { console.time(attempt.id); try { return await next(); } finally { console.timeEnd(attempt.id); } } });
 */
export interface Middleware {
  enqueue?(request: EnqueueRequest, next: () => Promise<Enqueued>): Promise<Enqueued>;
  run?(attempt: RunRequest, next: () => Promise<unknown>): Promise<unknown>;
}

export type { EnqueueRequest };

type RunStep = NonNullable<Middleware["run"]>;

/** The middleware of one client, in the order in which `use` was called. */
export class MiddlewareChain {
  readonly enqueues: EnqueueStep[] = [];
  readonly runs: RunStep[] = [];

  use(middleware: Middleware): void {
    if (isPlainObject(middleware)) checkOptions(middleware, ["enqueue", "run"], "use");
    if (
      typeof middleware !== "object" ||
      middleware === null ||
      (middleware.enqueue === undefined && middleware.run === undefined)
    ) {
      throw new UsageError(
        "BAD_OPTION",
        `A middleware must be an object with enqueue, run, or both; got ${shown(middleware)}.`,
      );
    }
    for (const key of ["enqueue", "run"] as const) {
      if (middleware[key] !== undefined && typeof middleware[key] !== "function") {
        throw new UsageError(
          "BAD_OPTION",
          `A middleware's ${key} must be a function; got ${shown(middleware[key])}.`,
          { details: { option: key } },
        );
      }
    }
    if (middleware.enqueue !== undefined)
      this.enqueues.push(async (request, next) => handedBack(await middleware.enqueue!(request, next)));
    if (middleware.run !== undefined) this.runs.push((attempt, next) => middleware.run!(attempt, next));
  }

  /** Runs `innermost` inside every enqueue middleware. */
  enqueue(request: EnqueueRequest, innermost: () => Promise<Enqueued>): Promise<Enqueued> {
    return wrap(this.enqueues, request, innermost);
  }

  /** Runs `innermost` inside every run middleware. */
  run(attempt: RunRequest, innermost: () => Promise<unknown>): Promise<unknown> {
    return wrap(this.runs, attempt, innermost);
  }
}

/** TypeScript sees to it; JavaScript forgets the `return`. */
function handedBack(result: Enqueued | undefined | null): Enqueued {
  if (typeof result === "object" && result !== null) return result;
  throw new UsageError(
    "BAD_OPTION",
    `A middleware's enqueue must return the result of next(); got ${shown(result)}. Write: return next().`,
    { details: { option: "enqueue" } },
  );
}

function wrap<Request, Result>(
  steps: readonly ((request: Request, next: () => Promise<Result>) => Promise<Result>)[],
  request: Request,
  innermost: () => Promise<Result>,
): Promise<Result> {
  const call = async (i: number): Promise<Result> => {
    const step = steps[i];
    if (step === undefined) return innermost();
    let called = false;
    return step(request, () => {
      if (called) {
        return Promise.reject(
          new StateError(
            "ILLEGAL_MOVE",
            "A middleware called next() twice. It may call it once and reuse the result.",
          ),
        );
      }
      called = true;
      return call(i + 1);
    });
  };
  return call(0);
}
