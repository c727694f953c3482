// docs/promises.md: every id that tests carry in their names, its sentence (docs/promises.json), and those tests.
// `node scripts/promises.ts` writes the page; test/tidy/promises.test.ts fails when it is out of date.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
export const pageFile = "docs/promises.md";

export interface Sentences {
  /** Titles of the groups, by the letter or the prefix of their ids, in the order of the page. */
  readonly groups: Readonly<Record<string, string>>;
  /** One sentence for each id. */
  readonly promises: Readonly<Record<string, string>>;
}

export interface Carrier {
  readonly file: string;
  readonly test: string;
}

/** A test's name is the first string of a call and begins with its ids: `test("[B2][A14] claims come in order"`. */
const taggedName =
  /\(\s*(["'`])(?<ids>(?:\[(?:lab-)?[A-Z]\d+\] ?)+)(?<name>(?:(?!\1)[^\\]|\\[^])*[^\s"'`](?:(?!\1)[^\\]|\\[^])*)\1/g;

/** The tests of a file by id. A mention in a comment or in another string does not count. */
export function promisesIn(file: string, text: string): Map<string, Carrier[]> {
  const found = new Map<string, Carrier[]>();
  for (const { groups } of text.matchAll(taggedName)) {
    const test = nameOf(groups!["name"]!);
    for (const [, id] of groups!["ids"]!.matchAll(/\[([^\]]+)\]/g)) {
      const carriers = found.get(id!) ?? [];
      if (!carriers.some((one) => one.test === test)) carriers.push({ file, test });
      found.set(id!, carriers);
    }
  }
  return found;
}

/** The ids of a text. */
export function idsIn(text: string): Set<string> {
  return new Set(promisesIn("", text).keys());
}

/** By id, over all files. */
export function promisesOf(
  files: readonly (readonly [file: string, text: string])[],
): Map<string, Carrier[]> {
  const all = new Map<string, Carrier[]>();
  for (const [file, text] of files)
    for (const [id, carriers] of promisesIn(file, text)) all.set(id, [...(all.get(id) ?? []), ...carriers]);
  return all;
}

export function readSentences(): Sentences {
  return JSON.parse(readFileSync(join(root, "docs/promises.json"), "utf8")) as Sentences;
}

/** Paths and texts of the tests. Two rules about names quote names, so they do not count. */
export function testFiles(): (readonly [file: string, text: string])[] {
  return readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" })
    .map((path) => `test/${path.replaceAll("\\", "/")}`)
    .filter((file) => file.endsWith(".test.ts") && !/^test\/tidy\/(?:checklist|promises)\./.test(file))
    .sort()
    .map((file) => [file, readFileSync(join(root, file), "utf8")] as const);
}

export function promisesPage(
  { groups, promises }: Sentences,
  carriers: ReadonlyMap<string, Carrier[]>,
): string {
  const parts = [
    "# Promises",
    "Every tested behaviour of Holdfast: its id, a sentence, and the tests that carry the id in their names. " +
      "A behaviour holds on SQLite and on Postgres unless its sentence names one of them.",
    "`node scripts/promises.ts` writes this page from the tests and [promises.json](promises.json).",
  ];
  for (const [prefix, title] of Object.entries(groups)) {
    const ids = [...carriers.keys()].filter((id) => prefixOf(id) === prefix).sort(byNumber);
    if (ids.length === 0) continue;
    parts.push(`## ${title}`);
    for (const id of ids)
      parts.push(`### ${id}`, promises[id] ?? "", `\`\`\`text\n${listed(carriers.get(id)!)}\n\`\`\``);
  }
  return `${parts.join("\n\n")}\n`;
}

/** A file and below it its tests. */
function listed(carriers: readonly Carrier[]): string {
  const files = new Map<string, string[]>();
  for (const { file, test } of carriers) files.set(file, [...(files.get(file) ?? []), `  ${test}`]);
  return [...files].map(([file, tests]) => [file, ...tests].join("\n")).join("\n");
}

/** The name as people read it: placeholders of a template become an ellipsis, and none is left at its end. */
function nameOf(source: string): string {
  return source
    .replaceAll(/\$\{(?:[^{}]|\{[^{}]*\})*\}$/g, "")
    .replaceAll(/\$\{(?:[^{}]|\{[^{}]*\})*\}/g, "…")
    .replaceAll(/\\(["'`\\$])/g, "$1")
    .trim();
}

/** "C" of C1, "lab" of lab-K1. */
function prefixOf(id: string): string {
  return id.startsWith("lab-") ? "lab" : id.slice(0, 1);
}

function byNumber(a: string, b: string): number {
  return a.localeCompare(b, "en", { numeric: true });
}

if (import.meta.main)
  writeFileSync(join(root, pageFile), promisesPage(readSentences(), promisesOf(testFiles())));
