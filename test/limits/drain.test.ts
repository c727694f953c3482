// F2, F3, K1: a queue that is drained finishes what is due and is paused by itself, whoever finds it empty.
import { expect, test } from "vitest";
import { onEveryStore } from "../support/stores.ts";
import { type Client, heldJob, jobOf, newWorld, quickJob } from "../support/world.ts";

async function stateOf({ hf }: Pick<Client, "hf">, queue: string): Promise<string> {
  const found = (await hf.queues.list()).find(({ name }) => name === queue);
  expect(found?.drainingAt !== null).toBe(found?.draining);
  expect(found?.pausedAt !== null).toBe(found?.paused);
  if (found?.paused === true) return "paused";
  return found?.draining === true ? "draining" : "open";
}

onEveryStore((target) => {
  test("[K1][F3] a draining queue finishes what is due and what comes in, is paused with its last job, and leaves what is due later", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { hf, told, work } = client;
    const drained = told("queue.drained");
    const { job, runs } = heldJob(world);
    await work([job], { queues: { default: 1, other: 1 } });
    await hf.enqueueMany([1, 2].map((n) => ({ job, input: { n } })));
    const later = await hf.enqueue(job, { n: 4 }, { delay: "1h" });
    await world.until("one to run", () => runs.length === 1);

    await hf.queues.drain("default");
    const since = (await hf.queues.list())[0]?.drainingAt;
    await world.advance("1s");
    await hf.queues.drain("default");
    expect((await hf.queues.list())[0]?.drainingAt).toEqual(since);
    const third = await hf.enqueue(job, { n: 3 });
    expect(await hf.jobs.why(third.id)).toMatchObject({
      reason: "ready",
      text: expect.stringContaining("is draining") as string,
    });
    for (const n of [0, 1, 2]) {
      await world.until("the next to run", () => runs.length === n + 1);
      expect(await stateOf(client, "default")).toBe("draining");
      expect(drained).toEqual([]);
      runs[n]!.finish();
    }
    // By its last outcome, not by the next poll.
    await world.until("it to stand still", () => drained.length > 0, "200ms");
    expect(drained).toEqual([{ queue: "default" }]);
    expect(await stateOf(client, "default")).toBe("paused");
    await hf.enqueue(job, { n: 5 });
    await world.advance("2h", "5m");
    expect(runs).toHaveLength(3);
    expect((await jobOf(client, later.id)).state).toBe("ready");
    expect((await hf.jobs.why(later.id)).reason).toBe("paused");
    await hf.queues.drain("default");
    expect(await stateOf(client, "default")).toBe("paused");
    expect(drained).toHaveLength(1);
    const trail = await client.tap.raw.insight.audit({ limit: 10, before: null });
    expect(trail).toMatchObject([{ action: "queues.drain", target: "default", outcome: "paused" }]);

    await hf.queues.resume("default");
    await world.until("it to go on", () => runs.length === 4);
  });

  test("[K1] resume ends a draining, pause makes it a pause at once; a bad name is refused before anything is written", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { hf } = client;
    const { id } = await hf.enqueue("some", {});
    await hf.queues.drain("default");
    expect(await stateOf(client, "default")).toBe("draining");
    await hf.queues.set("default", { slots: 3 });
    expect(await stateOf(client, "default")).toBe("draining");
    await hf.queues.resume("default");
    expect(await stateOf(client, "default")).toBe("open");
    await hf.jobs.delete(id);
    expect(await client.tap.raw.queues.endDrains()).toEqual([]);
    expect(await stateOf(client, "default")).toBe("open");

    await hf.enqueue("some", {});
    await hf.queues.drain("default");
    await hf.queues.pause("default");
    expect(await stateOf(client, "default")).toBe("paused");
    await hf.queues.resume("default");
    expect(await stateOf(client, "default")).toBe("open");

    await expect(hf.queues.drain("no good")).rejects.toMatchObject({ code: "BAD_NAME" });
    expect((await hf.queues.list()).map(({ name }) => name)).toEqual(["default"]);
  });

  test("[K1] an empty queue is paused at once, though no worker is there; one with a job that runs or is due is left", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { hf, tap } = client;
    await hf.enqueue("some", {}, { queue: "later", delay: "1h" });
    await hf.enqueue("some", {}, { queue: "due", priority: 7 });
    await hf.enqueue("some", {}, { queue: "laned", lane: "a" });
    await hf.enqueue("some", {}, { queue: "held" });
    const [lease] = await hf.lease({ queues: ["held"] });
    const queues = ["later", "due", "laned", "held", "new"];
    for (const queue of queues) await hf.queues.drain(queue);
    const states = () => Promise.all(queues.map((queue) => stateOf(client, queue)));
    expect(await states()).toEqual(["paused", "draining", "draining", "draining", "paused"]);
    expect(await tap.raw.queues.endDrains()).toEqual([]);
    await lease!.done();
    expect(await tap.raw.queues.endDrains()).toEqual(["held"]);
    expect((await hf.jobs.why((await hf.jobs.list({ queue: "due" })).jobs[0]!.id)).reason).toBe("unserved");
  });

  test("[K1][N11] a queue is not empty while a job of it has yet to hear that the one it waits for has ended", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { fresh } = world;
    const { job, runs } = quickJob(world);
    const child = await client.hf.enqueue("child", null, { queue: "children" });
    await client.hf.enqueue(job, { n: 1 }, { after: [child.id], onDead: "continue" });
    // As between two statements of whoever ends a job: it is over, and nobody has told.
    const its = `${fresh.jobKey} = ${fresh.jobKeyOf("?")}`;
    await fresh.query(`delete from ${fresh.table("ready")} where ${its}`, [child.id]);
    expect(await client.hf.queues.drain("default")).toBe("draining");
    await client.work([job], { queues: ["default"] });
    await world.until("it to hear and run", () => runs.length === 1, "2m");
    await world.until(
      "the queue to stand still",
      async () => (await stateOf(client, "default")) === "paused",
      "90s",
    );
  });

  test("[K1] what a dead worker held is taken over and run before its queue stands still", async () => {
    const world = await newWorld(target);
    const [a, b] = [await world.client(), await world.client()];
    const { job, runs } = heldJob(world);
    await a.work([job], { queues: { default: 1 } });
    await a.hf.enqueue(job, { n: 1 });
    await world.until("it to run", () => runs.length === 1);
    await b.hf.queues.drain("default");
    a.tap.kill();
    await b.work([job], { queues: { default: 1 } });
    expect(await stateOf(b, "default")).toBe("draining");
    await world.until("it to run again", () => runs.length === 2, "5m");
    runs[1]!.finish();
    await world.until("it to stand still", async () => (await stateOf(b, "default")) === "paused", "200ms");
  });

  test("[K1][F8] a worker of other queues ends a draining with its upkeep task; one that idles asks no more than before", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { hf, tap, work, told } = client;
    const drained = told("queue.drained");
    const { job } = quickJob(world);
    await work([job], { queues: ["other"] });
    await hf.enqueue(job, { n: 1 }, { queue: "alone" });
    await hf.queues.drain("alone");
    const asked = tap.count("queues.endDrains");
    await world.advance("5s");
    expect(tap.count("queues.endDrains")).toBe(asked);
    await hf.jobs.delete((await hf.jobs.list({ queue: "alone" })).jobs[0]!.id);
    await world.until("the upkeep task", () => drained.length > 0, "90s");
    expect(drained).toEqual([{ queue: "alone" }]);
    const then = tap.count("queues.endDrains");
    await world.advance("5m", "1s");
    expect(tap.count("queues.endDrains")).toBe(then);
  });
});
