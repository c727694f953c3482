/**
 * The words of a search: `attempt:>3 age:>5m payload.user.id:42 state:dead timeout` is a filter on three things and a text.
 *
 * Invariants: pure, and without imports, because the dashboard's page reads them as well; what a value means is checked
 * elsewhere (policy/range.ts, and what takes the filter).
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
  { word: "name", param: "name", example: "send-mail", help: "of this kind" },
  { word: "error", param: "error", example: "ECONNREFUSED", help: "text in its errors, or a group of them" },
  { word: "attempt", param: "attempt", example: ">3", help: "attempts so far" },
  { word: "age", param: "age", example: ">5m", help: "since it was created" },
  { word: "run", param: "run", example: ">10s", help: "how long it ran, or runs" },
  { word: "payload", param: "payload", example: "payload.user.id:42", help: "a value in its input" },
  { word: "worker", param: "worker", example: "web-1", help: "ran on this worker, by name or id" },
  { word: "lane", param: "lane", example: "acme", help: "in this lane" },
  { word: "key", param: "key", example: "order-7", help: "with this unique key" },
  { word: "id", param: "ids", example: "0199…", help: "this job" },
  { word: "since", param: "since", example: "2h", help: "created after: an age or a date" },
  { word: "until", param: "until", example: "2026-01-31", help: "created before" },
];

const byWord = new Map(SEARCH_WORDS.map((one) => [one.word, one]));
const group = /^[0-9a-f]{16}$/;
const id = /^[0-9a-f]{8}-[0-9a-f-]{27}$/i;

export interface Search {
  /** Values by the parameter they are for; of `payload` each as `user.id:42`. */
  readonly params: Readonly<Record<string, readonly string[]>>;
  /** What is no word and no id. */
  readonly text: string;
  /** What looks like a word and is none; it is in the text as well. */
  readonly unknown: readonly string[];
}

/**
 * What is asked for. A value in quotes may have blanks.
 *
 * @example
 * parseSearch('attempt:>3 name:"send-mail" refused'); // { params: { attempt: [">3"], name: ["send-mail"] }, text: "refused", unknown: [] }
 */
export function parseSearch(text: string): Search {
  const params: Record<string, string[]> = {};
  const rest: string[] = [];
  const unknown: string[] = [];
  const add = (param: string, value: string): void => void (params[param] ??= []).push(value);
  for (const [part, word, path, quoted, bare, alone] of text.matchAll(
    /([a-z]+)((?:\.[^\s:."]+)*):(?:"([^"]*)"|(\S+))|"([^"]*)"|\S+/gi,
  )) {
    const value = quoted ?? bare;
    const known = byWord.get((word ?? "").toLowerCase());
    const isPath = path !== undefined && path !== "";
    if (value !== undefined && known !== undefined && isPath === (known.word === "payload")) {
      if (isPath) add("payload", `${path.slice(1)}:${value}`);
      else if (known.word === "error" && group.test(value)) add("errorGroup", value);
      else add(known.param, value);
    } else if (id.test(part)) add("ids", part.toLowerCase());
    else {
      rest.push(alone ?? part);
      if (value !== undefined && word !== undefined && !value.startsWith("//"))
        unknown.push(`${word}${path}`);
    }
  }
  return { params, text: rest.join(" "), unknown };
}

/** A filter's part as it would be typed. */
export function wordOf(param: string, value: string): string {
  const known = SEARCH_WORDS.find((one) => one.param === param);
  const word = param === "errorGroup" ? "error" : (known?.word ?? param);
  const at = param === "payload" ? value.indexOf(":") : -1;
  const [name, text] = at === -1 ? [word, value] : [`payload.${value.slice(0, at)}`, value.slice(at + 1)];
  return `${name}:${/[\s"]/.test(text) ? `"${text.replaceAll('"', "")}"` : text}`;
}
