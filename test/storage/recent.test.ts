// A claim looks for its jobs in today's table. Those of other days must come all the same, in their place in the order.
import { defineJob, open, silentLogger } from "holdfast";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { idAt } from "../../src/values/id.ts";
import { onPostgres } from "../support/stores.ts";
import { waitFor } from "../support/wait.ts";
import { operatorOf } from "../../src/operate/operator.ts";

const dayMs = 86_400_000;

onPostgres((target) => {
  test("[B1] jobs of today and of other days are claimed together, each with its own input", async () => {
    const fresh = await target.fresh();
    const hf = await open(fresh.url, fresh.options);
    const { byName } = operatorOf(hf).store.counters;
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
    // Within one millisecond the older id comes first.
    expect(new Set(await claimed(10))).toEqual(new Set(["an old id", "today 3", "today 4"]));
    expect(late()).toBe(1);

    await hf.enqueue("any", "another", { id: idAt(Date.now() - 39 * dayMs) });
    expect(await claimed(10)).toEqual(["another"]);
    expect(late(), "claims look everywhere for a while").toBe(1);
    await hf.close();
  });

  test("[O1] jobs of other days that were claimed and could not be read run once each, uncrashed", async () => {
    const fresh = await target.fresh();
    const pool = new pg.Pool({ connectionString: fresh.url });
    onTestFinished(() => pool.end());
    let refused = 0;
    pool.on("connect", (client) => {
      const send = client.query.bind(client) as (query: { text?: string }) => Promise<unknown>;
      const query = async (query: { text?: string }): Promise<unknown> => {
        // The read of late jobs, after the claim that took them.
        if (/^\s*with taken as/.test(query.text ?? "") && refused++ < 2)
          throw Object.assign(new Error("refused by the test"), { code: "XX000" });
        return send(query);
      };
      Object.assign(client, { query });
    });
    const hf = await open(pool, { ...fresh.options, logger: silentLogger });
    onTestFinished(() => hf.close());
    const runs: string[] = [];
    const job = defineJob({ name: "any", run: (input: string) => void runs.push(input) });
    const old = await hf.enqueue(job, "old", { id: idAt(Date.now() - 40 * dayMs) });
    await hf.enqueue(job, "new");
    const worker = hf.work([job], { queues: { default: 4 }, poll: "100ms" });
    await waitFor(async () => (await hf.jobs.count({ state: "done" })) === 2, { what: "both to end" });
    expect(refused).toBeGreaterThan(0);
    expect(runs.toSorted()).toEqual(["new", "old"]);
    expect(await hf.jobs.get(old.id)).toMatchObject({ attempt: 1, crashes: 0 });
    await worker.stop();
    expect(await fresh.query(`select * from ${fresh.table("claim")}`)).toEqual([]);
  });

  test("[O5] a claim that names the table of a day that was dropped, or that it may not read, names `job` in its place", async () => {
    const fresh = await target.fresh();
    const hf = await open(fresh.url, fresh.options);
    const today = `job_${new Date().toISOString().slice(0, 10).replaceAll("-", "")}`;
    await hf.enqueue("any", "moved");
    await fresh.query(`alter table ${fresh.table("job")} detach partition ${fresh.table(today)}`);
    await fresh.query(`insert into ${fresh.table("job")} select * from ${fresh.table(today)}`);
    await fresh.query(`drop table ${fresh.table(today)}`);
    expect((await hf.lease()).map(({ input }) => input)).toEqual(["moved"]);
    await hf.close();

    const role = `app_${fresh.options.schema}`;
    await fresh.query(`create role "${role}" login`);
    await fresh.query(`grant usage on schema "${fresh.options.schema}" to "${role}"`);
    for (const kind of ["tables", "sequences"])
      await fresh.query(`grant all on all ${kind} in schema "${fresh.options.schema}" to "${role}"`);
    // Its partitions are made again, after the rights were granted.
    await (await open(fresh.url, fresh.options)).close();
    const url = new URL(fresh.url);
    url.username = role;
    const app = await open(url.href, { ...fresh.options, migrate: false });
    await operatorOf(app).store.upkeep.tidy();
    await app.enqueue("any", "granted before");
    expect((await app.lease()).map(({ input }) => input)).toEqual(["granted before"]);
    await app.close();
    await fresh.query(`drop owned by "${role}"`);
    await fresh.query(`drop role "${role}"`);
  });
});
