// A stack with library frames folded behind a button that counts them.
import { useSignal } from "@preact/signals";
import { stackParts } from "./stack-frames.ts";
import { plural } from "../text/quantities.ts";

export function StackView({ text }: { text: string }) {
  const open = useSignal<ReadonlySet<number>>(new Set());
  const toggle = (at: number): void => {
    const next = new Set(open.value);
    if (!next.delete(at)) next.add(at);
    open.value = next;
  };
  return (
    <pre class="code" tabIndex={0} role="group" aria-label="Stack">
      {stackParts(text).map((part, i) =>
        part.kind === "line" ? (
          <span key={i} class={part.library ? "lib" : ""}>
            {part.text}
            {"\n"}
          </span>
        ) : (
          <span key={i}>
            {"    "}
            <button type="button" class="unfold" aria-expanded={open.value.has(i)} onClick={() => toggle(i)}>
              {plural(part.lines.length, "library frame")}
            </button>
            {"\n"}
            {open.value.has(i) && <span class="lib">{part.lines.map((line) => `${line}\n`)}</span>}
          </span>
        ),
      )}
    </pre>
  );
}
