// The list of queues and a queue's own page: limits and how far they are used, why nothing runs, lanes, workers, settings.
import { beforeAll, describe, expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { waitFor } from "../support/wait.ts";
import { accessible, choose, fits, menuOf, offered, shot, site, type Site, useBrowser } from "./support.ts";

const eventually = { timeout: 20_000 };

const sync = defineJob({
  name: "sync",
  queue: "tenants",
  lane: (input: { tenant: string }) => input.tenant,
  lanes: { concurrency: 1 },
  run: (_input, ctx) => new Promise((_resolve, reject) => ctx.signal.addEventListener("abort", reject)),
});
const mail = defineJob({ name: "mail", queue: "mail", run: () => null });

describe("queues", () => {
  useBrowser();
  let home: Site;

  beforeAll(async () => {
    home = await site({ label: "test" });
    const { hf } = home;
    await hf.queues.set("tenants", { concurrency: 3 });
    await hf.queues.set("mail", { rate: { limit: 10, per: "500ms" } });
    const tenants = ["acme", "acme", "acme", "beta", "beta", "gamma"];
    await hf.enqueueMany(tenants.map((tenant) => ({ job: sync, input: { tenant } })));
    await hf.enqueue(mail, null, { delay: "2h" });
    const worker = hf.work([sync], { queues: { tenants: 5 }, name: "web-1" });
    await worker.ready;
    await waitFor(async () => (await hf.jobs.count({ state: "running" })) === 3, { what: "three to run" });
  });

  test("a row shows what runs against the limit over the cluster, and how much of a rate is used", async () => {
    const page = await home.open("/queues", { width: 1500 });
    const row = page.getByRole("row", { name: /tenants/ });
    await row.getByRole("img", { name: "Concurrency: 3 of 3" }).waitFor();
    await page.getByRole("img", { name: "Rate: 0 of 10" }).waitFor();
    // What the number beside the menu's Jobs counts is said.
    const jobs = page.getByRole("navigation", { name: "Screens" }).getByRole("link", { name: /^Jobs/ });
    await jobs.getByTitle("3 running").waitFor();
    expect((await jobs.innerText()).replaceAll(/\s+/g, " ")).toBe("Jobs 3 3 running");
    await accessible(page);
  });

  test("a press on a head sorts by mouse and by key, a link keeps it, and back goes back", async () => {
    const page = await home.open("/queues", { width: 1500 });
    const first = async (): Promise<string> =>
      (await page.locator("tbody a.main-link").first().innerText()).trim();
    const head = page.getByRole("columnheader", { name: "Queue" });
    await page.getByRole("link", { name: "mail", exact: true }).waitFor();
    await head.getByRole("button").press("Enter");
    await head.getByRole("button").press("Enter");
    await expect.poll(first, eventually).toBe("tenants");
    expect(await head.getAttribute("aria-sort")).toBe("descending");
    expect(new URL(page.url()).searchParams.get("sort")).toBe("-queue");
    await accessible(page);
    await shot(page, "queues-sorted");
    const shared = await home.open("/queues?sort=-scheduled", { width: 1500 });
    await shared
      .getByRole("columnheader", { name: "Scheduled" })
      .and(shared.locator("[aria-sort]"))
      .waitFor();
    await expect.poll(() => shared.locator("tbody a.main-link").first().innerText(), eventually).toBe("mail");
    await page.goBack();
    await expect.poll(first, eventually).toBe("mail");
    await page.goBack();
    expect(await head.getAttribute("aria-sort")).toBeNull();
    // A list in pages says how it is ordered, and that it cannot be sorted; of what is scheduled there are two orders.
    await page.goto(`${home.url}/jobs`);
    const created = page.getByRole("columnheader", { name: "Created" });
    await created.and(page.locator("[aria-sort=descending]")).waitFor();
    expect(await created.getByRole("button").count()).toBe(0);
    await page.goto(`${home.url}/scheduled`);
    const due = page.getByRole("columnheader", { name: "Due" });
    await due.and(page.locator("[aria-sort=ascending]")).waitFor();
    await due.getByRole("button").waitFor();
  });

  test("a row's menu has the settings, and retries what is dead", async () => {
    const page = await home.open("/queues");
    await menuOf(page, "mail");
    await accessible(page);

    expect(await offered(page, "mail")).toContain("Retry dead");
    await choose(page, "mail", "Settings");
    // A rate of less than a second is written so that it can be saved again.
    await expect
      .poll(() => page.getByLabel("Rate", { exact: true }).inputValue(), eventually)
      .toBe("10 per 500ms");
    await page.getByLabel("Concurrency over the cluster").fill("7");
    await page.getByLabel("Breaker").fill("5 failures, 1m");
    await page.getByLabel("Duration").fill("2h");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Settings saved").waitFor();
    const [known] = (await home.hf.queues.list()).filter(({ name }) => name === "mail");
    expect(known?.settings).toMatchObject({
      concurrency: 7,
      rate: { limit: 10, perMs: 500 },
      breaker: { after: 5, cooldownMs: 60_000 },
      retention: null,
    });
    // What was not changed goes back to nothing.
    const [temporaryLimit] = await home.hf.temporaryLimits.list();
    expect(Object.keys(temporaryLimit?.back ?? {}).sort()).toEqual(["breaker", "concurrency"]);
  });

  test("a queue's page says how many of its jobs are dead, and leads to them", async () => {
    const { hf } = home;
    const doomed = defineJob({
      name: "doomed",
      queue: "mail",
      retry: { attempts: 1 },
      run: () => {
        throw new Error("refused");
      },
    });
    await hf.enqueueMany([1, 2].map(() => ({ job: doomed, input: null })));
    const worker = hf.work([doomed], { queues: { mail: 2 } });
    await worker.ready;
    await waitFor(async () => (await hf.jobs.count({ state: "dead" })) === 2, { what: "two to be dead" });
    await worker.stop();
    const page = await home.open("/queues/mail");
    const tile = page.getByRole("link", { name: /^Dead/ });
    await expect.poll(() => tile.innerText(), eventually).toMatch(/\b2\b/);
    await shot(page, "queue-dead");
    await accessible(page);
    await tile.click();
    await page.waitForURL(/\/jobs\?state=dead&queue=mail$/);
    await page.getByRole("link", { name: "doomed" }).first().waitFor();
  });

  test("settings say where they come from, and until when they hold", async () => {
    await home.hf.queues.set("mail", { concurrency: 7 }, { for: "2h" });
    const page = await home.open("/queues/mail", { noisy: false });
    const panel = page.getByRole("region", { name: "Settings" });
    await panel
      .getByText(/^until .*, then unlimited$/)
      .first()
      .waitFor();
    await panel.getByText("10 per 500 ms").waitFor();
    await panel.getByText("code", { exact: true }).first().waitFor();
    await panel.getByText("set by hand", { exact: true }).waitFor();
    await panel.getByRole("img", { name: "Rate: 0 of 10" }).waitFor();
    await page.getByText(/^No job is due. The next one is at .* \(in (1|2) h/).waitFor();
    await accessible(page);
  });

  test("a queue's page says why nothing more runs, which lanes are fullest, and what each worker runs of it", async () => {
    const page = await home.open("/queues/tenants");
    const why = page.getByRole("list", { name: "Why no job runs" });
    await why.getByText('Queue "tenants" is full: 3 of 3 jobs are running.').waitFor();
    await why.getByText(/^None of the 2 lanes with most jobs may start a job/).waitFor();
    const lanes = page.getByRole("region", { name: "Fullest lanes" });
    expect(await lanes.getByRole("row").allInnerTexts()).toMatchObject([
      expect.stringContaining("Lane"),
      expect.stringMatching(/^acme\s+2\s/),
      expect.stringMatching(/^beta\s+1\s/),
    ]);
    await page
      .getByRole("region", { name: "Workers of this queue" })
      .getByRole("img", { name: "Slots: 3 of 5" })
      .waitFor();
    await accessible(page);

    await lanes.getByRole("button", { name: "Pause acme" }).click();
    await lanes.getByRole("button", { name: "Resume acme" }).waitFor();
    await lanes.getByRole("link", { name: "All lanes" }).click();
    const all = page.getByRole("region", { name: "Lanes", exact: true });
    await all.getByText("of tenants alone").waitFor();
    await all.getByRole("link", { name: "acme" }).click();
    await expect.poll(() => new URL(page.url()).search, eventually).toBe("?queue=tenants&lane=acme");
  });

  test("a phone shows it all, in the dark too", async () => {
    for (const path of ["/queues", "/queues/tenants", "/queues/mail"]) {
      const page = await home.open(path, { width: 360, height: 780, dark: true });
      await page.getByRole("heading", { level: 1 }).waitFor();
      await fits(page);
      await accessible(page);
    }
  });
});
