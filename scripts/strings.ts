// The catalogue of the page's texts: `node scripts/strings.ts` writes ui/strings/en.json from what ui/src gives to `t` and
// `rich`. test/tidy/strings.test.ts holds the two against each other, and looks for texts that nobody gave to them.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseSync } from "vite";

const root = join(import.meta.dirname, "..");
export const catalogueFile = "ui/strings/en.json";

/** What has a type, as the parser gives it: nodes differ, and nothing else of them is asked. */
interface Syntax {
  readonly type: string;
  readonly start: number;
  readonly [name: string]: unknown;
}

/** Attributes and properties that people read. */
const readBy = new Set(
  "alt aria-label aria-roledescription aria-valuetext ask empty head hint label note placeholder title unset verb what words".split(
    " ",
  ),
);
/** Names, and what stands for something that is typed: the same in every language. */
const asTheyAre = new Set(
  `Holdfast|JSON|Postgres|SQLite|TypeScript|UTC|curl|null|p50|p95|p99|1m|7d|30d|100 per 1m|send-mail|slack|session-expired
  |https://…|{ "plan": "pro", "coupon": null }|holdfast jobs show|holdfast enqueue|POST /api/v1/jobs|hf.enqueue`.split(
    /\s*\|/,
  ),
);

/** The texts that a file says, each once. */
export function textsIn(file: string, source: string): Set<string> {
  const texts = new Set<string>();
  visit(parsed(file, source), [], (node) => {
    const text = saysText(node) ? literal(argument(node)) : null;
    if (text !== null) texts.add(text);
  });
  return texts;
}

/** Texts for people that are not given to `t` or `rich`, and texts that are, but not as a literal. */
export function looseIn(file: string, source: string): string[] {
  const loose: string[] = [];
  visit(parsed(file, source), [], (node, above) => {
    const told = (what: string): number =>
      loose.push(`${file}:${source.slice(0, node.start).split("\n").length}: ${what}`);
    if (saysText(node) && literal(argument(node)) === null) told("t takes a literal");
    const text = node.type === "JSXText" ? (node["value"] as string) : words(node);
    if (text === null || !/\p{L}/u.test(text) || asTheyAre.has(text.trim())) return;
    if (isLoose(node, text, above)) told(text.trim());
  });
  return loose;
}

/** Sorted, as the file has it. */
export function catalogueOf(texts: Iterable<string>): string {
  const all = [...new Set(texts)].sort().map((text) => [text, text.split("##", 1)[0]]);
  return `${JSON.stringify(Object.fromEntries(all), null, 2)}\n`;
}

export function pageSources(): [file: string, source: string][] {
  return readdirSync(join(root, "ui/src"), { recursive: true, encoding: "utf8" })
    .filter((file) => /\.tsx?$/.test(file))
    .sort()
    .map((file) => [`ui/src/${file}`, readFileSync(join(root, "ui/src", file), "utf8")]);
}

function parsed(file: string, source: string): Syntax {
  const { program, errors } = parseSync(file, source, { lang: file.endsWith("x") ? "tsx" : "ts" });
  if (errors[0] !== undefined) throw new Error(`${file}: ${errors[0].message}`);
  return program as unknown as Syntax;
}

/** Every node with those above it, the nearest first. Types and imports hold no texts. */
function visit(
  node: Syntax,
  above: readonly Syntax[],
  seen: (node: Syntax, above: readonly Syntax[]) => void,
): void {
  if (/^TS(?!As|Satisfies|NonNull)/.test(node.type) || /^(?:Import|ExportAll)Declaration$/.test(node.type))
    return;
  seen(node, above);
  const below = [node, ...above];
  for (const value of Object.values(node))
    for (const one of Array.isArray(value) ? (value as unknown[]) : [value])
      if (isSyntax(one)) visit(one, below, seen);
}

function isSyntax(value: unknown): value is Syntax {
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
}

function saysText({ type, callee }: Syntax): boolean {
  return (
    type === "CallExpression" && isSyntax(callee) && (callee["name"] === "t" || callee["name"] === "rich")
  );
}

function argument(call: Syntax): unknown {
  return (call["arguments"] as unknown[])[0];
}

function literal(node: unknown): string | null {
  return isSyntax(node) && node.type === "Literal" && typeof node["value"] === "string"
    ? node["value"]
    : null;
}

/** Of a literal or a template; what stands between is left out. */
function words(node: Syntax): string | null {
  if (node.type !== "TemplateLiteral") return literal(node);
  const quasis = node["quasis"] as readonly { readonly value: { readonly cooked: string } }[];
  return quasis.map(({ value }) => value.cooked).join("{}");
}

/** By where it stands: what chooses between texts, or joins them, is looked through. */
function isLoose(node: Syntax, text: string, above: readonly Syntax[]): boolean {
  if (node.type === "JSXText") return !/^(?:code|kbd|pre)$/.test(tagOf(above[0]));
  let from = node;
  for (const up of above) {
    switch (up.type) {
      case "ConditionalExpression":
        if (up["test"] === from) return false;
        break;
      case "JSXExpressionContainer":
      case "LogicalExpression":
      case "ParenthesizedExpression":
      case "TSAsExpression":
        break;
      case "JSXAttribute":
        return isSyntax(up["name"]) && readBy.has(String(up["name"]["name"]));
      case "Property":
        return (
          up["value"] === from &&
          isSyntax(up["key"]) &&
          readBy.has(String(up["key"]["name"])) &&
          !isPath(text)
        );
      case "CallExpression":
        return !saysText(up) && isSentence(text);
      case "BinaryExpression":
      case "SwitchCase":
      case "MemberExpression":
        return false;
      default:
        return isSentence(text);
    }
    from = up;
  }
  return false;
}

function tagOf(element: Syntax | undefined): string {
  const opening = element?.["openingElement"];
  const name = isSyntax(opening) ? opening["name"] : null;
  return isSyntax(name) ? String(name["name"]) : "";
}

function isSentence(text: string): boolean {
  return /^\p{Lu}\p{Ll}*['’]? \p{Ll}/u.test(text);
}

function isPath(text: string): boolean {
  return text.startsWith("/");
}

if (import.meta.main) {
  const texts = pageSources().flatMap(([file, source]) => [...textsIn(file, source)]);
  writeFileSync(join(root, catalogueFile), catalogueOf(texts));
}
