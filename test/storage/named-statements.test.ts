// A pooler that gives each transaction another connection of the server: the names of statements that were prepared are gone.
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { defineJob, open, silentLogger } from "../../src/index.ts";
import { onPostgres } from "../support/stores.ts";

onPostgres((target) => {
  test("[O9] names that the server has lost are done without, by all statements and transactions that were on their way", async () => {
    const store = await target.migrated();
    const pool = new pg.Pool({ connectionString: store.url, max: 6 });
    onTestFinished(() => pool.end());
    const hf = await open(pool, { ...store.options, logger: silentLogger, retryFor: 0 });
    onTestFinished(() => hf.close());
    const keyed = defineJob({ name: "keyed", unique: ({ n }: { n: number }) => `${n}`, run: () => {} });
    await hf.budgets.set("b", { limit: 1_000, per: "1s" });
    const all = (from: number) =>
      Promise.allSettled(
        [1, 2, 3, 4].flatMap((n) => [
          hf.state.get(`${n}`),
          hf.budgets.take("b"),
          hf.jobs.get("01a1e000-0000-7000-8000-000000000001"),
          hf.enqueue(keyed, { n: from + n }),
        ]),
      );
    const failed = (results: Awaited<ReturnType<typeof all>>) =>
      results.flatMap((result) => (result.status === "rejected" ? [String(result.reason)] : []));
    for (let n = 0; n < 5; n += 1) expect(failed(await all(n * 10))).toEqual([]);
    const clients = await Promise.all(Array.from({ length: pool.totalCount }, () => pool.connect()));
    for (const client of clients) await client.query("deallocate all");
    for (const client of clients) client.release();
    expect(clients.length).toBeGreaterThan(2);
    expect(failed(await all(100))).toEqual([]);
    expect(await hf.jobs.count({ name: "keyed" })).toBe(24);
  });
});
