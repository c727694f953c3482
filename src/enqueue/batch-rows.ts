/**
 * Batches: what `hf.batch` enqueued together. One row for each, one for each of its jobs, written with them; so that they can
 * be listed without a look at jobs, and their jobs without a scan.
 *
 *   batch (id, how many, then) ──< member (batch, job)        a member goes with its job, a batch some time after its last one
 *
 * Invariants: a plain enqueue writes nothing here; how far a batch is is counted where its jobs are, by whoever looks, and
 * never beyond a bound: no settle keeps a count. A job whose key was taken stands for another one, and that is the member.
 * Not here: who waits for whom (dependency-rows.ts), which jobs a filter by batch gives (operate/browse-rows.ts, operate/job-rows.ts).
 */
import { UsageError } from "../errors.ts";
import type { BatchFilter, BatchOfJob, BatchPage, BatchSummary } from "../operate/browse.ts";
import type { Enqueued, JobState } from "../jobs/job.ts";
import { HIGHEST_ID, isId } from "../values/id.ts";
import type { Row, Script } from "../storage/catalogue.ts";
import { enqueueWithAfter } from "./dependency-rows.ts";
import type { Driver } from "../storage/driver.ts";
import type { PlacedJob } from "./placed-jobs.ts";
import { eachIdOnce } from "./unique-keys.ts";
import { flag, maybeNumber, maybeText, number, text } from "../jobs/rows.ts";

/** Members that a page looks at in all, and one batch of it at least. */
const PAGE_BUDGET = 20_000;
const LEAST = 100;
/** Batches that a filter looks through at most, and how long it does. */
const MOST_WALKED = 1_000;
const PATIENCE_MS = 12;
/** Kinds of a batch that are kept, and batches of a job that are told: few have more than one. */
const MOST_NAMES = 5;
const MOST_OF_JOB = 10;

/** Writes jobs that come together, and the batch that they are, if they are one. */
export function* enqueueGroup(
  placed: readonly PlacedJob[],
  now: number | null,
  at: number,
  lock: boolean,
): Script<Enqueued[]> {
  const outcomes = yield* eachIdOnce(placed, (once) => enqueueWithAfter(once, now, at, lock));
  const id = placed[0]?.job.batch?.id;
  if (id !== undefined) yield* keepBatch(id, placed, outcomes, now);
  return outcomes;
}

function* keepBatch(
  id: string,
  placed: readonly PlacedJob[],
  outcomes: readonly Enqueued[],
  now: number | null,
): Script<void> {
  const ids = placed.map(({ job }, place) => outcomes[place]?.id ?? job.id);
  const at = placed.findIndex(({ job }) => job.batch?.role === "then");
  const then = placed[at]?.job;
  const own = placed.flatMap(({ job }, place) => (job.batch?.role === "job" ? [{ job, place }] : []));
  const members = [...new Set(own.map(({ place }) => ids[place] as string))].sort();
  if (members.length === 0) return;
  const names = [...new Set(own.map(({ job }) => job.name))].slice(0, MOST_NAMES);
  yield {
    name: "addBatch",
    params: {
      now,
      id,
      total: members.length,
      names: JSON.stringify(names),
      thenJob: ids[at] ?? null,
      thenName: then?.name ?? null,
      policy: then?.after?.policy ?? null,
    },
  };
  yield { name: "addMembers", params: { rows: members.map((member) => ({ batch: id, id: member })) } };
}

/**
 * How many members of each batch are counted: the same for all, the most with which they stay within the budget together.
 *
 * @example
 * shareOf([10, 50_000, 50_000], 20_010); // 10_000: the small one needs none of it
 */
export function shareOf(totals: readonly number[], budget: number): number {
  let left = budget;
  const rising = totals.toSorted((a, b) => a - b);
  for (const [place, total] of rising.entries()) {
    const each = Math.floor(left / (rising.length - place));
    if (total > each) return Math.max(LEAST, each);
    left -= total;
  }
  return Math.max(LEAST, rising.at(-1) ?? 0);
}

export class Batches {
  readonly #driver: Driver;
  readonly #statesOf: (ids: readonly string[]) => Promise<ReadonlyMap<string, JobState>>;

  constructor(driver: Driver, statesOf: (ids: readonly string[]) => Promise<ReadonlyMap<string, JobState>>) {
    this.#driver = driver;
    this.#statesOf = statesOf;
  }

  async list(filter: BatchFilter, page: { limit: number; cursor: string | null }): Promise<BatchPage> {
    if (page.cursor !== null && !isId(page.cursor))
      throw new UsageError("BAD_CURSOR", "cursor must be the value returned with the previous page.");
    const deadline = performance.now() + PATIENCE_MS;
    const batches: BatchSummary[] = [];
    let before = page.cursor ?? HIGHEST_ID;
    for (let walked = 0; ;) {
      const limit = page.limit + 1;
      const rows = await this.#driver.read({ name: "walkBatches", params: { before, limit } });
      batches.push(...(await this.#summaries(rows)).filter((batch) => fits(batch, filter)));
      walked += rows.length;
      const given = batches.slice(0, page.limit);
      if (batches.length > page.limit) return { batches: given, cursor: given.at(-1)?.id ?? null };
      if (rows.length < limit) return { batches, cursor: null };
      before = text(rows.at(-1) as Row, "id");
      if (walked >= MOST_WALKED || performance.now() > deadline) return { batches, cursor: before };
    }
  }

  /** The batches that a job is of, and those that it comes after; newest first. */
  async of(id: string): Promise<BatchOfJob[]> {
    const rows = await this.#driver.read({ name: "batchesOf", params: { id, limit: MOST_OF_JOB } });
    return rows.map((row) => ({
      id: text(row, "id"),
      role: flag(row, "then") ? "then" : "job",
      total: number(row, "total"),
      then: thenOf(row),
    }));
  }

  async #summaries(rows: readonly Row[]): Promise<BatchSummary[]> {
    if (rows.length === 0) return [];
    const most = shareOf(
      rows.map((row) => number(row, "total")),
      PAGE_BUDGET,
    );
    const ids = rows.map((row) => text(row, "id"));
    const [tallies, states] = await Promise.all([
      this.#driver.read({ name: "tallyBatches", params: { ids, most } }),
      this.#statesOf(rows.flatMap((row) => maybeText(row, "then_job") ?? [])),
    ]);
    const byId = new Map(tallies.map((row) => [text(row, "id"), row]));
    return rows.map((row) => summary(row, byId.get(text(row, "id")), most, states));
  }
}

function fits({ open, dead, cancelled }: BatchSummary, { state }: BatchFilter): boolean {
  if (state === undefined) return true;
  if (state === "failed") return dead + cancelled > 0;
  return open > 0 === (state === "open");
}

function thenOf(row: Row): { id: string; name: string } | null {
  const id = maybeText(row, "then_job");
  return id === null ? null : { id, name: text(row, "then_name") };
}

function summary(
  row: Row,
  tally: Row | undefined,
  most: number,
  states: ReadonlyMap<string, JobState>,
): BatchSummary {
  const total = number(row, "total");
  const count = (column: string): number => (tally === undefined ? 0 : number(tally, column));
  const [counted, done, dead, cancelled] = [
    count("counted"),
    count("done"),
    count("dead"),
    count("cancelled"),
  ];
  const open = counted - done - dead - cancelled;
  const cut = counted >= most && counted < total;
  const then = thenOf(row);
  return {
    id: text(row, "id"),
    createdAt: number(row, "made_at"),
    names: JSON.parse(text(row, "names")) as string[],
    total,
    counted,
    cut,
    done,
    dead,
    cancelled,
    running: count("running"),
    open,
    gone: cut ? 0 : total - counted,
    startedAt: tally === undefined ? null : maybeNumber(tally, "started_at"),
    endedAt: tally === undefined || open > 0 || cut ? null : maybeNumber(tally, "ended_at"),
    then: then === null ? null : { ...then, state: states.get(then.id) ?? null },
    policy: maybeText(row, "policy") as BatchSummary["policy"],
  };
}
