// A frozen server, a done job's actions, the order and the name of a job's page, a broken locale, and a rejected browser.
import { expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { accessible, closeSites, openPage, site, useBrowser } from "./support.ts";

useBrowser();
closeSites();

test("[K3] a frozen server is shown as stale, and as live when it answers again", async () => {
  let thaw = Promise.resolve();
  let letGo = (): void => {};
  const own = await site({}, (handler) => {
    const held = async (request: Request, ...rest: never[]): Promise<Response> => {
      await thaw;
      const response = await (handler as (one: Request, ...more: never[]) => Promise<Response>)(
        request,
        ...rest,
      );
      if (response.body === null) return response;
      const body = response.body.pipeThrough(
        new TransformStream<Uint8Array, Uint8Array>({
          transform: async (chunk, out) => {
            await thaw;
            out.enqueue(chunk);
          },
        }),
      );
      return new Response(body, response);
    };
    return Object.assign(held, { close: () => handler.close() }) as unknown as typeof handler;
  });
  const page = await own.open("/", { noisy: true });
  const button = page.locator("header.top button[aria-pressed]");
  await button.filter({ hasText: "Live" }).waitFor();
  ({ promise: thaw, resolve: letGo } = Promise.withResolvers<void>());
  await button.filter({ hasText: /Last update \d+ s ago/ }).waitFor({ timeout: 40_000 });
  // Where there is no room for the words, the age alone.
  const size = page.viewportSize();
  await page.setViewportSize({ width: 390, height: 844 });
  await button
    .locator(".narrow-only")
    .getByText(/^\d+ s$/)
    .waitFor();
  if (size !== null) await page.setViewportSize(size);
  expect(await page.locator("header.top .live-dot.live").count()).toBe(0);
  letGo();
  await button.filter({ hasText: "Live" }).waitFor({ timeout: 40_000 });
});

test("[K3] a done job: retry asks first and is not primary; input and output come first; the title names it", async () => {
  const own = await site();
  const double = defineJob({
    name: "double",
    queue: "sums",
    run: async ({ n }: { n: number }) => ({ n: n * 2 }),
  });
  const { id } = await own.hf.enqueue(double, { n: 21 });
  const worker = own.hf.work([double], { queues: ["sums"] });
  await worker.ready;
  await worker.idle();
  const page = await own.open(`/jobs/${id}`);
  const retry = page.getByRole("button", { name: "Retry", exact: true });
  await retry.waitFor();
  expect(await retry.getAttribute("class")).not.toContain("primary");
  await retry.click();
  await page.getByRole("dialog").getByText("runs again").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("region", { name: "Output" }).waitFor();
  const panels = await page.locator("main section.panel h2").allInnerTexts();
  expect(panels.slice(0, 2)).toEqual(["Input", "Output"]);
  expect(await page.title()).toBe("double · Jobs · Holdfast");
  await page.locator(".crumbs").getByText("double").waitFor();
  await page.goto(`${own.url}/queues/sums`);
  await page.waitForSelector("main h1");
  expect(await page.title()).toBe("sums · Queues · Holdfast");
  await accessible(page);
});

test("[K3] charts are drawn where the browser's language is no language tag", async () => {
  const own = await site();
  await own.hf.enqueue("plain", null);
  const page = await own.open("/");
  await page.addInitScript(
    `Object.defineProperty(navigator, "language", { configurable: true, get: () => "en-US@posix" })`,
  );
  await page.reload();
  await page.locator(".chart canvas").first().waitFor();
});

test("[K3] a browser that auth rejects gets a page, and a client gets JSON", async () => {
  const own = await site({ auth: () => null });
  const refused = await fetch(`${own.url}/`, { headers: { accept: "application/json" } });
  expect([refused.status, refused.headers.get("content-type")]).toEqual([
    401,
    expect.stringContaining("json"),
  ]);
  const page = await openPage(own.url, "/", { noisy: true });
  await page.getByRole("heading", { name: "You are not signed in" }).waitFor();
  await accessible(page, ["document-title", "html-has-lang", "landmark-one-main"]);
});
