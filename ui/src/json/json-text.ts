// JSON as a tree of texts. It can be changed and reformatted while numbers keep their digits and strings their escapes.
// Pure.

export type JsonNode =
  | { readonly kind: "object"; readonly members: readonly (readonly [key: string, value: JsonNode])[] }
  | { readonly kind: "array"; readonly items: readonly JsonNode[] }
  /** A string, number, boolean or null, as written. */
  | { readonly kind: "scalar"; readonly text: string };

/** @throws SyntaxError for invalid JSON */
export function readJson(text: string): JsonNode {
  JSON.parse(text);
  // JSON.parse has validated the text, so the tokens need no further check.
  const tokens = text.match(/"[^"\\]*(?:\\.[^"\\]*)*(?:"|$)|[[\]{}]|[^\s,:[\]{}"]+/g) ?? [];
  let at = 0;
  const value = (): JsonNode => {
    const token = tokens[at++] ?? "null";
    if (token === "{") {
      // The last of two equal keys counts, as in JSON.parse.
      const members = new Map<string, JsonNode>();
      while (tokens[at] !== "}") {
        const key = JSON.parse(tokens[at++] ?? '""') as string;
        members.set(key, value());
      }
      at += 1;
      return { kind: "object", members: [...members] };
    }
    if (token !== "[") return { kind: "scalar", text: token };
    const items: JsonNode[] = [];
    while (tokens[at] !== "]") items.push(value());
    at += 1;
    return { kind: "array", items };
  };
  return value();
}

/** Notation: JSON, or a program's literal. */
interface Dialect {
  readonly key: (key: string) => string;
  readonly scalar: (text: string) => string;
  /** Between the braces and the members of an object on one line. */
  readonly blank: string;
}

const json: Dialect = { key: (key) => JSON.stringify(key), scalar: (text) => text, blank: "" };

/** On one line, without spaces. */
export function compact(node: JsonNode): string {
  if (node.kind === "scalar") return node.text;
  if (node.kind === "array") return `[${node.items.map(compact).join(",")}]`;
  return `{${node.members.map(([key, value]) => `${json.key(key)}:${compact(value)}`).join(",")}}`;
}

/** Formatted: one line if it fits, else one line per part. */
export function pretty(node: JsonNode, dialect: Dialect = json, width = 60, indent = ""): string {
  if (node.kind === "scalar") return dialect.scalar(node.text);
  const inner = `${indent}  `;
  const part = (value: JsonNode, at: string): string => pretty(value, dialect, width, at);
  const parts = (at: string): string[] =>
    node.kind === "array"
      ? node.items.map((item) => part(item, at))
      : node.members.map(([key, value]) => `${dialect.key(key)}: ${part(value, at)}`);
  const [open, close] = node.kind === "array" ? "[]" : "{}";
  const lines = parts(inner);
  if (lines.length === 0) return `${open}${close}`;
  const blank = node.kind === "array" ? "" : dialect.blank;
  const line = `${open}${blank}${lines.join(", ")}${blank}${close}`;
  if (indent.length + line.length <= width && !line.includes("\n")) return line;
  return `${open}\n${lines.map((one) => `${inner}${one}`).join(",\n")}\n${indent}${close}`;
}

/**
 * Replaces the values at these paths. A missing last member is added, because a redaction function may have removed
 * it. Deeper missing paths are ignored.
 */
export function replaced(node: JsonNode, places: readonly (readonly string[])[], by: JsonNode): JsonNode {
  if (places.some((place) => place.length === 0)) return by;
  if (node.kind === "scalar" || places.length === 0) return node;
  const below = (key: string): (readonly string[])[] =>
    places.filter(([first]) => first === key).map((place) => place.slice(1));
  if (node.kind === "array")
    return { kind: "array", items: node.items.map((item, i) => replaced(item, below(String(i)), by)) };
  const members = new Map(node.members.map(([key, value]) => [key, replaced(value, below(key), by)]));
  for (const [key, ...rest] of places)
    if (key !== undefined && rest.length === 0 && !members.has(key)) members.set(key, by);
  return { kind: "object", members: [...members] };
}

/** The value at a path; null: none. */
export function at(node: JsonNode, place: readonly string[]): JsonNode | null {
  const [first, ...rest] = place;
  if (first === undefined) return node;
  if (node.kind === "scalar") return null;
  const next =
    node.kind === "array" ? node.items[Number(first)] : node.members.find(([key]) => key === first)?.[1];
  return next === undefined ? null : at(next, rest);
}

/** A body for POST /jobs with the input as its text. Undefined options are left out. */
export function enqueueBody(
  name: string,
  input: string,
  options: Readonly<Record<string, string | number | undefined>>,
): string {
  const given = Object.entries(options).flatMap(([option, value]) =>
    value === undefined ? [] : [`,${JSON.stringify(option)}:${JSON.stringify(value)}`],
  );
  return `{"name":${JSON.stringify(name)},"input":${input}${given.join("")}}`;
}

/** A path in words: `user.password`, `items[0]`. */
export function placeText(place: readonly string[]): string {
  const text = place.map((key) =>
    /^\d+$/.test(key) ? `[${key}]` : /^[A-Za-z_$][\w$]*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`,
  );
  return text.length === 0 ? "all of it" : text.join("").replace(/^\./, "");
}
