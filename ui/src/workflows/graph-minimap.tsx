// The minimap of a graph that is larger than its frame.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { stateOf, worstOf } from "./graph-fan-outs.ts";
import type { Box, Picture } from "./graph-picture.ts";

const map = { width: 168, height: 96 } as const;
const leastHeight = 16;

/** Shows the visible part. Mouse only: the keyboard moves between steps. */
export function Minimap({
  picture,
  zoom,
  frame,
}: {
  picture: Picture;
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
  }, [picture, zoom]);
  const part = seen.value;
  if (part === null) return null;
  const scale = Math.min(map.width / picture.width, map.height / picture.height);
  // A graph of one line would be too thin.
  if (picture.height * scale < leastHeight) return null;
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
      width={picture.width * scale}
      height={picture.height * scale}
      viewBox={`0 0 ${picture.width} ${picture.height}`}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        to(event);
      }}
      onPointerMove={(event) => {
        if (event.buttons === 1) to(event);
      }}
    >
      {picture.fans.map((fan) => (
        <rect key={fan.id} class={`node ${fan.open ? "frame" : worstOf(fan.fan.members)}`} {...boxOf(fan)} />
      ))}
      {picture.nodes.map((drawn) => (
        <rect key={drawn.id} class={`node ${stateOf(drawn.node)}`} {...boxOf(drawn)} />
      ))}
      <rect class="seen" x={part.x} y={part.y} width={part.width} height={part.height} />
    </svg>
  );
}

function boxOf({ x, y, width, height }: Box): Pick<Box, "x" | "y" | "width" | "height"> {
  return { x, y, width, height };
}
