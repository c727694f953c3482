// By keyboard in every list, and what the palette can do besides leading somewhere.
import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { accessible, busySite, closeSites, shot, site, type Site, useBrowser } from "./support.ts";

useBrowser();
closeSites();

let home: Site;
beforeAll(async () => {
  ({ home } = await busySite());
}, 120_000);

const go = async (page: Page, key: string, title: string): Promise<void> => {
  await page.keyboard.press("g");
  await page.keyboard.press(key);
  await page.getByRole("heading", { name: title, level: 1 }).waitFor();
};
/** By what it is about: the rest of a row may change while it is looked at. */
const focusedRow = (page: Page) => page.locator("main tbody tr:focus-within td:first-child");

test("[K3] g leads to every screen; j, k and Enter go through its list; p pauses what the row is about", async () => {
  const page = await home.open("/");
  for (const [key, title] of [
    ["q", "Queues"],
    ["s", "Schedules"],
    ["k", "Workers"],
    ["l", "Limits"],
  ] as const) {
    await go(page, key, title);
    await page.locator("main tbody tr").nth(1).waitFor();
    await page.keyboard.press("j");
    const first = await focusedRow(page).innerText();
    await page.keyboard.press("j");
    expect([title, await focusedRow(page).innerText()]).not.toEqual([title, first]);
    await page.keyboard.press("k");
    expect([title, await focusedRow(page).innerText()]).toEqual([title, first]);
  }
  await go(page, "s", "Schedules");
  await page.getByRole("row", { name: /^digest/ }).waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("p");
  await page.getByText("Schedule paused").waitFor();
  expect((await home.hf.schedules.get("digest"))?.paused).toBe(true);
  await page
    .getByRole("row", { name: /^digest/ })
    .getByText("paused", { exact: true })
    .waitFor();
  await page.keyboard.press("P");
  await page.getByText("Schedule resumed").waitFor();
  expect((await home.hf.schedules.get("digest"))?.paused).toBe(false);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "digest", level: 1 }).waitFor();
});

test("[K3] after g a key is a place or nothing: it never does what it does alone; after Escape it is heard", async () => {
  const own = await site();
  const { id } = await own.hf.enqueue("plain", null);
  const page = await own.open(`/jobs/${id}`);
  await page.getByText("Facts").waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("#");
  await page.keyboard.press("?");
  // The help came, and it alone: what # does alone would have asked first.
  await page.getByRole("heading", { name: "Keyboard and settings" }).waitFor();
  expect(await page.getByRole("dialog").count()).toBe(1);
  // Each place by its own line.
  await page.getByText("g w", { exact: true }).waitFor();
  expect(await page.locator(".keys dt", { hasText: /^g . *$/ }).count()).toBe(14);
  await page.keyboard.press("Escape");
  await page.keyboard.press("#");
  await page.getByRole("heading", { name: /^Delete/ }).waitFor();
  // Typed in one go: no dialog is in the way any more.
  await Promise.all([page.keyboard.press("Escape"), page.keyboard.press("?")]);
  await page.getByRole("heading", { name: "Keyboard and settings" }).waitFor();
});

test("[K2] the palette pauses a queue, retries its dead after a preview, and finds schedules and workers by name", async () => {
  const own = await site();
  const broken = defineJob({
    name: "broken",
    queue: "mail",
    retry: { attempts: 1 },
    run: async () => {
      throw new Error("no");
    },
  });
  await own.hf.schedules.put({ name: "nightly", cron: "0 3 * * *", job: "report", input: null });
  const worker = own.hf.work([broken], { queues: ["mail"], name: "post-1" });
  const { id } = await own.hf.enqueue(broken, null);
  await expect.poll(async () => (await own.hf.jobs.get(id))?.state, { timeout: 20_000 }).toBe("dead");
  await own.hf.queues.set("mail", { concurrency: 5 });
  const page = await own.open("/workers");
  const ask = async (text: string): Promise<void> => {
    // Nothing to search on this screen: the palette searches everything.
    await page.keyboard.press("/");
    await page.getByRole("combobox").and(page.locator(":focus")).waitFor();
    await page.keyboard.type(text);
  };
  await ask("pause mail");
  await page.getByRole("option", { name: "Pause mail queue" }).waitFor();
  await accessible(page);
  await shot(page, "palette");
  await page.keyboard.press("Enter");
  await page.getByText("mail paused").waitFor();
  await expect.poll(async () => (await own.hf.queues.list())[0]?.paused, { timeout: 20_000 }).toBe(true);
  await ask("retry mail");
  await page.getByRole("option", { name: "Retry dead mail queue" }).click();
  await page.getByRole("heading", { name: "Retry 1 job?" }).waitFor();
  await page.keyboard.press("Escape");
  await ask("night");
  await page.getByRole("option", { name: "nightly schedule", exact: true }).click();
  await page.getByRole("heading", { name: "nightly", level: 1 }).waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").and(page.locator(":focus")).waitFor();
  await page.keyboard.type("post-1");
  await page.getByRole("option", { name: /^post-1 worker/ }).click();
  await page.getByRole("heading", { name: "Workers", level: 1 }).waitFor();
  expect(page.url()).toContain(worker.id);
});

test("[K2] who may only look finds no action in the palette", async () => {
  const own = await site({ readOnly: true });
  await own.hf.queues.set("mail", { concurrency: 5 });
  const page = await own.open("/");
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").and(page.locator(":focus")).waitFor();
  await page.keyboard.type("mail");
  await page.getByRole("option", { name: "mail queue" }).waitFor();
  expect(await page.getByRole("option", { name: /Pause|Retry|Resume/ }).count()).toBe(0);
});
