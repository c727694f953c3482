// Characters that turn the direction of text, as the page shows them.
import { expect, test } from "vitest";
import { visible } from "../../ui/src/text/visible-characters.ts";

test("every one of them is written as an escape, which JSON reads as the same value; letters of any script stay", () => {
  const all = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069";
  expect(visible(all)).toBe(String.raw`\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069`);
  expect(JSON.parse(visible(JSON.stringify({ [all]: all })))).toEqual({ [all]: all });
  for (const text of ["", "plain", "שלום", "سلام", "👩‍👩‍👧", "a\u200db"]) expect(visible(text)).toBe(text);
});
