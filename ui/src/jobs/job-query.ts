// A job as its screen needs it. Input and output may be large: they are requested once, and again only when they change.
// The live stream updates the rest.
import { useRef } from "preact/hooks";
import type { JobDetail } from "../../../src/dashboard/api/contract.ts";
import { get } from "../data/api.ts";
import { type Query, useQuery } from "../data/live-query.ts";

/** `still`: stop following it. */
export function useJob(id: string, { still = false }: { still?: boolean } = {}): Query<JobDetail> {
  const kept = useRef<JobDetail | null>(null);
  const ask = async (signal: AbortSignal): Promise<JobDetail> => {
    const had = kept.current?.id === id ? kept.current : null;
    const without = async (parts: readonly string[]): Promise<JobDetail> => {
      const told = await get<JobDetail>(`/jobs/${id}`, { without: parts.join(",") }, signal);
      if (had === null) return told;
      return {
        ...told,
        ...(parts.includes("input") ? { input: had.input, masked: had.masked } : {}),
        ...(parts.includes("output") ? { output: had.output } : {}),
      };
    };
    let now = await without(had === null ? [] : ["input", "output"]);
    if (had !== null && !sameParts(had, now))
      now = await without([
        ...(had.inputTag === now.inputTag ? ["input"] : []),
        ...(had.outputTag === now.outputTag ? ["output"] : []),
      ]);
    return (kept.current = now);
  };
  return useQuery(`job ${id}`, ask, still ? {} : { topic: `job:${id}`, merge: withParts });
}

/** Adds the large parts to a streamed job; null: they have changed. Pure. */
function withParts(had: JobDetail, told: JobDetail): JobDetail | null {
  const { input, output, masked } = had;
  return sameParts(had, told) ? { ...told, input, output, masked } : null;
}

function sameParts(a: JobDetail, b: JobDetail): boolean {
  return a.inputTag === b.inputTag && a.outputTag === b.outputTag;
}
