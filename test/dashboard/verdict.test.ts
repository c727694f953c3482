// The sentence at the top: what it says first, in which words, and where its pieces lead.
import { describe, expect, test } from "vitest";
import type { Overview, QueueLine } from "../../src/dashboard/api/contract.ts";
import { growthOf, PaceReader, type Pace } from "../../src/dashboard/api/pace.ts";
import { type Standing, verdict } from "../../src/dashboard/api/verdict.ts";
import { defineJob } from "../../src/index.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { api } from "./support.ts";
import { operatorOf } from "../../src/operate/operator.ts";

const minute = 60_000;
const none = { count: 0, more: false };
const some = (count: number) => ({ count, more: false });

function queue(name: string, given: Partial<QueueLine> = {}): QueueLine {
  return {
    name,
    pausedAt: null,
    drainingAt: null,
    coolUntil: null,
    holds: [],
    breakers: [],
    ready: some(5),
    scheduled: none,
    waiting: none,
    running: 0,
    slots: 4,
    workers: 1,
    quiet: 0,
    oldestMs: 400,
    unserved: [],
    concurrency: null,
    rate: null,
    ...given,
  };
}

const unhurried: Pace = { perMinute: null, growth: null };

function said(given: Partial<Standing> = {}): Overview["verdict"] {
  return verdict({
    queues: [queue("mail")],
    workers: { all: 3, quiet: 0 },
    totals: { ready: some(5), running: 2 },
    oldestMs: 400,
    pace: unhurried,
    ...given,
  });
}

const links = ({ parts }: Overview["verdict"]) => parts.filter(({ to }) => to !== null);

describe("words", () => {
  test("healthy: how fast it goes, how long the oldest waits, and who works", () => {
    const found = said({ pace: { perMinute: 1_240, growth: null } });
    expect(found).toMatchObject({
      level: "good",
      text: "Healthy: 1,240 jobs/min, oldest ready job 0.4 s, 3 workers.",
    });
    expect(links(found)).toEqual([
      { text: "1,240 jobs/min", to: "/jobs?state=done" },
      { text: "oldest ready job", to: "/jobs?state=ready" },
      { text: "3 workers", to: "/workers" },
    ]);
    expect(found.parts.map(({ text }) => text).join("")).toBe(found.text);
  });

  test("what was not counted is left out, and nothing is called 0", () => {
    expect(said().text).toBe("Healthy: 2 running, oldest ready job 0.4 s, 3 workers.");
    const idle = { queues: [], totals: { ready: none, running: 0 }, oldestMs: null };
    expect(said(idle).text).toBe("Healthy: nothing waits, 3 workers ready.");
    expect(said({ ...idle, pace: { perMinute: 0, growth: null } }).text).toBe(
      "Healthy: nothing waits, 3 workers ready.",
    );
    expect(said({ ...idle, pace: { perMinute: 1, growth: null }, workers: { all: 2, quiet: 1 } }).text).toBe(
      "Healthy: 1 job/min, nothing waits, 1 worker.",
    );
    expect(said({ ...idle, workers: { all: 0, quiet: 0 } })).toMatchObject({ level: "idle" });
  });

  test("a queue's name leads to it where it is named, not where another word has the same letters", () => {
    const found = said({ queues: [queue("mail", { unserved: ["send-mail"] })] });
    expect(found.text).toBe("No worker serves send-mail in queue mail.");
    expect(found.parts).toEqual([
      { text: "No worker", to: "/workers" },
      { text: " serves send-mail in queue ", to: null },
      { text: "mail", to: "/queues/mail" },
      { text: ".", to: null },
    ]);
  });

  test("paused is paused and held is held, whatever holds there are elsewhere", () => {
    const paused = queue("mail", { pausedAt: 1 });
    const held = queue("media", { holds: ["h"] });
    expect(said({ queues: [paused] }).text).toBe("mail is paused with jobs waiting.");
    expect(said({ queues: [held] }).text).toBe("media is held with jobs waiting.");
    expect(said({ queues: [paused, held] }).text).toBe(
      "mail is paused, media is held, all with jobs waiting.",
    );
    expect(said({ queues: ["a", "b", "c", "d"].map((name) => queue(name, { pausedAt: 1 })) }).text).toBe(
      "a, b, c are paused (and 1 more) with jobs waiting.",
    );
    expect(said({ queues: [queue("mail", { pausedAt: 1, holds: ["h"] })] }).text).toBe(
      "mail is paused and held with jobs waiting.",
    );
  });

  test("a backlog that grows says where, by how much, and who works; once it is worked off it is over", () => {
    const growth = { queue: "mail", more: 1_200, overMs: 5 * minute, from: 100 };
    const given = { oldestMs: 50_000, pace: { perMinute: 10, growth } };
    const found = said({ ...given, totals: { ready: some(1_300), running: 2 } });
    expect(found).toMatchObject({
      level: "warn",
      text: "Backlog growing: mail, 1,200 more ready in 5 min, oldest 50 s, 3 workers.",
    });
    expect(links(found).map(({ to }) => to)).toEqual(["/queues/mail", "/jobs?state=ready", "/workers"]);
    expect(said({ ...given, totals: { ready: some(100), running: 2 } }).level).toBe("good");
  });

  test("one job waits, two wait", () => {
    const workers = { all: 0, quiet: 0 };
    expect(said({ workers, totals: { ready: some(1), running: 0 } }).text).toMatch(/1 ready job waits\.$/);
    expect(said({ workers, totals: { ready: some(2), running: 0 } }).text).toMatch(/2 ready jobs wait\.$/);
  });
});

describe("growth", () => {
  const looks = (all: readonly number[], mail: readonly number[] = all) =>
    all.flatMap((sum, n) => [
      { at: n * minute, source: "queues", name: "ready", sum, minutes: 1 },
      { at: n * minute, source: "queue:mail", name: "ready", sum: mail[n] ?? 0, minutes: 1 },
    ]);
  const now = 5 * minute;

  test("more at every look, and much more in all", () => {
    expect(growthOf(looks([100, 200, 200, 400]), now)).toEqual({
      queue: "mail",
      more: 300,
      overMs: 3 * minute,
      from: 100,
    });
    expect(growthOf(looks([100, 200, 150, 400]), now)).toBeNull();
    expect(growthOf(looks([100, 110, 120, 130]), now)).toBeNull();
    expect(growthOf(looks([1_000, 1_060, 1_070, 1_080]), now)).toBeNull();
    expect(growthOf(looks([100, 200, 400]), now)).toBeNull();
    expect(growthOf(looks([100, 200, 200, 400]), 20 * minute)).toBeNull();
    expect(growthOf(looks([100, 200, 200, 400], [9, 9, 9, 9]), now)?.queue).toBeNull();
    expect(growthOf([], now)).toBeNull();
  });
});

onEveryStore((target) => {
  test("[K1] how fast it goes and that the backlog grows come from the minutes that workers wrote", async () => {
    const { hf, get } = await api(target);
    const job = defineJob({ name: "job", run: async (_: null) => {} });
    const { store } = operatorOf(hf);
    const last = Math.floor(operatorOf(hf).env.clock.now() / minute) * minute - minute;
    const nothing = { failed: 0, dead: 0, cancelled: 0, throttled: 0, released: 0, lost: 0 };
    await store.series.putMetrics([
      { minute: last, queue: "default", name: "job", worker: "w", done: 50, ...nothing, ran: "", waited: "" },
    ]);
    await store.series.putGauges(
      [10, 40, 90, 200].flatMap((value, n) =>
        ["queues", "queue:default"].map((source) => ({
          minute: last - (3 - n) * minute,
          source,
          name: "ready",
          value,
        })),
      ),
    );
    await hf.enqueueMany(Array.from({ length: 20 }, () => ({ job, input: null })));
    // It serves the kind, and can take none of it now: its one slot is taken.
    const busy = Promise.withResolvers<void>();
    const blocked = defineJob({ name: "blocked", priority: 9, run: async (_: null) => busy.promise });
    await hf.enqueue(blocked, null);
    const worker = hf.work([job, blocked], { queues: { default: 1 } });
    await expect.poll(() => worker.running, { timeout: 20_000 }).toBe(1);
    const { verdict: found, perMinute } = (await get<Overview>("/overview")).body;
    expect(perMinute).toBe(10);
    expect(found.text).toMatch(
      /^Backlog growing: default, 190 more ready in 3 min, oldest \d.* s, 1 worker\.$/,
    );
    busy.resolve();
    await worker.stop();
  });
});

test("however often somebody looks, the minutes are read every 15 seconds at most, and again after a failure", async () => {
  const clock = new FakeClock(0);
  let reads = 0;
  let broken = false;
  const reader = new PaceReader(
    {
      queueMinutes: async () => {
        reads += 1;
        if (broken) throw new Error("away");
        return [];
      },
      gaugeSteps: async () => [],
    },
    clock,
  );
  for (let n = 0; n < 5; n += 1) expect(await reader.read()).toEqual({ perMinute: null, growth: null });
  expect(reads).toBe(1);
  await clock.advance("15s");
  broken = true;
  await expect(reader.read()).rejects.toThrow("away");
  broken = false;
  await reader.read();
  expect(reads).toBe(3);
});
