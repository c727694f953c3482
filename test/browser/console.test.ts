// Working with many jobs in a real browser: actions at a rate, words in the search, windows of time, failures from other sides.
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { Dead, defineJob, type Holdfast, immediately } from "../../src/index.ts";
import { Operations } from "../../src/operate/operations.ts";
import { Histogram } from "../../src/values/histogram.ts";
import { accessible, choose, closeSites, fits, shot, type Site, site, useBrowser } from "./support.ts";
import { operatorOf } from "../../src/operate/operator.ts";

useBrowser();
closeSites();

const charge = defineJob({
  name: "charge-card",
  queue: "billing",
  retry: { attempts: 1 },
  run: ({ n }: { n: number; user: { id: number; plan: string } }) => {
    if (n >= 0) throw new Dead(`the bank refused charge ${n}`);
  },
});
const report = defineJob({
  name: "report",
  queue: "reports",
  retry: { attempts: 3, backoff: immediately() },
  run: (_input: { n: number }, ctx) => {
    if (ctx.attempt === 3) throw new RangeError("the disk is full");
    throw new Error("no rows for last month");
  },
});
const mail = defineJob({ name: "send-mail", queue: "mail", run: async (_input: { to: string }) => {} });

async function fill(hf: Holdfast): Promise<void> {
  await hf.enqueueMany(
    Array.from({ length: 21 }, (_, n) => ({
      job: charge,
      input: { n, user: { id: n % 7, plan: n % 2 === 0 ? "free" : "pro" } },
    })),
  );
  const worker = hf.work([charge, mail], { queues: ["billing", "mail"], name: "web-1" });
  await worker.ready;
  await hf.enqueueMany(Array.from({ length: 12 }, (_, n) => ({ job: mail, input: { to: `user-${n}` } })));
  await worker.idle();
  await worker.stop();
}

const dialog = (page: Page) => page.getByRole("dialog");
const row = (page: Page, name: RegExp) => page.getByRole("row", { name });

const MINUTE = 60_000;

/** An hour of the queue billing: 20 a minute, and ten minutes ago eight that died. */
async function fillMinutes(hf: Holdfast): Promise<number> {
  const now = Math.floor(Date.now() / MINUTE) * MINUTE;
  const took = new Histogram();
  for (let ms = 5; ms < 900; ms *= 2) took.add(ms);
  const text = took.encode();
  const spike = now - 10 * MINUTE;
  await operatorOf(hf).store.series.putMetrics(
    Array.from({ length: 58 }, (_, n) => ({
      minute: now - (n + 2) * MINUTE,
      queue: "billing",
      name: "charge-card",
      worker: "web-1",
      done: 20 + ((n * 7) % 9),
      failed: n === 8 ? 12 : 0,
      dead: n === 8 ? 8 : 0,
      cancelled: 0,
      throttled: 0,
      released: 0,
      lost: 0,
      ran: text,
      waited: text,
    })),
  );
  return spike;
}

let home: Site;
let spike = 0;
beforeAll(async () => {
  home = await site();
  await fill(home.hf);
  spike = await fillMinutes(home.hf);
}, 60_000);

describe("[K3] operations", () => {
  test("a cause's dead jobs are retried at a rate: watched, paused, left, gone on with from the list, and stopped", async () => {
    const own = await site();
    await fill(own.hf);
    const page = await own.open("/errors");
    await choose(row(page, /the bank refused/), /^Actions for/, "Retry all");
    await dialog(page).getByRole("heading", { name: "Retry 21 jobs?" }).waitFor();
    const rate = dialog(page).getByLabel("Maximum jobs per second");
    await rate.fill("many");
    await dialog(page).getByRole("button", { name: "Retry 21" }).click();
    await dialog(page).getByText("Enter a whole number of jobs per second").waitFor();
    await rate.fill("1");
    await accessible(page);
    await shot(page, "operation-dialog");
    await dialog(page).getByRole("button", { name: "Retry 21" }).click();
    await dialog(page)
      .getByText(/^\d+ of 21 · 1 per s/)
      .waitFor();
    await shot(page, "operation-running");
    await dialog(page).getByRole("button", { name: "Pause" }).click();
    await dialog(page).getByRole("button", { name: "Continue" }).waitFor();
    await accessible(page);
    await dialog(page).getByRole("button", { name: "Close" }).click();
    await page.keyboard.press("g");
    await page.keyboard.press("p");
    await page.getByRole("heading", { name: "Operations" }).waitFor();
    await row(page, /Retry dead jobs named charge-card/)
      .getByText("paused", { exact: true })
      .last()
      .waitFor();
    const before = (await own.hf.jobs.count({ state: "ready" })) + 1;
    await choose(row(page, /Retry dead jobs named charge-card/), "Retry", "Continue");
    await expect
      .poll(() => own.hf.jobs.count({ state: "ready" }), { timeout: 20_000 })
      .toBeGreaterThanOrEqual(before);
    await choose(row(page, /Retry dead/), "Retry", "Stop");
    await row(page, /Retry dead/)
      .getByText("stopped", { exact: true })
      .last()
      .waitFor();
    // One that a terminal began and left: nobody drives it.
    const left = new Operations(own.hf);
    const task = {
      action: "delete",
      filter: { names: ["send-mail"], states: ["done"] },
      change: null,
    } as const;
    const { id } = await left.start({ ...task, rate: { limit: 1, perMs: 1_000 } }, "cli: ann");
    left.close();
    await row(page, /Delete done jobs named send-mail/)
      .getByText("cli: ann")
      .waitFor();
    await accessible(page);
    await shot(page, "operations");
    await page.emulateMedia({ colorScheme: "dark" });
    await accessible(page, ["color-contrast"]);
    await shot(page, "operations-dark");
    expect(await own.hf.jobs.count({ state: "dead" })).toBeGreaterThan(0);
    expect((await left.stop(id, "ann"))?.state).toBe("stopped");
    const narrow = await own.open("/operations", { width: 360, height: 760 });
    await row(narrow, /Retry dead/).waitFor();
    await fits(narrow);
    await shot(narrow, "operations-narrow");
  });
});

describe("[K3] words in the search", () => {
  test("names and values are completed by the keyboard, the address keeps them, and each can be taken away", async () => {
    const page = await home.open("/jobs");
    await page.getByText("33 jobs shown").waitFor();
    const field = page.getByRole("combobox", { name: "Find jobs" });
    const words = page.getByRole("listbox", { name: "Suggestions" });
    await page.keyboard.press("/");
    await page.keyboard.press("ArrowDown");
    await words.getByRole("option", { name: /^attempt:/ }).waitFor();
    await accessible(page);
    await shot(page, "words");
    await page.keyboard.type("pay");
    await words.getByRole("option", { name: /^attempt:/ }).waitFor({ state: "detached" });
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await words.getByRole("option", { name: /payload\.user\.id:/ }).waitFor();
    await page.keyboard.type("us");
    await words.getByRole("option", { name: /payload\.user\.id:/ }).waitFor();
    await shot(page, "words-payload");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Tab");
    expect(await field.inputValue()).toBe("payload.user.id:");
    await page.keyboard.type("3 na");
    await words.getByRole("option", { name: /^name:/ }).waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await words.getByRole("option", { name: /^charge-card/ }).waitFor();
    await page.keyboard.type("ch");
    await words.getByRole("option", { name: /^charge-card/ }).waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.keyboard.type("attempt:>=1 age:<1h worker:web-1 error:refused");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Enter");
    await page.getByText("3 jobs shown of 3").waitFor();
    // Asked of the page: the driver may hear of its new address much later.
    const asked = async (): Promise<Record<string, string>> =>
      Object.fromEntries(new URLSearchParams(await page.evaluate<string>("location.search")));
    await expect.poll(asked).toEqual({
      payload: "user.id:3",
      name: "charge-card",
      attempt: ">=1",
      age: "<1h",
      worker: "web-1",
      error: "refused",
    });
    await accessible(page);
    await shot(page, "words-chips");
    await page.reload();
    await page.getByText("3 jobs shown of 3").waitFor();
    await page.emulateMedia({ colorScheme: "dark" });
    await field.focus();
    await page.keyboard.type("state:");
    await words.getByRole("option", { name: "dead" }).waitFor();
    await accessible(page, ["color-contrast"]);
    await shot(page, "words-dark");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Remove the filter payload.user.id" }).click();
    await page.getByText("21 jobs shown of 21").waitFor();
    const narrow = await home.open("/jobs?attempt=%3E9&payload=user.id:3", { width: 360, height: 760 });
    await narrow.getByText("No matching jobs").waitFor();
    await narrow.getByRole("combobox", { name: "Find jobs" }).fill("a");
    await narrow.getByRole("option", { name: /^attempt:/ }).waitFor();
    await fits(narrow);
    await shot(narrow, "words-narrow");
  });
});

describe("[K3] windows of time", () => {
  test("a stretch that is dragged over is shown alone, a point leads to the jobs that ended then, also by the keyboard", async () => {
    const page = await home.open("/");
    const chart = page.getByRole("slider", { name: /^Throughput/ });
    await page.locator(".plot.leads .u-over").first().waitFor();
    await accessible(page);
    await shot(page, "spans");
    const asked = (): Record<string, string> => Object.fromEntries(new URL(page.url()).searchParams);
    const box = (await page.locator(".plot.leads .u-over").first().boundingBox())!;
    const drag = async (from: number, to: number): Promise<void> => {
      await page.mouse.move(box.x + box.width * from, box.y + 60);
      await page.mouse.down();
      await page.mouse.move(box.x + box.width * to, box.y + 60, { steps: 6 });
      await page.mouse.up();
    };
    await drag(0.5, 0.95);
    await page.getByRole("button", { name: "Reset to the last hour" }).waitFor();
    const { from, to } = asked();
    expect(Number(from)).toBeLessThan(spike);
    expect(Number(to)).toBeGreaterThan(spike);
    expect((Number(to) - Number(from)) / MINUTE).toBeGreaterThan(20);
    expect((Number(to) - Number(from)) / MINUTE).toBeLessThan(35);
    await page.reload();
    await page.getByRole("link", { name: "Jobs that died in this time" }).waitFor();
    await page.waitForTimeout(400);
    await accessible(page);
    await shot(page, "spans-brushed");
    await page.emulateMedia({ colorScheme: "dark" });
    await accessible(page, ["color-contrast"]);
    await shot(page, "spans-dark");
    await page.getByRole("link", { name: "Jobs that died in this time" }).click();
    expect(asked()).toEqual({ state: "dead", ended: `${from}..${Number(to) - 1}` });
    await page.getByRole("heading", { name: "Jobs", level: 1 }).waitFor();
    await page.getByText(/^\d{4}-\d\d-\d\d \d\d:\d\d to/).waitFor();

    // The same without a mouse, on a queue's page: to the minute of the spike, and Enter.
    await page.goto(`${home.url}/queues/billing`);
    await page.locator(".plot.leads .u-over").first().waitFor();
    await chart.focus();
    for (let n = 0; n < 70; n += 1) {
      await page.keyboard.press("ArrowLeft");
      if ((await chart.getAttribute("aria-valuetext"))?.includes("Dead 8") === true) break;
    }
    await shot(page, "spans-keyboard");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Jobs", level: 1 }).waitFor();
    expect(asked()).toEqual({ queue: "billing", state: "dead", ended: `${spike}..${spike + MINUTE - 1}` });
    await page.goBack();
    await page.locator(".plot.leads .u-over").first().waitFor();
    await chart.focus();
    await page.keyboard.press("End");
    await page.keyboard.press("Shift+PageDown");
    expect(await chart.getAttribute("aria-valuetext")).toMatch(/^From \d\d:\d\d to \d\d:\d\d$/);
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Reset to the last hour" }).click();
    expect(asked()).toEqual({});
    await page.getByRole("link", { name: "24 h", exact: true }).click();
    await page
      .getByText("jobs per 24 min, last 24 h")
      .or(page.getByText(/jobs per \d+ min.*, last 24 h/))
      .first()
      .waitFor();
    // A click on what is done: the jobs that were.
    await page.getByRole("link", { name: "1 h", exact: true }).click();
    await page.waitForTimeout(400);
    const plot = (await page.locator(".plot.leads .u-over").first().boundingBox())!;
    await page.mouse.click(plot.x + plot.width * 0.3, plot.y + 20);
    await page.getByRole("heading", { name: "Jobs", level: 1 }).waitFor();
    expect(asked()).toMatchObject({ queue: "billing", state: "done" });
    const narrow = await home.open("/", { width: 360, height: 760 });
    await narrow.locator(".plot.leads .u-over").first().waitFor();
    await fits(narrow);
    await shot(narrow, "spans-narrow");
  });

  test("what waited in which queue, and slots used and available: lines, a sentence and a table", async () => {
    const store = operatorOf(home.hf).store;
    const last = Math.floor(Date.now() / MINUTE) * MINUTE - MINUTE;
    const backlog = { imports: 900, mail: 400, media: 250, billing: 120, reports: 60, orders: 20 };
    await store.series.putGauges(
      Array.from({ length: 50 }, (_, n) => {
        const swing = 1 + Math.sin(n / 7) / 2;
        const rows = Object.entries(backlog).map(([name, most]) => ({
          minute: last - n * MINUTE,
          source: `queue:${name}`,
          name: "ready",
          value: n === 0 ? most : Math.round((most * swing * (50 - n)) / 50),
        }));
        const minute = last - n * MINUTE;
        const all = rows.reduce((sum, { value }) => sum + value, 0);
        const worker = (source: string, slots: number) => [
          { minute, source, name: "running", value: n === 0 ? 7 : Math.round((slots * swing) / 2) },
          { minute, source, name: "slots", value: slots },
        ];
        const workers = [...worker("w1", 20), ...(n < 20 ? worker("w2", 12) : [])];
        return [...rows, ...workers, { minute, source: "queues", name: "ready", value: all }];
      }).flat(),
    );
    const page = await home.open("/");
    const chart = page.getByRole("slider", { name: /^Backlog by queue/ });
    await chart.waitFor();
    expect(await chart.getAttribute("aria-valuetext")).toMatch(
      /imports 900, mail 400, media 250, billing 120, Other 80$/,
    );
    const slots = page.getByRole("region", { name: "Slots" });
    await slots.getByText("View as table").click();
    await slots.getByRole("columnheader").first().waitFor();
    expect(await slots.getByRole("columnheader").allTextContents()).toEqual(["Time", "Used", "Available"]);
    await slots
      .getByRole("row", { name: /^\d\d:\d\d 14 32$/ })
      .first()
      .waitFor();
    await slots.getByText("View as table").click();
    await page.getByRole("region", { name: "Backlog by queue" }).scrollIntoViewIfNeeded();
    await accessible(page);
    await shot(page, "load");
    await page.emulateMedia({ colorScheme: "dark" });
    await accessible(page, ["color-contrast"]);
    await shot(page, "load-dark");
    await chart.focus();
    await page.keyboard.press("End");
    await page.keyboard.press("Shift+PageDown");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Reset to the last hour" }).waitFor();
    const narrow = await home.open("/", { width: 360, height: 760 });
    await narrow.getByRole("slider", { name: /^Backlog by queue/ }).waitFor();
    await fits(narrow);
  });

  test("each chart is also a table", async () => {
    const page = await home.open("/queues/billing");
    const panel = page.getByRole("region", { name: "Throughput" });
    await panel.getByText("View as table").click();
    const table = panel.getByRole("table");
    await table.waitFor();
    expect(await table.getByRole("columnheader").allTextContents()).toEqual([
      "Time",
      "Done",
      "Retried",
      "Dead",
    ]);
    await table.getByRole("row", { name: /^\d\d:\d\d .*8$/ }).waitFor();
    await accessible(page);
    await shot(page, "chart-table");
    await page.emulateMedia({ colorScheme: "dark" });
    await accessible(page, ["color-contrast"]);
  });

  test("a stretch of the strip above the jobs is a filter, dragged over or by the keyboard", async () => {
    const page = await home.open("/jobs?queue=billing");
    const asked = (): string | null => new URL(page.url()).searchParams.get("ended");
    const strip = page.getByRole("slider", { name: /^Attempts ended/ });
    await strip.waitFor();
    const box = (await strip.boundingBox())!;
    await page.mouse.move(box.x + box.width * 0.5, box.y + 10);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.95, box.y + 10, { steps: 6 });
    await page.mouse.up();
    await expect.poll(asked).not.toBeNull();
    const [from, to] = asked()!.split("..").map(Number);
    expect(from).toBeLessThan(spike);
    expect(to).toBeGreaterThan(spike);
    await page.locator(".bars .chosen").waitFor();
    await accessible(page);
    await shot(page, "strip-brushed");
    // In a terminal it is the same window, to the millisecond.
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.getByRole("button", { name: "Copy as command" }).click();
    await page.getByText("Copied").first().waitFor();
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(
      `holdfast jobs list --queue billing --where ended:${new Date(from!).toISOString()}..${new Date(to!).toISOString()}`,
    );
    await strip.focus();
    await page.keyboard.press("End");
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("Enter");
    await expect.poll(asked).not.toBe(`${from}..${to}`);
    const [first, last] = asked()!.split("..").map(Number);
    expect(last! - first!).toBe(MINUTE - 1);
    // A longer time of the filter's own is shown whole, in fewer bars; also where there is nothing else to choose.
    const since = spike - 20 * 60 * MINUTE;
    await page.goto(`${home.url}/jobs?queue=billing&name=charge-card&since=${since}`);
    await page.getByText(/^Attempts ended in the last 2\d h, including jobs created earlier/).waitFor();
    const bars = page.getByRole("slider", { name: /^Attempts ended, \d+ min/ });
    await bars.focus();
    await page.keyboard.press("End");
    await page.keyboard.press("Enter");
    await expect.poll(asked).not.toBeNull();
    const [begin, end] = asked()!.split("..").map(Number);
    expect(end! - begin!).toBeGreaterThan(10 * MINUTE);
    await accessible(page);
    await shot(page, "strip-long");
  });
});

describe("[K3] failures from other sides", () => {
  test("by kind, queue, worker, version and hour, each leading to the dead jobs; light, dark and narrow", async () => {
    const page = await home.open("/errors");
    const sides = page.getByRole("navigation", { name: "Group by" });
    const lines: readonly [string, RegExp, Record<string, string>][] = [
      ["Name", /^charge-card 21/, { state: "dead", name: "charge-card" }],
      ["Queue", /^billing 21/, { state: "dead", queue: "billing" }],
      ["Worker", /^\S+ 21/, {}],
      ["Version", /^charge-card, version 1 21/, { state: "dead", name: "charge-card" }],
      ["Hour", /^\d{4}-\d\d-\d\d \d\d:00 21/, {}],
    ];
    for (const [side, line, query] of lines) {
      await sides.getByRole("link", { name: side }).click();
      await row(page, line).waitFor();
      if (side === "Queue") await accessible(page);
      await row(page, line).getByRole("link").click();
      await page.getByText("21 jobs shown of 21").waitFor();
      expect(Object.fromEntries(new URL(page.url()).searchParams)).toMatchObject(query);
      await page.goBack();
    }
    await shot(page, "failures-by");
    await page.emulateMedia({ colorScheme: "dark" });
    await accessible(page, ["color-contrast"]);
    await sides.getByRole("link", { name: "Queue" }).click();
    await row(page, /^billing 21/).waitFor();
    await shot(page, "failures-by-dark");
    const narrow = await home.open("/errors?by=version&last=7d", { width: 360, height: 760 });
    await row(narrow, /version 1/).waitFor();
    await fits(narrow);
    await shot(narrow, "failures-by-narrow");
  });

  test("a cause's dead jobs get another input after a look at it, and come back", async () => {
    const own = await site();
    await fill(own.hf);
    const page = await own.open("/errors", { noisy: true });
    await page.getByRole("link", { name: /the bank refused/ }).click();
    await page.getByRole("button", { name: "Change and retry" }).click();
    await dialog(page).getByLabel("Patch (JSON)").fill("{ n: -1 }");
    await dialog(page).getByRole("button", { name: "Preview" }).click();
    await dialog(page).getByText("The patch is not valid JSON.").waitFor();
    await dialog(page)
      .getByLabel("Patch (JSON)")
      .fill(
        '[{ "op": "test", "path": "/user/plan", "value": "pro" }, { "op": "replace", "path": "/n", "value": -1 }]',
      );
    await accessible(page);
    await shot(page, "patch");
    await dialog(page).getByRole("button", { name: "Preview" }).click();
    await dialog(page)
      .getByText(/does not apply to 3 of these 5/)
      .waitFor();
    await accessible(page);
    await shot(page, "patch-dry");
    await page.emulateMedia({ colorScheme: "dark" });
    await accessible(page, ["color-contrast"]);
    await shot(page, "patch-dark");
    await dialog(page).getByRole("button", { name: "Retry 21" }).click();
    await page.getByText(/Retry: 10 retried, 11 patch failed|Retry: 11 patch failed, 10 retried/).waitFor();
    expect(await own.hf.jobs.count({ state: "ready" })).toBe(10);
    const { jobs } = await own.hf.jobs.list({ state: "ready" });
    expect(jobs.every(({ input }) => (input as { n: number }).n === -1)).toBe(true);
    await page.goto(`${own.url}/operations`);
    await row(page, /Retry dead jobs named charge-card/)
      .getByText("11 refused")
      .waitFor();
    await shot(page, "patch-operation");
  });
});

describe("[K3] one job's errors, and rows that stand closer", () => {
  test("an attempt's error is compared with the one before where they differ; compact rows are kept", async () => {
    const own = await site();
    await fill(own.hf);
    const { id } = await own.hf.enqueue(report, { n: 1 });
    const worker = own.hf.work([report], { queues: ["reports"] });
    await worker.ready;
    await worker.idle();
    await worker.stop();
    const page = await own.open(`/jobs/${id}`);
    await page.getByRole("button", { name: "Compare with attempt 2" }).click();
    // The newest failure is open, the others are folded.
    await page.getByText("2 earlier failures").click();
    expect(await page.getByRole("button", { name: "Compare with attempt 1" }).count()).toBe(0);
    const differences = page.getByRole("region", { name: "Error of attempt 2 and of attempt 3" });
    await differences.getByText("before: Error: no rows for last month").waitFor();
    await differences.getByText("after: RangeError: the disk is full").waitFor();
    await accessible(page);
    await shot(page, "compare");
    await page.emulateMedia({ colorScheme: "dark" });
    await accessible(page, ["color-contrast"]);
    await shot(page, "compare-dark");
    await page.emulateMedia({ colorScheme: "light" });
    await page.goto(`${own.url}/jobs`);
    await page.getByText("34 jobs shown").waitFor();
    const height = (): Promise<number> =>
      page.evaluate<number>("document.querySelector('tbody tr').getBoundingClientRect().height");
    const before = await height();
    await page.keyboard.press("?");
    await dialog(page).getByRole("combobox", { name: "Rows" }).selectOption("Compact");
    await page.keyboard.press("Escape");
    expect(await height()).toBeLessThan(before - 6);
    await page.reload();
    await page.getByText("34 jobs shown").waitFor();
    expect(await height()).toBeLessThan(before - 6);
    await accessible(page, ["color-contrast", "target-size"]);
    await shot(page, "compact");
  });
});
