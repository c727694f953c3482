// A line chart by uPlot, drawn anew when the theme changes and fed without being made anew. A sentence says the same to who
// cannot see it.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { clock, contrast, theme } from "./settings.ts";

export interface Line {
  readonly name: string;
  readonly values: readonly (number | null)[];
  readonly shown: (value: number) => string;
}

const colours = {
  light: ["#4f46e5", "#0b7fa8", "#b45309", "#c22430"],
  dark: ["#8b8dff", "#4cc2ea", "#f0b350", "#ff7b84"],
};

/** With more contrast: darker on white, lighter on black. */
const strong = {
  light: ["#1d12b8", "#00556f", "#7a3c00", "#9b0012"],
  dark: ["#c3c4ff", "#8fe3ff", "#ffd98c", "#ffb3b8"],
};

function isDark(): boolean {
  const chosen = theme.value === "dark" || theme.value === "light";
  return chosen ? theme.value === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

export function Chart({
  title,
  at,
  lines,
  empty,
  marks = [],
}: {
  title: string;
  at: readonly number[];
  lines: readonly Line[];
  /** Said where nothing was measured: a flat line explains nothing. */
  empty?: string;
  /** Instants with a word, such as deploys: lines across, and a sentence below. */
  marks?: readonly { readonly at: number; readonly text: string }[];
}) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const marked = useRef(marks);
  marked.current = marks;
  const dark = isDark();
  const high = contrast.value;
  const names = lines.map(({ name }) => name).join();

  useEffect(() => {
    const element = host.current;
    if (element === null) return undefined;
    const palette = (high ? strong : colours)[dark ? "dark" : "light"];
    const axis = high ? (dark ? "#ffffff" : "#000000") : dark ? "#a0a2ae" : "#5c5d68";
    const grid = { stroke: high ? "#808080" : dark ? "#22262e" : "#ececf0", width: 1 };
    const shown = lines[0]?.shown ?? String;
    plot.current = new uPlot(
      {
        width: element.clientWidth,
        height: 180,
        legend: { show: false },
        cursor: { y: false, points: { size: 6 } },
        padding: [8, 20, 0, 0],
        hooks: { draw: [(drawn) => drawMarks(drawn, marked.current, axis)] },
        scales: {
          x: { time: true, range: (_plot, min, max) => [Math.min(min, max - 60), max] },
          y: { range: (_plot, _min, max) => [0, Math.max(max ?? 0, 1) * 1.15] },
        },
        axes: [
          {
            stroke: axis,
            grid: { show: false },
            ticks: { show: false },
            font: "11px system-ui",
            size: 26,
            space: 90,
            values: (_plot, ticks) => ticks.map(timeOf),
          },
          {
            stroke: axis,
            grid,
            ticks: { show: false },
            font: "11px system-ui",
            size: 52,
            values: (_plot, ticks) => ticks.map((tick) => shown(tick)),
          },
        ],
        series: [
          {},
          ...lines.map(({ name }, i) => ({
            label: name,
            stroke: palette[i] ?? axis,
            width: high ? 2.5 : 1.75,
            fill: i === 0 ? `${palette[0]}1a` : "transparent",
            // A minute alone, between gaps, has no line: it is a dot.
            points: {
              show: true,
              size: 5,
              fill: palette[i] ?? axis,
              filter: (plotted: uPlot, index: number) => alone(plotted.data[index] ?? []),
            },
          })),
        ],
      },
      dataOf(at, lines),
      element,
    );
    const resized = new ResizeObserver(() =>
      plot.current?.setSize({ width: element.clientWidth, height: 180 }),
    );
    resized.observe(element);
    return () => {
      resized.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
    // Data goes in below, without a new chart.
  }, [dark, high, names]);

  useEffect(() => plot.current?.setData(dataOf(at, lines)), [at, lines, marks]);

  const last = lines.map(({ name, values, shown }) => `${name} ${shownOf(values.at(-1), shown)}`).join(", ");
  return (
    <div class="chart">
      <div class="legend" aria-hidden="true">
        {lines.map(({ name, values, shown }, i) => (
          <span key={name}>
            <i class={`swatch-${i}`} />
            {name} <b>{shownOf(values.at(-1), shown)}</b>
          </span>
        ))}
      </div>
      <div class="plot" ref={host} role="img" aria-label={`${title}. Now: ${last}.`} />
      {marks.length > 0 && (
        <p class="marks small muted">
          Deployed: {marks.map(({ at: ms, text }) => `${text} at ${timeOf(ms / 1_000)}`).join(", ")}
        </p>
      )}
      {empty !== undefined && lines.every(({ values }) => values.every((value) => (value ?? 0) === 0)) && (
        <p class="nothing muted small">{empty}</p>
      )}
    </div>
  );
}

function drawMarks(plot: uPlot, marks: readonly { at: number; text: string }[], colour: string): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.fillStyle = colour;
  ctx.font = `${11 * devicePixelRatio}px system-ui`;
  ctx.textAlign = "left";
  ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const { at, text } of marks) {
    const x = plot.valToPos(at / 1_000, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.fillText(text.slice(0, 16), x + 4 * devicePixelRatio, bbox.top + 11 * devicePixelRatio);
  }
  ctx.restore();
}

function timeOf(seconds: number): string {
  const at = new Date(seconds * 1_000);
  return (clock.value === "utc" ? at.toISOString().slice(11, 19) : at.toTimeString().slice(0, 8)).replace(
    /:00$/,
    "",
  );
}

function shownOf(value: number | null | undefined, shown: (value: number) => string): string {
  return value === null || value === undefined ? "—" : shown(value);
}

function dataOf(at: readonly number[], lines: readonly Line[]): uPlot.AlignedData {
  return [at.map((ms) => ms / 1_000), ...lines.map(({ values }) => [...values])];
}

function alone(values: ArrayLike<number | null | undefined>): number[] {
  const found: number[] = [];
  const is = (i: number): boolean => typeof values[i] === "number";
  for (let i = 0; i < values.length; i += 1) if (is(i) && !is(i - 1) && !is(i + 1)) found.push(i);
  return found;
}
