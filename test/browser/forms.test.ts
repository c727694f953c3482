// Forms in a real browser: what is mistyped changes nothing and is said beside its field; what is not touched is not sent; a time
// is of the clock that the page shows.
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { accessible, choose, closeSites, offered, shot, site, useBrowser } from "./support.ts";

useBrowser();
closeSites();

const dialog = (page: Page) => page.getByRole("dialog");

test("[K2] a mistyped number is refused at its field, and no limit is lifted", async () => {
  const own = await site();
  await own.hf.queues.set("mail", { concurrency: 10 });
  const page = await own.open("/limits");
  await choose(page, "mail", "Change");
  const field = dialog(page).getByRole("textbox", { name: "Concurrency", exact: true });
  for (const wrong of ["1,000", "10x", "Infinity", "1e3"]) {
    await field.fill(wrong);
    await dialog(page).getByRole("button", { name: "Save" }).click();
    await dialog(page).getByText(`“${wrong}” is not a number. Write digits only, such as 1000.`).waitFor();
    expect(await field.getAttribute("aria-invalid")).toBe("true");
    await field.and(page.locator(":focus")).waitFor();
  }
  await accessible(page);
  await shot(page, "mistyped");
  expect((await own.hf.queues.list())[0]?.settings.concurrency).toBe(10);
  await field.fill("1000");
  await dialog(page).getByRole("button", { name: "Save" }).click();
  await page.getByText("Limits saved").waitFor();
  expect((await own.hf.queues.list())[0]?.settings.concurrency).toBe(1_000);
});

test("[K2] a budget says when it gives again, is put back to the code's numbers, and removed after a question", async () => {
  const own = await site();
  await own.hf.budgets.set("slack", { limit: 6, per: "1h", default: true });
  await own.hf.budgets.set("slack", { limit: 2, per: "1h" });
  await own.hf.queues.set("mail", { rate: { limit: 100, per: "1m" } });
  await own.hf.enqueueMany([1, 2, 3].map((input) => ({ job: "send", input, queue: "mail" })));
  const page = await own.open("/limits");
  const limits = page.getByRole("region", { name: "Queue limits" });
  await limits.getByRole("link", { name: "3", exact: true }).waitFor();
  await limits.getByRole("img", { name: "Starts in the window: 0 of 100" }).waitFor();
  const row = page.getByRole("region", { name: "Budgets" }).getByRole("row", { name: /slack/ });
  await row.getByText("full", { exact: true }).waitFor();
  await choose(row, "slack", "Drain");
  await dialog(page).getByRole("button", { name: "Drain" }).click();
  await row.getByText(/^next in (30 min|29 min \d\d s), full in (1 h|59 min \d\d s)$/).waitFor();
  await accessible(page);
  await shot(page, "limits");
  await choose(row, "slack", "Reset");
  await row.getByText("6 per h").waitFor();
  expect(await own.hf.budgets.list()).toMatchObject([{ name: "slack", limit: 6, tuned: false }]);
  expect(await offered(row, "slack")).toEqual(["Change", "Drain", "Remove"]);
  await choose(row, "slack", "Remove");
  await dialog(page).getByText("Jobs that use this budget get nothing until it is set again.").waitFor();
  await dialog(page).getByRole("button", { name: "Remove" }).click();
  await page.getByText("No budgets").waitFor();
  expect(await own.hf.budgets.list()).toEqual([]);
});

test("[K2] only what was changed of a schedule counts as edited", async () => {
  const own = await site();
  const schedule = {
    name: "nightly",
    cron: "0 3 * * *",
    timezone: "Europe/Berlin",
    job: "report",
    input: null,
  };
  await own.hf.schedules.put(schedule);
  const page = await own.open("/schedules");
  await choose(page, "nightly", "Edit");
  await dialog(page).getByRole("button", { name: "Save" }).click();
  await dialog(page).getByText("Nothing to save.").waitFor();
  await dialog(page).getByLabel("Overlap").selectOption("skip");
  await dialog(page).getByRole("button", { name: "Save" }).click();
  await page.getByText("Schedule saved").waitFor();
  expect((await own.hf.schedules.get("nightly"))?.edited).toEqual(["overlap"]);
  // What the code says later of the rest still counts.
  await own.hf.schedules.put({ ...schedule, cron: "0 4 * * *" });
  expect(await own.hf.schedules.get("nightly")).toMatchObject({ cron: "0 4 * * *", overlap: "skip" });
});

test("[K2] a schedule is said in words; the editor says what a timing means while it is typed, or what is wrong", async () => {
  const own = await site();
  await own.hf.schedules.put({
    name: "nightly",
    cron: "0 3 * * *",
    job: "report",
    input: null,
    queue: "slow",
  });
  await own.hf.queues.pause("slow");
  const page = await own.open("/schedules");
  const row = page.getByRole("row", { name: /nightly/ });
  await row.getByText("Every day at 03:00, UTC").waitFor();
  await row.getByText("queue slow is paused").waitFor();
  await choose(page, "nightly", "Edit");
  const means = dialog(page).getByRole("status", { name: "Explanation" });
  await means.getByText("Every day at 03:00, UTC").waitFor();
  await dialog(page).getByLabel("Cron").fill("0 9 * * 1-5");
  await dialog(page).getByLabel("Time zone").fill("Europe/London");
  await means.getByText("Weekdays at 09:00, Europe/London").waitFor();
  expect(await means.getByRole("listitem").count()).toBe(4);
  await shot(page, "schedule-edit");
  await accessible(page);
  await dialog(page).getByLabel("Cron").fill("0 25 * * *");
  await means.getByText(/got "0 25 \* \* \*"/).waitFor();
  expect(await means.getByRole("listitem").count()).toBe(0);
  await page.keyboard.press("Escape");
  await shot(page, "schedules");
  await page.goto(`${own.url}/schedules/nightly`);
  await page.getByText("Every day at 03:00, UTC").waitFor();
  await page.getByText("Its jobs will wait: queue slow is paused.").waitFor();
});

test("[K2] where the page shows UTC, a time that is typed is UTC, and is read back so", async () => {
  const own = await site();
  const page = await own.open("/");
  await page.evaluate("localStorage.setItem('holdfast.clock', 'utc')");
  const { id } = await own.hf.enqueue("later", null, { delay: "3h" });
  const year = new Date().getUTCFullYear() + 1;
  for (const [typed, at] of [
    [`${year}-07-01 08:00`, Date.UTC(year, 6, 1, 8)],
    [`${year}-07-02`, Date.UTC(year, 6, 2)],
    [`${year}-07-03T08:00+02:00`, Date.UTC(year, 6, 3, 6)],
    [`${year}-07-04 08:00:00 UTC`, Date.UTC(year, 6, 4, 8)],
  ] as const) {
    await page.goto(`${own.url}/jobs/${id}`);
    await page.getByText("Facts").waitFor();
    await page.keyboard.press("e");
    await dialog(page).getByLabel("Run").fill(typed);
    await dialog(page).getByRole("button", { name: "Change" }).click();
    await page.getByText("Changed").waitFor();
    expect((await own.hf.jobs.get(id))?.runAt?.getTime()).toBe(at);
  }
  await page.goto(`${own.url}/jobs`);
  await page.getByRole("checkbox").nth(1).check();
  await page.keyboard.press("e");
  await dialog(page).getByLabel("Run").fill(`${year}-07-01 08:00`);
  await dialog(page).getByRole("button", { name: "Preview" }).click();
  await dialog(page).getByText(`${year}-07-01 08:00:00 UTC`).first().waitFor();
});
