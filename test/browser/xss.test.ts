// Hostile text in every field that anybody can fill: it is shown as text, runs nothing, asks for nothing.
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { waitFor } from "../support/wait.ts";
import { fillFeatures } from "./data.ts";
import { all, corpus, hostile } from "./hostile.ts";
import { closeSites, type Site, site, TOKEN, useBrowser } from "./support.ts";

useBrowser();
closeSites();

const poison = all.replaceAll("\u0000", "").toWellFormed();

/** Nothing ran, nothing was made of it, and it is there to be read. */
async function onlyText(page: Page): Promise<void> {
  const seen = (): Promise<boolean> =>
    page.evaluate(
      `[...document.querySelectorAll("main, dialog")].some(({ textContent }) => textContent.includes("window.hacked")) ||
        [...document.querySelectorAll("input, textarea")].some(({ value }) => value.includes("window.hacked"))`,
    );
  await expect.poll(seen, { timeout: 20_000 }).toBe(true);
  await page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))");
  expect(await page.evaluate("window.hacked")).toBeUndefined();
  expect(
    await page.evaluate(
      "document.querySelectorAll('#app script, #app iframe, #app img, #app base, #app style, #app math, #app [onload], #app [onerror], a[href^=\"javascript:\"]').length",
    ),
  ).toBe(0);
}

let home: Site;
let faked: Site;
let id = "";
let group = "";
let workflow = "";
beforeAll(async () => {
  // What the client lets in, through the tables and back.
  home = await site({ label: corpus[0] });
  const job = defineJob({
    name: "evil",
    retry: { attempts: 1 },
    run: async (input: Record<string, unknown>, ctx) => {
      ctx.log.warn({ [all]: all }, all);
      await ctx.progress({ [all]: all });
      if (input["end"] === "done") return { [all]: all };
      throw Object.assign(new Error(all), { stack: all });
    },
  });
  const { hf } = home;
  id = (
    await hf.enqueue(
      job,
      { end: "dead", [all]: all, list: corpus },
      { context: all, lane: corpus[1], key: corpus[2] },
    )
  ).id;
  const done = await hf.enqueue(job, { end: "done" });
  const worker = hf.work([job], { queues: ["default"], name: "evil-worker" });
  await worker.ready;
  await hf.result(done);
  await worker.idle();
  await hf.enqueue("later", corpus, { delay: "1h", context: all, lane: corpus[0] });
  await hf.holds.set("evil", { reason: poison });
  group = await waitFor(async () => (await hf.errors.list())[0]?.group, { what: "the failure's group" });
  await hf.errors.resolve(group, { note: poison, link: `https://example.org/?${poison.slice(0, 500)}` });
  // What it does not: as if the tables, or the API itself, were in somebody else's hands.
  faked = await site({}, hostile);
  workflow = (await fillFeatures(faked.hf)).workflow.done;
  await faked.hf.holds.set("evil", { reason: "r" });
  // Its failed jobs are due again within a minute, which a busy machine needs to come to their list.
  await faked.hf.enqueue("later", 1, { delay: "1d" });
  const bulk = await fetch(`${faked.url}/api/v1/jobs/bulk`, {
    method: "POST",
    headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
    body: JSON.stringify({ action: "cancel", filter: { queue: ["tenants"] } }),
  });
  expect(bulk.status).toBe(200);
}, 90_000);

describe("what a client lets in", () => {
  test.each([
    "/",
    "/jobs",
    "/jobs/:id",
    "/jobs/:id?tab=log",
    "/jobs?state=dead",
    `/jobs?search=${encodeURIComponent(corpus[0])}&lane=${encodeURIComponent(corpus[1])}&key=${encodeURIComponent(corpus[2])}`,
    "/errors?state=resolved",
    "/errors/:group",
    "/scheduled",
    "/limits",
  ])("is only text on %s", async (path) => {
    const page = await home.open(path.replace(":id", id).replace(":group", group));
    await onlyText(page);
  });

  test("is text in the dialogs of a hostile job as well", async () => {
    const page = await home.open(`/jobs/${id}`);
    await page.getByText("window.hacked=1").first().waitFor();
    await page.getByRole("button", { name: "Copy as new" }).click();
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").waitFor();
    await onlyText(page);
  });
});

test("characters that turn the text around are shown as escapes, and copied as they are", async () => {
  const turned = "safe\u202egnp.exe\u2066";
  const job = await home.hf.enqueue("turned", { file: turned }, { delay: "1h" });
  for (const path of ["/scheduled", `/jobs/${job.id}`]) {
    const page = await home.open(path);
    await page
      .getByText(String.raw`safe\u202egnp.exe\u2066`)
      .first()
      .waitFor();
    expect(await page.locator("body").textContent()).not.toMatch(/[\u202e\u2066]/);
  }
  const page = await home.open(`/jobs/${job.id}`);
  await page.getByRole("button", { name: "Copy as new" }).click();
  await expect.poll(() => page.getByLabel("Input (JSON)").inputValue()).toContain(turned);
});

describe("what an API of somebody else's says", () => {
  test.each([
    "/",
    "/jobs",
    "/jobs/:id",
    "/jobs/:id?tab=log",
    "/workflows?view=kinds",
    "/errors",
    "/errors/:group",
    "/scheduled",
    "/retries",
    "/workflows",
    "/operations",
    "/queues",
    "/queues/bank",
    "/schedules",
    "/schedules/digest",
    "/workers",
    "/limits",
    "/database",
    "/audit",
  ])("is only text on %s", async (path) => {
    const found = (await faked.hf.errors.list())[0]!.group;
    // It asks with what it was told, which is refused.
    const page = await faked.open(path.replace(":id", workflow).replace(":group", found), { refused: true });
    await onlyText(page);
  });
});
