/**
 * Live jobs by queue and name, counted to a bound: what pages, probes and samplers ask, so that a million ready jobs cost them
 * milliseconds (1 M over 20 queues, Postgres: 10 to 30 ms; counted to the end 2 s and more).
 *
 * The age of the oldest ready job and the due time of the next scheduled one are exact: one probe of the claim's index for each level. A job that waits for a signal or for
 * others until a time counts as waiting, as in lists: an index of its own tells it from what is due later.
 *
 * While anybody holds an old snapshot, Postgres keeps the index entries of ended jobs, and a count steps over them (100,000 ended
 * jobs: 80 ms). They stand before the oldest ready job, and a job that comes back is due from then on. So each count remembers the
 * oldest job's due time, and where a complete count is slow, most counts begin a moment before it. SQLite keeps no such entries.
 */
import type { CappedCount, JobTypeTally, RunningJobType } from "../operate/browse.ts";
import type { Row } from "../storage/catalogue.ts";
import { completeInMs } from "../jobs/plain-claim.ts";
import type { Driver } from "../storage/driver.ts";
import { maybeNumber, number, text } from "../jobs/rows.ts";
import { grouped } from "../values/amounts.ts";
import type { QueueState } from "./store.ts";

/** `most` of each name and state; `budget`: of all kinds and states together, beside a hundred for each level and state. */
export interface Bounds {
  readonly most: number;
  readonly budget: number;
}

/** Those of these queues and of these names alone. */
export interface JobTypesOf {
  readonly queues?: readonly string[] | undefined;
  readonly names?: readonly string[] | undefined;
}

/** Every count is complete where the last complete one took no longer. */
const CHEAP_MS = 100;
/** Transactions that stay open no longer than this after their enqueue are seen by every count. */
const LATE_MS = 10_000;

/** Where a count of a job type begins: its jobs that were due before are left out. A type, so that it is a row of parameters. */
type Begin = Readonly<{ queue: string; name: string; at: number }>;

/** Where the next counts begin. */
export class TallyCursor {
  /** Due times of the oldest ready jobs; where there was none, when that was. */
  readonly #oldest = new Map<string, Begin>();
  /** The latest complete counts that were slow, by the job types that were asked for. */
  readonly #slow = new Map<string, { readonly endedMs: number; readonly tookMs: number }>();

  /** The job types' due times to begin at; none: this count is complete. */
  begins(asked: string, monotonicMs: number): Begin[] {
    for (const [key, { endedMs, tookMs }] of this.#slow)
      if (completeInMs(endedMs, tookMs, monotonicMs) === 0) this.#slow.delete(key);
    if (!this.#slow.has(asked)) return [];
    return [...this.#oldest.values()].map((jobType) => ({ ...jobType, at: jobType.at - LATE_MS }));
  }

  /** After a complete count. */
  completed(asked: string, startedMs: number, endedMs: number): void {
    const tookMs = endedMs - startedMs;
    if (tookMs > CHEAP_MS) this.#slow.set(asked, { endedMs, tookMs });
  }

  learn(rows: readonly Row[]): void {
    for (const row of rows) {
      const [queue, name] = [text(row, "queue"), text(row, "name")];
      const at = maybeNumber(row, "oldest") ?? number(row, "now");
      this.#oldest.set(jobTypeKey(queue, name), { queue, name, at });
    }
  }
}

export async function tallyJobTypes(
  driver: Driver,
  cursor: TallyCursor,
  { most, budget }: Bounds,
  { queues, names }: JobTypesOf = {},
): Promise<{ now: number; jobTypes: readonly JobTypeTally[] }> {
  const asked = { queues: queues ?? null, names: names ?? null };
  const key = JSON.stringify(asked);
  const startedMs = driver.clock.monotonic();
  const begins = cursor.begins(key, startedMs);
  const params = { now: driver.now(), cap: most + 1, budget, ...asked, begins };
  const [waiting, running] = await Promise.all([
    driver.read({ name: "tallyJobTypes", params }),
    tallyRunning(driver),
  ]);
  if (begins.length === 0) cursor.completed(key, startedMs, driver.clock.monotonic());
  cursor.learn(waiting);
  const held = new Map(running.jobTypes.map((jobType) => [jobTypeKey(jobType.queue, jobType.name), jobType]));
  const jobTypes = waiting.map((row) => {
    const [queue, name] = [text(row, "queue"), text(row, "name")];
    const busy = held.get(jobTypeKey(queue, name));
    return {
      queue,
      name,
      ready: cappedAt(most, number(row, "ready"), number(row, "more_ready") > 0),
      scheduled: cappedAt(most, number(row, "scheduled"), number(row, "more_scheduled") > 0),
      waiting: cappedAt(most, number(row, "waiting"), number(row, "more_waiting") > 0),
      running: busy?.running ?? 0,
      heldBy: busy?.heldBy ?? new Map<number, number>(),
      oldestAt: maybeNumber(row, "oldest"),
      nextDueAt: maybeNumber(row, "next"),
      longestSince: busy?.longestSince ?? null,
    };
  });
  return { now: clockIn(waiting, driver), jobTypes };
}

/** What runs, by queue and name: found by the claims, which are few. */
export async function tallyRunning(
  driver: Driver,
): Promise<{ now: number; jobTypes: readonly RunningJobType[] }> {
  const rows = await driver.read({ name: "tallyRunning", params: { now: driver.now() } });
  const byJobType = Map.groupBy(rows, (row) => jobTypeKey(text(row, "queue"), text(row, "name")));
  const jobTypes = [...byJobType.values()].map((own) => {
    const [first] = own as [Row, ...Row[]];
    const heldBy = new Map(own.map((row) => [number(row, "session"), number(row, "running")]));
    const longest = own.flatMap((row) => maybeNumber(row, "longest") ?? []);
    return {
      queue: text(first, "queue"),
      name: text(first, "name"),
      running: [...heldBy.values()].reduce((sum, n) => sum + n, 0),
      heldBy,
      longestSince: longest.length === 0 ? null : Math.min(...longest),
    };
  });
  return { now: clockIn(rows, driver), jobTypes };
}

/** The database's clock; where it told nothing, ours. */
function clockIn([first]: readonly Row[], driver: Driver): number {
  return first === undefined ? driver.clock.now() : number(first, "now");
}

function jobTypeKey(queue: string, name: string): string {
  return `${queue}\n${name}`;
}

export function cappedAt(most: number, count: number, cut: boolean): CappedCount {
  return count > most ? { count: most, more: true } : { count, more: cut };
}

/** A screen that is refreshed every second counts the jobs of one state up to here: a million take seconds. */
export const MOST_COUNTED = 10_000;

type State = keyof QueueState["counts"];

/** 1,234, or 10,000+ where there may be more. */
export function counted(queues: readonly QueueState[], state: State): string {
  const sum = queues.reduce((total, { counts }) => total + counts[state], 0);
  return `${grouped(sum)}${queues.some(({ atLeast }) => atLeast.includes(state)) ? "+" : ""}`;
}
