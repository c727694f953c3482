// A claim looks for its jobs in today's table. Those of other days must come all the same, in their place in the order.
import { open } from "holdfast";
import { expect, test } from "vitest";
import { idAt } from "../../src/policy/id.ts";
import { onPostgres } from "../support/stores.ts";

const dayMs = 86_400_000;

onPostgres((target) => {
  test("[B1] jobs of today and of other days are claimed together, each with its own input", async () => {
    const fresh = await target.fresh();
    const hf = await open(fresh.url, fresh.options);
    const { byName } = hf.internals.store.counters;
    const late = (): number => byName.get("lateJobs") ?? 0;
    const claimed = async (limit: number): Promise<unknown[]> =>
      (await hf.lease({ limit })).map(({ input }) => input);

    for (let n = 0; n < 3; n++) await hf.enqueue("any", `today ${n}`);
    expect(await claimed(3)).toEqual(["today 0", "today 1", "today 2"]);
    expect(late(), "found where it was looked for").toBe(0);

    await hf.enqueue("any", "today 3");
    // Its id is of another day; it was enqueued, and is due, now.
    await hf.enqueue("any", "an old id", { id: idAt(Date.now() - 40 * dayMs) });
    await hf.enqueue("any", "today 4");
    expect(await claimed(10)).toEqual(["today 3", "an old id", "today 4"]);
    expect(late()).toBe(1);

    await hf.enqueue("any", "another", { id: idAt(Date.now() - 39 * dayMs) });
    expect(await claimed(10)).toEqual(["another"]);
    expect(late(), "claims look everywhere for a while").toBe(1);
    await hf.close();
  });
});
