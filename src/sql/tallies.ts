/**
 * Live jobs by queue and kind, counted to a bound: what pages, probes and samplers ask, so that a million ready jobs cost them
 * milliseconds (1 M over 20 queues, Postgres: 10 to 30 ms; counted to the end 2 s and more).
 *
 * The age of the oldest ready job is exact: one probe of the claim's index for each level. A job that waits for a signal or for
 * others until a time counts as waiting, as in lists: an index of its own tells it from what is due later.
 */
import type { CappedCount, LineTally, RunningLine } from "../insight.ts";
import type { Row } from "./catalogue.ts";
import type { Driver } from "./driver.ts";
import { maybeNumber, number, text } from "./rows.ts";

/** `most` of each kind and state; `budget`: of all kinds and states together, beside a hundred for each level and state. */
export interface Bounds {
  readonly most: number;
  readonly budget: number;
}

/** Those of these queues and of these kinds alone. */
export interface LinesOf {
  readonly queues?: readonly string[] | undefined;
  readonly names?: readonly string[] | undefined;
}

export async function tallyLines(
  driver: Driver,
  { most, budget }: Bounds,
  { queues, names }: LinesOf = {},
): Promise<{ now: number; lines: readonly LineTally[] }> {
  const now = driver.now();
  const [waiting, running] = await Promise.all([
    driver.read({
      name: "tallyLines",
      params: { now, cap: most + 1, budget, queues: queues ?? null, names: names ?? null },
    }),
    tallyRunning(driver),
  ]);
  const held = new Map(running.lines.map((line) => [lineKey(line.queue, line.name), line]));
  const lines = waiting.map((row) => {
    const [queue, name] = [text(row, "queue"), text(row, "name")];
    const busy = held.get(lineKey(queue, name));
    return {
      queue,
      name,
      ready: cappedAt(most, number(row, "ready"), number(row, "more_ready") > 0),
      scheduled: cappedAt(most, number(row, "scheduled"), number(row, "more_scheduled") > 0),
      waiting: cappedAt(most, number(row, "waiting"), number(row, "more_waiting") > 0),
      running: busy?.running ?? 0,
      heldBy: busy?.heldBy ?? new Map<number, number>(),
      oldestAt: maybeNumber(row, "oldest"),
      longestSince: busy?.longestSince ?? null,
    };
  });
  return { now: clockIn(waiting, driver), lines };
}

/** What runs, by queue and kind: found by the claims, which are few. */
export async function tallyRunning(driver: Driver): Promise<{ now: number; lines: readonly RunningLine[] }> {
  const rows = await driver.read({ name: "tallyRunning", params: { now: driver.now() } });
  const byLine = Map.groupBy(rows, (row) => lineKey(text(row, "queue"), text(row, "name")));
  const lines = [...byLine.values()].map((own) => {
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
  return { now: clockIn(rows, driver), lines };
}

/** The database's clock; where it told nothing, ours. */
function clockIn([first]: readonly Row[], driver: Driver): number {
  return first === undefined ? (driver.now() ?? Date.now()) : number(first, "now");
}

function lineKey(queue: string, name: string): string {
  return `${queue}\n${name}`;
}

export function cappedAt(most: number, count: number, cut: boolean): CappedCount {
  return count > most ? { count: most, more: true } : { count, more: cut };
}
