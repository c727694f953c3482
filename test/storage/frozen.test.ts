// A process that is stopped, or cut off, inside one of our transactions keeps its locks until the server ends it. Postgres
// alone: SQLite's lock is the process's own, and nothing can take it away.
import pg from "pg";
import { expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { begin, DEADLINE_MS } from "../../src/storage/postgres/connections.ts";
import { isGone, toStoreError } from "../../src/storage/postgres/error-codes.ts";
import { fresh } from "../support/test-clients.ts";
import { onPostgres } from "../support/stores.ts";

onPostgres((target) => {
  test("[B6] the limited queue of a queue is free again though its holder never comes back", async () => {
    const { hf, store } = await fresh(target);
    await hf.queues.set("limited", { concurrency: 2 });
    const frozen = new pg.Client(store.url);
    const ended = new Promise<unknown>((resolve) => frozen.on("error", resolve));
    await frozen.connect();
    await frozen.query(begin(DEADLINE_MS));
    await frozen.query(`select name from ${store.table("queue")} where name = 'limited' for update`);
    const job = defineJob({ name: "job", queue: "limited", run: (n: number) => n * 2 });
    const worker = hf.work([job], { queues: ["limited"] });
    expect(await hf.result(await hf.enqueue(job, 21), { timeout: "60s" })).toBe(42);
    expect(isGone(toStoreError(await ended)), "its own process takes another connection").toBe(true);
    await worker.stop();
  }, 90_000);
});
