// What is stopped in the middle: a cancel, a shutdown or a second cancel loses no step of a machine and leaves no step of a
// saga as it is.
import { expect, test } from "vitest";
import {
  Dead,
  defineJob,
  defineMachine,
  finish,
  fixed,
  type JobContext,
  next,
  silentLogger,
} from "../../src/index.ts";
import type { ClaimedJob } from "../../src/jobs/job.ts";
import { Pool } from "../../src/worker/slots.ts";
import { decide, policyFor } from "../../src/jobs/transition.ts";
import { onEveryStore } from "../support/stores.ts";
import { type Client, jobOf, newWorld, type World } from "../support/world.ts";

const lease = { lease: "20d", heartbeat: "9d" } as const;
const queues = { default: 5 } as const;

/** A machine whose first step stays until the test lets it go. */
function twoSteps(delay: string | undefined) {
  const ran: string[] = [];
  const opened = Promise.withResolvers<void>();
  const machine = defineMachine({
    name: "two-steps",
    start: "one",
    steps: {
      one: {
        run: async (data: { n: number }) => {
          ran.push("one");
          await opened.promise;
          return next("two", data, delay === undefined ? {} : { delay });
        },
      },
      two: { run: async (data: { n: number }) => (ran.push("two"), finish(data.n)) },
    },
  });
  return { machine, ran, open: () => opened.resolve() };
}

const ended = (world: World, client: Client, id: string) =>
  world.until("its end", async () => (await jobOf(client, id)).endedAt !== null, "30m", "5s");

onEveryStore((target) => {
  test("[D6] a machine that is cancelled while it moves is cancelled, and not done without its other steps", async () => {
    for (const delay of ["1s", undefined]) {
      const world = await newWorld(target);
      const one = await world.client();
      const { machine, ran, open } = twoSteps(delay);
      await one.work([machine], { queues, ...lease });
      const { id } = await one.hf.enqueue(machine, { n: 1 });
      await world.until("step one", () => ran.includes("one"), "20s");
      expect(await one.hf.jobs.cancel(id)).toBe("cancel_requested");
      open();
      await ended(world, one, id);
      expect(await jobOf(one, id)).toMatchObject({ state: "cancelled", output: null });
      expect(ran).toEqual(["one"]);
    }
  });

  test("[D6] a machine whose worker shuts down while it moves goes on at its next step elsewhere", async () => {
    const world = await newWorld(target);
    const [one, two] = [await world.client({ logger: silentLogger }), await world.client()];
    const { machine, ran, open } = twoSteps("1s");
    const worker = await one.work([machine], { queues, ...lease });
    const { id } = await one.hf.enqueue(machine, { n: 1 });
    await world.until("step one", () => ran.includes("one"), "20s");
    const stopping = worker.stop({ timeout: "1s" });
    await world.advance("1100ms");
    open();
    await world.finish(stopping);
    await two.work([machine], { queues, ...lease });
    await ended(world, two, id);
    expect(await jobOf(two, id)).toMatchObject({ state: "done", output: 1 });
    expect(ran).toEqual(["one", "two"]);
  });

  test("[E2] a workflow that is cancelled begins no step more, whatever its code makes of its signal", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const opened = Promise.withResolvers<void>();
    const did: string[] = [];
    const job = defineJob({
      name: "deaf",
      run: async (_: null, ctx) => {
        await ctx.step("first", async () => {
          did.push("first");
          await opened.promise;
        });
        await ctx.step("second", () => void did.push("second"));
      },
    });
    await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, null);
    await world.until("the first", () => did.length > 0, "20s");
    await one.hf.jobs.cancel(id);
    opened.resolve();
    await ended(world, one, id);
    expect((await jobOf(one, id)).state).toBe("cancelled");
    expect(did).toEqual(["first"]);
  });

  test("[N11] an undo that ends before the handler comes to its steps is tried again, until they are undone", async () => {
    const before: Record<string, (runs: number, ctx: JobContext) => unknown> = {
      throws: (runs) => {
        if (runs === 2 || runs === 3) throw new Error("connect ECONNREFUSED");
      },
      dead: (runs) => {
        if (runs === 2) throw new Dead("not wanted any more");
      },
      returns: (runs) => runs === 2,
    };
    for (const [name, first] of Object.entries(before)) {
      const world = await newWorld(target);
      const one = await world.client();
      const undone: string[] = [];
      let runs = 0;
      const job = defineJob({
        name,
        retry: { attempts: 2, backoff: fixed("1s") },
        run: async (_: null, ctx) => {
          runs += 1;
          if (first(runs, ctx) === true) return;
          await ctx.step("charge", () => 1, { undo: () => void undone.push("charge") });
          await ctx.sleep("long", "30d");
        },
      });
      await one.work([job], { queues, ...lease });
      const { id } = await one.hf.enqueue(job, null);
      await world.until("asleep", async () => (await jobOf(one, id)).waitsFor === "sleep", "20s");
      await one.hf.jobs.cancel(id);
      await ended(world, one, id);
      expect([name, (await jobOf(one, id)).state, undone]).toEqual([name, "cancelled", ["charge"]]);
    }
  });

  test("[N11] where the handler never comes to its steps again, the job is dead and says that they were not undone", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const undone: string[] = [];
    let runs = 0;
    const job = defineJob({
      name: "gone",
      retry: { attempts: 2, backoff: fixed("1s") },
      run: async (_: null, ctx) => {
        runs += 1;
        if (runs > 1) throw new Error("connect ECONNREFUSED");
        await ctx.step("charge", () => 1, { undo: () => void undone.push("charge") });
        throw new Dead("no car");
      },
    });
    await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, null);
    await ended(world, one, id);
    const { state, errors } = await jobOf(one, id);
    expect([state, undone]).toEqual(["dead", []]);
    expect(errors.at(-1)?.message).toMatch(/^UNDO_FAILED: its steps were not compensated/);
    expect(runs).toBeGreaterThan(5);
  });

  test("[N11] a second cancel while the undo run is before its first step changes nothing", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const undone: string[] = [];
    let runs = 0;
    const job = defineJob({
      name: "twice",
      retry: { attempts: 2, backoff: fixed("1s") },
      run: async (_: null, ctx) => {
        runs += 1;
        if (runs === 2)
          await new Promise((_resolve, reject) => {
            ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason as Error));
          });
        await ctx.step("charge", () => 1, { undo: () => void undone.push("charge") });
        await ctx.sleep("long", "30d");
      },
    });
    await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, null);
    await world.until("asleep", async () => (await jobOf(one, id)).waitsFor === "sleep", "20s");
    await one.hf.jobs.cancel(id);
    await world.until("the undo run", () => runs === 2, "20s");
    await one.hf.jobs.cancel(id);
    await ended(world, one, id);
    expect((await jobOf(one, id)).state).toBe("cancelled");
    expect(undone).toEqual(["charge"]);
  });

  test("[E1] a job that its worker gives back, and no handler by choice, is cancelled if that was asked", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const store = one.tap.raw;
    const policy = policyFor({ maxAttempts: 5, extras: null } as never, null, null);
    const env = { now: () => 0, random: () => 0.5 };
    const released = { kind: "released", delayMs: 0, reason: "r" } as const;
    const outcomes = [
      [{ ...released, unstarted: true }, "cancelled"],
      [{ ...released, forced: true }, "cancelled"],
      [released, "ready"],
    ] as const;
    for (const [outcome, becomes] of outcomes) {
      const { id } = await one.hf.enqueue("plain", null);
      await one.hf.lease({ for: "1h" });
      const [held] = await store.sessions.held([id]);
      expect(await one.hf.jobs.cancel(id)).toBe("cancel_requested");
      await store.settles.settle(held?.session ?? 0, [decide(held as ClaimedJob, outcome, policy, env)], []);
      expect((await jobOf(one, id)).state).toBe(becomes);
      await one.hf.jobs.delete(id);
    }
  });

  test("[K3] terminate undoes nothing, also of a handler that obeys its signal at once", async () => {
    const world = await newWorld(target);
    const [one, two] = [await world.client({ logger: silentLogger }), await world.client()];
    const undone: string[] = [];
    let charged = 0;
    const job = defineJob({
      name: "obedient",
      run: async (_: null, ctx) => {
        await ctx.step("charge", () => void (charged += 1), { undo: () => void undone.push("charge") });
        await new Promise((_resolve, reject) => {
          ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason as Error));
        });
      },
    });
    await one.work([job], { queues, ...lease });
    const ids: string[] = [];
    for (let n = 0; n < 5; n += 1) ids.push((await two.hf.enqueue(job, null)).id);
    await world.until("charged", () => charged === 5, "20s");
    for (const id of ids) expect(await two.hf.jobs.terminate(id)).toBe("terminated");
    await world.advance("1m", "1s");
    for (const id of ids) expect((await jobOf(two, id)).state).toBe("cancelled");
    expect(undone).toEqual([]);
  });
});

test("[N11] a request for an earlier claim does not take a later one out of a worker's buffer", () => {
  const pool = new Pool("default", 0);
  pool.push({ id: "a", token: 2, queue: "default" } as ClaimedJob, 0);
  expect(pool.takeSome(({ id, token }) => id === "a" && token === 1)).toEqual([]);
  expect(pool.takeSome(({ id, token }) => id === "a" && token === 2)).toMatchObject([{ id: "a" }]);
});
