// Panels and the tables in them. A screen says which columns it has and what stands in each; how wide the window must be
// for a column to show, where numbers stand, and what is there without rows is the same everywhere.
import type { Signal } from "@preact/signals";
import type { ComponentChildren, CSSProperties, HTMLAttributes, Ref } from "preact";
import { Empty, Loaded } from "./parts.tsx";
import type { IconName } from "./icons.tsx";
import type { Query } from "./use-query.ts";

export interface Column<T> {
  /** What it is headed by; `actions` is for those who listen. */
  readonly head: string;
  readonly cell: (row: T, index: number) => ComponentChildren;
  readonly num?: boolean;
  /** Shown in windows from this width on. */
  readonly from?: "medium" | "wide";
  /** Of its cells: muted, nowrap, mono, clip, right. */
  readonly class?: string;
  readonly style?: CSSProperties;
  readonly title?: (row: T) => string;
}

/** The column of buttons at the end of a row. */
export function actionsColumn<T>(cell: (row: T) => ComponentChildren): Column<T> {
  return { head: "", class: "right nowrap", cell };
}

export function Table<T>({
  rows,
  rowKey,
  columns,
  row,
  body,
  first,
  label,
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
}) {
  return (
    <div
      class="scroll"
      {...(label === undefined ? {} : { tabIndex: 0, role: "region", "aria-label": label })}
    >
      <table>
        <thead>
          <tr>
            {columns.map((column, i) => (
              <th key={column.head} scope="col" class={classOf(column)}>
                {first !== undefined && i === 0 ? (
                  first
                ) : column.head === "" ? (
                  <span class="hidden-text">Actions</span>
                ) : (
                  column.head
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body ?? null}>
          {rows.map((one, index) => (
            <tr key={rowKey(one, index)} {...row?.(one, index)}>
              {columns.map((column) => (
                <td
                  key={column.head}
                  class={`${classOf(column)} ${column.class ?? ""}`.trim()}
                  style={column.style}
                  title={column.title?.(one)}
                >
                  {column.cell(one, index)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function classOf({ num, from }: Column<never>): string {
  return `${num === true ? "num" : ""} ${from === undefined ? "" : `${from}-only`}`.trim();
}

export function Panel({
  title,
  note,
  tools,
  children,
}: {
  title: string;
  note?: ComponentChildren;
  tools?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <section class="panel" aria-label={title}>
      <header>
        <h2>{title}</h2>
        {note !== undefined && <span class="muted small">{note}</span>}
        <span class="spring" />
        {tools}
      </header>
      {children}
    </section>
  );
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
  ...table
}: {
  query: Query<D>;
  rows: (data: D) => readonly T[];
  rowKey: (row: T, index: number) => string;
  columns: readonly Column<T>[];
  row?: (row: T, index: number) => HTMLAttributes<HTMLTableRowElement>;
  empty: { icon: IconName; title: string; text: ComponentChildren };
  foot?: (data: D) => ComponentChildren;
}) {
  return (
    <Loaded query={query}>
      {(data) => {
        const all = rows(data);
        return (
          <>
            {all.length === 0 ? (
              <Empty icon={empty.icon} title={empty.title}>
                {empty.text}
              </Empty>
            ) : (
              <Table rows={all} {...table} />
            )}
            {foot?.(data)}
          </>
        );
      }}
    </Loaded>
  );
}

export function Tile({
  name,
  value,
  note,
  to,
  bad = false,
}: {
  name: string;
  value: ComponentChildren;
  note: ComponentChildren;
  to?: string;
  bad?: boolean;
}) {
  const inside = (
    <>
      <span class="name">{name}</span>
      <span class={`value ${bad ? "bad" : ""}`}>{value}</span>
      <span class="note">{note}</span>
    </>
  );
  return to === undefined ? (
    <div class="tile">{inside}</div>
  ) : (
    <a class="tile" href={to}>
      {inside}
    </a>
  );
}

export function Facts({ of }: { of: readonly (readonly [name: string, value: ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {of.map(([name, value]) => (
        <>
          <dt key={`${name} name`} class="clip">
            {name}
          </dt>
          <dd key={name}>{value}</dd>
        </>
      ))}
    </dl>
  );
}
