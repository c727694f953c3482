// Failures in a real browser: decide about them, try one before all, and edit jobs by filter; facets beside the list.
import { beforeAll, describe, expect, test } from "vitest";
import type { Page } from "playwright-core";
import { Dead, defineJob, type Holdfast } from "../../src/index.ts";
import { accessible, choose, closeSites, fits, shot, type Site, site, useBrowser } from "./support.ts";
import { operatorOf } from "../../src/operate/operator.ts";

useBrowser();
closeSites();

const HOUR = 3_600_000;
/** Whether the bank answers again. */
let mended = false;

const charge = defineJob({
  name: "charge-card",
  queue: "billing",
  version: 3,
  upcast: { 1: (old: unknown) => old, 2: (old: unknown) => old },
  retry: { attempts: 1 },
  run: ({ n }: { n: number; to?: string }) => {
    if (!mended) throw new Error(`the bank refused charge ${n}: connection reset`);
  },
});
const mail = defineJob({
  name: "send-mail",
  queue: "mail",
  retry: { attempts: 1 },
  run: ({ to }: { n: number; to?: string }) => {
    throw new Dead(`mailbox "${to}" does not exist`);
  },
});
const resize = defineJob({
  name: "resize-image",
  queue: "media",
  run: ({ n }: { n: number; to?: string }) => {
    if (n < 0) throw new TypeError("not an image");
  },
});

/** 24 charges, 9 mails and 3 images that died, 20 images that went well, 30 mails to come; a week of the past. */
async function fill(hf: Holdfast): Promise<void> {
  mended = false;
  const many = (count: number) => Array.from({ length: count }, (_, n) => n);
  await hf.enqueueMany([
    ...many(24).map((n) => ({ job: charge, input: { n } })),
    ...many(9).map((n) => ({ job: mail, input: { n, to: `user-${n}@example.org` } })),
    ...many(3).map((n) => ({ job: resize, input: { n: -1 - n }, attempts: 1 })),
    ...many(20).map((n) => ({ job: resize, input: { n } })),
  ]);
  const worker = hf.work([charge, mail, resize], { queues: ["billing", "mail", "media"] });
  await worker.ready;
  await worker.idle();
  await worker.stop();
  await hf.enqueueMany(
    many(30).map((n) => ({ job: mail, input: { n, to: "later@example.org" }, delay: "1h" })),
  );
  const now = Date.now();
  for (const { group, name, sample } of await hf.errors.list()) {
    const hours = many(160).filter((n) => (n * 7 + name.length) % 5 !== 0);
    await operatorOf(hf).store.failures.put(
      [{ group, name, sample: sample!, message: '"earlier"', firstAt: now - 160 * HOUR, lastAt: now - HOUR }],
      hours.map((n) => ({
        group,
        at: Math.floor((now - (n + 2) * HOUR) / HOUR) * HOUR,
        queue: name === "send-mail" ? "mail" : name === "charge-card" ? "billing" : "media",
        version: n > 90 ? 2 : 3,
        worker: "",
        n: 1 + ((n * 13 + name.length) % (n > 100 ? 4 : 11)),
      })),
    );
  }
}

const row = (page: Page, name: RegExp) => page.getByRole("row", { name });
const dialog = (page: Page) => page.getByRole("dialog");

let home: Site;
beforeAll(async () => {
  home = await site();
  await fill(home.hf);
}, 60_000);

describe("[K3] failures", () => {
  test("the list shows causes, counts and bars, light, dark and narrow", async () => {
    const page = await home.open("/errors");
    await row(page, /the bank refused charge/)
      .getByText("24", { exact: true })
      .first()
      .waitFor();
    await row(page, /mailbox/)
      .getByText("send-mail in mail")
      .waitFor();
    await row(page, /not an image/).waitFor();
    expect(
      await row(page, /the bank/)
        .getByRole("img")
        .getAttribute("aria-label"),
    ).toMatch(/^Failures per hour, last 24 hours: \d+ in total/);
    await shot(page, "errors");
    await accessible(page);
    await page.emulateMedia({ colorScheme: "dark" });
    await accessible(page, ["color-contrast"]);
    await shot(page, "errors-dark");
    const narrow = await home.open("/errors", { width: 360, height: 760 });
    await row(narrow, /the bank/).waitFor();
    await fits(narrow);
    await shot(narrow, "errors-narrow");
  });

  test("a cause's page shows its week, places and jobs, light, dark and narrow", async () => {
    const page = await home.open("/errors");
    await page.getByRole("link", { name: /the bank refused charge/ }).click();
    await page.getByRole("heading", { name: /the bank refused charge/, level: 1 }).waitFor();
    for (const text of ["Is it fixed?", "The last 7 days", "Facts", "Queues and versions", "Last seen"])
      await page.getByText(text).first().waitFor();
    // Queue, version and failures; beside it the jobs' own rows have a queue and "3 s ago".
    const where = page
      .locator("section.panel")
      .filter({ has: page.getByRole("heading", { name: "Queues and versions" }) });
    await where.getByRole("row", { name: /billing 3/ }).waitFor();
    await where.getByRole("row", { name: /billing 2/ }).waitFor();
    await shot(page, "error");
    await accessible(page);
    await page.emulateMedia({ colorScheme: "dark" });
    await accessible(page, ["color-contrast"]);
    await shot(page, "error-dark");
    const narrow = await home.open(page.url().slice(home.url.length), { width: 360, height: 760 });
    await narrow.getByText("Is it fixed?").waitFor();
    await fits(narrow);
    await shot(narrow, "error-narrow");
    const nobody = await home.open("/errors/0123456789abcdef", { noisy: true });
    await nobody.getByText("No such error").waitFor();
  });

  test("resolve with a note and a link; it comes back by itself as regressed; reopen", async () => {
    const own = await site();
    await fill(own.hf);
    const page = await own.open("/errors", { noisy: true });
    await choose(row(page, /not an image/), /^Actions for/, "Resolve");
    await dialog(page).getByLabel("Note").fill("fixed in 2.4.1 <b>really</b>");
    await dialog(page).getByLabel("Link").fill("javascript:alert(1)");
    await accessible(page);
    await shot(page, "error-resolve");
    await dialog(page).getByRole("button", { name: "Resolve" }).click();
    await dialog(page).getByText("link must be an address with http or https").waitFor();
    await dialog(page).getByLabel("Link").fill("https://example.org/issues/7");
    await dialog(page).getByRole("button", { name: "Resolve" }).click();
    await page.locator(".toast").getByText("Resolved").waitFor();
    await expect.poll(() => row(page, /not an image/).count()).toBe(0);
    await page.getByRole("link", { name: /^Resolved/ }).click();
    await page.getByRole("link", { name: /not an image/ }).click();
    await page.getByText("fixed in 2.4.1 <b>really</b>").waitFor();
    const link = page.getByRole("link", { name: "https://example.org/issues/7" });
    expect(await link.getAttribute("rel")).toContain("noopener");
    await accessible(page);

    await own.hf.enqueue(resize, { n: -9 }, { attempts: 1 });
    const worker = own.hf.work([resize], { queues: ["media"] });
    await worker.ready;
    await worker.idle();
    await worker.stop();
    await page
      .getByText("It was resolved by", { exact: false })
      .or(page.getByText("has failed again since"))
      .first()
      .waitFor();
    await page.getByText("regressed").first().waitFor();
    await accessible(page);
    await shot(page, "error-regressed");
    await page.goto(`${own.url}/errors`);
    await row(page, /not an image/)
      .getByText("regressed")
      .waitFor();
    await shot(page, "errors-regressed");
    await row(page, /not an image/)
      .getByRole("link", { name: /not an image/ })
      .click();
    await page.getByRole("button", { name: "Resolve" }).click();
    await dialog(page).getByRole("button", { name: "Resolve" }).click();
    await page.locator(".toast").getByText("Resolved").first().waitFor();
    await page.getByRole("button", { name: "Reopen" }).click();
    await page.locator(".toast").getByText("Reopened").waitFor();
    const [group] = await own.hf.errors.list({ name: "resize-image" });
    expect(group).toMatchObject({ state: "open", note: "fixed in 2.4.1 <b>really</b>" });
  });

  test("ignored until a count or a time, by the keyboard alone; then all that were left are deleted", async () => {
    const own = await site();
    await fill(own.hf);
    const page = await own.open("/errors");
    await row(page, /mailbox/).waitFor();
    const { groups } = await operatorOf(own.hf).store.insight.failureGroups({});
    const at = groups.findIndex(({ name }) => name === "send-mail");
    for (let n = 0; n <= at; n += 1) await page.keyboard.press("j");
    await page.keyboard.press("i");
    await dialog(page).getByRole("heading", { name: "Ignore this failure group" }).waitFor();
    await dialog(page).getByLabel("For").focus();
    await page.keyboard.type("7d");
    await page.keyboard.press("Tab");
    await page.keyboard.type("100");
    await page.keyboard.press("Enter");
    await page.locator(".toast").getByText("Ignored").waitFor();
    await expect.poll(() => row(page, /mailbox/).count()).toBe(0);
    await page.goto(`${own.url}/errors?state=ignored`);
    await row(page, /mailbox/)
      .getByText("0 of 100")
      .waitFor();
    await accessible(page);
    await page.keyboard.press("j");
    await page.keyboard.press("#");
    await dialog(page).getByRole("heading", { name: "Delete 9 jobs?" }).waitFor();
    await dialog(page)
      .getByLabel(/Type delete to confirm/)
      .fill("delete");
    await page.keyboard.press("Enter");
    await page.getByText("Delete: 9 deleted.").waitFor();
    expect(await own.hf.jobs.count({ name: "send-mail", state: "dead" })).toBe(0);
    await page.keyboard.press("j");
    await page.keyboard.press("o");
    await page.locator(".toast").getByText("Reopened").waitFor();
    for (const [path, text] of [
      ["?state=ignored", "No ignored failures"],
      ["?state=resolved", "No resolved failures"],
    ]) {
      await page.goto(`${own.url}/errors${path}`);
      await page.getByText(text!).waitFor();
    }
  });

  test("one is tried and fails, then comes good before the eyes, and the rest follows", async () => {
    const own = await site();
    await fill(own.hf);
    const worker = own.hf.work([charge], { queues: ["billing"] });
    const page = await own.open("/errors");
    await choose(row(page, /the bank/), /^Actions for/, "Retry one");
    await page.getByText("It failed again. The others may fail too.").waitFor();
    await accessible(page);
    await shot(page, "error-tried");
    mended = true;
    await page.getByRole("button", { name: "Retry another" }).click();
    await page.getByText("It succeeded. 23 dead jobs are left.").waitFor();
    await accessible(page);
    await shot(page, "error-good");
    await page.reload();
    await page.getByText("It succeeded. 23 dead jobs are left.").waitFor();
    await page.keyboard.press("r");
    await dialog(page).getByRole("heading", { name: "Retry 23 jobs?" }).waitFor();
    await page.getByRole("button", { name: "Retry 23" }).click();
    await page.getByText("Retry: 23 retried.").waitFor();
    await page.getByText("It succeeded, and no dead job is left.").waitFor();
    await page.getByText("No dead or retrying jobs").waitFor();
    expect(await own.hf.jobs.count({ name: "charge-card", state: "done" })).toBe(24);
    await worker.stop();
  });

  test("who may only look sees no button, and no key does anything", async () => {
    const viewer = await site({ auth: () => ({ name: "vera", role: "viewer" }) });
    await fill(viewer.hf);
    const page = await viewer.open("/errors");
    await row(page, /the bank/).waitFor();
    expect(await page.getByRole("button", { name: /^Actions for/ }).count()).toBe(0);
    for (const key of ["j", "s", "i", "o", "r", "#", "n"]) await page.keyboard.press(key);
    expect(await dialog(page).count()).toBe(0);
    expect((await viewer.hf.errors.list()).every(({ state }) => state === "open")).toBe(true);
  });
});

describe("[K3] edits", () => {
  test("all that match go to another queue, time and priority, after a preview", async () => {
    const own = await site();
    await fill(own.hf);
    await own.hf.enqueueMany([
      { job: mail, input: { n: 1, to: "x" }, queue: "mail" },
      { job: mail, input: { n: 2, to: "x" }, queue: "mail" },
    ]);
    const held = await own.hf.lease({ queues: ["mail"], limit: 1, for: "10m" });
    const page = await own.open("/jobs?queue=mail");
    await page.getByLabel("Select all on this page").check();
    await page.getByRole("toolbar").getByRole("button", { name: "Edit" }).click();
    await dialog(page).getByLabel("Run").fill("tomorrow-ish");
    await dialog(page).getByRole("button", { name: "Preview" }).click();
    await dialog(page).getByText("is not a time").waitFor();
    await dialog(page).getByLabel("Run").fill("2h");
    await dialog(page).getByLabel("Queue").fill("mail-slow");
    await dialog(page).getByLabel("Priority").fill("5");
    await accessible(page);
    await shot(page, "edit");
    await dialog(page).getByRole("button", { name: "Preview" }).click();
    await dialog(page).getByText("run in 2h, to queue mail-slow, with priority 5").waitFor();
    await dialog(page)
      .getByText(/^31 will change; skipped: (1 running, 9 ended|9 ended, 1 running)\.$/)
      .waitFor();
    await accessible(page);
    await shot(page, "edit-dry");
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await dialog(page)
      .getByRole("button", { name: /^Edit \d/ })
      .click();
    await page.getByText(/Edit: .*31 edited/).waitFor();
    expect(await own.hf.jobs.count({ queue: "mail-slow", state: "scheduled" })).toBe(31);
    expect((await own.hf.jobs.get(held[0]!.id))?.queue).toBe("mail");
    await page.goto(`${own.url}/audit`);
    await page.getByText("jobs.edit").first().waitFor();
    // The dead jobs of one cause: into another queue, where they stay dead.
    const group = (await own.hf.errors.list()).find(({ dead }) => dead > 1)!;
    await page.goto(`${own.url}/errors/${group.group}`);
    await page.getByRole("button", { name: "Move all" }).click();
    expect(await dialog(page).getByLabel("Run").count()).toBe(0);
    await dialog(page).getByLabel("Queue").fill("set-aside");
    await accessible(page);
    await shot(page, "move-dead");
    await dialog(page).getByRole("button", { name: "Preview" }).click();
    await dialog(page).getByText("to queue set-aside").waitFor();
    await shot(page, "move-dead-dry");
    await dialog(page)
      .getByRole("button", { name: /^Move \d/ })
      .click();
    await expect.poll(() => own.hf.jobs.count({ queue: "set-aside", state: "dead" })).toBe(group.dead);
  });

  test("one job is edited from its page, by the key", async () => {
    const own = await site();
    const { id } = await own.hf.enqueue(mail, { n: 1, to: "x" }, { delay: "3h" });
    const page = await own.open(`/jobs/${id}`);
    await page.getByText("Facts").waitFor();
    await page.keyboard.press("e");
    await dialog(page).getByLabel("Run").fill("now");
    await dialog(page).getByLabel("Priority").fill("9");
    await dialog(page).getByRole("button", { name: "Change" }).click();
    await page.getByText("Changed").waitFor();
    expect(await own.hf.jobs.get(id)).toMatchObject({ state: "ready", priority: 9 });
  });
});

describe("[K3] facets", () => {
  test("queues and names are counted beside the filter, and chosen by a click", async () => {
    const page = await home.open("/jobs");
    const queues = page.getByRole("navigation", { name: "Queues among these jobs" });
    const names = page.getByRole("navigation", { name: "Names among these jobs" });
    await queues.getByRole("link", { name: "mail 39" }).waitFor();
    await names.getByRole("link", { name: "charge-card 24" }).waitFor();
    await page.getByRole("slider", { name: /Attempts ended/ }).waitFor();
    await shot(page, "facets");
    await accessible(page);
    await queues.getByRole("link", { name: "mail 39" }).click();
    await names.getByRole("link", { name: "send-mail 39" }).waitFor();
    await expect.poll(() => names.getByRole("link").count()).toBe(1);
    await queues.getByRole("link", { name: "billing 24" }).click();
    await names.getByRole("link", { name: "charge-card 24" }).waitFor();
    expect(new URL(page.url()).searchParams.get("queue")).toBe("mail,billing");
    await page.getByRole("navigation", { name: "States" }).getByRole("link", { name: /^Dead/ }).click();
    await queues.getByRole("link", { name: "mail 9" }).waitFor();
    await queues.getByRole("link", { name: "mail 9" }).click();
    await queues.getByRole("link", { name: "billing 24" }).waitFor();
    expect(new URL(page.url()).searchParams.get("queue")).toBe("billing");
    await page.emulateMedia({ colorScheme: "dark" });
    await accessible(page, ["color-contrast"]);
    await shot(page, "facets-dark");
    const narrow = await home.open("/jobs", { width: 360, height: 760 });
    await narrow
      .getByRole("navigation", { name: "Queues among these jobs" })
      .getByRole("link")
      .first()
      .waitFor();
    await fits(narrow);
    await shot(narrow, "facets-narrow");
  });
});
