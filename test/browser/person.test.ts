// Somebody who has never seen Holdfast, in the browser alone: one command, then find out why a job does not run, retry a
// thousand dead jobs after what they failed of is mended, pause a queue and watch it recover.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Page } from "playwright-core";
import { type NodeProcess, spawnNode, waitFor } from "../support/process.ts";
import { accessible, choose, openPage, useBrowser } from "./support.ts";

useBrowser();

let demo: NodeProcess;
let url: string;
let token: string;
beforeAll(async () => {
  demo = spawnNode("src/cli/main.ts", ["demo", "--dashboard", "--port", "0", "--json"]);
  await waitFor(() => demo.output.includes('"address"'), { what: "the demo's address", deadlineMs: 60_000 });
  const { address } = JSON.parse(/\{.*"address".*\}/.exec(demo.output)![0]) as { address: string };
  [url, token] = address.split("/#token=") as [string, string];
}, 90_000);
afterAll(async () => {
  demo.kill("SIGTERM");
  await demo.exited;
});

/** The number on a tile. */
async function tile(page: Page, name: string): Promise<number> {
  const text = await page.locator(".tile", { hasText: name }).locator(".value").first().innerText();
  return Number(text.replaceAll(",", ""));
}

test("[K1] why a job does not run, a thousand dead jobs, a queue paused and recovered: all by looking and clicking", async () => {
  const page = await openPage(url, "/", { token });
  const menu = page.getByRole("navigation", { name: "Screens" });

  // Why is nothing happening to the videos? The first sentence says it, and so does the job.
  await page.getByText("No worker serves transcode-video in queue media.").waitFor();
  await page.getByRole("row", { name: /media/ }).getByText("no worker").waitFor();
  await page
    .getByRole("region", { name: "Queues that need attention" })
    .getByRole("link", { name: "media", exact: true })
    .click();
  await page.getByText('No live worker of queue "media" has a handler for "transcode-video".').waitFor();
  await page.getByRole("link", { name: "transcode-video", exact: true }).click();
  await page.getByRole("link", { name: "transcode-video", exact: true }).first().click();
  await page
    .getByText(/No live worker.*transcode-video/)
    .first()
    .waitFor();
  await accessible(page);

  // A thousand dead jobs, one cause. One of them is tried until it succeeds: then the bank is open, and the rest follows.
  await menu.getByRole("link", { name: /^Failures/ }).click();
  const cause = page.getByRole("row", { name: /the bank is closed/ });
  await cause.getByText("1,000").first().waitFor();
  for (;;) {
    await choose(cause, /^Actions for/, "Retry one");
    await page.getByText("Retrying one job").first().waitFor();
    const end = page.getByRole("status").filter({ hasText: /(Died|Done) at/ });
    await end.first().waitFor();
    const said = await end.first().innerText();
    await menu.getByRole("link", { name: /^Failures/ }).click();
    await cause.waitFor();
    if (said.includes("Done")) break;
    await page.waitForTimeout(500);
  }
  await choose(cause, /^Actions for/, "Retry all");
  await page.getByRole("heading", { name: "Retry 999 jobs?" }).waitFor();
  await page.getByRole("button", { name: "Retry 999" }).click();
  await page.getByText("Retry: 999 retried.").waitFor();
  await expect.poll(() => cause.count(), { timeout: 30_000 }).toBe(0);

  // Pause the mails, watch them gather, let them go, watch the queue empty.
  await menu.getByRole("link", { name: /^Queues/ }).click();
  await page.getByRole("link", { name: "mail", exact: true }).click();
  await page.getByRole("button", { name: "Pause mail" }).click();
  await page.getByText(/has been paused since/).waitFor();
  await expect.poll(() => tile(page, "Ready"), { timeout: 30_000 }).toBeGreaterThan(10);
  await page.getByRole("button", { name: "Resume mail" }).click();
  await expect.poll(() => tile(page, "Ready"), { timeout: 30_000 }).toBeLessThan(5);

  // The order that waits goes on when the signal is sent from its page.
  await menu.getByRole("link", { name: /^Jobs/ }).click();
  await page.getByRole("combobox", { name: "Find jobs" }).fill("name:fulfil-order");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "fulfil-order", exact: true }).click();
  await page.getByRole("button", { name: "Send packed" }).click();
  await page.getByLabel("Data (JSON)").fill('{"boxes":2}');
  await page.getByRole("dialog").getByRole("button", { name: "Send" }).click();
  await page.getByText("Done at").first().waitFor();
  await page.getByText('"boxes"').first().waitFor();

  // And all of it is on the trail.
  await menu.getByRole("link", { name: /^Audit/ }).click();
  for (const action of ["jobs.retry", "queues.pause", "queues.resume", "workflows.signal"])
    await page.getByText(action).first().waitFor();
}, 120_000);
