// One run in a real browser: its waterfall, its timeline, its log, and its history as a file.
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { readRunFile } from "../../src/workflows/run-file.ts";
import { defineJob, fixed } from "../../src/index.ts";
import { lifeOf, rangeOf, rowsInSight, ticksOf, tracksOf, zoomed } from "../../ui/src/workflows/waterfall.ts";
import type { WorkflowStep } from "../../src/dashboard/api/contract.ts";
import { accessible, choose, closeSites, fits, shot, site, type Site, TOKEN, useBrowser } from "./support.ts";

useBrowser();
closeSites();

let home: Site;
let run = "";
let long = "";
let open = "";
let album = "";
let shipping = "";
beforeAll(async () => {
  home = await site();
  const { hf } = home;
  const order = defineJob({
    name: "order",
    queue: "runs",
    retry: { attempts: 1 },
    run: async (input: { order: string; cardToken: string }, ctx) => {
      ctx.log.info({ order: input.order, cardToken: input.cardToken }, "fulfilling");
      await ctx.step("reserve", () => ({ shelf: "B12" }));
      await ctx.step(
        "charge",
        ({ attempt }) => {
          ctx.log.warn({ attempt }, "the bank is slow");
          if (attempt < 3) throw new Error("503 from the bank");
          return { charged: 1 };
        },
        { retry: { attempts: 3, backoff: fixed(40) } },
      );
      await ctx.sleep("cool-off", 60);
      if (input.order === "o-2") await ctx.waitFor("packed", { key: "o-2" });
      ctx.log.error({}, "<img src=x onerror=alert(1)>");
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
  const store = defineJob({
    name: "store",
    queue: "inner",
    run: async (n: number, ctx) => {
      await ctx.step("write", () => n);
    },
  });
  const thumb = defineJob({
    name: "thumb",
    queue: "inner",
    run: async (n: number, ctx) => {
      await ctx.step("load", () => n);
      await ctx.call(store, n);
      await ctx.step("save", () => n);
    },
  });
  const pictures = defineJob({
    name: "album",
    queue: "runs",
    run: async (_: null, ctx) => {
      await ctx.step("list", () => 40);
      // All are under way before the first is over: they stand side by side.
      const begun = Promise.withResolvers<void>();
      let left = 40;
      const resize = async (n: number): Promise<number> => {
        if ((left -= 1) === 0) setTimeout(begun.resolve, 5);
        await begun.promise;
        if (n === 7) throw new Error("no picture");
        return n;
      };
      await Promise.allSettled(
        Array.from({ length: 40 }, (_unused, n) =>
          ctx.step(`resize-${n}`, () => resize(n), { retry: { attempts: 1 } }),
        ),
      );
      await ctx.all(Array.from({ length: 6 }, (_unused, n) => ctx.call(thumb, n)));
      await ctx.step("publish", () => true);
    },
  });
  const ship = defineJob({
    name: "ship",
    queue: "runs",
    run: async (key: string, ctx) => {
      await ctx.step("pick", () => 1);
      await ctx.waitFor("go", { key });
      await ctx.step("pack", () => 1);
      await ctx.waitFor("gone", { key });
      await ctx.step("invoice", () => 1);
    },
  });
  const worker = hf.work([order, many, store, thumb, pictures, ship], {
    queues: { runs: 6, inner: 4 },
    name: "runs-1",
  });
  await worker.ready;
  album = (await hf.enqueue(pictures, null)).id;
  const shipped = await hf.enqueue(ship, "s-1");
  for (const signal of ["go", "gone"]) await hf.signal(signal, { key: "s-1" });
  await hf.result(shipped.id, { timeout: "30s" });
  await hf.result(album, { timeout: "30s" });
  shipping = (await hf.enqueue(ship, "s-2")).id;
  run = (await hf.enqueue(order, { order: "o-1", cardToken: "tok_secret" })).id;
  open = (await hf.enqueue(order, { order: "o-2", cardToken: "tok_secret" })).id;
  long = (await hf.enqueue(many, null)).id;
  await hf.result(run, { timeout: "30s" });
  await hf.result(long, { timeout: "60s" });
  for (const id of [open, shipping])
    while ((await hf.jobs.get(id))?.waitsFor !== "signal") await new Promise((next) => setTimeout(next, 20));
  await hf.jobLog.flush();
}, 120_000);

test("[K3] workflows: what each run is at and how far it is, by views that are in the address; by keys", async () => {
  const page = await home.open("/");
  await page.keyboard.press("g");
  await page.keyboard.press("w");
  await page.getByRole("heading", { name: "Workflows" }).waitFor();
  const row = (id: string) =>
    page.locator("tbody tr").filter({ has: page.locator(`a[href$="/jobs/${id}"]`) });
  await row(shipping).getByText("signal:go").waitFor();
  expect(await row(shipping).textContent()).toMatch(/waiting.*waits for a signal, .* so far/);
  await row(shipping).getByRole("img", { name: "Steps: 1 of 2 known" }).waitFor();
  expect(await row(run).count()).toBe(0);
  await accessible(page);
  await shot(page, "workflows");
  await page.getByRole("link", { name: "Ended" }).click();
  await row(run).waitFor();
  await row(long).getByText("1,300 of 1,300").waitFor();
  expect(await row(shipping).count()).toBe(0);
  await page.getByRole("link", { name: "Retrying" }).click();
  await page.getByText("No such run").waitFor();
  expect(new URL(page.url()).searchParams.get("view")).toBe("retrying");
  const narrow = await home.open("/workflows?view=all&name=ship", { dark: true, width: 390 });
  const which = narrow.getByLabel("Workflow", { exact: true });
  await expect.poll(() => which.inputValue()).toBe("ship");
  await accessible(narrow);
  await shot(narrow, "workflows-dark");
  await which.selectOption("album");
  await expect.poll(() => new URL(narrow.url()).searchParams.get("name")).toBe("album");
  await narrow.getByRole("link", { name: "album" }).first().waitFor();
});

test("[K3] batches: progress as a bar and in numbers that lead to its jobs, and to the job after them", async () => {
  const { hf } = home;
  const pages = (...names: string[]) => names.map((name) => ({ job: name, input: null, queue: "batched" }));
  const plain = await hf.batch(pages("import-rows"));
  for (const lease of await hf.lease({ queues: ["batched"], limit: 9, for: "1m" })) await lease.done();
  const mixed = await hf.batch(pages(...Array.from({ length: 6 }, () => "fetch-page")), {
    then: { job: "report", input: null, queue: "batched" },
    onDead: "wait",
  });
  const [a, b, c] = await hf.lease({ queues: ["batched"], limit: 3, for: "10m" });
  await a!.done();
  await b!.dead("404");
  const page = await home.open("/");
  await page.keyboard.press("g");
  await page.keyboard.press("b");
  await page.getByRole("heading", { name: "Batches" }).waitFor();
  const row = (id: string) =>
    page.locator("tbody tr").filter({ has: page.locator(`a[href$="batch=${id}"]`) });
  const bar = row(mixed.id).getByRole("progressbar", { name: "Progress" });
  expect(await bar.getAttribute("aria-valuetext")).toBe("2 of 6 ended");
  expect(await row(mixed.id).textContent()).toMatch(
    /fetch-page.*6 jobs.*2 of 6.*1 dead.*1 running.*3 waiting.*report.*waits until all are done/,
  );
  expect(await row(plain.id).textContent()).toMatch(/import-rows.*1 job.*1 of 1/);
  await accessible(page);
  await shot(page, "batches");
  await page.getByRole("link", { name: "Failed", exact: true }).click();
  await row(mixed.id).waitFor();
  await expect.poll(() => row(plain.id).count()).toBe(0);
  await row(mixed.id).getByRole("link", { name: "1 dead" }).click();
  await page.getByRole("button", { name: "Remove the filter batch" }).waitFor();
  await page.locator("tbody tr").first().waitFor();
  expect(await page.locator("tbody tr").count()).toBe(1);
  await page.goto(`${home.url}/jobs/${c!.id}`);
  await page.getByRole("link", { name: "one of 6 jobs" }).waitFor();
  await page.getByRole("link", { name: "report" }).click();
  await page.getByRole("link", { name: "a batch of 6 jobs" }).waitFor();
  const narrow = await home.open("/batches", { dark: true, width: 360 });
  await narrow.getByRole("progressbar", { name: "Progress" }).first().waitFor();
  await fits(narrow);
  await accessible(narrow);
  await shot(narrow, "batches-dark-narrow");
});

describe.each([{ dark: false }, { dark: true }])("a run, dark: $dark", ({ dark }) => {
  test("[K3] the waterfall shows each step, its tries and what lies between, and opens one", async () => {
    const page = await home.open(`/jobs/${run}`, { dark });
    const lines = page.getByRole("listbox", { name: /Waterfall of steps/ });
    await lines.waitFor();
    const options = lines.getByRole("option");
    expect(await options.count()).toBe(3);
    const charge = lines.getByRole("option", { name: /^charge: step, done, 3 tries/ });
    expect(await charge.locator(".band.failed").count()).toBe(2);
    expect(await charge.locator(".band.backoff").count()).toBe(2);
    expect(await charge.locator(".band.run").count()).toBe(1);
    expect(
      await lines
        .getByRole("option", { name: /^cool-off: sleep/ })
        .locator(".band.sleep")
        .count(),
    ).toBe(1);
    await accessible(page);
    await charge.click();
    const dialog = page.getByRole("dialog", { name: "Step charge" });
    await dialog.getByText("succeeded").waitFor();
    expect(await dialog.getByText("failed", { exact: true }).count()).toBe(2);
    await accessible(page);
    await page.keyboard.press("Escape");
    await page.getByRole("img", { name: /From enqueue on: .*ran/ }).waitFor();
  });
});

test("[K3] with the keyboard alone: through the steps, into one, and through time", async () => {
  const page = await home.open(`/jobs/${run}`);
  const lines = page.getByRole("listbox", { name: /Waterfall of steps/ });
  await lines.focus();
  await page.keyboard.press("ArrowDown");
  expect(await lines.getAttribute("aria-activedescendant")).toBe("track-1");
  const left = (): Promise<string> =>
    page.evaluate<string>(
      `[...document.querySelectorAll(".waterfall .line .band")].map((band) => band.getAttribute("style")).join()`,
    );
  const before = await left();
  await page.keyboard.press("+");
  await page.locator(".waterfall .axis").getByText("All").waitFor();
  const closer = await left();
  expect(closer).not.toBe(before);
  await page.keyboard.press("ArrowRight");
  await expect.poll(left).not.toBe(closer);
  await page.keyboard.press("0");
  await expect.poll(left).toBe(before);
  await page.keyboard.press("Enter");
  await page.getByRole("dialog", { name: "Step charge" }).waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("End");
  expect(await lines.getAttribute("aria-activedescendant")).toBe("track-2");
});

test("[K3] a run that waits grows on its own, and goes on when its signal comes", async () => {
  const page = await home.open(`/jobs/${open}`);
  const wait = page.locator(".waterfall .band.signal.open");
  await wait.waitFor();
  const title = (): Promise<string | null> => wait.getAttribute("title");
  const first = await title();
  expect(first).toContain("so far");
  await expect.poll(title, { timeout: 10_000 }).not.toBe(first);
  await home.hf.signal("packed", { key: "o-2" });
  await page.locator(".waterfall .band.signal:not(.open)").waitFor();
});

test.each([{ dark: false }, { dark: true }])(
  "[K3] a large graph is moved in: size, direction, a small picture of the whole, and a step by its name; dark: $dark",
  async ({ dark }) => {
    const page = await home.open(`/jobs/${long}`, { dark });
    const graph = page.getByRole("group", { name: /^Workflow graph/ });
    await graph.waitFor();
    const size = page.getByLabel("Size", { exact: true });
    expect(await size.textContent()).toBe("100 %");
    // A thousand nodes are laid out first, on a machine that runs other pages too.
    await graph.getByRole("button", { name: /^s × 1,000\s*1,000 done$/ }).click({ timeout: 60_000 });
    await page.locator(".minimap").waitFor();
    await page.getByRole("button", { name: "Larger" }).click();
    expect(await size.textContent()).toBe("125 %");
    await graph.focus();
    await page.keyboard.press("0");
    expect(Number.parseInt((await size.textContent()) ?? "", 10)).toBeLessThan(100);
    await page.keyboard.press("+");
    const find = page.getByRole("searchbox", { name: "Find a step" });
    const here = (): Promise<string> => page.evaluate<string>("document.activeElement.textContent");
    // What is looked for is in a fan-out, which opens.
    await graph.getByRole("button", { name: /^s × 1,000/ }).press("Enter");
    await expect.poll(() => graph.locator(".node").count()).toBe(2);
    await find.fill("s999");
    await page.keyboard.press("Enter");
    await expect.poll(here).toContain("s999");
    await page.keyboard.press("ArrowLeft");
    await expect.poll(here).toMatch(/^many/);
    await find.fill("no such");
    await page.keyboard.press("Enter");
    await page.getByText("No such step").waitFor();
    await page.getByRole("button", { name: "Top to bottom" }).click();
    await page.getByRole("button", { name: "Left to right" }).waitFor();
    const scrolled = (): Promise<number> =>
      page.evaluate<number>(
        `(({ scrollTop, scrollLeft }) => scrollTop + scrollLeft)(document.querySelector(".graph"))`,
      );
    // At full width the fitted graph is 24 px taller than its frame: enlarged, it can be scrolled.
    for (const _ of [1, 2, 3]) await page.getByRole("button", { name: "Larger" }).click();
    const before = await scrolled();
    await page.locator(".minimap").scrollIntoViewIfNeeded();
    const box = (await page.locator(".minimap").boundingBox())!;
    await page.mouse.click(box.x + box.width - 6, box.y + box.height - 6);
    await expect.poll(scrolled).toBeGreaterThan(before);
    await shot(page, dark ? "graph-dark" : "graph");
    // Of a thousand open nodes axe learns no more than of the forty below, in two minutes.
    await graph.getByRole("button", { name: /^s × 1,000/ }).press("Enter");
    await expect.poll(() => graph.locator(".node").count()).toBe(2);
    await accessible(page);
  },
);

describe.each([{ dark: false }, { dark: true }])("a graph, dark: $dark", ({ dark }) => {
  const named = dark ? "-dark" : "";

  test("[K3] a fan-out is one node with its states, and opens and closes by mouse and keyboard", async () => {
    const page = await home.open(`/jobs/${album}`, { dark });
    const graph = page.getByRole("group", { name: /^Workflow graph/ });
    const fan = graph.getByRole("button", { name: /^resize × 40\s*1 failed, 39 done$/ });
    await fan.waitFor();
    const one = graph.getByRole("button", { name: /^resize-7\s*step · failed$/ });
    expect(await fan.getAttribute("aria-expanded")).toBe("false");
    expect(await fan.locator(".shares rect").count()).toBe(2);
    expect(await one.count()).toBe(0);
    await shot(page, `graph-fan${named}`);
    await fan.click();
    await one.waitFor();
    expect(await fan.getAttribute("aria-expanded")).toBe("true");
    expect(await graph.getByRole("button", { name: /^resize-/ }).count()).toBe(40);
    await accessible(page);
    await shot(page, `graph-fan-open${named}`);
    await fan.click();
    await expect.poll(() => one.count()).toBe(0);
    // The focus stays on it, so that the next key is for it.
    await page.keyboard.press("Enter");
    await one.waitFor();
    await page.keyboard.press("Space");
    await expect.poll(() => one.count()).toBe(0);
    const here = (): Promise<string> => page.evaluate<string>("document.activeElement.textContent");
    await page.keyboard.press("ArrowRight");
    await expect.poll(here).toMatch(/^call:thumb × 6/);
    await page.keyboard.press("ArrowLeft");
    await expect.poll(here).toMatch(/^resize × 40/);
    // The table has all of them.
    await page.getByText(/^Table of steps:/).click();
    const table = page.getByRole("region", { name: "Table of steps" });
    await expect.poll(() => table.locator("tbody b", { hasText: /^resize-/ }).count()).toBe(40);
  });

  test("[K3] the steps of a job that a run called are drawn inside, and those of what that called", async () => {
    const page = await home.open(`/jobs/${album}`, { dark });
    const graph = page.getByRole("group", { name: /^Workflow graph/ });
    await graph.getByRole("button", { name: /^thumb × 6\s*6 done$/ }).click();
    const steps = graph.getByRole("button", { name: "Steps of thumb" });
    expect(await steps.count()).toBe(6);
    expect(await steps.first().getAttribute("aria-expanded")).toBe("false");
    await steps.first().click();
    await graph.getByRole("button", { name: /^save\s*step · done$/ }).waitFor();
    expect(await steps.first().getAttribute("aria-expanded")).toBe("true");
    expect(await graph.locator(".frame.run").count()).toBe(1);
    // With the keyboard, and one level deeper.
    await graph.getByRole("link", { name: /^store\s*job · done$/ }).focus();
    await page.keyboard.press("Space");
    await graph.getByRole("button", { name: /^write\s*step · done$/ }).waitFor();
    expect(await graph.locator(".frame.run").count()).toBe(2);
    await accessible(page);
    await shot(page, `graph-inside${named}`);
    await page.keyboard.press("ArrowRight");
    await expect
      .poll(() => page.evaluate<string>("document.activeElement.textContent"))
      .toMatch(/^write\s*step · done$/);
    await steps.first().focus();
    await page.keyboard.press("Enter");
    await expect.poll(() => graph.locator(".frame.run").count()).toBe(0);
    // Its page is still a key away.
    await graph
      .getByRole("link", { name: /^thumb\s*job · done$/ })
      .first()
      .focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "thumb", level: 1 }).waitFor();
  });
});

test("[K3] a history of 1,300 steps is in pages, and only what is in sight is in the page", async () => {
  const page = await home.open(`/jobs/${long}`);
  await page.getByText("the newest 500 of 1,300").first().waitFor();
  const options = page.getByRole("option");
  expect(await options.count()).toBeLessThan(60);
  const waterfall = page.getByRole("region", { name: "Waterfall" });
  await waterfall.getByRole("button", { name: "Earlier steps" }).click();
  await expect.poll(() => waterfall.getByText("1,300").count()).toBe(1);
  const lines = page.getByRole("listbox");
  await lines.focus();
  await page.keyboard.press("Home");
  await lines.getByRole("option", { name: /^s0:/ }).waitFor();
  await page.keyboard.press("End");
  await lines.getByRole("option", { name: /^s1299:/ }).waitFor();
  expect(await options.count()).toBeLessThan(60);
});

test("[K3] its history is downloaded, without secrets, and is what holdfast check reads", async () => {
  const page = await home.open(`/jobs/${run}`);
  const downloading = page.waitForEvent("download");
  await page.getByRole("button", { name: "History" }).click();
  const file = await downloading;
  expect(file.suggestedFilename()).toBe(`run-${run}.json`);
  const text = readFileSync(await file.path(), "utf8");
  expect(text).not.toContain("tok_secret");
  expect(readRunFile(text, "run.json").steps.map(({ name }) => name)).toEqual([
    "reserve",
    "charge",
    "cool-off",
  ]);
});

test("[K3] the log: lines with their level, filtered and found, redacted, in the address", async () => {
  const page = await home.open(`/jobs/${run}`);
  await page.getByRole("link", { name: "Log" }).click();
  const log = page.getByRole("region", { name: "Log lines" });
  await log.getByText("fulfilling").first().waitFor();
  expect(await log.innerText()).not.toContain("tok_secret");
  expect(await log.innerText()).toContain("<img src=x onerror=alert(1)>");
  await accessible(page);
  await page.getByLabel("Level").selectOption("warn");
  await expect.poll(() => log.getByText("fulfilling").count()).toBe(0);
  await page.getByLabel("Text in the log").fill("BANK");
  await expect.poll(() => log.locator("tbody tr").count()).toBe(3);
  expect(page.url()).toMatch(/tab=log/);
  expect(page.url()).toMatch(/level=warn/);
  await page.reload();
  // A whole page is fetched, and the log after it: longer than a poll has.
  await log.locator("tbody tr").first().waitFor();
  await expect.poll(() => log.locator("tbody tr").count()).toBe(3);
  await page.getByLabel("Text in the log").fill("nothing like it");
  await page.getByText("No matching lines").waitFor();
  const narrow = await home.open(`/jobs/${run}?tab=log`, { width: 380 });
  await narrow.getByText("fulfilling").first().waitFor();
  await fits(narrow);
  await accessible(narrow);
  const silent = await home.open(`/jobs/${long}?tab=log`);
  await silent.getByText("No log lines").waitFor();
  await accessible(silent);
});

test("[K3] the waterfall fits a phone", async () => {
  const page = await home.open(`/jobs/${run}`, { width: 380 });
  await page.getByRole("listbox").waitFor();
  await fits(page);
  await accessible(page);
});

test("[K3] on a phone every button of a long run's waterfall is in sight", async () => {
  const page = await home.open(`/jobs/${long}`, { width: 390 });
  const waterfall = page.getByRole("region", { name: "Waterfall" });
  for (const name of ["Earlier steps", "History"]) {
    const box = await waterfall.getByRole("button", { name }).boundingBox();
    expect(box!.x + box!.width, name).toBeLessThanOrEqual(390 - 16);
  }
});

test("[K3] who may not see payloads sees the run, and neither its log nor its history", async () => {
  const shy = await site({
    auth: (request) =>
      request.headers.get("authorization") === `Bearer ${TOKEN}` || !request.url.includes("/api/")
        ? { name: "eve", permissions: ["view"] }
        : null,
  });
  const { id } = await shy.hf.enqueue("plain", { a: 1 });
  const page = await shy.open(`/jobs/${id}?tab=log`, { noisy: true });
  await page.getByText("Payloads are hidden").waitFor();
});

const base: WorkflowStep = {
  seq: 0,
  name: "a",
  kind: "step",
  state: "done",
  attempt: 1,
  tries: 1,
  triedAt: [],
  startedAt: 0,
  endedAt: 10,
  until: null,
  output: null,
  error: null,
  jobId: null,
};
const job = {
  createdAt: 1_000,
  runAt: 1_000,
  startedAt: null,
  endedAt: null,
  state: "ready",
  errors: [],
} as Parameters<typeof lifeOf>[0];
const failure = { attempt: 1, message: "", stack: null, lost: false };

describe("bands", () => {
  const kinds = ({ bands }: ReturnType<typeof lifeOf>) => bands.map(({ kind, from, to }) => [kind, from, to]);

  test("a job's life: delay, wait, attempts, backoff, and what is not over yet", () => {
    expect(kinds(lifeOf(job, null, 5_000))).toEqual([["wait", 1_000, 5_000]]);
    expect(kinds(lifeOf({ ...job, state: "scheduled", runAt: 9_000 }, null, 5_000))).toEqual([
      ["delay", 1_000, 9_000],
    ]);
    const done = { ...job, state: "done", runAt: 2_000, startedAt: 3_000, endedAt: 4_000 } as const;
    expect(kinds(lifeOf(done, null, 0))).toEqual([
      ["delay", 1_000, 2_000],
      ["wait", 2_000, 3_000],
      ["run", 3_000, 4_000],
    ]);
    const retrying = {
      ...job,
      state: "scheduled",
      runAt: 60_000,
      startedAt: 11_000,
      errors: [
        { ...failure, at: 4_000, ranMs: 2_000 },
        { ...failure, at: 12_000, ranMs: 1_000 },
      ],
    } as const;
    expect(kinds(lifeOf(retrying, null, 20_000))).toEqual([
      ["wait", 1_000, 2_000],
      ["failed", 2_000, 4_000],
      ["backoff", 4_000, 11_000],
      ["failed", 11_000, 12_000],
      ["backoff", 12_000, 60_000],
    ]);
    const [first, second] = retrying.errors;
    const lost = { ...retrying, errors: [{ ...first, lost: true }, second] };
    expect(kinds(lifeOf(lost, null, 20_000)).slice(1, 3)).toEqual([
      ["lost", 2_000, 4_000],
      ["wait", 4_000, 11_000],
    ]);
    expect(kinds(lifeOf({ ...job, state: "waiting", runAt: null }, 1_500, 9_000))).toEqual([
      ["wait", 1_000, 1_500],
      ["steps", 1_500, 9_000],
    ]);
    expect(kinds(lifeOf(done, 1_500, 0))).toEqual([
      ["wait", 1_000, 1_500],
      ["steps", 1_500, 3_000],
      ["run", 3_000, 4_000],
    ]);
  });

  test("clocks that differ give no negative time, and are told of", () => {
    const skewed = lifeOf({ ...job, state: "done", startedAt: 500, endedAt: 400 }, null, 0);
    expect(skewed.skewed).toBe(true);
    for (const { from, to } of skewed.bands) expect(to).toBeGreaterThanOrEqual(from);
    expect(lifeOf({ ...job, state: "done", startedAt: 999, endedAt: 2_000 }, null, 0).skewed).toBe(false);
    expect(tracksOf([{ ...base, startedAt: 100, endedAt: 20 }], 0)[0]?.skewed).toBe(true);
  });

  test("steps: tries and gaps, waits that are open, and what a job that ended left behind", () => {
    const of = (step: Partial<WorkflowStep>, now = 50) =>
      tracksOf([{ ...base, ...step }], now)[0]!.bands.map(({ kind, from, to, open: isOpen }) => [
        kind,
        from,
        to,
        isOpen,
      ]);
    const triedAt = [
      { startedAt: 0, endedAt: 2 },
      { startedAt: 6, endedAt: 10 },
    ];
    expect(of({ triedAt })).toEqual([
      ["failed", 0, 2, false],
      ["backoff", 2, 6, false],
      ["run", 6, 10, false],
    ]);
    expect(of({ triedAt, state: "waiting", endedAt: null, until: 80 }).at(-1)).toEqual([
      "backoff",
      10,
      80,
      true,
    ]);
    expect(of({ kind: "sleep", state: "waiting", endedAt: null, until: 80 })).toEqual([
      ["sleep", 0, 80, true],
    ]);
    expect(of({ kind: "signal", state: "waiting", endedAt: null, until: null })).toEqual([
      ["signal", 0, 50, true],
    ]);
    expect(of({ kind: "signal", state: "cancelled", endedAt: null, until: 900 })).toEqual([
      ["signal", 0, 50, false],
    ]);
    expect(of({ kind: "call", state: "failed" })).toEqual([["call", 0, 10, false]]);
  });

  test("the axis has few round marks, and a window stays inside of the whole", () => {
    for (const length of [1, 7, 999, 65_000, 3_600_000, 86_400_000 * 400, 86_400_000 * 40_000]) {
      const ticks = ticksOf(1_000, 1_000, 1_000 + length);
      expect(ticks.length).toBeGreaterThan(0);
      expect(ticks.length).toBeLessThanOrEqual(8);
    }
    expect(ticksOf(0, 0, 240_000)).toEqual([0, 60_000, 120_000, 180_000, 240_000]);
    const whole = { from: 0, to: 100 };
    expect(zoomed(whole, whole, { factor: 0.5 })).toEqual({ from: 25, to: 75 });
    expect(zoomed({ from: 25, to: 75 }, whole, { shift: 1 })).toEqual({ from: 50, to: 100 });
    expect(zoomed({ from: 25, to: 75 }, whole, { factor: 9 })).toEqual(whole);
    expect(rangeOf([])).toEqual({ from: 0, to: 1 });
    expect(rowsInSight(0, 280, 28, 10_000)).toEqual({ first: 0, last: 18 });
    expect(rowsInSight(28_000, 280, 28, 10_000)).toEqual({ first: 992, last: 1_018 });
  });
});

test("[K3] schedules: where slots pile up, how the newest jobs ended, and what the clocks do", async () => {
  const { hf } = home;
  const tick = defineJob({
    name: "tick",
    queue: "ticks",
    retry: { attempts: 1 },
    run: async (_: null) => {},
  });
  await hf.schedules.put({ name: "hourly", cron: "0 * * * *", job: tick, input: null });
  await hf.schedules.put({ name: "ten", every: "10m", job: tick, input: null });
  await hf.schedules.put({
    name: "berlin",
    cron: "30 2 25-31 3,10 0",
    timezone: "Europe/Berlin",
    job: tick,
    input: null,
  });
  const worker = hf.work([tick], { queues: { ticks: 1 } });
  const made = [];
  for (let n = 0; n < 3; n += 1) made.push(await hf.schedules.trigger("hourly"));
  await hf.result(made.at(-1)!.id, { timeout: "30s" });
  await worker.stop();
  for (const given of [{}, { dark: true }, { width: 380 }]) {
    const page = await home.open("/schedules", given);
    const heat = page.getByRole("img", { name: /^Busiest: / });
    await heat.waitFor();
    expect(await heat.locator("i").count()).toBe(96);
    await accessible(page);
    await fits(page);
  }
  const page = await home.open("/schedules");
  const strip = page.getByRole("group", { name: "Newest jobs of hourly: 3, 0 dead" });
  await strip.waitFor();
  expect(await strip.locator(".cell.done").count()).toBe(3);
  await choose(page, "berlin", "Next runs");
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Time zone: Europe/Berlin").waitFor();
  await dialog
    .getByText(/the clocks go/)
    .first()
    .waitFor();
  await accessible(page);
  await page.keyboard.press("Escape");
  await strip.locator(".cell").last().click();
  await page.getByText("Facts").waitFor();
  expect(page.url()).toContain(made.at(-1)!.id);
});
