// The job name, with suggestions.
import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { JobFacets, DefinitionList } from "../../../src/dashboard/api/contract.ts";
import { get } from "../data/api.ts";
import { count } from "../kit/format.ts";

interface Known {
  readonly name: string;
  readonly hint: string;
}

const few = 8;

/** `chosen` is called when the name is complete: selected, known, or left. */
export function NameField({ start, chosen }: { start: string; chosen: Signal<string> }) {
  const known = useSignal<readonly Known[]>([]);
  const typed = useSignal(start);
  const open = useSignal(false);
  const at = useSignal(-1);
  const input = useRef<HTMLInputElement>(null);
  const choose = (): void => {
    if (known.value.some(({ name }) => name === typed.value)) chosen.value = typed.value;
  };
  // Typed before the suggestions have loaded.
  useEffect(() => {
    void kinds().then((found) => {
      known.value = found;
      choose();
    });
  }, []);
  const wanted = typed.value.trim().toLowerCase();
  const fits = known.value.filter(({ name }) => name.toLowerCase().includes(wanted)).slice(0, few);
  const shown = open.value && fits.length > 0 && !(fits.length === 1 && fits[0]?.name === typed.value);
  const close = (): void => {
    open.value = false;
    at.value = -1;
  };
  const take = (name: string): void => {
    typed.value = name;
    chosen.value = name;
    close();
    input.current?.focus();
  };
  return (
    <div class="field combo">
      <label for="kind-name">Name</label>
      <input
        ref={input}
        id="kind-name"
        class="input"
        name="name"
        role="combobox"
        aria-expanded={shown}
        aria-controls="kind-names"
        aria-autocomplete="list"
        aria-activedescendant={shown && at.value >= 0 ? `kind-name-${at.value}` : undefined}
        aria-required="true"
        placeholder="send-mail"
        spellcheck={false}
        autocomplete="off"
        value={typed.value}
        onInput={(event) => {
          typed.value = event.currentTarget.value;
          open.value = true;
          at.value = -1;
          choose();
        }}
        onClick={() => (open.value = true)}
        onBlur={() => {
          close();
          chosen.value = typed.value.trim();
        }}
        onKeyDown={(event) => {
          const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
          if (step !== undefined) {
            if (shown) at.value = (at.value + step + fits.length) % fits.length;
            open.value = true;
          } else if (event.key === "Escape" && shown) close();
          else if ((event.key === "Enter" || event.key === "Tab") && shown && at.value >= 0) {
            take(fits[at.value]?.name ?? "");
            if (event.key === "Tab") return;
          } else return;
          event.preventDefault();
          event.stopPropagation();
        }}
      />
      <ul id="kind-names" role="listbox" aria-label="Suggestions" hidden={!shown}>
        {fits.map(({ name, hint }, i) => (
          <li
            key={name}
            id={`kind-name-${i}`}
            role="option"
            aria-selected={i === at.value}
            // Before the field loses the focus.
            onMouseDown={(event) => {
              event.preventDefault();
              take(name);
            }}
          >
            <b class="mono clip">{name}</b>
            <span class="hint">{hint}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Names with jobs, most frequent first, then names that workers serve. */
async function kinds(): Promise<readonly Known[]> {
  const [facets, list] = await Promise.all([
    get<JobFacets>("/jobs/facets").catch(() => null),
    get<DefinitionList>("/definitions").catch(() => null),
  ]);
  const known = new Map<string, Known>();
  for (const one of facets?.names ?? []) known.set(one.value, { name: one.value, hint: count(one) });
  for (const { name } of list?.names ?? [])
    if (!known.has(name)) known.set(name, { name, hint: "no job yet" });
  return [...known.values()];
}
