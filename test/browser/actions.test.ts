// Doing things in a real browser: each action, by mouse and by keyboard alone; live changes; read-only; 100,000 jobs.
import { beforeAll, describe, expect, test } from "vitest";
import type { DashboardHandler } from "../../src/dashboard/handler.ts";
import { defineJob } from "../../src/index.ts";
import { type Filled, fill } from "./data.ts";
import { accessible, choose, closeSites, offers, shot, type Site, site, useBrowser } from "./support.ts";

useBrowser();
closeSites();

const plain = defineJob({ name: "plain", run: async (_input: unknown) => {} });
const eventually = { timeout: 10_000, interval: 50 };

let home: Site;
let filled: Filled;
beforeAll(async () => {
  home = await site();
  filled = await fill(home.hf);
}, 60_000);

describe("one job", () => {
  test("retry, run now, cancel and delete from the inspector", async () => {
    const page = await home.open(`/jobs/${filled.ids.cancelled}`);
    await page.getByRole("button", { name: "Retry" }).click();
    await page.locator(".toast").getByText("Retried").waitFor();
    await page.goto(`${home.url}/jobs/${filled.ids.scheduled}`);
    await page.getByRole("button", { name: "Run now" }).click();
    await page.locator(".toast").getByText("Due now").waitFor();
    await page.goto(`${home.url}/jobs/${filled.ids.ready}`);
    await page.getByRole("button", { name: "Cancel" }).click();
    await accessible(page);
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    await page.locator(".toast").getByText("Cancelled").waitFor();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Not now" }).click();
    expect((await home.hf.jobs.get(filled.ids.ready))?.state).toBe("cancelled");
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByRole("heading", { name: "Jobs", level: 1 }).waitFor();
    expect(await home.hf.jobs.get(filled.ids.ready)).toBeNull();
  });

  test("a running job is asked to stop", async () => {
    const page = await home.open(`/jobs/${filled.ids.running}`);
    await page.getByText(/has been running attempt 1/).waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("dialog").getByText("The handler is asked to stop").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    await page.locator(".toast").getByText("Cancel requested").waitFor();
  });

  test("a run is paused and resumed, by the mouse and by one key, and terminated", async () => {
    const run = defineJob({
      name: "approval",
      queue: "pausing",
      run: async (_: null, ctx) => {
        await ctx.step("ask", () => 1);
        await ctx.waitFor("approved");
      },
    });
    const worker = home.hf.work([run], { queues: { pausing: 1 } });
    const { id } = await home.hf.enqueue(run, null);
    await expect.poll(async () => (await home.hf.jobs.get(id))?.waitsFor, eventually).toBe("signal");
    const page = await home.open(`/jobs/${id}`);
    await page.getByRole("button", { name: "Pause", exact: true }).click();
    await page.locator(".toast").getByText("Paused").waitFor();
    await page.getByText("The job was paused (by user). It continues when it is resumed.").waitFor();
    await accessible(page);
    await page.keyboard.press("p");
    await page.locator(".toast").getByText("Resumed").waitFor();
    await expect.poll(async () => (await home.hf.jobs.get(id))?.waitsFor, eventually).toBe("signal");
    await page.getByRole("button", { name: "Terminate" }).click();
    await page.getByRole("dialog").getByText("Its steps are not compensated").waitFor();
    await accessible(page);
    await page.getByRole("dialog").getByRole("button", { name: "Terminate" }).click();
    await page.locator(".toast").getByText("Terminated").waitFor();
    expect((await home.hf.jobs.get(id))?.state).toBe("cancelled");
    await worker.stop();
  });

  test("a run that began with other code than the workers have says so", async () => {
    const versioned = (version: number, queue: string) =>
      defineJob({
        name: "drifting",
        version,
        queue,
        run: async (_: null, ctx) => {
          await ctx.step("one", () => 1);
          await ctx.waitFor("go");
        },
      });
    const first = home.hf.work([versioned(3, "drift")], { queues: { drift: 1 } });
    const { id } = await home.hf.enqueue(versioned(3, "drift"), null);
    await expect.poll(async () => (await home.hf.jobs.get(id))?.waitsFor, eventually).toBe("signal");
    const page = await home.open(`/jobs/${id}`);
    await page.getByText("Code version").waitFor();
    expect(await page.getByText(/workers (now )?have v/).count()).toBe(0);
    await first.stop();
    const newer = home.hf.work([versioned(5, "drift")], { queues: { drift: 1 } });
    await newer.ready;
    await page.reload();
    await page.getByText("This run began with code v3; workers now have v5").waitFor();
    await accessible(page);
    await shot(page, "drift");
    await newer.stop();
    const older = home.hf.work([versioned(2, "drift")], { queues: { drift: 1 } });
    await older.ready;
    await page.reload();
    await page.getByText("It needs code v3; workers have v2").waitFor();
    await older.stop();
  });

  test("a new job, and a copy of one with another input", async () => {
    const page = await home.open("/jobs");
    await page.getByRole("button", { name: "New job" }).click();
    await page.getByRole("dialog").waitFor();
    await accessible(page);
    await page.getByRole("combobox", { name: "Name" }).fill("plain");
    await page.getByLabel("Input (JSON)").fill("{ nonsense");
    await page.getByRole("button", { name: "Enqueue" }).click();
    await page.getByText("The input is not valid JSON.").waitFor();
    await page.getByLabel("Input (JSON)").fill('{"from":"the page"}');
    await page.getByLabel("Delay").fill("1h");
    await page.getByRole("button", { name: "Enqueue" }).click();
    await page.getByText("the page").waitFor();
    const { jobs } = await home.hf.jobs.list({ name: "plain" });
    expect(jobs[0]).toMatchObject({ input: { from: "the page" }, state: "scheduled" });
    await page.getByRole("button", { name: "Copy as new" }).click();
    expect(await page.getByRole("combobox", { name: "Name" }).inputValue()).toBe("plain");
    expect(await page.getByLabel("Input (JSON)").inputValue()).toContain("the page");
  });
});

test("a thousand dead jobs: find the error, see what a retry would do, retry them all", async () => {
  const big = await site();
  const doomed = defineJob({
    name: "doomed",
    retry: { attempts: 1 },
    run: async ({ n }: { n: number }) => {
      throw new Error(n % 11 === 0 ? "disk full" : `user ${n} is gone`);
    },
  });
  await big.hf.enqueueMany(Array.from({ length: 1_100 }, (_, n) => ({ job: doomed, input: { n } })));
  const worker = big.hf.work([doomed], { queues: { default: 50 } });
  await worker.ready;
  await worker.idle();
  await worker.stop();
  const page = await big.open("/errors");
  await page
    .getByRole("row", { name: /is gone/ })
    .getByText("1,000")
    .first()
    .waitFor();
  await choose(page.getByRole("row", { name: /is gone/ }), /^Actions for/, "Retry all");
  await page.getByRole("heading", { name: "Retry 1,000 jobs?" }).waitFor();
  await page.getByText("For example").waitFor();
  await accessible(page);
  expect(await big.hf.jobs.count({ state: "dead" })).toBe(1_100);
  await page.getByRole("button", { name: "Retry 1,000" }).click();
  await page.getByText("Retry: 1,000 retried.").waitFor();
  expect(await big.hf.jobs.count({ state: "dead" })).toBe(100);
  expect(await big.hf.jobs.count({ state: "ready" })).toBe(1_000);
  await page.goto(`${big.url}/audit`);
  await page.getByText("jobs.retry").first().waitFor();
  await page.getByRole("cell", { name: "started", exact: true }).waitFor();
});

test("deleting all that match needs the word typed, and follows the filter", async () => {
  const some = await site();
  await some.hf.enqueueMany(
    Array.from({ length: 70 }, (_, n) => ({ job: plain, input: { n }, queue: n < 60 ? "a" : "b" })),
  );
  const page = await some.open("/jobs?queue=a");
  await page.getByLabel("Select all on this page").check();
  await page.getByText("50 jobs selected").waitFor();
  await page.getByRole("button", { name: "Select all 60 matching" }).click();
  await accessible(page);
  await page.getByRole("toolbar").getByRole("button", { name: "Delete" }).click();
  await page.getByRole("heading", { name: "Delete 60 jobs?" }).waitFor();
  await page.getByRole("button", { name: "Delete 60" }).click();
  await page.getByRole("dialog").waitFor();
  expect(await some.hf.jobs.count()).toBe(70);
  await page.getByLabel(/to confirm/).fill("delete");
  await page.getByRole("button", { name: "Delete 60" }).click();
  await page.getByText("Delete: 60 deleted.").waitFor();
  expect(await some.hf.jobs.count()).toBe(10);
});

test("queues: pause, resume, settings; holds: set and clear; workers: quiet, resume, stop", async () => {
  const page = await home.open("/queues");
  await choose(page, "mail", "Pause");
  await page.getByText("mail paused").waitFor();
  await expect
    .poll(async () => (await home.hf.queues.list()).find(({ name }) => name === "mail")?.paused, eventually)
    .toBe(true);
  await choose(page, "mail", "Resume");
  await offers(page, "mail", "Pause");
  await page.getByRole("link", { name: "mail", exact: true }).click();
  await page.getByRole("button", { name: "Settings", exact: true }).click();
  await accessible(page);
  await page.getByLabel("Slots of each worker").fill("3");
  await page.getByLabel("Keep done jobs").fill("2d");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Settings saved").waitFor();
  await page.getByText("2 d", { exact: true }).waitFor();

  await page.goto(`${home.url}/limits`);
  await page.getByRole("button", { name: "New hold" }).click();
  await page.getByLabel("Name").fill("night");
  await page.getByLabel("Queues").fill("mail, media");
  await page.getByLabel("Reason").fill("the API sleeps");
  await page.getByRole("dialog").getByRole("button", { name: "Hold" }).click();
  await page.getByText("the API sleeps").waitFor();
  expect(await home.hf.holds.list()).toMatchObject([{ name: "night", queues: ["mail", "media"] }]);
  await page.getByRole("button", { name: "Clear night" }).click();
  await page.getByText("No holds").waitFor();

  await page.goto(`${home.url}/workers`);
  await choose(page, "web-1", "Quiet");
  await page.locator(".toast").getByText("Worker is quiet").waitFor();
  await page.getByRole("cell", { name: "quiet", exact: true }).waitFor();
  await accessible(page);
  expect((await home.hf.workers.list()).map(({ quietAt }) => quietAt === null)).toEqual([false]);
  await choose(page, "web-1", "Resume");
  await offers(page, "web-1", "Quiet");
  await expect
    .poll(async () => (await home.hf.workers.list()).map(({ quietAt }) => quietAt), eventually)
    .toEqual([null]);
  await choose(page, "web-1", "Stop");
  filled.letGo();
  await page.getByRole("dialog").getByRole("button", { name: "Stop" }).click();
  await page.getByRole("heading", { name: "No workers" }).waitFor();
});

test("live: what another client does is seen without a reload, and pausing stops that", async () => {
  const other = await site();
  const page = await other.open("/");
  await page.getByRole("button", { name: /^Live/ }).waitFor();
  await other.hf.enqueue(plain, 1);
  await page.getByText("No worker is running, and 1 ready job waits.").waitFor();
  await page.goto(`${other.url}/jobs`);
  await page.getByRole("link", { name: "plain" }).waitFor();
  await other.hf.enqueue("second", 1);
  await page.getByRole("button", { name: "1 new" }).click();
  await page.getByRole("link", { name: "second", exact: true }).waitFor();
  await page.getByRole("button", { name: /^Live/ }).click();
  await page.getByRole("button", { name: /^Paused/ }).waitFor();
  await other.hf.enqueue("third", 1);
  await page.waitForTimeout(1_500);
  expect(await page.getByRole("link", { name: "third" }).count()).toBe(0);
});

test("[K3] what the stream read before a change of one's own, and tells after it, does not undo it on the page", async () => {
  const gate = { open: Promise.resolve(), let: (): void => {} };
  const asked: string[] = [];
  const slow = await site({}, (handler) => {
    const answer = async (...[request, from]: Parameters<DashboardHandler>): Promise<Response> => {
      const response = await handler(request, from);
      const { pathname, search } = new URL(request.url);
      if (request.method === "GET") asked.push(pathname + decodeURIComponent(search));
      if (!pathname.endsWith("/stream") || response.body === null) return response;
      const held = new TransformStream<Uint8Array, Uint8Array>({
        transform: async (chunk, controller) => {
          await gate.open;
          controller.enqueue(chunk);
        },
      });
      return new Response(response.body.pipeThrough(held), response);
    };
    return Object.assign(answer, { close: () => handler.close() });
  });
  const { id } = await slow.hf.enqueue(plain, 1);
  const page = await slow.open("/queues");
  await page.getByRole("button", { name: /^Live/ }).waitFor();
  gate.open = new Promise((resolve) => (gate.let = resolve));
  await page.evaluate(
    `history.pushState({}, "", "/jobs/${id}"); dispatchEvent(new PopStateEvent("popstate"))`,
  );
  const pause = page.getByRole("button", { name: "Pause", exact: true });
  await pause.waitFor();
  // Its topic is asked for, and what it was is on its way.
  await expect
    .poll(() => asked.some((path) => path.includes("/stream?") && path.includes(`job:${id}`)), eventually)
    .toBe(true);
  await pause.click();
  await page.getByRole("button", { name: "Resume" }).waitFor();
  await page.evaluate(`window.seen = []; new MutationObserver(() => {
    window.seen.push([...document.querySelectorAll("main button")].map(({ textContent }) => textContent.trim()).join());
  }).observe(document.body, { childList: true, subtree: true, characterData: true })`);
  asked.length = 0;
  gate.let();
  // It was told, and not taken for what is so: that was asked for.
  await expect.poll(() => asked.some((path) => path.includes(`/jobs/${id}?`)), eventually).toBe(true);
  await page.getByRole("button", { name: "Resume" }).waitFor();
  expect((await page.evaluate<string[]>("window.seen")).filter((names) => /\bPause\b/.test(names))).toEqual(
    [],
  );
});

test("[K3] a screen whose first answer failed shows what there is as soon as it is answered, by itself", async () => {
  let failures = 1;
  const ill = await site({}, (handler) =>
    Object.assign(
      async (...[request, from]: Parameters<DashboardHandler>): Promise<Response> =>
        new URL(request.url).pathname.endsWith("/api/v1/jobs") && failures-- > 0
          ? new Response(null, { status: 503 })
          : handler(request, from),
      { close: () => handler.close() },
    ),
  );
  await ill.hf.enqueue(plain, 1);
  const page = await ill.open("/jobs", { noisy: true });
  await page.getByRole("link", { name: "plain" }).waitFor();
  expect(failures).toBeLessThan(0);
});

test("read-only and a viewer's page offer nothing that would be refused", async () => {
  const shown = await site({ readOnly: true });
  await shown.hf.enqueue(plain, 1);
  const page = await shown.open("/jobs");
  await page.getByText("read-only").waitFor();
  expect(await page.getByRole("button", { name: "New job" }).count()).toBe(0);
  await page.getByRole("checkbox", { name: /Select plain/ }).check();
  await page.getByText("1 job selected").waitFor();
  expect(
    await page
      .getByRole("toolbar")
      .getByRole("button", { name: /Retry|Delete|Cancel|Run now/ })
      .count(),
  ).toBe(0);
  await page.goto(`${shown.url}/queues`);
  await page.getByRole("link", { name: "default" }).waitFor();
  expect(await page.getByRole("button", { name: /Pause/ }).count()).toBe(0);
});

test("by keyboard alone: go, find, move, choose, act, confirm", async () => {
  const some = await site();
  const ids = (
    await some.hf.enqueueMany(Array.from({ length: 5 }, (_, n) => ({ job: plain, input: { n } })))
  ).map(({ id }) => id);
  const page = await some.open("/");
  const keys = page.keyboard;
  await keys.press("g");
  await keys.press("j");
  await page.getByRole("heading", { name: "Jobs", level: 1 }).waitFor();
  await page.getByRole("link", { name: "plain" }).first().waitFor();
  await keys.press("j");
  await keys.press("j");
  await keys.press("x");
  await page.getByText("1 job selected").waitFor();
  await keys.press("c");
  await page.getByRole("heading", { name: "Cancel 1 job?" }).waitFor();
  await page.getByRole("button", { name: "Cancel 1" }).and(page.locator(":enabled")).waitFor();
  await keys.press("Tab");
  await keys.press("Enter");
  await page.getByText("Cancel: 1 cancelled.").waitFor();
  expect((await some.hf.jobs.get(ids[3]!))?.state).toBe("cancelled");

  await keys.press("/");
  await keys.type("state:cancelled");
  await keys.press("Enter");
  await page.getByText("1 job shown of 1").waitFor();
  await keys.press("Escape");
  await keys.press("j");
  await keys.press("Enter");
  await page.getByText("Cancelled at").first().waitFor();
  await keys.press("r");
  await page.locator(".toast").getByText("Retried").waitFor();

  await keys.press("Control+k");
  await page.getByRole("combobox").and(page.locator(":focus")).waitFor();
  await keys.type("worke");
  await accessible(page);
  await keys.press("Enter");
  await page.getByRole("heading", { name: "Workers", level: 1 }).waitFor();
  await keys.press("Control+k");
  await page.getByRole("combobox").and(page.locator(":focus")).waitFor();
  await keys.type(ids[0]!);
  await keys.press("Enter");
  await page.getByRole("main").getByText(ids[0]!).waitFor();
  await keys.press("?");
  await page.getByRole("heading", { name: "Keyboard and settings" }).waitFor();
  await accessible(page);
  await page.getByLabel("Single-key shortcuts").uncheck();
  await keys.press("Escape");
  await keys.press("g");
  await keys.press("q");
  await page.waitForTimeout(200);
  expect(page.url()).toContain("/jobs/");
});

test("the verdict's clauses lead to what they speak of, and what is bad is said on every screen", async () => {
  const some = await site();
  await some.hf.enqueue(plain, 1);
  const page = await some.open("/");
  await page.getByText("No worker is running, and 1 ready job waits.").waitFor();
  await page.getByRole("link", { name: "1 ready", exact: true }).click();
  await page.waitForURL(/jobs\?state=ready/);
  await page.getByRole("link", { name: "No worker is running, and 1 ready job waits." }).click();
  await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
  await page.getByRole("link", { name: "No worker", exact: true }).click();
  await page.getByRole("heading", { name: "Workers", level: 1 }).waitFor();
  await accessible(page);
});

test("settings: times as dates, and how often what is live is asked for", async () => {
  const page = await home.open("/jobs");
  await page.getByText(/ago$/).first().waitFor();
  await page.keyboard.press("?");
  await page.getByLabel("Show times as dates").check();
  await page.getByLabel("Live updates").selectOption("60");
  await accessible(page);
  await page.getByRole("button", { name: "Close" }).click();
  await expect.poll(() => page.getByText(/ago$/).count(), eventually).toBe(0);
  await page.reload();
  await page.getByRole("heading", { name: "Jobs", level: 1 }).waitFor();
  expect(await page.evaluate(() => localStorage.getItem("holdfast.refresh"))).toBe("60");
});

test("filters are in the address: a link shows what its sender saw, and back goes back", async () => {
  const page = await home.open("/jobs?state=dead&queue=billing&search=bob");
  await page.getByText("bob").first().waitFor();
  await page.getByRole("button", { name: "Remove the filter search" }).click();
  expect(new URL(page.url()).search).toBe("?state=dead&queue=billing");
  await page.goBack();
  await page.getByRole("button", { name: "Remove the filter search" }).waitFor();
  await page.getByRole("combobox", { name: "Find jobs" }).fill('name:charge-card lane:ann "declined"');
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Remove the filter lane" }).waitFor();
  expect(new URL(page.url()).searchParams.get("lane")).toBe("ann");
});

test("a hundred thousand jobs: every list comes in pages, and the page stays quick", async () => {
  const big = await site();
  for (let n = 0; n < 100_000; n += 5_000)
    await big.hf.enqueueMany(
      Array.from({ length: 5_000 }, (_, i) => ({
        job: plain,
        input: { n: n + i },
        ...(i % 10 === 0 ? { delay: "1h" as const } : {}),
      })),
    );
  const page = await big.open("/jobs");
  await page.getByText("50 jobs shown of 10k+").waitFor();
  await page.getByRole("link", { name: /Ready 10k\+/ }).waitFor();
  expect(await page.locator("tbody tr").count()).toBe(50);
  for (let more = 2; more <= 4; more += 1) {
    await page.getByRole("button", { name: "Load more" }).click();
    await page.getByText(`${more * 50} jobs shown`).waitFor();
  }
  await page.getByRole("combobox", { name: "Find jobs" }).fill("99999");
  const started = Date.now();
  await page.keyboard.press("Enter");
  await page.getByText('{"n":99999}').waitFor();
  // A search looks at a bounded number of jobs; the machine may be busy.
  expect(Date.now() - started).toBeLessThan(5_000);
  await page.goto(`${big.url}/scheduled`);
  await page.getByText("50 jobs shown of 10,000").waitFor();
  await page.goto(`${big.url}/`);
  await page.getByText("10k+").first().waitFor();
}, 120_000);
