// A claim's answer has one row for all jobs that are alike: each job must still come out with what is its own.
import { expect, test } from "vitest";
import { LONG_INPUT } from "../../src/storage/postgres/claim-answer.ts";
import { onPostgres } from "../support/stores.ts";
import { newWorld } from "../support/world.ts";

onPostgres((target) => {
  test("[B1] jobs that are claimed together have each its own input, time and options", async () => {
    const world = await newWorld(target);
    const { hf } = await world.client();
    const wanted = new Map<string, { input: unknown; attempts: number; context: string | null }>();
    const texts = [
      "plain",
      'quotes " and \\ and \u001e and \n',
      "häß 🙂 中文",
      "",
      "x".repeat(LONG_INPUT * 2),
    ];
    for (const [i, text] of [...texts, ...texts].entries()) {
      const attempts = 3 + (i % 2);
      const context = i % 3 === 0 ? `request ${i} \u001e` : null;
      const { id } = await hf.enqueue(
        "any",
        { i, text },
        { attempts, at: new Date(i * 1_000), ...(context === null ? null : { context }) },
      );
      wanted.set(id, { input: { i, text }, attempts, context });
    }
    const leases = await hf.lease({ limit: 100 });
    expect(leases.map(({ id }) => id)).toEqual([...wanted.keys()]);
    for (const lease of leases) {
      const { input, attempts, context } = wanted.get(lease.id)!;
      expect(lease).toMatchObject({ input, maxAttempts: attempts, context });
    }
  });

  test("[B1] a separator that a hand put into an input moves no other job's", async () => {
    const world = await newWorld(target);
    const { hf } = await world.client();
    const ids: string[] = [];
    for (let n = 0; n < 3; n++) ids.push((await hf.enqueue("any", `${n}`)).id);
    await world.fresh.query(`update ${world.fresh.table("job")} set input = '"\u001e spoilt"' where id = ?`, [
      ids[1],
    ]);
    const leases = await hf.lease({ limit: 3 });
    expect(leases.map(({ id, input }) => [id, input])).toEqual([
      [ids[0], "0"],
      [ids[1], " spoilt"],
      [ids[2], "2"],
    ]);
  });
});
