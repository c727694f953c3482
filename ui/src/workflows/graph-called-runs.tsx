// Called runs inside another run's graph: the open ones, and their graphs, reloaded while they are live.
import { type Signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { WorkflowHistory } from "../../../src/dashboard/api/contract.ts";
import { get } from "../data/api.ts";
import type { Graph } from "./graph-picture.ts";
import { toast } from "../kit/toasts.tsx";
import { useQuery } from "../data/live-query.ts";

export interface OpenRuns {
  /** Jobs of the open nodes. */
  readonly open: Signal<ReadonlyMap<string, string>>;
  /** By job id. */
  readonly runs: Signal<ReadonlyMap<string, Graph>>;
  readonly toggle: (node: string, job: string) => void;
}

export function useOpenRuns(): OpenRuns {
  const open = useSignal<ReadonlyMap<string, string>>(new Map());
  const runs = useSignal<ReadonlyMap<string, Graph>>(new Map());
  const toggle = (node: string, job: string): void => {
    const next = new Map(open.value);
    if (!next.delete(node)) next.set(node, job);
    open.value = next;
  };
  return { open, runs, toggle };
}

/** Loads the graphs of open runs; renders nothing. */
export function OpenRunQueries({ open, runs }: OpenRuns) {
  const jobs = [...new Set(open.value.values())];
  const got = (job: string, graph: Graph): void => void (runs.value = new Map(runs.value).set(job, graph));
  const failed = (job: string, error: Error): void => {
    toast(error.message, "bad");
    open.value = new Map([...open.value].filter(([, one]) => one !== job));
  };
  return (
    <>
      {jobs.map((job) => (
        <OneRun key={job} job={job} got={got} failed={failed} />
      ))}
    </>
  );
}

const over: readonly unknown[] = ["done", "dead", "cancelled"];

function OneRun({
  job,
  got,
  failed,
}: {
  job: string;
  got: (job: string, graph: Graph) => void;
  failed: (job: string, error: Error) => void;
}) {
  const ended = useSignal(false);
  // The graph is complete, whatever page of steps is requested.
  const history = useQuery(
    `workflow inside ${job}`,
    (signal) => get<WorkflowHistory>(`/jobs/${job}/history`, { limit: 1 }, signal),
    ended.value ? {} : { sign: `run:${job}` },
  );
  const graph = history.data?.graph;
  const isOver = over.includes(graph?.nodes[0]?.state);
  useEffect(() => {
    ended.value = isOver;
    if (graph !== undefined) got(job, graph);
  }, [graph]);
  useEffect(() => {
    if (history.error !== null && graph === undefined) failed(job, history.error);
  }, [history.error]);
  return null;
}
