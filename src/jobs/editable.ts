/**
 * Which jobs an operator may put elsewhere: later or sooner, into another queue, to another priority.
 *
 *   runs ─▶ running          its holder has it, and nobody else may change it
 *   dead ─▶ edited           it is put into another queue and stays dead: where a retry will run it. It has no time to be changed
 *   ended otherwise ─▶ ended there is nothing left to place
 *   sleeps, waits for a signal or a call ─▶ waiting    when a run goes on is its own to say (only a new time is refused)
 *   must start by an earlier instant ─▶ past_deadline  it would be cancelled instead of run
 *   unique within its queue ─▶ keyed                   the key would be free here and might be taken there
 *   all else ─▶ edited
 *
 * Invariants: pure; a job that waits for others to end (`after`) may be given a time, which then holds once they have.
 * Not here: how it is written (operate/edit-rows.ts).
 */

/** What is to be changed; null stays as it is. */
export interface JobChange {
  /** From now, by the database's clock. */
  readonly delayMs: number | null;
  /** An instant in place of a delay. */
  readonly runAt: number | null;
  readonly queue: string | null;
  readonly priority: number | null;
}

/** What became of an edit: all but `edited` say why the job was passed over. */
export type EditOutcome =
  | "edited"
  | "running"
  | "ended"
  | "waiting"
  | "past_deadline"
  | "keyed"
  | "not_found";

export const EDIT_OUTCOMES: readonly EditOutcome[] = [
  "edited",
  "running",
  "ended",
  "waiting",
  "past_deadline",
  "keyed",
  "not_found",
];

/** A job that has not ended, as far as it matters here. */
export interface StandingJob {
  readonly running: boolean;
  readonly waits: string | null;
  readonly begun: boolean;
  readonly deadlineAt: number | null;
  readonly queue: string;
  /** What its unique key is unique within; null: it has none. */
  readonly keyScope: string | null;
}

/**
 * Whether the change may be made.
 *
 * @example
 * judgeEdit(job, { delayMs: 60_000, runAt: null, queue: null, priority: null }, now); // "edited"
 */
export function judgeEdit(
  job: StandingJob,
  change: JobChange,
  now: number,
): Exclude<EditOutcome, "ended" | "not_found"> {
  if (job.running) return "running";
  const at = dueAt(change, now);
  if (at !== null) {
    // `after` keeps a time of its own for when the others have ended; a run that has begun does not.
    if (job.waits !== null && job.begun) return "waiting";
    if (job.deadlineAt !== null && !job.begun && at > job.deadlineAt) return "past_deadline";
  }
  return leavesItsKey(job, change) ? "keyed" : "edited";
}

/** A job that has ended, as far as it matters here. */
export interface EndedJob extends Pick<StandingJob, "queue" | "keyScope"> {
  readonly dead: boolean;
}

/**
 * Whether the change may be made to a job that has ended. A dead one takes a queue and a priority, which hold when it is
 * retried: so dead jobs can be put aside, and come back in the queue where they are.
 *
 * @example
 * judgeEnded({ dead: true, queue: "mail", keyScope: null }, { ...change, queue: "mail-dead" }); // "edited"
 */
export function judgeEnded(job: EndedJob, change: JobChange): "edited" | "ended" | "keyed" {
  if (!job.dead || change.delayMs !== null || change.runAt !== null) return "ended";
  return leavesItsKey(job, change) ? "keyed" : "edited";
}

function leavesItsKey(
  { queue, keyScope }: Pick<StandingJob, "queue" | "keyScope">,
  change: JobChange,
): boolean {
  const moves = change.queue !== null && change.queue !== queue;
  return moves && keyScope?.startsWith("queue:") === true;
}

/** When it is to be due; null: as it was. */
function dueAt({ delayMs, runAt }: JobChange, now: number): number | null {
  return runAt ?? (delayMs === null ? null : now + delayMs);
}
