// One job as a screen has it: its input and output, which may be large, are asked for once and again only when they have
// changed; all else comes by the live stream.
import { useRef } from "preact/hooks";
import type { JobDetail } from "../../../src/dashboard/api/contract.ts";
import { get } from "../data/api.ts";
import { type Query, useQuery } from "../data/live-query.ts";

/** `still`: it is not followed any more. */
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

/** What is told lacks its large parts; null: they have changed. Pure. */
function withParts(had: JobDetail, told: JobDetail): JobDetail | null {
  const { input, output, masked } = had;
  return sameParts(had, told) ? { ...told, input, output, masked } : null;
}

function sameParts(a: JobDetail, b: JobDetail): boolean {
  return a.inputTag === b.inputTag && a.outputTag === b.outputTag;
}
