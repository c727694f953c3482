// O2: an enqueue whose answer was lost is sent again, when the job may have run, ended and been deleted meanwhile.
import { expect, test } from "vitest";
import { onEveryStore } from "../support/stores.ts";
import { lost, newWorld, quickJob, type Client, type World } from "../support/world.ts";

/** The next enqueue is written; its answer is lost, but not before `meanwhile`, in which (`late`) time goes on. */
function loseEnqueue(client: Client, meanwhile: () => Promise<void>, late = false): void {
  let once = true;
  client.tap.around = async (verb, call) => {
    if (verb !== "newJobs.enqueue" || !once) return call();
    once = false;
    await call();
    await (late ? client.tap.late(meanwhile()) : meanwhile());
    return lost();
  };
}

async function gone(world: World): Promise<void> {
  const until = async (): Promise<boolean> => (await world.jobs()).length === 0;
  await world.until("the job to have run and be deleted", until, "20s");
}

onEveryStore((target) => {
  const ways = [
    ["a job", {}, {}],
    ["a job with a unique key", { unique: () => "only" }, {}],
    ["a job with a lane", {}, { lane: "a" }],
  ] as const;
  for (const [what, definition, options] of ways)
    test(`[O2] ${what} with keep: false runs once when its enqueue is sent again after its end`, async () => {
      const world = await newWorld(target);
      const [a, b] = [await world.client(), await world.client()];
      const { job, runs } = quickJob(world, "quick", { keep: false, ...definition });
      await b.work([job], { queues: ["default"] });
      let ended = false;
      loseEnqueue(
        a,
        async () => {
          while (!ended) await new Promise(setImmediate);
        },
        true,
      );
      const sent = a.hf.enqueue(job, { n: 1 }, options);
      await world.until("it to run", () => runs.length === 1, "20s");
      await gone(world);
      ended = true;
      expect(await world.finish(sent)).toMatchObject({ status: "enqueued" });
      await world.advance("10s");
      expect(runs).toHaveLength(1);
      expect(await world.jobs()).toEqual([]);
      expect(await world.rows("unique_key")).toEqual([]);
      // Another one is another one.
      await a.hf.enqueue(job, { n: 2 }, options);
      await world.until("the next to run", () => runs.length === 2, "20s");
    });

  test("[O2] a job that was deleted by hand does not come back when its enqueue is sent again", async () => {
    const world = await newWorld(target);
    const [a, b] = [await world.client(), await world.client()];
    const { job, runs } = quickJob(world);
    loseEnqueue(a, async () => {
      const [row] = await world.fresh.query(`select id from ${world.fresh.table("job")}`);
      await b.hf.jobs.delete({ ids: [String(row!["id"])] });
    });
    await world.finish(a.hf.enqueue(job, { n: 1 }));
    expect(await world.jobs()).toEqual([]);
    await b.work([job], { queues: ["default"] });
    await world.advance("10s");
    expect(runs).toEqual([]);
  });

  test("[O2] an id whose job has run and is deleted makes no second job within the hour", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    const { job, runs } = quickJob(world, "fleeting", { keep: false });
    await work([job], { queues: ["default"] });
    const { id } = await hf.enqueue(job, { n: 1 });
    await world.until("it to run", () => runs.length === 1, "10s");
    await gone(world);
    const { fresh } = world;
    await hf.enqueue(job, { n: 2 }, { id });
    await hf.enqueueMany([{ job, input: { n: 3 }, id }]);
    await expect(
      fresh.query(`insert into ${fresh.table("enqueue")} (id, name) values ('${id}', 'fleeting')`),
    ).rejects.toThrow("id belongs to a job that was deleted within the last hour");
    await world.advance("10s");
    expect(runs).toHaveLength(1);
    await world.advance("62m", "10s");
    await hf.prune();
    await hf.enqueue(job, { n: 4 }, { id });
    await world.until("the next to run", () => runs.length === 2, "10s");
  });

  test("[O2] nothing is kept of jobs that are kept, and ids of deleted ones are forgotten after an hour", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    const kept = quickJob(world, "kept");
    const fleeting = quickJob(world, "fleeting", { keep: false });
    await work([kept.job, fleeting.job], { queues: ["default"] });
    for (let n = 0; n < 3; n++) await hf.enqueue(kept.job, { n });
    await world.until("them to run", () => kept.runs.length === 3, "10s");
    await world.advance("1s");
    expect(await world.rows("used_id")).toEqual([]);
    await hf.enqueue(fleeting.job, { n: 9 });
    // Nobody sends this one again by the time it is due.
    await hf.enqueue(fleeting.job, { n: 2 }, { delay: "61m" });
    await world.until("it to be deleted", async () => (await world.rows("used_id")).length === 1, "10s");
    await hf.prune();
    expect(await world.rows("used_id")).toHaveLength(1);
    const inputs = (await world.rows("job")).map(({ input }) => input);
    expect(inputs, "of what was deleted, no input is left").not.toContain('{"n":9}');
    await world.advance("62m", "10s");
    await world.until("the late one", () => fleeting.runs.length === 2, "1m");
    await hf.prune();
    expect(await world.rows("used_id")).toEqual([]);
    expect(await world.rows("job"), "no row of a deleted job").toHaveLength((await world.jobs()).length);
  });

  for (const [mode, status] of [
    ["replace", "replaced"],
    ["debounce", "debounced"],
  ] as const) {
    const definition = { unique: { key: () => "only", onConflict: mode } } as const;
    const hasInput = (world: World, n: number) => async (): Promise<boolean> =>
      (await world.rows("job")).some((row) => String(row["input"]) === `{"n":${n}}`);

    test(`[O2] a job that took the place of another (${mode}) runs once when its enqueue is sent again after its end`, async () => {
      const world = await newWorld(target);
      const [a, b] = [await world.client(), await world.client()];
      const { job, runs } = quickJob(world, "quick", { ...definition, keep: false });
      const first = await a.hf.enqueue(job, { n: 1 }, { delay: "1s" });
      let ended = false;
      loseEnqueue(
        a,
        async () => {
          while (!ended) await new Promise(setImmediate);
        },
        true,
      );
      const sent = a.hf.enqueue(job, { n: 2 });
      await world.until("it to take its place", hasInput(world, 2), "20s");
      await b.work([job], { queues: ["default"] });
      await world.until("it to run", () => runs.length === 1, "20s");
      await gone(world);
      ended = true;
      expect(await world.finish(sent)).toEqual({ status, id: first.id });
      await world.advance("10s");
      expect(runs.map(({ n }) => n)).toEqual([2]);
      expect(await world.rows("unique_key")).toEqual([]);
      // Another one is another one.
      expect(await a.hf.enqueue(job, { n: 3 })).toMatchObject({ status: "enqueued" });
      await world.until("the next to run", () => runs.length === 2, "20s");
    });

    test(`[O2] a job that took the place of another (${mode}) and was cancelled does not come back`, async () => {
      const world = await newWorld(target);
      const [a, b] = [await world.client(), await world.client()];
      const { job, runs } = quickJob(world, "quick", definition);
      const first = await a.hf.enqueue(job, { n: 1 }, { delay: "1s" });
      loseEnqueue(a, async () => void (await b.hf.jobs.cancel(first.id)));
      expect(await world.finish(a.hf.enqueue(job, { n: 2 }))).toEqual({ status, id: first.id });
      await b.work([job], { queues: ["default"] });
      await world.advance("10s");
      expect(runs).toEqual([]);
      expect(await world.rows("job")).toHaveLength(1);
    });

    test(`[O2] an enqueue (${mode}) that is sent again while its job runs says what it did`, async () => {
      const world = await newWorld(target);
      const [a, b] = [await world.client(), await world.client()];
      const { job } = quickJob(world, "quick", definition);
      const first = await a.hf.enqueue(job, { n: 1 }, { delay: "1s" });
      loseEnqueue(a, async () => {
        expect(await b.hf.lease({ names: ["quick"], limit: 1 })).toHaveLength(1);
      });
      expect(await world.finish(a.hf.enqueue(job, { n: 2 }))).toEqual({ status, id: first.id });
    });

    test(`[O2] an enqueue (${mode}) that another overwrote before it was sent again comes as the later one`, async () => {
      const world = await newWorld(target);
      const [a, b] = [await world.client(), await world.client()];
      const { job } = quickJob(world, "quick", definition);
      const first = await a.hf.enqueue(job, { n: 1 }, { delay: "1s" });
      loseEnqueue(a, async () => {
        expect(await b.hf.enqueue(job, { n: 3 })).toEqual({ status, id: first.id });
      });
      expect(await world.finish(a.hf.enqueue(job, { n: 2 }))).toEqual({ status, id: first.id });
      expect(await hasInput(world, 2)()).toBe(true);
      expect(await world.rows("job")).toHaveLength(1);
    });

    test(`[O2] a job that is rewritten many times (${mode}) leaves one id, for an hour after the last time`, async () => {
      const world = await newWorld(target);
      const { hf } = await world.client();
      const { job } = quickJob(world, "quick", definition);
      for (let n = 0; n < 20; n++) await hf.enqueue(job, { n }, { delay: "1d" });
      await hf.enqueueMany([20, 21].map((n) => ({ job, input: { n }, delay: "1d" })));
      expect(await world.rows("used_id")).toHaveLength(1);
      await world.advance("59m", "10m");
      await hf.enqueue(job, { n: 22 }, { delay: "1d" });
      await world.advance("59m", "10m");
      await hf.prune();
      expect(await world.rows("used_id")).toHaveLength(1);
      await world.advance("2m");
      await hf.prune();
      expect(await world.rows("used_id")).toEqual([]);
    });
  }
});
