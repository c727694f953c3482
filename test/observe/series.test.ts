// Minutes with percentiles, gathered in memory and written whole; the health of processes and database.
import { expect, test } from "vitest";
import {
  Dead,
  defineJob,
  defineMachine,
  finish,
  type Holdfast,
  next,
  open,
  silentLogger,
} from "../../src/index.ts";
import { onEveryStore, type FreshStore } from "../support/stores.ts";
import { newWorld } from "../support/world.ts";
import { connect, fresh } from "../support/test-clients.ts";

const quick = defineJob({ name: "quick", run: () => "ok" });
const flaky = defineJob({
  name: "flaky",
  retry: { attempts: 2, backoff: () => 1_000 },
  run: () => {
    throw new Error("no");
  },
});
const hopeless = defineJob({
  name: "hopeless",
  queue: "other",
  run: () => {
    throw new Dead("never");
  },
});

async function metricRows(store: FreshStore): Promise<Record<string, unknown>[]> {
  return store.query(`select * from ${store.table("metric")} order by minute, queue, name, worker`);
}

onEveryStore((target) => {
  test("[J3] a worker's minutes tell counts, outcomes and percentiles of each queue and name", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    await work([quick, flaky, hopeless], { queues: ["default", "other"] });
    for (let i = 0; i < 10; i += 1) await hf.enqueue(quick, null);
    await hf.enqueue(flaky, null);
    await hf.enqueue(hopeless, null);
    await world.advance("90s");
    const since = world.clock.now() - 600_000;
    const byName = await hf.metrics.series({ since, by: "job-type", step: "10m" });
    const find = (name: string) => byName.find((series) => series.name === name)?.points[0];
    expect(find("quick")).toMatchObject({ done: 10, failed: 0, ran: { count: 10 }, waited: { count: 10 } });
    expect(find("flaky")).toMatchObject({ done: 0, failed: 1, dead: 1 });
    expect(byName.find(({ name }) => name === "hopeless")).toMatchObject({
      queue: "other",
      points: [{ dead: 1 }],
    });
    const [all] = await hf.metrics.series({ since, step: "10m" });
    expect(all?.points[0]).toMatchObject({ done: 10, failed: 1, dead: 2, ran: { count: 13 } });
    const [other] = await hf.metrics.series({ since, queue: "other", step: "10m" });
    expect(other?.points[0]).toMatchObject({ done: 0, dead: 1 });
    expect(await hf.metrics.series({ until: since })).toEqual([]);
  });

  test("[J3] a run that sleeps and a machine that goes on have not failed", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    const sleeper = defineJob({
      name: "sleeper",
      run: async (_: null, ctx) => {
        await ctx.sleep("first", "5s");
        await ctx.sleep("second", "5s");
      },
    });
    const machine = defineMachine({
      name: "machine",
      start: "one",
      steps: { one: { run: () => next("two", null) }, two: { run: (_: null) => finish(null) } },
    });
    await work([sleeper, machine], { queues: ["default"] });
    const { id } = await hf.enqueue(sleeper, null);
    await hf.enqueue(machine, null);
    await world.advance("90s");
    expect((await hf.jobs.get(id))?.state).toBe("done");
    const [all] = await hf.metrics.series({ since: world.clock.now() - 600_000, step: "10m" });
    expect(all?.points[0]).toMatchObject({ done: 2, failed: 0, dead: 0, released: 0 });
  });

  test("[O10] a run that undoes its steps is counted dead once, and so is one that diverged", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    const saga = (before: string, after: string) =>
      defineJob({
        name: "saga",
        retry: { attempts: 1 },
        run: async (wait: boolean, ctx) => {
          await ctx.step(wait ? before : "charge", () => 1, { undo: () => undefined });
          if (wait) await ctx.sleep("nap", "5s");
          await ctx.step(after, () => {
            throw new Error("no");
          });
        },
      });
    const worker = await work([saga("old", "last")], { queues: ["default"] });
    await hf.enqueue(saga("old", "last"), true);
    await hf.enqueue(saga("old", "last"), false);
    await world.advance("2s");
    await world.finish(worker.stop());
    await work([saga("new", "last")], { queues: ["default"] });
    await world.advance("90s");
    expect(await hf.jobs.count({ state: "dead" })).toBe(2);
    const [all] = await hf.metrics.series({ since: world.clock.now() - 600_000, step: "10m" });
    expect(all?.points[0]).toMatchObject({ dead: 2, failed: 1, done: 0 });
  });

  test("[J3] writing a worker's minute twice gives the same rows", async () => {
    const world = await newWorld(target);
    const { hf, tap, work } = await world.client();
    await work([quick], { queues: ["default"] });
    // The answer to every write is lost: the database has it, the worker does not know and writes it again.
    let writes = 0;
    tap.around = async (verb, call) => {
      const answer = await call();
      if (verb === "series.putMetrics" && (writes += 1) <= 2) throw new Error("the answer was lost");
      return answer;
    };
    for (let i = 0; i < 5; i += 1) await hf.enqueue(quick, null);
    await world.advance("11s");
    const once = await metricRows(world.fresh);
    expect(once.reduce((sum, row) => sum + Number(row["done"]), 0)).toBe(5);
    await world.advance("30s");
    expect(writes).toBeGreaterThan(1);
    expect(await metricRows(world.fresh)).toEqual(once);
  });

  test("[J3] an idle worker writes no minutes, and gathering sends no statement", async () => {
    const world = await newWorld(target);
    const { hf, tap, work } = await world.client();
    await work([quick], { queues: ["default"] });
    await world.advance("5m");
    expect(await metricRows(world.fresh)).toEqual([]);
    const before = tap.count("series.putMetrics");
    for (let i = 0; i < 50; i += 1) await hf.enqueue(quick, null);
    await world.advance("20s");
    expect(tap.count("series.putMetrics") - before).toBeLessThanOrEqual(3);
  });

  test("[J3] minutes older than 30 days are forgotten", async () => {
    const world = await newWorld(target);
    const { hf, tap } = await world.client();
    const minute = (days: number): number =>
      Math.floor((world.clock.now() - days * 86_400_000) / 60_000) * 60_000;
    const row = {
      queue: "q",
      name: "n",
      worker: "w",
      done: 1,
      failed: 0,
      dead: 0,
      cancelled: 0,
      throttled: 0,
    };
    const rest = { released: 0, lost: 0, ran: "[0]", waited: "[0]" };
    await tap.raw.series.putMetrics([
      { minute: minute(31), ...row, ...rest },
      { minute: minute(29), ...row, ...rest },
    ]);
    await hf.prune();
    expect((await metricRows(world.fresh)).map((one) => one["minute"])).toEqual([minute(29)]);
  });

  test("[J3] minutes that are over are added up to one row for all workers, and say the same", async () => {
    const world = await newWorld(target);
    const clients = [await world.client(), await world.client()];
    for (const { work } of clients) await work([quick], { queues: { default: 1 } });
    const [{ hf }] = clients as [(typeof clients)[0]];
    await hf.enqueueMany(Array.from({ length: 60 }, () => ({ job: quick, input: null })));
    await world.advance("20s");
    const since = world.clock.now() - 60_000;
    const day = { since, step: "1d", name: [quick.name], by: "name" } as const;
    const before = await hf.metrics.series({ since, step: "10m" });
    const dayBefore = await hf.metrics.series(day);
    expect(dayBefore[0]?.points.reduce((sum, { done }) => sum + done, 0)).toBe(60);
    const rowsBefore = await metricRows(world.fresh);
    world.clock.set(world.clock.now() + 3 * 3_600_000);
    await hf.prune();
    const rows = await metricRows(world.fresh);
    expect(new Set(rowsBefore.map((row) => row["worker"])).size).toBeGreaterThan(0);
    expect(rows.every((row) => row["worker"] === "")).toBe(true);
    expect(await hf.metrics.series({ since, step: "10m" })).toEqual(before);
    expect(await hf.metrics.series(day)).toEqual(dayBefore);
    // From the sums: the minutes themselves are not asked for where an hour is over.
    await world.fresh.query(`update ${world.fresh.table("metric")} set done = 0`);
    expect(await hf.metrics.series({ since, step: "10m" })).toEqual(before);
    expect(await hf.metrics.series(day)).toEqual(dayBefore);
    expect((await hf.metrics.series({ since, step: "10m", by: "queue" }))[0]?.points[0]?.done).toBe(0);
    for (const row of rows) row["done"] = 0;
    await hf.prune();
    expect(await metricRows(world.fresh)).toEqual(rows);
  });

  test("[J3] the health of worker and database is measured every minute", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    const worker = await work([quick], { queues: ["default"] });
    for (let i = 0; i < 3; i += 1) {
      await hf.enqueue(quick, null); // so that something is written in each minute
      await world.advance("1m");
    }
    const gauges = await hf.metrics.gauges();
    const named = (source: string): Map<string, number> =>
      new Map(
        gauges
          .filter((one) => one.source === source)
          .map(({ name, points }) => [name, points.at(-1)?.value ?? Number.NaN]),
      );
    const process = named(worker.id);
    expect([...process.keys()].sort()).toEqual([
      "cpu",
      "dbReadMs",
      "dbWriteMs",
      "hostFreeBytes",
      "hostLoad",
      "loopDelayMs",
      ...(target.dialect === "postgres" ? ["poolIdle", "poolUsed", "poolWaiting"] : []),
      "rss",
      "running",
      "slots",
    ]);
    const database = named("database");
    expect([...database.keys()].sort()).toEqual(
      target.dialect === "sqlite"
        ? ["diskFreeBytes", "sizeBytes", "walBytes"]
        : ["connections", "deadRows", "liveRows", "oldestTransactionMs", "sizeBytes", "walBytes"],
    );
    // Each a measurement, and not a nought that stands for none.
    for (const [name, value] of [...process, ...database]) expect([name, value >= 0]).toEqual([name, true]);
    for (const name of ["rss", "hostFreeBytes"])
      expect([name, process.get(name)! > 1_000_000]).toEqual([name, true]);
    for (const name of target.dialect === "sqlite"
      ? ["diskFreeBytes", "sizeBytes", "walBytes"]
      : ["connections", "sizeBytes", "walBytes"])
      expect([name, database.get(name)! > 0]).toEqual([name, true]);
  });

  test("[J3] what waits in the fullest queues and the slots of all workers are kept by the minute, from what is asked anyway", async () => {
    const world = await newWorld(target);
    const { hf, tap, work } = await world.client();
    const other = await world.client();
    await work([quick], { queues: { default: 3 } });
    await other.work([quick], { queues: { default: 5 } });
    await world.advance("2m");
    const idle = await hf.metrics.load();
    expect(idle.at(-1)).toMatchObject({ ready: 0, queues: {}, running: 0, slots: 8 });
    const asked =
      tap.count("queues.backlog", "series.putGauges") + other.tap.count("queues.backlog", "series.putGauges");
    // Nobody serves these: 22 queues, of which the two smallest are told of only in the sum.
    const jobs = Array.from({ length: 22 }, (_, q) =>
      Array.from({ length: q + 1 }, () => ({ job: quick, input: null, queue: `q${q}` })),
    ).flat();
    await hf.enqueueMany(jobs);
    const since = world.clock.now();
    await world.advance("10m", "1s");
    const points = await hf.metrics.load({ since: since + 120_000 });
    expect(points.length).toBeGreaterThan(6);
    const [point] = points;
    expect(point).toMatchObject({ ready: 253, running: 0, slots: 8, queues: { q21: 22, q2: 3 } });
    expect(Object.keys(point!.queues)).toHaveLength(20);
    const [long] = await hf.metrics.load({ since: since + 120_000, until: since + 600_000, step: "1h" });
    expect(long!.queues["q21"]).toBeLessThanOrEqual(22);
    expect(long).toMatchObject({ slots: 8, running: 0 });
    // One look for all and one write of each process a minute, and the one of the look: no more than before.
    const after =
      tap.count("queues.backlog", "series.putGauges") + other.tap.count("queues.backlog", "series.putGauges");
    expect(after - asked).toBeLessThanOrEqual(4 * 11);
    await expect(hf.metrics.load({ step: "90s" })).rejects.toMatchObject({ code: "BAD_OPTION" });
  });

  test("[J3] two workers of two processes count apart and are read together", async () => {
    const store = await target.fresh();
    const clients = [await connect(store), await connect(store)];
    const workers = clients.map((hf) => hf.work([quick], { queues: ["default"] }));
    await Promise.all(workers.map((worker) => worker.ready));
    for (let i = 0; i < 40; i += 1) await clients[0]!.enqueue(quick, null);
    await Promise.all(workers.map((worker) => worker.idle()));
    // The last minute is written when a worker stops.
    await Promise.all(workers.map((worker) => worker.stop()));
    const [all] = await clients[0]!.metrics.series({});
    expect(all?.points.reduce((sum, point) => sum + point.done, 0)).toBe(40);
    expect(totalDone(clients)).toBe(40);
  });

  test("metrics: false counts and writes nothing", async () => {
    const { hf, store } = await fresh(target, { metrics: false });
    const worker = hf.work([quick], { queues: ["default"] });
    await hf.enqueue(quick, null);
    await worker.ready;
    await worker.idle();
    await worker.stop();
    expect(await metricRows(store)).toEqual([]);
    expect(hf.metrics.totals()).toEqual([]);
  });

  test.each([{ step: "90s" }, { step: 1 }, { by: "worker" }, { form: 1 }])(
    "series refuses %j",
    async (query) => {
      const store = await target.fresh();
      await using hf = await open(store.url, { ...store.options, logger: silentLogger });
      await expect(hf.metrics.series(query as never)).rejects.toMatchObject({
        code: expect.any(String) as string,
      });
    },
  );
});

function totalDone(clients: readonly Holdfast[]): number {
  return clients.flatMap((hf) => hf.metrics.totals()).reduce((sum, { counts }) => sum + counts.done, 0);
}
