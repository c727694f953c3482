// A stack in parts: the message, the program's own frames, and library frames, which fold. Pure.

export type StackPart =
  | { readonly kind: "line"; readonly text: string; readonly library: boolean }
  | { readonly kind: "library"; readonly lines: readonly string[] };

/** A single frame takes no more room than the button that unfolds it. */
const fewestFolded = 2;

function isLibrary(line: string): boolean {
  return /^\s*at /.test(line) && /[\\/]node_modules[\\/]|\bnode:|\(internal\/|<anonymous>\)$/.test(line);
}

/** Lines without a location stay, so that a chain of causes is complete. */
export function stackParts(text: string): StackPart[] {
  const parts: StackPart[] = [];
  let run: string[] = [];
  const flush = (): void => {
    if (run.length >= fewestFolded) parts.push({ kind: "library", lines: run });
    else for (const line of run) parts.push({ kind: "line", text: line, library: true });
    run = [];
  };
  for (const line of text.split("\n")) {
    if (isLibrary(line)) {
      run.push(line);
      continue;
    }
    flush();
    parts.push({ kind: "line", text: line, library: false });
  }
  flush();
  return parts;
}
