// Fan-outs: at least five similar nodes side by side with the same neighbours. Pure.
import { stemOf } from "../../../src/workflows/alike-steps.ts";
import { layersOf, type LayoutEdge, neighboursOf } from "./graph-layout.ts";
import type { WorkflowNode } from "../../../src/dashboard/api/contract.ts";

export interface Fan {
  /** Stable while the run continues. */
  readonly key: string;
  readonly label: string;
  readonly members: readonly WorkflowNode[];
}

const fewestInFan = 5;
/** Rounds of refinement by neighbours; more have changed nothing in any test. */
const rounds = 8;

/** The first node is the run itself and belongs to no fan-out. */
export function fansOf(nodes: readonly WorkflowNode[], edges: readonly LayoutEdge[]): Fan[] {
  if (nodes.length <= fewestInFan) return [];
  const { out, into } = neighboursOf(nodes, edges);
  const layers = layersOf(out, into);
  const families = nodes.map(({ kind, label }, i) => {
    const stem = kind === "job" ? label : stemOf(label, kind);
    return i === 0 ? "" : `${kind} ${stem} ${layers[i]}`;
  });
  const classes = refined(numbered(families), out, into);
  const found = new Map<number, number[]>();
  for (const [node, one] of classes.entries()) {
    const members = found.get(one);
    if (members === undefined) found.set(one, [node]);
    else members.push(node);
  }
  const used = new Map<string, number>();
  return [...found.values()]
    .filter(({ length }) => length >= fewestInFan)
    .map((members) => {
      const first = members[0] as number;
      const family = families[first] as string;
      const times = used.get(family) ?? 0;
      used.set(family, times + 1);
      return {
        key: times === 0 ? family : `${family} ${times}`,
        label: nameOf(nodes[first] as WorkflowNode),
        members: members.map((member) => nodes[member] as WorkflowNode),
      };
    });
}

function nameOf({ kind, label }: WorkflowNode): string {
  if (kind === "job") return label;
  const stem = stemOf(label, kind);
  return stem.replace(/(?<![\s#:._/-])[\s#:._/-]+$/, "") || stem;
}

function refined(
  first: { of: number[]; count: number },
  out: readonly number[][],
  into: readonly number[][],
): number[] {
  let classes = first;
  for (let round = 0; round < rounds; round += 1) {
    const { of } = classes;
    const sort = (those: readonly number[] | undefined): string =>
      [...new Set((those ?? []).map((node) => of[node] as number))].sort((a, b) => a - b).join();
    const next = numbered(of.map((one, node) => `${one}<${sort(into[node])}>${sort(out[node])}`));
    if (next.count === classes.count) break;
    classes = next;
  }
  return classes.of;
}

function numbered(names: readonly string[]): { of: number[]; count: number } {
  const numbers = new Map<string, number>();
  const of = names.map((name) => {
    const known = numbers.get(name);
    if (known !== undefined) return known;
    numbers.set(name, numbers.size);
    return numbers.size - 1;
  });
  return { of, count: numbers.size };
}

/** Members per state, most urgent first. */
export function countsOf(
  members: readonly WorkflowNode[],
): { readonly state: string; readonly count: number }[] {
  const counts = new Map<string, number>();
  for (const node of members) counts.set(stateOf(node), (counts.get(stateOf(node)) ?? 0) + 1);
  const rank = (state: string): number => (attention.indexOf(state) + attention.length) % attention.length;
  return [...counts]
    .map(([state, count]) => ({ state, count }))
    .sort((a, b) => rank(a.state) - rank(b.state));
}

/** The most urgent state of the members. */
export function worstOf(members: readonly WorkflowNode[]): string {
  return countsOf(members)[0]?.state ?? "gone";
}

const attention = ["dead", "failed", "running", "waiting", "ready", "scheduled", "cancelled", "done", "gone"];

export function stateOf({ state }: WorkflowNode): string {
  return state ?? "gone";
}
