// Doing things: an action on one thing (which asks first where it cannot be undone) as a button or as an entry of a row's menu,
// and a form in a dialog.
import { useSignal } from "@preact/signals";
import { type ComponentChildren, createContext } from "preact";
import { useContext, useEffect, useId, useRef } from "preact/hooks";
import type { Permission } from "../../../src/dashboard/api/contract.ts";
import { noted } from "../data/api.ts";
import { Icon, type IconName } from "./icons.tsx";
import { may } from "../data/live-stream.ts";
import { attempt, confirm, DialogButtons, showDialog } from "./parts.tsx";
import { t } from "../language/translation.ts";

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
        aria-label={on === "" ? verb : t("{verb} {on}", { verb, on })}
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
  readonly then?: () => void;
  /** What it means; it is asked for first. */
  readonly ask?: ComponentChildren;
}

/** An action that does one thing at once, says what became of it, and has the list asked for again. */
export function doing({ run, done, then, ask, ...action }: ActOptions & Doing): ActOptions & Action {
  const press = (): void => {
    if (ask === undefined) void attempt(done, run).then(then);
    else
      confirm({
        title: t("{verb} {on}?", { verb: action.verb, on: action.on }),
        text: ask,
        verb: action.verb,
        danger: action.danger === true,
        run: () => run().then(then),
        done,
      });
  };
  return { ...action, press };
}

/** A button that does so. */
export function Do(options: ActOptions & Doing) {
  return <Act {...doing(options)} />;
}

// Forms

/** What is wrong with one field; it is said beside it. */
export class FieldError extends Error {
  readonly field: string;

  constructor(field: string, message: string) {
    super(message);
    this.field = field;
  }
}

/** What was put into a form, trimmed; an empty field is undefined. */
export class Fields {
  readonly #data: FormData;

  constructor(data: FormData) {
    this.#data = data;
  }

  text(name: string): string | undefined {
    const value = this.#data.get(name);
    return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
  }

  /**
   * Digits, and a point at most. Never NaN: JSON would make it null, and null lifts a limit.
   *
   * @throws FieldError
   */
  number(name: string): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    if (!/^-?\d{1,15}(\.\d+)?$/.test(text))
      throw new FieldError(
        name,
        t("“{text}” is not a number: write it in digits alone, such as 1000.", { text }),
      );
    return Number(text);
  }

  /** @throws Error that says it is no JSON. */
  json(name: string, label: string): unknown {
    try {
      return JSON.parse(this.text(name) ?? "null");
    } catch {
      throw new Error(t("The {label} is not JSON.", { label }));
    }
  }
}

interface FormOptions {
  readonly title: string;
  readonly verb: string;
  readonly danger?: boolean;
  readonly body: ComponentChildren;
  /** What it throws is said in the form, which stays open. Null: there is nothing to say yet. */
  readonly run: (fields: Fields) => Promise<string | null>;
  readonly then?: () => void;
}

/** What is wrong with which field of the form around. */
const Wrong = createContext<{ readonly field: string; readonly text: string } | null>(null);

/** Shows a form. `run` gives what to say when it went well. */
export function openForm(options: FormOptions): void {
  showDialog(options.title, (close) => <Form {...options} close={close} />);
}

function Form({ title, verb, danger, body, run, then, close }: FormOptions & { close: () => void }) {
  const form = useRef<HTMLFormElement>(null);
  const wrong = useSignal<{ readonly field: string | null; readonly text: string } | null>(null);
  const busy = useSignal(false);
  const at = wrong.value;
  const atField = at === null || at.field === null ? null : { field: at.field, text: at.text };
  useEffect(() => {
    if (atField !== null) form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [at]);
  const submit = async (): Promise<void> => {
    if (busy.value) return;
    busy.value = true;
    try {
      const fields = new Fields(new FormData(form.current ?? undefined));
      const { value: said, undo } = await noted(() => run(fields));
      close();
      if (said === null) then?.();
      else await attempt(said, async () => then?.(), undo);
    } catch (error) {
      wrong.value = {
        field: error instanceof FieldError ? error.field : null,
        text: error instanceof Error ? error.message : String(error),
      };
    }
    busy.value = false;
  };
  return (
    <form
      ref={form}
      method="dialog"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <header>
        <h2>{title}</h2>
      </header>
      <div class="content">
        {at !== null && atField === null && (
          <div class="banner bad" role="alert">
            {at.text}
          </div>
        )}
        <Wrong.Provider value={atField}>{body}</Wrong.Provider>
      </div>
      <DialogButtons verb={verb} danger={danger} close={close} />
    </form>
  );
}

export function Field({
  label,
  class: looks = "",
  ...input
}: {
  label: string;
  name: string;
  class?: string;
  placeholder?: string;
  defaultValue?: string | number;
  required?: boolean;
  inputMode?: "numeric" | "decimal";
  onInput?: (event: { readonly currentTarget: HTMLInputElement }) => void;
}) {
  const id = useId();
  const wrong = useContext(Wrong);
  const bad = wrong?.field === input.name;
  return (
    <div class="told-field">
      <label class="field">
        <span>{label}</span>
        <input
          {...input}
          class={`input ${looks}`.trim()}
          spellcheck={false}
          autocomplete="off"
          aria-invalid={bad}
          {...(bad ? { "aria-describedby": id } : {})}
        />
      </label>
      {bad && (
        <span class="bad-text small" id={id} role="alert">
          {wrong.text}
        </span>
      )}
    </div>
  );
}

export function Choice({
  label,
  name,
  value,
  options,
}: {
  label: string;
  name: string;
  value: string;
  options: readonly string[];
}) {
  return (
    <label class="field">
      <span>{label}</span>
      <select class="input" name={name} value={value}>
        {options.map((one) => (
          <option key={one} value={one}>
            {one}
          </option>
        ))}
      </select>
    </label>
  );
}
