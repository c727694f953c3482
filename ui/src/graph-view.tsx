// A workflow's graph. The steps' table beside it says the same; here arrow keys go along the edges.
import { useMemo } from "preact/hooks";
import type { FlowHistory } from "../../src/dashboard/contract.ts";
import { layout, NODE } from "./graph.ts";
import { go } from "./router.ts";

function shortLabel(label: string): string {
  return label.length > 20 ? `${label.slice(0, 19)}…` : label;
}

export function GraphView({ graph }: { graph: FlowHistory["graph"] }) {
  const placed = useMemo(() => layout(graph.nodes, graph.edges), [graph]);
  const edges = useMemo(
    () =>
      graph.edges.flatMap(({ from, to }) => {
        const a = placed.at.get(from);
        const b = placed.at.get(to);
        if (a === undefined || b === undefined) return [];
        const x1 = a.x + NODE.width;
        const y1 = a.y + NODE.height / 2;
        const y2 = b.y + NODE.height / 2;
        const bend = Math.max(24, (b.x - x1) / 2);
        return [`M${x1} ${y1}C${x1 + bend} ${y1} ${b.x - bend} ${y2} ${b.x} ${y2}`];
      }),
    [graph, placed],
  );
  const follow = (id: string, key: string): void => {
    const next =
      key === "ArrowRight"
        ? graph.edges.find(({ from }) => from === id)?.to
        : key === "ArrowLeft"
          ? graph.edges.find(({ to }) => to === id)?.from
          : undefined;
    if (next !== undefined) document.getElementById(`node-${next}`)?.focus();
  };
  return (
    <div class="graph" tabIndex={0} role="group" aria-label="Workflow graph">
      <svg
        width={placed.width + 4}
        height={placed.height + 4}
        viewBox={`-2 -2 ${placed.width + 4} ${placed.height + 4}`}
      >
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
              tabIndex={0}
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
  );
}
