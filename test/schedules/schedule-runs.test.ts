// The runs of a schedule: which job each occurrence got, how late it started, how long it ran, and what nobody knows any more.
import { expect, test } from "vitest";
import { defineJob, fixed, type Holdfast, type ScheduleRun } from "../../src/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { newWorld, quickJob } from "../support/world.ts";
import { patient } from "../support/client.ts";

const work = { queues: { default: 5 }, ...patient } as const;
const start = Date.UTC(2026, 0, 1);

/** Newest first: minutes from the start, and the rest. */
async function runs(hf: Holdfast, name: string): Promise<(ScheduleRun & { readonly minute: number })[]> {
  const found = await hf.schedules.runs(name);
  return found.map((run) => ({ ...run, minute: (run.at.getTime() - start) / 60_000 }));
}

onEveryStore((target) => {
  test("[G1] each occurrence's job is told with its start, its lateness and its length, newest first", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { hf } = client;
    const slow = defineJob({
      name: "slow",
      run: () => new Promise<void>((resolve) => void world.clock.after(4_000, resolve)),
    });
    await hf.schedules.put({ name: "tick", every: "1m", job: slow, input: null });
    await client.work([slow], work);
    await world.advance("70s", "500ms");
    // The second occurrence's job has to wait for its queue.
    await hf.queues.pause("default");
    await world.advance("65s", "500ms");
    expect(await runs(hf, "tick")).toMatchObject([
      { minute: 2, by: "occurrence", state: "ready", attempt: 0, startedAt: null, lateMs: null, ranMs: null },
      { minute: 1, by: "occurrence", state: "done", attempt: 1, lateMs: 0, ranMs: 4_000 },
    ]);
    await hf.queues.resume("default");
    await world.advance("2s", "500ms");
    const [held] = await runs(hf, "tick");
    const job = (await hf.jobs.get(held!.jobId))!;
    expect(held).toMatchObject({ state: "running", startedAt: job.startedAt, endedAt: null, ranMs: null });
    expect(held?.lateMs).toBe(job.startedAt!.getTime() - held!.at.getTime());
    expect(held?.lateMs).toBeGreaterThanOrEqual(15_000);
    await hf.jobs.delete((await runs(hf, "tick"))[1]!.jobId);
    expect((await runs(hf, "tick"))[1]).toMatchObject({
      minute: 1,
      by: "occurrence",
      state: null,
      attempt: null,
      startedAt: null,
      endedAt: null,
      lateMs: null,
      ranMs: null,
    });
  });

  test("[G1] a run that was retried is as late as its first attempt; where a first start is not kept, nothing is said", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { hf } = client;
    const again = defineJob({
      name: "again",
      retry: { attempts: 2, backoff: fixed("20s") },
      run: (_: unknown, ctx) => {
        if (ctx.attempt === 1 || ctx.schedule!.name === "dies") throw new Error("not yet");
      },
    });
    const naps = defineJob({ name: "naps", run: (_: unknown, ctx) => ctx.sleep("nap", "10s") });
    const napsAndDies = defineJob({
      name: "naps-and-dies",
      retry: { attempts: 1 },
      run: async (_: unknown, ctx) => {
        await ctx.sleep("nap", "10s");
        throw new Error("tired");
      },
    });
    for (const [name, job] of Object.entries({ again, naps, "naps-and-dies": napsAndDies, dies: again }))
      await hf.schedules.put({ name, every: "1m", job, input: null });
    await client.work([again, naps, napsAndDies], work);
    await world.advance("95s", "500ms");
    const [retried, slept, tired, dead] = await Promise.all(
      ["again", "naps", "naps-and-dies", "dies"].map(async (name) => (await runs(hf, name))[0]!),
    );
    expect(retried).toMatchObject({ state: "done", attempt: 2, lateMs: 0 });
    expect(retried!.startedAt!.getTime() - retried!.at.getTime()).toBeGreaterThanOrEqual(20_000);
    expect(dead).toMatchObject({ state: "dead", attempt: 2, lateMs: 0 });
    expect(slept).toMatchObject({ state: "done", attempt: 1, lateMs: null });
    expect(tired).toMatchObject({ state: "dead", attempt: 1, lateMs: null });
  });

  test("[G6] a run by hand and a backfill are told apart from occurrences, and are never late", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { hf } = client;
    const { job } = quickJob(world);
    await hf.schedules.put({ name: "tick", cron: "* * * * *", job, input: { n: 1 } });
    await client.work([job], work);
    await world.advance("90s", "500ms");
    const { id } = await hf.schedules.trigger("tick");
    const { occurrences } = await hf.schedules.backfill("tick", { from: start - 120_000, to: start });
    await world.advance("1s", "500ms");
    expect(
      (await runs(hf, "tick")).map(({ minute, by, lateMs, state }) => [minute, by, lateMs, state]),
    ).toEqual([
      [1.5, "hand", null, "done"],
      [1, "occurrence", 0, "done"],
      [-1, "backfill", null, "done"],
      [-2, "backfill", null, "done"],
    ]);
    const all = await runs(hf, "tick");
    expect([all[0]!.jobId, all[3]!.jobId]).toEqual([id, occurrences[0]!.jobId]);
    // Of what is not kept any more, what was asked for by hand is still known; handlers see no difference.
    await hf.jobs.delete(id);
    expect((await runs(hf, "tick"))[0]).toMatchObject({ by: "hand", state: null });
    // Occurrences are forgotten after 30 days: the newest are then among those that the schedule remembers itself.
    await world.fresh.query(`delete from ${world.fresh.table("occurrence")}`);
    expect((await runs(hf, "tick")).map(({ minute, by, lateMs }) => [minute, by, lateMs])).toEqual([
      [1.5, "hand", null],
      [1, "occurrence", 0],
    ]);
  });

  test("[G1] runs are bounded, of the schedule that was named, and with its jitter", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { hf } = client;
    const { job } = quickJob(world);
    await hf.schedules.put({ name: "often", every: "1s", job, input: { n: 1 } });
    await hf.schedules.put({ name: "oftener", every: "1s", job, input: { n: 1 }, jitter: "500ms" });
    expect(await hf.schedules.runs("often")).toEqual([]);
    await client.work([job], work);
    await world.advance("45s");
    expect(await hf.schedules.runs("often")).toHaveLength(45);
    const three = await hf.schedules.runs("often", { limit: 3 });
    expect(three.map(({ at }) => (at.getTime() - start) / 1_000)).toEqual([45, 44, 43]);
    const jittered = (await hf.schedules.runs("oftener")).filter(({ state }) => state === "done");
    expect(jittered.length).toBeGreaterThanOrEqual(44);
    expect(jittered.filter(({ lateMs }) => lateMs === null)).toEqual([]);
    expect(jittered.filter(({ lateMs }) => lateMs! > 0).length).toBeGreaterThan(30);
    for (const limit of [0, 501, 1.5])
      await expect(hf.schedules.runs("often", { limit })).rejects.toMatchObject({ code: "BAD_OPTION" });
    await expect(hf.schedules.runs("often", { limits: 3 } as never)).rejects.toMatchObject({
      code: "UNKNOWN_OPTION",
    });
    await expect(hf.schedules.runs("nobody")).rejects.toMatchObject({ code: "SCHEDULE_NOT_FOUND" });
    await expect(hf.schedules.runs("a b")).rejects.toMatchObject({ code: "BAD_NAME" });
  });
});
