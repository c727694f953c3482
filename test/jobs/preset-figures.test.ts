// Promise M2: each preset reproduces its system's numbers, as the database and a worker then show them.
import { expect, test } from "vitest";
import { defineJob, defineMachine, finish, next, type Preset, presets } from "holdfast";
import { backoffMs } from "../../src/jobs/backoff.ts";
import { newWorld } from "../support/world.ts";
import { onEveryStore, type StoreTarget } from "../support/stores.ts";
import { client } from "../support/client.ts";

interface Numbers {
  attempts: number;
  timeoutSeconds: number;
  /** After failures 1, 2, … in seconds, without jitter. */
  delays: number[];
  /** What a crash uses up, and what is left of the attempt. */
  crash: { attempt: number; crashes: number };
  leaseSeconds: number;
  retentionDays: { done: number; dead: number };
  queueBackoffSeconds: { base: number; max: number };
  breakerAfter: { job: number; queue: number };
}

async function numbersOf(target: StoreTarget, preset: Preset, failures: number): Promise<Numbers> {
  const { hf, clock, rows } = await client(target);
  await hf.queues.set("default", { ...preset.queue, breaker: preset.breaker });
  const job = defineJob({ name: "preset", ...preset.job, breaker: preset.breaker, run: () => null });
  const { id } = await hf.enqueue(job, null);
  const [row] = await rows("job");
  const [settings] = (await hf.queues.list()).map((queue) => queue.settings);
  const delays: number[] = [];
  for (let n = 0; n < failures; n++) {
    await (await hf.lease())[0]!.fail(new Error("no"));
    const { runAt, state } = (await hf.jobs.get(id))!;
    if (state !== "scheduled") break;
    delays.push((runAt!.getTime() - clock.now()) / 1_000);
    await clock.advance(runAt!.getTime() - clock.now());
  }
  await hf.jobs.delete(id);
  const crashing = await hf.enqueue(job, null, { attempts: 9 });
  await hf.lease({ for: "1s" });
  await clock.advance("1s");
  await hf.lease({ queues: ["none"] });
  const { attempt, crashes } = (await hf.jobs.get(crashing.id))!;
  const worker = hf.work([job], { queues: ["idle"], ...preset.worker });
  await worker.ready;
  const [session] = await rows("session", "kind = 'worker'");
  const backoff = settings!.backoff as { baseMs: number; maxMs: number };
  const retention = settings!.retention!;
  return {
    attempts: Number(row!["max_attempts"]),
    timeoutSeconds: Number(row!["timeout_ms"]) / 1_000,
    delays,
    crash: { attempt, crashes },
    leaseSeconds: Number(session!["lease_ms"]) / 1_000,
    retentionDays: { done: retention.doneMs / 86_400_000, dead: retention.deadMs / 86_400_000 },
    queueBackoffSeconds: { base: backoff.baseMs / 1_000, max: backoff.maxMs / 1_000 },
    breakerAfter: { job: job.breaker!.after, queue: settings!.breaker!.after },
  };
}

const ours: Numbers = {
  attempts: 5,
  timeoutSeconds: 600,
  delays: [60, 120, 240, 480],
  crash: { attempt: 0, crashes: 1 },
  leaseSeconds: 30,
  retentionDays: { done: 7, dead: 30 },
  queueBackoffSeconds: { base: 60, max: 1_800 },
  breakerAfter: { job: 10, queue: 10 },
};

onEveryStore((target) => {
  test("[M2] crawler: 60 s · 2^(n−1) up to 3,600 s, timeout 600 s, a crash is an attempt, breaker after 10", async () => {
    const preset = {
      ...presets.crawler,
      job: { ...presets.crawler.job, retry: { ...presets.crawler.job.retry, attempts: 9 } },
    };
    expect(await numbersOf(target, preset, 8)).toEqual({
      ...ours,
      attempts: 9,
      delays: [60, 120, 240, 480, 960, 1920, 3600, 3600],
      crash: { attempt: 1, crashes: 1 },
      queueBackoffSeconds: { base: 60, max: 3_600 },
    });
    expect(presets.crawler.job.retry.backoff).toMatchObject({ jitter: 0.2 });
  });

  test("[M2] cja: 2^(n+1) seconds after n earlier errors, 20 retries, a crash is no attempt", async () => {
    expect(await numbersOf(target, presets.cja, 6)).toEqual({
      ...ours,
      attempts: 21,
      delays: [2, 4, 8, 16, 32, 64],
      leaseSeconds: 7_200,
    });
  });

  test("[M2] pgTask: lease 60 s, heartbeat 20 s, no retry unless asked for, then after 1 s", async () => {
    expect(await numbersOf(target, presets.pgTask, 3)).toEqual({
      ...ours,
      attempts: 1,
      delays: [],
      leaseSeconds: 60,
    });
    const asked = {
      ...presets.pgTask,
      job: { ...presets.pgTask.job, retry: { ...presets.pgTask.job.retry, attempts: 6 } },
    };
    expect((await numbersOf(target, asked, 9)).delays).toEqual([1, 1, 1, 1, 1]);
    expect(presets.pgTask.worker.heartbeat).toBe("20s");
  });

  test("[O13] machines take every preset: each step is tried by it, and the breaker opens after ten failures", async () => {
    for (const [name, { machine, breaker }] of Object.entries(presets)) {
      const world = await newWorld(target);
      const { hf, work } = await world.client();
      const at: number[] = [];
      const definition = defineMachine({
        name,
        start: "go",
        steps: {
          go: { run: async (_: number) => next("fail", null) },
          fail: {
            run: async (_: null) => {
              at.push(world.clock.now());
              if (at.length > 0) throw new Error("no");
              return finish();
            },
          },
        },
        ...machine,
        retry: { ...machine.retry, attempts: Math.min(machine.retry.attempts, 4) },
        breaker,
      });
      await work([definition], { queues: { default: 1 } });
      const { id } = await hf.enqueue(definition, 1);
      const dead = async (): Promise<boolean> => (await hf.jobs.get(id))?.state === "dead";
      await world.until(`${name} to be dead`, dead, "2h", "1s");
      expect(at, name).toHaveLength(Math.min(machine.retry.attempts, 4));
      for (const [i, when] of at.slice(1).entries()) {
        const late = when - at[i]! - backoffMs(machine.retry.backoff, i + 1, () => 0.5);
        expect([name, late >= 0 && late <= 2_000]).toEqual([name, true]);
      }
      await hf.enqueueMany(Array.from({ length: 10 }, (_, n) => ({ job: definition, input: n })));
      const opened = async (): Promise<boolean> => (await hf.breakers.list())[0]?.state === "open";
      expect(await opened()).toBe(false);
      await world.until(`${name}'s breaker to open`, opened, "1m");
      const [state] = await hf.breakers.list();
      expect(state!.key).toBe(`name:${name}`);
      // Those that had started by the tenth failure come to their end.
      expect(state!.failures).toBeGreaterThanOrEqual(10);
      await world.closeClients();
    }
  });

  test("[M2] forge: 5 attempts, 60 s to 1,800 s, poll 500 ms, done 7 d, dead 30 d, a crash is an attempt", async () => {
    expect(await numbersOf(target, presets.forge, 9)).toEqual({ ...ours, crash: { attempt: 1, crashes: 1 } });
    const more = {
      ...presets.forge,
      job: { ...presets.forge.job, retry: { ...presets.forge.job.retry, attempts: 9 } },
    };
    expect((await numbersOf(target, more, 7)).delays).toEqual([60, 120, 240, 480, 960, 1800, 1800]);
    expect(presets.forge.worker.poll).toBe("500ms");
  });
});
