// The workers' screen: what each runs, by name and also on a phone; what runs it; and who died with jobs in hand.
import { expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { accessible, closeSites, fits, shot, site, useBrowser } from "./support.ts";
import { operatorOf } from "../../src/operate/operator.ts";

useBrowser();
closeSites();

test("[K3] running jobs by name and link, the id to copy, the runtime; and workers that died, light, dark and narrow", async () => {
  const own = await site();
  const done = Promise.withResolvers<void>();
  const slow = defineJob({ name: "build-report", queue: "reports", run: () => done.promise });
  const worker = own.hf.work([slow], { queues: { reports: 8 }, name: "web-1", release: "build-41" });
  const made = await own.hf.enqueueMany(Array.from({ length: 7 }, (_, input) => ({ job: slow, input })));
  await expect.poll(() => worker.running, { timeout: 20_000 }).toBe(7);
  await operatorOf(own.hf).store.sessions.open({
    kind: "worker",
    workerId: "019aaaaa-0000-7000-8000-00000000dead",
    name: "web-2",
    host: "vm-2",
    pid: 77,
    version: "0",
    queues: {},
    names: [],
    leaseMs: 1,
  });
  for (const given of [{}, { dark: true }, { width: 360, height: 800 }, { width: 320, height: 640 }]) {
    const page = await own.open("/workers", given);
    const row = page.getByRole("row", { name: /web-1/ });
    await row.getByText(`node ${process.versions.node}`).first().waitFor();
    await shot(page, `workers-${JSON.stringify(given).replaceAll(/\W+/g, "-")}`);
    await row.getByRole("button", { name: "web-1, details" }).click();
    const about = page.getByRole("dialog");
    await about
      .getByRole("link", { name: /^build-report/ })
      .nth(4)
      .waitFor();
    await about.getByRole("link", { name: "All 7" }).waitFor();
    await about.getByText(worker.id).waitFor();
    await about.getByText("build-41").waitFor();
    await about.getByRole("button", { name: "Copy the id" }).waitFor();
    await shot(page, `worker-${JSON.stringify(given).replaceAll(/\W+/g, "-")}`);
    await accessible(page);
    await fits(page);
    await page.keyboard.press("Escape");
    const died = page.getByRole("region", { name: "Died in the last hour" });
    await died.getByText("web-2").waitFor();
    await died.getByText("none left").waitFor();
    await accessible(page);
    await fits(page);
  }
  const page = await own.open("/workers");
  await page.getByRole("button", { name: "web-1, details" }).click();
  await page.getByRole("link", { name: "All 7" }).click();
  await page.getByText("7 jobs shown of 7").waitFor();
  await page.goto(`${own.url}/workers`);
  await page.getByRole("button", { name: "web-1, details" }).click();
  await page
    .getByRole("link", { name: /^build-report/ })
    .first()
    .click();
  await page.getByText("Facts").waitFor();
  expect(made.map(({ id }) => id)).toContain(page.url().split("/").at(-1));
  done.resolve();
});
