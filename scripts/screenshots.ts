// Takes the two screenshots of the README: `npm run build && node scripts/screenshots.ts`. With a directory as argument it
// takes every screen, light and dark, for somebody to look at.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { serve } from "../src/dashboard/index.ts";
import { setTimeout as sleep } from "node:timers/promises";
import { defineJob, open, silentLogger } from "../src/index.ts";
import { launch } from "../test/browser/chromium.ts";
import { fill, fillFeatures } from "../test/browser/data.ts";

const directory = process.argv[2];
const target = directory ?? join(import.meta.dirname, "../docs/images");
mkdirSync(target, { recursive: true });

const hf = await open("sqlite::memory:", { logger: silentLogger });
const { ids, letGo } = await fill(hf, directory === undefined ? 8 : 1);
const { flow } = await fillFeatures(hf);
await hf.holds.set("session-expired", { queues: ["crawl"], reason: "log in again" });
const empty = await open("sqlite::memory:", { logger: silentLogger });
// Something that moves, for the chart.
const thumbnail = defineJob({
  name: "make-thumbnail",
  queue: "media",
  run: async (_input: { file: string }) => sleep(120),
});
const mover = hf.work([thumbnail], { queues: { media: 8 }, name: "web-2" });
let beat = 0;
const moving = setInterval(() => {
  beat += 1;
  const n = Math.round(14 + 12 * Math.sin(beat / 9));
  void hf.enqueueMany(
    Array.from({ length: n }, (_, i) => ({ job: thumbnail, input: { file: `photo-${i}.jpg` } })),
  );
}, 250);
const server = await serve(hf, { port: 0, label: "production" });
const browser = await launch();
const screens: Record<string, string> =
  directory === undefined
    ? { dashboard: "/" }
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
        workflow: `/jobs/${flow.waiting}`,
        failed: `/jobs/${flow.dead}`,
        filtered: "/jobs?state=dead&queue=billing&search=bob",
      };
for (const colorScheme of ["light", "dark"] as const) {
  const page = await browser.newPage({
    locale: "en-US",
    viewport: { width: 1360, height: 900 },
    colorScheme,
    deviceScaleFactor: directory === undefined ? 2 : 1,
  });
  for (const [name, path] of Object.entries(screens)) {
    await page.goto(`${server.url.replace(/\/$/, "")}${path}#token=${server.token}`);
    await page.waitForSelector(".panel");
    await page.waitForTimeout(directory === undefined ? 25_000 : 900);
    await page.screenshot({ path: join(target, `${name}-${colorScheme}.png`) });
    console.log(`${name}-${colorScheme}.png`);
  }
  await page.close();
}
await browser.close();
await server.close();
clearInterval(moving);
letGo();
await mover.stop();
await hf.close();
