// Recent inputs of a name. Costs one list and at most eight jobs by id.
import type { JobDetail, JobLine, JobList } from "../../../src/dashboard/api/contract.ts";

export type RecentInput = Pick<
  JobDetail,
  "id" | "state" | "paused" | "failureGroup" | "createdAt" | "input" | "inputBytes" | "masked"
>;

const looked = 20;
const asked = 8;
const shown = 5;
const mostBytes = 65_536;

/** Jobs worth reading: distinct previews of small inputs. */
export function candidates(jobs: readonly JobLine[]): readonly JobLine[] {
  const met = new Set<string>();
  const kept = jobs.filter(({ id, preview, inputBytes }) => {
    if (preview === null || inputBytes > mostBytes) return false;
    const whole = preview.endsWith("…") ? id : preview;
    return !met.has(whole) && met.add(whole) !== undefined;
  });
  return kept.slice(0, asked);
}

/** The newest distinct inputs. Inputs with the same masks may be equal or not; one is enough. */
export function distinct(jobs: readonly RecentInput[]): readonly RecentInput[] {
  const met = new Set<string>();
  return jobs
    .filter(({ input }) => input !== null && !met.has(input) && met.add(input) !== undefined)
    .slice(0, shown);
}

type Ask = <T>(
  path: string,
  params: Readonly<Record<string, string | number>>,
  signal: AbortSignal,
) => Promise<T>;

export async function recentInputs(
  name: string,
  ask: Ask,
  signal: AbortSignal,
): Promise<readonly RecentInput[]> {
  const { jobs } = await ask<JobList>("/jobs", { name, limit: looked }, signal);
  const details = await Promise.all(
    candidates(jobs).map(({ id }) =>
      // Deleted meanwhile.
      ask<JobDetail>(`/jobs/${id}`, {}, signal).catch(() => null),
    ),
  );
  return distinct(details.filter((job) => job !== null));
}
