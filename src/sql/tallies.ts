/**
 * Live jobs by queue and kind, counted to a bound: what pages, probes and samplers ask, so that a million ready jobs cost them
 * milliseconds (1 M over 20 queues, Postgres: 10 to 30 ms; counted to the end 2 s and more).
 *
 * The age of the oldest ready job is exact: one probe of the claim's index for each level. A job that waits for a signal or for
 * others until a time counts as waiting, as in lists: an index of its own tells it from what is due later.
 */
import type { CappedCount, LineTally } from "../insight.ts";
import type { Driver } from "./driver.ts";
import { maybeNumber, number, text } from "./rows.ts";

/** `most` of each kind and state; `budget`: of all kinds together, beside a hundred for each level. */
export interface Bounds {
  readonly most: number;
  readonly budget: number;
}

export async function tallyLines(
  driver: Driver,
  { most, budget }: Bounds,
): Promise<{ now: number; lines: readonly LineTally[] }> {
  const [waiting, running] = await Promise.all([
    driver.read({ name: "tallyLines", params: { now: driver.now(), cap: most + 1, budget } }),
    driver.read({ name: "tallyRunning", params: {} }),
  ]);
  const held = Map.groupBy(running, (row) => `${text(row, "queue")}\n${text(row, "name")}`);
  const lines = waiting.map((row) => {
    const busy = held.get(`${text(row, "queue")}\n${text(row, "name")}`) ?? [];
    const heldBy = new Map(busy.map((own) => [number(own, "session"), number(own, "running")]));
    const longest = busy.flatMap((own) => maybeNumber(own, "longest") ?? []);
    return {
      queue: text(row, "queue"),
      name: text(row, "name"),
      ready: cappedAt(most, number(row, "ready"), number(row, "more_ready") > 0),
      scheduled: cappedAt(most, number(row, "scheduled"), number(row, "more_scheduled") > 0),
      waiting: cappedAt(most, number(row, "waiting"), number(row, "more_waiting") > 0),
      running: [...heldBy.values()].reduce((sum, n) => sum + n, 0),
      heldBy,
      oldestAt: maybeNumber(row, "oldest"),
      longestSince: longest.length === 0 ? null : Math.min(...longest),
    };
  });
  const first = waiting[0];
  return { now: first === undefined ? Date.now() : number(first, "now"), lines };
}

export function cappedAt(most: number, count: number, cut: boolean): CappedCount {
  return count > most ? { count: most, more: true } : { count, more: cut };
}
