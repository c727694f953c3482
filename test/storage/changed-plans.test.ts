// O9: a rolling migration adds columns under running processes, whose statements are prepared: nobody notices.
import { expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { openDriver } from "../../src/storage/open.ts";
import type { Script } from "../../src/storage/catalogue.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { troubleOf } from "../../src/storage/trouble.ts";
import { onEveryStore } from "../support/stores.ts";
import { jobOf, newWorld } from "../support/world.ts";

onEveryStore((target) => {
  test("[O9] runs go on, in their only attempt, while every table gets a column", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const job = defineJob({
      name: "workflow",
      retry: { attempts: 1 },
      run: async (_: null, ctx) => {
        await ctx.step("a", () => 1);
        await ctx.sleep("nap", "1s");
        return ctx.step("b", () => 2);
      },
    });
    await one.work([job], { queues: { default: 1 } });
    const ids: string[] = [];
    for (let n = 0; n < 4; n++) {
      const { id } = await one.hf.enqueue(job, null);
      ids.push(id);
      await world.until("it is over", async () => (await jobOf(one, id)).endedAt !== null);
      if (n === 1)
        for (const table of [
          "step",
          "ready",
          "job",
          "history",
          "session",
          "claim",
          "queue",
          "job_type",
        ] as const)
          await world.fresh.query(`alter table ${world.fresh.table(table)} add column later integer`);
    }
    for (const id of ids)
      expect(await jobOf(one, id)).toMatchObject({ state: "done", output: 2, attempt: 1 });
  });

  test("[O9] a statement that gives all columns of a table that has changed is sent again; a transaction of it passes", async () => {
    const fresh = await target.migrated();
    const driver = await openDriver(fresh.url, { ...fresh.options, clock: new FakeClock() });
    const now = driver.now() ?? 0;
    const call = { name: "lockBreakers", params: { now, keys: ["queue:a"] } } as const;
    const script = function* (): Script<number> {
      return (yield call).length;
    };
    const look = { name: "breakerRows", params: { now, keys: null } } as const;
    await driver.read(look);
    expect(await driver.transaction("countBreakers", script)).toBe(0);
    await fresh.query(`alter table ${fresh.table("breaker")} add column later integer`);
    expect(await driver.read(look)).toEqual([]);
    await driver.read(look);
    await fresh.query(`alter table ${fresh.table("breaker")} add column later2 integer`);
    // Nothing was done: whoever wants it runs it again.
    const first = await driver.transaction("countBreakers", script).catch((error: unknown) => error);
    expect([0, "passing"]).toContain(typeof first === "number" ? first : troubleOf(first));
    expect(await driver.transaction("countBreakers", script)).toBe(0);
    await driver.close();
    await fresh.dispose();
  });
});
