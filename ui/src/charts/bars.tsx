// Small bars over time. A table or the label gives screen readers the numbers.
import { useSignal } from "@preact/signals";
import { type Lead, useBrush } from "./brush.ts";

interface BarsOptions {
  readonly of: readonly number[];
  /** Read before the numbers. */
  readonly label: string;
  readonly height: number;
  /** The time of a bar; read with its number. */
  readonly name?: (index: number) => string;
  readonly looks?: string;
  /** The part of each bar that is drawn in red. */
  readonly bad?: readonly number[];
  /** The value of a bar with full height. Default: the largest. */
  readonly most?: number;
  /** Indices of highlighted bars. */
  readonly chosen?: { readonly low: number; readonly top: number } | null;
  /** Another element carries the label. */
  readonly silent?: boolean;
}

export function Bars({
  of,
  label,
  height,
  name,
  looks = "",
  bad,
  most: whole,
  chosen = null,
  silent = false,
}: BarsOptions) {
  const most = whole ?? Math.max(1, ...of);
  const sum = of.reduce((total, n) => total + n, 0);
  const step = 10;
  const highest = Math.max(...of);
  const said =
    sum === 0 || name === undefined
      ? `${label}: ${String(sum)} in total`
      : `${label}: ${String(sum)} in total, maximum ${String(highest)} (${name(of.indexOf(highest))})`;
  // A value above zero has at least one visible pixel.
  const tall = (n: number): number => (n === 0 ? 0 : Math.max(3, Math.min(1, n / most) * height));
  const bar = (n: number, i: number, kind: string) => (
    <rect class={kind} x={i * step + 1} y={height - tall(n)} width={step - 2} height={tall(n)} />
  );
  return (
    <svg
      class={`bars ${looks}`.trim()}
      {...(silent ? { "aria-hidden": true } : { role: "img", "aria-label": said })}
      viewBox={`0 0 ${of.length * step} ${height}`}
      preserveAspectRatio="none"
      height={height}
    >
      {chosen !== null && (
        <rect
          class="chosen"
          x={chosen.low * step}
          y={0}
          width={(chosen.top - chosen.low + 1) * step}
          height={height}
        />
      )}
      {of.map((n, i) => (
        <g key={i}>
          {name !== undefined && <title>{`${n}, ${name(i)}`}</title>}
          <rect class="none" x={i * step + 1} y={height - 1} width={step - 2} height={1} />
          {bar(n, i, "")}
          {bar(bad?.[i] ?? 0, i, "bad")}
        </g>
      ))}
    </svg>
  );
}

/** Bars with selection by mouse or keyboard, as in a chart. */
export function BrushedBars({ lead, chosen = null, ...bars }: BarsOptions & { readonly lead: Lead }) {
  const { of, name = String } = bars;
  const dragged = useSignal<{ readonly from: number; readonly to: number } | null>(null);
  const { index, anchor, keyDown, leave } = useBrush(of.length, lead);
  const under = (event: PointerEvent): number => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const share = (event.clientX - box.left) / Math.max(1, box.width);
    return Math.max(0, Math.min(of.length - 1, Math.floor(share * of.length)));
  };
  const between = (a: number, b: number) => ({ low: Math.min(a, b), top: Math.max(a, b) });
  const drag = dragged.value;
  const byKeys = index === null ? null : between(index, anchor ?? index);
  const shown = drag === null ? (byKeys ?? chosen) : between(drag.from, drag.to);
  const here = index ?? of.length - 1;
  return (
    <div
      class="brushed"
      role="slider"
      tabIndex={0}
      aria-label={`${bars.label}. Arrow keys move in time, Shift selects a range, Enter filters by it.`}
      aria-valuemin={0}
      aria-valuemax={Math.max(0, of.length - 1)}
      aria-valuenow={Math.max(0, here)}
      aria-valuetext={
        anchor === null
          ? `${name(here)}: ${of[here] ?? 0}`
          : `From ${name(Math.min(anchor, here))} to ${name(Math.max(anchor, here))}`
      }
      onKeyDown={keyDown}
      onBlur={leave}
      onPointerDown={(event) => {
        (event.currentTarget as Element).setPointerCapture(event.pointerId);
        const at = under(event);
        dragged.value = { from: at, to: at };
      }}
      onPointerMove={(event) => {
        if (dragged.value !== null) dragged.value = { ...dragged.value, to: under(event) };
      }}
      onPointerCancel={() => (dragged.value = null)}
      onPointerUp={() => {
        const done = dragged.value;
        dragged.value = null;
        if (done === null) return;
        const { low, top } = between(done.from, done.to);
        if (low === top) lead.point(low, null);
        else lead.range(low, top);
      }}
    >
      <Bars {...bars} chosen={shown} silent />
    </div>
  );
}
