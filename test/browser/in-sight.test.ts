// What must be in sight in a usual window, however long the texts beside it are: the buttons of a row, the queues of a worker,
// and a list's own answer, not what could be typed.
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { accessible, choose, closeSites, fits, offers, site, useBrowser } from "./support.ts";

useBrowser();
closeSites();

const long = "umbrella-corporation-international-holdings-of-everything";

/** Every last cell that acts ends within its table's frame. */
async function actionsInSight(page: Page): Promise<void> {
  const cut = await page.evaluate<string[]>(`[...document.querySelectorAll("td.actions")].flatMap((cell) => {
    const frame = cell.closest(".scroll").getBoundingClientRect();
    const last = [...cell.querySelectorAll("button")].at(-1)?.getBoundingClientRect();
    return last !== undefined && last.right > frame.right + 1 ? [cell.textContent] : [];
  })`);
  expect(cut).toEqual([]);
  expect(await page.locator("td.actions button").count()).toBeGreaterThan(0);
}

test("[K3] the buttons of every row are in sight beside long texts, and no queue of a worker is left out", async () => {
  const own = await site();
  const names = Array.from({ length: 8 }, (_, i) => `queue-with-a-name-${i}`);
  const jobs = names.map((queue) => defineJob({ name: `job-${queue}`, queue, run: () => null }));
  await own.hf.schedules.put({
    name: `tick-${long}`,
    cron: "30 2 * * 1-5",
    timezone: "Europe/Berlin",
    job: jobs[0]!,
    input: null,
  });
  const worker = own.hf.work(jobs, { queues: names, name: "web-1" });
  await worker.ready;
  await own.hf.enqueue("plain", { tenant: long }, { queue: "sync", lane: long });
  const page = await own.open("/workers");
  const row = page.getByRole("row", { name: /web-1/ });
  await row.getByText("+2 more").click();
  for (const name of names) await row.getByRole("link", { name: new RegExp(`^${name}`) }).waitFor();
  await actionsInSight(page);
  await accessible(page);
  await page.goto(`${own.url}/schedules`);
  await page.getByRole("button", { name: /^Actions for tick/ }).waitFor();
  await actionsInSight(page);
  await page.setViewportSize({ width: 900, height: 900 });
  await actionsInSight(page);
  await page.setViewportSize({ width: 1360, height: 900 });
  await page.goto(`${own.url}/jobs?queue=sync`);
  await page.getByTitle(long).first().waitFor();
  await actionsInSight(page);
  expect(
    await page.evaluate(
      `(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector("main .scroll"))`,
    ),
  ).toBe(0);
  await page.goto(`${own.url}/queues`);
  await choose(page, "sync", "Pause");
  await offers(page, "sync", "Resume");
  await actionsInSight(page);
  await fits(page);
});

test("[K3] after Enter the answer is in sight: what a word could be, learnt late, opens no list over it", async () => {
  const own = await site();
  const page = await own.open("/jobs");
  const asked = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  await page.route("**/workers", async (route) => {
    asked.resolve();
    await held.promise;
    await route.continue();
  });
  await own.hf.work([defineJob({ name: "plain", run: () => null })], { queues: ["default"], name: "web-1" })
    .ready;
  const box = page.getByRole("combobox", { name: "Find jobs" });
  await box.fill("worker:web age:>5q");
  await box.press("Home");
  for (let i = 0; i < "worker:we".length; i += 1) await box.press("ArrowRight");
  await box.press("b");
  await asked.promise;
  await box.press("Enter");
  await page.getByText("age: expected a time such as").waitFor();
  const answered = page.waitForResponse("**/workers");
  held.resolve();
  await (await answered).finished();
  await page.evaluate("new Promise((seen) => requestAnimationFrame(() => setTimeout(seen)))");
  expect(await page.getByRole("listbox").count()).toBe(0);
});

test("[K3] one long name or error hides nothing else: columns stay in sight, and an error of pages is folded", async () => {
  const own = await site();
  const name = `${long}-${long}`.slice(0, 128);
  await own.hf.enqueue("plain", { tenant: long }, { queue: name, lane: name });
  await own.hf.enqueue("fails", { tenant: long }, { queue: "mail" });
  const [lease] = await own.hf.lease({ queues: ["mail"], limit: 1, for: "1m" });
  await lease!.dead(`the bank said ${"no ".repeat(2_000)}`);
  const page = await own.open("/queues");
  /** Columns that stand, in part or as a whole, behind the buttons at the end of the rows. */
  const hidden = (): Promise<string[]> =>
    page.evaluate(`[...document.querySelectorAll("main table")].flatMap((table) => {
      const heads = [...table.querySelectorAll("thead th")].filter((one) => one.offsetWidth > 0);
      const edge = heads.at(-1).getBoundingClientRect().left;
      return heads.slice(0, -1).filter((one) => one.getBoundingClientRect().right > edge + 1).map((one) => one.textContent);
    })`);
  await page.getByRole("link", { name }).waitFor();
  expect(await hidden()).toEqual([]);
  for (const path of ["/jobs", "/errors", "/limits"]) {
    await page.goto(`${own.url}${path}`);
    await page.locator("main tbody tr").first().waitFor();
    expect(await hidden(), path).toEqual([]);
  }
  await page.goto(`${own.url}/jobs/${lease!.id}`);
  const banner = page.getByRole("status").filter({ hasText: "the bank said" });
  await banner.waitFor();
  expect((await banner.innerText()).length).toBeLessThan(700);
  await accessible(page);
  await banner.getByRole("button", { name: "Show all" }).click();
  expect((await banner.innerText()).length).toBeGreaterThan(3_000);
  // The names of all workflows stand in a list that may be narrow.
  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(`${own.url}/workflows`);
  await page.getByRole("combobox", { name: "Workflow" }).waitFor();
  await fits(page);
});
