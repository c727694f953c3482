// An input as a form with one field for each member of its schema. Fields read and change the JSON text of the draft.
import { useRef } from "preact/hooks";
import type { JsonNode } from "./json-text.ts";
import { type FormField, isAt, memberOf, shownIn, withMember } from "./schema-fields.ts";
import type { Draft } from "./json-input.tsx";

export function InputForm({
  draft,
  fields,
  members,
  masked,
}: {
  draft: Draft;
  fields: readonly FormField[];
  members: ReadonlyMap<string, JsonNode>;
  /** Paths that still hold a mask. */
  masked: readonly (readonly string[])[];
}) {
  const named = new Set(fields.map(({ key }) => key));
  const others = [...members.keys()].filter((key) => !named.has(key));
  const elsewhere = draft.issues.value.filter(({ path }) => !fields.some(({ key }) => isAt(path, key)));
  return (
    <>
      {elsewhere.length > 0 && (
        <ul class="issues small">
          {elsewhere.map(({ path, message }) => (
            <li key={path + message}>
              {path !== "" && <b class="mono">{path.replace(/^\./, "")}</b>} {message}
            </li>
          ))}
        </ul>
      )}
      <div class="members">
        {fields.map((field, i) => (
          <Member
            key={field.key}
            field={field}
            at={i}
            draft={draft}
            value={members.get(field.key)}
            masked={masked.some(([first]) => first === undefined || first === field.key)}
          />
        ))}
      </div>
      {others.length > 0 && (
        <p class="muted small">
          Only editable as JSON:{" "}
          {
            <span class="mono">
              {others
                .slice(0, 10)
                .map((key) => key.slice(0, 60))
                .join(", ")}
            </span>
          }
        </p>
      )}
    </>
  );
}

function Member({
  field: given,
  at,
  draft,
  value,
  masked,
}: {
  field: FormField;
  at: number;
  draft: Draft;
  value: JsonNode | undefined;
  masked: boolean;
}) {
  const half = draft.halves.value.get(given.key);
  const fitting = shownIn(given, value);
  // A value of another type than its schema is edited as JSON.
  const field: FormField = fitting === null ? { ...given, kind: "json", type: "JSON" } : given;
  // Typed JSON stays as it is while it equals the draft: rewriting it would move the caret.
  const typed = useRef<{ readonly text: string; readonly value: string } | null>(null);
  const shown = half ?? fitting ?? shownIn(field, value) ?? "";
  const set = (text: string): void => {
    const member = memberOf(field, text);
    const halves = new Map(draft.halves.value);
    if (member === undefined) halves.set(field.key, text);
    else {
      halves.delete(field.key);
      draft.text.value = withMember(draft.text.value, field.key, member);
      typed.current = { text, value: draft.text.value };
    }
    draft.halves.value = halves;
    draft.issues.value = draft.issues.value.filter(({ path }) => !isAt(path, field.key));
  };
  const issues = draft.issues.value.filter(({ path }) => isAt(path, field.key));
  const told = issues.map(({ path, message }) =>
    isNested(path, field.key) ? `${path.slice(1)}: ${message}` : message,
  );
  if (half !== undefined)
    told.push(
      field.kind === "json" ? "Not valid JSON" : field.kind === "integer" ? "Not an integer" : "Not a number",
    );
  if (masked) told.push("Redacted. Enter the real value or clear the field.");
  const id = `member-${at}`;
  const attributes = {
    id,
    class: `input ${field.kind === "text" || field.kind === "choice" ? "" : "mono"}`.trim(),
    "aria-required": field.required,
    "aria-invalid": told.length > 0,
    "aria-describedby": `${id}-hint`,
    placeholder: field.usual === null ? "" : `default ${field.usual.replaceAll('"', "")}`,
    spellcheck: false,
    autocomplete: "off",
  } as const;
  const text =
    half ?? (field.kind === "json" && typed.current?.value === draft.text.value ? typed.current.text : shown);
  return (
    <div class="field">
      <label for={id}>
        <span class="mono">{field.key}</span>
        {field.required && (
          <>
            <span class="need" aria-hidden="true">
              *
            </span>
            <span class="hidden-text"> required</span>
          </>
        )}{" "}
        <span class="muted">{field.type}</span>
      </label>
      {field.kind === "choice" ? (
        <select {...attributes} value={shown} onChange={(event) => set(event.currentTarget.value)}>
          <option value="">
            {field.usual === null ? "—" : `— (default ${field.usual.replaceAll('"', "")})`}
          </option>
          {field.options.map((option) => (
            <option key={option} value={option}>
              {option.startsWith('"') ? (JSON.parse(option) as string) : option}
            </option>
          ))}
        </select>
      ) : field.kind === "json" || shown.includes("\n") ? (
        <textarea {...attributes} rows={2} value={text} onInput={(event) => set(event.currentTarget.value)} />
      ) : (
        <input
          {...attributes}
          inputMode={field.kind === "text" ? undefined : field.kind === "integer" ? "numeric" : "decimal"}
          value={text}
          onInput={(event) => set(event.currentTarget.value)}
        />
      )}
      <div id={`${id}-hint`} class="small">
        {told.length > 0 ? (
          <span class="issue">{told.join(" ")}</span>
        ) : (
          field.hint !== "" && <span class="muted">{field.hint}</span>
        )}
      </div>
    </div>
  );
}

/** Whether the issue lies below the member. */
function isNested(path: string, key: string): boolean {
  return path !== `.${key}` && path !== `[${JSON.stringify(key)}]`;
}
