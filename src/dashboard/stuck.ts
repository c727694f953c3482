/**
 * Jobs that run much longer than others of their kind: what an operator wants to look at first when nothing has failed.
 *
 * Bounded: kinds with something running are few, their roll-ups are minutes that are already counted, and at most 100 running
 * jobs of each suspicious kind are looked at. A kind of which too little is known is not judged.
 */
import type { Insight } from "../insight.ts";
import type { StuckList } from "./contract.ts";

/** How long attempts of a kind took lately. */
export interface Usual {
  readonly count: number;
  readonly p95Ms: number;
}

/** So many times the usual is a reason to look. */
const factor = 3;
/** Fewer attempts say nothing about what is usual. */
export const FEWEST_ATTEMPTS = 20;
/** What is over in a second is never stuck. */
const shortestMs = 1_000;
const mostJobs = 20;
const mostKinds = 20;

export async function readStuck(deps: {
  readonly insight: Pick<Insight, "lines" | "browse">;
  readonly usual: (names: readonly string[]) => Promise<ReadonlyMap<string, Usual>>;
}): Promise<StuckList> {
  const { lines, now } = await deps.insight.lines();
  const running = lines.filter(({ running: n, longestSince }) => n > 0 && longestSince !== null);
  const names = [...new Set(running.map(({ name }) => name))].slice(0, 200);
  if (names.length === 0) return { jobs: [] };
  const usual = await deps.usual(names);
  const limitOf = (name: string): number | null => {
    const known = usual.get(name);
    return known === undefined || known.count < FEWEST_ATTEMPTS
      ? null
      : Math.max(shortestMs, known.p95Ms * factor);
  };
  const suspicious = running
    .filter(({ name, longestSince }) => {
      const limit = limitOf(name);
      return limit !== null && longestSince !== null && now - longestSince > limit;
    })
    .slice(0, mostKinds);
  const jobs: StuckList["jobs"][number][] = [];
  for (const { name, queue } of suspicious) {
    const page = await deps.insight.browse(
      { states: ["running"], names: [name], queues: [queue] },
      { limit: 100, cursor: null },
    );
    for (const { id, startedAt, workerId } of page.jobs) {
      const limit = limitOf(name);
      if (startedAt === null || limit === null || now - startedAt <= limit) continue;
      jobs.push({ id, name, queue, workerId, startedAt, p95Ms: usual.get(name)?.p95Ms ?? 0 });
    }
  }
  return { jobs: jobs.sort((a, b) => a.startedAt - b.startedAt).slice(0, mostJobs) };
}
