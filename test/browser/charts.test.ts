// Charts of a page together: one cursor, one time that goes along, deploys, dates; series of the database and of machines; and
// what the shell says on every screen.
import type { Page } from "playwright-core";
import { describe, expect, test, vi } from "vitest";
import { ROLES } from "../../src/dashboard/access/security.ts";
import { defineJob } from "../../src/index.ts";
import { accessible, closeSites, fits, shot, site, type Site, TOKEN, useBrowser } from "./support.ts";
import { operatorOf } from "../../src/operate/operator.ts";

useBrowser();
closeSites();

const MINUTE = 60_000;
const eventually = { timeout: 20_000 };
const plain = defineJob({ name: "plain", run: async (_input: unknown) => {} });

/** Two hosts and a database as they were in the last hour, and a build that came half an hour ago. */
async function measured(home: Site): Promise<{ last: number }> {
  const { store } = operatorOf(home.hf);
  await home.hf.enqueue(plain, 1, { queue: "mail", delay: "1d" });
  const last = Math.floor(Date.now() / MINUTE) * MINUTE - MINUTE;
  const rows = Array.from({ length: 55 }, (_, n) => {
    const minute = last - n * MINUTE;
    const of = (source: string, values: Record<string, number>) =>
      Object.entries(values).map(([name, value]) => ({ minute, source, name, value }));
    const wave = 1 + Math.sin(n / 6) / 3;
    return [
      ...of("database", {
        sizeBytes: (9 - n / 20) * 1_048_576,
        walBytes: 3 * 1_048_576 * wave,
        connections: Math.round(12 * wave),
        diskFreeBytes: 64 * 2 ** 30,
      }),
      ...of("web-1-10-00000000000a", {
        cpu: 0.5 * wave,
        rss: 180 * 1_048_576 * wave,
        loopDelayMs: 4 * wave,
        dbReadMs: 2 * wave,
        dbWriteMs: 5 * wave,
        poolUsed: 3,
        poolIdle: 2,
        poolWaiting: n % 20 === 0 ? 1 : 0,
      }),
      ...of("web-2-20-00000000000b", { cpu: 0.25, rss: 90 * 1_048_576, loopDelayMs: 12, dbReadMs: 4 }),
      ...of("queues", { ready: 10 * (55 - n) }),
      ...of("queue:mail", { ready: 10 * (55 - n) }),
    ];
  }).flat();
  await store.series.putGauges([
    ...rows,
    { minute: last - 30 * MINUTE, source: "v42", name: "release", value: 1 },
  ]);
  const nothing = {
    failed: 0,
    dead: 0,
    cancelled: 0,
    throttled: 0,
    released: 0,
    lost: 0,
    ran: "",
    waited: "",
  };
  await store.series.putMetrics(
    Array.from({ length: 55 }, (_, n) => ({
      minute: last - n * MINUTE,
      queue: "mail",
      name: "plain",
      worker: "w",
      done: 100 + n,
      ...nothing,
    })),
  );
  return { last };
}

const region = (page: Page, name: string) => page.getByRole("region", { name, exact: true });
const spoken = (page: Page, name: string) =>
  page.getByRole("slider", { name: new RegExp(`^${name}\\.`) }).getAttribute("aria-valuetext");

test("[K1] the database's page draws size, WAL, reads and writes, connections and pools over time", async () => {
  const home = await site();
  await measured(home);
  const page = await home.open("/database");
  await region(page, "Size").getByText("View as table").click();
  await region(page, "Size")
    .getByRole("row", { name: /9\.0 MB$/ })
    .waitFor();
  expect(await spoken(page, "Reads and writes")).toMatch(
    /Read 3 ms, Slowest read 4 ms, Write 5 ms, Slowest write 5 ms$/,
  );
  expect(await spoken(page, "Connections")).toMatch(/All 12, In use 3, Idle 2, Waiting 1$/);
  expect(await spoken(page, "Free disk")).toMatch(/Free 64 GB$/);
  await shot(page, "database-series");
  await accessible(page);
  const dark = await home.open("/database", { dark: true, width: 360 });
  await region(dark, "WAL").waitFor();
  await accessible(dark);
  await fits(dark);
});

test("[K1] the database's page says what the doctor finds and what to do, and how the database is kept", async () => {
  const home = await site();
  await home.hf.enqueue("lost", null, { queue: "typo" });
  const page = await home.open("/database");
  const doctor = region(page, "Doctor");
  await doctor.getByText("2 problems").waitFor();
  const unserved = doctor.getByRole("listitem").filter({ hasText: "unserved" });
  expect(await unserved.textContent()).toMatch(
    /^wrongunservedtypo: lost→ Deploy a worker with these handlers/,
  );
  expect(await doctor.getByRole("listitem").first().textContent()).toMatch(/^wrong/);
  await doctor.getByText(/^\d+ more passed$/).click();
  await doctor.getByText("no job is held by a dead worker").waitFor();
  const upkeep = region(page, "Upkeep");
  await upkeep.getByText(/^version \d+ \(.+\), applied/).waitFor();
  expect(await upkeep.getByRole("definition").allTextContents()).toEqual(
    expect.arrayContaining(["7 d", "30 d", "none yet"]),
  );
  await shot(page, "doctor");
  await accessible(page);
  // The cause is removed; looking again tells so, once what was known is 5 seconds old.
  await home.hf.jobs.cancel({ queue: "typo" });
  await expect
    .poll(async () => {
      await doctor.getByRole("button", { name: "Check again" }).click();
      return doctor.getByRole("status").textContent();
    }, eventually)
    .toBe("No problems");
  const dark = await home.open("/database", { dark: true, width: 360 });
  await region(dark, "Upkeep").waitFor();
  await shot(dark, "doctor-dark");
  await accessible(dark);
  await fits(dark);
});

test("[K1] the workers' page draws CPU, memory and event-loop delay of each host", async () => {
  const home = await site();
  await measured(home);
  const page = await home.open("/workers");
  await region(page, "CPU").waitFor();
  expect(await spoken(page, "CPU")).toMatch(/web-1 50 %, web-2 25 %$/);
  expect(await spoken(page, "Memory")).toMatch(/web-1 180 MB, web-2 90 MB$/);
  expect(await spoken(page, "Event-loop delay")).toMatch(/web-1 4 ms, web-2 12 ms$/);
  await region(page, "CPU")
    .getByText(/^Deployed: v42 at \d\d:\d\d$/)
    .waitFor();
  await accessible(page);
  await fits(await home.open("/workers", { width: 360 }));
});

test("what one chart is pointed at, all charts of the page tell of that minute", async () => {
  const home = await site();
  await measured(home);
  const page = await home.open("/");
  const box = await region(page, "Throughput").locator(".u-over").boundingBox();
  expect(box).not.toBeNull();
  await page.mouse.move(box!.x + box!.width / 2, box!.y + 30);
  const when = (name: string) => region(page, name).locator(".when").textContent();
  await region(page, "Throughput").locator(".when").waitFor();
  const told = await when("Throughput");
  expect(told).toMatch(/^\d\d:\d\d$/);
  for (const name of ["Waiting time", "Running time", "Slots"])
    await expect.poll(() => when(name), eventually).toMatch(/^\d\d:\d\d$/);
  // It is that minute's figure, not the last one's.
  const figure = await region(page, "Throughput").locator(".legend b").first().textContent();
  await region(page, "Throughput").getByText("View as table").click();
  await region(page, "Throughput")
    .getByRole("row", { name: new RegExp(`^${told} ${figure} `) })
    .waitFor();
  await page.mouse.move(2, 2);
  await expect.poll(() => page.locator(".when").count(), eventually).toBe(0);
});

test("deploys are marked on every chart of work, and a day has its dates", async () => {
  const home = await site();
  const { last } = await measured(home);
  const page = await home.open("/");
  const named = ["Throughput", "Waiting time", "Running time", "Backlog by queue", "Slots"];
  for (const name of named)
    await region(page, name)
      .getByText(/^Deployed: v42 at \d\d:\d\d$/)
      .waitFor();
  await page.getByRole("link", { name: "24 h", exact: true }).click();
  const date = await page.evaluate(
    (ms) => new Intl.DateTimeFormat("sv", { dateStyle: "short" }).format(ms),
    last - 30 * MINUTE,
  );
  await region(page, "Throughput")
    .getByText(new RegExp(`^Deployed: v42 at ${date} \\d\\d:\\d\\d$`))
    .waitFor();
  expect(await spoken(page, "Throughput")).toMatch(/^Now, \d{4}-\d\d-\d\d \d\d:\d\d: /);
  await region(page, "Throughput").getByText("View as table").click();
  await region(page, "Throughput")
    .getByRole("row", { name: /^\d{4}-\d\d-\d\d \d\d:\d\d / })
    .first()
    .waitFor();
  await page.getByRole("link", { name: "5 min", exact: true }).click();
  await expect.poll(() => spoken(page, "Throughput"), eventually).toMatch(/^Now, \d\d:\d\d: /);
  expect(await page.getByRole("slider", { name: /^Throughput/ }).getAttribute("aria-valuemax")).toMatch(
    /^[45]$/,
  );
});

test("the time that is shown goes along from screen to screen, is in the address, and ends where another is chosen", async () => {
  const home = await site();
  const { last } = await measured(home);
  const time = `from=${last - 20 * MINUTE}&to=${last - 10 * MINUTE}`;
  const page = await home.open(`/?${time}`);
  const back = page.getByRole("button", { name: "Reset to the last hour" });
  await back.waitFor();
  const menu = page.getByRole("navigation", { name: "Screens" });
  for (const [name, path] of [
    ["Database", "/database"],
    ["Workers", "/workers"],
    ["Queues", "/queues"],
  ] as const) {
    await menu.getByRole("link", { name: new RegExp(`^${name}`) }).click();
    await page.waitForURL((url) => url.pathname === path && url.search === `?${time}`);
  }
  await page.getByRole("link", { name: "mail", exact: true }).first().click();
  await page.waitForURL((url) => url.pathname === "/queues/mail" && url.search === `?${time}`);
  await back.waitFor();
  // Jobs have filters of their own.
  await menu.getByRole("link", { name: /^Jobs/ }).click();
  await page.waitForURL((url) => url.pathname === "/jobs" && url.search === "");
  await page.goBack();
  await page.getByRole("link", { name: "6 h", exact: true }).click();
  await page.waitForURL((url) => url.search === "?last=6h");
  await page.getByRole("link", { name: "1 h", exact: true }).click();
  await page.waitForURL((url) => url.pathname === "/queues/mail" && url.search === "");
});

test("paused, nothing is asked for; going on, it is", async () => {
  const home = await site();
  await measured(home);
  const page = await home.open("/");
  // The page's timers are ours to move: what is asked for every so often is due many times over.
  await page.clock.install();
  await page.reload();
  await region(page, "Slots").waitFor();
  await page.getByRole("button", { name: /^Live/ }).click();
  await page.getByRole("button", { name: /^Paused/ }).waitFor();
  await page.clock.runFor(5_000);
  const asked: string[] = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  for (let n = 0; n < 12; n += 1) await page.clock.runFor(10_000);
  expect(asked).toEqual([]);
  await page.getByRole("button", { name: /^Paused/ }).click();
  await page.clock.runFor(20_000);
  await expect.poll(() => asked.some((path) => path.endsWith("/series/load")), eventually).toBe(true);
});

test("who may not see the audit trail does not ask for it", async () => {
  const home = await site({
    auth: (request) =>
      request.headers.get("authorization") === `Bearer ${TOKEN}` || !request.url.includes("/api/")
        ? { name: "vera", permissions: ROLES.viewer }
        : null,
  });
  await home.hf.enqueue(plain, 1, { delay: "1d" });
  const page = await home.open("/", { noisy: true });
  const asked: string[] = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  await page.reload();
  await page.getByRole("region", { name: "Slowest jobs" }).waitFor();
  await home.hf.enqueue(plain, 1);
  await page.getByText("1 ready").waitFor();
  expect(asked.filter((path) => path.endsWith("/audit"))).toEqual([]);
  expect(await page.getByText("Recent operator actions").count()).toBe(0);
});

describe("the shell", () => {
  test.each([
    [{ labelColor: "yellow" }, "rgb(250, 204, 21)", "rgb(0, 0, 0)"],
    [{ labelColor: "blue" }, "rgb(29, 78, 216)", "rgb(255, 255, 255)"],
  ])("the label is in the header in its colour, also on a phone: %o", async (given, paper, ink) => {
    const home = await site({ label: "production-europe-west", ...given });
    for (const width of [1360, 360]) {
      const page = await home.open("/queues", { width });
      const label = page.getByText("production-europe-west");
      await label.waitFor();
      expect(
        await page.evaluate(
          "(({ backgroundColor, color }) => [backgroundColor, color])(getComputedStyle(document.querySelector('.env')))",
        ),
      ).toEqual([paper, ink]);
      await fits(page);
      await accessible(page);
      await shot(page, `label-${given.labelColor}-${width}`);
    }
  });

  test("a clock that is far off is said on every screen", async () => {
    const home = await site();
    const page = await home.open("/database");
    expect(await page.getByText("This machine's clock").count()).toBe(0);
    const late = await home.open("/");
    await late.clock.install({ time: Date.now() - 120_000 });
    await late.goto(`${home.url}/database#token=${TOKEN}`);
    await late
      .getByText(/^This machine's clock is (?:2 min|1 min 5\d s)[\d a-z]* behind the database's\./)
      .waitFor();
    await accessible(late);
  });

  test("times in UTC: axes, tables and dates", async () => {
    const home = await site();
    const { last } = await measured(home);
    const page = await home.open("/");
    const utc = new Date(last - 30 * MINUTE).toISOString().slice(11, 16);
    const mark = region(page, "Throughput").getByText(/^Deployed: v42 at/);
    await mark.waitFor();
    // The page's zone is Berlin.
    expect(await mark.textContent()).not.toBe(`Deployed: v42 at ${utc}`);
    await page.keyboard.press("?");
    await page.getByLabel(/UTC/).check();
    await page.getByRole("button", { name: "Close" }).click();
    await expect.poll(() => mark.textContent(), eventually).toBe(`Deployed: v42 at ${utc}`);
    await page.reload();
    await expect.poll(() => mark.textContent(), eventually).toBe(`Deployed: v42 at ${utc}`);
  });

  test("what runs unusually long is told on the overview, with how long is usual", async () => {
    const hold = Promise.withResolvers<void>();
    const slow = defineJob({ name: "slow", run: async (_input: unknown) => hold.promise });
    const home = await site();
    const usual = { count: 100, mean: 1, p50: 1, p95: 1, p99: 1 };
    const none = { count: 0, mean: null, p50: null, p95: null, p99: null };
    const point = {
      at: new Date(),
      done: 100,
      failed: 0,
      dead: 0,
      cancelled: 0,
      throttled: 0,
      released: 0,
      lost: 0,
      ran: usual,
      waited: none,
    };
    const { metrics } = home.hf;
    const real = metrics.series.bind(metrics);
    vi.spyOn(metrics, "series").mockImplementation(async (query) =>
      query?.by === "name" ? [{ queue: null, name: "slow", points: [point] }] : real(query),
    );
    const { id } = await home.hf.enqueue(slow, 1);
    const worker = home.hf.work([slow], { queues: ["default"], name: "web-1" });
    const page = await home.open("/");
    const panel = region(page, "Running unusually long");
    await panel.getByRole("row", { name: /slow.*1 ms/ }).waitFor();
    await accessible(page);
    await shot(page, "stuck");
    await panel.getByRole("link", { name: "slow" }).click();
    await page.waitForURL(new RegExp(id));
    hold.resolve();
    await worker.stop();
  });

  test("a page of an empty database teaches, and turns live with the first job", async () => {
    const home = await site();
    const page = await home.open("/");
    await page.getByText("No jobs yet").waitFor();
    await page.getByText("await hf.enqueue(").waitFor();
    // Nothing is drawn of which there is nothing.
    expect(await page.getByRole("region", { name: "Throughput" }).count()).toBe(0);
    await accessible(page);
    await shot(page, "first-run");
    const narrow = await home.open("/", { width: 360, dark: true });
    await narrow.getByText("No jobs yet").waitFor();
    await accessible(narrow);
    await fits(narrow);
    await shot(narrow, "first-run-360");
    await home.hf.enqueue(plain, 1);
    await page.getByText("No worker is running, and 1 ready job waits.").waitFor();
    expect(await page.getByText("No jobs yet").count()).toBe(0);
    await page.getByRole("region", { name: "Throughput" }).waitFor();
    const worker = home.hf.work([plain], { queues: ["default"] });
    await page.getByText(/^Healthy: /).waitFor();
    await worker.stop();
  });
});
