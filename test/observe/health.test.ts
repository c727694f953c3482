// Health, readiness and the latency that autoscalers ask for; structured logs.
import { expect, test } from "vitest";
import { defineJob, health, latency, type Logger, readiness } from "../../src/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { newWorld } from "../support/world.ts";
import { connect, fresh } from "../support/test-clients.ts";

const hello = defineJob({ name: "hello", run: () => null });

onEveryStore((target) => {
  test("[N25] latency is the age of the oldest ready job; a paused queue and a job due later are none", async () => {
    const world = await newWorld(target);
    const { hf } = await world.client();
    await hf.enqueue(hello, null, { queue: "slow" });
    await hf.enqueue(hello, null, { queue: "later", delay: "1h" });
    await hf.enqueue(hello, null, { queue: "shut" });
    await hf.queues.pause("shut");
    await world.advance("40s");
    await hf.enqueue(hello, null, { queue: "fresh" });
    await world.advance("2s");
    const all = await latency(hf);
    expect(all.lagMs).toBeGreaterThanOrEqual(42_000);
    expect(all.lagMs).toBeLessThan(50_000);
    expect(all).toMatchObject({ ready: 2, running: 0 });
    const one = await latency(hf, { queues: ["fresh"] });
    expect(one.lagMs).toBeLessThan(10_000);
    expect((await latency(hf, { queues: ["later", "shut"] })).lagMs).toBe(0);
  });

  test("health tells a database that answers, one that does not, and one that is too slow", async () => {
    const { hf } = await fresh(target);
    expect(await health(hf)).toMatchObject({ ok: true, database: { ok: true, error: null } });
    hf.databaseNow = () => new Promise(() => {});
    expect(await health(hf, { timeout: 20 })).toMatchObject({
      ok: false,
      database: { error: "no answer within 20 ms" },
    });
    hf.databaseNow = () => Promise.reject(new Error("connect to 10.0.0.1 refused"));
    expect((await health(hf)).ok).toBe(false);
  });

  test("a process is not ready while its worker stops", async () => {
    const { hf } = await fresh(target);
    const release = Promise.withResolvers<void>();
    const started = Promise.withResolvers<void>();
    const slow = defineJob({
      name: "slow",
      run: () => {
        started.resolve();
        return release.promise;
      },
    });
    const worker = hf.work([slow], { queues: ["default"] });
    await worker.ready;
    expect(await readiness(hf)).toMatchObject({ ok: true, workers: { running: 1, stopping: 0 } });
    await hf.enqueue(slow, null);
    await started.promise;
    const stopped = worker.stop();
    expect(await readiness(hf)).toMatchObject({ ok: false, workers: { running: 0, stopping: 1 } });
    expect((await health(hf)).ok).toBe(true);
    release.resolve();
    await stopped;
    expect((await readiness(hf)).ok).toBe(true);
  });

  test("[J1] logs tell of claims, runs and ticks with job, kind, attempt, worker and context, each at its level", async () => {
    const lines: { level: string; message: string; details: Record<string, unknown> }[] = [];
    const level =
      (name: string) =>
      (details: Record<string, unknown>, message: string): void =>
        void lines.push({ level: name, message, details });
    const logger: Logger = {
      trace: level("trace"),
      debug: level("debug"),
      info: level("info"),
      warn: level("warn"),
      error: level("error"),
    };
    const { store } = await fresh(target);
    const hf = await connect(store, { logger });
    const flaky = defineJob({
      name: "flaky",
      retry: { attempts: 2, backoff: () => 0 },
      run: () => {
        throw new Error("broken");
      },
    });
    const worker = hf.work([hello, flaky], { queues: ["default"] });
    await worker.ready;
    const good = await hf.enqueue(hello, null, { context: "nightly" });
    const bad = await hf.enqueue(flaky, null, { context: "imported" });
    await expect(hf.result(bad)).rejects.toMatchObject({ code: "JOB_DEAD" });
    await worker.idle();
    const of = (name: string, id?: string) =>
      lines.filter((line) => line.level === name && (id === undefined || line.details["id"] === id));
    expect(of("trace", good.id).map(({ message }) => message)).toEqual(["job was claimed", "job is done"]);
    expect(of("trace").some(({ message }) => message.startsWith("tick:"))).toBe(true);
    const about = { name: "flaky", queue: "default", workerId: worker.id, context: "imported" };
    expect(of("warn", bad.id)).toMatchObject([{ details: { ...about, attempt: 1, error: "broken" } }]);
    expect(of("error", bad.id)).toMatchObject([{ details: { ...about, attempt: 2, error: "broken" } }]);
  });
});
