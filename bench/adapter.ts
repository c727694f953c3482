/**
 * What the benchmark asks of a job queue: the one interface behind which every system stands.
 *
 * An adapter file imports its package when it is opened, not before: the main process reads titles and settings of
 * all systems, also where one of them is not installed.
 * Not here: what is measured (scenarios/), how a run is made (main.ts, runner.ts).
 */

/** One job's payload. About 110 bytes of JSON with the default text. */
export interface Payload {
  /** Its number: what was lost or ran twice is found by it. */
  readonly n: number;
  /** When it was enqueued, in microseconds of the machine's monotonic clock. */
  readonly at: number;
  readonly text: string;
}

export type Run = (job: Payload) => void | Promise<void>;

/** Where a system keeps its jobs in this run. All of it is new and empty. */
export interface Target {
  /** Postgres or Redis address; for SQLite the file. */
  readonly url: string;
  readonly mode: Mode;
  /** How many queues the jobs are spread over; 1 but for the scale curve. */
  readonly queues: number;
}

/**
 * The settings that a system is measured with, since its best ones differ by work:
 * drain: a full queue, as fast as can be. latency: an idle worker. steady: a worker under load that is not full.
 * idle: the defaults.
 */
export type Mode = "drain" | "latency" | "steady" | "idle";

export interface AddOptions {
  /** 0 … queues-1. */
  readonly queue?: number;
  readonly delayMs?: number;
  /** Higher first; adapters turn it round where the system counts otherwise. */
  readonly priority?: number;
  /** Spread over this many lanes, by the job's number; systems that can limit. */
  readonly lanes?: number;
}

/** A system, opened in one process. */
export interface Client {
  /** One job. Resolves when the system says that it is kept. */
  add(job: Payload, options?: AddOptions): Promise<unknown>;
  /** Many jobs, by the fastest documented way. At most `bulk.chunk` of them. */
  addMany(jobs: readonly Payload[], options?: AddOptions): Promise<unknown>;
  /** Starts a worker in this process; resolves when it claims. The function that it gives stops it. */
  work(run: Run): Promise<() => Promise<void>>;
  /** True when every job that was due has ended on disk. */
  empty(): Promise<boolean>;
  /** One job with a unique key, where the system has that. */
  addUnique?(job: Payload, key: string): Promise<unknown>;
  /** Durable steps, where the system has them: runs of so many steps, each of which does nothing. In this process. */
  workflows?(): Promise<Workflows>;
  /** One job inside a transaction of the user's that also writes a row of the table `business (n int)`. */
  addInTransaction?(job: Payload): Promise<unknown>;
  /** Sets a limit of the first queue over the cluster, where the system has that. */
  limit?(settings: object): Promise<unknown>;
  close(): Promise<void>;
}

/** Runs made of durable steps. */
export interface Workflows {
  /** So many runs side by side, each of so many steps one after the other; resolves when all are recorded as ended. */
  run(runs: number, steps: number): Promise<void>;
  /**
   * A run that does so many steps and then waits, is dropped from memory, and goes on: the milliseconds from the wish that
   * it go on until its recorded end.
   */
  resume(steps: number): Promise<number>;
  close(): Promise<void>;
}

export type StoreKind = "postgres" | "sqlite" | "redis-everysec" | "redis-always";

export interface System {
  readonly id: string;
  readonly title: string;
  readonly store: StoreKind;
  /** ours, a peer, or the limit (a bare loop of SQL: no queue). */
  readonly role: "ours" | "peer" | "limit";
  /** npm packages whose versions are printed. */
  readonly packages: readonly string[];
  /** The settings in words, for each mode that the system is measured in; a mode that is missing is not measured. */
  readonly settings: Partial<Record<Mode, string>>;
  /** Sizes are multiplied by this: a slow system's rate shows with fewer jobs. */
  readonly factor: number;
  readonly bulk: { readonly chunk: number; readonly inFlight: number };
  /** The longest sleep between two looks in latency mode; pauses between samples vary by as much. */
  readonly pollMs?: number;
  /** Features that the scale and feature scenarios need. */
  readonly can?: readonly ("delay" | "priority" | "queues" | "many processes" | "limits" | "steps")[];
  /** Why it cannot run on this machine; null when it can. */
  readonly missing?: () => string | null;
  /** Once for a new target, before any process opens it: schema, queues. */
  setup?(target: Target): Promise<void>;
  open(target: Target): Promise<Client>;
}

/** Microseconds of the monotonic clock, the same in every process of the machine. */
export function microseconds(): number {
  return Number(process.hrtime.bigint() / 1000n);
}

export const silent = (): void => {};

/** For a loop that nobody waits for: its failure ends the process, and with that the run, instead of a silent stall. */
export function orCrash(loop: Promise<unknown>): void {
  loop.catch((error: unknown) => {
    setImmediate(() => {
      throw error;
    });
  });
}
