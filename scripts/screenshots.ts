// Takes the README's screenshots, of the overview and of a workflow: `npm run build && node scripts/screenshots.ts`. With a
// directory as argument it takes every screen, light and dark, for somebody to look at; further arguments name screens.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { serve } from "../src/dashboard/index.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { defineJob, open, silentLogger } from "../src/index.ts";
import { launch } from "../test/browser/chromium.ts";
import { fill, fillFeatures } from "../test/browser/data.ts";
import { fillPast } from "../test/browser/past.ts";

const [directory, ...only] = process.argv.slice(2);
const target = directory ?? join(import.meta.dirname, "../docs/images");
mkdirSync(target, { recursive: true });

// The hour before: made in about half a minute, by the product, on a clock that is moved.
const folder = mkdtempSync(join(tmpdir(), "holdfast-screenshots-"));
const url = `sqlite:${join(folder, "shop.db")}`;
const past = await fillPast(url);
const hf = await open(url, { logger: silentLogger, jobLog: true });
const { ids, letGo } = await fill(hf, directory === undefined ? 2 : 1);
// The README shows a system at work; whoever looks at every screen wants everything that can be the matter.
const workflow = directory === undefined ? null : (await fillFeatures(hf)).workflow;
if (workflow !== null) await hf.holds.set("session-expired", { queues: ["crawl"], reason: "log in again" });
const empty = await open("sqlite::memory:", { logger: silentLogger });
// Something that moves, for the chart: now more than its slots can do, now less.
const thumbnail = defineJob({
  name: "make-thumbnail",
  queue: "media",
  run: async (_input: { file: string }) => sleep(1_200),
});
const mover = hf.work([thumbnail], { queues: { media: 3 }, name: "web-2" });
let beat = 0;
const moving = setInterval(() => {
  beat += 1;
  const n = Math.round(1.1 + 1.1 * Math.sin(beat / 7));
  void hf.enqueueMany(
    Array.from({ length: n }, (_, i) => ({ job: thumbnail, input: { file: `photo-${i}.jpg` } })),
  );
}, 500);
const server = await serve(hf, { port: 0, label: "production" });
const browser = await launch();
const screens: Record<string, string> =
  directory === undefined
    ? { dashboard: "/", workflow: `/jobs/${past.waiting}` }
    : {
        overview: "/",
        jobs: "/jobs",
        dead: `/jobs/${ids.dead}`,
        done: `/jobs/${ids.done}`,
        running: `/jobs/${ids.running}`,
        errors: "/errors",
        queues: "/queues",
        queue: "/queues/crawl",
        scheduled: "/scheduled",
        retries: "/retries",
        workers: "/workers",
        limits: "/limits",
        database: "/database",
        audit: "/audit",
        schedules: "/schedules",
        batches: "/batches",
        operations: "/operations",
        workflows: "/workflows",
        workflow: `/jobs/${past.waiting}`,
        "workflow-done": `/jobs/${past.done}`,
        log: `/jobs/${past.done}?tab=log`,
        failed: `/jobs/${workflow?.dead}`,
        filtered: "/jobs?state=dead&queue=billing&search=bob",
      };
const bare = await serve(empty, { port: 0 });
const looks: { name: string; dark?: true; contrast?: true; width?: number; from?: typeof server }[] =
  directory === undefined
    ? [{ name: "light" }, { name: "dark", dark: true }]
    : [
        { name: "light" },
        { name: "dark", dark: true },
        { name: "narrow", width: 390 },
        { name: "contrast", contrast: true },
        { name: "empty", from: bare },
      ];
for (const { name: look, dark, contrast, width = 1_440, from = server } of looks) {
  const page = await browser.newPage({
    locale: "en-US",
    viewport: { width, height: directory === undefined ? 1_160 : 900 },
    colorScheme: dark === true ? "dark" : "light",
    contrast: contrast === true ? "more" : "no-preference",
    deviceScaleFactor: directory === undefined ? 1.5 : 1,
  });
  for (const [name, path] of Object.entries(screens)) {
    if (only.length > 0 && !only.includes(name)) continue;
    await page.goto(`${from.url.replace(/\/$/, "")}${path}#token=${from.token}`);
    await page.waitForSelector("main h1, main .empty");
    await page.waitForTimeout(directory === undefined && path === "/" ? 45_000 : 900);
    const file = join(target, `${name}-${look}.png`);
    // In the README a workflow's page ends behind its waterfall.
    const whole = directory !== undefined || path === "/";
    await page.screenshot({ path: file, fullPage: whole });
    console.log(file);
  }
  await page.close();
}
await browser.close();
await server.close();
await bare.close();
clearInterval(moving);
letGo();
await mover.stop();
await hf.close();
await empty.close();
rmSync(folder, { recursive: true, force: true });
