// A run's graph as it is drawn: closed fan-outs as one node, open ones and called runs in frames, nested. The contents
// of a frame are placed first, then the frame as one large node. Long graphs wrap into lines. Pure. Not here: layers
// (graph-layout.ts), fan-outs (graph-fan-outs.ts).
import type { WorkflowHistory, WorkflowNode } from "../../../src/dashboard/api/contract.ts";
import { type Direction, layout, type LayoutOptions, NODE, TURN } from "./graph-layout.ts";
import { type Fan, fansOf } from "./graph-fan-outs.ts";

export type Graph = WorkflowHistory["graph"];

/** Ids are paths: `run/step`. */
export interface Box {
  readonly id: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}
export interface DrawnNode extends Box {
  readonly node: WorkflowNode;
}
/** `open`: the box is a frame with a head above its members. */
export interface DrawnFan extends Box {
  readonly fan: Fan;
  readonly open: boolean;
}
export interface DrawnEdge {
  readonly from: string;
  readonly to: string;
  readonly d: string;
}
/** A searchable node, with the fan-outs that must be open to show it. */
export interface Leaf {
  readonly id: string;
  readonly node: WorkflowNode;
  readonly fans: readonly string[];
}
export interface Picture {
  readonly width: number;
  readonly height: number;
  readonly nodes: readonly DrawnNode[];
  readonly fans: readonly DrawnFan[];
  /** Frames of called runs. */
  readonly frames: readonly Box[];
  readonly edges: readonly DrawnEdge[];
  readonly leaves: readonly Leaf[];
}

export interface Opened {
  /** Ids of open fan-outs. */
  readonly fans: ReadonlySet<string>;
  /** Graphs of called runs by node id. */
  readonly runs: ReadonlyMap<string, Graph>;
}

export const FAN = { width: NODE.width, height: 58 } as const;
export const framePad = 14;
/** Radius of a corner. */
const bend = 8;

/** A picture under construction: edges refer to boxes. */
interface Part {
  readonly width: number;
  readonly height: number;
  readonly nodes: DrawnNode[];
  readonly fans: DrawnFan[];
  readonly frames: Box[];
  readonly edges: Edge[];
  readonly leaves: Leaf[];
}
/** `turn`: the position at which an edge to a later line turns. */
interface Edge {
  readonly a: Box;
  readonly b: Box;
  readonly turn: { readonly x: number; readonly y: number } | null;
}
/** Parameters shared by all parts. */
interface Way {
  readonly opened: Opened;
  readonly direction: Direction;
  readonly room: number;
}
interface Between {
  readonly from: string;
  readonly to: string;
}

/** `room`: the length of a line; default: one line. */
export function pictureOf(graph: Graph, opened: Opened, direction: Direction, room = Infinity): Picture {
  const { edges, ...rest } = drawRun(graph, { opened, direction, room }, "", null);
  return {
    ...rest,
    edges: edges.map((edge) => ({
      from: edge.a.id,
      to: edge.b.id,
      d:
        edge.turn === null ? curve(edge.a, edge.b, direction) : turning(edge.a, edge.b, edge.turn, direction),
    })),
  };
}

/** `own`: the id of the run's own node inside another run. */
function drawRun({ nodes, edges }: Graph, way: Way, path: string, own: string | null): Part {
  const root = nodes[0]?.id;
  const idOf = (id: string): string => (own !== null && id === root ? own : path + id);
  const fans = new Map<string, { fan: Fan; id: string }>();
  for (const fan of fansOf(nodes, edges))
    for (const { id } of fan.members) fans.set(id, { fan, id: `${path}fan ${fan.key}` });
  /** The unit of a node: its fan-out, or itself. */
  const unitOf = (id: string): string => fans.get(id)?.id ?? idOf(id);
  const parts = new Map<string, Part>();
  for (const node of nodes) {
    const unit = unitOf(node.id);
    if (parts.has(unit)) continue;
    const { fan } = fans.get(node.id) ?? {};
    if (fan !== undefined) parts.set(unit, drawFan(fan, unit, idOf, way));
    // A run is not drawn around its own node again.
    else parts.set(unit, drawNode(node, unit, unit === own ? null : way, []));
  }
  const between = new Map<string, Between>();
  for (const edge of edges) {
    const [from, to] = [unitOf(edge.from), unitOf(edge.to)];
    if (from !== to) between.set(`${from}\n${to}`, { from, to });
  }
  return assembled(parts, [...between.values()], way.direction, { room: way.room });
}

function drawNode(node: WorkflowNode, id: string, way: Way | null, fans: readonly string[]): Part {
  const inner = way?.opened.runs.get(id);
  if (way === null || inner === undefined)
    return {
      ...empty(NODE.width, NODE.height),
      nodes: [{ id, node, x: 0, y: 0, width: NODE.width, height: NODE.height }],
      leaves: [{ id, node, fans }],
    };
  const run = drawRun(inner, way, `${id}/`, id);
  const framed = empty(run.width + 2 * framePad, run.height + 2 * framePad);
  framed.frames.push({ id, x: 0, y: 0, width: framed.width, height: framed.height });
  const leaves = run.leaves.map((leaf) => ({ ...leaf, fans: [...fans, ...leaf.fans] }));
  addMoved(framed, { ...run, leaves }, framePad, framePad);
  return framed;
}

function drawFan(fan: Fan, id: string, idOf: (id: string) => string, way: Way): Part {
  const { opened, direction } = way;
  const open = opened.fans.has(id);
  if (!open)
    return {
      ...empty(FAN.width, FAN.height),
      fans: [{ id, fan, open, x: 0, y: 0, width: FAN.width, height: FAN.height }],
      leaves: fan.members.map((node) => ({ id: idOf(node.id), node, fans: [id] })),
    };
  const parts = new Map(fan.members.map((node) => [idOf(node.id), drawNode(node, idOf(node.id), way, [id])]));
  // About square.
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

/** Places parts in layers. */
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
  for (const { from, to } of edges) {
    const [a, b] = [at.get(from), at.get(to)];
    if (a === undefined || b === undefined) continue;
    const [before, line] = [placed.at.get(from)?.line ?? 0, placed.at.get(to)?.line ?? 0];
    const turn = (placed.lines[line] ?? 0) - NODE.line / 2;
    whole.edges.push({ a, b, turn: line > before ? { x: turn, y: turn } : null });
  }
  return whole;
}

function addMoved(whole: Part, part: Part, x: number, y: number): void {
  const shift = <T extends Box>(box: T): T => ({ ...box, x: box.x + x, y: box.y + y });
  for (const node of part.nodes) whole.nodes.push(shift(node));
  for (const fan of part.fans) whole.fans.push(shift(fan));
  for (const frame of part.frames) whole.frames.push(shift(frame));
  for (const { a, b, turn } of part.edges)
    whole.edges.push({
      a: shift(a),
      b: shift(b),
      turn: turn === null ? null : { x: turn.x + x, y: turn.y + y },
    });
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

/** From the end of one line, between the lines, to the start of a later line. */
function turning(a: Box, b: Box, turn: { x: number; y: number }, direction: Direction): string {
  const right = direction === "right";
  // Along the line, then across it.
  const [end, from] = right ? [a.x + a.width, a.y + a.height / 2] : [a.y + a.height, a.x + a.width / 2];
  const [begin, to] = right ? [b.x, b.y + b.height / 2] : [b.y, b.x + b.width / 2];
  const [out, into, between] = [end + TURN - 6, begin - TURN + 6, right ? turn.y : turn.x];
  const at = (along: number, across: number): string => (right ? `${along} ${across}` : `${across} ${along}`);
  const corner = (along: number, across: number, before: string, after: string): string =>
    `L${before}Q${at(along, across)} ${after}`;
  return [
    `M${at(end, from)}`,
    corner(out, from, at(out - bend, from), at(out, from + bend)),
    corner(out, between, at(out, between - bend), at(out - bend, between)),
    corner(into, between, at(into + bend, between), at(into, between + bend)),
    corner(into, to, at(into, to - bend), at(into + bend, to)),
    `L${at(begin, to)}`,
  ].join("");
}

function empty(width: number, height: number): Part {
  return { width, height, nodes: [], fans: [], frames: [], edges: [], leaves: [] };
}
