// The outcome of an enqueue and the number of its statements (promises N3, N4), and the counts (J5).
import { expect, expectTypeOf, test } from "vitest";
import { defineJob, type EnqueueResult } from "holdfast";
import { onEveryStore } from "../support/stores.ts";
import { client, patient } from "../support/client.ts";
import { poison } from "../worker/poison.ts";

const plain = defineJob({ name: "plain", run: () => null });

test("[N3] the outcome of an enqueue is a union of exactly four, told apart by its status", () => {
  expectTypeOf<EnqueueResult["status"]>().toEqualTypeOf<
    "enqueued" | "duplicate" | "replaced" | "debounced"
  >();
  expectTypeOf<EnqueueResult["id"]>().toEqualTypeOf<string>();
  const said = (result: EnqueueResult): string => {
    switch (result.status) {
      case "enqueued":
      case "duplicate":
      case "replaced":
      case "debounced":
        return result.id;
      default:
        return result satisfies never;
    }
  };
  expect(said({ status: "replaced", id: "x" })).toBe("x");
});

onEveryStore((target) => {
  test("[N3] an enqueue that made no job says so, and is counted", async () => {
    const { hf, clock } = await client(target);
    const keep = defineJob({ name: "keep", unique: () => "k" });
    const replace = defineJob({ name: "replace", unique: { key: () => "k", onConflict: "replace" } });
    const debounce = defineJob({ name: "debounce", unique: { key: () => "k", onConflict: "debounce" } });
    const said: string[] = [];
    for (const job of [keep, replace, debounce, keep, keep, replace, debounce])
      said.push((await hf.enqueue(job, clock.now())).status);
    expect(said).toEqual([
      "enqueued",
      "enqueued",
      "enqueued",
      "duplicate",
      "duplicate",
      "replaced",
      "debounced",
    ]);
    expect((await hf.stats()).counters).toMatchObject({
      enqueued: 3,
      duplicate: 2,
      replaced: 1,
      debounced: 1,
      suppressed: 3,
    });
  });

  test("[N3] a replaced job takes everything of the new request and keeps its id", async () => {
    const { hf, clock, count } = await client(target);
    const replace = defineJob({ name: "replace", unique: { key: () => "k", onConflict: "replace" } });
    const first = await hf.enqueue(replace, "old", { priority: 1, context: "old", delay: "1m" });
    const second = await hf.enqueue(replace, "new", {
      priority: 5,
      context: "new",
      delay: "2m",
      attempts: 9,
    });
    expect(second).toEqual({ status: "replaced", id: first.id });
    expect(await hf.jobs.get(first.id)).toMatchObject({
      input: "new",
      priority: 5,
      context: "new",
      maxAttempts: 9,
      runAt: new Date(clock.now() + 120_000),
    });
    expect([await count("job"), await count("ready")]).toEqual([1, 1]);
  });

  test("[N3] a debounced job starts its delay anew with each request, and runs once with the latest input", async () => {
    const { hf, clock } = await client(target);
    const ran: unknown[] = [];
    const debounce = defineJob({
      name: "debounce",
      unique: { key: () => "k", onConflict: "debounce" },
      run: (input) => void ran.push(input),
    });
    const worker = hf.work([debounce], { queues: { default: 1 }, ...patient });
    for (let n = 1; n <= 3; n++) {
      await hf.enqueue(debounce, n, { delay: "10s" });
      await clock.advance("9s");
      await worker.idle();
    }
    expect(ran).toEqual([]);
    await clock.advance("1s");
    await worker.idle();
    expect(ran).toEqual([3]);
  });

  test("[N3] a job that has started is neither replaced nor debounced", async () => {
    const { hf } = await client(target);
    const replace = defineJob({ name: "replace", unique: { key: () => "k", onConflict: "replace" } });
    const first = await hf.enqueue(replace, "old");
    await hf.lease();
    expect(await hf.enqueue(replace, "new")).toEqual({ status: "duplicate", id: first.id });
    expect((await hf.jobs.get(first.id))?.input).toBe("old");
  });

  test("[N3] within one batch the rules are the same as one after the other", async () => {
    const { hf } = await client(target);
    const replace = defineJob({ name: "replace", unique: { key: () => "k", onConflict: "replace" } });
    const [first, second, third] = await hf.enqueueMany([
      { job: replace, input: 1 },
      { job: replace, input: 2, priority: 4 },
      { job: "replace", input: 3, key: "k" },
    ]);
    expect([first.status, second.status, third.status]).toEqual(["enqueued", "replaced", "duplicate"]);
    expect(new Set([first.id, second.id, third.id]).size).toBe(1);
    expect(await hf.jobs.get(first.id)).toMatchObject({ input: 2, priority: 4 });
  });

  test("[N4] 1,000 concurrent enqueues take a few statements and commits, and keep their order", async () => {
    const { hf, store, fresh } = await client(target);
    await hf.enqueue(plain, null); // its line is known
    const { statements, commits } = { ...store.counters };
    const results = await Promise.all(Array.from({ length: 1_000 }, (_, n) => hf.enqueue(plain, n as never)));
    expect(store.counters.statements - statements).toBeLessThanOrEqual(24);
    expect(store.counters.commits - commits).toBeLessThanOrEqual(24);
    const rows = await fresh.query(
      `select j.id from ${fresh.table("ready")} r join ${fresh.table("job")} j on j.${fresh.jobKey} = r.${fresh.jobKey} order by j.id`,
    );
    expect(rows.slice(1).map((row) => row["id"])).toEqual(results.map(({ id }) => id));
  });

  test("[N4] enqueues that come while a batch is on its way go in the next one", async () => {
    const { hf, store, faults } = await client(target);
    await hf.enqueue(plain, null);
    const batches: number[] = [];
    let inFlight = 0;
    let most = 0;
    faults["newJobs.enqueue"] = async (jobs) => {
      batches.push(jobs.length);
      most = Math.max(most, ++inFlight);
      const outcomes = await store.newJobs.enqueue(jobs);
      inFlight -= 1;
      return outcomes;
    };
    const chained = Array.from({ length: 50 }, async () => {
      for (let n = 0; n < 10; n++) await hf.enqueue(plain, null);
    });
    await Promise.all(chained);
    expect(most, "one batch at a time keeps the client's order").toBe(1);
    expect(batches.reduce((sum, size) => sum + size, 0)).toBe(500);
    expect(batches.length).toBeLessThanOrEqual(25);
  });

  test("[N4] a promise settles only after the commit that holds its job", async () => {
    const { hf, store, fresh, faults } = await client(target);
    const order: string[] = [];
    faults["newJobs.enqueue"] = async (jobs) => {
      const outcomes = await store.newJobs.enqueue(jobs);
      order.push("committed");
      return outcomes;
    };
    const results = await Promise.all(
      Array.from({ length: 20 }, async (_, n) => {
        const result = await hf.enqueue(plain, n as never);
        order.push("told");
        return result;
      }),
    );
    expect(order).toEqual(["committed", ...Array.from({ length: 20 }, () => "told")]);
    expect(await fresh.query(`select count(*) as n from ${fresh.table("ready")}`)).toEqual([
      { n: results.length },
    ]);
  });

  test("[N4] one input that the client refuses fails alone", async () => {
    const { hf, count } = await client(target);
    const results = await Promise.allSettled(
      Array.from({ length: 100 }, (_, n) => hf.enqueue("any", n === 40 ? 1n : n)),
    );
    expect(results.map(({ status }) => status).filter((status) => status === "rejected")).toHaveLength(1);
    expect(results[40]).toMatchObject({ status: "rejected", reason: { code: "INPUT_NOT_JSON" } });
    expect(await count("ready")).toBe(99);
  });

  test("[N4] one job that the database refuses fails alone", async () => {
    const { hf, fresh, count } = await client(target);
    await poison(fresh);
    const results = await Promise.allSettled(
      Array.from({ length: 100 }, (_, n) =>
        hf.enqueue("any", n === 40 ? "poison" : n, n % 10 === 0 ? { key: `k${n}` } : {}),
      ),
    );
    expect(results.flatMap(({ status }, n) => (status === "rejected" ? [n] : []))).toEqual([40]);
    expect([await count("job"), await count("ready"), await count("unique_key")]).toEqual([99, 99, 9]);
  });

  test("[J5] counts keep ready, scheduled and running apart", async () => {
    const { hf } = await client(target);
    for (let n = 0; n < 4; n++) await hf.enqueue(plain, null, { queue: "mail" });
    for (let n = 0; n < 2; n++) await hf.enqueue(plain, null, { queue: "mail", delay: "1h" });
    await hf.enqueue(plain, null, { queue: "other", delay: "1h" });
    await hf.lease({ queues: ["mail"] });
    expect(await hf.queues.list()).toMatchObject([
      { name: "mail", counts: { ready: 3, scheduled: 2, running: 1, waiting: 0 } },
      { name: "other", counts: { ready: 0, scheduled: 1, running: 0, waiting: 0 } },
    ]);
    expect((await hf.stats()).totals).toEqual({
      ready: 3,
      scheduled: 3,
      running: 1,
      waiting: 0,
      done: 0,
      dead: 0,
      cancelled: 0,
    });
    expect([
      await hf.jobs.count({ state: "ready" }),
      await hf.jobs.count({ state: "scheduled" }),
      await hf.jobs.count({ state: "running" }),
    ]).toEqual([3, 3, 1]);
  });

  test("[J5] the lag is the age of the oldest ready job, by its due time, and a future one has none", async () => {
    const { hf, clock } = await client(target);
    await hf.enqueue(plain, null, { delay: "1h" });
    await clock.advance("10m");
    expect((await hf.stats()).lagMs).toBe(0);
    await hf.enqueue(plain, null);
    await clock.advance("5m");
    expect((await hf.stats()).lagMs).toBe(300_000);
    expect(await hf.queues.list()).toMatchObject([{ lagMs: 300_000 }]);
    await hf.lease({ for: "1d" });
    expect((await hf.stats()).lagMs, "what runs does not wait").toBe(0);
    await clock.advance("50m");
    expect((await hf.stats()).lagMs, "due for five minutes, however old").toBe(300_000);
  });
});
