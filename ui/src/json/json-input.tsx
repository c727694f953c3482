// Editor of a JSON value: text, or a form if the schema is known. The value stays text on its way to the server, so
// numbers keep all digits.
import { type Signal, useSignal } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { ErrorBody, DefinitionDetail } from "../../../src/dashboard/api/contract.ts";
import { ApiFailure } from "../data/api.ts";
import { Icon } from "../kit/icons.tsx";
import { InputForm } from "./input-form.tsx";
import { type JsonNode, placeText, readJson } from "./json-text.ts";
import { type Mark, stillMasked } from "./redaction-masks.ts";
import { attempt } from "../kit/toasts.tsx";
import { fieldsOf, type FormField, membersOf } from "./schema-fields.ts";

export type Issue = NonNullable<ErrorBody["error"]["issues"]>[number];

/** A value being edited. */
export interface Draft {
  /** The JSON text, possibly incomplete. */
  readonly text: Signal<string>;
  readonly marks: Signal<readonly Mark[]>;
  /** Rejected field contents by key. */
  readonly halves: Signal<ReadonlyMap<string, string>>;
  readonly issues: Signal<readonly Issue[]>;
}

export function useDraft(text: string, marks: readonly Mark[] = []): Draft {
  return {
    text: useSignal(text),
    marks: useSignal(marks),
    halves: useSignal<ReadonlyMap<string, string>>(new Map()),
    issues: useSignal<readonly Issue[]>([]),
  };
}

/** @throws Error for invalid fields or JSON */
export function written({ text, halves }: Draft, notJson: string): JsonNode {
  if (halves.value.size > 0)
    throw new Error(`Invalid value: ${[...halves.value.keys()].map((key) => key.slice(0, 60)).join(", ")}.`);
  try {
    return readJson(text.value.trim() === "" ? "null" : text.value);
  } catch {
    throw new Error(notJson);
  }
}

/** Schema libraries say in their own words that a value is missing. */
const missing = /\breceived undefined\b|\(was missing\)/i;

/** Issues of the schema. Messages are cut, because a schema may have any text. */
function takeIssues(draft: Draft, error: unknown): void {
  if (error instanceof ApiFailure)
    draft.issues.value = error.issues.map(({ path, message }) => ({
      path,
      message: missing.test(message) ? "Required" : message.slice(0, 300),
    }));
}

/** Submits a draft, once at a time. Errors stay until the draft changes. */
export interface Sending {
  readonly form: RefObject<HTMLFormElement | null>;
  /** The last error; null: none. */
  readonly wrong: string | null;
  readonly onSubmit: (event: Event) => void;
}

/**
 * @param send sends the draft and returns the toast and the next action
 * @param misfit the message if the schema found issues
 */
export function useSending(
  draft: Draft,
  { send, misfit, close }: { send: (fields: FormData) => Promise<After>; misfit: string; close: () => void },
): Sending {
  const form = useRef<HTMLFormElement>(null);
  const wrong = useSignal<string | null>(null);
  const busy = useSignal(false);
  // A changed draft clears the error.
  useEffect(() => void (wrong.value = null), [draft.text.value]);
  const submit = async (): Promise<void> => {
    if (busy.value) return;
    busy.value = true;
    wrong.value = null;
    draft.issues.value = [];
    try {
      const { said, next } = await send(new FormData(form.current ?? undefined));
      close();
      await attempt(said, async () => next?.());
    } catch (error) {
      takeIssues(draft, error);
      wrong.value =
        draft.issues.value.length > 0 ? misfit : error instanceof Error ? error.message : String(error);
      requestAnimationFrame(() => form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus());
    }
    busy.value = false;
  };
  return {
    form,
    wrong: wrong.value,
    onSubmit: (event) => {
      event.preventDefault();
      void submit();
    },
  };
}

/** The toast after sending, and the next action. */
export interface After {
  readonly said: string;
  readonly next?: () => void;
}

/** A form if the schema is known, with JSON as the alternative; else JSON. */
export function JsonInput({
  draft,
  of,
  what,
  undone,
}: {
  draft: Draft;
  of: Pick<DefinitionDetail, "name" | "checked" | "schema"> | null;
  /** The name of the value: "input", "data". */
  what: string;
  /** The rejected action while a part is redacted: "enqueued", "sent". */
  undone: string;
}) {
  const called = `${what.charAt(0).toUpperCase()}${what.slice(1)}`;
  const wanted = useSignal<"form" | "json">("form");
  const fields = fieldsOf(of?.schema);
  const members = fields === null ? null : membersOf(draft.text.value);
  const asForm = fields !== null && members !== null && wanted.value === "form";
  const masked = maskedIn(draft);
  const turn = (to: "form" | "json"): void => {
    // Rejected contents are not part of the text.
    draft.halves.value = new Map();
    wanted.value = to;
  };
  return (
    <fieldset class="input-of">
      <legend class="hidden-text">{called}</legend>
      {fields !== null && (
        <div class="row">
          <b class="small">{called}</b>
          <span class="muted small medium-only">checked against the schema of {of?.name}</span>
          <span style={{ flex: 1 }} />
          <span class="switch" role="group" aria-label={`${called} as`}>
            <button
              type="button"
              aria-pressed={asForm}
              disabled={members === null}
              onClick={() => turn("form")}
            >
              Form
            </button>
            <button type="button" aria-pressed={!asForm} onClick={() => turn("json")}>
              JSON
            </button>
          </span>
        </div>
      )}
      {asForm ? (
        <InputForm draft={draft} fields={fields} members={members} masked={masked} />
      ) : (
        <JsonField draft={draft} fields={fields} called={called} checked={of?.checked === true} />
      )}
      {masked.length > 0 && (
        <div class="banner warn" id="input-masked" role="status">
          <Icon name="dead" />
          <span>
            {maskedText(masked)} As it is, it is not {undone}.
          </span>
        </div>
      )}
    </fieldset>
  );
}

function maskedIn({ text, marks }: Draft): readonly (readonly string[])[] {
  try {
    return stillMasked(readJson(text.value), marks.value);
  } catch {
    return [];
  }
}

function JsonField({
  draft: { text, issues },
  fields,
  called,
  checked,
}: {
  draft: Draft;
  fields: readonly FormField[] | null;
  called: string;
  checked: boolean;
}) {
  const told = issues.value.length > 0;
  return (
    <div class="field">
      <label for="input-json" class={fields === null ? "" : "hidden-text"}>
        {called} (JSON)
      </label>
      <textarea
        id="input-json"
        class="input"
        spellcheck={false}
        autocomplete="off"
        value={text.value}
        aria-invalid={told}
        aria-describedby="input-issues"
        onInput={(event) => (text.value = event.currentTarget.value)}
      />
      <div id="input-issues" class="small">
        {told ? (
          <ul class="issues">
            {issues.value.map(({ path, message }) => (
              <li key={path + message}>
                {path !== "" && <b class="mono">{path.replace(/^\./, "")}</b>} {message}
              </li>
            ))}
          </ul>
        ) : (
          checked &&
          fields === null && <span class="muted">Checked against its schema before it is sent.</span>
        )}
      </div>
    </div>
  );
}

function maskedText(places: readonly (readonly string[])[]): string {
  const shown = places.slice(0, 8).map(placeText).join(", ");
  return places.length > 8
    ? `Redacted: ${shown} and more. Enter the real values or remove them.`
    : `Redacted: ${shown}. Enter the real values or remove them.`;
}
