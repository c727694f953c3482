// The repository as text, for tests about the repository (test/tidy, test/package).
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

export const root: string = join(import.meta.dirname, "..", "..");

/** Paths, relative to the root, of what is or would be committed. */
export function repositoryFiles(): string[] {
  const listed = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "-z"], {
    cwd: root,
    encoding: "utf8",
  });
  const files = listed.split("\0").filter((file) => file !== "" && existsSync(join(root, file)));
  return [...new Set(files)].sort();
}

export function read(file: string): string {
  return readFileSync(join(root, file), "utf8");
}

export interface Import {
  /** Paths relative to src/, such as "storage/open.ts". */
  from: string;
  to: string;
  kind: "value" | "type" | "dynamic";
}

export interface PackageImport {
  from: string;
  package: string;
  kind: Import["kind"];
}

/** Every import in src, of another source file or of a package. Regular expressions will do: oxfmt keeps the shapes. */
export function importsOf(files: ReadonlyMap<string, string>): {
  internal: Import[];
  external: PackageImport[];
} {
  const internal: Import[] = [];
  const external: PackageImport[] = [];
  for (const [from, text] of files) {
    for (const { specifier, kind } of importsIn(text)) {
      if (specifier.startsWith(".")) internal.push({ from, to: join(from, "..", specifier), kind });
      else external.push({ from, package: specifier, kind });
    }
  }
  return { internal, external };
}

export function* importsIn(text: string): Generator<{ specifier: string; kind: Import["kind"] }> {
  const code = text.replaceAll(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, "");
  for (const [, type, names, specifier] of code.matchAll(
    /^(?:import|export)\s+(type\s+)?([\w*{][^;"']*?)\s*from\s+"([^"]+)"/gm,
  )) {
    const onlyTypes = type !== undefined || /^\{(\s*type\s[^,}]+,?)+\s*\}$/.test(names!);
    yield { specifier: specifier!, kind: onlyTypes ? "type" : "value" };
  }
  for (const [, specifier] of code.matchAll(/^import\s+"([^"]+)"/gm))
    yield { specifier: specifier!, kind: "value" };
  for (const [, specifier] of code.matchAll(/\bimport\(\s*"([^"]+)"/g)) {
    yield { specifier: specifier!, kind: "dynamic" };
  }
}

/** Source files by their path below src/. */
export function sourceFiles(): Map<string, string> {
  const files = repositoryFiles().filter((file) => file.startsWith("src/") && file.endsWith(".ts"));
  return new Map(files.map((file) => [file.slice("src/".length), read(file)]));
}
