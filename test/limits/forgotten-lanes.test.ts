// A lane that nobody has used for a week is forgotten, and nothing that could still want it is lost for that.
import { expect, test } from "vitest";
import { laneCounts } from "../support/lane-counts.ts";
import { onEveryStore } from "../support/stores.ts";
import { heldJob, newWorld, quickJob, type World } from "../support/world.ts";

const slots = { queues: { default: 10 } } as const;
const of = ({ n }: { n: number }): string => `l${n}`;

async function lanes(world: World): Promise<string[]> {
  return (await world.rows("lane")).map((row) => String(row["key"])).sort();
}

async function leftovers(world: World): Promise<number> {
  const known = new Set((await world.rows("lane")).map((row) => Number(row["id"])));
  const rows = [...(await world.rows("lane_rotation")), ...(await world.rows("lane_wakeup"))];
  const lanesOf = (row: Record<string, unknown>) => (row["lanes"] as unknown[] | undefined) ?? [row["lane"]];
  return rows.filter((row) => !lanesOf(row).some((lane) => known.has(Number(lane)))).length;
}

/** Eight days later, as far as lanes can tell: a worker would have too much to do in eight days of fake time. */
async function aWeekPasses({ fresh }: World): Promise<void> {
  await fresh.query(`update ${fresh.table("lane")} set used_at = used_at - ?`, [8 * 86_400_000]);
}

onEveryStore((target) => {
  test("[N5] a lane that was not used for a week is forgotten; one with a job, a limit of its own or a pause is not", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const quick = quickJob(world, "quick", { lane: of });
    const held = heldJob(world, "held", { lane: of });
    await client.work([quick.job, held.job], slots);
    for (const n of [1, 2, 3]) await client.hf.enqueue(quick.job, { n });
    await world.until("them to be done", () => quick.runs.length === 3);
    await client.hf.lanes.set("default", "l2", { concurrency: 5 });
    await client.hf.lanes.pause("default", "l3");
    await client.hf.enqueue(held.job, { n: 4 }); // runs all the time
    await client.hf.enqueue(quick.job, { n: 5 }, { delay: "30d" });
    await client.hf.enqueue("unserved", { n: 6 }, { lane: "l6" });
    // One whose only job was cancelled before anybody looked leaves a lane wake-up behind.
    const { id } = await client.hf.enqueue("unserved", { n: 7 }, { lane: "l7" });
    await client.hf.jobs.cancel(id);
    await world.until("it to run", () => held.runs.length === 1);
    await aWeekPasses(world);
    await client.tap.raw.upkeep.tidy();
    expect(await lanes(world)).toEqual(["l2", "l3", "l4", "l5", "l6"]);
    expect(await leftovers(world)).toBe(0);
    held.runs[0]!.finish();
    await client.hf.lanes.resume("default", "l3");
    // All of them work as ever, those that were forgotten too (a process forgets their numbers within an hour).
    const before = quick.runs.length;
    const later = await world.client();
    for (const n of [1, 2, 3, 4, 7]) await later.hf.enqueue(quick.job, { n });
    await world.until("them to be done", () => quick.runs.length === before + 5);
  });

  test("[N5] a process that remembers a lane's number can go on using it", async () => {
    const world = await newWorld(target);
    const [client, other] = [await world.client(), await world.client()];
    const { job, runs } = quickJob(world, "quick", { lane: of });
    await client.work([job], slots);
    await client.hf.enqueue(job, { n: 1 });
    await world.until("it to be done", () => runs.length === 1);
    await aWeekPasses(world);
    // Met by this process, and no job of it is left: nothing but the process's memory speaks for it.
    const { id } = await other.hf.enqueue(job, { n: 1 }, { delay: "1m" });
    await other.hf.jobs.cancel(id);
    await client.tap.raw.upkeep.tidy();
    await other.hf.enqueue(job, { n: 1 });
    await world.until("it to be done", () => runs.length === 2);
  });

  test("[N5] a dead job whose lane was forgotten can be retried", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { job, runs } = heldJob(world, "held", { lane: of, retry: { attempts: 1 } });
    await client.work([job], slots);
    const { id } = await client.hf.enqueue(job, { n: 1 });
    await world.until("it to run", () => runs.length === 1);
    runs[0]!.fail(new Error("boom"));
    await world.until("it to be dead", async () => (await client.hf.jobs.get(id))?.state === "dead");
    await world.advance("2s"); // its place in the lane has been given back
    await aWeekPasses(world);
    await client.tap.raw.upkeep.tidy();
    expect(await lanes(world)).toEqual([]);
    await client.hf.jobs.retry(id);
    await world.until("it to run again", () => runs.length === 2);
    expect(await lanes(world)).toEqual(["l1"]);
  });

  test("[N5] a reset gives a lane the code's limits and an empty rate, and the count of what runs stays exact", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { hf } = client;
    const { job } = quickJob(world, "quick", {
      lane: of,
      lanes: { concurrency: 3, rate: { limit: 4, per: "1h" } },
    });
    const worker = await client.work([job], { queues: { elsewhere: 1 } }); // so that its limits are known
    await worker.stop();
    for (let n = 0; n < 8; n += 1) await hf.enqueue(job, { n: 1 });
    await hf.lanes.set("default", "l1", { concurrency: 2, weight: 5 });
    await hf.lanes.set("default", "l1", { concurrency: 1 }, { for: "1h" });
    await hf.lanes.set("default", "l1", { concurrency: 2 });
    const take = () => hf.lease({ queues: ["default"], limit: 10, for: "20d" });
    const [one, two, ...more] = await take();
    expect(more).toEqual([]);
    await one!.done();
    await two!.done();
    const held = await take();
    expect(held).toHaveLength(2);
    expect(await take()).toEqual([]); // the rate is used up
    expect(await hf.lanes.reset("default", "l1")).toBe(true);
    const [lane] = (await hf.lanes.list({ queue: "default" })).lanes;
    expect(lane).toMatchObject({
      concurrency: 3,
      rate: { limit: 4, perMs: 3_600_000 },
      weight: 1,
      tuned: false,
      running: 2,
      rateOpensAt: null,
    });
    expect(await hf.temporaryLimits.list()).toEqual([]);
    // Two run and count; the code allows three.
    expect(await take()).toHaveLength(1);
    expect(await laneCounts(world.fresh)).toEqual([3]);
    for (const lease of held) await lease.done();
    expect(await laneCounts(world.fresh)).toEqual([1]);
    expect(await hf.lanes.reset("default", "nobody")).toBe(false);
  });

  test("[N5] a key that is dropped has nothing that was set, is forgotten after a day, and loses no job of a process that remembers it", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { hf } = client;
    const { job, runs } = quickJob(world, "quick", { lane: of });
    for (const n of [1, 2]) await hf.enqueue(job, { n }); // this process remembers both numbers
    await hf.lanes.set("default", "l1", { concurrency: 1 });
    await hf.lanes.pause("default", "l1");
    expect(await hf.lanes.drop("default", "l1")).toBe(true);
    expect((await hf.lanes.list({ queue: "default", key: "l1" })).lanes).toMatchObject([
      { concurrency: null, paused: false, tuned: false, waiting: 1 },
    ]);
    await client.tap.raw.upkeep.tidy();
    expect(await lanes(world)).toEqual(["l1", "l2"]); // it has a job
    await client.work([job], slots);
    await world.until("them to be done", () => runs.length === 2);
    await hf.lanes.drop("default", "l1");
    await client.tap.raw.upkeep.tidy();
    expect(await lanes(world)).toEqual(["l1", "l2"]);
    await hf.enqueue(job, { n: 1 });
    await world.until("it to be done", () => runs.length === 3);
    await world.until("its count to be taken back", async () => {
      const [row] = (await world.rows("lane")).filter(({ key }) => key === "l1");
      return Number(row?.["running"]) === 0 && (await laneCounts(world.fresh)).every((n) => n === 0);
    });
    await hf.lanes.drop("default", "l1");
    await world.fresh.query(`update ${world.fresh.table("lane")} set used_at = used_at - ?`, [86_400_001]);
    await client.tap.raw.upkeep.tidy();
    expect(await lanes(world)).toEqual(["l2"]);
    expect(await leftovers(world)).toBe(0);
    expect(await hf.lanes.drop("default", "l1")).toBe(false);
  });
});
