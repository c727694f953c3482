/**
 * Writing new jobs: a batch of plain ones is one statement and one commit.
 *
 *   enqueue ─┬─ plain, new ids ────────────▶ one statement; a wake-up travels along (Postgres)
 *            ├─ plain, sent before ────────▶ a script that passes over the ids that are or were there
 *            ├─ keys, lanes, `after`, batch ─▶ a script in one transaction (batch-rows.ts, unique-keys.ts)
 *            └─ in a user's transaction ───▶ transactional-insert.ts
 *
 * Invariant: ids are made by the client, so a batch whose answer was lost is sent again.
 */
import type { Clock } from "../clock.ts";
import type { Enqueued, NewJob } from "../jobs/job.ts";
import type { Call } from "../storage/catalogue.ts";
import type { Driver, AttachedStatement } from "../storage/driver.ts";
import type { UserTx } from "../storage/user-tx.ts";
import { enqueueGroup } from "./batch-rows.ts";
import { type JobPlaces, jobRow, type PlacedJob } from "./placed-jobs.ts";
import type { NewJobStore } from "./store.ts";
import { enqueueInTransaction, type TransactionalDeps } from "./transactional-insert.ts";
import { eachIdOnce, enqueueScript } from "./unique-keys.ts";

/** Writes new jobs, the same way for both databases. */
export class NewJobs implements NewJobStore {
  readonly #driver: Driver;
  readonly #clock: Clock;
  readonly #places: JobPlaces;
  readonly #deps: TransactionalDeps;

  constructor(deps: TransactionalDeps) {
    this.#deps = deps;
    this.#driver = deps.driver;
    this.#clock = deps.driver.clock;
    this.#places = deps.places;
  }

  enqueue(
    jobs: readonly NewJob[],
    tx?: UserTx,
    onTold?: () => void,
    resent: boolean = false,
  ): Promise<Enqueued[]> {
    if (tx !== undefined) return enqueueInTransaction(this.#deps, jobs, tx);
    const { jobTypes } = this.#places;
    const unknown = jobTypes.unknown(jobs);
    if (unknown.length > 0)
      return this.#places.learnJobTypes(unknown).then(() => this.enqueue(jobs, undefined, onTold, resent));
    const now = this.#driver.now();
    if (!jobs.every(isPlain)) return this.#enqueueRest(jobs, now);
    const placed = jobs.map((job) => ({ job, jobType: jobTypes.id(job) as number }));
    return resent ? this.#enqueueAgain(placed, now) : this.#enqueueNew(placed, now, onTold);
  }

  /** Where the database says that an id is there, an earlier sending of the batch was committed. */
  async #enqueueNew(
    placed: readonly PlacedJob[],
    now: number | null,
    onTold?: () => void,
  ): Promise<Enqueued[]> {
    const attached = onTold === undefined ? null : this.#attachedFor(placed);
    try {
      await this.#driver.write(insertNew(placed, now, attached));
    } catch (error) {
      if (!this.#driver.isDuplicate(error)) throw error;
      return this.#enqueueAgain(placed, now);
    }
    if (attached !== null) onTold?.();
    return placed.map(({ job }) => ({ status: "enqueued", id: job.id }));
  }

  /** The wake-up of a job that comes alone and is due. */
  #attachedFor(placed: readonly PlacedJob[]): AttachedStatement | null {
    const [first] = placed;
    if (placed.length !== 1 || first === undefined) return null;
    const { delayMs, runAt, queue, priority } = first.job;
    return delayMs === null && runAt === null
      ? this.#driver.attached({ kind: "work", queue, priority })
      : null;
  }

  #enqueueAgain(placed: readonly PlacedJob[], now: number | null): Promise<Enqueued[]> {
    return this.#driver.transaction("enqueue", () => eachIdOnce(placed, (once) => enqueueScript(once, now)));
  }

  async #enqueueRest(jobs: readonly NewJob[], now: number | null): Promise<Enqueued[]> {
    await this.#places.learnLanes(jobs);
    const placed = jobs.map((job) => this.#places.place(job));
    const at = this.#clock.now();
    return this.#driver.transaction("enqueue", () => enqueueGroup(placed, now, at, true));
  }
}

/** Whether `insertNew` can write it: nothing but what a plain job has, and an id that no job had before. */
function isPlain(job: NewJob): boolean {
  return (
    job.givenId === undefined &&
    job.unique === null &&
    job.lane === null &&
    job.context === null &&
    job.parentId === null &&
    job.deadlineAt === null &&
    job.after === undefined &&
    job.batch === undefined
  );
}

/** The one statement that plain jobs with new ids need. */
function insertNew(
  placed: readonly PlacedJob[],
  now: number | null,
  attached: AttachedStatement | null,
): Call<"insertNew" | "insertAlike"> {
  const [first] = placed;
  const { channel, message } = attached ?? { channel: null, message: null };
  if (first === undefined || !placed.every((item) => isLike(item, first)))
    return { name: "insertNew", params: { now, channel, message, rows: placed.map(jobRow) } };
  const { maxAttempts, timeoutMs: timeout, priority } = first.job;
  const rows = placed.map(({ job: { id, input } }) => ({ id, input }));
  return {
    name: "insertAlike",
    params: {
      now,
      channel,
      message,
      jobType: first.jobType,
      rank: -priority || 0,
      maxAttempts,
      timeout,
      rows,
      count: rows.length,
    },
  };
}

/** Whether two plain jobs, due at once, differ in nothing but id and input. */
function isLike({ job, jobType }: PlacedJob, first: PlacedJob): boolean {
  return (
    jobType === first.jobType &&
    job.priority === first.job.priority &&
    job.maxAttempts === first.job.maxAttempts &&
    job.timeoutMs === first.job.timeoutMs &&
    job.delayMs === null &&
    job.runAt === null &&
    job.extras === null
  );
}
