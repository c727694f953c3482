// A filter as a sentence, for who is about to act on what it matches: it must not name more than that. So each part of a filter
// has its words here, or this does not compile.
import type { FilterJson } from "../../../src/dashboard/api/contract.ts";
import { wordOf } from "../../../src/operate/search-words.ts";
import { instant, windowText } from "../kit/format.ts";
import { stateWord } from "../language/state-words.ts";
import { language, t, usual } from "../language/translation.ts";

type Whole = Required<FilterJson>;

const before: { readonly [K in "retrying" | "state"]: (value: Whole[K]) => string } = {
  retrying: (on) => (on ? stateWord("retrying") : ""),
  state: (states) => any(states.map(stateWord)),
};

const behind: {
  readonly [K in Exclude<keyof Whole, "ids" | keyof typeof before>]: (value: Whole[K]) => string;
} = {
  name: (names) => t("named {names}", { names: any(names) }),
  queue: (queues) => t("in queue {queues}", { queues: any(queues) }),
  lane: (lane) => t("in lane {lane}", { lane }),
  key: (key) => t("with key {key}", { key }),
  workflow: (run) => t("of run {run}", { run }),
  batch: (batch) => t("of batch {batch}", { batch }),
  trace: (trace) => t("of trace {trace}", { trace: trace.slice(0, 8) }),
  errorGroup: (group) => t("with error {group}", { group: group.slice(0, 8) }),
  search: (text) => t("that contain “{text}”", { text }),
  attempt: (value) => wordOf("attempt", value),
  age: (value) => wordOf("age", value),
  run: (value) => wordOf("run", value),
  worker: (value) => wordOf("worker", value),
  error: (value) => wordOf("error", value),
  payload: (values) => values.map((value) => wordOf("payload", value)).join(" "),
  since: (at) => t("created at or after {at}", { at: instantText(at) }),
  until: (at) => t("created before {at}", { at: instantText(at) }),
  ended: (window) => t("that ended {window}", { window: windowText(window) }),
};

/** An address can hold anything; the server refuses what is no instant. */
export function instantText(at: number): string {
  return at >= 0 && at <= 8.64e15 ? instant(at) : String(at);
}

export function inWords(filter: FilterJson): string {
  if (filter.ids !== undefined)
    return t("{count, plural, one {# chosen job} other {# chosen jobs}}", { count: filter.ids.length });
  const said = (words: Readonly<Record<string, (value: never) => string>>): string[] =>
    Object.entries(words).flatMap(([name, say]) => {
      const value = (filter as Readonly<Record<string, unknown>>)[name];
      return value === undefined ? [] : [say(value as never)];
    });
  return [...said(before), t("jobs"), ...said(behind)].filter((part) => part !== "").join(" ");
}

const either = new Intl.ListFormat(language, { type: "disjunction" });

/** "a or b". */
function any(words: readonly string[]): string {
  return usual ? words.join(" or ") : either.format(words);
}
