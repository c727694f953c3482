// JSON as text in parts, so that it can be changed or written in another way without touching what stays: numbers keep their
// digits, strings their escapes. Pure.

export type JsonNode =
  | { readonly kind: "object"; readonly members: readonly (readonly [key: string, value: JsonNode])[] }
  | { readonly kind: "array"; readonly items: readonly JsonNode[] }
  /** A string, a number or a word, as it was written. */
  | { readonly kind: "scalar"; readonly text: string };

/** @throws SyntaxError for what is not JSON */
export function readJson(text: string): JsonNode {
  JSON.parse(text);
  // It is JSON: no token needs to be looked at twice, and what is between them is blank or a comma or a colon.
  const tokens = text.match(/"[^"\\]*(?:\\.[^"\\]*)*(?:"|$)|[[\]{}]|[^\s,:[\]{}"]+/g) ?? [];
  let at = 0;
  const value = (): JsonNode => {
    const token = tokens[at++] ?? "null";
    if (token === "{") {
      // Of a key that comes twice the last holds, as in JSON.parse.
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

/** How a value is written: as JSON, or as a program has it. */
interface Dialect {
  readonly key: (key: string) => string;
  readonly scalar: (text: string) => string;
  /** What stands before and after the members of an object on one line. */
  readonly blank: string;
}

const json: Dialect = { key: (key) => JSON.stringify(key), scalar: (text) => text, blank: "" };

/** On one line, without blanks. */
export function compact(node: JsonNode): string {
  if (node.kind === "scalar") return node.text;
  if (node.kind === "array") return `[${node.items.map(compact).join(",")}]`;
  return `{${node.members.map(([key, value]) => `${json.key(key)}:${compact(value)}`).join(",")}}`;
}

/** For reading: on one line what fits there, else a line for each part. */
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
 * The same value with another one at these places. A member that is not there is added: a function that redacts may have left it
 * out. What is further away is passed over.
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

/** What stands at a place; null: nothing. */
export function at(node: JsonNode, place: readonly string[]): JsonNode | null {
  const [first, ...rest] = place;
  if (first === undefined) return node;
  if (node.kind === "scalar") return null;
  const next =
    node.kind === "array" ? node.items[Number(first)] : node.members.find(([key]) => key === first)?.[1];
  return next === undefined ? null : at(next, rest);
}

/** A body for POST /jobs whose input is written as it stands. What is undefined is left out. */
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

/** A place as it is told: `user.password`, `items[0]`. */
export function placeText(place: readonly string[]): string {
  const text = place.map((key) =>
    /^\d+$/.test(key) ? `[${key}]` : /^[A-Za-z_$][\w$]*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`,
  );
  return text.length === 0 ? "all of it" : text.join("").replace(/^\./, "");
}
