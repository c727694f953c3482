// A lane that nobody has used for a week is forgotten, and nothing that could still want it is lost for that.
import { expect, test } from "vitest";
import { onEveryStore } from "../support/stores.ts";
import { heldJob, newWorld, quickJob, type World } from "../support/world.ts";

const slots = { queues: { default: 10 } } as const;
const of = ({ n }: { n: number }): string => `l${n}`;

async function lanes(world: World): Promise<string[]> {
  return (await world.rows("lane")).map((row) => String(row["key"])).sort();
}

async function leftovers(world: World): Promise<number> {
  const known = new Set((await world.rows("lane")).map((row) => Number(row["id"])));
  const rows = [...(await world.rows("turn")), ...(await world.rows("bell"))];
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
    // One whose only job was cancelled before anybody looked leaves a bell behind.
    const { id } = await client.hf.enqueue("unserved", { n: 7 }, { lane: "l7" });
    await client.hf.jobs.cancel(id);
    await world.until("it to run", () => held.runs.length === 1);
    await aWeekPasses(world);
    await client.tap.raw.tidy();
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
    await client.tap.raw.tidy();
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
    await client.tap.raw.tidy();
    expect(await lanes(world)).toEqual([]);
    await client.hf.jobs.retry(id);
    await world.until("it to run again", () => runs.length === 2);
    expect(await lanes(world)).toEqual(["l1"]);
  });
});
