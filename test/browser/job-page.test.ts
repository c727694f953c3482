// One job's page in a real browser: its steps in three views with one choice, a long history to its first step, what was done to
// it, errors and values that fold, and looking at a job from a list.
import { beforeAll, describe, expect, test } from "vitest";
import * as z from "zod";
import { defineJob, fixed } from "../../src/index.ts";
import { accessible, closeSites, fits, shot, type Site, site, useBrowser } from "./support.ts";

useBrowser();
closeSites();

let home: Site;
let run = "";
let asleep = "";
let long = "";
let broken = "";
let wide = "";
let misfit = "";

const deep = (): Error => {
  const cause = new Error("the socket closed");
  cause.stack = "Error: the socket closed\n    at read (/app/src/net.ts:4:2)";
  const error = new Error("charge failed", { cause });
  error.stack = [
    "Error: charge failed",
    "    at charge (/app/src/pay.ts:10:3)",
    "    at run (/app/node_modules/lib/a.js:1:1)",
    "    at next (/app/node_modules/lib/b.js:2:2)",
    "    at process.processTicks (node:internal/process:1:1)",
    "    at main (/app/src/main.ts:7:1)",
  ].join("\n");
  return error;
};

beforeAll(async () => {
  const mail = defineJob({
    name: "mail",
    queue: "mail",
    input: z.object({ to: z.string(), big: z.unknown().optional(), many: z.unknown().optional() }),
    run: async (_input, ctx) => {
      await ctx.progress({ done: 3, total: 12 });
      return { big: "12345678901234567890" };
    },
  });
  home = await site({ jobs: [mail] });
  const { hf } = home;
  const order = defineJob({
    name: "order",
    queue: "runs",
    retry: { attempts: 1 },
    run: async (input: { nap: boolean }, ctx) => {
      await ctx.step("reserve", () => ({ shelf: "B12", password: "hunter2" }));
      await ctx.step(
        "charge",
        ({ attempt }) => {
          if (attempt < 3) throw new Error("503 from the bank");
          return { charged: 1 };
        },
        { retry: { attempts: 3, backoff: fixed(30) } },
      );
      await ctx.sleep("cool-off", input.nap ? "2h" : 20);
      return null;
    },
  });
  const many = defineJob({
    name: "many",
    queue: "runs",
    run: async (_: null, ctx) => {
      await ctx.all(Array.from({ length: 1_300 }, (_unused, n) => ctx.step(`s${n}`, () => n)));
    },
  });
  const fails = defineJob({
    name: "fails",
    queue: "runs",
    retry: { attempts: 1 },
    run: () => {
      throw deep();
    },
  });
  const worker = hf.work([mail, order, many, fails], { queues: { runs: 4, mail: 2 }, name: "web-1" });
  await worker.ready;
  run = (await hf.enqueue(order, { nap: false })).id;
  asleep = (await hf.enqueue(order, { nap: true })).id;
  long = (await hf.enqueue(many, null)).id;
  broken = (await hf.enqueue(fails, null)).id;
  const items = Array.from({ length: 150 }, (_, n) => ({ sku: `sku-${n}`, note: "n".repeat(20) }));
  wide = (await hf.enqueue("mail", { to: "ann", big: { items }, many: "x".repeat(900) }, { queue: "mail" }))
    .id;
  misfit = (await hf.enqueue("mail", { to: 7 }, { queue: "nowhere" })).id;
  for (const id of [run, wide]) await hf.result(id, { timeout: "30s" });
  await hf.result(long, { timeout: "60s" });
  const until = async (is: () => Promise<boolean>): Promise<void> => {
    while (!(await is())) await new Promise((next) => setTimeout(next, 20));
  };
  await until(async () => (await hf.jobs.get(asleep))?.waitsFor === "sleep");
  await until(async () => (await hf.jobs.get(broken))?.state === "dead");
}, 120_000);

describe.each([{ dark: false }, { dark: true }])("a step, dark: $dark", ({ dark }) => {
  test("[K3] opens from the graph, the waterfall and the table, and is marked in all of them", async () => {
    const page = await home.open(`/jobs/${run}`, { dark });
    const graph = page.getByRole("group", { name: /^Workflow graph/ });
    const node = graph.getByRole("button", { name: /^charge\s*step · done$/ });
    await node.click();
    const drawer = page.getByRole("dialog", { name: "Step charge" });
    await drawer.getByText("succeeded").waitFor();
    await drawer
      .getByText(/after the previous one/)
      .first()
      .waitFor();
    await drawer.getByText('"charged"').waitFor();
    await accessible(page);
    await shot(page, `step-drawer${dark ? "-dark" : ""}`);
    // To the next, without going back.
    await drawer.getByRole("button", { name: "After" }).click();
    await page.getByRole("dialog", { name: "Step cool-off" }).waitFor();
    await page.keyboard.press("Escape");
    await expect.poll(() => graph.locator(".node.chosen").textContent()).toContain("cool-off");
    const lines = page.getByRole("listbox", { name: /Waterfall of steps/ });
    expect(await lines.locator(".line.marked").textContent()).toContain("cool-off");
    await page.getByText(/^Table of steps:/).click();
    const table = page.getByRole("region", { name: "Table of steps" });
    expect(await table.locator("tr.current").textContent()).toContain("cool-off");
    // With the keyboard alone: a choice in one view is seen in the others, and each opens it.
    await lines.focus();
    await page.keyboard.press("Home");
    await expect.poll(() => graph.locator(".node.chosen").textContent()).toContain("reserve");
    await table.getByRole("button", { name: "charge", exact: true }).focus();
    await page.keyboard.press("Enter");
    await drawer.waitFor();
    await page.keyboard.press("Escape");
    await expect.poll(() => drawer.count()).toBe(0);
    await node.focus();
    await page.keyboard.press("Enter");
    await drawer.waitFor();
    await page.keyboard.press("Escape");
    // The focus is where it was.
    await expect.poll(() => page.evaluate<string>("document.activeElement.textContent")).toMatch(/^charge/);
  });
});

test("[K3] a sleep says how long it still is, by the second, and can be skipped there; an address can name a step", async () => {
  const page = await home.open(`/jobs/${asleep}?step=2`);
  const drawer = page.getByRole("dialog", { name: "Step cool-off" });
  const left = drawer.getByRole("timer");
  const first = await left.textContent();
  expect(first).toMatch(/h|min/);
  await drawer.getByRole("button", { name: "Skip cool-off" }).click();
  await expect.poll(() => drawer.count()).toBe(0);
  await page.locator("h1 + .state.done").waitFor();
});

test("[K3] the table of steps goes back to the first of 1,300, a page at a time", async () => {
  const page = await home.open(`/jobs/${long}`);
  const panel = page.getByRole("region", { name: "Steps", exact: true });
  const fold = panel.getByText(/^Table of steps:/);
  await fold.waitFor();
  // Its rows are not drawn before somebody wants to see them.
  expect(await panel.locator("tr").count()).toBe(0);
  await fold.click();
  await panel.getByText("Steps 1,101 to 1,300").waitFor();
  const older = panel.getByRole("button", { name: "Older steps" });
  for (const words of ["901 to 1,100", "801 to 900", "601 to 800", "401 to 600", "201 to 400", "1 to 200"]) {
    await older.click();
    await panel.getByText(new RegExp(`^Steps .*${words.split(" to ")[1]}$`)).waitFor();
    if (await panel.getByText("Steps 1 to 200").count()) break;
  }
  await panel.getByText("Steps 1 to 200").waitFor();
  await panel.getByRole("button", { name: "s0", exact: true }).waitFor();
  expect(await older.isDisabled()).toBe(true);
  await panel.getByRole("button", { name: "Newer steps" }).click();
  await panel.getByRole("button", { name: "s200", exact: true }).waitFor();
});

test("[K3] the history is read as lines, newest first, in pages", async () => {
  const page = await home.open(`/jobs/${long}`);
  await page.getByRole("link", { name: "Lines" }).click();
  const lines = page.getByRole("region", { name: "History entries" });
  await lines.getByText('"name":"s1299"').waitFor();
  expect(await lines.locator("li").count()).toBe(100);
  await page.getByRole("button", { name: "Earlier lines" }).click();
  await lines.getByText('"name":"s1150"').waitFor();
  const text = (await lines.locator("li").first().textContent()) ?? "";
  expect(JSON.parse(text)).toMatchObject({ seq: 1_299, name: "s1299", state: "done", output: 1_299 });
  await accessible(page);
});

test("[K3] what was done to a job is on its page, for who may see it", async () => {
  const page = await home.open(`/jobs/${misfit}`);
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByRole("button", { name: "Resume" }).waitFor();
  await page.getByRole("link", { name: "Events" }).click();
  const events = page.getByRole("region", { name: "Events" });
  await events.getByText("jobs.pause").waitFor();
  expect(await events.locator("tbody tr").count()).toBe(1);
  await accessible(page);
  const other = await home.open(`/jobs/${run}?tab=events`, { dark: true, width: 390 });
  await other.getByText("No actions yet").waitFor();
  await fits(other);
  await accessible(other);
  const viewer = await site({ auth: () => ({ name: "eve", role: "viewer" }) });
  const { id } = await viewer.hf.enqueue("a", null);
  const hidden = await viewer.open(`/jobs/${id}`);
  await hidden.getByRole("link", { name: "Log" }).waitFor();
  expect(await hidden.getByRole("link", { name: "Events" }).count()).toBe(0);
});

test("[K3] frames of libraries fold, and the chain of causes stays", async () => {
  const page = await home.open(`/jobs/${broken}`);
  const stack = page.getByRole("group", { name: "Stack" });
  await stack.getByText("pay.ts").waitFor();
  const fold = stack.getByRole("button", { name: "3 library frames" });
  expect(await stack.getByText("node_modules").count()).toBe(0);
  expect(await stack.textContent()).toContain("the socket closed");
  await fold.focus();
  await page.keyboard.press("Enter");
  await stack.getByText("node_modules").first().waitFor();
  await accessible(page);
  await shot(page, "stack-folded");
});

test.each([{ dark: false }, { dark: true }])(
  "[K3] large values fold, progress is a bar, and an input says whether it fits; dark: $dark",
  async ({ dark }) => {
    const page = await home.open(`/jobs/${wide}`, { dark });
    const input = page.getByRole("region", { name: "Input", exact: true }).last();
    await page.getByText("matches its schema").waitFor();
    const items = input.locator("summary").filter({ hasText: "big" });
    await items.waitFor();
    expect(await input.getByText("sku-0").count()).toBe(0);
    await items.focus();
    await page.keyboard.press("Enter");
    await input.locator("summary").filter({ hasText: "150 items" }).click();
    await input.getByText('"sku-99"').waitFor();
    await input.getByRole("button", { name: "50 more" }).click();
    await input.getByText('"sku-149"').waitFor();
    await accessible(page);
    await shot(page, `values${dark ? "-dark" : ""}`);
    const bar = page.getByRole("progressbar", { name: "Progress" });
    expect(await bar.getAttribute("aria-valuenow")).toBe("25");
    await page.getByText("3 of 12").waitFor();
    const bad = await home.open(`/jobs/${misfit}`, { dark });
    await bad.getByText("does not match its schema").waitFor();
    await accessible(bad);
  },
);

test("[K3] copying works without the clipboard of safe origins, and says when it does not", async () => {
  const page = await home.open(`/jobs/${run}`);
  await page.evaluate(`Object.defineProperty(navigator, "clipboard", { value: undefined })`);
  await page.getByRole("button", { name: "Copy the id" }).click();
  await page.getByText("Copied").waitFor();
  await page.evaluate(`document.execCommand = () => false`);
  await page.getByRole("button", { name: "Copy the id" }).click();
  const dialog = page.getByRole("dialog", { name: "Copy" });
  await dialog.getByText("Not copied").waitFor();
  expect(await dialog.getByLabel("Text to copy").inputValue()).toBe(run);
  expect(await page.evaluate("getSelection()?.toString() ?? ''")).toBe(run);
  await accessible(page);
});

test("[K3] a job is looked at from its list, by key and button, and the list stays", async () => {
  const page = await home.open("/jobs");
  await page.getByRole("button", { name: "Preview fails" }).click();
  const drawer = page.getByRole("dialog", { name: "Job fails" });
  await drawer.getByText("charge failed").first().waitFor();
  await accessible(page);
  await shot(page, "row-preview");
  await page.keyboard.press("Escape");
  await page.keyboard.press("j");
  await page.keyboard.press("v");
  await page.getByRole("dialog", { name: /^Job / }).waitFor();
  expect(new URL(page.url()).pathname).toBe("/jobs");
  await page.getByRole("link", { name: "Open its page" }).click();
  await page.getByRole("navigation", { name: "Job views" }).waitFor();
  expect(await page.getByRole("dialog").count()).toBe(0);
  const narrow = await home.open("/jobs", { width: 360, dark: true });
  await narrow.getByRole("button", { name: "Preview fails" }).click();
  await narrow.getByRole("dialog", { name: "Job fails" }).getByText("charge failed").first().waitFor();
  await fits(narrow);
  await accessible(narrow);
});

test("[K3] workflows that are stuck: how long is chosen, and the address keeps it", async () => {
  const page = await home.open("/workflows?view=slow");
  await page.getByText("No such run").waitFor();
  await page.getByLabel("At the same step for").selectOption("1h");
  expect(new URL(page.url()).searchParams.get("for")).toBe("1h");
  const asked = page.waitForRequest((request) => request.url().includes("at=86400000"));
  await page.getByLabel("At the same step for").selectOption("1d");
  await asked;
  await accessible(page);
});

test("[J6] a job's page changes as the job does, without a request; a large input comes once, and an idle page asks for nothing", async () => {
  const { hf } = home;
  const { id } = await hf.enqueue("by-hand", { note: "y".repeat(1_000_000) }, { queue: "by-hand" });
  const page = await home.open("/audit");
  const asked: string[] = [];
  let inputs = 0;
  page.on("response", async (response) => {
    const { pathname, search } = new URL(response.url());
    if (!pathname.includes("/api/")) return;
    if (!pathname.endsWith("/stream")) asked.push(pathname + search);
    if (/\/jobs\/[0-9a-f-]+$/.test(pathname) && (await response.text().catch(() => "")).includes("yyyy"))
      inputs += 1;
  });
  const followed = page.waitForRequest(
    (request) => request.url().includes(`job%3A${id}`) && request.url().includes(`run%3A${id}`),
  );
  asked.length = 0;
  await page.goto(`${home.url}/jobs/${id}`);
  const state = page.locator(".head .state");
  await state.getByText("ready").waitFor();
  await followed;
  // What every page asks for when it opens, and this one.
  const opened = ["/about", "/me", "/recent", `/jobs/${id}`].concat(
    ["history", "check"].map((part) => `/jobs/${id}/${part}`),
  );
  await expect
    .poll(() => opened.filter((path) => !asked.includes(`/api/v1${path}`)), { timeout: 20_000 })
    .toEqual([]);
  const before = asked.length;
  const [lease] = await hf.lease({ queues: ["by-hand"], limit: 1, for: "10m" });
  await state.getByText("running").waitFor();
  await hf.enqueue("elsewhere", {}, { delay: "1h" });
  await hf.jobs.pause(id);
  await page.getByText("Pause requested").waitFor();
  expect(asked.slice(before)).toEqual([]);
  // Its output is new, and so it is asked for; the input is there already.
  await lease!.done({ sent: "to the printer" });
  await state.getByText("done").waitFor();
  await page.getByText("to the printer").first().waitFor();
  expect(inputs).toBe(1);
  await page.close();
});
