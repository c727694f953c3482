// Every screen in a real browser: it shows what there is, light and dark, wide and narrow, with nothing serious for axe.
import { beforeAll, describe, expect, test } from "vitest";
import type { Features, Filled } from "./data.ts";
import {
  accessible,
  busySite,
  choose,
  closeSites,
  fits,
  shot,
  site,
  type Site,
  useBrowser,
} from "./support.ts";

useBrowser();
closeSites();

let home: Site;
let filled: Filled;
let features: Features;
beforeAll(async () => {
  ({ home, filled, features } = await busySite());
}, 60_000);

const screens: readonly [name: string, path: () => string, shows: readonly string[]][] = [
  [
    "overview",
    () => "/",
    [
      "Ready",
      "Queues that need attention",
      "Top failures",
      "Throughput",
      "card 4242 was declined",
      "Slowest jobs",
      "Recent operator actions",
      "Died in 24 h",
      // One run waits for a signal.
      "and 1 waiting",
    ],
  ],
  ["jobs", () => "/jobs", ["Newest first", "fulfil-order", "Scheduled", "of "]],
  ["jobs, dead", () => "/jobs?state=dead", ["charge-card", "card 4242 was declined", "1 / 1"]],
  ["scheduled", () => "/scheduled", ["next first", "weekly-digest"]],
  ["retries", () => "/retries", ["send-mail", "retrying", "ECONNREFUSED"]],
  [
    "inspector, dead",
    () => `/jobs/${filled.ids.dead}`,
    ["Died at", "Attempt 1 failed", "Failures", "Hide stack", "[redacted]", "checkout"],
  ],
  ["inspector, done", () => `/jobs/${filled.ids.done}`, ["Done", "Output", "ann@example.org"]],
  [
    "inspector, workflow",
    () => `/jobs/${features.workflow.done}`,
    ["Graph", "Steps", "cool-off", "Signals", "taken", "Related jobs", "import-part", "enqueued by this job"],
  ],
  [
    "inspector, workflow that waits",
    () => `/jobs/${features.workflow.waiting}`,
    ["The run waits for the signal", "key o-1, step", "waiting"],
  ],
  [
    "inspector, workflow that failed",
    () => `/jobs/${features.workflow.dead}`,
    ["503 from the bank", "reserve"],
  ],
  ["dead by error", () => "/errors", ["Grouped by", "card 4242 was declined"]],
  ["queues", () => "/queues", ["crawl", "billing", "paused", "held by session-expired"]],
  ["queue", () => "/queues/reports", ["build-report", "has been paused since", "Settings"]],
  ["schedules", () => "/schedules", ["0 9 * * 1", "Mondays at 09:00, Europe/London", "Every minute"]],
  ["schedule", () => "/schedules/digest", ["History", "First occurrence", "time zone Europe/London"]],
  ["workers", () => "/workers", ["web-1", "crawl 6"]],
  [
    "limits",
    () => "/limits",
    ["session-expired", "log in again", "queue:bank", "slack", "acme/eu", "100 per min"],
  ],
  ["database", () => "/database", ["SQLite", "Round trip"]],
  ["audit", () => "/audit", ["No actions yet"]],
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

test("an empty database has empty screens, and nothing is made up", async () => {
  const plain = await site();
  const page = await plain.open("/");
  await page.getByText("Nothing to do, and no worker is running.").waitFor();
  await page.getByText("No jobs yet").waitFor();
  await accessible(page);
  for (const [path, ...texts] of [
    ["/jobs", "No matching jobs"],
    ["/errors", "No dead jobs"],
    ["/queues", "No queues yet"],
    ["/schedules", "No schedules"],
    ["/workers", "No workers"],
    ["/limits", "No holds", "No breaker has tripped", "No budgets", "No lanes in use"],
  ] as const) {
    const other = await plain.open(path);
    for (const text of texts) await other.getByText(text).waitFor();
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
  await bare.getByRole("alert").getByText("Wrong token").waitFor();
  await accessible(bare);
  await bare.getByLabel("Token").fill(`${home.url}/#token=browser-test-token-0123456789`);
  await bare.getByRole("button", { name: "Open" }).click();
  await bare.getByRole("heading", { name: "Overview" }).waitFor();
});

test("a wrong token is said, from the address too, and after too many one must wait", async () => {
  const own = await site();
  const page = await own.open("/", { token: "wrong-token-wrong-token", noisy: true });
  await page.getByRole("alert").getByText("Wrong token").waitFor();
  await page.route("**/api/v1/me", (route) => route.fulfill({ status: 429, json: {} }));
  await page.getByLabel("Token").fill("wrong-token-wrong-again");
  await page.getByRole("button", { name: "Open" }).click();
  await page.getByRole("alert").getByText("Wait a minute").waitFor();
});

test("an address that no screen has says so, with a way home", async () => {
  for (const path of ["/nonexistent", "/jobs/%E0%A4%A"]) {
    const page = await home.open(path, { refused: true });
    await page.getByRole("heading", { name: "Page not found" }).waitFor();
    if (path === "/nonexistent") await accessible(page);
    await page.getByRole("link", { name: "Go to overview" }).click();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
  }
});

test("a change that the database does not answer says that it waits, until it is there", async () => {
  const page = await home.open("/queues");
  let answer = (): void => {};
  const held = new Promise<void>((resolve) => (answer = resolve));
  await page.route("**/api/v1/queues/*/pause", async (route) => {
    await held;
    await route.continue();
  });
  await choose(page, "mail", "Pause");
  await page.getByText("Still waiting for the database").waitFor();
  answer();
  await page.getByText("Still waiting for the database").waitFor({ state: "detached" });
});

test("schedules: next runs, edit, reset, pause, run now, remove", async () => {
  const { schedules, jobs } = home.hf;
  const page = await home.open("/schedules");
  await choose(page, "digest", "Next runs");
  await page.getByRole("dialog").locator("li").nth(19).waitFor();
  await accessible(page);
  await page.keyboard.press("Escape");
  await choose(page, "digest", "Edit");
  await page.getByLabel("Cron").fill("30 8 * * *");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Schedule saved").waitFor();
  expect(await schedules.get("digest")).toMatchObject({ cron: "30 8 * * *", timezone: "Europe/London" });
  await choose(page, "digest", "Reset");
  await page.getByText("Schedule reset").waitFor();
  expect(await schedules.get("digest")).toMatchObject({ cron: "0 9 * * 1", edited: [] });
  await choose(page, "digest", "Pause");
  await page.getByText("Schedule paused").waitFor();
  expect((await schedules.get("digest"))?.paused).toBe(true);
  await choose(page, "sweep", "Edit");
  await page.getByLabel("Every").fill("90s");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Every 90 seconds").waitFor();
  expect(await schedules.get("sweep")).toMatchObject({ every: 90_000, missed: "skip" });
  await choose(page, "sweep", "Run now");
  await page.getByText("Facts").waitFor();
  expect((await jobs.get(page.url().split("/").at(-1)!))?.name).toBe("weekly-digest");
  await page.goBack();
  await choose(page, "sweep", "Remove");
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await page.getByText("Removed").waitFor();
  expect(await schedules.get("sweep")).toBeNull();
});

test("limits: reset a breaker, change and drain a budget, pause, reset and drop a lane", async () => {
  const { breakers, budgets, lanes, queues } = home.hf;
  await queues.pause("bank"); // or its jobs would open the breaker again at once
  const page = await home.open("/limits");
  await page.getByRole("button", { name: "Reset queue:bank" }).click();
  await page.getByText("Breaker reset").waitFor();
  expect((await breakers.list()).filter(({ state }) => state === "open")).toEqual([]);
  await choose(page, "slack", "Change");
  await page.getByRole("textbox", { name: "Limit" }).fill("80");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Budget saved").waitFor();
  expect(await budgets.list()).toMatchObject([
    { name: "slack", limit: 80, per: 60_000, burst: 50, tuned: true },
  ]);
  await choose(page, "slack", "Drain");
  await page.getByRole("dialog").getByRole("button", { name: "Drain" }).click();
  await page.getByText("Budget drained").waitFor();
  expect((await budgets.list())[0]!.tokens).toBeLessThan(20);
  await choose(page.getByRole("region", { name: "Lanes", exact: true }), "acme/eu", "Pause");
  await page.locator(".toast").getByText("acme/eu paused").waitFor();
  expect((await lanes.list({ key: "acme/eu" })).lanes).toMatchObject([{ paused: true }]);
  await lanes.set("tenants", "acme/eu", { concurrency: 9 });
  const inLanes = page.getByRole("region", { name: "Lanes", exact: true });
  await shot(page, "limits-lanes");
  await choose(inLanes, "acme/eu", "Reset");
  await page.getByRole("dialog").getByRole("button", { name: "Reset" }).click();
  await page.getByText("acme/eu reset").waitFor();
  expect((await lanes.list({ key: "acme/eu" })).lanes).toMatchObject([
    { paused: true, concurrency: 2, tuned: false },
  ]);
  await choose(inLanes, "acme/eu", "Drop");
  await page.getByRole("dialog").getByRole("button", { name: "Drop" }).click();
  await page.getByText("acme/eu: settings removed").waitFor();
  expect((await lanes.list({ key: "acme/eu" })).lanes).toMatchObject([{ paused: false, tuned: false }]);
});

test("a run that waits for a signal goes on when it is sent from its page", async () => {
  const id = features.workflow.waiting;
  const page = await home.open(`/jobs/${id}`);
  await page.getByRole("button", { name: "Send packed" }).click();
  await page.getByLabel("Data (JSON)").fill("{ boxes");
  await page.getByRole("dialog").getByRole("button", { name: "Send" }).click();
  await page.getByRole("alert").waitFor();
  await accessible(page);
  await page.getByLabel("Data (JSON)").fill('{ "boxes": 7 }');
  await page.getByRole("dialog").getByRole("button", { name: "Send" }).click();
  await page.getByText("Signal sent").waitFor();
  expect(await home.hf.result(id, { timeout: "20s" })).toEqual({ boxes: 7 });
});
