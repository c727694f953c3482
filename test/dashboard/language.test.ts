// The language of the page: what the host may give, what the page is sent, and how texts are made of it.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { dashboardWith } from "../../src/dashboard/handler.ts";
import { type DashboardHandler, type DashboardLanguage, dashboard } from "../../src/dashboard/index.ts";
import { open, silentLogger } from "../../src/index.ts";

const auth = { token: "0123456789abcdef" };
const page = `<!doctype html><html lang="en"><head><!--settings--><script type="module" src="./assets/a.js"></script></head></html>`;

async function handlerWith(language: unknown, basePath = ""): Promise<DashboardHandler> {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-language-"));
  writeFileSync(join(directory, "index.html"), page);
  const hf = await open("sqlite::memory:", { logger: silentLogger });
  onTestFinished(async () => {
    await hf.close();
    rmSync(directory, { recursive: true });
  });
  const options = { auth, basePath, language: language as DashboardLanguage };
  return dashboardWith(hf, options, directory);
}

function get(handler: DashboardHandler, path: string): Promise<Response> {
  return handler(new Request(`http://localhost${path}`));
}

test("the page says its language, and its dictionary is a file that may be kept for ever", async () => {
  const strings = { Retry: "Wiederholen", "</script>": "</script><!--", Later: "" };
  const handler = await handlerWith({ tag: "de-de", strings }, "/admin");
  const html = await (await get(handler, "/admin/")).text();
  expect(html).toContain('<html lang="de-DE">');
  const [, path = ""] = /<script defer src="([^"]+)">/.exec(html) ?? [];
  expect(path).toMatch(/^\/admin\/assets\/strings-[\w-]+\.js$/);
  // Before the page's own: scripts run in the order in which they stand.
  expect(html.indexOf(path)).toBeLessThan(html.indexOf("assets/a.js"));
  const file = await get(handler, path);
  expect(file.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
  expect(file.headers.get("cache-control")).toContain("immutable");
  const script = await file.text();
  const [, json = ""] = /^globalThis\.holdfastStrings=JSON\.parse\((".*")\)$/.exec(script) ?? [];
  // What is empty is not translated yet.
  expect(JSON.parse(JSON.parse(json) as string)).toEqual({
    Retry: "Wiederholen",
    "</script>": "</script><!--",
  });
});

test("without a language the page is as it was built, and a tag alone has no dictionary", async () => {
  expect(await (await get(await handlerWith(undefined), "/")).text()).toContain('<html lang="en">');
  const html = await (await get(await handlerWith({ tag: "fr" }), "/")).text();
  expect(html).toContain('<html lang="fr">');
  expect(html).not.toContain("strings-");
});

test("a language that is none, and a translation that loses or adds a value, are refused with what is wrong", async () => {
  const hf = await open("sqlite::memory:", { logger: silentLogger });
  onTestFinished(() => hf.close());
  const refused = (language: unknown): unknown => {
    try {
      dashboard(hf, { auth, language: language as DashboardLanguage });
      return null;
    } catch (error) {
      return error;
    }
  };
  const text = "Retry {count, plural, one {# job} other {# jobs}} of <b>{queue}</b>";
  for (const [language, message] of [
    ["de", /language must be \{ tag, strings \}/],
    [null, /language must be/],
    [{ tag: "de", texts: {} }, /language must be/],
    [{ tag: "not a tag" }, /language\.tag must be a language tag/],
    [{ tag: "" }, /language\.tag/],
    [{ strings: {} }, /language\.tag/],
    [{ tag: "de", strings: [] }, /language\.strings must be an object/],
    [{ tag: "de", strings: { Retry: 7 } }, /translation of "Retry" must be a text/],
    [{ tag: "de", strings: { Retry: "{name}" } }, /placeholders \(none\); it has \{name\}/],
    [
      { tag: "de", strings: { [text]: "Wiederholen" } },
      /placeholders \(<b>, \{count\}, \{queue\}\); it has none/,
    ],
    [{ tag: "de", strings: { [text]: "{count} <i>{queue}</i>" } }, /it has <i>, \{count\}, \{queue\}/],
  ] as const)
    expect(refused(language)).toMatchObject({
      code: "BAD_OPTION",
      message: expect.stringMatching(message) as string,
      details: { option: "language" },
    });
  const translated = "<b>{queue}</b>: {count, plural, one {# Auftrag} other {# Aufträge}} wiederholen";
  expect(refused({ tag: "de", strings: { [text]: translated, "No such text": "x" } })).toBeNull();
});

/** The module as a page in this language has it: it looks at the page once, when it is loaded. */
async function textsIn(lang: string, holdfastStrings: Readonly<Record<string, string>>) {
  vi.resetModules();
  vi.stubGlobal("document", { documentElement: { lang } });
  vi.stubGlobal("holdfastStrings", holdfastStrings);
  const { filled, t } = await import("../../ui/src/language/translation.ts");
  return { filled, t, ...(await import("../../ui/src/language/quantities.ts")) };
}

afterEach(() => vi.unstubAllGlobals());

test("a text is said in English where it has no translation, with its values and plurals", async () => {
  const { t, duration } = await textsIn("en", {});
  expect(t("Retry")).toBe("Retry");
  expect(t("Open##verb")).toBe("Open");
  const jobs = "{n, plural, one {# job is} other {# jobs are}} in {queue}";
  expect(t(jobs, { n: 1, queue: "mail" })).toBe("1 job is in mail");
  expect(t(jobs, { n: 12_345, queue: "{n}" })).toBe("12,345 jobs are in {n}");
  expect(t("pid {a} of {b}", { a: 12_345, b: null })).toBe("pid 12345 of ");
  // What only looks like a placeholder is text.
  expect(t("takes >3, <10s or { x }")).toBe("takes >3, <10s or { x }");
  expect(duration(65_000)).toBe("1 min 05 s");
});

test("a translation has the plural rules, the numbers and the units of its language, and may put values elsewhere", async () => {
  const { t, duration } = await textsIn("pl", {
    "Retry {n, plural, one {# job} other {# jobs}} of {queue}":
      "{queue}: ponów {n, plural, one {# zadanie} few {# zadania} other {# zadań}}",
    "Open##verb": "Otwórz",
  });
  const said = (n: number): string =>
    t("Retry {n, plural, one {# job} other {# jobs}} of {queue}", { n, queue: "a" });
  expect([1, 3, 5, 12_345].map(said)).toEqual([
    "a: ponów 1 zadanie",
    "a: ponów 3 zadania",
    "a: ponów 5 zadań",
    "a: ponów 12\u00a0345 zadań",
  ]);
  expect(t("Open##verb")).toBe("Otwórz");
  expect(t("Close")).toBe("Close");
  expect(duration(3_660_000)).toBe("1 godz. 01 min");
});

test("a tag of a text is what the code made of it, and never HTML", async () => {
  const { filled } = await textsIn("de", {
    "See <a>the <b>guide</b></a>": "<a>Handbuch <script>x</script> <b>hier</b></a>",
  });
  const made = filled<{ tag: string; inside: readonly unknown[] }>(
    "See <a>the <b>guide</b></a>",
    () => "",
    (tag, inside) => [{ tag, inside }],
  );
  expect(made).toMatchObject([
    { tag: "a", inside: ["Handbuch ", { tag: "script" }, " ", { tag: "b", inside: ["hier"] }] },
  ]);
});
