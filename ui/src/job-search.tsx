// The search for jobs: words and text, with what could be typed next.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { ErrorGroups, JobFacets, JobList, WorkerLine } from "../../src/dashboard/contract.ts";
import { get, type Params } from "./api.ts";
import { type Known, pathsIn, type Suggestion, suggest, valueOf, wordAt } from "./completion.ts";
import { count } from "./format.ts";
import { Icon } from "./icons.tsx";
import { searchParams } from "./job-filter.ts";
import { onKey } from "./keys.ts";
import { setParams } from "./router.ts";

export function SearchBar({ facets, asked }: { facets: JobFacets | null; asked: Params }) {
  const input = useRef<HTMLInputElement>(null);
  const options = useSignal<readonly Suggestion[]>([]);
  const at = useSignal(-1);
  const fetched = useRef<Record<string, Known[string]>>({});
  useEffect(() => onKey("/", () => input.current?.focus()), []);

  const known = (): Known => ({
    ...fetched.current,
    ...(facets === null
      ? {}
      : {
          queue: facets.queues.map((one) => ({ value: one.value, hint: count(one) })),
          name: facets.names.map((one) => ({ value: one.value, hint: count(one) })),
        }),
  });
  const close = (): void => {
    options.value = [];
    at.value = -1;
  };
  const offer = (): void => {
    const field = input.current;
    if (field === null) return;
    const { word } = wordAt(field.value, field.selectionStart ?? field.value.length);
    at.value = -1;
    options.value = suggest(word, known());
    const of = valueOf(word)?.of ?? (word.toLowerCase().startsWith("payload") ? "payload" : null);
    if (of !== null) void learn(of, asked, fetched.current).then((news) => news && offer());
  };
  const take = (option: Suggestion): void => {
    const field = input.current;
    if (field === null) return;
    const caret = field.selectionStart ?? field.value.length;
    const { from } = wordAt(field.value, caret);
    field.value = field.value.slice(0, from) + option.insert + field.value.slice(caret).trimStart();
    const next = from + option.insert.length;
    field.focus();
    field.setSelectionRange(next, next);
    if (option.insert.endsWith(" ")) close();
    else offer();
  };
  const submit = (): void => {
    const text = input.current?.value ?? "";
    if (text.trim() === "") return;
    setParams(searchParams(text, Date.now()));
    if (input.current !== null) input.current.value = "";
    close();
  };
  const open = options.value.length > 0;
  return (
    <form
      class="search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <Icon name="search" />
      <input
        ref={input}
        class="input"
        role="combobox"
        aria-expanded={open}
        aria-controls="search-words"
        aria-autocomplete="list"
        aria-activedescendant={open && at.value >= 0 ? `search-word-${at.value}` : undefined}
        aria-label="Find jobs"
        placeholder="Text, an id, or words: state:dead attempt:>3 age:>5m payload.user.id:42"
        spellcheck={false}
        autocomplete="off"
        onInput={offer}
        onBlur={close}
        onKeyDown={(event) => {
          const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
          if (step !== undefined) {
            if (open) at.value = (at.value + step + options.value.length) % options.value.length;
            else offer();
          } else if (event.key === "Escape" && open) close();
          else if ((event.key === "Enter" || event.key === "Tab") && open && at.value >= 0)
            take(options.value[at.value]!);
          else return;
          event.preventDefault();
          event.stopPropagation();
        }}
      />
      <ul id="search-words" role="listbox" aria-label="What could be typed" hidden={!open}>
        {options.value.map((option, i) => (
          <li
            key={option.insert}
            id={`search-word-${i}`}
            role="option"
            aria-selected={i === at.value}
            // Before the field loses the focus.
            onMouseDown={(event) => {
              event.preventDefault();
              take(option);
            }}
          >
            <b class="mono">{option.shown}</b>
            <span class="hint clip">{option.hint}</span>
          </li>
        ))}
      </ul>
    </form>
  );
}

/** Asks for the values of a word, once; true: there are some now. */
async function learn(of: string, asked: Params, known: Record<string, Known[string]>): Promise<boolean> {
  if (known[of] !== undefined) return false;
  try {
    if (of === "worker") {
      const { workers } = await get<{ workers: WorkerLine[] }>("/workers");
      known["worker"] = [...new Set(workers.map(({ name }) => name))].map((value) => ({ value }));
    } else if (of === "error") {
      const { groups } = await get<ErrorGroups>("/errors");
      known["error"] = groups.map(({ group, message, name }) => ({ value: group, hint: message ?? name }));
    } else if (of === "lane" || of === "key" || of.startsWith("payload")) {
      const { jobs } = await get<JobList>("/jobs", { ...asked, order: null, limit: 100 });
      for (const word of ["lane", "key"] as const)
        known[word] = [...new Set(jobs.flatMap((job) => job[word] ?? []))].map((value) => ({ value }));
      const paths = pathsIn(jobs.map(({ preview }) => preview));
      known["payload"] = [...paths.keys()].map((value) => ({
        value,
        hint: [...(paths.get(value) ?? [])].slice(0, 3).join(", "),
      }));
      for (const [path, values] of paths)
        known[`payload.${path.toLowerCase()}`] = [...values].map((value) => ({ value }));
      known[of] ??= [];
    } else return false;
    return true;
  } catch {
    return false; // who may not see them types them
  }
}
