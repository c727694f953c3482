// Jobs that were claimed ahead of a slot go back when their queue is stopped: nobody should wait for what may not run.
import { expect, test } from "vitest";
import { onEveryStore } from "../support/stores.ts";
import { type Client, heldJob, newWorld, quickJob, type World } from "../support/world.ts";

type Options = Parameters<typeof quickJob>[2];

/** One job runs and ten wait in the worker's memory, claimed. */
async function ahead(world: World, client: Client, options: Options = {}) {
  const quick = quickJob(world, "quick", options);
  const held = heldJob(world, "held");
  await client.work([quick.job, held.job], { queues: { default: 1, other: 1 } });
  // Short jobs, so that the worker claims ahead.
  for (let n = 0; n < 5; n += 1) {
    await client.hf.enqueue(quick.job, { n });
    await world.until("it to be done", () => quick.runs.length === n + 1);
  }
  await client.hf.enqueue(held.job, { n: 0 });
  await world.until("the slot to be taken", () => held.runs.length === 1);
  const waiting = Array.from({ length: 10 }, (_, n) => ({ job: quick.job, input: { n } }));
  const ids = (await client.hf.enqueueMany(waiting)).map(({ id }) => id);
  const states = async () =>
    (await Promise.all(ids.map((id) => client.hf.jobs.get(id)))).map(
      (job) => `${job!.state} ${job!.attempt}`,
    );
  await world.quiet();
  expect(held.runs).toHaveLength(1);
  expect(new Set(await states())).toEqual(new Set(["running 1"]));
  return { quick, held, states };
}

const back = new Set(["ready 0"]);
const stops: readonly {
  readonly what: string;
  readonly stop: (boss: Client) => Promise<unknown>;
  readonly go: (boss: Client) => Promise<unknown>;
}[] = [
  {
    what: "a hold over its queue",
    stop: ({ hf }) => hf.holds.set("stop", { queues: ["default"] }),
    go: ({ hf }) => hf.holds.clear("stop"),
  },
  {
    what: "a hold over everything",
    stop: ({ hf }) => hf.holds.set("stop", { reason: "session expired" }),
    go: ({ hf }) => hf.holds.clear("stop"),
  },
  {
    what: "a pause",
    stop: ({ hf }) => hf.queues.pause("default"),
    go: ({ hf }) => hf.queues.resume("default"),
  },
];

onEveryStore((target) => {
  for (const { what, stop, go } of stops) {
    test(`[H5] [F3] ${what}, set by another process, gives back what was claimed ahead, and lets go on what runs`, async () => {
      const world = await newWorld(target);
      const [client, boss] = [await world.client(), await world.client()];
      const { quick, held, states } = await ahead(world, client);
      await stop(boss);
      await world.advance(300); // less than the second after which they would go back anyhow
      expect(new Set(await states())).toEqual(back);
      held.runs[0]!.finish("done");
      await world.advance("10s", 500);
      expect(new Set(await states())).toEqual(back);
      expect(quick.runs).toHaveLength(5);
      expect(held.runs[0]!.ctx.signal.aborted).toBe(false);
      await go(boss);
      await world.until("the rest to be done", () => quick.runs.length === 15);
      expect(quick.runs.every(({ attempt }) => attempt === 1)).toBe(true);
    });
  }

  test("[H5] a hold over another queue gives nothing back", async () => {
    const world = await newWorld(target);
    const [client, boss] = [await world.client(), await world.client()];
    const { states } = await ahead(world, client);
    await boss.hf.holds.set("stop", { queues: ["other"] });
    await world.advance(300);
    expect(new Set(await states())).toEqual(new Set(["running 1"]));
  });

  test("[H5] [N5] given back, they stand in no count of their lane or queue", async () => {
    const world = await newWorld(target);
    const [client, boss] = [await world.client(), await world.client()];
    await boss.hf.queues.set("default", { concurrency: 100 });
    const { quick, held, states } = await ahead(world, client, {
      lane: () => "acme",
      lanes: { concurrency: 100 },
    });
    await boss.hf.holds.set("stop", {});
    await world.advance(300);
    expect(new Set(await states())).toEqual(back);
    expect((await boss.hf.lanes.list({ queue: "default" })).lanes).toMatchObject([
      { running: 0, waiting: 10 },
    ]);
    held.runs[0]!.finish();
    await boss.hf.lanes.set("default", "acme", { concurrency: 1 });
    await boss.hf.queues.set("default", { concurrency: 1 });
    await boss.hf.holds.clear("stop");
    await world.until("the rest to be done", () => quick.runs.length === 15);
  });
});
