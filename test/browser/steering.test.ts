// Steering in a real browser: queues that fold and are purged, limits for a while and who holds them, slots that passed, a workflow
// again from a step, and one live stream for several tabs.
import { beforeAll, expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import {
  accessible,
  busySite,
  choose,
  closeSites,
  fits,
  offers,
  shot,
  site,
  type Site,
  TOKEN,
  useBrowser,
} from "./support.ts";
import { operatorOf } from "../../src/operate/operator.ts";

useBrowser();
closeSites();

let home: Site;
let workflow: Readonly<Record<"waiting" | "done" | "dead", string>>;
beforeAll(async () => {
  const busy = await busySite();
  home = busy.home;
  ({ workflow } = busy.features);
}, 120_000);

test("[K2] queues of a prefix fold; what has not started is purged after the word is typed, and nothing else", async () => {
  const send = (queue: string) => defineJob({ name: "send", queue, run: async (_input: unknown) => {} });
  for (const queue of ["emails.welcome", "emails.digest"])
    await home.hf.enqueueMany(Array.from({ length: 4 }, (_, n) => ({ job: send(queue), input: n })));
  const minute = Math.floor(Date.now() / 60_000) * 60_000;
  const row = {
    name: "send",
    worker: "w",
    cancelled: 0,
    throttled: 0,
    released: 0,
    lost: 0,
    ran: "[0]",
    waited: "[0]",
  };
  await operatorOf(home.hf).store.series.putMetrics([
    { ...row, minute: minute - 60_000, queue: "emails.welcome", done: 30, failed: 4, dead: 0 },
  ]);
  const page = await home.open("/queues");
  const group = page.getByRole("button", { name: /emails\.\* 2 queues/ });
  await group.waitFor();
  const welcome = page.getByRole("link", { name: "emails.welcome" });
  await welcome.waitFor();
  await page
    .getByRole("row", { name: /emails\.welcome/ })
    .getByText("12 % failed")
    .waitFor();
  await accessible(page);
  await group.click();
  await welcome.waitFor({ state: "detached" });
  await page
    .getByRole("row", { name: /emails\.\*/ })
    .getByText("8", { exact: true })
    .waitFor();
  await page.reload();
  await group.waitFor();
  expect(await welcome.count()).toBe(0);
  await group.click();
  await choose(page, "emails.welcome", "Purge");
  await page.getByRole("heading", { name: "Purge 4 jobs?" }).waitFor();
  await page.getByRole("button", { name: "Purge 4" }).click();
  expect(await home.hf.jobs.count({ queue: "emails.welcome" })).toBe(4);
  await page.getByLabel(/to confirm/).fill("purge");
  await page.getByRole("button", { name: "Purge 4" }).click();
  await page.getByText("Purge: 4 deleted.").waitFor();
  expect(await home.hf.jobs.count({ queue: "emails.welcome" })).toBe(0);
  expect(await home.hf.jobs.count({ queue: "emails.digest" })).toBe(4);
  const narrow = await home.open("/queues", { width: 390, height: 844 });
  await offers(narrow, "emails.digest", "Purge");
  await fits(narrow);
});

test("[K2] a queue is drained after a question: it says so, can go on again, and stands still when it is empty", async () => {
  const { id } = await home.hf.enqueue("brew", null, { queue: "kitchen" });
  const page = await home.open("/queues");
  const row = page.getByRole("row", { name: /kitchen/ });
  await choose(row, "kitchen", "Drain");
  await page.getByRole("heading", { name: "Drain kitchen?" }).waitFor();
  await page.getByText(/then pauses the queue/).waitFor();
  await shot(page, "drain-dialog");
  await page.getByRole("button", { name: "Drain", exact: true }).click();
  await page.getByText("kitchen is draining").waitFor();
  await row.getByText("draining", { exact: true }).waitFor();
  await shot(page, "drain-queues");
  await accessible(page);
  await page.emulateMedia({ colorScheme: "dark" });
  await accessible(page, ["color-contrast"]);
  await shot(page, "drain-queues-dark");
  await choose(row, "kitchen", "Resume");
  await page.getByText("kitchen resumed").waitFor();

  await page.getByRole("link", { name: "kitchen", exact: true }).click();
  await page.getByRole("button", { name: "Drain kitchen" }).click();
  await page.getByRole("button", { name: "Drain", exact: true }).click();
  await page.getByText("Draining", { exact: true }).waitFor();
  await shot(page, "drain-queue");
  await home.hf.jobs.delete(id);
  await home.hf.queues.drain("kitchen");
  await page.getByText("Paused", { exact: true }).waitFor();
  expect(await page.getByRole("button", { name: /^(?:Drain|Pause) kitchen/ }).count()).toBe(0);
  await page.getByRole("button", { name: "Resume kitchen" }).waitFor();
});

test("[K2] a lane's limit for a while is listed until it is ended; its holders are a click away; slots that passed get their jobs", async () => {
  const [lease] = await home.hf.lease({ queues: ["tenants"], limit: 1, for: "10m" });
  const page = await home.open("/limits");
  const lanes = page.getByRole("region", { name: "Lanes", exact: true });
  await choose(lanes, "acme/eu", "Change");
  await page.getByRole("textbox", { name: "Concurrency" }).fill("1");
  await page.getByLabel("Duration").fill("2h");
  await page.getByRole("button", { name: "Save" }).click();
  const forNow = page.getByRole("region", { name: "Temporary limits" });
  await forNow
    .getByRole("row", { name: /acme\/eu/ })
    .getByText("concurrency 2")
    .waitFor();
  expect((await home.hf.lanes.list({ key: "acme/eu" })).lanes[0]?.concurrency).toBe(1);
  await accessible(page);
  const job = (await home.hf.jobs.get(lease!.id))!;
  await choose(lanes, job.lane!, "Holders");
  await page
    .getByRole("dialog")
    .getByRole("link", { name: job.id.slice(-12) })
    .waitFor();
  await page.getByRole("button", { name: "Close" }).click();
  await forNow.getByRole("button", { name: "End now acme/eu" }).click();
  await forNow.waitFor({ state: "detached" });
  expect((await home.hf.lanes.list({ key: "acme/eu" })).lanes[0]?.concurrency).toBe(2);
  await lease!.release();

  const minutely = {
    name: "minutely",
    cron: "* * * * *",
    job: "weekly-digest",
    input: { week: 1 },
    queue: "mail",
  };
  await home.hf.schedules.put(minutely);
  await home.hf.schedules.pause("minutely");
  await page.goto(`${home.url}/schedules`);
  await choose(page, "minutely", "Backfill");
  const ago = (minutes: number): string =>
    // The browser's time is Berlin's.
    new Date(Date.now() - minutes * 60_000)
      .toLocaleString("sv-SE", { timeZone: "Europe/Berlin" })
      .slice(0, 16)
      .replace(" ", "T");
  await page.getByLabel("From").fill(ago(5));
  await page.getByLabel(/^To/).fill(ago(2));
  await page.getByRole("button", { name: "Show occurrences" }).click();
  await page.getByRole("heading", { name: "3 occurrences" }).waitFor();
  await accessible(page);
  const before = await home.hf.jobs.count({ name: "weekly-digest" });
  await page.getByRole("button", { name: "Create 3 jobs" }).click();
  await page.getByText("3 jobs created").waitFor();
  expect(await home.hf.jobs.count({ name: "weekly-digest" })).toBe(before + 3);
});

test("[K2] a workflow is run again from a step, and a sleep is skipped", async () => {
  const page = await home.open(`/jobs/${workflow.done}`);
  await page.getByText(/^Table of steps:/).click();
  await page.getByRole("button", { name: "Rerun from here tell" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Rerun from here" }).click();
  await page.getByText("Run created").waitFor();
  const id = new URL(page.url()).pathname.split("/").at(-1)!;
  expect(id).not.toBe(workflow.done);
  await page.getByText(`fork of ${workflow.done}, from tell`).first().waitFor();
  await expect
    .poll(async () => (await home.hf.jobs.history(id))?.steps.map(({ name }) => name), { timeout: 20_000 })
    .toContain("tell");

  const nap = defineJob({
    name: "nap",
    queue: "naps",
    run: async (_input: unknown, ctx) => {
      await ctx.sleep("a-month", "30d");
      return "awake";
    },
  });
  const worker = home.hf.work([nap], { queues: { naps: 1 } });
  const { id: sleeper } = await home.hf.enqueue(nap, null);
  await expect.poll(async () => (await home.hf.jobs.why(sleeper)).reason, { timeout: 20_000 }).toBe("asleep");
  await page.goto(`${home.url}/jobs/${sleeper}`);
  await page.getByText(/^Table of steps:/).click();
  await page.getByRole("button", { name: "Skip a-month" }).click();
  await page.getByText("Sleep ended").waitFor();
  expect(await home.hf.result(sleeper, { timeout: "20s" })).toBe("awake");
  await worker.stop();
});

test("[J6] tabs share one stream, and another reads on when the reader closes; where no byte comes, the page asks instead", async () => {
  const some = await site();
  const plain = defineJob({ name: "plain", run: async (_input: unknown) => {} });
  const first = await some.open("/");
  const streams: string[] = [];
  const context = first.context();
  await first.getByText("Live", { exact: true }).first().waitFor();
  const second = await context.newPage();
  second.on("request", (request) => {
    if (request.url().includes("/stream?")) streams.push(decodeURIComponent(request.url()));
  });
  // The reader asks for what the other tab looks at, and tells it.
  const forBoth = first.waitForRequest((request) => request.url().includes("queue%3Adefault"));
  await some.hf.enqueue(plain, 0, { delay: "1h" });
  await second.goto(`${some.url}/queues/default#token=${TOKEN}`);
  await second.getByText("Live", { exact: true }).first().waitFor();
  await forBoth;
  await some.hf.queues.pause("default");
  await second.getByRole("button", { name: "Resume" }).first().waitFor();
  // It never opened one of its own.
  expect(streams).toEqual([]);
  await first.close();
  await expect.poll(() => streams.length, { timeout: 20_000 }).toBeGreaterThan(0);
  expect(streams.at(-1)).toContain("queue:default");
  await some.hf.queues.resume("default");
  await second.getByRole("button", { name: "Pause" }).first().waitFor();

  const held = await some.open("/", { noisy: true });
  await held.context().route("**/api/v1/stream?*", () => {}); // something on the way keeps it all back
  const polled: number[] = [];
  held.on("response", (response) => {
    if (response.url().endsWith("/overview")) polled.push(response.status());
  });
  await held.reload();
  await expect.poll(() => polled, { timeout: 30_000 }).toContain(304);
  await held.getByText("Live", { exact: true }).first().waitFor();
  await some.hf.enqueue(plain, 1);
  await held
    .getByRole("link", { name: /^Ready/ })
    .getByText("1", { exact: true })
    .waitFor();
});
