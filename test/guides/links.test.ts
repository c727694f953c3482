// Every link from one page of the repository to another leads somewhere, to the right heading too.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { read, repositoryFiles, root } from "../support/repository.ts";

const pages = repositoryFiles().filter((file) => /^(?:[A-Z]+\.md|docs\/.*\.md)$/.test(file));

test("no link is broken", () => {
  const broken: string[] = [];
  for (const page of pages) {
    for (const [, link] of proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(link!)) continue;
      const [path = "", anchor] = link!.split("#");
      const target = path === "" ? page : join(dirname(page), path);
      if (!existsSync(join(root, target))) broken.push(`${page}: ${link}`);
      else if (anchor !== undefined && !anchorsOf(target).has(anchor)) broken.push(`${page}: ${link}`);
    }
  }
  expect(broken).toEqual([]);
});

test("every guide and reference is in the README's list", () => {
  const readme = read("README.md");
  const guides = pages.filter((page) => /^docs\/(?:guides|reference)\//.test(page));
  expect(guides.filter((guide) => !readme.includes(`(${guide})`))).toEqual([]);
});

test("every decision is in the index, with its date, and says what was chosen instead of what", () => {
  const index = read("docs/decisions/README.md");
  const decisions = pages.filter((page) => page.startsWith("docs/decisions/") && !page.endsWith("README.md"));
  expect(decisions.length).toBeGreaterThan(10);
  for (const page of decisions) {
    const [, title] = /^# (.+)\n/.exec(read(page)) ?? [];
    expect(index, page).toMatch(`[${title}](${page.slice("docs/decisions/".length)}) | 20`);
    if (page.endsWith("profiling.md")) continue; // a collection of findings
    expect(read(page), page).toMatch(/\nDecided on \d{4}-\d\d-\d\d\.\n/);
    const headings = [...read(page).matchAll(/^## (.+)$/gm)].map(([, heading]) => heading);
    expect(headings, page).toEqual(expect.arrayContaining(["Context", "Choice", "Alternatives"]));
  }
});

/** Without code, where brackets mean something else. */
function proseOf(page: string): string {
  return read(page).replaceAll(/^( *)```[^]*?^\1```$/gm, "");
}

function anchorsOf(page: string): Set<string> {
  const headings = proseOf(page).matchAll(/^#+ (.+)$/gm);
  return new Set(
    [...headings].map(([, text]) =>
      text!
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} -]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );
}
