// A run on a time axis: one line per step with tries as bars, and retries, sleeps and waits as bands. Only visible lines
// are rendered, so 10,000 steps cost as much as 20. The table of steps has the same content for screen readers. Arrow
// keys move through lines and time, + and − zoom, 0 shows all, Enter opens a step.
import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { WorkflowStep } from "../../../src/dashboard/api/contract.ts";
import { duration, number } from "../kit/format.ts";
import { Icon } from "../kit/icons.tsx";
import { now } from "../data/page-clock.ts";
import {
  type Band,
  type BandKind,
  rangeOf,
  rowsInSight,
  ticksOf,
  type Track,
  tracksOf,
  zoomed,
} from "./waterfall.ts";

const rowHeight = 28;

export const bandWords: Readonly<Record<BandKind, string>> = {
  run: "ran",
  failed: "failed",
  lost: "lost: its worker died",
  delay: "delayed",
  wait: "waited",
  backoff: "until the next try",
  sleep: "sleep",
  signal: "wait for a signal",
  call: "wait for a job",
  steps: "ran and slept, in steps",
};

export function Waterfall({
  steps,
  endedAt,
  chosen: choice,
  open,
}: {
  steps: readonly WorkflowStep[];
  endedAt: number | null;
  /** The sequence number of the chosen step, shared with the other views. */
  chosen: Signal<number | null>;
  open: (seq: number) => void;
}) {
  const view = useSignal<{ from: number; to: number } | null>(null);
  const scroll = useSignal({ top: 0, height: 400 });
  const brush = useSignal<{ from: number; to: number } | null>(null);
  const list = useRef<HTMLDivElement>(null);
  const area = useRef<HTMLDivElement>(null);
  // Open bands of a live run grow every second.
  const at = endedAt ?? now.value;
  const tracks = useMemo(() => tracksOf(steps, at), [steps, at]);
  const whole = useMemo(() => rangeOf(tracks), [tracks]);
  const shown = view.value ?? whole;
  const x = (ms: number): number => ((ms - shown.from) / (shown.to - shown.from)) * 100;
  const sight = rowsInSight(scroll.value.top, scroll.value.height, rowHeight, tracks.length);
  const chosen = Math.max(
    0,
    steps.findIndex(({ seq }) => seq === choice.value),
  );

  useEffect(() => {
    const element = list.current;
    if (element === null) return undefined;
    const seen = (): void => {
      scroll.value = { top: element.scrollTop, height: element.clientHeight };
    };
    const resized = new ResizeObserver(seen);
    resized.observe(element);
    element.addEventListener("scroll", seen, { passive: true });
    return () => {
      resized.disconnect();
      element.removeEventListener("scroll", seen);
    };
  }, []);

  const zoom = (by: { factor?: number; shift?: number }): void => {
    const next = zoomed(shown, whole, by);
    view.value = next.from <= whole.from && next.to >= whole.to ? null : next;
  };
  const show = (row: number): void => {
    const element = list.current;
    if (element === null) return;
    const top = row * rowHeight;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + rowHeight > element.scrollTop + element.clientHeight)
      element.scrollTop = top + rowHeight - element.clientHeight;
  };
  const move = (to: number): void => {
    const row = Math.max(0, Math.min(tracks.length - 1, to));
    choice.value = steps[row]?.seq ?? null;
    show(row);
  };
  // A step chosen in another view is scrolled into view.
  useEffect(() => {
    if (choice.value !== null) show(chosen);
  }, [choice.value]);
  const openRow = (row: number): void => {
    const step = steps[row];
    if (step !== undefined) open(step.seq);
  };
  const pressed: Readonly<Record<string, () => void>> = {
    ArrowDown: () => move(chosen + 1),
    ArrowUp: () => move(chosen - 1),
    PageDown: () => move(chosen + 12),
    PageUp: () => move(chosen - 12),
    Home: () => move(0),
    End: () => move(tracks.length - 1),
    ArrowRight: () => zoom({ shift: 0.2 }),
    ArrowLeft: () => zoom({ shift: -0.2 }),
    "+": () => zoom({ factor: 0.5 }),
    "=": () => zoom({ factor: 0.5 }),
    "-": () => zoom({ factor: 2 }),
    "0": () => (view.value = null),
    Enter: () => openRow(chosen),
  };
  const msAt = (event: PointerEvent): number => {
    const box = area.current?.getBoundingClientRect();
    if (box === undefined || box.width === 0) return shown.from;
    const share = Math.max(0, Math.min(1, (event.clientX - box.left) / box.width));
    return shown.from + share * (shown.to - shown.from);
  };

  return (
    <div class="waterfall">
      <div class="axis" aria-hidden="true">
        <span class="label">
          <span class="row tight">
            <button
              type="button"
              class="button quiet small icon"
              tabIndex={-1}
              title="Zoom in (+)"
              onClick={() => zoom({ factor: 0.5 })}
            >
              <Icon name="plus" size={12} />
            </button>
            <button
              type="button"
              class="button quiet small icon"
              tabIndex={-1}
              title="Zoom out (−)"
              onClick={() => zoom({ factor: 2 })}
            >
              <Icon name="minus" size={12} />
            </button>
            {view.value !== null && (
              <button
                type="button"
                class="button quiet small"
                tabIndex={-1}
                title="Show everything (0)"
                onClick={() => (view.value = null)}
              >
                All
              </button>
            )}
          </span>
        </span>
        <div
          class="ticks"
          ref={area}
          title="Drag to zoom"
          onPointerDown={(event) => {
            event.currentTarget.setPointerCapture(event.pointerId);
            const ms = msAt(event);
            brush.value = { from: ms, to: ms };
          }}
          onPointerMove={(event) => {
            if (brush.value !== null) brush.value = { from: brush.value.from, to: msAt(event) };
          }}
          onPointerUp={() => {
            const drawn = brush.value;
            brush.value = null;
            if (drawn === null) return;
            const from = Math.min(drawn.from, drawn.to);
            const to = Math.max(drawn.from, drawn.to);
            if (to - from > (shown.to - shown.from) * 0.01) view.value = zoomed({ from, to }, whole, {});
          }}
        >
          {ticksOf(whole.from, shown.from, shown.to)
            .filter((tick) => x(whole.from + tick) < 94) // its word would be cut off
            .map((tick) => (
              <span key={tick} class="tick" style={{ left: `${x(whole.from + tick)}%` }}>
                {tick === 0 ? "0" : duration(tick)}
              </span>
            ))}
          {brush.value !== null && (
            <i
              class="brush"
              style={{
                left: `${x(Math.min(brush.value.from, brush.value.to))}%`,
                width: `${Math.abs(x(brush.value.to) - x(brush.value.from))}%`,
              }}
            />
          )}
        </div>
      </div>
      <div
        class="lines"
        ref={list}
        role="listbox"
        tabIndex={0}
        aria-label="Waterfall of steps. The table of steps says the same."
        aria-activedescendant={tracks.length === 0 ? undefined : `track-${chosen}`}
        onKeyDown={(event) => {
          if (event.ctrlKey || event.metaKey || event.altKey) return;
          const run = pressed[event.key];
          if (run === undefined) return;
          event.preventDefault();
          event.stopPropagation();
          run();
        }}
      >
        <div class="all" role="presentation" style={{ height: `${tracks.length * rowHeight}px` }}>
          {tracks.slice(sight.first, sight.last).map((track, i) => (
            <Line
              key={sight.first + i}
              track={track}
              index={sight.first + i}
              count={tracks.length}
              chosen={sight.first + i === chosen}
              marked={track.step.seq === choice.value}
              start={whole.from}
              x={x}
              open={() => openRow(sight.first + i)}
            />
          ))}
        </div>
      </div>
      <div class="legend" aria-hidden="true">
        {(["run", "failed", "backoff", "sleep", "signal", "call"] as const).map((kind) => (
          <span key={kind}>
            <i class={`band ${kind}`} />
            {kind === "run" ? "ran" : bandWords[kind]}
          </span>
        ))}
      </div>
    </div>
  );
}

function Line({
  track,
  index,
  count,
  chosen,
  marked,
  start,
  x,
  open,
}: {
  track: Track;
  index: number;
  count: number;
  chosen: boolean;
  /** A chosen line stays marked without focus. */
  marked: boolean;
  start: number;
  x: (ms: number) => number;
  open: () => void;
}) {
  const { step, bands, skewed } = track;
  return (
    <div
      id={`track-${index}`}
      class={`line ${chosen ? "chosen" : ""} ${marked ? "marked" : ""}`}
      role="option"
      aria-selected={chosen}
      aria-setsize={count}
      aria-posinset={index + 1}
      aria-label={wordsOf(track, start)}
      style={{ top: `${index * rowHeight}px` }}
      onClick={open}
    >
      <span class="label clip" title={step.name}>
        <b>{step.name}</b> <span class="muted small">{step.kind === "step" ? "" : step.kind}</span>
        {skewed && <span class="tag warn">skew</span>}
      </span>
      <span class="bands">
        {bands.map((band, i) => (
          <Bar key={i} band={band} x={x} />
        ))}
      </span>
    </div>
  );
}

export function Bar({ band, x }: { band: Band; x: (ms: number) => number }) {
  const left = x(band.from);
  const right = x(band.to);
  if (right < 0 || left > 100) return null;
  const from = Math.max(0, left);
  return (
    <i
      class={`band ${band.kind} ${band.open ? "open" : ""}`}
      // At least 3 px wide (waterfall.css), within its line.
      style={{ left: `min(${from}%, 100% - 3px)`, width: `${Math.min(100, right) - from}%` }}
      title={
        band.open
          ? `${bandWords[band.kind]}, ${duration(band.to - band.from)} so far`
          : `${bandWords[band.kind]}, ${duration(band.to - band.from)}`
      }
    />
  );
}

function wordsOf({ step, bands }: Track, start: number): string {
  const first = bands[0]?.from ?? step.startedAt;
  const last = bands.at(-1)?.to ?? first;
  const tries = step.kind === "step" && step.tries > 1 ? `, ${number(step.tries)} tries` : "";
  return `${step.name}: ${step.kind}, ${step.state}${tries}, began after ${duration(first - start)}, took ${duration(last - first)}`;
}
