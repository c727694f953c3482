// Limits of lanes and queues with real processes: what the handlers themselves wrote down never exceeds them, also across
// SIGKILL.
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { laneCounts, queueCounts } from "../support/lane-counts.ts";
import { waitFor } from "../support/process.ts";
import { onEveryStore } from "../support/stores.ts";
import { Lab, monotonic } from "./lab.ts";

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

  test("[N5] [N11] runs that sleep in a lane keep to its limits through kills, a pause and a limit that is lowered", async () => {
    const lab = await Lab.on(await target.fresh());
    const { hf } = lab;
    await hf.lanes.set("workflows", "a", { concurrency: 4 });
    await hf.lanes.set("workflows", "b", { concurrency: 1 });
    await hf.queues.set("workflows", { concurrency: 5 });
    const run = (of: string) => ({ job: "walk", input: { ms: 30, of }, queue: "workflows", lane: of });
    const jobs = [
      ...Array.from({ length: 40 }, () => run("a")),
      ...Array.from({ length: 12 }, () => run("b")),
    ];
    await hf.enqueueMany(jobs);
    const children = await Promise.all([1, 2, 3].map(() => lab.start(2, { workflows: 4 })));
    await sleep(400); // anywhere in the middle
    await lab.kill(children[0]!);
    children[0] = await lab.start(2, { workflows: 4 });
    await hf.lanes.pause("workflows", "b");
    await hf.lanes.set("workflows", "a", { concurrency: 2 });
    await sleep(2_000); // what was claimed before has started, and has come to its end
    const pausedFrom = monotonic();
    const more = Array.from({ length: 20 }, () => run("a"));
    await hf.enqueueMany(more);
    await lab.kill(children[1]!);
    await sleep(1_000);
    const pausedUntil = monotonic();
    await hf.lanes.resume("workflows", "b");
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
});
