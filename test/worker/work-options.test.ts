// Options of `hf.work` besides queues: an AbortSignal, and attempts and backoff for jobs that do not say (O13).
import { expect, test } from "vitest";
import { defineJob, defineMachine, fixed, next } from "holdfast";
import { onEveryStore } from "../support/stores.ts";
import { heldJob, newWorld } from "../support/world.ts";
import { client, patient } from "../support/client.ts";

const fails = (): never => {
  throw new Error("broken");
};

onEveryStore((target) => {
  test("[O13] a worker stops when its signal aborts, and leaves no listener behind", async () => {
    const world = await newWorld(target);
    const { hf, work, told } = await world.client();
    const { job, runs } = heldJob(world);
    const controller = new AbortController();
    const { signal } = controller;
    let listeners = 0;
    const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners += 1;
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners -= 1;
      remove(...args);
    };
    const stopping = told("worker.stopping");
    const worker = await work([job], { queues: { default: 1 }, signal, shutdown: "5s" });
    const other = await work([job], { queues: { other: 1 }, signal });
    expect(listeners).toBe(2);
    await world.finish(other.stop());
    expect(listeners).toBe(1);
    const { id } = await hf.enqueue(job, { n: 1 });
    await world.until("it to run", () => runs.length === 1);
    controller.abort();
    await world.until("the job's signal to abort", () => runs[0]!.ctx.signal.aborted, "6s");
    runs[0]!.fail(new Error("stopped"));
    await world.finish(worker.stopped);
    expect(stopping.at(-1)).toMatchObject({ reason: "abort signal" });
    expect(await hf.jobs.get(id)).toMatchObject({ state: "ready", attempt: 0 });
    expect(listeners).toBe(0);
    expect(await hf.workers.list()).toEqual([]);
  });

  test("[O13] a worker whose signal has aborted already stops at once and claims nothing", async () => {
    const world = await newWorld(target);
    const { hf, tap } = await world.client();
    const { job, runs } = heldJob(world);
    await hf.enqueue(job, { n: 1 });
    const worker = hf.work([job], { queues: ["default"], signal: AbortSignal.abort() });
    await world.finish(worker.stopped);
    await expect(worker.ready).rejects.toMatchObject({ code: "CLOSED" });
    expect([tap.count("sessions.open"), tap.count("claims.claim"), runs.length]).toEqual([0, 0, 0]);
  });

  test("[O13] attempts: the job's, else the definition's own, else the worker's, else 5", async () => {
    const { hf, clock } = await client(target);
    const says = defineJob({ name: "says", retry: { attempts: 3 }, run: fails });
    const silent = defineJob({ name: "silent", run: fails });
    const seen: number[] = [];
    const tells = defineJob({ name: "tells", run: (_input: null, ctx) => void seen.push(ctx.maxAttempts) });
    const machine = defineMachine({
      name: "machine",
      start: "a",
      steps: { a: { run: async (_data: null) => (fails(), next("a", null)) } },
    });
    const all = [says, silent, tells, machine];
    const ids = [
      (await hf.enqueue("silent", null, { attempts: 1 })).id,
      (await hf.enqueue(says, null)).id,
      (await hf.enqueue("says", null)).id,
      (await hf.enqueue(silent, null)).id,
      (await hf.enqueue(machine, null)).id,
    ];
    await hf.enqueue(tells, null);
    const work = async (options: object): Promise<void> => {
      const worker = hf.work(all, { queues: { default: 1 }, ...patient, ...options });
      for (let i = 0; i < 5; i++) {
        await worker.idle();
        await clock.advance("10s");
      }
      await worker.idle();
      await worker.stop();
    };
    await work({ retry: { attempts: 2, backoff: fixed("10s") } });
    const jobs = await Promise.all(ids.map((id) => hf.jobs.get(id)));
    expect(jobs.map((job) => [job!.state, job!.attempt])).toEqual([
      ["dead", 1],
      ["dead", 3],
      ["dead", 3],
      ["dead", 2],
      ["dead", 1],
    ]);
    const { id } = await hf.enqueue(silent, null);
    await hf.enqueue(tells, null);
    await work({ retry: { backoff: fixed("10s") } });
    expect(await hf.jobs.get(id)).toMatchObject({ state: "dead", attempt: 5 });
    expect(seen).toEqual([2, 5]);
  });

  test("[O13] backoff: the definition's, else the queue's, else the worker's, else the default", async () => {
    const { hf, clock } = await client(target);
    const says = defineJob({ name: "says", retry: { backoff: fixed("3s") }, run: fails });
    const silent = defineJob({ name: "silent", run: fails });
    await hf.queues.set("tuned", { backoff: { base: "20s", max: "20s" } });
    const delayOf = async (job: typeof says | typeof silent, queue: string, options: object) => {
      const { id } = await hf.enqueue(job, null, { queue });
      const worker = hf.work([says, silent], { queues: { default: 1, tuned: 1 }, ...patient, ...options });
      await worker.ready;
      await worker.idle();
      await worker.stop();
      const { runAt } = (await hf.jobs.get(id))!;
      await hf.jobs.cancel(id);
      return (runAt!.getTime() - clock.now()) / 1_000;
    };
    const retry = { backoff: fixed("7s") };
    expect(await delayOf(says, "tuned", { retry })).toBe(3);
    expect(await delayOf(silent, "tuned", { retry })).toBe(20);
    expect(await delayOf(silent, "default", { retry })).toBe(7);
    expect(await delayOf(silent, "default", {})).toBe(60);
  });
});
