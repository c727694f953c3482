// What queues count: exact where somebody asks for it once, to a bound where pages, probes and samplers ask all the time.
import { expect, test } from "vitest";
import { defineJob, latency } from "../../src/index.ts";
import { prometheus } from "../../src/prometheus/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { newWorld } from "../support/world.ts";
import { fresh, refusal } from "../support/test-clients.ts";

const mail = defineJob({ name: "mail", queue: "mail" });
const many = (n: number, options: object = {}) =>
  Array.from({ length: n }, () => ({ job: mail, input: null, ...options }));

onEveryStore((target) => {
  test("[N25] counts of queues are exact, and stop at a bound where one is given; the lag is exact either way", async () => {
    const world = await newWorld(target);
    const { hf } = await world.client();
    await hf.enqueueMany([...many(130), ...many(140, { delay: "1h" }), ...many(3, { queue: "small" })]);
    await world.advance("40s");
    const exact = await hf.queues.list();
    expect(exact.map(({ name, counts, atLeast }) => [name, counts.ready, counts.scheduled, atLeast])).toEqual(
      [
        ["mail", 130, 140, []],
        ["small", 3, 0, []],
      ],
    );
    const [mailed, small] = await hf.queues.list({ upTo: 120 });
    expect(mailed).toMatchObject({
      counts: { ready: 120, scheduled: 120, running: 0, waiting: 0 },
      atLeast: ["ready", "scheduled"],
      unserved: ["mail"],
    });
    expect(mailed?.lagMs).toBeGreaterThanOrEqual(40_000);
    expect(small).toMatchObject({ counts: { ready: 3 }, atLeast: [] });
    const [bare] = await hf.queues.list({ upTo: 130 });
    expect(bare).toMatchObject({ counts: { ready: 130, scheduled: 130 }, atLeast: ["scheduled"] });
  });

  test("[O13] a queue tells when its next scheduled job is due, over all kinds and priorities", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client();
    const at = (inMs: number): Date => new Date(world.clock.now() + inMs);
    const next = async (): Promise<(Date | null)[]> => {
      const [exact, bounded] = [await hf.queues.list(), await hf.queues.list({ upTo: 100 })];
      expect(bounded.map(({ nextDueAt }) => nextDueAt)).toEqual(exact.map(({ nextDueAt }) => nextDueAt));
      return exact.map(({ nextDueAt }) => nextDueAt);
    };
    expect(await next()).toEqual([]);
    await hf.enqueueMany(many(3));
    expect(await next()).toEqual([null]);
    const [soon, later, latest] = [at(60_000), at(120_000), at(3_600_000)];
    await hf.enqueueMany([
      ...many(1, { at: latest, priority: 9 }),
      ...many(120, { at: latest }),
      ...many(1, { at: later, priority: -9 }),
      { job: "other", input: null, queue: "mail", at: soon },
      ...many(1, { at: latest, queue: "small" }),
    ]);
    expect(await next()).toEqual([soon, latest]);
    await world.advance("61s", "1s");
    expect(await next()).toEqual([later, latest]);
    // Neither a job that runs, nor one that waits for a signal or another job, with or without a timeout.
    const flow = defineJob({
      name: "flow",
      queue: "flows",
      run: async (how: string, ctx) => {
        if (how === "signal") await ctx.waitFor("go", { timeout: "10m" });
        else if (how === "sleep") await ctx.sleep("nap", "20m");
        else await new Promise(() => {});
      },
    });
    await work([flow], { queues: { flows: 200 } });
    const [held] = await hf.enqueueMany([
      { job: flow, input: "held" },
      ...Array.from({ length: 5 }, () => ({ job: flow, input: "signal" })),
    ]);
    await hf.enqueue(mail, null, { queue: "flows", after: [held.id] });
    const waiting = async (n: number): Promise<boolean> =>
      (await hf.queues.list()).find(({ name }) => name === "flows")?.counts.waiting === n;
    await world.until("all to wait", () => waiting(6));
    expect((await next())[0]).toBeNull();
    const { id } = await hf.enqueue(flow, "sleep");
    await world.until("it to sleep", async () => (await hf.jobs.get(id))?.state === "scheduled");
    expect((await next())[0]).toEqual((await hf.jobs.get(id))!.runAt);
    // Where more wait until a time than are counted, scheduled jobs among them are not looked for.
    await hf.enqueueMany(Array.from({ length: 120 }, () => ({ job: flow, input: "signal" })));
    await world.until("all to wait", () => waiting(126));
    const [exact] = await hf.queues.list();
    const [bounded] = await hf.queues.list({ upTo: 100 });
    expect(exact).toMatchObject({ counts: { scheduled: 1 }, nextDueAt: (await hf.jobs.get(id))!.runAt });
    expect(bounded).toMatchObject({ atLeast: ["scheduled", "waiting"], nextDueAt: null });
  });

  test("[N25] what asks again and again never has every job counted", async () => {
    const world = await newWorld(target);
    const { hf, tap } = await world.client();
    const { id } = await hf.enqueue(mail, null);
    const bounds: unknown[] = [];
    tap.around = (verb, call, args) => {
      if (verb === "queues.list") bounds.push(args[0] ?? "to the end");
      return call();
    };
    await latency(hf);
    await prometheus(hf).text();
    await hf.jobs.why(id);
    expect(bounds).toEqual([10_000, 50_000]);
    await prometheus(hf, { exact: true }).text();
    expect(bounds.at(-1)).toBe("to the end");
  });

  test("[J4] a gauge that stopped at its bound says so", async () => {
    const { hf } = await fresh(target);
    await hf.enqueueMany(many(120));
    const list = hf.queues.list.bind(hf.queues);
    hf.queues.list = (options) => list(options?.upTo === undefined ? options : { upTo: 100 });
    const text = await prometheus(hf).text();
    expect(text).toContain('holdfast_queue_depth{queue="mail",state="ready"} 100\n');
    expect(text).toContain('holdfast_queue_depth_capped{queue="mail",state="ready"} 1\n');
    expect(text).toContain('holdfast_queue_depth_capped{queue="mail",state="scheduled"} 0\n');
    const exact = await prometheus(hf, { exact: true }).text();
    expect(exact).toContain('holdfast_queue_depth{queue="mail",state="ready"} 120\n');
    expect(exact).not.toMatch(/queue_depth_capped\{[^}]*\} 1/);
  });

  test("a bound that is none is refused", async () => {
    const { hf } = await fresh(target);
    for (const upTo of [0, 1.5, 100_001])
      expect((await refusal(hf.queues.list({ upTo }))).code).toBe("BAD_OPTION");
    expect((await refusal(hf.queues.list({ most: 1 } as object))).code).toBe("UNKNOWN_OPTION");
  });
});
