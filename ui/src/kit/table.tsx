// Tables. A screen defines columns and cells. Responsive columns, alignment, empty states and sorting are the same
// everywhere.
import { type Signal, signal, useSignal } from "@preact/signals";
import type { ComponentChildren, CSSProperties, HTMLAttributes, Ref } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Query } from "../data/live-query.ts";
import { params, setParams } from "../data/router.ts";
import type { Action, Actions } from "./actions.tsx";
import { InfoDialog, showDialog } from "./dialogs.tsx";
import type { IconName } from "./icons.tsx";
import { RowMenu } from "./menu.tsx";
import { Empty, Facts, Loaded } from "./panels.tsx";
import { orderOf, pressed, slugOf, type Sortable, sorted } from "./sorting.ts";

export interface Column<T> {
  /** The head; `actions` is for screen readers. */
  readonly head: string;
  readonly cell: (row: T, index: number) => ComponentChildren;
  readonly num?: boolean;
  /**
   * The window width from which the column is shown. A table too narrow for its columns hides wide-window columns
   * first. Default: always shown.
   */
  readonly from?: "medium" | "wide";
  /** Classes of its cells: muted, nowrap, mono, clip, right. */
  readonly class?: string;
  readonly style?: CSSProperties;
  readonly title?: (row: T) => string;
  /** Replaces the cell: see `menuColumn`. */
  readonly menu?: (row: T) => { readonly on: string; readonly of: Actions };
  /** The value to sort by, in a sortable table. */
  readonly by?: (row: T) => Sortable;
}

/** The order of a list that cannot be sorted, and the reason. */
export interface FixedOrder {
  readonly head: string;
  readonly down: boolean;
  readonly why: string;
  /** Further orders, by column head. */
  readonly press: Readonly<Record<string, () => void>>;
}

/** The menu at the end of a row: its actions and the hidden columns. */
export function menuColumn<T>(on: (row: T) => string, actions: (row: T) => Actions): Column<T> {
  return { ...actionsColumn<T>(() => null), menu: (row) => ({ on: on(row), of: actions(row) }) };
}

/** A single button at the end of a row. */
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
  /** Shown in the head before the first column. */
  first?: ComponentChildren;
  /** The label of the scroll area, for tables without focusable elements. */
  label?: string;
  /** All rows are loaded: the parameter that holds the sort column. */
  sort?: string | undefined;
  /** The rows are sorted already. */
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

/** A shorter page loses its scrollbar and widens its tables; that is no reason to measure again. */
const scrollbar = 24;

/**
 * Chooses the columns that fit. The least important are hidden until none is cut off; if that is not enough, texts
 * wrap (`tight`). Columns return when the frame widens, not when a text gets shorter: a live list would flicker.
 */
export function useFit<T>(columns: readonly Column<T>[]) {
  const frame = useRef<HTMLDivElement>(null);
  const out = useSignal(0);
  const droppable = leastFirst(columns);
  const most = useRef(0);
  /** The frame's width when a column was last hidden. */
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
    // A longer text widens the table by itself.
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

/** Rows in the order of the address, for callers that need the order too. */
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
  /** Its index, if not all rows are in the document. */
  index?: number;
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

/** A column's head; a button if the column can be sorted. */
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
  /** Includes hidden columns. */
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

/**
 * Whether the stylesheet hides these columns. A signal, because rows are drawn again when the window passes the
 * width.
 */
function isHidden(from: keyof typeof narrow): boolean {
  const known = narrowed.get(from);
  if (known !== undefined) return known.value;
  const query = matchMedia(narrow[from]);
  const hidden = signal(query.matches);
  query.addEventListener("change", () => (hidden.value = query.matches));
  narrowed.set(from, hidden);
  return hidden.value;
}

/** All columns of one row, if some are hidden. */
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
        <InfoDialog title={on} close={close}>
          <Facts of={all.filter(({ head }) => head !== "").map((one) => [one.head, one.cell(of, index)])} />
        </InfoDialog>
      )),
  };
}

function classOf({ num, from }: Column<never>): string {
  return `${num === true ? "num" : ""} ${from === undefined ? "" : `${from}-only`}`.trim();
}

/** Below a list in pages: first page and next page. */
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

/** A table of a query's rows, or its empty state. */
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
  /** As in a table. For a list in pages, whether all rows are loaded. */
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
