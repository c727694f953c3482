/** The contract of workflow runs as rows: steps, signals, calls, dependencies. step-rows.ts keeps it for both databases. */
import type { EndState, Enqueued, JobExtras, NewJob, StepKind } from "../jobs/job.ts";
import type { UserTx } from "../storage/user-tx.ts";

/** `open`: waits for something; `failed`: ended badly, and tried again only with the next attempt of the job. */
export type StepState = "open" | "done" | "failed";

/** A step on its way to the store. */
export interface StepWrite {
  readonly job: string;
  readonly token: number;
  readonly name: string;
  /** Position of this step in the run. */
  readonly seq: number;
  /** Position among the results that the run was given; null while it is open. */
  readonly givenOrder: number | null;
  readonly kind: StepKind;
  readonly state: StepState;
  /** The job's attempt that wrote it. */
  readonly attempt: number;
  readonly tries: number;
  /** How long it took: it started that long before it was written. */
  readonly tookMs: number;
  /** For an open one: due so long from now. */
  readonly wakeInMs: number | null;
  readonly undo: boolean;
  /** How many failures had been given to the run when it asked for this: those it went on after. */
  readonly fails: number;
  /** How many results of any kind had been given to it then: what it had seen, and so what this came after. */
  readonly given: number;
  /** JSON text. */
  readonly output: string | null;
  /** JSON text, see jobs/failure.ts. */
  readonly error: string | null;
  readonly label: string | null;
  readonly after?: After;
}

/**
 * The latest thing whose end this attempt has written. A database that lacks it is a replica that lagged and was promoted: it has lost
 * some of the history, and what was written behind the gap could never be led through again. So the write is refused, as for a lost lease.
 */
export type After = string | null;

/** A step as it is kept. */
export interface StepRecord {
  readonly name: string;
  readonly seq: number;
  readonly givenOrder: number | null;
  readonly kind: StepKind;
  readonly state: StepState;
  readonly attempt: number;
  readonly tries: number;
  readonly startedAt: number;
  readonly endedAt: number | null;
  readonly wakeAt: number | null;
  readonly topic: string | null;
  readonly child: string | null;
  readonly undo: boolean;
  readonly fails: number;
  readonly given: number;
  readonly output: string | null;
  readonly error: string | null;
  readonly label: string | null;
}

export interface SignalWait {
  readonly id: string;
  readonly token: number;
  readonly name: string;
  readonly seq: number;
  readonly givenOrder: number;
  readonly attempt: number;
  readonly fails: number;
  readonly given: number;
  readonly topic: string;
  /** Null: waits for ever. Counts from the first time that this wait was opened. */
  readonly timeoutMs: number | null;
  readonly after?: After;
}

export interface SignalTaken {
  readonly over: boolean;
  /** JSON text; `null` after the timeout. */
  readonly data: string | null;
  readonly wakeAt: number | null;
}

export interface CallStart {
  readonly id: string;
  readonly token: number;
  readonly name: string;
  readonly seq: number;
  readonly attempt: number;
  readonly fails: number;
  readonly given: number;
  readonly child: NewJob;
  readonly after?: After;
}

/** A run that newer code than the one that enqueued it takes on. */
export interface AdvancedRun {
  readonly id: string;
  readonly token: number;
  readonly extras: JobExtras;
}

export interface MachineMove {
  readonly id: string;
  readonly token: number;
  /** Null leaves the count as it is. */
  readonly attempt: number | null;
  readonly steps: readonly {
    readonly name: string;
    readonly seq: number;
    readonly state: StepState;
    readonly tries: number;
    readonly tookMs: number;
    readonly output: string | null;
    readonly label: string;
  }[];
}

/** What becomes of a job when one that it waits for ends badly. */
export type DependencyPolicy = "cancel" | "continue" | "wait";

export interface Dependency {
  readonly job: string;
  readonly on: string;
  readonly policy: DependencyPolicy;
  /** The step that calls it; null for `after`. */
  readonly step: string | null;
  /** How it ended; null while it has not. */
  readonly state: EndState | null;
  readonly metAt: number | null;
}

export interface LiveWorkflow {
  readonly id: string;
  /** Where the next page goes on. */
  readonly cursor: string;
  readonly name: string;
  readonly input: string;
  readonly attempt: number;
  readonly crashes: number;
  readonly running: boolean;
  readonly extras: JobExtras | null;
}

/** Workflows. Each write of a run is fenced like a settle; an answer that lacks a row says that the lease is lost. */
export interface WorkflowStore {
  /** A new job with the steps of an ended one before this one; null: no ended job has this id. */
  fork(id: string, from: string, newId: string): Promise<ForkOutcome | null>;
  /** Writes steps of runs held under the session. Answers with those that were written, as `job name`. */
  recordSteps(
    session: number,
    steps: readonly StepWrite[],
    tx?: UserTx,
  ): Promise<Map<string, { readonly wakeAt: number | null }>>;
  /** Everything that a run remembers, in one read, in the order in which it asked. */
  steps(job: string): Promise<StepRecord[]>;
  /** A page of them: the last before a number, in the order in which they were asked for. Without the mark of an undo. */
  stepsBefore(job: string, page: { readonly before: number; readonly limit: number }): Promise<StepRecord[]>;
  /** Those that are not over, at most 1,000. */
  openSteps(job: string): Promise<StepRecord[]>;
  /** How many there are, up to 10,000. */
  countSteps(job: string): Promise<{ readonly count: number; readonly more: boolean }>;
  /** One step of a run. */
  step(job: string, name: string): Promise<StepRecord | null>;
  /** The steps at which these machines stand; without those that have not moved, and without plain jobs. */
  machineSteps(ids: readonly string[]): Promise<Map<string, string>>;
  /** Takes the oldest signal of the topic for this run, or opens the wait. Null: the lease is lost. */
  takeSignal(session: number, wait: SignalWait): Promise<SignalTaken | null>;
  /** Enqueues a child and opens the wait for it, in one transaction. Null: the lease is lost. */
  startCall(
    session: number,
    call: CallStart,
  ): Promise<{ readonly child: string; readonly ended: boolean } | null>;
  /** The runs that wait for a topic, oldest wait first. */
  waitersFor(topic: string, limit: number): Promise<string[]>;
  /**
   * Keeps a signal until a run takes it or it expires, and wakes who waits for it. Answers how many it woke. The same id again
   * adds nothing, also after a run has taken the first.
   */
  signal(signal: {
    readonly id: string;
    readonly topic: string;
    readonly data: string;
    readonly expiresMs: number;
  }): Promise<number>;
  /** Whether this attempt still has its row: false once it has ended, was committed, or was taken over. */
  stillHeld(session: number, id: string, token: number): Promise<boolean>;
  /** Saves where a machine goes next, in one fenced write; `attempt` restarts its count for a step that runs on at once. */
  saveMachine(session: number, move: MachineMove): Promise<boolean>;
  /** Of these runs, those with finished steps that are to be undone before they end dead or cancelled. */
  undoable(ids: readonly string[]): Promise<Map<string, "undo" | "undoing">>;
  /** Remembers that newer code than the one that enqueued it has taken a run on. False: the run is not held any more. */
  advance(session: number, run: AdvancedRun, tx?: UserTx): Promise<boolean>;
  /** Asks to be told of the end of a job (`ended` wake-up). */
  watch(ids: readonly string[]): Promise<void>;
  /** Finds ends and signals whose news was lost with a process, and forgets expired signals. */
  sweep(): Promise<number>;
  /** Jobs that a job waited or waits for. */
  dependencies(job: string): Promise<Dependency[]>;
  /** Jobs that these jobs enqueued or called. */
  children(parents: readonly string[], limit: number): Promise<string[]>;
  /** Runs under way of these kinds that remember something, by id. */
  liveRuns(names: readonly string[], page: { limit: number; after: string | null }): Promise<LiveWorkflow[]>;
  /** The same of one job, under way or ended; null: there is none. */
  run(id: string): Promise<LiveWorkflow | null>;
}

/** What a fork came to. */
export type ForkOutcome =
  | { readonly refused: string; readonly job: null; readonly enqueued: null }
  | { readonly refused: null; readonly job: NewJob; readonly enqueued: Enqueued };
