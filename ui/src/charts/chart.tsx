// A line chart drawn by uPlot. It is redrawn when the theme changes and updated in place when data arrives. Screen
// readers get one sentence and a table. All charts of a page share the cursor. With `lead`, a click or Enter opens a
// point, and dragging or Shift and arrow keys select a range; for screen readers the chart is a slider over minutes.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { type Lead, useBrush } from "./brush.ts";
import { durationMark } from "../text/quantities.ts";
import { axisSize, BINARY, DURATIONS, timeRange, WHOLE } from "./axis-scale.ts";
import { duration, number, clockTime, clockSecond, minuteOf } from "../kit/format.ts";
import type { Mark } from "./lazy-chart.tsx";
import { theme } from "../data/page-settings.ts";

export interface Line {
  readonly name: string;
  readonly values: readonly (number | null)[];
  readonly shown: (value: number) => string;
}

/** The fifth line is grey: it is the sum of the rest. */
const colours = {
  light: ["#4f46e5", "#0b7fa8", "#b45309", "#b0257a"],
  dark: ["#8b8dff", "#4cc2ea", "#f0b350", "#f58cc4"],
};

/** Rows of the table. */
const mostRows = 500;
/** A longer range shows dates, because hours and minutes would be ambiguous. */
const datedMs = 12 * 3_600_000;
/** For `prefers-contrast: more`: darker on white, lighter on black. */
const strong = {
  light: ["#1d12b8", "#00556f", "#7a3c00", "#7d0052"],
  dark: ["#c3c4ff", "#8fe3ff", "#ffd98c", "#ffb8e0"],
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
  sizes = false,
  lead,
}: {
  title: string;
  at: readonly number[];
  lines: readonly Line[];
  /** Shown if nothing was measured: a flat line explains nothing. */
  empty?: string;
  /** Instants with a label, such as deploys: vertical lines, listed below the chart. */
  marks?: readonly Mark[];
  /** Values are bytes. */
  sizes?: boolean;
  lead?: Lead;
}) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const marked = useRef(marks);
  marked.current = marks;
  const leads = useRef(lead);
  leads.current = lead;
  const tabled = useSignal(false);
  const pointed = useSignal<number | null>(null);
  const dated = (at.at(-1) ?? 0) - (at[0] ?? 0) > datedMs;
  const spokenTime = useRef(timeOf);
  spokenTime.current = dated ? dateOf : timeOf;
  const whenOf = spokenTime.current;
  const active = lead !== undefined;
  const dark = isDark();
  const high = matchMedia("(prefers-contrast: more)").matches;
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
        cursor: {
          y: false,
          points: { size: 6 },
          drag: { x: active, y: false, setScale: false },
          // Charts share the cursor, not the selection.
          sync: { key: "page", filters: { pub: (type) => type === "mousemove", sub: () => true } },
        },
        padding: [8, 20, 0, 0],
        hooks: {
          setCursor: [(drawn) => (pointed.value = drawn.cursor.idx ?? null)],
          draw: [(drawn) => drawMarks(drawn, marked.current, axis)],
          setSelect: [
            (drawn) => {
              const { left, width } = drawn.select;
              if (width < 4) return;
              const [from, to] = [drawn.posToIdx(left), drawn.posToIdx(left + width)];
              drawn.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
              leads.current?.range(from, to);
            },
          ],
        },
        scales: {
          x: { time: true, range: (drawn) => timeRange(drawn.data[0], Date.now() / 1_000) },
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
            values: (_plot, ticks) =>
              ticks.map((tick) => (spokenTime.current === dateOf ? dateOf(tick).slice(5) : timeOf(tick))),
          },
          {
            stroke: axis,
            grid,
            ticks: { show: false },
            font: "11px system-ui",
            size: (_plot, labels) => axisSize(labels),
            ...(sizes
              ? { incrs: [...BINARY] }
              : shown === duration
                ? { incrs: [...DURATIONS] }
                : shown === number
                  ? { incrs: [...WHOLE] }
                  : {}),
            values: (_plot, ticks) => ticks.map(shown === duration ? durationMark : (tick) => shown(tick)),
          },
        ],
        series: [
          {},
          ...lines.map(({ name }, i) => ({
            label: name,
            stroke: palette[i] ?? axis,
            width: high ? 2.5 : 1.75,
            fill: i === 0 ? `${palette[0]}1a` : "transparent",
            // A minute between two gaps has no line, so it is a dot.
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
    const over = plot.current.over;
    let pressedAt = 0;
    const press = (event: MouseEvent): void => void (pressedAt = event.clientX);
    const click = (event: MouseEvent): void => {
      const drawn = plot.current;
      const index = drawn?.cursor.idx ?? null;
      // The end of a drag is not a click.
      if (drawn === null || index === null || Math.abs(event.clientX - pressedAt) > 3) return;
      leads.current?.point(index, nearest(drawn, index));
    };
    over.addEventListener("mousedown", press);
    over.addEventListener("click", click);
    return () => {
      resized.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
    // New data updates the chart in place.
  }, [dark, high, names, active]);

  useEffect(() => plot.current?.setData(dataOf(at, lines)), [at, lines, marks]);

  const { index, anchor, keyDown, leave } = useBrush(at.length, lead, (chosen, here) => {
    const drawn = plot.current;
    if (drawn === null) return;
    const left = (i: number): number => drawn.valToPos((at[i] ?? 0) / 1_000, "x");
    drawn.setCursor(chosen === null ? { left: -10, top: -10 } : { left: left(here), top: 0 });
    const width = chosen === null ? 0 : left(chosen.top) - left(chosen.low);
    const height = width === 0 ? 0 : drawn.over.clientHeight;
    drawn.setSelect({ left: width === 0 ? 0 : left(chosen?.low ?? 0), top: 0, width, height }, false);
  });
  const spoken = (index: number): string =>
    `${whenOf((at[index] ?? 0) / 1_000)}: ${lines.map(({ name, values, shown }) => `${name} ${shownOf(values[index], shown)}`).join(", ")}`;
  const chosen = index ?? at.length - 1;
  // The point under the cursor of any chart; else the newest.
  const told = Math.min(pointed.value ?? at.length - 1, at.length - 1);

  const last = lines.map(({ name, values, shown }) => `${name} ${shownOf(values.at(-1), shown)}`).join(", ");
  return (
    <div class="chart">
      <div class="legend" aria-hidden="true">
        {lines.map(({ name, values, shown }, i) => (
          <span key={name}>
            <i class={`swatch-${i}`} />
            {name} <b>{shownOf(values[told], shown)}</b>
          </span>
        ))}
        {told < at.length - 1 && <span class="when">{whenOf((at[told] ?? 0) / 1_000)}</span>}
      </div>
      {active ? (
        <div
          class="plot leads"
          ref={host}
          role="slider"
          tabIndex={0}
          aria-label={`${title}. Arrow keys move in time, Shift selects a range, Enter opens it.`}
          aria-valuemin={0}
          aria-valuemax={Math.max(0, at.length - 1)}
          aria-valuenow={Math.max(0, chosen)}
          aria-valuetext={
            anchor === null
              ? index === null
                ? `Now, ${spoken(chosen)}`
                : spoken(chosen)
              : `From ${whenOf((at[Math.min(anchor, chosen)] ?? 0) / 1_000)} to ${whenOf((at[Math.max(anchor, chosen)] ?? 0) / 1_000)}`
          }
          onKeyDown={keyDown}
          onBlur={leave}
        />
      ) : (
        <div class="plot" ref={host} role="img" aria-label={`${title}. Now: ${last}.`} />
      )}
      {index !== null && (
        <p class="point small" aria-hidden="true">
          {spoken(chosen)}
        </p>
      )}
      {marks.length > 0 && (
        <p class="marks small muted">
          Deployed: {marks.map(({ at: ms, text }) => `${text} at ${whenOf(ms / 1_000)}`).join(", ")}
        </p>
      )}
      {empty !== undefined && lines.every(({ values }) => values.every((value) => (value ?? 0) === 0)) && (
        <p class="nothing muted small">{empty}</p>
      )}
      <details class="tabled small" onToggle={(event) => (tabled.value = event.currentTarget.open)}>
        <summary>View as table</summary>
        {tabled.value && <Figures title={title} at={at} lines={lines} whenOf={whenOf} />}
      </details>
    </div>
  );
}

/** Newest first, without unmeasured minutes. */
function Figures({
  title,
  at,
  lines,
  whenOf,
}: {
  title: string;
  at: readonly number[];
  lines: readonly Line[];
  whenOf: (seconds: number) => string;
}) {
  const known = at
    .map((_, i) => i)
    .filter((i) => lines.some(({ values }) => (values[i] ?? null) !== null))
    .slice(-mostRows)
    .toReversed();
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label={`${title} as a table`}>
      <table>
        <thead>
          <tr>
            <th scope="col">Time</th>
            {lines.map(({ name }) => (
              <th key={name} scope="col" class="num">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {known.map((i) => (
            <tr key={at[i]}>
              <th scope="row">{whenOf((at[i] ?? 0) / 1_000)}</th>
              {lines.map(({ name, values, shown }) => (
                <td key={name} class="num">
                  {shownOf(values[i], shown)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function drawMarks(plot: uPlot, marks: readonly Mark[], colour: string): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.fillStyle = colour;
  ctx.font = `${11 * devicePixelRatio}px system-ui`;
  ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const { at, text } of marks) {
    const x = plot.valToPos(at / 1_000, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    const word = text.slice(0, 16);
    const gap = 4 * devicePixelRatio;
    // Labels near the right end are drawn to the left.
    const fits = x + gap + ctx.measureText(word).width <= bbox.left + bbox.width;
    ctx.textAlign = fits ? "left" : "right";
    ctx.fillText(word, fits ? x + gap : x - gap, bbox.top + 11 * devicePixelRatio);
  }
  ctx.restore();
}

/** The line closest to the pointer. */
function nearest(plot: uPlot, index: number): number | null {
  const top = plot.cursor.top ?? 0;
  let found: { line: number; far: number } | null = null;
  for (let line = 1; line < plot.data.length; line += 1) {
    const value = plot.data[line]?.[index];
    if (typeof value !== "number") continue;
    const far = Math.abs(plot.valToPos(value, "y") - top);
    if (found === null || far < found.far) found = { line: line - 1, far };
  }
  return found?.line ?? null;
}

function timeOf(seconds: number): string {
  return seconds % 60 === 0 ? clockTime(seconds * 1_000) : clockSecond(seconds * 1_000);
}

function dateOf(seconds: number): string {
  return minuteOf(seconds * 1_000);
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
