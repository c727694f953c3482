// Time for tests: a month passes in as many round trips as work became due, and costs nobody its lease (O20).
import { expect, onTestFinished, test } from "vitest";
import { type Clock, systemClock } from "../../src/clock.ts";
import { defineJob, defineSchedule, fixed, open } from "../../src/index.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { onEveryStore, type StoreTarget } from "../support/stores.ts";
import { client } from "../support/client.ts";
import { operatorOf } from "../../src/operate/operator.ts";

const dayMs = 86_400_000;

/** A client on a fake clock, as users open one; with what it warned of, and how many statements it has sent. */
async function opened(target: StoreTarget, clock: Clock = new FakeClock()) {
  const fresh = await target.migrated();
  const warnings: string[] = [];
  const tell = (_details: unknown, message: string): void => void warnings.push(message);
  const logger = { debug: () => {}, info: () => {}, warn: tell, error: tell };
  const hf = await open(fresh.url, { ...fresh.options, clock, logger });
  onTestFinished(() => hf.close());
  const { counters } = operatorOf(hf).store;
  const sent = (name?: string): number =>
    name === undefined ? counters.statements : (counters.byName.get(name) ?? 0);
  return { hf, fresh, warnings, sent };
}

onEveryStore((target) => {
  test("[O20] 30 idle days cost a worker a hundred statements, and not its session", async () => {
    const clock = new FakeClock();
    const { hf, warnings, sent } = await opened(target, clock);
    const worker = hf.work([defineJob({ name: "idle", run: () => {} })], { queues: ["default"] });
    await worker.ready;
    await worker.idle();
    const [before] = await hf.workers.list();
    const all = sent();
    const looks = sent("checkDue");
    const renewals = sent("renew");
    await clock.advance("30d");
    expect(sent() - all).toBeLessThan(150); // half of it adds up a day's minutes, hour by hour
    expect(sent("checkDue") - looks).toBeLessThan(5);
    expect(sent("renew") - renewals).toBeLessThan(3);
    const [after, ...others] = await hf.workers.list();
    expect(others).toEqual([]);
    expect(after).toMatchObject({ id: before!.id, session: before!.session });
    expect(warnings).toEqual([]);
  });

  test("[O20] in 30 days everything that comes due runs once, at its instant", async () => {
    const clock = new FakeClock();
    const { hf, warnings, sent } = await opened(target, clock);
    const start = clock.now();
    const ran: Record<string, number[]> = { daily: [], sleeper: [], delayed: [], flaky: [] };
    const note = (name: string): void => void ran[name]!.push((clock.now() - start) / dayMs);
    const daily = defineJob({ name: "daily", run: (_input: null) => note("daily") });
    const sleeper = defineJob({
      name: "sleeper",
      run: async (_input: null, ctx) => {
        for (let nap = 1; nap <= 9; nap++) {
          await ctx.sleep(`nap ${nap}`, "3d");
          await ctx.step(`note ${nap}`, () => note("sleeper"));
        }
      },
    });
    const delayed = defineJob({ name: "delayed", run: () => note("delayed") });
    const flaky = defineJob({
      name: "flaky",
      retry: { attempts: 4, backoff: fixed("2d") },
      run: (_input: null, ctx) => {
        note("flaky");
        if (ctx.attempt < 4) throw new Error("not yet");
      },
    });
    const everyDay = defineSchedule({ name: "every-day", cron: "0 3 * * *", job: daily, input: null });
    const worker = hf.work([daily, sleeper, delayed, flaky], { queues: ["default"], schedules: [everyDay] });
    await worker.ready;
    const { id } = await hf.enqueue(sleeper, null);
    await hf.enqueue(delayed, {}, { delay: "17d" });
    await hf.enqueue(flaky, null);
    await worker.idle();
    const all = sent();

    await clock.advance("30d");
    const whole = (name: string): number[] => ran[name]!.map((day) => Math.floor(day * 1_000) / 1_000);
    expect(whole("daily")).toEqual(Array.from({ length: 30 }, (_, day) => day + 0.125));
    expect(whole("sleeper")).toEqual([3, 6, 9, 12, 15, 18, 21, 24, 27]);
    expect(whole("delayed")).toEqual([17]);
    expect(ran["flaky"]!.map((day) => Math.round(day))).toEqual([0, 2, 4, 6]);
    expect((await hf.jobs.get(id))?.state).toBe("done");
    expect(await hf.stats()).toMatchObject({ totals: { running: 0, ready: 0, dead: 0 } });
    expect(warnings.filter((line) => !line.startsWith("attempt failed; retry"))).toEqual([]);
    // 30 runs of a schedule, 19 of a workflow, 5 others, each with its claims, looks, renewals and series.
    expect(sent() - all).toBeLessThan(54 * 30);
  });

  test("[O20] handlers that run all the time keep their jobs, and a pass its right", async () => {
    const clock = new FakeClock();
    const { hf, warnings } = await opened(target, clock);
    const held = Promise.withResolvers<string>();
    let runs = 0;
    const job = defineJob({
      name: "held",
      timeout: "60d",
      run: (_input: null) => {
        runs += 1;
        return held.promise;
      },
    });
    const other = Promise.withResolvers<void>();
    const worker = hf.work([job], { queues: { default: 1 } });
    await worker.ready;
    const { id } = await hf.enqueue(job, null);
    const { id: behind } = await hf.enqueue(job, null);
    const pass = hf.state.pass("crawl", () => other.promise);
    await clock.advance("10d");
    await clock.advance("20d");
    expect(runs).toBe(1);
    expect(await hf.jobs.get(id)).toMatchObject({ state: "running", attempt: 1, crashes: 0 });
    expect((await hf.jobs.get(behind))?.state).toBe("ready");
    held.resolve("at last");
    other.resolve();
    await pass;
    await worker.idle();
    expect(await hf.jobs.get(id)).toMatchObject({ state: "done", attempt: 1, crashes: 0, output: "at last" });
    expect(runs).toBe(2);
    expect(warnings).toEqual([]);
  });

  test("[O20] when advance resolves, what came due has ended, unless it awaits something of its own", async () => {
    const clock = new FakeClock();
    const { hf } = await opened(target, clock);
    const child = defineJob({ name: "child", run: () => "grown" });
    const parent = defineJob({
      name: "parent",
      run: async (_input: null, ctx) => {
        await ctx.step("think", () => new Promise((resolve) => setImmediate(resolve, null)));
        return ctx.call(child, {});
      },
    });
    const door = Promise.withResolvers<void>();
    const waiting = defineJob({ name: "waiting", run: (_input: null) => door.promise });
    const worker = hf.work([parent, child, waiting], { queues: ["default"] });
    await worker.ready;
    const { id } = await hf.enqueue(parent, null, { delay: "1h" });
    const { id: own } = await hf.enqueue(waiting, null, { delay: "1h" });
    await clock.advance("1h");
    expect(await hf.jobs.get(id)).toMatchObject({ state: "done", output: "grown" });
    expect((await hf.jobs.get(own))?.state).toBe("running");
    door.resolve();
    await worker.idle();
    expect((await hf.jobs.get(own))?.state).toBe("done");
  });

  test("[O20] a lease whose renewals fail is lost at its time, and not at the end of the jump", async () => {
    const { hf, clock, faults } = await client(target);
    const lostAt: number[] = [];
    hf.on("lease.lost", () => lostAt.push(clock.monotonic()));
    const job = defineJob({ name: "held", timeout: "2d", run: () => new Promise(() => {}) });
    const worker = hf.work([job], { queues: ["default"] });
    await worker.ready;
    await hf.enqueue(job, {});
    await clock.advance(1);
    faults["sessions.renew"] = () => Promise.reject(new Error("cut by the test"));
    await clock.advance("5m");
    expect(lostAt[0]).toBeGreaterThan(20_000);
    expect(lostAt[0]).toBeLessThan(30_000);
    void worker.stop({ timeout: 0 });
  });

  test("[O20] a clock that has only the functions of old works as before", async () => {
    const now = (): number => systemClock.now();
    const monotonic = (): number => systemClock.monotonic();
    const after: Clock["after"] = (ms, fn) => {
      const timer = setTimeout(fn, Math.min(ms, 2 ** 31 - 1)).unref();
      return { cancel: () => clearTimeout(timer) };
    };
    const { hf } = await opened(target, { now, monotonic, after, system: false });
    const job = defineJob({ name: "plain", run: () => "done" });
    const worker = hf.work([job], { queues: ["default"] });
    const { id } = await hf.enqueue(job, {});
    await worker.idle();
    expect(await hf.jobs.get(id)).toMatchObject({ state: "done", output: "done" });
    await worker.stop();
  });
});
