// Undo in the toast after an action; links from a run and a trace to their jobs.
import { expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { accessible, closeSites, shot, site, useBrowser } from "./support.ts";
import { operatorOf } from "../../src/operate/operator.ts";

useBrowser();
closeSites();

test("[K1] from a run to its jobs, from a job to its trace; words for both are completed and kept in the address", async () => {
  const home = await site();
  const { hf } = home;
  const trace = "4bf92f3577b34da6a3ce929d0e0e4736";
  const part = defineJob({ name: "part", run: async (_: { n: number }) => {} });
  const whole = defineJob({
    name: "whole",
    run: async (_: null, ctx) => {
      await ctx.step("begin", () => null);
      for (let n = 0; n < 2; n += 1) await ctx.enqueue(part, { n });
    },
  });
  const run = await hf.enqueue(whole, null);
  const worker = hf.work([whole, part], { queues: { default: 1 } });
  await worker.ready;
  await worker.idle();
  await worker.stop();
  hf.use({
    enqueue: (request, next) => {
      request.carrier["traceparent"] = `00-${trace}-00f067aa0ba902b7-01`;
      return next();
    },
  });
  const traced = await hf.enqueue("traced", null, { delay: "1h" });

  const page = await home.open(`/jobs/${run.id}`);
  await page.getByRole("link", { name: "Jobs of this run" }).click();
  await page.getByText("2 jobs shown of 2").waitFor();
  expect(new URL(page.url()).search).toBe(`?workflow=${run.id}`);
  await page.getByRole("button", { name: "Remove the filter workflow" }).waitFor();
  expect(await page.getByRole("row", { name: /part/ }).count()).toBe(2);
  expect(await page.getByRole("row", { name: /traced|whole/ }).count()).toBe(0);
  await accessible(page);
  await shot(page, "jobs-of-run");

  await page.goto(`${home.url}/jobs/${traced.id}`);
  await page.getByRole("link", { name: /^4bf92f3577b34da6/ }).click();
  await page.getByRole("button", { name: "Remove the filter trace" }).waitFor();
  expect(new URL(page.url()).search).toBe(`?trace=${trace}`);
  await page.getByRole("row", { name: /traced/ }).waitFor();

  await page.goto(`${home.url}/jobs`);
  const field = page.getByRole("combobox", { name: "Find jobs" });
  await field.pressSequentially("workf");
  await page.getByRole("option", { name: /workflow:/ }).waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.getByRole("option", { name: new RegExp(run.id) }).waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  expect(await field.inputValue()).toBe(`workflow:${run.id} `);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Remove the filter workflow" }).waitFor();
  expect(new URL(page.url()).search).toBe(`?workflow=${run.id}`);
  await page.getByRole("button", { name: "Remove the filter workflow" }).click();
  await field.fill(`00-${trace}-00f067aa0ba902b7-01`);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Remove the filter trace" }).waitFor();
  await page.getByText("1 job shown of 1").waitFor();
  expect(await page.getByRole("row", { name: /part/ }).count()).toBe(0);
});

test("[K1] the toast after an action has a button that undoes it", async () => {
  const home = await site();
  await home.hf.enqueue("plain", null, { queue: "mail" });
  const paused = async (): Promise<boolean | undefined> =>
    (await operatorOf(home.hf).store.queues.settings(["mail"])).get("mail")?.paused;
  const page = await home.open("/queues/mail");
  await page.getByRole("button", { name: "Pause mail" }).click();
  const undo = page.locator(".toast").getByRole("button", { name: "Undo" });
  await undo.waitFor();
  expect(await paused()).toBe(true);
  await accessible(page);
  await shot(page, "toast-undo");
  await undo.click();
  await page.locator(".toast").getByText("Undone").waitFor();
  expect(await paused()).toBe(false);
  await page.getByRole("button", { name: "Pause mail" }).waitFor();
  // An action that cannot be undone offers nothing.
  expect(await page.locator(".toast").getByRole("button", { name: "Undo" }).count()).toBe(0);
});
