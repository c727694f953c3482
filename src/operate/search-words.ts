/**
 * The words of a search: `attempt:>3 age:>5m payload.user.id:42 state:dead timeout` is a filter on three things and a text.
 *
 * Invariants: pure, and without imports, because the dashboard's page reads them as well; what a value means is checked
 * elsewhere (filter-range.ts, and what takes the filter).
 */

/** A word that can stand before a colon, and the parameter of the API that it means. */
export interface SearchWord {
  readonly word: string;
  readonly param: string;
  /** What may follow it, for who has never used it. */
  readonly example: string;
  readonly help: string;
}

export const SEARCH_WORDS: readonly SearchWord[] = [
  { word: "state", param: "state", example: "dead", help: "its state" },
  { word: "queue", param: "queue", example: "mail", help: "in this queue" },
  { word: "name", param: "name", example: "send-mail", help: "with this job name" },
  { word: "kind", param: "name", example: "send-mail", help: "the same as name" },
  { word: "error", param: "error", example: "ECONNREFUSED", help: "text in its errors, or a failure group" },
  { word: "attempt", param: "attempt", example: ">3", help: "attempts so far" },
  { word: "age", param: "age", example: ">5m", help: "time since it was created" },
  { word: "run", param: "run", example: ">10s", help: "duration of its run" },
  { word: "payload", param: "payload", example: "payload.user.id:42", help: "a value in its input" },
  { word: "worker", param: "worker", example: "web-1", help: "ran on this worker, by name or id" },
  { word: "lane", param: "lane", example: "acme", help: "in this lane" },
  { word: "key", param: "key", example: "order-7", help: "with this unique key" },
  { word: "workflow", param: "workflow", example: "0199…", help: "called or enqueued by this run" },
  { word: "batch", param: "batch", example: "0199…", help: "a job of this batch" },
  {
    word: "trace",
    param: "trace",
    example: "4bf92f35…",
    help: "enqueued in this trace: its id or a traceparent",
  },
  { word: "id", param: "ids", example: "0199…", help: "this job" },
  { word: "since", param: "since", example: "2h", help: "created after: an age or a date" },
  { word: "until", param: "until", example: "2026-01-31", help: "created before" },
  { word: "ended", param: "ended", example: "1h", help: "ended within this time, or from..to" },
];

const byWord = new Map(SEARCH_WORDS.map((one) => [one.word, one]));
const group = /^[0-9a-f]{16}$/;
const traceparent = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/i;
const trace = /^[0-9a-f]{32}$/i;
const id = /^[0-9a-f]{8}-[0-9a-f-]{27}$/i;
/** In quotes a quote or a backslash stands behind a backslash. */
const inQuotes = String.raw`"((?:\\["\\]|[^"\\]|\\(?!["\\]))*)"`;
const parts = new RegExp(String.raw`([a-z]+)((?:\.[^\s:."]+)*):(?:${inQuotes}|(\S+))|${inQuotes}|\S+`, "gi");

export interface Search {
  /** Values by the parameter they are for; of `payload` each as `user.id:42`. */
  readonly params: Readonly<Record<string, readonly string[]>>;
  /** What is no word, no id and no trace. */
  readonly text: string;
  /** What looks like a word and is none; it is in the text as well. */
  readonly unknown: readonly string[];
}

/**
 * What is asked for. A value in quotes may have blanks, and means itself: no id, no trace, no group of errors.
 *
 * @example
 * parseSearch('attempt:>3 name:"send-mail" refused'); // { params: { attempt: [">3"], name: ["send-mail"] }, text: "refused", unknown: [] }
 */
export function parseSearch(text: string): Search {
  const params: Record<string, string[]> = {};
  const rest: string[] = [];
  const unknown: string[] = [];
  const add = (param: string, value: string): void => void (params[param] ??= []).push(value);
  for (const [part, word, path, quoted, bare, alone] of text.matchAll(parts)) {
    const value = quoted === undefined ? bare : unescaped(quoted);
    const known = byWord.get((word ?? "").toLowerCase());
    const isPath = path !== undefined && path !== "";
    if (value !== undefined && known !== undefined && isPath === (known.word === "payload")) {
      if (isPath) add("payload", `${path.slice(1)}:${value}`);
      else if (known.word === "error" && quoted === undefined && group.test(value))
        add("failureGroup", value);
      else add(known.param, value);
    } else if (traceparent.test(part) || trace.test(part)) add("trace", part.toLowerCase());
    else if (id.test(part)) add("ids", part.toLowerCase());
    else {
      rest.push(alone === undefined ? part : unescaped(alone));
      if (value !== undefined && word !== undefined && !value.startsWith("//"))
        unknown.push(`${word}${path}`);
    }
  }
  return { params, text: rest.join(" "), unknown };
}

/** A filter's part as it would be typed. */
export function wordOf(param: string, value: string): string {
  const known = SEARCH_WORDS.find((one) => one.param === param);
  const word = param === "failureGroup" ? "error" : (known?.word ?? param);
  const at = param === "payload" ? value.indexOf(":") : -1;
  const [name, text] = at === -1 ? [word, value] : [`payload.${value.slice(0, at)}`, value.slice(at + 1)];
  // A text that looks like a group of errors is one unless it is in quotes.
  const plain = text !== "" && !/[\s"]/.test(text) && !(param === "error" && group.test(text));
  return `${name}:${plain ? text : inQuotesOf(text)}`;
}

/** As text that means itself, whatever it looks like. */
export function inQuotesOf(text: string): string {
  return `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
}

function unescaped(text: string): string {
  return text.replaceAll(/\\(["\\])/g, "$1");
}
