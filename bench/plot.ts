/** The plot of the README: bars of the main figures, median with the range of the rounds. An SVG by hand. */
import { format } from "./report.ts";
import { type Results, type Summary, summary, type SystemNote } from "./results.ts";

interface Panel {
  readonly title: string;
  readonly figure: string;
  readonly unit: string;
  readonly better: "more" | "less";
  readonly stores: (store: SystemNote["store"]) => boolean;
}

interface Bar {
  readonly system: SystemNote;
  readonly value: Summary;
}

const sqlite = (store: SystemNote["store"]): boolean => store === "sqlite";
const servers = (store: SystemNote["store"]): boolean => store !== "sqlite";

const panels: readonly Panel[] = [
  {
    title: "Drain, Postgres and Redis",
    figure: "drain",
    unit: "jobs/s, one process",
    better: "more",
    stores: servers,
  },
  { title: "Drain, SQLite", figure: "drain", unit: "jobs/s, one process", better: "more", stores: sqlite },
  {
    title: "Enqueue, Postgres and Redis",
    figure: "one100",
    unit: "jobs/s, 100 calls in flight",
    better: "more",
    stores: servers,
  },
  {
    title: "Enqueue, SQLite",
    figure: "one100",
    unit: "jobs/s, 100 calls in flight",
    better: "more",
    stores: sqlite,
  },
  {
    title: "Pick-up latency, Postgres and Redis",
    figure: "p50",
    unit: "ms from enqueue to start, idle worker, median",
    better: "less",
    stores: servers,
  },
  {
    title: "Pick-up latency, SQLite",
    figure: "p50",
    unit: "ms from enqueue to start, idle worker, median",
    better: "less",
    stores: sqlite,
  },
];

const panelWidth = 470;
const gap = 28;
const labelWidth = 176;
const valueWidth = 64;
const rowHeight = 21;
const barHeight = 13;
const headHeight = 46;

const style = `
  text { font: 12px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328 }
  .title { font-size: 14px; font-weight: 600 }
  .unit, .note { font-size: 11px; fill: #59636e }
  .ours-label { font-weight: 600 }
  .axis { stroke: #d1d9e0 }
  .ours { fill: #0a7d6c }
  .peer { fill: #a9b4c0 }
  .limit { fill: none; stroke: #a9b4c0; stroke-dasharray: 3 2 }
  .range { stroke: #1f2328; stroke-opacity: .55 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .unit, .note { fill: #9198a1 }
    .axis { stroke: #3d444d }
    .ours { fill: #2fbfa7 }
    .peer { fill: #59636e }
    .limit { stroke: #767f89 }
    .range { stroke: #e6edf3 }
  }`;

const escape = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

function barsOf(results: Results, { figure, stores, better }: Panel): Bar[] {
  const bars = results.systems.flatMap((system) => {
    // One INSERT for each call is no limit of enqueuing: calls that share a statement go beyond it.
    if (system.role === "limit" && figure !== "drain") return [];
    const value = stores(system.store) ? summary(results, system.id, figure) : undefined;
    return value === undefined ? [] : [{ system, value }];
  });
  return bars.toSorted((a, b) =>
    better === "more" ? b.value.median - a.value.median : a.value.median - b.value.median,
  );
}

/** "Holdfast, SQLite FULL" in the SQLite panel is "Holdfast, FULL". */
function label({ title }: SystemNote, panel: Panel): string {
  if (panel.stores === sqlite) return title.replace("SQLite ", "");
  return title.replace(/^(Holdfast|raw SQL loop), Postgres$/, "$1");
}

function drawPanel(panel: Panel, bars: readonly Bar[], x: number, y: number): string {
  const room = panelWidth - labelWidth - valueWidth;
  // A whisker or a slow poller must not press the others flat: the scale ends at the greatest median, or at
  // 20 × the least for latencies, where the bar is cut and the number tells.
  const medians = bars.map(({ value }) => value.median);
  const top =
    panel.better === "more"
      ? Math.max(...medians)
      : Math.min(Math.max(...medians), 20 * Math.min(...medians));
  const scale = (value: number): number => Math.max(1, (Math.min(value, top) / top) * room);
  const left = x + labelWidth;
  const parts = [
    `<text class="title" x="${x}" y="${y + 14}">${escape(panel.title)}</text>`,
    `<text class="unit" x="${x}" y="${y + 31}">${escape(panel.unit)}, ${panel.better} is better</text>`,
    `<line class="axis" x1="${left}" x2="${left}" y1="${y + headHeight - 5}" y2="${y + headHeight + bars.length * rowHeight}"/>`,
  ];
  bars.forEach(({ system, value }, index) => {
    const rowY = y + headHeight + index * rowHeight;
    const middle = rowY + barHeight / 2;
    const width = scale(value.median);
    const cut = value.median > top * 1.001;
    const kind = system.role === "ours" ? "ours" : system.role;
    const weight = system.role === "ours" ? ' class="ours-label"' : "";
    parts.push(
      `<text${weight} x="${left - 8}" y="${rowY + 11}" text-anchor="end">${escape(label(system, panel))}</text>`,
      `<rect class="${kind}" x="${left}" y="${rowY}" width="${width.toFixed(1)}" height="${barHeight}" rx="2"/>`,
    );
    const from = left + scale(value.min);
    const to = left + scale(value.max);
    if (value.rounds > 1 && !cut) {
      parts.push(
        `<line class="range" x1="${from.toFixed(1)}" x2="${to.toFixed(1)}" y1="${middle}" y2="${middle}"/>`,
      );
    }
    const end = Math.max(left + width, value.rounds > 1 && !cut ? to : 0);
    parts.push(
      `<text${weight} x="${(end + 6).toFixed(1)}" y="${rowY + 11}">${format(value.median)}${cut ? " …" : ""}</text>`,
    );
  });
  return parts.join("\n");
}

/** A row for each figure, with the servers on the left and SQLite on the right. */
export function plot(results: Results): string {
  const drawn = panels
    .map((panel) => ({ panel, bars: barsOf(results, panel) }))
    .filter(({ bars }) => bars.length > 0);
  const columns = [servers, sqlite].filter((stores) => drawn.some(({ panel }) => panel.stores === stores));
  const parts: string[] = [];
  let y = 16;
  for (const figure of new Set(drawn.map(({ panel }) => panel.figure))) {
    const row = drawn.filter(({ panel }) => panel.figure === figure);
    for (const { panel, bars } of row) {
      parts.push(drawPanel(panel, bars, 16 + columns.indexOf(panel.stores) * (panelWidth + gap), y));
    }
    y += headHeight + Math.max(...row.map(({ bars }) => bars.length)) * rowHeight + 22;
  }
  const { machine, versions, rounds, startedAt } = results;
  const note = [
    `${startedAt.slice(0, 10)}, ${machine["cores"]} cores, Node ${String(machine["node"]).slice(1)}, Postgres ${versions["postgres"] ?? "–"}, fsync on.`,
    `Median of ${rounds} interleaved round${rounds === 1 ? "" : "s"}; lines show the range. Dashed: a bare loop of SQL, the limit.`,
  ];
  const width = 32 + columns.length * panelWidth + (columns.length - 1) * gap;
  const height = y + 30;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="Benchmark of Holdfast and its peers">
<style>${style}
</style>
${parts.join("\n")}
${note.map((line, index) => `<text class="note" x="16" y="${y + index * 16}">${escape(line)}</text>`).join("\n")}
</svg>
`;
}
