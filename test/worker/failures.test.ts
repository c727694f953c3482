// Outcomes, second part: handlers that misbehave, dead jobs and their return, a database that
// fails while an outcome is written (promises D13 to D18).
import { expect, test } from "vitest";
import { defineJob, fixed, immediately } from "holdfast";
import { StoreError } from "../../src/errors.ts";
import { DEFAULT_TIMEOUT_MS } from "../../src/jobs/define-job.ts";
import { onEveryStore } from "../support/stores.ts";
import { advanceUntil, client, patient, type TestClient } from "../support/client.ts";

const plain = defineJob({ name: "plain", run: () => null });

/** A job that ended dead, under a key if one is given. */
async function deadJob(
  { hf }: TestClient,
  input: unknown,
  options: { key?: string; queue?: string; attempts?: number } = {},
): Promise<string> {
  const { id } = await hf.enqueue(plain, input as never, options);
  const [lease] = await hf.lease();
  expect(lease?.id).toBe(id);
  await lease!.dead("no");
  return id;
}

onEveryStore((target) => {
  test.each<[string, () => unknown]>([
    [
      "throws",
      () => {
        throw new Error("bad");
      },
    ],
    ["rejects", () => Promise.reject(new Error("bad"))],
    [
      "rejects later",
      async () => {
        await new Promise(setImmediate);
        throw new Error("bad");
      },
    ],
    [
      "throws what is no error",
      () => {
        // oxlint-disable-next-line typescript/only-throw-error
        throw "bad";
      },
    ],
    // oxlint-disable-next-line unicorn/no-thenable -- that is what this one is about
    ["gives a thenable that throws", () => ({ then: () => JSON.parse("bad") as never })],
  ])("[D13] a handler that %s has failed its attempt", async (_, run) => {
    const { hf } = await client(target);
    const failing = defineJob({ name: "failing", run });
    const worker = hf.work([failing, plain], { queues: { default: 2 }, ...patient });
    const failed = await hf.enqueue(failing, 0);
    const fine = await hf.enqueue(plain, 0);
    await worker.idle();
    expect(await hf.jobs.get(failed.id)).toMatchObject({
      state: "scheduled",
      attempt: 1,
      error: expect.stringContaining("bad") as string,
    });
    expect(await hf.jobs.get(fine.id)).toMatchObject({ state: "done" });
  });

  test("[D13] 100 throwing handlers leave the worker with all its slots and no timer more", async () => {
    const { hf, clock } = await client(target);
    const failing = defineJob({
      name: "failing",
      retry: { attempts: 1 },
      timeout: "1m",
      run: (_: number, ctx) => {
        ctx.signal.addEventListener("abort", () => {});
        throw new Error("no");
      },
    });
    const gate = Promise.withResolvers<void>();
    let most = 0;
    const three = defineJob({
      name: "three",
      run: async () => {
        most = Math.max(most, worker.running);
        if (worker.running === 3) gate.resolve();
        await gate.promise;
      },
    });
    const worker = hf.work([failing, three], { queues: { default: 3 }, ...patient });
    await worker.ready;
    await worker.idle();
    const before = clock.pending;
    await hf.enqueueMany(Array.from({ length: 100 }, (_, n) => ({ job: failing, input: n })));
    await worker.idle();
    // The worker's own few timers come and go; one left behind by each attempt would be a hundred.
    expect(clock.pending).toBeLessThan(before + 10);
    expect([worker.running, worker.runaways]).toEqual([0, 0]);
    expect(await hf.jobs.count({ state: "dead" })).toBe(100);
    await hf.enqueueMany([1, 2, 3].map((input) => ({ job: three, input })));
    await worker.idle();
    expect(most).toBe(3);
  });

  test("[D14] a hung handler is told at its timeout, and a second later its job has failed and its slot is free", async () => {
    const { hf, clock } = await client(target);
    const started = Promise.withResolvers<AbortSignal>();
    const failed = Promise.withResolvers<string>();
    hf.on("job.failed", ({ error }) => failed.resolve(error));
    const hung = defineJob({
      name: "hung",
      timeout: "10s",
      run: (_input, ctx) => {
        started.resolve(ctx.signal);
        return new Promise(() => {});
      },
    });
    const worker = hf.work([hung, plain], { queues: { default: 1 }, ...patient });
    const { id } = await hf.enqueue(hung, 0);
    const signal = await started.promise;
    const next = await hf.enqueue(plain, 0);
    await clock.advance(9_999);
    expect(signal.aborted).toBe(false);
    await clock.advance(1);
    expect(signal.aborted).toBe(true);
    expect(worker.running).toBe(1);
    await clock.advance("1s");
    expect(await failed.promise).toMatch(/timeout after 10 ?s/);
    await worker.idle();
    expect(await hf.jobs.get(id)).toMatchObject({ state: "scheduled", attempt: 1 });
    expect(await hf.jobs.get(next.id), "its slot serves the next job").toMatchObject({ state: "done" });
    expect(worker.runaways).toBe(1);
  });

  test("[D14] a handler that heeds its signal fails by the timeout, and one that returns after it too", async () => {
    const { hf, clock } = await client(target);
    const both = Promise.withResolvers<void>();
    let running = 0;
    const heeding = defineJob({
      name: "heeding",
      timeout: "10s",
      run: (how: string, ctx) =>
        new Promise((resolve, reject) => {
          ctx.signal.addEventListener("abort", () =>
            how === "returns" ? resolve("late") : reject(ctx.signal.reason as Error),
          );
          if (++running === 2) both.resolve();
        }),
    });
    const worker = hf.work([heeding], { queues: { default: 2 }, ...patient });
    const jobs = [await hf.enqueue(heeding, "throws"), await hf.enqueue(heeding, "returns")];
    await both.promise;
    await clock.advance("10s");
    await worker.idle();
    for (const { id } of jobs) {
      expect(await hf.jobs.get(id)).toMatchObject({
        state: "scheduled",
        attempt: 1,
        error: expect.stringMatching(/timeout after 10 ?s/) as string,
      });
    }
    expect(worker.runaways).toBe(0);
  });

  test("[D14] the job's own timeout wins over the kind's, which is 600 s by default", async () => {
    const { hf, clock } = await client(target);
    expect([plain.timeoutMs, DEFAULT_TIMEOUT_MS]).toEqual([600_000, 600_000]);
    const signals = new Map<number, AbortSignal>();
    const both = Promise.withResolvers<void>();
    const hung = defineJob({
      name: "hung",
      retry: { attempts: 1 },
      run: (seconds: number, ctx) => {
        signals.set(seconds, ctx.signal);
        if (signals.size === 2) both.resolve();
        return new Promise((_, reject) =>
          ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason as Error)),
        );
      },
    });
    const worker = hf.work([hung], { queues: { default: 2 }, ...patient });
    await hf.enqueue(hung, 5, { timeout: "5s" });
    await hf.enqueue(hung, 600);
    await both.promise;
    const aborted = (): boolean[] => [5, 600].map((seconds) => signals.get(seconds)!.aborted);
    await clock.advance("5s");
    expect(aborted()).toEqual([true, false]);
    await clock.advance(594_999);
    expect(aborted()).toEqual([true, false]);
    await clock.advance(1);
    expect(aborted()).toEqual([true, true]);
    await worker.stop({ timeout: 0 });
  });

  test("[D15] a dead job keeps id, input, context, priority, errors, creation and the instant of its end", async () => {
    const { hf, clock } = await client(target);
    const createdAt = new Date(clock.now());
    const { id } = await hf.enqueue(plain, { a: 1 } as never, {
      context: "why",
      priority: 3,
      attempts: 2,
      queue: "mail",
      backoff: immediately(),
    });
    await (await hf.lease())[0]!.fail(new Error("one"));
    await clock.advance("1m");
    await (await hf.lease())[0]!.fail(new Error("two"));
    expect(await hf.jobs.get(id)).toMatchObject({
      id,
      name: "plain",
      queue: "mail",
      state: "dead",
      input: { a: 1 },
      context: "why",
      priority: 3,
      attempt: 2,
      error: "two",
      errors: [{ message: "one" }, { message: "two" }],
      createdAt,
      endedAt: new Date(clock.now()),
    });
    expect((await hf.jobs.list({ state: "dead" })).jobs.map((job) => job.id)).toEqual([id]);
  });

  test("[D15] whoever has lost the lease cannot make the job dead", async () => {
    const { hf, clock, count } = await client(target);
    const { id } = await hf.enqueue(plain, 0);
    const [stale] = await hf.lease({ for: "10s" });
    await clock.advance("10s");
    const [holder] = await hf.lease({ for: "1h" });
    await expect(stale!.dead("mine")).rejects.toMatchObject({ code: "LEASE_LOST" });
    expect(await count("history")).toBe(0);
    expect(await hf.jobs.get(id)).toMatchObject({ state: "running", attempt: 1 });
    await holder!.done();
    await expect(stale!.dead("mine")).rejects.toMatchObject({ code: "LEASE_LOST" });
    expect(await hf.jobs.get(id)).toMatchObject({ state: "done" });
  });

  test("[D15] a lease that has passed unnoticed cannot make the job dead either", async () => {
    const { hf, clock, rows } = await client(target);
    await hf.enqueue(plain, 0);
    const [stale] = await hf.lease({ for: "10s" });
    await clock.advance("10s");
    await expect(stale!.dead("mine")).rejects.toMatchObject({ code: "LEASE_LOST" });
    expect(await rows("history")).toEqual([]);
    expect(await rows("ready")).toHaveLength(1);
  });

  test("[D16] a dead job that is retried is ready with all its attempts, keeps its errors, and wakes a worker", async () => {
    const { hf } = await client(target);
    let broken = true;
    const ran: number[] = [];
    const fixable = defineJob({
      name: "fixable",
      retry: { attempts: 2, backoff: immediately() },
      run: (_: number, ctx) => {
        ran.push(ctx.attempt);
        if (broken) throw new Error("broken");
      },
    });
    const worker = hf.work([fixable], { queues: { default: 1 }, ...patient });
    const { id } = await hf.enqueue(fixable, 0);
    await worker.idle();
    expect(await hf.jobs.get(id)).toMatchObject({ state: "dead", attempt: 2 });
    broken = false;
    const done = new Promise((resolve) => hf.on("job.done", resolve));
    expect(await hf.jobs.retry(id)).toBe("retried");
    await done; // nobody asked the worker to look: it was woken
    expect(ran).toEqual([1, 2, 1]);
    await worker.idle();
    const job = await hf.jobs.get(id);
    expect(job).toMatchObject({ state: "done", attempt: 1 });
    expect(job!.errors).toHaveLength(2);
  });

  test("[D16] jobs are retried by filter, and what has not ended or is unknown is said", async () => {
    const opened = await client(target);
    const { hf } = opened;
    const dead = [await deadJob(opened, 1, { queue: "a" }), await deadJob(opened, 2, { queue: "a" })];
    const elsewhere = await deadJob(opened, 3, { queue: "b" });
    const live = await hf.enqueue(plain, 4 as never, { queue: "a", delay: "1h" });
    expect(await hf.jobs.retry({ queue: "a" })).toMatchObject({ matched: 2, retried: 2 });
    for (const id of dead)
      expect(await hf.jobs.get(id)).toMatchObject({ state: "ready", attempt: 0, endedAt: null });
    expect(await hf.jobs.get(elsewhere)).toMatchObject({ state: "dead" });
    expect(await hf.jobs.retry(live.id)).toBe("not_ended");
    expect(await hf.jobs.retry("00000000-0000-7000-8000-000000000000")).toBe("not_found");
    expect(await hf.jobs.retry({ ids: [elsewhere] })).toMatchObject({ matched: 1, retried: 1 });
    expect(await hf.jobs.count({ state: "dead" })).toBe(0);
  });

  test("[D16] done and cancelled jobs come back when they are asked for by state", async () => {
    const { hf } = await client(target);
    const cancelled = await hf.enqueue(plain, 0);
    await hf.jobs.cancel(cancelled.id);
    expect(await hf.jobs.retry({ queue: "default" }), "without a state only dead ones").toMatchObject({
      matched: 0,
    });
    expect(await hf.jobs.retry({ state: "cancelled" })).toMatchObject({ retried: 1 });
    expect(await hf.jobs.get(cancelled.id)).toMatchObject({ state: "ready" });
  });

  test("[D16] of three dead jobs with one key the newest comes back, and the others stay dead", async () => {
    const opened = await client(target);
    const three: string[] = [];
    for (let n = 0; n < 3; n++) three.push(await deadJob(opened, n, { key: "k" }));
    const other = await deadJob(opened, 9, { key: "other" });
    expect(await opened.hf.jobs.retry({ state: "dead" })).toEqual({
      matched: 4,
      retried: 2,
      superseded: 2,
      not_ended: 0,
      not_found: 0,
    });
    const states = await Promise.all([...three, other].map((id) => opened.hf.jobs.get(id)));
    expect(states.map((job) => job?.state)).toEqual(["dead", "dead", "ready", "ready"]);
  });

  test("[D16] the newest of a key comes back also when its siblings are hundreds of jobs away", async () => {
    const opened = await client(target);
    const { hf } = opened;
    const oldest = await deadJob(opened, 0, { key: "k" });
    await hf.enqueueMany(Array.from({ length: 700 }, (_, n) => ({ job: plain, input: n as never })));
    await Promise.all((await hf.lease({ limit: 1_000 })).map((lease) => lease.dead("no")));
    const newest = await deadJob(opened, 1, { key: "k" });
    expect(await hf.jobs.retry({ state: "dead" })).toMatchObject({
      matched: 702,
      retried: 701,
      superseded: 1,
    });
    expect(await hf.jobs.get(newest)).toMatchObject({ state: "ready" });
    expect(await hf.jobs.get(oldest)).toMatchObject({ state: "dead" });
  });

  test("[D16] a dead job whose key is held by an active one stays dead", async () => {
    const opened = await client(target);
    const { hf, count } = opened;
    const dead = await deadJob(opened, 1, { key: "k" });
    const active = await hf.enqueue(plain, 2 as never, { key: "k", delay: "1h" });
    expect(active.status).toBe("enqueued");
    expect(await hf.jobs.retry(dead)).toBe("superseded");
    expect(await hf.jobs.get(dead)).toMatchObject({ state: "dead" });
    expect(await hf.jobs.get(active.id)).toMatchObject({ state: "scheduled" });
    expect(await count("unique_key")).toBe(1);
  });

  test("[D16] a job that came back holds its key again", async () => {
    const opened = await client(target);
    const dead = await deadJob(opened, 1, { key: "k" });
    await opened.hf.jobs.retry(dead);
    expect(await opened.hf.enqueue(plain, 2 as never, { key: "k" })).toEqual({
      status: "duplicate",
      id: dead,
    });
  });

  test("[D17] jobs that an active sibling supersedes leave the claim loop idle", async () => {
    const opened = await client(target);
    const { hf, clock, store } = opened;
    for (let n = 0; n < 5; n++) await deadJob(opened, n, { key: "k" });
    await hf.enqueue(plain, 9 as never, { key: "k", delay: "1h" });
    const worker = hf.work([plain], { queues: { default: 2 }, ...patient });
    await worker.ready;
    await worker.idle();
    expect(await hf.jobs.retry({ state: "dead" })).toMatchObject({ retried: 0, superseded: 5 });
    await worker.idle();
    const before = claims(store);
    await clock.advance("10m");
    expect(claims(store) - before, "once for each refresh of the settings, every 30 s").toBeLessThanOrEqual(
      22,
    );
  });

  test("[D17] rows that look due and can never run do not make the claim loop spin", async () => {
    const { hf, clock, store, fresh } = await client(target);
    await hf.enqueueMany([1, 2, 3].map((input) => ({ job: plain, input: input as never })));
    await fresh.query(`delete from ${fresh.table("job")}`);
    const worker = hf.work([plain], { queues: { default: 2 }, ...patient });
    await worker.ready;
    await worker.idle();
    const before = claims(store);
    await clock.advance("1m");
    expect(claims(store) - before, "at most twice a second").toBeLessThanOrEqual(120);
    const later = await hf.enqueue(plain, 4 as never);
    await worker.idle();
    expect(await hf.jobs.get(later.id), "and do not stop the others").toMatchObject({ state: "done" });
  });

  test("[D18] an outcome is written after two lost connections, and the handler has run once", async () => {
    const { hf, store, clock, faults } = await client(target);
    let runs = 0;
    let calls = 0;
    const once = defineJob({ name: "once", run: () => ++runs });
    faults["settles.settle"] = (...given) => {
      calls += 1;
      return calls <= 2
        ? Promise.reject(new StoreError("CONNECTION_LOST", "gone"))
        : store.settles.settle(...given);
    };
    const worker = hf.work([once], { queues: { default: 1 }, ...patient });
    const { id } = await hf.enqueue(once, 0);
    await advanceUntil(clock, worker.idle());
    expect([runs, calls]).toEqual([1, 3]);
    expect(await hf.jobs.get(id)).toMatchObject({ state: "done", output: 1, attempt: 1 });
  });

  test("[D18] an outcome whose first writing succeeded without an answer is not taken for lost", async () => {
    const { hf, store, clock, faults } = await client(target);
    const lost: unknown[] = [];
    const done: unknown[] = [];
    hf.on("lease.lost", (event) => lost.push(event));
    hf.on("job.done", (event) => done.push(event));
    let calls = 0;
    faults["settles.settle"] = async (...given) => {
      const moved = await store.settles.settle(...given);
      if (++calls === 1) throw new StoreError("CONNECTION_LOST", "no answer");
      return moved;
    };
    const worker = hf.work([plain], { queues: { default: 2 }, ...patient });
    const two = await hf.enqueueMany([1, 2].map((input) => ({ job: plain, input: input as never })));
    await advanceUntil(clock, worker.idle());
    expect(calls).toBeGreaterThanOrEqual(2);
    expect([lost.length, done.length, worker.leasesLost]).toEqual([0, 2, 0]);
    for (const { id } of two) expect(await hf.jobs.get(id)).toMatchObject({ state: "done", attempt: 1 });
  });

  test("[D18] a lease's settle is tried again too", async () => {
    const { hf, store, clock, faults } = await client(target);
    const { id } = await hf.enqueue(plain, 0, { backoff: fixed("1m") });
    let calls = 0;
    faults["settles.settle"] = (...given) =>
      ++calls <= 2
        ? Promise.reject(new StoreError("DATABASE_BUSY", "locked"))
        : store.settles.settle(...given);
    const [lease] = await hf.lease({ for: "1h" });
    await advanceUntil(clock, lease!.done("out"));
    expect(calls).toBe(3);
    expect(await hf.jobs.get(id)).toMatchObject({ state: "done", output: "out" });
  });
});

function claims(store: TestClient["store"]): number {
  return (store.counters.byName.get("claim") ?? 0) + (store.counters.byName.get("sweep") ?? 0);
}
