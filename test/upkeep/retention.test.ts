// Promises I1 to I3: retention, bulk actions in batches, and the settings of the hot tables.
import { statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { defineJob } from "holdfast";
import { pruneOnce } from "../../src/upkeep/job-pruner.ts";
import { silentLogger } from "../../src/logger.ts";
import { WAL_LIMIT_BYTES } from "../../src/storage/sqlite/connection.ts";
import { onEveryStore } from "../support/stores.ts";
import { waitFor } from "../support/wait.ts";
import { client, patient, type TestClient } from "../support/client.ts";

const plain = defineJob({ name: "plain", run: () => null });
const dayMs = 86_400_000;

/** One done, one dead and one cancelled job in a queue. */
async function threeEnded(
  { hf }: TestClient,
  queue: string,
): Promise<[done: string, dead: string, cancelled: string]> {
  const jobs: string[] = [];
  for (let n = 0; n < 3; n++) jobs.push((await hf.enqueue(plain, n as never, { queue })).id);
  const [done, dead, cancelled] = jobs as [string, string, string];
  const [first, second] = await hf.lease({ queues: [queue], limit: 2 });
  await first!.done();
  await second!.dead("no");
  await hf.jobs.cancel(cancelled);
  return [done, dead, cancelled];
}

async function kept({ hf }: TestClient, ids: readonly string[]): Promise<boolean[]> {
  return Promise.all(ids.map(async (id) => (await hf.jobs.get(id)) !== null));
}

onEveryStore((target) => {
  test("[I1] done jobs are kept 7 days, dead and cancelled ones 30, and what lives for ever", async () => {
    const opened = await client(target);
    const { hf, clock, count } = opened;
    const ended = await threeEnded(opened, "default");
    const live = await hf.enqueue(plain, null, { delay: "365d" });
    await clock.advance(7 * dayMs - 1);
    expect(await hf.prune()).toEqual({ done: 0, dead: 0, cancelled: 0, partitions: 0 });
    await clock.advance(1);
    expect(await hf.prune()).toEqual({ done: 1, dead: 0, cancelled: 0, partitions: 0 });
    expect(await kept(opened, ended)).toEqual([false, true, true]);
    await clock.advance(23 * dayMs - 1);
    expect(await kept(opened, ended)).toEqual([false, true, true]);
    await hf.prune();
    expect(await kept(opened, ended)).toEqual([false, true, true]);
    await clock.advance(1);
    await hf.prune();
    expect(await kept(opened, ended)).toEqual([false, false, false]);
    expect(await hf.jobs.get(live.id)).toMatchObject({ state: "scheduled" });
    expect([await count("job"), await count("history")], "nothing is left behind").toEqual([1, 0]);
  });

  test("[I1] the age of a job is that of its end, not of its beginning", async () => {
    const opened = await client(target);
    const { hf, clock } = opened;
    const { id } = await hf.enqueue(plain, null);
    await clock.advance("10d");
    await (await hf.lease())[0]!.done();
    await clock.advance("6d");
    await hf.prune();
    expect(await kept(opened, [id])).toEqual([true]);
    await clock.advance("1d");
    await hf.prune();
    expect(await kept(opened, [id])).toEqual([false]);
  });

  test("[I1] a queue's own retention wins, both ways, and 0 keeps for ever", async () => {
    const opened = await client(target);
    const { hf, clock } = opened;
    await hf.queues.set("short", { retention: { done: "1d", dead: "2d" } });
    await hf.queues.set("long", { retention: { done: "100d", dead: "100d" } });
    await hf.queues.set("ever", { retention: { done: 0, dead: 0 } });
    const short = await threeEnded(opened, "short");
    const long = await threeEnded(opened, "long");
    const ever = await threeEnded(opened, "ever");
    await clock.advance("1d");
    expect(await hf.prune()).toMatchObject({ done: 1, dead: 0, cancelled: 0 });
    expect(await kept(opened, short)).toEqual([false, true, true]);
    await clock.advance("39d");
    await hf.prune();
    expect(await kept(opened, [...short, ...long, ...ever])).toEqual([
      false,
      false,
      false,
      true,
      true,
      true,
      true,
      true,
      true,
    ]);
    await clock.advance("1000d");
    await hf.prune();
    expect(await kept(opened, [...long, ...ever])).toEqual([false, false, false, true, true, true]);
  });

  test("[I1] a client's retention of 0 touches nothing", async () => {
    const opened = await client(target, { retention: { done: 0, dead: 0 } });
    const ended = await threeEnded(opened, "default");
    await opened.clock.advance("5000d");
    expect(await opened.hf.prune()).toEqual({ done: 0, dead: 0, cancelled: 0, partitions: 0 });
    expect(await kept(opened, ended)).toEqual([true, true, true]);
  });

  test("[I1] a pruned job's key and rows are gone, and its id is unknown", async () => {
    const { hf, clock, count } = await client(target);
    const hourly = defineJob({ name: "hourly", unique: { key: () => "k", for: "30d" } });
    const { id } = await hf.enqueue(hourly, 0);
    await (await hf.lease())[0]!.done();
    await clock.advance("8d");
    await hf.prune();
    expect(await hf.jobs.get(id)).toBeNull();
    expect([await count("job"), await count("history"), await count("ready")]).toEqual([0, 0, 0]);
  });

  test("[O8] an expired unique key goes though nothing of its job was kept, and stays while its job lives", async () => {
    const opened = await client(target);
    const { hf, clock, count } = opened;
    const unique = { key: (input: string) => input, for: "1h" } as const;
    const dropped = defineJob({ name: "dropped", keep: false, unique, run: (_input: string) => null });
    const worker = hf.work([dropped], { queues: ["default"], ...patient });
    const result = await hf.enqueue(dropped, "gone");
    await waitFor(async () => (await hf.jobs.get(result.id)) === null, { what: "the job to end" });
    await worker.stop();
    await hf.enqueue(dropped, "waits", { delay: "30d" });
    await hf.prune();
    expect(await count("unique_key"), "before it has expired").toBe(2);
    expect(await hf.enqueue(dropped, "gone")).toMatchObject({ status: "duplicate", id: result.id });
    await clock.advance("1h");
    await hf.prune();
    expect(await count("unique_key")).toBe(1);
    expect(await hf.enqueue(dropped, "waits")).toMatchObject({ status: "duplicate" });
    expect(await hf.enqueue(dropped, "gone")).toMatchObject({ status: "enqueued" });
  });

  test("[O8] expired keys go in batches, past those whose jobs live", async () => {
    const { hf, clock, count } = await client(target);
    const unique = { key: (input: string) => input, for: "1h" } as const;
    const live = defineJob({ name: "live", unique, run: (_input: string) => null });
    const ended = defineJob({ name: "ended", unique, run: (_input: string) => null });
    const inputs = Array.from({ length: 700 }, (_, n) => String(n));
    await hf.enqueueMany(inputs.map((input) => ({ job: live, input })));
    await hf.enqueueMany(inputs.map((input) => ({ job: ended, input })));
    await hf.jobs.cancel({ name: "ended" });
    await clock.advance("1h");
    await hf.prune();
    expect([await count("unique_key"), await count("history")]).toEqual([700, 700]);
  });

  test("[O8] a unique key is held for its time, though its job is pruned before", async () => {
    const { hf, clock, count } = await client(target);
    const job = defineJob({ name: "monthly", unique: { key: () => "k", for: "30d" }, run: () => null });
    const { id } = await hf.enqueue(job, null);
    await (await hf.lease())[0]!.done();
    await clock.advance("8d");
    expect(await hf.prune()).toMatchObject({ done: 1 });
    expect(await hf.enqueue(job, null)).toMatchObject({ status: "duplicate", id });
    await clock.advance("22d");
    await hf.prune();
    expect(await count("unique_key")).toBe(0);
    const again = await hf.enqueue(job, null);
    expect(again.status).toBe("enqueued");
    await hf.jobs.delete(again.id);
    expect(await hf.enqueue(job, null), "who deletes the job by hand frees its key").toMatchObject({
      status: "enqueued",
    });
  });

  test("[I1] of all processes one sweeps in each period", async () => {
    const { store, another, clock } = await client(target);
    const others = [store, (await another()).store, (await another()).store];
    const sweep = async (): Promise<number> =>
      (await Promise.all(others.map((one) => one.upkeep.takeTask("prune", 300_000)))).filter(Boolean).length;
    expect([await sweep(), await sweep()]).toEqual([1, 0]);
    await clock.advance(299_999);
    expect(await sweep()).toBe(0);
    await clock.advance(1);
    expect(await sweep()).toBe(1);
  });

  test("[I2] a bulk delete and a bulk retry go in batches of 500 and let others run in between", async () => {
    const { hf, store, faults } = await client(target);
    await hf.enqueueMany(Array.from({ length: 1_000 }, (_, n) => ({ job: plain, input: n as never })));
    await hf.enqueueMany(Array.from({ length: 201 }, (_, n) => ({ job: plain, input: n as never })));
    const batches: number[] = [];
    let turns = 0;
    const turnsAtBatch: number[] = [];
    const note = (ids: readonly string[]): void => {
      batches.push(ids.length);
      turnsAtBatch.push(turns);
    };
    faults["jobs.cancel"] = (ids, reason) => (note(ids), store.jobs.cancel(ids, reason));
    faults["jobs.retry"] = (ids) => (note(ids), store.jobs.retry(ids));
    faults["jobs.delete"] = (ids) => (note(ids), store.jobs.delete(ids));
    let over = false;
    const turn = (): void => {
      turns += 1;
      if (!over) setImmediate(turn);
    };
    turn();
    expect(await hf.jobs.cancel({ queue: "default" })).toMatchObject({ matched: 1_201, cancelled: 1_201 });
    expect(await hf.jobs.retry({ state: "cancelled" })).toMatchObject({ matched: 1_201, retried: 1_201 });
    expect(await hf.jobs.delete({ queue: "default" })).toMatchObject({ matched: 1_201, deleted: 1_201 });
    over = true;
    expect(batches.toSorted((a, b) => b - a)).toEqual([500, 500, 500, 500, 500, 500, 201, 201, 201]);
    expect(new Set(turnsAtBatch).size, "the event loop turned between any two batches").toBe(batches.length);
  });

  test("[I2] a prune goes in batches, each its own transaction, and misses none", async () => {
    const { hf, store, clock, count } = await client(target);
    await hf.queues.set("default", { retention: { done: "1d", dead: "1d" } });
    await hf.enqueueMany(Array.from({ length: 950 }, (_, n) => ({ job: plain, input: n as never })));
    await hf.jobs.cancel({ queue: "default" });
    await clock.advance("2d");
    const before = store.counters.byName.get("forget") ?? 0;
    expect(
      await pruneOnce({ store, log: silentLogger, retention: { doneMs: dayMs, deadMs: dayMs } }),
    ).toMatchObject({ cancelled: 950 });
    expect((store.counters.byName.get("forget") ?? 0) - before).toBe(2);
    expect([await count("job"), await count("history")]).toEqual([0, 0]);
  });

  test("[I3] the hot tables have the settings that were measured", async () => {
    const { hf, store, fresh } = await client(target);
    if (target.dialect === "postgres") {
      const options = await fresh.query(
        "select relname, reloptions from pg_class where relnamespace = ?::regnamespace and reloptions is not null order by 1",
        [fresh.options.schema],
      );
      // What claims under limits write over and over, and empty: room on the page, and vacuum soon.
      const vacuumed = ["autovacuum_vacuum_scale_factor=0.02", "autovacuum_vacuum_cost_delay=0"];
      expect(options).toEqual([
        { relname: "lane", reloptions: ["fillfactor=70"] },
        { relname: "lane_rotation", reloptions: ["fillfactor=70", ...vacuumed] },
        { relname: "lane_wakeup", reloptions: vacuumed },
        {
          relname: "ready",
          reloptions: [
            "fillfactor=42",
            "autovacuum_vacuum_scale_factor=0.02",
            "autovacuum_vacuum_threshold=2000",
            "autovacuum_analyze_scale_factor=0.05",
            "autovacuum_vacuum_cost_delay=0",
          ],
        },
        { relname: "returned_capacity", reloptions: vacuumed },
        { relname: "session", reloptions: ["fillfactor=50"] },
      ]);
      return;
    }
    expect(await fresh.query("pragma journal_mode")).toEqual([{ journal_mode: "wal" }]);
    const path = fresh.url.slice("sqlite:".length);
    await hf.enqueueMany(Array.from({ length: 500 }, (_, n) => ({ job: plain, input: n as never })));
    const before = statSync(`${path}-wal`).size;
    expect(before).toBeGreaterThan(100_000);
    await store.upkeep.tidy();
    // What tidying itself writes afterwards is a page or two.
    expect(statSync(`${path}-wal`).size, "tidying cuts the WAL back").toBeLessThan(50_000);
    expect(statSync(path).mode & 0o777, "nobody else reads the file").toBe(0o600);
  });

  test("[I3] the claim of a job is a HOT update, and a WAL that a reader holds is reported", async () => {
    const { hf, store, fresh } = await client(target, { durability: "normal", maxPayload: 4 * 1024 * 1024 });
    if (target.dialect === "postgres") {
      await hf.enqueueMany(Array.from({ length: 1_000 }, (_, n) => ({ job: plain, input: n as never })));
      const leases = await hf.lease({ limit: 1_000 });
      expect(leases).toHaveLength(1_000);
      const [ctids] = await fresh.query(
        `select count(distinct (ctid::text::point)[0]) as pages from ${fresh.table("ready")}`,
      );
      const [size] = await fresh.query(`select pg_relation_size(?::regclass) / 8192 as pages`, [
        fresh.table("ready"),
      ]);
      // Each new version stands on the page of the old one: the table has not grown for the claim.
      expect(Number(size!["pages"])).toBe(Number(ctids!["pages"]));
      return;
    }
    const warnings: string[] = [];
    hf.on("warning", ({ message }) => warnings.push(message));
    const path = fresh.url.slice("sqlite:".length);
    const reader = new DatabaseSync(path);
    reader.exec("begin");
    reader.prepare('select count(*) from "holdfast_job"').all();
    const large = "x".repeat(3 * 1024 * 1024);
    for (let bytes = 0; bytes <= WAL_LIMIT_BYTES + large.length; bytes += large.length)
      await hf.enqueue("large", large);
    await store.upkeep.tidy();
    expect(warnings).toEqual([expect.stringContaining("WAL")]);
    reader.close();
    await store.upkeep.tidy();
    expect(statSync(`${path}-wal`).size).toBeLessThan(50_000);
  });
});
