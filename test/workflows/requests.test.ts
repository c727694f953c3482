// What operators request of jobs that somebody holds, where it is easily lost: between two claims, in a worker's buffer, while steps
// are undone, and when the holder's session ends.
import { expect, test } from "vitest";
import { defineJob, fixed } from "../../src/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { jobOf, newWorld } from "../support/world.ts";

const lease = { lease: "20d", heartbeat: "9d" } as const;
const plain = defineJob({ name: "plain", retry: { attempts: 3, backoff: fixed("1s") }, run: () => null });

onEveryStore((target) => {
  test("[E3] a pause is no cancel because an earlier claim of the job was to be cancelled", async () => {
    const world = await newWorld(target);
    const { hf } = await world.client();
    const { id } = await hf.enqueue(plain, null);
    await hf.enqueue(plain, null); // so that the session stays open
    const [first] = await hf.lease({ queues: ["default"], limit: 2, for: "1m" });
    expect(await hf.jobs.cancel(id)).toBe("cancel_requested");
    await first!.release();
    const [second] = await hf.lease({ queues: ["default"], for: "1m" });
    expect(await hf.jobs.pause(id)).toBe("pause_requested");
    await second!.fail(new Error("no"));
    expect(await hf.jobs.get(id)).toMatchObject({ state: "waiting", waitsFor: "resume" });
    expect(await hf.jobs.why(id)).toMatchObject({ reason: "job-paused" });
    expect(await hf.jobs.resume(id)).toBe("resumed");
    expect(await hf.jobs.get(id)).toMatchObject({ state: "scheduled" });
  });

  test("[E3] a cancel stands though a pause of the same claim is asked for after it", async () => {
    const world = await newWorld(target);
    const { hf } = await world.client();
    const { id } = await hf.enqueue(plain, null);
    const [held] = await hf.lease({ queues: ["default"], for: "1m" });
    await hf.jobs.cancel(id);
    await hf.jobs.pause(id);
    await held!.fail(new Error("no"));
    expect(await hf.jobs.get(id)).toMatchObject({ state: "cancelled", error: "cancelled by user" });
  });

  test("[E3] a job that was terminated while it waited for a slot never starts", async () => {
    const world = await newWorld(target);
    const [one, two] = [await world.client(), await world.client()];
    const ran: number[] = [];
    const gate = Promise.withResolvers<void>();
    const job = defineJob({
      name: "quick",
      run: async (n: number) => {
        ran.push(n);
        if (n === 100) await gate.promise;
      },
    });
    await one.work([job], { queues: { default: 1 }, ...lease });
    // So that it claims ahead: jobs take no time.
    for (let n = 0; n < 5; n += 1) {
      const { id } = await two.hf.enqueue(job, n);
      await world.until("done", async () => (await jobOf(two, id)).state === "done");
    }
    const [, doomed, last] = await two.hf.enqueueMany([100, 101, 102].map((input) => ({ job, input })));
    await world.until("the gate", () => ran.includes(100));
    expect(await jobOf(two, doomed!.id)).toMatchObject({ state: "running" });
    expect(await two.hf.jobs.terminate(doomed!.id)).toBe("terminated");
    await world.quiet(); // it has heard of that, and no time has passed in which it would give back what waits for a slot
    gate.resolve();
    await world.until("the last", async () => (await jobOf(two, last!.id)).state === "done", "1m");
    expect(ran).toEqual([0, 1, 2, 3, 4, 100, 102]);
    expect(await jobOf(two, doomed!.id)).toMatchObject({ state: "cancelled", error: "terminated by user" });
  });

  test("[N11] a run that is to undo its steps is not stopped by another cancel while somebody holds it", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const undone: string[] = [];
    const saga = defineJob({
      name: "saga",
      retry: { attempts: 3, backoff: fixed("1s") },
      run: async (_: null, ctx) => {
        await ctx.step("charge", () => 1, { undo: () => void undone.push("charge") });
        await ctx.sleep("nap", "1h");
      },
    });
    const worker = await one.work([saga], { queues: { default: 1 }, ...lease });
    const { id } = await one.hf.enqueue(saga, null);
    await world.until("asleep", async () => (await jobOf(one, id)).waitsFor === "sleep");
    await world.finish(worker.stop());
    expect(await one.hf.jobs.cancel(id)).toBe("cancel_requested");
    const [held] = await one.hf.lease({ names: ["saga"], for: "1m" });
    expect(await one.hf.jobs.cancel(id)).toBe("cancel_requested");
    await held!.fail(new Error("not by this one"));
    expect(await jobOf(one, id)).toMatchObject({ waitsFor: null });
    await one.work([saga], { queues: { default: 1 }, ...lease });
    await world.until("its end", async () => (await jobOf(one, id)).endedAt !== null, "5m", "1s");
    expect(await jobOf(one, id)).toMatchObject({ state: "cancelled" });
    expect(undone).toEqual(["charge"]);
  });

  test("[E2] what is requested of a job outlives the session of whoever held it", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const { hf, tap } = one;
    const [first, second] = [await hf.enqueue(plain, null), await hf.enqueue(plain, null)];
    await hf.lease({ queues: ["default"], limit: 2, for: "1m" });
    expect(await hf.jobs.pause(first.id)).toBe("pause_requested");
    expect(await hf.jobs.cancel(second.id)).toBe("cancel_requested");
    const [row] = await world.rows("session");
    await tap.raw.sessions.close(Number(row!["id"]));
    await one.work([defineJob({ name: "other", run: () => null })], {
      queues: { default: 1 },
      lease: "20s",
      heartbeat: "5s",
    });
    await world.until("taken over", async () => (await jobOf(one, second.id)).state === "cancelled", "5m");
    expect(await jobOf(one, first.id)).toMatchObject({ state: "waiting", waitsFor: "resume" });
    await world.until("no request left", async () => (await world.rows("cancel")).length === 0, "5m");
  });

  test("[E2] a request of an earlier life of a job is none of the next one's", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const { hf } = one;
    const { id } = await hf.enqueue(plain, null);
    await hf.enqueue("other", null); // so that the session stays open
    const [held] = await hf.lease({ queues: ["default"], limit: 2, for: "1d" });
    await hf.jobs.pause(id);
    await held!.done(null); // it has come to its end before it was heard
    expect(await hf.jobs.delete(id)).toBe("deleted");
    await world.advance("61m", "1m"); // until then its id is used
    await hf.prune();
    await hf.enqueue(plain, null, { id, delay: "5m" });
    await one.work([plain], { queues: { default: 1 }, ...lease });
    await world.until("done", async () => (await jobOf(one, id)).state === "done", "10m", "1s");
    await world.until("no request left", async () => (await world.rows("cancel")).length === 0, "5m");
  });

  test("[F10] a worker that stops waits for what it has yet to ask about a job that has ended", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const job = defineJob({
      name: "fails",
      retry: { attempts: 2, backoff: fixed("1s") },
      run: () => {
        throw new Error("always");
      },
    });
    const worker = await one.work([job], { queues: { default: 1 }, ...lease });
    const answer = Promise.withResolvers<void>();
    let asked = false;
    one.tap.around = async (verb, call) => {
      if (verb === "workflows.undoable") {
        asked = true;
        await one.tap.late(answer.promise);
      }
      return call();
    };
    const { id } = await one.hf.enqueue(job, null);
    await world.until("asked", () => asked);
    const stopped = worker.stop();
    await world.advance("1s");
    answer.resolve();
    await world.finish(stopped);
    expect(await jobOf(one, id)).toMatchObject({ state: "dead", attempt: 2, crashes: 0 });
  });

  test("[N11] a run that stops between two steps is due at once by the database's clock", async () => {
    const world = await newWorld(target);
    const { hf, tap } = await world.client();
    const { id } = await hf.enqueue(plain, null);
    const [held] = await hf.lease({ queues: ["default"], for: "1m" });
    const [row] = await world.rows("ready");
    await tap.raw.settles.settle(
      Number(row!["session"]),
      [
        {
          move: "wait",
          id,
          token: Number(row!["token"]),
          attempt: 0,
          crashes: 0,
          errors: null,
          waits: "sleep",
          at: 0,
          topics: [],
          open: 0,
          every: false,
        },
      ],
      [],
    );
    expect(held!.id).toBe(id);
    expect(await hf.jobs.get(id)).toMatchObject({ state: "ready", runAt: new Date(world.clock.now()) });
  });
});
