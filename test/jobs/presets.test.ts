// The presets: one table for each of the four systems, with the numbers that our documents state.
import { expect, test } from "vitest";
import { backoffMs } from "../../src/jobs/backoff.ts";
import { durationMs } from "../../src/values/duration.ts";
import { defineJob, defineMachine, finish } from "../../src/index.ts";
import { type Preset, presets } from "../../src/jobs/presets.ts";

const delays = (preset: Preset, attempts: readonly number[]): number[] =>
  attempts.map((n) => backoffMs(preset.job.retry.backoff, n, () => 0.5) / 1_000);
const ms = (value: number | string): number => durationMs(value, "preset");

test("crawler: 60 s · 2^(n−1) up to 3,600 s ± 20 %, timeout 600 s, breaker 10, a crash is an attempt [M2]", () => {
  const { job, queue, breaker } = presets.crawler;
  expect(delays(presets.crawler, [1, 2, 3, 4, 5, 6, 7])).toEqual([60, 120, 240, 480, 960, 1920, 3600]);
  expect(job.retry.backoff).toMatchObject({ jitter: 0.2 });
  expect(ms(job.timeout)).toBe(600_000);
  expect(job.countCrashes).toBe("attempt");
  expect(breaker).toEqual({ after: 10 });
  expect([ms(queue.retention.done), ms(queue.retention.dead)]).toEqual([7 * 86_400_000, 30 * 86_400_000]);
});

test("cja: 2^(n+1) seconds after n earlier errors, 20 retries, a crash is no attempt [M2]", () => {
  expect(delays(presets.cja, [1, 2, 3, 4])).toEqual([2, 4, 8, 16]);
  expect(presets.cja.job.retry.attempts).toBe(21);
  expect(presets.cja.job.countCrashes).toBe("crash");
});

test("pgTask: lease 60 s, heartbeat 20 s, no retries unless asked for, then after 1 s [M2]", () => {
  const { job, worker } = presets.pgTask;
  expect([ms(worker.lease), ms(worker.heartbeat)]).toEqual([60_000, 20_000]);
  expect(job.retry.attempts).toBe(1);
  expect(delays(presets.pgTask, [1, 2, 9])).toEqual([1, 1, 1]);
});

test("forge: 5 attempts, queue backoff 60 s to 1,800 s, poll 500 ms, done 7 d, dead 30 d, a crash is an attempt [M2]", () => {
  const { job, worker, queue } = presets.forge;
  expect(job.retry.attempts).toBe(5);
  expect(delays(presets.forge, [1, 2, 5, 6, 7])).toEqual([60, 120, 960, 1800, 1800]);
  expect([ms(queue.backoff.base), ms(queue.backoff.max)]).toEqual([60_000, 1_800_000]);
  expect(ms(worker.poll)).toBe(500);
  expect([ms(queue.retention.done), ms(queue.retention.dead)]).toEqual([7 * 86_400_000, 30 * 86_400_000]);
  expect(job.countCrashes).toBe("attempt");
});

test("[O13] cja: lease 2 h, with a heartbeat far below it", () => {
  const { worker } = presets.cja;
  expect(ms(worker.lease)).toBe(7_200_000);
  expect(ms(worker.heartbeat)).toBeLessThanOrEqual(60_000);
});

test("[O13] every part of every preset is taken by the function that it is for", () => {
  for (const { job, machine, breaker } of Object.values(presets)) {
    expect(defineJob({ name: "job", ...job, breaker })).toMatchObject({
      attempts: job.retry.attempts,
      backoff: job.retry.backoff,
      timeoutMs: ms(job.timeout),
      countCrashes: job.countCrashes,
      breaker: { after: 10, key: null },
    });
    const steps = { only: { run: async (_: null) => finish() } };
    expect(defineMachine({ name: "machine", start: "only", steps, ...machine, breaker })).toMatchObject({
      attempts: machine.retry.attempts,
      timeoutMs: ms(machine.timeout),
      countCrashes: machine.countCrashes,
      breaker: { after: 10, key: null },
    });
  }
});

test("every preset has a heartbeat shorter than its lease and cannot be changed by accident [C3]", () => {
  for (const preset of Object.values(presets)) {
    expect(ms(preset.worker.heartbeat)).toBeLessThan(ms(preset.worker.lease));
    expect(Object.isFrozen(preset.job.retry.backoff) && Object.isFrozen(preset.queue.retention)).toBe(true);
  }
});
