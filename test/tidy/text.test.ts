// What no file may contain: one machine's traces, and ways around the type checker.
import { expect, test } from "vitest";
import { read, repositoryFiles, sourceFiles } from "../support/repository.ts";

const files = repositoryFiles().filter(
  (file) => !/\.(png|jpe?g|gif|ico|woff2?|db|gz|tgz|webp|avif|mp4)$/.test(file),
);

test("no file names a package registry", () => {
  // A lock file with hosts installs from those hosts alone; npm's is written without (.npmrc).
  const withHost = files.filter((file) => /"resolved": "https?:|https?:\/\/registry\./.test(read(file)));
  expect(withHost.filter((file) => file !== "test/tidy/text.test.ts")).toEqual([]);
});

test("no file holds an absolute path of one machine", () => {
  const path = /(?<![\w.~/-])\/(?:work|root|home|Users)\/[\w.-]+/;
  const found = files.flatMap((file) => {
    const line = read(file)
      .split("\n")
      .find((text) => path.test(text));
    return line === undefined ? [] : [`${file}: ${line.trim().slice(0, 120)}`];
  });
  expect(found).toEqual([]);
});

test("no file refers to a document outside of the repository", () => {
  const outside =
    /\b(?:DESIGN|STYLE|RELIABILITY|CHECKLIST|PEERS|BENCH|DASHBOARD|ECOSYSTEM)\.md\b|\b(?:later )issue\b|(?<!#)\bissue \d/;
  const found = files.flatMap((file) => {
    const line = read(file)
      .split("\n")
      .find((text) => outside.test(text));
    return line === undefined || file === "test/tidy/text.test.ts"
      ? []
      : [`${file}: ${line.trim().slice(0, 120)}`];
  });
  expect(found, "state the reason itself, or point to docs/promises.md or docs/decisions").toEqual([]);
});

test("the sources have no `any` and no way around the type checker", () => {
  const found: string[] = [];
  for (const [file, text] of sourceFiles()) {
    const code = text.replaceAll(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, "");
    // In SQL, `any` is a function: followed by a bracket.
    if (/(?::|<|\||&|\bas|=>)\s*any\b(?!\s*\()/.test(code)) found.push(`${file}: any`);
    const escape =
      /@ts-(?:ignore|nocheck|expect-error)|(?:eslint|oxlint)-disable(?!-next-line [\w/-]+ -- \S)/.exec(text);
    if (escape) found.push(`${file}: ${escape[0]}`);
  }
  expect(
    found,
    "a lint rule is lifted for one line, with a reason: oxlint-disable-next-line RULE -- why",
  ).toEqual([]);
});

test("every source file opens with a comment that says what it owns", () => {
  const silent = [...sourceFiles()]
    .filter(([, text]) => !/^(?:#!.*\n)?(?:\/\/ |\/\*\*?\s)/.test(text))
    .map(([file]) => file);
  expect(silent).toEqual([]);
});
