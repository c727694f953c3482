// Lists in windows of every width: no column is cut off, whatever stands in it; one menu has all that can be done to a row; and a
// compact list shows 25 rows at once.
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { defineJob, type Holdfast } from "../../src/index.ts";
import {
  accessible,
  busySite,
  choose,
  closeSites,
  fits,
  menuOf,
  offered,
  type Site,
  site,
  useBrowser,
} from "./support.ts";

useBrowser();
closeSites();

const long = "umbrella-corporation-international-holdings-of-everything";

let home: Site;
let lists: readonly string[];
beforeAll(async () => {
  const busy = await busySite();
  ({ home } = busy);
  const { waiting, done } = busy.features.workflow;
  lists = [...screens, `/jobs/${waiting}`, `/jobs/${done}`];
  await withLongNames(home.hf);
}, 60_000);

/** A name, an error and a host of every list that are longer than their columns. */
async function withLongNames(hf: Holdfast): Promise<void> {
  const name = `${long}.${long}`;
  const load = defineJob({ name: `load-${long}`, queue: name, run: () => null });
  await hf.enqueue("sync", { tenant: long }, { queue: "tenants", lane: name });
  await hf.enqueue(load, null, { delay: "1h" });
  await hf.queues.set(name, { concurrency: 12, rate: { limit: 600, per: "1m" } });
  await hf.budgets.set(`budget-${long}`, { limit: 500_000, per: "1m" });
  await hf.holds.set(`hold-${long}`, {
    queues: ["media", name],
    reason: `it is ${"really ".repeat(30)}broken`,
  });
  await hf.schedules.put({
    name: `tick-${long}`,
    cron: "30 2 * * 1-5",
    timezone: "Europe/Berlin",
    job: load,
    input: null,
  });
  await hf.enqueue("fails", { tenant: long }, { queue: "once" });
  const [lease] = await hf.lease({ queues: ["once"], limit: 1, for: "1m" });
  await lease!.dead(`the bank said ${"no ".repeat(2_000)}`);
  await hf.work([load], { queues: [name, "crawl", "mail", "media"], name: `worker-${long}` }).ready;
}

const screens = [
  "/",
  "/jobs",
  "/jobs?state=dead",
  "/scheduled",
  "/retries",
  "/workflows?view=all",
  "/errors",
  "/errors?by=kind",
  "/queues",
  "/schedules",
  "/workers",
  "/limits",
  "/operations",
  "/audit",
  "/queues/crawl",
  "/queues/mail",
  "/schedules/digest",
  "/batches",
  "/database",
];

/** Something is in the audit trail and among the operations. */
async function withDeeds(page: Page): Promise<void> {
  await page.goto(`${home.url}/queues`);
  await choose(page, `${long}.${long}`, "Pause");
  await page.locator(".toast").getByText("paused").waitFor();
  await choose(page, `${long}.${long}`, "Resume");
  await page.locator(".toast").getByText("resumed").waitFor();
}

async function listOf(page: Page, path: string): Promise<void> {
  await page.goto(`${home.url}${path}`);
  // SQLite does not tell the sizes of its tables, so the screen has none to wait for.
  const shown = path === "/database" ? "main .tiles" : "main tbody tr, main .empty h2";
  await page.locator(shown).first().waitFor();
  await page.getByText("Loading…").first().waitFor({ state: "detached" });
  await page.evaluate("new Promise((seen) => requestAnimationFrame(() => setTimeout(seen)))");
}

/** Heads and cells that are not whole: beyond their frame, or cut off without a mark and a title. */
function cutOff(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`[...document.querySelectorAll("main table")].flatMap((table) => {
    const { right } = (table.closest(".scroll") ?? table.parentElement).getBoundingClientRect();
    const edge = Math.min(right, document.documentElement.clientWidth) + 1;
    return [...table.querySelectorAll("th, td")].filter((cell) => cell.offsetWidth > 0).flatMap((cell) => {
      const what = cell.textContent.slice(0, 60);
      if (cell.getBoundingClientRect().right > edge) return ["beyond the frame: " + what];
      return [cell, ...cell.querySelectorAll("*")].flatMap((one) => {
        if (one.scrollWidth <= one.clientWidth + 1 || one.clientWidth === 0) return [];
        const { overflowX, textOverflow, webkitLineClamp } = getComputedStyle(one);
        // Its parent is what cuts, or nothing does; texts for screen readers are no wider than a pixel.
        if (overflowX === "visible" || one.closest(".hidden-text, svg") !== null) return [];
        if (textOverflow !== "ellipsis" && webkitLineClamp === "none") return ["cut without a mark: " + what];
        one.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
        return one.closest("[title]:not([title=''])") === null ? ["cut without a title: " + what] : [];
      });
    });
  })`);
}

describe.each([390, 1280, 1920])("[K3] at %i px", (width) => {
  test.each(["comfortable", "compact"])(
    "no column of a list is cut off, and a row ends in one button at most, %s",
    async (density) => {
      const page = await home.open("/", { width, height: 844 });
      await withDeeds(page);
      await page.evaluate(`localStorage.setItem("holdfast.density", "${density}")`);
      for (const path of lists) {
        await listOf(page, path);
        expect.soft((await cutOff(page)).join("\n"), path).toBe("");
        const buttons = await page.evaluate<number[]>(
          `[...document.querySelectorAll("main td.actions")].map((cell) => cell.querySelectorAll("button").length)`,
        );
        expect.soft(Math.max(0, ...buttons), path).toBeLessThanOrEqual(1);
        await fits(page);
      }
    },
  );
});

test("[K3] at 1,280 px the lists of queues and schedules have every column that they had room for", async () => {
  const own = await site();
  await own.hf.enqueue("plain", null, { queue: "mail" });
  await own.hf.schedules.put({
    name: "nightly",
    cron: "0 3 * * *",
    timezone: "Europe/Berlin",
    job: "plain",
    input: null,
  });
  const page = await own.open("/queues", { width: 1280, height: 800 });
  const heads = (): Promise<string[]> => page.getByRole("columnheader").allInnerTexts();
  await page.getByRole("link", { name: "mail", exact: true }).waitFor();
  expect(await heads()).toContain("Workers");
  await page.goto(`${own.url}/schedules`);
  await page.getByRole("link", { name: "nightly", exact: true }).waitFor();
  expect(await heads()).toEqual(expect.arrayContaining(["Overlap", "Fired", "Last 20"]));
});

test("[K3] columns that have no room on a phone are in the details of their row, and come back when it is turned", async () => {
  const page = await home.open("/limits", { width: 390, height: 844 });
  const lanes = page.getByRole("region", { name: "Lanes", exact: true });
  await lanes.getByRole("link", { name: "globex" }).waitFor();
  expect(await lanes.getByRole("columnheader", { name: "Weight" }).count()).toBe(0);
  await choose(lanes, "globex", "Details");
  const dialog = page.getByRole("dialog");
  expect(await dialog.locator("dt:has-text('Weight') + dd").innerText()).toBe("3");
  await accessible(page);
  await page.keyboard.press("Escape");
  await page.setViewportSize({ width: 1280, height: 800 });
  await lanes.getByRole("columnheader", { name: "Weight" }).waitFor();
  expect(await offered(lanes, "globex")).not.toContain("Details");
  await page.setViewportSize({ width: 390, height: 844 });
  await lanes.getByRole("columnheader", { name: "Weight" }).waitFor({ state: "hidden" });
  expect(await offered(lanes, "globex")).toContain("Details");
});

test("[K3] on a phone the name of the queue stands whole in the breadcrumbs", async () => {
  const page = await home.open("/queues/billing", { width: 390, height: 844 });
  const name = page.locator(".crumbs .clip");
  await name.getByText("billing").waitFor();
  const [needed, has] = await page.evaluate<[number, number]>(
    `(({ scrollWidth, clientWidth }) => [scrollWidth, clientWidth])(document.querySelector(".crumbs .clip"))`,
  );
  expect(has).toBeGreaterThanOrEqual(needed);
});

test("[K3] the menu of a row is used by the keyboard alone, and gives the focus back", async () => {
  const page = await home.open("/schedules");
  const opener = page.getByRole("button", { name: "Actions for digest", exact: true });
  const focused = (): Promise<string> => page.evaluate("document.activeElement.textContent.trim()");
  await opener.focus();
  await page.keyboard.press("Enter");
  await page.getByRole("menu", { name: "Actions for digest" }).waitFor();
  await expect.poll(focused).toBe("Next runs");
  await accessible(page);
  const entries = (await page.getByRole("menuitem").allInnerTexts()).map((text) => text.trim());
  expect(entries).toEqual(["Next runs", "Run now", "Backfill", "Edit", "Pause", "Remove"]);
  for (const [key, entry] of [
    ["ArrowDown", "Run now"],
    ["End", "Remove"],
    ["ArrowDown", "Next runs"],
    ["ArrowUp", "Remove"],
    ["Home", "Next runs"],
  ] as const) {
    await page.keyboard.press(key);
    expect(await focused()).toBe(entry);
  }
  // No key of the page acts while it is open.
  await page.keyboard.press("p");
  expect((await home.hf.schedules.get("digest"))?.paused).toBe(false);
  await page.keyboard.press("Escape");
  expect(await page.getByRole("menu").count()).toBe(0);
  expect(await page.evaluate("document.activeElement.ariaLabel")).toBe("Actions for digest");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").getByText("Time zone: Europe/London").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  expect(await page.evaluate("document.activeElement.ariaLabel")).toBe("Actions for digest");
});

test.each([
  [390, 844],
  [320, 480],
])(
  "[K3] on a phone of %i × %i the whole menu is in sight, and a press beside it closes it",
  async (width, height) => {
    const page = await home.open("/schedules", { width, height });
    for (const on of ["digest", `tick-${long}`, "sweep"]) {
      await page.getByRole("button", { name: `Actions for ${on}`, exact: true }).scrollIntoViewIfNeeded();
      await menuOf(page, on);
      const [left, top, right, bottom] = await page.evaluate<[number, number, number, number]>(
        `(({ left, top, right, bottom }) => [left, top, right, bottom])(document.querySelector("[role=menu]").getBoundingClientRect())`,
      );
      expect([left >= 0, top >= 0, right <= width, bottom <= height]).toEqual([true, true, true, true]);
      await accessible(page);
      await page.getByRole("heading", { level: 1 }).dispatchEvent("pointerdown");
      await page.getByRole("menu").waitFor({ state: "detached" });
    }
  },
);

describe("[K3] compact", () => {
  let own: Site;
  beforeAll(async () => {
    own = await site();
    const names = Array.from({ length: 30 }, (_, i) => `queue-${String(i).padStart(2, "0")}`);
    const jobs = names.map((queue) => defineJob({ name: `job-of-${queue}`, queue, run: () => null }));
    for (const [i, job] of jobs.entries()) {
      await own.hf.enqueue(job, { n: i, to: "ann@example.org" }, { delay: "2h", lane: `lane-${i}` });
      await own.hf.schedules.put({ name: `every-${i}`, cron: `${i} 3 * * *`, job, input: null });
      await own.hf.enqueue("fails", { n: i }, { queue: "once" });
      const [lease] = await own.hf.lease({ queues: ["once"], limit: 1, for: "1m" });
      const letter = (n: number): string => String.fromCharCode(97 + (n % 26));
      await lease!.dead(`the part ${letter(i)}${letter(i * 7 + 3)} of it said ${"no ".repeat(40)}`);
    }
    await own.hf.work(jobs, { queues: names, name: "web-1" }).ready;
  }, 60_000);

  test.each(["/jobs", "/scheduled", "/errors", "/queues", "/schedules"])(
    "%s shows 25 rows in a window of 1,280 × 800",
    async (path) => {
      const page = await own.open("/", { width: 1280, height: 800 });
      await page.evaluate(`localStorage.setItem("holdfast.density", "compact")`);
      await page.goto(`${own.url}${path}`);
      await page.locator("main tbody tr").nth(24).waitFor();
      await page.getByText("Loading…").first().waitFor({ state: "detached" });
      const whole = (): Promise<number> =>
        page.evaluate(
          `[...document.querySelectorAll("main tbody tr")].filter((row) => row.getBoundingClientRect().bottom <= innerHeight).length`,
        );
      await expect.poll(whole).toBeGreaterThanOrEqual(25);
      await accessible(page);
    },
  );
});
