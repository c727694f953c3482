/** The contract of upkeep: periodic tasks that one process does for all. upkeep-rows.ts keeps it for both databases. */

/** Something that one process does for all from time to time. */
export interface UpkeepTaskState {
  readonly name: string;
  /** The id of the worker that did it last. */
  readonly by: string | null;
  readonly doneAt: Date;
  /** Whoever asks first from then on does it next. */
  readonly nextAt: Date;
}

/** What an idle worker asks in one read. */
export interface Over {
  readonly sessions: boolean;
  readonly workflows: boolean;
  readonly temporaryLimits: boolean;
  readonly limits: boolean;
  readonly drains: boolean;
}

/** How many ended jobs were forgotten, by state, and how many days were dropped whole. */
export interface PruneReport {
  readonly done: number;
  readonly dead: number;
  readonly cancelled: number;
  readonly partitions: number;
}

/** Upkeep. */
export interface UpkeepStore {
  /** True for one caller in each period, over all processes: who wins does the upkeep task. `by`: the worker's id. */
  takeTask(name: string, everyMs: number, by?: string | null): Promise<boolean>;
  /** Who did each upkeep task last. */
  tasks(): Promise<UpkeepTaskState[]>;
  /** Whether there is something for `takeOver` or `deleteEndedSessions`, `sweepWorkflows` or the end of a temporary limit, and whether there are limits to follow. */
  over(): Promise<Over>;
  /** Deletes what its retention has outlived, in batches, and drops what can be dropped whole. */
  prune(defaults: { doneMs: number; deadMs: number }, batch: number): Promise<PruneReport>;
  /** Whether there are partitions (Postgres) and this client's role may make and drop them. */
  readonly ownsPartitions: boolean;
  /** Keeps the database in shape: partitions ahead of time (Postgres), the WAL's size (SQLite), no held job without a claim. */
  tidy(retention?: { doneMs: number; deadMs: number }): Promise<void>;
}
