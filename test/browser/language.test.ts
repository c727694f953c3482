// The page in another language: every text of it is in the catalogue, and dates, times and numbers are those of the tag.
// Each text is put between signs that nothing else has; what is left outside of them must come from the API.
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { catalogueFile } from "../../scripts/strings.ts";
import { read } from "../support/repository.ts";
import { busySite, closeSites, TOKEN, useBrowser } from "./support.ts";

useBrowser();
closeSites();

const english = JSON.parse(read(catalogueFile)) as Readonly<Record<string, string>>;
const strings = Object.fromEntries(Object.entries(english).map(([text, shown]) => [text, `⟦${shown}⟧`]));

/** Names, units and abbreviations that no language changes. */
const names =
  /\b(?:Holdfast|SQLite|UTC|JSON|p50|p95|p99|ms|kB|MB|GB|B|v\d[\w.-]*|g [a-z]|Ctrl K|Esc|test|curl|TypeScript)\b/g;

test("[K3] with every text of the catalogue translated, no English is left but what the API says", async () => {
  // Chinese: what Intl makes of a time has no Latin letters, so that it is not taken for a text that was forgotten.
  const { home, filled, features } = await busySite({ language: { tag: "zh", strings } });
  const page = await home.open("/");
  const said: Promise<string>[] = [];
  page.on("response", (response) => {
    const { pathname } = new URL(response.url());
    // A stream that is open has no end to wait for.
    if (pathname.includes("/api/v1/") && !pathname.endsWith("/stream"))
      said.push(response.text().then(plain, () => ""));
  });
  expect(await page.locator("html").getAttribute("lang")).toBe("zh");
  // What the stream says is said by this as well.
  said.push(asked(page, "/overview"), asked(page, "/holds"), asked(page, "/me"));
  const { groups } = JSON.parse(await asked(page, "/errors")) as { groups: { group: string }[] };
  const loose: string[] = [];
  // What the API says on each of them: it is there when this is.
  for (const [path, shown] of [
    ["/", "card 4242 was declined"],
    ["/jobs", "fulfil-order"],
    ["/jobs?state=dead&queue=billing", "charge-card"],
    [`/jobs/${filled.ids.dead}`, "checkout"],
    [`/jobs/${features.flow.done}`, "import-part"],
    ["/workflows", "⟦Workflow⟧"],
    ["/scheduled", "weekly-digest"],
    ["/retries", "ECONNREFUSED"],
    ["/errors", "card 4242 was declined"],
    ["/errors?by=kind", "charge-card"],
    [`/errors/${groups[0]!.group}`, "⟦Clues⟧"],
    ["/queues", "crawl"],
    ["/queues/reports", "build-report"],
    ["/schedules", "Mondays at 09:00, Europe/London"],
    ["/schedules/digest", "Europe/London"],
    ["/workers", "web-1"],
    ["/limits", "acme/eu"],
    ["/database", "⟦Round trip⟧"],
    ["/operations", "⟦No action on many jobs yet⟧"],
    ["/audit", "⟦Nothing was done yet⟧"],
    ["/nowhere", "⟦There is no such page⟧"],
  ] as const) {
    await page.evaluate(
      `history.pushState({}, "", ${JSON.stringify(path)}); dispatchEvent(new PopStateEvent("popstate"))`,
    );
    await page.locator("main").getByText(shown).first().waitFor();
    // Nothing is loading any more.
    await expect
      .poll(() => page.locator(".empty[role=status], [aria-busy=true]").count(), { timeout: 20_000 })
      .toBe(0);
    loose.push(...(await outside(page)).map((text) => `${path}: ${text}`));
  }
  for (const [keys, shown] of [
    ["?", "⟦Single keys do things⟧"],
    ["Control+k", "⟦Change the theme⟧"],
  ] as const) {
    await page.keyboard.press(keys);
    await page.locator("dialog").getByText(shown).waitFor();
    loose.push(...(await outside(page)).map((text) => `${keys}: ${text}`));
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
  }
  const data = (await Promise.all(said)).join("\n");
  expect([...new Set(loose.filter((line) => isEnglish(line.slice(line.indexOf(": ") + 2), data)))]).toEqual(
    [],
  );
}, 120_000);

async function asked(page: Page, path: string): Promise<string> {
  const headers = { authorization: `Bearer ${TOKEN}` };
  return (await page.request.get(new URL(`/api/v1${path}`, page.url()).href, { headers })).text();
}

function plain(json: string): string {
  return json.replaceAll("\\n", "\n").replaceAll('\\"', '"');
}

/** A text of the catalogue that stands there bare, or words that no answer of the API had. */
function isEnglish(text: string, data: string): boolean {
  if (Object.hasOwn(english, text)) return true;
  if (data.includes(text)) return false;
  return text
    .replaceAll(names, "")
    .split(/[^\p{Script=Latin}\d._:@/-]+/u)
    .some((word) => /[A-Za-z]{2}/.test(word) && !data.includes(word.replace(/[.:]+$/, "")));
}

/** What can be read or heard, outside of the signs: text in the order of the page, and attributes each by itself. */
async function outside(page: Page): Promise<string[]> {
  const read = (await page.evaluate(`(() => {
    const texts = [];
    const attributes = [];
    (function walk(node) {
      if (node instanceof Text) texts.push(node.data);
      if (!(node instanceof Element)) return;
      // Code, keys, the words of the search, and the doctor's: they are as they are.
      if (node.matches("script, noscript, code, pre, kbd, .chip > .muted, .checks")) return;
      for (const name of ["aria-label", "title", "placeholder", "alt", "aria-valuetext"])
        if (node.hasAttribute(name)) attributes.push(node.getAttribute(name));
      node.childNodes.forEach(walk);
    })(document.body);
    return { texts, attributes };
  })()`)) as { texts: string[]; attributes: string[] };
  return [...bare(read.texts), ...read.attributes.flatMap((text) => bare([text]))];
}

/** Signs may open in one text and close in a later one: an element stands between. */
function bare(texts: readonly string[]): string[] {
  let depth = 0;
  const left = texts.map((text) => {
    let kept = "";
    for (const sign of text) {
      if (sign === "⟦") depth++;
      else if (sign === "⟧") depth--;
      else if (depth === 0) kept += sign;
    }
    return kept.trim();
  });
  expect(depth).toBe(0);
  return left.filter((text) => /[A-Za-z]{2}/.test(text));
}
