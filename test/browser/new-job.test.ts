// A new job in a real browser: kinds to choose from, recent inputs, a form of the kind's schema; and a job copied as text.
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { defineJob, defineSignal } from "../../src/index.ts";
import type { JobDetail } from "../../src/dashboard/api/contract.ts";
import { accessible, closeSites, fits, shot, type Site, site, TOKEN, useBrowser } from "./support.ts";
import { operatorOf } from "../../src/operate/operator.ts";

useBrowser();
closeSites();

const invite = defineJob({
  name: "send-invite",
  queue: "mail",
  input: z.object({
    to: z.email().describe("Whom to write to"),
    seats: z.int().min(1).optional(),
    plan: z.enum(["free", "pro", "team"]).default("free"),
    urgent: z.boolean().optional(),
    note: z.string().nullable().optional(),
    tags: z.array(z.string()).optional(),
    accessToken: z.string().optional(),
  }),
  run: () => {},
});
const packed = defineSignal({
  name: "packed",
  data: z.object({ boxes: z.int().describe("How many"), by: z.string().optional() }),
});
const order = defineJob({
  name: "order",
  queue: "orders",
  signals: [packed],
  run: async (key: string, ctx) => ctx.waitFor("packed", { key }),
});
const plain = defineJob({ name: "plain", run: async (_input: unknown) => {} });
// Known to workers elsewhere alone; nothing was ever enqueued.
const fresh = defineJob({ name: "never-yet", lane: (n: number) => String(n), run: async (_n: number) => {} });

const dialog = (page: Page) => page.getByRole("dialog", { name: "New job" });
/** A field of the form, by what is read out for it. */
const member = (page: Page, key: string) =>
  dialog(page).getByRole("textbox", { name: new RegExp(`^${key}`) });
const focused = (page: Page): Promise<string> =>
  page.evaluate<string>("document.activeElement.id || document.activeElement.textContent.trim()");
const copied = (page: Page): Promise<string> => page.evaluate<string>("navigator.clipboard.readText()");
const stored = async (name: string): Promise<string> => {
  const { jobs } = await operatorOf(home.hf).store.insight.browse(
    { names: [name] },
    { limit: 1, cursor: null },
  );
  return (await operatorOf(home.hf).store.insight.inspect(jobs[0]!.id))!.input;
};

const eventually = { timeout: 10_000, interval: 50 };

let home: Site;
beforeAll(async () => {
  home = await site({ jobs: [invite], basePath: "/admin/jobs" });
  const worker = home.hf.work([fresh], { queues: ["nowhere"] });
  await worker.ready;
  await worker.stop();
  const to = ["ann", "bob", "ann", "carla", "dmitri", "eve", "farid"].map((who) => `${who}@example.org`);
  for (const [n, who] of to.entries())
    await home.hf.enqueue(invite, {
      to: who,
      seats: who.startsWith("ann") ? 1 : n,
      ...(who.startsWith("eve") ? { accessToken: "tok_1234567" } : {}),
    });
  await home.hf.enqueue(plain, { cookie: "secret", n: 1 }, { queue: "other", key: "it's\nhere", lane: "l" });
}, 60_000);

async function newJob(page: Page, name: string): Promise<void> {
  await page.getByRole("button", { name: "New job" }).click();
  await dialog(page).getByLabel("Name").fill(name);
}

test("[K3] a signal that the kind declares is sent by a form: what the schema refuses is told at its field, and JSON is the other way", async () => {
  const worker = home.hf.work([order], { queues: { orders: 2 } });
  const [first, second] = [await home.hf.enqueue(order, "o-1"), await home.hf.enqueue(order, "o-2")];
  for (const { id } of [first, second])
    while ((await home.hf.jobs.get(id))?.waitsFor !== "signal")
      await new Promise((resolve) => setTimeout(resolve, 5));
  const page = await home.open(`/jobs/${first.id}`, { refused: true });
  const asked = page.getByRole("dialog", { name: "Send packed" });
  await page.getByRole("button", { name: "Send packed" }).click();
  await asked.getByText("How many").waitFor();
  await asked.getByRole("textbox", { name: /^by/ }).fill("Ada");
  await asked.getByRole("button", { name: "Send" }).click();
  await asked.getByText("Not sent.").waitFor();
  await expect.poll(() => focused(page), eventually).toBe("member-0");
  await accessible(page);
  await shot(page, "signal-form");
  await asked.getByRole("textbox", { name: /^boxes/ }).fill("2");
  await asked.getByRole("button", { name: "Send" }).click();
  expect(await home.hf.result(first, { timeout: "30s" })).toEqual({ boxes: 2, by: "Ada" });

  const narrow = await home.open(`/jobs/${second.id}`, { width: 360, height: 740, dark: true });
  await narrow.getByRole("button", { name: "Send packed" }).click();
  const again = narrow.getByRole("dialog", { name: "Send packed" });
  await again.getByText("How many").waitFor();
  await accessible(narrow);
  await fits(narrow);
  await shot(narrow, "signal-form-narrow");
  await again.getByRole("button", { name: "JSON" }).click();
  await again.getByLabel("Data (JSON)").fill('{"boxes":3}');
  await again.getByRole("button", { name: "Send" }).click();
  expect(await home.hf.result(second, { timeout: "30s" })).toEqual({ boxes: 3 });
  await worker.stop();
});

describe("[K3] a new job", () => {
  test("kinds are suggested and chosen by keyboard; the form enqueues what its fields say", async () => {
    const page = await home.open("/jobs", { noisy: true });
    await page.getByRole("button", { name: "New job" }).click();
    const name = dialog(page).getByRole("combobox", { name: "Name" });
    await name.press("ArrowDown");
    await dialog(page).getByRole("option", { name: "never-yet no job yet" }).waitFor();
    await accessible(page);
    await shot(page, "new-job-kinds");
    await name.pressSequentially("invite");
    await dialog(page).getByRole("option").nth(1).waitFor({ state: "detached" });
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    expect(await name.inputValue()).toBe("send-invite");
    const to = member(page, "to required");
    await to.waitFor();
    await dialog(page).getByText("Whom to write to").waitFor();
    // What is not there is needed: no library's words for it.
    await dialog(page).getByRole("button", { name: "Enqueue" }).click();
    await dialog(page).getByText("Required", { exact: true }).waitFor();
    expect(
      await dialog(page)
        .getByText(/undefined/)
        .count(),
    ).toBe(0);
    await to.fill("nobody");
    await member(page, "seats").fill("a few");
    await dialog(page).getByText("Not an integer").waitFor();
    await dialog(page).getByRole("button", { name: "Enqueue" }).click();
    await dialog(page).getByText("Invalid value: seats.").waitFor();
    await member(page, "seats").fill("0");
    await member(page, "tags").fill('["a", "b"]');
    await dialog(page).getByRole("combobox", { name: "plan" }).selectOption("pro");
    await dialog(page).getByRole("combobox", { name: "urgent" }).selectOption("false");
    await dialog(page).getByRole("button", { name: "Enqueue" }).click();
    // What the server's schema found, at its field, which has the focus.
    await dialog(page).getByText("Invalid email address").waitFor();
    await dialog(page)
      .getByText(/expected number to be >=1/)
      .waitFor();
    await expect.poll(() => focused(page), eventually).toBe("member-0");
    expect(await to.getAttribute("aria-invalid")).toBe("true");
    await accessible(page);
    await shot(page, "new-job-issues");
    await to.fill("zoe@example.org");
    await member(page, "seats").fill("3");
    await to.press("Enter");
    await page.locator(".toast").getByText("Enqueued", { exact: true }).waitFor();
    expect(JSON.parse(await stored("send-invite"))).toEqual({
      to: "zoe@example.org",
      seats: 3,
      tags: ["a", "b"],
      plan: "pro",
      urgent: false,
    });
  });

  test("form and JSON are in step, and what the form has no field for stays", async () => {
    const page = await home.open("/jobs", { noisy: true });
    await newJob(page, "send-invite");
    await member(page, "to required").fill("q@example.org");
    await dialog(page).getByRole("button", { name: "JSON", exact: true }).click();
    const json = dialog(page).getByLabel("Input (JSON)");
    expect(JSON.parse(await json.inputValue())).toEqual({ to: "q@example.org" });
    await json.fill('{"to": 5, "seats": 12345678901234567890, "more": {"x": 1.0}}');
    await dialog(page).getByRole("button", { name: "Form", exact: true }).click();
    expect(await member(page, "seats").inputValue()).toBe("12345678901234567890");
    expect(await member(page, "to required").inputValue()).toBe("5");
    await dialog(page).getByText("Only editable as JSON: more").waitFor();
    await member(page, "to required").fill('"w@example.org"');
    await member(page, "note").fill("hello");
    await dialog(page).getByRole("button", { name: "JSON", exact: true }).click();
    expect(await json.inputValue()).toBe(
      '{\n  "to": "w@example.org",\n  "seats": 12345678901234567890,\n  "more": {\n    "x": 1.0\n  },\n  "note": "hello"\n}',
    );
    await json.fill("[1");
    expect(await dialog(page).getByRole("button", { name: "Form", exact: true }).isDisabled()).toBe(true);
    await json.fill('{"to": "x", "tags": [1]}');
    await dialog(page).getByRole("button", { name: "Enqueue" }).click();
    await dialog(page).getByText("tags[0]").waitFor();
    await accessible(page);
    await page.keyboard.press("Escape");
    await dialog(page).waitFor({ state: "detached" });
  });

  test("recent inputs fill it with one click; a redacted one is not enqueued as it is", async () => {
    const page = await home.open("/jobs", { noisy: true });
    const asked: string[] = [];
    const lists: string[] = [];
    page.on("request", (request) => {
      const { pathname, search } = new URL(request.url());
      asked.push(pathname);
      if (pathname.endsWith("/api/v1/jobs")) lists.push(search);
    });
    await newJob(page, "send-invite");
    const recent = dialog(page).getByRole("list", { name: "Recent inputs" }).getByRole("button");
    await expect.poll(() => recent.count(), eventually).toBe(5);
    // One list, and a few jobs by their ids.
    expect(lists.filter((query) => query.includes("name=send-invite"))).toHaveLength(1);
    expect(asked.filter((path) => /\/api\/v1\/jobs\/[0-9a-f-]{36}$/.test(path)).length).toBeLessThanOrEqual(
      8,
    );
    const texts = await recent.allTextContents();
    expect(new Set(texts.map((text) => /"to":"[^"]*"/.exec(text)?.[0])).size).toBe(5);
    await accessible(page);
    await shot(page, "new-job-recent");
    await recent.filter({ hasText: "eve" }).click();
    expect(await member(page, "to required").inputValue()).toBe("eve@example.org");
    expect(await member(page, "accessToken").inputValue()).toBe("[redacted]");
    const warning = dialog(page).getByText("Redacted: accessToken. Enter the real values or remove them.");
    await warning.waitFor();
    await accessible(page);
    const before = await home.hf.jobs.count({ name: "send-invite" });
    await dialog(page).getByRole("button", { name: "Enqueue" }).click();
    await dialog(page).getByText("Not enqueued: part of the input is redacted.").waitFor();
    expect(await member(page, "accessToken").getAttribute("aria-invalid")).toBe("true");
    await shot(page, "new-job-redacted");
    expect(await home.hf.jobs.count({ name: "send-invite" })).toBe(before);
    await member(page, "accessToken").fill("tok_new");
    await warning.waitFor({ state: "detached" });
    await dialog(page).getByRole("button", { name: "Enqueue" }).click();
    await page.locator(".toast").getByText("Enqueued", { exact: true }).waitFor();
    expect(JSON.parse(await stored("send-invite"))).toMatchObject({ accessToken: "tok_new" });
  });

  test("without a schema it is JSON, and keeps every digit", async () => {
    const page = await home.open("/jobs");
    await newJob(page, "plain");
    await dialog(page)
      .getByRole("list", { name: "Recent inputs" })
      .getByText("redacted", { exact: true })
      .waitFor();
    expect(await dialog(page).getByRole("button", { name: "Form", exact: true }).count()).toBe(0);
    await dialog(page).getByLabel("Input (JSON)").fill('{"n": 12345678901234567890, "x": 1.50}');
    await dialog(page).getByRole("button", { name: "Enqueue" }).click();
    await page.locator(".toast").getByText("Enqueued", { exact: true }).waitFor();
    expect(await stored("plain")).toBe('{"n":12345678901234567890,"x":1.5}');
  });

  test("who may not see payloads is shown no recent ones, and none are asked for", async () => {
    const own = await site({
      auth: () => ({ name: "ed", permissions: ["view", "jobs:enqueue"] }),
      jobs: [invite],
    });
    const { id } = await own.hf.enqueue(invite, { to: "ann@example.org" });
    const page = await own.open(`/jobs/${id}`);
    await page.getByRole("button", { name: "Copy as new" }).click();
    await dialog(page).getByText("You do not have permission to see the copied job").waitFor();
    await member(page, "to required").waitFor();
    expect(await dialog(page).getByText("Recent inputs").count()).toBe(0);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Copy as…" }).click();
    await page.getByRole("menuitem", { name: "curl" }).click();
    const text = await copied(page);
    expect(text).toContain("Put it in place of INPUT.");
    expect(text).toContain('"input":INPUT');
    expect(text).toContain("x-holdfast: 1");
  });

  test("a hostile schema is only text, and a huge one leaves the JSON", async () => {
    const nasty = '<img src=x onerror="window.hacked=1">';
    const kind = (name: string, properties: object) =>
      defineJob({
        name,
        input: {
          "~standard": {
            version: 1,
            vendor: "test",
            validate: () => ({ issues: [{ message: nasty, path: [nasty] }, { message: nasty.repeat(50) }] }),
            jsonSchema: { input: () => ({ type: "object", properties }) },
          },
        },
      });
    const hostile = kind("hostile", {
      [nasty]: { type: "string", description: nasty.repeat(100), default: nasty },
      choice: { enum: [nasty, 1, null] },
      toString: { type: "integer", title: nasty },
    });
    const huge = kind("huge", Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`k${i}`, {}])));
    const own = await site({ jobs: [hostile, huge] });
    const page = await own.open("/jobs", { noisy: true });
    await newJob(page, "hostile");
    await member(page, "<img").fill("x");
    await page.getByLabel("Unique key").focus();
    await dialog(page).getByRole("button", { name: "Enqueue" }).click();
    await dialog(page).getByText("The input does not match the job").waitFor();
    await accessible(page);
    await fits(page);
    await shot(page, "new-job-hostile");
    await dialog(page).getByLabel("Name").fill("huge");
    await dialog(page).getByLabel("Input (JSON)").waitFor();
    expect(await dialog(page).getByRole("button", { name: "Form", exact: true }).count()).toBe(0);
    expect(await page.evaluate("window.hacked")).toBeUndefined();
    expect(await page.evaluate("document.querySelectorAll('dialog img').length")).toBe(0);
  });

  test.each([
    ["dark", { dark: true }],
    ["narrow", { width: 360, height: 760 }],
    ["dark and narrow", { dark: true, width: 360, height: 760 }],
  ])("is as good %s", async (name, options) => {
    const page = await home.open("/jobs", options);
    await newJob(page, "send-invite");
    await member(page, "to required").waitFor();
    await dialog(page).getByRole("list", { name: "Recent inputs" }).waitFor();
    await accessible(page);
    await fits(page);
    expect(
      await page.evaluate(
        "(() => { const c = document.querySelector('dialog .content'); return c.scrollWidth - c.clientWidth; })()",
      ),
    ).toBeLessThanOrEqual(0);
    await shot(page, `new-job-${name.replaceAll(" ", "-")}`);
    await dialog(page).getByRole("button", { name: "JSON", exact: true }).click();
    await accessible(page);
    await shot(page, `new-job-json-${name.replaceAll(" ", "-")}`);
  });
});

describe("[K3] a job as text", () => {
  test("by keyboard and by mouse: what is copied enqueues one like it", async () => {
    const { id } = await home.hf.enqueue(plain, { it: "it's", n: 1 }, { queue: "other", key: "it's\nhere!" });
    const page = await home.open(`/jobs/${id}`);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const button = page.getByRole("button", { name: "Copy as…" });
    await button.focus();
    await page.keyboard.press("ArrowDown");
    await page.getByRole("menu", { name: "Copy as" }).waitFor();
    await accessible(page);
    await shot(page, "copy-as");
    await page.keyboard.press("End");
    await page.keyboard.press("Enter");
    await page.getByText("Copied").waitFor();
    expect(await copied(page)).toBe(
      String.raw`await hf.enqueue("plain", { it: "it's", n: 1 }, { queue: "other", key: "it's\nhere!" });`,
    );
    expect(await focused(page)).toBe("Copy as…");
    await button.click();
    await page.keyboard.press("Escape");
    expect(await page.getByRole("menu").count()).toBe(0);
    await button.click();
    await page.getByRole("menuitem", { name: "CLI command" }).click();
    expect(await copied(page)).toBe(
      `holdfast enqueue plain '{"it":"it'\\''s","n":1}' --queue other --key 'it'\\''s\nhere!'`,
    );
    await button.click();
    await page.getByRole("menuitem", { name: "curl" }).click();
    const curl = await copied(page);
    expect(curl).toContain(`curl -X POST ${home.url}/api/v1/jobs`);
    expect(curl).toContain('"Authorization: Bearer $HOLDFAST_TOKEN"');
    expect(curl).not.toContain(TOKEN);
    const response = await fetch(`${home.url}/api/v1/jobs/${id}`, {
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    const { masked } = (await response.json()) as JobDetail;
    expect(masked).toEqual([]);
  });

  test("the menu fits into a narrow window, in the dark too", async () => {
    const { id } = await home.hf.enqueue(plain, { cookie: "secret" });
    const page = await home.open(`/jobs/${id}`, { dark: true, width: 360, height: 760 });
    await page.getByRole("button", { name: "Copy as…" }).click();
    await page.getByRole("menu").waitFor();
    await accessible(page);
    await fits(page);
    await shot(page, "copy-as-narrow");
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.getByRole("menuitem", { name: "TypeScript" }).click();
    await page.getByText("Fill in what its first line says.").waitFor();
    expect(await copied(page)).toBe(
      '// Redacted here, cookie. Put the real values in place of REDACTED.\nawait hf.enqueue("plain", { cookie: REDACTED });',
    );
  });
});
