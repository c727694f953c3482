// An action on one thing, which asks first where it cannot be undone: a button, or an entry of a row's menu.
import type { ComponentChildren } from "preact";
import type { Permission } from "../../../src/dashboard/api/contract.ts";
import { may } from "../data/live-stream.ts";
import { confirm } from "./dialogs.tsx";
import { Icon, type IconName } from "./icons.tsx";
import { attempt, type Undo } from "./toasts.tsx";

interface ActOptions {
  /** What it says, such as "Pause". */
  readonly verb: string;
  /** What it acts on, for those who cannot see its row. */
  readonly on: string;
  readonly needs: Permission;
  readonly icon?: IconName;
  readonly danger?: boolean;
  readonly large?: boolean;
  readonly quiet?: boolean;
  readonly primary?: boolean;
  readonly title?: string;
  /** Its icon alone; the word is for those who listen, and in its title. */
  readonly bare?: boolean;
}

/** The same in a menu, where all of it is words. */
export interface Action extends Omit<ActOptions, "large" | "quiet" | "bare" | "on"> {
  readonly press: () => void;
}

/** Some of which may not apply. */
export type Actions = readonly (Action | false)[];

/** Those that this person may do. */
export function allowed(actions: Actions): readonly Action[] {
  return actions.filter((one) => one !== false).filter(({ needs }) => may(needs));
}

/** Actions as buttons, on the screen of what they act on. */
export function Buttons({ of, on }: { of: Actions; on: string }) {
  return (
    <>
      {allowed(of).map((action) => (
        <Act key={action.verb} {...action} on={on} large />
      ))}
    </>
  );
}

/** The actions of menus, for keys that act on a row. */
export const menus = new WeakMap<Element, readonly Action[]>();

/** Presses the first of these verbs that is there: a button, or in a menu. */
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

/** A button in a row; whoever may not press it does not see it. */
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
  /** What it means; it is asked for first. */
  readonly ask?: ComponentChildren;
}

/** An action that does one thing at once, says what became of it, and has the list asked for again. */
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

/** A button that does so. */
export function Do(options: ActOptions & Doing) {
  return <Act {...doing(options)} />;
}
