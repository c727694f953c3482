// Every TypeScript block in the README, the guides and the references compiles against the sources, under the strictest settings.
import { spawnSync } from "node:child_process";
import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryDirectory } from "../support/guard.ts";
import { typescriptBlocks } from "../support/markdown.ts";
import { read, repositoryFiles, root } from "../support/repository.ts";

const pages = repositoryFiles().filter((file) =>
  /^(README\.md|docs\/(?:guides|reference)\/.*\.md)$/.test(file),
);
const blocks = pages.flatMap((page) => typescriptBlocks(page, read(page)));

test("every TypeScript block in the documentation compiles", () => {
  const directory = temporaryDirectory("docs");
  symlinkSync(join(root, "node_modules"), join(directory, "node_modules"));
  writeFileSync(join(directory, "package.json"), JSON.stringify({ type: "module" }));
  writeFileSync(
    join(directory, "tsconfig.json"),
    JSON.stringify({
      extends: join(root, "tsconfig.json"),
      compilerOptions: {
        paths: {
          holdfast: [join(root, "src/index.ts")],
          "holdfast/dashboard": [join(root, "src/dashboard/index.ts")],
          "holdfast/testing": [join(root, "src/testing/index.ts")],
          "holdfast/prometheus": [join(root, "src/prometheus/index.ts")],
          "holdfast/otel": [join(root, "src/otel/index.ts")],
        },
      },
      include: ["*.ts"],
    }),
  );
  const places = new Map<string, { file: string; line: number }>();
  for (const block of blocks.filter(({ checked }) => checked)) {
    const name = `${block.file.replaceAll(/[^\w]/g, "-")}-${block.line}.ts`;
    places.set(name, block);
    writeFileSync(join(directory, name), block.code);
  }
  expect(places.size, "README.md, docs/guides and docs/reference have no ```ts block").toBeGreaterThan(0);

  const tsc = spawnSync(join(root, "node_modules/.bin/tsc"), ["-p", directory, "--pretty", "false"], {
    cwd: directory,
    encoding: "utf8",
  });
  // quick-start-12.ts(3,1) → README.md:14
  const errors = tsc.stdout.replaceAll(
    /^([\w-]+\.ts)\((\d+),\d+\)/gm,
    (whole, name: string, line: string) => {
      const place = places.get(name);
      return place ? `${place.file}:${place.line + Number(line) - 1}` : whole;
    },
  );
  expect(errors.trim(), tsc.stderr).toBe("");
  expect(tsc.status).toBe(0);
});

test("blocks that are not checked stay rare", () => {
  const unchecked = blocks.filter(({ checked }) => !checked);
  expect(unchecked.length).toBeLessThanOrEqual(Math.ceil(blocks.length / 10));
});
