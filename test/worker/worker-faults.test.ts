// O2: a worker with jobs of every kind, and one fault at each of its commits in turn: its first claim, its first settle, the first
// write of a step … It needs no restart, and everything is done once.
import { afterAll, expect, test } from "vitest";
import { defineJob, fixed } from "../../src/index.ts";
import { openDriver } from "../../src/storage/open.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { troubleOf } from "../../src/storage/trouble.ts";
import { type Fault, type Plan, refusedAs, Seam } from "../support/faults.ts";
import { laneCounts, queueCounts } from "../support/lane-counts.ts";
import { type FreshStore, onEveryDialect } from "../support/stores.ts";
import { empty } from "../support/tables.ts";
import { World } from "../support/world.ts";

onEveryDialect((target) => {
  const clock = new FakeClock();
  let bench: { fresh: FreshStore; seam: Seam; close: () => Promise<void> } | undefined;
  async function open() {
    if (bench !== undefined) return bench;
    const fresh = await target.fresh();
    const driver = await openDriver(fresh.url, { ...fresh.options, clock });
    return (bench = { fresh, seam: new Seam(driver), close: () => driver.close() });
  }
  afterAll(() => bench?.close());

  /** Everything that a worker does once; gives what it committed, and whether it came to the fault. */
  async function work(plan: Plan | null) {
    const { fresh, seam } = await open();
    const what = JSON.stringify(plan);
    seam.start(null);
    await empty(fresh);
    const world = new World(fresh, clock, seam.driver);
    const { hf } = await world.client();
    const { work: worker } = await world.client();
    const ran = new Map<string, number>();
    const count = (name: string): void => void ran.set(name, (ran.get(name) ?? 0) + 1);
    const run = (name: string) => async () => count(name);
    const plain = defineJob({ name: "plain", run: run("plain") });
    const output = defineJob({ name: "output", priority: 5, run: async () => (count("output"), 7) });
    const dropped = defineJob({ name: "dropped", keep: false, unique: () => "k", run: run("dropped") });
    const laned = defineJob({
      name: "laned",
      lane: () => "a",
      lanes: { concurrency: 1 },
      queue: "limited",
      run: run("laned"),
    });
    const budgeted = defineJob({ name: "budgeted", budget: "b", run: run("budgeted") });
    const failing = defineJob({
      name: "failing",
      retry: { backoff: fixed("1s") },
      run: async (_: unknown, ctx) => {
        count(`failing ${ctx.attempt}`);
        if (ctx.attempt === 1) throw new Error("once");
      },
    });
    const workflow = defineJob({
      name: "workflow",
      run: async (_: unknown, ctx) => {
        await ctx.step("a", () => count("step a"));
        await ctx.sleep("nap", "1s");
        const child = await ctx.call(output, null);
        const said = await ctx.waitFor<string>("go");
        await ctx.step("b", () => count("step b"));
        return { child, said };
      },
    });
    await hf.queues.set("limited", { concurrency: 1 });
    await hf.budgets.set("b", { limit: 2, per: "1s" });
    seam.start(plan);
    const definitions = [plain, output, dropped, laned, budgeted, failing, workflow];
    await worker(definitions, { queues: { default: 4, limited: 4 }, lease: "30s", heartbeat: "10s" });
    const begun = [...seam.committed];
    // What is enqueued below is not the worker's. It may fire the schedule as soon as that is put.
    if (plan?.unit !== "transaction fireSchedule") seam.plan = null;
    await hf.schedules.put({ name: "hourly", every: "1h", firstRun: "fire", job: plain, input: null });
    const { id } = await hf.enqueue(workflow, null);
    await hf.signal("go", { data: "said" });
    for (let n = 0; n < 2; n++) {
      await hf.enqueue(laned, n);
      await hf.enqueue(budgeted, n);
    }
    await hf.batch(
      [
        { job: plain, input: null },
        { job: output, input: null },
      ],
      { then: { job: plain, input: null } },
    );
    await hf.enqueueMany([dropped, failing].map((job) => ({ job, input: null })));
    seam.plan = plan;
    seam.committed.length = 0;
    const left = async (): Promise<number> => (await world.rows("ready")).length;
    await world.until(
      `all to be done: ${what}`,
      async () => (await left()) === 0 && (await hf.jobs.count({ state: "done" })) >= 10,
      "90s",
      250,
    );
    // What the server went on with comes late, and what it has taken is given back.
    await seam.late();
    await world.advance("12s", 1_000);
    const seen = Object.fromEntries(ran);
    expect({ what, seen }).toEqual({
      what,
      seen: {
        plain: 3,
        output: 2,
        dropped: 1,
        laned: 2,
        budgeted: 2,
        "failing 1": 1,
        "failing 2": 1,
        "step a": 1,
        "step b": 1,
      },
    });
    expect((await hf.jobs.get(id))?.output, what).toEqual({ child: 7, said: "said" });
    expect(await hf.jobs.count({ state: "dead" }), what).toBe(0);
    expect(await world.rows("claim"), what).toEqual([]);
    expect(await left(), what).toBe(0);
    expect([...(await laneCounts(fresh)), ...(await queueCounts(fresh))], what).toEqual([0, 0]);
    expect(await world.rows("unique_key"), what).toEqual([]);
    const { fired, committed } = { fired: seam.fired, committed: [...begun, ...seam.committed] };
    await world.closeClients();
    return { fired, committed };
  }

  // A class that the worker takes for a passing one, by what its own code says.
  const refusals = { postgres: ["53200", "57P01"], sqlite: [10, 13] }[target.dialect];
  const passing = refusals.filter((code) => troubleOf(refusedAs(target.dialect, code)) === "passing");
  const faults: readonly Fault[] = ["lost", "cut", "late", ...passing.map((refused) => ({ refused }))];
  for (const fault of faults)
    test(
      `[O2] a worker does everything once, whichever of its commits meets this: ${JSON.stringify(fault)}`,
      { timeout: 300_000 },
      async () => {
        const { committed } = await work(null);
        const units = new Map(committed.map((each) => [each.unit, each]));
        expect(units.size).toBeGreaterThan(15);
        for (const { unit, statements } of units.values()) {
          // Which statement a settle takes depends on the jobs that end together, so a unit may be missing from some runs.
          let fired = false;
          for (let tries = 0; tries < 30 && !fired; tries++)
            ({ fired } = await work({ unit, statement: statements[0]!, fault }));
          expect(fired, unit).toBe(true);
        }
      },
    );
});
