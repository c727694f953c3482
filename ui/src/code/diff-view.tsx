// Differences of two texts, marked by color, sign, and a word for screen readers. Lines are matched by the longest
// common subsequence.

const signs = { same: " ", gone: "−", new: "+" } as const;
const words = { same: "", gone: "before: ", new: "after: " } as const;

export function DiffView({ before, after, label }: { before: string; after: string; label: string }) {
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

export interface DiffLine {
  readonly kind: "same" | "gone" | "new";
  readonly text: string;
}

const most = 400;

/** Lines of both, of `before` and of `after`, in reading order. */
function diffLines(before: string, after: string): DiffLine[] {
  const a = before.split("\n").slice(0, most);
  const b = after.split("\n").slice(0, most);
  // lengths[i][j]: the longest common subsequence of a from i and b from j.
  const lengths = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  const at = (i: number, j: number): number => lengths[i]?.[j] ?? 0;
  for (let i = a.length - 1; i >= 0; i -= 1)
    for (let j = b.length - 1; j >= 0; j -= 1)
      lengths[i]![j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ kind: "same", text: a[i] ?? "" });
      i += 1;
      j += 1;
    } else if (i < a.length && (j >= b.length || at(i + 1, j) >= at(i, j + 1))) {
      lines.push({ kind: "gone", text: a[i] ?? "" });
      i += 1;
    } else {
      lines.push({ kind: "new", text: b[j] ?? "" });
      j += 1;
    }
  }
  return lines;
}
