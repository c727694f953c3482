/**
 * What a handler can ask a run for, and where each thing that it asked for stands.
 *
 *   asked ─▶ held ─▶ busy ─▶ (written) ─▶ given          not in the history: done, once all of that has been given
 *              └──────────▶ given                        in the history, with its place in the order
 *            waits ─▶ (the run sleeps) … met ─▶ given    over by itself: a sleep whose time has come, a call that was answered
 *
 * Not here: the order in which things are given (run.ts), what is remembered (replay.ts), doing them (execute.ts).
 */
import type { NewJob, StepKind } from "../jobs/job.ts";
import type { Backoff, BackoffFunction } from "../jobs/backoff.ts";
import type { StepRecord } from "./store.ts";
import type { Wait } from "../jobs/outcome.ts";

/** What a step may be given. */
export interface StepSettings {
  readonly attempts: number;
  readonly backoff: Backoff | BackoffFunction | null;
  readonly timeoutMs: number | null;
  readonly undo: ((output: never, info: StepInfo) => unknown) | null;
  readonly tx: object | null;
}

/** What a step's function is told. */
export interface StepInfo {
  /** 1 in the first try of this step. */
  readonly attempt: number;
  /** Aborts with the attempt of the job, and when the step's own timeout passes. */
  readonly signal: AbortSignal;
}

/** What is asked for. */
export type Doing =
  | { readonly kind: "step"; readonly fn: (info: StepInfo) => unknown; readonly settings: StepSettings }
  | { readonly kind: "sleep"; readonly ms: number }
  | { readonly kind: "signal"; readonly topic: string; readonly timeoutMs: number | null }
  | { readonly kind: "call"; readonly child: () => NewJob | Promise<NewJob> }
  | { readonly kind: "version"; readonly current: number };

/** One thing that the handler asked for. */
export interface Ask {
  readonly doing: Doing;
  name: string;
  seq: number;
  record: StepRecord | null;
  /** Failures that had been given when it was asked for. */
  fails: number;
  /** Results of any kind that had been given when it was asked for. */
  given: number;
  /** `held`: waits for the history to be given; `busy`: being done or written; `waits`: for time, a signal or a job. */
  state: "asked" | "held" | "busy" | "waits" | "met" | "given";
  wakeAt: number | null;
  /** One of `ctx.all`: there is no use in waking for each. */
  every: boolean;
  settle: (() => void) | null;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** Something new that the handler asks for, with the promise that it gets. */
export function newAsk(
  name: string,
  doing: Doing,
): { readonly ask: Ask; readonly promise: Promise<unknown> } {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  promise.catch(() => {}); // a branch that nobody waits for any more must not end the process
  const ask: Ask = {
    doing,
    name,
    seq: -1,
    record: null,
    fails: 0,
    given: 0,
    state: "asked",
    wakeAt: null,
    every: false,
    settle: null,
    resolve,
    reject,
  };
  return { ask, promise };
}

/** What a run whose asks all wait is waiting for. */
export function waitOf(open: readonly Ask[]): Wait {
  const instants = open.flatMap((ask) => {
    const at = ask.wakeAt ?? ask.record?.wakeAt ?? null;
    return at === null ? [] : [at];
  });
  const topics = open.flatMap((ask) => (ask.doing.kind === "signal" ? [ask.doing.topic] : []));
  const calls = open.filter((ask) => ask.doing.kind === "call");
  return {
    waits: topics.length > 0 ? "signal" : calls.length > 0 ? "jobs" : "sleep",
    at: instants.length === 0 ? null : Math.min(...instants),
    topics,
    open: calls.length,
    every: calls.length > 0 && calls.every((ask) => ask.every),
  };
}

/** A kind, as errors name it. */
export function shownName(kind: StepKind): string {
  return kind === "signal" ? "the wait" : `the ${kind}`;
}
