/**
 * The seam between the lifecycle (client, worker, maintenance) and a database.
 *
 * Every verb's contract is written here once; `sql-store.ts` keeps it for both databases, over two catalogues
 * of statements. The rules of a job's life are not here: `jobs/transition.ts` decides, the store applies.
 *
 * Three rules hold for every verb:
 *  - It takes a batch where a batch can occur, and writes it in one transaction.
 *  - A write to a running job names the fence (id and token) and answers with the ids that it really changed.
 *  - Instants are epoch milliseconds; "now" is the database's clock, or the client's clock when that one is a fake.
 */
import type { WorkflowStore } from "../workflows/store.ts";
import type { Wake } from "./wake.ts";
import type { UserTx } from "./user-tx.ts";
import type { Clock } from "../clock.ts";
import type { KindStore } from "../enqueue/store.ts";
import type { WorkerStore } from "../lease/store.ts";
import type {
  BreakerStore,
  BudgetStore,
  HoldStore,
  LaneStore,
  QueueStore,
  TemporaryLimitStore,
} from "../limits/store.ts";
import type { FailureStore, SeriesStore } from "../observe/store.ts";
import type { UpkeepStore } from "../upkeep/store.ts";
import type { PassStore, StateStore } from "../state/store.ts";
import type { ScheduleStore } from "../schedules/store.ts";
import type { Insight } from "../operate/browse.ts";
import type { EditOutcome, JobChange } from "../jobs/editable.ts";
import type {
  ClaimedJob,
  EndState,
  Enqueued,
  Job,
  JobState,
  LaneLimits,
  NewJob,
  Place,
} from "../jobs/job.ts";
import type { InputPatch } from "../values/json-patch.ts";
import type { Note, Transition } from "../jobs/outcome.ts";

/** What a worker serves. */
export interface ClaimScope {
  /** How many jobs this claim may take from each queue; or the queues that share `limit`. */
  readonly queues: ReadonlyMap<string, number> | readonly string[] | "all";
  /** Job names; "all", for the low-level lease: every plain job, without machines and runs with recorded steps. */
  readonly names: readonly string[] | "all";
  /** How many in all; with a limit for each queue, their sum. */
  readonly limit: number;
  readonly order: "highest-first" | "lowest-first";
  /** How many each queue could start at once: no more is taken of what has a rate. Left out: all. */
  readonly free?: ReadonlyMap<string, number>;
}

/** How far the jobs of one kind and priority have been claimed. */
export interface ClaimLevel {
  readonly line: number;
  readonly rank: number;
  readonly queue: string;
  readonly name: string;
  runAt: number;
  place: Place;
}

/** Kinds that share a budget and take as much of it at each start. */
export interface BudgetScope {
  readonly name: string;
  readonly tokens: number;
  readonly names: readonly string[];
}

/** What a claim under a budget brought. */
export interface BudgetedJobs {
  readonly jobs: ClaimedJob[];
  /** False: nobody has set this budget, and nothing is claimed. */
  readonly known: boolean;
  /** When it will have room for one more; null: it may have room now. Infinity: it is too small for one job. */
  readonly retryInMs: number | null;
}

/**
 * Where one level's claims have got to. A level is a (queue, name, rank) line-up ordered by (runAt, id); a claim
 * that starts at the cursor does not walk over the dead index entries of the jobs before it, which an old
 * snapshot would otherwise make ever more of.
 */
export interface ClaimCursor {
  /** Opaque: kept by the caller between claims, filled by the store. */
  readonly levels: Map<string, ClaimLevel>;
  /** Filled by the store: for each group of the scope, the last rank that a claim took from, in claim order. */
  edges?: Map<string, number>;
  /** When a claim last looked at everything, by the monotonic clock. -Infinity asks the next one to. */
  lookedBackAt: number;
  /** Filled by the store: how long that took. One that takes long is made less often. */
  lookBackMs?: number;
  /** Filled by the store: the same of `peek`. */
  peekedAt?: number;
  peekMs?: number;
  /** A level that no claim has met may have jobs: the next claim looks for it. */
  unseen?: boolean;
  /** Filled by the store: the last look at everything found nothing. False again as soon as somebody tells of due jobs. */
  barren?: boolean;
  /** Filled by the store: where the turns of lanes begin, by line. */
  turns?: Map<number, TurnFloor>;
  /** Filled by the store: the places of what is claimed by other statements, under limits or of one budget. */
  parts?: Map<string, ClaimCursor>;
  /** Filled by the store: whose turn it is to have the first choice, lanes or jobs without one. */
  lanesFirst?: boolean;
  /** Filled by the store: why a part of the last claim failed whose other part brought jobs. It may have taken some too. */
  failed?: unknown;
}

/** How far the turns of a line have come, in virtual time. */
export interface TurnFloor {
  /** All that are active are behind it. */
  readonly from: number;
  /** Where the furthest behind of them was at a later look, by the monotonic clock: what commits late may still be before that. */
  readonly next: number;
  readonly nextAt: number;
}

/** Who holds leases: a worker's process, or one `hf.lease` call. */
export interface SessionInfo {
  readonly kind: "worker" | "lease";
  /** Unique for each start of a worker. */
  readonly workerId: string;
  readonly name: string;
  readonly host: string;
  readonly pid: number;
  /** Queue name → slots of this process. */
  readonly queues: Readonly<Record<string, number>>;
  readonly names: readonly string[];
  readonly leaseMs: number;
  /** Holdfast's version. */
  readonly version: string;
  /** What runs the program: "node 24.21.0". */
  readonly runtime?: string | null;
  /** The build of the program. */
  readonly release?: string | null;
  /** Of the definitions that have one other than 1. */
  readonly versions?: Readonly<Record<string, number>>;
  /** Since when the worker is quiet, where it was so under the session before. */
  readonly quietAt?: number | null;
}

/** What renewing a session says. `alive: false` means that everything claimed under it is lost. */
export interface Renewal {
  readonly alive: boolean;
  /** What is wished of running jobs of this session: that they end, or (`pause`) that they stop where they can go on later. */
  readonly wishes: readonly { id: string; token: number; pause: boolean; reason: string }[];
  /** Its claims, each with the jobs that it still holds and those that it does not: settled by itself, or taken from it. */
  readonly claims: readonly {
    readonly token: number;
    readonly held: readonly Place[];
    readonly gone: readonly Place[];
  }[];
  /** Somebody asked this worker to stop. */
  readonly stop: boolean;
  /** Since when this worker is quiet; null: it is not. */
  readonly quietAt: number | null;
}

/** What the worker may wait for when nothing can be claimed. Both epoch milliseconds of the database's clock. */
export interface Peek {
  readonly now: number;
  /** The earliest due instant in scope (may be past: then there is work); null: nothing. */
  readonly dueAt: number | null;
  /** The earliest end of a session that may hold claims (may be past: then there may be orphans). */
  readonly expiresAt: number | null;
  /** When a look at everything makes sense again; null: this was one. */
  readonly completeInMs: number | null;
  /** Queues that are draining, in scope or not: they are few. */
  readonly draining: readonly string[];
}

/** Which jobs. Without `state`: all states. */
export interface JobFilter {
  readonly ids?: readonly string[];
  readonly state?: JobState | readonly JobState[];
  readonly queue?: string | readonly string[];
  readonly name?: string | readonly string[];
  readonly lane?: string;
  readonly key?: string;
  /** The id of a run: what it called or enqueued. */
  readonly workflow?: string;
  /** The id of a batch: its jobs. */
  readonly batch?: string;
  /** The id of a trace: 32 lower-case hexadecimal digits. */
  readonly trace?: string;
  /** Created at or after. */
  readonly since?: number;
  /** Created before. */
  readonly until?: number;
  /** Text that the input, the context or the latest error contains. */
  readonly search?: string;
}

/** One page of `hf.jobs.list`. */
export interface JobPage {
  readonly jobs: readonly Job[];
  /** Hand it back for the next page; null at the end. */
  readonly cursor: string | null;
}

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

/** What `why` needs to know of a job that has not ended. */
export interface JobPlace {
  readonly now: number;
  readonly note: Note | null;
  /** Of its lane; null: it has none. */
  readonly lane: {
    readonly running: number;
    readonly limits: LaneLimits;
    readonly paused: boolean;
    readonly opensAt: number | null;
  } | null;
  /** Of its queue, if that has limits; `readable` is false when its settings are spoilt. */
  readonly queue: {
    readonly running: number;
    readonly concurrency: number | null;
    readonly rate: { readonly limit: number; readonly perMs: number } | null;
    readonly opensAt: number | null;
    readonly readable: boolean;
  } | null;
}

/** What became of a cancel: a running job's holder is asked, and the job ends when it has heard. */
export type CancelOutcome = "cancelled" | "cancel_requested" | "ended" | "not_found";
/** What became of a pause: a running job's holder is asked, and the job is paused when it is given back. */
export type PauseOutcome = "paused" | "pause_requested" | "ended" | "not_found";
/** What became of a resume. */
export type ResumeOutcome = "resumed" | "not_paused" | "ended" | "not_found";
/** What became of a delete: a running job is only asked to stop, or left alone. */
export type DeleteOutcome = "deleted" | "cancel_requested" | "running" | "not_found";

/** What became of a retry; `superseded`: another job has its unique key. */
export type RetryOutcome = "retried" | "superseded" | "not_ended" | "not_found" | "patch_failed";

export interface Store {
  readonly kinds: KindStore;
  readonly workers: WorkerStore;

  readonly queues: QueueStore;
  readonly lanes: LaneStore;
  readonly holds: HoldStore;
  readonly budgets: BudgetStore;
  readonly breakers: BreakerStore;
  readonly temporaryLimits: TemporaryLimitStore;
  readonly workflows: WorkflowStore;
  readonly schedules: ScheduleStore;
  readonly state: StateStore;
  readonly series: SeriesStore;
  readonly failures: FailureStore;
  readonly upkeep: UpkeepStore;
  readonly passes: PassStore;

  readonly dialect: "sqlite" | "postgres";
  /** How a thread can open the same database to renew a session; null: renew on the main thread. */
  readonly renewalTarget: RenewalTarget | null;

  /**
   * Writes the batch in one transaction, in order; `tx` makes it part of the user's. Retrying the same ids is harmless.
   * `onTold` is called when the commit has told other processes of it too: then only this one is left to be told. `resent`: the
   * same batch was sent before, and nobody knows what came of that; a job that has ended since, and is deleted, does not come back.
   */
  enqueue(jobs: readonly NewJob[], tx?: UserTx, onTold?: () => void, resent?: boolean): Promise<Enqueued[]>;
  /** Recognises a user's handle (throws TX_UNSUPPORTED), and that it is on this very database (TX_WRONG_DATABASE). */
  userTx(handle: unknown): Promise<UserTx> | UserTx;

  /**
   * Takes up to the scope's limits under the session's lease, in claim order. Comes back empty only after a look
   * at everything, so that a cursor never hides a job from an idle worker; one that is merely short may have more behind
   * it, so whoever still has room asks again. Takes nothing for a dead session, from a
   * paused, held or cooled-down queue, or of a name that is not in scope.
   */
  claim(session: number, scope: ClaimScope, cursor: ClaimCursor): Promise<ClaimedJob[]>;
  /**
   * The same for kinds that have a budget: no more than it has tokens for, which are taken in the same transaction. A budget
   * that is empty or unknown claims nothing and writes nothing.
   */
  claimBudgeted(
    session: number,
    scope: Pick<ClaimScope, "limit" | "order"> & { readonly queues: ReadonlyMap<string, number> },
    budget: BudgetScope,
    cursor: ClaimCursor,
  ): Promise<BudgetedJobs>;
  /** What there is to wait for; one cheap read, which begins at the cursor where a look at everything has lately been costly. Empty, paused and held queues count as nothing. */
  peek(scope: ClaimScope, cursor?: ClaimCursor): Promise<Peek>;

  openSession(info: SessionInfo): Promise<number>;
  /** Whether there is or was such a session. One that was opened and is not there was lost with a primary that failed. */
  hasSession(session: number): Promise<boolean>;
  /**
   * Extends a living session by its lease, counted from `aheadMs` from now, and says what its holder must know. Never revives an
   * expired one.
   */
  renew(session: number, aheadMs?: number): Promise<Renewal>;
  /** Ends a session that holds nothing any more. What it still holds is orphaned at once. */
  closeSession(session: number): Promise<void>;
  /**
   * Applies transitions under the fence: (id, token) pairwise, and the session alive. Answers with the ids that
   * really moved; the others' leases are lost. `spent` are tokens of which nothing is held any more.
   */
  settle(session: number, transitions: readonly Transition[], spent: readonly number[]): Promise<Set<string>>;
  /** Jobs held under sessions that have ended (or were closed before the claim committed), with the dead session's number. A keyset-safe page of at most `limit`. */
  orphans(limit: number): Promise<ClaimedJob[]>;
  /** Applies transitions to orphans: fenced by token, and only while the session that held them is still dead. */
  takeOver(transitions: readonly Transition[]): Promise<Set<string>>;
  /** Of these jobs, those that somebody holds, with the session that does. */
  held(ids: readonly string[]): Promise<ClaimedJob[]>;
  /** Ends held jobs over the head of who holds them; they find out. Fenced by token: what was given back meanwhile stays. */
  wrest(transitions: readonly { readonly session: number; readonly end: Transition }[]): Promise<Set<string>>;
  /** The jobs that a session holds under these tokens. */
  heldUnder(session: number, tokens: readonly number[]): Promise<ClaimedJob[]>;
  /** Forgets dead sessions that hold nothing any more, and grants wishes whose hearers have died. */
  burySessions(): Promise<number>;
  progress(session: number, id: string, token: number, value: string): Promise<boolean>;

  /** Ends the job inside the user's transaction, fenced. False: the lease is lost. */
  commit(tx: UserTx, session: number, transition: Transition & { move: "end" }): Promise<boolean>;
  /** Lets go what waits for these jobs. Settling does it by itself; this is for ends that it did not see. */
  resolve(ended: readonly { readonly id: string; readonly state: EndState }[]): Promise<void>;

  get(id: string): Promise<Job | null>;
  list(filter: JobFilter, page: { limit: number; cursor: string | null }): Promise<JobPage>;
  count(filter: JobFilter): Promise<number>;
  /** Ids that match, oldest first, after `cursor`: what bulk actions walk over in batches. */
  ids(
    filter: JobFilter,
    page: { limit: number; cursor: string | null },
  ): Promise<{ ids: string[]; cursor: string | null }>;
  /** `undo: false`: what nobody runs ends without its steps being undone, and who runs the others is not asked. */
  cancel(
    ids: readonly string[],
    reason: string,
    options?: { readonly undo: boolean },
  ): Promise<Map<string, CancelOutcome>>;
  /** What nobody runs waits until it is resumed; the holders of the others are asked. */
  pause(ids: readonly string[], reason: string): Promise<Map<string, PauseOutcome>>;
  resume(ids: readonly string[]): Promise<Map<string, ResumeOutcome>>;
  delete(ids: readonly string[], running?: "stop" | "leave"): Promise<Map<string, DeleteOutcome>>;
  /**
   * Ended jobs become ready with their attempts at 0; of several with one key only the newest, and none beside an active
   * sibling. With a patch their inputs are changed in the same transaction, and those that it does not fit stay as they are.
   */
  retry(ids: readonly string[], patch?: InputPatch | null): Promise<Map<string, RetryOutcome>>;
  /** Makes scheduled jobs due now. Answers with the ids that were scheduled. */
  runNow(ids: readonly string[]): Promise<Set<string>>;
  /** Another time, queue or priority for jobs that have not started; says of the others why they were passed over. */
  edit(ids: readonly string[], change: JobChange): Promise<Map<string, EditOutcome>>;
  /** What `edit` would do now. Nothing is changed. */
  judgeEdits(ids: readonly string[], change: JobChange): Promise<Map<string, EditOutcome>>;

  /** Where a job that has not ended stands; null for others. */
  place(id: string): Promise<JobPlace | null>;

  /** A new job with what an ended one did before a step; null: no ended job has this id. */
  fork(id: string, from: string, newId: string): Promise<ForkOutcome | null>;

  /** How this process's connections are used; null: the database has no pool. */
  readonly poolUse: PoolUse | null;
  /** What an operator wants to know of the database itself: sizes, dead rows, settings. A handful of catalogue reads. */
  inspect(): Promise<Inspection>;

  /** The newest migration that was applied, and where the jobs were moved to. */
  schemaState(): Promise<SchemaState>;

  /** The dashboard's looks at the database: bounded, whatever there is in it. */
  readonly insight: Insight;

  /** Calls back on wake-ups from this or any other process until the returned function is called. */
  listen(onWake: (wake: Wake) => void): () => void;
  /** Whether wake-ups from other processes are proven to arrive now. */
  readonly listening: boolean;
  /** Tells this process's and other processes' listeners. Gathered; never fails the caller. */
  wake(wake: Wake): void;
  /** Tells this process's listeners alone. */
  wakeHere(wake: Wake): void;

  /** The database's now, in epoch milliseconds. */
  /** False: a standby, or a role that may only read. */
  writable(): Promise<boolean>;
  now(): Promise<number>;
  /** Counters of statements and commits, by name; for tests and benchmarks. */
  readonly counters: StoreCounters;
  /** The clock that all clients of this database share: on Postgres the server's, as far as a client can tell. */
  readonly clock: Clock;
  close(): Promise<void>;
}

/** What a fork came to. */
export type ForkOutcome =
  | { readonly refused: string; readonly job: null; readonly enqueued: null }
  | { readonly refused: null; readonly job: NewJob; readonly enqueued: Enqueued };

/** Connections of this process's pools. */
export interface PoolUse {
  readonly used: number;
  readonly idle: number;
  /** Callers who wait for one. */
  readonly waiting: number;
}

/** The database as its own catalogue describes it. Null: this database has no such thing, or the role may not see it. */
export interface Inspection {
  readonly dialect: "sqlite" | "postgres";
  /** Of SQLite's library or of the server. */
  readonly version: string;
  /** What is known to be wrong with this version, where it was opened all the same. */
  readonly versionFault: string | null;
  readonly sizeBytes: number;
  /** SQLite: pages of the file that hold nothing any more. */
  readonly freeBytes: number | null;
  /** SQLite: the WAL file. Postgres: the directory, where the role may see it. */
  readonly walBytes: number | null;
  /** Postgres: how large its settings let the WAL become. */
  readonly maxWalBytes: number | null;
  /** Postgres: the replication slot that keeps the most WAL, if any. */
  readonly slot: { readonly name: string; readonly active: boolean; readonly bytes: number } | null;
  /** Dead rows of the hot table, and live ones. */
  readonly deadRows: number | null;
  readonly liveRows: number | null;
  /** Postgres: the tables with the most dead rows, those of a day together. */
  readonly tables: readonly { readonly name: string; readonly dead: number; readonly live: number }[];
  readonly oldestTransactionMs: number | null;
  /** Postgres: whose that is, such as "psql, pid 4711, idle in transaction". */
  readonly oldestTransaction: { readonly pid: number; readonly text: string } | null;
  /** Postgres: how many transactions have begun since the oldest snapshot that somebody still reads; null: nobody does. */
  readonly xminAge: number | null;
  readonly connections: number | null;
  readonly maxConnections: number | null;
  /** False: a power cut may lose acknowledged commits. */
  readonly durable: boolean;
  /** Why `durable` is false, as the setting is written. */
  readonly durability: string;
  /** SQLite: a network file system's name, where it is on one. */
  readonly networkFileSystem: string | null;
  readonly diskFreeBytes: number | null;
  readonly invalidIndexes: readonly string[];
  /** Postgres: for how long from now there are partitions, how many, and jobs of today or later in the default one (10,001: more). */
  readonly partitions: { readonly aheadMs: number; readonly count: number; readonly rest: number } | null;
}

export interface StoreCounters {
  statements: number;
  commits: number;
  retries: number;
  readonly byName: Map<string, number>;
}

/** Enough for a thread to open the database by itself. */
export type RenewalTarget =
  | {
      readonly dialect: "sqlite";
      readonly path: string;
      readonly schema: string;
      /** Which files these are: no others are opened in their place. */
      readonly files: readonly { readonly path: string; readonly dev: number; readonly ino: number }[];
    }
  | { readonly dialect: "postgres"; readonly url: string; readonly schema: string };

/** Lets a program watch what the store goes through. */
export interface StoreEvents {
  readonly onConnectionLost: (error: unknown) => void;
  readonly onConnectionBack: (afterMs: number) => void;
  readonly onWarning: (message: string, details: Record<string, unknown>) => void;
}
