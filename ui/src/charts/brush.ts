// Selection on a row of points by keyboard: arrow keys move, Shift extends, Enter opens, Escape clears. The owner draws
// it.
import { useSignal } from "@preact/signals";

/** Actions on points. */
export interface Lead {
  /** Opens a point. `line`: the nearest line; null by keyboard. */
  readonly point: (index: number, line: number | null) => void;
  /** Opens a range, both ends included. */
  readonly range: (from: number, to: number) => void;
}

export interface Brush {
  /** Index of the selected point; null: none. */
  readonly index: number | null;
  /** Index at which a range began; null: a single point. */
  readonly anchor: number | null;
  readonly keyDown: (event: KeyboardEvent) => void;
  readonly leave: () => void;
}

export function useBrush(
  count: number,
  lead: Lead | undefined,
  shown: (chosen: { readonly low: number; readonly top: number } | null, index: number) => void = () => {},
): Brush {
  const index = useSignal<number | null>(null);
  const anchor = useSignal<number | null>(null);
  const leave = (): void => {
    index.value = null;
    anchor.value = null;
    shown(null, 0);
  };
  const move = (to: number, stretch: boolean): void => {
    const before = index.value ?? count;
    const next = Math.max(0, Math.min(count - 1, to));
    anchor.value = stretch ? (anchor.value ?? Math.min(before, count - 1)) : null;
    index.value = next;
    const from = anchor.value ?? next;
    shown({ low: Math.min(next, from), top: Math.max(next, from) }, next);
  };
  const keyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || lead === undefined) return;
    const here = index.value ?? count;
    const far = event.key === "PageUp" || event.key === "PageDown" ? 10 : 1;
    if (["ArrowLeft", "ArrowDown", "PageDown"].includes(event.key)) move(here - far, event.shiftKey);
    else if (["ArrowRight", "ArrowUp", "PageUp"].includes(event.key)) move(here + far, event.shiftKey);
    else if (event.key === "Home") move(0, event.shiftKey);
    else if (event.key === "End") move(count - 1, event.shiftKey);
    else if (event.key === "Enter" && index.value !== null) {
      const from = anchor.value;
      if (from === null || from === index.value) lead.point(index.value, null);
      else lead.range(Math.min(from, index.value), Math.max(from, index.value));
      leave();
    } else if (event.key === "Escape" && index.value !== null) leave();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return { index: index.value, anchor: anchor.value, keyDown, leave };
}
