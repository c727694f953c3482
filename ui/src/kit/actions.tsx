// An action on one thing, as a button or a menu entry. It asks first if the action cannot be undone.
import type { ComponentChildren } from "preact";
import type { Permission } from "../../../src/dashboard/api/contract.ts";
import { may } from "../data/live-stream.ts";
import { confirm } from "./dialogs.tsx";
import { Icon, type IconName } from "./icons.tsx";
import { attempt, type Undo } from "./toasts.tsx";

interface ActOptions {
  /** The label, such as "Pause". */
  readonly verb: string;
  /** The target, for screen readers. */
  readonly on: string;
  readonly needs: Permission;
  readonly icon?: IconName;
  readonly danger?: boolean;
  readonly large?: boolean;
  readonly quiet?: boolean;
  readonly primary?: boolean;
  readonly title?: string;
  /** Shows the icon alone; the verb is the accessible name and the title. */
  readonly bare?: boolean;
}

/** An entry of a menu. */
export interface Action extends Omit<ActOptions, "large" | "quiet" | "bare" | "on"> {
  readonly press: () => void;
}

/** Entries may be absent. */
export type Actions = readonly (Action | false)[];

/** Actions that the user may do. */
export function allowed(actions: Actions): readonly Action[] {
  return actions.filter((one) => one !== false).filter(({ needs }) => may(needs));
}

/** Actions as buttons, on the screen of their target. */
export function Buttons({ of, on }: { of: Actions; on: string }) {
  return (
    <>
      {allowed(of).map((action) => (
        <Act key={action.verb} {...action} on={on} large />
      ))}
    </>
  );
}

/** Menus by their element, for keys that act on a row. */
export const menus = new WeakMap<Element, readonly Action[]>();

/** Runs the first of these verbs that has a button or a menu entry. */
export function pressIn(within: Element | null, verbs: readonly string[]): void {
  const list = menus.get(within?.querySelector(".menu") ?? document.body) ?? [];
  for (const verb of verbs) {
    const button = within?.querySelector<HTMLElement>(`button[data-verb="${CSS.escape(verb)}"]`);
    const found = button ?? null;
    const press = found === null ? list.find((one) => one.verb === verb)?.press : () => found.click();
    if (press === undefined) continue;
    press();
    return;
  }
}

/** A button in a row. Hidden without permission. */
export function Act({
  verb,
  on,
  needs,
  icon,
  danger,
  large,
  quiet,
  primary,
  title,
  bare,
  press,
}: ActOptions & { press: () => void }) {
  if (!may(needs)) return null;
  const looks = [
    large === true ? "" : "small",
    danger === true ? "danger" : "",
    quiet === true ? "quiet" : "",
    primary === true ? "primary" : "",
  ];
  return (
    <>
      <button
        type="button"
        class={`button ${looks.filter((one) => one !== "").join(" ")}`.trim()}
        aria-label={on === "" ? verb : `${verb} ${on}`}
        data-verb={verb}
        title={title ?? (bare === true ? verb : undefined)}
        onClick={press}
      >
        {icon !== undefined && <Icon name={icon} size={13} />}{" "}
        {bare !== true && <span class={icon === undefined ? "" : "verb"}>{verb}</span>}
      </button>{" "}
    </>
  );
}

interface Doing {
  readonly run: () => Promise<unknown>;
  readonly done: string;
  readonly undo?: Undo;
  readonly then?: () => void;
  /** The consequences, shown in a confirmation. */
  readonly ask?: ComponentChildren;
}

/** An action that runs at once, shows a toast, and reloads the list. */
export function doing({ run, done, undo, then, ask, ...action }: ActOptions & Doing): ActOptions & Action {
  const press = (): void => {
    if (ask === undefined) void attempt(done, run, undo).then(then);
    else
      confirm({
        title: `${action.verb} ${action.on}?`,
        text: ask,
        verb: action.verb,
        danger: action.danger === true,
        run: () => run().then(then),
        done,
        undo,
      });
  };
  return { ...action, press };
}

export function Do(options: ActOptions & Doing) {
  return <Act {...doing(options)} />;
}
