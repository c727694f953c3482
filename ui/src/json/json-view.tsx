// JSON for reading: small values as colored text, large ones as a folding tree of details elements, each part with its
// size. Numbers keep their digits.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { bytes, number, plural } from "../kit/format.ts";
import { compact, type JsonNode, readJson } from "./json-text.ts";

/** Characters shown as text. */
const smallChars = 2_000;
/** Characters shown on one line. */
const shortChars = 80;
/** Larger parts start folded. */
const foldChars = 800;
const longString = 400;
/** Members shown at a time. */
const piece = 100;

export function JsonView({ text, label }: { text: string; label: string }) {
  const asText = useSignal(false);
  const large = text.length > smallChars;
  const tree = large && !asText.value ? treeOf(text) : null;
  return (
    <>
      {large && (
        <div class="row tight json-bar">
          <span class="switch" role="group" aria-label={`${label} as`}>
            <button type="button" aria-pressed={!asText.value} onClick={() => (asText.value = false)}>
              Tree
            </button>
            <button type="button" aria-pressed={asText.value} onClick={() => (asText.value = true)}>
              Text
            </button>
          </span>
        </div>
      )}
      {tree === null ? (
        <pre class="code" tabIndex={0} role="group" aria-label={label}>
          {tokens(text)}
        </pre>
      ) : (
        <div class="code tree" tabIndex={0} role="group" aria-label={label}>
          <Part node={tree} name={null} open />
        </div>
      )}
    </>
  );
}

function treeOf(text: string): JsonNode | null {
  try {
    return readJson(text);
  } catch {
    return null; // what is redacted may be any text
  }
}

function Part({ node, name, open = false }: { node: JsonNode; name: string | null; open?: boolean }) {
  const key: ComponentChildren = name !== null && (
    <>
      <span class="k">{name}</span>:{" "}
    </>
  );
  if (node.kind === "scalar") return <Scalar text={node.text} name={key} />;
  const parts: readonly (readonly [string | null, JsonNode])[] =
    node.kind === "array"
      ? node.items.map((item, i) => [String(i), item])
      : node.members.map(([member, value]) => [JSON.stringify(member), value]);
  if (parts.length === 0)
    return (
      <div class="leaf">
        {key}
        {node.kind === "array" ? "[]" : "{}"}
      </div>
    );
  const line = compact(node);
  if (line.length <= shortChars)
    return (
      <div class="leaf">
        {key}
        {tokens(line)}
      </div>
    );
  return <Folding node={node} name={key} parts={parts} size={line.length} open={open} />;
}

function Folding({
  node,
  name,
  parts,
  size,
  open: given,
}: {
  node: JsonNode;
  name: ComponentChildren;
  parts: readonly (readonly [string | null, JsonNode])[];
  size: number;
  open: boolean;
}) {
  const open = useSignal(given || size <= foldChars);
  const shown = useSignal(piece);
  const held = node.kind === "array" ? plural(parts.length, "item") : plural(parts.length, "key");
  return (
    <details open={open.value} onToggle={(event) => (open.value = event.currentTarget.open)}>
      <summary>
        {name}
        <span class="muted">
          {node.kind === "array" ? "[…]" : "{…}"} {held}, {bytes(size)}
        </span>
      </summary>
      {open.value && (
        <div class="inside">
          {parts.slice(0, shown.value).map(([key, value]) => (
            <Part key={key} node={value} name={key} />
          ))}
          {parts.length > shown.value && (
            <button type="button" class="unfold" onClick={() => (shown.value += piece * 10)}>
              {number(parts.length - shown.value)} more
            </button>
          )}
        </div>
      )}
    </details>
  );
}

function Scalar({ text, name }: { text: string; name: ComponentChildren }) {
  const open = useSignal(false);
  const looks = text.startsWith('"') ? "s" : /^-?\d/.test(text) ? "n" : "b";
  if (text.length <= longString)
    return (
      <div class="leaf">
        {name}
        <span class={looks}>{text}</span>
      </div>
    );
  return (
    <details onToggle={(event) => (open.value = event.currentTarget.open)}>
      <summary>
        {name}
        {!open.value && <span class={looks}>{text.slice(0, 80)}…</span>}{" "}
        <span class="muted">{bytes(text.length)}</span>
      </summary>
      {open.value && <div class={`inside ${looks}`}>{text}</div>}
    </details>
  );
}

/** Colored tokens. Very large texts stay plain: 100,000 spans would slow the page. */
function tokens(text: string): ComponentChildren[] {
  if (text.length > 60_000) return [text];
  const parts: ComponentChildren[] = [];
  let from = 0;
  for (const match of text.matchAll(
    /("(?:[^"\\]|\\.)*(?:"|$))(\s*:)?|-?\d[\d.eE+-]*|\b(?:true|false|null)\b/g,
  )) {
    if (match.index > from) parts.push(text.slice(from, match.index));
    const [whole, quoted, colon] = match;
    if (quoted === undefined)
      parts.push(<span class={/[a-z]/.test(whole[0] ?? "") ? "b" : "n"}>{whole}</span>);
    else {
      parts.push(<span class={colon === undefined ? "s" : "k"}>{quoted}</span>);
      if (colon !== undefined) parts.push(colon);
    }
    from = match.index + whole.length;
  }
  parts.push(text.slice(from));
  return parts;
}
