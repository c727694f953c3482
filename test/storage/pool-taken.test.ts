// A pool of the user's all of whose connections are held by handlers that wait for the database.
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { defineJob, fixed, open, silentLogger } from "../../src/index.ts";
import { connect } from "../support/test-clients.ts";
import { onPostgres } from "../support/stores.ts";

onPostgres((target) => {
  test("[F6] handlers that hold all connections of the user's pool while they wait for a step end with their timeout", async () => {
    const store = await target.migrated();
    const pool = new pg.Pool({ connectionString: store.url, max: 2 });
    onTestFinished(() => pool.end());
    const hf = await open(pool, { ...store.options, logger: silentLogger });
    onTestFinished(() => hf.close());
    const job = defineJob({
      name: "holds",
      timeout: "1s",
      retry: { attempts: 2, backoff: fixed(0) },
      run: async (_: object, ctx) => {
        if (ctx.attempt === 2) return ctx.step("step", () => "done");
        const client = await pool.connect();
        try {
          return await ctx.step("step", () => "done");
        } finally {
          client.release();
        }
      },
    });
    // The others come from elsewhere, so that only handlers hold connections of the pool.
    const outside = await connect(store);
    const jobs = [await outside.enqueue(job, {}), await outside.enqueue(job, {})];
    const worker = hf.work([job], { queues: { default: 2 } });
    const results = jobs.map((enqueued) => outside.result(enqueued, { timeout: "60s" }));
    expect(await Promise.all(results)).toEqual(["done", "done"]);
    await worker.stop();
  }, 90_000);
});
