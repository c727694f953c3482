// Masks of redacted values in an input, so that nobody enqueues "[redacted]" by mistake. Pure.
import { at, compact, type JsonNode, pretty, readJson, replaced } from "./json-text.ts";

/** The server's mask of a secret (src/dashboard/access/redact.ts). */
export const MASK = "[redacted]";

export interface Mark {
  readonly place: readonly string[];
  /** The mask as JSON. */
  readonly text: string;
}

/** An input for editing, with its redacted paths. Removed values get a mask. */
export function maskedInput(
  input: string,
  masked: readonly (readonly string[])[],
): { readonly text: string; readonly marks: readonly Mark[] } {
  const given = readJson(input);
  const gone = masked.filter((place) => at(given, place) === null);
  const node = replaced(given, gone, { kind: "scalar", text: JSON.stringify(MASK) });
  const marks = masked.flatMap((place) => {
    const shown = at(node, place);
    return shown === null ? [] : [{ place, text: compact(shown) }];
  });
  return { text: pretty(node, undefined, 0), marks };
}

/** Paths that still hold a mask. Any text with "[redacted]" counts. */
export function stillMasked(node: JsonNode, marks: readonly Mark[]): readonly (readonly string[])[] {
  const found = new Map<string, readonly string[]>();
  for (const { place, text } of marks) {
    const shown = at(node, place);
    if (shown !== null && compact(shown) === text) found.set(JSON.stringify(place), place);
  }
  const walk = (value: JsonNode, place: readonly string[]): void => {
    if (value.kind === "scalar") {
      if (value.text.includes(MASK)) found.set(JSON.stringify(place), place);
    } else if (value.kind === "array") value.items.forEach((item, i) => walk(item, [...place, String(i)]));
    else for (const [key, member] of value.members) walk(member, [...place, key]);
  };
  walk(node, []);
  return [...found.values()];
}
