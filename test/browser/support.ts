// A dashboard on a real server, a page of a real browser on it, and what every test of a screen asks for: no error on the
// console, nothing that the content security policy had to stop, no serious finding by axe.
import { createServer, type Server } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import type { Browser, BrowserContext, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished } from "vitest";
import { dashboardWith, type DashboardHandler, type DashboardOptions } from "../../src/dashboard/handler.ts";
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
  /** Requests that the API refuses are, and nothing else. */
  readonly refused?: boolean;
  /** Default: that of `site`. */
  readonly token?: string;
}

export async function site(
  options: Partial<DashboardOptions> = {},
  /** Between the handler and its server. */
  through: (handler: DashboardHandler) => DashboardHandler = (handler) => handler,
): Promise<Site> {
  const hf = await open("sqlite::memory:", { logger: silentLogger, jobLog: true });
  const handler = dashboardWith(hf, { auth: { token: TOKEN }, ...options });
  const server: Server = createServer(toNodeHandler(through(handler)));
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
export async function busySite(
  options: Partial<DashboardOptions> = {},
): Promise<{ home: Site; filled: Filled; features: Features }> {
  const home = await site({ label: "test", ...options });
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
    if (given.refused === true && /status of 40[04]/.test(message.text())) return;
    if (message.type() === "error" && given.noisy !== true)
      trouble.push(`console: ${message.text()} (${message.location().url})`);
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
  await page.waitForSelector("main h1, main .panel, main.sign-in");
  return page;
}

/**
 * What axe finds, of all its rules and the size of targets, or of these; on the whole page, or within. Not by AxeBuilder, which
 * parses axe's half a megabyte twice for each look and opens a page to add up what it found in frames: we have none.
 */
export async function findings(page: Page, rules?: readonly string[], within?: string): Promise<Finding[]> {
  if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(axeSource);
  // WCAG 2.2 asks for targets of 24 pixels; axe leaves that rule off unless it is asked for.
  const which =
    rules === undefined
      ? { rules: { "target-size": { enabled: true } } }
      : { runOnly: { type: "rule", values: rules } };
  const options = JSON.stringify({ ...which, resultTypes: ["violations"] });
  const context = within === undefined ? "document" : JSON.stringify(within);
  return page.evaluate<Finding[]>(`axe.run(${context}, ${options}).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => ({ id, html, failureSummary }))))`);
}

export interface Finding {
  readonly id: string;
  readonly html: string;
  readonly failureSummary: string;
}

const axe: unknown = createRequire(import.meta.resolve("@axe-core/playwright"))("axe-core");
const { source: axeSource } = axe as { source: string };

/** Opens the menu of a row, which is called by what it acts on, and gives its entries. */
export async function menuOf(within: Page | Locator, on: string | RegExp): Promise<Locator> {
  const name = typeof on === "string" ? `Actions for ${on}` : on;
  const opener = within.getByRole("button", { name, exact: true });
  if ((await opener.getAttribute("aria-expanded")) !== "true") await opener.click();
  return within.getByRole("menuitem");
}

/** Chooses from the menu of a row. */
export async function choose(within: Page | Locator, on: string | RegExp, verb: string): Promise<void> {
  await (await menuOf(within, on)).and(within.getByRole("menuitem", { name: verb, exact: true })).click();
}

/** What the menu of a row offers. */
export async function offered(within: Page | Locator, on: string | RegExp): Promise<string[]> {
  const all = await (await menuOf(within, on)).allInnerTexts();
  await within.getByRole("menu").press("Escape");
  return all.map((text) => text.trim());
}

/** Waits until the menu of a row offers this. */
export async function offers(within: Page | Locator, on: string | RegExp, verb: string): Promise<void> {
  await (await menuOf(within, on)).and(within.getByRole("menuitem", { name: verb, exact: true })).waitFor();
  await within.getByRole("menu").press("Escape");
}

/** No finding of axe at all. */
export async function accessible(page: Page, rules?: readonly string[], within?: string): Promise<void> {
  const found = await findings(page, rules, within);
  expect(found.map(({ id, html }) => `${id}: ${html.slice(0, 160)}`)).toEqual([]);
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
