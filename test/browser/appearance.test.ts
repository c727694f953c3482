// How it can be made to look: high contrast on every screen, the system's own colours, and the switch between databases.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { dashboard } from "../../src/dashboard/handler.ts";
import { toNodeHandler } from "../../src/dashboard/node.ts";
import { type Holdfast, open, silentLogger } from "../../src/index.ts";
import type { Features, Filled } from "./data.ts";
import {
  accessible,
  busySite,
  choose,
  closeSites,
  findings,
  openPage,
  shot,
  type Site,
  TOKEN,
  useBrowser,
} from "./support.ts";
import { operatorOf } from "../../src/operate/operator.ts";

useBrowser();
closeSites();

let home: Site;
let filled: Filled;
let features: Features;
beforeAll(async () => {
  ({ home, filled, features } = await busySite());
  await home.hf.jobLog.flush();
}, 60_000);

const screens: readonly [string, () => string][] = [
  ["overview", () => "/"],
  ["jobs", () => "/jobs"],
  ["workflows", () => "/workflows?view=all"],
  ["batches", () => "/batches"],
  ["scheduled", () => "/scheduled"],
  ["retries", () => "/retries"],
  ["a dead job", () => `/jobs/${filled.ids.dead}`],
  ["a workflow", () => `/jobs/${features.workflow.done}`],
  ["a log", () => `/jobs/${features.workflow.done}?tab=log`],
  ["errors", () => "/errors"],
  ["queues", () => "/queues"],
  ["a queue", () => "/queues/crawl"],
  ["schedules", () => "/schedules"],
  ["workers", () => "/workers"],
  ["limits", () => "/limits"],
  ["database", () => "/database"],
  ["operations", () => "/operations"],
  ["audit", () => "/audit"],
];

describe.each([false, true])("high contrast, dark: %s", (dark) => {
  test.each(screens)("[K3] %s: nothing serious for axe, and text at 7 : 1", async (_name, path) => {
    const page = await home.open(path(), { dark, contrast: true });
    await page.waitForTimeout(300);
    await accessible(page);
    const faint = await findings(page, ["color-contrast-enhanced"]);
    expect(faint.map(({ html, failureSummary }) => `${html.slice(0, 120)} ${failureSummary}`)).toEqual([]);
  });
});

test("[K3] every kind of dialog is as good in the dark, and Escape closes it", async () => {
  const page = await home.open("/", { dark: true });
  const button =
    (name: string | RegExp, nth = 0) =>
    () =>
      page.getByRole("button", { name }).nth(nth).click();
  const inMenu = (on: string, verb: string) => () => choose(page, on, verb);
  const keys =
    (...all: string[]) =>
    async () => {
      for (const key of all) await page.keyboard.press(key);
    };
  const { groups } = await operatorOf(home.hf).store.insight.failureGroups({});
  const dead = groups.find((group) => group.dead > 1)!.group;
  const all = async (): Promise<void> => {
    await page.getByLabel("Select all on this page").check();
  };
  const dialogs: readonly [name: string, path: string, open: () => Promise<void>][] = [
    ["palette", "/", keys("Control+k")],
    ["help", "/", keys("?")],
    ["new job", "/jobs", button("New job")],
    ["columns", "/jobs", button("Columns")],
    ["export", "/jobs", button("Export")],
    ["save view", "/jobs?state=dead", button("Save view")],
    ["bulk retry", "/jobs?state=dead", () => all().then(keys("r"))],
    ["bulk delete", "/jobs?state=dead", () => all().then(keys("#"))],
    ["bulk edit", "/jobs?state=scheduled", () => all().then(keys("e"))],
    ["cancel one", `/jobs/${features.workflow.waiting}`, button("Cancel")],
    ["signal", `/jobs/${features.workflow.waiting}`, button(/^Send /)],
    ["edit one", `/jobs/${features.workflow.waiting}`, keys("e")],
    [
      "a step",
      `/jobs/${features.workflow.done}`,
      () => page.locator(".waterfall [role=option]").first().click(),
    ],
    ["resolve", `/errors/${dead}`, button("Resolve")],
    ["ignore", `/errors/${dead}`, button("Ignore")],
    ["change and retry", `/errors/${dead}`, button("Change and retry")],
    ["queue settings", "/queues/crawl", button("Settings")],
    ["next runs", "/schedules", inMenu("digest", "Next runs")],
    ["edit schedule", "/schedules", inMenu("digest", "Edit")],
    ["remove schedule", "/schedules", inMenu("digest", "Remove")],
    ["new hold", "/limits", button("New hold")],
    ["new budget", "/limits", button("New budget")],
    ["stop worker", "/workers", inMenu("web-1", "Stop")],
  ];
  const rules = [
    "color-contrast",
    "label",
    "button-name",
    "select-name",
    "aria-dialog-name",
    "scrollable-region-focusable",
  ];
  let at = "/";
  for (const [name, path, open] of dialogs) {
    if (path !== at) await page.goto(`${home.url}${path}`);
    await page.waitForSelector("main h1");
    if (path !== at) await page.waitForTimeout(250);
    at = path;
    await open().catch((error: unknown) => {
      throw new Error(`${name}: ${String(error)}`);
    });
    const dialog = page.getByRole("dialog");
    await dialog.waitFor();
    await dialog
      .getByText(/^Loading|^Looking/)
      .first()
      .waitFor({ state: "detached" });
    await accessible(page, rules, "dialog").catch((error: unknown) => {
      throw new Error(`${name}: ${String(error)}`);
    });
    await shot(page, `dialog-${name.replaceAll(" ", "-")}`);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  }
});

test("[K3] the band of a step that took no time at the end of its run is in sight", async () => {
  const page = await home.open(`/jobs/${features.workflow.done}`);
  await page.locator(".waterfall .band").first().waitFor();
  const beyond = `[...document.querySelectorAll(".band")].filter((band) =>
    band.getBoundingClientRect().right > band.parentElement.getBoundingClientRect().right + 0.5).length`;
  expect(await page.evaluate(beyond)).toBe(0);
});

test("[K3] in the system's own colours bars keep their length, and what is chosen has an edge", async () => {
  const page = await home.open(`/jobs/${features.workflow.done}`, { forced: true });
  const band = page.locator(".waterfall .band").first();
  await band.waitFor();
  const style = (selector: string, property: string): Promise<string> =>
    page.evaluate<string>(`getComputedStyle(document.querySelector("${selector}")).${property}`);
  expect(await style(".waterfall .band", "backgroundColor")).not.toBe(await style("body", "backgroundColor"));
  expect(await style(".state", "borderTopStyle")).toBe("solid");
  await accessible(page);
});

describe("several databases", () => {
  let url = "";
  const clients: Holdfast[] = [];
  let close = (): void => {};
  beforeAll(async () => {
    for (const name of ["main", "eu"]) {
      const hf = await open("sqlite::memory:", { logger: silentLogger });
      await hf.enqueue(`mail-of-${name}`, { name });
      clients.push(hf);
    }
    const handler = dashboard(
      { main: clients[0]!, eu: { hf: clients[1]!, readOnly: true, label: "Frankfurt" } },
      { auth: { token: TOKEN }, basePath: "/admin" },
    );
    const server = createServer(toNodeHandler(handler));
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/admin`;
    close = () => {
      handler.close();
      server.closeAllConnections();
      server.close();
    };
  });
  afterAll(async () => {
    close();
    for (const hf of clients) await hf.close();
  });

  test("[K3] the address says which; the switch leads to the same screen of the other, still signed in", async () => {
    const page = await openPage(url, "/", {});
    await page.waitForURL(/\/admin\/db\/main\/$/);
    await page.getByRole("link", { name: /^Jobs/ }).click();
    await page.getByText("mail-of-main").waitFor();
    await accessible(page);
    await page.getByRole("combobox", { name: "Database" }).selectOption("eu");
    await page.waitForURL(/\/admin\/db\/eu\/jobs$/);
    await page.getByText("mail-of-eu").waitFor();
    expect(await page.getByText("mail-of-main").count()).toBe(0);
    await page.getByText("read-only").waitFor();
    expect(await page.title()).toBe("Jobs · eu · Frankfurt · Holdfast");
    await page.goBack();
    await page.getByText("mail-of-main").waitFor();
    await page.reload();
    await page.getByText("mail-of-main").waitFor();
  });
});
