// Layered layout of a directed graph: layers by longest path, order within a layer by the median of the neighbours, over
// a few sweeps. Linear in nodes and edges: 1,000 nodes take a few milliseconds (dagre took 7 s). Long graphs wrap into
// lines. Pure.
/** Default size: NODE. */
export interface LayoutNode {
  readonly id: string;
  readonly width?: number;
  readonly height?: number;
}
export interface LayoutEdge {
  readonly from: string;
  readonly to: string;
}
export interface Layout {
  readonly width: number;
  readonly height: number;
  /** `line`: the index of its line. */
  readonly at: ReadonlyMap<
    string,
    { readonly x: number; readonly y: number; readonly layer: number; readonly line: number }
  >;
  /** Start of each line across the direction. */
  readonly lines: readonly number[];
}

/** The direction of time. */
export type Direction = "right" | "down";

/** Gaps: `along` between layers, `across` within a layer, `line` between lines. */
export const NODE = { width: 168, height: 44, along: 56, across: 18, line: 36 } as const;
const sweeps = 6;

/** `column`: a layer with more nodes wraps into further columns. `room`: the length of a line; a longer graph wraps. */
export interface LayoutOptions {
  readonly column?: number;
  readonly along?: number;
  readonly room?: number;
}

/** Shorter graphs stay in one line. */
const manyLayers = 8;
/** With more lines than this, lines become longer than the room. */
const mostLines = 24;
/** Room beside the lines for edges that wrap. */
export const TURN = 24;

export function layout(
  nodes: readonly LayoutNode[],
  edges: readonly LayoutEdge[],
  direction: Direction = "right",
  { column = 24, along = NODE.along, room = Infinity }: LayoutOptions = {},
): Layout {
  const { out, into } = neighboursOf(nodes, edges);
  const layerOf = layersOf(out, into);
  const layers: number[][] = [];
  for (const [node, layer] of layerOf.entries()) (layers[layer] ??= []).push(node);
  order(layers, layerOf, out, into);
  return place(nodes, layers, direction, { column, along, room });
}

/** Edges by index; edges to missing nodes or to themselves are ignored. */
export interface Neighbours {
  readonly out: readonly number[][];
  readonly into: readonly number[][];
}

export function neighboursOf(
  nodes: readonly { readonly id: string }[],
  edges: readonly LayoutEdge[],
): Neighbours {
  const index = new Map(nodes.map(({ id }, i) => [id, i]));
  const out: number[][] = nodes.map(() => []);
  const into: number[][] = nodes.map(() => []);
  for (const { from, to } of edges) {
    const a = index.get(from);
    const b = index.get(to);
    if (a === undefined || b === undefined || a === b) continue;
    out[a]?.push(b);
    into[b]?.push(a);
  }
  return { out, into };
}

/** Longest path from a source; edges that close a cycle are ignored. */
export function layersOf(out: readonly number[][], into: readonly number[][]): number[] {
  const layer = out.map(() => 0);
  const left = into.map((from) => from.length);
  const done = out.map(() => false);
  let queue = left.flatMap((n, i) => (n === 0 ? [i] : []));
  let seen = 0;
  while (seen < out.length) {
    if (queue.length === 0) {
      const next = done.findIndex((is) => !is);
      if (next === -1) break;
      queue = [next];
    }
    for (let head = 0; head < queue.length; head += 1) {
      const node = queue[head] as number;
      if (done[node] === true) continue;
      done[node] = true;
      seen += 1;
      for (const next of out[node] ?? []) {
        if (done[next] === true) continue;
        layer[next] = Math.max(layer[next] ?? 0, (layer[node] ?? 0) + 1);
        left[next] = (left[next] ?? 0) - 1;
        if (left[next] === 0) queue.push(next);
      }
    }
    queue = [];
  }
  return layer;
}

function order(
  layers: number[][],
  layerOf: readonly number[],
  out: readonly number[][],
  into: readonly number[][],
): void {
  const position = new Float64Array(layerOf.length);
  const settle = (layer: readonly number[]): void => {
    for (const [i, node] of layer.entries()) position[node] = i / Math.max(1, layer.length);
  };
  for (const layer of layers) settle(layer);
  for (let sweep = 0; sweep < sweeps; sweep += 1) {
    const down = sweep % 2 === 0;
    for (let i = 0; i < layers.length; i += 1) {
      const layer = layers[down ? i : layers.length - 1 - i] ?? [];
      const neighbours = down ? into : out;
      const weight = new Map(
        layer.map((node) => {
          const others = neighbours[node] ?? [];
          if (others.length === 0) return [node, position[node] ?? 0];
          return [node, others.reduce((sum, other) => sum + (position[other] ?? 0), 0) / others.length];
        }),
      );
      layer.sort((a, b) => (weight.get(a) ?? 0) - (weight.get(b) ?? 0) || a - b);
      settle(layer);
    }
  }
}

function place(
  nodes: readonly LayoutNode[],
  layers: readonly number[][],
  direction: Direction,
  { column: most, along: gap, room }: Required<LayoutOptions>,
): Layout {
  const right = direction === "right";
  const size = (node: number): { along: number; across: number } => {
    const { width = NODE.width, height = NODE.height } = nodes[node] ?? {};
    return right ? { along: width, across: height } : { along: height, across: width };
  };
  const columns = layers.flatMap((layer, depth) => {
    const rows = Math.ceil(layer.length / Math.max(1, Math.ceil(layer.length / most)));
    const parts: Column[] = [];
    for (let from = 0; from < layer.length; from += rows) {
      const part = layer.slice(from, from + rows);
      const across = part.reduce((sum, node) => sum + size(node).across + NODE.across, -NODE.across);
      parts.push({ depth, nodes: part, across, along: Math.max(...part.map((node) => size(node).along)) });
    }
    return parts;
  });
  const lines = linesOf(columns, gap, layers.length < manyLayers ? Infinity : room);
  const pad = lines.length > 1 ? TURN : 0;
  const at = new Map<string, { x: number; y: number; layer: number; line: number }>();
  const starts: number[] = [];
  let [top, longest] = [0, 0];
  for (const [line, part] of lines.entries()) {
    const widest = part.reduce((found, { across }) => Math.max(found, across), 0);
    starts.push(top);
    let column = pad;
    for (const { depth, nodes: those, across, along } of part) {
      let row = top + (widest - across) / 2;
      for (const node of those) {
        at.set(nodes[node]?.id ?? "", {
          ...(right ? { x: column, y: row } : { x: row, y: column }),
          layer: depth,
          line,
        });
        row += size(node).across + NODE.across;
      }
      column += along + gap;
    }
    longest = Math.max(longest, column - gap + pad);
    top += widest + NODE.line;
  }
  const [length, breadth] = [Math.max(0, longest), Math.max(0, top - NODE.line)];
  return {
    at,
    lines: starts,
    ...(right ? { width: length, height: breadth } : { width: breadth, height: length }),
  };
}

interface Column {
  readonly depth: number;
  readonly nodes: readonly number[];
  readonly across: number;
  readonly along: number;
}

/** As many columns per line as fit; columns of one layer stay together. */
function linesOf(columns: readonly Column[], gap: number, room: number): Column[][] {
  const whole = columns.reduce((sum, { along }) => sum + along + gap, 0);
  const most = Math.max(room, whole / mostLines);
  const lines: Column[][] = [];
  let length = 0;
  for (const layer of byDepth(columns)) {
    const along = layer.reduce((sum, column) => sum + column.along + gap, 0);
    const line = lines.at(-1);
    if (line === undefined || length + along - gap > most) {
      lines.push([...layer]);
      length = along;
    } else {
      line.push(...layer);
      length += along;
    }
  }
  return lines;
}

function byDepth(columns: readonly Column[]): Column[][] {
  const layers: Column[][] = [];
  for (const column of columns) {
    const last = layers.at(-1);
    if (last?.[0]?.depth === column.depth) last.push(column);
    else layers.push([column]);
  }
  return layers;
}
