// What handlers say, kept beside their job: only where it was asked for, bounded, and gone with the job.
import { expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { client, patient as lasting } from "../support/client.ts";
import { cli, on } from "../cli/support.ts";
import { onEveryStore } from "../support/stores.ts";
import { coded } from "../support/test-clients.ts";

const patient = { ...lasting, queues: { default: 4 } } as const;

const chatty = defineJob({
  name: "chatty",
  run: async (input: { lines?: number; fail?: boolean }, ctx) => {
    ctx.log.debug({}, "too quiet");
    ctx.log.info({ tenant: "acme", n: 1n, error: new Error("inside") }, "started");
    for (let n = 0; n < (input.lines ?? 0); n += 1) ctx.log.info({ n }, `job type ${n}`);
    ctx.log.warn({}, "nul \0 and \ud800");
    if (input.fail === true) throw new Error("no");
  },
});
const silent = defineJob({ name: "silent", run: async (_: null) => {} });

onEveryStore((target) => {
  test("[J1] lines are kept beside their job, in order, with level, attempt and details, from the level that was asked for", async () => {
    const heard: string[] = [];
    const logger = {
      debug: (_: unknown, message: string) => void heard.push(message),
      info: (_: unknown, message: string) => void heard.push(message),
      warn: () => {},
      error: () => {},
    };
    const { hf, clock, fresh } = await client(target, { jobLog: true, logger });
    const { id } = await hf.enqueue(chatty, { fail: true }, { attempts: 2 });
    const worker = hf.work([chatty], patient);
    await worker.idle();
    expect(hf.jobLog.status).toEqual({ on: true, buffered: 2, dropped: 0 });
    expect(await hf.jobLog.list(id)).toEqual([]);
    await clock.advance("5m");
    await worker.idle();
    await worker.stop();
    await hf.jobLog.flush();
    expect(heard.filter((line) => line === "too quiet").length).toBe(2);
    expect(heard).toContain("started");
    const lines = await hf.jobLog.list(id);
    expect(lines.map(({ level, attempt, message }) => [level, attempt, message])).toEqual([
      ["info", 1, "started"],
      ["warn", 1, "nul \0 and \ud800"],
      ["info", 2, "started"],
      ["warn", 2, "nul \0 and \ud800"],
    ]);
    expect(lines[0]?.details).toEqual({ tenant: "acme", n: "1", error: "inside" });
    expect((await hf.jobLog.list(id, { level: "warn" })).length).toBe(2);
    expect((await hf.jobLog.list(id, { search: "ACME" })).length).toBe(2);
    expect(await hf.jobLog.list("nothing")).toEqual([]);

    const shown = await on(fresh)(["jobs", "logs", id, "--level", "info", "--search", "started", "--json"]);
    expect(shown.json<{ lines: { message: string }[] }>().lines.map(({ message }) => message)).toEqual([
      "started",
      "started",
    ]);
    const text = await on(fresh)(["jobs", "logs", id]);
    expect(text.out).not.toContain("\0");
    expect(text.out).toMatch(/info {2}#1 started .*"tenant":"acme"/);
    expect((await on(fresh)(["jobs", "logs", id, "--level", "loud"])).code).toBe(2);
    expect((await on(fresh)(["jobs", "logs", "0199c1d8-7c00-7000-8000-000000000000"])).code).toBe(1);
  });

  test("[J1] a second at most is lost in a crash: a timer writes what is buffered", async () => {
    const { hf, clock, count } = await client(target, { jobLog: true });
    const hold = Promise.withResolvers<void>();
    const long = defineJob({
      name: "long",
      run: async (_: null, ctx) => {
        ctx.log.info({}, "before");
        await hold.promise;
      },
    });
    const { id } = await hf.enqueue(long, null);
    const worker = hf.work([long], patient);
    await worker.ready;
    while (worker.running === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(await count("log")).toBe(0);
    await clock.advance("1s");
    await hf.jobLog.flush(); // waits for the write that the timer has begun
    expect((await hf.jobLog.list(id)).map(({ message }) => message)).toEqual(["before"]);
    hold.resolve();
  });

  test("[J1] a job keeps its newest lines, cut to size, and a job that is gone keeps none", async () => {
    const { hf, count, clock } = await client(target, { jobLog: { level: "debug", lines: 10 } });
    const { id } = await hf.enqueue(chatty, { lines: 50 });
    const dropped = defineJob({
      name: "dropped",
      keep: false,
      run: async (_: null, ctx) => {
        ctx.log.error({ big: "y".repeat(20_000) }, "x".repeat(20_000));
        await hf.jobLog.flush();
      },
    });
    const gone = defineJob({
      name: "gone",
      keep: false,
      run: async (_: null, ctx) => ctx.log.info({}, "nobody will read this"),
    });
    await hf.enqueue(dropped, null);
    const worker = hf.work([chatty, dropped, gone], patient);
    await worker.idle();
    await hf.jobLog.flush();
    await hf.enqueue(gone, null);
    await worker.idle();
    expect(hf.jobLog.status.buffered).toBe(1);
    await hf.jobLog.flush();
    // Ten of the first, one of the second, which was written while it ran; none of the third, whose job was gone by then.
    expect(await count("log")).toBe(11);
    const lines = await hf.jobLog.list(id);
    expect(lines.map(({ message }) => message)).toEqual([
      ...Array.from({ length: 9 }, (_, n) => `job type ${41 + n}`),
      "nul \0 and \ud800",
    ]);
    // Its job ended and left no row: what it said goes with the next turn of the upkeep task that forgets.
    await clock.advance("1h");
    await hf.prune();
    expect(await count("log")).toBe(10);
    expect(await hf.jobs.delete(id)).toBe("deleted");
    expect(await count("log")).toBe(0);
  });

  test("[J1] long lines are cut, in a line that was kept while its job ran", async () => {
    const { hf } = await client(target, { jobLog: true });
    const { promise, resolve } = Promise.withResolvers<number[]>();
    const loud = defineJob({
      name: "loud",
      run: async (_: null, ctx) => {
        ctx.log.error({ big: "y".repeat(20_000) }, "x".repeat(20_000));
        await hf.jobLog.flush();
        const [line] = await hf.jobLog.list(ctx.id);
        resolve([line?.message.length ?? 0, JSON.stringify(line?.details).length]);
      },
    });
    await hf.enqueue(loud, null);
    const worker = hf.work([loud], patient);
    for (const length of await promise) expect(length).toBeLessThanOrEqual(4_100);
    await worker.idle();
  });

  test("[J1] without the option nothing is kept; and a job that says nothing sends nothing for it", async () => {
    const off = await client(target);
    await off.hf.enqueue(chatty, {});
    await off.hf.work([chatty], patient).idle();
    await off.clock.advance("5s");
    expect(await off.count("log")).toBe(0);
    expect(off.hf.jobLog.status.on).toBe(false);

    const quiet = await client(target, { jobLog: true });
    await quiet.hf.enqueueMany(Array.from({ length: 50 }, () => ({ job: silent, input: null })));
    const before = new Map(quiet.store.counters.byName);
    const worker = quiet.hf.work([silent], patient);
    await worker.idle();
    await quiet.clock.advance("5s");
    const sent = (name: string): number =>
      (quiet.store.counters.byName.get(name) ?? 0) - (before.get(name) ?? 0);
    expect([sent("putLogLines"), sent("trimLogLines")]).toEqual([0, 0]);
  });

  test("[J1] while the database is away lines wait, up to 10,000, and the rest is counted", async () => {
    const { hf, faults, clock } = await client(target, { jobLog: true });
    const { id } = await hf.enqueue(chatty, { lines: 10_500 });
    faults["series.putLogLines"] = () => Promise.reject(new Error("away"));
    const worker = hf.work([chatty], patient);
    await worker.idle();
    expect(hf.jobLog.status).toMatchObject({ buffered: 10_000, dropped: 502 });
    delete faults["series.putLogLines"];
    await clock.advance("2s");
    await hf.jobLog.flush();
    expect(hf.jobLog.status.buffered).toBe(0);
    expect((await hf.jobLog.list(id)).length).toBe(1_000);
  });
});

test("a wrong option is refused", async () => {
  const { open } = await import("../../src/index.ts");
  for (const jobLog of [{ level: "loud" }, { lines: 0 }, { lines: 10_001 }, { keep: "1d" }, "yes"])
    await expect(open("sqlite::memory:", { jobLog: jobLog as never })).rejects.toThrow();
  await expect(open("sqlite::memory:", { jobLog: { level: "loud" as never } })).rejects.toThrow(
    coded("BAD_OPTION"),
  );
  expect((await cli(["jobs", "logs"])).code).toBe(2);
});
