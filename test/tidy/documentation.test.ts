/** Every public name says what it is: whoever hovers over one must not have to read our source. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";

const reExport = /export (?:type )?\{([^}]*)\} from "(\.[^"]+)"/g;

test.each([
  "src/index.ts",
  "src/testing/index.ts",
  "src/prometheus/index.ts",
  "src/otel/index.ts",
  "src/dashboard/index.ts",
])("every name that %s exports has a comment", (entry) => {
  expect(undocumented(entry)).toEqual([]);
});

/** Follows re-exports to where a name is declared; a declaration without a comment right above it is listed. */
function undocumented(entry: string): string[] {
  const bare: string[] = [];
  for (const [, names = "", from = ""] of readFileSync(entry, "utf8").matchAll(reExport)) {
    for (const name of names.split(",").map((part) =>
      part
        .trim()
        .replace(/^type /, "")
        .replace(/ as .*/, ""),
    ))
      if (name !== "" && !isDocumented(join(dirname(entry), from), name)) bare.push(`${from}: ${name}`);
  }
  return bare;
}

function isDocumented(file: string, name: string): boolean {
  const text = readFileSync(file, "utf8");
  const declared = new RegExp(
    `^export (?:declare )?(?:async )?(?:const|function|class|interface|type) ${name}\\b`,
    "m",
  ).exec(text);
  if (declared !== null) return /\*\/\s*$/.test(text.slice(0, declared.index));
  const imported = new RegExp(`(?:import|export)[^;]*\\b${name}\\b[^;]*from "(\\.[^"]+)"`).exec(text);
  return imported?.[1] !== undefined && isDocumented(join(dirname(file), imported[1]), name);
}
