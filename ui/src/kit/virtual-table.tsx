// A table of any length that renders only rows near the window, because 10,000 rows would slow every key and scroll.
// Rows form blocks; a distant block is a gap of its last height. It stays a real table with row numbers for screen
// readers.
import { useSignal } from "@preact/signals";
import type { ComponentChildren, HTMLAttributes } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { Cells, type Column, type FixedOrder, TableHead, useFit } from "./table.tsx";

const blockSize = 50;
/** Height of a row before any was measured. */
const usualHeight = 52;

/** Consecutive blocks, rendered or not. */
interface Stretch {
  readonly from: number;
  readonly to: number;
  readonly drawn: boolean;
}

export function VirtualTable<T>({
  rows,
  rowKey,
  columns,
  row,
  first,
  current,
  inPage,
  fixed,
}: {
  rows: readonly T[];
  rowKey: (row: T, index: number) => string;
  columns: readonly Column<T>[];
  row: (row: T, index: number) => HTMLAttributes<HTMLTableRowElement>;
  first: ComponentChildren;
  /** The focused row: always rendered. */
  current: number;
  /** Called with the rendered rows. */
  inPage: { current: readonly T[] };
  fixed: FixedOrder;
}) {
  const { frame, shown, tight } = useFit(columns);
  const table = useRef<HTMLTableElement>(null);
  const heights = useRef<number[]>([]);
  const range = useSignal({ from: 0, to: 1 });
  const focused = useSignal(-1);
  const blocks = Math.ceil(rows.length / blockSize);

  const heightOf = (block: number): number => {
    const known = heights.current[block];
    if (known !== undefined) return known;
    const measured = heights.current.filter((height) => height !== undefined);
    const each =
      measured.length === 0
        ? usualHeight
        : measured.reduce((sum, height) => sum + height, 0) / measured.length / blockSize;
    return each * Math.min(blockSize, rows.length - block * blockSize);
  };
  /** Blocks within one window height of the window. */
  const look = (): void => {
    if (table.current === null) return;
    let top = table.current.getBoundingClientRect().top;
    let [from, to] = [-1, -1];
    for (let block = 0; block < blocks; block += 1) {
      const bottom = top + heightOf(block);
      if (bottom > -innerHeight && top < 2 * innerHeight) {
        if (from === -1) from = block;
        to = block;
      }
      top = bottom;
    }
    // All blocks are out of sight: keep what is rendered.
    if (from !== -1 && (from !== range.peek().from || to !== range.peek().to)) range.value = { from, to };
  };
  const latest = useRef(look);
  latest.current = look;
  useLayoutEffect(() => {
    for (const body of table.current?.querySelectorAll<HTMLElement>("tbody[data-block]") ?? [])
      heights.current[Number(body.dataset["block"])] = body.offsetHeight;
    // The last block may be partial, so it does not set the height.
    heights.current.length = Math.min(heights.current.length, Math.floor(rows.length / blockSize));
    look();
  });
  useLayoutEffect(() => {
    let asked = 0;
    const soon = (): void => {
      if (asked === 0)
        asked = requestAnimationFrame(() => {
          asked = 0;
          latest.current();
        });
    };
    const resized = (): void => {
      heights.current = [];
      soon();
    };
    // Any scroll container.
    document.addEventListener("scroll", soon, { capture: true, passive: true });
    addEventListener("resize", resized);
    return () => {
      cancelAnimationFrame(asked);
      document.removeEventListener("scroll", soon, { capture: true });
      removeEventListener("resize", resized);
    };
  }, []);

  const { from, to } = range.value;
  const kept = [Math.floor(current / blockSize), focused.value];
  const drawn = (block: number): boolean => (block >= from && block <= to) || kept.includes(block);
  const stretches: Stretch[] = [];
  for (let block = 0; block < blocks; block += 1) {
    const last = stretches.at(-1);
    if (!drawn(block) && last !== undefined && !last.drawn)
      stretches[stretches.length - 1] = { ...last, to: block };
    else stretches.push({ from: block, to: block, drawn: drawn(block) });
  }
  inPage.current = stretches
    .filter((one) => one.drawn)
    .flatMap((one) => rows.slice(one.from * blockSize, (one.to + 1) * blockSize));
  return (
    <div ref={frame} class={tight ? "scroll tight" : "scroll"}>
      <table
        ref={table}
        class="long"
        aria-rowcount={rows.length + 1}
        onFocusIn={(event) => {
          const body = (event.target as Element).closest<HTMLElement>("tbody[data-block]");
          focused.value = body === null ? -1 : Number(body.dataset["block"]);
        }}
        onFocusOut={() => (focused.value = -1)}
      >
        <TableHead columns={shown} first={first} index={1} fixed={fixed} />
        {stretches.map((one) =>
          one.drawn ? (
            <tbody key={one.from} data-block={one.from}>
              {rows.slice(one.from * blockSize, (one.to + 1) * blockSize).map((of, i) => {
                const index = one.from * blockSize + i;
                return (
                  <tr key={rowKey(of, index)} aria-rowindex={index + 2} {...row(of, index)}>
                    <Cells columns={shown} all={columns} of={of} index={index} />
                  </tr>
                );
              })}
            </tbody>
          ) : (
            <tbody key={`gap ${one.from}`} class="gap" aria-hidden="true">
              <tr>
                <td colSpan={shown.length} style={{ height: `${gapHeight(one, heightOf)}px` }} />
              </tr>
            </tbody>
          ),
        )}
      </table>
    </div>
  );
}

function gapHeight({ from, to }: Stretch, heightOf: (block: number) => number): number {
  let sum = 0;
  for (let block = from; block <= to; block += 1) sum += heightOf(block);
  return sum;
}
