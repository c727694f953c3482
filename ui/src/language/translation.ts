// What the page says. The English text is the key of its translation and what is shown without one, so that English needs no
// dictionary; ui/strings/en.json lists every text (scripts/strings.ts makes it, test/tidy/strings.test.ts holds it against this
// folder). Where the host gave another language, its dictionary is a script before this one: texts of modules are made once, and
// must not come before it.
//
// A text may have placeholders, in a subset of ICU MessageFormat:
//   {name}                                          a value, as the code gives it
//   {count, plural, one {# job} other {# jobs}}     by the plural rules of the language; # is the number, written
//   <b>words</b>                                    an element around words: its value is a function of what is inside
// and `##`, after which stands what it means where one English word has two translations ("Open##verb"); it is not shown.
//
// Invariant: a translation is text alone. Its tags are only those that the code gave a function for; nothing is ever HTML.
// Pure but for that: nothing of the page is needed. Texts with elements in them are in rich-text.ts.

export type Word = string | number | null | undefined;

type Part =
  | string
  | { readonly name: string; readonly forms: Readonly<Record<string, readonly Part[]>> | null }
  | { readonly tag: string; readonly inside: readonly Part[] };

/** What is asked of the page here; tests have none. */
interface Page {
  readonly document?: { readonly documentElement: { readonly lang: string } };
  /** As src/dashboard/appearance/assets.ts writes it. */
  readonly holdfastStrings?: Readonly<Record<string, string>>;
}
const { document: page, holdfastStrings: dictionary = {} } = globalThis as Page;

/** As a language tag. "en": no other was asked for, and dates and times are as logs have them. */
export const language: string = page?.documentElement.lang || "en";
export const usual: boolean = language === "en";

const numbers = new Intl.NumberFormat(language);
const plurals = new Intl.PluralRules(language);
const parsed = new Map<string, readonly Part[]>();

export function number(n: number): string {
  return numbers.format(n);
}

/**
 * A text in the language of the page.
 *
 * @example
 * t("Retry {count, plural, one {# job} other {# jobs}}", { count })
 */
/* @__NO_SIDE_EFFECTS__ */
export function t(text: string, values: Readonly<Record<string, Word>> = {}): string {
  return filled<string>(
    text,
    (name) => values[name],
    (_tag, inside) => inside,
  ).join("");
}

/** A text as strings, and what its values and tags are besides. */
export function filled<T>(
  text: string,
  value: (name: string) => Word | T,
  tag: (name: string, inside: readonly (string | T)[]) => readonly (string | T)[],
): readonly (string | T)[] {
  const said = dictionary[text] ?? text.split("##", 1)[0] ?? "";
  if (!/[{<]/.test(said)) return [said];
  let parts = parsed.get(said);
  if (parts === undefined) parsed.set(said, (parts = partsOf(said)));
  return fill(parts, null);

  function fill(all: readonly Part[], n: number | null): readonly (string | T)[] {
    return all.flatMap((part): readonly (string | T)[] => {
      if (typeof part === "string") return [n === null ? part : part.replaceAll("#", number(n))];
      if ("tag" in part) return tag(part.tag, fill(part.inside, n));
      const given = value(part.name);
      if (part.forms !== null) {
        const count = Number(given);
        return fill(part.forms[plurals.select(count)] ?? part.forms["other"] ?? [], count);
      }
      return [typeof given === "number" ? String(given) : (given ?? "")];
    });
  }
}

/** What is no placeholder stands as it is. */
function partsOf(text: string): readonly Part[] {
  const parts: Part[] = [];
  let at = 0;
  for (const { 0: whole, 1: name, 2: tag, index } of text.matchAll(/\{(\w+)(?=\}|, plural,)|<(\w+)>/g)) {
    if (index < at) continue;
    const close = tag === undefined ? -1 : text.indexOf(`</${tag}>`, index);
    if (tag !== undefined && close === -1) continue;
    if (index > at) parts.push(text.slice(at, index));
    if (tag !== undefined) {
      parts.push({ tag, inside: partsOf(text.slice(index + whole.length, close)) });
      at = close + tag.length + 3;
    } else {
      const end = endOf(text, index);
      const forms = text.slice(index + whole.length, end - 1);
      parts.push({ name: name ?? "", forms: forms === "" ? null : formsOf(forms) });
      at = end;
    }
  }
  if (at < text.length) parts.push(text.slice(at));
  return parts;
}

/** Behind the brace that closes the one at `from`. */
function endOf(text: string, from: number): number {
  let depth = 0;
  for (let i = from; i < text.length; i++) {
    if (text[i] === "{") depth++;
    else if (text[i] === "}" && --depth === 0) return i + 1;
  }
  return text.length;
}

/** Of ", plural, one {# job} other {# jobs}". */
function formsOf(text: string): Readonly<Record<string, readonly Part[]>> {
  const forms: Record<string, readonly Part[]> = {};
  let at = 0;
  for (const { 1: category = "", index } of text.matchAll(/(?<!\w)(\w+) \{/g)) {
    if (index < at) continue;
    const open = index + category.length + 1;
    at = endOf(text, open);
    forms[category] = partsOf(text.slice(open + 1, at - 1));
  }
  return forms;
}
