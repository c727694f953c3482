// The lists of jobs in a real browser, while jobs come and end: rows stay where they are, however many there are; what is typed is
// read or refused; ids are found by what is shown of them.
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { defineJob, Dead } from "../../src/index.ts";
import { waitFor } from "../support/wait.ts";
import { accessible, closeSites, fits, shot, site, useBrowser } from "./support.ts";

useBrowser();
closeSites();

const plain = defineJob({ name: "plain", run: async (_input: { n: number }) => {} });

const names = (page: Page): Promise<string[]> => page.locator("tbody .main-link").allInnerTexts();

describe("[K2] live", () => {
  test("what comes waits behind a count and rows change where they stand; a click shows it", async () => {
    const home = await site();
    await home.hf.enqueueMany([1, 2, 3].map((n) => ({ job: plain, input: { n } })));
    const old = await home.hf.enqueue("older", 1);
    const page = await home.open("/jobs");
    await page.getByRole("link", { name: "older", exact: true }).waitFor();
    expect(await names(page)).toEqual(["older", "plain", "plain", "plain"]);
    await page.evaluate(`document.querySelector("tbody tr").dataset.mark = "same"`);
    for (let n = 0; n < 7; n += 1) await home.hf.enqueue("newer", n);
    await home.hf.jobs.cancel(old.id);
    await page.getByRole("button", { name: "7 new" }).waitFor();
    // The same row at the same place, with what has become of it.
    const row = page.locator("tbody tr").first();
    await row.locator(".state").getByText("cancelled").waitFor();
    expect(await row.getAttribute("data-mark")).toBe("same");
    expect(await names(page)).toEqual(["older", "plain", "plain", "plain"]);
    await accessible(page);
    await shot(page, "jobs-pill");
    await home.hf.jobs.delete(old.id);
    await page.locator("tbody tr.gone").waitFor();
    await page.getByRole("button", { name: "7 new" }).click();
    await page.getByRole("link", { name: "newer", exact: true }).first().waitFor();
    expect(await names(page)).toEqual([
      ...Array.from({ length: 7 }, () => "newer"),
      "plain",
      "plain",
      "plain",
    ]);
    expect(await page.getByRole("button", { name: /new$/ }).count()).toBe(0);
  });

  test("as often as the settings say, and not at all while paused", async () => {
    const home = await site();
    await home.hf.enqueue("first", 1);
    const page = await home.open("/jobs");
    await page.getByRole("link", { name: "first", exact: true }).waitFor();
    await page.evaluate(`localStorage.setItem("holdfast.refresh", "60")`);
    await page.reload();
    await page.getByRole("link", { name: "first", exact: true }).waitFor();
    const asked: string[] = [];
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    // Told of by the stream, and the list waits for its time.
    await home.hf.enqueue("second", 1);
    await page.getByText(/2 ready jobs/).waitFor();
    expect(await page.getByRole("button", { name: "1 new" }).count()).toBe(0);
    expect(asked.filter((path) => path.endsWith("/api/v1/jobs"))).toEqual([]);
    await page.evaluate(`localStorage.setItem("holdfast.refresh", "0.5")`);
    await page.reload();
    await page.getByRole("link", { name: "second", exact: true }).waitFor();
    await page.getByRole("button", { name: /^Live/ }).click();
    await page.getByRole("button", { name: /^Paused/ }).waitFor();
    asked.length = 0;
    await home.hf.enqueue("third", 1);
    await page.getByRole("button", { name: /^Paused/ }).click();
    await page.getByRole("button", { name: "1 new" }).waitFor();
    // What has come was told: nobody had to ask.
    expect(asked).not.toContain("/api/v1/jobs");
  });

  test("how long a job runs goes on before the eyes; a failed one shows its error and its input, and the input can be left out", async () => {
    const home = await site();
    const started = Promise.withResolvers<void>();
    const end = Promise.withResolvers<void>();
    const slow = defineJob({
      name: "slow",
      run: async (_input: { n: number }) => {
        started.resolve();
        await end.promise;
      },
    });
    const broken = defineJob({
      name: "broken",
      run: (_input: { to: string }) => {
        throw new Dead("the far side said no");
      },
    });
    const { id } = await home.hf.enqueue(broken, { to: "ada@example.org" });
    await home.hf.enqueue(slow, { n: 1 });
    const worker = home.hf.work([slow, broken], { queues: ["default"] });
    await started.promise;
    await waitFor(async () => (await home.hf.jobs.get(id))?.state === "dead", {
      what: "the broken one to die",
    });
    const page = await home.open("/jobs");
    const took = page.getByRole("row", { name: /slow/ }).locator(".running-for");
    await took.waitFor();
    const first = await took.innerText();
    await expect.poll(() => took.innerText(), { timeout: 20_000 }).not.toBe(first);
    const failed = page.getByRole("row", { name: /broken/ });
    await failed.getByText("the far side said no").waitFor();
    await failed.getByText("ada@example.org").waitFor();
    await shot(page, "jobs-failed");
    await page.getByRole("button", { name: "Columns" }).click();
    await page.getByLabel(/First characters of each/).uncheck();
    await page.getByLabel("Priority").check();
    await page.getByRole("button", { name: "Done" }).click();
    await page.reload();
    await failed.getByText("the far side said no").waitFor();
    expect(await page.getByText("ada@example.org").count()).toBe(0);
    await page.getByRole("columnheader", { name: "Priority" }).waitFor();
    // Each list has its own columns.
    await home.hf.enqueue("later", 1, { delay: "1h" });
    await page.goto(`${home.url}/scheduled`);
    await page.getByRole("columnheader", { name: "Due" }).waitFor();
    expect(await page.getByRole("columnheader", { name: "Priority" }).count()).toBe(0);
    end.resolve();
    await worker.stop();
  });
});

test("[K2] thousands of rows that were loaded are not thousands in the page; the table says how many there are", async () => {
  const home = await site();
  for (let n = 0; n < 3_000; n += 1_000)
    await home.hf.enqueueMany(Array.from({ length: 1_000 }, (_, i) => ({ job: plain, input: { n: n + i } })));
  const page = await home.open("/jobs");
  await page.getByText("50 jobs shown").waitFor();
  let shown = 50;
  let most = 0;
  while (shown < 2_400) {
    await page.getByRole("button", { name: "Load more" }).click();
    shown += shown < 200 ? 50 : 200;
    await page.getByText(`${shown.toLocaleString("en")} jobs shown`).waitFor();
    most = Math.max(most, await page.locator("tbody tr").count());
  }
  expect(most).toBeLessThan(400);
  await expect.poll(() => page.locator("tbody tr").count()).toBeLessThan(250);
  const table = page.getByRole("table");
  expect(await table.getAttribute("aria-rowcount")).toBe(String(shown + 1));
  // At the end: the last row that was loaded, with its number.
  await page.evaluate("scrollTo(0, document.body.scrollHeight)");
  await page
    .locator(`tr[aria-rowindex="${shown + 1}"]`)
    .getByText(`{"n":${3_000 - shown}}`)
    .waitFor();
  await accessible(page);
  // The middle is where it was, and so is the top.
  await page.evaluate("scrollTo(0, document.body.scrollHeight / 2)");
  await page.locator(`tr[aria-rowindex="${shown / 2}"]`).waitFor();
  // A look at the rows in sight takes none of them for gone.
  const looked = page.waitForResponse((response) => response.url().includes("/api/v1/jobs?ids="));
  await home.hf.enqueue("newest", 1);
  await (await looked).finished();
  await page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))");
  await page.getByRole("button", { name: "1 new" }).waitFor();
  expect(await page.locator("tr.gone").count()).toBe(0);
  await shot(page, "jobs-long");
  await page.evaluate("scrollTo(0, 0)");
  await page.locator('tr[aria-rowindex="2"]').getByText('{"n":2999}').waitFor();
  // The keyboard goes on from row to row, and what it is at stays in the page.
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await expect
    .poll(() => page.evaluate(`document.activeElement.closest("tr")?.getAttribute("aria-rowindex")`))
    .toBe("3");
  await page.evaluate("scrollTo(0, document.body.scrollHeight)");
  await page.locator(`tr[aria-rowindex="${shown + 1}"]`).waitFor();
  await page.keyboard.press("j");
  await expect
    .poll(() => page.evaluate(`document.activeElement.closest("tr")?.getAttribute("aria-rowindex")`))
    .toBe("4");
}, 120_000);

describe("[K2] what is typed", () => {
  test("an age, a date or a word that cannot be read is said, nothing is searched, and nobody acts on all that match", async () => {
    const home = await site();
    await home.hf.enqueueMany([1, 2, 3].map((n) => ({ job: plain, input: { n } })));
    const page = await home.open("/jobs?queue=default");
    const field = page.getByRole("combobox", { name: "Find jobs" });
    await page.getByRole("checkbox", { name: "Select all on this page" }).check();
    await page.getByRole("button", { name: "Select all 3 matching" }).click();
    for (const typed of ["since:30x", "until:tomorrow", "state:dead ended:>2h"]) {
      await field.fill(typed);
      await page.keyboard.press("Enter");
      await page
        .getByRole("alert")
        .getByText(/expected/)
        .waitFor();
      expect(new URL(page.url()).search).toBe("?queue=default");
      expect(await field.inputValue()).toBe(typed);
      expect(await page.getByRole("button", { name: "Delete", exact: true }).isDisabled()).toBe(true);
    }
    await accessible(page);
    await shot(page, "jobs-problem");
    await field.fill("name:plain since:30s");
    expect(await page.getByRole("alert").count()).toBe(0);
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Remove the filter since" }).waitFor();
    expect(new URL(page.url()).searchParams.get("name")).toBe("plain");
    await page.getByText("3 jobs shown of 3").waitFor();
    // By the clock of the settings: in the zone of this browser, or in UTC and said so.
    const at = Number(new URL(page.url()).searchParams.get("since"));
    const utc = new Date(at).toISOString().slice(0, 19).replace("T", " ");
    const chip = page.locator(".chip", {
      has: page.getByRole("button", { name: "Remove the filter since" }),
    });
    expect(await chip.innerText()).not.toContain(utc.slice(11));
    await page.evaluate(`localStorage.setItem("holdfast.clock", "utc")`);
    await page.reload();
    await chip.getByText(`${utc} UTC`).waitFor();
    // What a bulk action names has it, too.
    await page.keyboard.press("*");
    await page.getByText(`All 3 jobs named plain in queue default created at or after ${utc} UTC`).waitFor();
  });

  test("a word that does not exist is not taken for text unless that is wished; in a narrow dark window as well", async () => {
    const home = await site();
    await home.hf.enqueue("odd", { text: "queu:mail" });
    await home.hf.enqueue("plain", 1);
    const page = await home.open("/jobs", { width: 360, dark: true });
    await page.getByRole("combobox", { name: "Find jobs" }).fill("queu:mail");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").getByText("There is no word queu:. Did you mean queue:?").waitFor();
    await accessible(page);
    await fits(page);
    await shot(page, "jobs-word-narrow");
    await page.getByRole("button", { name: "Search for it as text" }).click();
    await page.getByText("1 job shown of 1").waitFor();
    expect(new URL(page.url()).searchParams.get("search")).toBe("queu:mail");
    // An address that somebody wrote by hand is refused by the server, and the page lives.
    const broken = await home.open("/jobs?since=yesterday", { noisy: true });
    await broken
      .getByRole("alert")
      .getByText(/since must be/)
      .first()
      .waitFor();
  });

  test("an id is found by the end that lists show, and a trace by its id, in the search and in the palette", async () => {
    const home = await site();
    const ids = (await home.hf.enqueueMany([1, 2, 3].map((n) => ({ job: plain, input: { n } })))).map(
      ({ id }) => id,
    );
    const end = ids[1]!.slice(-12);
    const page = await home.open("/jobs");
    const field = page.getByRole("combobox", { name: "Find jobs" });
    await field.fill(end);
    await page.keyboard.press("Enter");
    await page.getByText("1 job shown of 1").waitFor();
    expect(new URL(page.url()).searchParams.get("ids")).toBe(ids[1]);
    await field.fill("0123456789ab");
    await page.keyboard.press("Enter");
    await page
      .getByRole("alert")
      .getByText("No job has an id that begins or ends with 0123456789ab.")
      .waitFor();
    // What could be a part of an id is one if an id has it, and text if none has.
    await field.fill(ids[1]!.slice(0, -4));
    await page.keyboard.press("Enter");
    await page.getByText("1 job shown of 1").waitFor();
    expect(new URL(page.url()).searchParams.get("ids")).toBe(ids[1]);
    await field.fill("12345678");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Remove the filter search" }).waitFor();
    // In the address: of one job to it, of several a choice, of none that.
    await page.goto(`${home.url}/jobs/${end}`);
    await page.waitForURL(`${home.url}/jobs/${ids[1]}`);
    await page.goto(`${home.url}/jobs/${ids[1]!.slice(0, 8)}`);
    await page.getByRole("heading", { name: "Several jobs match" }).waitFor();
    await accessible(page);
    await shot(page, "job-matches");
    await page
      .getByRole("row", { name: new RegExp(ids[2]!) })
      .getByRole("link")
      .click();
    await page.waitForURL(`${home.url}/jobs/${ids[2]}`);
    await page.goto(`${home.url}/jobs/0123456789ab`);
    await page.getByText("No such job").waitFor();
    await page.goto(`${home.url}/workers`);
    const palette = async (typed: string): Promise<void> => {
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox").and(page.locator(":focus")).waitFor();
      await page.keyboard.type(typed);
      await page.getByRole("option", { name: /Find jobs with/ }).click();
    };
    await palette(end);
    await page.getByText("1 job shown of 1").waitFor();
    expect(new URL(page.url()).searchParams.get("ids")).toBe(ids[1]);
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox").and(page.locator(":focus")).waitFor();
    await page.keyboard.type(end.slice(-6));
    await page.getByRole("option", { name: `Job ${ids[1]}` }).click();
    await page.waitForURL(`${home.url}/jobs/${ids[1]}`);
    await palette("wat:1");
    await page.getByRole("alert").getByText("There is no word wat:.").waitFor();
    await palette("4bf92f3577b34da6a3ce929d0e0e4736");
    await page.getByRole("button", { name: "Remove the filter trace" }).waitFor();
  });
});

test("[K2] terminating many needs the word typed; to whom an action could not be done is named with the reason", async () => {
  const home = await site();
  const jobs = await home.hf.enqueueMany([1, 2, 3].map((n) => ({ job: plain, input: { n } })));
  const ids = jobs.map(({ id }) => id);
  const page = await home.open("/jobs");
  await page.getByRole("checkbox", { name: "Select all on this page" }).check();
  await page.getByRole("button", { name: "Terminate" }).click();
  const dialog = page.getByRole("dialog");
  const go = dialog.getByRole("button", { name: "Terminate 3" });
  await go.and(page.locator(":enabled")).click();
  // Without the word nothing has begun.
  expect(await home.hf.jobs.count({ state: "ready" })).toBe(3);
  await home.hf.jobs.cancel(ids[0]!);
  await dialog.getByLabel(/to confirm/).fill("terminate");
  await go.click();
  await page.getByText(/2 terminated, 1 ended/).waitFor();
  await page.goto(`${home.url}/operations`);
  await page.getByText("1 refused").click();
  await page.getByRole("link", { name: ids[0]!.slice(-12) }).waitFor();
  await page.getByText("already ended").waitFor();
  await accessible(page);
  await shot(page, "operations-refused");
});
