// Budgets, breakers, holds and totals with real processes: they hold over all of them, also when some are killed.
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { temporaryDirectory } from "../support/guard.ts";
import { waitFor } from "../support/process.ts";
import { onEveryStore } from "../support/stores.ts";
import { Lab } from "./lab.ts";

onEveryStore((target) => {
  test("[H1] with 8 workers in 4 processes, of which some are killed, no window has more starts than a job's budget allows", async () => {
    const lab = await Lab.on(await target.fresh());
    const { hf } = lab;
    // 0.5 tokens a start: 12 at once, and 20 a second.
    await hf.budgets.set("api", { limit: 10, per: "1s", burst: 6 });
    const budget = { name: "api", tokens: 0.5 };
    const input = { ms: 5, of: "call" };
    await hf.queues.set("q", { concurrency: 6 });
    const jobs = Array.from({ length: 100 }, (_, n) => ({
      job: "call",
      input,
      ...(n % 3 === 0 ? { queue: "lanes", lane: `l${n % 2}` } : { queue: n % 3 === 1 ? "q" : "plain" }),
    }));
    await hf.enqueueMany(jobs);
    const queues = { q: 4, lanes: 4, plain: 4 };
    const children = await Promise.all([1, 2, 3, 4].map(() => lab.start(2, queues, budget)));
    for (const victim of [0, 1]) {
      await sleep(300); // anywhere in the middle: what is checked holds in every window
      await lab.kill(children[victim]!);
      children[victim] = await lab.start(2, queues, budget);
    }
    await lab.allDone(jobs.length);
    const starts = lab
      .entries()
      .filter(({ event }) => event === "start")
      .map(({ at }) => at)
      .sort((a, b) => a - b);
    const tooMany: string[] = [];
    starts.forEach((from, i) =>
      starts.slice(i).forEach((to, n) => {
        const allowed = (6 + (10 * (to - from)) / 1_000) / 0.5;
        if (n + 1 > allowed + 1e-6) tooMany.push(`${n + 1} in ${to - from} ms, where ${allowed} are allowed`);
      }),
    );
    expect(tooMany).toEqual([]);
  });

  test("[H3] a breaker that opens stops three processes, tries one job at a time over all of them, and closes again", async () => {
    const lab = await Lab.on(await target.fresh());
    const { hf } = lab;
    const down = join(temporaryDirectory("breaker"), "down");
    writeFileSync(down, "");
    await hf.queues.set("api", { breaker: { after: 5, cooldown: "1s" } });
    const children = [];
    for (let n = 0; n < 3; n++) children.push(await lab.start(1, { api: 4, other: 1 }));
    const input = { ms: 50, of: "api", down };
    await hf.enqueueMany(Array.from({ length: 60 }, () => ({ job: "ping", input, queue: "api" })));
    // What runs when it opens comes to its end; from the first pause on, what starts are probes.
    const starts = () => lab.entries().filter(({ event, of }) => event === "start" && of === "api");
    const probes = () => {
      const all = starts().sort((x, y) => x.at - y.at);
      const first = all.findIndex(({ at }, n) => n > 0 && at - all[n - 1]!.at > 500);
      return first === -1 ? [] : all.slice(first);
    };
    await waitFor(() => probes().length >= 2, { what: "two probes", deadlineMs: 30_000 });
    expect((await hf.breakers.list())[0]).toMatchObject({ key: "queue:api", error: "503" });
    await lab.kill(children[0]!);
    await waitFor(() => probes().length >= 4, { what: "two more probes", deadlineMs: 30_000 });
    const story = lab
      .entries()
      .map(({ event, pid, at }) => `${event} ${pid} ${Math.round(at)}`)
      .join("\n");
    expect(lab.mostAtOnce(probes()[0]!.at).get("api"), story).toBe(1);
    // Three processes of four slots: what they had claimed when they heard of it, and no more.
    expect(starts().length - probes().length).toBeLessThanOrEqual(3 * 4 * 3);
    rmSync(down);
    await lab.allDone(60);
    await waitFor(async () => (await hf.breakers.list()).length === 0, {
      what: "the breaker to close",
      deadlineMs: 10_000,
    });
  });

  test("[H5] a hold stops its queues in every process, also in one that starts later, until it is cleared", async () => {
    const lab = await Lab.on(await target.fresh());
    const { hf } = lab;
    const children = [await lab.start(1, { crawl: 4, other: 1 }), await lab.start(1, { crawl: 4, other: 1 })];
    const input = { ms: 20, of: "crawl" };
    await hf.enqueueMany(Array.from({ length: 400 }, () => ({ job: "nap", input, queue: "crawl" })));
    const starts = () => lab.entries().filter(({ event, of }) => event === "start" && of === "crawl").length;
    await waitFor(() => starts() > 20, { what: "them to run", deadlineMs: 20_000 });
    await hf.holds.set("session-expired", { queues: ["crawl"], reason: "log in again" });
    await waitFor(async () => (await hf.jobs.count({ state: "running", queue: "crawl" })) === 0, {
      what: "the running ones to end",
      deadlineMs: 20_000,
    });
    const before = starts();
    expect(before).toBeLessThan(400);
    await lab.kill(children[0]!);
    children.push(await lab.start(1, { crawl: 4, other: 1 }));
    // That they work is seen in another queue.
    for (let n = 0; n < 5; n++) {
      await hf.enqueue("nap", { ms: 20, of: "other" }, { queue: "other" });
      await waitFor(async () => (await hf.jobs.count({ state: "done", queue: "other" })) === n + 1, {
        what: "the other queue to go on",
        deadlineMs: 20_000,
      });
    }
    expect(starts()).toBe(before);
    await hf.holds.clear("session-expired");
    await lab.allDone(405);
  });

  test("[F5] a total of 10 over three processes is 4, 3, 3, and 5, 5 after one was killed", async () => {
    const lab = await Lab.on(await target.fresh());
    await lab.hf.queues.set("q", { total: 10 });
    const input = { ms: 300, of: "q" };
    const children = [
      await lab.start(1, { q: 2 }),
      await lab.start(1, { q: 2 }),
      await lab.start(1, { q: 2 }),
    ];
    await lab.hf.enqueueMany(Array.from({ length: 1_500 }, () => ({ job: "nap", input, queue: "q" })));
    const shares = () => children.map(({ pid }) => lab.runningBy(pid));
    await waitFor(() => shares().join() === "4,3,3", { what: "4, 3, 3", deadlineMs: 20_000, everyMs: 20 });
    await lab.kill(children.shift()!);
    await waitFor(() => shares().join() === "5,5", { what: "5, 5", deadlineMs: 30_000, everyMs: 20 });
  });
});
