// Failures by cause: counted by the workers, decided about by hand, and what a decision comes to.
import { describe, expect, test } from "vitest";
import { Dead, defineJob, type Holdfast } from "../../src/index.ts";
import { pruneSeriesOnce } from "../../src/upkeep/series-pruner.ts";
import { failureGroupState } from "../../src/observe/failure-decision.ts";
import { onEveryStore, type FreshStore } from "../support/stores.ts";
import { newWorld, type World } from "../support/world.ts";
import { fresh, refusal } from "../support/test-clients.ts";
import { operatorOf } from "../../src/operate/operator.ts";

const HOUR = 3_600_000;

describe("what a decision has come to", () => {
  const none = { at: 1_000, untilAt: null, untilCount: null };
  const seen = (lastAt: number | null, since = 0, now = 5_000) => ({ now, lastAt, since });
  test.each([
    ["open stays open", { ...none, decision: "open" }, seen(9_000), "open"],
    ["resolved, and it failed before", { ...none, decision: "resolved" }, seen(1_000), "resolved"],
    [
      "resolved, and it never failed where we look",
      { ...none, decision: "resolved" },
      seen(null),
      "resolved",
    ],
    ["resolved, and it failed again", { ...none, decision: "resolved" }, seen(1_001), "regressed"],
    ["ignored for good", { ...none, decision: "ignored" }, seen(9_000, 1_000_000), "ignored"],
    ["ignored until later", { ...none, decision: "ignored", untilAt: 5_001 }, seen(2_000), "ignored"],
    ["ignored until now", { ...none, decision: "ignored", untilAt: 5_000 }, seen(2_000), "open"],
    [
      "ignored until 10 more, 9 so far",
      { ...none, decision: "ignored", untilCount: 10 },
      seen(2_000, 9),
      "ignored",
    ],
    [
      "ignored until 10 more, 10 so far",
      { ...none, decision: "ignored", untilCount: 10 },
      seen(2_000, 10),
      "open",
    ],
    [
      "whichever comes first",
      { ...none, decision: "ignored", untilAt: 9_000, untilCount: 2 },
      seen(2_000, 2),
      "open",
    ],
  ] as const)("%s", (_what, triage, of, state) => {
    expect(failureGroupState(triage, of)).toBe(state);
  });
});

const flaky = (name = "flaky", version = 1) =>
  defineJob({
    name,
    version,
    ...(version > 1
      ? {
          upcast: Object.fromEntries(
            Array.from({ length: version - 1 }, (_, i) => [i + 1, (old: unknown) => old]),
          ),
        }
      : {}),
    retry: { attempts: 2, backoff: () => 1_000 },
    run: (input: string) => {
      if (input === "ok") return;
      if (input.startsWith("dead")) throw new Dead(input);
      throw new Error(input);
    },
  });

async function failureRows(store: FreshStore): Promise<Record<string, unknown>[]> {
  return store.query(
    `select * from ${store.table("failure")} order by failure_group, at, queue, version, worker`,
  );
}

/** The one group, with what of it does not depend on the clock. */
async function only(hf: Holdfast): Promise<Awaited<ReturnType<Holdfast["errors"]["list"]>>[number]> {
  const groups = await hf.errors.list();
  expect(groups).toHaveLength(1);
  return groups[0]!;
}

async function fail(world: World, hf: Holdfast, job: ReturnType<typeof flaky>, times: number): Promise<void> {
  const before = (await hf.jobs.list({ state: "dead", limit: 1_000 })).jobs.length;
  for (let n = 0; n < times; n += 1) await hf.enqueue(job, `dead ${n}`);
  await world.until("they are dead", async () => (await hf.jobs.count({ state: "dead" })) === before + times);
  await world.advance("15s"); // until it is written down
}

onEveryStore((target) => {
  test("[J3] a worker counts what attempts fail of, by cause and minute: attempts, first, last, queues, versions", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    const start = world.clock.now();
    const worker = await work([flaky()], { queues: ["default", "other"] });
    await hf.enqueue(flaky(), "no user 1");
    await hf.enqueue(flaky(), "no user 2", { queue: "other" });
    await hf.enqueue(flaky(), "ok");
    await world.until("both are dead", async () => (await hf.jobs.count({ state: "dead" })) === 2);
    await world.advance("15s");
    const group = await only(hf);
    expect(group).toMatchObject({
      name: "flaky",
      state: "open",
      dead: 2,
      retrying: 0,
      lastHour: 4, // two attempts each
      lastDay: 4,
      lastWeek: 4,
      versions: [1],
      decidedAt: null,
    });
    expect([...group.queues].sort()).toEqual(["default", "other"]);
    expect(group.message).toMatch(/^no user [12]$/);
    expect(group.day).toHaveLength(24);
    expect(group.day.reduce((a, b) => a + b)).toBe(4);
    expect(group.firstAt!.getTime()).toBeGreaterThanOrEqual(start);
    expect(group.lastAt!.getTime()).toBeGreaterThanOrEqual(group.firstAt!.getTime() + 1_000);
    await worker.stop();

    await work([flaky("flaky", 3)], { queues: ["default", "other"] });
    await fail(world, hf, flaky("flaky", 3), 1);
    const detail = (await hf.errors.list()).find(({ message }) => message === "dead 0")!;
    expect(detail.versions).toEqual([3]);
    expect((await hf.errors.get(detail.group))?.places).toEqual([{ queue: "default", version: 3, n: 1 }]);
  });

  test("[J3] a minute whose answer was lost is written again and counts once", async () => {
    const world = await newWorld(target);
    const { hf, tap, work } = await world.client();
    await work([flaky()], { queues: ["default"] });
    let writes = 0;
    tap.around = async (verb, call) => {
      const answer = await call();
      if (verb === "failures.put" && (writes += 1) <= 3) throw new Error("the answer was lost");
      return answer;
    };
    await fail(world, hf, flaky(), 3);
    await world.advance("60s");
    expect(writes).toBeGreaterThan(3);
    const rows = await failureRows(world.fresh);
    expect(rows.map(({ n }) => Number(n)).reduce((a, b) => a + b)).toBe(3);
    expect((await only(hf)).lastHour).toBe(3);
  });

  test("[J3] hours that are over become one row, and no count changes", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    const { store } = operatorOf(hf);
    await work([flaky()], { queues: ["default"] });
    await fail(world, hf, flaky(), 2);
    const group = await only(hf);
    const at = Math.floor((world.clock.now() - 30 * HOUR) / HOUR) * HOUR;
    const old = (minute: number, worker: string, n: number) => ({
      group: group.group,
      at: at + minute * 60_000,
      queue: "default",
      version: 1,
      worker,
      n,
    });
    const of = { group: group.group, name: "flaky", sample: group.sample!, message: '"old"' };
    await store.failures.put(
      [{ ...of, firstAt: at, lastAt: at + 60_000 }],
      [old(0, "a", 5), old(0, "b", 2), old(1, "a", 1), old(61, "a", 4)],
    );
    expect(await store.failures.compact(at, at + HOUR)).toBe(2);
    expect(await store.failures.compact(at, at + HOUR), "a second time there is nothing to do").toBe(0);
    const rows = await failureRows(world.fresh);
    expect(rows.filter(({ worker }) => worker === "").map(({ n }) => Number(n))).toEqual([8]);
    expect(await only(hf)).toMatchObject({ lastHour: 2, lastDay: 2, lastWeek: 14, firstAt: new Date(at) });
    expect((await hf.errors.get(group.group))?.week.filter((n) => n > 0)).toEqual([8, 4, 2]);
    // The upkeep task does the same, and forgets what is older than 30 days.
    await store.failures.put(
      [{ ...of, firstAt: 1, lastAt: 1 }],
      [{ ...old(0, "a", 9), at: at - 40 * 24 * HOUR }],
    );
    await pruneSeriesOnce({ store, eventLog: null });
    expect((await failureRows(world.fresh)).map(({ n }) => Number(n)).sort((a, b) => a - b)).toEqual([
      2, 4, 8,
    ]);
  });

  test("[K1] resolved, it fails again, and is regressed by itself; reopened, it is open", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    await work([flaky()], { queues: ["default"] });
    await fail(world, hf, flaky(), 2);
    const { group } = await only(hf);
    const link = "https://example.org/issues/7";
    expect(await hf.errors.resolve(group, { note: "fixed in 2.4.1", link, by: "ann" })).toBe(true);
    expect(await only(hf)).toMatchObject({
      state: "resolved",
      note: "fixed in 2.4.1",
      link,
      decidedBy: "ann",
      decidedAt: new Date(world.clock.now()),
    });
    expect(await hf.errors.list({ state: ["open", "regressed"] })).toEqual([]);
    await world.advance("1m");
    await hf.enqueue(flaky(), "ok");
    await world.advance("1m");
    expect((await only(hf)).state).toBe("resolved");
    await fail(world, hf, flaky(), 1);
    expect(await only(hf)).toMatchObject({ state: "regressed", note: "fixed in 2.4.1", link });
    // It stays so when its jobs are gone.
    await hf.jobs.delete({ state: "dead" });
    expect(await only(hf)).toMatchObject({ state: "regressed", dead: 0, lastDay: 3, message: "dead 0" });
    expect(await hf.errors.reopen(group, { link: null })).toBe(true);
    expect(await only(hf)).toMatchObject({ state: "open", note: "fixed in 2.4.1", link: null });
    expect(await hf.errors.set(group, { note: "" })).toBe(true);
    expect((await only(hf)).note).toBeNull();
  });

  test("[K1] ignored for a while, until a count, or for good", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    await work([flaky()], { queues: ["default"] });
    await fail(world, hf, flaky(), 3);
    const { group } = await only(hf);
    const state = async () => (await only(hf)).state;
    await hf.errors.ignore(group, { for: "10m" });
    expect(await only(hf)).toMatchObject({
      state: "ignored",
      untilAt: new Date(world.clock.now() + 600_000),
    });
    await fail(world, hf, flaky(), 1);
    expect(await state()).toBe("ignored");
    await world.advance("10m");
    expect(await state()).toBe("open");

    await hf.errors.ignore(group, { count: 3 });
    expect(await only(hf), "what failed before does not count").toMatchObject({
      state: "ignored",
      since: 0,
      untilCount: 3,
    });
    await fail(world, hf, flaky(), 2);
    expect(await only(hf)).toMatchObject({ state: "ignored", since: 2 });
    await fail(world, hf, flaky(), 1);
    expect(await only(hf)).toMatchObject({ state: "open", since: 3 });

    await hf.errors.ignore(group);
    await fail(world, hf, flaky(), 5);
    expect(await only(hf)).toMatchObject({ state: "ignored", untilAt: null, untilCount: null });
  });

  test("[K1] groups of jobs that no worker ran are decided about too, and what wants attention comes first", async () => {
    const { hf } = await fresh(target);
    for (const [name, reason] of [
      ["a", "disk full"],
      ["a", "disk full"],
      ["b", "no route"],
      ["c", "odd"],
    ] as const) {
      await hf.enqueue(name, null);
      const [lease] = await hf.lease({ limit: 1, for: "10m" });
      await lease!.dead(reason);
    }
    const groups = await hf.errors.list();
    expect(groups.map(({ name, dead, lastHour }) => [name, dead, lastHour])).toEqual(
      [
        ["a", 2, 2],
        ["b", 1, 1],
        ["c", 1, 1],
      ].sort(
        (x, y) =>
          groups.findIndex(({ name }) => name === x[0]) - groups.findIndex(({ name }) => name === y[0]),
      ),
    );
    expect(groups[0]!.name).toBe("a");
    const [a, b] = [groups.find(({ name }) => name === "a")!, groups.find(({ name }) => name === "b")!];
    await hf.errors.resolve(a.group);
    await hf.errors.ignore(b.group);
    expect((await hf.errors.list()).map(({ name, state }) => [name, state])).toEqual([
      ["c", "open"],
      ["b", "ignored"],
      ["a", "resolved"],
    ]);
    await hf.enqueue("a", null);
    const [lease] = await hf.lease({ limit: 1, for: "10m" });
    await new Promise((resolve) => setTimeout(resolve, 5)); // the database's clock is a real one here
    await lease!.dead("disk full");
    expect((await hf.errors.list({ name: "a" }))[0]).toMatchObject({ state: "regressed", dead: 3 });
    expect((await hf.errors.list()).map(({ name }) => name)).toEqual(["a", "c", "b"]);
    expect(await hf.errors.list({ queue: "nowhere" })).toEqual([]);
    expect(await hf.errors.list({ queue: "default", state: "ignored" })).toHaveLength(1);
  });

  test("[K1] a group that nothing failed of is refused, and so is what makes no sense", async () => {
    const { hf, store } = await fresh(target);
    const nobody = "0123456789abcdef";
    expect(await hf.errors.get(nobody)).toBeNull();
    expect(await hf.errors.resolve(nobody)).toBe(false);
    expect(await hf.errors.set(nobody, { note: "x" })).toBe(false);
    for (const act of [
      () => hf.errors.resolve("' or 1=1"),
      () => hf.errors.resolve(nobody, { link: "javascript:alert(1)" }),
      () => hf.errors.resolve(nobody, { link: "data:text/html,x" }),
      () => hf.errors.resolve(nobody, { link: "no address" }),
      () => hf.errors.ignore(nobody, { for: "1h", until: new Date() }),
      () => hf.errors.ignore(nobody, { count: 0 }),
      () => hf.errors.list({ state: "shut" as never }),
    ])
      expect((await refusal((async () => act())())).code, act.toString()).toMatch(/^BAD_/);
    expect((await refusal((async () => hf.errors.set(nobody, { note: "a\0b" }))())).code).toBe("BAD_KEY");
    expect(await store.query(`select count(*) as n from ${store.table("failure_group")}`)).toEqual([
      { n: 0 },
    ]);
  });

  test("[J3] messages with NUL, lone surrogates and 10 MB are counted and shown unharmed or cut", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    const nasty = `a\0b\ud800 ${"x".repeat(10_000_000)}`;
    const job = defineJob({
      name: "nasty",
      run: () => {
        throw new Dead(nasty);
      },
    });
    await work([job], { queues: ["default"] });
    const { id } = await hf.enqueue(job, null);
    await world.until("it is dead", async () => (await hf.jobs.get(id))?.state === "dead");
    await world.advance("15s");
    await hf.jobs.delete(id);
    const group = await only(hf);
    expect(group).toMatchObject({ lastHour: 1, dead: 0 });
    expect(group.message).toBe(nasty.slice(0, 500));
  });

  test("[J3] a name whose every error is new fills neither the memory nor the table", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    const words = (n: number) => String(n).replace(/\d/g, (digit) => "abcdefghij".charAt(Number(digit)));
    const job = defineJob({
      name: "chatty",
      run: (n: number) => {
        throw new Dead(`odd ${words(n)}`);
      },
    });
    await work([job], { queues: { default: 100 } });
    await hf.enqueueMany(Array.from({ length: 500 }, (_, n) => ({ job, input: n })));
    await world.until("all are dead", async () => (await hf.jobs.count({ state: "dead" })) === 500);
    await world.advance("15s");
    const n = (await failureRows(world.fresh)).length;
    expect(n).toBeGreaterThan(100);
    expect(n).toBeLessThanOrEqual(400); // 200 a minute, and the minute may have changed once
    expect(await hf.errors.list()).toHaveLength(500); // the jobs are found by their own rows
  });
});
