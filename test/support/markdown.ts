// The TypeScript in the documentation. A block is a whole module; ```ts no-check marks the rare one that is not.
export interface CodeBlock {
  file: string;
  /** Of its first line of code, counted from 1. */
  line: number;
  code: string;
  checked: boolean;
  /** The text of an HTML comment right above it: `<!-- quick-start -->`. */
  mark: string | undefined;
}

export function typescriptBlocks(file: string, markdown: string): CodeBlock[] {
  const blocks: CodeBlock[] = [];
  const fences = /(?:^<!--\s*([\w-]+)\s*-->\s*\n)?^( *)```(?:ts|typescript)\b([^\n]*)\n([^]*?)^\2```\s*$/gm;
  for (const match of markdown.matchAll(fences)) {
    const [whole, mark, indent = "", flags = "", body = ""] = match;
    const bodyAt = match.index + whole.indexOf("\n", whole.indexOf("```")) + 1;
    const code = indent === "" ? body : body.replaceAll(new RegExp(`^${indent}`, "gm"), "");
    const line = markdown.slice(0, bodyAt).split("\n").length;
    blocks.push({ file, line, code, checked: !/\bno-check\b/.test(flags), mark });
  }
  return blocks;
}
