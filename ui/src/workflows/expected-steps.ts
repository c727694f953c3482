// What a run may still come to, as an earlier run of its kind went: steps that it has not reached are put behind those that
// it has. Pure.
import type { ExpectedSteps, FlowHistory, FlowNode } from "../../../src/dashboard/api/contract.ts";

type Graph = FlowHistory["graph"];

export interface GraphNode extends FlowNode {
  /** Not reached yet. */
  readonly expected: boolean;
}
export interface ExpectedGraph {
  readonly nodes: readonly GraphNode[];
  readonly edges: Graph["edges"];
}

/** A step that another came after which the run has reached was passed over: it is not expected any more. */
export function withExpected(graph: Graph, expected: ExpectedSteps | null): ExpectedGraph {
  const nodes: GraphNode[] = graph.nodes.map((node) => ({ ...node, expected: false }));
  const root = nodes[0];
  // Of a graph that was cut nobody here knows what was reached.
  if (expected === null || expected.steps.length === 0 || graph.cut || root === undefined)
    return { nodes, edges: graph.edges };
  const { steps } = expected;
  const reached = new Map(nodes.slice(1).map(({ id, kind, label }) => [`${kind} ${label}`, id]));
  const ids = steps.map(({ kind, name }) => reached.get(`${kind} ${name}`) ?? null);
  const over = ids.map((id) => id !== null);
  // Steps come after those before them in the list, so that once from its end says it for all.
  for (let i = steps.length - 1; i >= 0; i -= 1)
    if (over[i] === true) for (const before of steps[i]?.after ?? []) over[before] = true;
  const edges = [...graph.edges];
  /** Where each step hangs: itself where it is drawn, else what is drawn before it. */
  const drawn: (readonly string[])[] = [];
  for (const [i, { name, kind, after }] of steps.entries()) {
    const before = [...new Set(after.flatMap((one) => drawn[one] ?? []))];
    const known = ids[i] ?? null;
    if (known !== null) drawn.push([known]);
    else if (over[i] === true) drawn.push(before);
    else {
      const id = `step ${name}`;
      nodes.push({ id, label: name, kind, state: null, jobId: null, seq: null, expected: true });
      for (const from of before.length === 0 ? [root.id] : before) edges.push({ from, to: id });
      drawn.push([id]);
    }
  }
  return { nodes, edges };
}
