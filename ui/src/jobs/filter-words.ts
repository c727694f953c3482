// A filter as a sentence, shown before an action on its matches. A filter part without words does not compile, because
// the sentence must never describe fewer conditions than the filter has.
import type { FilterJson } from "../../../src/dashboard/api/contract.ts";
import { wordOf } from "../../../src/operate/search-words.ts";
import { instant, plural, windowText } from "../kit/format.ts";

type Whole = Required<FilterJson>;

const before: { readonly [K in "retrying" | "state"]: (value: Whole[K]) => string } = {
  retrying: (on) => (on ? "retrying" : ""),
  state: (states) => any(states),
};

const behind: {
  readonly [K in Exclude<keyof Whole, "ids" | keyof typeof before>]: (value: Whole[K]) => string;
} = {
  name: (names) => `named ${any(names)}`,
  queue: (queues) => `in queue ${any(queues)}`,
  lane: (lane) => `in lane ${lane}`,
  key: (key) => `with key ${key}`,
  workflow: (run) => `of run ${run}`,
  batch: (batch) => `of batch ${batch}`,
  trace: (trace) => `of trace ${trace.slice(0, 8)}`,
  failureGroup: (group) => `with error ${group.slice(0, 8)}`,
  search: (text) => `that contain “${text}”`,
  attempt: (value) => wordOf("attempt", value),
  age: (value) => wordOf("age", value),
  run: (value) => wordOf("run", value),
  worker: (value) => wordOf("worker", value),
  error: (value) => wordOf("error", value),
  payload: (values) => values.map((value) => wordOf("payload", value)).join(" "),
  since: (at) => `created at or after ${instantText(at)}`,
  until: (at) => `created before ${instantText(at)}`,
  ended: (window) => `that ended ${windowText(window)}`,
};

/** An address can contain any number; the server rejects one that is no instant. */
export function instantText(at: number): string {
  return at >= 0 && at <= 8.64e15 ? instant(at) : String(at);
}

export function inWords(filter: FilterJson): string {
  if (filter.ids !== undefined) return plural(filter.ids.length, "chosen job");
  const said = (words: Readonly<Record<string, (value: never) => string>>): string[] =>
    Object.entries(words).flatMap(([name, say]) => {
      const value = (filter as Readonly<Record<string, unknown>>)[name];
      return value === undefined ? [] : [say(value as never)];
    });
  return [...said(before), "jobs", ...said(behind)].filter((part) => part !== "").join(" ");
}

function any(words: readonly string[]): string {
  return words.join(" or ");
}
