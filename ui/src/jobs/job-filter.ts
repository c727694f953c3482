// A job filter in its forms: address, typed text, API parameters, bulk filter, command line.
import { idPart } from "../../../src/values/id-part.ts";
import { INSTANT_HELP, instantOf, WINDOW_HELP, windowDates, windowOf } from "../../../src/values/instant.ts";
import { spanMs } from "../../../src/values/duration.ts";
import { inQuotesOf, parseSearch, SEARCH_WORDS, wordOf } from "../../../src/operate/search-words.ts";
import type { BulkVerb, EditJson, FilterJson, JobState } from "../../../src/dashboard/api/contract.ts";
import type { Params } from "../data/query-params.ts";
import { quoted } from "../text/shell-quoting.ts";

/** The filter by address parameters. */
export type ListFilter = Readonly<Record<string, string>>;

/** Parts shown as chips. */
export const CHIPS = [
  "ids",
  "queue",
  "name",
  "lane",
  "key",
  "workflow",
  "batch",
  "trace",
  "failureGroup",
  "error",
  "attempt",
  "age",
  "run",
  "ended",
  "worker",
  "payload",
  "search",
  "since",
  "until",
] as const;

/** Values may contain commas, so they are repeated parameters in the address; here one per line. */
const SEVERAL = "payload";

export function filterOf(params: URLSearchParams): ListFilter {
  const chosen: Record<string, string> = {};
  for (const name of [...CHIPS, "state"]) {
    const value = name === SEVERAL ? params.getAll(name).join("\n") : params.get(name);
    if (value !== null && value !== "") chosen[name] = value;
  }
  return chosen;
}

/** The parsed search text. */
export interface Typed {
  /** As parameters of the address. Of a repeated word the last counts, except for payload. */
  readonly params: Readonly<Record<string, string>>;
  /** Parts of ids; the server finds their jobs. */
  readonly parts: readonly string[];
  /** May be part of an id; searched as text if no id matches. */
  readonly perhaps: string | null;
  /** Parts that cannot be parsed. Nothing is searched then, because it would find something else. */
  readonly problem: {
    readonly message: string;
    /** The text to type to search it literally; null: nobody means that. */
    readonly asText: string | null;
  } | null;
}

/** Twelve hexadecimal digits alone are the end of an id, as lists show it. Other lengths may be numbers or words. */
const shownEnd = /^[0-9a-f]{12}$/i;
const leastDigits = 8;
const id = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export function readSearch(typed: string, now: number): Typed {
  const { params, text, unknown } = parseSearch(typed);
  const found: Record<string, string> = {};
  const parts: string[] = [];
  const wrong = (message: string, asText: string | null = null): Typed => ({
    params: {},
    parts: [],
    perhaps: null,
    problem: { message, asText },
  });
  if (unknown.length > 0)
    return wrong(
      `There is no word ${unknown.map((word) => `${word}:`).join(", ")}. ${meant(unknown[0] ?? "")}`.trimEnd(),
      inQuotesOf(typed.trim()),
    );
  for (const [param, values] of Object.entries(params)) {
    const last = values.at(-1) ?? "";
    const refused = refusal(param, values);
    if (refused !== null) return wrong(refused);
    if (param === SEVERAL) found[param] = values.join("\n");
    else if (param === "since" || param === "until") {
      const at = instantOf(last, now);
      if (at === null) return wrong(`${param}: expected ${INSTANT_HELP}; got ${last}.`);
      found[param] = String(at);
    } else if (param === "ended") {
      const window = windowOf(last, now);
      if (window === null) return wrong(`ended: expected ${WINDOW_HELP}; got ${last}.`);
      found[param] = window;
    } else if (param === "ids") {
      const given = values.flatMap((value) => value.split(","));
      const bad = given.find((one) => idPart(one) === null);
      if (bad !== undefined)
        return wrong(`id: expected an id or at least 4 digits of its start or end; got ${bad}.`);
      parts.push(...given.filter((one) => !id.test(one)));
      found[param] = given.filter((one) => id.test(one)).join(",");
    } else if (param === "state" || param === "queue" || param === "name") found[param] = values.join(",");
    else found[param] = last;
  }
  // Quotes make it text.
  const bare = typed.includes('"') ? "" : text;
  if (shownEnd.test(bare)) parts.push(bare);
  else if (text !== "") found["search"] = text;
  const perhaps = found["search"] === bare && (idPart(bare)?.digits ?? 0) >= leastDigits ? bare : null;
  return { params: found, parts: parts.map((one) => one.toLowerCase()), perhaps, problem: null };
}

/** Fails to compile if a state is missing. */
const states: Readonly<Record<JobState, true>> = {
  scheduled: true,
  ready: true,
  running: true,
  waiting: true,
  done: true,
  dead: true,
  cancelled: true,
};
const sign = /^(>=|<=|>|<|=)?/;

/** An invalid value of a known word. */
function refusal(param: string, values: readonly string[]): string | null {
  const last = values.at(-1) ?? "";
  const bounds = last.includes("..") ? last.split("..") : [last.replace(sign, "")];
  if (param === "state") {
    const bad = values.flatMap((value) => value.split(",")).find((one) => !Object.hasOwn(states, one));
    if (bad !== undefined) return `state: expected ${Object.keys(states).join(", ")}; got ${bad}.`;
  }
  if (param === "attempt" && !bounds.every((one) => /^\d{1,16}$/.test(one)))
    return `attempt: expected a whole number such as 3, >3, <=3 or 3..5; got ${last}.`;
  if ((param === "age" || param === "run") && !bounds.every((one) => spanMs(one) >= 0))
    return `${param}: expected a time such as >5m, <10s or 1h..2h; got ${last}.`;
  return null;
}

/** "Did you mean queue:?", for a word that is nearly known. */
function meant(unknown: string): string {
  const near = SEARCH_WORDS.find(({ word }) => oneSlip(unknown.toLowerCase(), word));
  if (unknown.toLowerCase() === "payload")
    return "For a value in the input, write its path: payload.user.id:42.";
  return near === undefined ? "" : `Did you mean ${near.word}:?`;
}

/** One letter added, missing, changed, or two swapped. */
function oneSlip(given: string, word: string): boolean {
  let from = 0;
  while (from < word.length && given[from] === word[from]) from += 1;
  const [left, right] = [given.slice(from), word.slice(from)];
  return (
    left.slice(1) === right ||
    left === right.slice(1) ||
    left.slice(1) === right.slice(1) ||
    (left[0] === right[1] && left[1] === right[0] && left.slice(2) === right.slice(2))
  );
}

/** A part as it is typed, for its chip. */
export function chipText(param: string, value: string): { name: string; text: string } {
  const typed = wordOf(param, value);
  const at = typed.indexOf(":");
  return { name: typed.slice(0, at), text: typed.slice(at + 1).replaceAll('"', "") };
}

/** Parameters as a bulk action's filter. */
export function filterJson(asked: Params): FilterJson {
  const text = (name: string): string | undefined => {
    const value = asked[name];
    return value === null || value === undefined || value === "" ? undefined : String(value);
  };
  const list = (name: string): { [key: string]: string[] } => {
    const value = text(name);
    return value === undefined ? {} : { [name]: value.split(",") };
  };
  const one = (name: string): { [key: string]: string } => {
    const value = text(name);
    return value === undefined ? {} : { [name]: value };
  };
  const instant = (name: string): { [key: string]: number } => {
    const value = text(name);
    return value === undefined ? {} : { [name]: Number(value) };
  };
  return {
    ...list("ids"),
    ...(list("state") as { state?: JobState[] }),
    ...list("queue"),
    ...list("name"),
    ...one("lane"),
    ...one("key"),
    ...one("workflow"),
    ...one("batch"),
    ...one("trace"),
    ...one("failureGroup"),
    ...one("search"),
    ...one("error"),
    ...one("attempt"),
    ...one("age"),
    ...one("run"),
    ...one("ended"),
    ...one("worker"),
    ...(text(SEVERAL) === undefined ? {} : { payload: text(SEVERAL)?.split("\n") ?? [] }),
    ...instant("since"),
    ...instant("until"),
    ...(asked["retrying"] === true ? { retrying: true } : {}),
  };
}

/** The same list on the command line. */
export function commandOf(
  verb: "list" | BulkVerb,
  filter: FilterJson,
  change: EditJson | null = null,
  rate: { readonly limit: number } | null | "wrong" = null,
  patch: object | null = null,
): string {
  // The command line takes no rate with ids.
  const asFastAsItGoes = rate === null || rate === "wrong" || filter.ids !== undefined;
  return [
    ...partsOf(verb, filter),
    ...editParts(change ?? {}),
    ...(patch === null ? [] : ["--patch", JSON.stringify(patch)]),
    ...(asFastAsItGoes ? [] : ["--rate", `${rate.limit}/s`]),
  ]
    .map(quoted)
    .join(" ");
}

function editParts({ delay, at, queue, priority }: EditJson): string[] {
  const given: [string, string | number | undefined][] = [
    ["delay", typeof delay === "number" ? `${delay}ms` : delay],
    ["at", at === undefined ? undefined : new Date(at).toISOString()],
    ["to", queue],
    ["priority", priority],
  ];
  return given.flatMap(([option, value]) => (value === undefined ? [] : [`--${option}`, String(value)]));
}

function partsOf(verb: "list" | BulkVerb, filter: FilterJson): string[] {
  if (verb === "purge") return ["holdfast", "queues", "purge", filter.queue?.[0] ?? ""];
  const parts = ["holdfast", "jobs", verb === "run-now" ? "run" : verb];
  if (filter.ids !== undefined) {
    if (verb === "list")
      return filter.ids.length === 1
        ? ["holdfast", "jobs", "show", ...filter.ids]
        : [...parts, "--where", `id:${filter.ids.join(",")}`];
    return [...parts, ...filter.ids];
  }
  const add = (option: string, value: string | undefined): void => {
    if (value === undefined) return;
    // A value that begins with a dash would be parsed as an option.
    if (value.startsWith("-")) parts.push(`--${option}=${value}`);
    else parts.push(`--${option}`, value);
  };
  add("state", filter.state?.join(","));
  add("queue", filter.queue?.join(","));
  add("name", filter.name?.join(","));
  add("lane", filter.lane);
  add("key", filter.key);
  add("workflow", filter.workflow);
  add("batch", filter.batch);
  add("trace", filter.trace);
  add("error", filter.failureGroup);
  add("search", filter.search);
  add("since", filter.since === undefined ? undefined : new Date(filter.since).toISOString());
  add("until", filter.until === undefined ? undefined : new Date(filter.until).toISOString());
  if (filter.retrying === true) parts.push("--retrying");
  const words = (["attempt", "age", "run", "worker"] as const).flatMap((param) => {
    const value = filter[param];
    return value === undefined ? [] : [wordOf(param, value)];
  });
  if (filter.ended !== undefined) words.push(wordOf("ended", windowDates(filter.ended)));
  if (filter.error !== undefined) words.push(wordOf("error", filter.error));
  words.push(...(filter.payload ?? []).map((value) => wordOf("payload", value)));
  add("where", words.length === 0 ? undefined : words.join(" "));
  return parts;
}
