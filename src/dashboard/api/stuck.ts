/**
 * Jobs that run much longer than others of their kind, and the names that take longest: what an operator wants to look at
 * first when nothing has failed.
 *
 * Bounded: names with something running are few, their roll-ups are minutes that are already counted, and at most 100 running
 * jobs of each suspicious kind are looked at. A kind of which too little is known is not judged.
 */
import type { Insight } from "../../operate/browse.ts";
import type { SlowNames, StuckList } from "./contract.ts";

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
const mostDefinitions = 20;

const mostSlow = 8;
const mostNames = 200;

/** The names whose attempts took longest in the last day: of those that there are jobs of now, and all that workers know. */
export async function readSlow(deps: {
  readonly insight: Pick<Insight, "jobTypeNames">;
  readonly definitions: () => Promise<ReadonlyMap<string, unknown>>;
  readonly usual: (names: readonly string[]) => Promise<ReadonlyMap<string, Usual>>;
}): Promise<SlowNames> {
  const [jobTypes, definitions] = await Promise.all([deps.insight.jobTypeNames(), deps.definitions()]);
  // Busy ones first: an idle system has none, and its day is worth telling all the same.
  const names = [...new Set([...jobTypes.map(({ name }) => name), ...definitions.keys()])].slice(
    0,
    mostNames,
  );
  const usual = names.length === 0 ? new Map<string, Usual>() : await deps.usual(names);
  const known = [...usual].map(([name, { count, p95Ms }]) => ({ name, p95Ms, count }));
  return { names: known.sort((a, b) => b.p95Ms - a.p95Ms).slice(0, mostSlow) };
}

export async function readStuck(deps: {
  readonly insight: Pick<Insight, "running" | "browse">;
  readonly usual: (names: readonly string[]) => Promise<ReadonlyMap<string, Usual>>;
}): Promise<StuckList> {
  const { jobTypes, now } = await deps.insight.running();
  const running = jobTypes.filter(({ longestSince }) => longestSince !== null);
  const names = [...new Set(running.map(({ name }) => name))].slice(0, mostNames);
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
    .slice(0, mostDefinitions);
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
