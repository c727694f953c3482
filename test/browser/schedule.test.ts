// A schedule's own screen: how its runs went, as bars, as a sentence and as a table; and why there is nothing where there is nothing.
import { beforeAll, describe, expect, test, vi } from "vitest";
import { defineJob, type ScheduleRun } from "../../src/index.ts";
import { share, topOf } from "../../ui/src/charts/axis-scale.ts";
import { accessible, closeSites, fits, shot, site, type Site, useBrowser } from "./support.ts";

useBrowser();
closeSites();

const hour = 3_600_000;
const minute = 60_000;

let home: Site;
/** Newest first. */
const told: ScheduleRun[] = [];

/** Two days of a schedule by the half hour, of which the newest has not ended, with every end that there is. */
function twoDays(ids: readonly string[], newest: number): ScheduleRun[] {
  const endOf = (i: number): ScheduleRun["state"] =>
    i === 0 ? "running" : i === 1 ? "dead" : i % 17 === 6 ? "dead" : i % 31 === 9 ? "cancelled" : "done";
  return Array.from({ length: 96 }, (_, i) => {
    const at = newest - i * 30 * minute;
    const state = i > 88 ? null : endOf(i);
    const by = i === 12 ? "hand" : i > 20 && i < 25 ? "backfill" : "occurrence";
    const lateMs =
      by !== "occurrence" || state === null ? null : i === 40 ? 95_000 : 20 + ((i * 7_919) % 4_000);
    const startedAt = state === null ? null : at + (lateMs ?? 50);
    const ranMs = state === null || state === "running" ? null : 3_000 + ((i * 104_729) % 9_000);
    const endedAt = startedAt === null || ranMs === null ? null : startedAt + ranMs;
    const attempt = state === null ? null : state === "dead" ? 3 : 1;
    const dates = { at: new Date(at), startedAt: dateOf(startedAt), endedAt: dateOf(endedAt) };
    return { ...dates, by, jobId: ids[i]!, state, attempt, lateMs, ranMs };
  });
}

function dateOf(at: number | null): Date | null {
  return at === null ? null : new Date(at);
}

beforeAll(async () => {
  home = await site();
  const { schedules } = home.hf;
  const real = schedules.runs.bind(schedules);
  vi.spyOn(schedules, "runs").mockImplementation(async (name, options) =>
    name === "half-hourly" ? told.slice(0, options?.limit) : real(name, options),
  );
  const { hf } = home;
  const job = "build-report";
  await hf.schedules.put({
    name: "half-hourly",
    cron: "*/30 * * * *",
    timezone: "Europe/Berlin",
    job,
    input: null,
    overlap: "skip",
  });
  await hf.schedules.put({ name: "paused", every: "1h", job, input: null });
  await hf.schedules.pause("paused");
  await hf.schedules.put({ name: "yearly", cron: "0 0 1 1 *", job, input: null });
  const made = await hf.enqueueMany(Array.from({ length: 96 }, (_, n) => ({ job, input: { n } })));
  const newest = Math.floor(Date.now() / (30 * minute)) * 30 * minute;
  told.push(
    ...twoDays(
      made.map(({ id }) => id),
      newest,
    ),
  );
}, 60_000);

describe.each([
  ["light", {}],
  ["dark", { dark: true }],
  ["high contrast", { contrast: true }],
  ["system colours", { forced: true }],
  ["360 pixels wide", { width: 360, height: 1_500 }],
] as const)("%s", (name, given) => {
  test("[K3] a schedule's screen shows how its runs went, fits, and pleases axe", async () => {
    const page = await home.open("/schedules/half-hourly", given);
    const history = page.getByRole("region", { name: "History" });
    await history.getByText("Start delay").waitFor();
    await page.getByText("time zone Europe/Berlin").waitFor();
    await history.getByText(/maximum \d+ s, median \d/).waitFor();
    await history.getByText("run by hand").waitFor();
    if (!("width" in given)) await history.getByText(/maximum 1 min 35 s, .*; bars end at/).waitFor();
    await shot(page, `schedule-${name.replaceAll(" ", "-")}`);
    await fits(page);
    // Each end looks different: by its sign, not only by its colour.
    const columns = history.locator(".columns").first().locator(".run");
    const shown = await columns.count();
    if ("width" in given) {
      expect(shown).toBeLessThan(40);
      await history.getByText(`newest ${shown} of 96`).waitFor();
    } else expect(shown).toBe(96);
    expect(await columns.last().getAttribute("class")).toContain("running");
    const signs = (state: string) => history.locator(`.columns .run.${state} svg`).count();
    const all = (state: string) => history.locator(`.columns .run.${state}`).count();
    for (const state of ["dead", "cancelled", "running"]) {
      expect(await all(state)).toBeGreaterThan(0);
      expect([state, await signs(state)]).toEqual([state, await all(state)]);
    }
    await history.getByText("View as table").click();
    const rows = history.getByRole("row");
    await rows.nth(96).waitFor();
    expect(await rows.nth(2).innerText()).toContain("dead");
    await accessible(page);
    await fits(page);
  });
});

test("bars are as tall as the largest, unless that is far above nearly all others", () => {
  expect(topOf([1, 2, 30], 1)).toBe(30);
  expect(topOf([], 1)).toBe(1);
  expect(topOf([3, 5, 40], 1_000)).toBe(1_000);
  const many = Array.from({ length: 20 }, (_, i) => 100 + i);
  expect(topOf([...many, 500], 1)).toBe(500);
  expect(topOf([...many, 9_000], 1)).toBe(2 * share([...many, 9_000], 0.9));
  expect(share(many, 0.5)).toBe(110);
});

test("[K3] a run is chosen by the keyboard, said in words, and opened; so it is by a click", async () => {
  const page = await home.open("/schedules/half-hourly");
  const runs = page.getByRole("slider", { name: /^Runs of half-hourly/ });
  await runs.focus();
  expect(await runs.getAttribute("aria-valuetext")).toMatch(/^Newest, .*: running, started /);
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowLeft");
  expect(await runs.getAttribute("aria-valuetext")).toMatch(
    /^\d{4}-.*: dead, started .+ after its occurrence, ran .+, attempt 3$/,
  );
  expect(await page.locator(".run.on").count()).toBe(2);
  await page.keyboard.press("Enter");
  await page.getByText("Facts").waitFor();
  expect(page.url()).toContain(told[1]!.jobId);
  await page.goBack();
  const third = page.locator(".columns").first().locator(".run").nth(93);
  await third.hover();
  const said = page.locator(".run-chart .said");
  expect(await said.innerText()).toMatch(/: done, started .+ after its occurrence, ran /);
  await third.click();
  await page.getByText("Facts").waitFor();
  expect(page.url()).toContain(told[2]!.jobId);
  await page.goBack();
  await page.getByText("View as table").click();
  await page.getByRole("region", { name: "History" }).getByRole("row").nth(13).getByRole("link").click();
  await page.getByText("Facts").waitFor();
  expect(page.url()).toContain(told[12]!.jobId);
});

test("[K3] what a schedule really did is shown: its occurrence, a backfill, a run by hand, and one that died", async () => {
  const { hf } = home;
  const tick = defineJob({
    name: "tick",
    queue: "ticks",
    retry: { attempts: 1 },
    run: async (_: null, ctx) => {
      if (ctx.schedule!.at.getTime() < Date.now() - 1.5 * hour) throw new Error("too old");
    },
  });
  await hf.schedules.put({ name: "team:real", cron: "0 * * * *", job: tick, input: null, firstRun: "fire" });
  const worker = hf.work([tick], { queues: { ticks: 1 } });
  await worker.ready;
  await expect
    .poll(async () => (await hf.schedules.get("team:real"))?.counts.fired, { timeout: 20_000 })
    .toBe(1);
  await hf.schedules.backfill("team:real", { from: Date.now() - 3 * hour });
  const { id } = await hf.schedules.trigger("team:real");
  await hf.result(id, { timeout: "30s" });
  await worker.idle();
  await worker.stop();
  const page = await home.open("/schedules");
  await page.getByRole("link", { name: "team:real", exact: true }).click();
  await page.getByRole("heading", { name: "team:real", level: 1 }).waitFor();
  await page.reload();
  const history = page.getByRole("region", { name: "History" });
  await history.getByText("run by hand").waitFor();
  await history.getByText("backfilled").waitFor();
  expect(await history.getByText(/^dead/).innerText()).toMatch(/dead\s+[12]/);
  await history.getByText("View as table").click();
  expect(await history.getByRole("row").nth(1).innerText()).toMatch(/by hand\s+done\s+—\s+\d/);
  expect(await history.getByRole("row").nth(2).innerText()).toMatch(/occurrence\s+done\s+\d+ \w+\s+\d/);
});

test("[K3] a schedule without a run says why, and one that is not there says so", async () => {
  const paused = await home.open("/schedules/paused");
  await paused.getByText("Paused: creates no jobs until it is resumed. “Run now” creates one.").waitFor();
  await accessible(paused);
  const yearly = await home.open("/schedules/yearly");
  await yearly.getByText(/First occurrence in \d+ d, at \d{4}-01-01/).waitFor();
  await shot(yearly, "schedule-empty");
  const none = await home.open("/schedules/nowhere");
  await none.getByText("No such schedule").waitFor();
  await none.getByRole("link", { name: "All schedules" }).click();
  await none.getByRole("heading", { name: "Schedules", level: 1 }).waitFor();
});

test("[K3] a schedule is paused, resumed and removed on its own screen", async () => {
  const { hf } = home;
  await hf.schedules.put({ name: "short-lived", every: "1h", job: "build-report", input: null });
  const page = await home.open("/schedules/short-lived");
  await page.getByRole("button", { name: "Pause short-lived" }).click();
  await page.getByRole("button", { name: "Resume short-lived" }).click();
  await page.getByRole("button", { name: "Pause short-lived" }).waitFor();
  expect((await hf.schedules.get("short-lived"))?.paused).toBe(false);
  await page.getByRole("button", { name: "Remove short-lived" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await page.getByRole("heading", { name: "Schedules", level: 1 }).waitFor();
  expect(await hf.schedules.get("short-lived")).toBeNull();
});
