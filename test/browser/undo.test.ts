// What was done is taken back from the audit trail; and the way from a run and a trace to their jobs. In a real browser.
import { expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { accessible, closeSites, fits, shot, site, TOKEN, useBrowser } from "./support.ts";
import { operatorOf } from "../../src/operate/operator.ts";

useBrowser();
closeSites();

test("[K1] the audit trail offers to undo what it can, asks first in words, does it by keyboard, and says what became of it", async () => {
  const home = await site();
  const { hf } = home;
  await hf.queues.set("mail", { concurrency: 5 });
  const act = async (method: string, path: string, body?: object): Promise<void> => {
    const response = await fetch(`${home.url}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
      body: JSON.stringify(body ?? {}),
    });
    expect(response.status).toBe(200);
  };
  await act("POST", "/queues/mail/pause");
  await act("PATCH", "/queues/mail", { concurrency: 2 });
  await act("PUT", "/holds/login", { queues: ["mail"], reason: "log in" });
  await act("POST", "/jobs", { name: "plain", input: null });
  const page = await home.open("/audit", { noisy: true });
  // By its action: the entry of an undo has that of the other in its details.
  const row = (action: RegExp) =>
    page.getByRole("row").filter({ has: page.locator("b").filter({ hasText: action }) });
  await row(/jobs\.enqueue/).waitFor();
  expect(await page.getByRole("button", { name: /^Undo / }).count()).toBe(3);
  expect(
    await row(/jobs\.enqueue/)
      .getByRole("button")
      .count(),
  ).toBe(0);
  await accessible(page);
  await shot(page, "audit-undo");

  await row(/queues\.pause/)
    .getByRole("button", { name: "Undo queues.pause mail" })
    .click();
  await page.getByRole("heading", { name: "Resume queue mail?" }).waitFor();
  await accessible(page);
  await shot(page, "audit-undo-dialog");
  await page.getByRole("button", { name: "Not now" }).click();
  expect((await operatorOf(hf).store.queues.settings(["mail"])).get("mail")?.paused).toBe(true);

  await row(/queues\.pause/)
    .getByRole("button", { name: /^Undo/ })
    .focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Resume queue mail?" }).waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Undo" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("Done: Resume queue mail.").waitFor();
  await row(/audit\.undo/).waitFor();
  await row(/queues\.pause/)
    .getByText("undone", { exact: true })
    .waitFor();
  expect(
    await row(/queues\.pause/)
      .getByRole("button")
      .count(),
  ).toBe(0);
  expect((await operatorOf(hf).store.queues.settings(["mail"])).get("mail")).toMatchObject({
    paused: false,
    concurrency: 2,
  });

  // Somebody was quicker.
  await hf.queues.set("mail", { concurrency: 9 });
  await row(/queues\.set/)
    .getByRole("button", { name: /^Undo/ })
    .click();
  await page.getByRole("heading", { name: "Set queue mail back to concurrency 5?" }).waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Undo" }).click();
  await page.getByText(/Queue mail has been changed since: it is concurrency 9 now/).waitFor();
  expect((await operatorOf(hf).store.queues.settings(["mail"])).get("mail")?.concurrency).toBe(9);

  const narrow = await home.open("/audit", { width: 360, height: 760, dark: true });
  await narrow.getByRole("button", { name: "Undo holds.set login" }).waitFor();
  await accessible(narrow);
  await fits(narrow);
  await shot(narrow, "audit-undo-narrow");
  await narrow.getByRole("button", { name: "Undo holds.set login" }).click();
  await narrow.getByRole("dialog").getByRole("button", { name: "Undo" }).click();
  await narrow.getByText("Done: Clear hold login.").waitFor();
  expect(await hf.holds.list()).toEqual([]);
});

test("[K1] a dashboard that only shows, and who may read the trail alone, see no button", async () => {
  const home = await site({ auth: () => ({ name: "eve", permissions: ["view", "audit:view"] }) });
  await operatorOf(home.hf).store.insight.addAudit({
    actor: "ann",
    action: "queues.pause",
    target: "mail",
    outcome: "paused",
    details: '{"before":{"state":"running"},"after":{"state":"paused"}}',
  });
  const page = await home.open("/audit");
  await page.getByRole("row", { name: /queues\.pause/ }).waitFor();
  expect(await page.getByRole("button", { name: /^Undo/ }).count()).toBe(0);
});

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

test("[K1] the toast after an action offers to take it back, and does", async () => {
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
  await page.locator(".toast").getByText("Undone.").waitFor();
  expect(await paused()).toBe(false);
  await page.getByRole("button", { name: "Pause mail" }).waitFor();
  // An action that cannot be undone offers nothing.
  expect(await page.locator(".toast").getByRole("button", { name: "Undo" }).count()).toBe(0);
});
