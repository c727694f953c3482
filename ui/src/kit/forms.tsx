// A form in a dialog, with its fields and errors.
import { useSignal } from "@preact/signals";
import { type ComponentChildren, createContext } from "preact";
import { useContext, useEffect, useId, useRef } from "preact/hooks";
import { DialogButtons, showDialog } from "./dialogs.tsx";
import { toast, type Undo } from "./toasts.tsx";

/** An error of one field, shown below it. */
class FieldError extends Error {
  readonly field: string;

  constructor(field: string, message: string) {
    super(message);
    this.field = field;
  }
}

/** Form values, trimmed; an empty field is undefined. */
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
   * Digits and at most one point. Never NaN: JSON turns it into null, and null removes a limit.
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

  /** @throws Error for invalid JSON */
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
  /** Errors are shown in the open form. Null: no toast. */
  readonly run: (fields: Fields) => Promise<string | null>;
  readonly undo?: (fields: Fields) => Undo | undefined;
  readonly then?: () => void;
}

/** The invalid field of the surrounding form. */
const Wrong = createContext<{ readonly field: string; readonly text: string } | null>(null);

/** Opens a form. `run` returns the toast. */
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
