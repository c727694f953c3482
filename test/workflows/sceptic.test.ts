// Workflows as somebody uses them who does not believe in them.
import { expect, test } from "vitest";
import * as z from "zod";
import {
  Dead,
  defineJob,
  defineMachine,
  finish,
  fixed,
  isHoldfastError,
  next,
  Throttled,
} from "../../src/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { jobOf, newWorld } from "../support/world.ts";

const lease = { lease: "20d", heartbeat: "9d" } as const;
const queues = { default: 5 } as const;

onEveryStore((target) => {
  test("[N11] a sleep of no time, or until an instant that has passed, keeps its place in the history", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const job = defineJob({
      name: "naps",
      run: async (_: null, ctx) => {
        await ctx.sleep("none", 0);
        await ctx.step("a", () => 1);
        await ctx.sleep("past", new Date(0));
        await ctx.step("b", () => 2);
        await ctx.sleep("long", "1h");
        return ctx.step("c", () => 3);
      },
    });
    await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, null);
    await world.until("asleep", async () => (await jobOf(one, id)).waitsFor === "sleep");
    await world.advance("61m", "1m");
    await world.until("done", async () => (await jobOf(one, id)).state === "done");
    expect((await jobOf(one, id)).output).toBe(3);
  });

  test("[N11] a handler that catches its shutdown and asks for more does not spoil the run: it goes on with the next worker", async () => {
    const world = await newWorld(target);
    const [one, two] = [await world.client(), await world.client()];
    let first = true;
    const cleaned: string[] = [];
    const job = defineJob({
      name: "stubborn",
      run: async (_: null, ctx) => {
        try {
          await ctx.step("long", async ({ signal }) => {
            if (!first) return "long";
            first = false;
            return new Promise((_resolve, reject) => {
              signal.addEventListener("abort", () => reject(signal.reason as Error));
            });
          });
        } catch (error) {
          await ctx.step("clean", () => cleaned.push("clean"));
          throw error;
        }
        await ctx.sleep("nap", "1m");
        return "whole";
      },
    });
    const worker = await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, null);
    await world.until("in the step", async () => !first);
    await world.finish(worker.stop({ timeout: 100 }));
    expect(await jobOf(one, id)).toMatchObject({ state: "ready", attempt: 0 });
    await two.work([job], { queues, ...lease });
    await world.advance("70s", "1s");
    await world.until("done", async () => (await jobOf(one, id)).state === "done");
    expect((await jobOf(one, id)).output).toBe("whole");
    expect(cleaned).toEqual([]);
  });

  test("[N11] a decision that a step throws is the job's, also where the handler catches it and asks for more", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    let tries = 0;
    const job = defineJob({
      name: "decided",
      run: async (_: null, ctx) => {
        await ctx
          .step("limited", () => {
            tries += 1;
            if (tries === 1) throw new Throttled("10s");
            return tries;
          })
          .catch(() => undefined);
        await ctx.step("next", () => 1);
        await ctx.sleep("nap", "1m");
        return "whole";
      },
    });
    await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, null);
    await world.until("throttled", async () => (await one.hf.jobs.why(id)).reason === "throttled");
    await world.advance("90s", "1s");
    await world.until("done", async () => (await jobOf(one, id)).state === "done");
    expect((await jobOf(one, id)).output).toBe("whole");
  });

  test("[N11] a call that cannot be made fails like a step: the handler may go on without it, now and after a sleep", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const child = defineJob({ name: "child", input: z.object({ n: z.number() }), run: async ({ n }) => n });
    const codes: unknown[] = [];
    const job = defineJob({
      name: "caller",
      run: async (_: null, ctx) => {
        const missed = await ctx
          .call(child, { n: "one" } as never)
          .catch((error: unknown) => (isHoldfastError(error) ? error.code : String(error)));
        codes.push(missed);
        await ctx.step("a", () => 1);
        await ctx.sleep("nap", "1m");
        return ctx.call(child, { n: 2 });
      },
    });
    await one.work([job, child], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, null);
    await world.until("asleep", async () => (await jobOf(one, id)).waitsFor === "sleep");
    await world.advance("70s", "1s");
    await world.until("done", async () => (await jobOf(one, id)).state === "done");
    expect((await jobOf(one, id)).output).toBe(2);
    expect(new Set(codes)).toEqual(new Set(["INPUT_INVALID"]));
    const history = await one.hf.jobs.history(id);
    expect(history?.steps.find(({ state }) => state === "failed")?.error).toMatch(/input/);
  });

  test("[N22] a second cancel does not keep the steps of a run from being undone", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const undone: string[] = [];
    let failures = 1;
    const job = defineJob({
      name: "trip",
      run: async (_: null, ctx) => {
        await ctx.step("flight", () => 1, { undo: () => undone.push("flight") });
        await ctx.step("hotel", () => 2, {
          undo: () => {
            if (failures-- > 0) throw new Error("not now");
            undone.push("hotel");
          },
        });
        await ctx.waitFor("never");
      },
    });
    const worker = await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, null);
    await world.until("waiting", async () => (await jobOf(one, id)).state === "waiting");
    await world.finish(worker.stop());
    expect(await one.hf.jobs.cancel(id)).toBe("cancel_requested");
    expect(await one.hf.jobs.cancel(id)).toBe("cancel_requested");
    await one.work([job], { queues, ...lease });
    await world.until("first try", async () => failures === 0);
    await world.until("asleep", async () => (await jobOf(one, id)).state === "scheduled");
    expect(await one.hf.jobs.cancel(id)).toBe("cancel_requested");
    await world.advance("2m", "1s");
    await world.until("ended", async () => (await jobOf(one, id)).state === "cancelled");
    expect(undone).toEqual(["hotel", "flight"]);
  });

  test("[N22] an undo that never settles counts as failed by the job's timeout, and the rest is not forgotten", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const undone: unknown[] = [];
    const job = defineJob({
      name: "trip",
      retry: { attempts: 1 },
      timeout: "5s",
      run: async (_: null, ctx) => {
        await ctx.step("flight", () => 1, { undo: () => undone.push("flight") });
        await ctx.step("hotel", () => 2, {
          undo: (_output, { attempt }) => (attempt === 1 ? new Promise(() => {}) : undone.push("hotel")),
        });
        throw new Error("no car");
      },
    });
    await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, null);
    await world.advance("3m", "1s");
    await world.until("dead", async () => (await jobOf(one, id)).state === "dead");
    expect(undone).toEqual(["hotel", "flight"]);
    expect((await jobOf(one, id)).error).toBe("no car");
  });

  test("[N22] a worker that is stopped in the middle of an undo leaves the rest to the next", async () => {
    const world = await newWorld(target);
    const [one, two] = [await world.client(), await world.client()];
    const undone: unknown[] = [];
    let stuck = false;
    const job = (forever: boolean) =>
      defineJob({
        name: "trip",
        retry: { attempts: 1 },
        run: async (_: null, ctx) => {
          await ctx.step("flight", () => 1, { undo: () => undone.push("flight") });
          await ctx.step("hotel", () => 2, {
            undo: () => {
              if (!forever) return undone.push("hotel");
              stuck = true;
              return new Promise(() => {});
            },
          });
          throw new Error("no car");
        },
      });
    const worker = await one.work([job(true)], { queues, ...lease });
    const { id } = await one.hf.enqueue(job(true), null);
    await world.until("undoing", async () => stuck);
    await world.finish(worker.stop({ timeout: 100 }));
    expect((await jobOf(one, id)).state).toBe("ready");
    await two.work([job(false)], { queues, ...lease });
    await world.until("dead", async () => (await jobOf(one, id)).state === "dead");
    expect(undone).toEqual(["hotel", "flight"]);
    expect((await jobOf(one, id)).error).toBe("no car");
  });

  test("[N12] a marker before the very wait that a run is in gives 0 to that run", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const before = defineJob({
      name: "marked",
      run: async (_: null, ctx) => {
        await ctx.step("a", () => 1);
        await ctx.waitFor("go");
      },
    });
    const after = defineJob({
      name: "marked",
      run: async (_: null, ctx) => {
        await ctx.step("a", () => 1);
        const version = await ctx.version("new", 1);
        if (version > 0) await ctx.step("b", () => 2);
        await ctx.waitFor("go");
        return version;
      },
    });
    const worker = await one.work([before], { queues, ...lease });
    const { id } = await one.hf.enqueue(before, null);
    await world.until("waiting", async () => (await jobOf(one, id)).state === "waiting");
    await world.finish(worker.stop());
    expect(await one.hf.check([after])).toEqual({ checked: 1, broken: [] });
    await one.work([after], { queues, ...lease });
    await one.hf.signal("go");
    await world.until("ended", async () => ["done", "dead"].includes((await jobOf(one, id)).state));
    expect(await jobOf(one, id)).toMatchObject({ state: "done", output: 0 });
  });

  test("[N22] a run that ends before it has asked for anything is undone, also by a process that never saw its steps", async () => {
    const world = await newWorld(target);
    const [one, two] = [await world.client(), await world.client()];
    const undone: string[] = [];
    let lives = 0;
    const job = defineJob({
      name: "trip",
      run: async (_: null, ctx) => {
        // In its second life it fails before its first step; in its third it is led to them, to be undone.
        if (++lives === 2) throw new Dead("the account is closed");
        await ctx.step("flight", () => 1, { undo: () => undone.push("flight") });
        await ctx.waitFor("go");
      },
    });
    const worker = await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, null);
    await world.until("waiting", async () => (await jobOf(one, id)).state === "waiting");
    await world.finish(worker.stop());
    await two.work([job], { queues, ...lease });
    await two.hf.signal("go");
    await world.until("dead", async () => (await jobOf(one, id)).state === "dead");
    expect(undone).toEqual(["flight"]);
    expect(await jobOf(one, id)).toMatchObject({ error: "the account is closed" });
  });

  test("[N22] a plain job that dies in its first attempt asks nothing about steps", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const job = defineJob({
      name: "plain",
      run: async () => {
        throw new Dead("no");
      },
    });
    await one.work([job], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, null);
    await world.until("dead", async () => (await jobOf(one, id)).state === "dead");
    expect(one.tap.count("workflows.undoable", "workflows.steps")).toBe(0);
  });

  test("[D7] ctx.attempt and ctx.maxAttempts of a machine are those of the step it is at", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const seen: [string, number, number][] = [];
    const machine = defineMachine({
      name: "counted",
      start: "a",
      steps: {
        a: {
          retry: { attempts: 3, backoff: fixed("1s") },
          run: async (_: null, ctx) => {
            seen.push(["a", ctx.attempt, ctx.maxAttempts]);
            if (ctx.attempt < 3) throw new Error("again");
            return next("b", 1);
          },
        },
        b: {
          retry: { attempts: 2, backoff: fixed("1s") },
          run: async (_: number, ctx) => {
            seen.push(["b", ctx.attempt, ctx.maxAttempts]);
            if (ctx.attempt < 2) throw new Error("again");
            return finish();
          },
        },
      },
    });
    await one.work([machine], { queues, ...lease });
    const { id } = await one.hf.enqueue(machine, null);
    await world.advance("5s");
    await world.until("done", async () => (await jobOf(one, id)).state === "done");
    expect(seen).toEqual([
      ["a", 1, 3],
      ["a", 2, 3],
      ["a", 3, 3],
      ["b", 1, 2],
      ["b", 2, 2],
    ]);
  });

  test("[N11] a signal and the end of a called job wake the run at once, not with the sweep that finds what was missed", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const child = defineJob({ name: "child", run: async (_: null, ctx) => ctx.waitFor("child") });
    const job = defineJob({
      name: "woken",
      run: async (_: null, ctx) => {
        await ctx.waitFor("go");
        return ctx.call(child, null);
      },
    });
    await one.work([job, child], { queues, ...lease });
    const { id } = await one.hf.enqueue(job, null);
    await world.until("waiting", async () => (await one.hf.jobs.why(id)).reason === "waiting-for-signal");
    await one.hf.signal("go");
    await world.until("called", async () => (await one.hf.jobs.why(id)).reason === "waiting-for-jobs", "2s");
    await world.until("the child waits", async () => (await one.hf.jobs.count({ state: "waiting" })) === 2);
    await one.hf.signal("child", { data: 1 });
    await world.until("done", async () => (await jobOf(one, id)).state === "done", "2s");
  });
});
