// Many schedules at once: what waits, fails or piles up is in the way of no other.
import { expect, test } from "vitest";
import { defineJob, type Holdfast } from "../../src/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { heldJob, newWorld, quickJob, type World } from "../support/world.ts";
import { patient } from "../support/client.ts";

const work = { queues: { default: 5 }, ...patient } as const;

/** Copies of a schedule, in one statement: `template-0`, `template-1` … */
async function copies(world: World, template: string, n: number): Promise<void> {
  const table = world.fresh.table("schedule");
  const columns = "spec, next_at, waiting_at, jobs, anchor_at, created_at";
  await world.fresh.query(
    `with recursive n (i) as (select 0 union all select i + 1 from n where i + 1 < ?)
     insert into ${table} (name, ${columns}) select name || '-' || i, ${columns} from ${table}, n where name = ?`,
    [n, template],
  );
}

async function fired(hf: Holdfast, name: string): Promise<number | undefined> {
  return (await hf.schedules.get(name))?.counts.fired;
}

onEveryStore((target) => {
  test("300 schedules that wait for a job stop no other, and each goes on when its job has ended", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { hf } = client;
    const { job, runs } = quickJob(world);
    const { id } = await hf.enqueue("other", null, { delay: "1d" });
    const { id: second } = await hf.enqueue("other", null, { delay: "1d" });
    const table = world.fresh.table("schedule");
    await hf.schedules.put({ name: "waits", every: "1h", overlap: "queue", job, input: { n: 1 } });
    await world.fresh.query(`update ${table} set waiting_at = anchor_at, jobs = ? where name = 'waits'`, [
      JSON.stringify([id]),
    ]);
    await copies(world, "waits", 300);
    await world.fresh.query(`update ${table} set jobs = ? where name = 'waits-299'`, [
      JSON.stringify([second]),
    ]);
    await hf.schedules.put({ name: "free", every: "10s", job, input: { n: 2 } });
    await client.work([job], work);
    await world.advance("61s", "500ms");
    expect(await fired(hf, "free")).toBe(6);
    expect(runs.filter(({ n }) => n === 1)).toEqual([]);

    // One of them has nothing to wait for any more, and then all.
    await hf.jobs.cancel(second);
    await world.advance("6s", "500ms");
    expect([await fired(hf, "waits-299"), await fired(hf, "waits-298")]).toEqual([1, 0]);
    await hf.jobs.cancel(id);
    await world.advance("6s", "500ms");
    expect(await hf.jobs.count({ name: job.name })).toBe(6 + 1 + 301);
  });

  test("1,000 schedules that are due at once are fired at once, however many there are", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { job } = quickJob(world);
    await client.hf.schedules.put({ name: "s", every: "10s", job, input: { n: 1 } });
    await copies(world, "s", 999);
    await client.work([job], { ...work, queues: ["other"] });
    await world.advance("10001ms", "500ms");
    expect(await client.hf.jobs.count({ name: job.name })).toBe(1_000);
  });

  test("300 schedules that cannot be fired now keep no other from firing", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { job } = quickJob(world);
    await client.hf.schedules.put({ name: "bad", every: "10s", job, input: { n: 1 } });
    await copies(world, "bad", 300);
    await client.hf.schedules.put({ name: "good", every: "10s", job, input: { n: 1 } });
    client.tap.around = (verb, call, [name]) =>
      verb === "schedules.fire" && String(name).startsWith("bad")
        ? Promise.reject(new Error("not now"))
        : call();
    await client.work([job], { ...work, queues: ["other"] });
    await world.advance("15s", "500ms");
    expect(await fired(client.hf, "good")).toBe(1);
  });

  test("a worker that stops in the middle of many due schedules leaves the rest to others", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { job } = quickJob(world);
    await client.hf.schedules.put({ name: "s", every: "10s", job, input: { n: 1 } });
    await copies(world, "s", 299);
    const worker = await client.work([job], { ...work, queues: ["other"] });
    let fires = 0;
    client.tap.around = (verb, call) => {
      if (verb === "schedules.fire" && (fires += 1) === 10) void worker.stop();
      return call();
    };
    await world.advance("11s", "500ms");
    await world.finish(worker.stopped);
    expect(await client.hf.jobs.count({ name: job.name })).toBeLessThan(20); // a few are under way at once
    const other = await world.client();
    await other.work([job], { ...work, queues: ["other"] });
    await world.advance("1s");
    expect(await client.hf.jobs.count({ name: job.name })).toBe(300);
  });

  test("two processes that put different words under one name at once are each told their own, and the last one counts", async () => {
    const world = await newWorld(target);
    const clients = [await world.client(), await world.client(), await world.client()];
    for (let round = 0; round < 5; round += 1) {
      const told = await Promise.all(
        clients.map(({ hf }, n) => hf.schedules.put({ name: `s${round}`, every: "1h", job: "j", input: n })),
      );
      expect(told.map(({ input }) => input)).toEqual([0, 1, 2]);
    }
  });

  test("an occurrence that waits for a job is the schedule's own: a backfill passes over it", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { job, runs } = heldJob(world);
    const from = new Date(world.clock.now());
    await client.hf.schedules.put({ name: "s", every: "10s", overlap: "queue", job, input: { n: 1 } });
    await client.work([job], work);
    await world.advance("25s");
    expect((await client.hf.schedules.get("s"))?.waitingAt).toEqual(new Date("2026-01-01T00:00:20Z"));
    expect(await client.hf.schedules.backfill("s", { from })).toMatchObject({ occurrences: [], had: 2 });
    runs[0]?.finish();
    await world.advance("1s");
    const occurrences = (await client.hf.jobs.list({ name: job.name })).jobs.map(({ runAt }) => runAt);
    expect(occurrences).toEqual([new Date("2026-01-01T00:00:20Z"), new Date("2026-01-01T00:00:10Z")]);
  });

  test("edits, pauses and backfills while occurrences fire on two workers: an occurrence has one job, and none is lost", async () => {
    const world = await newWorld(target);
    const [one, two] = [await world.client(), await world.client()];
    const occurrences: number[] = [];
    const job = defineJob({ name: "j", run: (_, ctx) => void occurrences.push(Number(ctx.schedule?.at)) });
    const from = new Date(world.clock.now());
    await one.hf.schedules.put({ name: "s", cron: "* * * * * *", job, input: null });
    for (const client of [one, two]) await client.work([job], work);
    await world.advance("1s");
    for (let second = 0; second < 30; second += 1) {
      const { schedules } = second % 2 === 0 ? one.hf : two.hf;
      await Promise.all([
        world.advance("1s"),
        schedules.edit("s", { priority: second }),
        second % 5 === 0 ? schedules.pause("s").then(() => schedules.resume("s")) : null,
        schedules.backfill("s", { from }),
        two.hf.schedules.backfill("s", { from }),
      ]);
    }
    await one.hf.schedules.pause("s");
    await one.hf.schedules.backfill("s", { from });
    await world.advance("2s");
    const first = from.getTime();
    const n = Math.floor((Math.max(...occurrences) - first) / 1_000) + 1;
    const all = Array.from({ length: n }, (_, i) => first + i * 1_000);
    expect(n).toBeGreaterThan(25);
    expect(occurrences.toSorted((a, b) => a - b)).toEqual(all);
  });

  test("a change of overlap from allow to skip sees the jobs that run already", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { job, runs } = heldJob(world);
    await client.hf.schedules.put({ name: "s", every: "10s", job, input: { n: 1 } });
    await client.work([job], work);
    await world.advance("31s");
    expect(runs).toHaveLength(3);
    for (const run of runs.slice(1)) run.finish();
    await client.hf.schedules.edit("s", { overlap: "skip" });
    await world.advance("20s");
    expect((await client.hf.schedules.get("s"))?.counts).toEqual({ fired: 3, skipped: 2, missed: 0 });
    runs[0]?.finish();
    await world.advance("10s");
    expect((await client.hf.schedules.get("s"))?.counts).toEqual({ fired: 4, skipped: 2, missed: 0 });
  });
});
