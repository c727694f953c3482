// Hostile text in every field that a user of jobs can fill: it is shown as text, runs nothing, asks for nothing.
import { beforeAll, expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { closeSites, type Site, site, useBrowser } from "./support.ts";
import { adaptersOf } from "../../src/dashboard/adapters.ts";

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
let group = "";
beforeAll(async () => {
  // What no client lets in, too: as if somebody had written to the tables.
  home = await site({ label: all, auth: { token: "browser-test-token-0123456789" } }, (hf) => {
    const real = adaptersOf(hf);
    const some = { kind: "step", state: "failed", jobId: null } as const;
    return {
      ...real,
      schedules: {
        ...real.schedules,
        list: async () =>
          (await real.schedules.list()).map((schedule) => ({
            ...schedule,
            name: all,
            job: all,
            timezone: all,
            error: all,
            edited: [all],
          })),
      },
      breakers: {
        ...real.breakers,
        list: async () => (await real.breakers.list()).map((breaker) => ({ ...breaker, key: all })),
      },
      lanes: {
        ...real.lanes,
        list: async (page) => {
          const { lanes, cursor } = await real.lanes.list(page);
          return { lanes: lanes.map((lane) => ({ ...lane, queue: all, lane: all })), cursor };
        },
      },
      flows: {
        ...real.flows,
        history: async () => ({
          attempts: [{ attempt: 1, startedAt: 1, endedAt: 2, error: all }],
          stepCount: 1,
          earlier: null,
          steps: [
            {
              ...some,
              name: all,
              tries: 1,
              triedAt: [{ startedAt: 1, endedAt: 2 }],
              startedAt: 1,
              endedAt: 2,
              until: null,
              output: JSON.stringify(all),
              error: all,
            },
          ],
          signals: [
            {
              name: all,
              key: all,
              step: all,
              state: "waiting",
              since: 1,
              takenAt: null,
              data: JSON.stringify(all),
            },
          ],
          children: [{ id: "x", name: all, relation: "called", state: "done", step: all, error: all }],
          graph: {
            nodes: [
              { ...some, id: all, label: all },
              { ...some, id: "b", label: all, jobId: "javascript:alert(1)" },
            ],
            edges: [{ from: all, to: "b" }],
            cut: true,
          },
        }),
      },
    };
  });
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
  await home.hf.schedules.put({ name: "evil", every: "1h", job, input: null });
  await home.hf.queues.set("default", { breaker: { after: 1, cooldown: "1h" } });
  const worker = home.hf.work([job], {
    queues: ["default"],
    name: "evil-worker",
  });
  await worker.ready;
  while ((await home.hf.breakers.list())[0]?.state !== "open")
    await new Promise((resolve) => setTimeout(resolve, 20));
  await home.hf.enqueue("later", corpus, { delay: "1h", context: all, lane: corpus[0]! });
  while (group === "") {
    group = (await home.hf.errors.list())[0]?.group ?? "";
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const text = all.replaceAll("\u0000", "").toWellFormed();
  await home.hf.errors.resolve(group, { note: text, link: `https://example.org/?${text.slice(0, 500)}` });
  await home.hf.holds.set("evil", { reason: all.replaceAll("\u0000", "").toWellFormed() });
}, 60_000);

test.each([
  "/",
  "/jobs",
  "/jobs/:id",
  "/jobs?state=dead",
  `/jobs?search=${encodeURIComponent(corpus[1]!)}&lane=${encodeURIComponent(corpus[0]!)}&key=${encodeURIComponent(corpus[2]!)}`,
  "/errors",
  "/errors/:group",
  "/scheduled",
  "/workflows",
  "/retries",
  "/queues",
  "/queues/default",
  "/schedules",
  "/workers",
  "/limits",
  "/audit",
])("hostile text is only text on %s", async (path) => {
  const page = await home.open(path.replace(":id", id).replace(":group", group));
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
