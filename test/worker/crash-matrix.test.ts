// M1: a process may die at any await of claim, run and settle. Here it dies in fake time, at each call to the
// store, before the database has got it and after it has acted on it; test/fault has the same with real SIGKILL.
import { expect, test } from "vitest";
import { onEveryStore } from "../support/stores.ts";
import { type Client, heldJob, jobOf, newWorld, quickJob, type Verb } from "../support/world.ts";

const points: [verb: Verb, when: "before" | "after"][] = (
  [
    "sessions.open",
    "definitions.register",
    "queues.settings",
    "claims.claim",
    "claims.checkDue",
    "settles.settle",
    "sessions.renew",
    "sessions.close",
  ] as const
).flatMap((verb) => [
  [verb, "before"],
  [verb, "after"],
]);

/** Dies at the first call of this verb. */
function mortal(client: Client, verb: Verb, when: "before" | "after"): void {
  const { tap } = client;
  tap.around = async (called, call) => {
    if (called !== verb) return call();
    if (when === "before") return tap.kill();
    const answer = await call();
    tap.kill();
    return answer;
  };
}

onEveryStore((target) => {
  test.each(points)(
    "[M1] a worker that dies at %s, %s the database has acted, loses no job and leaves none stuck",
    async (verb, when) => {
      const world = await newWorld(target);
      const [a, b] = [await world.client(), await world.client()];
      const { job, runs } = quickJob(world);
      const ids = (await b.hf.enqueueMany([1, 2, 3].map((n) => ({ job, input: { n } })))).map(({ id }) => id);
      mortal(a, verb, when);
      const worker = a.hf.work([job], { queues: { default: 2 }, lease: "10s", heartbeat: "3s" });
      await world.advance("4s");
      void worker.stop(); // for closeSession: the last thing that a worker does
      await world.advance("2s");
      expect(a.tap.killed).toBe(true);

      const survivor = await b.work([job], { queues: { default: 2 } });
      await world.until(
        "all to be done",
        async () => (await b.hf.jobs.count({ state: "done" })) === 3,
        "20s",
      );
      await world.finish(survivor.idle());
      const jobs = await Promise.all(ids.map((id) => jobOf(b, id)));
      for (const each of jobs) expect(each).toMatchObject({ state: "done", attempt: 1 });
      // Nothing runs twice but what a death explains.
      const crashes = jobs.reduce((sum, each) => sum + each.crashes, 0);
      expect(runs.length - 3).toBeLessThanOrEqual(crashes);
      expect(await world.rows("ready")).toEqual([]);
      await world.advance("60s");
      expect(await world.rows("claim")).toEqual([]);
    },
  );

  test("[M1] a worker that dies while its handler runs has its job run again, once", async () => {
    const world = await newWorld(target);
    const [a, b] = [await world.client(), await world.client()];
    const { job, runs } = heldJob(world);
    await a.work([job], { queues: { default: 1 } });
    const { id } = await a.hf.enqueue(job, { n: 1 });
    await world.until("it to run", () => runs.length === 1);
    a.tap.kill();
    await b.work([job], { queues: { default: 1 } });
    await world.until("it to run again", () => runs.length === 2, "36s");
    runs[0]!.finish("by the dead");
    runs[1]!.finish("by the living");
    await world.until("it to end", async () => (await jobOf(b, id)).state === "done");
    expect(await jobOf(b, id)).toMatchObject({ output: "by the living", attempt: 1, crashes: 1 });
    expect(runs).toHaveLength(2);
  });
});
