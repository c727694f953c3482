// docs/promises.md says what the tests show: no id without a sentence, no sentence without a test, no page that is older.
import { expect, test } from "vitest";
import {
  idsIn,
  pageFile,
  promisesIn,
  promisesOf,
  promisesPage,
  readSentences,
  testFiles,
} from "../../scripts/promises.ts";
import { read } from "../support/repository.ts";

const sentences = readSentences();
const carriers = promisesOf(testFiles());

test("every id that a test carries has a sentence and a group, and every sentence has a test", () => {
  const told = Object.keys(sentences.promises);
  expect([...carriers.keys()].filter((id) => !told.includes(id))).toEqual([]);
  expect(told.filter((id) => !carriers.has(id))).toEqual([]);
  const groups = Object.keys(sentences.groups);
  expect(told.filter((id) => !groups.includes(id.startsWith("lab-") ? "lab" : id.slice(0, 1)))).toEqual([]);
});

test("a sentence is one sentence, of at most 40 words", () => {
  const wrong = Object.entries(sentences.promises).filter(
    ([, text]) => !/^[A-Z`].*\.$/.test(text) || /\. [A-Z]/.test(text) || text.split(" ").length > 40,
  );
  expect(wrong).toEqual([]);
});

test("the page has the tests of today", () => {
  expect(read(pageFile), "run `node scripts/promises.ts`").toBe(promisesPage(sentences, carriers));
});

test("an id counts where it begins the first string of a call", () => {
  const text = [
    'test("[A1] first", () => {});',
    "test.each(cases)(",
    "  `[B2][lab-K1] two ${why(1)} ids${reason}`,",
    "  () => expect(names).toEqual(['[C3] no test']));",
    'test("mentions [D4]", () => {}); // test "[E5] in a comment"',
    "test('[F6] it\\'s quoted', () => {});",
  ].join("\n");
  expect([...idsIn(text)]).toEqual(["A1", "B2", "lab-K1", "F6"]);
  expect(promisesIn("x.test.ts", text).get("B2")).toEqual([{ file: "x.test.ts", test: "two … ids" }]);
  expect(promisesIn("x.test.ts", text).get("F6")).toEqual([{ file: "x.test.ts", test: "it's quoted" }]);
});
