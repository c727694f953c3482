/** A job's history in the contract's JSON: its steps, and the graph that the page draws. Pure. */
import type { Job } from "../../index.ts";
import type { HistoryPage } from "../../operate/index.ts";
import type { WorkflowHistory, WorkflowNode, WorkflowStep } from "./contract.ts";
import { ms } from "./shapes.ts";
import { stepsBefore } from "./step-order.ts";

/** The last `limit` steps of those that were read, and a graph of all of them. */
export function workflowOf(
  job: Pick<Job, "id" | "name" | "state">,
  history: HistoryPage,
  limit: number,
): WorkflowHistory {
  const drawn = history.steps.map((step): WorkflowStep => ({
    seq: step.seq,
    name: step.name,
    kind: step.kind,
    state: stepState(step, job.state),
    attempt: step.attempt,
    tries: step.tries,
    triedAt: step.triedAt.map((one) => ({
      startedAt: one.startedAt.getTime(),
      endedAt: one.endedAt.getTime(),
    })),
    startedAt: step.startedAt.getTime(),
    endedAt: ms(step.endedAt),
    until: ms(step.wakeAt),
    output: text(step.output),
    error: step.error,
    jobId: step.child,
  }));
  const steps = drawn.slice(-limit);
  const children = history.children.map(({ id, name, relation, state, step, error }) => ({
    id,
    name,
    relation,
    state,
    step,
    error,
    hidden: false,
  }));
  return {
    attempts: history.attempts.map(({ attempt, startedAt, endedAt, error, lost }) => ({
      attempt,
      startedAt: ms(startedAt),
      endedAt: ms(endedAt),
      error,
      lost,
    })),
    steps,
    stepCount: history.stepCount,
    stepCountMore: history.stepCountMore,
    earlier: history.more || steps.length < drawn.length ? (steps[0]?.seq ?? null) : null,
    signals: history.signals.map(({ since, takenAt, data, ...signal }) => ({
      ...signal,
      since: since.getTime(),
      takenAt: ms(takenAt),
      data: text(data),
    })),
    children,
    graph: { ...graphOf(job, drawn, stepsBefore(history.steps), children), cut: history.more },
  };
}

function stepState({ kind, state }: HistoryPage["steps"][number], job: Job["state"]): WorkflowStep["state"] {
  if (state !== "open") return state;
  if (job === "done" || job === "dead" || job === "cancelled") return "cancelled";
  const waits = kind === "sleep" || kind === "signal" || kind === "call";
  return job === "running" && !waits ? "running" : "waiting";
}

/**
 * Edges follow the order of work: jobs before this one → this one → its steps, each after the steps that the run had seen when
 * it asked for it → the jobs that they called. A job that the run enqueued hangs on the run itself.
 */
function graphOf(
  job: Pick<Job, "id" | "name" | "state">,
  drawn: readonly WorkflowStep[],
  before: readonly (readonly number[])[],
  children: WorkflowHistory["children"],
): Omit<WorkflowHistory["graph"], "cut"> {
  const nodes: WorkflowNode[] = [
    { id: job.id, label: job.name, kind: "job", state: job.state, jobId: null, seq: null },
  ];
  const edges: { from: string; to: string }[] = [];
  const ids = stepIds(drawn);
  const idOf = (i: number): string => ids[i] as string;
  for (const [i, { name, kind, state, seq }] of drawn.entries()) {
    nodes.push({ id: idOf(i), label: name, kind, state, jobId: null, seq });
    const those = before[i] ?? [];
    if (those.length === 0) edges.push({ from: job.id, to: idOf(i) });
    for (const one of those) edges.push({ from: idOf(one), to: idOf(i) });
  }
  for (const { id, name, relation, state, step } of children) {
    const jobId = state === null ? null : id;
    nodes.push({ id, label: name ?? "(deleted)", kind: "job", state, jobId, seq: null });
    const caller = drawn.findIndex((one) => one.jobId === id || (step !== null && one.name === step));
    if (relation === "after") edges.push({ from: id, to: job.id });
    else edges.push({ from: caller === -1 ? job.id : idOf(caller), to: id });
  }
  return { nodes, edges };
}

/**
 * Ids by name, not by number: a step that ends later than one behind it would change all numbers, and with them the focus.
 * A machine comes to a step more than once.
 */
function stepIds(steps: readonly WorkflowStep[]): string[] {
  const seen = new Map<string, number>();
  return steps.map(({ name }) => {
    const times = seen.get(name) ?? 0;
    seen.set(name, times + 1);
    return times === 0 ? `step ${name}` : `step ${name} ${times}`;
  });
}

function text(value: unknown): string | null {
  return value === null || value === undefined ? null : JSON.stringify(value);
}
