// Hostile text in every field that a user of jobs can fill: it is shown as text, runs nothing, asks for nothing.
import { beforeAll, expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { fixtures } from "./fixtures.ts";
import { closeSites, type Site, site, useBrowser } from "./support.ts";

useBrowser();
closeSites();

const corpus = [
  `<script>window.hacked=1</script>`,
  `<img src=x onerror="window.hacked=1">`,
  `"><svg onload=window.hacked=1>`,
  `javascript:window.hacked=1`,
  `<iframe srcdoc="<script>parent.hacked=1</script>">`,
  `</script><script>window.hacked=1</script>`,
  `{{constructor.constructor('window.hacked=1')()}}`,
  `<a href="javascript:window.hacked=1">x</a>`,
  `<style>*{background:url(http://evil.example/x)}</style>`,
  `<math><mtext><table><mglyph><style><img src=x onerror=window.hacked=1>`,
  `\u2028alert(1)\u2029<!--`,
  `<base href="http://evil.example/">`,
  `&lt;script&gt;window.hacked=1&lt;/script&gt;`,
  `\u0000<b>\ud800</b>`,
];
const all = corpus.join("\n");

let home: Site;
let id = "";
beforeAll(async () => {
  const evil = fixtures([]);
  home = await site(
    { label: all, auth: { token: "browser-test-token-0123456789" } },
    {
      ...evil,
      schedules: {
        ...evil.schedules!,
        list: async () => [
          { ...(await evil.schedules!.list())[0]!, name: all, job: all, timezone: all, error: all },
        ],
      },
      breakers: {
        ...evil.breakers!,
        list: async () => [
          { key: all, state: "open", failures: 1, threshold: 2, openUntil: null, error: all },
        ],
      },
      lanes: {
        ...evil.lanes!,
        list: async () => ({
          lanes: [
            {
              queue: all,
              lane: all,
              ready: { count: 1, more: false },
              running: 0,
              concurrency: null,
              rate: null,
              weight: 1,
              paused: false,
            },
          ],
          cursor: null,
        }),
      },
      flows: {
        ...evil.flows!,
        history: async () => ({
          steps: [
            {
              name: all,
              kind: "step",
              state: "failed",
              attempt: 1,
              startedAt: 1,
              endedAt: 2,
              until: null,
              output: JSON.stringify(all),
              error: all,
              jobId: null,
            },
          ],
          signals: [{ name: all, key: all, at: 1, usedAt: null, data: JSON.stringify(all) }],
          children: [{ id: "x", name: all, queue: all, state: "done", createdAt: 1, endedAt: 2 }],
          graph: {
            nodes: [
              {
                id: all,
                label: all,
                kind: "step",
                state: "done",
                jobId: null,
                startedAt: null,
                endedAt: null,
              },
              {
                id: "b",
                label: all,
                kind: "step",
                state: "done",
                jobId: "javascript:alert(1)",
                startedAt: null,
                endedAt: null,
              },
            ],
            edges: [{ from: all, to: "b" }],
          },
        }),
      },
    },
  );
  const job = defineJob({
    name: "evil",
    retry: { attempts: 1 },
    run: async (_input: unknown, ctx) => {
      await ctx.progress({ [all]: all });
      throw Object.assign(new Error(all), { stack: all });
    },
  });
  const made = await home.hf.enqueue(
    job,
    { [all]: all, list: corpus },
    { context: all, lane: corpus[1]!, key: corpus[2]! },
  );
  id = made.id;
  const worker = home.hf.work([job], {
    queues: ["default"],
    name: "evil-worker",
  });
  await worker.ready;
  await worker.idle();
  await home.hf.enqueue("later", corpus, { delay: "1h", context: all, lane: corpus[0]! });
  await home.hf.holds.set("evil", { reason: all.replaceAll("\u0000", "").toWellFormed() });
}, 60_000);

test.each([
  "/",
  "/jobs",
  "/jobs/:id",
  "/jobs?state=dead",
  `/jobs?search=${encodeURIComponent(corpus[1]!)}&lane=${encodeURIComponent(corpus[0]!)}&key=${encodeURIComponent(corpus[2]!)}`,
  "/errors",
  "/scheduled",
  "/retries",
  "/queues",
  "/queues/default",
  "/schedules",
  "/workers",
  "/limits",
  "/audit",
])("hostile text is only text on %s", async (path) => {
  const page = await home.open(path.replace(":id", id));
  await page.waitForTimeout(400);
  expect(await page.evaluate("window.hacked")).toBeUndefined();
  expect(
    await page.evaluate(
      "document.querySelectorAll('#app script, #app iframe, #app img, #app base, #app style, #app math, a[href^=\"javascript:\"]').length",
    ),
  ).toBe(0);
});

test("the dialogs of a hostile job are text as well", async () => {
  const page = await home.open(`/jobs/${id}`);
  await page.getByText("window.hacked=1").first().waitFor();
  await page.getByRole("button", { name: "Copy as new" }).click();
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").waitFor();
  await page.waitForTimeout(200);
  expect(await page.evaluate("window.hacked")).toBeUndefined();
});
