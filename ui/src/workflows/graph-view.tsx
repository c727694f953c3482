// A workflow's graph. Arrow keys follow edges, + and − zoom, 0 fits. Enter opens a fan-out or a step, Space a called
// run. A minimap shows the visible part of a large graph. The table of steps has the same content.
import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { WorkflowHistory } from "../../../src/dashboard/api/contract.ts";
import { type Direction, NODE, TURN } from "./graph-layout.ts";
import { GraphSearch } from "./graph-search.tsx";
import { Minimap } from "./graph-minimap.tsx";
import { elementId, FanNode, Frame, Node } from "./graph-nodes.tsx";
import { type Leaf, type Graph, type Picture, pictureOf } from "./graph-picture.ts";
import { OpenRunQueries, useOpenRuns } from "./graph-called-runs.tsx";
import { go } from "../data/router.ts";

const zooms = { least: 0.1, most: 2, step: 1.25 } as const;
/** As in graph.css: the frame's maximum height and its padding. */
const tallest = 560;
const framePadding = 16;
/** Line lengths, in frame lengths, tried when the graph is fitted. */
const lengths = [1, 1.5, 2, 2.5, 3, 4, 6] as const;
/** Graphs with fewer steps have no search. */
const manySteps = 12;

export function GraphView({
  graph,
  chosen,
  openStep,
}: {
  graph: WorkflowHistory["graph"];
  /** The sequence number of the chosen step, shared with the other views. */
  chosen: Signal<number | null>;
  openStep: (seq: number) => void;
}) {
  const direction = useSignal<Direction>("right");
  const zoom = useSignal(1);
  const following = useSignal(false);
  const fans = useSignal<ReadonlySet<string>>(new Set());
  const inner = useOpenRuns();
  const frame = useRef<HTMLDivElement>(null);
  const room = useRoom(frame, direction.value);
  /** The line length chosen by "fit"; null: the frame's length. */
  const chosenRoom = useSignal<number | null>(null);
  /** The node to reveal when the picture contains it. */
  const aim = useRef<{ id: string; focus: boolean } | null>(null);
  const open = inner.open.value;
  const loaded = inner.runs.value;
  const draw = useMemo(() => {
    const runs = new Map<string, Graph>();
    for (const [node, job] of open) {
      const run = loaded.get(job);
      if (run !== undefined) runs.set(node, run);
    }
    return (within: number): Picture => pictureOf(graph, { fans: fans.value, runs }, direction.value, within);
  }, [graph, fans.value, open, loaded, direction.value]);
  const within = chosenRoom.value ?? room.value;
  const picture = useMemo(() => draw(within), [draw, within]);
  const [width, height] = [picture.width + 4, picture.height + 4];

  const resize = (to: number): void => void (zoom.value = Math.max(zooms.least, Math.min(zooms.most, to)));
  /** Fits the graph with the line length that gives the largest scale. */
  const fit = (): void => {
    const box = frame.current;
    if (box === null) return;
    let best = { size: 0, room: room.value };
    for (const times of lengths) {
      const tried = draw(room.value * times);
      const [wide, high] = [box.clientWidth / (tried.width + 4), tallest / (tried.height + 4)];
      const spare = 1 - (2 * framePadding) / Math.min(box.clientWidth, tallest);
      const size = Math.min(1, wide * spare, high * spare);
      if (size > best.size) best = { size, room: room.value * times };
    }
    chosenRoom.value = best.room;
    resize(best.size);
  };
  const show = (id: string | undefined, focus: boolean): void => {
    const node = id === undefined ? null : document.getElementById(elementId(id));
    node?.scrollIntoView({ block: "center", inline: "center" });
    if (focus) node?.focus({ preventScroll: true });
  };
  useLayoutEffect(() => {
    if (aim.current !== null) show(aim.current.id, aim.current.focus);
    aim.current = null;
  }, [picture]);
  const reveal = (leaf: Leaf, focus: boolean): void => {
    if (leaf.fans.every((fan) => fans.value.has(fan))) return show(leaf.id, focus);
    aim.current = { id: leaf.id, focus };
    fans.value = new Set([...fans.value, ...leaf.fans]);
  };
  const toggleFan = (id: string): void => {
    const next = new Set(fans.value);
    if (!next.delete(id)) next.add(id);
    aim.current = { id, focus: true };
    fans.value = next;
  };
  const running = runningIn(picture);
  useEffect(() => {
    if (following.value && running !== undefined) reveal(running, false);
  }, [running?.id, following.value]);

  const along = (id: string) => (key: string) => {
    const [forth, back] =
      direction.value === "right" ? ["ArrowRight", "ArrowLeft"] : ["ArrowDown", "ArrowUp"];
    if (key === forth || key === back) show(neighbourOf(picture, id, key === forth), true);
  };
  const keyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "+" || event.key === "=") resize(zoom.value * zooms.step);
    else if (event.key === "-") resize(zoom.value / zooms.step);
    else if (event.key === "0") fit();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const turned: Direction = direction.value === "right" ? "down" : "right";
  return (
    <div class="graph-frame">
      <div class="row tight graph-bar">
        <button
          type="button"
          class="button small"
          aria-label="Smaller"
          onClick={() => resize(zoom.value / zooms.step)}
        >
          −
        </button>
        <output class="small muted" aria-label="Size">
          {Math.round(zoom.value * 100)} %
        </output>
        <button
          type="button"
          class="button small"
          aria-label="Larger"
          onClick={() => resize(zoom.value * zooms.step)}
        >
          +
        </button>
        <button type="button" class="button small" onClick={fit}>
          Show all
        </button>
        <button
          type="button"
          class="button small"
          onClick={() => {
            chosenRoom.value = null;
            direction.value = turned;
          }}
        >
          {turned === "down" ? "Top to bottom" : "Left to right"}
        </button>
        <label class="check small">
          <input
            type="checkbox"
            checked={following.value}
            onChange={(event) => (following.value = event.currentTarget.checked)}
          />
          Follow running steps
        </label>
        {picture.leaves.length >= manySteps && (
          <GraphSearch leaves={picture.leaves} found={(leaf) => reveal(leaf, true)} />
        )}
      </div>
      <div
        class="graph"
        tabIndex={0}
        role="group"
        aria-label="Workflow graph. Plus and minus zoom, 0 fits. Arrow keys follow edges, Enter opens a step or job, Space expands a job."
        ref={frame}
        onKeyDown={keyDown}
      >
        <svg width={width * zoom.value} height={height * zoom.value} viewBox={`-2 -2 ${width} ${height}`}>
          {picture.frames.map((box) => (
            <Frame key={`run ${box.id}`} box={box} kind="run" />
          ))}
          {picture.fans.map((fan) => fan.open && <Frame key={`in ${fan.id}`} box={fan} kind="fan" />)}
          {picture.edges.map(({ from, to, d }) => (
            <path key={`${from}\n${to}`} class="edge" d={d} />
          ))}
          {picture.fans.map((drawn) => (
            <FanNode
              key={drawn.id}
              drawn={drawn}
              toggle={() => toggleFan(drawn.id)}
              along={along(drawn.id)}
            />
          ))}
          {picture.nodes.map((drawn) => {
            const { jobId } = drawn.node;
            const job = open.get(drawn.id);
            // The inner run's own node takes the id of the node it replaces.
            const of = jobId ?? job ?? null;
            const { seq } = drawn.node;
            const owner = ownerOf(drawn.id, open);
            const press =
              of !== null
                ? () => go(`/jobs/${of}`)
                : seq === null
                  ? null
                  : owner === null
                    ? () => openStep(seq)
                    : () => go(`/jobs/${owner}?step=${seq}`);
            return (
              <Node
                key={drawn.id}
                drawn={jobId === of ? drawn : { ...drawn, node: { ...drawn.node, jobId: of } }}
                run={of === null ? null : job === undefined ? "closed" : loaded.has(of) ? "open" : "opening"}
                press={press}
                chosen={owner === null && seq !== null && seq === chosen.value}
                toggle={() => of !== null && inner.toggle(drawn.id, of)}
                along={along(drawn.id)}
              />
            );
          })}
        </svg>
      </div>
      <OpenRunQueries {...inner} />
      <Minimap picture={picture} zoom={zoom.value} frame={frame} />
    </div>
  );
}

/** The length of a line: as many steps as fit, at least two. */
function useRoom(
  frame: { readonly current: HTMLDivElement | null },
  direction: Direction,
): { readonly value: number } {
  const room = useSignal(Infinity);
  useLayoutEffect(() => {
    const box = frame.current;
    if (box === null) return undefined;
    const measure = (): void => {
      const each = (direction === "right" ? NODE.width : NODE.height) + NODE.along;
      const seen = direction === "right" ? box.clientWidth : tallest;
      const fitting = Math.floor((seen - 2 * (framePadding + TURN) + NODE.along) / each);
      room.value = Math.max(2, fitting) * each - NODE.along;
    };
    const resized = new ResizeObserver(measure);
    resized.observe(box);
    measure();
    return () => resized.disconnect();
  }, [direction]);
  return room;
}

/** The job of a called run's step; null: a step of this run. */
function ownerOf(id: string, open: ReadonlyMap<string, string>): string | null {
  let found: { node: string; job: string } | null = null;
  for (const [node, job] of open)
    if (id.startsWith(`${node}/`) && node.length >= (found?.node.length ?? 0)) found = { node, job };
  return found?.job ?? null;
}

/** Running inner nodes come before the run's own node. */
function runningIn({ leaves }: Picture): Leaf | undefined {
  const running = leaves.filter(({ node }) => node.state === "running");
  return running.find((leaf) => leaf !== leaves[0]) ?? running[0];
}

/** Along an edge of the node or of its fan-out. */
function neighbourOf({ edges, leaves }: Picture, id: string, forth: boolean): string | undefined {
  const fans = leaves.find((leaf) => leaf.id === id)?.fans ?? [];
  for (const one of [id, ...fans.toReversed()]) {
    const edge = edges.find(({ from, to }) => (forth ? from : to) === one);
    if (edge !== undefined) return forth ? edge.to : edge.from;
  }
  return undefined;
}
