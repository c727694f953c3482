// A menu button. The list is in the top layer, so that no table or panel clips it. Arrow keys, Home and End move; Escape
// and a choice close it and return the focus.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { type Action, type Actions, allowed, menus } from "./actions.tsx";
import { Icon } from "./icons.tsx";

/** Space between a menu and the window's edge. */
const edge = 8;

export function Menu({
  label,
  button,
  looks,
  name,
  actions,
  children,
}: {
  /** The label of the list. */
  label: string;
  button: ComponentChildren;
  /** The label of the button. */
  looks: string;
  /** The icon of a button without text. */
  name?: string;
  /** The actions, for keys that act on a row. */
  actions?: readonly Action[];
  /** The entries; `choose` closes the menu, then runs the choice. */
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
    // A scrolled page would leave the menu behind.
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
    // Keys of the page are off while a menu is open.
    event.stopPropagation();
    // Tab continues after the button.
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
          // A click here is not a click on the row.
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

/** Below the button, or above it if there is no room below, within the window. */
function place(list: HTMLElement, { left, top, bottom }: DOMRect): void {
  const { offsetWidth: width, offsetHeight: height } = list;
  const { clientWidth, clientHeight } = document.documentElement;
  const below = bottom + 4;
  list.style.left = `${Math.max(edge, Math.min(left, clientWidth - width - edge))}px`;
  list.style.top = `${below + height + edge <= clientHeight ? below : Math.max(edge, top - 4 - height)}px`;
}

/** All actions on a row. Hidden if the user may do none. */
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
