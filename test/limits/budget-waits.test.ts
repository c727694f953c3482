// ctx.budget with `wait`: tokens that a handler waits for in its slot (O13).
import { expect, test } from "vitest";
import { defineJob } from "../../src/jobs/define-job.ts";
import type { BudgetWaitOptions } from "../../src/worker/context.ts";
import { onEveryStore, type StoreTarget } from "../support/stores.ts";
import { newWorld } from "../support/world.ts";

async function setUp(target: StoreTarget, options: { timeout?: string } = {}) {
  const world = await newWorld(target);
  const client = await world.client();
  const { hf } = client;
  await hf.budgets.set("api", { limit: 6, per: "1m", burst: 1 });
  const runs: { attempt: number; at: number }[] = [];
  const got: number[] = [];
  const met: unknown[] = [];
  const job = defineJob({
    name: "call",
    retry: { attempts: 1 },
    ...options,
    run: async ({ name = "api", ...wait }: BudgetWaitOptions & { name?: string }, ctx) => {
      runs.push({ attempt: ctx.attempt, at: world.clock.now() });
      try {
        await ctx.budget(name, 1, wait);
      } catch (error) {
        met.push((error as Error).name);
        throw error;
      }
      got.push(world.clock.now());
    },
  });
  const worker = await client.work([job], { queues: { default: 1 } });
  const start = async (input: BudgetWaitOptions & { name?: string }): Promise<string> => {
    const before = runs.length;
    const { id } = await hf.enqueue(job, input);
    await world.until("it to run", () => runs.length > before);
    return id;
  };
  return { world, hf, worker, runs, got, met, start };
}

onEveryStore((target) => {
  test("[O13] ctx.budget waits in the handler until the budget has its tokens", async () => {
    const { world, hf, runs, got, met, start } = await setUp(target);
    expect((await hf.budgets.take("api")).granted).toBe(true);
    const id = await start({ wait: true });
    await world.until("its tokens", () => got.length === 1, "25s");
    expect(got[0]! - runs[0]!.at).toBeGreaterThanOrEqual(9_000);
    await world.until("its end", async () => (await hf.jobs.get(id))?.state === "done");
    expect([runs.length, met]).toEqual([1, []]);
  });

  test("[O13] ctx.budget waits no longer than it was told, and then throws Throttled", async () => {
    const { world, hf, runs, met, start } = await setUp(target);
    await hf.budgets.set("api", { limit: 1, per: "1h" });
    expect((await hf.budgets.take("api")).granted).toBe(true);
    const id = await start({ wait: "5s" });
    await world.advance("4s");
    expect(met).toEqual([]);
    await world.advance("2s");
    expect(met).toEqual(["Throttled"]);
    expect(await hf.jobs.get(id)).toMatchObject({ state: "scheduled", attempt: 0 });
    expect(runs).toHaveLength(1);
  });

  test("[O13] a shutdown or a pause ends the wait: the job keeps its due time and uses no attempt", async () => {
    const { world, hf, worker, met, start } = await setUp(target);
    await hf.budgets.set("api", { limit: 1, per: "1h" });
    expect((await hf.budgets.take("api")).granted).toBe(true);
    const id = await start({ wait: true });
    const { runAt } = (await hf.jobs.get(id))!;
    await world.finish(hf.queues.pause("default"));
    await world.until("the pause", async () => (await hf.jobs.get(id))?.state === "ready", "3s");
    expect(met).toEqual(["Release"]);
    expect(await hf.jobs.get(id)).toMatchObject({ attempt: 0, runAt });
    await world.finish(hf.queues.resume("default"));
    await world.until("it to run again", async () => (await hf.jobs.get(id))?.state === "running", "3s");
    await world.finish(worker.stop({ timeout: "20s" }), "2s");
    expect(met).toEqual(["Release", "Release"]);
    expect(await hf.jobs.get(id)).toMatchObject({ attempt: 0, runAt });
  });

  test("[O13] an unknown budget throws at once, a timeout ends the wait, and a bad wait is refused", async () => {
    const { world, hf, met, start } = await setUp(target, { timeout: "3s" });
    await start({ wait: true, name: "nope" });
    await world.quiet();
    expect(met).toEqual(["Throttled"]);
    await start({ wait: "soon" });
    await world.quiet();
    expect(met).toEqual(["Throttled", "UsageError"]);
    await hf.budgets.set("api", { limit: 1, per: "1h" });
    expect((await hf.budgets.take("api")).granted).toBe(true);
    const id = await start({ wait: true });
    await world.until("its end", async () => (await hf.jobs.get(id))?.state === "dead", "6s");
    expect(met.at(-1)).toBe("JobError");
    expect((await hf.jobs.get(id))?.error).toContain("timeout after 3s");
  });
});
