/** The contract of jobs as an operator reads and changes them. job-rows.ts keeps it for both databases. */
import type { EditOutcome, JobChange } from "../jobs/editable.ts";
import type { Job, JobState, LaneLimits } from "../jobs/job.ts";
import type { Note } from "../jobs/outcome.ts";
import type { InputPatch } from "../values/json-patch.ts";

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

/** Reading jobs, and acting on them. Every action takes a batch and says for each id what became of it. */
export interface JobStore {
  get(id: string): Promise<Job | null>;
  list(filter: JobFilter, page: { limit: number; cursor: string | null }): Promise<JobPage>;
  count(filter: JobFilter): Promise<number>;
  /** Ids that match, oldest first, after `cursor`: what bulk actions walk over in batches. */
  ids(
    filter: JobFilter,
    page: { limit: number; cursor: string | null },
  ): Promise<{ ids: string[]; cursor: string | null }>;
  /** `undo: false`: jobs that nobody runs end without compensation, and the holders of the others are not asked. */
  cancel(
    ids: readonly string[],
    reason: string,
    options?: { readonly undo: boolean },
  ): Promise<Map<string, CancelOutcome>>;
  /** Jobs that nobody runs wait until they are resumed; the holders of the others are asked. */
  pause(ids: readonly string[], reason: string): Promise<Map<string, PauseOutcome>>;
  resume(ids: readonly string[]): Promise<Map<string, ResumeOutcome>>;
  delete(ids: readonly string[], running?: "stop" | "leave"): Promise<Map<string, DeleteOutcome>>;
  /**
   * Ended jobs become ready with their attempts at 0; of several with one key only the newest, and none beside an active
   * sibling. With a patch their inputs are changed in the same transaction; a job that it does not fit stays as it is.
   */
  retry(ids: readonly string[], patch?: InputPatch | null): Promise<Map<string, RetryOutcome>>;
  /** Makes scheduled jobs due now. Answers with the ids that were scheduled. */
  runNow(ids: readonly string[]): Promise<Set<string>>;
  /** Another time, queue or priority for jobs that have not started; says of the others why they were passed over. */
  edit(ids: readonly string[], change: JobChange): Promise<Map<string, EditOutcome>>;
  /** The outcomes that `edit` would have now. Nothing is changed. */
  judgeEdits(ids: readonly string[], change: JobChange): Promise<Map<string, EditOutcome>>;
  /** Where a job that has not ended stands; null for others. */
  place(id: string): Promise<JobPlace | null>;
}
