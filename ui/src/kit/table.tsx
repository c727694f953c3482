// Tables. A screen says which columns it has and what stands in each; how wide the window must be
// for a column to show, where numbers stand, what is there without rows, and how rows are sorted is the same everywhere.
import { type Signal, signal, useSignal } from "@preact/signals";
import type { ComponentChildren, CSSProperties, HTMLAttributes, Ref } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Query } from "../data/live-query.ts";
import { params, setParams } from "../data/router.ts";
import type { Action, Actions } from "./actions.tsx";
import { showDialog } from "./dialogs.tsx";
import type { IconName } from "./icons.tsx";
import { RowMenu } from "./menu.tsx";
import { Empty, Facts, Loaded } from "./panels.tsx";
import { orderOf, pressed, slugOf, type Sortable, sorted } from "./sorting.ts";

export interface Column<T> {
  /** What it is headed by; `actions` is for those who listen. */
  readonly head: string;
  readonly cell: (row: T, index: number) => ComponentChildren;
  readonly num?: boolean;
  /**
   * How much it matters: shown in windows from this width on, and left out of a table that is too narrow for all of its
   * columns, those of wide windows first. One without it is always shown.
   */
  readonly from?: "medium" | "wide";
  /** Of its cells: muted, nowrap, mono, clip, right. */
  readonly class?: string;
  readonly style?: CSSProperties;
  readonly title?: (row: T) => string;
  /** In place of a cell: see `menuColumn`. */
  readonly menu?: (row: T) => { readonly on: string; readonly of: Actions };
  /** What rows are sorted by when its head is pressed, in a table that can be sorted. */
  readonly by?: (row: T) => Sortable;
}

/** How a list is ordered that cannot be sorted, and why it cannot. */
export interface FixedOrder {
  readonly head: string;
  readonly down: boolean;
  readonly why: string;
  /** Orders that it has besides, by the heads of their columns. */
  readonly press: Readonly<Record<string, () => void>>;
}

/** The menu at the end of a row, with everything that can be done to it, and the columns that had no room. */
export function menuColumn<T>(on: (row: T) => string, actions: (row: T) => Actions): Column<T> {
  return { ...actionsColumn<T>(() => null), menu: (row) => ({ on: on(row), of: actions(row) }) };
}

/** One button at the end of a row, where no more can be done to it. */
export function actionsColumn<T>(cell: (row: T) => ComponentChildren): Column<T> {
  return { head: "", class: "right nowrap actions", cell };
}

export function Table<T>({
  rows,
  rowKey,
  columns,
  row,
  body,
  first,
  label,
  sort,
  arranged = false,
}: {
  rows: readonly T[];
  rowKey: (row: T, index: number) => string;
  columns: readonly Column<T>[];
  row?: (row: T, index: number) => HTMLAttributes<HTMLTableRowElement>;
  body?: Ref<HTMLTableSectionElement>;
  /** Stands in the head before the first column, which then has no word of its own. */
  first?: ComponentChildren;
  /** Where nothing in it can be focused: what the keyboard scrolls is called. */
  label?: string;
  /** All of its rows are here: the parameter of the address that says by which column they are sorted. */
  sort?: string | undefined;
  /** The rows come in that order already. */
  arranged?: boolean;
}) {
  const { frame, shown, tight } = useFit(columns);
  return (
    <div
      ref={frame}
      class={tight ? "scroll tight" : "scroll"}
      {...(label === undefined ? {} : { tabIndex: 0, role: "region", "aria-label": label })}
    >
      <table>
        <TableHead columns={shown} first={first} sort={sort} />
        <tbody ref={body ?? null}>
          {(sort === undefined || arranged ? rows : arrange(rows, columns, sort)).map((one, index) => (
            <tr key={rowKey(one, index)} {...row?.(one, index)}>
              <Cells columns={shown} all={columns} of={one} index={index} />
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A page that gets shorter loses its scrollbar, and its tables get wider by that: no reason to try again. */
const scrollbar = 24;

/**
 * Which columns a table has room for. Those that matter least are left out until none is cut off; where the rest is too wide
 * still, its texts break (`tight`). They come back when the frame gets wider, not when a text gets shorter: a list that is
 * live would else gain and lose a column from second to second.
 */
export function useFit<T>(columns: readonly Column<T>[]) {
  const frame = useRef<HTMLDivElement>(null);
  const out = useSignal(0);
  const droppable = leastFirst(columns);
  const most = useRef(0);
  /** How wide the frame was when a column was last left out. */
  const tooNarrow = useRef(0);
  most.current = droppable.length + 1;
  const measure = (): void => {
    const { current } = frame;
    if (current === null || current.scrollWidth <= current.clientWidth + 1) return;
    if (out.peek() === most.current) return;
    tooNarrow.current = current.clientWidth;
    out.value += 1;
  };
  useLayoutEffect(measure);
  useLayoutEffect(() => {
    const { current } = frame;
    if (current === null) return;
    const resized = new ResizeObserver(() => {
      if (current.clientWidth > tooNarrow.current + scrollbar) out.value = 0;
      measure();
    });
    resized.observe(current);
    // A text that grew makes it wider by itself.
    if (current.firstElementChild !== null) resized.observe(current.firstElementChild);
    return () => resized.disconnect();
  }, []);
  const left = new Set(droppable.slice(0, out.value));
  return { frame, shown: columns.filter((one) => !left.has(one)), tight: out.value > droppable.length };
}

function leastFirst<T>(columns: readonly Column<T>[]): Column<T>[] {
  const of = (from: Column<T>["from"]) => columns.filter((one) => one.from === from).reverse();
  return [...of("wide"), ...of("medium")];
}

/** Rows as the address says, for who must know their order before the table does. */
export function arrange<T>(rows: readonly T[], columns: readonly Column<T>[], sort: string): readonly T[] {
  return sorted(rows, columns, orderOf(params.value.get(sort), columns));
}

export function TableHead<T>({
  columns,
  first,
  index,
  sort,
  fixed,
}: {
  columns: readonly Column<T>[];
  first: ComponentChildren;
  /** Its number among the rows, where not all of them are in the page. */
  index?: number;
  /** As a table has it. */
  sort?: string | undefined;
  fixed?: FixedOrder | undefined;
}) {
  const order = sort === undefined ? null : orderOf(params.value.get(sort), columns);
  const isDown = (head: string): boolean | null => {
    if (fixed !== undefined) return fixed.head === head ? fixed.down : null;
    return order !== null && slugOf(head) === order.column ? order.down : null;
  };
  return (
    <thead>
      <tr aria-rowindex={index}>
        {columns.map((column, i) => (
          <th
            key={column.head}
            scope="col"
            aria-sort={sortWords(isDown(column.head))}
            title={column.head === "" ? undefined : fixed?.why}
            class={`${classOf(column)} ${column.class?.endsWith("actions") === true ? "actions" : ""}`.trim()}
          >
            {first !== undefined && i === 0 ? (
              first
            ) : column.head === "" ? (
              <span class="hidden-text">Actions</span>
            ) : (
              <Heading
                head={column.head}
                down={isDown(column.head)}
                press={
                  sort !== undefined && column.by !== undefined
                    ? () => setParams({ [sort]: pressed(order, column) })
                    : fixed?.press[column.head]
                }
              />
            )}
          </th>
        ))}
      </tr>
    </thead>
  );
}

/** A column's head, which sorts where it can be pressed. */
function Heading({
  head,
  down,
  press,
}: {
  head: string;
  down: boolean | null;
  press: (() => void) | undefined;
}) {
  if (press === undefined) return <>{head}</>;
  return (
    <button type="button" class="sort" title={`Sort by ${head.toLowerCase()}`} onClick={press}>
      {head}
      <span class={`direction ${down === true ? "down" : ""}`} aria-hidden="true" />
    </button>
  );
}

function sortWords(down: boolean | null): "ascending" | "descending" | undefined {
  return down === null ? undefined : down ? "descending" : "ascending";
}

export function Cells<T>({
  columns,
  all,
  of,
  index,
}: {
  columns: readonly Column<T>[];
  /** Also those that have no room. */
  all: readonly Column<T>[];
  of: T;
  index: number;
}) {
  return (
    <>
      {columns.map((column) => {
        const menu = column.menu?.(of);
        return (
          <td
            key={column.head}
            class={`${classOf(column)} ${column.class ?? ""}`.trim()}
            style={column.style}
            title={column.title?.(of)}
          >
            {menu === undefined ? (
              column.cell(of, index)
            ) : (
              <RowMenu {...menu} details={detailsOf(menu.on, columns, all, of, index)} />
            )}
          </td>
        );
      })}
    </>
  );
}

const narrow = { medium: "(max-width: 820px)", wide: "(max-width: 1180px)" } as const;
const narrowed = new Map<keyof typeof narrow, Signal<boolean>>();

/** Whether the stylesheet hides such columns. A signal: rows are drawn again when the window passes the width. */
function isHidden(from: keyof typeof narrow): boolean {
  const known = narrowed.get(from);
  if (known !== undefined) return known.value;
  const query = matchMedia(narrow[from]);
  const hidden = signal(query.matches);
  query.addEventListener("change", () => (hidden.value = query.matches));
  narrowed.set(from, hidden);
  return hidden.value;
}

/** All columns of one row, where some are not in its table. */
function detailsOf<T>(
  on: string,
  shown: readonly Column<T>[],
  all: readonly Column<T>[],
  of: T,
  index: number,
): Action | false {
  const hidden = all.some((one) => !shown.includes(one) || (one.from !== undefined && isHidden(one.from)));
  if (!hidden) return false;
  return {
    verb: "Details",
    needs: "view",
    icon: "columns",
    press: () =>
      showDialog(on, (close) => (
        <div class="dialog">
          <header>
            <h2 class="clip">{on}</h2>
          </header>
          <div class="content">
            <Facts of={all.filter(({ head }) => head !== "").map((one) => [one.head, one.cell(of, index)])} />
          </div>
          <footer>
            <button type="button" class="button" onClick={close}>
              Close
            </button>
          </footer>
        </div>
      )),
  };
}

function classOf({ num, from }: Column<never>): string {
  return `${num === true ? "num" : ""} ${from === undefined ? "" : `${from}-only`}`.trim();
}

/** Below a list that comes in pages: back to the first, and on. Nothing where one page is all. */
export function Pager({
  cursor,
  next,
  children,
}: {
  cursor: Signal<string | null>;
  next: string | null;
  children?: ComponentChildren;
}) {
  if (next === null && cursor.value === null) return null;
  const button = (words: string, to: string | null, disabled: boolean) => (
    <button type="button" class="button small" disabled={disabled} onClick={() => (cursor.value = to)}>
      {words}
    </button>
  );
  return (
    <footer>
      {children}
      <span class="spring" />
      {button("First", null, cursor.value === null)}
      {button("Next", next, next === null)}
    </footer>
  );
}

/** A table of what a question gave, or what to do where it gave nothing. */
export function Listing<D, T>({
  query,
  rows,
  empty,
  foot,
  sort,
  ...table
}: {
  query: Query<D>;
  rows: (data: D) => readonly T[];
  rowKey: (row: T, index: number) => string;
  columns: readonly Column<T>[];
  row?: (row: T, index: number) => HTMLAttributes<HTMLTableRowElement>;
  empty: { icon: IconName; title: string; text: ComponentChildren; brief?: boolean };
  foot?: (data: D) => ComponentChildren;
  /** As a table has it; of a list in pages it is asked whether all of it is here. */
  sort?: string | ((data: D) => string | undefined);
  arranged?: boolean;
}) {
  return (
    <Loaded query={query}>
      {(data) => {
        const all = rows(data);
        return (
          <>
            {all.length === 0 ? (
              <Empty icon={empty.icon} title={empty.title} brief={empty.brief ?? false}>
                {empty.text}
              </Empty>
            ) : (
              <Table rows={all} sort={typeof sort === "function" ? sort(data) : sort} {...table} />
            )}
            {foot?.(data)}
          </>
        );
      }}
    </Loaded>
  );
}
