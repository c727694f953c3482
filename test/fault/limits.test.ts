// Limits with real processes: what the handlers themselves wrote down never exceeds them, also across SIGKILL.
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { type Holdfast, open, silentLogger } from "../../src/index.ts";
import { temporaryDirectory } from "../support/guard.ts";
import { laneCounts, queueCounts } from "../support/lane-counts.ts";
import { type NodeProcess, spawnNode, waitFor } from "../support/process.ts";
import { type FreshStore, onEveryStore } from "../support/stores.ts";
import type { Entry, LimitedSpec } from "./children/limited.ts";

const monotonic = (): number => Number(process.hrtime.bigint() / 1_000n) / 1_000;

class Lab {
  readonly hf: Holdfast;
  readonly fresh: FreshStore;
  readonly log = join(temporaryDirectory("limits"), "runs.jsonl");
  readonly killedAt = new Map<number, number>();

  constructor(hf: Holdfast, fresh: FreshStore) {
    this.hf = hf;
    this.fresh = fresh;
  }

  static async on(fresh: FreshStore): Promise<Lab> {
    const hf = await open(fresh.url, { ...fresh.options, logger: silentLogger });
    onTestFinished(() => hf.close());
    return new Lab(hf, fresh);
  }

  async start(
    workers: number,
    queues: Record<string, number>,
    budget?: LimitedSpec["budget"],
  ): Promise<NodeProcess> {
    const spec: LimitedSpec = {
      ...(budget === undefined ? null : { budget }),
      url: this.fresh.url,
      options: this.fresh.options,
      log: this.log,
      workers,
      queues,
    };
    const child = spawnNode("test/fault/children/limited.ts", [JSON.stringify(spec)]);
    onTestFinished(() => child[Symbol.asyncDispose]());
    await child.message("ready", { deadlineMs: 30_000 });
    return child;
  }

  async kill(child: NodeProcess): Promise<void> {
    child.kill("SIGKILL");
    await child.exited;
    this.killedAt.set(child.pid, monotonic());
  }

  entries(): Entry[] {
    if (!existsSync(this.log)) return [];
    const lines = readFileSync(this.log, "utf8").split("\n");
    return lines.filter((line) => line.endsWith("}")).map((line) => JSON.parse(line) as Entry);
  }

  /** The most that ran at once (from then on), by what the limit is of. A killed process's runs end with it. */
  mostAtOnce(since = -Infinity): Map<string, number> {
    const entries = this.entries();
    const ends = new Map(entries.filter(({ event }) => event === "end").map(({ run, at }) => [run, at]));
    const edges: { at: number; of: string; by: number }[] = [];
    for (const { event, of, run, pid, at } of entries) {
      if (event !== "start") continue;
      edges.push({ at, of, by: 1 }, { at: ends.get(run) ?? this.killedAt.get(pid) ?? Infinity, of, by: -1 });
    }
    // Of one instant, ends come first: a place that is free may be taken.
    edges.sort((a, b) => a.at - b.at || a.by - b.by);
    const running = new Map<string, number>();
    const most = new Map<string, number>();
    for (const { at, of, by } of edges) {
      const now = (running.get(of) ?? 0) + by;
      running.set(of, now);
      if (at >= since) most.set(of, Math.max(most.get(of) ?? 0, now));
    }
    return most;
  }

  runningBy(pid: number): number {
    const mine = this.entries().filter((entry) => entry.pid === pid);
    return (
      mine.filter(({ event }) => event === "start").length -
      mine.filter(({ event }) => event === "end").length
    );
  }

  async allDone(count: number): Promise<void> {
    await waitFor(async () => (await this.hf.jobs.count({ state: "done" })) === count, {
      what: `${count} jobs to be done`,
      deadlineMs: 90_000,
      everyMs: 100,
    });
  }
}

/** Everything that lanes and queues count, and what was given back of it. */
async function counted({ fresh }: Lab): Promise<number[]> {
  return [...(await laneCounts(fresh)), ...(await queueCounts(fresh))];
}

const limits = [1, 3, 10];

onEveryStore((target) => {
  test("[N5] with 8 workers in 4 processes, of which some are killed, no limit of a lane or a queue is exceeded at any instant", async () => {
    const lab = await Lab.on(await target.fresh());
    const { hf } = lab;
    for (const limit of limits) {
      await hf.queues.set(`q${limit}`, { concurrency: limit });
      await hf.lanes.set("lanes", `l${limit}`, { concurrency: limit });
    }
    const queues = { q1: 4, q3: 4, q10: 4, lanes: 8 };
    let count = 0;
    for (const limit of limits) {
      const many = limit * 14 + 10;
      const input = { ms: 25, of: `q${limit}` };
      await hf.enqueueMany(Array.from({ length: many }, () => ({ job: "nap", input, queue: input.of })));
      const laned = { ms: 25, of: `l${limit}` };
      await hf.enqueueMany(
        Array.from({ length: many }, () => ({ job: "nap", input: laned, queue: "lanes", lane: laned.of })),
      );
      count += 2 * many;
    }
    const children = await Promise.all([1, 2, 3, 4].map(() => lab.start(2, queues)));
    for (const victim of [0, 1]) {
      await sleep(300); // anywhere in the middle: what is checked holds at every instant
      await lab.kill(children[victim]!);
      children[victim] = await lab.start(2, queues);
    }
    await lab.allDone(count);
    const most = lab.mostAtOnce();
    for (const limit of limits) {
      expect(most.get(`q${limit}`), `queue of ${limit}`).toBeLessThanOrEqual(limit);
      expect(most.get(`l${limit}`), `lane of ${limit}`).toBeLessThanOrEqual(limit);
    }
    // And the limits are used: nothing is counted that does not run.
    expect(most.get("q3")).toBe(3);
    expect(most.get("l3")).toBe(3);
    await waitFor(async () => (await counted(lab)).every((n) => n === 0), {
      what: "the counts to be back at 0",
      deadlineMs: 15_000,
    });
  });

  test("[N5] with 8 workers in 4 processes no sliding window has more starts than a rate allows", async () => {
    const lab = await Lab.on(await target.fresh());
    const { hf } = lab;
    await hf.queues.set("q", { rate: { limit: 10, per: "1s" } });
    await hf.lanes.set("lanes", "l", { rate: { limit: 5, per: "500ms" } });
    const queued = { job: "nap", input: { ms: 1, of: "q" }, queue: "q" };
    const laned = { job: "nap", input: { ms: 1, of: "l" }, queue: "lanes", lane: "l" };
    await hf.enqueueMany(Array.from({ length: 40 }, () => queued));
    await hf.enqueueMany(Array.from({ length: 40 }, () => laned));
    await Promise.all([1, 2, 3, 4].map(() => lab.start(2, { q: 4, lanes: 4 })));
    await lab.allDone(80);
    const starts = (of: string) =>
      lab
        .entries()
        .filter((entry) => entry.event === "start" && entry.of === of)
        .map(({ at }) => at)
        .sort((a, b) => a - b);
    const most = (times: number[], perMs: number) =>
      Math.max(...times.map((from) => times.filter((at) => at >= from && at < from + perMs).length));
    expect(most(starts("q"), 1_000)).toBeLessThanOrEqual(10);
    expect(most(starts("l"), 500)).toBeLessThanOrEqual(5);
  });

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

  test("[N5] [N11] runs that sleep in a lane keep to its limits through kills, a pause and a limit that is lowered", async () => {
    const lab = await Lab.on(await target.fresh());
    const { hf } = lab;
    await hf.lanes.set("flows", "a", { concurrency: 4 });
    await hf.lanes.set("flows", "b", { concurrency: 1 });
    await hf.queues.set("flows", { concurrency: 5 });
    const run = (of: string) => ({ job: "walk", input: { ms: 30, of }, queue: "flows", lane: of });
    const jobs = [
      ...Array.from({ length: 40 }, () => run("a")),
      ...Array.from({ length: 12 }, () => run("b")),
    ];
    await hf.enqueueMany(jobs);
    const children = await Promise.all([1, 2, 3].map(() => lab.start(2, { flows: 4 })));
    await sleep(400); // anywhere in the middle
    await lab.kill(children[0]!);
    children[0] = await lab.start(2, { flows: 4 });
    await hf.lanes.pause("flows", "b");
    await hf.lanes.set("flows", "a", { concurrency: 2 });
    await sleep(2_000); // what was claimed before has started, and has come to its end
    const pausedFrom = monotonic();
    const more = Array.from({ length: 20 }, () => run("a"));
    await hf.enqueueMany(more);
    await lab.kill(children[1]!);
    await sleep(1_000);
    const pausedUntil = monotonic();
    await hf.lanes.resume("flows", "b");
    await lab.allDone(jobs.length + more.length);
    const most = lab.mostAtOnce();
    expect(most.get("a")).toBeLessThanOrEqual(4);
    expect(most.get("b")).toBe(1);
    expect(lab.mostAtOnce(pausedFrom).get("a")).toBeLessThanOrEqual(2);
    const began = lab.entries().filter(({ event, of }) => event === "start" && of === "b");
    expect(began.filter(({ at }) => at > pausedFrom && at < pausedUntil)).toEqual([]);
    await waitFor(async () => (await counted(lab)).every((n) => n === 0), {
      what: "the counts to be back at 0",
      deadlineMs: 15_000,
    });
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
