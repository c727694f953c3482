/**
 * The language of the page: what the host gave is checked here, once, and is then a file beside the page's others.
 *
 * A translation is found by its English text, which is also what is shown without one; so any part of the catalogue
 * (ui/strings/en.json) may be missing. One for a text that the page does not have (any more) is not an error: a sentence that
 * is reworded in an update must not keep a service from starting.
 * Invariant: a translation has the placeholders of its text, all and no other; so no value is lost, and none is asked for that
 * is not there. Texts are data on their way: nothing here or on the page reads them as HTML.
 */
import { shown, UsageError } from "../../errors.ts";

/**
 * The language of the dashboard: a tag, such as "de" or "pt-BR", by which dates, times and numbers are written, and translations
 * by their English texts.
 */
export interface DashboardLanguage {
  readonly tag: string;
  /** What has none stays English. */
  readonly strings?: Readonly<Record<string, string>> | undefined;
}

export interface Language {
  readonly tag: string;
  readonly strings: Readonly<Record<string, string>>;
}

/** @throws UsageError BAD_OPTION */
export function checkLanguage(given: unknown): Language | null {
  if (given === undefined) return null;
  if (
    typeof given !== "object" ||
    given === null ||
    Object.keys(given).some((key) => key !== "tag" && key !== "strings")
  )
    throw wrong(
      `language must be { tag, strings }, such as { tag: "de", strings: { Retry: "Wiederholen" } }; got ${shown(given)}.`,
    );
  const { tag, strings = {} } = given as { readonly tag?: unknown; readonly strings?: unknown };
  if (typeof strings !== "object" || strings === null || Array.isArray(strings))
    throw wrong(`language.strings must be an object of texts by their English ones; got ${shown(strings)}.`);
  const said: [string, string][] = [];
  for (const [text, translated] of Object.entries(strings as Readonly<Record<string, unknown>>)) {
    if (typeof translated !== "string")
      throw wrong(`The translation of ${shown(text)} must be a text; got ${shown(translated)}.`);
    // As files for translators have it where nothing was done yet.
    if (translated === "") continue;
    const [wanted, found] = [placeholders(text), placeholders(translated)];
    if (wanted.join() !== found.join())
      throw wrong(
        `The translation of ${shown(text)} must have its placeholders (${wanted.join(", ") || "none"}); it has ${found.join(", ") || "none"}.`,
      );
    said.push([text, translated]);
  }
  return { tag: canonical(tag), strings: Object.fromEntries(said) };
}

function canonical(tag: unknown): string {
  try {
    const [found] = typeof tag === "string" ? Intl.getCanonicalLocales(tag) : [];
    if (found !== undefined) return found;
  } catch {
    // Not a tag.
  }
  throw wrong(`language.tag must be a language tag such as "de" or "pt-BR"; got ${shown(tag)}.`);
}

/** The names of its values and tags, each once: `{name}`, `{n, plural, …}` and `<b>…</b>`. */
function placeholders(text: string): string[] {
  const names = [...text.matchAll(/\{(\w+)(?=\}|, plural,)|<(\w+)>/g)].map(([, value, tag]) =>
    value === undefined ? `<${tag}>` : `{${value}}`,
  );
  return [...new Set(names)].sort();
}

function wrong(message: string): UsageError {
  return new UsageError("BAD_OPTION", message, { details: { option: "language" } });
}
