// Every screen in a real browser: it shows what there is, light and dark, wide and narrow, with nothing serious for axe.
import { beforeAll, describe, expect, test } from "vitest";
import { type Filled, fill } from "./data.ts";
import { fixtures } from "./fixtures.ts";
import { accessible, closeSites, fits, type Site, site, useBrowser } from "./support.ts";

useBrowser();
closeSites();

let home: Site;
let filled: Filled;
const done: string[] = [];
beforeAll(async () => {
  home = await site({ label: "test" }, fixtures(done));
  filled = await fill(home.hf);
  await home.hf.holds.set("session-expired", { queues: ["media"], reason: "log in again" });
  filled.letGo();
}, 60_000);

const screens: readonly [name: string, path: () => string, shows: readonly string[]][] = [
  [
    "overview",
    () => "/",
    ["Ready", "Busiest queues", "Top failures", "Throughput", "card 4242 was declined"],
  ],
  ["jobs", () => "/jobs", ["Newest first", "weekly-digest", "Scheduled", "of "]],
  ["jobs, dead", () => "/jobs?state=dead", ["charge-card", "card 4242 was declined", "1 / 1"]],
  ["scheduled", () => "/scheduled", ["the next one first", "weekly-digest"]],
  ["retries", () => "/retries", ["send-mail", "retrying", "ECONNREFUSED"]],
  [
    "inspector, dead",
    () => `/jobs/${filled.ids.dead}`,
    ["It is dead since", "Attempt 1 failed", "Failures", "Hide stack", "[redacted]", "checkout"],
  ],
  ["inspector, done", () => `/jobs/${filled.ids.done}`, ["Done", "Output", "ann@example.org"]],
  ["inspector, workflow", () => `/jobs/${filled.ids.scheduled}`, ["Graph", "Steps", "cool-off", "part-3"]],
  ["dead by error", () => "/errors", ["Grouped by", "card 4242 was declined", "Retry all"]],
  ["queues", () => "/queues", ["crawl", "billing", "paused", "held by session-expired"]],
  ["queue", () => "/queues/reports", ["build-report", "It is paused.", "Settings"]],
  ["schedules", () => "/schedules", ["0 9 * * 1", "Europe/London", "every 1 min"]],
  ["workers", () => "/workers", ["web-1", "crawl 6"]],
  ["limits", () => "/limits", ["session-expired", "log in again", "queue:billing", "slack", "acme/eu"]],
  ["database", () => "/database", ["SQLite", "Round trip"]],
  ["audit", () => "/audit", ["Nothing was done yet"]],
];

describe.each(screens)("[K3] %s", (_name, path, shows) => {
  test("shows what there is, and pleases axe in light and dark", async () => {
    const page = await home.open(path());
    for (const text of shows) await page.locator("main").getByText(text).first().waitFor();
    await page.waitForTimeout(100);
    await accessible(page);
    await page.emulateMedia({ colorScheme: "dark" });
    await accessible(page, ["color-contrast"]);
    expect(await page.title()).toContain("Holdfast");
  });

  test("fits a window of 380 pixels", async () => {
    const page = await home.open(path(), { width: 380, height: 780 });
    await page.locator("main").getByText(shows[0]!).first().waitFor();
    await fits(page);
  });
});

test("a narrow window's menu opens, leads on, and closes", async () => {
  const page = await home.open("/", { width: 380, height: 780 });
  const link = page.getByRole("link", { name: /^Queues/ });
  expect(await link.isVisible()).toBe(false);
  await page.getByRole("button", { name: "Menu" }).click();
  await accessible(page);
  await link.click();
  await page.getByRole("heading", { name: "Queues", level: 1 }).waitFor();
  await page.waitForTimeout(300);
  expect(await link.isVisible()).toBe(false);
});

test("dark mode is the system's, or chosen and kept", async () => {
  const page = await home.open("/", { dark: true });
  const background = () => page.evaluate<string>("getComputedStyle(document.body).backgroundColor");
  expect(await background()).toBe("rgb(12, 13, 16)");
  await page.getByRole("button", { name: /Theme: system/ }).click();
  await page.getByRole("button", { name: /Theme: dark/ }).click();
  expect(await background()).toBe("rgb(247, 247, 248)");
  await page.reload();
  await page.getByRole("button", { name: /Theme: light/ }).waitFor();
});

test("without features their screens are not there, and nothing is made up", async () => {
  const plain = await site();
  const page = await plain.open("/");
  await page.getByText("Nothing to do, and no worker is running.").waitFor();
  expect(await page.getByRole("link", { name: "Schedules" }).count()).toBe(0);
  expect(await page.getByText("Throughput").count()).toBe(0);
  await page.getByText("No job yet").waitFor();
  await accessible(page);
  for (const [path, text] of [
    ["/jobs", "No job matches"],
    ["/errors", "Nothing is dead"],
    ["/queues", "No queue yet"],
    ["/workers", "No worker is running"],
    ["/limits", "Nothing is held"],
  ] as const) {
    const other = await plain.open(path);
    await other.getByText(text).waitFor();
    expect(await other.getByText("Budgets").count()).toBe(0);
  }
});

test("a job that is not there, and a queue that is not there, say so", async () => {
  const job = await home.open("/jobs/0199c1d8-7c00-7000-8000-000000000000", { noisy: true });
  await job.getByText("No such job").waitFor();
  const queue = await home.open("/queues/nowhere", { noisy: true });
  await queue.getByText("No such queue").waitFor();
});

test("mounted below a base path, links, reloads and files work", async () => {
  const below = await site({ basePath: "/admin/jobs", label: "<b>prod</b>" });
  await below.hf.enqueue("plain", { a: 1 });
  const page = await below.open("/jobs");
  await page.getByText("<b>prod</b>").waitFor();
  await page.getByRole("link", { name: "plain", exact: true }).click();
  await page.getByText("Facts").waitFor();
  expect(page.url()).toContain("/admin/jobs/jobs/");
  await page.reload();
  await page.getByText("Facts").waitFor();
});

test("the token leaves the address at once, and without one there is a form", async () => {
  const page = await home.open("/");
  expect(page.url()).not.toContain("token");
  const context = page.context();
  const bare = await context.newPage();
  await bare.goto(home.url);
  await bare.getByLabel("Token").fill("wrong-token-wrong-token");
  await bare.getByRole("button", { name: "Open" }).click();
  await bare.getByLabel("Token").waitFor();
  await accessible(bare);
  await bare.getByLabel("Token").fill(`${home.url}/#token=browser-test-token-0123456789`);
  await bare.getByRole("button", { name: "Open" }).click();
  await bare.getByRole("heading", { name: "Overview" }).waitFor();
});

test("schedules: next runs, run now, edit, pause, remove", async () => {
  const page = await home.open("/schedules");
  done.length = 0;
  await page.getByRole("button", { name: "Next runs of digest" }).click();
  await page
    .getByRole("dialog")
    .getByText(/in \d+ min/)
    .first()
    .waitFor();
  await accessible(page);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Edit digest" }).click();
  await page.getByLabel("Cron").fill("30 8 * * *");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("The change survives restarts.").waitFor();
  await page.getByRole("button", { name: "Pause digest" }).click();
  await page.getByText("It makes no more jobs.").waitFor();
  await page.getByRole("button", { name: "Remove sweep" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await page.getByText("Removed.").waitFor();
  expect(done).toEqual([
    'change digest {"cron":"30 8 * * *","timezone":"Europe/London","missed":"one","overlap":"skip"}',
    "pause digest",
    "remove sweep",
  ]);
});

test("limits: reset a breaker, change and drain a budget, pause a lane", async () => {
  const page = await home.open("/limits");
  done.length = 0;
  await page.getByRole("button", { name: "Reset queue:billing" }).click();
  await page.getByText("Closed.").waitFor();
  await page.getByRole("button", { name: "Change slack" }).click();
  await page.getByLabel("Limit").fill("80");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("The budget holds").waitFor();
  await page.getByRole("button", { name: "Drain slack" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Drain" }).click();
  await page.getByText("Drained.").waitFor();
  await page.getByRole("button", { name: "Pause acme/eu" }).click();
  await page.getByText("acme/eu is paused.").waitFor();
  expect(done).toEqual([
    "reset queue:billing",
    'budget slack {"limit":80,"per":"60s","burst":50}',
    "drain slack",
    'lane mail acme/eu {"paused":true}',
  ]);
});
