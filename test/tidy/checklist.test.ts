// Every promised behaviour (docs/promises.md) has a test, on every store. A test's name begins with its id:
// "[C1] a lease that expires is taken over", or with several: "[B2][A14] …".
import { expect, test } from "vitest";
import { idsIn } from "../../scripts/promises.ts";
import { read, repositoryFiles } from "../support/repository.ts";

/** A change that adds a promise adds its id. */
const required: readonly string[] = [
  ...ids("A", 1, 14),
  ...ids("B", 1, 8),
  ...ids("C", 1, 10),
  ...ids("D", 1, 18),
  ...ids("E", 1, 4),
  ...ids("F", 1, 15),
  ...ids("G", 1, 7),
  ...ids("H", 1, 5),
  ...ids("I", 1, 3),
  ...ids("J", 1, 6),
  ...ids("K", 1, 8),
  ...ids("M", 1, 2),
  ...ids("N", 2, 12),
  "N15",
  ...ids("N", 17, 18),
  "N22",
  ...ids("N", 24, 25),
  ...ids("O", 1, 20),
];

/** Ids that no store, or by nature one store, can show: the file that holds the test, and why. */
const elsewhere: Readonly<Record<string, { file: string; why: string }>> = {
  K3: { file: "test/browser/screens.test.ts", why: "a browser does not see which store is behind the API" },
  O5: { file: "test/storage/clocks.test.ts", why: "a file has no server whose clock could count" },
  O6: { file: "test/fault/clock-steps.test.ts", why: "Postgres has a clock of its own" },
  O7: { file: "test/fault/database.test.ts", why: "only SQLite's files can be pulled away" },
  O8: { file: "test/storage/partitions.test.ts", why: "SQLite has no partitions" },
  O17: { file: "test/storage/search-path.test.ts", why: "SQLite has no search path" },
};

const tests = repositoryFiles().filter(
  (file) => /^test\/.*\.test\.ts$/.test(file) && !file.startsWith("test/tidy/"),
);
const idsByFile = new Map(tests.map((file) => [file, idsIn(read(file))]));

test("every promise is tested on every store", () => {
  const onAll = new Set<string>();
  for (const file of tests)
    for (const block of blocksIn(read(file))) for (const id of idsIn(everywhere(block))) onAll.add(id);
  const missing = required.filter((id) => !onAll.has(id) && !(id in elsewhere));
  expect(missing.join(" "), "ids without a test within a call of onEveryStore").toBe("");
});

test("only what stands within onEveryStore, is the name of a test, and is not skipped on a store counts", () => {
  const text = [
    'test("[A1] beside", () => {});',
    "onEveryStore((target) => {",
    '  test("[A2] within", () => {});',
    '  const words = ["[A3] no test"];',
    '  test.skipIf(target.dialect === "sqlite")("[A4] not on SQLite", () => {});',
    "  describe(`[A5][A6] two`, () => {});",
    "});",
    'test("[A7] behind", () => {});',
  ].join("\n");
  expect(blocksIn(text).flatMap((block) => [...idsIn(everywhere(block))])).toEqual(["A2", "A5", "A6"]);
});

test("an id that is tested elsewhere is where it is said to be", () => {
  for (const [id, { file }] of Object.entries(elsewhere)) {
    expect(idsByFile.get(file) ?? new Set(), `${file} has no test named [${id}]`).toContain(id);
  }
});

test("no test is left focused, and none is skipped without a word", () => {
  const left: string[] = [];
  for (const file of tests) {
    for (const [call] of read(file).matchAll(/\b(?:test|it|describe)\.(?:only|skip|todo)\b.*/g))
      left.push(`${file}: ${call}`);
  }
  expect(left, "use test.skipIf(condition) with its reason in the name").toEqual([]);
});

function ids(letter: string, first: number, last: number): string[] {
  return Array.from({ length: last - first + 1 }, (_, index) => `${letter}${first + index}`);
}

/** The calls of onEveryStore: the formatter puts the end of one where it began. */
function blocksIn(text: string): string[] {
  return [...text.matchAll(/^( *)onEveryStore\([^]*?^\1\}\)/gm)].map(([block]) => block);
}

/** Without the heads of tests that are left out under some condition. */
function everywhere(block: string): string {
  return block.replaceAll(/\b(?:test|describe)\.(?:skipIf|runIf)\([^\n]*\)\(/g, "");
}
