/**
 * `hf.jobs.history`: a job's life as data, for programs and for the dashboard.
 *
 * Not here: the job itself (`hf.jobs.get`), why it does not run (operate/why.ts).
 */
import type { Job, StepKind } from "../jobs/job.ts";
import { decodeFailures } from "../jobs/failure.ts";
import type { Store } from "../storage/store.ts";
import type { Dependency, DependencyPolicy, StepRecord, StepState } from "./store.ts";
import { nameAndKeyOf } from "./signal.ts";
import { triesOf } from "./step-tries.ts";

/** One attempt: those that failed or were lost are listed by their errors, the latest by the job's own times. */
export interface AttemptEntry {
  readonly attempt: number;
  readonly startedAt: Date | null;
  readonly endedAt: Date | null;
  readonly error: string | null;
  /** It was lost with its worker, and ended when its lease passed. */
  readonly lost: boolean;
}

/** One step of a run, or of a machine. */
export interface StepEntry {
  /** Its number: steps are in the order of it. */
  readonly seq: number;
  /** How many results the run had been given when it asked for this: steps with the same count were asked for together. */
  readonly given: number;
  /** Its place among those results; null: it is not over, or nothing else was under way when it was. */
  readonly givenOrder: number | null;
  readonly name: string;
  readonly kind: StepKind;
  readonly state: StepState;
  /** The attempt of the job that it was last written in. */
  readonly attempt: number;
  /** Tries of this step by itself. */
  readonly tries: number;
  /** When it was tried, oldest first: the newest 32 over all attempts of the job. Empty for sleeps, waits and calls. */
  readonly triedAt: readonly { readonly startedAt: Date; readonly endedAt: Date }[];
  readonly startedAt: Date;
  readonly endedAt: Date | null;
  /** When it goes on, while it sleeps or waits. */
  readonly wakeAt: Date | null;
  readonly output: unknown;
  readonly error: string | null;
  /** The job that it called. */
  readonly child: string | null;
}

/** A signal that the run took, or waits for. */
export interface SignalEntry {
  readonly name: string;
  readonly key: string | null;
  readonly step: string;
  readonly state: "waiting" | "taken" | "timeout";
  readonly data: unknown;
  readonly since: Date;
  readonly takenAt: Date | null;
}

/** A job that this one called, enqueued, or waits for. */
export interface RelatedJob {
  readonly id: string;
  readonly name: string | null;
  readonly relation: "called" | "enqueued" | "after";
  readonly state: Job["state"] | null;
  /** The step that called it. */
  readonly step: string | null;
  /** What becomes of this job when that one ends badly; null for those that it does not wait for. */
  readonly policy: DependencyPolicy | null;
  readonly error: string | null;
}

/** What `hf.jobs.history(id)` gives. */
export interface JobHistory {
  readonly attempts: readonly AttemptEntry[];
  readonly steps: readonly StepEntry[];
  readonly signals: readonly SignalEntry[];
  readonly children: readonly RelatedJob[];
}

const mostRelated = 1_000;

/** Reads all of it: four reads, however long the life. */
export async function historyOf(store: Store, job: Job): Promise<JobHistory> {
  const [steps, related] = await Promise.all([store.workflows.steps(job.id), relatedTo(store, job)]);
  const shown = steps.filter((step) => step.name !== "$undo");
  return {
    attempts: attemptsOf(job),
    steps: shown.sort((a, b) => a.seq - b.seq).map((step) => stepEntry(step, job)),
    signals: steps.filter((step) => step.kind === "signal").map(signalEntry),
    children: related,
  };
}

/** A piece of a history that may be long. */
export interface HistoryPage extends JobHistory {
  /** How many steps there are in all, up to 10,000; then `stepCountMore`. */
  readonly stepCount: number;
  readonly stepCountMore: boolean;
  /** There are steps before these. */
  readonly more: boolean;
}

/**
 * The last steps before a number, and nothing of the others is read. Signals are those of the page, and whatever the run waits for.
 */
export async function historyPage(
  store: Store,
  job: Job,
  page: { readonly before: number; readonly limit: number },
): Promise<HistoryPage> {
  const [counted, open, children] = await Promise.all([
    store.workflows.countSteps(job.id),
    store.workflows.openSteps(job.id),
    relatedTo(store, job),
  ]);
  // A short history has no page behind the one that is asked for.
  const limit = counted.more ? page.limit + 1 : Math.min(page.limit + 1, counted.count);
  const found = limit === 0 ? [] : await store.workflows.stepsBefore(job.id, { before: page.before, limit });
  const steps = found.slice(-page.limit);
  const signals = new Map(
    [...open, ...steps].filter(({ kind }) => kind === "signal").map((one) => [one.name, one]),
  );
  return {
    attempts: attemptsOf(job),
    steps: steps.map((step) => stepEntry(step, job)),
    signals: [...signals.values()].sort((a, b) => a.seq - b.seq).map(signalEntry),
    children,
    stepCount: counted.count,
    stepCountMore: counted.more,
    more: found.length > steps.length,
  };
}

async function relatedTo(store: Store, job: Job): Promise<RelatedJob[]> {
  const [dependencies, children] = await Promise.all([
    store.workflows.dependencies(job.id),
    store.workflows.children([job.id], mostRelated),
  ]);
  const ids = [...new Set([...dependencies.map(({ on }) => on), ...children])].slice(0, mostRelated);
  const page =
    ids.length === 0 ? { jobs: [] } : await store.jobs.list({ ids }, { limit: ids.length, cursor: null });
  const jobs = new Map(page.jobs.map((one) => [one.id, one]));
  return ids.map((id) => related(id, jobs.get(id), dependencies));
}

function attemptsOf(job: Job): AttemptEntry[] {
  const failed = job.errors.map(({ attempt, at, message, ranMs, lost }) => ({
    attempt,
    startedAt: ranMs === undefined ? null : new Date(at.getTime() - ranMs),
    endedAt: at,
    error: message,
    lost: lost ?? false,
  }));
  const { attempt, startedAt, endedAt, state } = job;
  if (startedAt === null || (state !== "done" && state !== "running")) return failed;
  return [...failed, { attempt, startedAt, endedAt, error: null, lost: false }];
}

function stepEntry(step: StepRecord, job: Job): StepEntry {
  const { state, endedAt } = endOf(step, job);
  return {
    seq: step.seq,
    given: step.given,
    givenOrder: step.givenOrder,
    name: step.kind === "machine" ? (step.label ?? step.name) : step.name,
    kind: step.kind,
    state,
    attempt: step.attempt,
    tries: step.tries,
    triedAt: triesOf(step).map((one) => ({
      startedAt: new Date(one.startedAt),
      endedAt: new Date(one.endedAt),
    })),
    startedAt: new Date(step.startedAt),
    endedAt,
    wakeAt: state === "open" ? date(step.wakeAt) : null,
    output: step.name === "$machine" ? job.output : json(step.output),
    error: step.name === "$machine" && state === "failed" ? job.error : errorOf(step),
    child: step.child,
  };
}

/** What needs no write of its own when it is over: a sleep that the run has slept, and the step that a machine ended in. */
function endOf(step: StepRecord, job: Job): { state: StepState; endedAt: Date | null } {
  const asItIs = { state: step.state, endedAt: date(step.endedAt) };
  if (step.state !== "open") return asItIs;
  if (step.kind === "sleep" && step.wakeAt !== null) {
    const slept = job.startedAt !== null && job.startedAt.getTime() >= step.wakeAt;
    return slept ? { state: "done", endedAt: date(step.wakeAt) } : asItIs;
  }
  if (step.kind !== "machine" || job.endedAt === null) return asItIs;
  return { state: job.state === "done" ? "done" : "failed", endedAt: job.endedAt };
}

function signalEntry(step: StepRecord): SignalEntry {
  return {
    ...nameAndKeyOf(step.topic ?? ""),
    step: step.name,
    state: step.state === "open" ? "waiting" : step.label === "timeout" ? "timeout" : "taken",
    data: json(step.output),
    since: new Date(step.startedAt),
    takenAt: date(step.endedAt),
  };
}

function related(id: string, job: Job | undefined, dependencies: readonly Dependency[]): RelatedJob {
  const dependency = dependencies.find(({ on }) => on === id);
  return {
    id,
    name: job?.name ?? null,
    relation: dependency === undefined ? "enqueued" : dependency.step === null ? "after" : "called",
    state: job?.state ?? dependency?.state ?? null,
    step: dependency?.step ?? null,
    policy: dependency?.policy ?? null,
    error: job?.error ?? null,
  };
}

function errorOf(step: StepRecord): string | null {
  if (step.error === null) return null;
  if (step.kind === "call" && step.child !== null) return decodeFailures(step.error).at(-1)?.message ?? null;
  const kept = json(step.error) as { message?: unknown } | null;
  return typeof kept?.message === "string" ? kept.message : step.error;
}

function date(at: number | null): Date | null {
  return at === null ? null : new Date(at);
}

function json(text: string | null): unknown {
  if (text === null) return null;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
