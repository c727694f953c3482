// Parts of a graph as SVG: nodes, fan-outs with a bar of states, frames. Focusable elements are siblings, so that each
// has its own tab stop.
import { number } from "../kit/format.ts";
import { countsOf, type Fan, stateOf, worstOf } from "./graph-fan-outs.ts";
import { type Box, type DrawnFan, type DrawnNode, FAN, framePad } from "./graph-picture.ts";
import { iconPath } from "../kit/icons.tsx";
import { stateIcon } from "../kit/labels.tsx";

/** An element id without spaces. */
export function elementId(id: string): string {
  return `node-${encodeURIComponent(id.toWellFormed())}`;
}

function cut(label: string, most: number): string {
  return label.length > most ? `${label.slice(0, most - 1)}…` : label;
}

/** Own keys first; others may follow an edge. */
function onKeys(own: Readonly<Record<string, () => void>>, along: (key: string) => void) {
  return (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const press = own[event.key];
    if (press === undefined) return along(event.key);
    event.preventDefault();
    event.stopPropagation();
    press();
  };
}

/** `run`: whether the steps of its job are drawn; null: it has no job. */
export function Node({
  drawn,
  run,
  press,
  chosen,
  toggle,
  along,
}: {
  drawn: DrawnNode;
  run: "closed" | "opening" | "open" | null;
  /** Opens its job or step; null: nothing to open. */
  press: (() => void) | null;
  chosen: boolean;
  toggle: () => void;
  along: (key: string) => void;
}) {
  const { id, node, x, y, width, height } = drawn;
  const state = stateOf(node);
  const open = press ?? (() => {});
  const [label, shown] = [node.label, cut(node.label, run === null ? 20 : 16)];
  return (
    <>
      <g
        id={elementId(id)}
        class={`node ${state} ${chosen ? "chosen" : ""}`}
        transform={`translate(${x} ${y})`}
        tabindex={0}
        role={node.jobId !== null ? "link" : press === null ? "img" : "button"}
        // The visible text is the accessible name; the title has the full text if it is cut.
        aria-label={node.jobId === null && press === null ? `${label}: ${state}` : undefined}
        onClick={open}
        onKeyDown={onKeys({ Enter: open, ...(run === null ? {} : { " ": toggle }) }, along)}
      >
        {shown !== label && (
          <title>
            {label} {node.kind} · {state}
          </title>
        )}
        <rect width={width} height={height} rx="8" />
        <Mark state={state} x={9} y={9} />
        <text x="28" y="20">
          {shown}
        </text>
        <text class="kind" x="28" y="35">
          {node.kind} · {state}
        </text>
      </g>
      {run !== null && (
        <g
          class="toggle"
          transform={`translate(${x + width - 32} ${y + 10})`}
          tabindex={0}
          role="button"
          aria-expanded={run !== "closed"}
          aria-busy={run === "opening"}
          aria-label={`Steps of ${node.label}`}
          onClick={toggle}
          onKeyDown={onKeys({ Enter: toggle, " ": toggle }, along)}
        >
          <rect width="24" height="24" rx="6" />
          <Sign open={run !== "closed"} x={12} y={12} />
        </g>
      )}
    </>
  );
}

/** Sign and word show the state; color is added. */
function Mark({ state, x, y }: { state: string; x: number; y: number }) {
  return <path class="mark" transform={`translate(${x} ${y}) scale(0.86)`} d={iconPath(stateIcon(state))} />;
}

/** A fan-out: one node, or the head of its open frame. */
export function FanNode({
  drawn,
  toggle,
  along,
}: {
  drawn: DrawnFan;
  toggle: () => void;
  along: (key: string) => void;
}) {
  const { id, fan, open } = drawn;
  const [x, y] = open ? [drawn.x + framePad, drawn.y + framePad] : [drawn.x, drawn.y];
  const [width, height] = [FAN.width, FAN.height];
  const words = wordsOf(fan);
  const count = number(fan.members.length);
  const [label, counts] = [cut(fan.label, 12), cut(words, 24)];
  return (
    <g
      id={elementId(id)}
      class={`node fan ${worstOf(fan.members)}`}
      transform={`translate(${x} ${y})`}
      tabindex={0}
      role="button"
      aria-expanded={open}
      onClick={toggle}
      onKeyDown={onKeys({ Enter: toggle, " ": toggle }, along)}
    >
      {(label !== fan.label || counts !== words) && (
        <title>
          {fan.label} × {count} {words}
        </title>
      )}
      <rect class="behind" x="5" y="5" width={width - 5} height={height - 5} rx="8" />
      <rect width={width - 5} height={height - 5} rx="8" />
      <Mark state={worstOf(fan.members)} x={9} y={8} />
      <text x="28" y="19">
        {label} × {count}
      </text>
      <text class="kind" x="28" y="33">
        {counts}
      </text>
      <Sign open={open} x={width - 19} y={15} />
      <Bar fan={fan} x={12} y={40} width={width - 29} />
    </g>
  );
}

/** Members per state in words. */
function wordsOf({ members }: Fan): string {
  return countsOf(members)
    .map(({ state, count }) => `${number(count)} ${state}`)
    .join(", ");
}

function Bar({ fan, x, y, width }: { fan: Fan; x: number; y: number; width: number }) {
  let at = x;
  return (
    <g class="shares">
      {countsOf(fan.members).map(({ state, count }) => {
        const from = at;
        at += (count / fan.members.length) * width;
        return <rect key={state} class={state} x={from} y={y} width={at - from} height="6" />;
      })}
    </g>
  );
}

function Sign({ open, x, y }: { open: boolean; x: number; y: number }) {
  return <path class="sign" d={`M${x - 4} ${y}h8${open ? "" : `M${x} ${y - 4}v8`}`} />;
}

export function Frame({ box, kind }: { box: Box; kind: "fan" | "run" }) {
  return <rect class={`frame ${kind}`} x={box.x} y={box.y} width={box.width} height={box.height} rx="12" />;
}
