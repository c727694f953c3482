/**
 * New jobs in a user's own transaction: they are there when it commits, and never were when it rolls back.
 *
 * Invariant: on Postgres, job types and lanes are made on a connection of our own, because one that the user's transaction made would
 * keep all others from that job type until it ends. On SQLite they are made in it: no other connection can write while it is open.
 */
import type { Enqueued, NewJob } from "../jobs/job.ts";
import { jobTypeRows, JobTypes, resolveJobTypes } from "../jobs/job-types.ts";
import { number } from "../jobs/rows.ts";
import { LaneNumbers, resolveLanes } from "../limits/lane-rows.ts";
import type { Call, Row, Script } from "../storage/catalogue.ts";
import type { Driver } from "../storage/driver.ts";
import type { UserTx } from "../storage/user-tx.ts";
import { enqueueGroup } from "./batch-rows.ts";
import type { JobPlaces } from "./placed-jobs.ts";

/** The services of the store that a write into a user's transaction needs. */
export interface TransactionalDeps {
  readonly driver: Driver;
  readonly places: JobPlaces;
  /** Marks jobs as awaited, on a connection of our own. */
  readonly watchBeside: (ids: readonly string[]) => Promise<void>;
}

export async function enqueueInTransaction(
  deps: TransactionalDeps,
  jobs: readonly NewJob[],
  tx: UserTx,
): Promise<Enqueued[]> {
  // A synchronous transaction is written to before the call returns: nothing is awaited on its way.
  if (!tx.sync) {
    await learnBeside(deps, jobs, tx);
    // For the same reason on a connection of our own. An end before the commit, or an unmarked one, is found by the sweep.
    const upstream = jobs.flatMap((job) => job.after?.ids ?? []);
    if (upstream.length > 0) await deps.watchBeside(upstream);
  }
  const outcomes = await write(deps, jobs, tx);
  const wakes = new Map(
    jobs.map(({ queue, priority }) => [`${queue}\n${priority}`, { kind: "work", queue, priority } as const]),
  );
  await deps.driver.notifyInTx(tx, [...wakes.values()]);
  return outcomes;
}

/**
 * Makes the job types and lanes that nobody has. A raw insert makes its own in the user's transaction: to make those here, too,
 * would be to wait for the end of that transaction.
 */
async function learnBeside(
  { driver, places }: TransactionalDeps,
  jobs: readonly NewJob[],
  tx: UserTx,
): Promise<void> {
  const jobTypes = places.jobTypes.unknown(jobs);
  if (jobTypes.length > 0) {
    const held = new JobTypes();
    held.learn(await onlyIn(driver, tx, { name: "findJobTypes", params: { rows: jobTypeRows(jobTypes) } }));
    const free = held.unknown(jobTypes);
    if (free.length > 0) await places.learnJobTypes(free);
  }
  const lanes = places.lanes.unknown(jobs, driver.clock.monotonic());
  if (lanes.length > 0) {
    const held = new LaneNumbers();
    const params = { now: driver.now(), rows: lanes };
    held.learn(await onlyIn(driver, tx, { name: "findLanes", params }));
    const isFree = ({ queue, lane }: NewJob): boolean => lane !== null && held.id(queue, lane) === undefined;
    await places.learnLanes(jobs.filter(isFree));
  }
}

/** Rows that the transaction sees and no other connection does. */
async function onlyIn(driver: Driver, tx: UserTx, call: Call): Promise<Row[]> {
  const ours = new Set((await driver.read(call)).map((row) => number(row, "id")));
  const theirs = await driver.inUserTx(tx, function* (): Script<Row[]> {
    return yield call;
  });
  return theirs.filter((row) => !ours.has(number(row, "id")));
}

function write(
  { driver, places }: TransactionalDeps,
  jobs: readonly NewJob[],
  tx: UserTx,
): Promise<Enqueued[]> {
  const at = driver.clock.now();
  const monotonic = driver.clock.monotonic();
  const now = driver.now();
  return driver.inUserTx(tx, function* (): Script<Enqueued[]> {
    const unknown = places.jobTypes.unknown(jobs);
    const jobTypes = new JobTypes();
    if (unknown.length > 0) jobTypes.learn(yield* resolveJobTypes(unknown));
    const lanes = new LaneNumbers();
    const unknownLanes = places.lanes.unknown(jobs, monotonic);
    if (unknownLanes.length > 0) lanes.learn(yield* resolveLanes(unknownLanes, now));
    const placed = jobs.map((job) => places.place(job, jobTypes, lanes));
    return yield* enqueueGroup(placed, now, at, tx.sync);
  });
}
