// M2 of the checklist: each preset reproduces its system's numbers, as the database and a worker then show them.
import { expect, test } from "vitest";
import { defineJob, type Preset, presets } from "holdfast";
import { onEveryStore, type StoreTarget } from "../support/stores.ts";
import { client } from "./client.ts";

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
  breakerFailures: number;
}

async function numbersOf(target: StoreTarget, preset: Preset, failures: number): Promise<Numbers> {
  const { hf, clock, rows } = await client(target);
  await hf.queues.set("default", preset.queue);
  const job = defineJob({ name: "preset", ...preset.job, run: () => null });
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
    breakerFailures: preset.breaker.failures,
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
  breakerFailures: 10,
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
