// A menu under its button. Its list stands in the browser's top layer, so that no table or panel cuts it off. Arrow keys go
// through the entries, Home and End to the first and last; Escape and a choice close it and give the focus back to the button.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { type Action, type Actions, allowed, menus } from "./actions.tsx";
import { Icon } from "./icons.tsx";

/** Between a menu and the edge of the window. */
const edge = 8;

export function Menu({
  label,
  button,
  looks,
  name,
  actions,
  children,
}: {
  /** Of the list of entries. */
  label: string;
  button: ComponentChildren;
  /** Of the button. */
  looks: string;
  /** Of a button without words. */
  name?: string;
  /** What its entries do, for keys that act on a row. */
  actions?: readonly Action[];
  /** The entries; `choose` closes the menu before it runs what was chosen. */
  children: (choose: (run: () => void) => () => void) => ComponentChildren;
}) {
  const open = useSignal(false);
  const opener = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const items = (): HTMLElement[] => [
    ...(list.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? []),
  ];
  const close = (): void => {
    open.value = false;
    opener.current?.focus({ preventScroll: true });
  };
  useLayoutEffect(() => {
    if (!open.value || list.current === null || opener.current === null) return;
    list.current.showPopover();
    place(list.current, opener.current.getBoundingClientRect());
    items()[0]?.focus({ preventScroll: true });
  }, [open.value]);
  useEffect(() => {
    if (!open.value) return;
    const outside = ({ target }: Event): void => {
      if (!list.current?.contains(target as Node) && !opener.current?.contains(target as Node))
        open.value = false;
    };
    // It would stay behind where its button was.
    const moved = ({ target }: Event): void => {
      if (!list.current?.contains(target as Node)) open.value = false;
    };
    const resized = (): void => void (open.value = false);
    document.addEventListener("pointerdown", outside);
    document.addEventListener("scroll", moved, { capture: true, passive: true });
    addEventListener("resize", resized);
    return () => {
      document.removeEventListener("pointerdown", outside);
      document.removeEventListener("scroll", moved, { capture: true });
      removeEventListener("resize", resized);
    };
  }, [open.value]);
  const move = (event: KeyboardEvent): void => {
    const all = items();
    const at = all.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    // The page's own keys do nothing while a menu is open.
    event.stopPropagation();
    // From the button on to what comes after it.
    if (event.key === "Tab") close();
    else if (event.key === "Escape") close();
    else if (to !== undefined) all.at(to % all.length)?.focus({ preventScroll: true });
    else return;
    if (event.key !== "Tab") event.preventDefault();
  };
  return (
    <span
      class="menu"
      ref={(element) => {
        if (element !== null && actions !== undefined) menus.set(element, actions);
      }}
    >
      <button
        ref={opener}
        type="button"
        class={looks}
        aria-label={name}
        title={name === undefined ? undefined : label}
        aria-haspopup="menu"
        aria-expanded={open.value}
        onClick={() => (open.value = !open.value)}
        onKeyDown={(event) => {
          if (event.key !== "ArrowDown" || open.value) return;
          event.preventDefault();
          event.stopPropagation();
          open.value = true;
        }}
      >
        {button}
      </button>
      {open.value && (
        <div
          ref={list}
          class="items"
          popover="manual"
          role="menu"
          aria-label={label}
          tabIndex={-1}
          onKeyDown={move}
          // Not a click on the row that it belongs to.
          onClick={(event) => event.stopPropagation()}
        >
          {children((run) => () => {
            close();
            run();
          })}
        </div>
      )}
    </span>
  );
}

/** Below the button, above it where there is no room below, and never beyond the window. */
function place(list: HTMLElement, { left, top, bottom }: DOMRect): void {
  const { offsetWidth: width, offsetHeight: height } = list;
  const { clientWidth, clientHeight } = document.documentElement;
  const below = bottom + 4;
  list.style.left = `${Math.max(edge, Math.min(left, clientWidth - width - edge))}px`;
  list.style.top = `${below + height + edge <= clientHeight ? below : Math.max(edge, top - 4 - height)}px`;
}

/** Everything that can be done to one row. Nothing is there where this person may do none of it. */
export function RowMenu({ on, of, details }: { on: string; of: Actions; details: Action | false }) {
  const actions = allowed([details, ...of]);
  if (actions.length === 0) return null;
  const name = `Actions for ${on}`;
  return (
    <Menu
      label={name}
      name={name}
      actions={actions}
      looks="button quiet small icon row-menu"
      button={<Icon name="more" size={15} />}
    >
      {(choose) => actions.map((action) => <Item key={action.verb} action={action} choose={choose} />)}
    </Menu>
  );
}

function Item({ action, choose }: { action: Action; choose: (run: () => void) => () => void }) {
  const { verb, icon, danger, title, press } = action;
  return (
    <button
      type="button"
      role="menuitem"
      tabIndex={-1}
      class={danger === true ? "danger" : ""}
      title={title}
      onClick={choose(press)}
    >
      <span class="verb-line">
        <span class="mark">{icon !== undefined && <Icon name={icon} size={13} />}</span>
        {verb}
      </span>
    </button>
  );
}
