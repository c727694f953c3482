// A job as text that enqueues a copy: for a terminal, HTTP, or a program. Pure: the page's address is passed in. Values
// that the viewer may not see become a word that neither JSON nor a program accepts, so the text does nothing until it
// is filled in.
import { losesDigits } from "../../../src/values/exact-numbers.ts";
import type { JobDetail } from "../../../src/dashboard/api/contract.ts";
import { compact, enqueueBody, type JsonNode, pretty, readJson, replaced } from "../json/json-text.ts";
import { MASK } from "../json/redaction-masks.ts";
import { quoted } from "../text/shell-quoting.ts";

export type SnippetJob = Pick<
  JobDetail,
  | "name"
  | "queue"
  | "priority"
  | "maxAttempts"
  | "timeoutMs"
  | "deadlineAt"
  | "createdAt"
  | "key"
  | "lane"
  | "context"
  | "input"
  | "masked"
  | "payloadHidden"
>;

/** Bytes; Linux limits one argument to 128 KiB. */
const mostInArgument = 100_000;
/** The default in src/jobs/transition.ts, which the page cannot import; a test compares them. */
export const USUAL_ATTEMPTS = 5;

/** `holdfast enqueue …` */
export function commandSnippet(job: SnippetJob): string {
  const notes = notesOf(job);
  const words: string[] = [];
  for (const [option, value] of Object.entries(optionsOf(job))) {
    const text = option === "timeout" || option === "deadline" ? `${value}ms` : String(value);
    if (text.includes("\0") || !text.isWellFormed())
      notes.push(`Its ${option} has characters that no command line can hold and is left out.`);
    // A value that begins with a dash would be parsed as an option.
    else words.push(...(text.startsWith("-") ? [`--${option}=${text}`] : [`--${option}`, text]));
  }
  const input = compact(inputOf(job));
  const command = (last: string): string =>
    ["holdfast", "enqueue", quoted(job.name), last, ...words.map(quoted)].join(" ");
  if (isLarge(input)) return shell(notes, `${command("-")} ${hereText(input)}`);
  // JSON may begin with a space; an argument may not begin with a dash.
  return shell(notes, command(quoted(input.startsWith("-") ? ` ${input}` : input)));
}

/** `curl …` for this dashboard's API, without the token. */
export function curlSnippet(
  job: SnippetJob,
  { api, auth }: { readonly api: string; readonly auth: "token" | "page" },
): string {
  const notes = notesOf(job);
  if (auth === "page") notes.push("This dashboard has its own sign-in. Add its cookie or header.");
  const body = enqueueBody(job.name, compact(inputOf(job)), optionsOf(job));
  const lines = [
    `curl -X POST ${quoted(`${api}/jobs`)}`,
    auth === "token" ? '-H "Authorization: Bearer $HOLDFAST_TOKEN"' : "-H 'x-holdfast: 1'",
    "-H 'Content-Type: application/json'",
    isLarge(body) ? `--data-binary @- ${hereText(body)}` : `--data-raw ${quoted(body)}`,
  ];
  return shell(notes, lines.join(" \\\n  "));
}

/** `await hf.enqueue(…)` */
export function typescriptSnippet(job: SnippetJob): string {
  const notes = notesOf(job);
  const input = inputOf(job);
  if (/\d/.test(job.input ?? "") && hasLongNumbers(input))
    notes.push("JSON.rawJSON keeps digits that a JavaScript number cannot hold.");
  const options: JsonNode = {
    kind: "object",
    members: Object.entries(optionsOf(job)).map(([option, value]) => [
      option,
      { kind: "scalar", text: JSON.stringify(value) },
    ]),
  };
  const given = [JSON.stringify(job.name), pretty(input, program, 80)];
  if (options.members.length > 0) given.push(pretty(options, program, 80));
  return [...notes.map((note) => `// ${note}`), `await hf.enqueue(${given.join(", ")});`].join("\n");
}

/** Options that differ from the defaults, without the due time. */
function optionsOf(job: SnippetJob): Record<string, string | number> {
  const { queue, priority, maxAttempts, timeoutMs, deadlineAt, key, lane, context } = job;
  const options: Record<string, string | number> = {};
  if (queue !== "default") options["queue"] = queue;
  if (priority !== 0) options["priority"] = priority;
  if (maxAttempts !== USUAL_ATTEMPTS) options["attempts"] = maxAttempts;
  if (timeoutMs !== null) options["timeout"] = timeoutMs;
  if (deadlineAt !== null) options["deadline"] = Math.max(1, deadlineAt - job.createdAt);
  if (key !== null) options["key"] = key;
  if (lane !== null) options["lane"] = lane;
  if (context !== null && !context.includes(MASK)) options["context"] = context;
  return options;
}

function inputOf({ input, masked, payloadHidden }: SnippetJob): JsonNode {
  if (payloadHidden || input === null) return { kind: "scalar", text: "INPUT" };
  return replaced(readJson(input), masked, { kind: "scalar", text: "REDACTED" });
}

/** Notes for the reader, in letters, digits and full stops only: interactive zsh has no comments and would run them. */
function notesOf({ masked, payloadHidden, context }: SnippetJob): string[] {
  const notes: string[] = [];
  if (payloadHidden)
    notes.push("You do not have permission to see the input of this job. Put it in place of INPUT.");
  else if (masked.length > 0) {
    const places = masked.slice(0, 8).map((place) => place.join(".").replaceAll(/[^\w.]/g, "_"));
    const named = places.filter((place) => place !== "").join(" and ");
    notes.push(
      named === ""
        ? masked.length > 8
          ? "Redacted here and more. Put the real values in place of REDACTED."
          : "Redacted here. Put the real values in place of REDACTED."
        : masked.length > 8
          ? `Redacted here, ${named} and more. Put the real values in place of REDACTED.`
          : `Redacted here, ${named}. Put the real values in place of REDACTED.`,
    );
  }
  if (context?.includes(MASK) === true) notes.push("Its context is partly redacted and is left out.");
  return notes;
}

function isLarge(text: string): boolean {
  return new TextEncoder().encode(text).length > mostInArgument;
}

function shell(notes: readonly string[], command: string): string {
  return [...notes.map((note) => `# ${note}`), command].join("\n");
}

/** The text is one line of JSON and cannot contain the delimiter. */
function hereText(text: string): string {
  return `<<'END_OF_INPUT'\n${text}\nEND_OF_INPUT`;
}

const program = {
  // A __proto__ key would set the prototype.
  key: (key: string): string =>
    key === "__proto__" ? '["__proto__"]' : /^[A-Za-z_$][\w$]*$/.test(key) ? key : JSON.stringify(key),
  scalar: (text: string): string => (isLongNumber(text) ? `JSON.rawJSON(${JSON.stringify(text)})` : text),
  blank: " ",
};

function isLongNumber(text: string): boolean {
  return /^-?\d/.test(text) && losesDigits(text);
}

function hasLongNumbers(node: JsonNode): boolean {
  if (node.kind === "scalar") return isLongNumber(node.text);
  const parts = node.kind === "array" ? node.items : node.members.map(([, value]) => value);
  return parts.some(hasLongNumbers);
}
