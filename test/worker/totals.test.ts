// F5: a queue's total split over the live workers that serve it.
import { expect, test } from "vitest";
import { rebalanceOnce } from "../../src/worker/totals.ts";
import { onEveryStore } from "../support/stores.ts";
import { type Client, heldJob, newWorld, sessionInfo } from "../support/world.ts";

onEveryStore((target) => {
  test("[F5] a total of 10 over three workers is 4, 3, 3; one dies: 5, 5; and a change is live", async () => {
    const world = await newWorld(target);
    const clients: Client[] = [];
    for (let n = 0; n < 3; n++) clients.push(await world.client());
    await clients[0]!.hf.queues.set("default", { total: 10 });
    const held = clients.map((_, n) => heldJob(world, `held-${n}`));
    for (const [n, client] of clients.entries()) {
      await client.work([held[n]!.job], { queues: { default: 2 } });
      await world.advance("1s"); // the oldest worker gets the remainder
    }
    for (const { job } of held) for (let n = 0; n < 12; n++) await clients[0]!.hf.enqueue(job, { n });
    await world.until(
      "all slots to be taken",
      () => held.reduce((sum, { runs }) => sum + runs.length, 0) >= 10,
    );
    await world.advance("6s");
    expect(held.map(({ runs }) => runs.length)).toEqual([4, 3, 3]);
    clients[0]!.tap.kill();
    await world.until(
      "the others to take its part",
      () => held[1]!.runs.length === 5 && held[2]!.runs.length === 5,
      "60s",
    );
    await world.advance("10s");
    expect(held.slice(1).map(({ runs }) => runs.length)).toEqual([5, 5]);
    await clients[1]!.hf.queues.set("default", { total: 13 });
    await world.until("the change", () => held[1]!.runs.length === 7 && held[2]!.runs.length === 6, "3s");
    await clients[1]!.hf.queues.set("default", { total: null });
    await world.advance("3s"); // both have heard of it before a slot is free
    for (const { runs } of held.slice(1)) for (const run of runs) run.finish();
    await world.advance("3s");
    expect(held.slice(1).map(({ runs }) => runs.length)).toEqual([9, 8]);
  });

  test("[F5][F15] rebalanceOnce splits by who is alive now; who is not listed yet takes its part of one more", async () => {
    const world = await newWorld(target);
    const { hf, tap } = await world.client();
    await hf.queues.set("mail", { total: 10 });
    const store = tap.raw;
    const settings = () => store.queues.settings(["mail"]);
    const served = [{ queue: "mail", configured: 2, even: false }];
    const share = async (session: number | null) =>
      (await rebalanceOnce({ store, served, session }, await settings())).get("mail");
    expect(await share(null)).toBe(10);
    const open = async (queues: Record<string, number>) => {
      await world.clock.advance("10ms");
      return store.sessions.open(sessionInfo({ queues }));
    };
    const first = await open({ mail: 1 });
    expect(await share(null)).toBe(5);
    await open({ other: 1 });
    const [second, third] = [await open({ mail: 1 }), await open({ mail: 1 })];
    expect(await share(null)).toBe(3);
    expect([await share(first), await share(second), await share(third)]).toEqual([4, 3, 3]);
    await store.sessions.close(second);
    expect([await share(first), await share(third)]).toEqual([5, 5]);
    await world.clock.advance("31s");
    expect(await share(null)).toBe(10);
  });

  test("[F5] weights share out the slots of queues that were given no number", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    await hf.queues.set("a", { weight: 3 });
    const { job, runs } = heldJob(world);
    await work([job], { queues: ["a", "b"] });
    for (let n = 0; n < 20; n++)
      await hf.enqueueMany([
        { job, input: { n }, queue: "a" },
        { job, input: { n }, queue: "b" },
      ]);
    await world.advance("3s");
    const of = (queue: string) => runs.filter(({ ctx }) => ctx.queue === queue).length;
    expect([of("a"), of("b")]).toEqual([6, 2]);
  });
});
