// What a run may still come to, as the newest run of its kind that ended well came to it.
import type { ExpectedSteps } from "../../../src/dashboard/api/contract.ts";
import { get } from "../data/api.ts";
import { useQuery } from "../data/live-query.ts";

const nothing: ExpectedSteps = { jobId: null, steps: [] };

/** Asked once, and only while it goes on. Null: not known yet. */
export function useExpected(job: string, going: boolean | null): ExpectedSteps | null {
  const { data } = useQuery(`expected ${job} ${going}`, (signal) =>
    going === true ? get<ExpectedSteps>(`/jobs/${job}/expected`, {}, signal) : Promise.resolve(nothing),
  );
  return going === true ? data : null;
}
