// Budgets: tokens for the whole cluster, one row each.
import { expect, test } from "vitest";
import { type Clock, defineJob } from "../../src/index.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { onEveryStore } from "../support/stores.ts";
import { newWorld } from "../support/world.ts";
import { client, patient } from "../support/client.ts";

onEveryStore((target) => {
  test("[H1] fifty racers on ten tokens, from two clients: ten are granted", async () => {
    const { hf, another } = await client(target);
    const second = await another();
    await hf.budgets.set("slack", { limit: 10, per: "1h" });
    const takes = Array.from({ length: 50 }, (_, i) => (i % 2 === 0 ? hf : second.hf).budgets.take("slack"));
    const answers = await Promise.all(takes);
    expect(answers.filter(({ granted }) => granted)).toHaveLength(10);
    expect(answers.filter(({ granted }) => !granted).every(({ retryAfter }) => retryAfter === 60_000)).toBe(
      true,
    );
    expect(await hf.budgets.list()).toEqual([
      { name: "slack", limit: 10, per: 3_600_000, burst: 10, tokens: 0, tuned: true },
    ]);
  });

  test("[H1] tokens come back with time, in fractions, up to the burst; a clock that goes back brings none", async () => {
    const { hf, clock } = await client(target);
    await hf.budgets.set("api", { limit: 6, per: "1m", burst: 3 });
    expect(await hf.budgets.take("api", 2.5)).toEqual({ granted: true, retryAfter: 0 });
    expect(await hf.budgets.take("api", 1)).toEqual({ granted: false, retryAfter: 20_000 });
    await clock.advance("5s");
    expect((await hf.budgets.take("api", 1)).granted).toBe(true);
    clock.set(clock.now() - 30_000);
    expect((await hf.budgets.take("api", 0.1)).granted).toBe(false);
    clock.set(clock.now() + 30_000);
    expect((await hf.budgets.take("api", 0.1)).granted).toBe(false);
    await clock.advance("1h");
    expect((await hf.budgets.list())[0]?.tokens).toBe(3);
  });

  test("[H1] an unknown budget throttles, and warns", async () => {
    const { hf } = await client(target);
    const warnings: string[] = [];
    hf.on("warning", ({ message }) => warnings.push(message));
    expect(await hf.budgets.take("nope")).toEqual({ granted: false, retryAfter: 60_000 });
    expect(warnings.join()).toContain('no budget "nope"');
    expect(await hf.budgets.drain("nope")).toBe(false);
    expect(await hf.budgets.remove("nope")).toBe(false);
    expect(await hf.budgets.reset("nope")).toBe(false);
  });

  test("[H1] drained, it grants nothing until it has grown again", async () => {
    const { hf, clock } = await client(target);
    await hf.budgets.set("api", { limit: 60, per: "1m" });
    expect(await hf.budgets.drain("api")).toBe(true);
    expect(await hf.budgets.take("api")).toEqual({ granted: false, retryAfter: 2_000 });
    await clock.advance("2s");
    expect((await hf.budgets.take("api", 2)).granted).toBe(true);
  });

  test("[H1] what was tuned by hand survives restarts and the code's own numbers, until reset", async () => {
    const { hf, another } = await client(target);
    const code = { limit: 50, per: "1m", default: true } as const;
    await hf.budgets.set("slack", code);
    await hf.budgets.set("slack", { ...code, limit: 60 });
    expect(await hf.budgets.list()).toMatchObject([{ limit: 60, tuned: false }]);
    await hf.budgets.set("slack", { limit: 5, per: "1m", burst: 2 });
    const restarted = (await another()).hf;
    await restarted.budgets.set("slack", { ...code, limit: 70 });
    expect(await restarted.budgets.list()).toMatchObject([{ limit: 5, burst: 2, tuned: true }]);
    expect(await restarted.budgets.reset("slack")).toBe(true);
    expect(await hf.budgets.list()).toMatchObject([{ limit: 70, burst: 70, tuned: false }]);
    expect(await hf.budgets.remove("slack")).toBe(true);
    expect(await hf.budgets.list()).toEqual([]);
  });

  test("whatever is wrong is refused before anything is written", async () => {
    const { hf } = await client(target);
    for (const limit of [0, -1, Number.NaN, Infinity, 1e13, "5", null, undefined])
      await expect(hf.budgets.set("b", { limit, per: "1m" } as never)).rejects.toMatchObject({
        code: "BAD_OPTION",
      });
    for (const [code, options] of [
      ["BAD_OPTION", { limit: 1, per: "1m", burst: 0 }],
      ["BAD_OPTION", { limit: 1, per: "1m", default: 1 }],
      ["BAD_DURATION", { limit: 1, per: 0 }],
      ["BAD_DURATION", { limit: 1 }],
      ["UNKNOWN_OPTION", { limit: 1, per: "1m", brust: 1 }],
    ] as const)
      await expect(hf.budgets.set("b", options as never)).rejects.toMatchObject({ code });
    await expect(hf.budgets.set("a b", { limit: 1, per: "1m" })).rejects.toMatchObject({ code: "BAD_NAME" });
    expect(await hf.budgets.list()).toEqual([]);
    await hf.budgets.set("b", { limit: 5, per: "1m" });
    for (const n of [0, -1, Number.NaN, Infinity, 6, "1"])
      await expect(hf.budgets.take("b", n as number), String(n)).rejects.toMatchObject({
        code: "BAD_OPTION",
      });
    expect((await hf.budgets.list())[0]?.tokens).toBe(5);
  });

  test("a busy large budget is taken in chunks: few visits to its row, and never more than it has", async () => {
    const { hf, store, clock, another } = await client(target);
    const second = await another();
    await hf.budgets.set("big", { limit: 10_000, per: "1h" });
    const visits = (): number =>
      (store.counters.byName.get("lockBudget") ?? 0) + (second.store.counters.byName.get("lockBudget") ?? 0);
    const before = visits();
    let granted = 0;
    for (let round = 0; round < 600; round++) {
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? hf : second.hf).budgets.take("big")),
      );
      granted += answers.filter((answer) => answer.granted).length;
      await clock.advance(1);
    }
    // 12,000 asked; what a chunk held when the end came is given back, and then taken.
    await clock.advance("600ms");
    await expect.poll(async () => (await hf.budgets.list())[0]?.tokens, { timeout: 5_000 }).toBeDefined();
    for (let more = 0; more < 600; more++) granted += (await hf.budgets.take("big")).granted ? 1 : 0;
    expect(granted).toBeLessThanOrEqual(10_000 + 4);
    expect(granted).toBeGreaterThanOrEqual(9_900);
    expect(visits() - before).toBeLessThan(4_000);
  });

  test("a chunk is not granted from after its end, also when the process was too busy to give it back", async () => {
    const fake = new FakeClock();
    // A blocked event loop: the timer that gives a chunk back never comes.
    const clock: Clock = {
      system: false,
      now: fake.now,
      monotonic: fake.monotonic,
      after: (ms, fn) => fake.after(ms === 500 ? 1e9 : ms, fn),
    };
    const { hf, store } = await client(target, { clock });
    await hf.budgets.set("big", { limit: 10_000, per: "1h" });
    for (let i = 0; i < 50; i++) await hf.budgets.take("big");
    const visits = (): number => store.counters.byName.get("lockBudget") ?? 0;
    const before = visits();
    await hf.budgets.take("big");
    expect(visits(), "a chunk is held").toBe(before);
    await fake.advance("1s");
    await hf.budgets.take("big");
    expect(visits()).toBe(before + 1);
  });

  test("what a closed client held goes back", async () => {
    const { hf, another } = await client(target);
    const second = await another();
    await hf.budgets.set("big", { limit: 10_000, per: "1h" });
    for (let i = 0; i < 50; i++) await second.hf.budgets.take("big");
    const held = 10_000 - 50 - ((await hf.budgets.list())[0]?.tokens ?? 0);
    expect(held).toBeGreaterThan(0);
    await second.hf.close();
    expect((await hf.budgets.list())[0]?.tokens).toBe(9_950);
  });

  test("[E4][H1] ctx.budget gives the attempt back when the budget is empty, and the job runs when it has grown", async () => {
    const world = await newWorld(target);
    const it = await world.client();
    const runs: number[] = [];
    const job = defineJob({
      name: "call",
      run: async (input: { n: number }, ctx) => {
        await ctx.budget("api");
        runs.push(input.n);
        return ctx.attempt;
      },
    });
    await it.hf.budgets.set("api", { limit: 2, per: "1m" });
    await it.work([job], { queues: { default: 5 }, ...patient });
    await it.hf.enqueueMany([1, 2, 3].map((n) => ({ job, input: { n } })));
    await world.advance("2s");
    expect(runs).toHaveLength(2);
    const [waiting] = (await it.hf.jobs.list({ state: "scheduled" })).jobs;
    expect(waiting).toMatchObject({ attempt: 0, errors: [] });
    await world.advance("65s");
    expect(runs).toHaveLength(3);
    expect(await it.hf.jobs.get(waiting!.id)).toMatchObject({ state: "done", output: 1 });
  });
});
