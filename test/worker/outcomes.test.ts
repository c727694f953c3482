// Outcomes, first part: what a job becomes after an attempt (promises D1 to D5, D10 to D12).
import { expect, test } from "vitest";
import {
  type Backoff,
  Dead,
  defineJob,
  exponential,
  fixed,
  immediately,
  power,
  Release,
  RetryAfter,
  Throttled,
} from "holdfast";
import type { ClaimedJob } from "../../src/jobs/job.ts";
import { backoffMs, DEFAULT_BACKOFF } from "../../src/jobs/backoff.ts";
import { decide, policyFor } from "../../src/jobs/transition.ts";
import { onEveryStore } from "../support/stores.ts";
import { client, patient, steady, type TestClient } from "../support/client.ts";

const plain = defineJob({ name: "plain", run: () => null });

/** Fails the job's next attempts and gives the delays, in seconds, that the row then shows. */
async function delaysOf({ hf, clock }: TestClient, id: string, attempts: number): Promise<number[]> {
  const delays: number[] = [];
  for (let n = 0; n < attempts; n++) {
    const [lease] = await hf.lease();
    await lease!.fail(new Error(`failure ${n + 1}`));
    const { runAt } = (await hf.jobs.get(id))!;
    delays.push((runAt!.getTime() - clock.now()) / 1_000);
    await clock.advance(runAt!.getTime() - clock.now());
  }
  return delays;
}

onEveryStore((target) => {
  test("[D1] a done job is kept with its output and the instant of its end", async () => {
    const { hf, clock, count } = await client(target);
    const { id } = await hf.enqueue(plain, 0);
    const [lease] = await hf.lease();
    await clock.advance("3s");
    await lease!.done({ sent: 1 });
    expect(await hf.jobs.get(id)).toMatchObject({
      state: "done",
      output: { sent: 1 },
      attempt: 1,
      error: null,
      endedAt: new Date(clock.now()),
      leaseUntil: null,
    });
    expect([await count("ready"), await count("claim"), await count("history")]).toEqual([0, 0, 1]);
  });

  test("[D1] a done job of a kind that is not kept leaves nothing behind, and a dead one does", async () => {
    const { hf, count, fresh } = await client(target);
    const fleeting = defineJob({ name: "fleeting", keep: false });
    const done = await hf.enqueue(fleeting, "secret");
    await (await hf.lease())[0]!.done(1);
    expect(await hf.jobs.get(done.id)).toBeNull();
    expect([await count("ready"), await count("history")]).toEqual([0, 0]);
    // On Postgres its id stays for an hour, so that an enqueue which is sent again does not run it again.
    const job = await fresh.query(`select input, context, extras from ${fresh.table("job")}`);
    expect(job).toEqual(target.dialect === "sqlite" ? [] : [{ input: "null", context: null, extras: null }]);
    const dead = await hf.enqueue(fleeting, 0);
    await (await hf.lease())[0]!.dead("no");
    expect(await hf.jobs.get(dead.id)).toMatchObject({ state: "dead" });
  });

  test("[D2] with 3 attempts a failing handler runs 3 times and the job is dead", async () => {
    const { hf, clock } = await client(target);
    let runs = 0;
    const failing = defineJob({
      name: "failing",
      retry: { attempts: 3, backoff: fixed("10s") },
      run: (_input, ctx) => {
        runs += 1;
        throw new Error(`attempt ${ctx.attempt} of ${ctx.maxAttempts}`);
      },
    });
    const worker = hf.work([failing], { queues: { default: 1 }, ...patient });
    const { id } = await hf.enqueue(failing, 0);
    const states: unknown[] = [];
    for (let n = 0; n < 5; n++) {
      await worker.idle();
      states.push((await hf.jobs.get(id))?.state);
      await clock.advance("10s");
    }
    expect(states).toEqual(["scheduled", "scheduled", "dead", "dead", "dead"]);
    expect(runs).toBe(3);
    expect(await hf.jobs.get(id)).toMatchObject({ attempt: 3, error: "attempt 3 of 3" });
  });

  test("[D2] the limit in the row wins over the definition's, also when it changes while the job runs its course", async () => {
    const { hf, fresh, clock } = await client(target);
    const failing = defineJob({
      name: "failing",
      retry: { attempts: 5, backoff: immediately() },
      run: () => {
        throw new Error("no");
      },
    });
    const two = await hf.enqueue(failing, 0, { attempts: 2 });
    const edited = await hf.enqueue(failing, 0, { delay: "1m" });
    const worker = hf.work([failing], { queues: { default: 2 }, ...patient });
    await worker.idle();
    expect(await hf.jobs.get(two.id)).toMatchObject({ state: "dead", attempt: 2, maxAttempts: 2 });
    await fresh.query(`update ${fresh.table("job")} set max_attempts = 1 where id = ?`, [edited.id]);
    await clock.advance("1m");
    await worker.idle();
    expect(await hf.jobs.get(edited.id)).toMatchObject({ state: "dead", attempt: 1 });
  });

  test("[D3] a handler that throws Dead ends its job at once", async () => {
    const { hf, clock } = await client(target);
    let runs = 0;
    const hopeless = defineJob({
      name: "hopeless",
      run: () => {
        runs += 1;
        throw new Dead("the mailbox is gone");
      },
    });
    const worker = hf.work([hopeless], { queues: { default: 1 }, ...patient });
    const { id } = await hf.enqueue(hopeless, 0);
    await worker.idle();
    await clock.advance("10m");
    await worker.idle();
    expect(await hf.jobs.get(id)).toMatchObject({ state: "dead", attempt: 1, error: "the mailbox is gone" });
    expect(runs).toBe(1);
  });

  test("[D4] Throttled schedules the job by its hint, gives the attempt back and counts apart", async () => {
    const { hf, clock, rows } = await client(target);
    const attempts: number[] = [];
    const busy = defineJob({
      name: "busy",
      retry: { attempts: 1 },
      run: (_input, ctx) => {
        attempts.push(ctx.attempt);
        throw new Throttled("5s");
      },
    });
    const worker = hf.work([busy], { queues: { default: 1 }, ...patient });
    const { id } = await hf.enqueue(busy, 0);
    await worker.idle();
    expect(await hf.jobs.get(id)).toMatchObject({
      state: "scheduled",
      attempt: 0,
      runAt: new Date(clock.now() + 5_000),
    });
    await clock.advance("5s");
    await worker.idle();
    expect(attempts).toEqual([1, 1]);
    expect(await rows("ready")).toMatchObject([{ throttles: 2, attempt: 0, token: null, session: null }]);
  });

  test("[D4] Throttled without a hint waits for the backoff", async () => {
    const { hf, clock } = await client(target);
    const { id } = await hf.enqueue(plain, 0, { backoff: fixed("42s") });
    await (await hf.lease())[0]!.fail(new Throttled());
    expect((await hf.jobs.get(id))?.runAt).toEqual(new Date(clock.now() + 42_000));
  });

  test("[D4] Throttled cools the queue down only where the queue is set to", async () => {
    const { hf, clock } = await client(target);
    await hf.queues.set("cool", { cooldown: { base: "10s", max: "1m" } });
    for (const queue of ["cool", "warm"]) for (const n of [1, 2]) await hf.enqueue(plain, n, { queue });
    for (const lease of await hf.lease({ queues: ["cool"], limit: 1 })) await lease.throttle("1s");
    for (const lease of await hf.lease({ queues: ["warm"], limit: 1 })) await lease.throttle("1s");
    expect(await hf.lease({ queues: ["cool"] })).toEqual([]);
    expect(await hf.lease({ queues: ["warm"] })).toHaveLength(1);
    const cool = (await hf.queues.list()).find(({ name }) => name === "cool");
    expect(cool?.coolUntil).toEqual(new Date(clock.now() + 10_000));
  });

  test("[D4] several throttles of one window cool the queue down by one step, and the next window by the next", async () => {
    const { hf, clock } = await client(target);
    await hf.queues.set("cool", { cooldown: { base: "10s", max: "1m" } });
    for (let n = 0; n < 8; n++) await hf.enqueue(plain, n, { queue: "cool" });
    const throttle = async (): Promise<number> => {
      const leases = await hf.lease({ queues: ["cool"], limit: 8 });
      await Promise.all(leases.map((lease) => lease.throttle("1s")));
      const [queue] = await hf.queues.list();
      const ms = queue!.coolUntil!.getTime() - clock.now();
      await clock.advance(ms);
      return ms;
    };
    expect([await throttle(), await throttle(), await throttle(), await throttle()]).toEqual([
      10_000, 20_000, 40_000, 60_000,
    ]);
    await clock.advance("2m");
    expect(await throttle(), "quiet for two minutes").toBe(10_000);
  });

  test("[D5] a released job is ready at once with its attempt given back", async () => {
    const { hf, clock } = await client(target);
    const { id } = await hf.enqueue(plain, 0);
    const runAt = new Date(clock.now());
    for (let n = 0; n < 3; n++) {
      await clock.advance("1s");
      const [lease] = await hf.lease();
      expect(lease!.attempt).toBe(1);
      await lease!.release();
      expect(await hf.jobs.get(id)).toMatchObject({
        state: "ready",
        attempt: 0,
        errors: [],
        runAt,
      });
    }
  });

  test("[D5] a release with a delay is due after it", async () => {
    const { hf, clock } = await client(target);
    const { id } = await hf.enqueue(plain, 0);
    await (await hf.lease())[0]!.release({ delay: "7s" });
    expect(await hf.jobs.get(id)).toMatchObject({
      state: "scheduled",
      attempt: 0,
      runAt: new Date(clock.now() + 7_000),
    });
    await clock.advance(6_999);
    expect(await hf.lease()).toEqual([]);
    await clock.advance(1);
    expect(await hf.lease()).toHaveLength(1);
  });

  test("[D5] a handler that throws Release runs again without having used an attempt", async () => {
    const { hf, clock } = await client(target);
    const seen: number[] = [];
    const job = defineJob({
      name: "released",
      retry: { attempts: 1 },
      run: (_input, ctx) => {
        seen.push(ctx.attempt);
        if (seen.length < 3) throw new Release();
      },
    });
    const worker = hf.work([job], { queues: { default: 1 }, ...patient });
    const { id } = await hf.enqueue(job, 0);
    await worker.idle();
    expect(seen, "at once after the first release, not after the second").toEqual([1, 1]);
    await clock.advance("1s");
    await worker.idle();
    expect(seen).toEqual([1, 1, 1]);
    expect(await hf.jobs.get(id)).toMatchObject({ state: "done", attempt: 1 });
  });

  test("[D5] a release at attempt 0 stays at 0", async () => {
    const { hf, store } = await client(target);
    const { id } = await hf.enqueue(plain, 0);
    const session = await store.sessions.open({
      kind: "lease",
      workerId: "w",
      name: "w",
      host: "h",
      pid: 1,
      queues: {},
      names: [],
      leaseMs: 60_000,
      version: "0",
    });
    const scope = { queues: "all", names: "all", limit: 1, order: "highest-first" } as const;
    const [job] = await store.claims.claim(session, scope, { levels: new Map(), rescannedAt: -Infinity });
    const released = (attempt: number): number =>
      decide(
        { ...job!, attempt },
        { kind: "released", delayMs: 0, reason: null },
        policyFor(job!, null, null),
        { now: () => 0, random: steady },
      ).attempt;
    expect([released(0), released(1), released(2)]).toEqual([0, 0, 1]);
    const transition = decide(
      { ...job!, attempt: 0 },
      { kind: "released", delayMs: 0, reason: null },
      policyFor(job!, null, null),
      { now: () => 0, random: steady },
    );
    expect(await store.settles.settle(session, [transition], [job!.token])).toEqual(new Set([id]));
    expect(await hf.jobs.get(id)).toMatchObject({ state: "ready", attempt: 0 });
  });

  test("[D10] the default backoff is 60, 120, 240, 480, 960, 1920, 3600 s", async () => {
    const opened = await client(target);
    const { id } = await opened.hf.enqueue("any", 0, { attempts: 100 });
    expect(await delaysOf(opened, id, 8)).toEqual([60, 120, 240, 480, 960, 1920, 3600, 3600]);
  });

  test("[D10] attempts 0 and −5 wait like the first, attempt 1e6 as long as the cap", () => {
    const delay = (attempt: number): number => backoffMs(DEFAULT_BACKOFF, attempt, steady) / 1_000;
    expect([0, -5, 1, 7, 1e6].map(delay)).toEqual([60, 60, 60, 3600, 3600]);
  });

  test.each<[string, Backoff, number[]]>([
    ["exponential", exponential("2s", { max: "20s", factor: 3, jitter: 0 }), [2, 6, 18, 20, 20]],
    ["2^n", power(), [2, 4, 8, 16, 32]],
    ["fixed", fixed("9s"), [9, 9, 9, 9, 9]],
    ["off", immediately(), [0, 0, 0, 0, 0]],
  ])("[D10] a job's own backoff is kept with it: %s", async (_, backoff, delays) => {
    const opened = await client(target);
    const { id } = await opened.hf.enqueue("any", 0, { attempts: 100, backoff });
    expect(await delaysOf(opened, id, 5)).toEqual(delays);
  });

  test("[D10] the job's backoff wins over the kind's, the kind's over the queue's, the queue's over the default", async () => {
    const opened = await client(target);
    const { hf } = opened;
    const kind = defineJob({ name: "kind", retry: { backoff: fixed("2s") } });
    await hf.queues.set("set", { backoff: fixed("3s") });
    const delay = async (
      name: string | typeof kind,
      options: { queue: string; backoff?: Backoff },
    ): Promise<number> => {
      const { id } = await hf.enqueue(name as "kind", 0, options);
      const [seconds] = await delaysOf(opened, id, 1);
      await hf.jobs.delete(id);
      return seconds!;
    };
    expect(await delay(kind, { queue: "set", backoff: fixed("1s") })).toBe(1);
    expect(await delay(kind, { queue: "set" })).toBe(2);
    expect(await delay("other", { queue: "set" })).toBe(3);
    expect(await delay("other", { queue: "unset" })).toBe(60);
  });

  test("[D10] a worker applies the queue's backoff, and a kind's own function of the attempt", async () => {
    const { hf, clock } = await client(target);
    const boom = (): never => {
      throw new Error("no");
    };
    const plainKind = defineJob({ name: "plain-kind", run: boom });
    const custom = defineJob({
      name: "custom",
      retry: { backoff: (attempt) => `${attempt * 7}s` },
      run: boom,
    });
    await hf.queues.set("default", { backoff: fixed("11s") });
    const worker = hf.work([plainKind, custom], { queues: { default: 2 }, ...patient });
    await worker.ready;
    const first = await hf.enqueue(plainKind, 0);
    const second = await hf.enqueue(custom, 0);
    await worker.idle();
    const wait = async (id: string): Promise<number> =>
      (await hf.jobs.get(id))!.runAt!.getTime() - clock.now();
    expect([await wait(first.id), await wait(second.id)]).toEqual([11_000, 7_000]);
    await clock.advance("7s");
    await worker.idle();
    expect(await wait(second.id)).toBe(14_000);
  });

  test("[D10] RetryAfter sets this one delay, by duration or by instant, and uses the attempt", async () => {
    const opened = await client(target);
    const { hf, clock } = opened;
    const { id } = await hf.enqueue("any", 0);
    await (await hf.lease())[0]!.fail(new RetryAfter("5s", "closed"));
    expect(await hf.jobs.get(id)).toMatchObject({
      attempt: 1,
      error: "closed",
      runAt: new Date(clock.now() + 5_000),
    });
    await clock.advance("5s");
    const at = new Date(clock.now() + 90_000);
    await (await hf.lease())[0]!.fail(new RetryAfter(at));
    expect(await hf.jobs.get(id)).toMatchObject({ attempt: 2, runAt: at });
    await clock.advance("90s");
    expect(await delaysOf(opened, id, 1), "the third failure waits as the third does").toEqual([240]);
  });

  test("[D10] 1,000 delays lie within ± 20 % and are not all equal", async () => {
    const { hf, clock } = await client(target, { random: Math.random });
    await hf.enqueueMany(Array.from({ length: 1_000 }, (_, n) => ({ job: plain, input: n })));
    const leases = await hf.lease({ limit: 1_000 });
    await Promise.all(leases.map((lease) => lease.fail(new Error("no"))));
    const delays = (await hf.jobs.list({ limit: 1_000 })).jobs.map(
      (job) => job.runAt!.getTime() - clock.now(),
    );
    expect(delays).toHaveLength(1_000);
    expect(Math.min(...delays)).toBeGreaterThanOrEqual(48_000);
    expect(Math.max(...delays)).toBeLessThanOrEqual(72_000);
    expect(new Set(delays).size).toBeGreaterThan(100);
    expect(Math.max(...delays) - Math.min(...delays), "the spread is used").toBeGreaterThan(12_000);
  });

  test("[D11] a queue's knobs are 60 s and 1,800 s by default, and clamped to 1 s … 1 day", async () => {
    const { hf } = await client(target);
    await hf.queues.set("plain", { backoff: {} });
    await hf.queues.set("low", { backoff: { base: 0, max: 0 } });
    await hf.queues.set("high", { backoff: { base: "1000000000s", max: "1000000000s" } });
    const knobs = Object.fromEntries(
      (await hf.queues.list()).map(({ name, settings }) => [name, settings.backoff]),
    );
    expect(knobs).toMatchObject({
      plain: { baseMs: 60_000, maxMs: 1_800_000 },
      low: { baseMs: 1_000, maxMs: 1_000 },
      high: { baseMs: 86_400_000, maxMs: 86_400_000 },
    });
  });

  test("[D11] a queue's knobs give the delays, and null gives the default back", async () => {
    const opened = await client(target);
    const { hf } = opened;
    await hf.queues.set("default", { backoff: { base: "600s" } });
    const first = await hf.enqueue("any", 0);
    expect(await delaysOf(opened, first.id, 3)).toEqual([600, 1200, 1800]);
    await hf.jobs.delete(first.id);
    await hf.queues.set("default", { backoff: null });
    const second = await hf.enqueue("any", 0);
    expect(await delaysOf(opened, second.id, 1), "backoff is on by default").toEqual([60]);
  });

  test("[D12] the latest error is on the job after every failure, also while it waits for its retry", async () => {
    const { hf, clock } = await client(target);
    const { id } = await hf.enqueue("any", 0);
    await (await hf.lease())[0]!.fail(new Error("first"));
    expect(await hf.jobs.get(id)).toMatchObject({
      state: "scheduled",
      error: "first",
      errors: [
        {
          attempt: 1,
          message: "first",
          at: new Date(clock.now()),
          stack: expect.stringContaining("first") as string,
        },
      ],
    });
    await clock.advance("1h");
    await (await hf.lease())[0]!.fail("second");
    expect(await hf.jobs.get(id)).toMatchObject({
      error: "second",
      errors: [
        { attempt: 1, message: "first" },
        { attempt: 2, message: "second", stack: null, at: new Date(clock.now()) },
      ],
    });
    await clock.advance("1h");
    const [lease] = await hf.lease();
    await lease!.done();
    expect((await hf.jobs.get(id))?.errors, "and stays in the history of a job that came good").toHaveLength(
      2,
    );
  });

  test("[D12] of 40 failures the newest 32 are kept", async () => {
    const { hf } = await client(target);
    const failing = defineJob({
      name: "failing",
      retry: { attempts: 40, backoff: immediately() },
      run: (_input, ctx) => {
        throw new Error(`failure ${ctx.attempt}`);
      },
    });
    const worker = hf.work([failing], { queues: { default: 1 }, ...patient });
    const { id } = await hf.enqueue(failing, 0);
    await worker.idle();
    const job = await hf.jobs.get(id);
    expect(job).toMatchObject({ state: "dead", attempt: 40, error: "failure 40" });
    expect(job!.errors.map(({ attempt, message }) => [attempt, message])).toEqual(
      Array.from({ length: 32 }, (_, n) => [n + 9, `failure ${n + 9}`]),
    );
  });

  test("[D12] the message is the whole chain of causes", async () => {
    const { hf } = await client(target);
    const { id } = await hf.enqueue("any", 0);
    const root = new Error("root");
    await (await hf.lease())[0]!.fail(new Error("top", { cause: new Error("middle", { cause: root }) }));
    expect((await hf.jobs.get(id))?.error).toBe("top: middle: root");
  });

  test("[D12] NUL, lone surrogates and a 10 MB message harm nothing and come back as far as they are kept", async () => {
    const { hf } = await client(target);
    const { id } = await hf.enqueue("any", "in\u0000put \ud800", { context: "con\u0000text \udfff" });
    const [lease] = await hf.lease();
    expect([lease!.input, lease!.context]).toEqual(["in\u0000put \ud800", "con\u0000text \udfff"]);
    await lease!.fail(new Error("nul \u0000 half \ud800"));
    expect((await hf.jobs.get(id))?.error).toBe("nul \u0000 half \ud800");
    await hf.jobs.runNow(id);
    await (await hf.lease())[0]!.fail(new Error("x".repeat(10_000_000)));
    expect((await hf.jobs.get(id))!.error!.length).toBeLessThanOrEqual(8 * 1024);
    await hf.jobs.runNow(id);
    await (await hf.lease())[0]!.done("out\u0000put \udc00");
    expect((await hf.jobs.get(id))?.output).toBe("out\u0000put \udc00");
  });
});

test("[D5] no outcome takes the attempt below 0", () => {
  const job = {
    attempt: 0,
    crashes: 0,
    errors: null,
    extras: null,
    cancelReason: null,
    maxAttempts: null,
  } as unknown as ClaimedJob;
  const policy = policyFor(job, null, null);
  for (const outcome of [
    { kind: "released", delayMs: 0, reason: null },
    { kind: "throttled", delayMs: 0, reason: "" },
    { kind: "lost" },
  ] as const) {
    expect([outcome.kind, decide(job, outcome, policy, { now: () => 0, random: steady }).attempt]).toEqual([
      outcome.kind,
      0,
    ]);
  }
});
