// Numbers on a page that tell of the same thing agree, and stand there whole.
import { expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { Histogram } from "../../src/values/histogram.ts";
import { closeSites, site, useBrowser } from "./support.ts";
import { operatorOf } from "../../src/operate/operator.ts";

useBrowser();
closeSites();

const nap = defineJob({
  name: "nap",
  queue: "naps",
  run: async (_: null, ctx) => {
    await ctx.step("before", () => 1);
    await ctx.sleep("rest", 50);
    await ctx.step("after", () => 2);
  },
});
const dies = defineJob({
  name: "dies",
  queue: "bank",
  retry: { attempts: 1 },
  run: async (_: null) => {
    throw new Error("the bank said no");
  },
});

test("[K3] a run that is done has all its steps, and waited as long in its bar as in its timeline", async () => {
  const own = await site();
  const { id } = await own.hf.enqueue(nap, null);
  await new Promise((resolve) => setTimeout(resolve, 40));
  const worker = own.hf.work([nap], { queues: ["naps"] });
  await own.hf.result(id, { timeout: "30s" });
  await worker.stop();
  const page = await own.open("/workflows?view=ended");
  await page.getByRole("img", { name: "Steps: 3 of 3 known" }).waitFor();
  await page.goto(`${own.url}/jobs/${id}`);
  const timeline = page.getByRole("region", { name: "Timeline" });
  // Until its steps are read, the first of them is not known.
  await page.getByRole("region", { name: "Waterfall" }).waitFor();
  const told = await timeline.locator(".why", { hasText: /^waited/ }).innerText();
  const bar = await timeline.locator(".legend span", { hasText: "waited" }).locator("b").innerText();
  expect(told).toBe(`waited ${bar}`);
});

test("[K1] what died in 24 h is never more than what is dead, after a retry as well", async () => {
  const own = await site();
  const [first] = await own.hf.enqueueMany(Array.from({ length: 3 }, () => ({ job: dies, input: null })));
  const worker = own.hf.work([dies], { queues: ["bank"] });
  await worker.ready;
  await worker.idle();
  // It writes its minute down.
  await worker.stop();
  await own.hf.jobs.delete(first!.id);
  const page = await own.open("/");
  const tile = (name: string) =>
    page.locator("a.tile", { has: page.getByText(name, { exact: true }) }).locator(".value");
  await expect.poll(() => tile("Died in 24 h").innerText()).toBe("2");
  expect(await tile("Dead").innerText()).toBe("2");
});

test("[K3] the longest mark of an axis has room: 15 min", async () => {
  const own = await site();
  const took = new Histogram();
  took.add(1_000_000);
  const minute = Math.floor(Date.now() / 60_000) * 60_000 - 120_000;
  await own.hf.enqueue("slow", null, { queue: "slow" });
  await operatorOf(own.hf).store.series.putMetrics(
    Array.from({ length: 20 }, (_, n) => ({
      minute: minute - n * 60_000,
      queue: "slow",
      name: "slow",
      worker: "web-1",
      done: 1,
      failed: 0,
      dead: 0,
      cancelled: 0,
      throttled: 0,
      released: 0,
      lost: 0,
      ran: took.encode(),
      waited: took.encode(),
    })),
  );
  const page = await own.open("/queues/slow");
  const chart = page.getByRole("region", { name: "Running time" });
  await chart.locator(".u-axis").first().waitFor({ state: "attached" });
  const [room, needed] = await page.evaluate<[number, number]>(`(() => {
    const axes = [...document.querySelectorAll("section[aria-label='Running time'] .u-axis")];
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = "11px " + getComputedStyle(document.body).fontFamily;
    return [Math.min(...axes.map((axis) => axis.offsetWidth)), pen.measureText("15 min").width];
  })()`);
  expect(room).toBeGreaterThanOrEqual(needed + 10);
});

test("[K3] of a run whose first steps are on an earlier page, the timeline begins with them too", async () => {
  const own = await site();
  const long = defineJob({
    name: "long",
    queue: "naps",
    run: async (_: null, ctx) => {
      for (let n = 0; n < 520; n++) await ctx.step(`row ${n}`, () => n);
      await ctx.sleep("rest", 1_500);
      await ctx.step("last", () => 1);
    },
  });
  const worker = own.hf.work([long], { queues: ["naps"] });
  await worker.ready;
  const { id } = await own.hf.enqueue(long, null);
  await own.hf.result(id, { timeout: "60s" });
  await worker.stop();
  const page = await own.open(`/jobs/${id}`);
  const timeline = page.getByRole("region", { name: "Timeline" });
  await timeline.getByText("Went on", { exact: true }).waitFor();
  expect(await timeline.innerText()).not.toContain("delayed");
  expect(await timeline.locator(".why", { hasText: /^waited/ }).innerText()).toMatch(/^waited \d+ ms$/);
});
