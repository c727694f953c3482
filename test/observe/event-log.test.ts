// The event log: off by default, written after commits, buffered for 2 s, bounded.
import { expect, test } from "vitest";
import { checkEventLog, EventLog } from "../../src/observe/event-log.ts";
import { Emitter } from "../../src/events.ts";
import { defineJob, open, silentLogger } from "../../src/index.ts";
import type { Retry } from "../../src/storage/retry-calls.ts";
import type { Store } from "../../src/storage/store.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { newWorld } from "../support/world.ts";

const seen = new Map<string, number>();
const flaky = defineJob({
  name: "flaky",
  retry: { attempts: 3, backoff: () => 100 },
  run: (input: { n: number }, ctx) => {
    seen.set(ctx.id, (seen.get(ctx.id) ?? 0) + 1);
    if (input.n % 3 === 0 && ctx.attempt === 1) throw new Error("once more");
    return input.n;
  },
});

onEveryStore((target) => {
  test("[J2] every attempt that starts is seen to end: the gauge is 0 after 100 jobs with retries", async () => {
    const world = await newWorld(target);
    const { hf, work } = await world.client({ eventLog: true });
    await work([flaky], { queues: ["default"] });
    await hf.enqueueMany(Array.from({ length: 100 }, (_, n) => ({ job: flaky, input: { n } })));
    for (let n = 0; n < 100; n += 1) await hf.enqueue(flaky, { n });
    await world.advance("5s");
    const count = async (event: string): Promise<number> => {
      let total = 0;
      let cursor: string | null = null;
      do {
        const page: Awaited<ReturnType<typeof hf.eventLog.list>> = await hf.eventLog.list({
          event,
          limit: 1_000,
          cursor,
        });
        total += page.events.length;
        cursor = page.cursor;
      } while (cursor !== null);
      return total;
    };
    const started = await count("job.started");
    const ended = (await count("job.done")) + (await count("job.failed")) + (await count("job.dead"));
    expect(started).toBe(268); // 200 jobs, of which 34 of each 100 run twice
    expect(started - ended).toBe(0);
    expect(await count("job.failed")).toBe(68);
    expect(hf.eventLog.status).toEqual({ on: true, buffered: 0, dropped: 0 });
  });

  test("[J2] lines are buffered for 2 s, and those of one job are found by its id", async () => {
    const world = await newWorld(target);
    const { hf, tap } = await world.client({ eventLog: true });
    const { id } = await hf.enqueue(flaky, { n: 1 }, { delay: "1h" });
    expect(hf.eventLog.status.buffered).toBe(1);
    expect(tap.count("series.putEvents")).toBe(0);
    await world.advance("2100ms");
    expect(tap.count("series.putEvents")).toBe(1);
    await hf.enqueue(flaky, { n: 2 });
    await hf.eventLog.flush();
    const { events } = await hf.eventLog.list({ job: id });
    expect(events).toMatchObject([{ event: "job.enqueued", job: id, name: "flaky", queue: "default" }]);
    expect((await hf.eventLog.list({ name: "flaky" })).events).toHaveLength(2);
    expect((await hf.eventLog.list({ queue: "nowhere" })).events).toEqual([]);
    expect((await hf.eventLog.list({ job: "x" })).events).toEqual([]);
  });

  test("[J2] a batch whose answer was lost is sent again, and no line is written twice", async () => {
    const world = await newWorld(target);
    const { hf, tap } = await world.client({ eventLog: { events: ["job.cancelled"] } });
    let away = true;
    tap.around = async (verb, call) => {
      const answer = await call();
      if (verb === "series.putEvents" && away) throw new Error("the answer was lost");
      return answer;
    };
    const { id } = await hf.enqueue(flaky, { n: 1 }, { delay: "1h" });
    await hf.jobs.cancel(id);
    await world.advance("3s");
    expect(hf.eventLog.status.buffered).toBe(1);
    away = false;
    await world.advance("3s");
    expect(hf.eventLog.status.buffered).toBe(0);
    const rows = await world.fresh.query(`select event from ${world.fresh.table("event")}`);
    expect(rows).toEqual([{ event: "job.cancelled" }]);
  });

  test("[J2] it is off unless asked for: a plain job costs no row of it", async () => {
    const store = await target.fresh();
    await using hf = await open(store.url, { ...store.options, logger: silentLogger });
    await hf.enqueue(flaky, { n: 1 });
    await hf.eventLog.flush();
    expect(hf.eventLog.status).toEqual({ on: false, buffered: 0, dropped: 0 });
    expect(await store.query(`select 1 as one from ${store.table("event")}`)).toEqual([]);
  });

  test("[J2] closing writes what is buffered, and lines are kept as long as they are told to", async () => {
    const world = await newWorld(target);
    const first = await world.client({ eventLog: { keep: "1h" } });
    await first.hf.enqueue(flaky, { n: 1 }, { delay: "1d" });
    await first.hf.close();
    const { hf } = await world.client({ eventLog: { keep: "1h" } });
    expect((await hf.eventLog.list()).events).toHaveLength(1);
    await world.advance("2h");
    await hf.prune();
    expect((await hf.eventLog.list()).events).toEqual([]);
  });
});

test("[J2] at most 50,000 lines wait; what comes then is dropped and counted", async () => {
  const events = new Emitter(() => {});
  const log = new EventLog({
    store: { series: { putEvents: () => new Promise(() => {}) } } as unknown as Store,
    retry: {} as Retry,
    clock: new FakeClock(),
    events,
    log: silentLogger,
    newId: () => "00000000-0000-7000-8000-000000000000",
    checkOpen: () => {},
    settings: checkEventLog(true),
  });
  for (let i = 0; i < 50_007; i += 1)
    events.emit("job.cancelled", { id: `${i}`, name: "n", queue: "q", reason: "r" });
  expect(log.status).toEqual({ on: true, buffered: 50_000, dropped: 7 });
});
