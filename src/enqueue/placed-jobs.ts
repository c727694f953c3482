/**
 * Where jobs stand: the numbers of their job types and lanes, which the hot tables have in place of names.
 *
 * Invariant: a job type and a lane are each made in a transaction of their own and remembered once they are committed. A lock
 * on a job type's row is never held while a batch is written.
 * Not here: job types and lanes that a user's own transaction makes (transactional-insert.ts).
 */
import type { Clock } from "../clock.ts";
import type { NewJob } from "../jobs/job.ts";
import { type JobTypeName, jobTypeRows, JobTypes } from "../jobs/job-types.ts";
import { LaneNumbers, type LaneOf, resolveLanes } from "../limits/lane-rows.ts";
import type { LimitedQueues } from "../limits/limited-queues.ts";
import type { RowList } from "../storage/catalogue.ts";
import type { Driver } from "../storage/driver.ts";
import type { DefinitionStore } from "./store.ts";

/** A job to insert or to rewrite, with its job type. */
export interface PlacedJob {
  readonly job: NewJob;
  readonly jobType: number;
  /** The number of its lane. */
  readonly laneId?: number;
}

/** Which job type and lane a job belongs to. */
export type PlaceOf = Pick<NewJob, "queue" | "name" | "lane">;

/** What this process knows of job types and lanes. */
export class JobPlaces {
  readonly jobTypes = new JobTypes();
  readonly lanes = new LaneNumbers();
  readonly #driver: Driver;
  readonly #clock: Clock;
  readonly #definitions: DefinitionStore;
  readonly #limitedQueues: LimitedQueues;

  constructor(driver: Driver, definitions: DefinitionStore, limitedQueues: LimitedQueues) {
    this.#driver = driver;
    this.#clock = driver.clock;
    this.#definitions = definitions;
    this.#limitedQueues = limitedQueues;
    // After a failover to a replica that lagged, the database lacks some: a statement that names one writes nothing.
    driver.onStaleType = () => {
      this.jobTypes.forget();
      this.lanes.forget();
    };
  }

  knows(of: PlaceOf): boolean {
    return (
      this.jobTypes.id(of) !== undefined &&
      (of.lane === null || this.lanes.id(of.queue, of.lane) !== undefined)
    );
  }

  /** For a job that no definition comes with: its lane begins with the limits that a worker has registered for its name. */
  async learn({ queue, name, lane }: PlaceOf): Promise<void> {
    if (this.jobTypes.id({ queue, name, lane }) === undefined)
      await this.learnJobTypes([{ queue, name, lane }]);
    if (this.lanes.unknown([{ queue, lane }], this.#clock.monotonic()).length === 0) return;
    const laneLimits = (await this.#definitions.list()).get(name)?.lanes ?? null;
    await this.learnLanes([{ queue, lane, laneLimits }]);
  }

  async learnJobTypes(unknown: readonly JobTypeName[]): Promise<void> {
    const rows = jobTypeRows(unknown);
    await this.#driver.write({ name: "addJobTypes", params: { rows } });
    this.jobTypes.learn(await this.#driver.read({ name: "findJobTypes", params: { rows } }));
  }

  async learnLanes(jobs: readonly LaneOf[]): Promise<void> {
    const rows = this.lanes.unknown(jobs, this.#clock.monotonic());
    if (rows.length === 0) return;
    const now = this.#driver.now();
    this.lanes.learn(await this.#driver.transaction("addLanes", () => resolveLanes(rows, now)));
  }

  /** The job with its numbers. `job types` and `lanes`: those that the transaction under way has made. */
  place(job: NewJob, jobTypes: JobTypes = this.jobTypes, lanes: LaneNumbers = this.lanes): PlacedJob {
    const jobType = (this.jobTypes.id(job) ?? jobTypes.id(job)) as number;
    if (job.lane === null) return { job, jobType };
    this.#limitedQueues.add(job.queue);
    const laneId = this.lanes.id(job.queue, job.lane) ?? lanes.id(job.queue, job.lane);
    return { job, jobType, laneId: laneId as number };
  }

  async learnAndPlace(job: NewJob): Promise<PlacedJob> {
    if (this.jobTypes.id(job) === undefined) await this.learnJobTypes([job]);
    await this.learnLanes([job]);
    return this.place(job);
  }
}

/** The job as \`insertNew\` and \`insertJobs\` take it. */
export function jobRow({ job, jobType, laneId }: PlacedJob): RowList[number] {
  return {
    id: job.id,
    jobType,
    rank: -job.priority || 0,
    delay: job.delayMs,
    runAt: job.runAt,
    // An instant in the past is now; a schedule's job is due at its slot, however late that is made up for.
    slotted: job.extras?.schedule !== undefined,
    input: job.input,
    maxAttempts: job.maxAttempts,
    timeout: job.timeoutMs,
    deadline: job.deadlineAt,
    parent: job.parentId,
    key: job.unique?.key ?? null,
    lane: job.lane,
    laneId: laneId ?? null,
    context: job.context === null ? null : JSON.stringify(job.context),
    extras: extrasText(job),
  };
}

/** The unique rule travels with the job, because a retry from the dead must take the key again. */
function extrasText(job: NewJob): string | null {
  const extras =
    job.unique === null
      ? job.extras
      : { ...job.extras, unique: { scope: job.unique.scope, forMs: job.unique.forMs } };
  return extras === null ? null : JSON.stringify(extras);
}
