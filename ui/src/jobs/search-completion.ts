// Suggestions of the job search. Pure: known values are passed in.
import { SEARCH_WORDS } from "../../../src/operate/search-words.ts";

export interface Suggestion {
  /** The replacement of the word at the caret. */
  readonly insert: string;
  readonly shown: string;
  readonly hint: string;
}

/** Known values by word; for `payload` by path. */
export type Known = Readonly<Record<string, readonly { readonly value: string; readonly hint?: string }[]>>;

const few = 8;
const usual: Known = {
  state: ["ready", "running", "scheduled", "waiting", "done", "dead", "cancelled"].map((value) => ({
    value,
  })),
  attempt: [">1", ">3", ">=10"].map((value) => ({ value })),
  age: ["<5m", "<1h", ">1h", ">1d"].map((value) => ({ value })),
  run: [">1s", ">10s", ">1m", ">10m"].map((value) => ({ value })),
  since: ["15m", "1h", "24h", "7d"].map((value) => ({ value })),
  until: ["15m", "1h", "24h", "7d"].map((value) => ({ value })),
};

/** The word at the caret: where it begins, and its text. */
export function wordAt(text: string, caret: number): { from: number; word: string } {
  let from = 0;
  let quoted = false;
  for (let i = 0; i < caret; i += 1) {
    if (text[i] === '"') quoted = !quoted;
    else if (!quoted && /\s/.test(text[i] ?? "")) from = i + 1;
  }
  return { from, word: text.slice(from, caret) };
}

/** The word before the colon, with its path for payload; null: none yet. */
export function valueOf(word: string): { of: string; typed: string } | null {
  const at = word.indexOf(":");
  return at === -1
    ? null
    : { of: word.slice(0, at).toLowerCase(), typed: word.slice(at + 1).replaceAll('"', "") };
}

export function suggest(word: string, known: Known): Suggestion[] {
  const value = valueOf(word);
  if (value !== null) {
    const values = [
      ...(known[value.of] ?? []),
      ...(known[value.of] === undefined ? (usual[value.of] ?? []) : []),
    ];
    const wanted = value.typed.toLowerCase();
    const fits = values.filter(
      (one) => one.value.toLowerCase().includes(wanted) || one.hint?.toLowerCase().includes(wanted) === true,
    );
    // A complete value needs no suggestion.
    if (fits.length === 1 && fits[0]?.value === value.typed) return [];
    return fits.slice(0, few).map((one) => ({
      insert: `${value.of}:${/\s/.test(one.value) ? `"${one.value}"` : one.value} `,
      shown: one.value,
      hint: one.hint ?? "",
    }));
  }
  const typed = word.toLowerCase();
  if (typed.startsWith("payload"))
    return (known["payload"] ?? [])
      .filter((one) => `payload.${one.value}`.toLowerCase().startsWith(typed))
      .slice(0, few)
      .map((one) => ({
        insert: `payload.${one.value}:`,
        shown: `payload.${one.value}:`,
        hint: one.hint ?? "",
      }));
  return SEARCH_WORDS.filter((one) => one.word.startsWith(typed)).map((one) => ({
    insert: one.word === "payload" ? "payload." : `${one.word}:`,
    shown: one.word === "payload" ? "payload." : `${one.word}:`,
    hint: `${one.help}, such as ${one.example}`,
  }));
}

/** Paths and values of inputs: `user.id` and its values. */
export function pathsIn(inputs: readonly (string | null)[]): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  const walk = (value: unknown, path: string): void => {
    if (found.size > 200) return;
    if (typeof value === "object" && value !== null) {
      for (const [key, part] of Object.entries(value))
        if (/^[^\s".:\\[\]{}]+$/.test(key)) walk(part, path === "" ? key : `${path}.${key}`);
    } else if (path !== "") {
      const values = found.get(path) ?? new Set();
      if (values.size < few && String(value).length <= 60) values.add(String(value));
      found.set(path, values);
    }
  };
  for (const input of inputs) {
    try {
      walk(JSON.parse(input ?? "null"), "");
    } catch {
      // A cut preview is skipped; other jobs have the path.
    }
  }
  return found;
}
