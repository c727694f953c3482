// Which position a job has in the claim order: given back or lost (O12), and due in the past (O13).
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { defineJob, fixed, Release } from "holdfast";
import type { Store } from "../../src/storage/store.ts";
import { onEveryStore } from "../support/stores.ts";
import { newWorld } from "../support/world.ts";
import { client, patient } from "../support/client.ts";

const ordered = defineJob({ name: "ordered", run: (_n: number) => null });

/** Claims the first job and never comes back. */
async function dieWithTheFirst(store: Store): Promise<string> {
  const session = await store.sessions.open({
    kind: "worker",
    workerId: "dies",
    name: "dies",
    host: "h",
    pid: 1,
    queues: { default: 1 },
    names: ["ordered"],
    leaseMs: 5_000,
    version: "1",
  });
  const scope = { queues: ["default"], names: "all", limit: 1, order: "highest-first" } as const;
  const [job] = await store.claims.claim(session, scope, { levels: new Map(), rescannedAt: -Infinity });
  return job!.id;
}

onEveryStore((target) => {
  test("[O12] five jobs, one released, one lost, one shut down: order kept", async () => {
    const { hf, clock, store } = await client(target);
    for (let n = 1; n <= 5; n++) {
      await hf.enqueue(ordered, n);
      await clock.advance(10);
    }
    await dieWithTheFirst(store);
    const started = Promise.withResolvers<number>();
    const hangs = defineJob({
      name: "ordered",
      run: (n: number, { signal }) =>
        new Promise<never>((_resolve, reject) => {
          started.resolve(n);
          signal.addEventListener("abort", () => reject(new Error("stopped")));
        }),
    });
    const stopped = hf.work([hangs], { queues: { default: 1 }, ...patient });
    expect(await started.promise).toBe(2);
    await stopped.stop({ timeout: 0 });
    const leases = await hf.lease({ limit: 2 });
    expect(leases.map(({ input }) => input)).toEqual([2, 3]);
    for (const lease of leases) await lease.release();
    const order: number[] = [];
    const runs = defineJob({ name: "ordered", run: (n: number) => void order.push(n) });
    await clock.advance("6s");
    await hf.queues.pause("default");
    const worker = hf.work([runs], { queues: { default: 1 }, ...patient });
    while ((await hf.jobs.count({ state: "running" })) > 0) await clock.advance(500);
    await hf.queues.resume("default");
    while (order.length < 5) await clock.advance(100);
    expect(order).toEqual([1, 2, 3, 4, 5]);
    await worker.stop();
  });

  test("[O12] the job of a dead worker runs next, before the rest of a backlog", async () => {
    const { hf, clock, store } = await client(target);
    await hf.enqueueMany(Array.from({ length: 2_000 }, (_, input) => ({ job: ordered, input })));
    const lost = await dieWithTheFirst(store);
    const order: number[] = [];
    const reached = Promise.withResolvers<void>();
    const taken = Promise.withResolvers<void>();
    const runs = defineJob({
      name: "ordered",
      run: async (n: number) => {
        order.push(n);
        if (order.length < 50) return;
        reached.resolve();
        await taken.promise;
      },
    });
    const worker = hf.work([runs], { queues: { default: 1 }, ...patient });
    await reached.promise;
    while ((await hf.jobs.get(lost))?.state === "running") await clock.advance(500);
    taken.resolve();
    await worker.idle();
    expect(order.filter((n) => n !== 0)).toEqual(Array.from({ length: 1_999 }, (_, n) => n + 1));
    // What the worker had claimed ahead when it was taken over runs first.
    expect(order.indexOf(0)).toBeLessThan(1_800);
    await worker.stop();
  });

  test("[O12] a handler that always releases its job neither spins nor keeps the others waiting", async () => {
    const { hf, clock } = await client(target);
    const order: number[] = [];
    const job = defineJob({
      name: "ordered",
      run: (n: number) => {
        order.push(n);
        if (n === 0) throw new Release();
      },
    });
    for (let n = 0; n < 3; n++) await hf.enqueue(job, n);
    const worker = hf.work([job], { queues: { default: 1 }, ...patient });
    await worker.idle();
    expect(order.toSorted((a, b) => a - b)).toEqual([0, 0, 1, 2]);
    await clock.advance("1s");
    await worker.idle();
    expect(order.at(-1)).toBe(0);
    expect(order).toHaveLength(5);
    await worker.stop();
  });

  test("[O12] the first Release after a sleep or a failed attempt keeps the position; the second in a row does not", async () => {
    const { hf, clock } = await client(target);
    for (const before of ["sleep", "failure", "nothing"] as const) {
      let runs = 0;
      const dues: (number | null)[] = [];
      const job = defineJob({
        name: before,
        retry: { attempts: 3, backoff: fixed("1m") },
        run: async (_input: null, ctx) => {
          runs += 1;
          if (before === "failure" && runs === 1) throw new Error("broken");
          if (before === "sleep") await ctx.sleep("nap", "1m");
          if (dues.length < 3) throw new Release();
        },
      });
      const worker = hf.work([job], { queues: { default: 1 }, ...patient });
      hf.on("job.released", ({ name, delayMs }) => {
        if (name === before) dues.push(delayMs);
      });
      const { id } = await hf.enqueue(job, null);
      await worker.idle();
      if (before !== "nothing") await clock.advance("1m");
      await worker.idle();
      expect(dues, before).toEqual([0, 1_000]);
      await clock.advance("1s");
      await worker.idle();
      expect(dues, before).toEqual([0, 1_000, 1_000]);
      await clock.advance("1s");
      await worker.idle();
      expect(await hf.jobs.get(id)).toMatchObject({ state: "done" });
      await worker.stop();
    }
  });

  test("[O12] a job that was released at shutdown keeps its position at its handler's first Release", async () => {
    const { hf, clock } = await client(target);
    const runs: number[] = [];
    const job = defineJob({
      name: "ordered",
      run: (n: number, { signal }) => {
        runs.push(n);
        if (runs.length === 1)
          return new Promise<never>((_resolve, reject) => {
            signal.addEventListener("abort", () => reject(new Error("stopped")));
          });
        if (runs.length === 2) throw new Release();
        return null;
      },
    });
    for (let n = 1; n <= 3; n++) {
      await hf.enqueue(job, n);
      await clock.advance(10);
    }
    const first = hf.work([job], { queues: { default: 1 }, ...patient });
    await first.ready;
    while (runs.length === 0) await clock.advance(10);
    await first.stop({ timeout: 0 });
    const worker = hf.work([job], { queues: { default: 1 }, ...patient });
    const delays: number[] = [];
    hf.on("job.released", ({ delayMs }) => delays.push(delayMs));
    await worker.idle();
    expect(delays).toEqual([0]);
    expect(runs).toHaveLength(5);
    await worker.stop();
  });

  test("[O12] a claim that sees a released job before its worker hears that it is written takes that job", async () => {
    const world = await newWorld(target);
    const { hf, tap, work } = await world.client();
    await hf.queues.set("default", { concurrency: 1 });
    const order: number[] = [];
    const job = defineJob({
      name: "ordered",
      run: (n: number) => {
        order.push(n);
        if (order.filter((one) => one === n).length === 1) throw new Release();
      },
    });
    await hf.enqueueMany([1, 2, 3, 4].map((input) => ({ job, input })));
    // The claim for the slot that is free reaches the database when the release is written, and is answered before it.
    let written = Promise.resolve();
    let claims = 0;
    tap.around = async (verb, call) => {
      if (verb === "claims.claim") {
        await written;
        const answer = await call();
        claims += 1;
        return answer;
      }
      if (verb !== "settles.settle") return call();
      const { promise, resolve } = Promise.withResolvers<void>();
      written = promise;
      tap.deaf = true;
      const answer = await call();
      tap.deaf = false;
      resolve();
      const before = claims;
      for (let turn = 0; turn < 200 && claims === before; turn++) await nextTurn();
      return answer;
    };
    await work([job], { queues: { default: 1 } });
    await world.until("all to have run", () => order.length === 8, "30s");
    expect(order).toEqual([1, 1, 2, 2, 3, 3, 4, 4]);
  });

  test("[O13] an instant in the past is now", async () => {
    const { hf, clock } = await client(target);
    const first = await hf.enqueue(ordered, 1);
    await clock.advance(5);
    const past = await hf.enqueue(ordered, 2, { at: new Date(0) });
    const [many] = await hf.enqueueMany([{ job: ordered, input: 3, at: new Date(1_000) }]);
    const keyed = await hf.enqueue(ordered, 4, { key: "k", at: new Date(1_000) });
    const now = new Date(clock.now());
    const runAt = async (id: string) => (await hf.jobs.get(id))?.runAt;
    expect([await runAt(past.id), await runAt(many.id), await runAt(keyed.id)]).toEqual([now, now, now]);
    expect((await hf.lease({ limit: 4 })).map(({ input }) => input)[0]).toBe(1);
    expect(first.status).toBe("enqueued");
  });

  test("[O13] raw SQL with an instant in the past is now", async () => {
    const { hf, fresh } = await client(target);
    const before = Date.now() - 60_000;
    const view = fresh.table("enqueue");
    await fresh.query(`insert into ${view} (name, input, run_at) values ('ordered', '1', 1000)`);
    const [job] = (await hf.jobs.list({ name: "ordered" })).jobs;
    expect(job!.runAt!.getTime()).toBeGreaterThan(before);
  });
});
