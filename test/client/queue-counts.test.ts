// What queues count: exact where somebody asks for it once, to a bound where pages, probes and samplers ask all the time.
import { expect, test } from "vitest";
import { defineJob, latency } from "../../src/index.ts";
import { prometheus } from "../../src/prometheus/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { newWorld } from "../support/world.ts";
import { fresh, refusal } from "./support.ts";

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

  test("[N25] what asks again and again never has every job counted", async () => {
    const world = await newWorld(target);
    const { hf, tap } = await world.client();
    const { id } = await hf.enqueue(mail, null);
    const bounds: unknown[] = [];
    tap.around = (verb, call, args) => {
      if (verb === "queues") bounds.push(args[0] ?? "to the end");
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
