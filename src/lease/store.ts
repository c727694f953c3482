/** The contract of living workers as rows. worker-rows.ts keeps it for both databases. */

/** A living worker, or a holder of leases, as `hf.workers.list()` gives it. */
export interface WorkerState {
  /** Session number. */
  readonly session: number;
  readonly id: string;
  readonly kind: "worker" | "lease";
  readonly name: string;
  readonly host: string;
  readonly pid: number;
  /** Holdfast's version. */
  readonly version: string;
  /** What runs the program: "node 24.21.0". Null: it did not say. */
  readonly runtime: string | null;
  /** The build of the program (`release` of the worker); null where none was given. */
  readonly release: string | null;
  readonly queues: Readonly<Record<string, number>>;
  readonly names: readonly string[];
  /** The versions of its definitions, where they are not 1. */
  readonly versions: Readonly<Record<string, number>>;
  readonly startedAt: Date;
  readonly beatAt: Date;
  readonly leaseUntil: Date;
  readonly stopping: boolean;
  /** Since when it is quiet: it claims nothing until it is resumed. Null: it is not. */
  readonly quietAt: Date | null;
  /** Ids of the jobs that it holds. */
  readonly jobs: readonly string[];
}

/** Workers, and holders of leases. */
export interface WorkerStore {
  list(): Promise<WorkerState[]>;
  /**
   * Workers whose lease passed in the last hour without their saying so, and that have not come back: the latest 20, latest first,
   * each with the jobs that it still holds.
   */
  lost(): Promise<WorkerState[]>;
  /** Running jobs whose session ended longer ago than this; counted so far and no further. */
  overdueJobs(graceMs: number, most: number): Promise<number>;
  stop(sessions: readonly number[] | "all"): Promise<number>;
  /** Keeps living workers from claiming until they are resumed. Answers with how many they are, quiet before or not. */
  quiet(sessions: readonly number[]): Promise<number>;
  resume(sessions: readonly number[]): Promise<number>;
}
