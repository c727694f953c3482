// Bulk actions as operations: at a rate, paused here and gone on with there, left by a process that died, counted, on the trail.
import { describe, expect, test } from "vitest";
import { defineJob, type Holdfast } from "../../src/index.ts";
import type { CappedCount, JobSummary } from "../../src/operate/browse.ts";
import {
  checkRate,
  countOf,
  type Driven,
  Operations,
  pace,
  type Task,
} from "../../src/operate/operations.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { advancing, connect, fresh } from "../support/test-clients.ts";
import { operatorOf } from "../../src/operate/operator.ts";

const plain = defineJob({ name: "plain", run: async (_input: unknown) => {} });

async function scheduled(hf: Holdfast, count: number): Promise<void> {
  await hf.enqueueMany(Array.from({ length: count }, (_, n) => ({ job: plain, input: n, delay: "1h" })));
}

const cancelAll = (rate: Task["rate"] = null): Task => ({
  action: "cancel",
  filter: { states: ["scheduled", "ready"] },
  change: null,
  rate,
});

function driven(of: Awaited<ReturnType<Operations["resume"]>>): Driven {
  if (of === null || !("left" in of)) throw new Error(`It is not driven here: ${JSON.stringify(of)}`);
  return of;
}

describe("the pace", () => {
  test("a second's worth at once, never more than the rate allows in its whole time", () => {
    expect(pace(null)).toEqual({ size: 500, eachMs: 0 });
    expect(pace({ limit: 50, perMs: 1_000 })).toEqual({ size: 50, eachMs: 20 });
    expect(pace({ limit: 50, perMs: 60_000 })).toEqual({ size: 1, eachMs: 1_200 });
    expect(pace({ limit: 5, perMs: 100 })).toEqual({ size: 5, eachMs: 20 });
    expect(pace({ limit: 10_000, perMs: 1_000 })).toEqual({ size: 500, eachMs: 0.1 });
  });

  test("what is no rate is refused with its field", () => {
    expect(checkRate({ limit: 50 })).toEqual({ limit: 50, perMs: 1_000 });
    for (const wrong of [
      null,
      {},
      { limit: 0 },
      { limit: 1.5 },
      { limit: 1, per: 0 },
      { limit: 1, per: "2d" },
    ])
      expect(() => checkRate(wrong), JSON.stringify(wrong)).toThrow(/rate\./);
  });
});

onEveryStore((target) => {
  describe("operations", () => {
    test("[I2] at a rate no more jobs are touched than it allows; without one it takes 500 at a time", async () => {
      const clock = new FakeClock();
      const { hf } = await fresh(target, { clock });
      await scheduled(hf, 120);
      const operations = new Operations(hf);
      const from = clock.monotonic();
      const { left, now } = await operations.start(cancelAll({ limit: 25, perMs: 1_000 }), "ann");
      const seen: [second: number, matched: number][] = [];
      const watch = async (): Promise<void> => {
        for (;;) {
          const { matched, state } = now();
          seen.push([(clock.monotonic() - from) / 1_000, matched]);
          if (state !== "running") return;
          await new Promise((resolve) => setTimeout(resolve, 2));
        }
      };
      const [last] = await advancing(clock, Promise.all([left, watch()]));
      expect(last).toMatchObject({ state: "done", matched: 120, refused: 0, outcomes: { cancelled: 120 } });
      for (const [second, matched] of seen)
        expect(matched, `after ${second} s`).toBeLessThanOrEqual(25 * (Math.floor(second) + 1));
      // 25 at once, then 25 a second: the fifth chunk begins after 4 seconds.
      expect(clock.monotonic() - from).toBeGreaterThanOrEqual(4_000);
      await scheduled(hf, 501);
      expect(await (await operations.start(cancelAll(), "ann")).left).toMatchObject({
        matched: 501,
        total: { count: 501, more: false },
      });
    });

    test("[K1] paused by another process and gone on with there; every process sees the same, and the trail has it all", async () => {
      const clock = new FakeClock();
      const { hf, store } = await fresh(target, { clock });
      const elsewhere = new Operations(await connect(store, { clock }));
      await scheduled(hf, 60);
      const here = new Operations(hf);
      const { id, left } = await here.start(cancelAll({ limit: 20, perMs: 1_000 }), "ann");
      await expect.poll(async () => (await elsewhere.get(id))?.matched, { timeout: 20_000 }).toBe(20);
      expect(await elsewhere.pause(id, "bob")).toMatchObject({ state: "paused", matched: 20, actor: "ann" });
      expect(await advancing(clock, left)).toMatchObject({ state: "paused", matched: 20 });
      expect(here.driven).toBe(0);
      await clock.advance("10m");
      expect(await hf.jobs.count({ state: "cancelled" })).toBe(20);
      // Paused is not standing still: somebody wanted it.
      expect(await here.list()).toMatchObject([{ id, state: "paused", standsStill: false, endedAt: null }]);

      const more = driven(await elsewhere.resume(id, "bob"));
      expect(await here.resume(id, "ann")).toMatchObject({ state: "running" }); // bob's process has it
      expect(await advancing(clock, more.left)).toMatchObject({ state: "done", matched: 60, refused: 0 });
      expect(await hf.jobs.count({ state: "cancelled" })).toBe(60);
      expect(await here.pause(id, "ann")).toMatchObject({ state: "done" });
      expect(await here.resume(id, "ann")).toMatchObject({ state: "done" });
      const trail = await operatorOf(hf).store.insight.audit({ limit: 10, before: null });
      expect(trail.map(({ actor, action, outcome }) => `${actor} ${action} ${outcome}`).reverse()).toEqual([
        "ann jobs.cancel started",
        "bob jobs.cancel paused",
        "bob jobs.cancel resumed",
        "ann jobs.cancel done",
      ]);
      expect(JSON.parse(trail[0]?.details ?? "{}")).toMatchObject({
        operation: id,
        matched: 60,
        cancelled: 60,
      });
    });

    test("[K1] one whose process is gone stands still, says so, and is gone on with from where it was", async () => {
      const clock = new FakeClock();
      const { hf, store } = await fresh(target, { clock });
      await scheduled(hf, 30);
      const dying = new Operations(await connect(store, { clock }));
      const { id, left } = await dying.start(cancelAll({ limit: 10, perMs: 1_000 }), "ann");
      await expect.poll(async () => (await dying.get(id))?.matched, { timeout: 20_000 }).toBe(10);
      dying.close();
      expect(await left).toMatchObject({ state: "running", matched: 10 });
      const here = new Operations(hf);
      expect(await here.get(id)).toMatchObject({ state: "running", standsStill: false });
      await clock.advance("32s");
      expect(await here.get(id)).toMatchObject({ state: "running", standsStill: true, matched: 10 });
      const { left: end } = driven(await here.resume(id, "bob"));
      expect(await advancing(clock, end)).toMatchObject({ state: "done", matched: 30, refused: 0 });
    });

    test("[K1] stopped for good; what could not be done is counted as refused, by its reason", async () => {
      const clock = new FakeClock();
      const { hf } = await fresh(target, { clock });
      await scheduled(hf, 30);
      const operations = new Operations(hf);
      const { id, left } = await operations.start(cancelAll({ limit: 10, perMs: 60_000 }), "ann");
      await expect.poll(async () => (await operations.get(id))?.matched, { timeout: 20_000 }).toBe(1);
      expect(await operations.stop(id, "ann")).toMatchObject({ state: "stopped", endedAt: clock.now() });
      // Here it is heard at once, not when the six seconds to the next job are over.
      expect(await left).toMatchObject({ state: "stopped" });
      expect(await operations.resume(id, "ann")).toMatchObject({ state: "stopped", matched: 1 });
      const { jobs } = await hf.jobs.list({ state: "scheduled", limit: 3 });
      const ids = jobs.map((job) => job.id);
      await hf.jobs.cancel(ids[0]!);
      const retry: Task = { action: "retry", filter: { ids }, change: null, rate: null };
      expect(await (await operations.start(retry, "ann")).left).toMatchObject({
        state: "done",
        matched: 3,
        outcomes: { retried: 1, not_ended: 2 },
        refused: 2,
      });
    });

    test("a value is swapped only where it is what it was, and listed with the database's clock", async () => {
      const clock = new FakeClock();
      const { hf } = await fresh(target, { clock });
      const { store } = operatorOf(hf);
      for (const key of ["p:0a", "p:f9", "p:", "p:zz", "q:0a"]) await store.state.set(key, "1");
      expect(await store.state.swap("p:0a", "2", "3")).toBe(false);
      await clock.advance(1_000);
      expect(await store.state.swap("p:0a", "1", "2")).toBe(true);
      expect(await store.state.swap("p:gone", "1", "2")).toBe(false);
      const now = clock.now();
      expect(await store.state.row("p:0a")).toEqual({ key: "p:0a", value: "2", setAt: now, now });
      expect(await store.state.row("p:gone")).toBeNull();
      const rows = await store.state.rows("p:", 10);
      expect(rows.filter(({ key }) => key !== "p:").map(({ key, setAt }) => [key, setAt])).toEqual([
        ["p:f9", now - 1_000],
        ["p:0a", now],
      ]);
      expect(await store.state.rows("p:", 1)).toMatchObject([{ key: "p:f9" }]);
    });

    test("[K1] ids are taken piece by piece, at a rate and without; what is gone meanwhile is not counted", async () => {
      const clock = new FakeClock();
      const { hf } = await fresh(target, { clock });
      await scheduled(hf, 1_003);
      const all: string[] = [];
      for (let cursor: string | null = null; ;) {
        const page = await hf.jobs.list({ limit: 1_000, cursor });
        all.push(...page.jobs.map(({ id }) => id));
        ({ cursor } = page);
        if (cursor === null) break;
      }
      await hf.jobs.delete(all[0]!);
      const operations = new Operations(hf);
      const byIds = (ids: readonly string[], rate: Task["rate"]): Task => ({
        ...cancelAll(rate),
        filter: { ids },
      });
      const some = await operations.start(byIds(all.slice(0, 8), { limit: 3, perMs: 1_000 }), "ann");
      expect(await advancing(clock, some.left)).toMatchObject({ state: "done", matched: 7 });
      const rest = await operations.start(byIds(all, null), "ann");
      expect(await rest.left).toMatchObject({
        matched: 1_002,
        outcomes: { cancelled: 995, ended: 7 },
        refused: 7,
      });
      expect(await hf.jobs.count({ state: "cancelled" })).toBe(1_002);
      expect((await operations.get(rest.id))?.filter.ids).toHaveLength(10);
    });

    test("[K1] the newest hundred are kept; what somebody else keeps in the state is not one", async () => {
      const { hf } = await fresh(target);
      const operations = new Operations(hf);
      await hf.state.set("holdfast:operation:", { mine: true });
      await hf.state.set("holdfast:operation:0bad", "mine");
      const ids: string[] = [];
      for (let n = 0; n < 103; n += 1) {
        const { id, left } = await operations.start(cancelAll(), "ann");
        ids.push(id);
        await left;
      }
      const kept = await operations.list();
      expect(kept.map(({ id }) => id)).toEqual(ids.slice(-kept.length).reverse());
      expect(kept.length).toBeGreaterThanOrEqual(97);
      expect(await operations.get(ids[0]!)).toBeNull();
      expect(await operations.get("nonsense")).toBeNull();
      expect(await hf.state.get("holdfast:operation:")).toEqual({ mine: true });
    });
  });
});

test("[K1] a count that a piece of a look has ended goes on until it is known that nothing comes behind it", async () => {
  const jobs = (n: number) => Array.from({ length: n }, () => ({}) as JobSummary);
  const look = (counted: CappedCount, ...pages: number[]) => ({
    tally: () => Promise.resolve({ total: counted, states: {} }),
    browse: () => {
      const n = pages.shift() ?? 0;
      return Promise.resolve({ jobs: jobs(n), cursor: pages.length === 0 ? null : "on", cut: false });
    },
  });
  expect(await countOf(look({ count: 7, more: false }, 1), {})).toEqual({ count: 7, more: false });
  expect(await countOf(look({ count: 1_000, more: true }, 1_000, 0), {})).toEqual({
    count: 1_000,
    more: false,
  });
  expect(await countOf(look({ count: 1_000, more: true }, 1_000, 500), {})).toEqual({
    count: 1_500,
    more: false,
  });
  // It ends, whatever there is.
  const endless = Array.from({ length: 100 }, () => 0);
  expect(await countOf(look({ count: 3, more: true }, ...endless), {})).toEqual({ count: 3, more: true });
  const full = Array.from({ length: 100 }, () => 1_000);
  expect(await countOf(look({ count: 3, more: true }, ...full), {})).toEqual({ count: 10_000, more: true });
});
