// O2: an insert that its client has given up reaches the server late, when a repeat of it has been written, has run and was deleted.
// Only Postgres has a server that goes on by itself.
import { defineJob, open, silentLogger } from "holdfast";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { idAt } from "../../src/values/id.ts";
import { Retry } from "../../src/storage/retry-calls.ts";
import { openStore } from "../../src/storage/open.ts";
import { newJob } from "../support/new-job.ts";
import { onPostgres } from "../support/stores.ts";
import { waitFor } from "../support/wait.ts";

onPostgres((target) => {
  const ways = [
    ["plain jobs", { context: null }],
    ["jobs with a context", { context: '"why"' }],
  ] as const;
  for (const [what, options] of ways)
    test(`[O2] an insert of ${what} that began before a repeat of it and ends after the job's end writes nothing`, async () => {
      const fresh = await target.fresh();
      const hf = await open(fresh.url, fresh.options);
      const blocker = new pg.Client(fresh.url);
      await blocker.connect();
      onTestFinished(async () => {
        await blocker.end();
        await hf.close();
      });
      let runs = 0;
      const fleeting = defineJob({ name: "fleeting", keep: false, run: async () => void runs++ });
      const kept = defineJob({ name: "kept", run: async () => {} });
      await hf.enqueueMany([
        { job: fleeting, input: null },
        { job: kept, input: null },
      ]);
      const worker = hf.work([fleeting], { queues: ["default"], poll: "50ms" });
      onTestFinished(() => worker.stop());
      await waitFor(() => runs === 1, { what: "the first to run" });

      // The first insert: its snapshot is taken, and it waits for a row of another transaction before it has written the second job.
      const [held, id] = [idAt(Date.now()), idAt(Date.now() + 1)];
      const store = await openStore(fresh.url, fresh.options);
      onTestFinished(() => store.close());
      await blocker.query("begin");
      await blocker.query(
        `insert into ${fresh.table("job")} (id, job_type, created_at, input) select $1, id, 0, 'null' from ${fresh.table("job_type")} where name = 'kept'`,
        [held],
      );
      await blocker.query(
        `insert into ${fresh.table("ready")} (id, job_type, rank, run_at) select $1, id, 0, 0 from ${fresh.table("job_type")} where name = 'kept'`,
        [held],
      );
      let tries = 0;
      const late = new Retry(systemClock, 10_000, silentLogger).once(() =>
        store.newJobs.enqueue(
          [
            newJob(held, { name: "kept", queue: "default", ...options }),
            newJob(id, { name: "fleeting", queue: "default", extras: fleeting.row.extras, ...options }),
          ],
          undefined,
          undefined,
          tries++ > 0,
        ),
      );
      const waits =
        "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query ilike '%insert%'";
      await waitFor(async () => (await fresh.query(waits)).length > 0, { what: "the insert to wait" });

      // Its repeat, from another client, runs and ends.
      const other = await open(fresh.url, fresh.options);
      onTestFinished(() => other.close());
      await other.enqueue(fleeting, null, { id });
      const noted = `select 1 from ${fresh.table("used_id")} where id = '${id}'`;
      await waitFor(async () => (await fresh.query(noted)).length === 1, { what: "the repeat to end" });
      expect(runs).toBe(2);

      await blocker.query("rollback");
      await late;
      expect(await hf.jobs.get(held)).toMatchObject({ state: "ready" });
      expect(await hf.jobs.get(id)).toBeNull();
      await worker.idle();
      expect(runs).toBe(2);
    });
});
