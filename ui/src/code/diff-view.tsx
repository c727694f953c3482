// Two texts, and what differs: by colour, by sign, and for who listens by a word.
import { diffLines } from "./line-diff.ts";
import { t } from "../language/translation.ts";

const signs = { same: " ", gone: "−", new: "+" } as const;
const words = { same: "", gone: `${t("before:")} `, new: `${t("after:")} ` } as const;

export function Diff({ before, after, label }: { before: string; after: string; label: string }) {
  return (
    <pre class="code diff" tabIndex={0} role="region" aria-label={label}>
      {diffLines(before, after).map(({ kind, text }, i) => (
        <span key={i} class={kind}>
          <i aria-hidden="true">{signs[kind]}</i>
          <span class="hidden-text">{words[kind]}</span>
          {text}
          {"\n"}
        </span>
      ))}
    </pre>
  );
}
