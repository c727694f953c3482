/** Unique keys where they meet other people's transactions, ids that come twice, and jobs that have begun. */
import pg from "pg";
import { defineJob, fixed, type Holdfast, open, Release } from "holdfast";
import { FakeClock } from "holdfast/testing";
import { expect, test } from "vitest";
import { type FreshStore, onEveryStore, onPostgres } from "../support/stores.ts";

const quiet = { debug() {}, info() {}, warn() {}, error() {} };

onPostgres((target) => {
  async function start(): Promise<{ hf: Holdfast; other: Holdfast; client: pg.Client; fresh: FreshStore }> {
    const fresh = await target.fresh();
    const options = { ...fresh.options, logger: quiet };
    const client = new pg.Client(fresh.url);
    await client.connect();
    await client.query("begin");
    return { hf: await open(fresh.url, options), other: await open(fresh.url, options), client, fresh };
  }

  test("a duplicate in an open transaction keeps nobody from settling", async () => {
    const { hf, other, client } = await start();
    const door = Promise.withResolvers<void>();
    const job = defineJob({ name: "n", run: () => door.promise });
    const worker = hf.work([job], { queues: ["default"] });
    const held = await hf.enqueue(job, null as never, { key: "k" });
    await other.enqueue(job, null as never);
    expect(await hf.enqueue(job, null as never, { key: "k", tx: client })).toEqual({
      status: "duplicate",
      id: held.id,
    });
    door.resolve();
    await hf.result(held, { timeout: "10s" });
    await worker.idle();
    expect(await hf.jobs.count({ state: "done" })).toBe(2);
    await client.query("rollback");
    await client.end();
    await Promise.all([hf.close(), other.close()]);
  });

  test("a key or a kind that an open transaction has made holds up nothing but that key", async () => {
    const { hf, other, client } = await start();
    const job = defineJob({ name: "brand-new", run: () => {} });
    const first = await hf.enqueue(job, null as never, { key: "k", tx: client });
    let settled = false;
    const same = other.enqueue(job, null as never, { key: "k" }).finally(() => (settled = true));
    const others = [other.enqueue(job, null as never), hf.enqueue(job, null as never)];
    expect((await Promise.all(others)).map(({ status }) => status)).toEqual(["enqueued", "enqueued"]);
    expect(settled).toBe(false);
    await client.query("commit");
    expect(await same).toEqual({ status: "duplicate", id: first.id });
    await client.end();
    await Promise.all([hf.close(), other.close()]);
  });
});

onEveryStore((target) => {
  async function start(): Promise<{ hf: Holdfast; clock: FakeClock; fresh: FreshStore }> {
    const fresh = await target.fresh();
    const clock = new FakeClock();
    return { hf: await open(fresh.url, { ...fresh.options, clock, logger: quiet }), clock, fresh };
  }
  const job = defineJob({ name: "n", run: (_input: unknown) => {} });

  test("a job that has ended leaves no key behind", async () => {
    const { hf, fresh } = await start();
    const worker = hf.work([job], { queues: ["default"] });
    await hf.enqueue(job, 1, { key: "done" });
    await worker.idle();
    const { id } = await hf.enqueue(job, 1, { key: "cancelled", delay: "1h" });
    expect(await fresh.query(`select key from ${fresh.table("unique_key")}`)).toEqual([{ key: "cancelled" }]);
    await hf.jobs.cancel(id);
    expect(await fresh.query(`select key from ${fresh.table("unique_key")}`)).toEqual([]);
    await hf.close();
  });

  test("an id that is sent again takes no key", async () => {
    const { hf } = await start();
    const worker = hf.work([job], { queues: ["default"] });
    const { id } = await hf.enqueue(job, 1, { key: "k" });
    await worker.idle();
    await hf.enqueue(job, 1, { id, key: "k" });
    expect(await hf.enqueue(job, 2, { key: "k" })).toMatchObject({ status: "enqueued" });
    await hf.close();
  });

  test("an id that carries no time is refused", async () => {
    const { hf } = await start();
    const id = "f47ac10b-58cc-4372-a567-0e02b2c3d479";
    await expect(hf.enqueue(job, 1, { id })).rejects.toMatchObject({ code: "BAD_OPTION" });
    await hf.close();
  });

  test("replacing a queued job moves it to the new queue and name", async () => {
    const { hf } = await start();
    const unique = { key: () => "k", scope: "global", onConflict: "replace" } as const;
    const a = defineJob({ name: "a", queue: "q1", unique, run: (_input: unknown) => {} });
    const b = defineJob({ name: "b", queue: "q2", unique, run: (_input: unknown) => {} });
    const { id } = await hf.enqueue(a, "for a");
    expect(await hf.enqueue(b, "for b")).toEqual({ status: "replaced", id });
    expect(await hf.jobs.get(id)).toMatchObject({ name: "b", queue: "q2", input: "for b" });
    expect((await hf.lease({ queues: ["q2"], names: ["b"] })).map((lease) => lease.input)).toEqual(["for b"]);
    await hf.close();
  });

  test("a job that has begun is past replacing, also while it waits for its next attempt", async () => {
    const { hf, clock } = await start();
    const runs: unknown[] = [];
    const unique = { key: () => "k", onConflict: "replace" } as const;
    const failing = defineJob({
      name: "f",
      unique,
      retry: { backoff: fixed("5s") },
      run: (input: unknown) => {
        runs.push(input);
        if (runs.length === 1) throw new Error("not yet");
      },
    });
    const worker = hf.work([failing], { queues: ["default"] });
    const { id } = await hf.enqueue(failing, "old");
    await worker.idle();
    expect(await hf.enqueue(failing, "new")).toEqual({ status: "duplicate", id });
    await clock.advance("6s");
    await worker.idle();
    expect(runs).toEqual(["old", "old"]);
    await hf.close();
  });

  test("a deadline to start by is met by the first start, whatever becomes of that attempt", async () => {
    const { hf, clock } = await start();
    let runs = 0;
    const late = defineJob({
      name: "late",
      run: () => {
        runs += 1;
        if (runs === 1) throw new Release("come back later", { delay: "10s" });
      },
    });
    const worker = hf.work([late], { queues: ["default"] });
    const { id } = await hf.enqueue(late, null as never, { deadline: "5s" });
    await worker.idle();
    await clock.advance("11s");
    await worker.idle();
    expect(await hf.jobs.get(id)).toMatchObject({ state: "done", attempt: 1 });
    expect(runs).toBe(2);

    const missed = await hf.enqueue(late, null as never, { delay: "20s", deadline: "5s" });
    await clock.advance("21s");
    await worker.idle();
    expect(await hf.jobs.get(missed.id)).toMatchObject({ state: "cancelled", attempt: 0 });
    expect(await hf.jobs.retry(missed.id)).toBe("retried");
    await worker.idle();
    expect(await hf.jobs.get(missed.id)).toMatchObject({ state: "done" });
    await hf.close();
  });

  test("a search finds quotes, line breaks, other alphabets, and ASCII letters in either case", async () => {
    const { hf } = await start();
    const { id } = await hf.enqueue(job, { text: 'She said "Hi"\nand left: ÄRGER' });
    for (const search of ['said "hi"', '"Hi"\nand', "ÄRGER", "SHE SAID"]) {
      expect((await hf.jobs.list({ search })).jobs.map((found) => found.id)).toEqual([id]);
    }
    expect((await hf.jobs.list({ search: "nothing" })).jobs).toEqual([]);
    await hf.close();
  });
});
