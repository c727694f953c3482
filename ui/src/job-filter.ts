// Which jobs a list shows: from the address, from what is typed, and as the server, a bulk action and the command line take it.
import { parseSearch, wordOf } from "../../src/policy/words.ts";
import type { BulkVerb, EditJson, FilterJson, JobState } from "../../src/dashboard/contract.ts";
import type { Params } from "./api.ts";

/** The filter as the address has it: each part by its parameter. */
export type ListFilter = Readonly<Record<string, string>>;

/** The parts that stand as chips above the list. */
export const CHIPS = [
  "ids",
  "queue",
  "name",
  "lane",
  "key",
  "errorGroup",
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

/** Values that may have a comma, and stand in the address one by one; here on lines. */
export const SEVERAL = "payload";

export function filterOf(params: URLSearchParams): ListFilter {
  const chosen: Record<string, string> = {};
  for (const name of [...CHIPS, "state"]) {
    const value = name === SEVERAL ? params.getAll(name).join("\n") : params.get(name);
    if (value !== null && value !== "") chosen[name] = value;
  }
  return chosen;
}

/** What is typed into the search, as parameters of the address. Of what is said twice the last holds, but of payloads all. */
export function searchParams(typed: string, now: number): Record<string, string> {
  const { params, text } = parseSearch(typed);
  const found: Record<string, string> = {};
  for (const [param, values] of Object.entries(params)) {
    const last = values.at(-1) ?? "";
    if (param === SEVERAL) found[param] = values.join("\n");
    else if (param === "since" || param === "until") found[param] = String(instantOf(last, now));
    else if (param === "state" || param === "queue" || param === "name" || param === "ids")
      found[param] = values.join(",");
    else found[param] = last;
  }
  if (text !== "") found["search"] = text;
  return found;
}

/** A part as it would be typed, for its chip. */
export function chipText(param: string, value: string): { name: string; text: string } {
  const typed = wordOf(param, value);
  const at = typed.indexOf(":");
  return { name: typed.slice(0, at), text: typed.slice(at + 1).replaceAll('"', "") };
}

/** "2h" ago, or a date. */
function instantOf(text: string, now: number): number {
  const match = /^(\d+)(m|min|h|d)$/.exec(text);
  const units: Readonly<Record<string, number>> = { m: 60_000, min: 60_000, h: 3_600_000, d: 86_400_000 };
  if (match !== null) return now - Number(match[1]) * (units[match[2] ?? "m"] ?? 0);
  const date = Date.parse(text);
  return Number.isNaN(date) ? now : date;
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
    ...one("errorGroup"),
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

/** The same in the terminal. */
export function commandOf(
  verb: "list" | BulkVerb,
  filter: FilterJson,
  change: EditJson | null = null,
  rate: { readonly limit: number } | null | "wrong" = null,
  patch: object | null = null,
): string {
  // By ids a terminal knows no rate: they are few.
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
    if (verb === "list") return ["holdfast", "jobs", "show", filter.ids[0] ?? ""];
    return [...parts, ...filter.ids];
  }
  const add = (option: string, value: string | undefined): void => {
    if (value !== undefined) parts.push(`--${option}`, value);
  };
  add("state", filter.state?.join(","));
  add("queue", filter.queue?.join(","));
  add("name", filter.name?.join(","));
  add("lane", filter.lane);
  add("key", filter.key);
  add("error", filter.errorGroup);
  add("search", filter.search);
  add("since", filter.since === undefined ? undefined : new Date(filter.since).toISOString());
  add("until", filter.until === undefined ? undefined : new Date(filter.until).toISOString());
  if (filter.retrying === true) parts.push("--retrying");
  const words = (["attempt", "age", "run", "worker"] as const).flatMap((param) => {
    const value = filter[param];
    return value === undefined ? [] : [wordOf(param, value)];
  });
  if (filter.error !== undefined) words.push(wordOf("error", filter.error));
  words.push(...(filter.payload ?? []).map((value) => wordOf("payload", value)));
  add("where", words.length === 0 ? undefined : words.join(" "));
  return parts;
}

/** For a POSIX shell: whatever is not plainly harmless stands in single quotes. */
function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
