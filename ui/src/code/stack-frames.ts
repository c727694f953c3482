// A stack in pieces: what the program said, its own frames, and runs of frames of libraries and of Node, which fold. Pure.

export type StackPart =
  | { readonly kind: "line"; readonly text: string; readonly library: boolean }
  | { readonly kind: "library"; readonly lines: readonly string[] };

/** One frame alone takes no more room than the button that would fold it. */
const fewestFolded = 2;

function isLibrary(line: string): boolean {
  return /^\s*at /.test(line) && /[\\/]node_modules[\\/]|\bnode:|\(internal\/|<anonymous>\)$/.test(line);
}

/** Causes and messages are no frames, so that a chain of causes stays as it was. */
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
