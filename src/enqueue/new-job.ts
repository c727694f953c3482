/**
 * One checked job: from what a caller asks for to the row that the store writes.
 *
 * Invariants: everything is checked here, before anything is written. An option that neither the caller nor the definition
 * states stays null, for the definition of the process that runs the job to fill.
 * Not here: a job without options, key and lane (enqueue.ts), conflicts of keys (unique-keys.ts).
 */
import type { Clock } from "../clock.ts";
import {
  type AnyContract,
  ATTEMPT_BOUNDS,
  type EnqueueOptions,
  jobBrand,
  type OnConflict,
  PRIORITY_BOUNDS,
  type UniqueScope,
} from "../jobs/requests.ts";
import { shown, UsageError } from "../errors.ts";
import type { JobExtras, NewJob, UniqueKey } from "../jobs/job.ts";
import { checkBackoff } from "../jobs/backoff.ts";
import { clampInstant, durationMs, instantMs } from "../values/duration.ts";
import { isId } from "../values/id.ts";
import { MAX_CONTEXT_CHARS } from "../jobs/job-bounds.ts";
import { encodeJson } from "../values/json.ts";
import { checkName, checkText } from "../values/name.ts";
import { checkInteger } from "../values/options.ts";
import type { DefinitionInfo } from "./store.ts";

/** What making a job needs of the client. */
export interface NewJobDeps {
  readonly clock: Clock;
  readonly newId: () => string;
  readonly route: ((name: string) => string) | null;
  readonly maxPayloadBytes: number;
}

/** Stands for "no options were given". */
export const NO_OPTIONS: EnqueueOptions = Object.freeze({});

const defaultQueue = "default";
export const INPUT_CODES = { notJson: "INPUT_NOT_JSON", tooLarge: "INPUT_TOO_LARGE" } as const;

/** The job, or an error for the first thing that is wrong with it. `given` has been checked for unknown keys. */
export function newJob(
  name: string,
  job: AnyContract | null,
  input: unknown,
  given: EnqueueOptions,
  parentId: string | null,
  deps: NewJobDeps,
): NewJob {
  const text = encodeJson(input, "input", deps.maxPayloadBytes, INPUT_CODES);
  const queue = queueOf(name, job, given, deps.route);
  const row = job?.row;
  if (given.delay !== undefined && given.at !== undefined) {
    throw new UsageError("BAD_OPTION", "Give either delay (a duration) or at (an instant), not both.", {
      details: { option: "at" },
    });
  }
  return {
    id: given.id === undefined ? deps.newId() : checkId(given.id),
    name,
    queue,
    priority:
      given.priority === undefined
        ? (job?.priority ?? 0)
        : checkInteger(given.priority, "priority", PRIORITY_BOUNDS),
    input: text,
    delayMs: given.delay === undefined ? null : durationMs(given.delay, "delay"),
    runAt: given.at === undefined ? null : instantMs(given.at, "at"),
    maxAttempts:
      given.attempts === undefined
        ? (row?.maxAttempts ?? null)
        : checkInteger(given.attempts, "attempts", ATTEMPT_BOUNDS),
    timeoutMs:
      given.timeout === undefined
        ? (row?.timeoutMs ?? null)
        : positive(durationMs(given.timeout, "timeout"), "timeout"),
    unique: uniqueOf(name, job, input, queue, given.key),
    lane: laneOf(name, job, input, given.lane),
    laneLimits: job?.lanes ?? null,
    context: given.context === undefined ? null : checkContext(given.context),
    parentId,
    deadlineAt: given.deadline === undefined ? null : deadlineOf(given.deadline, deps.clock),
    extras:
      given.backoff === undefined ? (row?.extras ?? null) : withBackoff(row?.extras ?? null, given.backoff),
    ...(given.after === undefined && given.onDead === undefined ? {} : afterOf(given.after, given.onDead)),
    ...(given.id === undefined ? {} : { givenId: true as const }),
  };
}

/** What was probably meant: the id of what enqueuing gave, or of the promise of it. */
function idHint(value: unknown): string {
  if (typeof value !== "object" || value === null) return "";
  if ("then" in value) return " It is a promise: await it, and pass the id of its result.";
  return "id" in value ? " Pass its id: after: [job.id]." : "";
}

/** Which jobs it waits for. None is as good as not asking. */
function afterOf(after: unknown, onDead: unknown): Pick<NewJob, "after"> {
  if (onDead !== undefined && onDead !== "cancel" && onDead !== "continue" && onDead !== "wait")
    throw new UsageError(
      "BAD_OPTION",
      `onDead must be "cancel", "continue" or "wait"; got ${shown(onDead)}.`,
      {
        details: { option: "onDead" },
      },
    );
  const bad = (text: string): UsageError =>
    new UsageError("BAD_OPTION", text, { details: { option: "after" } });
  if (!Array.isArray(after)) throw bad(`after must be an array of job ids; got ${shown(after)}.`);
  const ids = (after as unknown[]).map((id) => {
    const lower = typeof id === "string" ? id.toLowerCase() : "";
    if (isId(lower)) return lower;
    throw bad(`after must contain job ids; got ${shown(id)}.${idHint(id)}`);
  });
  return ids.length === 0 ? {} : { after: { ids: [...new Set(ids)], policy: onDead ?? "cancel" } };
}

/**
 * Refuses jobs that wait for each other in a circle. Only jobs of one batch can: an id that is known was there before.
 *
 * @throws UsageError AFTER_CYCLE, which names the way round
 */
export function checkCycles(jobs: readonly NewJob[]): void {
  if (jobs.every((job) => job.after === undefined)) return;
  const after = new Map(jobs.map((job) => [job.id, job.after?.ids ?? []]));
  const done = new Set<string>();
  for (const start of after.keys()) {
    // Depth first without recursion: a chain of 10,000 must not overflow the stack.
    const path: { id: string; next: number }[] = done.has(start) ? [] : [{ id: start, next: 0 }];
    const on = new Set(path.map(({ id }) => id));
    for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
      const id = after.get(top.id)?.[top.next];
      top.next += 1;
      if (id === undefined) {
        done.add(top.id);
        on.delete(top.id);
        path.pop();
      } else if (on.has(id)) {
        const way = [...path.slice(path.findIndex((step) => step.id === id)).map((step) => step.id), id];
        throw new UsageError(
          "AFTER_CYCLE",
          `These jobs depend on each other in a circle: ${way.slice(0, 10).join(" → ")}. Nothing was enqueued.`,
          { details: { jobs: way } },
        );
      } else if (after.has(id) && !done.has(id)) {
        on.add(id);
        path.push({ id, next: 0 });
      }
    }
  }
}

export function queueOf(
  name: string,
  job: AnyContract | null,
  given: EnqueueOptions,
  route: NewJobDeps["route"],
): string {
  if (given.queue !== undefined) return checkName(given.queue, "queue");
  if (job !== null && job.queue !== null) return job.queue;
  if (route === null) return defaultQueue;
  return checkName(route(name), `The queue returned by route("${name}")`);
}

function deadlineOf(deadline: Date | number | string, clock: Clock): number {
  if (typeof deadline === "string" || typeof deadline === "number")
    return clampInstant(clock.now() + durationMs(deadline, "deadline"));
  return instantMs(deadline, "deadline");
}

/** Refuses what is no definition. */
export function checkJob(job: unknown): asserts job is AnyContract {
  if (typeof job === "object" && job !== null && (job as { [jobBrand]?: unknown })[jobBrand] === true) return;
  throw new UsageError(
    "UNKNOWN_JOB",
    `enqueue takes a definition made by defineJob, or a job name; got ${shown(job)}.`,
  );
}

/** Refuses an enqueue by name that leaves out what the name's definition computes. */
export function checkDefinition(job: NewJob, definition: DefinitionInfo | undefined): NewJob {
  if (definition === undefined) return job;
  if (definition.unique && job.unique === null) {
    throw new UsageError(
      "KEY_REQUIRED",
      `Jobs "${job.name}" have a unique key that their definition computes. Give \`key\`, or enqueue with the definition.`,
      {
        details: { name: job.name },
      },
    );
  }
  if (definition.lane && job.lane === null) {
    throw new UsageError(
      "LANE_REQUIRED",
      `Jobs "${job.name}" have a lane that their definition computes. Give \`lane\`, or enqueue with the definition.`,
      {
        details: { name: job.name },
      },
    );
  }
  const lanes = definition.lanes ?? null;
  return lanes === null || job.lane === null ? job : { ...job, laneLimits: lanes };
}

function uniqueOf(
  name: string,
  job: AnyContract | null,
  input: unknown,
  queue: string,
  given: string | undefined,
): UniqueKey | null {
  const rule = job?.unique ?? null;
  if (given !== undefined) {
    return uniqueKey(
      checkText(given, "key"),
      rule?.scope ?? "job",
      name,
      queue,
      rule?.forMs ?? null,
      rule?.onConflict ?? "keep",
    );
  }
  if (rule === null) return null;
  const key = computed(() => rule.key(input as never), "unique", name);
  if (key === null) return null;
  const text = typeof key === "number" && Number.isFinite(key) ? String(key) : key;
  return uniqueKey(
    checkText(text, `The unique key of job "${name}"`),
    rule.scope,
    name,
    queue,
    rule.forMs,
    rule.onConflict,
  );
}

function uniqueKey(
  key: string,
  scope: UniqueScope,
  name: string,
  queue: string,
  forMs: number | null,
  onConflict: OnConflict,
): UniqueKey {
  const over = scope === "job" ? `job:${name}` : scope === "queue" ? `queue:${queue}` : "global";
  return { scope: over, key, forMs, onConflict };
}

function laneOf(
  name: string,
  job: AnyContract | null,
  input: unknown,
  given: string | undefined,
): string | null {
  if (given !== undefined) return checkText(given, "lane");
  if (job === null || job.lane === null) return null;
  const { lane } = job;
  const computedLane = computed(() => lane(input as never), "lane", name);
  return computedLane === null ? null : checkText(computedLane, `The lane of job "${name}"`);
}

function computed<T>(compute: () => T, what: string, name: string): T {
  try {
    return compute();
  } catch (cause) {
    throw new UsageError("BAD_KEY", `The ${what} function of job "${name}" threw. See the cause.`, {
      details: { name, what },
      cause,
    });
  }
}

function checkId(id: unknown): string {
  const lower = typeof id === "string" ? id.toLowerCase() : id;
  // Lists, retention and partitions go by the time that is in an id, so a random one would be out of place for ever.
  if (typeof lower === "string" && isId(lower) && lower[14] === "7") return lower;
  throw new UsageError("BAD_OPTION", `id must be a UUID of version 7; got ${shown(id)}.`, {
    details: { option: "id" },
  });
}

// Any text: it is stored as JSON, which holds NUL and halves of surrogate pairs.
function checkContext(context: unknown): string {
  if (typeof context === "string" && context.length <= MAX_CONTEXT_CHARS) return context;
  throw new UsageError(
    "BAD_OPTION",
    `context must be a string of at most ${MAX_CONTEXT_CHARS} characters; got ${shown(context)}.`,
    { details: { option: "context" } },
  );
}

function positive(ms: number, what: string): number {
  if (ms > 0) return ms;
  throw new UsageError("BAD_DURATION", `${what} must be longer than 0.`, { details: { what } });
}

function withBackoff(extras: JobExtras | null, backoff: unknown): JobExtras {
  const checked = checkBackoff(backoff, "backoff");
  if (typeof checked !== "function") return { ...extras, backoff: checked };
  throw new UsageError(
    "BAD_OPTION",
    "A backoff function cannot be stored with a job. Give it to defineJob, or use exponential(…), fixed(…), power() or immediately().",
    {
      details: { option: "backoff" },
    },
  );
}
