/**
 * The seam between the lifecycle (client, worker, maintenance) and a database: parts, each with its contract in the `store.ts`
 * of its room, and the database itself.
 *
 * A class of the same room keeps each part for both databases, over two catalogues of statements; `sql-store.ts` assembles them. The
 * rules of a job's life are not here: `jobs/transition.ts` decides, the store applies.
 *
 * Three rules hold for every verb:
 *  - It takes a batch where a batch can occur, and writes it in one transaction.
 *  - A write to a running job names the fence (id and token) and answers with the ids that it really changed.
 *  - Instants are epoch milliseconds; "now" is the database's clock, or the client's clock when that one is a fake.
 */
import type { Clock } from "../clock.ts";
import type { DefinitionStore, NewJobStore } from "../enqueue/store.ts";
import type { ClaimStore, SessionStore, SettleStore, WorkerStore } from "../lease/store.ts";
import type {
  BreakerStore,
  BudgetStore,
  HoldStore,
  LaneStore,
  QueueStore,
  TemporaryLimitStore,
} from "../limits/store.ts";
import type { FailureStore, SeriesStore } from "../observe/store.ts";
import type { Insight } from "../operate/browse.ts";
import type { JobStore } from "../operate/store.ts";
import type { ScheduleStore } from "../schedules/store.ts";
import type { PassStore, StateStore } from "../state/store.ts";
import type { UpkeepStore } from "../upkeep/store.ts";
import type { WorkflowStore } from "../workflows/store.ts";
import type { Inspection, PoolUse, RenewalTarget, StoreCounters } from "./driver.ts";
import type { UserTx } from "./user-tx.ts";
import type { Wake } from "./wake.ts";

/** How far the schema is. */
export interface SchemaState {
  readonly version: number;
  readonly name: string;
  /** Epoch milliseconds. */
  readonly appliedAt: number;
  /** Another database's address without secrets; null: the jobs are here. */
  readonly movedTo: string | null;
  /** Epoch milliseconds; null also where an older version moved them. */
  readonly movedAt: number | null;
}

export interface Store {
  // enqueue/
  readonly newJobs: NewJobStore;
  readonly definitions: DefinitionStore;
  // lease/
  readonly claims: ClaimStore;
  readonly settles: SettleStore;
  readonly sessions: SessionStore;
  readonly workers: WorkerStore;
  // limits/
  readonly queues: QueueStore;
  readonly lanes: LaneStore;
  readonly holds: HoldStore;
  readonly budgets: BudgetStore;
  readonly breakers: BreakerStore;
  readonly temporaryLimits: TemporaryLimitStore;
  // workflows/, schedules/, state/, observe/, upkeep/
  readonly workflows: WorkflowStore;
  readonly schedules: ScheduleStore;
  readonly state: StateStore;
  readonly passes: PassStore;
  readonly series: SeriesStore;
  readonly failures: FailureStore;
  readonly upkeep: UpkeepStore;
  // operate/
  readonly jobs: JobStore;
  /** The dashboard's looks at the database: bounded, whatever there is in it. */
  readonly insight: Insight;

  readonly dialect: "sqlite" | "postgres";
  /** The clock that all clients of this database share: on Postgres the server's, as far as a client can tell. */
  readonly clock: Clock;
  /** How a thread can open the same database to renew a session; null: renew on the main thread. */
  readonly renewalTarget: RenewalTarget | null;
  /** How this process's connections are used; null: the database has no pool. */
  readonly poolUse: PoolUse | null;
  /** Counters of statements and commits, by name; for tests and benchmarks. */
  readonly counters: StoreCounters;
  /** Recognises a user's handle (throws TX_UNSUPPORTED), and that it is on this very database (TX_WRONG_DATABASE). */
  userTx(handle: unknown): Promise<UserTx> | UserTx;
  /** The database itself: sizes, dead rows, settings. A handful of catalogue reads. */
  inspect(): Promise<Inspection>;
  /** The newest migration that was applied, and where the jobs were moved to. */
  schemaState(): Promise<SchemaState>;
  /** False: a standby, or a role that may only read. */
  writable(): Promise<boolean>;
  /** The database's now, in epoch milliseconds. */
  now(): Promise<number>;

  /** Calls back on wake-ups from this or any other process until the returned function is called. */
  listen(onWake: (wake: Wake) => void): () => void;
  /** Whether wake-ups from other processes are proven to arrive now. */
  readonly listening: boolean;
  /** Tells this process's and other processes' listeners. Batched; never fails the caller. */
  wake(wake: Wake): void;
  /** Tells this process's listeners alone. */
  wakeHere(wake: Wake): void;
  close(): Promise<void>;
}

/** Lets a program watch what the store goes through. */
export interface StoreEvents {
  readonly onConnectionLost: (error: unknown) => void;
  readonly onConnectionBack: (afterMs: number) => void;
  readonly onWarning: (message: string, details: Record<string, unknown>) => void;
}
