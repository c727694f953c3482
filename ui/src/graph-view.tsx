// A workflow's graph. The steps' table beside it says the same; here arrow keys go along the edges, + and − make it larger and
// smaller, 0 shows all of it. Where it is larger than its frame, a small picture shows which part is seen.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { FlowHistory } from "../../src/dashboard/contract.ts";
import { type Direction, layout, type Layout, NODE } from "./graph.ts";
import { Icon } from "./icons.tsx";
import { go } from "./router.ts";

type Graph = FlowHistory["graph"];

const zooms = { least: 0.25, most: 2, step: 1.25 } as const;
/** From so many steps on, one can be looked for. */
const manySteps = 12;
const map = { width: 168, height: 96 } as const;

function shortLabel(label: string): string {
  return label.length > 20 ? `${label.slice(0, 19)}…` : label;
}

export function GraphView({ graph }: { graph: Graph }) {
  const direction = useSignal<Direction>("right");
  const zoom = useSignal(1);
  const following = useSignal(false);
  const frame = useRef<HTMLDivElement>(null);
  const placed = useMemo(() => layout(graph.nodes, graph.edges, direction.value), [graph, direction.value]);
  const edges = useMemo(() => edgesOf(graph, placed, direction.value), [graph, placed]);
  const [width, height] = [placed.width + 4, placed.height + 4];
  const resize = (to: number): void => void (zoom.value = Math.max(zooms.least, Math.min(zooms.most, to)));
  const fit = (): void => {
    const box = frame.current;
    if (box !== null) resize(Math.min(1, (box.clientWidth - 32) / width, (box.clientHeight - 32) / height));
  };
  const show = (id: string | undefined, focus: boolean): void => {
    const node = id === undefined ? null : document.getElementById(`node-${id}`);
    node?.scrollIntoView({ block: "center", inline: "center" });
    if (focus) node?.focus({ preventScroll: true });
  };
  const running = graph.nodes.find(({ state }) => state === "running")?.id;
  useEffect(() => {
    if (following.value) show(running, false);
  }, [running, following.value]);
  const follow = (id: string, key: string): void => {
    const forth = direction.value === "right" ? "ArrowRight" : "ArrowDown";
    const back = direction.value === "right" ? "ArrowLeft" : "ArrowUp";
    if (key === forth) show(graph.edges.find(({ from }) => from === id)?.to, true);
    else if (key === back) show(graph.edges.find(({ to }) => to === id)?.from, true);
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
        <button type="button" class="button small" onClick={() => (direction.value = turned)}>
          {turned === "down" ? "Top to bottom" : "Left to right"}
        </button>
        <label class="check small">
          <input
            type="checkbox"
            checked={following.value}
            onChange={(event) => (following.value = event.currentTarget.checked)}
          />
          Follow what runs
        </label>
        {graph.nodes.length >= manySteps && <Find graph={graph} found={(id) => show(id, true)} />}
      </div>
      <div
        class="graph"
        tabIndex={0}
        role="group"
        aria-label="Workflow graph. Plus and minus change its size, 0 shows all of it."
        ref={frame}
        onKeyDown={keyDown}
      >
        <svg width={width * zoom.value} height={height * zoom.value} viewBox={`-2 -2 ${width} ${height}`}>
          {edges.map((d) => (
            <path key={d} class="edge" d={d} />
          ))}
          {graph.nodes.map((node) => {
            const at = placed.at.get(node.id);
            if (at === undefined) return null;
            const open = (): void => {
              if (node.jobId !== null) go(`/jobs/${node.jobId}`);
            };
            return (
              <g
                key={node.id}
                id={`node-${node.id}`}
                class={`node ${node.state ?? "gone"}`}
                transform={`translate(${at.x} ${at.y})`}
                tabindex={0}
                role={node.jobId === null ? "img" : "link"}
                {...(node.jobId === null ? { "aria-label": `${node.label}: ${node.state ?? "gone"}` } : {})}
                onClick={open}
                onKeyDown={(event) => {
                  if (event.key === "Enter") open();
                  else follow(node.id, event.key);
                }}
              >
                <rect width={NODE.width} height={NODE.height} rx="8" />
                <circle class="mark" cx="16" cy="16" r="4.5" />
                <text x="28" y="20">
                  {shortLabel(node.label)}
                </text>
                <text class="kind" x="28" y="35">
                  {node.kind} · {node.state ?? "gone"}
                </text>
              </g>
            );
          })}
        </svg>
      </div>
      <Minimap graph={graph} placed={placed} zoom={zoom.value} frame={frame} />
    </div>
  );
}

function edgesOf(graph: Graph, placed: Layout, direction: Direction): string[] {
  return graph.edges.flatMap(({ from, to }) => {
    const a = placed.at.get(from);
    const b = placed.at.get(to);
    if (a === undefined || b === undefined) return [];
    if (direction === "down") {
      const [x1, y1] = [a.x + NODE.width / 2, a.y + NODE.height];
      const x2 = b.x + NODE.width / 2;
      const bend = Math.max(24, (b.y - y1) / 2);
      return [`M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${b.y - bend} ${x2} ${b.y}`];
    }
    const [x1, y1] = [a.x + NODE.width, a.y + NODE.height / 2];
    const y2 = b.y + NODE.height / 2;
    const bend = Math.max(24, (b.x - x1) / 2);
    return [`M${x1} ${y1}C${x1 + bend} ${y1} ${b.x - bend} ${y2} ${b.x} ${y2}`];
  });
}

/** Goes to the next step whose name has these letters. */
function Find({ graph, found }: { graph: Graph; found: (id: string) => void }) {
  const words = useSignal("");
  const last = useSignal<string | null>(null);
  const none = useSignal(false);
  const find = (): void => {
    const wanted = words.value.trim().toLowerCase();
    const fitting = graph.nodes.filter(({ label }) => label.toLowerCase().includes(wanted));
    const next =
      fitting[(fitting.findIndex(({ id }) => id === last.value) + 1) % Math.max(1, fitting.length)];
    none.value = wanted === "" || next === undefined;
    if (wanted === "" || next === undefined) return;
    last.value = next.id;
    found(next.id);
  };
  return (
    <form
      class="row tight"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        find();
      }}
    >
      <input
        type="search"
        aria-label="Find a step"
        placeholder="Find a step"
        value={words.value}
        onInput={(event) => (words.value = event.currentTarget.value)}
      />
      <button type="submit" class="button small" aria-label="Go to the next step with this name">
        <Icon name="search" size={14} />
      </button>
      <span class="small muted" role="status">
        {none.value ? "No such step" : ""}
      </span>
    </form>
  );
}

/** Which part of the graph is seen. For the eye and the mouse: by the keyboard one goes from step to step. */
function Minimap({
  graph,
  placed,
  zoom,
  frame,
}: {
  graph: Graph;
  placed: Layout;
  zoom: number;
  frame: { readonly current: HTMLDivElement | null };
}) {
  const seen = useSignal<{ x: number; y: number; width: number; height: number } | null>(null);
  useEffect(() => {
    const box = frame.current;
    if (box === null) return undefined;
    const look = (): void => {
      const whole = box.scrollWidth <= box.clientWidth + 1 && box.scrollHeight <= box.clientHeight + 1;
      seen.value = whole
        ? null
        : {
            x: box.scrollLeft / zoom,
            y: box.scrollTop / zoom,
            width: box.clientWidth / zoom,
            height: box.clientHeight / zoom,
          };
    };
    const resized = new ResizeObserver(look);
    resized.observe(box);
    box.addEventListener("scroll", look);
    look();
    return () => {
      resized.disconnect();
      box.removeEventListener("scroll", look);
    };
  }, [placed, zoom]);
  const part = seen.value;
  if (part === null) return null;
  const scale = Math.min(map.width / placed.width, map.height / placed.height);
  const to = (event: PointerEvent): void => {
    const box = frame.current;
    const picture = (event.currentTarget as Element).getBoundingClientRect();
    if (box === null) return;
    box.scrollTo({
      left: ((event.clientX - picture.left) / scale - part.width / 2) * zoom,
      top: ((event.clientY - picture.top) / scale - part.height / 2) * zoom,
    });
  };
  return (
    <svg
      class="minimap"
      aria-hidden="true"
      width={placed.width * scale}
      height={placed.height * scale}
      viewBox={`0 0 ${placed.width} ${placed.height}`}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        to(event);
      }}
      onPointerMove={(event) => {
        if (event.buttons === 1) to(event);
      }}
    >
      {graph.nodes.map((node) => {
        const at = placed.at.get(node.id);
        return (
          at !== undefined && (
            <rect
              key={node.id}
              class={`node ${node.state ?? "gone"}`}
              x={at.x}
              y={at.y}
              width={NODE.width}
              height={NODE.height}
            />
          )
        );
      })}
      <rect class="seen" x={part.x} y={part.y} width={part.width} height={part.height} />
    </svg>
  );
}
