// The job search: filters and text, with suggestions. Text that cannot be parsed is reported below the field and not
// searched.
import { signal, useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type {
  FailureGroups,
  JobFacets,
  JobList,
  JobMatches,
  RunList,
  BatchList,
  WorkerLine,
} from "../../../src/dashboard/api/contract.ts";
import { inQuotesOf } from "../../../src/operate/search-words.ts";
import { get, type Params } from "../data/api.ts";
import { type Known, pathsIn, type Suggestion, suggest, valueOf, wordAt } from "./search-completion.ts";
import { count, instant } from "../kit/format.ts";
import { Icon } from "../kit/icons.tsx";
import { readSearch } from "./job-filter.ts";
import { onKey } from "../kit/shortcuts.ts";
import { params, setParams } from "../data/router.ts";

/** The message below the field, and an alternative. */
export interface SearchProblem {
  readonly message: string;
  readonly instead: { readonly verb: string; readonly run: () => void } | null;
}

/** While this is set, actions on all matches are off: the list shows an earlier search. */
export const searchProblem = signal<SearchProblem | null>(null);

const looking: SearchProblem = { message: "Searching for the id…", instead: null };

export function SearchBar({ facets, asked }: { facets: JobFacets | null; asked: Params }) {
  const input = useRef<HTMLInputElement>(null);
  const options = useSignal<readonly Suggestion[]>([]);
  const at = useSignal(-1);
  const fetched = useRef<Record<string, Known[string]>>({});
  useEffect(() => onKey("/", () => input.current?.focus()), []);
  useEffect(() => () => void (searchProblem.value = null), []);
  // Text passed by the palette.
  const handed = params.value.get("find");
  useLayoutEffect(() => {
    if (handed === null) return;
    if (input.current !== null) input.current.value = handed;
    setParams({ find: null }, { replace: true });
    submit(handed);
  }, [handed]);

  const known = (): Known => ({
    ...fetched.current,
    ...(facets === null
      ? {}
      : {
          queue: facets.queues.map((one) => ({ value: one.value, hint: count(one) })),
          name: facets.names.map((one) => ({ value: one.value, hint: count(one) })),
          kind: facets.names.map((one) => ({ value: one.value, hint: count(one) })),
        }),
  });
  // A late answer must not reopen the list, or open it for another word.
  const turn = useRef(0);
  const close = (): void => {
    turn.current += 1;
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
    const mine = ++turn.current;
    if (of !== null)
      void learn(of, asked, fetched.current).then((news) => news && mine === turn.current && offer());
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
  const show = (found: Readonly<Record<string, string>>): void => {
    searchProblem.value = null;
    setParams(found);
    if (input.current !== null) input.current.value = "";
  };
  const refuse = (message: string, asText: string | null): void => {
    const instead = asText === null ? null : { verb: "Search for it as text", run: () => submit(asText) };
    searchProblem.value = { message, instead };
  };
  const submit = (text: string): void => {
    close();
    if (text.trim() === "") return;
    const { params: found, parts, perhaps, problem } = readSearch(text, Date.now());
    if (problem !== null) refuse(problem.message, problem.asText);
    else if (parts.length > 0) void whose(parts, found, null);
    else if (perhaps !== null) void isOne(perhaps, found);
    else show(found);
  };
  /** Opens the job with this id, or searches the text if there is none. */
  const isOne = async (
    part: string,
    { search, ...found }: Readonly<Record<string, string>>,
  ): Promise<void> => {
    searchProblem.value = looking;
    const ids = await get<JobMatches>("/jobs/matching", { id: part }).then(
      ({ jobs }) => jobs.map(({ id }) => id),
      () => [],
    );
    show({ ...found, ...(ids.length > 0 ? { ids: ids.join(",") } : { search: search ?? part }) });
  };
  /** Resolves parts of ids one by one; ends are searched among the newest jobs first. */
  const whose = async (
    [part = "", ...others]: readonly string[],
    found: Readonly<Record<string, string>>,
    cursor: string | null,
  ): Promise<void> => {
    searchProblem.value = looking;
    try {
      const { jobs, more, ...looked } = await get<JobMatches>("/jobs/matching", { id: part, cursor });
      const known = [...(found["ids"] ?? "").split(","), ...jobs.map(({ id }) => id)].filter(
        (id) => id !== "",
      );
      const all = { ...found, ids: [...new Set(known)].join(",") };
      if (more)
        refuse(
          `More than ${jobs.length} jobs have ids that begin or end with ${part}. Type more characters.`,
          inQuotesOf(part),
        );
      else if (jobs.length > 0 && others.length > 0) await whose(others, all, null);
      else if (jobs.length > 0) show(all);
      else if (looked.cursor === null)
        refuse(`No job has an id that begins or ends with ${part}.`, inQuotesOf(part));
      else
        searchProblem.value = {
          message: `No job since ${instant(looked.since)} has an id that ends with ${part}.`,
          instead: { verb: "Search on", run: () => void whose([part, ...others], found, looked.cursor) },
        };
    } catch (error) {
      refuse((error as Error).message, null);
    }
  };
  const open = options.value.length > 0;
  const problem = searchProblem.value;
  return (
    <form
      class="search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        submit(input.current?.value ?? "");
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
        placeholder="Text, id, or filters: state:dead attempt:>3 age:>5m payload.user.id:42"
        spellcheck={false}
        autocomplete="off"
        aria-invalid={problem !== null}
        aria-describedby={problem === null ? undefined : "search-problem"}
        onInput={() => {
          searchProblem.value = null;
          offer();
        }}
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
      <ul id="search-words" role="listbox" aria-label="Suggestions" hidden={!open}>
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
      {problem !== null && (
        <p id="search-problem" class="problem" role="alert">
          <Icon name="dead" size={13} /> <span>{problem.message}</span>
          {problem.instead !== null && (
            <button type="button" class="button small" onClick={problem.instead.run}>
              {problem.instead.verb}
            </button>
          )}
        </p>
      )}
    </form>
  );
}

/** Loads the values of a word once; true: values have arrived. */
async function learn(of: string, asked: Params, known: Record<string, Known[string]>): Promise<boolean> {
  if (known[of] !== undefined) return false;
  try {
    if (of === "worker") {
      const { workers } = await get<{ workers: WorkerLine[] }>("/workers");
      known["worker"] = [...new Set(workers.map(({ name }) => name))].map((value) => ({ value }));
    } else if (of === "error") {
      const { groups } = await get<FailureGroups>("/errors");
      known["error"] = groups.map(({ group, message, name }) => ({ value: group, hint: message ?? name }));
    } else if (of === "workflow") {
      const { runs } = await get<RunList>("/runs", { limit: 50 });
      known["workflow"] = runs.map(({ id, name, state }) => ({ value: id, hint: `${name}, ${state}` }));
    } else if (of === "batch") {
      const { batches } = await get<BatchList>("/batches", { limit: 50 });
      known["batch"] = batches.map(({ id, total, names }) => ({
        value: id,
        hint: `${total} × ${names.join(", ")}`,
      }));
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
