// A dashboard on a real server, a page of a real browser on it, and what every test of a screen asks for: no error on the
// console, nothing that the content security policy had to stop, no serious finding by axe.
import { AxeBuilder } from "@axe-core/playwright";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished } from "vitest";
import { type Adapters, adaptersOf } from "../../src/dashboard/adapters.ts";
import { dashboardWith, type DashboardOptions } from "../../src/dashboard/handler.ts";
import { toNodeHandler } from "../../src/dashboard/node.ts";
import { type Holdfast, open, silentLogger } from "../../src/index.ts";
import { launch } from "./chromium.ts";
import { type Features, type Filled, fill, fillFeatures, jobsOf } from "./data.ts";

export const TOKEN = "browser-test-token-0123456789";

let browser: Browser | null = null;

/** One browser for a file. */
export function useBrowser(): void {
  beforeAll(async () => {
    browser = await launch();
  }, 60_000);
  afterAll(() => browser?.close());
}

export interface Site {
  readonly hf: Holdfast;
  readonly url: string;
  /** A page that is signed in, at this path. */
  open(path: string, options?: PageOptions): Promise<Page>;
}

export interface PageOptions {
  readonly dark?: boolean;
  /** The system wishes for more contrast. */
  readonly contrast?: boolean;
  /** The system's own colours. */
  readonly forced?: boolean;
  readonly width?: number;
  readonly height?: number;
  /** Errors on the console are the test's own. */
  readonly noisy?: boolean;
  /** Default: that of `site`. */
  readonly token?: string;
}

export async function site(
  options: Partial<DashboardOptions> = {},
  adapters: (hf: Holdfast) => Adapters = adaptersOf,
): Promise<Site> {
  const hf = await open("sqlite::memory:", { logger: silentLogger, jobLog: true });
  const handler = dashboardWith(hf, { auth: { token: TOKEN }, ...options }, adapters(hf));
  const server: Server = createServer(toNodeHandler(handler));
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${options.basePath ?? ""}`;
  const contexts: BrowserContext[] = [];
  const closed = async (): Promise<void> => {
    await Promise.all(contexts.map((context) => context.close()));
    handler.close();
    server.closeAllConnections();
    server.close();
    await hf.close();
  };
  sites.push(closed);
  return { hf, url, open: (path, given = {}) => openPage(url, path, given, contexts) };
}

/** A site with everything that can be shown, and a worker that is at work. */
export async function busySite(): Promise<{ home: Site; filled: Filled; features: Features }> {
  const home = await site({ label: "test" });
  const filled = await fill(home.hf);
  await home.hf.holds.set("session-expired", { queues: ["media"], reason: "log in again" });
  filled.letGo();
  const features = await fillFeatures(home.hf);
  // Its last minute is written down when it stops.
  await filled.worker.stop();
  home.hf.work(Object.values(jobsOf(Promise.resolve())), { queues: { crawl: 6 }, name: "web-1" });
  return { home, filled, features };
}

/** Sites outlive a test: those of a file are closed at its end. */
const sites: (() => Promise<void>)[] = [];
export function closeSites(): void {
  afterAll(() => Promise.all(sites.splice(0).map((close) => close())));
}

/** A page on a server of any making. */
export async function openPage(
  url: string,
  path: string,
  given: PageOptions,
  contexts: BrowserContext[] = [],
): Promise<Page> {
  const context = await browser!.newContext({
    locale: "en-US",
    timezoneId: "Europe/Berlin",
    colorScheme: given.dark === true ? "dark" : "light",
    viewport: { width: given.width ?? 1360, height: given.height ?? 900 },
    reducedMotion: "reduce",
    contrast: given.contrast === true ? "more" : "no-preference",
    forcedColors: given.forced === true ? "active" : "none",
  });
  contexts.push(context);
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const trouble: string[] = [];
  page.on("pageerror", (error) => trouble.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error" && given.noisy !== true) trouble.push(`console: ${message.text()}`);
  });
  page.on("dialog", (dialog) => {
    trouble.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(new URL(url).origin) && !request.url().startsWith("data:"))
      trouble.push(`request: ${request.url()}`);
  });
  onTestFinished(async () => {
    await context.close();
    expect(trouble).toEqual([]);
  });
  const [address, query = ""] = path.split("?");
  await page.goto(`${url}${address}${query === "" ? "" : `?${query}`}#token=${given.token ?? TOKEN}`);
  await page.waitForSelector("main h1, main .panel, main.gate");
  return page;
}

/** No finding of axe that is serious or critical; of all its rules, or of these; on the whole page, or within. */
export async function accessible(page: Page, rules?: readonly string[], within?: string): Promise<void> {
  const whole = new AxeBuilder({ page });
  const axe = within === undefined ? whole : whole.include(within);
  const { violations } = await (rules === undefined ? axe : axe.withRules([...rules])).analyze();
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  expect(
    serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`),
  ).toEqual([]);
}

/** Nothing wider than the window. */
export async function fits(page: Page): Promise<void> {
  const overflow = await page.evaluate(
    "document.documentElement.scrollWidth - document.documentElement.clientWidth",
  );
  expect(overflow).toBeLessThanOrEqual(0);
}

const shots = process.env["HOLDFAST_SHOTS"];

/** A picture for the eye, where a directory for them is named. */
export async function shot(page: Page, name: string): Promise<void> {
  if (shots !== undefined) await page.screenshot({ path: `${shots}/${name}.png` });
}
