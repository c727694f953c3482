/**
 * Redaction: what must not leave the server is taken out here, before a byte is sent.
 *
 * Invariants: applies to inputs, outputs, progress, step results, contexts, error texts and the audit trail alike; keys are compared
 * without case and punctuation; what is nested is looked through; numbers keep their digits (JSON is parsed with its
 * source text and written back from it); a text that is not JSON is treated as text. Nothing here throws: what cannot
 * be redacted is not shown.
 * Not here: who may see payloads at all (`view:payload`, security.ts).
 */
import { UsageError } from "../../errors.ts";

/** Where a value stands, for a `redact` function. */
export interface RedactPlace {
  /** The key, or null for the whole value. */
  readonly key: string | null;
  /** From the top, such as ["user", "password"]. */
  readonly path: readonly string[];
  readonly name: string;
  readonly queue: string;
}

/**
 * Names of secrets to take out besides those that always are (password, secret, token, authorization, cookie, API key, private key, and
 * those that end with pass, pwd, auth or jwt):
 * more keys, or a function that gives what is shown in a value's place. `false` shows everything.
 */
export type Redact = readonly string[] | false | ((value: unknown, place: RedactPlace) => unknown);

export const REDACTED = "[redacted]";

/** The job that a value is of. */
interface Subject {
  readonly name: string;
  readonly queue: string;
}

/** From the top of a value; an empty one is all of it. */
type Places = readonly (readonly string[])[];

const everything: Places = [[]];
const mostPlaces = 100;

// Words that end like a password and are none: bypass, compass, trespass, high-pass.
const always =
  /passw(?:or)?d|passphrase|secret|token|authorization|cookie|apikey|privatekey|accesskey|credential|sessionid|(?:pwd|jwt|auth|(?<!by|com|tres|sur|under|over|low|high|band|multi|single)pass)$/;
// In running text: a name and what parts it from its value. JSON within JSON has backslashes before its quotes; util.inspect
// begins a long value on a new line, parts a Map's key by =>, and lists raw headers with commas. Bounded and anchored at the
// name's start, so that it is linear: a first version took a minute for 64 kB of "tokentoken…".
const named = /(?<![\w-])([\w-]{1,64})\\{0,31}(?:["'`]?[ \t]{0,4}(?:={1,3}>?|:{1,2}=?)|["'`](,))\s{0,64}/g;
const scheme = /(?:bearer|basic|token|digest|apikey) {1,4}/iy;
const opening = /(\\{0,31})(["'`])/y;
const continued = /\s{0,64}\+\s{0,64}(?=\\{0,31}["'`])/y;
const another = /[ \t]{0,4};/y;
const plainValue = /[^\s,;&"'}\]]+/y;
/** Values with several parts, to the end of the line: every cookie, every parameter of a Digest. */
const wholeNames = /cookie|^(?:proxy)?authorization$/;
const bearer = /\b(bearer|basic)\s{1,4}[A-Za-z0-9._~+/=-]{8,}/gi;
const element = /<([\w:.-]{1,64})(\s[^<>]{0,512})?>[^<]+(?=<\/\1\s{0,8}>)/g;
const inUrl = /\b([a-z][a-z0-9+.-]{1,20}:\/\/[^\s:/@]{0,200}):[^\s/@]{1,200}@/gi;

interface RawJson {
  rawJSON(text: string): unknown;
}
type Reviver = (this: unknown, key: string, value: unknown, context?: { source?: string }) => unknown;

export class Redactor {
  readonly #off: boolean;
  readonly #keys: ReadonlySet<string>;
  readonly #custom: ((value: unknown, place: RedactPlace) => unknown) | null;

  constructor(redact: Redact | undefined) {
    if (redact !== undefined && redact !== false && typeof redact !== "function" && !isKeys(redact))
      throw new UsageError("BAD_OPTION", "redact must be an array of keys, a function or false.", {
        details: { option: "redact" },
      });
    this.#off = redact === false;
    this.#keys = new Set(isKeys(redact) ? redact.map(plain) : []);
    this.#custom = typeof redact === "function" ? redact : null;
  }

  /** JSON text → JSON text; `space` for reading. */
  json(text: string | null, job: Subject, space = 0): string | null {
    return text === null ? null : this.masking(text, job, space).text;
  }

  /** The same, with the places where something was taken out; more than 100 are the whole of it. */
  masking(text: string, job: Subject, space = 0): { readonly text: string; readonly masked: Places } {
    let value: unknown;
    try {
      const exact: Reviver = (_key, part, context) =>
        typeof part === "number" && context?.source !== undefined && String(part) !== context.source
          ? (JSON as unknown as RawJson).rawJSON(context.source)
          : part;
      value = JSON.parse(text, exact as never);
    } catch {
      const shown = this.text(text);
      return { text: JSON.stringify(shown), masked: shown === text ? [] : everything };
    }
    const places: (readonly string[])[] = [];
    try {
      const shown = JSON.stringify(this.#value(value, [], job, places), null, space);
      // A function may give undefined for all of it.
      if (shown !== undefined)
        return { text: shown, masked: places.length > mostPlaces ? everything : places };
    } catch {
      // Not shown.
    }
    return { text: JSON.stringify(REDACTED), masked: everything };
  }

  /** Running text: error messages, stacks, contexts. */
  text(text: string): string;
  text(text: string | null): string | null;
  text(text: string | null): string | null {
    if (text === null || this.#off) return text;
    return this.#values(text)
      .replace(bearer, `$1 ${REDACTED}`)
      .replace(inUrl, `$1:${REDACTED}@`)
      .replace(element, (whole, name: string, attributes: string = "") =>
        this.#isSecret(name) ? `<${name}${attributes}>${REDACTED}` : whole,
      );
  }

  /** The values behind names of secrets. A name that is none may stand before one: "failed: password=…". */
  #values(text: string): string {
    const shown: string[] = [];
    let from = 0;
    named.lastIndex = 0;
    for (let match = named.exec(text); match !== null; match = named.exec(text)) {
      const at = named.lastIndex;
      const name = match[1] ?? "";
      if (!this.#isSecret(name)) continue;
      const whole = wholeNames.test(plain(name));
      // A comma parts a name from its value in raw headers alone.
      if (match[2] !== undefined && !whole) continue;
      const end = valueEnd(text, at, whole);
      if (end === at) continue;
      shown.push(text.slice(from, at), REDACTED);
      from = end;
      named.lastIndex = end;
    }
    return shown.join("") + text.slice(from);
  }

  /** A function decides, besides the keys. */
  get byFunction(): boolean {
    return this.#custom !== null;
  }

  /** A string of a value. One that is JSON itself is looked through. */
  #string(text: string, path: readonly string[], job: Subject): string {
    if (path.length <= 20 && /^\s{0,8}[[{"]/.test(text)) {
      const inner = this.#inner(text, path, job);
      if (inner !== null) return inner;
    }
    return this.text(text);
  }

  /** Null: it is no JSON, or nothing of it is taken out. */
  #inner(text: string, path: readonly string[], job: Subject): string | null {
    try {
      const places: (readonly string[])[] = [];
      const shown = this.#value(JSON.parse(text), [...path, "0"], job, places);
      return places.length === 0 ? null : JSON.stringify(shown);
    } catch {
      return null;
    }
  }

  #value(value: unknown, path: readonly string[], job: Subject, places: (readonly string[])[]): unknown {
    if (this.#off) return value;
    const key = path.at(-1) ?? null;
    if (path.length > 200 || (key !== null && this.#isSecret(key) && value !== null)) {
      places.push(path);
      return REDACTED;
    }
    // Not `...job`: those who call hand a whole job in, whose unique key is called `key` too.
    const place = { key, path, name: job.name, queue: job.queue };
    const given = this.#custom === null ? value : this.#custom(value, place);
    const shown = typeof given === "string" ? this.#string(given, path, job) : given;
    if (!same(shown, value)) places.push(path);
    if (typeof shown !== "object" || shown === null || isRaw(shown)) return shown;
    const inner = (item: unknown, name: string): unknown => this.#value(item, [...path, name], job, places);
    if (Array.isArray(shown)) return shown.map((item, i) => inner(item, String(i)));
    // A null prototype: a key "__proto__" in a payload must stay a key.
    const copy = Object.create(null) as Record<string, unknown>;
    for (const [name, part] of Object.entries(shown)) copy[name] = inner(part, name);
    return copy;
  }

  #isSecret(key: string): boolean {
    const name = plain(key);
    return always.test(name) || this.#keys.has(name);
  }
}

/** Where the value that begins here ends. The characters passed over belong to the value, so that none is read twice. */
function valueEnd(text: string, at: number, whole: boolean): number {
  if (text[at] === "{" || text[at] === "[") return bracketEnd(text, at);
  const from = after(scheme, text, at) ?? at;
  const quoted = quotedEnd(text, from);
  // `Cookie: "a=1"; sid=…`: the first of several.
  if (quoted !== null) return whole && after(another, text, quoted) !== null ? lineEnd(text, quoted) : quoted;
  return whole ? lineEnd(text, at) : (after(plainValue, text, from) ?? at);
}

/** The end of what a sticky pattern matches here; null: it does not. */
function after(pattern: RegExp, text: string, at: number): number | null {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : null;
}

function lineEnd(text: string, at: number): number {
  for (let i = at; i < text.length; i += 1) if (text[i] === "\n" || text[i] === "\r") return i;
  return text.length;
}

/** Of an array or an object, over lines; of one that is cut, the end of the text. */
function bracketEnd(text: string, at: number): number {
  let depth = 0;
  for (let i = at; i < text.length;) {
    const sign = text[i] ?? "";
    const quoted = "\"'`".includes(sign) ? quotedEnd(text, i - backslashes(text, i, at)) : null;
    if (sign === "{" || sign === "[") depth += 1;
    if (sign === "}" || sign === "]") depth -= 1;
    i = quoted ?? i + 1;
    if (depth === 0) return i;
  }
  return text.length;
}

/** How many stand right before a place, as many as an opening quote can have. */
function backslashes(text: string, at: number, from: number): number {
  let n = 0;
  while (n < 31 && at - n > from && text[at - n - 1] === "\\") n += 1;
  return n;
}

/** The end of a string that begins here, and of those that util.inspect joins to it; null: none begins. */
function quotedEnd(text: string, at: number): number | null {
  let end: number | null = null;
  for (let from: number | null = at; from !== null;) {
    const next: number | null = stringEnd(text, from);
    if (next === null) return end;
    end = next;
    from = after(continued, text, end);
  }
  return end;
}

/**
 * Of one string. A quote that has n backslashes is closed by one with as many, where each backslash in the string itself is
 * 2n + 2 of them. Unclosed, it ends with its line.
 */
function stringEnd(text: string, at: number): number | null {
  opening.lastIndex = at;
  const begun = opening.exec(text);
  if (begun === null) return null;
  const level = (begun[1] ?? "").length;
  let run = 0;
  for (let i = opening.lastIndex; i < text.length; i += 1) {
    const sign = text[i];
    if (sign === "\n") return i;
    if (sign === begun[2] && run < level) return i - run;
    if (sign === begun[2] && run % (2 * level + 2) === level) return i + 1;
    run = sign === "\\" ? run + 1 : 0;
  }
  return text.length;
}

/** Whether a value is shown as it is. A function may give an object anew. */
function same(shown: unknown, value: unknown): boolean {
  if (shown === value) return true;
  return (
    typeof shown === "object" && typeof value === "object" && JSON.stringify(shown) === JSON.stringify(value)
  );
}

function plain(key: string): string {
  return key.toLowerCase().replace(/[^a-z0-9]/g, "");
}

function isKeys(redact: unknown): redact is readonly string[] {
  return Array.isArray(redact) && redact.every((key) => typeof key === "string");
}

function isRaw(value: object): boolean {
  return (JSON as unknown as { isRawJSON?: (value: unknown) => boolean }).isRawJSON?.(value) === true;
}
