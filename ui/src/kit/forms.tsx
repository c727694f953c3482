// A form in a dialog: its fields, what they hold, and which of them is wrong.
import { useSignal } from "@preact/signals";
import { type ComponentChildren, createContext } from "preact";
import { useContext, useEffect, useId, useRef } from "preact/hooks";
import { DialogButtons, showDialog } from "./dialogs.tsx";
import { toast, type Undo } from "./toasts.tsx";

/** What is wrong with one field; it is said beside it. */
class FieldError extends Error {
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
      throw new FieldError(name, `“${text}” is not a number. Write digits only, such as 1000.`);
    return Number(text);
  }

  /** @throws Error that says it is no JSON. */
  json(name: string, label: string): unknown {
    try {
      return JSON.parse(this.text(name) ?? "null");
    } catch {
      throw new Error(`The ${label} is not valid JSON.`);
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
  readonly undo?: (fields: Fields) => Undo | undefined;
  readonly then?: () => void;
}

/** What is wrong with which field of the form around. */
const Wrong = createContext<{ readonly field: string; readonly text: string } | null>(null);

/** Shows a form. `run` gives what to say when it went well. */
export function openForm(options: FormOptions): void {
  showDialog(options.title, (close) => <Form {...options} close={close} />);
}

function Form({ title, verb, danger, body, run, undo, then, close }: FormOptions & { close: () => void }) {
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
      const said = await run(fields);
      close();
      if (said !== null) toast(said, "good", undo?.(fields));
      then?.();
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
