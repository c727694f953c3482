// The head of a screen, panels, and their contents: tiles, facts, empty states, errors.
import type { ComponentChildren } from "preact";
import type { Query } from "../data/live-query.ts";
import { Icon, type IconName } from "./icons.tsx";

export function Empty({
  icon,
  title,
  brief = false,
  children,
}: {
  icon: IconName;
  title: string;
  /** One line: an empty list is normal here. */
  brief?: boolean;
  children?: ComponentChildren;
}) {
  return (
    <div class={brief ? "empty brief" : "empty"}>
      <div class="mark">
        <Icon name={icon} size={20} />
      </div>
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** A panel's content by the state of its query. */
export function Loaded<T>({
  query,
  children,
}: {
  query: Query<T>;
  children: (data: T) => ComponentChildren;
}) {
  if (query.data !== null)
    return (
      <>
        {query.error !== null && <Failure error={query.error} again={query.again} />}
        {children(query.data)}
      </>
    );
  if (query.error !== null) return <Failure error={query.error} again={query.again} />;
  return (
    <div class="empty" role="status">
      <p>Loading…</p>
    </div>
  );
}

export function Failure({ error, again }: { error: Error; again: () => void }) {
  return (
    <div class="banner bad" role="alert">
      <Icon name="dead" />
      <span>{error.message}</span>
      <button type="button" class="button small" onClick={again}>
        Try again
      </button>
    </div>
  );
}

export function Head({
  title,
  children,
  note,
}: {
  title: ComponentChildren;
  children?: ComponentChildren;
  note?: ComponentChildren;
}) {
  return (
    <div class="head">
      <div>
        <h1>{title}</h1>
        {note !== undefined && <p>{note}</p>}
      </div>
      <span class="spring" />
      <div class="row">{children}</div>
    </div>
  );
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
