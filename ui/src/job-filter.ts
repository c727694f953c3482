// Which jobs a list shows: from the address, from what is typed, and as the server, a bulk action and the command line take it.
import type { BulkAction, EditJson, FilterJson, JobState } from "../../src/dashboard/contract.ts";
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
  "search",
  "since",
  "until",
] as const;

/** What is typed before a colon, and the parameter it means. */
const words: Readonly<Record<string, string>> = {
  queue: "queue",
  name: "name",
  lane: "lane",
  key: "key",
  id: "ids",
  error: "errorGroup",
  state: "state",
  since: "since",
  until: "until",
};

export function filterOf(params: URLSearchParams): ListFilter {
  const chosen: Record<string, string> = {};
  for (const name of [...CHIPS, "state"]) {
    const value = params.get(name);
    if (value !== null && value !== "") chosen[name] = value;
  }
  return chosen;
}

/** What is typed into the search: `queue:mail name:"x"` are filters, the rest is text; a whole id is an id. */
export function parseSearch(text: string, now: number): Record<string, string> {
  const found: Record<string, string> = {};
  const rest: string[] = [];
  for (const [part, word, quoted, bare] of text.matchAll(/(\w+):(?:"([^"]*)"|(\S+))|\S+/g)) {
    const value = quoted ?? bare;
    const param = word !== undefined && Object.hasOwn(words, word) ? words[word] : undefined;
    if (param === undefined || value === undefined) {
      if (/^[0-9a-f]{8}-[0-9a-f-]{27}$/i.test(part)) found["ids"] = part.toLowerCase();
      else rest.push(part);
    } else found[param] = param === "since" || param === "until" ? String(instantOf(value, now)) : value;
  }
  if (rest.length > 0) found["search"] = rest.join(" ");
  return found;
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
    ...instant("since"),
    ...instant("until"),
    ...(asked["retrying"] === true ? { retrying: true } : {}),
  };
}

/** The same in the terminal. */
export function commandOf(
  verb: "list" | BulkAction,
  filter: FilterJson,
  change: EditJson | null = null,
  rate: { readonly limit: number } | null | "wrong" = null,
): string {
  // By ids a terminal knows no rate: they are few.
  const asFastAsItGoes = rate === null || rate === "wrong" || filter.ids !== undefined;
  return [
    ...partsOf(verb, filter),
    ...editParts(change ?? {}),
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

function partsOf(verb: "list" | BulkAction, filter: FilterJson): string[] {
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
  return parts;
}

/** For a POSIX shell: whatever is not plainly harmless stands in single quotes. */
function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
