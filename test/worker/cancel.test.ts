// Cancelling and deleting, and the handler's context (promises E1 to E4).
import { expect, expectTypeOf, test } from "vitest";
import { defineJob, type Enqueue, type EnqueueMany, type JobContext, type Logger } from "holdfast";
import { systemClock } from "../../src/clock.ts";
import { spawnNode } from "../support/process.ts";
import { onEveryStore } from "../support/stores.ts";
import { client, patient, type TestClient } from "../support/client.ts";

const plain = defineJob({ name: "plain", run: () => null });
const nobody = "00000000-0000-7000-8000-000000000000";

/** A job that runs until it is told to stop; then `atAbort` says how it ends. */
async function runningJob(
  { hf }: TestClient,
  atAbort: (reason: unknown) => unknown,
): Promise<{ id: string; signal: AbortSignal; idle: () => Promise<void>; runs: () => number }> {
  const started = Promise.withResolvers<AbortSignal>();
  let runs = 0;
  const waiting = defineJob({
    name: "waiting",
    run: (_input, ctx) =>
      new Promise((resolve) => {
        runs += 1;
        ctx.signal.addEventListener("abort", () => {
          // oxlint-disable-next-line promise/no-multiple-resolved
          resolve((async () => atAbort(ctx.signal.reason))());
        });
        started.resolve(ctx.signal);
      }),
  });
  const worker = hf.work([waiting], { queues: { default: 1 }, ...patient });
  const { id } = await hf.enqueue(waiting, 0);
  return { id, signal: await started.promise, idle: () => worker.idle(), runs: () => runs };
}

const giveUp = (reason: unknown): never => {
  throw reason as Error;
};

onEveryStore((target) => {
  test("[E1] cancel says cancelled, cancel_requested, ended or not_found", async () => {
    const { hf, clock } = await client(target);
    const queued = await hf.enqueue(plain, 0);
    const scheduled = await hf.enqueue(plain, 0, { delay: "1h" });
    for (const { id } of [queued, scheduled]) {
      expect(await hf.jobs.cancel(id)).toBe("cancelled");
      expect(await hf.jobs.get(id)).toMatchObject({
        state: "cancelled",
        attempt: 0,
        error: "cancelled by user",
        endedAt: new Date(clock.now()),
      });
    }
    expect(await hf.jobs.cancel(queued.id)).toBe("ended");
    const running = await hf.enqueue(plain, 0);
    const [lease] = await hf.lease();
    expect(await hf.jobs.cancel(running.id)).toBe("cancel_requested");
    expect(await hf.jobs.get(running.id)).toMatchObject({ state: "running" });
    await lease!.done();
    expect(await hf.jobs.cancel(running.id)).toBe("ended");
    expect(await hf.jobs.cancel(nobody)).toBe("not_found");
    expect(await hf.jobs.cancel("no such id")).toBe("not_found");
  });

  test("[E1] delete says deleted, cancel_requested or not_found, and what is deleted is gone from everywhere", async () => {
    const { hf, count, fresh } = await client(target);
    const queued = await hf.enqueue(plain, 7, { key: "k", context: "why" });
    expect(await hf.jobs.delete(queued.id)).toBe("deleted");
    expect(await hf.jobs.get(queued.id)).toBeNull();
    const running = await hf.enqueue(plain, 0);
    const [lease] = await hf.lease();
    expect(await hf.jobs.delete(running.id)).toBe("cancel_requested");
    expect((await lease!.renew()).cancel).not.toBeNull();
    await lease!.done();
    expect(await hf.jobs.delete(running.id)).toBe("deleted");
    expect(await hf.jobs.delete(running.id)).toBe("not_found");
    expect(await hf.jobs.delete(nobody)).toBe("not_found");
    for (const table of ["ready", "history", "unique_key", "claim"])
      expect([table, await count(table)]).toEqual([table, 0]);
    // On Postgres their ids stay for an hour, and nothing else of them.
    const left = await fresh.query(`select input, key, lane, context, extras from ${fresh.table("job")}`);
    const empty = { input: "null", key: null, lane: null, context: null, extras: null };
    expect(left).toEqual(target.dialect === "sqlite" ? [] : [empty, empty]);
  });

  test("[E1] by filter, cancel and delete count what became of the jobs", async () => {
    const { hf } = await client(target);
    for (let n = 0; n < 3; n++) await hf.enqueue(plain, 0, { queue: "a" });
    await hf.enqueue(plain, 0, { queue: "b" });
    const [lease] = await hf.lease({ queues: ["a"] });
    expect(await hf.jobs.cancel({ queue: "a" })).toMatchObject({
      matched: 3,
      cancelled: 2,
      cancel_requested: 1,
    });
    await lease!.done();
    expect(await hf.jobs.delete({ queue: "a" })).toMatchObject({ matched: 3, deleted: 3 });
    expect(await hf.jobs.count()).toBe(1);
    await expect(hf.jobs.delete({})).rejects.toMatchObject({ code: "BAD_OPTION" });
    await expect(hf.jobs.cancel({ queue: undefined })).rejects.toMatchObject({ code: "BAD_OPTION" });
  });

  test("[E2] a cancel reaches a handler of this process at once, without a heartbeat", async () => {
    const opened = await client(target);
    const { id, signal, idle } = await runningJob(opened, giveUp);
    expect(await opened.hf.jobs.cancel(id)).toBe("cancel_requested");
    expect(signal.aborted, "the clock has not moved").toBe(true);
    await idle();
  });

  test("[E2] a cancel reaches a handler of another process through the database", async () => {
    const { hf, fresh } = await client(target, { clock: systemClock });
    await using child = spawnNode("test/worker/children/cancellable.ts", [
      fresh.url,
      fresh.options.schema ?? "holdfast",
    ]);
    const { id } = await hf.enqueue("cancellable", 0);
    await child.message("running");
    expect(await hf.jobs.cancel(id)).toBe("cancel_requested");
    await child.message("aborted");
    expect(await child.message("cancelled")).toMatchObject({ reason: "cancelled by user" });
    expect(await hf.jobs.get(id)).toMatchObject({ state: "cancelled" });
  });

  test("[E2] where no wake-up arrives, the next heartbeat brings the cancel", async () => {
    const opened = await client(target);
    const { hf, clock, another } = opened;
    const started = Promise.withResolvers<AbortSignal>();
    const waiting = defineJob({
      name: "waiting",
      run: (_input, ctx) => {
        started.resolve(ctx.signal);
        return new Promise((_, reject) =>
          ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason as Error)),
        );
      },
    });
    const worker = hf.work([waiting], { queues: { default: 1 }, lease: "10m", heartbeat: "10s" });
    const { id } = await hf.enqueue(waiting, 0);
    const signal = await started.promise;
    const aborted = new Promise((resolve) => signal.addEventListener("abort", resolve));
    const other = await another();
    other.faults.wake = () => {};
    await other.store.jobs.cancel([id], "cancelled by user");
    await clock.advance("10s");
    await aborted;
    await worker.idle();
    expect(await hf.jobs.get(id)).toMatchObject({ state: "cancelled" });
  });

  test("[E3] a handler that stops for its cancel leaves the job cancelled, without a retry", async () => {
    const opened = await client(target);
    const { hf, clock } = opened;
    const { id, idle, runs } = await runningJob(opened, giveUp);
    await hf.jobs.cancel(id);
    await idle();
    await clock.advance("10m");
    await idle();
    expect(await hf.jobs.get(id)).toMatchObject({
      state: "cancelled",
      error: "cancelled by user",
      attempt: 1,
    });
    expect(runs()).toBe(1);
  });

  test("[E3] a handler that finishes in spite of its cancel has its result kept as done", async () => {
    const opened = await client(target);
    const { id, idle } = await runningJob(opened, () => "finished all the same");
    await opened.hf.jobs.cancel(id);
    await idle();
    expect(await opened.hf.jobs.get(id)).toMatchObject({
      state: "done",
      output: "finished all the same",
      error: null,
    });
  });

  test("[E3] a job whose worker died after its cancel was asked for ends cancelled", async () => {
    const { hf, clock } = await client(target);
    const { id } = await hf.enqueue(plain, 0);
    await hf.lease({ for: "10s" });
    await hf.jobs.cancel(id);
    await clock.advance("10s");
    expect(await hf.lease()).toEqual([]);
    expect(await hf.jobs.get(id)).toMatchObject({ state: "cancelled", error: "cancelled by user" });
  });

  test("[E4] a handler is told who it is, and what it enqueues names it as its parent", async () => {
    const { hf } = await client(target);
    const seen = Promise.withResolvers<Record<string, unknown>>();
    const curious = defineJob({
      name: "curious",
      queue: "mail",
      retry: { attempts: 7 },
      run: async (_input: null, ctx) => {
        const one = await ctx.enqueue(plain, null);
        const many = await ctx.enqueueMany([
          { job: plain, input: null },
          { job: "plain", input: 1 },
        ]);
        const { id, name, queue, attempt, maxAttempts, context, workerId, hostId, token } = ctx;
        seen.resolve({
          id,
          name,
          queue,
          attempt,
          maxAttempts,
          context,
          workerId,
          hostId,
          token,
          children: [one, ...many].map((child) => child.id),
        });
      },
    });
    const worker = hf.work([curious], { queues: { mail: 1 }, ...patient });
    const { id } = await hf.enqueue(curious, null, { context: "why" });
    const { children, token, ...rest } = await seen.promise;
    expect(rest).toEqual({
      id,
      name: "curious",
      queue: "mail",
      attempt: 1,
      maxAttempts: 7,
      context: "why",
      workerId: worker.id,
      hostId: "test-host",
    });
    expect(token).toBeGreaterThan(0);
    for (const child of children as string[]) expect((await hf.jobs.get(child))?.parentId).toBe(id);
    await worker.idle();
  });

  test("[E4] progress is seen while the job runs, the newest value wins, and it stays with the job", async () => {
    const { hf, store } = await client(target);
    const finish = Promise.withResolvers<void>();
    const reported = Promise.withResolvers<void>();
    const reporting = defineJob({
      name: "reporting",
      run: async (_: null, ctx) => {
        await Promise.all(Array.from({ length: 1_000 }, (_, n) => ctx.progress({ n })));
        reported.resolve();
        await finish.promise;
      },
    });
    const worker = hf.work([reporting], { queues: { default: 1 }, ...patient });
    const { id } = await hf.enqueue(reporting, null);
    await reported.promise;
    expect(await hf.jobs.get(id)).toMatchObject({ state: "running", progress: { n: 999 } });
    expect(store.counters.byName.get("progress"), "values that are overtaken are never written").toBeLessThan(
      10,
    );
    finish.resolve();
    await worker.idle();
    expect(await hf.jobs.get(id)).toMatchObject({ state: "done", progress: { n: 999 } });
  });

  test("[E4] progress of a holder that lost its lease is refused and not written", async () => {
    const { hf, store, clock } = await client(target);
    const { id } = await hf.enqueue(plain, 0);
    const [lease] = await hf.lease({ for: "10s" });
    const session = (await store.workers.list())[0]!.session;
    expect(await store.settles.progress(session, id, lease!.token, "1")).toBe(true);
    expect(await store.settles.progress(session, id, lease!.token + 1, "2"), "another's token").toBe(false);
    await clock.advance("10s");
    expect(await store.settles.progress(session, id, lease!.token, "3"), "too late").toBe(false);
    expect((await hf.jobs.get(id))?.progress).toBe(1);
  });
});

test("[E4] the context has the documented types", () => {
  expectTypeOf<JobContext["id"]>().toEqualTypeOf<string>();
  expectTypeOf<JobContext["attempt"]>().toEqualTypeOf<number>();
  expectTypeOf<JobContext["maxAttempts"]>().toEqualTypeOf<number>();
  expectTypeOf<JobContext["context"]>().toEqualTypeOf<string | null>();
  expectTypeOf<JobContext["workerId"]>().toEqualTypeOf<string>();
  expectTypeOf<JobContext["hostId"]>().toEqualTypeOf<string>();
  expectTypeOf<JobContext["signal"]>().toEqualTypeOf<AbortSignal>();
  expectTypeOf<JobContext["log"]>().toEqualTypeOf<Logger>();
  expectTypeOf<JobContext["enqueue"]>().toEqualTypeOf<Enqueue>();
  expectTypeOf<JobContext["enqueueMany"]>().toEqualTypeOf<EnqueueMany>();
  expectTypeOf<JobContext["progress"]>().toEqualTypeOf<(value: unknown) => Promise<void>>();
});
