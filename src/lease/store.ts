/** The contracts of claims (kept by claim.ts), settles (settle.ts), sessions (session-rows.ts) and workers (worker-rows.ts). */
import type { ClaimCursor, ClaimScope } from "../jobs/claim-scope.ts";
import type { ClaimedJob, EndState, RowKey } from "../jobs/job.ts";
import type { Transition } from "../jobs/outcome.ts";
import type { BudgetedJobs, BudgetScope } from "../limits/store.ts";
import type { UserTx } from "../storage/user-tx.ts";

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
  /** What is requested of running jobs of this session: that they end, or (`pause`) that they stop where they can go on later. */
  readonly requests: readonly { id: string; token: number; pause: boolean; reason: string }[];
  /** Its claims, each with the jobs that it still holds and those that it does not: settled by itself, or taken from it. */
  readonly claims: readonly {
    readonly token: number;
    readonly held: readonly RowKey[];
    readonly gone: readonly RowKey[];
  }[];
  /** Somebody asked this worker to stop. */
  readonly stop: boolean;
  /** Since when this worker is quiet; null: it is not. */
  readonly quietAt: number | null;
}

/** What the worker may wait for when nothing can be claimed. Both epoch milliseconds of the database's clock. */
export interface DueCheck {
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

/** Taking jobs under a session's lease. */
export interface ClaimStore {
  /**
   * Takes up to the scope's limits under the session's lease, in claim order. Comes back empty only after a look
   * at everything, so that a cursor never hides a job from an idle worker. A claim that is merely short may have more behind
   * it, so a caller with room asks again. Takes nothing for a dead session, from a
   * paused, held or cooled-down queue, or of a name that is not in scope.
   */
  claim(session: number, scope: ClaimScope, cursor: ClaimCursor): Promise<ClaimedJob[]>;
  /**
   * The same for names that have a budget: no more than it has tokens for, which are taken in the same transaction. A budget
   * that is empty or unknown claims nothing and writes nothing.
   */
  claimBudgeted(
    session: number,
    scope: Pick<ClaimScope, "limit" | "order"> & { readonly queues: ReadonlyMap<string, number> },
    budget: BudgetScope,
    cursor: ClaimCursor,
  ): Promise<BudgetedJobs>;
  /**
   * When a claim would find something; one cheap read, which begins at the cursor where a look at everything has lately been costly.
   * Empty, paused and held queues count as nothing.
   */
  checkDue(scope: ClaimScope, cursor?: ClaimCursor): Promise<DueCheck>;
}

/** Writing what became of claimed jobs. */
export interface SettleStore {
  /**
   * Applies transitions under the fence: (id, token) pairwise, and the session alive. Answers with the ids that
   * really moved; the others' leases are lost. `spent` are tokens of which nothing is held any more.
   */
  settle(session: number, transitions: readonly Transition[], spent: readonly number[]): Promise<Set<string>>;
  /** Ends the job inside the user's transaction, fenced. False: the lease is lost. */
  commit(tx: UserTx, session: number, transition: Transition & { move: "end" }): Promise<boolean>;
  /** Applies transitions to orphans: fenced by token, and only while the session that held them is still dead. */
  takeOver(transitions: readonly Transition[]): Promise<Set<string>>;
  /** Ends held jobs without their holder, which finds out. Fenced by token: a job that was released meanwhile stays. */
  wrest(transitions: readonly { readonly session: number; readonly end: Transition }[]): Promise<Set<string>>;
  progress(session: number, id: string, token: number, value: string): Promise<boolean>;
  /** Releases the jobs that wait for these ends. Settling does it by itself; this is for ends that it did not see. */
  resolve(ended: readonly { readonly id: string; readonly state: EndState }[]): Promise<void>;
}

/** Sessions, under which leases are held, and the jobs that they hold. */
export interface SessionStore {
  open(info: SessionInfo): Promise<number>;
  /** Whether there is or was such a session. One that was opened and is unknown was lost with a primary that failed. */
  isKnown(session: number): Promise<boolean>;
  /**
   * Extends a living session by its lease, counted from `aheadMs` from now, and says what its holder must know. Never revives an
   * expired one.
   */
  renew(session: number, aheadMs?: number): Promise<Renewal>;
  /** Ends a session that holds nothing any more. A job that it still holds is orphaned at once. */
  close(session: number): Promise<void>;
  /** Forgets dead sessions that hold nothing any more, and grants requests whose holders have died. */
  forgetDead(): Promise<number>;
  /** Jobs held under sessions that have ended (or were closed before the claim committed), with the dead session's number. A keyset-safe page of at most `limit`. */
  orphans(limit: number): Promise<ClaimedJob[]>;
  /** Those of these jobs that a session holds, with that session. */
  held(ids: readonly string[]): Promise<ClaimedJob[]>;
  /** The jobs that a session holds under these tokens. */
  heldUnder(session: number, tokens: readonly number[]): Promise<ClaimedJob[]>;
}

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
