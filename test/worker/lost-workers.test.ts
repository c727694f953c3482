// F, workers that died: they are told of for an hour, with what they still hold; who closes or comes back is not among them.
import { expect, test } from "vitest";
import { onEveryStore } from "../support/stores.ts";
import { heldJob, lost, newWorld, quickJob } from "../support/world.ts";
import { operatorOf } from "../../src/operate/operator.ts";

onEveryStore((target) => {
  test("[F7] a worker that was killed is told of with the jobs it holds, until they are taken over; then for an hour", async () => {
    const world = await newWorld(target);
    const [dying, admin] = [await world.client(), await world.client()];
    const { job, runs } = heldJob(world);
    const doomed = await dying.work([job], { queues: { default: 2 }, name: "doomed" });
    const made = await admin.hf.enqueueMany([1, 2].map((n) => ({ job, input: { n } })));
    await world.until("both to run", () => runs.length === 2);
    const died = () => operatorOf(admin.hf).store.workers.lost();
    expect(await died()).toEqual([]);
    dying.tap.kill();
    await world.advance("5m");
    // Nobody is there to take anything over.
    const [line, ...others] = await died();
    expect(others).toEqual([]);
    expect(line).toMatchObject({ id: doomed.id, name: "doomed" });
    expect([...line!.jobs].sort()).toEqual(made.map(({ id }) => id).sort());
    const heir = await admin.work([job], { queues: { default: 2 } });
    await world.until("the heir to run them", () => runs.length === 4);
    expect((await died()).map(({ name, jobs }) => [name, jobs])).toEqual([["doomed", []]]);
    for (const run of runs.slice(2)) run.finish();
    // One that goes as it should is not told of.
    await world.finish(heir.stop());
    expect((await died()).map(({ name }) => name)).toEqual(["doomed"]);
    await world.advance("56m");
    expect(await died()).toEqual([]);
  });

  test("[F7] one that lost its session and came back with another is not told of", async () => {
    const world = await newWorld(target);
    const [client, admin] = [await world.client(), await world.client()];
    const { job } = quickJob(world);
    await client.work([job], { queues: ["default"] });
    client.tap.around = (verb, call) =>
      verb === "sessions.renew" || verb === "sessions.open" ? lost() : call();
    const died = async (): Promise<number> => (await operatorOf(admin.hf).store.workers.lost()).length;
    await world.until("the session to be lost", async () => (await died()) === 1, "2m");
    client.tap.around = null;
    await world.until("a new session", async () => (await admin.hf.workers.list()).length === 1);
    expect(await died()).toBe(0);
  });
});
