// The dashboard's texts: all of them in one catalogue, and none beside it.
import { expect, test } from "vitest";
import { catalogueFile, catalogueOf, looseIn, pageSources, textsIn } from "../../scripts/strings.ts";
import { read } from "../support/repository.ts";

test("the catalogue has every text of the page, and no other", () => {
  const texts = pageSources().flatMap(([file, source]) => [...textsIn(file, source)]);
  expect(texts.length).toBeGreaterThan(1_000);
  expect(read(catalogueFile), "run `node scripts/strings.ts`").toBe(catalogueOf(texts));
});

test("no text for people stands in the page's sources outside of t and rich", () => {
  expect(pageSources().flatMap(([file, source]) => looseIn(file, source))).toEqual([]);
});

test("a text that is not given to t is found wherever it stands", () => {
  const loose = (source: string): string[] =>
    looseIn("a.tsx", source).map((line) => line.replace(/^[^ ]* /, ""));
  expect(loose(`<p>Nothing yet</p>`)).toEqual(["Nothing yet"]);
  expect(loose(`<p>{n} jobs <b>{t("of all")}</b></p>`)).toEqual(["jobs"]);
  expect(loose(`<p title="gone" class="note" />`)).toEqual(["gone"]);
  expect(loose("<i aria-label={on ? `Pause ${name}` : t('Resume')} />")).toEqual(["Pause {}"]);
  expect(loose(`<Table columns={[{ head: "Name", class: "mono" }]} />`)).toEqual(["Name"]);
  expect(loose(`toast("It is paused.")`)).toEqual(["It is paused."]);
  expect(loose(`t(words)`)).toEqual(["t takes a literal"]);
  expect(
    loose(`<p class="a b">{t("Yes")} <kbd>Ctrl K</kbd> Holdfast {state === "dead" ? 1 : 2}</p>`),
  ).toEqual([]);
});
