/**
 * Where jobs stand: the numbers of their lines and lanes, which the hot tables have in place of names.
 *
 * Invariant: a line and a lane are each made in a transaction of their own and remembered once they are committed. A lock
 * on a line's row is never held while a batch is written.
 * Not here: lines and lanes that a user's own transaction makes (transactional-insert.ts).
 */
import type { Clock } from "../clock.ts";
import type { NewJob } from "../jobs/job.ts";
import { type LineName, lineRows, Lines } from "../jobs/job-types.ts";
import { LaneNumbers, type LaneOf, resolveLanes } from "../limits/lane-rows.ts";
import type { Gates } from "../limits/gates.ts";
import type { RowList } from "../storage/catalogue.ts";
import type { Driver } from "../storage/driver.ts";
import type { KindStore } from "./store.ts";

/** A job to insert or to rewrite, with its line. */
export interface PlacedJob {
  readonly job: NewJob;
  readonly line: number;
  /** The number of its lane. */
  readonly laneId?: number;
}

/** Which line and lane a job belongs to. */
export type PlaceOf = Pick<NewJob, "queue" | "name" | "lane">;

/** What this process knows of lines and lanes. */
export class JobPlaces {
  readonly lines = new Lines();
  readonly lanes = new LaneNumbers();
  readonly #driver: Driver;
  readonly #clock: Clock;
  readonly #kinds: KindStore;
  readonly #gates: Gates;

  constructor(driver: Driver, kinds: KindStore, gates: Gates) {
    this.#driver = driver;
    this.#clock = driver.clock;
    this.#kinds = kinds;
    this.#gates = gates;
    // After a failover to a replica that lagged, the database lacks some: a statement that names one writes nothing.
    driver.onStaleType = () => {
      this.lines.forget();
      this.lanes.forget();
    };
  }

  knows(of: PlaceOf): boolean {
    return (
      this.lines.id(of) !== undefined && (of.lane === null || this.lanes.id(of.queue, of.lane) !== undefined)
    );
  }

  /** For a job that no definition comes with: its lane begins with the limits that a worker has registered for its name. */
  async learn({ queue, name, lane }: PlaceOf): Promise<void> {
    if (this.lines.id({ queue, name, lane }) === undefined) await this.learnLines([{ queue, name, lane }]);
    if (this.lanes.unknown([{ queue, lane }], this.#clock.monotonic()).length === 0) return;
    const laneLimits = (await this.#kinds.list()).get(name)?.lanes ?? null;
    await this.learnLanes([{ queue, lane, laneLimits }]);
  }

  async learnLines(unknown: readonly LineName[]): Promise<void> {
    const rows = lineRows(unknown);
    await this.#driver.write({ name: "addLines", params: { rows } });
    this.lines.learn(await this.#driver.read({ name: "findLines", params: { rows } }));
  }

  async learnLanes(jobs: readonly LaneOf[]): Promise<void> {
    const rows = this.lanes.unknown(jobs, this.#clock.monotonic());
    if (rows.length === 0) return;
    const now = this.#driver.now();
    this.lanes.learn(await this.#driver.transaction("addLanes", () => resolveLanes(rows, now)));
  }

  /** The job with its numbers. `lines` and `lanes`: those that the transaction under way has made. */
  place(job: NewJob, lines: Lines = this.lines, lanes: LaneNumbers = this.lanes): PlacedJob {
    const line = (this.lines.id(job) ?? lines.id(job)) as number;
    if (job.lane === null) return { job, line };
    this.#gates.add(job.queue);
    const laneId = this.lanes.id(job.queue, job.lane) ?? lanes.id(job.queue, job.lane);
    return { job, line, laneId: laneId as number };
  }

  async learnAndPlace(job: NewJob): Promise<PlacedJob> {
    if (this.lines.id(job) === undefined) await this.learnLines([job]);
    await this.learnLanes([job]);
    return this.place(job);
  }
}

/** The job as \`insertNew\` and \`insertJobs\` take it. */
export function jobRow({ job, line, laneId }: PlacedJob): RowList[number] {
  return {
    id: job.id,
    line,
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
