// A run's graph as it is drawn: fan-outs as one node or, opened, in a frame; runs that it called in frames with their own
// graphs, those in theirs, and so on. What is in a frame is placed first, then the frame among the rest like a large node.
// Pure. Not here: the layers (graph.ts), what is a fan-out (graph-fans.ts), what is expected (graph-ghosts.ts).
import type { ExpectedSteps, FlowHistory } from "../../src/dashboard/contract.ts";
import { type Direction, layout, type LayoutOptions, NODE } from "./graph.ts";
import { type Fan, fansOf } from "./graph-fans.ts";
import { type GraphNode, withExpected } from "./graph-ghosts.ts";

export interface Run {
  readonly graph: FlowHistory["graph"];
  readonly expected: ExpectedSteps | null;
}

/** Where a thing is drawn. Ids say the way to it: `run/step`. */
export interface Box {
  readonly id: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}
export interface DrawnNode extends Box {
  readonly node: GraphNode;
}
/** `open`: its box is a frame, with its head above its members. */
export interface DrawnFan extends Box {
  readonly fan: Fan;
  readonly open: boolean;
}
export interface DrawnEdge {
  readonly from: string;
  readonly to: string;
  readonly d: string;
  readonly ghost: boolean;
}
/** Everything that could be looked for, with the fans that must be open to see it. */
export interface Leaf {
  readonly id: string;
  readonly node: GraphNode;
  readonly fans: readonly string[];
}
export interface Picture {
  readonly width: number;
  readonly height: number;
  readonly nodes: readonly DrawnNode[];
  readonly fans: readonly DrawnFan[];
  /** Of runs that are drawn inside. */
  readonly frames: readonly Box[];
  readonly edges: readonly DrawnEdge[];
  readonly leaves: readonly Leaf[];
}

export interface Opened {
  /** Ids of fans. */
  readonly fans: ReadonlySet<string>;
  /** Runs that are drawn inside, by the ids of their nodes. */
  readonly runs: ReadonlyMap<string, Run>;
}

export const FAN = { width: NODE.width, height: 58 } as const;
export const framePad = 14;

/** A picture that is still moved about: its edges are between boxes. */
interface Part {
  readonly width: number;
  readonly height: number;
  readonly nodes: DrawnNode[];
  readonly fans: DrawnFan[];
  readonly frames: Box[];
  readonly edges: { readonly a: Box; readonly b: Box; readonly ghost: boolean }[];
  readonly leaves: Leaf[];
}
interface Between {
  readonly from: string;
  readonly to: string;
  readonly ghost: boolean;
}

export function pictureOf(run: Run, opened: Opened, direction: Direction): Picture {
  const { edges, ...rest } = drawRun(run, opened, direction, "", null);
  return {
    ...rest,
    edges: edges.map(({ a, b, ghost }) => ({ from: a.id, to: b.id, d: curve(a, b, direction), ghost })),
  };
}

/** `own`: the id of the run's own node, where it is drawn inside of another. */
function drawRun(run: Run, opened: Opened, direction: Direction, path: string, own: string | null): Part {
  const { nodes, edges } = withExpected(run.graph, run.expected);
  const root = nodes[0]?.id;
  const idOf = (id: string): string => (own !== null && id === root ? own : path + id);
  const fans = new Map<string, { fan: Fan; id: string }>();
  for (const fan of fansOf(nodes, edges))
    for (const { id } of fan.members) fans.set(id, { fan, id: `${path}fan ${fan.key}` });
  /** What stands for a node among the rest: its fan, or itself. */
  const unitOf = (id: string): string => fans.get(id)?.id ?? idOf(id);
  const parts = new Map<string, Part>();
  const ghosts = new Set<string>();
  for (const node of nodes) {
    const unit = unitOf(node.id);
    if (node.ghost) ghosts.add(unit);
    if (parts.has(unit)) continue;
    const { fan } = fans.get(node.id) ?? {};
    if (fan !== undefined) parts.set(unit, drawFan(fan, unit, idOf, opened, direction));
    // A run is drawn around its own node, which would otherwise be drawn around itself.
    else parts.set(unit, drawNode(node, unit, unit === own ? null : opened, direction, []));
  }
  const between = new Map<string, Between>();
  for (const edge of edges) {
    const [from, to] = [unitOf(edge.from), unitOf(edge.to)];
    if (from !== to) between.set(`${from}\n${to}`, { from, to, ghost: ghosts.has(to) });
  }
  return assembled(parts, [...between.values()], direction);
}

function drawNode(
  node: GraphNode,
  id: string,
  opened: Opened | null,
  direction: Direction,
  fans: readonly string[],
): Part {
  const inner = opened?.runs.get(id);
  if (opened === null || inner === undefined)
    return {
      ...empty(NODE.width, NODE.height),
      nodes: [{ id, node, x: 0, y: 0, width: NODE.width, height: NODE.height }],
      leaves: [{ id, node, fans }],
    };
  const run = drawRun(inner, opened, direction, `${id}/`, id);
  const framed = empty(run.width + 2 * framePad, run.height + 2 * framePad);
  framed.frames.push({ id, x: 0, y: 0, width: framed.width, height: framed.height });
  const leaves = run.leaves.map((leaf) => ({ ...leaf, fans: [...fans, ...leaf.fans] }));
  addMoved(framed, { ...run, leaves }, framePad, framePad);
  return framed;
}

function drawFan(
  fan: Fan,
  id: string,
  idOf: (id: string) => string,
  opened: Opened,
  direction: Direction,
): Part {
  const open = opened.fans.has(id);
  if (!open)
    return {
      ...empty(FAN.width, FAN.height),
      fans: [{ id, fan, open, x: 0, y: 0, width: FAN.width, height: FAN.height }],
      leaves: fan.members.map((node) => ({ id: idOf(node.id), node, fans: [id] })),
    };
  const parts = new Map(
    fan.members.map((node) => [idOf(node.id), drawNode(node, idOf(node.id), opened, direction, [id])]),
  );
  // About as wide as it is high.
  const column = Math.ceil(Math.sqrt(fan.members.length * (direction === "right" ? 2.5 : 0.6)));
  const inner = assembled(parts, [], direction, { column, along: NODE.across });
  const framed = empty(
    Math.max(inner.width, FAN.width) + 2 * framePad,
    inner.height + FAN.height + 3 * framePad,
  );
  framed.fans.push({ id, fan, open, x: 0, y: 0, width: framed.width, height: framed.height });
  addMoved(framed, inner, framePad, FAN.height + 2 * framePad);
  return framed;
}

/** Parts, each as large as it is, in layers. */
function assembled(
  parts: ReadonlyMap<string, Part>,
  edges: readonly Between[],
  direction: Direction,
  options: LayoutOptions = {},
): Part {
  const boxes = [...parts].map(([id, { width, height }]) => ({ id, width, height }));
  const placed = layout(boxes, edges, direction, options);
  const whole = empty(placed.width, placed.height);
  const at = new Map<string, Box>();
  for (const box of boxes) {
    const { x, y } = placed.at.get(box.id) ?? { x: 0, y: 0 };
    at.set(box.id, { ...box, x, y });
    addMoved(whole, parts.get(box.id) as Part, x, y);
  }
  for (const { from, to, ghost } of edges) {
    const [a, b] = [at.get(from), at.get(to)];
    if (a !== undefined && b !== undefined) whole.edges.push({ a, b, ghost });
  }
  return whole;
}

function addMoved(whole: Part, part: Part, x: number, y: number): void {
  const shift = <T extends Box>(box: T): T => ({ ...box, x: box.x + x, y: box.y + y });
  for (const node of part.nodes) whole.nodes.push(shift(node));
  for (const fan of part.fans) whole.fans.push(shift(fan));
  for (const frame of part.frames) whole.frames.push(shift(frame));
  for (const { a, b, ghost } of part.edges) whole.edges.push({ a: shift(a), b: shift(b), ghost });
  for (const leaf of part.leaves) whole.leaves.push(leaf);
}

function curve(a: Box, b: Box, direction: Direction): string {
  if (direction === "down") {
    const [x1, y1] = [a.x + a.width / 2, a.y + a.height];
    const x2 = b.x + b.width / 2;
    const bend = Math.max(24, (b.y - y1) / 2);
    return `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${b.y - bend} ${x2} ${b.y}`;
  }
  const [x1, y1] = [a.x + a.width, a.y + a.height / 2];
  const y2 = b.y + b.height / 2;
  const bend = Math.max(24, (b.x - x1) / 2);
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${b.x - bend} ${y2} ${b.x} ${y2}`;
}

function empty(width: number, height: number): Part {
  return { width, height, nodes: [], fans: [], frames: [], edges: [], leaves: [] };
}
